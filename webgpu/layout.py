"""Which tensors a config needs, and in which GPU buffers each one lies.

Matrices keep the type of the file: `fmt` 0 = f32, 1 = pairs of f16, 2 = pairs of bf16, 3 = Q4_1 and 4 = Q8_0 blocks,
whose scales lie in a buffer of their own, `name~scales`. Vectors (norm weights, biases) are f32. A tensor whose
bytes exceed one binding (128 MiB by default) is split by rows: buffers `name#0`, `name#1`, ...; a bias is split like
its matrix. The tensor set is strict: nothing missing, every shape as expected, every number finite, nothing unexpected
but the two extras of `harmless`.
`static/gpu/layout.js` mirrors this.
"""

import json
from collections.abc import Mapping

import numpy as np

from webgpu.config import Config
from webgpu.config_fields import show
from webgpu.pieces import NONE, Piece, Placed, padded, row_bytes, stack
from weights.checkpoint import Blocks

MAX_BINDING_BYTES = 128 << 20
FORMATS = {"F32": 0, "F16": 1, "BF16": 2, "Q4_1": 3, "Q8_0": 4}
# By the type that Checkpoint.read gives (uint16 is bf16): its words, and the exponent's bits, all ones for NaN and inf.
EXPONENTS = {"float32": (np.uint32, 0x7F800000), "float16": (np.uint16, 0x7C00), "uint16": (np.uint16, 0x7F80)}
EMBED, HEAD, NORM = "model.embed_tokens.weight", "lm_head.weight", "model.norm.weight"


class WeightsMismatch(ValueError):
    """The checkpoint's tensors are not those its config.json asks for; `code` names the rule."""

    def __init__(self, code: str, message: str) -> None:
        super().__init__(message)
        self.code = code


def tensor_shapes(config: Config) -> dict[str, tuple[int, ...]]:
    """Every tensor name with its shape, in the order of the forward pass."""
    c, shapes = config, {EMBED: (config.V, config.D)}
    for layer in range(c.L):
        at = f"model.layers.{layer}."
        shapes[at + "input_layernorm.weight"] = (c.D,)
        products = [
            ("self_attn.q_proj", c.N * c.H, c.D, c.qkv_bias),
            ("self_attn.k_proj", c.K * c.H, c.D, c.qkv_bias),
            ("self_attn.v_proj", c.K * c.H, c.D, c.qkv_bias),
            ("self_attn.o_proj", c.D, c.N * c.H, c.o_bias),
            ("mlp.gate_proj", c.F, c.D, c.mlp_bias),
            ("mlp.up_proj", c.F, c.D, c.mlp_bias),
            ("mlp.down_proj", c.D, c.F, c.mlp_bias),
        ]
        for name, d_out, d_in, bias in products:
            shapes[f"{at}{name}.weight"] = (d_out, d_in)
            if bias:
                shapes[f"{at}{name}.bias"] = (d_out,)
        if c.qk_norm:
            shapes[at + "self_attn.q_norm.weight"] = (c.H,)
            shapes[at + "self_attn.k_norm.weight"] = (c.H,)
        shapes[at + "post_attention_layernorm.weight"] = (c.D,)
    shapes[NORM] = (c.D,)
    if not c.tied:
        shapes[HEAD] = (c.V, c.D)
    return shapes


def harmless(config: Config) -> set[str]:
    """Extras that transformers leaves unread too: old Llama files store RoPE's frequencies, which follow from
    config.json, and a tied model may store its embedding a second time as the head (see check_twin)."""
    names = {f"model.layers.{layer}.self_attn.rotary_emb.inv_freq" for layer in range(config.L)}
    return names | {HEAD} if config.tied else names


