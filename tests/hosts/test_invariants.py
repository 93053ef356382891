"""What holds for every prompt, whatever the numbers are; and how runs end early, are refused, and give memory back.

Plan: causality bit for bit; chunks against the whole; windows and zooms against the whole pattern; lens and ranks
against the logits; no buffer left behind; cancel; one sentence for each refusal, with its control.
"""

import os
import threading
from pathlib import Path

import numpy as np
import pytest

from tests.checkpoints import checkpoint
from tests.hosts.numbers import log_softmax, reduce_pixels, worst
from tests.tolerances import (
    DISPATCH_KEEPS_BYTES,
    HOST_CHUNK_RELATIVE,
    HOST_LENS_LOGPROB,
    HOST_WINDOW_PIXEL,
    PATTERN_ROW_SUM,
)
from webgpu import ops
from webgpu import plan as plan_module
from webgpu.buffers import Buffers
from webgpu.layout import WeightsMismatch
from webgpu.runtime import Cancelled, EmptyPrompt, Model, TooManyTokens, UnknownToken
from webgpu.trace import BadQuery

pytestmark = pytest.mark.gpu

LONG = np.random.default_rng(7).integers(0, 321, 200).tolist()


@pytest.fixture
def model(load):
    return load(checkpoint("llama-gqa").folder)


@pytest.mark.parametrize("name", ["llama-gqa", "qwen3-sliding"])
def test_later_token_never_changes_an_earlier_row(name, load):
    model = load(checkpoint(name).folder)
    changed = [*LONG[:60], (LONG[60] + 1) % 321, *LONG[61:]]
    one, other = model.run(LONG), model.run(changed)
    for layer in range(one.shape["L"]):
        for each in ("q", "k", "v", "resid_post"):
            np.testing.assert_array_equal(other.read(each, layer)[:60], one.read(each, layer)[:60])
        for each in ("lse", "pattern"):
            np.testing.assert_array_equal(other.read(each, layer)[:, :60], one.read(each, layer)[:, :60])
    np.testing.assert_array_equal(other.read("logits")[:60], one.read("logits")[:60])
    assert (
        np.abs(other.read("logits")[60:] - one.read("logits")[60:]).max() > 0.01
    )  # control: it does change later ones
    one.destroy()
    other.destroy()


@pytest.mark.parametrize(("name", "T"), [("llama-gqa", 200), ("mistral-window", 200), ("qwen3", 129), ("smollm3", 128)])
def test_prefill_in_chunks_equals_the_whole(name, T, load):
    model = load(checkpoint(name).folder)
    whole, chunked = model.run(LONG[:T], record=True), model.run(LONG[:T], record=True, chunk=64)
    for layer in range(whole.shape["L"]):
        for each in ("q", "k", "v", "lse", "z", "resid_mid", "act", "resid_post"):
            assert worst(chunked.read(each, layer), whole.read(each, layer)) < HOST_CHUNK_RELATIVE, (each, layer)
        pattern = chunked.read("pattern", layer)
        assert np.abs(pattern.sum(-1) - 1).max() < PATTERN_ROW_SUM
        assert np.abs(pattern - whole.read("pattern", layer)).max() < HOST_CHUNK_RELATIVE
    assert worst(chunked.read("logits"), whole.read("logits")) < HOST_CHUNK_RELATIVE
    whole.destroy()
    chunked.destroy()


def test_one_token_prompt_equals_the_first_row(model):
    one, many = model.run(LONG[:1], record=True), model.run(LONG[:9], record=True)
    for layer in range(one.shape["L"]):
        assert np.abs(one.read("pattern", layer) - 1).max() < PATTERN_ROW_SUM
        for each in ("q", "k", "v", "z", "resid_post"):
            assert worst(one.read(each, layer)[:1], many.read(each, layer)[:1]) < HOST_CHUNK_RELATIVE, (each, layer)
    np.testing.assert_allclose(one.logits(0), many.logits(0), atol=HOST_LENS_LOGPROB)
    one.destroy()
    many.destroy()


ZOOMS = [
    (0, 200, 0, 200, 200, 200),
    (0, 200, 0, 200, 40, 40),
    (0, 200, 0, 200, 33, 17),
    (0, 200, 0, 200, 1, 1),
    (13, 77, 5, 90, 77, 90),
    (13, 77, 5, 90, 10, 21),
    (150, 3, 140, 20, 12, 40),
    (199, 1, 0, 200, 1, 7),
]


