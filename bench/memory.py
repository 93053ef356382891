"""GPU memory of attention as the plan asks for it: what a prompt of T tokens keeps, and what is only passed through.

    state     q, k, v [T,heads,H] and lse [N,T] of every layer: everything a pattern can be rebuilt from
    passing   the scratch buffers of one forward, which takes at most 256 tokens at a time
Not counted: where a CPU stands in for a GPU, three images of one layer's keys and values and of a chunk's queries,
8 T K H bytes and at most 1,024 N H (webgpu/images.py).
Nothing of size T x T is kept, so state is linear in T. For SmolLM2-135M's sizes.
"""

from webgpu.config import parse_config
from webgpu.layout import place, tensor_shapes
from webgpu.plan import TRACE, merge_buffers, prefill

SMOLLM2 = {
    "model_type": "llama", "hidden_size": 576, "intermediate_size": 1536, "num_hidden_layers": 30,
    "num_attention_heads": 9, "num_key_value_heads": 3, "vocab_size": 49152, "rms_norm_eps": 1e-5,
    "rope_theta": 100000.0, "max_position_embeddings": 8192, "hidden_act": "silu", "tie_word_embeddings": True,
    "attention_bias": False, "mlp_bias": False,
}  # fmt: skip
LENGTHS = (1024, 2048, 4096, 8192)
STATE = ("q", "k", "v", "lse")


def table() -> list[dict[str, int]]:
    """[{"T", "state_bytes", "passing_bytes", "square_bytes"}]; square: what all patterns would take, for comparison."""
    config = parse_config(SMOLLM2)
    placed = place(config, dict.fromkeys(tensor_shapes(config), "F16"))
    rows = []
    for T in LENGTHS:
        buffers = merge_buffers(prefill(config, placed, T=T, capacity=T, keep=TRACE))
        state = sum(size for name, size in buffers.items() if name.split(".")[0] in STATE and "." in name)
        passing = sum(size for name, size in buffers.items() if "." not in name)
        rows.append({
            "T": T, "state_bytes": state, "passing_bytes": passing, "square_bytes": 4 * T * T * config.N * config.L
        })  # fmt: skip
    return rows
