"""Every check can fail: a classic mistake is planted in a kernel's text, and the named check must notice.

Each mistake replaces a piece of text that occurs exactly once, so that a kernel cannot drift away from its mistake.
"""

import pytest

from tests.kernels import attention_mistakes, checks, layer_mistakes
from tests.kernels.attention_checks import Attention, check_attention
from tests.kernels.drivers import ROOT, Wgpu
from tests.kernels.pattern_checks import check_pattern, check_pixels
from webgpu.ops import BF16, F16, F32

pytestmark = pytest.mark.gpu


def attention(T=17, **more):
    return lambda driver: check_attention(driver, Attention(T, 4, 2, H=16, **more))


def pattern(variant, **more):
    return lambda driver: check_pattern(driver, Attention(35, 4, 2, H=32, **more), variant=variant)


def pixels(reduce, variant="rows"):
    def check(driver):
        check_pixels(driver, Attention(50, 4, 2, H=16), (0, 50), (0, 50), (5, 7), reduce, variant=variant, most_flops=1)

    return check


def matmul(T, fmt, variant=None):
    return lambda driver: checks.check_matmul(driver, T, 64, 20, fmt, bias=True, variant=variant)


def lens(driver):
    checks.check_lens(driver, 6, 24, 1200, F16, 2)


def lens_of_one_tile(driver):
    checks.check_lens(driver, 6, 24, 500, F16)


