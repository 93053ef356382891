"""No dispatch alone passes the work of a submit where it can be cut, and cutting changes no number.

Plan: slices and chunks as numbers; a prefill and a lens of a real model's sizes, dispatch by dispatch; both hosts plan
them alike; a model in floats and in blocks runs in slices, bit for bit.
"""

import numpy as np
import pytest

from tests.blocks import in_blocks
from tests.checkpoints import checkpoint
from tests.hosts.configs import GOOD
from tests.hosts.test_plan import placed, plan_json
from webgpu import lens_ops, queries
from webgpu import plan as plan_module
from webgpu.plan import TRACE, prefill
from webgpu.slices import chunks, slices

MOST = 40_000_000
MOST_LONG = 100_000_000  # 64 queries at the end of 900 tokens are 132 million


@pytest.mark.parametrize(
    ("given", "cut"),
    [
        ((576, 576), [(0, 576)]),
        ((576, 575), [(0, 384), (384, 192)]),
        ((1536, 500), [(0, 384), (384, 384), (768, 384), (1152, 384)]),
        ((1536, 900), [(0, 768), (768, 768)]),
        ((300, 1), [(0, 128), (128, 128), (256, 44)]),
        ((5000, 3000, 2048), [(0, 2048), (2048, 2048), (4096, 904)]),
    ],
)
def test_slices_are_even_multiples(given, cut):
    assert slices(*given) == cut


def test_chunks_get_smaller_behind_a_long_cache():
    assert chunks(600, 256, 10, None) == [(0, 256), (256, 256), (512, 88)]
    cut = chunks(600, 256, 10, 1_000_000)
    assert cut == [(0, 256), (256, 192), (448, 128), (576, 24)]
    assert all(10 * count * (offset + count) <= 1_000_000 for offset, count in cut)
    assert chunks(100, 32, 10, 1) == [(0, 32), (32, 32), (64, 32), (96, 4)]


def test_rows_of_the_lens_come_in_eights():
    """Nine rows cost what sixteen do: a question is a multiple of eight, and a budget counts them so."""
    assert [queries.taken(rows) for rows in (1, 4, 5, 8, 9, 35)] == [4, 4, 8, 8, 16, 40]
    parsed, weights = placed(GOOD["smollm2"], "Q8_0")
    assert queries.rows_per_query(parsed) == 32
    for rows, tables in ((1, 1), (8, 2), (9, 3)):  # 226, 453 and 906 million operations
        plan = queries.lens(parsed, weights, sources=[(3, 0, rows)], choice={"lens": "quads"}, submit_flops=320_000_000)
        steps = [step for step in plan.steps if any(each.kernel == "lens_quads" for each in step.dispatches)]
        assert len(steps) == tables and max(step.flops for step in steps) <= 320_000_000


