"""`playground bench`: operations of the kernels timed on this machine's adapter, each checked against float64 first.

Without --op a few of them; with it one, in the sizes given. bench/README.md says what the figures mean and how to set
them beside peers and other drivers.
"""

import argparse
import json
from collections.abc import Mapping
from typing import Any

from bench import options

FEW = (
    {"op": "attention", "T": 128}, {"op": "attention", "T": 512}, {"op": "decode", "T": 2048},
    {"op": "heatmap", "T": 512}, {"op": "matmul", "T": 1}, {"op": "matmul", "T": 64},
)  # fmt: skip


def add(subparsers) -> None:
    """Describe the command's options."""
    command = subparsers.add_parser("bench", help="time the kernels", description=__doc__)
    options.add_options(command)
    command.add_argument("--json", action="store_true", help="machine-readable report")
    command.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Raises DeviceError without an adapter, BadArguments, WrongResult: a wrong kernel has no speed."""
    from bench import arguments
    from bench.timing import measure
    from webgpu.device import request_device
    from webgpu.kernels import Kernels

    asked = options.given(args)
    arguments.read(asked)
    if "op" not in asked and asked:
        asked["op"] = "attention"
    device = request_device()
    kernels = Kernels(device)
    rows = [measure(kernels, given) for given in ([asked] if asked else FEW)]
    if args.json:
        print(json.dumps({"adapter": device.words, "results": rows}, indent=1))
        return 0
    print(f"{device.words}\n")
    print(f"{'operation':<11}{'shape':<52}{'ms':>9}{'GFLOP/s':>9}{'GB/s':>7}{'of FMA':>8}{'of read':>9}{'error':>9}")
    for row in rows:
        print(line(row))
    return 0


def line(row: Mapping[str, Any]) -> str:
    """One operation's figures."""
    return (
        f"{row['op']:<11}{row['shape']:<52}{row['ms']:>9.2f}{row['gflops']:>9.2f}{row['gbs']:>7.2f}"
        f"{row['of_fma']:>8.1%}{row['of_read']:>9.1%}{row['max_error']:>9.1e}"
    )
