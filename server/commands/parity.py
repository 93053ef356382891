"""`playground parity`: compare the WGSL kernels with the PyTorch oracle on this machine's adapter."""

import argparse
import json

from server.commands import tell
from server.commands.prompts import add_prompt_options, check_ids, read_prompt
from server.commands.trace import need_oracle

PROMPT = "When Mary and John went to the store, John gave a drink to"
IDS_WITHOUT_TOKENIZER = 33  # odd on purpose: no tile ends there
DECODED_TOKENS = 3


def add(subparsers) -> None:
    """Describe the command's options."""
    command = subparsers.add_parser("parity", help="kernels against oracle", description=__doc__)
    command.add_argument("model", metavar="MODEL", nargs="?", help="a catalogue id or a folder (default: the default)")
    add_prompt_options(command, required=False)
    command.add_argument("--json", action="store_true", help="machine-readable report")
    command.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """0 when every error is within its tolerance, 1 when not."""
    from webgpu.config import parse_config
    from weights.catalogue import default_model, open_model

    checkpoint = open_model(args.model or default_model())
    config = parse_config(checkpoint.config)
    chosen = args.prompt is not None or args.prompt_file is not None or args.ids is not None
    if not chosen and not (checkpoint.folder / "tokenizer.json").exists():
        args.ids = ",".join(str(7919 * i % config.V) for i in range(1, IDS_WITHOUT_TOKENIZER + 1))
    prompt = read_prompt(args, checkpoint.folder, default=PROMPT)
    check_ids(prompt.ids, config.V, config.max_tokens - DECODED_TOKENS)
    need_oracle()
    kernels, layers, adapter = compare(checkpoint.folder, prompt.ids)
    failed = [verdict for verdict in (*kernels, *layers) if not verdict.ok]
    if args.json:
        report = {
            "model": args.model or default_model(),
            "model_hash": checkpoint.hash,
            "adapter": adapter,
            "tokens": len(prompt.ids),
            "kernels": [verdict.as_json() for verdict in kernels],
            "layers": [verdict.as_json() for verdict in layers],
            "ok": not failed,
        }
        print(json.dumps(report, indent=1))
    else:
        print_report(kernels, layers, adapter, len(prompt.ids))
    return 1 if failed else 0


def compare(folder, ids: list[int]):
    """Run both; (verdicts per kernel, verdicts per layer, the adapter in words)."""
    from server import parity
    from server.oracle_run import Oracle
    from server.webgpu_run import Kernels

    tell("loading the model")
    gpu = Kernels(folder)
    names = [name for name in gpu.names if name != "token_ids"]
    tell(f"running {len(ids)} tokens on {gpu.device.words}")
    found = gpu.trace(ids, names)
    tell("running the oracle and comparing")
    oracle = Oracle(folder)
    kernels = list(parity.compare_kernels(found, oracle, ids))
    kernels += parity.compare_decode(lambda count: list(gpu.model.generate(ids, count)), oracle, ids, DECODED_TOKENS)
    layers = list(parity.compare_layers(found, oracle.trace(ids, ["pattern", "resid_post"])))
    return kernels, layers, gpu.device.words


def print_report(kernels: list, layers: list, adapter: str, tokens: int) -> None:
    """Tables for people."""
    print(f"{tokens} tokens on {adapter}, against PyTorch on the CPU\n")
    print(f"{'kernel':<18}{'tensor':<16}{'largest error':>14}{'tolerance':>11}")
    for verdict in kernels:
        print(line(verdict))
    print(f"\n{'from the ids on':<18}{'tensor':<16}{'largest error':>14}{'tolerance':>11}")
    for verdict in layers:
        print(line(verdict))
    failed = sum(not verdict.ok for verdict in (*kernels, *layers))
    total = len(kernels) + len(layers)
    print(f"\n{total - failed} of {total} within tolerance" + (f"; {failed} OUT OF TOLERANCE" if failed else ""))


def line(verdict) -> str:
    """One row of a table."""
    mark = "ok" if verdict.ok else "OUT"
    return f"{verdict.where:<18}{verdict.tensor:<16}{verdict.error:>14.1e}{verdict.tolerance:>11.0e}  {mark}"