@pytest.mark.parametrize("zoom", ZOOMS)
@pytest.mark.parametrize("how", ["max", "mean"])
def test_window_equals_the_reduced_pattern(zoom, how, model):
    row0, rows, col0, cols, out_rows, out_cols = zoom
    trace = model.run(LONG)
    window = trace.window(1, 1, 3, row0, rows, col0, cols, out_rows, out_cols, how)
    assert window.shape == (3, out_rows, out_cols)
    for head in range(3):
        cells = trace.pattern(1, 1 + head)[row0 : row0 + rows, col0 : col0 + cols]
        pixels = reduce_pixels(cells, out_rows, out_cols, how)
        np.testing.assert_allclose(window[head], pixels, atol=HOST_WINDOW_PIXEL, rtol=0)
    trace.destroy()


def test_window_larger_than_an_answer_comes_in_pieces(model, monkeypatch):
    trace = model.run(LONG[:50])
    whole = trace.window(0, 0, 4, 0, 50, 0, 50, 50, 50)
    monkeypatch.setattr("webgpu.trace.MAX_ANSWER_BYTES", 4 * 4 * 50 * 7)
    np.testing.assert_allclose(trace.window(0, 0, 4, 0, 50, 0, 50, 50, 50), whole, atol=HOST_WINDOW_PIXEL, rtol=0)
    trace.destroy()


@pytest.mark.parametrize("name", ["llama-gqa", "llama-odd-sizes"])
def test_lens_rows_hold_what_the_logits_say(name, load):
    model = load(checkpoint(name).folder)
    trace = model.run(LONG[:20])
    L, target = trace.shape["L"], 17
    rows = trace.lens_rows(L, 5, 9, target)
    logprobs = log_softmax(trace.read("logits"))[5:14]
    probabilities = np.exp(logprobs)
    order = np.argsort(-logprobs, axis=1, kind="stable")
    np.testing.assert_array_equal(rows["ids"], order[:, :10])
    np.testing.assert_array_equal(rows["target_rank"], (order == target).argmax(1))
    np.testing.assert_allclose(rows["logprobs"], np.take_along_axis(logprobs, order[:, :10], 1), atol=HOST_LENS_LOGPROB)
    np.testing.assert_allclose(rows["target_logprob"], logprobs[:, target], atol=HOST_LENS_LOGPROB)
    np.testing.assert_allclose(rows["entropy"], -(probabilities * logprobs).sum(1), atol=HOST_LENS_LOGPROB)
    assert trace.ranks(13, target)[L] == rows["target_rank"][8]
    several = trace.lens_at([(0, 3, 2), (L, 13, 1)], target)  # of several layers
    assert several["target_rank"].tolist() == [*trace.lens_rows(0, 3, 2, target)["target_rank"], rows["target_rank"][8]]
    assert np.isnan(trace.lens_rows(0, 0, 2)["target_logprob"]).all()
    assert (trace.lens_rows(0, 0, 2)["target_rank"] == -1).all()
    trace.destroy()


def test_two_hundred_runs_leave_no_buffer(model):
    before = Buffers.live
    for _ in range(200):
        trace = model.run(LONG[:5])
        trace.logits(4)
        trace.destroy()
    list(model.generate(LONG[:5], 3))
    unfinished = model.generate(LONG[:5], 3)
    next(unfinished)
    unfinished.close()
    assert Buffers.live == before


def test_cancel_between_submits_frees_everything(model, monkeypatch):
    monkeypatch.setattr(plan_module, "SUBMIT_FLOPS", 1)
    before, cancel, seen = Buffers.live, threading.Event(), []

    def progress(part):
        seen.append(part)
        if len(seen) == 5:
            cancel.set()

    with pytest.raises(Cancelled):
        model.run(LONG, progress=progress, cancel=cancel)
    assert len(seen) == 5 and Buffers.live == before
    seen.clear()
    model.run(LONG[:3], progress=seen.append, cancel=threading.Event()).destroy()  # control: not set, it runs on
    assert seen[-1] == 1 and sorted(seen) == seen


@pytest.mark.parametrize(
    ("ids", "error", "words"),
    [
        ([], EmptyPrompt, "no tokens"),
        ([1, 321], UnknownToken, "allowed are 0 to 320"),
        ([-1], UnknownToken, "Token id -1"),
        ([1] * 257, TooManyTokens, "limit of 256 tokens"),
    ],
)
def test_bad_prompt_is_refused_in_one_sentence(ids, error, words, model):
    with pytest.raises(error, match=words) as refused:
        model.run(ids)
    assert str(refused.value).count(". ") == 0
    model.run([1]).destroy()


