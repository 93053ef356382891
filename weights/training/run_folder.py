"""The folder of a run, which goes on only from checkpoints of its own.

    run.json     what the run is made of: recipe and seed, and the SHA-256 of every text
    <stage>.pt   see trainer.py

Checkpoints of another recipe or of other texts would load and train on, and the card would state a run that never was.
"""

import json
from pathlib import Path

RUN = "run.json"


def claim(folder: Path, made_of: dict) -> None:
    """Make `folder`, if need be, and make it this run's. made_of: plain values, as JSON holds them.

    Raises ValueError when the folder holds another run, OSError when it cannot be written.
    """
    folder.mkdir(parents=True, exist_ok=True)
    path, made_of = folder / RUN, json.loads(json.dumps(made_of))
    if path.exists():
        try:
            found = json.loads(path.read_text("utf-8"))
        except ValueError:  # no JSON, no UTF-8
            found = None
        if found != made_of:
            raise ValueError(
                f"{folder} holds a run {_difference(found, made_of)}; give another folder, or remove this one."
            )
    elif any(folder.glob("*.pt")):
        raise ValueError(
            f"{folder} holds checkpoints without {RUN}, so nobody knows of which run; give another folder, or remove "
            "this one."
        )
    else:
        path.write_text(json.dumps(made_of, indent=1) + "\n", encoding="utf-8")


def writable(folder: Path) -> None:
    """Make the folder that is written at the end of a run. Raises OSError before an hour is spent, not after it."""
    folder.mkdir(parents=True, exist_ok=True)
    probe = folder / ".writable"
    probe.touch()
    probe.unlink()


def _difference(found: object, made_of: dict) -> str:
    if not isinstance(found, dict):
        return f"whose {RUN} cannot be read"
    other = [name for name in made_of if found.get(name) != made_of[name]]
    return f"with another {' and other '.join(other)}" if other else "of another version"
