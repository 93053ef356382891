"""Mistakes planted in the variants of attention; test_planted_mistakes.py plants them and lets the check notice."""

from tests.kernels.attention_checks import Attention, check_attention
from tests.kernels.pattern_checks import check_pattern, check_pixels


def over_workgroups(variant):
    """Checks of a variant over more than one workgroup (and tile): `texels(window=5)` is one with a window."""

    def check(T=67, H=16, **more):
        return lambda driver: check_attention(driver, Attention(T, 4, 2, H=H, variant=variant, **more))

    return check


texels, registers, tile, tile_f16 = map(over_workgroups, ("texels", "registers", "tile", "tile_f16"))


def once(H=16, offset=700, **more):
    """A check of the variant "once" over more than one team of splits."""
    return lambda driver: check_attention(driver, Attention(1, 4, 2, H=H, offset=offset, variant="once", **more))


def plain(T=17, **more):
    """A check of the variant "plain"."""
    return lambda driver: check_attention(driver, Attention(T, 4, 2, H=16, variant="plain", **more))


def cells(**more):
    """A check of the pattern in the variant "plain"."""
    return lambda driver: check_pattern(driver, Attention(35, 4, 2, H=32, **more), variant="plain")


def pixels(reduce):
    """A check of pixels in the variant "plain", of a window."""
    c = Attention(50, 4, 2, H=16)
    return lambda driver: check_pixels(driver, c, (3, 50), (2, 47), (5, 7), reduce, heads=(1, 2), variant="plain")


