"""The vocabulary of named intermediates that the oracle and the kernels' host both speak.

Shapes with T tokens, D width, N query heads, K key/value heads, H head size, F MLP width, V vocabulary, L layers.
`lse` is a natural logarithm; `q` and `k` come after RoPE, `q_proj` and `k_proj` before it.
"""

GLOBAL_SHAPES = {
    "token_ids": "T",
    "embed": "TD",
    "final_norm": "TD",
    "logits": "TV",
    "lens_ids": "(L+1)T10",
    "lens_logprobs": "(L+1)T10",
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
