"""The trial of variants: the quickest is taken, remembered, and tried again when a kernel's text or the memory changes.

Plan: both hosts on a clock of our own under which one variant is quicker; an answer that is remembered is not measured;
a memory that is damaged or names something unknown counts as empty; a wrong kernel is out however quick; sizes and
format are part of what is remembered; the page tries nothing before the first prompt; no buffer is left.
"""

import itertools
import json

import pytest

from tests.kernels.drivers import ROOT
from webgpu import trial
from webgpu.buffers import Buffers
from webgpu.kernels import Kernels
from webgpu.ops import F32, Q4_1
from webgpu.variants import to_try

SIZES = {"N": 4, "K": 2, "H": 16, "D": 64, "F": 96, "fmt": Q4_1}
OPERATIONS = ("attention", "decode", "matmul", "matvec")


def clock(steps):
    """A clock whose runs take `steps` seconds, one after the other; it counts how often it was asked."""
    ticks = itertools.chain.from_iterable((0.0, step) for step in steps)
    base = [0.0]

    def now():
        base.append(base[-1] + next(ticks, 0.0))
        return base[-1]

    now.asked = lambda: len(base) - 1
    return now


def tried(kernels, **sizes):
    device = kernels.device
    return {each: to_try(each, device.features, device.software, **SIZES | sizes) for each in OPERATIONS}


@pytest.mark.gpu
@pytest.mark.parametrize("quick", [0, 1])
def test_trial_takes_the_quickest_and_remembers_it(kernels, tmp_path, quick):
    names = tried(kernels)
    assert all(len(every) > 1 for every in names.values()), "nothing would be compared"
    steps = [0.06 if at == quick else 0.9 for every in names.values() for at in range(len(every))]
    before, memory = Buffers.live, tmp_path / "deep" / "variants.json"
    first = trial.try_variants(kernels, SIZES, memory=memory, now=clock(steps))
    assert first == {operation: every[quick] for operation, every in names.items()}
    assert Buffers.live == before
    again = clock([])
    assert trial.try_variants(kernels, SIZES, memory=memory, now=again) == first and again.asked() == 0


@pytest.mark.gpu
def test_trial_remembers_for_these_sizes_and_this_format(kernels, tmp_path):
    memory = tmp_path / "variants.json"
    trial.try_variants(kernels, SIZES, memory=memory, now=clock([0.06] * 9))
    attention = sum(len(tried(kernels, H=8)[each]) for each in ("attention", "decode"))
    for changed, again in (({"F": 128}, 4), ({"H": 8}, attention), ({"D": 20}, 0)):
        now = clock([0.06] * 9)
        found = trial.try_variants(kernels, SIZES | changed, memory=memory, now=now)
        assert now.asked() == 2 * again  # the variants of two operations, each timed once
        assert ("matmul" in found) == (changed != {"D": 20})  # rows of any length have one product
    now = clock([0.06] * 9)
    assert trial.try_variants(kernels, SIZES | {"fmt": F32}, memory=memory, now=now)["matvec"] == "registers"
    assert now.asked() == 4  # on a CPU driver registers alone take one token in this format


@pytest.mark.gpu
@pytest.mark.parametrize("damage", ["{", "[]", "all of them"])
def test_trial_damaged_memory_counts_as_empty(kernels, tmp_path, damage):
    memory = tmp_path / "variants.json"
    trial.try_variants(kernels, SIZES, memory=memory, now=clock([0.06] * 9))
    if damage == "all of them":
        damage = json.dumps(dict.fromkeys(json.loads(memory.read_text()), "magic"))
    memory.write_text(damage)
    again = clock([0.06] * 9)
    trial.try_variants(kernels, SIZES, memory=memory, now=again)
    assert again.asked() > 0 and "magic" not in memory.read_text()


@pytest.mark.gpu
def test_trial_leaves_out_a_variant_that_is_quick_and_wrong(device):
    text = (ROOT / "webgpu" / "matvec_quads.wgsl").read_text("utf-8")
    assert text.count("i++) {\n    let lo") == 1
    wrong = Kernels(device, {"matvec_quads.wgsl": text.replace("i++) {\n    let lo", "i += 2) {\n    let lo")})
    steps = [0.06 if at else 0.9 for every in tried(wrong).values() for at in range(len(every))]
    found = trial.try_variants(wrong, SIZES, now=clock(steps))
    assert (found["matmul"], found["matvec"]) == ("quads", "registers")


