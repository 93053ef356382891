"""What a head does, in numbers between -1 and 1, computed from its pattern alone.

pattern [..., T, T]: row t is the distribution of query t over keys 0 .. t. Every score is a mean over chosen queries of
the weight on one chosen key, so that a score of 0.9 reads as "nine tenths of its attention":

    previous_token   mean over t >= 1                     of pattern[t, t - 1]        Elhage et al. 2021
    induction        mean over repeats t, period P        of pattern[t, t - P + 1]    Olsson et al. 2022
    duplicate_token  mean over repeats t                  of pattern[t, t - P]        Wang et al. 2022, section 3.2
    first_token      mean over t >= 1                     of pattern[t, 0]            Xiao et al. 2023, attention sinks
    selectivity      minimum over places p of the antecedent of the mean, over texts with the antecedent at place p,
                     of pattern[query, right] - max over wrong w of pattern[query, w]
    look_up          mean over texts of the weight pattern[query, s] summed over the keys s of the right span, minus the
                     largest such sum over a wrong span: which of several tables a query reads

Induction and duplicate-token are meant for random tokens said again after P positions: on such rows only the repeat
tells where to look. The minimum in `selectivity` is there because a head that always looks at the second noun is right
half of the time and resolves nothing. Left out on purpose: thresholds. A name such as "induction head" is given by
whoever shows the number.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor


def previous_token(pattern: Tensor) -> Tensor:
    """Mean weight on the token just before. pattern: (..., T, T) -> (...). Raises ValueError when T < 2."""
    return _at_distance(pattern, 1, first=1)


def first_token(pattern: Tensor) -> Tensor:
    """Mean weight on position 0, row 0 left out. pattern: (..., T, T) -> (...). Raises ValueError when T < 2."""
    _need(pattern, 2)
    return pattern[..., 1:, 0].mean(-1)


def induction(pattern: Tensor, period: int) -> Tensor:
    """Mean weight, in repeats, on the token after the earlier copy of the query's token.

    pattern: (..., T, T) of a row whose tokens repeat every `period` positions -> (...). Queries are period .. T - 1.
    Raises ValueError when nothing is repeated or the period is below 2 (then it is the query itself).
    """
    if period < 2:
        raise ValueError(f"Induction looks period - 1 tokens back: the period must be at least 2, not {period}.")
    return _at_distance(pattern, period - 1, first=period)


def duplicate_token(pattern: Tensor, period: int) -> Tensor:
    """Mean weight, in repeats, on the earlier copy of the query's own token. Arguments as in `induction`."""
    if period < 1:
        raise ValueError(f"A period is at least 1, not {period}.")
    return _at_distance(pattern, period, first=period)


@dataclass(frozen=True)
class Reference:
    """One query that should look at one of several keys. pattern rows are for the text it stands in.

    query, right: positions. wrong: positions of the other candidates. place: which candidate, in order of appearance,
    is the right one.
    """

    query: int
    right: int
    wrong: tuple[int, ...]
    place: int


def selectivity(patterns: Iterable[Tensor], references: Sequence[Reference]) -> Tensor:
    """How much more a head looks at the right candidate than at the best wrong one, at the place where it is weakest.

    patterns: one (..., T, T) for each reference, T may differ -> (...), from -1 to 1. Raises ValueError when there is
    no text, or a candidate lies after its query.
    """
    margins: dict[int, list[Tensor]] = {}
    for pattern, reference in zip(patterns, references, strict=True):
        if max(reference.right, *reference.wrong) > reference.query:
            raise ValueError(f"A query sees no key after it: {reference}.")
        row = pattern[..., reference.query, :]
        best_wrong = row[..., list(reference.wrong)].max(-1).values
        margins.setdefault(reference.place, []).append(row[..., reference.right] - best_wrong)
    if not margins:
        raise ValueError("Selectivity needs at least one text.")
    return torch.stack([torch.stack(margin).mean(0) for margin in margins.values()]).min(0).values


@dataclass(frozen=True)
class LookUp:
    """One query that should read one of several spans of keys, such as the columns of the table that was named.

    Measure it across a gap: where the right span ends just before the query, a previous-token head scores too.
    """

    query: int
    right: range
    wrong: tuple[range, ...]


def look_up(patterns: Iterable[Tensor], cases: Sequence[LookUp]) -> Tensor:
    """How much more of a head's attention goes to the right span than to the best wrong one, from -1 to 1.

    patterns: one (..., T, T) for each case -> (...). Raises ValueError when there is no text, or a span does not end
    before its query.
    """
    margins = []
    for pattern, case in zip(patterns, cases, strict=True):
        if max(span.stop for span in (case.right, *case.wrong)) > case.query:
            raise ValueError(f"The spans must end before the query: {case}.")
        right, *wrong = (
            pattern[..., case.query, span.start : span.stop].sum(-1) for span in (case.right, *case.wrong)
        )
        margins.append(right - torch.stack(wrong).max(0).values)
    if not margins:
        raise ValueError("A look-up needs at least one text.")
    return torch.stack(margins).mean(0)


def _at_distance(pattern: Tensor, distance: int, first: int) -> Tensor:
    """Mean over queries first .. T - 1 of the weight `distance` positions back."""
    _need(pattern, first + 1)
    queries = torch.arange(first, pattern.shape[-1])
    return pattern[..., queries, queries - distance].mean(-1)


def _need(pattern: Tensor, positions: int) -> None:
    if pattern.shape[-1] != pattern.shape[-2]:
        raise ValueError(f"A pattern has as many queries as keys, not {tuple(pattern.shape)}.")
    if pattern.shape[-1] < positions:
        raise ValueError(f"This score needs at least {positions} positions, and the pattern has {pattern.shape[-1]}.")
