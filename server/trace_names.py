"""The vocabulary of named intermediates that the oracle and the kernels' host both speak, with their shapes.

T tokens, D width, N query heads, K key/value heads, H head size, F MLP width, V vocabulary, L layers; P: rows of logits
asked for; C = L + 1 depths of the lens; 10 likeliest tokens. `lse` is a natural logarithm; `q` and `k` come after RoPE,
`q_proj` and `k_proj` before it. A tensor of layers has the layers asked for in front.
"""

from collections.abc import Iterable, Mapping
from math import prod

TOP = 10

GLOBAL_SHAPES = {
    "token_ids": "T",
    "embed": "TD",
    "final_norm": "TD",
    "logits": "PV",
    "lens_ids": "CTX",
    "lens_logprobs": "CTX",
    "lens_logits": "CPV",  # the oracle alone has it: the page without WebGPU makes ranks and entropies of it
}

LAYER_SHAPES = {
    "resid_pre": "TD",
    "attn_norm": "TD",
    "q_proj": "TNH",
    "k_proj": "TKH",
    "v": "TKH",
    "q_normed": "TNH",
    "k_normed": "TKH",
    "q": "TNH",
    "k": "TKH",
    "lse": "NT",
    "pattern": "NTT",
    "z": "TNH",
    "attn_out": "TD",
    "resid_mid": "TD",
    "mlp_norm": "TD",
    "gate": "TF",
    "up": "TF",
    "act": "TF",
    "mlp_out": "TD",
    "resid_post": "TD",
}

NAMES = (*GLOBAL_SHAPES, *LAYER_SHAPES)

# What `playground trace` writes, whichever backend computed it.
FILE_NAMES = (
    *("token_ids", "pattern", "lse", "z", "resid_pre", "resid_mid", "resid_post"),
    *("logits", "lens_ids", "lens_logprobs"),
)


def shape_of(name: str, sizes: Mapping[str, int], *, tokens: int, layers: int, rows: int) -> tuple[int, ...]:
    """Shape of one tensor. sizes: the model's L, N, K, D, H, F, V; layers, rows: how many are asked for."""
    all_sizes = {**sizes, "T": tokens, "P": rows, "C": sizes["L"] + 1, "X": min(TOP, sizes["V"])}
    letters = GLOBAL_SHAPES.get(name) or LAYER_SHAPES[name]
    front = (layers,) if name in LAYER_SHAPES else ()
    return (*front, *(all_sizes[letter] for letter in letters))


def total_bytes(names: Iterable[str], sizes: Mapping[str, int], *, tokens: int, layers: int, rows: int) -> int:
    """Bytes of these tensors together; every element has four."""
    return 4 * sum(prod(shape_of(name, sizes, tokens=tokens, layers=layers, rows=rows)) for name in names)
