"""Loading: the tensors must be exactly those of the config, and 16-bit weights widen without rounding.

Plan: missing, unexpected, wrong shape, each one step from a checkpoint that loads; tied heads; every number of 16 bits.
"""

import json
import shutil

import numpy as np
import pytest
import torch
from safetensors.torch import load_file, save_file

from python_ref import load_model
from python_ref.errors import MissingTensor, UnexpectedTensor, WrongShape
from python_ref.load import widen
from tests.checkpoints import checkpoint
from weights.checkpoint import open_checkpoint


def change(tmp_path, name: str, edit):
    """A copy of a checkpoint after edit(tensors)."""
    folder = tmp_path / "changed"
    shutil.copytree(checkpoint(name).folder, folder)
    tensors = load_file(folder / "model.safetensors")
    edit(tensors)
    save_file(tensors, folder / "model.safetensors")
    return folder


def test_unchanged_copy_loads(tmp_path):
    """Control for the refusals below."""
    load_model(change(tmp_path, "llama-gqa", lambda tensors: None))


def test_missing_tensor_is_named(tmp_path):
    folder = change(tmp_path, "llama-gqa", lambda tensors: tensors.pop("model.layers.1.self_attn.k_proj.weight"))
    with pytest.raises(MissingTensor, match=r'lacks "model\.layers\.1\.self_attn\.k_proj\.weight"'):
        load_model(folder)


def test_missing_tensors_are_counted(tmp_path):
    folder = change(tmp_path, "llama-gqa", lambda tensors: [tensors.pop(name) for name in list(tensors)[:3]])
    with pytest.raises(MissingTensor, match="and 2 more"):
        load_model(folder)


def test_missing_head_of_untied_model_is_named(tmp_path):
    with pytest.raises(MissingTensor, match=r"lm_head\.weight"):
        load_model(change(tmp_path, "llama-gqa", lambda tensors: tensors.pop("lm_head.weight")))


def test_unexpected_tensor_is_named(tmp_path):
    def add_bias(tensors):
        tensors["model.layers.0.self_attn.q_proj.bias"] = torch.zeros(64)

    with pytest.raises(UnexpectedTensor, match=r"holds \"model\.layers\.0\.self_attn\.q_proj\.bias\""):
        load_model(change(tmp_path, "llama-gqa", add_bias))


def test_head_of_tied_model_is_unexpected(tmp_path):
    def add_head(tensors):
        tensors["lm_head.weight"] = torch.zeros(321, 64)

    with pytest.raises(UnexpectedTensor, match=r"lm_head\.weight"):
        load_model(change(tmp_path, "llama-mqa-tied", add_head))


def test_wrong_shape_is_shown(tmp_path):
    def transpose(tensors):
        tensors["model.layers.2.mlp.up_proj.weight"] = tensors["model.layers.2.mlp.up_proj.weight"].T.contiguous()

    with pytest.raises(WrongShape, match=r"up_proj\.weight has shape \[64, 160\]; config\.json asks for \[160, 64\]"):
        load_model(change(tmp_path, "llama-gqa", transpose))


def test_huge_config_is_refused_without_allocating(tmp_path):
    """Shapes are compared before anything is made: a config of a thousand terabytes costs nothing."""
    folder = change(tmp_path, "llama-gqa", lambda tensors: None)
    config = json.loads((folder / "config.json").read_text()) | {"hidden_size": 2**30, "intermediate_size": 2**30}
    (folder / "config.json").write_text(json.dumps(config))
    with pytest.raises(WrongShape, match="1073741824"):
        load_model(folder)


@pytest.mark.parametrize("half", [torch.bfloat16, torch.float16])
def test_every_16_bit_number_widens_exactly(tmp_path, half):
    """All 65,536 bit patterns, infinities and NaNs among them."""
    every = torch.arange(-(2**15), 2**15).to(torch.int16).view(half)
    (tmp_path / "config.json").write_text("{}")
    save_file({"every": every}, tmp_path / "model.safetensors")
    widened = widen(open_checkpoint(tmp_path), "every").float()
    np.testing.assert_array_equal(widened.numpy(), every.float().numpy())


@pytest.mark.parametrize("name", ["llama-f16", "llama-bf16", "llama-sharded"])
def test_weights_are_those_of_the_file(name):
    expected = checkpoint(name)
    model = load_model(expected.folder, torch.float64)
    files = {k: v for path in expected.folder.glob("*.safetensors") for k, v in load_file(path).items()}
    assert torch.equal(model.blocks[1].attn.w_o.weight, files["model.layers.1.self_attn.o_proj.weight"].double())
    assert torch.equal(model.unembed.weight, files["lm_head.weight"].double())
