"""Measures on whatever Vulkan driver the environment names; questions and answers are lines of JSON, see places.py."""

import json
import os
import sys
from collections.abc import Callable, Mapping
from typing import Any

from bench.errors import BenchError


def main() -> None:
    """Answer every line of standard input until it ends."""
    answers = os.fdopen(os.dup(sys.stdout.fileno()), "w")
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())  # a driver's chatter must not mix with the answers
    kernels = None
    for line in sys.stdin:
        try:
            if kernels is None:
                kernels = open_kernels()
            [(what, given)] = json.loads(line).items()
            answer = {"answer": ANSWERS[what](kernels, given)}
        except Exception as error:
            known = isinstance(error, BenchError) or type(error).__module__.startswith("webgpu.")
            answer = {"error": str(error) if known else f"{type(error).__name__}: {error}"}
        answers.write(json.dumps(answer) + "\n")
        answers.flush()


def open_kernels() -> Any:
    from webgpu.device import request_device
    from webgpu.kernels import Kernels

    return Kernels(request_device())


def measure(kernels: Any, given: Mapping[str, Any]) -> dict[str, Any]:
    from bench import timing

    return timing.measure(kernels, given)


def adapter(kernels: Any, _: object) -> dict[str, Any]:
    return {"words": kernels.device.words, "software": kernels.device.software}


ANSWERS: dict[str, Callable[[Any, Any], Any]] = {"measure": measure, "adapter": adapter}

if __name__ == "__main__":
    main()
