"""Tiny random checkpoints of every family and variation, with what Hugging Face transformers computes for them.

    expected = make_checkpoint("qwen3-sliding", folder)    # writes config.json and weights, then runs transformers
    expected = checkpoint("qwen3-sliding")                 # the same, made once per process in a temporary folder

Weights are drawn with a standard deviation of 0.25 (transformers' default of 0.02 makes every head look uniform), and
biases and norm weights are drawn too (transformers starts them at 0 and 1, which would hide a forgotten one).
The reference runs eager attention in float64; transformers still computes norms, softmax and RoPE angles in float32,
so agreement to about 1e-6 of the largest value is the most these numbers can show.
"""

import atexit
import functools
import json
import os
import tempfile
import warnings
from dataclasses import dataclass
from pathlib import Path

import numpy as np

os.environ.setdefault("HF_HUB_OFFLINE", "1")  # every checkpoint is made here: a look-up on the hub would be a mistake

SMALL = {
    "vocab_size": 321,  # odd on purpose: half of the packed formats need padding
    "hidden_size": 64,
    "intermediate_size": 160,
    "num_hidden_layers": 3,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "max_position_embeddings": 256,
    "initializer_range": 0.25,
    "tie_word_embeddings": False,
    "bos_token_id": 1,
    "eos_token_id": 2,
    "pad_token_id": None,
}


def rope(rope_type: str, **fields) -> dict:
    return {"rope_parameters": {"rope_type": rope_type, "rope_theta": 10_000.0, **fields}}


LLAMA3 = {"factor": 8.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0, "original_max_position_embeddings": 64}
YARN = {"factor": 4.0, "original_max_position_embeddings": 64}
WINDOW = {"use_sliding_window": True, "sliding_window": 5}

ODD = {
    "hidden_size": 36,
    "intermediate_size": 90,
    "num_attention_heads": 9,
    "num_key_value_heads": 3,
    "head_dim": 48,
}

# name -> (model type, what differs from SMALL)
VARIATIONS: dict[str, tuple[str, dict]] = {
    "llama-gqa": ("llama", {}),
    "llama-mha": ("llama", {"num_key_value_heads": 4}),
    "llama-mqa-tied": ("llama", {"num_key_value_heads": 1, "tie_word_embeddings": True}),
    "llama-biases": ("llama", {"attention_bias": True, "mlp_bias": True}),
    "llama-head-dim": ("llama", {"head_dim": 32}),  # N * H = 128, D = 64
    "llama-odd-sizes": ("llama", ODD),
    "llama-linear": ("llama", rope("linear", factor=4.0)),
    "llama-dynamic": ("llama", {"max_position_embeddings": 24, **rope("dynamic", factor=3.0)}),  # prompt of 37 > 24
    "llama-dynamic-short": ("llama", rope("dynamic", factor=3.0)),  # prompt of 37 < 256: nothing is scaled
    "llama-llama3": ("llama", rope("llama3", **LLAMA3)),
    "llama-yarn": ("llama", rope("yarn", **YARN)),
    "llama-yarn-mscale": ("llama", rope("yarn", mscale=0.7, mscale_all_dim=1.3, truncate=False, **YARN)),
    "llama-yarn-factor": ("llama", rope("yarn", attention_factor=0.9, beta_fast=16.0, beta_slow=2.0, **YARN)),
    "llama-sharded": ("llama", {}),
    "llama-bf16": ("llama", {}),
    "llama-f16": ("llama", {}),
    "llama-old-config": ("llama", {"max_position_embeddings": 24, **rope("dynamic", factor=3.0)}),
    "qwen2": ("qwen2", {"tie_word_embeddings": True}),
    "qwen2-sliding": ("qwen2", {"max_window_layers": 1, **WINDOW}),
    "qwen3": ("qwen3", {"head_dim": 32, "tie_word_embeddings": True}),
    "qwen3-biases": ("qwen3", {"head_dim": 16, "attention_bias": True}),
    "qwen3-sliding": ("qwen3", {"head_dim": 16, "max_window_layers": 2, **WINDOW}),
    "mistral": ("mistral", {"sliding_window": None}),
    "mistral-window": ("mistral", {"sliding_window": 7}),
    "mistral-head-dim": ("mistral", {"head_dim": 32, "sliding_window": 7}),
    "smollm3": ("smollm3", {"num_hidden_layers": 4, "tie_word_embeddings": True}),  # layer 3 has no RoPE
    "smollm3-list": ("smollm3", {"no_rope_layers": [0, 1, 0], "attention_bias": True, "mlp_bias": True}),
    "smollm3-sliding": ("smollm3", {"num_hidden_layers": 4, "no_rope_layer_interval": 2, **WINDOW}),
    "smollm3-yarn": ("smollm3", {"no_rope_layers": [1, 0, 1], **rope("yarn", **YARN)}),
}
NAMES = list(VARIATIONS)
TOKENS = 37  # odd, longer than every window above, shorter than every context but one


