"""The shape of the embedded model, and its config.json."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Shape:
    """L layers of width D: N query heads share K key/value heads of H dimensions; SwiGLU of width F; V tokens.

    positions: the longest row seen in training. Embedding and unembedding are one matrix.
    """

    V: int = 2048
    D: int = 192
    L: int = 4
    N: int = 8
    K: int = 2
    H: int = 32
    F: int = 512
    positions: int = 512
    rope_base: float = 10_000.0
    eps: float = 1e-6

    def config(self) -> dict:
        """The fields of config.json that say how to run the model, in Hugging Face's words."""
        return {
            "architectures": ["Qwen3ForCausalLM"],
            "model_type": "qwen3",
            "vocab_size": self.V,
            "hidden_size": self.D,
            "num_hidden_layers": self.L,
            "num_attention_heads": self.N,
            "num_key_value_heads": self.K,
            "head_dim": self.H,
            "intermediate_size": self.F,
            "max_position_embeddings": self.positions,
            "rope_theta": self.rope_base,
            "rms_norm_eps": self.eps,
            "hidden_act": "silu",
            "attention_bias": False,
            "attention_dropout": 0.0,
            "use_sliding_window": False,
            "tie_word_embeddings": True,
            "bos_token_id": None,
            "eos_token_id": 0,
            "torch_dtype": "float16",
        }
