"""Every tolerance used by the tests, each with the reason for its size."""

# The oracle against torch's scaled_dot_product_attention, float32, entries of size one: many roundings of 6e-8.
ORACLE_SDPA = 1e-5

# The oracle against transformers, which computes norms, softmax and RoPE angles in float32 whatever the model's type;
# with weights of size 0.25 its patterns are sharp, and 6e-8 grows to about 1e-5 over three layers (1.1e-5 measured).
ORACLE_TRANSFORMERS = 5e-5
# A row of a pattern is at most 100 float32 weights that sum to one: each addition rounds by 6e-8.
PATTERN_ROW_SUM = 1e-5
# Frequencies that transformers raises to a power in float32: a few units in the last place of the exponent.
FLOAT32_FREQUENCY = 2e-6
# A probability quoted with two digits.
QUOTED_PROBABILITY = 0.005

PAGE_PATTERN = 1e-4
"""Attention weights in the page against the oracle's float64: rounding of float32 scores of the small random model."""

PAGE_LOGITS = 2e-3
"""Logits and log-probabilities of the small random model in the page, absolute: float32 sums over four layers."""

PAGE_F16_PATTERN = 1e-3
"""Attention weights of SmolLM2 in the page against the oracle with the same f16 weights: thirty layers of float32."""

PAGE_F16_LOGPROBS = 2e-3
"""Log-probabilities of the fifty likeliest tokens of SmolLM2 in the page against the oracle, in nats."""

TOKENIZE_LONG_PROMPT_MS = 2000
"""Cutting 18,000 characters, or one word of 5,000 letters, into tokens: about 100 ms on a slow core. The bound leaves
room for a machine that runs other tests at the same time, and still fails a merge whose time grows with the square."""

# Rotation tables, hosts against each other: the same double-precision angle; two libraries may round its cosine apart.
ROPE_TABLE_MIRROR = 1.2e-7
# Frequencies against transformers, which computes them in f32: one rounding of numbers up to 1.
ROPE_TABLE_ABSOLUTE = 6e-8

KNOWN_PROBABILITY = 1e-3
"""A next-token probability of SmolLM2 in float32 against the same in float64: float32 moves it in the fifth digit; a
wrong row order in q or k moves it in the first."""

# server: the oracle's float64 numbers travel as float32, which rounds each to 6e-8 of its value
ORACLE_FLOAT32 = 1e-6

# Kernels against oracle through `playground trace`, two layers of a small random model, relative to the largest value
# of the tensor or to one: float32 sums of at most 97 products.
BACKENDS_AGREE = 2e-5

# A kernel against float64: this many times the error that the same formula makes in plain float32 (flash-attention's
# rule allows 2; drivers may evaluate exp2 and division a few units in the last place worse than numpy), ...
KERNEL_ERROR_FACTOR = 4
# ... plus this share of the largest value, for short sums that plain float32 happens to round exactly: WGSL allows
# exp2 an error of 3 + 2|x| units of 6e-8, and |x| is below 16 wherever the result is not tiny.
KERNEL_ERROR_FLOOR = 2e-6

# The network that is trained against the oracle and transformers, same float32 weights: fused attention adds in another
# order; logits are of size ten (5e-6 measured).
EXPORTED_LOGITS = 1e-4
# exp(score - lse) of two float32 numbers: each carries a rounding of 6e-8 of its size, and the sum of H products a few
# more, so a weight near 1 is off by this share of |lse| (nothing at the usual |lse| of 10, 6% at scores of 1e5).
KERNEL_SCORE_ROUNDING = 5e-7

# Attention whose weights lie in f16 (keys and values too, but the check hands it numbers that f16 holds): each weight
# is rounded to 11 bits, so o is off by at most this share of the largest value.
KERNEL_F16_WEIGHT = 2**-11
# The same with keys and values that f16 has to round, size one: a score is off by about 2^-12 of its largest products,
# o and lse by as much again (4e-4 expected); an unclamped or truncated number gives far more.
KERNEL_F16_STORAGE = 2e-3

# Whole small models on the kernels (float32) against float64, three layers, weights of size 0.25 (sharp patterns:
# scores of size 100, of which float32 keeps 6e-6): 6e-6 measured for patterns, 2e-5 for log-probabilities.
HOST_PATTERN = 5e-5
HOST_LOGPROB = 1e-4
# Residual streams, relative to their largest value: 2e-6 measured.
HOST_HIDDEN_RELATIVE = 2e-5
# Any intermediate, relative to its largest value; patterns as above.
HOST_INTERMEDIATE_RELATIVE = 5e-5
# The lens and a decode step add the same products in another order than the logits: logits of size 30, three roundings.
HOST_LENS_LOGPROB = 2e-5
# Logits nearer than this may change places in float32: 576 products of size one add up to errors of 2e-5, and among
# 49,152 logits one target in a dozen has such a neighbour. Equal logits stay in order of their ids.
LENS_NEAR_TIE = 5e-5
# A prompt in chunks against the whole: a last chunk of one token takes the kernels for decoding, which add in another
# order; the rest is the same arithmetic.
HOST_CHUNK_RELATIVE = 5e-5
# A pixel against the cells it covers: the lanes of a quad add a score's products in different orders, and of scores of
# size 100 float32 keeps 6e-6 (2.7e-6 measured).
HOST_WINDOW_PIXEL = 2e-5
# Mean of at most 40,000 weights in float32 against float64.
HOST_WINDOW_MEAN = 1e-6
# Share of 4,000 draws against the probability they come from: four standard deviations of 0.5 / sqrt(4000).
SAMPLER_FREQUENCY = 0.032
# Share of 2,000 draws that few candidates leave open, beyond those whose token is not among them: at each of 60 ends of
# a token's share 2e-4 of the draw may go either way, and four standard deviations of the rest.
DRAWS_LEFT_OPEN = 0.06

# README's picture against a fresh one, mean difference of a colour value (0 to 255) after shrinking to 160 x 100: other
# fonts move letters by a pixel; a panel that moved or a picture that is missing gives far more.
README_PICTURE = 6.0
# Memory a dispatch may leave behind on average: the allocator's own pages, far below the 160 KB of a leak once seen.
DISPATCH_KEEPS_BYTES = 20_000

# The weight that prompts.json claims, rounded to three digits, against the page's float32 with the same f16 weights.
OFFERED_WEIGHT = 1e-3

# What 200 prompts may add to the page's heap after a garbage collection: 0.37 MB measured (compiled code, caches),
# 1.18 MB when every wait for the device left a promise behind.
PAGE_HEAP_BYTES = 750_000
# Nodes or listeners that 200 prompts may add: less than one a prompt.
PAGE_NODES = 50