# what is wrong -> (the right text, the wrong text, the check that must notice)
TEXELS = {
    "every part the first": ("p.group0 + ", "", texels(most_flops=1)),
    "without scale": ("p.scale * LOG2_E *", "LOG2_E *", texels()),
    "mask one key too narrow": ("(position >= vec4u(s))", "(position > vec4u(s))", texels()),
    "mask begins a step late": ("while (s + 3 < all)", "while (s < all)", texels()),
    "mask begins at the last row": ("min(pa.x + 1, p.S), 0", "min(pb.w + 1, p.S), 0", texels()),
    "mask of one lane": ("quad_min(select(min(pa.x", "(select(min(pa.x", texels()),
    "window without mask": ("0, p.window > 0));", "0, false));", texels(window=5)),
    "window one key too wide": (
        "(position < vec4u(s + p.window))",
        "(position <= vec4u(s + p.window))",
        texels(window=5),
    ),
    "window begins late": ("pa.x - p.window + 1", "pa.x - p.window + 2", texels(window=5)),
    "sinks forgotten": (
        "vec4<bool>(p.window == 0 || s < p.sinks)",
        "vec4<bool>(p.window == 0)",
        texels(window=5, sinks=2),
    ),
    "keys in one order for all lanes": ("s + order;", "s + vec4u(0, 1, 2, 3);", texels()),
    "pairs of lanes not told apart": ("quadSwapY(x), quadSwapDiagonal(x)); }", "x, quadSwapX(x)); }", texels()),
    "keys past the last": ("min(keys.x, end - 1)", "keys.x", texels()),
    "another key/value head": ("(f32(kv_head * (H / 4)) + 0.5)", "0.5", texels()),
    "a texel aside": ("(f32(min(keys.x, end - 1)) + 0.5)", "(f32(min(keys.x, end - 1)) + 1.5)", texels()),
    "a texel aside, unmasked": ("(f32(s + order.x) + 0.5)", "(f32(s + order.x) + 1.5)", texels()),
    "size of the text for the image's": ("f32(textureDimensions(k).y)", "f32(p.S)", texels()),
    "two keys exchanged": ("mat4x4f(t.x, t.y, t.z, t.w)", "mat4x4f(t.x, t.z, t.y, t.w)", texels()),
    "mask of another key": ("masked1(m[3], at, s.w)", "masked1(m[3], at, s.z)", texels()),
    "end of one lane": ("quad_max(min(p.S, pb.w + 1))", "min(p.S, pb.w + 1)", texels()),
    "groups interleaved": ("kv_head * G + ra % G", "ra % G * p.K + kv_head", texels()),
    "sum not rescaled": ("keep * sum[2] +", "sum[2] +", texels(magnitude=9.0)),
    "total not rescaled": ("l.a * keep.a +", "l.a +", texels(magnitude=9.0)),
    "maximum never subtracted": ("exp2(m[2] - top)", "exp2(m[2])", texels(magnitude=300.0)),
    "masked keys weigh": ("select(vec4f(), w[1], s[1] > none)", "w[1]", texels(window=5, S=20)),
    "offset forgotten": ("p.offset + a.t", "a.t", texels(offset=20)),
    "lse of another row": ("lse[n * p.T + token]", "lse[token * p.N + n]", texels()),
    "writes another row": ("column(transpose(y.b), i - 4)", "column(transpose(y.b), 2)", texels()),
    "keeps another row": ("vec2u(x.z, at.t.z)", "vec2u(x.w, at.t.w)", texels()),
    "end of a head forgotten": (
        "(c < H / 4) {\n    let t = quad(textureSampleLevel(v",
        "(c + 1 < H / 4) {\n    let t = quad(textureSampleLevel(v",
        texels(H=20),
    ),
}
IMAGES = {
    "the values' rows in the keys' image": ("k[row * p.width + x]", "v[row * p.width + x]", texels()),
    "rows and columns exchanged": (
        "textureStore(k_image, vec2u(x, row)",
        "textureStore(k_image, vec2u(row, x)",
        texels(),
    ),
    "the last texels left out": ("x < p.width; x += 16", "x + 4 < p.width; x += 16", texels()),
    "the last row left out": ("row < p.S)", "row + 1 < p.S)", texels()),
    "queries of another row": ("q[row * p.q_width", "q[(row + 1) * p.q_width", texels()),
    "the last queries left out": ("x < p.q_width; x += 16", "x + 4 < p.q_width; x += 16", texels()),
    "the last token left out": ("row < p.T)", "row + 1 < p.T)", texels()),
}
ONCE = {
    "without scale": ("* (p.scale * LOG2_E)", "* LOG2_E", once()),
    "mask one key too narrow": ("(position >= vec4u(s))", "(position > vec4u(s))", once()),
    "window one key too wide": (
        "(position < vec4u(s + p.window))",
        "(position <= vec4u(s + p.window))",
        once(window=5),
    ),
    "sinks forgotten": (" || s < p.sinks", "", once(window=5, sinks=2)),
    "splits of a team read the same keys": ("first * p.span + split % 8;", "first * p.span;", once()),
    "a team of eight where there are fewer": ("min(8u, p.splits - first)", "8u", once()),
    "a stretch one key long": ("(first + team) * p.span,", "(first + team) * p.span - 1,", once(offset=1023)),
    "groups interleaved": ("kv_head * G + r % G", "r % G * p.K + kv_head", once()),
    "sum not rescaled": ("y = by_row(sum, keep) +", "y = sum +", once(magnitude=9.0)),
    "total not rescaled": ("l = l * keep +", "l = l +", once(magnitude=9.0)),
    "maximum never subtracted": ("exp2(score - top)", "exp2(score)", once(magnitude=300.0)),
    "offset forgotten": ("p.offset + r / G", "r / G", once()),
    "a row not written": ("min(4u, p.T * G - r0)", "min(4u, p.T * G - r0) - 1", once()),
    "end of a head forgotten": ("(c < H / 4) {\n    let x = v", "(c + 1 < H / 4) {\n    let x = v", once(H=20)),
    "keeps another row": ("put(query[c], i, ", "put(query[c], i ^ 1, ", once()),
    "writes another row": ("column(y, i);", "column(y, i ^ 1);", once()),
}
REGISTERS = {
    "every part the first": ("p.group0 + ", "", registers(most_flops=1)),
    "without scale": ("* (p.scale * LOG2_E)", "* LOG2_E", registers()),
    "mask one key too narrow": ("(position >= vec4u(s))", "(position > vec4u(s))", registers()),
    "window one key too wide": (
        "(position < vec4u(s + p.window))",
        "(position <= vec4u(s + p.window))",
        registers(window=5),
    ),
    "window begins late": ("pa.x - p.window + 1", "pa.x - p.window + 2", registers(window=5)),
    "sinks forgotten": (" || s < p.sinks", "", registers(window=5, sinks=2)),
    "end of the first row": ("min(p.S, pb.w + 1)", "min(p.S, pa.x + 1)", registers()),
    "groups interleaved": (
        "let na = ra / G * p.N + kv_head * G + ra % G;",
        "let na = ra / G * p.N + ra % G * p.K + kv_head;",
        registers(),
    ),
    "sum not rescaled": ("y[2] * keep.z +", "y[2] +", registers(magnitude=9.0)),
    "total not rescaled": ("l.b * keep.b +", "l.b +", registers(magnitude=9.0)),
    "maximum never subtracted": ("exp2(score - top)", "exp2(score)", registers(magnitude=300.0)),
    "offset forgotten": ("p.offset + rb / G", "rb / G", registers(offset=20)),
    "keeps another row": ("put(query[c].b, i - 4, x)", "put(query[c].b, i - 3, x)", registers()),
    "writes another row": ("column(y.a, i)", "column(y.a, i ^ 1)", registers()),
    "lse of another row": ("lse[row % p.N * p.T + row / p.N]", "lse[row]", registers()),
    "end of a head forgotten": ("(c < H / 4) {\n    let value", "(c + 1 < H / 4) {\n    let value", registers(H=20)),
}
TILE = {
    "every part the first": ("p.group0 + ", "", tile(most_flops=1)),
    "without scale": ("* (p.scale * LOG2_E)", "* LOG2_E", tile()),
    "mask one key too narrow": ("(position >= vec4u(s))", "(position > vec4u(s))", tile()),
    "mask begins a tile late": ("s + TILE > low ||", "s > low ||", tile()),
    "window one key too wide": (
        "(position < vec4u(s + p.window))",
        "(position <= vec4u(s + p.window))",
        tile(window=5),
    ),
    "window begins late": ("low - p.window + 1", "low - p.window + 2", tile(window=5)),
    "sinks forgotten": ("|| s < p.sinks)", ")", tile(window=5, sinks=2)),
    "last tile forgotten": ("while (s < end)", "while (s + TILE <= end)", tile()),
    "maximum of one part only": (
        "max(max(tops[block], tops[16 + block]), max(tops[32 + block], tops[48 + block]))",
        "tops[block]",
        tile(magnitude=300.0),
    ),
    "a part's sum forgotten": ("+ tops[32 + block] + tops[48 + block];", "+ tops[32 + block];", tile()),
    "sum not rescaled": ("y0 = by_row(y0, keep);", "", tile(magnitude=9.0)),
    "total not rescaled": ("l = l * keep +", "l = l +", tile(magnitude=9.0)),
    "groups interleaved": ("r / G * p.N + kv_head * G + r % G", "r / G * p.N + r % G * p.K + kv_head", tile()),
    "values never staged": ("tile[i / (H / 4) * STRIDE + i % (H / 4)] = v[source];", "", tile()),
    "offset forgotten": ("p.offset + r / G", "r / G", tile(offset=20)),
    "second slice of o from the first": (
        "y1 += w * values(key, part + PARTS)",
        "y1 += w * values(key, part)",
        tile(H=32),
    ),
    "lse of another row": ("lse[n[i] % p.N * p.T + n[i] / p.N]", "lse[n[i]]", tile()),
    "a row not written": ("min(4u, max(rows,", "min(3u, max(rows,", tile()),
}
TILE_F16 = {
    "every part the first": ("p.group0 + ", "", tile_f16(most_flops=1)),
    "mask one key too narrow": ("(position >= vec4u(s))", "(position > vec4u(s))", tile_f16()),
    "lift not taken back": ("- LIFT) / LOG2_E", ") / LOG2_E", tile_f16()),
    "parts of a tile forgotten": ("part < PARTS; part++", "part < PARTS / 2; part++", tile_f16()),
    "total not rescaled": ("l = l * keep +", "l = l +", tile_f16(magnitude=9.0)),
    "keys of another part": ("at4(part * STRIDE + c, ", "at4(c, ", tile_f16()),
    "weights beyond f16": ("const LIFT = 14.0;", "const LIFT = 18.0;", tile_f16()),
}
PLAIN = {
    "every part the first": ("p.group0 + ", "", plain(most_flops=1)),
    "without scale": ("score *= p.scale * LOG2_E;", "score *= LOG2_E;", plain()),
    "mask one key too narrow": ("min(p.S, position + 1)", "min(p.S, position)", plain()),
    "window one key too wide": ("position - s >= p.window", "position - s > p.window", plain(window=5)),
    "sinks forgotten": (" && s >= p.sinks", "", plain(window=5, sinks=2)),
    "groups interleaved": ("n / (p.N / p.K)", "n % p.K", plain()),
    "sum not rescaled": ("y = y * keep +", "y = y +", plain(magnitude=9.0)),
    "total not rescaled": ("l = l * keep +", "l = l +", plain(magnitude=9.0)),
    "offset forgotten": ("p.offset + t;", "t;", plain(1, offset=20)),
    "lse of another row": ("lse[n * p.T + t]", "lse[row]", plain()),
}
PIXELS_PLAIN = {
    "without scale": ("score * p.scale", "score", cells()),
    "mask one key too narrow": ("min(right, position + 1)", "min(right, position)", cells()),
    "window one key too wide": ("position - s >= p.window", "position - s > p.window", cells(window=5)),
    "sinks forgotten": (" && s >= p.sinks", "", cells(window=5, sinks=2)),
    "groups interleaved": ("n / (p.N / p.K)", "n % p.K", cells()),
    "lse of another row": ("lse[n * p.T + t]", "lse[t * p.N + n]", cells()),
    "offset forgotten": ("p.offset + t;", "t;", cells(offset=20)),
    "maximum replaced by the last": ("max(largest, weight)", "weight", pixels("max")),
    "mean of other cells": ("(bottom - top) * (right - left)", "(bottom - top) * 2", pixels("mean")),
    "window's first column forgotten": ("p.col0 + j * p.cols", "j * p.cols", pixels("mean")),
    "other heads": ("let n = p.head0 + ", "let n = ", pixels("max")),
}
# name of the mistakes, file of the kernel, the mistakes
TABLES = [
    ("attention tile", "attention_tile", TILE), ("attention tile_f16", "attention_tile_f16", TILE_F16),
    ("attention registers", "attention_registers", REGISTERS), ("images", "attention_images", IMAGES),
    ("attention texels", "attention_texels", TEXELS), ("attention plain", "attention_plain", PLAIN),
    ("pixels plain", "attention_pixels_plain", PIXELS_PLAIN), ("attention once", "attention_split", ONCE),
]  # fmt: skip
MISTAKES = {f"{of}: {name}": (file, *entry) for of, file, table in TABLES for name, entry in table.items()}
