"""Both hosts plan the same work: kernels, grids, bindings, parameters, overrides, buffers and submits, item by item.

Plan: forwards (first, later chunk, decode), whole prefills, queries, on every good config, in each weight format, with
tensors split in pieces; the strict tensor set is refused alike, and so are tensors with NaN. No device is touched.
"""

import dataclasses

import numpy as np
import pytest

from tests.hosts.configs import GOOD, config
from tests.hosts.conftest import MirrorError
from webgpu import queries
from webgpu.config import parse_config
from webgpu.layout import (
    HEAD,
    WeightsMismatch,
    check_finite,
    check_names,
    check_shape,
    check_twin,
    place,
    tensor_shapes,
)
from webgpu.plan import CACHE, RECORD, TRACE, forward, merge_buffers, prefill
from webgpu.trace import batches
from webgpu.variants import first_choice

KEEP = {"cache": CACHE, "trace": TRACE, "record": RECORD}
FORWARDS = [
    ("trace", {"T": 1, "offset": 0, "capacity": 1}),
    ("trace", {"T": 37, "offset": 0, "capacity": 37}),
    ("record", {"T": 64, "offset": 128, "capacity": 200}),
    ("trace", {"T": 8, "offset": 256, "capacity": 264}),
    ("cache", {"T": 1, "offset": 41, "capacity": 99, "logits": True}),
    ("cache", {"T": 41, "offset": 0, "capacity": 99, "logits": True}),
    ("cache", {"T": 1, "offset": 41, "capacity": 99, "logits": True, "temperature": 0}),
    ("cache", {"T": 41, "offset": 0, "capacity": 99, "logits": True, "temperature": 0.7}),
]
WEIGHTS = [("F32", 1 << 27), ("F16", 1 << 27), ("BF16", 5000), ("Q4_1", 1 << 27), ("Q8_0", 5000)]


def plain(value):
    """A plan as the JSON that Node.js sends."""
    if dataclasses.is_dataclass(value):
        return {field.name: plain(getattr(value, field.name)) for field in dataclasses.fields(value)}
    if isinstance(value, list | tuple):
        return [plain(each) for each in value]
    return {key: plain(each) for key, each in value.items()} if isinstance(value, dict) else value


def plan_json(plan) -> dict:
    return {"buffers": dict(plan.buffers), "steps": plain(plan.steps)}


def placed(raw, dtype="F16", most_bytes=1 << 27):
    parsed = parse_config(raw)
    return parsed, place(parsed, dict.fromkeys(tensor_shapes(parsed), dtype), most_bytes)


@pytest.mark.parametrize("name", GOOD)
@pytest.mark.parametrize(("keep", "options"), FORWARDS)
def test_forward_is_planned_alike(name, keep, options, mirror):
    parsed, weights = placed(GOOD[name])
    theirs = mirror.ask("forward", raw=GOOD[name], keep=keep, options=options, dtype="F16", most_bytes=1 << 27)
    assert plan_json(forward(parsed, weights, keep=KEEP[keep], **options)) == theirs


@pytest.mark.parametrize(("dtype", "most_bytes"), WEIGHTS)
@pytest.mark.parametrize("name", ["llama with biases", "qwen2", "qwen3"])
def test_prefill_in_chunks_is_planned_alike(name, dtype, most_bytes, mirror):
    parsed, weights = placed(GOOD[name], dtype, most_bytes)
    options = {"T": 300, "capacity": 310, "chunk": 128, "logits": True, "temperature": 0, "submit_flops": 900_000}
    theirs = mirror.ask("prefill", raw=GOOD[name], keep="trace", options=options, dtype=dtype, most_bytes=most_bytes)
    assert [plan_json(plan) for plan in prefill(parsed, weights, keep=TRACE, **options)] == theirs


