"""The tests of test_modules.py can fail: each classic mistake makes the test that is named for it fail.

Plan: one mistake at a time, its test fails; the same copy without a mistake passes every test; the environment variable
reaches the tests from outside.
"""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.oracle import test_modules
from tests.oracle.mistakes import MISTAKES, plant, write_copy

NAMED_TESTS = [name for name in dir(test_modules) if name.startswith("test_")]


@pytest.mark.parametrize("mistake", MISTAKES, ids=lambda mistake: mistake.name)
def test_planted_mistake_fails_its_test(mistake, tmp_path):
    with pytest.raises(AssertionError):
        getattr(test_modules, mistake.caught_by)(plant(tmp_path, mistake))


@pytest.mark.parametrize("name", NAMED_TESTS)
def test_copy_without_mistake_passes(name, tmp_path):
    """Control: it is the mistake that fails, not the copying."""
    getattr(test_modules, name)(plant(tmp_path, None))


def test_implementation_is_taken_from_environment(tmp_path):
    name = write_copy(tmp_path, MISTAKES[0])
    path = Path(test_modules.__file__)
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", str(path)],
        env={**os.environ, "PYTHON_REF_IMPL": name, "PYTHONPATH": str(tmp_path)},
        cwd=path.parents[2],
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert done.returncode == 1, done.stdout + done.stderr
    assert f"FAILED tests/oracle/test_modules.py::{MISTAKES[0].caught_by}" in done.stdout
