"""The formulas in float64, slow and obvious: what a kernel's result is compared with before its time is believed.

Notation of the house. static/bench/reference.js has the same functions; neither shares code with the kernels.
"""

import numpy as np


def attention_rows(q: np.ndarray, k: np.ndarray, v: np.ndarray, rows: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Causal grouped-query attention of query rows `rows`; the last query sees every key.

    q [T,N,H], k and v [S,K,H] -> o [R,N,H], lse [N,R] (natural log).
    """
    T, N, H = q.shape
    S, K, _ = k.shape
    o, lse = np.empty((len(rows), N, H)), np.empty((N, len(rows)))
    hidden = np.arange(S)[None] > rows[:, None] + S - T
    for n in range(N):
        scores = q[rows, n].astype(np.float64) @ k[:, n // (N // K)].T.astype(np.float64) / np.sqrt(H)
        scores[hidden] = -np.inf
        top = scores.max(1, keepdims=True)
        powers = np.exp(scores - top)
        total = powers.sum(1, keepdims=True)
        lse[n] = (top + np.log(total))[:, 0]
        o[:, n] = powers / total @ v[:, n // (N // K)].astype(np.float64)
    return o, lse


def pattern_rows(q: np.ndarray, k: np.ndarray, rows: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Pattern and lse of one head: q and k [T,H] -> weights [R,T] (0 where masked), lse [R]."""
    T, H = q.shape
    scores = q[rows].astype(np.float64) @ k.T.astype(np.float64) / np.sqrt(H)
    scores[np.arange(T)[None] > rows[:, None]] = -np.inf
    top = scores.max(1, keepdims=True)
    lse = top + np.log(np.exp(scores - top).sum(1, keepdims=True))
    return np.exp(scores - lse), lse[:, 0]


def pooled(cells: np.ndarray, out_cols: int) -> np.ndarray:
    """The largest of the rows and columns that each pixel of one row covers: cells [rows,cols] -> [out_cols]."""
    cols = cells.shape[1]
    starts = [j * cols // out_cols for j in range(out_cols)]
    ends = [max((j + 1) * cols // out_cols, start + 1) for j, start in enumerate(starts)]
    return np.array([cells[:, start:end].max() for start, end in zip(starts, ends, strict=True)])


def product_rows(x: np.ndarray, weight: np.ndarray, rows: np.ndarray) -> np.ndarray:
    """x [T,d_in] times weight [d_out,d_in] transposed, rows `rows` -> [R,d_out]."""
    return x[rows].astype(np.float64) @ weight.T.astype(np.float64)


def error(found: np.ndarray, wanted: np.ndarray) -> float:
    """Largest difference as a share of the largest value wanted; not a number anywhere is infinitely wrong."""
    if not np.isfinite(found).all():
        return float("inf")
    return float(np.abs(found - wanted).max() / np.abs(wanted).max())
