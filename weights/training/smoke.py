"""The induction circuit in minutes: stage one at a small size, exported and measured as the real model is."""

from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path

import torch

from python_ref.load import load_model
from weights.training.export import export_weights
from weights.training.measures import random_repeats
from weights.training.network import Network
from weights.training.repeats import Repeats
from weights.training.run_folder import claim
from weights.training.shape import Shape
from weights.training.stages import repeats_stage
from weights.training.trainer import train

SHAPE = Shape(V=256, L=3, F=64, positions=128)
RECIPE = Repeats(steps=450)


def smoke(folder: Path, say: Callable[[str], None] = print, seed: int = 0) -> tuple[float, float]:
    """Train and export to `folder`: accuracy on random tokens said again after 48, score of the best induction head."""
    claim(folder, {"recipe": {"shape": asdict(SHAPE), "repeats": asdict(RECIPE), "seed": seed}, "texts": {}})
    torch.manual_seed(seed)
    network = Network(SHAPE)
    train(network, repeats_stage(network, RECIPE), folder, seed, say)
    export_weights(network, folder)
    accuracy, scores = random_repeats(load_model(folder))
    return accuracy, float(scores["induction"].max())
