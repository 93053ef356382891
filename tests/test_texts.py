"""What READMEs, docstrings and comments point at is there, and what is there is in its room's README.

Plan: links of READMEs; files that any text names; words in a README's backticks; every module of a room in its README,
twins of the two hosts included. A control shows that each search notices what is missing.
"""

import re
from pathlib import Path

import pytest

from tests.conftest import ROOT
from tests.test_house import tracked_files
from tests.test_readme_commands import READMES

TEXTS = {".py", ".js", ".mjs", ".md", ".wgsl", ".css", ".html", ".toml"}
# A path, or a bare name; `response.json` in code is no file.
NAMED = re.compile(
    r"(?<![\w./\\<\"'-])((?:[\w-]+/)+[\w-]+\.(?:py|m?js|wgsl|json|md|html|css|toml)|[\w-]+\.(?:py|m?js|wgsl|md))\b"
)
# Examples and other projects' files, which are not ours to have.
ELSEWHERE = {"name.wgsl", "folder/config.json", "folder/tokenizer.json", "docs/gguf.md", "tokenizers.min.mjs"}
# Words of other languages and tools: of a shell, of WebGPU's features, and what WGSL builds in.
FOREIGN = {"activate", "subgroup-size-control"}
BUILT_IN = re.compile(r"(?:quad|texture|atomic|storage|workgroup|subgroup|mat\dx\d|vec\d|pack|unpack|dot)\w*")
ROOMS = ("webgpu", "server", "weights", "weights/training", "python_ref")


def missing_links(text: str, home: Path) -> list[str]:
    """Relative targets of Markdown links that lead nowhere."""
    targets = re.findall(r"\]\(([^)#]+)[^)]*\)", text)
    return [target for target in targets if ":" not in target and not (home / target).exists()]


def missing_files(text: str, home: Path, known: set[str]) -> list[str]:
    """Files that a text names and that do not exist: by a path from the root or from `home`, by its end, or by name."""
    found = set(NAMED.findall(text)) - ELSEWHERE
    return sorted(each for each in found if each not in known and not (home / each).exists())


@pytest.fixture(scope="module")
def known() -> set[str]:
    """Every path of the repository, and each end of it."""
    paths = [path.relative_to(ROOT).parts for path in tracked_files()]
    return {"/".join(parts[i:]) for parts in paths for i in range(len(parts))}


@pytest.fixture(scope="module")
def words() -> set[str]:
    """Every word of the code and of file names, in capitals too, as settings are."""
    texts = [path.read_text("utf-8") for path in tracked_files() if path.suffix in TEXTS - {".md"}]
    texts += [(ROOT / "webgpu/manifest.json").read_text("utf-8"), *(str(path.stem) for path in tracked_files())]
    found = set(re.findall(r"[A-Za-z_][\w-]*", " ".join(texts)))
    return found | {f"PLAYGROUND_{word.upper()}" for word in found}


@pytest.mark.parametrize("path", READMES, ids=lambda path: str(path.relative_to(ROOT)))
def test_every_link_of_a_readme_leads_somewhere(path):
    assert missing_links(path.read_text("utf-8"), path.parent) == []


def test_every_file_that_a_text_names_is_there(known):
    wrong = {
        str(path.relative_to(ROOT)): missing
        for path in tracked_files()
        if path.suffix in TEXTS and path.relative_to(ROOT).parts[0] != "tests"  # tests make files up
        if (missing := missing_files(path.read_text("utf-8"), path.parent, known))
    }
    assert wrong == {}


@pytest.mark.parametrize("path", READMES, ids=lambda path: str(path.relative_to(ROOT)))
def test_every_word_in_a_readme_s_backticks_is_one_of_the_code(path, words):
    text = re.sub(r"```.*?```", "", path.read_text("utf-8"), flags=re.DOTALL)
    said = {word for span in re.findall(r"`([^`]+)`", text) for word in re.findall(r"\b[A-Za-z_][\w-]*", span)}
    unknown = said - words - FOREIGN
    assert {
        word for word in unknown if not BUILT_IN.fullmatch(word) and not re.fullmatch(r"[0-9a-f]{64}", word)
    } == set()


@pytest.mark.parametrize("path", READMES, ids=lambda path: str(path.relative_to(ROOT)))
def test_every_member_in_a_readme_s_scripts_is_one_of_the_code(path, words):
    blocks = re.findall(r"```(?:js|python)\n(.*?)```", path.read_text("utf-8"), flags=re.DOTALL)
    assert {member for block in blocks for member in re.findall(r"\w[)\]]?\.([A-Za-z]\w*)", block)} - words == set()


def test_what_is_missing_is_noticed(known, words):
    """Control of the searches above."""
    assert missing_links("[a](README.md#x) [b](nowhere.md) [c](https://x.example/)", ROOT) == ["nowhere.md"]
    text = "see webgpu/nowhere.py, `ops.py`, webgpu/ops.py, gpu/ops.js, response.json and nowhere.js"
    assert missing_files(text, ROOT, known) == ["nowhere.js", "webgpu/nowhere.py"]
    assert "missing_links" in words and "no_such_word_" + "anywhere" not in words


@pytest.mark.parametrize("room", ROOMS)
def test_every_module_is_in_its_room_s_readme(room):
    readme = (ROOT / room / "README.md").read_text("utf-8")
    modules = {path.name for path in (ROOT / room).glob("*.py")} - {"__init__.py", "__main__.py"}
    assert {name for name in modules if f"`{name}`" not in readme} == set()


def test_files_of_the_two_hosts_are_twins_or_said_to_have_none():
    python = {path.stem for path in (ROOT / "webgpu").glob("*.py")} - {"__init__"}
    page = {path.stem for path in (ROOT / "static/gpu").glob("*.js")}
    readme = (ROOT / "static/README.md").read_text("utf-8")
    alone = readme[readme.index("have no twin") :].partition("\n\n")[0]
    assert python - page == set()
    assert {name for name in page - python if f"`{name}.js`" not in alone} == set()
