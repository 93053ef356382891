"""Choosing a token is pure arithmetic: greedy, top-k, top-p, temperature, seed; and small numbers widen exactly.

Plan: each setting against its definition in numpy; frequencies of many draws against the probabilities they come from.
"""

import numpy as np
import pytest

from tests.hosts.numbers import log_softmax
from tests.kernels.next_token_checks import lists_of
from tests.tolerances import DRAWS_LEFT_OPEN, SAMPLER_FREQUENCY

LOGITS = [0.5, 2.0, -1.0, 2.0, 1.0]  # ids 1 and 3 are equal


def test_temperature_zero_is_greedy_and_lower_id_wins(mirror):
    drawn = mirror.ask("samples", logits=LOGITS, sampling={"temperature": 0}, seed=3, count=3)
    assert [each["id"] for each in drawn] == [1, 1, 1]
    assert drawn[0]["logprob"] == pytest.approx(log_softmax(np.array(LOGITS))[1], abs=1e-12)


@pytest.mark.parametrize(
    ("top_k", "top_p", "ids"),
    [(0, 1, [1, 3, 4, 0, 2]), (3, 1, [1, 3, 4]), (1, 1, [1]), (0, 0.5, [1, 3]), (0, 0.1, [1]), (4, 0.9, [1, 3, 4])],
)
def test_kept_tokens_follow_their_definition(top_k, top_p, ids, mirror):
    kept = mirror.ask("kept", logits=LOGITS, temperature=1, topK=top_k, topP=top_p)
    assert [each for each, _ in kept] == ids


def test_temperature_divides_the_logits(mirror):
    kept = mirror.ask("kept", logits=LOGITS, temperature=2, topK=0, topP=1)
    wanted = np.exp(log_softmax(np.array(LOGITS) / 2))
    assert [p for _, p in kept] == pytest.approx([wanted[each] for each, _ in kept], abs=1e-12)


@pytest.mark.parametrize(("sampling", "left_out"), [({"topK": 3}, [0, 2]), ({"topP": 0.5}, [0, 2, 4])])
def test_same_seed_draws_the_same_and_frequencies_match(sampling, left_out, mirror):
    ask = {"logits": LOGITS, "sampling": {"temperature": 1, **sampling}, "count": 4000}
    one, again, other = (mirror.ask("samples", seed=seed, **ask) for seed in (1, 1, 2))
    assert one == again != other
    counts = np.bincount([each["id"] for each in one], minlength=5) / 4000
    wanted = np.exp(log_softmax(np.array(LOGITS)))
    wanted[left_out] = 0
    np.testing.assert_allclose(counts, wanted / wanted.sum(), atol=SAMPLER_FREQUENCY)
    assert one[0]["logprob"] == pytest.approx(log_softmax(np.array(LOGITS))[one[0]["id"]], abs=1e-12)


def test_one_token_vocabulary_and_huge_logits(mirror):
    assert mirror.ask("samples", logits=[7.0], sampling={"temperature": 1}, seed=0, count=1) == [
        {"id": 0, "logprob": 0}
    ]
    drawn = mirror.ask("samples", logits=[3e38, -3e38, 0], sampling={"temperature": 0.01}, seed=0, count=1)
    assert drawn == [{"id": 0, "logprob": 0}]


def test_every_f16_number_widens_exactly(mirror):
    bits = np.arange(65536, dtype=np.uint16)
    wanted = bits.view(np.float16).astype(np.float64)
    ours = np.array([float(text) for text in mirror.ask("halves", bits=bits.tolist())])
    np.testing.assert_array_equal(ours, wanted)


@pytest.mark.parametrize("dtype", ["F32", "F16", "BF16"])
def test_vector_widens_to_f32(dtype, mirror):
    values = np.array([1.0, -0.5, 3.140625, 65504.0], np.float32)
    stored = {
        "F32": values,
        "F16": values.astype(np.float16),
        "BF16": (values.view(np.uint32) >> 16).astype(np.uint16),
    }[dtype]
    wanted = (stored.astype(np.uint32) << 16).view(np.float32) if dtype == "BF16" else stored.astype(np.float32)
    assert mirror.ask("widen", dtype=dtype, bytes=list(stored.tobytes())) == wanted.tolist()


