"""Everything that is not attention or lens: products, norms, rotation, embedding, elementwise.

Plan: matrix products of every weight format over edges of the 8 x 8 block, of teams and tiles, with bias, written into
a larger matrix, with rows of any length, one token; norms from one number to wide rows; rotation into a cache;
embedding in pieces; huge gates.
"""

import pytest

from tests.kernels import checks
from webgpu.ops import BF16, F16, F32, Q4_1, Q8_0

pytestmark = pytest.mark.gpu
FORMATS = pytest.mark.parametrize("fmt", [F32, F16, BF16], ids=["f32", "f16", "bf16"])
BLOCKS = pytest.mark.parametrize("fmt", [Q4_1, Q8_0], ids=["q4_1", "q8_0"])
NORMS = pytest.mark.parametrize("variant", ["rows", "groups"])


@FORMATS
@pytest.mark.parametrize("T", [1, 2, 7, 8, 9, 65])
def test_matmul_agrees(driver, T, fmt):
    for d_in, d_out in ((8, 1), (64, 33), (576, 72)):
        checks.check_matmul(driver, T, d_in, d_out, fmt)


@BLOCKS
@pytest.mark.parametrize("T", [1, 2, 8, 9, 65])
def test_matmul_of_blocks_agrees(driver, T, fmt):
    for d_in, d_out in ((32, 1), (96, 33), (576, 72)):
        checks.check_matmul(driver, T, d_in, d_out, fmt)
    checks.check_matmul(driver, T, 64, 20, fmt, bias=True, placed=True, residual=True)


QUADS = [(1, Q4_1), (1, Q8_0), *((T, Q4_1) for T in (2, 8, 9, 65))]


@pytest.mark.parametrize(("T", "fmt"), QUADS)
def test_matmul_quads_agree(driver, T, fmt):
    for d_in, d_out in ((32, 1), (64, 31), (96, 33), (576, 72), (160, 130)):
        checks.check_matmul(driver, T, d_in, d_out, fmt, variant="quads")
    checks.check_matmul(driver, T, 64, 20, fmt, bias=True, placed=True, residual=True, variant="quads")


@pytest.mark.parametrize("fmt", [F32, F16, BF16, Q8_0], ids=["f32", "f16", "bf16", "q8_0"])
def test_matmul_quads_of_every_format_agree(driver, fmt):
    step = 32 if fmt == Q8_0 else 8
    for d_in, d_out in ((step, 1), (64 + step, 33)):  # 8 tokens a quad
        checks.check_matmul(driver, 7, d_in, d_out, fmt, variant="quads")
    checks.check_matmul(driver, 27, 64 + step, 20, fmt, bias=True, placed=True, residual=True, variant="quads")  # 16


@pytest.mark.parametrize("fmt", [F32, F16, BF16, Q4_1, Q8_0], ids=["f32", "f16", "bf16", "q4_1", "q8_0"])
@pytest.mark.parametrize("T", [1, 2, 32, 33, 65])  # one token, teams, tiles of 32
def test_matmul_groups_agree(driver, T, fmt):
    step = 32 if fmt in (Q4_1, Q8_0) else 8
    for d_in, d_out in ((step, 1), (256 + step, 130)):  # a team takes 256 features a turn, a tile has 64 columns
        checks.check_matmul(driver, T, d_in, d_out, fmt, variant="groups")
    checks.check_matmul(driver, T, 64, 20, fmt, bias=True, placed=True, residual=True, variant="groups")


@pytest.mark.parametrize("fmt", [F32, F16, BF16, Q4_1, Q8_0])
def test_matmul_plain_agrees(driver, fmt):
    for T, d_in, d_out in ((2, 32, 1), (9, 96, 33), (65, 64, 260)):
        checks.check_matmul(driver, T, d_in, d_out, fmt, variant="plain")
    checks.check_matmul(driver, 3, 64, 21, fmt, bias=True, placed=True, residual=True, variant="plain")


@FORMATS
@pytest.mark.parametrize("T", [1, 9])
def test_matmul_bias_and_place_agree(driver, T, fmt):
    checks.check_matmul(driver, T, 64, 20, fmt, bias=True, placed=True, residual=True)