MISTAKES = (
    attention_mistakes.MISTAKES
    | layer_mistakes.MISTAKES
    | {
        "scale missing": ("attention_fa2", "score * (p.scale * LOG2_E)", "score * LOG2_E", attention()),
        "mask one key too wide": ("attention_fa2", "(position >= vec4u(s))", "(position + 1 >= vec4u(s))", attention()),
        "mask one key too narrow": ("attention_fa2", "(position >= vec4u(s))", "(position > vec4u(s))", attention()),
        "window one key too wide": (
            "attention_fa2",
            "position < vec4u(s + p.window)",
            "position <= vec4u(s + p.window)",
            attention(window=5),
        ),
        "window begins one key late": (
            "attention_fa2",
            "position.x - p.window + 1",
            "position.x - p.window + 2",
            attention(window=5),
        ),
        "sinks forgotten": ("attention_fa2", "|| s < p.sinks", "", attention(window=5, sinks=2)),
        "groups interleaved": ("attention_fa2", "n / (p.N / p.K)", "n % p.K", attention()),
        "sum not rescaled": ("attention_fa2", "y0 = by_row(y0, keep) +", "y0 = y0 +", attention(T=65, magnitude=9.0)),
        "total not rescaled": ("attention_fa2", "l = l * keep +", "l = l +", attention(T=65, magnitude=9.0)),
        "maximum never subtracted": (
            "attention_fa2",
            "exp2(score - highest)",
            "exp2(score)",
            attention(magnitude=300.0),
        ),
        "offset forgotten": ("attention_fa2", "p.offset + t", "t", attention(offset=20)),
        "every part the first": ("attention_fa2", "p.group0 + ", "", attention(T=67, most_flops=1)),
        "lse in units of log2": ("attention_fa2", "(m + log2(l)) / LOG2_E", "m + log2(l)", attention()),
        "past the end of the keys": ("attention_fa2", "vec4u(end - 1)", "vec4u(end + 3)", attention()),
        "decode groups interleaved": (
            "attention_decode",
            "kv_head * G + r % G",
            "r % G * p.K + kv_head",
            attention(1, offset=70),
        ),
        "decode split one key long": (
            "attention_decode",
            "split * p.span + p.span",
            "split * p.span + p.span + 1",
            attention(1, offset=70),
        ),
        "merge not rescaled": (
            "attention_merge",
            "sum = sum * keep",
            "sum = sum",
            attention(1, offset=200, magnitude=9.0),
        ),
        "merge drops a split": ("attention_merge", "j < p.splits", "j < p.splits - 1", attention(1, offset=70)),
        "rows: without scale": (
            "attention_probs",
            "p.scale * LOG2_E",
            "LOG2_E",
            pattern("rows"),
        ),
        "rows: rows of another head": (
            "attention_probs",
            "let at = n * p.T + t;",
            "let at = t * p.N + n;",
            pattern("rows"),
        ),
        "rows: masks one key too narrow": (
            "attention_probs",
            "(rows.position >= vec4u(s))",
            "(rows.position > vec4u(s))",
            pattern("rows"),
        ),
        "rows: window one key too wide": (
            "attention_probs",
            "rows.position < vec4u(s + p.window)",
            "rows.position <= vec4u(s + p.window)",
            pattern("rows", window=5),
        ),
        "rows: groups interleaved": (
            "attention_probs",
            "n / (p.N / p.K)",
            "n % p.K",
            pattern("rows"),
        ),
        "rows: ends before the diagonal": (
            "attention_probs",
            "min(top + 64, p.slice1);",
            "min(top + 64, p.slice1) - 1;",
            pattern("rows"),
        ),
        "rows: part left out": (
            "attention_probs",
            "if (H > 16) { score = add(score,",
            "if (H > 32) { score = add(score,",
            pattern("rows"),
        ),
        "rows: writes past its rows": (
            "attention_probs",
            "let inside = row < vec4u(p.slice1);",
            "let inside = row < vec4u(p.slice1 + 1);",
            pattern("rows"),
        ),
        "rows: pixel drops its last row": (
            "attention_probs",
            "min(end, first + p.slice1)",
            "min(end, first + p.slice1) - 1",
            pixels("max", "rows"),
        ),
        "rows: pixel mean over the wrong area": (
            "attention_probs",
            "(right - left));",
            "(right - left + 1));",
            pixels("mean", "rows"),
        ),
        "rows: pixel forgets earlier slices": (
            "attention_probs",
            "max(out[to], most)",
            "most",
            pixels("max", "rows"),
        ),
        "rows: pixel drops keys near the diagonal": (
            "attention_probs",
            "p.offset + first + r + 4",
            "p.offset + first + r",
            pixels("max", "rows"),
        ),
        "quads: without scale": (
            "attention_probs_quads",
            "p.scale * LOG2_E",
            "LOG2_E",
            pattern("quads"),
        ),
        "quads: rows of another head": (
            "attention_probs_quads",
            "let at = n * p.T + t;",
            "let at = t * p.N + n;",
            pattern("quads"),
        ),
        "quads: masks one key too narrow": (
            "attention_probs_quads",
            "(rows.position >= vec4u(s))",
            "(rows.position > vec4u(s))",
            pattern("quads"),
        ),
        "quads: window one key too wide": (
            "attention_probs_quads",
            "rows.position < vec4u(s + p.window)",
            "rows.position <= vec4u(s + p.window)",
            pattern("quads", window=5),
        ),
        "quads: groups interleaved": (
            "attention_probs_quads",
            "n / (p.N / p.K)",
            "n % p.K",
            pattern("quads"),
        ),
        "quads: ends before the diagonal": (
            "attention_probs_quads",
            "min(top + 32, p.slice1);",
            "min(top + 32, p.slice1) - 1;",
            pattern("quads"),
        ),
        "quads: part left out": (
            "attention_probs_quads",
            "if (H > 16) { score = add(score,",
            "if (H > 32) { score = add(score,",
            pattern("quads"),
        ),
        "quads: writes past its rows": (
            "attention_probs_quads",
            "let inside = row < vec4u(p.slice1);",
            "let inside = row < vec4u(p.slice1 + 1);",
            pattern("quads"),
        ),
        "quads: pixel drops its last row": (
            "attention_probs_quads",
            "min(end, first + p.slice1)",
            "min(end, first + p.slice1) - 1",
            pixels("max", "quads"),
        ),
        "quads: pixel mean over the wrong area": (
            "attention_probs_quads",
            "(right - left));",
            "(right - left + 1));",
            pixels("mean", "quads"),
        ),
        "quads: pixel forgets earlier slices": (
            "attention_probs_quads",
            "max(out[to], most)",
            "most",
            pixels("max", "quads"),
        ),
        "quads: pixel drops keys near the diagonal": (
            "attention_probs_quads",
            "p.offset + lowest + r + 4",
            "p.offset + lowest + r",
            pixels("max", "quads"),
        ),
        "quads: keys not swapped": (
            "attention_probs_quads",
            "quadSwapY(mine), quadSwapDiagonal(mine)",
            "quadSwapDiagonal(mine), quadSwapY(mine)",
            pattern("quads"),
        ),
        "quads: queries in the order of lane 0": (
            "attention_probs_quads",
            "q[at][lane ^ 1] * f",
            "q[at][1] * f",
            pattern("quads"),
        ),
        "f16 halves swapped": ("matmul", "unpack2x16float(pair)", "unpack2x16float(pair).yx", matmul(9, F16)),
        "bf16 halves swapped": (
            "matvec",
            "vec2f(bitcast<f32>(pair << 16), bitcast<f32>(pair & 0xffff0000u))",
            "vec2f(bitcast<f32>(pair & 0xffff0000u), bitcast<f32>(pair << 16))",
            matmul(1, BF16),
        ),
        "each token gets the first one's product": ("matvec", "(t * p.d_in + d) / 4", "d / 4", matmul(9, F32, "plain")),
        "each token is written to the first row": ("matvec", "(p.out_row0 + t)", "p.out_row0", matmul(9, F32, "plain")),
        "writes a row past the end": ("matmul", "t + i < p.T)", "t + i < p.T + 1)", matmul(9, F32)),
        "bias forgotten": ("matmul", "values[i] + b)", "values[i])", matmul(9, F32)),
        "product not transposed": ("matmul", "return transpose(mat4x4f(x4(", "return (mat4x4f(x4(", matmul(9, F32)),
        "odd element from the low half": (
            "embedding",
            "i % 2 == 1",
            "i % 2 == 2",
            lambda d: checks.check_embedding(d, 5, 24, 40, F16, 1),
        ),
        "lens merge drops a tile": ("lens_merge", "part < (row + 1) * p.parts", "part < (row + 1) * p.parts - 1", lens),
        "lens tie goes to the higher id": (
            "lens_tile",
            "let stays = top[i] >= logit;",
            "let stays = top[i] > logit;",
            lens_of_one_tile,
        ),
        "lens tie of two tiles goes to the higher id": ("lens_merge", "value > old[a]", "value >= old[a]", lens),
        "lens sum not rescaled": ("lens_tile", "stats[1] = stats[1] * keep + e;", "stats[1] = stats[1] + e;", lens),
        "lens ids without the table's start": ("lens_tile", "p.v0 + v + j", "v + j", lens),
    }
)


@pytest.mark.parametrize("name", list(MISTAKES))
def test_planted_mistake_fails_its_check(name):
    plant(*MISTAKES[name])


def plant(file, right, wrong, check) -> None:
    """Replace the one occurrence of a text in a kernel, and see the check fail."""
    text = (ROOT / "webgpu" / f"{file}.wgsl").read_text("utf-8")
    assert text.count(right) == 1, f"{right!r} occurs {text.count(right)} times in {file}.wgsl"
    with pytest.raises(AssertionError):
        check(Wgpu({f"{file}.wgsl": text.replace(right, wrong)}))


def test_unchanged_kernels_pass_the_checks_of_the_mistakes(driver):
    for check in {id(entry[3]): entry[3] for entry in MISTAKES.values()}.values():
        check(driver)
