"""A tiny llama checkpoint with random weights, for tests that need a model which opens at once.

make_small_model(folder)                          a vocabulary of its own: 256 bytes and a few merges
make_small_model(folder, tokenizer=SMOLLM2 DIR)   the tokenizer of a pulled model, V = 49152
"""

import json
import shutil
from pathlib import Path

import numpy as np

from weights.safetensors_write import write_safetensors
from weights.tokens import LETTER_OF

MERGES = ["Ġ t", "h e", "Ġt he", "a n", "i n", "Ġ a", "e r", "o n", "Ġ s", "a t"]
SPECIAL = ["<|endoftext|>", "<|im_start|>", "<|im_end|>"]


def make_small_model(
    folder: Path, tokenizer: Path | None = None, *, D: int = 64, L: int = 2, N: int = 4, K: int = 2, seed: int = 1
) -> Path:
    """Write a checkpoint folder: F = 2 * D, H = D / N, f16, tied embeddings. Gives the folder."""
    folder.mkdir(parents=True, exist_ok=True)
    if tokenizer is None:
        spec = byte_tokenizer()
        (folder / "tokenizer.json").write_text(json.dumps(spec, ensure_ascii=False), encoding="utf-8")
    else:
        shutil.copy(tokenizer / "tokenizer.json", folder)
        spec = json.loads((folder / "tokenizer.json").read_bytes())
    V = len(spec["model"]["vocab"])
    config = {
        "architectures": ["LlamaForCausalLM"], "model_type": "llama", "hidden_act": "silu", "attention_bias": False,
        "mlp_bias": False, "hidden_size": D, "intermediate_size": 2 * D, "head_dim": D // N, "num_hidden_layers": L,
        "num_attention_heads": N, "num_key_value_heads": K, "max_position_embeddings": 2048, "rms_norm_eps": 1e-5,
        "rope_theta": 10000.0, "rope_scaling": None, "tie_word_embeddings": True, "vocab_size": V,
        "bos_token_id": 1, "eos_token_id": 2, "torch_dtype": "float16",
    }  # fmt: skip
    (folder / "config.json").write_text(json.dumps(config, indent=2), encoding="utf-8")
    shapes, random = small_shapes(V, D, L, D // N * K), np.random.default_rng(seed)

    def arrays():
        for name, shape in shapes.items():
            spread = random.standard_normal(shape) / np.sqrt(shape[-1])
            yield name, (1 + spread if len(shape) == 1 else 3 * spread).astype(np.float16)

    (folder / "model.safetensors").unlink(missing_ok=True)
    sha256 = write_safetensors(folder / "model.safetensors", shapes, "float16", arrays(), {"format": "pt"})
    card = {"name": f"Small {folder.name}", "licence": "CC0-1.0", "source": "random numbers", "sha256": sha256}
    (folder / "card.json").write_text(json.dumps(card), encoding="utf-8")
    return folder


def small_shapes(V: int, D: int, L: int, kv: int) -> dict[str, tuple[int, ...]]:
    """Names and shapes of a llama with tied embeddings; kv = K * H."""
    shapes = {"model.embed_tokens.weight": (V, D), "model.norm.weight": (D,)}
    parts = {
        "input_layernorm": (D,), "self_attn.q_proj": (D, D), "self_attn.k_proj": (kv, D), "self_attn.v_proj": (kv, D),
        "self_attn.o_proj": (D, D), "post_attention_layernorm": (D,), "mlp.gate_proj": (2 * D, D),
        "mlp.up_proj": (2 * D, D), "mlp.down_proj": (D, 2 * D),
    }  # fmt: skip
    return shapes | {f"model.layers.{i}.{part}.weight": shape for i in range(L) for part, shape in parts.items()}


def byte_tokenizer() -> dict:
    """tokenizer.json with every byte, ten merges and three control tokens."""
    tokens = [*SPECIAL, *(LETTER_OF[byte] for byte in range(256)), *(merge.replace(" ", "") for merge in MERGES)]
    byte_level = {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True, "use_regex": True}
    flags = {"single_word": False, "lstrip": False, "rstrip": False, "normalized": False, "special": True}
    return {
        "version": "1.0", "truncation": None, "padding": None, "normalizer": None, "post_processor": None,
        "added_tokens": [{"id": id, "content": content, **flags} for id, content in enumerate(SPECIAL)],
        "pre_tokenizer": byte_level, "decoder": byte_level,
        "model": {
            "type": "BPE", "dropout": None, "unk_token": None, "continuing_subword_prefix": None,
            "end_of_word_suffix": None, "fuse_unk": False, "byte_fallback": False, "ignore_merges": False,
            "vocab": {token: id for id, token in enumerate(tokens)}, "merges": [merge.split(" ") for merge in MERGES],
        },
    }  # fmt: skip