def check_names(config: Config, names: list[str]) -> None:
    """Raises WeightsMismatch when a tensor is missing or unexpected, naming the first and how many there are."""
    wanted, given = tensor_shapes(config), set(names)
    missing = [name for name in wanted if name not in given]
    extra = sorted(given - wanted.keys() - harmless(config))
    for code, found, words in (
        ("tensor-missing", missing, "The checkpoint lacks {}, but config.json asks for it: fetch the model again."),
        (
            "tensor-unexpected",
            extra,
            "The checkpoint holds {}, which its config.json does not describe, so it would not be run exactly: "
            "take the config.json that belongs to these weights, or another model.",
        ),
    ):
        if found:
            more = f" and {len(found) - 1} more" if len(found) > 1 else ""
            raise WeightsMismatch(code, words.format(show(found[0]) + more))


def check_twin(embed: np.ndarray | Blocks, head: np.ndarray | Blocks) -> None:
    """Raises WeightsMismatch when the head that a tied model stores is not its embedding, byte for byte.

    Both as Checkpoint.read gives them, of one shape. transformers would then run the two as they are.
    """
    parts = zip(stored_parts(embed), stored_parts(head), strict=False)
    if embed.dtype != head.dtype or not all(np.array_equal(a.view(np.uint8), b.view(np.uint8)) for a, b in parts):
        raise WeightsMismatch(
            "tensor-untied",
            f"{HEAD} is not {EMBED}, but config.json ties the two: set tie_word_embeddings to false there, "
            "or choose another model.",
        )


def stored_parts(values: np.ndarray | Blocks) -> tuple[np.ndarray, ...]:
    """The arrays that a tensor, as Checkpoint.read gives it, is made of: itself, or quants and scales."""
    return (values.quants, values.scales) if isinstance(values, Blocks) else (values,)


def check_finite(name: str, values: np.ndarray | Blocks) -> None:
    """Raises WeightsMismatch when a tensor, as Checkpoint.read gives it, holds NaN or infinity (blocks: in scales)."""
    values = stored_parts(values)[-1]
    word, exponent = EXPONENTS[values.dtype.name]
    words = values.view(word).reshape(-1)
    parts = range(0, words.size, 1 << 20)  # that stay in the processor's cache: forty times as fast
    if any(((words[at : at + (1 << 20)] & word(exponent)) == exponent).any() for at in parts):
        raise WeightsMismatch(
            "tensor-not-finite",
            f"{name} holds numbers that are not finite (NaN or infinity): fetch the model again, or choose another.",
        )


def check_shape(name: str, shape: tuple[int, ...], wanted: tuple[int, ...]) -> None:
    """Raises WeightsMismatch when a tensor's shape is not what config.json says."""
    if list(shape) != list(wanted):
        given, asked = json.dumps(list(shape)), json.dumps(list(wanted))
        raise WeightsMismatch(
            "tensor-shape", f"{name} has shape {given}, but config.json says {asked}: fetch the model again."
        )


def place(config: Config, dtypes: Mapping[str, str], most_bytes: int = MAX_BINDING_BYTES) -> dict[str, Placed]:
    """Split every tensor into buffers of at most `most_bytes`, and stack those that share one. dtypes: name -> a key of
    FORMATS."""
    shapes = tensor_shapes(config)
    placed = {}
    for name, shape in shapes.items():
        matrix = name.removesuffix(".bias") + ".weight" if name.endswith(".bias") else name
        fmt = FORMATS[dtypes[name]] if len(shape) == 2 else 0
        rows_a_piece = shape[0]
        if len(shapes[matrix]) == 2:
            rows_a_piece = max(1, most_bytes // row_bytes(FORMATS[dtypes[matrix]], shapes[matrix][1])[0])
        wide, scales_wide = row_bytes(fmt, shape[1]) if len(shape) == 2 else (4, 0)
        starts = range(0, shape[0], rows_a_piece)
        pieces = []
        for index, row0 in enumerate(starts):
            rows = min(rows_a_piece, shape[0] - row0)
            buffer = name if len(starts) == 1 else f"{name}#{index}"
            scales = (f"{buffer}~scales", padded(rows * scales_wide)) if scales_wide else (NONE, 0)
            pieces.append(Piece(buffer, row0, rows, padded(rows * wide), *scales))
        placed[name] = Placed(shape, fmt, tuple(pieces))
    return stack(placed, config.L, most_bytes)
