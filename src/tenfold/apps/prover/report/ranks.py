"""Ranks: where a query stands among its corruptions, and what the ranks of many come to.

A rank is kept as two counts: candidates that are better and candidates that are as good. From
these follow the optimistic, the pessimistic and the realistic rank (the mean of the two), and the
exact expectation when ties are broken at random.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache

KINDS = ("optimistic", "realistic", "pessimistic", "expected")
LEVELS = (1, 3, 10)


@dataclass(frozen=True, slots=True)
class Rank:
    """A query in one mode: the candidates better than it, as good as it, and all of them."""

    better: int
    ties: int
    candidates: int  # the query itself not counted

    @property
    def optimistic(self) -> int:
        return 1 + self.better

    @property
    def pessimistic(self) -> int:
        return 1 + self.better + self.ties

    @property
    def realistic(self) -> float:
        return 1 + self.better + self.ties / 2

    @property
    def chance(self) -> float:
        """The rank to expect of a query that is put anywhere among its candidates.

        >>> Rank(0, 0, 9).chance
        5.5
        """
        return (self.candidates + 2) / 2

    def place(self, kind: str) -> float:
        """The rank of a kind; its expectation under random ties is the realistic one."""
        return float(getattr(self, "realistic" if kind == "expected" else kind))

    def reciprocal(self, kind: str) -> float:
        """1 / rank, or its expectation under random ties.

        >>> [round(Rank(0, 1, 5).reciprocal(kind), 4) for kind in KINDS]
        [1.0, 0.6667, 0.5, 0.75]
        """
        if kind == "expected":
            return _expected(self.optimistic, self.pessimistic)
        return 1 / float(getattr(self, kind))

    def hit(self, level: int, kind: str) -> float:
        """1 if the rank is at most `level`, else 0; or its expectation under random ties."""
        if kind == "expected":
            return min(max(level - self.better, 0) / (self.ties + 1), 1.0)
        return float(getattr(self, kind) <= level)


@lru_cache(maxsize=1 << 16)
def _expected(first: int, last: int) -> float:
    """The mean of 1 / place over places from first to last. Many queries share their ties."""
    return math.fsum(1 / place for place in range(first, last + 1)) / (last - first + 1)


@dataclass(frozen=True, slots=True)
class Summary:
    """The ranks of many queries: MRR, Hits, mean ranks and adjusted ones, each by kind.

    Adjusted mean rank and its index are as PyKEEN defines them: the mean rank by the mean of the
    ranks to expect by chance, and one less the same of ranks from 0 on. An index of 1 is all
    queries first, 0 is chance.
    """

    queries: int
    candidates: int
    mrr: dict[str, float]
    hits: dict[int, dict[str, float]]
    mean_rank: dict[str, float]
    chance: float  # the mean rank to expect
    adjusted_mean_rank: dict[str, float]
    adjusted_mean_rank_index: dict[str, float | None]  # None where there is nothing but the queries


def summarise(ranks: Iterable[Rank], levels: Sequence[int] = LEVELS) -> Summary:
    """The means over queries; no query at all has no mean, which is said as NaN.

    >>> summarise([Rank(0, 0, 4), Rank(1, 0, 4)]).mrr["realistic"]
    0.75
    """
    ranks = list(ranks)

    def mean(values: Iterable[float]) -> float:
        # fsum is exact, so that no order of the queries changes a bit
        return math.fsum(values) / len(ranks) if ranks else math.nan

    chance = mean(r.chance for r in ranks)
    places = {kind: mean(r.place(kind) for r in ranks) for kind in KINDS}
    return Summary(
        len(ranks),
        sum(r.candidates for r in ranks),
        {kind: mean(r.reciprocal(kind) for r in ranks) for kind in KINDS},
        {n: {kind: mean(r.hit(n, kind) for r in ranks) for kind in KINDS} for n in levels},
        places,
        chance,
        {kind: place / chance for kind, place in places.items()},
        {k: 1 - (place - 1) / (chance - 1) if chance > 1 else None for k, place in places.items()},
    )