SETTINGS = [
    (1, 0, 1), (0.4, 0, 1), (1.3, 0, 0.9), (0.8, 40, 1), (2, 25, 0.7), (0.7, 0, 0.5), (1, 100, 1), (1, 1, 1),
    (5, 0, 0.9),  # the candidates hold less than that, so the row decides
]  # fmt: skip


@pytest.mark.parametrize("off", [0, 0.9, -0.9], ids="total off by {} of what is allowed".format)
@pytest.mark.parametrize(("temperature", "top_k", "top_p"), SETTINGS)
def test_few_candidates_draw_what_the_whole_row_draws(temperature, top_k, top_p, off, mirror):
    """Points of the draw at random, and beside the ends of tokens' shares, where a total that is a bit off decides."""
    rng = np.random.default_rng(5)
    logits = np.sort(rng.gumbel(size=400).astype("f4") * 2)[::-1]
    logits[7] = logits[8]  # equal ones, the lower id first
    few = 60
    weights = np.exp((logits.astype("f8") - logits[0]) / temperature)
    candidates = {
        "ids": list(range(few)), "logits": logits[:few].tolist(), "total": weights.sum() * (1 + off * 1e-4),
        "lse": float(np.log(np.exp(logits.astype("f8")).sum())), "whole": False,
    }  # fmt: skip
    ends = np.cumsum(weights[:few]) / weights.sum()
    near = [end + by for end in ends for by in (-3e-4, -2e-5, -1e-12, 0, 1e-12, 2e-5, 3e-4)]
    points = [point for point in [*rng.random(2000), *near] if 0 <= point < 1]
    sampling = {"temperature": temperature, "topK": top_k, "topP": top_p}
    drawn = mirror.ask("drawn", logits=logits.tolist(), candidates=candidates, sampling=sampling, points=points)
    told = [pair for pair in zip(drawn["few"], drawn["whole"], strict=True) if pair[0] is not None]
    assert all(few == whole for few, whole in told)
    share = sum(each is not None for each in drawn["few"][:2000]) / 2000
    reach = ends[-1] if top_k == 0 and top_p == 1 else float(0 < top_k <= few or (top_k == 0 and ends[-1] > top_p))
    assert share == pytest.approx(reach, abs=DRAWS_LEFT_OPEN)


def test_lists_with_many_equal_logits_leave_none_out_between_two(mirror):
    """Of logits as large as one that a list has no place for, none is told: another of the same size may be hidden."""
    logits = np.random.default_rng(4).integers(0, 9, 4000).astype("f4") / 2
    logits[::37] += np.arange(len(logits[::37]), dtype="f4") / 8 + 5
    found = mirror.ask("candidates", words=lists_of(logits, 1).reshape(-1).tolist(), temperature=1)
    order = np.argsort(-logits, kind="stable")
    assert found["ids"] == order[: len(found["ids"])].tolist() and len(found["ids"]) >= 100
    # Control: the next one is as large as others that no list has a place for.
    assert np.sum(logits == logits[order[len(found["ids"])]]) > 400


@pytest.mark.parametrize("V", [3, 1000, 2047, 2049, 49_152])
def test_lists_say_the_row_s_likeliest_tokens_in_order(V, mirror):
    logits = np.random.default_rng(V).standard_normal(V).astype("f4") * 3
    logits[V // 2] = logits[0]
    found = mirror.ask("candidates", words=lists_of(logits, 1 / 0.7).reshape(-1).tolist(), temperature=0.7)
    order = np.argsort(-logits, kind="stable")
    assert found["ids"] == order[: len(found["ids"])].tolist()
    assert np.float32(found["logits"]).tolist() == logits[found["ids"]].tolist()
    assert found["whole"] == (V < 2049 and len(found["ids"]) == V)
    assert len(found["ids"]) >= min(V, 200)
    z = logits.astype("f8") - logits.max()
    assert found["total"] == pytest.approx(np.exp(z / 0.7).sum(), rel=1e-6)
    assert found["lse"] == pytest.approx(logits.max() + np.log(np.exp(z).sum()), abs=1e-6)
