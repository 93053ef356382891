"""Block matrices for tests: rounding numbers to blocks, and a checkpoint folder turned into one of blocks."""

import json
from pathlib import Path

import numpy as np

from weights.blocks import Blocks
from weights.checkpoint import open_checkpoint
from weights.safetensors_write import write_safetensors


def quantise(full: np.ndarray, kind: str) -> Blocks:
    """Round float32 rows to blocks of 32, as llama.cpp does: Q4_1 between a block's ends, Q8_0 symmetric."""
    groups = full.reshape(len(full), -1, 32)
    if kind == "Q8_0":
        d = (np.abs(groups).max(-1) / 127).astype("f2")
        return Blocks(kind, np.rint(groups / d[..., None]).clip(-128, 127).astype("i1").reshape(full.shape), d)
    m = groups.min(-1).astype("f2")
    d = ((groups.max(-1) - m) / 15).astype("f2")
    q = np.rint((groups - m[..., None]) / d[..., None]).clip(0, 15).astype("u4").reshape(len(full), -1, 8)
    return Blocks(kind, np.bitwise_or.reduce(q << np.arange(0, 32, 4, dtype="u4"), -1), np.stack([d, m], -1))


def in_blocks(source: Path, folder: Path, change=lambda name, blocks: None) -> Path:
    """A checkpoint with its matrices in blocks: embedding and head Q8_0, the others Q4_1; vectors as they are.

    change(name, blocks) may edit a matrix's arrays in place before they are written.
    """
    checkpoint, arrays = open_checkpoint(source), {}
    for name in checkpoint.names:
        value = checkpoint.read(name)
        if value.ndim == 1:
            arrays[name] = value.astype(np.float32)
            continue
        kind = "Q8_0" if "embed" in name or "lm_head" in name else "Q4_1"
        blocks = quantise(value.astype(np.float32), kind)
        change(name, blocks)
        arrays |= {f"{name}.{kind.lower()}": blocks.quants, f"{name}.scales": blocks.scales}
    folder.mkdir(parents=True)
    (folder / "config.json").write_text(json.dumps(checkpoint.config))
    shapes, dtypes = (
        {name: get(array) for name, array in arrays.items()} for get in (np.shape, lambda a: a.dtype.name)
    )
    write_safetensors(folder / "model.safetensors", shapes, dtypes, arrays.items())
    return folder


def widened(blocks: Path, folder: Path) -> Path:
    """The same checkpoint with every matrix in float32: each number rounded once."""
    checkpoint = open_checkpoint(blocks)
    arrays = {name: checkpoint.read(name) for name in checkpoint.names}
    arrays = {name: (a.values() if isinstance(a, Blocks) else a).astype(np.float32) for name, a in arrays.items()}
    folder.mkdir(parents=True)
    (folder / "config.json").write_text(json.dumps(checkpoint.config))
    shapes = {name: array.shape for name, array in arrays.items()}
    write_safetensors(folder / "model.safetensors", shapes, "float32", arrays.items())
    return folder
