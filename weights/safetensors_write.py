"""Write a safetensors file tensor by tensor, so that a model never has to stand in memory at once.

The header is padded with blanks to a multiple of eight bytes, as the reference library does.
"""

import hashlib
import json
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path

import numpy as np

DTYPE_NAMES = {
    "float32": "F32", "float16": "F16", "uint16": "BF16", "int32": "I32", "uint32": "U32", "int8": "I8",
}  # fmt: skip


def write_safetensors(
    path: Path,
    shapes: dict[str, tuple[int, ...]],
    dtype: np.dtype | str | Mapping[str, str],
    arrays: Iterable[tuple[str, np.ndarray]],
    metadata: dict[str, str] | None = None,
    wrote: Callable[[int, int], None] = lambda done_bytes, total_bytes: None,
) -> str:
    """Write arrays, in the order of shapes, and return the file's SHA-256 (hex). wrote is called after each tensor.

    dtype: one for all, or one a name; uint16 stands for BF16 bits. Raises ValueError when an array is not the one
    announced.
    """
    dtypes = {name: np.dtype(dtype[name] if isinstance(dtype, Mapping) else dtype) for name in shapes}
    header, end = {"__metadata__": metadata} if metadata else {}, 0
    for name, shape in shapes.items():
        begin, end = end, end + int(np.prod(shape, dtype=np.int64)) * dtypes[name].itemsize
        header[name] = {"dtype": DTYPE_NAMES[dtypes[name].name], "shape": list(shape), "data_offsets": [begin, end]}
    text = json.dumps(header, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)
    digest, left, done = hashlib.sha256(), iter(shapes.items()), 0
    with path.open("xb") as file:
        for piece in (len(text).to_bytes(8, "little"), text):
            digest.update(piece)
            file.write(piece)
        for name, array in arrays:
            if (name, array.shape) != next(left) or array.dtype != dtypes[name]:
                raise ValueError(f"{name} {array.shape} {array.dtype} is not the next tensor announced")
            data = np.ascontiguousarray(array).reshape(-1).view(np.uint8).data
            digest.update(data)
            file.write(data)
            done += len(data)
            wrote(done, end)
        if next(left, None) is not None:
            raise ValueError("fewer tensors than announced")
    return digest.hexdigest()
