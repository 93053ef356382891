"""A llama-family GGUF file as a Hugging Face style folder: weights, config, tokenizer.

Quantised blocks are kept: their numbers are laid out anew (weights/blocks.py), none is changed.
    Q8_0: block of 32 = f16 d | 32 x int8 q            w = d * q
    Q4_1: block of 32 = f16 d | f16 m | 16 bytes       w = d * q + m, low nibbles are elements 0..15, high 16..31
Or everything is widened exactly, in float64, and rounded once to float16, for programs that know no blocks.
GGUF stores the rows of w_q and w_k so that the two members of a rotary pair are neighbours (interleaved). Hugging
Face checkpoints are half-split: within a head, row i pairs with row i + H/2. `half_split` puts the rows back.
Source: ggml, docs/gguf.md and ggml-quants; llama.cpp, convert_hf_to_gguf, LlamaModel.permute.
Left out on purpose: other block types and other architectures, which are refused.
"""

import json
from collections.abc import Iterator
from pathlib import Path

import numpy as np
from gguf import GGMLQuantizationType, GGUFReader

from weights.blocks import BLOCK
from weights.errors import CheckpointError

GLOBAL_NAMES = {
    "token_embd.weight": "model.embed_tokens.weight",
    "output_norm.weight": "model.norm.weight",
    "output.weight": "lm_head.weight",
}
LAYER_NAMES = {
    "attn_norm": "input_layernorm",
    "attn_q": "self_attn.q_proj",
    "attn_k": "self_attn.k_proj",
    "attn_v": "self_attn.v_proj",
    "attn_output": "self_attn.o_proj",
    "ffn_norm": "post_attention_layernorm",
    "ffn_gate": "mlp.gate_proj",
    "ffn_up": "mlp.up_proj",
    "ffn_down": "mlp.down_proj",
}
# Block type -> suffix of its quants, their dtype, weights per element, numbers per block in `scales`.
STORED = {GGMLQuantizationType.Q4_1: ("q4_1", "uint32", 8, (2,)), GGMLQuantizationType.Q8_0: ("q8_0", "int8", 1, ())}
CONTROL = 3  # tokenizer.ggml.token_type of a control token
PRE_TOKENIZERS = {
    # Every digit alone, then GPT-2's own pattern.
    "smollm": [
        {"type": "Digits", "individual_digits": True},
        {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True, "use_regex": True},
    ]
}


class UnsupportedGguf(CheckpointError):
    """A GGUF file that cannot be converted exactly."""

    code = "unsupported-gguf"


