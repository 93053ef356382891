"""Attention in every variant against the formula in float64; the pattern along with it.

Plan: every head dimension x every length x every grouping (slow); a quick slice of the same; windows with and without
sinks; a chunk against a cache; one token against a cache; scores above the largest f16; rows that see nothing; keys
that no row sees; causality bit for bit; a long text within the turn limit.
"""

import itertools
from dataclasses import replace

import numpy as np
import pytest

from tests.kernels.attention_checks import (
    Attention,
    attention_formula,
    check_attention,
    check_growing_images,
    run_attention,
)
from tests.tolerances import KERNEL_ERROR_FLOOR, KERNEL_F16_STORAGE
from webgpu import ops

pytestmark = pytest.mark.gpu

VARIANTS = ["fa2", "registers", "texels", "tile", "tile_f16", "once", "plain"]  # "once" is one of decode: T = 1
every_variant = pytest.mark.parametrize("variant", VARIANTS)
HEAD_DIMS = [16, 32, 48, 64, 80, 96, 128]
LENGTHS = [1, 2, 15, 16, 17, 63, 64, 65, 97, 257, 1024]
HEADS = [(4, 4), (4, 2), (4, 1), (9, 3), (14, 2)]


@every_variant
@pytest.mark.parametrize(("T", "heads"), list(itertools.product([1, 2, 17, 65], [(4, 4), (9, 3), (14, 2)])))
def test_attention_short_text_agrees(driver, variant, T, heads):
    check_attention(driver, Attention(T, *heads, H=16, variant=variant))


