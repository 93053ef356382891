"""The page's host in a real Chromium on SwiftShader: another compiler, another driver, the same numbers.

Plan: patterns, logits, residual streams, lens, windows and continuation on checkpoints against transformers; the
headless host's tokens; memory given back; cancel; refusals in the same words; a lost device rejects what is pending.
"""

import numpy as np
import pytest

from tests.checkpoints import checkpoint
from tests.hosts.numbers import log_softmax, reduce_pixels, worst
from tests.tolerances import (
    HOST_CHUNK_RELATIVE,
    HOST_HIDDEN_RELATIVE,
    HOST_LENS_LOGPROB,
    HOST_LOGPROB,
    HOST_PATTERN,
    HOST_WINDOW_PIXEL,
    PATTERN_ROW_SUM,
)

pytestmark = [pytest.mark.chromium, pytest.mark.slow]

FAMILIES = [
    "llama-gqa",
    "llama-biases",
    "llama-head-dim",
    "llama-odd-sizes",
    "llama-dynamic",
    "llama-sharded",
    "llama-bf16",
    "llama-f16",
    "qwen2-sliding",
    "qwen3",
    "mistral-window",
    "smollm3-list",
]
EVERYTHING = """async ([ids, maxTokens]) => {
  const trace = await model.run(ids);
  const { L, T } = trace.shape;
  const layers = [...Array(L).keys()];
  const each = async (name) => {
    const all = [];
    for (const l of layers) all.push([...await trace.read(name, l)]);
    return all;
  };
  const lens = await trace.lens();
  const rows = await trace.lensRows({ layer: L, row0: 1, rows: T - 1, target: 17 });
  const answer = {
    pattern: await each("pattern"), resid: await each("resid_pre"), norm: [...await trace.read("final_norm")],
    logits: [...await trace.read("logits")], last: [...await trace.logits(T - 1)],
    lensIds: [...lens.ids], lensLogprobs: [...lens.logprobs], ranks: [...await trace.ranks(T - 1, 17)],
    rowRanks: [...rows.targetRank], rowLogprobs: [...rows.targetLogprob], generated: [],
  };
  trace.destroy();
  if (maxTokens) for await (const { id } of model.generate(ids, { maxTokens })) answer.generated.push(id);
  return answer;
}"""


@pytest.mark.parametrize("name", FAMILIES)
def test_model_agrees_with_transformers(name, browser, load):
    expected = checkpoint(name)
    browser.open(name, expected.folder)
    ids = expected.input_ids.tolist()
    max_tokens = 0 if name == "llama-dynamic" else 4  # its prompt is longer than a cache of rotated keys may be
    answer = browser.ask(EVERYTHING, [ids, max_tokens])
    L, _, T, _ = expected.attentions.shape
    pattern = np.array(answer["pattern"]).reshape(expected.attentions.shape)
    assert np.abs(pattern - expected.attentions).max() < HOST_PATTERN
    assert np.abs(pattern.sum(-1) - 1).max() < PATTERN_ROW_SUM
    for layer in range(L):
        resid = np.array(answer["resid"][layer]).reshape(T, -1)
        assert worst(resid, expected.hidden_states[layer]) < HOST_HIDDEN_RELATIVE
    assert worst(np.array(answer["norm"]).reshape(T, -1), expected.hidden_states[L]) < HOST_HIDDEN_RELATIVE
    logprobs = log_softmax(np.array(answer["logits"]).reshape(T, -1))
    assert np.abs(logprobs - log_softmax(expected.logits)).max() < HOST_LOGPROB
    ids_lens = np.array(answer["lensIds"]).reshape(L + 1, T, 10)
    best = np.take_along_axis(logprobs, ids_lens[L], -1)
    assert np.abs(np.array(answer["lensLogprobs"]).reshape(L + 1, T, 10)[L] - best).max() < HOST_LENS_LOGPROB
    rank = (np.argsort(-logprobs, axis=1, kind="stable") == 17).argmax(1)
    assert answer["rowRanks"] == rank[1:].tolist() and answer["ranks"][L] == rank[-1]
    assert np.abs(np.array(answer["rowLogprobs"]) - logprobs[1:, 17]).max() < HOST_LENS_LOGPROB
    if max_tokens:
        assert answer["generated"] == [token for token, _ in load(expected.folder).generate(ids, max_tokens)]