@dataclass(frozen=True)
class Expected:
    """What transformers computes for one checkpoint. Arrays are float64, ids int64; L layers, N heads, T tokens."""

    name: str
    folder: Path
    input_ids: np.ndarray  # [T]
    logits: np.ndarray  # [T, V]
    attentions: np.ndarray  # [L, N, T, T]
    hidden_states: np.ndarray  # [L + 1, T, D]: the embedding first, the last one after the final norm


def make_checkpoint(name: str, folder: Path, tokens: int = TOKENS) -> Expected:
    """Write the checkpoint `name` into `folder` (made if missing) and run transformers on it.

    tokens: length of the random prompt. Raises KeyError when the name is not in NAMES.
    """
    import torch
    import transformers

    model_type, changes = VARIATIONS[name]
    seed = NAMES.index(name)
    folder.mkdir(parents=True, exist_ok=True)
    transformers.utils.logging.disable_progress_bar()
    transformers.utils.logging.set_verbosity_error()
    with warnings.catch_warnings(), torch.random.fork_rng(), torch.no_grad():
        warnings.simplefilter("ignore")  # the library's own deprecations are not this project's
        torch.manual_seed(seed)
        config = transformers.AutoConfig.for_model(model_type, **{**SMALL, **changes})
        model = transformers.AutoModelForCausalLM.from_config(config)
        _draw_the_rest(model)
        model.to(_dtype(name)).save_pretrained(folder, max_shard_size="60KB" if name == "llama-sharded" else "5GB")
        if name == "llama-old-config":
            _rewrite_as_old_config(folder / "config.json")
        ids = torch.randint(config.vocab_size, (1, tokens))
        reference = transformers.AutoModelForCausalLM.from_pretrained(
            folder, dtype=torch.float64, attn_implementation="eager"
        )
        out = reference.eval()(ids, output_attentions=True, output_hidden_states=True, use_cache=False)
    return Expected(
        name=name,
        folder=folder,
        input_ids=ids[0].numpy(),
        logits=out.logits[0].numpy(),
        attentions=torch.cat(out.attentions).numpy(),
        hidden_states=torch.cat(out.hidden_states).numpy(),
    )


@functools.cache
def checkpoint(name: str) -> Expected:
    """`make_checkpoint` in a temporary folder, once per process; the folder goes when the process ends."""
    folder = tempfile.TemporaryDirectory(prefix=f"{name}-")
    atexit.register(folder.cleanup)
    return make_checkpoint(name, Path(folder.name))


def _draw_the_rest(model) -> None:
    """Give biases and norm weights random values: at 0 and 1 a host that forgets them would still agree."""
    for name, parameter in model.named_parameters():
        if name.endswith("bias"):
            parameter.normal_(0.0, 0.25)
        elif "norm" in name:
            parameter.normal_(1.0, 0.25)


def _dtype(name: str):
    import torch

    return {"llama-bf16": torch.bfloat16, "llama-f16": torch.float16}.get(name, torch.float32)


def _rewrite_as_old_config(path: Path) -> None:
    """Say the same as transformers 4 did: `rope_theta`, `rope_scaling` with `type`, `torch_dtype`."""
    config = json.loads(path.read_text())
    parameters = config.pop("rope_parameters")
    config["torch_dtype"] = config.pop("dtype")
    config["rope_theta"] = parameters.pop("rope_theta")
    config["rope_scaling"] = {"type": parameters.pop("rope_type"), **parameters}
    path.write_text(json.dumps(config, indent=2))