def test_generating_past_the_limit_is_refused(model):
    with pytest.raises(TooManyTokens, match="250 tokens and 7 to generate are more than this model's limit of 256"):
        next(model.generate([1] * 250, 7))
    assert len(list(model.generate([1] * 250, 6))) == 6


def test_generating_ends_at_a_stop_id_and_gives_it_out(model):
    greedy = [token for token, _ in model.generate([5, 6, 7], 6)]
    for stop in ([greedy[2]], [320, greedy[2], greedy[4]]):
        stopped = [token for token, _ in model.generate([5, 6, 7], 6, stop)]
        first = next(i for i, token in enumerate(greedy) if token in stop)
        assert stopped == greedy[: first + 1]
    assert [token for token, _ in model.generate([5, 6, 7], 6, [320])] == greedy  # control: it never comes


def test_buffer_beyond_the_device_is_refused_with_the_limit(model):
    model.most_bytes = 200 * 2 * 160 * 4 - 1  # gate_up [T,2F] is the largest
    with pytest.raises(TooManyTokens, match="shorten the prompt to 199 tokens"):
        model.run(LONG)
    model.run(LONG[:199]).destroy()


@pytest.mark.parametrize(
    "question",
    [
        lambda trace: trace.pattern(3, 0),
        lambda trace: trace.pattern(0, 4),
        lambda trace: trace.pattern(-1, 0),
        lambda trace: trace.window(0, 0, 1, 0, 6, 0, 5, 5, 5),
        lambda trace: trace.window(0, 0, 1, 0, 5, 0, 5, 0, 5),
        lambda trace: trace.window(0, 0, 1, 0, 5, 0, 5, 5, 5, "sum"),
        lambda trace: trace.logits(5),
        lambda trace: trace.lens_rows(4, 0, 1),
        lambda trace: trace.lens_rows(0, 0, 1, 321),
        lambda trace: trace.ranks(0, -1),
        lambda trace: trace.read("z", 0),
        lambda trace: trace.read("nonsense", 0),
        lambda trace: trace.read("nonsense"),
    ],
)
def test_question_outside_the_trace_is_refused(question, model):
    trace = model.run(LONG[:5])
    with pytest.raises(BadQuery):
        question(trace)
    trace.destroy()


def test_question_to_a_freed_trace_is_refused(model):
    trace = model.run(LONG[:5])
    trace.destroy()
    with pytest.raises(BadQuery):
        trace.read("q", 0)


def test_checkpoint_with_other_tensors_is_refused_before_upload(device, tmp_path):
    import shutil

    import safetensors.numpy

    source = checkpoint("llama-gqa").folder
    shutil.copy(source / "config.json", tmp_path)
    tensors = safetensors.numpy.load_file(source / "model.safetensors")
    before = Buffers.live
    tensors["extra"] = np.zeros(3, np.float32)
    safetensors.numpy.save_file(tensors, tmp_path / "model.safetensors")
    with pytest.raises(WeightsMismatch, match=r'holds "extra", which its config\.json does not describe'):
        Model.load(device, tmp_path)
    del tensors["extra"], tensors["model.norm.weight"]
    safetensors.numpy.save_file(tensors, tmp_path / "model.safetensors")
    with pytest.raises(WeightsMismatch, match=r'lacks "model\.norm\.weight"'):
        Model.load(device, tmp_path)
    tensors["model.norm.weight"] = np.ones(3, np.float32)
    safetensors.numpy.save_file(tensors, tmp_path / "model.safetensors")
    with pytest.raises(WeightsMismatch, match=r"model\.norm\.weight has shape \[3\], but config\.json says \[64\]"):
        Model.load(device, tmp_path)
    assert Buffers.live == before


def test_four_hundred_products_of_one_token_keep_no_memory(kernels):
    """Buffers that were freed are not enough: a driver may keep what a dispatch took (llvmpipe did, 160 KB of each)."""
    if not Path("/proc/self/statm").exists():
        pytest.fail("This test reads /proc/self/statm: run it on Linux.")
    sizes = {"x": 4 * 64, "weight": 4 * 64 * 320, "out": 4 * 320}
    buffers = Buffers(kernels, sizes)
    dispatch = ops.matmul(x="x", weight="weight", bias=None, out="out", T=1, d_in=64, d_out=320, fmt=0)

    def resident_bytes_after(runs: int) -> int:
        for _ in range(runs):
            kernels.run([dispatch], buffers)
            kernels.fence()
        return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")

    before = resident_bytes_after(100)
    assert resident_bytes_after(400) - before < 400 * DISPATCH_KEEPS_BYTES
    buffers.destroy()
