"""Result: what was found of a query and its corruptions."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import Any

from tenfold.apps.prover.outcome import Outcome
from tenfold.apps.prover.report.ranks import Rank

LISTED = 20  # of the candidates that are better than a query


@dataclass(frozen=True, slots=True)
class Finding:
    """The rank of a query, the height of its proof, and how all searches for it ended."""

    rank: Rank
    height: int | None
    outcomes: Counter[Outcome]  # of the query and its corruptions
    near: int = 0  # choices of the policy within rounding of another
    checked: int = 0  # proofs replayed
    above: tuple[int, ...] = ()  # a few of the candidates that are better, the best first
    outcome: Outcome | None = None  # of the query itself; None: its height says it

    def as_list(self) -> list[Any]:
        """Plain data, for a journal."""
        rank = [self.rank.better, self.rank.ties, self.rank.candidates]
        own = None if self.outcome is None else int(self.outcome)
        found = [rank, self.height, dict(self.outcomes), self.near, self.checked]
        return [*found, list(self.above), own]

    @staticmethod
    def of_list(data: list[Any]) -> Finding:
        """What `as_list` made.

        >>> one = Finding(Rank(0, 1, 5), 2, Counter({Outcome.PROVED: 6}))
        >>> Finding.of_list(one.as_list()) == one
        True
        """
        rank, height, outcomes, near, checked, above, own = data
        counted = Counter({Outcome(int(o)): int(n) for o, n in outcomes.items()})
        outcome = None if own is None else Outcome(own)
        return Finding(Rank(*rank), height, counted, near, checked, tuple(above), outcome)
