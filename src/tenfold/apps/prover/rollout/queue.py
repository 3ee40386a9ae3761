"""Queue: candidates in arrays, as a rollout takes them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Any, overload

import numpy as np

from tenfold.apps.prover.input.program import Triple
from tenfold.apps.prover.outcome import Outcome
from tenfold.apps.prover.resolution.matching import FAR, Without
from tenfold.apps.prover.resolution.patterns import Indices, hashed, indices
from tenfold.apps.prover.resolution.tables import (
    LOOP,
    OBJECT,
    SUBJECT,
    Shorts,
    Tables,
    holds,
    lookup,
    range_key,
    take,
)
from tenfold.apps.prover.resolution.words import HEIGHT, Goals, joined
from tenfold.apps.prover.rollout.draws import as_bits
from tenfold.apps.prover.rollout.loop import RUNNING, Requests
from tenfold.apps.prover.rollout.room import QUEUE


@dataclass(frozen=True, slots=True)
class Lane:
    """A candidate to prove: its id for random numbers, and the fact it may not use."""

    triple: Triple
    id: int = 0
    without: Triple | None = None


_NONE = (-1, 0, 0)  # no fact that a lane may not use


class Lanes(Sequence[Lane]):
    """Candidates as columns; one by itself is a Lane.

    >>> made = Lanes.of([Lane((0, 1, 2), 7), Lane((0, 2, 1), 8, (0, 1, 2))])
    >>> made[0].without, made[1:][0] == Lane((0, 2, 1), 8, (0, 1, 2)), made.some([1])[0].id
    (None, True, 8)
    """

    def __init__(self, triples: Any, ids: Any, without: Any) -> None:
        """`triples` and `without` are three numbers a row; those of no fact begin with -1."""
        self.triples, self.ids, self.without = triples, ids, without

    @staticmethod
    def of(lanes: Sequence[Lane]) -> Lanes:
        """These very lanes."""
        if isinstance(lanes, Lanes):
            return lanes
        return Lanes(
            _rows([lane.triple for lane in lanes]),
            as_bits([lane.id for lane in lanes]),
            _rows([lane.without or _NONE for lane in lanes]),
        )

    def some(self, at: Any) -> Lanes:
        """Those of some numbers, or of a slice."""
        return Lanes(self.triples[at], self.ids[at], self.without[at])

    def __len__(self) -> int:
        return len(self.triples)

    @overload
    def __getitem__(self, at: int) -> Lane: ...

    @overload
    def __getitem__(self, at: slice) -> Lanes: ...

    def __getitem__(self, at: Any) -> Any:
        if isinstance(at, slice):
            return self.some(at)
        without = tuple(self.without[at].tolist())
        return Lane(
            tuple(self.triples[at].tolist()),
            int(self.ids[at]),
            without if without[0] >= 0 else None,
        )


def _rows(triples: list[Triple]) -> Any:
    """Triples as rows."""
    flat = np.fromiter(chain.from_iterable(triples), np.int64, 3 * len(triples))
    return flat.reshape(-1, 3)


def terms_of(lanes: Sequence[Lane]) -> tuple[Any, Any, Any]:
    """The predicates and terms of candidates; variables are -1 and -2 in order of appearance."""
    p, s, o = Lanes.of(lanes).triples.T
    return p, np.maximum(s, -1), np.where(o < 0, np.where((s >= 0) | (s == o), -1, -2), o)


def withouts(lanes: Sequence[Lane], tables: Tables) -> Without:
    """The fact that each lane may not use."""
    q, a, b = Lanes.of(lanes).without.T
    key = joined(Goals(q, a, b, 0), tables.bits) >> HEIGHT
    key = np.where((q >= 0) & holds(tables.facts, key), key, -1)

    def entry(kind: int, term: Any, other: Any, column: Shorts) -> Any:
        """Where the fact not to use stands, among the entries that it is found with."""
        about = range_key(kind, q, term, tables.predicates, tables.bits)
        first, count = lookup(tables.ranges, about, tables.firsts, tables.counts)
        low, high = first, first + count
        for _ in range(int(count.max(initial=0)).bit_length()):
            middle = (low + high) // 2
            below = (low < high) & (take(column, middle) < other)
            low, high = np.where(below, middle + 1, low), np.where(below, high, middle)
        return np.where((key >= 0) & (count > 0), low, FAR)

    loops = np.where(a == b, entry(LOOP, 0 * a, a, tables.subjects), FAR)
    return Without(
        key, entry(SUBJECT, a, b, tables.objects), entry(OBJECT, b, a, tables.subjects), loops
    )


def is_known(word: Any, s: Any, o: Any, without: Any, tables: Tables) -> Any:
    """Which candidates are facts that they may use."""
    key = word >> HEIGHT
    return (s >= 0) & (o >= 0) & holds(tables.facts, key) & (key != without)


def asked_of(
    lanes: Sequence[Lane],
    tables: Tables,
    names: int,
    slots: int,
    height: int,
    steps: int,
    mask: int,
    queue: int = QUEUE,
) -> Requests:
    """Lanes as a queue, each a state of one goal; one that is a fact is proved at once.

    `names` is the room for variables, `slots` that for successors, `queue` that for lanes.
    """
    lanes = Lanes.of(lanes)
    p, s, o = terms_of(lanes)
    word = joined(Goals(p, s, o, height), tables.bits)
    without = withouts(lanes, tables)
    proved = is_known(word, s, o, without.key, tables)
    outcome = np.full(len(lanes), RUNNING if steps > 0 else int(Outcome.DEPTH))
    outcome[-np.minimum(np.minimum(s, o), 0) > names] = Outcome.OVERFLOW_VARS
    outcome[proved] = Outcome.PROVED

    def padded(column: Any, fill: int, dtype: Any) -> Any:
        made = np.full(queue + 1, fill, dtype)
        made[: len(lanes)] = column
        return made

    return Requests(
        padded(word, 0, np.int64),
        Indices(*(padded(part, 0, np.int32) for part in indices(p >= 0, p, s, o, tables))),
        padded(hashed(word) & np.uint64(mask), 0, np.uint64),
        padded(outcome, Outcome.PROVED, np.int32),
        Without(
            padded(without.key, -1, np.int64),
            *(padded(column, FAR, np.int32) for column in without[1:]),
        ),
        padded(lanes.ids, 0, np.uint64),
        np.int64(len(lanes)),
        np.int64(height),
        np.log(np.maximum(np.arange(slots + 1), 1)),
        np.int64(steps),
        np.uint64(mask),
    )
