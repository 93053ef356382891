"""The checks of products with blocks and quads can fail: a mistake is planted in the text, and they must notice."""

import pytest

from tests.kernels import checks
from tests.kernels.test_planted_mistakes import matmul, plant
from webgpu.ops import Q4_1, Q8_0

pytestmark = pytest.mark.gpu


def quads(T, fmt, bias=True):
    return lambda driver: checks.check_matmul(driver, T, 64, 40, fmt, bias=bias, variant="quads")


def lens(driver):
    checks.check_lens(driver, 9, 64, 1300, Q8_0, 2, variant="quads")


def lens_of_one_tile(driver):
    checks.check_lens(driver, 9, 576, 500, Q8_0, variant="quads")


MISTAKES = {
    "lens quads' lanes own the same tile": ("lens_quads", "quad % across * 4 + lane", "quad % across * 4", lens),
    "lens quads tie goes to the higher id": (
        "lens_quads",
        "let stays = top[i] >= logit;",
        "let stays = top[i] > logit;",
        lens_of_one_tile,
    ),
    "lens quads sum not rescaled": ("lens_quads", "old[1] * keep + e", "old[1] + e", lens),
    "lens quads forget the second four rows": ("lens_quads", "add32(b1[0], fb, w4)", "add32(b1[0], fa, w4)", lens),
    "lens quads take the other scale": ("lens_quads", "i % 2 == 1", "i % 2 == 0", lens),
    "lens target added in another order": ("lens_target", "if (IN_ORDER) {", "if (false) {", lens_of_one_tile),
    "quad hands around one lane's words": (
        "matmul_quads",
        "quadBroadcast(m[2], 3u)",
        "quadBroadcast(m[2], 2u)",
        quads(9, Q4_1),
    ),
    "quad's lanes own the same columns": ("matmul_quads", "across * 32 + 8 * lane", "across * 32 + 8", quads(9, Q4_1)),
    "quads swap two words of a block": ("matmul_quads", "vec4u(w4.y, w5.y,", "vec4u(w4.z, w5.y,", quads(9, Q4_1)),
    "quads' high nibbles from the low half": ("matmul_quads", "vec4u(word >> 16)", "vec4u(word)", quads(9, Q4_1)),
    "quads write a row past the end": ("matmul_quads", "t + i < p.T)", "t + i < p.T + 1)", quads(9, Q4_1)),
    "one token's quads forget the minimum": (
        "matvec_quads",
        "fma(b.sum, vec4f(scale.y),",
        "fma(b.sum, vec4f(0),",
        quads(1, Q4_1),
    ),
    "one token's quads leave a quarter of the sum": ("matvec_quads", " + quadBroadcast(own, 3u);", ";", quads(1, Q4_1)),
    "one token's quads take the other scale": ("matvec_quads", "i % 2 == 1", "i % 2 == 0", quads(1, Q8_0)),
    "one token's quads write a column past the end": (
        "matvec_quads",
        "m + i >= p.d_out",
        "m + i > p.d_out",
        quads(1, Q8_0, bias=False),
    ),
    "nibble keeps its neighbour's scale": ("matmul", "1.0 / 256", "1.0 / 16", matmul(9, Q4_1)),
    "block's minimum forgotten": ("matvec", "fma(hi, d, vec4f(scale.y))", "hi * d", matmul(1, Q4_1)),
    "scale of the block before": ("matmul", "i / 4 % 2 == 1", "i / 4 % 2 == 0", matmul(9, Q8_0)),
    "bytes without sign": (
        "matvec",
        "bitcast<vec4i>(vec4u(word << 24, word << 16, word << 8, word)) >>",
        "vec4u(word << 24, word << 16, word << 8, word) >>",
        matmul(1, Q8_0),
    ),
    "embedding of another block's scale": (
        "embedding",
        "scales[i / 32]",
        "scales[i / 64]",
        lambda driver: checks.check_embedding(driver, 5, 64, 40, Q4_1, 1),
    ),
}


@pytest.mark.parametrize("name", list(MISTAKES))
def test_planted_mistake_fails_its_check(name):
    plant(*MISTAKES[name])


def test_unchanged_kernels_pass_the_checks_of_the_mistakes(driver):
    for check in {id(entry[3]): entry[3] for entry in MISTAKES.values()}.values():
        check(driver)
