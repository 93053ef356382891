"""Two hundred prompts in a row, with other heads and some text written on, leave memory where it was: device and page.

The same few prompts come round, so that whatever grows has no reason to. Counted are the buffers in use and
their bytes, and after a garbage collection the page's heap, its nodes and its listeners.
"""

import pytest
from playwright.sync_api import CDPSession, Page

from tests.page.harness import Server, Watched, wait_lens, wait_picture
from tests.tolerances import PAGE_HEAP_BYTES, PAGE_NODES

pytestmark = [pytest.mark.chromium, pytest.mark.slow]

PROMPTS = """async ([start, count]) => {
  const { setPrompt } = await own("/app/session.js");
  const { store } = await own("/app/state.js");
  const wall = document.querySelector("#wall");
  for (let i = start; i < start + count; i += 1) {
    const before = store.state.trace;
    setPrompt("the cat ".repeat(1 + (i % 4)) + "sat", { now: true });
    while (store.state.trace === before || wall.dataset.drawn !== wall.dataset.layers) {
      await new Promise((resolve) => setTimeout(resolve));
    }
    if (i % 5) continue;
    store.set({ layer: (i / 5) % 4, head: Math.floor(i / 10) % 4 });
    const ids = store.state.shown.map((piece) => piece.id);
    const sampling = { maxTokens: 3, temperature: i % 2, topK: 4, topP: 1, seed: i };
    for await (const _ of store.state.engine.generate(ids, sampling));
  }
}"""
DEVICE = """async () => {
  const { Buffers } = await own("/gpu/buffers.js");
  return [Buffers.live, Buffers.liveBytes];
}"""


def counts(page: Page, session: CDPSession) -> dict[str, float]:
    """What the page holds once the last prompt is drawn, lens and all."""
    wait_picture(page)
    wait_lens(page)
    session.send("HeapProfiler.collectGarbage")
    metrics = {each["name"]: each["value"] for each in session.send("Performance.getMetrics")["metrics"]}
    buffers, device_bytes = page.evaluate(DEVICE)
    heap = session.send("Runtime.getHeapUsage")
    return {
        "buffers": buffers, "device bytes": device_bytes, "heap": heap["usedSize"] + heap.get("backingStorageSize", 0),
        "nodes": metrics["Nodes"], "listeners": metrics["JSEventListeners"],
    }  # fmt: skip


def test_another_model_frees_what_the_one_before_held(watched: Watched, tiny_server: Server):
    page = watched.open(tiny_server.url)
    found = []
    for model in ("small", "tiny") * 2:
        page.evaluate("(id) => playground.load(id)", model)
        wait_picture(page)
        wait_lens(page)
        page.wait_for_selector("#rank-story")  # nothing is being asked for any more
        found.append(page.evaluate(DEVICE))
    assert found[2:] == found[:2]
    watched.assert_clean(tiny_server.url)


@pytest.mark.timeout(300)
def test_two_hundred_prompts_leave_memory_where_it_was(watched: Watched, small_server: Server):
    page = watched.open(small_server.url)
    session = watched.context.new_cdp_session(page)
    session.send("Performance.enable")
    page.evaluate(PROMPTS, [0, 20])
    before = counts(page, session)
    page.evaluate(PROMPTS, [20, 200])
    after = counts(page, session)
    assert before["device bytes"] > 0
    for name in ("buffers", "device bytes"):
        assert after[name] == before[name], (name, before, after)
    for name in ("nodes", "listeners"):
        assert after[name] <= before[name] + PAGE_NODES, (name, before, after)
    assert after["heap"] - before["heap"] < PAGE_HEAP_BYTES, (before, after)
    watched.assert_clean(small_server.url)
