"""What is compared takes turns: pairs of neighbours, medians of ratios, rounds by what a turn takes, bounds.

Plan: scripted readings on a clock of ours. The order of turns; a machine that slows down while it is measured; a spike
in one round, of ours and of a peer, on either side of a verdict; rounds of short and long turns; what is repeated and
how often; a peer that fails; the same rounds in the page.
"""

import itertools

import pytest

from bench import table, timing
from bench.errors import BenchError
from bench.turns import LINE_S, Spare, by_turns, once, summary

ORT, TFJS = "ort-nosubgroups", "tfjs"


class Machine:
    """A clock and scripted times: each one's turns in order, the last again and again. slow: turn -> factor for all."""

    def __init__(self, slow=lambda turn: 1.0, seconds=None, **scripts) -> None:
        self.seconds, self.slow, self.turns, self.rests = 0.0, slow, [], []
        self.each = {name: [*times] for name, times in scripts.items()}
        self.takes = seconds or {}

    def now(self) -> float:
        return self.seconds

    def sleep(self, seconds: float) -> None:
        self.seconds += seconds
        self.rests.append(len(self.turns))

    def turn(self, name: str):
        def take() -> dict[str, float]:
            times, turn = self.each[name], len(self.turns)
            self.turns.append(name)
            ms = (times.pop(0) if len(times) > 1 else times[0]) * self.slow(turn)
            self.seconds += self.takes.get(name, ms / 1000)
            return {"ms": ms, "wait_ms": 2 * ms}

        return take

    def run(self, spare=None, **options):
        others = {name: self.turn(name) for name in self.each if name != "ours"}
        return by_turns(self.turn("ours"), others, spare, now=self.now, sleep=self.sleep, **options)


def verdict(found, name: str = ORT, wanted: float = 10) -> tuple[float, str]:
    """What the table says of attention at 512 tokens, and at what was wanted."""
    report = {"op": "attention", "given": {"op": "attention", "T": 512}, **summary(found.ours)}
    line = {"given": report["given"], "ours": report, name: summary(found.others[name]), "ratios": found.ratios}
    every = table.targets({"side_by_side": [line], "alone": [], "headless": {}, "model": {}, "page": {}})
    target = next(each for each in every if each.words == f"prefill T 512 against {table.PEERS[name]}")
    assert target.wanted == wanted
    return target.measured, target.verdict


def test_ours_runs_between_all_others():
    machine = Machine(ours=[10.0], **{ORT: [100.0], TFJS: [400.0]})
    found = machine.run()
    assert machine.turns == ["ours"] + [ORT, "ours", TFJS, "ours"] * 5
    assert found.ratios == {
        name: {"ms": [ratio] * 5, "wait_ms": [ratio] * 5} for name, ratio in ((ORT, 10), (TFJS, 40))
    }


def test_every_turn_begins_rested_and_nothing_of_it_counts():
    """Threads of a peer that spin on, or memory it gives back, would slow whoever comes next: always ours."""
    machine = Machine(ours=[10.0], **{ORT: [100.0], TFJS: [400.0]})
    machine.run()
    assert machine.rests == list(range(len(machine.turns)))
    alone = Machine(ours=[10.0])
    alone.run()
    assert alone.rests == []


def test_ratio_is_to_ours_just_before_and_just_after():
    found = Machine(ours=[10.0, 30.0, 20.0], **{ORT: [100.0]}).run(Spare(0), rounds=lambda _: 2)
    assert found.ratios[ORT]["ms"] == [100 / 20, 100 / 25]


def test_a_machine_that_slows_down_leaves_the_ratios():
    """Twice as slow from the middle of a round on: readings of the two may be of either half, pairs are not."""
    machine = Machine(ours=[10.0], **{ORT: [105.0]}, slow=lambda turn: 1 if turn < 6 else 2)
    found = machine.run(spare=Spare(0))
    assert verdict(found) == (10.5, "met")
    assert found.others[ORT][-1]["ms"] / found.ours[0]["ms"] == 21, "what one after the other might say"


@pytest.mark.parametrize("turn", range(11))
@pytest.mark.parametrize(("peer", "says"), [(105.0, "met"), (95.0, "missed")])
@pytest.mark.parametrize("factor", [0.3, 4.0])
def test_a_spike_in_one_round_flips_no_verdict(turn, peer, says, factor):
    machine = Machine(ours=[10.0], **{ORT: [peer]}, slow=lambda at: factor if at == turn else 1.0)
    assert verdict(machine.run(spare=Spare(0))) == (peer / 10, says)


def test_a_spike_in_ours_alone_moves_no_more_than_two_ratios():
    found = Machine(ours=[10.0, 10.0, 90.0, 10.0], **{ORT: [100.0]}).run(spare=Spare(0))
    assert found.ratios[ORT]["ms"] == [10, 2, 2, 10, 10] and verdict(found) == (10, "met")


@pytest.mark.parametrize(("seconds", "rounds"), [(0.1, 5), (1.9, 5), (2.1, 3), (9.0, 3), (10.1, 2), (43.0, 2)])
def test_rounds_follow_what_a_turn_takes(seconds, rounds):
    machine = Machine(ours=[10.0], **{ORT: [100.0]}, seconds={ORT: seconds})
    machine.run()
    assert machine.turns.count(ORT) == rounds and machine.turns.count("ours") == rounds + 1
    alone = Machine(ours=[10.0], seconds={"ours": seconds})
    alone.run()
    assert len(alone.turns) == rounds


