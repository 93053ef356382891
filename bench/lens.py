"""How long the logit lens takes to fill: `python -m bench.lens [MODEL [why]]`, on the page itself in Chromium.

For the prompt that the page opens on and for two others typed afterwards, a line from the end of the prompt's pass:
seconds until the selected position's column is there, and until every cell in view is; of these seconds, how many
passed while the page asked the device for lens rows (ranks among them), and how many while something else had its turn.
Then questions, rows asked for, submits, and milliseconds of the longest. With `why` each question too, and what was
compiled meanwhile.
"""

import sys

from playwright.sync_api import Page

from bench.app_page import DRAWN, app_page, wait

LENS = "document.querySelector('#depth')?.dataset.done === 'true'"
COMPILED = "performance.getEntriesByName('all compiled').length > 0"
PROMPTS = [
    "The old man walked to the river and sat down beside the quiet water",
    "When the rain had stopped, the children ran out into the garden to play",
]
# Keeps of each lens question when it began and ended and how many rows it had; of each submit when it had run.
WATCH = """async () => {
  const at = document.querySelector("script[type=module]").src;
  const { store, position } = await import(new URL("state.js", at));
  const { Trace } = await import(new URL("../gpu/trace.js", at));
  const { Kernels } = await import(new URL("../gpu/kernels.js", at));
  const { ask } = Trace.prototype;
  const { fence, run, compile } = Kernels.prototype;
  const seen = (globalThis.lensSeen = { began: 0, column: 0, asked: [], submits: [], compiled: [] });
  let inside = 0;
  Trace.prototype.ask = async function (plan, ...given) {
    if (!plan.buffers.has("lens_ids")) return ask.call(this, plan, ...given);
    const start = performance.now();
    inside += 1;
    try {
      return await ask.call(this, plan, ...given);
    } finally {
      inside -= 1;
      seen.asked.push([start, performance.now(), plan.buffers.get("lens_stats") / 16, this.model.pace.flops]);
    }
  };
  let last = 0;
  Kernels.prototype.run = async function (...given) {
    const lens = inside > 0;
    await run.apply(this, given);
    const start = performance.now();
    void fence.call(this).then(() => {
      const end = performance.now();
      if (lens) seen.submits.push([Math.max(start, last), end]);
      last = end;
    });
  };
  Kernels.prototype.compile = async function (...given) {
    const start = performance.now();
    try {
      return await compile.apply(this, given);
    } finally {
      seen.compiled.push([start, performance.now(), given[0]]);
    }
  };
  store.on(["trace"], ({ trace }) => {
    Object.assign(seen, { began: trace ? performance.now() : 0, column: 0, asked: [], submits: [], compiled: [] });
  });
  const look = () => {
    const { trace, lens } = store.state;
    const place = position(store.state);
    const whole = () => Array.from({ length: trace.shape.L + 1 }, (_, i) => i).every((i) => lens.get(i, place));
    if (trace && lens && !seen.column && whole())
      seen.column = performance.now();
    requestAnimationFrame(look);
  };
  look();
}"""


def line(page: Page, words: str, why: bool) -> None:
    """Wait until the lens is full, and print what was seen since the prompt's pass."""
    end = wait(page, f"({DRAWN}) && {LENS}")
    seen = page.evaluate("() => lensSeen")
    start, asked, submits = seen["began"], seen["asked"], seen["submits"]
    asking = sum(min(b, end) - a for a, b, _, _ in asked if a < end)
    column, cells = (seen["column"] or end) - start, end - start
    print(
        f"{words:<14}{column / 1000:>9.1f}{cells / 1000:>9.1f}{asking / 1000:>9.1f}{(cells - asking) / 1000:>9.1f}"
        f"{len(asked):>11}{sum(rows for _, _, rows, _ in asked):>7.0f}{len(submits):>9}"
        f"{max((b - a for a, b in submits), default=0):>9.0f}",
        flush=True,
    )
    if why:
        for a, b, rows, flops in asked:
            print(f"    asked {rows:3.0f} rows at {a - start:7.0f} for {b - a:6.0f} ms, budget {flops / 1e6:.0f}")
        for a, b, kernel in seen["compiled"]:
            print(f"    compiled {kernel} at {a - start:7.0f} for {b - a:6.0f} ms")


def main(model: str = "smollm2-135m", why: str = "") -> None:
    with app_page(model) as (page, address):
        page.goto(address)
        page.evaluate(WATCH)
        print(
            f"{'seconds':<14}{'column':>9}{'cells':>9}{'asking':>9}{'other':>9}{'questions':>11}{'rows':>7}{'submits':>9}{'longest':>9}"
        )
        line(page, "opening", bool(why))
        wait(page, COMPILED)
        for text in PROMPTS:
            page.locator("#prompt-text").fill(text)
            wait(page, "document.querySelector('.stale') !== null")
            line(page, "new prompt", bool(why))


if __name__ == "__main__":
    main(*sys.argv[1:])
