"""python_ref/README.md says what is there.

Plan: every file and every public name is mentioned; the Python in it runs.
"""

import re
from pathlib import Path

import python_ref
from python_ref.trace import LAYER_NAMES, MODEL_NAMES
from tests.checkpoints import checkpoint

HOME = Path(python_ref.__file__).parent
README = (HOME / "README.md").read_text()


def test_every_file_is_in_the_map():
    files = {path.name for path in HOME.glob("*.py")} - {"__init__.py"}
    assert files - set(re.findall(r"`(\w+\.py)`", README)) == set()


def test_every_intermediate_is_listed():
    assert {name for name in (*LAYER_NAMES, *MODEL_NAMES) if f"`{name}`" not in README} == set()


def test_its_python_runs():
    """On a tiny checkpoint: the folder, the ids and the layer are replaced by ones that it has."""
    code = "\n".join(re.findall(r"```python\n(.*?)```", README, re.DOTALL))
    code = code.replace("path/to/checkpoint", str(checkpoint("llama-mha").folder))
    code = code.replace("504, 3575, 282, 4649, 314", "1, 2, 3, 4, 5").replace("[0, 7]", "[0, 1]").replace("(7,", "(1,")
    names: dict = {}
    exec(code, names)  # our own README
    plain = names["model"](names["torch"].tensor([[1, 2, 3, 4, 5]]))
    assert names["found"]["pattern"].shape == (2, 4, 5, 5)
    assert not names["torch"].equal(plain, names["logits"])
