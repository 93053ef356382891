"""Whole models in the variants that a GPU begins with, which no trial and no first choice takes on a CPU driver.

Plan: patterns, log-probabilities and greedy continuation against transformers and against the first variants, in
float32 with biases and QK-norm, in rows of odd length, and in blocks; prompts of few tokens, of more, and one token.
"""

import numpy as np
import pytest

from tests.blocks import in_blocks, widened
from tests.checkpoints import checkpoint
from tests.hosts.numbers import log_softmax
from tests.tolerances import HOST_LOGPROB, HOST_PATTERN
from webgpu.variants import first_choice

GPU = first_choice([], software=False)
FORCE = "async (choice) => { Object.assign(model.choice, choice); return model.choice; }"
RUN = """async (ids) => {
  const trace = await model.run(ids);
  const [logits, pattern] = [await trace.read("logits"), await trace.read("pattern", 2)];
  const { targetRank } = await trace.lensRows({ layer: 3, row0: 0, rows: 5, target: 17 });
  const answer = { logits: [...logits], pattern: [...pattern], rank: [...targetRank], generated: [] };
  trace.destroy();
  for await (const { id } of model.generate(ids, { maxTokens: 5 })) answer.generated.push(id);
  return answer;
}"""


def greedy(model, ids: list[int]) -> list[int]:
    return [token for token, _ in model.generate(ids, 5)]


@pytest.mark.gpu
@pytest.mark.parametrize("name", ["llama-biases", "llama-odd-sizes", "qwen3"])
def test_model_as_on_a_gpu_agrees_with_transformers(name, load):
    expected = checkpoint(name)
    model = load(expected.folder)
    ids = expected.input_ids.tolist()
    wanted = greedy(model, ids[:9])
    model.choice = GPU
    for T in (len(ids), 9):
        trace = model.run(ids[:T])
        for layer, exact in enumerate(expected.attentions):
            assert np.abs(trace.read("pattern", layer) - exact[:, :T, :T]).max() < HOST_PATTERN
        logprobs, exact = log_softmax(trace.read("logits")), log_softmax(expected.logits[:T])
        assert np.abs(logprobs - exact).max() < HOST_LOGPROB
        if model.config.D % 8 == 0:  # the lens reads what the product with the vocabulary gave
            lens = trace.lens()
            np.testing.assert_array_equal(lens["ids"][-1, :, 0], exact.argmax(-1))
            best = np.take_along_axis(exact, lens["ids"][-1].astype(np.int64), -1)
            assert np.abs(lens["logprobs"][-1] - best).max() < HOST_LOGPROB
        trace.destroy()
    assert greedy(model, ids[:9]) == wanted


@pytest.mark.gpu
def test_model_in_blocks_as_on_a_gpu_agrees_with_its_numbers_in_float32(load, tmp_path):
    expected = checkpoint("llama-gqa")
    blocks = in_blocks(expected.folder, tmp_path / "blocks")
    wide, model = load(widened(blocks, tmp_path / "wide")), load(blocks)
    model.choice = GPU
    for ids in (expected.input_ids.tolist(), [5, 9, 17]):
        traces = [each.run(ids) for each in (wide, model)]
        theirs, ours = (log_softmax(trace.read("logits")) for trace in traces)
        assert np.abs(ours - theirs).max() < HOST_LOGPROB
        for trace in traces:
            trace.destroy()
        assert greedy(model, ids) == greedy(wide, ids)


@pytest.mark.chromium
def test_model_in_the_page_as_on_a_gpu_agrees_with_transformers(browser):
    expected = checkpoint("llama-f16")
    ids = expected.input_ids.tolist()
    browser.open("llama-f16", expected.folder)
    wanted = browser.ask(RUN, ids)["generated"]
    assert browser.ask(FORCE, GPU) | GPU == browser.ask(FORCE, {})
    answer = browser.ask(RUN, ids)
    pattern = np.array(answer["pattern"]).reshape(expected.attentions[2].shape)
    assert np.abs(pattern - expected.attentions[2]).max() < HOST_PATTERN
    logprobs = log_softmax(np.array(answer["logits"]).reshape(len(ids), -1))
    assert np.abs(logprobs - log_softmax(expected.logits)).max() < HOST_LOGPROB
    rank = (np.argsort(-expected.logits[:5], axis=1, kind="stable") == 17).argmax(1)
    assert answer["rank"] == rank.tolist() and answer["generated"] == wanted
