"""Result: what was found of a query and its corruptions."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from tenfold.apps.prover.input.queries import Query
from tenfold.apps.prover.outcome import Outcome
from tenfold.apps.prover.report.ranks import Rank

Key = list[Any]  # [proved, score, score by embedding]: greater is better
Tally = tuple[Key, list[tuple[Key, int]]]  # of the query, and how many candidates have each
LISTED = 20  # of the candidates that are better than a query


@dataclass(frozen=True, slots=True)
class Finding:
    """The rank of a query, the height of its proof, and how all searches for it ended."""

    rank: Rank
    height: int | None
    outcomes: Counter[Outcome]  # of the query and its corruptions
    near: int = 0  # choices of the policy within rounding of another
    checked: int = 0  # proofs replayed
    weight: float | None = None  # the query's score by weight; of several the greatest
    tally: Tally | None = None  # where scores of all queries are compared
    above: tuple[int, ...] = ()  # a few of the candidates that are better, the best first
    outcome: Outcome | None = None  # of the query itself; None: its height says it
    final: bool = False  # whether the rank is this one, whatever a limit that was met cut off

    def as_list(self) -> list[Any]:
        """Plain data, for a journal."""
        rank = [self.rank.better, self.rank.ties, self.rank.candidates]
        own = None if self.outcome is None else int(self.outcome)
        found = [rank, self.height, dict(self.outcomes), self.near, self.checked]
        return [*found, self.weight, self.tally, list(self.above), own, self.final]

    @staticmethod
    def of_list(data: list[Any]) -> Finding:
        """What `as_list` made.

        >>> one = Finding(Rank(0, 1, 5), 2, Counter({Outcome.PROVED: 6}), weight=0.5)
        >>> Finding.of_list(one.as_list()) == one
        True
        """
        rank, height, outcomes, near, checked, weight, counted, above, own, final = data
        ends = Counter({Outcome(int(o)): int(n) for o, n in outcomes.items()})
        scores = (counted[0], [(key, n) for key, n in counted[1]]) if counted else None
        outcome = None if own is None else Outcome(own)
        return Finding(
            Rank(*rank), height, ends, near, checked, weight, scores, tuple(above), outcome, final
        )


def _listed(value: Any) -> Any:
    """Tuples as lists, as a journal gives them back."""
    return [_listed(part) for part in value] if isinstance(value, tuple) else value


def tally(query: Query, values: Mapping[int, Any], others: Sequence[float] | None) -> Tally:
    """The scores of a query and its candidates: `values` of those that are proved, by constant,
    and the scores by embedding of all constants, if there are such.

    >>> asked = Query((0, 0, 1), "tail", frozenset({1, 2, 3, 4}), frozenset({1}))
    >>> tally(asked, {1: 0.5, 2: 0.5}, None)
    ([1, 0.5, 0.0], [([1, 0.5, 0.0], 1), ([0, 0.0, 0.0], 2)])
    """

    def key(constant: int) -> Key:
        proved = constant in values
        value = values[constant] if proved else 0.0
        other = others[constant] if others is not None else 0.0
        return [int(proved), _listed(value), other]

    counted: dict[str, tuple[Key, int]] = {}
    for constant in query.candidates:
        made = key(constant)
        counted[repr(made)] = (made, counted.get(repr(made), (made, 0))[1] + 1)
    return key(query.own), list(counted.values())