@pytest.mark.parametrize(
    "zoom", [(0, 200, 0, 200, 33, 17), (13, 77, 5, 90, 77, 90), (150, 3, 140, 20, 12, 40), (0, 200, 0, 200, 1, 1)]
)
def test_window_equals_the_reduced_pattern(zoom, llama):
    ids = np.random.default_rng(7).integers(0, 321, 200).tolist()
    row0, rows, col0, cols, out_rows, out_cols = zoom
    script = """async ([ids, [row0, rows, col0, cols, outRows, outCols]]) => {
      const trace = await model.run(ids);
      const part = { layer: 1, head0: 2, heads: 2, row0, rows, col0, cols };
      const answer = [[...await trace.pattern(1, 2)], [...await trace.pattern(1, 3)]];
      for (const reduce of ["max", "mean"]) answer.push([...await trace.window({ ...part, outRows, outCols, reduce })]);
      trace.destroy();
      return answer;
    }"""
    *patterns, most, mean = llama.ask(script, [ids, zoom])
    for head, pattern in enumerate(patterns):
        cells = np.array(pattern).reshape(200, 200)[row0 : row0 + rows, col0 : col0 + cols]
        for pixels, how in ((most, "max"), (mean, "mean")):
            ours = np.array(pixels).reshape(2, out_rows, out_cols)[head]
            np.testing.assert_allclose(
                ours, reduce_pixels(cells, out_rows, out_cols, how), atol=HOST_WINDOW_PIXEL, rtol=0
            )


def test_prefill_in_chunks_equals_the_whole(llama):
    ids = np.random.default_rng(8).integers(0, 321, 129).tolist()
    script = """async (ids) => {
      const answer = [];
      for (const chunk of [256, 64]) {
        const trace = await model.run(ids, { chunk, record: true });
        answer.push([[...await trace.read("logits")], [...await trace.read("lse", 2)], [...await trace.read("z", 2)]]);
        trace.destroy();
      }
      return answer;
    }"""
    for whole, chunked in zip(*llama.ask(script, ids), strict=True):
        assert worst(np.array(chunked), np.array(whole)) < HOST_CHUNK_RELATIVE


def test_two_hundred_runs_leave_the_device_s_memory_where_it_was(llama):
    script = """async () => {
      const held = async () => {
        await model.kernels.fence();
        await new Promise((resolve) => setTimeout(resolve, 20)); // what was given up goes back a little later
        return [Buffers.live, Buffers.liveBytes, model.kernels.pool.free.size, model.kernels.pool.heldBytes];
      };
      const round = async (i) => {
        const trace = await model.run([1, 2, 3]);
        if (i % 50 === 0) await trace.logits(2);
        trace.destroy();
        if (i % 50 === 0) for await (const token of model.generate([1, 2, 3], { maxTokens: 9 })) break;
      };
      for (let i = 0; i < 3; i++) await round(i);
      const before = await held();
      for (let i = 0; i < 200; i++) await round(i);
      return [before, await held()];
    }"""
    before, after = llama.ask(script)
    assert after == before


def test_cancel_rejects_with_the_reason_and_frees_everything(llama):
    script = """async (ids) => {
      const before = Buffers.live;
      const attempt = async (cancelAt) => {
        const control = new AbortController();
        let calls = 0;
        const onProgress = (part) => { if (++calls === cancelAt) control.abort(new Error(`stopped at ${part < 1}`)); };
        if (cancelAt === 0) control.abort(new Error("stopped before"));
        try {
          (await model.run(ids, { chunk: 64, onProgress, signal: control.signal })).destroy();
          return "finished";
        } catch (error) { return error.message; }
      };
      return [await attempt(0), await attempt(1), await attempt(-1), Buffers.live - before];
    }"""
    answers = llama.ask(script, np.random.default_rng(8).integers(0, 321, 250).tolist())
    assert answers == ["stopped before", "stopped at true", "finished", 0]


