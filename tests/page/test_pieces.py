"""Work that would hold up the page comes in pieces, which are counted here and never timed.

Plan: the page's parts are made in slices, on a clock of ours that moves by so much at each look; a request of the lens
has at most so many rows of the vocabulary's size, whatever is in view, and every cell in view comes once.
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


LENS = """async ([D, V]) => {
  const at = document.querySelector("script[type=module]").src;
  const { LensData } = await import(new URL("lens_data.js", at));
  const asked = [];
  const lensRows = async (part) => {
    asked.push([part.layer, part.row0, part.rows]);
    const zeros = Array(part.rows * 10).fill(0);
    return { ids: zeros, logprobs: zeros, entropy: zeros };
  };
  await new Promise((resolve, reject) => {
    const came = () => data.progress.done === 3 * 40 && resolve();
    const data = new LensData({ shape: { L: 2, T: 40, D, V }, lensRows }, came, reject);
    data.want({ position: 5, depth: 1, from: 0, to: 40 });
  });
  return asked;
}"""


@pytest.mark.parametrize(
    ("D", "V", "most"),
    [
        (64, 2_048, 40),  # a small vocabulary: all that is in view at once
        (576, 10_000, 34),  # 400 MFLOP of 2 D V each
        (576, 49_152, 8),  # SmolLM2: the kernels take eight rows together, so a request has no fewer
        (4_096, 128_256, 8),
    ],
)
def test_request_of_the_lens_has_so_many_rows_at_most(shared: Watched, D: int, V: int, most: int):
    asked = shared.page.evaluate(LENS, [D, V])
    assert max(rows for _, _, rows in asked) == most
    assert [part[:2] for part in asked[:3]] == [[1, 5], [2, 5], [0, 5]], "first the chosen cell, then its column"
    cells = [(layer, row0 + i) for layer, row0, rows in asked for i in range(rows)]
    assert set(cells) == {(layer, place) for layer in range(3) for place in range(40)}
