"""From the trained network to a checkpoint folder in Hugging Face's form: float16 weights, config, tokenizer."""

import json
from pathlib import Path

import numpy as np
from tokenizers import Tokenizer

from weights.safetensors_write import write_safetensors
from weights.training.network import Network
from weights.training.tokenizer import save_tokenizer

CONFIG, WEIGHTS = "config.json", "model.safetensors"


def export(network: Network, tokenizer: Tokenizer, folder: Path) -> str:
    """Write the folder's files, replacing older ones; returns the SHA-256 of the weights."""
    sha256 = export_weights(network, folder)
    save_tokenizer(tokenizer, folder, network.s.positions)
    return sha256


def export_weights(network: Network, folder: Path) -> str:
    """config.json and model.safetensors alone: a model that takes ids."""
    folder.mkdir(parents=True, exist_ok=True)
    arrays = {
        f"model.{name}": parameter.detach().numpy().astype(np.float16) for name, parameter in network.named_parameters()
    }
    (folder / CONFIG).write_text(json.dumps(network.s.config(), indent=2) + "\n", encoding="utf-8")
    (folder / WEIGHTS).unlink(missing_ok=True)
    shapes = {name: array.shape for name, array in arrays.items()}
    return write_safetensors(folder / WEIGHTS, shapes, np.float16, arrays.items(), {"format": "pt"})
