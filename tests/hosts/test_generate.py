"""Writing on in the page's host: the tokens that whole rows of logits give, and an end when told.

Plan: ids and log-probabilities, greedy and drawn, against whole rows of a new pass each, over an end of a span of keys;
seeds, stop tokens and counts; steps ahead on a fast and on a slow device; the chosen variants; cancelling before,
within and after the prompt; every buffer given back.
"""

import json

import numpy as np
import pytest
import safetensors.numpy

from tests.checkpoints import checkpoint
from tests.hosts.browser import Browser
from tests.tolerances import HOST_LENS_LOGPROB

pytestmark = [pytest.mark.chromium, pytest.mark.slow]

MOST_AHEAD = 4
TAKE = """async (given, sampling, after = () => {}) => {
  const tokens = [];
  for await (const token of model.generate(given, { maxTokens: 12, ...sampling })) {
    tokens.push(token);
    after(tokens.length);
  }
  return tokens;
}"""


@pytest.fixture
def llama(llama) -> Browser:
    llama.ask(f"async () => {{ globalThis.take = {TAKE}; }}")
    return llama


def test_sampling_is_seeded_and_stops(llama):
    script = """async () => {
      const ids = async (options) => (await take([5, 6, 7], { maxTokens: 6, ...options })).map(({ id }) => id);
      const hot = { temperature: 1.5, topK: 50, topP: 0.95 };
      const [greedy, one] = [await ids({}), await ids({ ...hot, seed: 1 })];
      return [one, await ids({ ...hot, seed: 1 }), await ids({ ...hot, seed: 2 }), greedy,
        await ids({ stopIds: [greedy[2]] }), await ids({ ...hot, seed: 1, stopIds: [one[3]] }),
        await ids({ temperature: 1, topK: 1 })];
    }"""
    one, same, other, greedy, stopped, stopped_one, top1 = llama.ask(script)
    assert one == same != other
    assert stopped == greedy[: greedy.index(greedy[2]) + 1]
    assert stopped_one == one[: one.index(one[3]) + 1]
    assert top1 == greedy


WHOLE_ROWS = """async ([ids, maxTokens, settings]) => {
  const { sample, seeded } = await import("/static/lib/sampler.js");
  const answers = [];
  for (const { seed, ...sampling } of settings) {
    const [drawn, whole, all, random] = [[], [], [...ids], seeded(seed)];
    let rows = 0;
    const read = model.kernels.read.bind(model.kernels);
    model.kernels.read = (sources) => {
      rows += sources.filter(([, bytes]) => bytes === 4 * model.config.V).length;
      return read(sources);
    };
    for await (const token of model.generate(ids, { maxTokens, seed, ...sampling })) drawn.push(token);
    model.kernels.read = read;
    while (whole.length < maxTokens) {
      const trace = await model.run(all);
      whole.push(sample(await trace.logits(all.length - 1), sampling, random));
      trace.destroy();
      all.push(whole.at(-1).id);
    }
    answers.push([drawn, whole, rows]);
  }
  return answers;
}"""
"""A seed's tokens from whole rows of logits, each of a new forward; how many rows the drawn tokens took."""


def test_generated_tokens_are_those_of_whole_rows(browser, tmp_path):
    browser.open("wide", wide_vocabulary(checkpoint("llama-gqa").folder, tmp_path, 5000))
    settings = [
        ({"temperature": 0, "seed": 0}, 0), ({"temperature": 0.7, "topP": 0.5, "seed": 2}, 0),
        ({"temperature": 1.5, "topK": 40, "seed": 3}, 0), ({"temperature": 0.01, "topK": 2, "topP": 0.5, "seed": 4}, 0),
        ({"temperature": 2, "topK": 4000, "seed": 1}, 9), ({"temperature": 5, "seed": 1}, 9),
    ]  # fmt: skip
    long = list(range(100, 160))  # with nine more it passes 64 keys, where decode begins another span
    answers = browser.ask(WHOLE_ROWS, [[5, 6, 7], 9, [each for each, _ in settings]])
    answers += browser.ask(WHOLE_ROWS, [long, 9, [settings[0][0]]])
    for (setting, most_rows), (drawn, whole, rows) in zip([*settings, settings[0]], answers, strict=True):
        assert [each["id"] for each in drawn] == [each["id"] for each in whole], setting
        logprobs = ([each["logprob"] for each in side] for side in (drawn, whole))
        np.testing.assert_allclose(*logprobs, atol=HOST_LENS_LOGPROB, rtol=0, err_msg=str(setting))
        assert len(drawn) == 9 and ((0 < rows <= most_rows) if most_rows else rows == 0), setting


def wide_vocabulary(source, folder, V: int):
    """The same checkpoint with random rows for V tokens: more than the lists of the next token hold."""
    config = json.loads((source / "config.json").read_text()) | {"vocab_size": V}
    (folder / "config.json").write_text(json.dumps(config))
    tensors = safetensors.numpy.load_file(source / "model.safetensors")
    for name in ("model.embed_tokens.weight", "lm_head.weight"):
        tensors[name] = np.random.default_rng(V).normal(0, 0.25, (V, 64)).astype(np.float32)
    safetensors.numpy.save_file(tensors, folder / "model.safetensors")
    return folder


