"""The oracle: slow, obvious PyTorch that every kernel is compared with. Start with attention.py; see README.md."""

from .attention import Attention, naive_attention, repeat_kv, visible_keys
from .config import ModelConfig
from .errors import OracleError, UnsupportedConfig
from .generate import generate
from .grouping import average_heads, mha_to_gqa
from .layers import RMSNorm, SwiGLU
from .lens import logit_lens
from .load import load_model
from .model import Block, Model
from .rope import RoPE
from .trace import trace, trace_block, trace_names

__all__ = [
    "Attention",
    "Block",
    "Model",
    "ModelConfig",
    "OracleError",
    "RMSNorm",
    "RoPE",
    "SwiGLU",
    "UnsupportedConfig",
    "average_heads",
    "generate",
    "load_model",
    "logit_lens",
    "mha_to_gqa",
    "naive_attention",
    "repeat_kv",
    "trace",
    "trace_block",
    "trace_names",
    "visible_keys",
]
