"""The fused logit lens against full logits in float64: ids, ties, logits, log-sum-exp, entropy, target logit and rank.

Plan: row counts around the block of four; vocabularies around the tile; tables in pieces; fewer tokens than a tile;
every weight format; other k; SmolLM2's sizes (slow).
"""

import pytest

from tests.kernels.checks import check_lens
from webgpu.ops import BF16, F16, F32, Q4_1, Q8_0

pytestmark = pytest.mark.gpu


@pytest.mark.parametrize("rows", [1, 3, 4, 5, 17])
@pytest.mark.parametrize(("V", "chunks"), [(12, 1), (511, 1), (512, 1), (513, 1), (1200, 3)])
def test_lens_agrees(driver, rows, V, chunks):
    check_lens(driver, rows, 24, V, F32, chunks)


@pytest.mark.parametrize("fmt", [F16, BF16, Q4_1, Q8_0], ids=["f16", "bf16", "q4_1", "q8_0"])
def test_lens_packed_weights_agree(driver, fmt):
    check_lens(driver, 6, 64, 1500, fmt, chunks=2)


@pytest.mark.parametrize("rows", [1, 7, 8, 9, 17])
@pytest.mark.parametrize(("V", "chunks"), [(12, 1), (511, 1), (513, 1), (2300, 1), (2700, 3)])
def test_lens_quads_agree(driver, rows, V, chunks):
    check_lens(driver, rows, 64, V, Q8_0, chunks, variant="quads")


@pytest.mark.parametrize("rows", [1, 3, 33])  # each another product
@pytest.mark.parametrize(("V", "chunks"), [(12, 1), (255, 1), (257, 1), (1200, 3)])
def test_lens_groups_agree(driver, rows, V, chunks):
    check_lens(driver, rows, 64, V, Q8_0, chunks, variant="groups")
    check_lens(driver, rows, 24, V, F16, chunks, variant="groups")


@pytest.mark.slow
@pytest.mark.parametrize("k", [1, 5, 16])
def test_lens_other_k_agrees(driver, k):
    check_lens(driver, 6, 24, 700, F32, k=k)
    check_lens(driver, 6, 32, 700, Q8_0, k=k, variant="quads")
    check_lens(driver, 6, 32, 700, Q8_0, k=k, variant="groups")


@pytest.mark.slow
def test_lens_model_size_agrees(driver):
    check_lens(driver, 9, 576, 49_152, F16, chunks=2)
    check_lens(driver, 9, 576, 49_152, Q8_0, chunks=2, variant="quads")
    check_lens(driver, 33, 576, 49_152, Q8_0, chunks=2, variant="groups")


@pytest.mark.slow
def test_lens_large_vocabulary_agrees(driver):
    check_lens(driver, 2, 64, 151_936, F16, chunks=2)
