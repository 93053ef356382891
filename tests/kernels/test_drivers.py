"""The reduced matrix on the other two of the three drivers: naga on SwiftShader, and Tint (Chromium) on SwiftShader.

Together with llvmpipe both compilers and both lane counts (4 and 8) run every kernel.
"""

import pytest

from tests.kernels import checks
from tests.kernels.attention_checks import Attention, check_attention, check_growing_images
from tests.kernels.next_token_checks import check_next_token
from tests.kernels.pattern_checks import check_pattern, check_pixels
from webgpu.ops import BF16, F16, F32, Q4_1, Q8_0

pytestmark = pytest.mark.gpu


def quick(driver) -> None:
    """Every kernel once."""
    check_attention(driver, Attention(17, 9, 3, H=16))
    check_attention(driver, Attention(1, 14, 2, H=16, offset=97, window=20, sinks=3))
    for variant in ("registers", "texels"):
        check_attention(driver, Attention(70, 9, 3, H=32, variant=variant))
    check_growing_images(driver)
    check_attention(driver, Attention(1, 9, 3, H=32, offset=700, variant="once"))
    check_attention(driver, Attention(70, 9, 3, H=32, variant="tile"))
    for T in (1, 17):
        check_attention(driver, Attention(T, 9, 3, H=32, offset=20, window=9, sinks=2, variant="plain"))
    for variant in ("rows", "quads", "plain"):
        check_pattern(driver, Attention(41, 4, 1, H=32), variant=variant)
        check_pixels(driver, Attention(33, 4, 1, H=16), (0, 33), (0, 33), (5, 7), "max", variant=variant)
    for T, d_in in ((9, 64), (1, 64), (3, 37)):
        checks.check_matmul(driver, T, d_in, 12, F16, bias=True, placed=True, residual=True)
    for T, fmt in ((1, F16), (9, Q8_0), (1, Q4_1), (9, BF16), (35, Q4_1)):
        checks.check_matmul(driver, T, 96, 67, fmt, bias=True, placed=True, residual=True, variant="groups")
    for fmt in (Q4_1, Q8_0):
        for T in (1, 9):
            checks.check_matmul(driver, T, 96, 12, fmt)
            checks.check_matmul(driver, T, 96, 37, fmt, bias=True, placed=True, residual=True, variant="quads")
        checks.check_matmul(driver, 9, 96, 13, fmt, bias=True, placed=True, residual=True, variant="plain")
        checks.check_embedding(driver, 5, 32, 40, fmt, 2)
        checks.check_lens(driver, 5, 32, 600, fmt, 2)
    checks.check_lens(driver, 9, 32, 1200, Q8_0, 2, variant="quads")
    checks.check_lens(driver, 3, 32, 700, Q8_0, 2, variant="groups")
    checks.check_embedding(driver, 5, 24, 40, F16, 2)
    for variant in ("rows", "groups"):
        checks.check_rmsnorm(driver, 5, 24, variant=variant)
        checks.check_qk_norm(driver, 5, 4, 2, 16, variant=variant)
    checks.check_rope(driver, 5, 4, 2, 16, 2, normed=True)
    checks.check_swiglu(driver, 5, 20, 50.0)
    checks.check_lens(driver, 5, 24, 600, F16, 2)
    check_next_token(driver, 9001, 0.5)


def products(driver) -> None:
    """Every weight format over the edges of the register block."""
    for fmt in (Q4_1, Q8_0):
        for T, d_in, d_out in ((1, 576, 33), (65, 576, 72), (8, 64, 8)):
            checks.check_matmul(driver, T, d_in, d_out, fmt)
    for fmt in (F32, F16, BF16, Q4_1, Q8_0):
        for T, d_in, d_out in ((1, 576, 33), (11, 288, 33), (65, 288, 72)):
            checks.check_matmul(driver, T, d_in, d_out, fmt, variant="groups")
    for fmt in (F32, F16, BF16):
        for T, d_in, d_out in ((1, 576, 33), (65, 576, 72), (8, 64, 8), (5, 61, 11)):
            checks.check_matmul(driver, T, d_in, d_out, fmt)
        checks.check_embedding(driver, 17, 33, 50, fmt, 3)
        checks.check_lens(driver, 6, 64, 1500, fmt, 2)


def reduced(driver) -> None:
    """The matrix's corners: head dimensions, lengths, groupings, windows, offsets, magnitudes, formats."""
    for H, heads in ((32, (4, 4)), (48, (4, 2)), (64, (9, 3)), (80, (14, 2)), (96, (4, 1)), (128, (4, 2))):
        for T in (1, 2, 15, 65):
            check_attention(driver, Attention(T, *heads, H=H))
    for window, sinks in ((5, 0), (16, 3)):
        for T, offset in ((97, 0), (16, 64), (1, 130)):
            check_attention(driver, Attention(T, 4, 2, H=16, offset=offset, window=window, sinks=sinks))
    check_attention(driver, Attention(33, 4, 2, H=32, magnitude=1e6))
    check_attention(driver, Attention(9, 4, 2, H=16, offset=30, window=8, S=12))
    check_attention(driver, Attention(257, 9, 3, H=64))
    for variant in ("rows", "quads"):
        for reduce in ("max", "mean"):
            c = Attention(97, 4, 2, H=64)
            check_pixels(driver, c, (5, 90), (0, 97), (11, 13), reduce, heads=(1, 3), variant=variant)
        for H in (16, 48, 64, 80, 96, 112, 128):
            check_pattern(driver, Attention(65, 4, 2, H=H), variant=variant)
        check_pattern(driver, Attention(257, 9, 3, H=64), variant=variant)
        check_pattern(driver, Attention(97, 4, 2, H=16, window=16, sinks=3), variant=variant)
    products(driver)
    checks.check_rmsnorm(driver, 65, 576)
    checks.check_rope(driver, 65, 4, 2, 80, 1)


def test_swiftshader_every_kernel_agrees(swiftshader):
    assert swiftshader.words == "SwiftShader (a CPU stands in for a GPU)"
    quick(swiftshader)


@pytest.mark.slow
@pytest.mark.timeout(1800)
def test_swiftshader_reduced_matrix_agrees(swiftshader):
    reduced(swiftshader)


@pytest.mark.chromium
@pytest.mark.timeout(900)
def test_chromium_every_kernel_agrees(tint):
    quick(tint)


@pytest.mark.slow
@pytest.mark.chromium
@pytest.mark.timeout(2400)
def test_chromium_reduced_matrix_agrees(tint):
    reduced(tint)