@FORMATS
@pytest.mark.parametrize(("T", "d_in"), [(1, 37), (5, 61), (5, 172), (3, 1)])
def test_matmul_row_of_any_length_agrees(driver, T, d_in, fmt):
    checks.check_matmul(driver, T, d_in, 11, fmt, bias=True)


@pytest.mark.slow
@FORMATS
@pytest.mark.parametrize(("T", "d_in", "d_out"), [(1, 8960, 100), (17, 8960, 24), (1024, 576, 64), (1, 576, 49_152)])
def test_matmul_model_sizes_agree(driver, T, d_in, d_out, fmt):
    checks.check_matmul(driver, T, d_in, d_out, fmt)


@pytest.mark.slow
@pytest.mark.parametrize(("T", "d_in", "d_out"), [(17, 8960, 24), (1024, 576, 64), (1, 576, 49_152), (1, 8960, 100)])
def test_matmul_quads_of_model_sizes_agree(driver, T, d_in, d_out):
    checks.check_matmul(driver, T, d_in, d_out, Q4_1, variant="quads")


@pytest.mark.slow
@pytest.mark.parametrize(("T", "d_in", "d_out"), [(1, 8960, 100), (9, 8960, 24), (300, 576, 130), (1, 576, 49_152)])
def test_matmul_groups_of_model_sizes_agree(driver, T, d_in, d_out):
    checks.check_matmul(driver, T, d_in, d_out, Q4_1, variant="groups")


@pytest.mark.slow
def test_matmul_any_over_65535_groups_agrees(driver):
    checks.check_matmul(driver, 2100, 3, 2000, F32)  # 65,625 workgroups of 64 numbers


@NORMS
@pytest.mark.parametrize(("rows", "width"), [(1, 1), (3, 2), (9, 7), (17, 16), (65, 576), (1, 4096), (600, 64)])
def test_rmsnorm_agrees(driver, rows, width, variant):
    checks.check_rmsnorm(driver, rows, width, variant=variant)


@NORMS
@pytest.mark.parametrize("magnitude", [1e-6, 1e4, 1e15])
def test_rmsnorm_of_tiny_and_huge_rows_agrees(driver, magnitude, variant):
    checks.check_rmsnorm(driver, 5, 64, magnitude=magnitude, variant=variant)


@NORMS
@pytest.mark.parametrize(("T", "N", "K", "H"), [(1, 1, 1, 2), (5, 4, 2, 16), (9, 14, 2, 128)])
def test_qk_norm_agrees(driver, T, N, K, H, variant):
    checks.check_qk_norm(driver, T, N, K, H, variant)


@pytest.mark.parametrize("rotate", [True, False])
@pytest.mark.parametrize(
    ("T", "N", "K", "H", "row0"), [(1, 1, 1, 2, 0), (17, 3, 3, 16, 0), (5, 9, 3, 64, 7), (65, 4, 1, 80, 1)]
)
def test_rope_agrees(driver, T, N, K, H, row0, rotate):
    checks.check_rope(driver, T, N, K, H, row0, rotate)
    checks.check_rope(driver, T, N, K, H, row0, rotate, normed=True)


@FORMATS
@pytest.mark.parametrize(("T", "D", "V", "chunks"), [(1, 8, 3, 1), (17, 33, 50, 3), (65, 64, 200, 2)])
def test_embedding_is_exact(driver, T, D, V, chunks, fmt):
    checks.check_embedding(driver, T, D, V, fmt, chunks)


@BLOCKS
@pytest.mark.parametrize(("T", "D", "V", "chunks"), [(1, 32, 3, 1), (17, 96, 50, 3), (65, 64, 200, 2)])
def test_embedding_of_blocks_is_exact(driver, T, D, V, chunks, fmt):
    checks.check_embedding(driver, T, D, V, fmt, chunks)


@pytest.mark.parametrize(("T", "F"), [(1, 1), (1, 64), (3, 21), (65, 1), (14, 1536)])
def test_swiglu_agrees(driver, T, F):
    checks.check_swiglu(driver, T, F)


@pytest.mark.parametrize("magnitude", [1e-5, 50.0, 1e4])
def test_swiglu_of_large_gates_stays_finite(driver, magnitude):
    checks.check_swiglu(driver, 3, 86, magnitude)


@pytest.mark.slow
def test_swiglu_over_65535_groups_agrees(driver):
    checks.check_swiglu(driver, 65_535, 65)
