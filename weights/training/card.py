"""The model card, written from measurements: card.json for programs, README.md for people, heads.json, prompts.json."""

import json
import os
import subprocess
from dataclasses import asdict
from pathlib import Path

import torch

from weights.checkpoint import open_checkpoint
from weights.training import depth
from weights.training.card_text import readme
from weights.training.default_prompts import offered
from weights.training.evaluate import Report, evaluate
from weights.training.measures import MEASURED_ON
from weights.training.probe import Probe
from weights.training.recipe import Recipe
from weights.training.rows import Text
from weights.training.sources import data
from weights.training.summary import head_list, summary

ABOUT = (
    "4 MB, trained by this project so that its heads have jobs that can be checked: "
    "previous token, induction, pronouns, names, tables."
)
# Under the page's lens, after the model's name.
LENS = "trained to predict the next token from earlier layers too, so its lens reads early"


def write_card(folder: Path, recipe: Recipe, texts: list[Text], seconds: float) -> Report:
    """Measure the exported folder and write everything that describes it. Returns the measurements."""
    report = evaluate(folder, texts)
    probe = Probe.open(folder)
    checkpoint = open_checkpoint(folder)
    samples = [
        {"prompt": prompt, "seed": seed, "text": depth.sample(probe, prompt, seed)}
        for seed, prompt in enumerate(depth.SAMPLE_PROMPTS)
    ]
    card = {
        "id": "tiny",
        "name": "Tiny",
        "about": ABOUT,
        "licence": "Apache-2.0",
        "source": "trained by this project, weights/training",
        "data": data(text.sha256 for text in texts),
        "commit": commit(),
        "sha256": {"model.safetensors": checkpoint.hash},
        "lens": LENS,
        "parameters": sum(parameter.numel() for parameter in probe.model.parameters()),
        "recipe": asdict(recipe),
        "training_minutes": round(seconds / 60, 1),
        "cores": os.cpu_count(),
        "torch": torch.__version__,
        "texts": [{"name": text.name, "sha256": text.sha256, "held_out": len(text.held_out)} for text in texts],
        "measured": summary(report),
        "samples": samples,
    }
    entries = offered(probe, report)
    _write(folder / "card.json", card)
    heads = {"model_sha256": checkpoint.hash, "measured_on": MEASURED_ON, "heads": head_list(report)}
    _write(folder / "heads.json", heads)
    _write(folder / "prompts.json", {"model_sha256": checkpoint.hash, "prompts": entries})
    (folder / "README.md").write_text(readme(card, head_list(report), entries), encoding="utf-8")
    return report


def commit() -> str:
    """The commit that trained, "unknown" outside a git checkout."""
    asked = ["git", "-C", str(Path(__file__).parent), "rev-parse", "HEAD"]
    try:
        return subprocess.run(asked, capture_output=True, text=True, check=True, timeout=10).stdout.strip()
    except (OSError, subprocess.SubprocessError):
        return "unknown"


def _write(path: Path, content: dict) -> None:
    path.write_text(json.dumps(content, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
