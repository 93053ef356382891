"""Work that would hold up the page comes in pieces, which are counted here and never timed.

Plan: the page's parts are made in slices, on a clock of ours that moves by so much at each look; a question of the lens
takes what the device answers soon, the chosen column first, and every cell in view comes once.
"""

import re

import pytest

from tests.conftest import ROOT
from tests.page.harness import Server, Watched, until

pytestmark = pytest.mark.chromium
PARTS = 11
# What stands in main.js, how often, and what stands there under test: each pause begins a slice, each part joins one.
COUNTED = [
    ("performance.now()", 2, "(clock.now += clock.step)"),
    ("await pause();", 1, "await pause(); clock.slices.push(0);"),
    ("    part();", 1, "    part(); clock.slices[clock.slices.length - 1] += 1;"),
]


@pytest.mark.parametrize(("step", "slices"), [(0, [PARTS]), (6, [3, 3, 3, 2]), (14, [2] * 5 + [1]), (15, [1] * PARTS)])
def test_parts_of_the_page_are_made_in_slices_of_15_ms(watched: Watched, small_server: Server, step: int, slices: list):
    text = (ROOT / "static" / "app" / "main.js").read_text("utf-8")
    for there, times, counted in COUNTED:
        assert text.count(there) == times, f"{there} stands {text.count(there)} times in main.js"
        text = text.replace(there, counted)
    watched.page.add_init_script(f"globalThis.clock = {{ now: 0, step: {step}, slices: [] }}")
    watched.page.route(
        re.compile(r".*/app/main\.js.*"), lambda route: route.fulfill(body=text, content_type="text/javascript")
    )
    watched.open(small_server.url, ready=False)
    until(watched.page, f"clock.slices.reduce((sum, each) => sum + each, 0) >= {PARTS}")
    assert watched.page.evaluate("clock.slices") == slices


LENS = """async ([lensAtOnce, lensOrder]) => {
  const at = document.querySelector("script[type=module]").src;
  const { LensData } = await import(new URL("lens_data.js", at));
  const asked = [];
  const lensAt = async (sources) => {
    asked.push(sources.flatMap(([layer, row0, rows]) => Array.from({ length: rows }, (_, i) => [layer, row0 + i])));
    const zeros = Array(asked.at(-1).length * 10).fill(0);
    return { ids: zeros, logprobs: zeros, entropy: zeros };
  };
  await new Promise((resolve, reject) => {
    const came = () => data.progress.done === 3 * 40 && resolve();
    const data = new LensData({ shape: { L: 2, T: 40 }, lensAt, lensAtOnce, lensOrder }, came, reject);
    data.want({ position: 5, depth: 1, from: 0, to: 40 });
  });
  return asked;
}"""


@pytest.mark.parametrize(
    ("most", "order", "sizes"),
    [
        (256, "rows", [8, 112]),
        (34, "rows", [8, 34, 34, 34, 10]),
        (8, "rows", [8] * 15),  # the kernels take eight rows together, of whatever layers
        (3, "columns", [3] * 40),  # a column is one answer of the server
        (9, "columns", [3] * 40),
    ],
)
def test_questions_of_the_lens_begin_with_the_chosen_column(shared: Watched, most: int, order: str, sizes: list):
    asked = shared.page.evaluate(LENS, [most, order])
    assert [len(each) for each in asked] == sizes
    cells = [tuple(cell) for each in asked for cell in each]
    assert cells[:3] == [(1, 5), (2, 5), (0, 5)], "first the chosen cell, then its column"
    assert len(cells) == len(set(cells)) == 3 * 40
    if order == "rows":  # then the chosen row, and those below from the top
        assert [layer for layer, _ in cells[3:]] == [1] * 39 + [2] * 39 + [0] * 39


EVEN = """async ([D, V, flops]) => {
  const at = document.querySelector("script[type=module]").src;
  const { Trace } = await import(new URL("../gpu/trace.js", at));
  const { get } = Object.getOwnPropertyDescriptor(Trace.prototype, "lensAtOnce");
  return get.call({ shape: { D, V }, model: { pace: { flops } } });
}"""


@pytest.mark.parametrize(
    ("D", "V", "flops", "rows"),
    [
        (576, 49_152, 50_000_000, 8),  # SmolLM2 where a submit is small: no fewer than the kernels take together
        (576, 49_152, 285_000_000, 16),  # on a CPU that stands in for a GPU: a third of a second
        (576, 49_152, 20_000_000_000, 256),
        (64, 512, 500_000_000, 256),
        (4_096, 128_256, 500_000_000, 8),
    ],
)
def test_question_of_the_lens_is_as_large_as_the_device_is_fast(shared: Watched, D, V, flops, rows):
    assert shared.page.evaluate(EVEN, [D, V, flops]) == rows
