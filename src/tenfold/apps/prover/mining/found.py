"""Found: the best rules so far, as columns, never many more than those asked for.

Of N rules each relation has as many as its share of the facts: the best of one relation say
nothing of another. What a relation has not got is shared among the others.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from tenfold.apps.prover.mining.graph import Ints

SMOOTHING = 10  # failures added for each atom of a body: a few successes are no certainty
LEAST = 2  # successes of a rule that is worth keeping
NONE = -1

# Predictions that were right and predictions; the steps of head and body; the constant of the
# head and that of the body. What a rule has not got is NONE.
COLUMNS = ("support", "body", "head", "first", "second", "third", "own", "other")


@dataclass(slots=True)
class Found:
    """The best rules: by confidence, then by support, then by what they say."""

    limit: int
    facts: Ints  # of each relation
    seen: int = 0  # rules with enough successes
    _parts: list[Ints] = field(default_factory=list)
    _held: int = 0
    _least: NDArray[np.float64] = field(init=False)  # below this a relation has no room

    def __post_init__(self) -> None:
        self._least = np.zeros(len(self.facts))

    def add(self, support: Ints, **columns: Ints | int) -> None:
        """Rules of one shape, a column for each part."""
        made = np.full((len(COLUMNS), len(support)), NONE, np.int64)
        made[0] = support
        for name, column in columns.items():
            made[COLUMNS.index(name)] = column
        made = made[:, made[0] >= LEAST]
        self.seen += made.shape[1]
        made = made[:, confidence(made) >= self._least[made[2] % len(self.facts)]]
        self._parts.append(made)
        self._held += made.shape[1]
        if self._held > 2 * self.limit + 500_000:
            self._keep()

    def best(self) -> Ints:
        """The rules that are kept, best first: a row for each of the COLUMNS."""
        self._keep()
        return self._parts[0]

    def _keep(self) -> None:
        made = np.concatenate([np.empty((len(COLUMNS), 0), np.int64), *self._parts], axis=1)
        sure = confidence(made)
        order = np.lexsort((*made[:0:-1], -made[0], -sure))
        made, sure = made[:, order], sure[order]
        relation = made[2] % len(self.facts)
        place = np.empty(len(order))  # among the rules of its relation, by the relation's share
        for one in np.unique(relation).tolist():
            own = np.flatnonzero(relation == one)
            place[own] = np.arange(len(own)) / self.facts[one]
        kept = np.sort(np.argsort(place, kind="stable")[: self.limit])
        for one in np.unique(np.delete(relation, kept)).tolist():
            self._least[one] = sure[kept][relation[kept] == one].min(initial=2.0)
        self._parts = [made[:, kept]]
        self._held = len(kept)


def confidence(rules: Ints) -> NDArray[np.float64]:
    """The share of predictions that were right, with failures added for each atom of the body.

    >>> confidence(np.array([[9, 9], [10, 10], [0, 0], [1, 1], [-1, 2]])).tolist()
    [0.45, 0.3]
    """
    length = 1 + (rules[4:6] != NONE).sum(axis=0)
    made: NDArray[np.float64] = rules[0] / (rules[1] + SMOOTHING * length)
    return made
