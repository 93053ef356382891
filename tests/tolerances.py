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
