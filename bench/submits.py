"""How long a submit keeps the device: `python -m bench.submits [TOKENS ...]`, SmolLM2-135M in Chromium on SwiftShader.

For each length a line of milliseconds from one fence to the next: with the plan's constant budget, and with the one
that the page has learnt from the runs before (static/gpu/pace.js); beyond 1,024 tokens one layer stands for all. Then
the lens of as many rows as one query takes, and the wall. The page draws between submits: the longest is what a person
waits for and a GPU's watchdog sees.
"""

import sys

from bench.browser import Tab, open_browser
from bench.whole import LOAD, folder, prompt

SETUP = """async () => {
  await model.warmAll();
  globalThis.submits = [];
  globalThis.alone = false; // one submit after the other, and none sized by how long it took
  const run = model.kernels.run.bind(model.kernels);
  model.kernels.run = async (...given) => {
    await run(...given);
    if (!alone) return;
    const start = performance.now();
    await model.kernels.fence();
    submits.push(performance.now() - start);
  };
  const note = model.pace.note.bind(model.pace);
  model.pace.note = (flops, ms) => {
    note(flops, ms);
    submits.push(ms);
  };
}"""
ASK = """async ({ what, ids, learnt }) => {
  if (!learnt) model.pace.flops = 500_000_000;
  const used = model.pace.flops;
  submits.length = 0;
  const { config } = model;
  if (ids.length > 1024) model.config = { ...config, L: 1 };
  const trace = await model.run(ids).finally(() => (model.config = config));
  const took = submits.splice(0);
  alone = true;
  const { rowsPerQuery } = await import("/static/gpu/queries.js");
  if (what === "lens") await trace.lensRows({ layer: 20, row0: 0, rows: Math.min(rowsPerQuery(config), ids.length) });
  if (what === "wall") for await (const part of trace.thumbnails({ out: 24 }));
  alone = false;
  trace.destroy();
  return { ms: what ? submits.splice(0) : took, used };
}"""


def line(tab: Tab, words: str, what: str, tokens: int, learnt: bool) -> None:
    found = tab.ask(ASK, {"what": what, "ids": prompt(tokens), "learnt": learnt})
    ms = found["ms"]
    print(f"{words:<28}{len(ms):>8}{max(ms):>9.0f}{sum(ms):>9.0f}   {found['used'] / 1e6:.0f} Mflop", flush=True)


def main(lengths: list[int]) -> None:
    with open_browser({"smollm2": folder()}) as browser:
        tab = browser.tab()
        tab.ask(LOAD)
        tab.ask(SETUP)
        print(f"{'':<28}{'submits':>8}{'longest':>9}{'all ms':>9}   budget")
        line(tab, "warm up", "", 14, False)
        for tokens in lengths:
            line(tab, f"{tokens} tokens, constant", "", tokens, False)
            line(tab, f"{tokens} tokens, learnt", "", tokens, True)
        line(tab, "lens of 32 rows", "lens", 64, True)
        line(tab, "wall, 64 tokens", "wall", 64, True)


if __name__ == "__main__":
    main([int(each) for each in sys.argv[1:]] or [14, 64, 512])
