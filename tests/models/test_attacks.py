"""The strict readers against files that lie.

Plan: every attack of attacks.py gets its code from the Python and from the JavaScript reader; every rule has an attack;
messages are one plain sentence; mutated headers (fixed seed) get the same verdict from both, mutated indexes get one.
"""

import random
import re

import pytest

from tests.models.attacks import FILES, FOLDERS, PYTHON_FOLDERS, Attack
from tests.models.node import js_verdicts
from weights.checkpoint import CheckpointError, open_checkpoint
from weights.errors import BY_CODE
from weights.safetensors_header import parse_header

# Rules about the file system rather than about bytes; test_checkpoint.py breaks each of them.
BROKEN_ELSEWHERE = {"folder-missing", "not-a-file", "file-truncated"}


def write(folder, files: dict[str, bytes]):
    for name, data in files.items():
        (folder / name).write_bytes(data)
    return folder


def verdict(read) -> str | None:
    """The code of the rule that was broken; None when accepted. Anything but a CheckpointError is a bug."""
    try:
        read()
    except CheckpointError as error:
        return error.code
    return None


@pytest.fixture(scope="module")
def javascript() -> dict[str, str | None]:
    """The page's verdict on every attack, by name."""
    found = js_verdicts([attack.data for attack in FILES], [attack.files for attack in FOLDERS])
    assert all(re.fullmatch(r"[ -~]{20,400}", message) for message in found["messages"])
    return {attack.name: code for attack, code in zip(FILES + FOLDERS, found["files"] + found["folders"], strict=True)}


@pytest.mark.parametrize("attack", FILES, ids=lambda attack: attack.name)
def test_file_gets_its_code_from_both_readers(attack: Attack, javascript):
    assert verdict(lambda: parse_header(attack.data, len(attack.data))) == attack.code
    assert javascript[attack.name] == attack.code


@pytest.mark.parametrize("attack", FOLDERS, ids=lambda attack: attack.name)
def test_folder_gets_its_code_from_both_readers(attack: Attack, javascript, tmp_path):
    assert verdict(lambda: open_checkpoint(write(tmp_path, attack.files))) == attack.code
    assert javascript[attack.name] == attack.code


@pytest.mark.parametrize("attack", PYTHON_FOLDERS, ids=lambda attack: attack.name)
def test_folder_gets_its_code(attack: Attack, tmp_path):
    assert verdict(lambda: open_checkpoint(write(tmp_path, attack.files))) == attack.code


def test_every_rule_has_an_attack():
    rules = {code for code, kind in BY_CODE.items() if kind.__module__ == "weights.errors"}
    assert rules - BROKEN_ELSEWHERE == {attack.code for attack in FILES + FOLDERS + PYTHON_FOLDERS} - {None}


def test_messages_are_one_plain_sentence(tmp_path):
    for number, attack in enumerate(FOLDERS + PYTHON_FOLDERS + FILES):
        folder = tmp_path / str(number)
        folder.mkdir()
        files = attack.files if "config.json" in attack.files else attack.files | {"config.json": b"{}"}
        if attack.code in (None, "file-missing"):
            continue
        with pytest.raises(CheckpointError) as caught:
            open_checkpoint(write(folder, files))
        assert re.fullmatch(r"[ -~]{20,400}[.?]", str(caught.value)), attack.name


def mutate(data: bytes, chance: random.Random) -> bytes:
    """Change, repeat, drop or insert a few bytes; mostly mend the length so that deeper rules are reached."""
    header = bytearray(data[8:])
    for _ in range(chance.randint(1, 3)):
        at, other = chance.randrange(len(header) + 1), chance.randrange(len(header) + 1)
        begin, end = min(at, other), min(max(at, other), min(at, other) + 12)
        kind = chance.randrange(5)
        if kind == 0 and at < len(header):
            header[at] = chance.choice(b'{}[]",:0123456789.-eE\\ \n\t\x00\x7f\x80\xff')
        elif kind == 1:
            del header[begin:end]
        elif kind == 2:
            header[at:at] = header[begin:end]
        elif kind == 3:
            header[at:at] = chance.choice(TOKENS)
        else:
            header[at:at] = bytes([chance.randrange(256)])
    length = int.from_bytes(data[:8], "little")
    claimed = length + len(header) - len(data) + 8 if chance.random() < 0.8 else length
    return min(max(0, claimed), 2**64 - 1).to_bytes(8, "little") + bytes(header)


TOKENS = [
    b"1e400", b"-0", b"0.5", b"18446744073709551616", b'"w"', b'"__metadata__":{}', b"null", b"true", b"\\ud800", b",",
    b'"__proto__"', "é".encode(), b"\xed\xa0\x80", b"[[[[[[[[[", b"NaN", b"Infinity", b'"dtype":"F32",', b"\xc2\x85",
]  # fmt: skip


def test_mutated_files_get_the_same_verdict_from_both_readers():
    chance = random.Random(20)
    grounds = [attack.data for attack in FILES if len(attack.data) < 2000 and len(attack.data) > 8]
    files = [mutate(chance.choice(grounds), chance) for _ in range(4000)]
    ours = [verdict(lambda data=data: parse_header(data, len(data))) for data in files]
    theirs = js_verdicts(files)["files"]
    differing = [(data, a, b) for data, a, b in zip(files, ours, theirs, strict=True) if a != b]
    assert not differing, differing[:3]
    assert len(set(ours)) > 20, "the mutations reach most of the rules"


def test_mutated_indexes_get_a_verdict(tmp_path):
    chance, name = random.Random(21), "model.safetensors.index.json"
    grounds = [attack.files for attack in PYTHON_FOLDERS if len(attack.files.get(name, b" " * 999)) < 500]
    found = set()
    for number in range(600):
        files = dict(chance.choice(grounds))
        files[name] = mutate(bytes(8) + files[name], chance)[8:]
        (tmp_path / str(number)).mkdir()
        found.add(verdict(lambda number=number, files=files: open_checkpoint(write(tmp_path / str(number), files))))
    assert None in found and len(found) > 7