@pytest.mark.parametrize(
    ("call", "code"),
    [
        ("model.run([])", "prompt-empty"),
        ("model.run([321])", "token-unknown"),
        ("model.run([1.5])", "token-unknown"),
        ("model.run(Array(257).fill(1))", "prompt-too-long"),
        ("model.generate(Array(250).fill(1), { maxTokens: 7 }).next()", "prompt-too-long"),
        ("model.run([1]).then((trace) => trace.pattern(3, 0))", "bad-query"),
        ("model.run([1]).then((trace) => trace.read('z', 0))", "bad-query"),
        ("model.run([1]).then((trace) => { trace.destroy(); return trace.read('q', 0); })", "bad-query"),
        ("Model.load(device, { ...raw, config: { ...raw.config, hidden_act: 'gelu' } })", "unsupported-config"),
        ("Model.load(device, { ...raw, source: new Map([...raw.source].slice(1)) })", "tensor-missing"),
        ("Model.load(device, { ...raw, source: new Map([...raw.source, ['x', {}]]) })", "tensor-unexpected"),
        ("Model.load(device, { ...raw, config: { ...raw.config, vocab_size: 320 } })", "tensor-shape"),
        ("Model.load(device, { ...raw, config: { ...raw.config, tie_word_embeddings: true } })", "tensor-untied"),
        (
            "Model.load(device, { ...raw, source: new Map([...raw.source, ['model.norm.weight', "
            "{ dtype: 'F32', shape: [64], bytes: new Uint8Array(256).fill(255) }]]) })",
            "tensor-not-finite",
        ),
    ],
)
def test_refusal_has_its_code_and_one_sentence(call, code, llama):
    script = f"""async () => {{
      const {{ Model }} = await import("/static/gpu/runtime.js");
      try {{ await {call}; return ["accepted"]; }} catch (error) {{ return [error.code, error.message]; }}
    }}"""
    given, message = llama.ask(script)
    assert given == code
    assert message.count(". ") == 0 and message.endswith(".")


def test_host_runs_in_a_worker(llama):
    """No DOM: the same modules in a module worker."""
    script = """async () => {
      const text = `import { requestDevice } from "${location.origin}/static/gpu/device.js";
        requestDevice().then((device) => postMessage(device.words), (error) => postMessage(error.message));`;
      const url = URL.createObjectURL(new Blob([text], { type: "text/javascript" }));
      const worker = new Worker(url, { type: "module" });
      return new Promise((resolve) => { worker.onmessage = ({ data }) => { worker.terminate(); resolve(data); }; });
    }"""
    assert llama.ask(script) == "SwiftShader (a CPU stands in for a GPU)"


def test_lost_device_rejects_pending_work(browser):
    """Last: the page's device is gone afterwards, and the next `open` asks for a new one."""
    browser.open("llama-gqa", checkpoint("llama-gqa").folder)
    script = """async (ids) => {
      const trace = await model.run([1, 2, 3]);
      const pending = [model.run(ids), trace.logits(2), model.generate(ids, { maxTokens: 5 }).next()];
      device.gpu.destroy();
      const settled = await Promise.allSettled(pending);
      const later = await Promise.allSettled([trace.pattern(0, 0)]);
      const words = [...settled, ...later].map(({ status, reason }) => [status, reason?.name, reason?.reason]);
      globalThis.device = undefined;
      globalThis.model = undefined;
      return words;
    }"""
    answers = browser.ask(script, np.random.default_rng(8).integers(0, 321, 200).tolist())
    assert answers == [["rejected", "NoWebGPU", "lost"]] * 4
    browser.open("llama-gqa", checkpoint("llama-gqa").folder)
    assert len(browser.ask("async () => [...await (await model.run([1, 2])).logits(1)]")) == 321
