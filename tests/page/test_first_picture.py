"""What comes first between a prompt and its picture, by order and never by time; `bench` has the times.

Plan: a prompt that comes whole is run at once, one that is being typed after a pause; from the first letter on the run
before gives way; the picture waits for nothing but its own prompt; what can wait asks one piece at a time, after it;
compiling ahead waits longest; on the device one submit runs and one is ready.
"""

import pytest
from playwright.sync_api import Page

from tests.page.harness import chip_count, until, wait_lens, wait_picture

pytestmark = pytest.mark.chromium

# enter(text, inputType) changes the box as a browser does; settled() lets the store tell its listeners.
TOOLS = """async () => {
  const address = (name) => new URL(name, document.querySelector("script[type=module]").src);
  const { store, whenIdle } = await import(address("state.js"));
  const { CALM_MS, later, whenCalm } = await import(address("later.js"));
  const box = document.querySelector("#prompt-text");
  globalThis.enter = (text, inputType) => {
    box.value = text;
    box.dispatchEvent(new InputEvent("input", { bubbles: true, inputType }));
  };
  const { LENS_WAITS_MS } = await import(address("thumbnails.js"));
  Object.assign(globalThis, { LENS_WAITS_MS, store, whenIdle, CALM_MS, later, whenCalm });
  globalThis.settled = async () => { for (let i = 0; i < 5; i++) await Promise.resolve(); };
  globalThis.now = () => ({ due: store.state.due, running: store.state.progress !== null });
}"""


@pytest.fixture
def tools(page: Page) -> Page:
    """The shared page, its picture and lens complete."""
    page.evaluate(TOOLS)
    wait_lens(page)
    return page


@pytest.mark.parametrize("how", ["insertFromPaste", "insertFromDrop", "historyUndo", ""])
def test_a_prompt_that_comes_whole_is_run_at_once(tools: Page, how: str):
    assert tools.evaluate("async (how) => (enter('the cat sat', how), await settled(), now())", how) == {
        "due": False, "running": True,
    }  # fmt: skip
    wait_picture(tools)


def test_an_example_is_run_at_once(tools: Page):
    script = "async () => (document.querySelectorAll('.example')[1].click(), await settled(), now())"
    assert tools.evaluate(script) == {"due": False, "running": True}
    wait_picture(tools)


@pytest.mark.parametrize("how", ["insertText", "insertCompositionText", "insertLineBreak", "deleteContentBackward"])
def test_a_prompt_that_is_being_typed_waits_for_the_next_letter(tools: Page, how: str):
    assert tools.evaluate("async (how) => (enter('the cat sa', how), await settled(), now())", how) == {
        "due": True, "running": False,
    }  # fmt: skip
    wait_picture(tools)


HELD_RUN = """async () => {
  const { engine } = store.state;
  const run = engine.run;
  const signals = [];
  engine.run = (ids, options) => {
    signals.push(options.signal);
    return new Promise((_, reject) => options.signal.addEventListener("abort", () => reject(options.signal.reason)));
  };
  enter("the cat sat on", "insertFromPaste");
  await settled();
  const before = signals.map((signal) => signal.aborted);
  enter("the cat sat on a", "insertText");
  await settled();
  const after = { ...now(), aborted: signals[0].aborted, notices: store.state.notices.map(({ id }) => id) };
  engine.run = run;
  enter("the cat sat on", "deleteContentBackward"); // the text of the run that gave way: it has to be run anew
  return [before, after];
}"""


def test_a_run_gives_way_to_the_first_letter_of_a_newer_prompt(tools: Page):
    before, after = tools.evaluate(HELD_RUN)
    assert before == [False]
    assert after == {"due": True, "running": False, "aborted": True, "notices": []}
    wait_picture(tools)
    assert tools.evaluate("store.state.shown.length") == chip_count(tools) > 0
    assert tools.locator("#prompt-text").input_value() == "the cat sat on"


# Every question to the next trace, with how much of the wall is there when it is asked; lens questions on their way.
ASKED = """async () => {
  const wall = document.querySelector("#wall");
  const old = store.state.trace;
  const trace = Object.getPrototypeOf(old);
  globalThis.questions = [];
  globalThis.most = 0;
  globalThis.ranked = false;
  let waiting = 0;
  const put = (name, wrap) => {
    const original = trace[name];
    trace[name] = wrap(original);
    restore.push(() => (trace[name] = original));
  };
  globalThis.restore = [];
  for (const name of ["window", "logits", "thumbnails", "lensAt", "ranks"]) {
    put(name, (original) => function (...given) {
      const first = Number(wall.dataset.drawn) === Number(wall.dataset.layers);
      if (this !== old) questions.push([name, first]);
      const answer = original.apply(this, given);
      if (name === "ranks" && this !== old) answer.then(() => (globalThis.ranked = true), () => {});
      return answer;
    });
  }
  put("ask", (original) => async function (plan, ...given) {
    if (!plan.buffers.has("lens_ids")) return original.call(this, plan, ...given);
    if (this !== old) questions.push(["lens", Number(wall.dataset.drawn) === Number(wall.dataset.layers)]);
    most = Math.max(most, ++waiting);
    try { return await original.call(this, plan, ...given); } finally { waiting--; }
  });
  enter("the cat sat on the mat in", "insertFromPaste");
}"""


