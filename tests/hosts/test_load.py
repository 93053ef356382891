"""Loading on a device: which extras of a checkpoint are passed over, and weights that no run could use.

A checkpoint in blocks runs as its numbers do: the same logits as the float32 checkpoint of the same values.

Plan: a copy of a checkpoint with harmless extras gives the very numbers of the original (tests/oracle/test_load.py
shows that transformers does the same); a head that differs and a weight that is NaN are refused by name.
"""

import shutil

import numpy as np
import pytest
from safetensors.numpy import load_file, save_file

from tests.blocks import in_blocks, widened
from tests.checkpoints import checkpoint
from tests.tolerances import HOST_LOGPROB
from webgpu.layout import EMBED, HEAD, WeightsMismatch

pytestmark = pytest.mark.gpu


def changed(tmp_path, **tensors):
    """A copy of the tied checkpoint with tensors added or replaced."""
    folder = tmp_path / "changed"
    shutil.copytree(checkpoint("llama-mqa-tied").folder, folder)
    weights = load_file(folder / "model.safetensors")
    save_file(weights | {name: edit(weights) for name, edit in tensors.items()}, folder / "model.safetensors")
    return folder


def logits(model) -> np.ndarray:
    trace = model.run([3, 1, 4, 1, 5])
    found = trace.read("logits")
    trace.destroy()
    return found


def test_extras_change_nothing(load, tmp_path):
    stored = {f"model.layers.{layer}.self_attn.rotary_emb.inv_freq": lambda _: np.ones(8, "f4") for layer in range(3)}
    folder = changed(tmp_path, **{HEAD: lambda weights: weights[EMBED].copy()}, **stored)
    np.testing.assert_array_equal(logits(load(folder)), logits(load(checkpoint("llama-mqa-tied").folder)))


@pytest.mark.parametrize(
    ("name", "edit", "code"),
    [
        (HEAD, lambda weights: weights[EMBED] + 1, "tensor-untied"),
        (HEAD, lambda weights: weights[EMBED].astype(np.float16), "tensor-untied"),
        (HEAD, lambda weights: weights[EMBED][:-1].copy(), "tensor-shape"),
        (HEAD, lambda weights: np.array(1, "f4"), "tensor-shape"),
        ("model.norm.weight", lambda weights: weights["model.norm.weight"] * np.float32("nan"), "tensor-not-finite"),
        (EMBED, lambda weights: weights[EMBED] / np.float32(1e-45), "tensor-not-finite"),
    ],
)
@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_weights_that_cannot_be_run_are_named(load, tmp_path, name, edit, code):
    with pytest.raises(WeightsMismatch, match=name.replace(".", r"\.")) as refusal:
        load(changed(tmp_path, **{name: edit}))
    assert refusal.value.code == code


@pytest.mark.parametrize("name", ["llama-gqa", "llama-mqa-tied"])
@pytest.mark.parametrize("most_bytes", [1 << 27, 5000])
def test_blocks_run_as_their_numbers(load, tmp_path, name, most_bytes):
    blocks = in_blocks(checkpoint(name).folder, tmp_path / "blocks")
    wide = load(widened(blocks, tmp_path / "wide"))
    narrow = load(blocks, most_bytes=most_bytes)
    assert np.abs(logits(narrow) - logits(wide)).max() < HOST_LOGPROB
    held = [sum(buffer.size for buffer in model.weights.values()) for model in (narrow, wide)]
    assert held[0] < 0.35 * held[1], "blocks take less than a third of float32 on the device"


def test_scales_that_are_not_finite_are_named(load, tmp_path):
    name = "model.layers.1.mlp.up_proj.weight"

    def spoil(each, blocks):
        if each == name:
            blocks.scales[-1, -1, 1] = np.inf

    with pytest.raises(WeightsMismatch, match=r"^model\.layers\.1\.mlp\.up_proj") as refusal:
        load(in_blocks(checkpoint("llama-gqa").folder, tmp_path / "blocks", spoil))
    assert refusal.value.code == "tensor-not-finite"
