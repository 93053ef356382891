"""Measures on whatever Vulkan driver the environment names; questions and answers are lines of JSON, see places.py."""

import json
import os
import sys
from collections.abc import Callable, Mapping
from functools import cache
from itertools import count
from typing import Any

from bench.errors import BenchError


def main() -> None:
    """Answer every line of standard input until it ends."""
    answers = os.fdopen(os.dup(sys.stdout.fileno()), "w")
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())  # a driver's chatter must not mix with the answers
    for line in sys.stdin:
        try:
            [(what, given)] = json.loads(line).items()
            answer = {"answer": ANSWERS[what](given)}
        except Exception as error:
            known = isinstance(error, BenchError) or type(error).__module__.startswith("webgpu.")
            answer = {"error": str(error) if known else f"{type(error).__name__}: {error}"}
        answers.write(json.dumps(answer) + "\n")
        answers.flush()


@cache
def open_kernels() -> Any:
    """The kernels on this process's adapter."""
    from webgpu.device import request_device
    from webgpu.kernels import Kernels

    return Kernels(request_device())


def measure(given: Mapping[str, Any]) -> dict[str, Any]:
    from bench import timing

    return timing.measure(open_kernels(), given)


def begin(given: Mapping[str, Any]) -> dict[str, Any]:
    """A number for one that will take turns, with its variant and those that the product tries."""
    from bench import timing

    BEGUN[number := next(NUMBERS)] = timing.Measurement(open_kernels(), given)
    return {"number": number, **BEGUN[number].which}


def turn(number: int) -> dict[str, float]:
    return BEGUN[number].turn()


def end(number: int) -> dict[str, Any]:
    found = BEGUN.pop(number)
    try:
        return found.report()
    finally:
        found.free()


def adapter(_: object) -> dict[str, Any]:
    device = open_kernels().device
    return {"words": device.words, "software": device.software}


def oracle(given: Mapping[str, Any]) -> dict[str, Any]:
    """What PyTorch in float64 says follows the last `count` positions: the best, and log-probabilities of `next`."""
    import torch

    import python_ref

    model = python_ref.load_model(given["folder"], dtype=torch.float64)
    with torch.inference_mode():
        logits = python_ref.trace(model, given["ids"], include=["logits"])["logits"]
    logprobs = logits.reshape(-1, logits.shape[-1])[-given["count"] :].log_softmax(-1)
    chosen = logprobs.gather(1, torch.tensor(given["next"])[:, None])[:, 0]
    return {
        "best_logprobs": logprobs.amax(-1).tolist(),
        "logprobs": chosen.tolist(),
    }


BEGUN: dict[int, Any] = {}
NUMBERS = count()
ANSWERS: dict[str, Callable[[Any], Any]] = {
    "measure": measure, "begin": begin, "turn": turn, "end": end, "adapter": adapter, "oracle": oracle,
}  # fmt: skip

if __name__ == "__main__":
    main()
