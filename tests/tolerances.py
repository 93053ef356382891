"""Every tolerance used by the tests, each with the reason for its size."""

# The oracle against torch's scaled_dot_product_attention, float32, entries of size one: a few hundred roundings of 6e-8.
ORACLE_SDPA = 1e-5
