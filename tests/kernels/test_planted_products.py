"""The checks of norms and of products in blocks, quads and groups can fail: they notice a mistake in the text."""

import pytest

from tests.kernels import checks
from tests.kernels.test_planted_mistakes import matmul, plant
from webgpu.ops import F16, F32, Q4_1, Q8_0

pytestmark = pytest.mark.gpu


def quads(T, fmt, bias=True):
    return lambda driver: checks.check_matmul(driver, T, 64, 40, fmt, bias=bias, variant="quads")


def groups(T, fmt, d_in=64, bias=True):
    return lambda driver: checks.check_matmul(driver, T, d_in, 75, fmt, bias=bias, variant="groups")


def lens_groups(driver):
    checks.check_lens(driver, 3, 64, 2300, Q8_0, 2, variant="groups")


def norm(driver):
    checks.check_rmsnorm(driver, 3, 100, variant="groups")


def tiny_norm(driver):
    checks.check_rmsnorm(driver, 3, 100, magnitude=1e-3, variant="groups")


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
    "lens quads forget the second four rows": ("lens_quads", "add(b1, fb, right)", "add(b1, fa, right)", lens),
    "lens quads take the other scale": ("lens_quads", "(i & 1) == 1", "(i & 1) == 0", lens),
    "lens target added in another order": ("lens_target", "if (IN_ORDER) {", "if (false) {", lens_of_one_tile),
    "quad hands around one lane's words": (
        "matmul_quads",
        "quadSwapDiagonal(x.hi)",
        "quadSwapY(x.hi)",
        quads(9, Q4_1),
    ),
    "quad's token swapped and its row not": (
        "matmul_quads",
        "let row = t + (lane ^ k);",
        "let row = t + k;",
        quads(9, Q4_1),
    ),
    "quad's lanes own the same columns": ("matmul_quads", "across * 32 + 8 * lane", "across * 32 + 8", quads(9, Q4_1)),
    "quads take a block's first words twice": (
        "matmul_quads",
        "columns4(m + 4, eights, i + 1, r)",
        "columns4(m + 4, eights, i, r)",
        quads(9, Q4_1),
    ),
    "quads' high nibbles from the low half": (
        "matmul_quads",
        "vec3u(0xf0000, 0xf00000, 0xf000000)",
        "vec3u(0xf, 0xf0, 0xf00)",
        quads(9, Q4_1),
    ),
    "quads' highest nibble with a sign": (
        "matmul_quads",
        "f32(word & 0xf0000000u)",
        "f32(i32(word & 0xf0000000u))",
        quads(9, Q4_1),
    ),
    "quads take the other scale": ("matmul_quads", "(block & 1) == 1", "(block & 1) == 0", quads(5, Q8_0)),
    "quads' bytes without sign": (
        "matmul_quads",
        "vec4f(bitcast<vec4i>(moved))",
        "vec4f(moved)",
        quads(5, Q8_0),
    ),
    "quads forget the second eight tokens": (
        "matmul_quads",
        "c = add(c, row2, i + 1",
        "c = add(c, row1, i + 1",
        quads(9, Q4_1),
    ),
    "quads write a row past the end": ("matmul_quads", "row >= p.T ||", "row > p.T ||", quads(9, Q4_1)),
    "quads write a column past the end": (
        "matmul_quads",
        "m + j >= p.d_out)",
        "m + j > p.d_out)",
        quads(5, Q8_0, bias=False),
    ),
    "one token's quads forget the minimum": ("matvec_quads", "fma(b.sum, scale.y,", "fma(b.sum, 0,", quads(1, Q4_1)),
    "one token's quads leave a half of the sum": ("matvec_quads", "four + quadSwapY(four)", "four", quads(1, Q4_1)),
    "one token's quads swap words and not weights": ("matvec_quads", "lane ^ 2", "lane", quads(1, Q4_1)),
    "one token's quads take the other scale": ("matvec_quads", "(i & 1) == 1", "(i & 1) == 0", quads(1, Q8_0)),
    "one token's quads write a column past the end": (
        "matvec_quads",
        "m + i >= p.d_out",
        "m + i > p.d_out",
        quads(1, Q8_0, bias=False),
    ),
    "a team forgets its last invocation": ("matvec_groups", "i < TEAM;", "i < TEAM - 1;", groups(1, F16, d_in=320)),
    "a team's second turn too far": ("matvec_groups", "d += TEAM * 8", "d += TEAM * 16", groups(1, F16, d_in=576)),
    "both teams own the same columns": (
        "matvec_groups",
        "m0 + local / TEAM * 4",
        "m0 + local / 64 * 4",
        groups(1, F16),
    ),
    "one token's team writes a column past the end": (
        "matvec_groups",
        "column > last)",
        "column > last + 1)",
        groups(1, Q8_0, bias=False),
    ),
    "one token's team without a barrier": ("matvec_groups", "workgroupBarrier();", "", groups(1, F16, d_in=320)),
    "few tokens' second half from the first": (
        "matmul_few_groups",
        "tokens4(t0 + 4, d + 4) * hi",
        "tokens4(t0, d + 4) * hi",
        groups(9, Q4_1),
    ),
    "few tokens' sums of two columns swapped": (
        "matmul_few_groups",
        "parts[at + STRIDE] = block[1][i]",
        "parts[at + STRIDE] = block[2][i]",
        groups(9, F16),
    ),
    "few tokens' team reads the other's sums": (
        "matmul_few_groups",
        "local / TEAM * TEAM + i",
        "TEAM - local / TEAM * TEAM + i",
        groups(9, F16),
    ),
    "few tokens' blocks own the same rows": (
        "matmul_few_groups",
        "group % blocks * 8",
        "group % 1 * 8",
        groups(9, F16),
    ),
    "few tokens write a row past the end": ("matmul_few_groups", "t >= p.T ||", "t > p.T ||", groups(9, Q4_1)),
    "tile read before it is filled": (
        "matmul_groups",
        "fill(t0, m0, d, local);\n    workgroupBarrier();",
        "fill(t0, m0, d, local);",
        groups(35, F16),
    ),
    "tile filled while it is read": (
        "matmul_groups",
        "workgroupBarrier();\n  }\n  for (var giver",
        "}\n  for (var giver",
        groups(35, F16, d_in=320),
    ),
    "tile forgets its last slice": ("matmul_groups", "giver < 4;", "giver < 3;", groups(35, F16)),
    "slices multiply the same features": ("matmul_groups", "var f = 2 * slice;", "var f = 2u;", groups(35, F16)),
    "tile's features past the end from the next row": (
        "matmul_groups",
        "if (w_d < p.d_in)",
        "if (true)",
        groups(35, F32, d_in=72),
    ),
    "tile's numbers of x past the end from the next row": (
        "matmul_groups",
        "if (x_d < p.d_in)",
        "if (true)",
        groups(35, F32, d_in=72),
    ),
    "tile's high half of eight weights lost": (
        "matmul_groups",
        "columns[at + 1] = w.hi",
        "columns[at + 1] = w.lo",
        groups(35, Q4_1),
    ),
    "tile's lower tokens from the upper": (
        "matmul_groups",
        "tokens4(token + 16, f)",
        "tokens4(token, f)",
        groups(35, F16),
    ),
    "tile writes a row past the end": ("matmul_groups", "t + 4 * i < p.T", "t + 4 * i <= p.T", groups(35, F16)),
    "tile's slices hand over two columns as one": (
        "matmul_groups",
        "columns[place + 64] = sum[1]",
        "columns[place + 64] = sum[0]",
        groups(35, F16),
    ),
    "lens groups forget a half": ("lens_groups", "merged(sums[local], sums[local + half])", "sums[local]", lens_groups),
    "lens groups tie goes to the higher id": (
        "lens_groups",
        "best_id[local + half] < best_id",
        "best_id[local + half] > best_id",
        lens_groups,
    ),
    "lens groups' winner stays": ("lens_groups", "at = min(at + 1, TOP_K - 1)", "at = 0", lens_groups),
    "lens groups' list out of order": ("lens_groups", "min(logit, top[i - 1])", "logit", lens_groups),
    "lens groups' sum not rescaled": ("lens_groups", "a.y * keep + b.y * e", "a.y + b.y", lens_groups),
    "lens groups rank an equal before": (
        "lens_groups",
        "logit == wanted_logit && v < wanted",
        "logit == wanted_logit",
        lens_groups,
    ),
    "lens groups' second table in the first's columns": (
        "matmul_few_groups",
        "p.out_col0 + m, total",
        "m, total",
        lens_groups,
    ),
    "norm halves once too few": ("rmsnorm_groups", "half > 0;", "half > 1;", norm),
    "norm forgets what is beyond the workgroup": (
        "rmsnorm_groups",
        "d < p.width; d += THREADS) { sum",
        "d < THREADS; d += THREADS) { sum",
        norm,
    ),
    "norm without eps": ("rmsnorm_groups", " + p.eps", "", tiny_norm),
    "norm of one row too few": ("rmsnorm_groups", "row >= p.rows", "row + 1 >= p.rows", norm),
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