@pytest.mark.parametrize("offset", [0, 8132, 8133])
def test_attention_from_images_is_planned_alike(offset, mirror):
    parsed, weights = placed(GOOD["smollm2"])
    options = {"T": 60, "capacity": 9000, "offset": offset, "choice": {"attention": "texels"}}
    ours = plan_json(forward(parsed, weights, keep=CACHE, **options))
    used = {dispatch["kernel"] for step in ours["steps"] for dispatch in step["dispatches"]}
    assert ("attention_texels" in used) == ("attention_images" in used) == (offset + 60 <= 8192)
    ask = {"raw": GOOD["smollm2"], "keep": "cache", "dtype": "F16", "most_bytes": 1 << 27}
    assert ours == mirror.ask("forward", options=options, **ask)


@pytest.mark.parametrize("dtype", ["F16", "Q4_1", "Q8_0"])
@pytest.mark.parametrize("T", [1, 20, 37])
def test_variants_are_planned_alike(dtype, T, mirror):
    parsed, weights = placed(GOOD["smollm2"], dtype)
    options = {"T": T, "capacity": 40, "offset": 3, "logits": True, "choice": {"matmul": "quads", "matvec": "quads"}}
    ours = plan_json(forward(parsed, weights, keep=CACHE, **options))
    used = {dispatch["kernel"] for step in ours["steps"] for dispatch in step["dispatches"]}
    assert ("matmul_quads" in used) == (T > 1)
    assert ("matvec_quads" in used) == (dtype != "F16")
    ask = {"raw": GOOD["smollm2"], "keep": "cache", "dtype": dtype, "most_bytes": 1 << 27}
    assert ours == mirror.ask("forward", options=options, **ask)
    for few in (T, 5):
        options |= {"T": few, "choice": first_choice([], software=False)}
        ours = plan_json(forward(parsed, weights, keep=CACHE, **options))
        assert ours == mirror.ask("forward", options=options, **ask)
        used = {dispatch["kernel"] for step in ours["steps"] for dispatch in step["dispatches"]}
        assert {"matmul_groups" if few > 32 else "matmul_few_groups" if few > 1 else "matvec_groups"} < used
        assert not used & {"matmul", "matvec", "rmsnorm"}


@pytest.mark.parametrize(("dtype", "most_bytes"), WEIGHTS)
@pytest.mark.parametrize("name", GOOD)
def test_weights_are_placed_alike(name, dtype, most_bytes, mirror):
    _, weights = placed(GOOD[name], dtype, most_bytes)
    assert mirror.ask("layout", raw=GOOD[name], dtype=dtype, most_bytes=most_bytes) == plain(weights)
    if name != "smollm2":
        assert all(piece.bytes <= max(most_bytes, 16 * 1024) for tensor in weights.values() for piece in tensor.pieces)


WINDOW = {"layer": 1, "T": 900, "head0": 1, "heads": 2, "row0": 3, "rows": 890, "col0": 0, "cols": 900}
QUERIES = [
    ("window", {**WINDOW, "out_rows": 64, "out_cols": 48, "reduce": "max"}),
    ("window", {**WINDOW, "out_rows": 890, "out_cols": 900, "reduce": "mean"}),
    ("window", {**WINDOW, "out_rows": 1, "out_cols": 1, "reduce": "mean"}),
    ("window", {**WINDOW, "rows": 5, "cols": 7, "out_rows": 20, "out_cols": 21, "reduce": "max"}),
    ("window", {**WINDOW, "out_rows": 64, "out_cols": 48, "reduce": "max", "choice": {"cells": "quads"}}),
    ("thumbnails", {"layer0": 0, "layers": 2, "T": 900, "out": 20, "reduce": "max"}),
    ("thumbnails", {"layer0": 1, "layers": 1, "T": 3000, "out": 33, "reduce": "mean", "choice": {"cells": "quads"}}),
    ("logits", {"sources": [[3, 5, 3]]}),
    ("logits", {"sources": [[3, 899, 1]]}),
    ("lens", {"sources": [[0, 5, 3], [3, 899, 1]]}),
    ("lens", {"sources": [[0, 5, 32], [3, 899, 1]], "choice": {"lens": "groups", "norm": "groups"}}),
]


