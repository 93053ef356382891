"""Loading on a device: which extras of a checkpoint are passed over, and weights that no run could use.

Plan: a copy of a checkpoint with harmless extras gives the very numbers of the original (tests/oracle/test_load.py
shows that transformers does the same); a head that differs and a weight that is NaN are refused by name.
"""

import shutil

import numpy as np
import pytest
from safetensors.numpy import load_file, save_file

from tests.checkpoints import checkpoint
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