AHEAD = """async (step_ms) => {
  const [now, submit] = [performance.now, model.submit];
  let [clock, submits] = [0, 0];
  performance.now = () => clock;
  model.submit = (...given) => (submits++, submit.apply(model, given));
  const seen = [];
  try {
    await take([5, 6, 7], {}, () => { clock += step_ms; seen.push(submits); });
  } finally {
    performance.now = now;
    delete model.submit;
  }
  return seen;
}"""


@pytest.mark.parametrize(("step_ms", "ahead"), [(0, MOST_AHEAD), (9, 2), (500, 1)])
def test_greedy_steps_are_submitted_ahead_as_fast_as_they_run(step_ms, ahead, llama):
    """One until a step has been timed; never more than the text has: what is ahead cannot be stopped."""
    assert llama.ask(AHEAD, step_ms) == [1, *(min(token - 1 + ahead, 11) for token in range(2, 13))]


def test_generation_runs_the_chosen_variants(llama):
    script = """async () => {
      const { run } = model.kernels;
      const seen = {};
      for (const decode of ["split", "once"]) {
        model.choice.decode = decode;
        model.kernels.run = (copies, dispatches, ...more) => {
          seen[decode] = dispatches.map(({ kernel }) => kernel).filter((kernel) => kernel.startsWith("attention_"));
          return run.call(model.kernels, copies, dispatches, ...more);
        };
        await take([5, 6, 7], { maxTokens: 3 });
      }
      delete model.kernels.run;
      return seen;
    }"""
    seen = llama.ask(script)
    assert set(seen["split"]) == {"attention_decode", "attention_merge"}
    assert set(seen["once"]) == {"attention_split", "attention_merge"}


CANCEL = """async ([ids, temperature, when]) => {
  const before = [Buffers.live, Buffers.liveBytes];
  const control = new AbortController();
  const { run } = model.kernels;
  let [runs, taken] = [0, 0];
  const stop = (now) => now && control.abort(new Error("enough"));
  model.kernels.run = (...given) => {
    runs += 1;
    const submitted = run.apply(model.kernels, given);
    stop(when === "within the prompt");
    return submitted;
  };
  stop(when === "before");
  let message = "not stopped";
  try {
    const after = (count) => { taken = count; stop(when === "after two tokens" && count === 2); };
    await take(ids, { temperature, signal: control.signal }, after);
  } catch (error) { message = error.message; }
  delete model.kernels.run;
  return { message, taken, runs, left: [Buffers.live - before[0], Buffers.liveBytes - before[1]] };
}"""


@pytest.mark.parametrize("temperature", [0, 1])
def test_cancelled_text_ends_at_once_with_the_reason_and_frees_everything(temperature, llama):
    llama.ask("async () => { model.pace.flops = 1e6; }")  # a prompt is many submits
    ids = np.random.default_rng(8).integers(0, 321, 200).tolist()
    whole = llama.ask(CANCEL, [ids, temperature, "never"])
    assert whole["message"] == "not stopped" and whole["taken"] == 12 and whole["runs"] > 20
    moments = [("before", 0, 0), ("within the prompt", 0, 1), ("after two tokens", 2, whole["runs"])]
    for when, taken, most_runs in moments:
        found = llama.ask(CANCEL, [ids, temperature, when])
        assert (found["message"], found["taken"], found["left"]) == ("enough", taken, [0, 0]), when
        assert found["runs"] <= most_runs, when


@pytest.mark.parametrize("temperature", [0, 1])
def test_every_small_buffer_of_a_text_is_freed(temperature, llama):
    """Those that no count knows, uniforms and what is read back, whether a text ends or is left in the middle."""
    script = """async (temperature) => {
      const { gpu } = model.kernels;
      const [made, reads] = [[], []];
      const create = gpu.createBuffer;
      const { read } = model.kernels;
      model.kernels.read = (sources) => (reads.push(read.call(model.kernels, sources)), reads.at(-1));
      gpu.createBuffer = (given) => {
        const buffer = create.call(gpu, given);
        if (!["params", "readback"].includes(given.label)) return buffer;
        const destroy = buffer.destroy;
        buffer.destroy = () => (buffer.freed = true, destroy.call(buffer));
        made.push(buffer);
        return buffer;
      };
      try {
        await take([5, 6, 7], { temperature });
        for await (const token of model.generate([5, 6, 7], { maxTokens: 12, temperature })) break;
        await Promise.allSettled(reads); // of steps ahead too, which nobody asked for
      } finally {
        delete gpu.createBuffer;
        delete model.kernels.read;
      }
      return [made.length, made.filter(({ freed }) => !freed).map(({ label }) => label)];
    }"""
    made, left = llama.ask(script, temperature)
    assert made > 12 and left == []  # one is read for each token
