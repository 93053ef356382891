"""Small formulas that several tests compare with."""

import numpy as np


def log_softmax(logits: np.ndarray) -> np.ndarray:
    """Natural log-probabilities over the last axis, float64."""
    wide = logits.astype(np.float64)
    wide = wide - wide.max(-1, keepdims=True)
    return wide - np.log(np.exp(wide).sum(-1, keepdims=True))


def worst(ours: np.ndarray, wanted: np.ndarray) -> float:
    """Largest difference, relative to the largest wanted value."""
    return float(np.abs(ours - wanted).max() / np.abs(wanted).max())


def reduce_pixels(pattern: np.ndarray, out_rows: int, out_cols: int, how: str) -> np.ndarray:
    """A window [rows,cols] reduced to pixels, cell by cell: what the kernel is compared with."""
    rows, cols = pattern.shape
    pixels = np.empty((out_rows, out_cols))
    for i in range(out_rows):
        top = i * rows // out_rows
        for j in range(out_cols):
            left = j * cols // out_cols
            block = pattern[
                top : max(top + 1, (i + 1) * rows // out_rows), left : max(left + 1, (j + 1) * cols // out_cols)
            ]
            pixels[i, j] = block.max() if how == "max" else block.astype(np.float64).mean()
    return pixels