def test_the_picture_comes_before_lens_and_ranks_which_take_turns(tools: Page):
    tools.evaluate(ASKED)
    try:
        until(tools, "store.state.shown.length === store.state.typed.length && !store.state.stale")
        wait_picture(tools)
        wait_lens(tools)
        until(tools, "ranked")
        until(tools, "questions.filter(([name]) => name === 'lens').length > 2")
        asked, most = tools.evaluate("[questions, most]")
    finally:
        tools.evaluate("void restore.forEach((undo) => undo())")
    names = [name for name, _ in asked]
    assert names[0] == "window" and names.count("window") == 1  # a row is a part of the whole head
    assert names.index("logits") < names.index("thumbnails")
    lens = [drawn for name, drawn in asked if name in ("lensAt", "lens")]
    assert lens and all(lens)
    assert most == 1


def test_ranks_wait_until_the_wall_is_drawn(tools: Page):
    """With the wall's thumbnails held back, head and prediction are there and nobody asks for the lens."""
    tools.evaluate(
        """async () => {
          const trace = Object.getPrototypeOf(store.state.trace);
          const { thumbnails, ask } = trace;
          globalThis.lens = 0;
          globalThis.gate = Promise.withResolvers();
          const timer = setTimeout;
          globalThis.restore = () => (Object.assign(trace, { thumbnails, ask }), (globalThis.setTimeout = timer));
          // The lens would not wait forever for a wall, but on a crowded machine this test may.
          globalThis.setTimeout = (run, ms) => (ms === LENS_WAITS_MS ? 0 : timer(run, ms));
          trace.thumbnails = async function* (...given) { await gate.promise; yield* thumbnails.apply(this, given); };
          trace.ask = function (plan, ...given) {
            lens += plan.buffers.has("lens_ids") ? 1 : 0;
            return ask.call(this, plan, ...given);
          };
          globalThis.before = document.querySelector("#row-title").textContent;
          enter("on the mat the cat sat", "insertFromPaste");
        }"""
    )
    try:
        until(tools, "document.querySelector('#row-title').textContent !== before && !document.querySelector('.stale')")
        assert tools.evaluate("[lens, document.querySelector('#wall').dataset.drawn]") == [0, "0"]
    finally:
        tools.evaluate("void (gate.resolve(), restore())")
    wait_picture(tools)
    wait_lens(tools)


def test_compiling_ahead_waits_until_nothing_was_asked_for_a_while(tools: Page):
    waited, calm, early = tools.evaluate(
        """async () => {
          const asked = performance.now();
          enter("the mat", "insertFromPaste");
          let over = false;
          const calm = whenCalm().then(() => (over = true));
          while (store.state.progress || store.state.due) await new Promise((resolve) => setTimeout(resolve));
          const early = over;
          await calm;
          return [performance.now() - asked, CALM_MS, early];
        }"""
    )
    assert not early
    assert waited >= calm > 0


def test_on_the_device_one_submit_runs_and_one_is_ready(tools: Page):
    """A run that is cancelled leaves no more than that to a newer prompt."""
    runs, most = tools.evaluate(
        """async () => {
          const { model } = store.state.trace;
          const { kernels, pace } = model;
          const { run, fence } = kernels;
          const flops = pace.flops;
          let [waiting, most, runs] = [0, 0, 0];
          kernels.run = async (...given) => {
            await run.apply(kernels, given);
            runs++;
            most = Math.max(most, ++waiting);
          };
          kernels.fence = (...given) => fence.apply(kernels, given).finally(() => waiting--);
          pace.flops = 1; // every kernel a submit of its own
          try {
            (await model.run(store.state.trace.ids)).destroy();
          } finally {
            Object.assign(kernels, { run, fence });
            pace.flops = flops;
          }
          return [runs, most];
        }"""
    )
    assert runs > 20
    assert most == 2


CALM = """async () => {
  const { model } = store.state.trace;
  const { kernels, pace } = model;
  const { fence, compile } = kernels;
  let notes = 0;
  pace.note = () => void notes++;
  const { promise: held, resolve: release } = Promise.withResolvers();
  const counted = async () => {
    notes = 0;
    (await model.run(store.state.trace.ids)).destroy();
    return notes;
  };
  try {
    const calm = await counted();
    kernels.compile = () => held;
    const all = kernels.pipeline("one that takes long", {});
    const during = await counted();
    release();
    await all;
    kernels.compile = async () => {};
    kernels.fence = (...given) => (void kernels.pipeline(`quick ${Math.random()}`, {}), fence.apply(kernels, given));
    const between = await counted();
    kernels.fence = fence;
    return [calm, during, between, await counted()];
  } finally {
    Object.assign(kernels, { fence, compile });
    delete pace.note;
  }
}"""


def test_a_submit_that_ran_while_something_was_compiled_says_nothing_of_the_device(tools: Page):
    calm, during, between, after = tools.evaluate(CALM)
    assert calm == after > 0
    assert during == between == 0