class GgufModel:
    """A GGUF file opened for conversion. Raises UnsupportedGguf for what cannot be converted exactly."""

    def __init__(self, path: Path):
        self.reader = GGUFReader(path)
        self.fields = {key: field.contents() for key, field in self.reader.fields.items()}
        self.tensors = {hf_name(tensor.name): tensor for tensor in self.reader.tensors}
        if self.fields["general.architecture"] != "llama":
            raise UnsupportedGguf(f"Architecture {self.fields['general.architecture']!r}; only 'llama' is converted.")

    def config(self, float16: bool = False) -> dict:
        """config.json of a LlamaForCausalLM."""
        get = {key.removeprefix("llama."): value for key, value in self.fields.items()}.__getitem__
        return {
            "architectures": ["LlamaForCausalLM"],
            "attention_bias": False,
            "bos_token_id": self.fields["tokenizer.ggml.bos_token_id"],
            "eos_token_id": self.fields["tokenizer.ggml.eos_token_id"],
            "head_dim": get("rope.dimension_count"),
            "hidden_act": "silu",
            "hidden_size": get("embedding_length"),
            "intermediate_size": get("feed_forward_length"),
            "max_position_embeddings": get("context_length"),
            "mlp_bias": False,
            "model_type": "llama",
            "num_attention_heads": get("attention.head_count"),
            "num_hidden_layers": get("block_count"),
            "num_key_value_heads": get("attention.head_count_kv"),
            # GGUF keeps float32; the shortest decimal that gives it back is what the checkpoint said (1e-05).
            "rms_norm_eps": shortest(get("attention.layer_norm_rms_epsilon")),
            "rope_scaling": None,
            "rope_theta": shortest(get("rope.freq_base")),
            "tie_word_embeddings": "lm_head.weight" not in self.tensors,
            "torch_dtype": "float16" if float16 else "float32",
            "vocab_size": get("vocab_size"),
        }

    def tokenizer(self) -> dict:
        """tokenizer.json: byte-level BPE from the file's vocabulary and merges."""
        kind, pre = self.fields["tokenizer.ggml.model"], self.fields["tokenizer.ggml.pre"]
        if kind != "gpt2" or pre not in PRE_TOKENIZERS:
            raise UnsupportedGguf(f"Tokenizer {kind!r} with {pre!r}; only 'gpt2' with {', '.join(PRE_TOKENIZERS)}.")
        tokens, types = self.fields["tokenizer.ggml.tokens"], self.fields["tokenizer.ggml.token_type"]
        flags = {"single_word": False, "lstrip": False, "rstrip": False, "normalized": False, "special": True}
        added = [{"id": id, "content": tokens[id], **flags} for id, type in enumerate(types) if type == CONTROL]
        model = {"type": "BPE", "dropout": None, "unk_token": None, "continuing_subword_prefix": None}
        model |= {"end_of_word_suffix": None, "fuse_unk": False, "byte_fallback": False, "ignore_merges": False}
        model |= {"vocab": {token: id for id, token in enumerate(tokens)}}
        model |= {"merges": [merge.split(" ") for merge in self.fields["tokenizer.ggml.merges"]]}
        parts = {"version": "1.0", "truncation": None, "padding": None, "added_tokens": added, "normalizer": None}
        parts |= {"pre_tokenizer": {"type": "Sequence", "pretokenizers": PRE_TOKENIZERS[pre]}, "post_processor": None}
        byte_level = {"type": "ByteLevel", "add_prefix_space": True, "trim_offsets": True, "use_regex": True}
        return parts | {"decoder": byte_level, "model": model}

    def tokenizer_config(self) -> dict:
        """tokenizer_config.json: special tokens by name and the chat template."""
        tokens = self.fields["tokenizer.ggml.tokens"]
        named = {"bos": "bos", "eos": "eos", "unk": "unknown", "pad": "padding"}
        return {
            "add_prefix_space": False,
            "chat_template": self.fields.get("tokenizer.chat_template"),
            "clean_up_tokenization_spaces": False,
            "model_max_length": self.fields["llama.context_length"],
            "tokenizer_class": "PreTrainedTokenizerFast",
            **{f"{key}_token": tokens[self.fields[f"tokenizer.ggml.{name}_token_id"]] for key, name in named.items()},
        }

    def weights(self, float16: bool = False) -> Iterator[tuple[str, np.ndarray]]:
        """Name and array of every stored tensor, one at a time: blocks as they are, others as float32.

        float16: one float16 array a tensor instead.
        """
        heads = {"q_proj": "llama.attention.head_count", "k_proj": "llama.attention.head_count_kv"}
        for name, tensor in self.tensors.items():
            stored = as_float16(name, tensor) if float16 else as_stored(name, tensor)
            part = name.split(".")[-2]
            for each, array in stored.items():
                yield each, half_split(array, self.fields[heads[part]]) if part in heads else array

    def layout(self, float16: bool = False) -> tuple[dict[str, tuple[int, ...]], dict[str, str]]:
        """Shapes and dtypes of what `weights` gives, by name and in its order."""
        shapes, dtypes = {}, {}
        for name, tensor in self.tensors.items():
            shape = tuple(int(size) for size in reversed(tensor.shape))
            kind = None if float16 else STORED.get(tensor.tensor_type)
            if kind is None:
                shapes[name], dtypes[name] = shape, "float16" if float16 else "float32"
                continue
            suffix, dtype, packed, numbers = kind
            shapes |= {f"{name}.{suffix}": (shape[0], shape[1] // packed)}
            shapes |= {f"{name}.scales": (shape[0], shape[1] // BLOCK, *numbers)}
            dtypes |= {f"{name}.{suffix}": dtype, f"{name}.scales": "float16"}
        return shapes, dtypes


def as_stored(name: str, tensor) -> dict[str, np.ndarray]:
    """A GGUF tensor's values by the names they are stored under: quants and scales, or float32."""
    rows = int(tensor.shape[-1])
    if tensor.tensor_type == GGMLQuantizationType.Q8_0:
        blocks = np.ascontiguousarray(tensor.data).reshape(rows, -1, 34)
        quants = np.ascontiguousarray(blocks[..., 2:]).view(np.int8).reshape(rows, -1)
        return {f"{name}.q8_0": quants, f"{name}.scales": half(blocks[..., :2])[..., 0]}
    if tensor.tensor_type == GGMLQuantizationType.Q4_1:
        blocks = np.ascontiguousarray(tensor.data).reshape(rows, -1, 20)
        nibbles = np.concatenate([blocks[..., 4:] & 15, blocks[..., 4:] >> 4], axis=-1).astype(np.uint32)
        shifts = np.arange(0, 32, 4, dtype=np.uint32)
        words = np.bitwise_or.reduce(nibbles.reshape(rows, -1, 8) << shifts, axis=-1)
        return {f"{name}.q4_1": words, f"{name}.scales": half(blocks[..., :4])}
    shape = tuple(int(size) for size in reversed(tensor.shape))
    return {name: dequantise(tensor.data, tensor.tensor_type).reshape(shape).astype(np.float32)}


def as_float16(name: str, tensor) -> dict[str, np.ndarray]:
    """A GGUF tensor's values, exact and then rounded once."""
    shape = tuple(int(size) for size in reversed(tensor.shape))
    rounded = dequantise(tensor.data, tensor.tensor_type).reshape(shape).astype(np.float16)
    if not np.isfinite(rounded).all():
        raise UnsupportedGguf(f"Tensor {name} has values that float16 cannot hold.")
    return {name: rounded}


def hf_name(name: str) -> str:
    """The Hugging Face name of a GGUF llama tensor."""
    if name in GLOBAL_NAMES:
        return GLOBAL_NAMES[name]
    block, _, rest = name.removeprefix("blk.").partition(".")
    part, _, kind = rest.rpartition(".")
    if not name.startswith("blk.") or part not in LAYER_NAMES or kind not in ("weight", "bias"):
        raise UnsupportedGguf(f"Tensor {json.dumps(name)} is not part of a plain llama model.")
    return f"model.layers.{int(block)}.{LAYER_NAMES[part]}.{kind}"


def dequantise(data: np.ndarray, kind: GGMLQuantizationType) -> np.ndarray:
    """Exact values, flat, float64. data: the file's blocks as bytes, or the values of an unquantised tensor."""
    if kind in (GGMLQuantizationType.F32, GGMLQuantizationType.F16):
        return data.astype(np.float64).reshape(-1)
    if kind == GGMLQuantizationType.Q8_0:
        blocks = np.ascontiguousarray(data).reshape(-1, 34)
        return (half(blocks[:, :2]).astype(np.float64) * blocks[:, 2:].view(np.int8)).reshape(-1)
    if kind == GGMLQuantizationType.Q4_1:
        blocks = np.ascontiguousarray(data).reshape(-1, 20)
        nibbles = np.concatenate([blocks[:, 4:] & 15, blocks[:, 4:] >> 4], axis=1)
        d, m = half(blocks[:, :4]).astype(np.float64).T[..., None]
        return (d * nibbles + m).reshape(-1)
    raise UnsupportedGguf(f"Blocks of type {kind.name}; F32, F16, Q8_0 and Q4_1 are converted.")


def half_split(rows: np.ndarray, heads: int) -> np.ndarray:
    """Rows (heads * H, D) from interleaved rotary pairs to half-split: in a head, row 2i goes to i, 2i+1 to i + H/2."""
    pairs = rows.reshape(heads, -1, 2, *rows.shape[1:])
    return pairs.swapaxes(1, 2).reshape(rows.shape)


def shortest(value: float) -> float:
    """The shortest decimal that rounds to this float32."""
    return float(str(np.float32(value)))


def half(pairs: np.ndarray) -> np.ndarray:
    """Bytes [.., 2 n] as float16 [.., n]."""
    return np.ascontiguousarray(pairs).view("<f2")
