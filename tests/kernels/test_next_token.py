"""Lists of the next token's logits, and the choice of the likeliest.

Plan: vocabularies around a list's length, its eight places and the row of all lists; a sharp and a flat temperature;
logits that all are equal or far apart; a mistake planted in each part.
"""

import pytest

from tests.kernels.next_token_checks import check_next_token
from tests.kernels.test_planted_mistakes import plant

pytestmark = pytest.mark.gpu


@pytest.mark.parametrize("V", [1, 3, 1000, 1024, 1025, 2049, 9001])
def test_next_token_agrees(driver, V):
    check_next_token(driver, V)


@pytest.mark.parametrize(("temperature", "magnitude"), [(0, 5.0), (0.2, 5.0), (5.0, 20.0), (1.0, 0.0), (0.7, 3e3)])
def test_next_token_of_other_temperatures_agrees(driver, temperature, magnitude):
    check_next_token(driver, 49_152, temperature, magnitude)


MISTAKES = {
    "equal logit goes before": ("candidates", "list.a >= x, before_a < x, v)", "list.a > x, before_a < x, v)", 9001),
    "list forgets its fifth": ("candidates", "vec4f(list.a.w, list.b.xyz)", "vec4f(list.b.x, list.b.xyz)", 9001),
    "past the end of the row": ("candidates", "< vec4u(p.V));", "< vec4u(p.V + 2));", 9001),
    "sum not rescaled": ("candidates", "s = s * exp(m - top) +", "s = s +", 9001),
    "sum of weights without temperature": ("candidates", "exp((four - top) * p.heat)", "exp(four - top)", 9001),
    "tie goes to the higher id": ("choose", "a.id < b.id", "a.id > b.id", 9001),
    "lists left out": ("choose", "i += THREADS", "i += 2 * THREADS", 9001),
    "lse without the largest": ("choose", "all.m + log(all.s)", "log(all.s)", 9001),
}


@pytest.mark.parametrize("name", MISTAKES)
def test_planted_mistake_fails_its_check(name):
    file, right, wrong, V = MISTAKES[name]
    plant(file, right, wrong, lambda driver: check_next_token(driver, V, 0.5))
