"""Opening and reading checkpoint folders.

Plan: values equal the reference library's for F32, F16 and BF16, one file and shards; hashes are of the file's bytes;
a file that shrinks, a pipe, a folder in a file's place are refused with their own rule.
"""

import hashlib
import json
import os

import numpy as np
import pytest
from safetensors.numpy import load_file

from tests.models.attacks import PYTHON_FOLDERS, one, pack
from tests.models.small import make_small_model
from weights import errors
from weights.checkpoint import open_checkpoint


def test_read_matches_reference_library(tmp_path):
    checkpoint = open_checkpoint(make_small_model(tmp_path))
    expected = load_file(tmp_path / "model.safetensors")
    assert sorted(checkpoint.names) == sorted(expected)
    for name, value in expected.items():
        assert checkpoint.shape(name) == value.shape and checkpoint.dtype(name) == "F16"
        np.testing.assert_array_equal(checkpoint.read(name), value)


def test_read_float32_and_bfloat16_bits(tmp_path):
    words = np.arange(6, dtype=np.uint16).reshape(2, 3) + 0x3F80
    header = {"a": {"dtype": "BF16", "shape": [2, 3], "data_offsets": [24, 36]}} | one()
    floats = np.linspace(-1, 1, 6, dtype=np.float32).reshape(2, 3)
    (tmp_path / "config.json").write_text("{}")
    (tmp_path / "model.safetensors").write_bytes(pack(header, floats.tobytes() + words.tobytes()))
    checkpoint = open_checkpoint(tmp_path)
    np.testing.assert_array_equal(checkpoint.read("w"), floats)
    assert checkpoint.read("a").dtype == np.uint16
    np.testing.assert_array_equal(checkpoint.read("a"), words)


def test_hash_is_of_the_file_and_of_the_shards(tmp_path):
    single = open_checkpoint(make_small_model(tmp_path / "single"))
    assert single.hash == hashlib.sha256((tmp_path / "single/model.safetensors").read_bytes()).hexdigest()
    shards = next(attack for attack in PYTHON_FOLDERS if attack.name == "control shards").files
    for name, data in shards.items():
        (tmp_path / name).write_bytes(data)
    hexes = [hashlib.sha256(data).hexdigest() for name, data in sorted(shards.items()) if name.endswith(".safetensors")]
    assert open_checkpoint(tmp_path).hash == hashlib.sha256("".join(hexes).encode()).hexdigest()


def test_unknown_name_says_what_was_asked(tmp_path):
    with pytest.raises(KeyError, match="nowhere"):
        open_checkpoint(make_small_model(tmp_path)).read("nowhere")


def test_file_that_shrinks_while_open_is_an_error(tmp_path):
    checkpoint = open_checkpoint(make_small_model(tmp_path))
    os.truncate(tmp_path / "model.safetensors", (tmp_path / "model.safetensors").stat().st_size - 1)
    assert checkpoint.read(checkpoint.names[0]).size
    with pytest.raises(errors.FileTruncated):
        checkpoint.read(checkpoint.names[-1])


def test_missing_folder_is_refused(tmp_path):
    for path in (tmp_path / "none", tmp_path / ("x" * 5000), "a\0b"):
        with pytest.raises(errors.FolderMissing):
            open_checkpoint(path)


@pytest.mark.parametrize("name", ["config.json", "model.safetensors"])
def test_folder_or_pipe_in_a_files_place_is_refused(tmp_path, name):
    for number, make in enumerate([os.mkdir, os.mkfifo]):
        folder = make_small_model(tmp_path / str(number))
        (folder / name).unlink()
        make(folder / name)
        with pytest.raises(errors.NotAFile):
            open_checkpoint(folder)


def test_big_integers_and_floats_of_a_config_stay_plain(tmp_path):
    (tmp_path / "config.json").write_text(json.dumps({"vocab_size": 10**30, "rope_theta": 1e4, "x": None}))
    (tmp_path / "model.safetensors").write_bytes(pack(one()))
    assert open_checkpoint(tmp_path).config == {"vocab_size": 10**30, "rope_theta": 1e4, "x": None}
