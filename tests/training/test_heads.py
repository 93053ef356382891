"""Head scores on patterns whose score is known by construction, and on the wrong versions that would be believed.

Plan: each score is 1 on its ideal pattern and near 0 on the ideal patterns of the others; off-by-one versions of the
formulas, planted here, fail the same checks; a head that always looks at one place has no selectivity; nonsense is
refused with a sentence.
"""

import pytest
import torch

from python_ref import heads

T, PERIOD = 48, 8
OFTEN = 1 - 1e-6  # exact patterns of zeros and ones: only rounding of a mean may be missing


def looking(where):
    """A pattern in which query t puts everything on key where(t)."""
    pattern = torch.zeros(T, T)
    for t in range(T):
        pattern[t, max(0, where(t))] = 1.0
    return pattern


IDEAL = {
    "previous": looking(lambda t: t - 1),
    "induction": looking(lambda t: t - PERIOD + 1),
    "duplicate": looking(lambda t: t - PERIOD),
    "first": looking(lambda t: 0),
    "self": looking(lambda t: t),
}
SCORES = {
    "previous": heads.previous_token,
    "induction": lambda p: heads.induction(p, PERIOD),
    "duplicate": lambda p: heads.duplicate_token(p, PERIOD),
    "first": heads.first_token,
}


@pytest.mark.parametrize("score", SCORES)
@pytest.mark.parametrize("pattern", IDEAL)
def test_score_on_ideal_patterns_is_high_for_its_own_alone(score, pattern):
    value = SCORES[score](IDEAL[pattern]).item()
    assert value > OFTEN if score == pattern else value < 0.3


@pytest.mark.parametrize(
    ("right", "wrong"),
    [
        ("induction", lambda p: SCORES["duplicate"](p)),  # off by one: the copy, not what followed it
        ("duplicate", lambda p: SCORES["induction"](p)),
        ("induction", lambda p: heads.induction(p, PERIOD + 1)),  # wrong period
        ("previous", lambda p: heads.previous_token(p.transpose(-1, -2))),  # queries and keys exchanged
        ("first", lambda p: p[..., 0, 0]),  # row 0 can look nowhere else
    ],
)
def test_wrong_version_of_a_score_is_caught(right, wrong):
    on_own, on_self = wrong(IDEAL[right]).item(), wrong(IDEAL["self"]).item()
    assert on_own < 0.3 or on_self > OFTEN


def test_scores_keep_leading_dimensions():
    stacked = torch.stack([torch.stack([IDEAL["previous"], IDEAL["first"]])] * 3)
    assert heads.previous_token(stacked).shape == (3, 2)
    assert heads.induction(stacked, PERIOD).shape == (3, 2)


def test_uniform_pattern_scores_its_expected_share():
    uniform = torch.ones(T, T).tril()
    uniform /= uniform.sum(-1, keepdim=True)
    expected = torch.tensor([1 / (t + 1) for t in range(1, T)]).mean()
    torch.testing.assert_close(heads.first_token(uniform), expected)


def places(count):
    """Texts with candidates at 2, 5, 8 and the query at 12; the right one in each place in turn."""
    spots = (2, 5, 8)
    return [
        heads.Reference(12, spots[i % 3], tuple(s for s in spots if s != spots[i % 3]), i % 3) for i in range(count)
    ]


def test_selectivity_of_a_resolving_head_is_one():
    texts = places(6)
    patterns = [looking(lambda t, right=text.right: right) for text in texts]
    assert heads.selectivity(patterns, texts).item() > OFTEN


def test_selectivity_of_a_head_fixed_on_one_place_is_minus_one():
    """Its mean over texts would be -1/3 and its best place 1: the minimum over places is what tells."""
    texts = places(6)
    assert heads.selectivity([looking(lambda t: 5)] * 6, texts).item() < -OFTEN


def test_selectivity_counts_the_best_wrong_candidate_not_their_mean():
    pattern = torch.zeros(T, T)
    pattern[12, 2], pattern[12, 5] = 0.5, 0.5
    assert heads.selectivity([pattern], [heads.Reference(12, 2, (5, 8), 0)]).item() == pytest.approx(0.0)


def test_look_up_of_the_right_span_is_one_and_of_a_wrong_one_minus_one():
    case = heads.LookUp(20, range(2, 6), (range(7, 10), range(11, 14)))
    assert heads.look_up([looking(lambda t: 3)], [case]).item() > OFTEN
    assert heads.look_up([looking(lambda t: 8)], [case]).item() < -OFTEN
    assert heads.look_up([looking(lambda t: t - 1)], [case]).item() == 0.0  # a previous-token head, across a gap


@pytest.mark.parametrize(
    "nonsense",
    [
        lambda: heads.previous_token(torch.ones(1, 1)),
        lambda: heads.first_token(torch.ones(3, 4)),
        lambda: heads.induction(IDEAL["self"], 1),
        lambda: heads.induction(IDEAL["self"], T),
        lambda: heads.duplicate_token(IDEAL["self"], 0),
        lambda: heads.selectivity([], []),
        lambda: heads.selectivity([IDEAL["self"]], [heads.Reference(3, 1, (7,), 0)]),
        lambda: heads.look_up([], []),
        lambda: heads.look_up([IDEAL["self"]], [heads.LookUp(5, range(2, 7), (range(0, 2),))]),
    ],
)
def test_nonsense_is_refused(nonsense):
    with pytest.raises(ValueError, match=r"\.$"):
        nonsense()


def test_good_arguments_are_not_refused():
    """Control for the refusals."""
    assert heads.previous_token(torch.ones(2, 2).tril()).item() == 1.0
    assert heads.induction(IDEAL["induction"], 2).isfinite()
