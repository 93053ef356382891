"""`playground models`: what can be given as MODEL."""

import argparse

from weights.sizes import megabytes, weight_bytes

LEGEND = (
    "L layers, N query heads, K key/value heads, D width, H dimensions of a head, F width of the feed-forward part, "
    "V tokens of the vocabulary; then the size of the weights, their licence, their folder."
)


def add(subparsers) -> None:
    """Describe the command's options."""
    command = subparsers.add_parser("models", help="list the models", description="List the models on this machine.")
    command.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Print one line per model, the default marked, what of its report is left out, what could be pulled, a legend."""
    from server.model_index import ModelIndex
    from server.settings import load_settings

    index = ModelIndex(load_settings().model)
    models = index.all()
    for model in models:
        print(line(model, default=model.entry.id == index.default))
        for problem in model.report.problems:
            print(f"{'':<24} {problem}")
    if index.default not in [model.entry.id for model in models]:
        print(f"The default, {index.default}, is not here yet: `playground pull {index.default}` fetches it.")
    if any(not model.refused for model in models):
        print(LEGEND)
    return 0


def line(model, *, default: bool) -> str:
    """`tiny (default)  qwen3  L 4  N 8  K 2 ...`; a refused model with the reason."""
    name = f"{model.entry.id}{' (default)' if default else ''}"
    if model.refused:
        return f"{name:<24} cannot be run: {model.refused}"
    sizes = "  ".join(f"{key} {value}" for key, value in model.shape.items())
    size = megabytes(weight_bytes(model.files))
    return f"{name:<24} {model.family:<8} {sizes}  {size}  {model.entry.licence}  {model.entry.folder}"