@pytest.mark.parametrize("variant", [each for each in VARIANTS if each != "once"])
def test_attention_in_parts_equals_the_whole(driver, swiftshader, variant):
    """However few workgroups a dispatch has, every number is the same to the bit."""
    for each in [driver, swiftshader] if variant == "texels" else [driver]:
        for c in (Attention(67, 9, 3, H=16, variant=variant), Attention(90, 4, 2, 16, 5, window=30, variant=variant)):
            one, two = (replace(c, most_flops=most) for most in (1, 4 * c.T * c.sizes["S"] * c.N * c.H // 2))
            names = [d.kernel for d in ops.attention(*"qkvo", "lse", **c.sizes, variant=variant, most_flops=1)]
            assert names.count(f"attention_{variant}") >= 4
            whole, *parts = (run_attention(each, d, c.arrays()) for d in (c, one, two))
            for part in parts:
                np.testing.assert_array_equal(part["o"], whole["o"])
                np.testing.assert_array_equal(part["lse"], whole["lse"])


@pytest.mark.slow
@pytest.mark.timeout(3000)
@pytest.mark.parametrize("H", HEAD_DIMS)
@pytest.mark.parametrize("heads", HEADS, ids=lambda h: f"{h[0]}q{h[1]}kv")
def test_attention_every_length_agrees(driver, H, heads):
    for T in LENGTHS:
        check_attention(driver, Attention(T, *heads, H=H))


@pytest.mark.slow
@pytest.mark.timeout(1200)
@pytest.mark.parametrize("variant", ["registers", "texels"])
@pytest.mark.parametrize("H", [16, 32, 64])
@pytest.mark.parametrize("heads", HEADS, ids=lambda h: f"{h[0]}q{h[1]}kv")
def test_attention_in_registers_every_length_agrees(driver, H, heads, variant):
    for T in LENGTHS:
        check_attention(driver, Attention(T, *heads, H=H, variant=variant))


@pytest.mark.parametrize("variant", [name for name in VARIANTS if name != "once"])
def test_attention_keys_after_the_last_row_do_not_matter(driver, variant):
    c = Attention(37, 4, 2, H=16, S=52, variant=variant)
    a = c.arrays()
    a["k"][c.T :] = a["v"][c.T :] = np.nan
    seen = replace(c, S=c.T)
    o, lse, _ = attention_formula(seen, {**a, "k": a["k"][: c.T], "v": a["v"][: c.T]}, "f8")
    got = run_attention(driver, c, a)
    most = KERNEL_F16_STORAGE if variant == "tile_f16" else KERNEL_ERROR_FLOOR
    assert np.abs(got["o"] - o).max() <= most
    assert np.abs(got["lse"] - lse).max() <= most


@pytest.mark.parametrize("H", [4, 20, 64, 128, 256])
def test_attention_plain_every_head_dim_agrees(driver, H):
    for T, offset in ((1, 0), (1, 80), (33, 0), (17, 239)):
        check_attention(driver, Attention(T, 4, 2, H=H, offset=offset, variant="plain"))


TILES = pytest.mark.parametrize("variant", ["tile", "tile_f16"])
TILE_LENGTHS = [1, 2, 15, 16, 17, 31, 32, 33, 63, 64, 65, 127, 128, 129]


@TILES
@pytest.mark.parametrize("heads", HEADS, ids=lambda h: f"{h[0]}q{h[1]}kv")
def test_attention_tile_every_length_agrees(driver, variant, heads):
    for T in TILE_LENGTHS:
        check_attention(driver, Attention(T, *heads, H=16, variant=variant))


def tile_of_head_dim(driver, variant, H) -> None:
    for T, heads in ((33, (4, 4)), (65, (14, 2)), (130, (9, 3))):
        check_attention(driver, Attention(T, *heads, H=H, variant=variant))
    check_attention(driver, Attention(33, 4, 1, H=H, offset=40, window=21, sinks=3, variant=variant))


@pytest.mark.slow
@pytest.mark.timeout(1200)
@TILES
@pytest.mark.parametrize("H", [4, 20, 36, *HEAD_DIMS, 112])
def test_attention_tile_every_head_dim_agrees(driver, variant, H):
    tile_of_head_dim(driver, variant, H)


@pytest.mark.slow
@pytest.mark.timeout(1200)
@pytest.mark.parametrize("H", [4, 20, *HEAD_DIMS, 112])
def test_attention_tile_every_head_dim_agrees_on_swiftshader(swiftshader, H):
    tile_of_head_dim(swiftshader, "tile", H)


@pytest.mark.parametrize("large", [False, True])
def test_attention_tile_f16_rounds_and_clamps_keys_and_values(driver, large):
    """Off by the rounding of k and v only; what f16 cannot hold becomes its largest number, and nothing infinite."""
    c = Attention(65, 4, 2, H=32, variant="tile_f16")
    a = replace(c, variant="fa2").arrays()
    if large:
        a["v"][3, 0], a["v"][40, 1] = 1e6, -1e30
    got = run_attention(driver, c, a)
    o, lse, _ = attention_formula(c, a | {"v": a["v"].clip(-65_504, 65_504)}, "f8")
    assert np.abs(got["o"] - o).max() <= KERNEL_F16_STORAGE * (65_504 if large else 1)
    assert np.abs(got["lse"] - lse).max() <= KERNEL_F16_STORAGE
    assert large or np.abs(got["o"] - o).max() > KERNEL_F16_STORAGE / 100, "nothing was rounded: not this variant"


@pytest.mark.slow
@pytest.mark.timeout(1800)
@pytest.mark.parametrize("variant", ["registers", "texels"])
@pytest.mark.parametrize("H", [4, 20, 36, *HEAD_DIMS, 112])
def test_attention_in_registers_every_head_dim_agrees(driver, swiftshader, H, variant):
    for each in (driver, swiftshader):
        for T, heads in ((17, (4, 4)), (65, (14, 2)), (130, (9, 3))):
            check_attention(each, Attention(T, *heads, H=H, variant=variant))
        check_attention(each, Attention(33, 4, 2, H=H, offset=40, window=21, sinks=3, variant=variant))


@pytest.mark.slow
@pytest.mark.timeout(1800)
@pytest.mark.parametrize("H", [4, 20, 36, *HEAD_DIMS, 112])
def test_attention_once_every_head_dim_agrees(driver, swiftshader, H):
    for each in (driver, swiftshader):
        for offset, heads in ((0, (4, 4)), (70, (14, 2)), (600, (9, 3))):
            check_attention(each, Attention(1, *heads, H=H, offset=offset, variant="once"))
        check_attention(each, Attention(1, 4, 2, H=H, offset=600, window=21, sinks=3, variant="once"))


@pytest.mark.slow
@pytest.mark.parametrize("H", [4, 20, 36, 112, 132, 256])
def test_attention_unusual_head_dim_agrees(driver, H):
    check_attention(driver, Attention(33, 4, 2, H=H))
    check_attention(driver, Attention(1, 4, 2, H=H, offset=70))


def test_attention_texels_in_images_that_grow_agree(driver):
    check_growing_images(driver)


WINDOWS = [(1, 0), (5, 0), (16, 0), (64, 0), (5, 1), (5, 4), (16, 6), (200, 4)]


@every_variant
@pytest.mark.parametrize(("window", "sinks"), WINDOWS)
def test_attention_window_and_sinks_agree(driver, variant, window, sinks):
    check_attention(driver, Attention(97, 4, 2, H=16, window=window, sinks=sinks, variant=variant))


@every_variant
@pytest.mark.parametrize(("window", "sinks"), [(0, 0), (7, 0), (70, 3)])
@pytest.mark.parametrize(("T", "offset"), [(1, 0), (1, 63), (1, 64), (1, 257), (3, 61), (16, 64), (17, 100)])
def test_attention_chunk_against_cache_agrees(driver, variant, T, offset, window, sinks):
    check_attention(driver, Attention(T, 9, 3, H=16, offset=offset, window=window, sinks=sinks, variant=variant))


@every_variant
@pytest.mark.parametrize("T", [1, 33])
@pytest.mark.parametrize("magnitude", [1e-4, 300.0, 1e6])
def test_attention_large_scores_agree(driver, variant, T, magnitude):
    c = Attention(T, 4, 2, H=32, offset=40, magnitude=magnitude, variant=variant)
    a = c.arrays()
    if magnitude == 1e6:
        assert np.abs(a["q"][:, 0] @ a["k"][:, 0].T * 32**-0.5).max() > 65_504
    check_attention(driver, c)


@every_variant
@pytest.mark.parametrize("T", [1, 9])
def test_attention_row_without_keys_is_zero(driver, variant, T):
    check_attention(driver, Attention(T, 4, 2, H=16, offset=30, window=8, S=12, variant=variant))


@every_variant
@pytest.mark.parametrize("later", [1, 5, 16, 40])
def test_attention_later_token_changed_earlier_rows_keep_every_bit(driver, variant, later):
    c = Attention(41, 4, 2, H=16, variant=variant)
    first, changed = c.arrays(), c.arrays()
    for name in "qkv":
        changed[name][later:] = changed[name][later:] * 3 + 1
    a, b = run_attention(driver, c, first), run_attention(driver, c, changed)
    assert np.array_equal(a["o"][:later], b["o"][:later])
    assert np.array_equal(a["lse"][:, :later], b["lse"][:, :later])
    assert np.array_equal(a["pattern"][:, :later, :later], b["pattern"][:, :later, :later])
    assert not np.array_equal(a["o"][later:], b["o"][later:])


@pytest.mark.slow
@pytest.mark.parametrize("H", [64, 128])
def test_attention_longest_text_agrees(driver, H):
    """The last rows of 8,192 tokens: the longest loops we allow (llvmpipe would silently end them at 65,535 turns)."""
    check_attention(driver, Attention(8, 2, 1, H=H, offset=8184))
    check_attention(driver, replace(Attention(1, 2, 1, H=H), offset=8191))
