"""A random model small enough to run in a software GPU at once, with a tokenizer of its own.

4 layers, 4 query heads over 2 key/value heads, width 64; byte-level BPE with every byte and a few merges, so that every
text has tokens and some characters are split over several. Weights are drawn large enough that heads look different.
"""

import json
from pathlib import Path

import numpy as np
from safetensors.numpy import save_file

MAX_TOKENS = 96
SIZES = {"L": 4, "N": 4, "K": 2, "D": 64, "H": 16, "F": 160}
MERGES = [("t", "h"), ("th", "e"), ("Ġ", "the"), ("Ġ", "a"), ("i", "n"), ("o", "n"), ("Ġ", "Ġ"), ("e", "r"), ("ã", "ģ")]


def byte_letters() -> list[str]:
    """GPT-2's letter for each byte: printable ones stand for themselves, the rest for letters from U+0100 on."""
    shown = [*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)]
    hidden = [byte for byte in range(256) if byte not in shown]
    letter = {byte: chr(byte) for byte in shown} | {byte: chr(256 + i) for i, byte in enumerate(hidden)}
    return [letter[byte] for byte in range(256)]


def tokenizer() -> dict:
    """tokenizer.json of byte-level BPE."""
    words = ["<|end|>", *byte_letters(), *("".join(pair) for pair in MERGES)]
    special = {"id": 0, "content": "<|end|>", "special": True}
    off = {"single_word": False, "lstrip": False, "rstrip": False, "normalized": False}
    return {
        "version": "1.0", "truncation": None, "padding": None, "added_tokens": [special | off], "normalizer": None,
        "pre_tokenizer": {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True, "use_regex": True},
        "post_processor": None,
        "decoder": {"type": "ByteLevel", "add_prefix_space": True, "trim_offsets": True, "use_regex": True},
        "model": {
            "type": "BPE", "dropout": None, "unk_token": None,
            "continuing_subword_prefix": None, "end_of_word_suffix": None,
            "fuse_unk": False, "byte_fallback": False, "ignore_merges": False,
            "vocab": {word: i for i, word in enumerate(words)}, "merges": [" ".join(pair) for pair in MERGES],
        },
    }  # fmt: skip


def config(vocabulary: int) -> dict:
    """config.json of a Llama."""
    return {
        "architectures": ["LlamaForCausalLM"], "model_type": "llama", "vocab_size": vocabulary,
        "hidden_size": SIZES["D"],
        "intermediate_size": SIZES["F"], "num_hidden_layers": SIZES["L"], "num_attention_heads": SIZES["N"],
        "num_key_value_heads": SIZES["K"], "hidden_act": "silu", "max_position_embeddings": MAX_TOKENS,
        "rms_norm_eps": 1e-5, "rope_theta": 10000.0, "tie_word_embeddings": True, "eos_token_id": 0,
        "attention_bias": False, "mlp_bias": False,
    }  # fmt: skip


def make_small_model(folder: Path, seed: int = 7) -> Path:
    """Write the model into `folder` and return it."""
    folder.mkdir(parents=True, exist_ok=True)
    words = tokenizer()
    vocabulary = len(words["model"]["vocab"])
    (folder / "tokenizer.json").write_text(json.dumps(words), "utf-8")
    (folder / "tokenizer_config.json").write_text(json.dumps({"tokenizer_class": "PreTrainedTokenizerFast"}), "utf-8")
    (folder / "config.json").write_text(json.dumps(config(vocabulary)), "utf-8")
    random = np.random.default_rng(seed)
    L, N, K, D, H, F = (SIZES[letter] for letter in "LNKDHF")
    shapes = {"model.embed_tokens.weight": (vocabulary, D), "model.norm.weight": (D,)}
    for layer in range(L):
        at = f"model.layers.{layer}."
        shapes |= {at + "input_layernorm.weight": (D,), at + "post_attention_layernorm.weight": (D,)}
        heads = {"q": N, "k": K, "v": K}
        shapes |= {at + f"self_attn.{name}_proj.weight": (heads[name] * H, D) for name in heads}
        shapes |= {at + "self_attn.o_proj.weight": (D, N * H), at + "mlp.down_proj.weight": (D, F)}
        shapes |= {at + f"mlp.{name}_proj.weight": (F, D) for name in ("gate", "up")}
    drawn = {name: random.standard_normal(shape) for name, shape in shapes.items()}
    tensors = {name: (1 + 0.1 * x if x.ndim == 1 else 0.2 * x).astype(np.float16) for name, x in drawn.items()}
    save_file(tensors, folder / "model.safetensors", metadata={"format": "pt"})
    return folder
