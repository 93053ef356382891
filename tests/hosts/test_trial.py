"""The trial of variants: the quickest is taken, remembered, and tried again when a kernel's text or the memory changes.

Plan: both hosts on a clock of our own under which one variant is quicker; an answer that is remembered is not measured;
a memory that is damaged or names something unknown counts as empty; no buffer is left.
"""

import itertools
import json

import pytest

from tests.hosts.browser import open_browser
from webgpu import trial
from webgpu.buffers import Buffers
from webgpu.variants import to_try

HEADS = {"N": 4, "K": 2, "H": 16}


def clock(steps):
    """A clock whose runs take `steps` seconds, one after the other; it counts how often it was asked."""
    ticks = itertools.chain.from_iterable((0.0, step) for step in steps)
    base = [0.0]

    def now():
        base.append(base[-1] + next(ticks, 0.0))
        return base[-1]

    now.asked = lambda: len(base) - 1
    return now


@pytest.mark.gpu
@pytest.mark.parametrize("quick", [0, 1])
def test_trial_takes_the_quickest_and_remembers_it(kernels, tmp_path, quick):
    names = {
        operation: to_try(operation, kernels.device.features, kernels.device.software, HEADS["H"])
        for operation in trial.SIZES
    }
    steps = [0.06 if at == quick else 0.9 for every in names.values() for at in range(len(every))]
    before, memory = Buffers.live, tmp_path / "deep" / "variants.json"
    first = trial.try_variants(kernels, **HEADS, memory=memory, now=clock(steps))
    assert first == {operation: every[min(quick, len(every) - 1)] for operation, every in names.items()}
    assert Buffers.live == before
    again = clock([])
    assert trial.try_variants(kernels, **HEADS, memory=memory, now=again) == first and again.asked() == 0


@pytest.mark.gpu
@pytest.mark.parametrize("damage", ["{", "[]", "all of them"])
def test_trial_damaged_memory_counts_as_empty(kernels, tmp_path, damage):
    memory = tmp_path / "variants.json"
    trial.try_variants(kernels, **HEADS, memory=memory, now=clock([0.06] * 9))
    if damage == "all of them":
        damage = json.dumps(dict.fromkeys(json.loads(memory.read_text()), "magic"))
    memory.write_text(damage)
    again = clock([0.06] * 9)
    trial.try_variants(kernels, **HEADS, memory=memory, now=again)
    assert again.asked() > 0 and "magic" not in memory.read_text()


IN_PAGE = """async (heads) => {
  const { requestDevice } = await import("/static/gpu/device.js");
  const { Kernels } = await import("/static/gpu/kernels.js");
  const { tryVariants } = await import("/static/gpu/trial.js");
  const { Buffers } = await import("/static/gpu/buffers.js");
  const kernels = await Kernels.load(await requestDevice());
  const kept = new Map();
  const memory = { getItem: (key) => kept.get(key) ?? null, setItem: (key, value) => kept.set(key, value) };
  const answers = [];
  for (const quick of [0, 1, 2]) {
    let [at, asked, run] = [0, 0, 0];
    const now = () => (asked++ % 2 ? (at += run++ % 2 === quick ? 60 : 900) : at);
    if (quick < 2) kept.clear();
    answers.push([await tryVariants(kernels, heads, memory, now), asked]);
  }
  const forbidden = { getItem() { throw new Error("no"); }, setItem() { throw new Error("no"); } };
  const real = await tryVariants(kernels, heads, forbidden);
  return { answers, real, live: Buffers.live, names: [...kept.keys()] };
}"""


@pytest.mark.chromium
@pytest.mark.timeout(300)
def test_trial_in_the_page_takes_the_quickest_and_remembers_it(chromium):
    with open_browser(chromium) as browser:
        answer = browser.ask(IN_PAGE, HEADS)
    (first, _), (second, _), (kept, asked) = answer["answers"]
    assert first == {"attention": "fa2", "decode": "split"}
    assert second == kept == {"attention": "quads", "decode": "once"} and asked == 0
    assert set(answer["real"]) == {"attention", "decode"} and answer["live"] == 0
    assert all("SwiftShader" in name and "/4/2/16/" in name for name in answer["names"])
