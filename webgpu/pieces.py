"""Where a tensor's rows lie: in one buffer, in several, or behind those of other tensors in a buffer that they share.

Matrices that are multiplied with the same input are stacked, so that one product makes a wide row of out:
    self_attn.qkv_proj   q_proj, k_proj, v_proj   a row of N + 2K heads
    mlp.gate_up_proj     gate_proj, up_proj       a row of 2F
    self_attn.qk_norm    q_norm, k_norm           [2,H], for one norm of both
Their biases likewise. Matrices of different formats, in pieces, or that end where no binding may begin stay in buffers
of their own, and each takes a product into its columns of the same row. `static/gpu/pieces.js` mirrors this.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from webgpu.slices import SLICE_ROWS, slices

NONE = "none"
# By format: bytes of 32 weights of a row, and of the scales beside them.
BLOCK_BYTES = ((128, 0), (64, 0), (64, 0), (16, 4), (32, 2))
BINDING_STEP = 256  # bytes; WebGPU's default minStorageBufferOffsetAlignment
STACKS = {
    "self_attn.qkv_proj": ("self_attn.q_proj", "self_attn.k_proj", "self_attn.v_proj"),
    "mlp.gate_up_proj": ("mlp.gate_proj", "mlp.up_proj"),
    "self_attn.qk_norm": ("self_attn.q_norm", "self_attn.k_norm"),
}


@dataclass(frozen=True)
class Piece:
    """Rows row0 .. row0+rows-1 of a tensor, from row `at` of a buffer of `bytes` on (a multiple of 16, zeros
    at the end).

    The scales of its blocks, where it has any, lie likewise in the buffer `scales` of `scale_bytes`.
    """

    buffer: str
    row0: int
    rows: int
    bytes: int
    scales: str = NONE
    scale_bytes: int = 0
    at: int = 0


@dataclass(frozen=True)
class Placed:
    """A tensor on the GPU: its shape, its storage format and its pieces in row order."""

    shape: tuple[int, ...]
    fmt: int
    pieces: tuple[Piece, ...]

    @property
    def row_bytes(self) -> tuple[int, int]:
        """Bytes of a row and of its scales; a row of a vector is one f32."""
        return row_bytes(self.fmt, self.shape[1]) if len(self.shape) == 2 else (4, 0)


@dataclass(frozen=True)
class Run:
    """Rows that one product takes: bindings of weights and scales, how many rows, their format."""

    weight: str
    scales: str
    rows: int
    fmt: int


def stack(placed: Mapping[str, Placed], layers: int, most_bytes: int) -> dict[str, Placed]:
    """Move what STACKS names together into shared buffers of at most `most_bytes`, where they fit."""
    stacked = dict(placed)
    for at in (f"model.layers.{layer}." for layer in range(layers)):
        for together, parts in STACKS.items():
            names = {kind: [at + part + kind for part in parts] for kind in (".weight", ".bias")}
            kinds = {kind: {name: placed[name] for name in names[kind] if name in placed} for kind in names}
            if fits([tensor for tensors in kinds.values() for tensor in tensors.values()], most_bytes):
                for kind, tensors in kinds.items():
                    stacked |= share(at + together + kind, tensors)
    return stacked


def fits(tensors: Sequence[Placed], most_bytes: int) -> bool:
    """Whether matrices, and their biases, can lie in one buffer where each can be bound alone; vectors always."""
    matrices = [tensor for tensor in tensors if len(tensor.shape) == 2]
    if not matrices:
        return True
    whole = all(len(tensor.pieces) == 1 for tensor in tensors) and len({matrix.fmt for matrix in matrices}) == 1
    ends = [tensor.shape[0] * width for tensor in tensors for width in tensor.row_bytes]
    small = sum(matrix.pieces[0].bytes for matrix in matrices) <= most_bytes
    return whole and small and all(end % BINDING_STEP == 0 for end in ends)


def share(buffer: str, tensors: Mapping[str, Placed]) -> dict[str, Placed]:
    """The same tensors, each of one piece, one behind the other in `buffer`."""
    rows = sum(tensor.shape[0] for tensor in tensors.values())
    shared, at = {}, 0
    for name, tensor in tensors.items():
        wide, scales_wide = tensor.row_bytes
        scales = (f"{buffer}~scales", padded(rows * scales_wide)) if scales_wide else (NONE, 0)
        piece = Piece(buffer, 0, tensor.shape[0], padded(rows * wide), *scales, at)
        shared[name] = Placed(tensor.shape, tensor.fmt, (piece,))
        at += tensor.shape[0]
    return shared


def runs(tensors: Iterable[Placed], most_rows: int, unit: int = SLICE_ROWS) -> list[Run]:
    """The rows of tensors in order, those behind one another in a buffer at once, in slices of at most `most_rows`
    (webgpu/slices.py)."""
    found: list[tuple[Placed, Piece]] = []
    for tensor in tensors:
        for piece in tensor.pieces:
            last = found[-1][1] if found else None
            if last and last.buffer == piece.buffer:
                found[-1] = tensor, replace(last, rows=last.rows + piece.rows)
            else:
                found.append((tensor, piece))
    return [
        Run(
            bound(piece.buffer, piece.at + row0, rows, tensor.row_bytes[0], piece.bytes),
            bound(piece.scales, piece.at + row0, rows, tensor.row_bytes[1], piece.scale_bytes),
            rows, tensor.fmt,
        )
        for tensor, piece in found
        for row0, rows in slices(piece.rows, most_rows, unit)
    ]  # fmt: skip


def bound(buffer: str, at: int, rows: int, wide_bytes: int, whole_bytes: int) -> str:
    """The binding of some rows of a buffer."""
    size_bytes = padded(rows * wide_bytes)
    return buffer if buffer == NONE or size_bytes == whole_bytes else f"{buffer}@{at * wide_bytes}+{size_bytes}"


def row_bytes(fmt: int, width: int) -> tuple[int, int]:
    """Bytes of a row of `width` weights in a storage format, and of its scales."""
    weights, scales = BLOCK_BYTES[fmt]
    return width * weights // 32, width * scales // 32


def padded(count_bytes: int) -> int:
    """Bytes rounded up to 16: kernels read whole vec4s."""
    return max(16, (count_bytes + 15) // 16 * 16)