@pytest.mark.parametrize(("query", "options"), QUERIES)
@pytest.mark.parametrize(("name", "most_bytes"), [("llama", 1 << 27), ("smollm2", 1 << 27), ("qwen2 sliding", 5000)])
def test_query_is_planned_alike(name, most_bytes, query, options, mirror):
    parsed, weights = placed(GOOD[name], "F16", most_bytes)
    theirs = mirror.ask("query", raw=GOOD[name], name=query, options=options, dtype="F16", most_bytes=most_bytes)
    assert plan_json(getattr(queries, query)(parsed, weights, **options)) == theirs
    assert mirror.ask("rows", raw=GOOD[name]) == queries.rows_per_query(parsed)
    for T, out in ((14, 14), (256, 20), (8192, 40)):
        assert mirror.ask("layers", raw=GOOD[name], T=T, out=out) == queries.layers_per_query(parsed, T, out)


@pytest.mark.parametrize("most", [1, 7, 100])
def test_lens_batches_hold_every_row_once(most, mirror):
    sources = [[0, 0, 10], [1, 3, 5], [4, 0, 1], [5, 0, 13]]
    ours = [plain(batch) for batch in batches(sources, most)]
    rows = [(layer, row) for batch in ours for layer, row0, count in batch for row in range(row0, row0 + count)]
    assert rows == [(layer, row) for layer, row0, count in sources for row in range(row0, row0 + count)]
    assert all(sum(count for _, _, count in batch) <= most for batch in ours)
    assert mirror.ask("batches", sources=sources, most=most) == ours


def test_memory_is_linear_in_tokens():
    parsed, weights = placed(GOOD["smollm2"])
    sizes = {}
    for T in (2048, 4096, 8192):
        sizes[T] = sum(merge_buffers(prefill(parsed, weights, T=T, capacity=T, keep=TRACE)).values())
    assert sizes[8192] - sizes[4096] == pytest.approx(2 * (sizes[4096] - sizes[2048]), rel=0.01)
    assert sizes[8192] < 1.6e9


def test_submits_follow_their_budget():
    parsed, weights = placed(GOOD["smollm2"])
    options = {"T": 64, "capacity": 64, "offset": 0, "keep": TRACE}
    small, usual, whole = (forward(parsed, weights, **options, submit_flops=n) for n in (50_000_000, None, 10**12))
    assert len(small.steps) > 2 * len(usual.steps) > 2 * len(whole.steps) == 2


def test_a_decode_step_is_one_submit():
    parsed, weights = placed(GOOD["smollm2"])
    options = {"T": 1, "offset": 100, "capacity": 128, "keep": CACHE, "logits": True, "temperature": 0}
    assert len(forward(parsed, weights, **options).steps) == 1


def test_a_long_prefill_is_many_short_submits():
    parsed, weights = placed(GOOD["smollm2"])
    steps = [step for plan in prefill(parsed, weights, T=512, capacity=512, keep=TRACE) for step in plan.steps]
    assert len(steps) > 60
    assert max(step.flops for step in steps) <= 700_000_000


@pytest.mark.parametrize(
    ("change", "code"),
    [
        (lambda names: names[1:], "tensor-missing"),
        (lambda names: names[3:], "tensor-missing"),
        (lambda names: [*names, "extra.weight"], "tensor-unexpected"),
        (lambda names: [*names, "b", "a"], "tensor-unexpected"),
        (lambda names: [*names, "x\u202e" * 90], "tensor-unexpected"),
        (lambda names: [*names, "model.layers.3.self_attn.rotary_emb.inv_freq"], "tensor-unexpected"),
        (lambda names: [*names, "model.layers.0.self_attn.rotary_emb.cos"], "tensor-unexpected"),
    ],
)
def test_tensor_set_is_strict_in_the_same_words(change, code, mirror):
    raw = config()
    names = list(tensor_shapes(parse_config(raw)))
    check_names(parse_config(raw), names)
    assert mirror.ask("names", raw=raw, names=names) is None
    with pytest.raises(WeightsMismatch) as ours:
        check_names(parse_config(raw), change(names))
    with pytest.raises(MirrorError) as theirs:
        mirror.ask("names", raw=raw, names=change(names))
    assert (theirs.value.code, theirs.value.message) == (ours.value.code, str(ours.value))
    assert ours.value.code == code
    assert str(ours.value).isascii() and len(str(ours.value)) < 300


