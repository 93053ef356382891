"""What is compared is measured by turns, in the same minute, and each pair of readings gives one ratio.

    ours, peer A, ours, peer B, ours     ours, peer A, ours, ...          rounds
    ratio_i = peer_i / mean(ours just before, ours just after)            the verdict: the median of them

The median of ratios and not the ratio of medians: where the machine's speed changes twofold within a minute the two
medians may be of different seconds, the two sides of a pair are not. Times that are shown are medians too, the same
for all sides; none is the least of its kind. A spike moves one ratio of each peer, and the median of three or more
does not follow. A turn of under 2 s gets five rounds, under 10 s three, a longer one two. Where the readings of its
rounds differ by more than half they are run again, twice at most and while the run has seconds to spare; every reading
counts, none is dropped.
static/bench/timing.js has the rounds of one that is measured alone.
"""

import statistics
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from bench.errors import BenchError

Reading = Mapping[str, float]  # ms and its like by name
Turn = Callable[[], Reading]

ROUNDS = ((2.0, 5), (10.0, 3))  # a turn of fewer seconds than this: so many rounds
FEWEST = 2
DIFFER = 1.5  # largest reading / least
REPEATS, LINE_S = 2, 30.0  # of one line, and the seconds that one repetition may take
# Before each turn: what the last one leaves running (threads that spin for more work, memory given back) is not for the
# next to bear.
REST_S = 0.5


def rounds_for(seconds: float) -> int:
    """How often one takes its turn whose turn takes so long."""
    return next((count for limit, count in ROUNDS if seconds < limit), FEWEST)


def once(_: float) -> int:
    """One round whatever it takes."""
    return 1


def unsteady(readings: Sequence[Reading]) -> bool:
    """Whether one's own readings differ by more than half."""
    values = [reading["ms"] for reading in readings if "ms" in reading]
    return len(values) > 1 and max(values) > DIFFER * min(values)


def summary(readings: Sequence[Reading]) -> dict[str, float]:
    """ms, least and most of it, and wait_ms: medians of the readings."""
    each = [reading["ms"] for reading in readings]
    waits = statistics.median(reading["wait_ms"] for reading in readings)
    return {"ms": statistics.median(each), "min_ms": min(each), "max_ms": max(each), "wait_ms": waits}


@dataclass
class Spare:
    """Seconds of a whole run that repetitions may take together."""

    seconds: float

    def take(self, seconds: float) -> bool:
        if seconds > min(self.seconds, LINE_S):
            return False
        self.seconds -= seconds
        return True


@dataclass
class Found:
    """Readings of ours and of the others, name -> key -> ratios, and the sentences of those that failed."""

    ours: list[Reading] = field(default_factory=list)
    others: dict[str, list[Reading]] = field(default_factory=dict)
    ratios: dict[str, dict[str, list[float]]] = field(default_factory=dict)
    failed: dict[str, str] = field(default_factory=dict)


class Turns:
    """Ours and the others on one line. What ours raises ends it; another that fails is told and left out."""

    def __init__(
        self, ours: Turn, others: Mapping[str, Turn], now: Callable[[], float], sleep: Callable[[float], None]
    ) -> None:
        self.turns, self.now, self.sleep = {"": ours, **others}, now, sleep
        self.found = Found(others={name: [] for name in others}, ratios={name: {} for name in others})
        self.took: dict[str, float] = {}
        self.seen: dict[str, int] = {}
        self.take("")

    def take(self, name: str) -> Reading:
        """One turn, kept; after a rest where the last was another's."""
        if len(self.turns) > 1:
            self.sleep(REST_S)
        start = self.now()
        reading = self.turns[name]()
        self.took[name] = self.now() - start
        (self.found.others[name] if name else self.found.ours).append(reading)
        return reading

    def round(self, names: Iterable[str]) -> None:
        """Each of the others once, ours after each; ours alone where there are none."""
        names = [name for name in names if name not in self.found.failed]
        for name in names:
            before = self.found.ours[-1]
            try:
                reading = self.take(name)
            except BenchError as error:
                self.found.failed[name] = str(error)
                continue
            self.pair(name, before, reading, self.take(""))
        if not names:
            self.take("")

    def pair(self, name: str, before: Reading, reading: Reading, after: Reading) -> None:
        """The ratios of one reading to ours around it, for each time that both have."""
        for key in reading:
            if key.endswith("ms") and key in before:
                ratio = reading[key] / statistics.mean((before[key], after[key]))
                self.found.ratios[name].setdefault(key, []).append(ratio)

    def again(self) -> list[str]:
        """Whose rounds are worth repeating, the quickest first."""
        rounds = {name: self.latest(name) for name in ("", *self.found.others) if name not in self.found.failed}
        every = unsteady(rounds[""])
        names = [name for name in rounds if name and (every or unsteady(rounds[name]))]
        alone = [""] if every and len(rounds) == 1 else []
        return sorted(names or alone, key=lambda name: self.took[name])

    def seconds(self, name: str) -> float:
        """What a turn takes, of another with ours after it."""
        return self.took[name] + (self.took[""] if name else 0)

    def latest(self, name: str) -> list[Reading]:
        """What one gave since this was asked before."""
        readings = self.found.others[name] if name else self.found.ours
        start, self.seen[name] = self.seen.get(name, 0), len(readings)
        return readings[start:]


def by_turns(
    ours: Turn, others: Mapping[str, Turn], spare: Spare | None = None, rounds: Callable[[float], int] = rounds_for,
    now: Callable[[], float] = time.perf_counter, sleep: Callable[[float], None] = time.sleep,
) -> Found:  # fmt: skip
    """Measure one line. spare: what repetitions may take, None: whatever they take; now, sleep: seconds.

    Without others ours is measured alone, its first reading being one of its rounds.
    """
    line = Turns(ours, others, now, sleep)
    spare = spare or Spare(float("inf"))
    names = list(others) or [""]

    def run(counts: Mapping[str, int]) -> None:
        for index in range(max(counts.values(), default=0)):
            line.round(name for name, count in counts.items() if name and index < count)

    run(dict.fromkeys(others, 1))
    run({name: rounds(line.took[name]) - 1 for name in names if name in line.took})
    for _ in range(REPEATS):
        again = {name: rounds(line.took[name]) for name in line.again()}
        again = {name: count for name, count in again.items() if spare.take(count * line.seconds(name))}
        if not again:
            break
        run(again)
    return line.found
