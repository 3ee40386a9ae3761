"""Result: what was found of a query and its corruptions."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import Any

from tenfold.apps.prover.outcome import Outcome
from tenfold.apps.prover.report.ranks import Rank


@dataclass(frozen=True, slots=True)
class Finding:
    """The rank of a query, the height of its proof, and how all searches for it ended."""

    rank: Rank
    height: int | None
    outcomes: Counter[Outcome]  # of the query and its corruptions
    near: int = 0  # choices of the policy within rounding of another
    checked: int = 0  # proofs replayed

    def as_list(self) -> list[Any]:
        """Plain data, for a journal."""
        rank = [self.rank.better, self.rank.ties, self.rank.candidates]
        return [rank, self.height, dict(self.outcomes), self.near, self.checked]

    @staticmethod
    def of_list(data: list[Any]) -> Finding:
        """What `as_list` made.

        >>> one = Finding(Rank(0, 1, 5), 2, Counter({Outcome.PROVED: 6}))
        >>> Finding.of_list(one.as_list()) == one
        True
        """
        rank, height, outcomes, near, checked = data
        counted = Counter({Outcome(int(o)): int(n) for o, n in outcomes.items()})
        return Finding(Rank(*rank), height, counted, near, checked)
