"""Every error that the readers and the kernels can raise reaches people as one sentence, not as a traceback."""

import importlib
import pkgutil

import python_ref
import webgpu
import weights
from server.cli import EXPECTED


def own_errors() -> list[type[Exception]]:
    """The exception classes that python_ref, webgpu and weights define."""
    found = set()
    for package in (python_ref, webgpu, weights):
        for info in pkgutil.iter_modules(package.__path__, package.__name__ + "."):
            module = importlib.import_module(info.name)
            found |= {x for x in vars(module).values() if isinstance(x, type) and issubclass(x, Exception)}
    names = ("python_ref", "webgpu", "weights")
    return sorted((x for x in found if x.__module__.split(".")[0] in names), key=lambda x: x.__qualname__)


def test_every_error_class_is_expected() -> None:
    expected = tuple(
        getattr(importlib.import_module(module), name) for module, names in EXPECTED.items() for name in names
    )
    errors = own_errors()
    assert {"TokenizerBroken", "WeightsMismatch", "NotFinite", "BadQuery"} <= {error.__name__ for error in errors}
    assert [error for error in errors if not issubclass(error, expected)] == []
