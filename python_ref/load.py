"""Fill a Model from a Hugging Face checkpoint folder.

The set of tensors must be exactly the one that follows from config.json: nothing missing, nothing left over, every
shape as computed, every number finite. Two extras are passed over, as transformers does: the RoPE frequencies that
old Llama files store, and a tied model's head where it is the embedding once more.
bfloat16 and float16 widen to float32 and float64 without rounding. Blocks (Q4_1: d * q + m, Q8_0: d * q) are exact in
float64; in float32 d * q still is, and adding m rounds once.
"""

from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from weights.checkpoint import Blocks, Checkpoint, open_checkpoint

from .config import ModelConfig
from .errors import MissingTensor, NotFinite, UnexpectedTensor, UntiedHead, WrongShape
from .model import Model

# Our names are the formulas'; the right-hand side is how transformers spells them.
SPELLINGS = [
    ("blocks.", "model.layers."),
    ("attn_norm.", "input_layernorm."),
    ("mlp_norm.", "post_attention_layernorm."),
    ("attn.w_q.", "self_attn.q_proj."),
    ("attn.w_k.", "self_attn.k_proj."),
    ("attn.w_v.", "self_attn.v_proj."),
    ("attn.w_o.", "self_attn.o_proj."),
    ("attn.q_norm.", "self_attn.q_norm."),
    ("attn.k_norm.", "self_attn.k_norm."),
    ("mlp.w_gate.", "mlp.gate_proj."),
    ("mlp.w_up.", "mlp.up_proj."),
    ("mlp.w_down.", "mlp.down_proj."),
    ("unembed.", "lm_head."),
    ("embed.", "model.embed_tokens."),
    ("final_norm.", "model.norm."),
]

EMBEDDING, HEAD = "model.embed_tokens.weight", "lm_head.weight"


def load_model(folder: Path | str, dtype: torch.dtype = torch.float32) -> Model:
    """Read a checkpoint folder. dtype: float32 or float64, what everything is computed in.

    Raises UnsupportedConfig, MissingTensor, UnexpectedTensor, WrongShape, UntiedHead, NotFinite, and
    weights.checkpoint's own errors.
    """
    checkpoint = open_checkpoint(Path(folder))
    config = ModelConfig.from_dict(checkpoint.config)
    with torch.device("meta"):  # shapes only: the numbers come from the file
        model = Model(config)
    ours = {spelled_by_transformers(name): name for name in model.state_dict()}
    shapes = {theirs: tuple(model.state_dict()[name].shape) for theirs, name in ours.items()}
    check_tensors(checkpoint, shapes, config)
    state = {name: finite(checkpoint, theirs).to(dtype) for theirs, name in ours.items()}
    model.load_state_dict(state, assign=True)
    return model.eval().requires_grad_(False)


def check_tensors(checkpoint: Checkpoint, shapes: dict[str, tuple[int, ...]], config: ModelConfig) -> None:
    """Compare the checkpoint's tensors with the names and shapes that the config asks for."""
    held = set(checkpoint.names)
    if missing := [name for name in shapes if name not in held]:
        raise MissingTensor(missing)
    stored_frequencies = {f"model.layers.{layer}.self_attn.rotary_emb.inv_freq" for layer in range(config.L)}
    twin = held & {HEAD} if config.tied else set()
    if unexpected := sorted(held - shapes.keys() - stored_frequencies - twin):
        raise UnexpectedTensor(unexpected)
    for name, shape in shapes.items():
        if tuple(checkpoint.shape(name)) != shape:
            raise WrongShape(name, tuple(checkpoint.shape(name)), shape)
    if twin and not equal(checkpoint, HEAD, EMBEDDING):
        raise UntiedHead(HEAD, EMBEDDING)


def equal(checkpoint: Checkpoint, one: str, other: str) -> bool:
    """Two tensors of one type, shape and content."""
    same_type = checkpoint.dtype(one) == checkpoint.dtype(other)
    return same_type and torch.equal(widen(checkpoint, one), widen(checkpoint, other))


def finite(checkpoint: Checkpoint, name: str) -> Tensor:
    """`widen`, or NotFinite when a number is NaN or infinite."""
    tensor = widen(checkpoint, name)
    if not tensor.isfinite().all():
        raise NotFinite(name)
    return tensor


def widen(checkpoint: Checkpoint, name: str) -> Tensor:
    """A tensor's exact values as torch holds them: float32, float16, or float64 for blocks.

    bfloat16 is float32's upper half.
    """
    array = checkpoint.read(name)
    if isinstance(array, Blocks):
        return torch.from_numpy(array.values())
    if checkpoint.dtype(name) == "BF16":
        array = (array.astype(np.uint32) << 16).view(np.float32)
    return torch.from_numpy(array)


def spelled_by_transformers(name: str) -> str:
    """blocks.3.attn.w_q.weight -> model.layers.3.self_attn.q_proj.weight."""
    for ours, theirs in SPELLINGS:
        start = name.find(ours)
        if start == 0 or (start > 0 and name[start - 1] == "."):
            name = name.replace(ours, theirs, 1)
    return name
