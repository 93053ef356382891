"""Which tensors a config needs, and in which GPU buffers each one lies.

Matrices keep the type of the file: `fmt` 0 = f32, 1 = pairs of f16, 2 = pairs of bf16. Vectors (norm weights, biases)
are f32. A tensor whose bytes exceed one binding (128 MiB by default) is split by rows: buffers `name#0`, `name#1`, ...;
a bias is split like its matrix. The tensor set is strict: nothing missing, nothing unexpected, every shape as expected.
`static/gpu/layout.js` mirrors this.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass

from webgpu.config import Config

MAX_BINDING_BYTES = 128 << 20
FORMATS = {"F32": 0, "F16": 1, "BF16": 2}
EMBED, HEAD, NORM = "model.embed_tokens.weight", "lm_head.weight", "model.norm.weight"


class WeightsMismatch(ValueError):
    """The checkpoint's tensors are not those its config.json asks for; `code` names the rule."""

    def __init__(self, code: str, message: str) -> None:
        super().__init__(message)
        self.code = code


@dataclass(frozen=True)
class Piece:
    """Rows row0 .. row0+rows-1 of a tensor, in a buffer of `bytes` (a multiple of 16, the end padded with zeros)."""

    buffer: str
    row0: int
    rows: int
    bytes: int


@dataclass(frozen=True)
class Placed:
    """A tensor on the GPU: its shape, its storage format and its pieces in row order."""

    shape: tuple[int, ...]
    fmt: int
    pieces: tuple[Piece, ...]


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


def check_names(config: Config, names: list[str]) -> None:
    """Raises WeightsMismatch when a tensor is missing or unexpected, naming the first and how many there are."""
    wanted, given = tensor_shapes(config), set(names)
    missing = [name for name in wanted if name not in given]
    extra = sorted(name for name in given if name not in wanted)
    for code, found, why in (
        ("tensor-missing", missing, "config.json asks for it"),
        ("tensor-unexpected", extra, "config.json does not ask for it"),
    ):
        if found:
            more = f" and {len(found) - 1} more" if len(found) > 1 else ""
            kind = "lacks" if code == "tensor-missing" else "has"
            raise WeightsMismatch(code, f"The checkpoint {kind} {found[0]}{more}, but {why}: fetch the model again.")


def check_shape(name: str, shape: tuple[int, ...], wanted: tuple[int, ...]) -> None:
    """Raises WeightsMismatch when a tensor's shape is not what config.json says."""
    if list(shape) != list(wanted):
        given, asked = json.dumps(list(shape)), json.dumps(list(wanted))
        raise WeightsMismatch(
            "tensor-shape", f"{name} has shape {given}, but config.json says {asked}: fetch the model again."
        )


def place(config: Config, dtypes: Mapping[str, str], most_bytes: int = MAX_BINDING_BYTES) -> dict[str, Placed]:
    """Split every tensor into buffers of at most `most_bytes`. dtypes: name -> "F32", "F16" or "BF16"."""
    shapes = tensor_shapes(config)
    placed = {}
    for name, shape in shapes.items():
        matrix = name.removesuffix(".bias") + ".weight" if name.endswith(".bias") else name
        fmt = FORMATS[dtypes[name]] if len(shape) == 2 else 0
        rows_a_piece = shape[0]
        if len(shapes[matrix]) == 2:
            rows_a_piece = max(1, most_bytes // (shapes[matrix][1] * element_bytes(FORMATS[dtypes[matrix]])))
        row_bytes = element_bytes(fmt) * (shape[1] if len(shape) == 2 else 1)
        starts = range(0, shape[0], rows_a_piece)
        pieces = []
        for index, row0 in enumerate(starts):
            rows = min(rows_a_piece, shape[0] - row0)
            buffer = name if len(starts) == 1 else f"{name}#{index}"
            pieces.append(Piece(buffer, row0, rows, padded(rows * row_bytes)))
        placed[name] = Placed(shape, fmt, tuple(pieces))
    return placed


def element_bytes(fmt: int) -> int:
    """Bytes of one weight in a storage format."""
    return 2 if fmt else 4


def padded(count_bytes: int) -> int:
    """Bytes rounded up to 16: kernels read whole vec4s."""
    return max(16, (count_bytes + 15) // 16 * 16)