IN_PAGE = """async (sizes) => {
  const { requestDevice } = await import("/static/gpu/device.js");
  const { Kernels } = await import("/static/gpu/kernels.js");
  const { recallVariants, tryVariants } = await import("/static/gpu/trial.js");
  const { Buffers } = await import("/static/gpu/buffers.js");
  const before = Buffers.live;
  const kernels = await Kernels.load(await requestDevice());
  const kept = new Map();
  const memory = { getItem: (key) => kept.get(key) ?? null, setItem: (key, value) => kept.set(key, value) };
  const answers = [];
  for (const quick of [0, 1, 2]) {
    let [at, asked, run] = [0, 0, 0];
    const now = () => (asked++ % 2 ? (at += run++ % 2 === quick ? 60 : 900) : at);
    if (quick < 2) kept.clear();
    answers.push([await tryVariants(kernels, sizes, memory, now), asked]);
  }
  const recalled = await recallVariants(kernels, sizes, memory);
  const other = await recallVariants(kernels, { ...sizes, F: 160 }, memory);
  const forbidden = { getItem() { throw new Error("no"); }, setItem() { throw new Error("no"); } };
  const real = await tryVariants(kernels, sizes, forbidden);
  let turn = 0;
  const wrongIsQuick = () => (turn++ % 2 ? (turn % 4 ? 900 : 60) : 0);
  const text = kernels.text.bind(kernels);
  const spoiled = await Kernels.load(kernels.device);
  spoiled.text = async (file) => (await text(file)).replace("fma(b.sum, scale.y,", "fma(b.sum, 0,");
  const honest = await tryVariants(spoiled, sizes, forbidden, wrongIsQuick);
  return { answers, real, recalled, other, honest, live: Buffers.live - before, names: [...kept.keys()] };
}"""


@pytest.mark.chromium
@pytest.mark.timeout(300)
def test_trial_in_the_page_takes_the_quickest_and_remembers_it(browser):
    answer = browser.ask(IN_PAGE, SIZES)
    (first, _), (second, _), (kept, asked) = answer["answers"]
    assert first == {"attention": "fa2", "decode": "split", "matmul": "registers", "matvec": "registers"}
    quads = {"attention": "texels", "decode": "once", "matmul": "quads", "matvec": "quads"}
    assert second == kept == answer["recalled"] == quads and asked == 0
    assert set(answer["other"]) == {"attention", "decode"}, "products of another width are another question"
    assert set(answer["real"]) == set(quads) and answer["live"] == 0
    assert answer["honest"]["matvec"] == "registers", "a wrong kernel has no speed"
    assert all("SwiftShader" in name for name in answer["names"])
    assert all("/4/2/16/" in name or "/64/96/3/" in name for name in answer["names"]) and len(answer["names"]) == 4


TUNED = """async (ids) => {
  const { tune } = await import("/static/app/tune.js");
  const kept = new Map();
  let asked = 0;
  const memory = { getItem: (key) => (asked++, kept.get(key) ?? null), setItem: (key, value) => kept.set(key, value) };
  const until = async (done) => {
    for (let turns = 0; !done(); turns++) {
      if (turns > 2000) throw new Error(`waited for ${done}`);
      await new Promise((resolve) => setTimeout(resolve, 20));
    }
  };
  tune(model, { quietMs: 0, memory })();
  if (asked) throw new Error("a trial where a CPU stands in for a GPU");
  const drawn = tune(model, { quietMs: 0, memory, here: true });
  await model.kernels.fence();
  await until(() => asked >= 4);
  await new Promise((resolve) => setTimeout(resolve, 300));
  const before = asked;
  (await model.run(ids)).destroy();
  const { choice } = model;
  drawn();
  drawn();
  await until(() => kept.size === 4 && model.choice !== choice);
  for (const key of kept.keys()) kept.set(key, { attention: "texels", decode: "once" }[key.split("/")[1]] ?? "quads");
  const found = model.choice;
  tune(model, { quietMs: 1e9, memory, here: true });
  await until(() => model.choice !== found);
  (await model.run(ids)).destroy();
  return { before, started: choice, next: model.choice };
}"""


@pytest.mark.chromium
@pytest.mark.timeout(300)
def test_page_tries_after_the_first_prompt_and_begins_with_what_it_remembers(llama):
    answer = llama.ask(TUNED, [5, 9, 17])
    one_text = {"matvec": "registers"}  # of float32 there is one here, whatever the memory says
    assert answer["before"] == 4, "a trial, which asks for each operation again, began before the first prompt"
    assert answer["next"] == answer["started"] | {"attention": "texels", "decode": "once", "matmul": "quads"} | one_text
