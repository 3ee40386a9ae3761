"""Exhaustive run: the lowest proof of each candidate, by iterative deepening, in batches."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from tenfold.apps.prover.backend import padded
from tenfold.apps.prover.closure.joins import Ints, Packing
from tenfold.apps.prover.errors import CapacityError
from tenfold.apps.prover.input.program import Program
from tenfold.apps.prover.outcome import Outcome
from tenfold.apps.prover.resolution.resolution import Base, base_of
from tenfold.apps.prover.resolution.words import word_bits
from tenfold.apps.prover.rollout.exhaustive import (
    GOING,
    ROWS,
    STORE,
    Search,
    Store,
    exhaust,
    grown,
    start,
)
from tenfold.apps.prover.rollout.loop import RUNNING
from tenfold.apps.prover.rollout.queue import Lane
from tenfold.apps.prover.rollout.room import OVERFLOWS, Room
from tenfold.apps.prover.rollout.run import LaneResult, check_words

EVERY_BIT = np.uint64(2**64 - 1)


@dataclass(frozen=True, slots=True)
class Exhaustion:
    """The limits of a search, and the room it begins with.

    `overflow` is about the goals and variables of a state. The successors of a piece and the
    places for states are no limits of a lane: they grow whatever it says.
    """

    height: int = 10
    # its successors are those of all states of a piece together
    room: Room = field(default_factory=lambda: Room(1 << 12, 6, 8))
    places: int = 1 << 14  # for states of a batch
    batch: int = 32
    overflow: str = "grow"
    backend: str = "compiled"
    mask: np.uint64 = EVERY_BIT  # which bits of a hash count; fewer for tests of collisions


@dataclass(slots=True)
class Sizes:
    """What has been enough so far: later batches begin with it."""

    rows: int
    places: int

    @staticmethod
    def of(search: Exhaustion) -> Sizes:
        """What a search begins with."""
        rows = max(search.room.successors, search.batch)
        return Sizes(rows, padded(search.places, search.batch))


def exhaust_all(program: Program, lanes: Sequence[Lane], search: Exhaustion) -> list[LaneResult]:
    """How each lane ends: PROVED at its lowest height, REFUTED, or DEPTH.

    >>> from tenfold.apps.prover.input.program import Clause
    >>> swap = Clause((0, -1, -2), ((0, -2, -1),))
    >>> made = Program(("p",), ("a", "b"), ((0, 0, 1),), (swap,))
    >>> exhaust_all(made, [Lane((0, 1, 0))], Exhaustion(places=32))[0].height
    1
    """
    base = base_of(program)
    check_words(program, int(word_bits(base.bits)))
    sizes = Sizes.of(search)
    results: dict[int, LaneResult] = {}
    left = list(range(len(lanes)))
    for height in range(search.height + 1):
        again: list[int] = []
        for number, result in _at_height(program, base, lanes, left, search, height, sizes):
            if result.outcome == Outcome.DEPTH and height < search.height:
                again.append(number)
            else:
                results[number] = result
        left = sorted(again)
        if not left:
            break
    return [results[i] for i in range(len(lanes))]


def _at_height(
    program: Program,
    base: Base,
    lanes: Sequence[Lane],
    numbers: list[int],
    search: Exhaustion,
    height: int,
    sizes: Sizes,
) -> list[tuple[int, LaneResult]]:
    """The ends of some lanes at one height; those that overflow run again with more room."""
    ended: list[tuple[int, LaneResult]] = []
    waiting: list[tuple[Room, list[int]]] = [
        (search.room, numbers[i : i + search.batch]) for i in range(0, len(numbers), search.batch)
    ]
    while waiting:
        room, part = waiting.pop()
        done = _run(base, [lanes[i] for i in part], search, height, room, sizes)
        over: dict[Outcome, list[int]] = {}
        for i, number in enumerate(part):
            outcome = Outcome(int(done.outcome[i]))
            if outcome in OVERFLOWS and search.overflow == "error":
                raise CapacityError(
                    f"{outcome.name} of {program.name(lanes[number].triple)} at {room}",
                    fix="give more room, or say overflow grow or mark",
                )
            if outcome in OVERFLOWS and search.overflow == "grow":
                over.setdefault(outcome, []).append(number)
            else:
                ended.append((number, _result(done, i, outcome, height)))
        waiting.extend((room.more(outcome), some) for outcome, some in over.items())
    return ended


def _run(
    base: Base,
    lanes: Sequence[Lane],
    search: Exhaustion,
    height: int,
    room: Room,
    sizes: Sizes,
) -> Search:
    """One batch at one height, to its end; it grows where it stands."""
    now, without, _ = begun(base, lanes, search, height, room, sizes)
    while now.status == GOING:
        shapes = (str(sizes), room.goals, room.variables, *(np.shape(table) for table in base))
        new = exhaust.is_new(search.backend, *shapes, len(without))
        made = exhaust.on(search.backend)(
            now._replace(pieces=np.int64(0)),
            without,
            base,
            search.mask,
            np.int64(1 if new else 1 << 62),
            names=room.variables,
        )
        now = enlarged(_search(made), search.mask, sizes)
    # what ran to the end without a proof is refuted, unless the height cut something off
    unproved = np.where(now.cut, int(Outcome.DEPTH), int(Outcome.REFUTED))
    return now._replace(outcome=np.where(now.outcome == RUNNING, unproved, now.outcome))


def begun(
    base: Base,
    lanes: Sequence[Lane],
    search: Exhaustion,
    height: int,
    room: Room,
    sizes: Sizes | None = None,
) -> tuple[Search, Ints, Sizes]:
    """A batch before its first step, the fact that each lane may not use, and the sizes."""
    sizes = sizes or Sizes.of(search)
    packing = Packing(base.bits, base.reverse)
    filled = [*lanes, *[lanes[0]] * (search.batch - len(lanes))]
    keys = packing.keys([lane.without or (0, 0, 0) for lane in filled])
    without = np.where([lane.without is not None for lane in filled], keys, -1)
    triples = np.array([lane.triple for lane in filled], np.int64)
    made = start.on(search.backend)(
        triples,
        np.int64(len(lanes)),
        without,
        np.int64(height),
        base,
        search.mask,
        rows=sizes.rows,
        places=sizes.places,
        size=room.goals,
    )
    return _search(made), without, sizes


def enlarged(now: Search, mask: np.uint64, sizes: Sizes) -> Search:
    """The search with the room it asks for, if it does; the sizes are kept for what follows."""
    if now.status == ROWS:
        sizes.rows *= 2
    elif now.status == STORE:
        sizes.places *= 4
    else:
        return now
    return grown(now, mask, sizes.places, sizes.rows)


def _search(made: tuple[Any, ...]) -> Search:
    return Search(Store(*made[0]), *made[1:])


def _result(done: Search, lane: int, outcome: Outcome, height: int) -> LaneResult:
    if outcome != Outcome.PROVED:
        return LaneResult(outcome, 0.0, None, 0, ())
    choices: list[int] = []
    place = int(done.last[lane])
    if place >= 0:
        choices.append(int(done.choice[lane]))
    while place >= 0 and done.store.parent[place] >= 0:
        choices.append(int(done.store.choice[place]))
        place = int(done.store.parent[place])
    return LaneResult(outcome, float(-height), height, len(choices), tuple(reversed(choices)))
