"""The command line: `playground train-tiny`, or `python -m weights.training`.

    train      everything: tokenizer, two stages, export, evaluation, card; goes on where it was interrupted
    evaluate   measure a checkpoint folder and print the figures
    smoke      minutes instead of an hour: induction heads at a small size, which the tests run
"""

import argparse
import json
import os
import sys
from collections.abc import Callable
from pathlib import Path

OUT = Path(__file__).resolve().parent.parent / "tiny"


def main(argv: list[str] | None = None) -> int:
    """Run one sub-command; the exit status."""
    top = argparse.ArgumentParser(prog="python -m weights.training", description="Train the embedded model.")
    describe(top, perform)
    args = top.parse_args(argv)
    return args.run(args)


def describe(top: argparse.ArgumentParser, run: Callable[[argparse.Namespace], int]) -> None:
    """Add the sub-commands to a parser; each sets `run`, which is to call `perform`."""
    commands = top.add_subparsers(metavar="COMMAND", required=True)
    train = commands.add_parser("train", help="train, export, evaluate, write the card")
    train.add_argument("--out", type=Path, default=OUT, help="the checkpoint folder to write")
    train.add_argument("--work", type=Path, default=Path("train-tiny"), help="where checkpoints of the run lie")
    train.add_argument("--threads", type=_threads, help="torch threads (default: one for each core)")
    train.set_defaults(run=run, task=_train)
    evaluate = commands.add_parser("evaluate", help="measure a checkpoint folder")
    evaluate.add_argument("folder", type=Path)
    evaluate.set_defaults(run=run, task=_evaluate)
    smoke = commands.add_parser("smoke", help="train the induction circuit at a small size")
    smoke.add_argument("--out", type=Path, default=Path("train-tiny-smoke"), help="the folder to write")
    smoke.set_defaults(run=run, task=_smoke)
    for command in (train, evaluate):
        command.add_argument(
            "--text", type=Path, action="append", default=[], help="a text file; stories end with <|endoftext|>"
        )


def perform(args: argparse.Namespace) -> int:
    """Run the task; a mistake becomes one sentence and status 2."""
    os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")  # torch's threads otherwise spin while other programs work
    try:
        return args.task(args)
    except KeyboardInterrupt:
        _say("train-tiny: stopped; a training goes on from its last checkpoint, one a minute, with the same command.")
        return 130
    except OSError as error:  # a text that is not there, a folder that cannot be written
        _say(f"train-tiny: {error.filename or 'a file'} cannot be used: {error.strerror or error}.")
        return 2
    except ValueError as error:  # a text that is no UTF-8, a folder that is no checkpoint or another run's
        _say(f"train-tiny: {error}")
        return 2


def _train(args: argparse.Namespace) -> int:
    import torch

    from weights.training.card import write_card
    from weights.training.export import export
    from weights.training.recipe import Recipe
    from weights.training.rows import read_texts
    from weights.training.run_folder import writable
    from weights.training.stages import run

    if args.threads:
        torch.set_num_threads(args.threads)
    texts = read_texts(args.text)
    writable(args.out)
    recipe = Recipe()
    network, tokenizer, seconds = run(recipe, texts, args.work, _say)
    export(network, tokenizer, args.out)
    write_card(args.out, recipe, texts, seconds)
    _say(f"{args.out} is written; its README.md has the figures.")
    return 0


def _evaluate(args: argparse.Namespace) -> int:
    from weights.training.evaluate import evaluate
    from weights.training.rows import read_texts
    from weights.training.summary import summary

    print(json.dumps(summary(evaluate(args.folder, read_texts(args.text))), indent=2))
    return 0


def _smoke(args: argparse.Namespace) -> int:
    from weights.training.smoke import smoke

    accuracy, induction = smoke(args.out, _say)
    _say(f"accuracy {accuracy:.3f} on repeated random tokens, best induction head {induction:.2f}")
    return 0


def _threads(given: str) -> int:
    """A whole number of threads, at most four for each core."""
    most = 4 * (os.cpu_count() or 1)
    if not given.isdecimal() or not 1 <= int(given) <= most:
        raise argparse.ArgumentTypeError(f"{given!r} is not a number of threads from 1 to {most}")
    return int(given)


def _say(line: str) -> None:
    print(line, file=sys.stderr, flush=True)
