"""Large work in slices, so that no dispatch alone keeps a slow device for longer than a submit should.

    slices    rows of a weight matrix, which are columns of out: each slice binds its part of the matrix
    chunks    tokens of a prompt: attending with a chunk to a long cache grows with both
What attending still takes is cut by workgroups (webgpu/attention.py). Each number is summed by the same kernel in the
same order, however it is cut. Mirrored by static/gpu/slices.js.
"""

# Rows of weights; so many begin at a multiple of 256 bytes in every format, and so do their scales and biases.
SLICE_ROWS = 128
# Rows [tokens,width] of f32; so many begin at a multiple of 256 bytes whatever the width.
CHUNK_STEP = 64


def slices(rows: int, most_rows: int, unit: int = SLICE_ROWS) -> list[tuple[int, int]]:
    """(first row, rows) of slices of about the same size, multiples of `unit`, of at most `most_rows` or one unit."""
    units = -(-rows // unit)
    count = 1 if rows <= most_rows else -(-units // max(1, most_rows // unit))
    step = -(-units // count) * unit
    return [(row, min(step, rows - row)) for row in range(0, rows, step)]


def chunks(T: int, most_tokens: int, pair_flops: int, most_flops: int | None) -> list[tuple[int, int]]:
    """(offset, tokens) of a prompt's chunks: at most `most_tokens`, and fewer where the cache is long.

    pair_flops: what one query costs for one key.
    """
    found, offset = [], 0
    while offset < T:
        tokens = most_tokens
        if most_flops is not None:
            fits = most_flops // (pair_flops * (offset + tokens)) // CHUNK_STEP * CHUNK_STEP
            tokens = min(tokens, max(fits, CHUNK_STEP))
        found.append((offset, min(tokens, T - offset)))
        offset += tokens
    return found
