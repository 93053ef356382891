"""Windows of the attention pattern against the float64 pattern, cut and reduced in numpy."""

from __future__ import annotations

import numpy as np

from tests.kernels.attention_checks import Attention, attention_formula, visible
from tests.kernels.checks import agree
from tests.kernels.drivers import Job
from tests.tolerances import KERNEL_SCORE_ROUNDING, PATTERN_ROW_SUM
from webgpu import ops


def run_window(driver, c: Attention, rows, cols, out_shape, reduce: str, heads, **how) -> np.ndarray:
    """Rows and columns [start, end) of some heads (first, count) as out_shape pixels, from the exact q, k and lse."""
    arrays, (row0, row1), (col0, col1), (R, C) = c.arrays(), rows, cols, out_shape
    dispatches = ops.attention_probs(
        "q", "k", "lse", "out", **c.sizes, head0=heads[0], heads=heads[1], row0=row0, rows=row1 - row0, col0=col0,
        cols=col1 - col0, out_rows=R, out_cols=C, reduce=reduce, **how,
    )  # fmt: skip
    lse = attention_formula(c, arrays, "f8")[1].astype("f4")
    inputs = {"q": arrays["q"], "k": arrays["k"], "lse": lse}
    return driver.run(Job(dispatches, inputs, {"out": ("f4", (heads[1], R, C))}, {}, ("out",)))["out"]


def check_pattern(driver, c: Attention, **how) -> None:
    """Every cell of every head agrees, masked ones are 0, and a row that sees a key sums to 1."""
    arrays, S = c.arrays(), c.sizes["S"]
    got = run_window(driver, c, (0, c.T), (0, S), (c.T, S), "max", (0, c.N), **how)
    exact, plain = (attention_formula(c, arrays, dtype) for dtype in ("f8", "f4"))
    seen = visible(c).any(-1)
    rounding = KERNEL_SCORE_ROUNDING * np.abs(exact[1][:, seen]).max(initial=0)
    agree("pattern", got, exact[2], plain[2], rounding)
    assert not got[:, ~visible(c)].any(), "a masked cell has a weight"
    off = np.abs(got.astype("f8").sum(-1)[:, seen] - 1).max(initial=0)
    assert off <= PATTERN_ROW_SUM + rounding, f"a row of the pattern sums to 1 within {off:.3g} only"


def check_pixels(driver, c: Attention, rows, cols, out_shape, reduce: str, heads=(0, 1), **how) -> None:
    """A window of the pattern, reduced to pixels, agrees with the float64 pattern reduced the same way."""
    arrays = c.arrays()
    exact, plain = (attention_formula(c, arrays, dtype)[2] for dtype in ("f8", "f4"))
    got = run_window(driver, c, rows, cols, out_shape, reduce, heads, **how)

    def pixels(pattern: np.ndarray) -> np.ndarray:
        window = pattern[heads[0] : heads[0] + heads[1], rows[0] : rows[1], cols[0] : cols[1]]
        edges = [
            [(i * n // count, max((i + 1) * n // count, i * n // count + 1)) for i in range(count)]
            for n, count in zip(window.shape[1:], out_shape, strict=True)
        ]
        return np.stack(
            [[getattr(window[:, a:b, x:y], reduce)((1, 2)) for x, y in edges[1]] for a, b in edges[0]], 0
        ).transpose(2, 0, 1)

    agree(f"pixels ({reduce})", got, pixels(exact), pixels(plain))
