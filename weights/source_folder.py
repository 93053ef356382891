"""A checkpoint folder of the user's own, registered in the catalogue.

What is stored is a pointer, not a copy: weights are large, and a folder that is trained further should be seen as it is
now. The price is that a moved folder cannot be opened any more; the catalogue then says so in a sentence.
"""

import contextlib
import json
import re
from collections.abc import Callable
from pathlib import Path

from weights.catalogue import POINTER, find
from weights.checkpoint import open_checkpoint
from weights.places import is_id, models_dir, new_model_folder
from weights.tokens import TokenizerMissing, load_tokenizer


def pull_folder(folder: Path, check_config: Callable[[dict], object], reserved: set[str]) -> Path:
    """Check the folder and register it; the catalogue's folder, whose name is the id. Raises CheckpointError."""
    folder = folder.expanduser().resolve()
    checkpoint = open_checkpoint(folder)
    check_config(checkpoint.config)
    with contextlib.suppress(TokenizerMissing):  # prompts are then given as ids
        load_tokenizer(folder)
    if folder.parent == models_dir().resolve():
        return folder
    id = _free_id(folder, reserved)
    with new_model_folder(id) as place:
        (place / POINTER).write_text(json.dumps({"folder": str(folder)}) + "\n", encoding="utf-8")
    return place.with_name(id)


def _free_id(folder: Path, reserved: set[str]) -> str:
    """An id made of the folder's name: the one it has already, or the first that no other model has."""
    plain = re.sub(r"[^A-Za-z0-9._-]+|\.{2,}", "-", folder.name).strip("-._")[:80]
    name = plain if is_id(plain) else "folder"
    for number in range(1, 1000):
        id = name if number == 1 else f"{name}-{number}"
        taken = find(id)
        if id not in reserved and (taken is None or taken.folder == folder):
            return id
    raise FileExistsError(f"a thousand folders are called {name}")
