"""Scores of heads on any prompt (static/lib/head_scores.js) are those of python_ref/heads.py where that defines them.

Plan: on tokens that come again every P positions all four agree with the oracle; on any other prompt the repeats are
those of a plain loop; a score that no query can have is not a number; previous and first token agree everywhere.
"""

import json
import subprocess

import pytest
import torch

from python_ref import heads
from tests.page.harness import ROOT
from tests.tolerances import PATTERN_ROW_SUM

N = 3
PERIODIC = {"three": [5, 6, 7] * 3, "once": [1, 2, 3, 4, 5], "twice": [9, 8, 7, 6, 9, 8, 7, 6], "doubled": [4, 4, 4, 4]}
MIXED = [3, 1, 3, 3, 2, 1, 2, 2, 3, 9, 1]


def random_pattern(T: int, seed: int) -> torch.Tensor:
    """[N, T, T], each row a distribution over its own past."""
    scores = torch.randn(N, T, T, generator=torch.Generator().manual_seed(seed)) * 2
    return scores.masked_fill(torch.ones(T, T).triu(1).bool(), -torch.inf).softmax(-1)


@pytest.fixture(scope="module")
def cases() -> dict[str, tuple[list[int], torch.Tensor]]:
    texts = {**PERIODIC, "mixed": MIXED, "single": [7]}
    return {name: (ids, random_pattern(len(ids), i)) for i, (name, ids) in enumerate(texts.items())}


@pytest.fixture(scope="module")
def found(node: str, cases) -> dict[str, dict]:
    asked = json.dumps([{"ids": ids, "N": N, "pattern": pattern.tolist()} for ids, pattern in cases.values()])
    command = [node, "tests/page/head_scores.mjs"]
    done = subprocess.run(command, cwd=ROOT, input=asked, capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    return dict(zip(cases, json.loads(done.stdout), strict=True))


def agree(given: list[float], wanted: torch.Tensor) -> None:
    torch.testing.assert_close(torch.tensor(given), wanted, atol=PATTERN_ROW_SUM, rtol=0)


@pytest.mark.parametrize("name", [*PERIODIC, "mixed"])
def test_previous_and_first_token_are_the_oracles(cases, found, name: str):
    _, pattern = cases[name]
    agree(found[name]["previous_token"], heads.previous_token(pattern))
    agree(found[name]["first_token"], heads.first_token(pattern))


@pytest.mark.parametrize(("name", "period"), [("three", 3), ("twice", 4), ("doubled", 1)])
def test_repeats_are_the_oracles(cases, found, name: str, period: int):
    _, pattern = cases[name]
    agree(found[name]["duplicate_token"], heads.duplicate_token(pattern, period))
    if period > 1:
        agree(found[name]["induction"], heads.induction(pattern, period))
    else:
        assert found[name]["induction"] == [None] * N  # what followed the copy is the query itself


def test_repeats_of_any_prompt_look_at_the_latest_copy(cases, found):
    ids, pattern = cases["mixed"]
    copies = [(t, max(s for s in range(t) if ids[s] == ids[t])) for t in range(len(ids)) if ids[t] in ids[:t]]
    agree(found["mixed"]["duplicate_token"], torch.stack([pattern[:, t, s] for t, s in copies]).mean(0))
    after = [pattern[:, t, s + 1] for t, s in copies if s + 1 < t]
    assert len(after) < len(copies)
    agree(found["mixed"]["induction"], torch.stack(after).mean(0))


def test_score_without_a_query_is_not_a_number(found):
    assert found["single"] == dict.fromkeys(found["single"], [None] * N)
    assert found["once"]["induction"] == found["once"]["duplicate_token"] == [None] * N