@pytest.mark.parametrize("tied", [True, False])
def test_extras_that_transformers_leaves_unread_pass(tied, mirror):
    raw = config(tie_word_embeddings=tied)
    names = list(tensor_shapes(parse_config(raw))) + ([HEAD] if tied else [])
    names += [f"model.layers.{layer}.self_attn.rotary_emb.inv_freq" for layer in range(3)]
    check_names(parse_config(raw), names)
    assert mirror.ask("names", raw=raw, names=names) is None


def stored(values: np.ndarray) -> dict:
    """A tensor for the page's host, which takes bytes; uint16 is bf16."""
    dtype = {"float32": "F32", "float16": "F16", "uint16": "BF16"}[values.dtype.name]
    return {"dtype": dtype, "bytes": list(values.tobytes())}


def test_head_of_tied_model_must_be_the_embedding_in_the_same_words(mirror):
    embed = np.arange(6, dtype=np.float16).reshape(2, 3)
    check_twin(embed, embed.copy())
    assert mirror.ask("twin", embed=stored(embed), head=stored(embed)) is None
    for head in (embed + np.float16(1), embed.astype(np.float32)):
        with pytest.raises(WeightsMismatch) as ours:
            check_twin(embed, head)
        with pytest.raises(MirrorError) as theirs:
            mirror.ask("twin", embed=stored(embed), head=stored(head))
        assert (theirs.value.code, theirs.value.message) == (ours.value.code, str(ours.value))
        assert ours.value.code == "tensor-untied"


BITS = {  # storage -> bits of its largest number, NaN, infinity, minus infinity
    "F32": (np.uint32, np.float32, 0x7F7FFFFF, (0x7FC00000, 0x7F800001, 0x7F800000, 0xFF800000)),
    "F16": (np.uint16, np.float16, 0x7BFF, (0x7E00, 0xFC01, 0x7C00, 0xFC00)),
    "BF16": (np.uint16, np.uint16, 0x7F7F, (0x7FC0, 0xFF81, 0x7F80, 0xFF80)),
}


@pytest.mark.parametrize("shift", [0, 1, 2], ids="bytes begin at {}".format)
@pytest.mark.parametrize("dtype", BITS)
def test_tensor_that_is_not_finite_is_refused_in_the_same_words(dtype, shift, mirror):
    word, kind, largest, bad = BITS[dtype]
    words = np.full((3, 5), largest, word)
    check_finite("w", words.view(kind))
    assert mirror.ask("finite", name="w", shift=shift, **stored(words.view(kind))) is None
    for bits in bad:
        words[2, 4] = bits
        with pytest.raises(WeightsMismatch, match=r"^w holds") as ours:
            check_finite("w", words.view(kind))
        with pytest.raises(MirrorError) as theirs:
            mirror.ask("finite", name="w", shift=shift, **stored(words.view(kind)))
        assert (theirs.value.code, theirs.value.message) == (ours.value.code, str(ours.value))
        assert ours.value.code == "tensor-not-finite"


def test_tensor_of_wrong_shape_is_refused_in_the_same_words(mirror):
    check_shape("w", (2, 3), (2, 3))
    with pytest.raises(WeightsMismatch) as ours:
        check_shape("w", (3, 2), (2, 3))
    with pytest.raises(MirrorError) as theirs:
        mirror.ask("shape", name="w", shape=[3, 2], wanted=[2, 3])
    assert (
        theirs.value.message
        == str(ours.value)
        == ("w has shape [3, 2], but config.json says [2, 3]: fetch the model again.")
    )