def work(dispatch) -> int:
    """Operations of the dispatches that multiply matrices or attend; 0 for others."""
    p = dispatch.params
    if dispatch.kernel.startswith(("matmul", "matvec")):
        return 2 * p.get("T", 1) * p["d_in"] * p["d_out"]
    if dispatch.kernel == "lens_quads":
        return 2 * queries.taken(p["rows"]) * p["D"] * p["v_count"]
    if dispatch.kernel != "attention_texels":
        return 0
    groups = p["K"] * -(-p["T"] * p["N"] // (64 * p["K"]))
    return 4 * p["T"] * p["S"] * p["N"] * 64 * dispatch.grid[0] // groups


def test_no_dispatch_of_a_prompt_or_a_lens_passes_its_budget():
    parsed, weights = placed(GOOD["smollm2"], "Q8_0")
    choice = {"attention": "texels", "matmul": "quads", "lens": "quads"}
    plans = prefill(parsed, weights, T=900, capacity=900, keep=TRACE, choice=choice, submit_flops=MOST_LONG)
    plans.append(queries.lens(parsed, weights, sources=[(3, 0, 35)], choice=choice, submit_flops=MOST_LONG))
    dispatches = [dispatch for plan in plans for step in plan.steps for dispatch in step.dispatches]
    assert max(map(work, dispatches)) <= MOST_LONG  # a lens counts the rows of its last eight whole
    assert max(step.flops for plan in plans for step in plan.steps) <= 1.01 * MOST_LONG
    parts = []
    for plan in plans[:-1]:  # each column of a product is written once, layer by layer
        made = [each for step in plan.steps for each in step.dispatches if each.bindings.get("out") == "gate_up"]
        columns = [(each.params["out_col0"], each.params["out_col0"] + each.params["d_out"]) for each in made]
        one = columns[: len(columns) // parsed.L]
        assert columns == one * parsed.L and (len(one) > 1 or plan.T < 32)
        assert [start for start, _ in one] + [2 * parsed.F] == [0] + [end for _, end in one]
        attending = [each for step in plan.steps for each in step.dispatches if each.kernel == "attention_texels"]
        starts = [each.params["group0"] for each in attending]
        ends = [each.params["group0"] + each.grid[0] for each in attending]
        one = len(attending) // parsed.L
        assert starts[:one] == [0, *ends[: one - 1]] and starts == starts[:one] * parsed.L
        assert ends[-1] == parsed.K * -(-plan.T * parsed.N // (64 * parsed.K))
        parts.append(one)
    assert max(parts) == 2  # 64 queries at the end
    tiles = [each.params for each in dispatches if each.kernel == "lens_quads"]
    assert sum(each["v_count"] for each in tiles) == parsed.V
    assert [each["part0"] * each["tile"] for each in tiles] == [each["v0"] for each in tiles]


def test_images_are_made_in_the_submit_that_reads_them():
    """One set serves every run on a device, so what runs between two submits may write it."""
    parsed, weights = placed(GOOD["smollm2"], "Q8_0")
    plans = prefill(parsed, weights, T=900, capacity=900, keep=TRACE, choice={"attention": "texels"}, submit_flops=MOST)
    parts = 0
    for step in (step for plan in plans for step in plan.steps):
        images: dict[str, str] = {}
        for each in step.dispatches:
            if each.kernel == "attention_images":
                images = {each.bindings[f"{name}_image"]: each.bindings[name] for name in "qkv"}
            if each.kernel == "attention_texels":
                q, k, v = (images[each.bindings[name]].partition("@")[0] for name in "qkv")
                assert [q, k, v] == [f"{name}.{q.removeprefix('q.')}" for name in "qkv"]
                parts += each.params["group0"] > 0
    assert parts, "nothing was cut"


@pytest.mark.parametrize(("dtype", "most_bytes"), [("F32", 1 << 27), ("Q4_1", 1 << 27), ("Q8_0", 1 << 22)])
def test_slices_are_planned_alike(dtype, most_bytes, mirror):
    parsed, weights = placed(GOOD["smollm2"], dtype, most_bytes)
    ask = {"raw": GOOD["smollm2"], "dtype": dtype, "most_bytes": most_bytes}
    options = {"T": 700, "capacity": 700, "submit_flops": MOST, "logits": True}
    options |= {"choice": {"attention": "texels"}} if dtype == "Q8_0" else {}
    theirs = mirror.ask("prefill", keep="trace", options=options, **ask)
    assert [plan_json(each) for each in prefill(parsed, weights, keep=TRACE, **options)] == theirs
    for name in ("lens", "logits"):
        options = {"sources": [[3, 5, 30]], "submit_flops": MOST, "choice": {"lens": "quads"}}
        theirs = mirror.ask("query", name=name, options=options, **ask)
        ours = plan_json(getattr(queries, name)(parsed, weights, **options))
        assert ours == theirs
        bound = [each["bindings"] for step in ours["steps"] for each in step["dispatches"]]
        assert any("@" in each.get("table", each.get("weight", "")) for each in bound)


@pytest.mark.gpu
@pytest.mark.parametrize("blocks", [False, True])
def test_slices_change_no_number(blocks, load, monkeypatch, tmp_path):
    expected = checkpoint("llama-gqa" if blocks else "llama-biases")
    model = load(in_blocks(expected.folder, tmp_path / "blocks") if blocks else expected.folder)
    ids = expected.input_ids.tolist()
    monkeypatch.setattr(lens_ops, "LENS_TILE", 8)  # or the small vocabulary is one tile
    answers = []
    for most_flops in (10**12, 1):
        monkeypatch.setattr(plan_module, "SUBMIT_FLOPS", most_flops)
        monkeypatch.setattr(queries, "SUBMIT_FLOPS", most_flops)
        trace = model.run(ids)
        answers.append((trace.read("logits"), *trace.lens().values(), trace.ranks(len(ids) - 1, 5)))
        trace.destroy()
    for whole, cut in zip(*answers, strict=True):
        np.testing.assert_array_equal(cut, whole)


@pytest.mark.gpu
def test_a_prompt_that_runs_between_the_submits_of_another_changes_no_number(load, monkeypatch):
    """A page may ask twice at once; the images of queries, keys and values are one set for both."""
    model = load(checkpoint("llama-gqa").folder)
    monkeypatch.setattr(model, "choice", {**model.choice, "attention": "texels"})
    monkeypatch.setattr(plan_module, "SUBMIT_FLOPS", 1)
    ids, others = [i % 7 + 1 for i in range(70)], [i % 5 + 1 for i in range(90)]
    read = []
    for between in (None, lambda _: model.run(others).destroy()):
        trace = model.run(ids, progress=between)
        read.append([trace.read("resid_post", layer) for layer in range(model.config.L)])
        trace.destroy()
    np.testing.assert_array_equal(read[1], read[0])