def test_steady_line_is_not_repeated_and_one_beside_it_is():
    """1.4 times is steady, 1.6 is not; where ours is steady the other's rounds alone are run again, until they are."""
    wild = [200.0, 320.0, 200.0, 200.0, 200.0, 200.0]
    machine = Machine(ours=[10.0], **{ORT: [100.0, 140.0], TFJS: wild})
    found = machine.run()
    assert [len(found.others[name]) for name in (ORT, TFJS)] == [5, 10]
    assert max(reading["ms"] for reading in found.others[TFJS]) == 320, "every reading counts"


def test_ours_that_differs_repeats_all_and_no_more_than_twice():
    machine = Machine(ours=[10.0], **{ORT: [100.0], TFJS: [400.0]}, slow=lambda turn: 1 + turn % 3)
    found = machine.run()
    assert [len(found.others[name]) for name in (ORT, TFJS)] == [15, 15] and len(found.ours) == 31


def test_repetitions_end_where_a_run_has_no_seconds_left():
    def turns(seconds: float, spare: float) -> int:
        machine = Machine(
            ours=[10.0, 20.0, 10.0, 20.0], **{ORT: [100.0, 200.0] * 20}, seconds={ORT: seconds, "ours": 0.1}
        )
        machine.run(spare=Spare(spare))
        return machine.turns.count(ORT)

    assert turns(1.0, 90) == 15 and turns(1.0, 10) == 10 and turns(1.0, 5) == 5
    assert turns(9.0, 90) == 3 + 3 * 2 and turns(LINE_S / 2, 90) == 2, "and no repetition is longer than LINE_S"


def test_one_that_is_alone_is_repeated_too():
    assert len(Machine(ours=[10.0, 20.0, 10.0]).run().ours) == 10
    assert len(Machine(ours=[10.0, 12.0, 10.0]).run().ours) == 5


def test_peer_that_fails_is_told_and_the_others_go_on():
    machine = Machine(ours=[10.0], **{TFJS: [400.0]})
    count = itertools.count()

    def failing() -> dict[str, float]:
        if next(count) == 2:
            raise BenchError("the tab is gone.")
        return {"ms": 100.0, "wait_ms": 100.0}

    found = by_turns(
        machine.turn("ours"), {ORT: failing, TFJS: machine.turn(TFJS)}, now=machine.now, sleep=machine.sleep
    )
    assert found.failed == {ORT: "the tab is gone."}
    assert (len(found.others[ORT]), len(found.others[TFJS])) == (2, 5)


def test_ours_that_fails_ends_the_line():
    def wrong() -> dict[str, float]:
        raise BenchError("a wrong kernel has no speed.")

    with pytest.raises(BenchError, match="a wrong kernel"):
        by_turns(wrong, {})


def test_one_round_takes_other_times_too():
    """As the whole model is timed: ours before and after, other names of times."""
    ours = iter([{"prefill_ms": 10.0, "decode_ms": 1.0}, {"prefill_ms": 30.0, "decode_ms": 1.0}])
    peer = {"prefill_ms": 100.0, "decode_ms": 8.0, "generated": 5}
    found = by_turns(lambda: next(ours), {ORT: lambda: peer}, rounds=once, sleep=lambda _: None)
    assert found.ratios == {ORT: {"prefill_ms": [5], "decode_ms": [8]}}


def test_summary_is_a_median_for_all_sides_alike(mirror):
    readings = [{"ms": ms, "wait_ms": wait} for ms, wait in ((5.0, 9.0), (1.0, 3.0), (4.0, 30.0), (2.0, 8.0))]
    wanted = {"ms": 3.0, "min_ms": 1.0, "max_ms": 5.0, "wait_ms": 8.5}
    assert summary(readings) == wanted == mirror("summary", readings=readings)["answer"]


@pytest.mark.parametrize("seconds", [0.1, 5.0, 20.0])
@pytest.mark.parametrize("times", [[10.0], [10.0, 12.0], [10.0, 16.0, 10.0], [10.0, 16.0] * 20])
def test_page_takes_as_many_turns_of_one_that_is_alone(seconds, times, mirror):
    ours = len(Machine(ours=times, seconds={"ours": seconds}).run().ours)
    assert mirror("turns", times=times, seconds=seconds)["answer"] == ours


@pytest.mark.parametrize(
    ("singles", "least", "runs"),
    [
        ([4.0], 1, 25), ([0.1], 1, 100), ([150.0, 10.0, 10.0], 1, 10), ([10.0, 190.0, 10.0], 1, 10), ([300.0], 1, 1),
        ([300.0], 3, 3), ([40.0], 3, 3), ([40.0], 1, 2),
    ],
)  # fmt: skip
def test_runs_in_a_row_fill_a_batch_for_ours_and_peers_alike(singles, least, runs, monkeypatch, mirror):
    """A spike among the first three does not decide how many; a long one of decode runs three times."""
    times = iter(singles + singles[-1:] * 2)
    monkeypatch.setattr(timing, "timed", lambda run: run() or next(times))
    assert timing.runs_in_a_row(lambda count: None, least) == runs
    assert mirror("runs", singles=singles, least=least)["answer"] == runs


def test_decode_runs_at_least_three_in_a_row_on_both_sides(mirror):
    for op in ("decode", "attention", "matmul"):
        assert mirror("least", op=op)["answer"] == timing.LEAST_RUNS.get(op, 1) == (3 if op == "decode" else 1)
