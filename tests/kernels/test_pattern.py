"""attention_probs in every variant against the formula in float64, from the exact log-sum-exp.

Plan: whole patterns at every head dimension, at lengths around the edges of blocks, groupings, windows with sinks,
offsets, large scores, rows that see nothing; windows cell by cell; pixels by maximum and mean, larger and smaller than
a cell, cut into several dispatches; causality bit for bit; the last rows of a long text.
"""

import numpy as np
import pytest

from tests.kernels.attention_checks import Attention
from tests.kernels.pattern_checks import check_pattern, check_pixels, run_window
from webgpu.variants import VARIANTS

pytestmark = pytest.mark.gpu
every_variant = pytest.mark.parametrize("variant", [each.name for each in VARIANTS["cells"]])


@every_variant
@pytest.mark.parametrize("T", [1, 2, 31, 33, 65])
def test_pattern_agrees(driver, T, variant):
    check_pattern(driver, Attention(T, 9, 3, H=16), variant=variant)


@every_variant
@pytest.mark.parametrize("H", [16, 32, 48, 64, 80, 96, 112, 128])
def test_pattern_every_head_dim_agrees(driver, H, variant):
    check_pattern(driver, Attention(35, 4, 2, H=H), variant=variant)


@pytest.mark.slow
@pytest.mark.parametrize("H", [4, 20, 36, 132, 144, 256])
def test_pattern_unusual_head_dim_agrees(driver, H):
    check_pattern(driver, Attention(35, 4, 2, H=H))


@pytest.mark.slow
@every_variant
@pytest.mark.parametrize("T", [257, 600])
def test_pattern_longer_than_a_span_agrees(driver, T, variant):
    check_pattern(driver, Attention(T, 14, 2, H=64), variant=variant)


@every_variant
@pytest.mark.parametrize(
    "c",
    [
        Attention(97, 4, 2, H=16, window=5),
        Attention(97, 4, 2, H=16, window=16, sinks=6),
        Attention(17, 4, 4, H=16, offset=100, window=70, sinks=3),
        Attention(3, 4, 1, H=16, offset=61),
        Attention(33, 4, 2, H=32, magnitude=300.0),
        Attention(33, 4, 2, H=32, magnitude=1e6),
        Attention(9, 4, 2, H=16, offset=30, window=8, S=12),
    ],
    ids=str,
)
def test_pattern_masks_and_magnitudes_agree(driver, c, variant):
    check_pattern(driver, c, variant=variant)


PIXELS = [
    ((0, 97), (0, 97), (10, 10)),  # several cells a pixel, unevenly
    ((0, 97), (0, 97), (96, 33)),  # hardly more rows than pixels
    ((5, 70), (3, 41), (7, 38)),  # a window; a column is a pixel
    ((20, 26), (0, 30), (12, 45)),  # more pixels than cells
    ((0, 97), (0, 97), (1, 1)),  # one pixel
]


@every_variant
@pytest.mark.parametrize("reduce", ["max", "mean"])
@pytest.mark.parametrize(("rows", "cols", "out_shape"), PIXELS)
def test_pixels_agree(driver, rows, cols, out_shape, reduce, variant):
    check_pixels(driver, Attention(97, 4, 2, H=16), rows, cols, out_shape, reduce, heads=(1, 3), variant=variant)


@every_variant
@pytest.mark.parametrize("reduce", ["max", "mean"])
def test_pixels_of_a_sliding_window_agree(driver, reduce, variant):
    c = Attention(97, 9, 3, H=48, window=20, sinks=2)
    check_pixels(driver, c, (0, 97), (0, 97), (13, 11), reduce, heads=(4, 5), variant=variant)


@every_variant
def test_cells_of_a_window_agree(driver, variant):
    c = Attention(97, 9, 3, H=16, window=20, sinks=2)
    check_pixels(driver, c, (30, 71), (5, 66), (41, 61), "max", heads=(4, 5), variant=variant)
    check_pixels(driver, c, (3, 5), (60, 97), (2, 37), "max", heads=(0, 1), variant=variant)


@every_variant
@pytest.mark.parametrize("reduce", ["max", "mean"])
def test_cut_into_dispatches_gives_the_same_pixels(driver, reduce, variant):
    """1,000 operations: as many dispatches as there are blocks of rows."""
    c = Attention(150, 4, 2, H=16)
    for out_shape in ((10, 9), (150, 150)):
        whole = run_window(driver, c, (0, 150), (0, 150), out_shape, reduce, (0, 4), variant=variant)
        cut = run_window(driver, c, (0, 150), (0, 150), out_shape, reduce, (0, 4), variant=variant, most_flops=1000)
        assert np.allclose(whole, cut, atol=1e-7, rtol=0) and whole.any()


@pytest.mark.slow
@every_variant
@pytest.mark.parametrize("reduce", ["max", "mean"])
def test_pixel_over_the_loop_limit_agrees(driver, reduce, variant):
    check_pixels(driver, Attention(1500, 1, 1, H=64), (0, 1500), (0, 1500), (2, 2), reduce, variant=variant)


@every_variant
@pytest.mark.parametrize("later", [1, 5, 16, 40])
def test_later_token_changed_earlier_rows_keep_every_bit(driver, later, variant):
    c = Attention(41, 4, 2, H=16)
    first, changed = (run_rows(driver, c, later, factor, variant) for factor in (1, 3))
    assert np.array_equal(first[:, :later], changed[:, :later])
    assert not np.array_equal(first[:, later:], changed[:, later:])


def run_rows(driver, c: Attention, later: int, factor: int, variant: str) -> np.ndarray:
    """The pattern with queries and keys from `later` on multiplied."""

    class Changed(Attention):
        def arrays(self):
            a = super().arrays()
            for name in "qkv":
                a[name][later:] *= factor
            return a

    return run_window(driver, Changed(**vars(c)), (0, c.T), (0, c.T), (c.T, c.T), "max", (0, c.N), variant=variant)


@pytest.mark.slow
@every_variant
@pytest.mark.parametrize("H", [64, 128])
def test_last_rows_of_the_longest_text_agree(driver, H, variant):
    check_pattern(driver, Attention(8, 2, 1, H=H, offset=8184), variant=variant)
