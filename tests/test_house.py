"""House rules that a reader relies on: the rings, the style, the length of files.

Plan: import-linter's contracts hold; ruff finds nothing; no file of ours outgrows one idea, no function a screen; the
product's text names no machine of ours.
"""

import ast
import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
LONGEST = {".py": 320, ".js": 320, ".css": 320, ".j2": 320, ".html": 320, ".wgsl": 160}
LONGEST_FUNCTION = 40


def tracked_files() -> list[Path]:
    """Every file that git tracks or would track."""
    listed = subprocess.run(
        ["git", "ls-files", "--cached", "--others", "--exclude-standard"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    )
    return [path for line in listed.stdout.splitlines() if (path := ROOT / line).is_file()]


def run_tool(*arguments: str) -> subprocess.CompletedProcess:
    """Run a tool of this environment from the checkout's root."""
    return subprocess.run([sys.executable, *arguments], cwd=ROOT, capture_output=True, text=True, timeout=300)


def test_rings_hold():
    done = run_tool("-c", "import sys; from importlinter.cli import lint_imports; sys.exit(lint_imports())")
    assert done.returncode == 0, done.stdout + done.stderr


def test_rings_contract_fails_when_broken(tmp_path):
    """Control: the same tool does report a forbidden import."""
    for name, text in {"inner": "import outer\n", "outer": ""}.items():
        (tmp_path / name).mkdir()
        (tmp_path / name / "__init__.py").write_text(text)
    (tmp_path / ".importlinter").write_text(
        "[importlinter]\nroot_packages=\n    inner\n    outer\n[importlinter:contract:1]\nname=x\ntype=forbidden\n"
        "source_modules=inner\nforbidden_modules=outer\n"
    )
    script = "import sys; sys.path.insert(0, '.'); from importlinter.cli import lint_imports; sys.exit(lint_imports())"
    done = subprocess.run([sys.executable, "-c", script], cwd=tmp_path, capture_output=True, text=True, timeout=300)
    assert done.returncode == 1, done.stdout + done.stderr


def test_ruff_finds_nothing():
    done = run_tool("-m", "ruff", "check", ".")
    assert done.returncode == 0, done.stdout


@pytest.mark.parametrize("suffix", sorted(LONGEST))
def test_no_file_outgrows_one_idea(suffix):
    long = {
        str(path.relative_to(ROOT)): lines
        for path in tracked_files()
        if path.suffix == suffix and (lines := len(path.read_text().splitlines())) > LONGEST[suffix]
    }
    assert not long


def test_no_function_outgrows_a_screen():
    long = {
        f"{path.relative_to(ROOT)}: {node.name}": lines
        for path in tracked_files()
        if path.suffix == ".py"
        for node in ast.walk(ast.parse(path.read_text("utf-8")))
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
        and (lines := node.end_lineno - node.lineno + 1) > LONGEST_FUNCTION
    }
    assert not long


def javascript_functions(node: str, files: list[Path]) -> list[tuple[str, int, str, int]]:
    """(file, first line, name, lines) of every function."""
    command = [node, str(ROOT / "tests/functions.mjs"), *map(str, files)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=100)
    assert done.returncode == 0, done.stderr
    return [tuple(each) for each in json.loads(done.stdout)]


def test_no_function_of_javascript_outgrows_a_screen(node):
    files = [path for path in tracked_files() if path.suffix in {".js", ".mjs"}]
    found = javascript_functions(node, files)
    assert {file for file, *_ in found} >= {str(path) for path in files if path.is_relative_to(ROOT / "static/gpu")}
    assert not [each for each in found if each[-1] > LONGEST_FUNCTION]


def test_functions_of_javascript_are_counted_whatever_their_kind(node, tmp_path):
    """Control: a line too many is seen in a function, a method, a getter, an arrow and one inside another."""
    kinds = ["function one() {", "class Two { #two() {", "class Three { get three() {", "const four = () => {"]
    for i, kind in enumerate([*kinds, "function five() { return async function () {"]):
        lines = [kind, *["  0;"] * (LONGEST_FUNCTION - 1), "}" * kind.count("{")]
        (tmp_path / f"{i}.js").write_text("\n".join(lines))
    found = javascript_functions(node, sorted(tmp_path.iterdir()))
    long = [name for *_, name, lines in found if lines == LONGEST_FUNCTION + 1]
    assert sorted(long) == ["", "#two", "five", "four", "one", "three"]


def test_text_names_no_private_place():
    """A path or host of one machine in the product's text helps nobody and ages badly."""
    private = re.compile(r"/work/|/root/|pypi\.org|registry\.npmjs|deb\.debian|file:///(?!\$)")
    named = [
        f"{path.relative_to(ROOT)}:{number}"
        for path in tracked_files()
        if path.suffix in {".py", ".js", ".md", ".json", ".toml", ".wgsl", ".css", ".j2"} and path != Path(__file__)
        for number, line in enumerate(path.read_text().splitlines(), 1)
        if private.search(line)
    ]
    assert not named
