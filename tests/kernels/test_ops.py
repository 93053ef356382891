"""From sizes to dispatches: folding, choice of kernel, names, refusals with a control case beside each."""

import pytest

from webgpu import lens_ops, next_token, ops
from webgpu.kernels import load_manifest

CALL = {"T": 5, "S": 5, "N": 4, "K": 2, "H": 16, "offset": 0, "window": 0, "sinks": 0, "scale": 0.25}
WINDOW = {
    "head0": 0,
    "heads": 4,
    "row0": 0,
    "rows": 5,
    "col0": 0,
    "cols": 5,
    "out_rows": 5,
    "out_cols": 5,
    "reduce": "max",
}


def attention(**changed):
    return ops.attention("q", "k", "v", "o", "lse", **{**CALL, **changed}, scratch="scratch")


def probs(**changed):
    return ops.attention_probs("q", "k", "lse", "out", **{**CALL, **WINDOW, **changed})


@pytest.mark.parametrize("groups", [0, 1, 65_535, 65_536, 200_000])
def test_fold_covers_every_group(groups):
    x, y, z = ops.fold(groups)
    assert x <= 65_535 and y <= 65_535 and z == 1 and x * y >= max(groups, 1)


def test_keys_that_fit_into_no_image_leave_texels_to_the_first():
    most = {"T": 64, "K": 2, "N": 2, "H": 8}
    for S, kernel in ((8192, "attention_texels"), (8193, "attention_fa2")):
        assert attention(**most, S=S, offset=S - 64, variant="texels")[-1].kernel == kernel
    wide = attention(**most | {"K": 4097, "N": 4097}, S=64, offset=0, variant="texels")
    assert wide[-1].kernel == "attention_fa2"


def test_every_dispatch_names_what_the_manifest_declares():
    manifest = load_manifest()
    tables = [("w", 0, 100)]
    scratch = {name: name for name in lens_ops.lens_scratch(tables, rows=3, D=8, V=100, fmt=0)}
    streaming = ("registers", "texels", "tile", "tile_f16", "plain")
    dispatches = [
        ops.embedding("ids", "w", "x", T=5, D=8, v0=0, v_count=9, fmt=0),
        ops.rmsnorm("x", "w", "y", rows=5, width=8, eps=1e-5),
        *(ops.matmul("x", "w", None, "y", T=T, d_in=d_in, d_out=8, fmt=1) for T, d_in in ((1, 8), (5, 8), (5, 7))),
        *(ops.matmul("x", "w", None, "y", T=T, d_in=32, d_out=8, fmt=3, variant="quads") for T in (1, 5)),
        *(ops.matmul("x", "w", None, "y", T=T, d_in=32, d_out=8, fmt=3, variant="groups") for T in (1, 5, 33)),
        ops.rmsnorm("x", "w", "y", rows=5, width=8, eps=1e-5, variant="groups"),
        ops.matmul("x", "w", None, "y", T=5, d_in=8, d_out=8, fmt=1, variant="plain"),
        ops.rope("x", "x", "cos", "sin", "q", "k", "v", T=5, N=2, K=1, H=8),
        *attention(),
        *(each for name in streaming for each in attention(variant=name)),
        *attention(T=1),
        *attention(T=1, variant="once"),
        *probs(),
        *probs(out_rows=2),
        *probs(variant="quads"),
        *probs(variant="quads", out_rows=2),
        *probs(variant="plain"),
        ops.swiglu("x", "y", T=5, F=3),
        *lens_ops.lens("x", tables, "t", "i", "l", "s", **scratch, rows=3, D=8, V=100, fmt=0),
        *lens_ops.lens("x", tables, "t", "i", "l", "s", **scratch, rows=3, D=32, V=100, fmt=4, variant="quads"),
        *lens_ops.lens("x", tables, "t", "i", "l", "s", whole="a", rows=3, D=32, V=100, fmt=4, variant="groups"),
        next_token.candidates("l", "best", V=100, temperature=1.0),
        next_token.choose("best", "ids", "token"),
    ]
    assert {d.kernel for d in dispatches} == {name for name in manifest if not name.startswith("ceiling_")}
    for d in dispatches:
        entry = manifest[d.kernel]
        assert set(d.overrides) == set(entry["overrides"])
        assert list(d.params) and set(d.params) == {name for name, _ in entry["params"]}
        assert set(d.bindings) == {name for name, _ in entry["bindings"]}


@pytest.mark.parametrize(("T", "rows"), [(8, 8), (9, 16), (16, 16), (17, 8), (24, 8), (25, 16), (64, 16), (300, 16)])
def test_matmul_quads_take_the_rows_that_leave_few_empty(T, rows):
    dispatch = ops.matmul("x", "w", None, "y", T=T, d_in=32, d_out=64, fmt=3, variant="quads")
    assert dispatch.overrides["TALL"] == (rows == 16)
    assert dispatch.grid[0] == -(-T // rows)  # two quads of 32 columns in a workgroup


def test_attention_one_token_splits_the_keys():
    assert [d.kernel for d in attention(T=1, S=200)] == ["attention_decode", "attention_merge"]
    assert [d.kernel for d in attention(T=2)] == ["attention_fa2"]


REFUSED = [
    ("head dim not a multiple of 4", lambda: attention(H=18), lambda: attention(H=20), "head dimension is 18"),
    ("head dim too large", lambda: attention(H=260), lambda: attention(H=256), "head dimension is 260"),
    ("heads that do not group", lambda: attention(N=5), lambda: attention(N=6), "5 query heads cannot share 2"),
    ("text too long", lambda: attention(S=30_000, H=128), lambda: attention(S=8192, H=128), "30000 keys"),
    ("unknown reduction", lambda: probs(reduce="min"), lambda: probs(reduce="mean"), "'min'"),
    ("window outside", lambda: probs(row0=1), lambda: probs(row0=1, rows=4, out_rows=4), "rows 1\\+5"),
    (
        "odd rotary head",
        lambda: ops.rope("x", "x", "c", "s", "q", "k", "v", T=1, N=1, K=1, H=7),
        lambda: ops.rope("x", "x", "c", "s", "q", "k", "v", T=1, N=1, K=1, H=6),
        "head dimension is 7",
    ),
]


@pytest.mark.parametrize(("bad", "good", "words"), [case[1:] for case in REFUSED], ids=[case[0] for case in REFUSED])
def test_ops_unsupported_shape_is_refused_in_words(bad, good, words):
    with pytest.raises(ops.UnsupportedShape, match=words):
        bad()
    good()


@pytest.mark.parametrize(("changed", "words"), [({"k": 17}, "k is 17"), ({"D": 12}, "width is 12")])
def test_lens_unsupported_shape_is_refused_in_words(changed, words):
    sizes = {"rows": 3, "D": 16, "V": 100, "fmt": 0, "k": 16}
    scratch = dict.fromkeys(("target_logit", "part_logits", "part_ids", "part_stats"), "scratch")
    lens_ops.lens("x", [("w", 0, 100)], "t", "i", "l", "s", **scratch, **sizes)
    with pytest.raises(ops.UnsupportedShape, match=words):
        lens_ops.lens("x", [("w", 0, 100)], "t", "i", "l", "s", **scratch, **(sizes | changed))
