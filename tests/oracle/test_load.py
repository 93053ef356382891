"""Loading: the tensors must be exactly those of the config, and 16-bit weights widen without rounding.

Plan: missing, unexpected, wrong shape, not finite, each one step from a checkpoint that loads; the extras that
transformers passes over (its own logits are the proof) and what only resembles them; every number of 16 bits.
"""

import json
import shutil
import warnings

import numpy as np
import pytest
import torch
from safetensors.torch import load_file, save_file

from python_ref import load_model
from python_ref.errors import MissingTensor, NotFinite, UnexpectedTensor, UntiedHead, WrongShape
from python_ref.load import widen
from tests.blocks import in_blocks
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


def logits_of_transformers(folder, ids) -> torch.Tensor:
    import transformers

    with warnings.catch_warnings(), torch.no_grad():
        warnings.simplefilter("ignore")
        model = transformers.AutoModelForCausalLM.from_pretrained(
            folder, dtype=torch.float64, attn_implementation="eager"
        )
        return model(ids, use_cache=False).logits[0]


@pytest.mark.parametrize(
    "name,equal", [("model.embed_tokens.weight", True), ("model.layers.0.mlp.up_proj.weight", False)]
)
def test_head_of_tied_model_is_passed_over_where_it_is_the_embedding(tmp_path, name, equal):
    """transformers ties the two only where they are equal, and runs a head that differs untied, against the config."""
    expected = checkpoint("llama-mqa-tied")

    def add_head(tensors):
        tensors["lm_head.weight"] = tensors[name].repeat(3, 1)[:321].clone() if not equal else tensors[name].clone()

    folder = change(tmp_path, "llama-mqa-tied", add_head)
    ids = torch.from_numpy(expected.input_ids)[None]
    theirs = logits_of_transformers(folder, ids)
    assert torch.equal(theirs, torch.from_numpy(expected.logits)) == equal
    if equal:
        ours = load_model(folder, torch.float64)(ids)
        assert torch.equal(ours, load_model(expected.folder, torch.float64)(ids))
    else:
        with pytest.raises(UntiedHead, match="tie_word_embeddings to false"):
            load_model(folder)


@pytest.mark.parametrize("name", ["model.norm.weight", "model.embed_tokens.weight"])
def test_head_of_tied_model_of_another_shape_or_type_is_refused(tmp_path, name):
    with pytest.raises(UntiedHead):
        load_model(
            change(tmp_path, "llama-mqa-tied", lambda tensors: tensors.update({"lm_head.weight": tensors[name].half()}))
        )


def test_stored_rope_frequencies_are_passed_over(tmp_path):
    """As in files that transformers 4.31 and before wrote; what is in them is not looked at, there or here."""
    expected = checkpoint("llama-gqa")
    stored = {f"model.layers.{layer}.self_attn.rotary_emb.inv_freq": torch.zeros(8) for layer in range(3)}
    folder = change(tmp_path, "llama-gqa", lambda tensors: tensors.update(stored))
    ids = torch.from_numpy(expected.input_ids)[None]
    assert torch.equal(logits_of_transformers(folder, ids), torch.from_numpy(expected.logits))
    assert torch.equal(load_model(folder)(ids), load_model(expected.folder)(ids))


@pytest.mark.parametrize(
    "name",
    [
        "model.layers.3.self_attn.rotary_emb.inv_freq",  # there are layers 0 to 2
        "model.layers.00.self_attn.rotary_emb.inv_freq",
        "model.layers.0.self_attn.rotary_emb.cos_cached",
        "model.rotary_emb.inv_freq",
        "head.weight",
    ],
)
def test_other_extras_stay_refused(tmp_path, name):
    with pytest.raises(UnexpectedTensor, match=r"config\.json does not describe"):
        load_model(change(tmp_path, "llama-gqa", lambda tensors: tensors.update({name: torch.zeros(8)})))


@pytest.mark.parametrize("checkpoint_name", ["llama-gqa", "llama-f16", "llama-bf16"])
@pytest.mark.parametrize("value", [float("nan"), float("inf"), float("-inf")])
def test_weight_that_is_not_finite_is_named(tmp_path, checkpoint_name, value):
    def spoil(tensors):
        tensors["model.layers.1.mlp.down_proj.weight"][63, 159] = value

    with pytest.raises(NotFinite, match=r"model\.layers\.1\.mlp\.down_proj\.weight"):
        load_model(change(tmp_path, checkpoint_name, spoil))


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


def test_blocks_are_exact_in_float64_and_rounded_once_in_float32(tmp_path):
    folder = in_blocks(checkpoint("llama-gqa").folder, tmp_path / "blocks")
    blocks, q = open_checkpoint(folder).read("model.layers.0.self_attn.q_proj.weight"), "blocks.0.attn.w_q.weight"
    d, m = blocks.scales[5, 1].astype(np.float64)
    by_hand = [d * (int(blocks.quants[5, 4 + i // 8]) >> 4 * (i % 8) & 15) + m for i in range(32)]
    exact = load_model(folder, torch.float64).state_dict()[q]
    assert exact[5, 32:64].tolist() == by_hand
    assert torch.equal(load_model(folder).state_dict()[q], exact.float())


def test_blocks_whose_scale_is_not_finite_are_named(tmp_path):
    def spoil(name, blocks):
        if name.endswith("embed_tokens.weight"):
            blocks.scales[7, 0] = np.nan

    with pytest.raises(NotFinite, match=r"model\.embed_tokens\.weight"):
        load_model(in_blocks(checkpoint("llama-gqa").folder, tmp_path / "blocks", spoil))
