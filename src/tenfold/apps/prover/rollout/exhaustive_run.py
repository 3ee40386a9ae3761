"""Exhaustive run: the lowest proof of each candidate, by iterative deepening, in batches."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

import tenfold as tn
from tenfold.apps.prover.backend import padded
from tenfold.apps.prover.errors import CapacityError
from tenfold.apps.prover.footprint import footprint
from tenfold.apps.prover.input.program import Program
from tenfold.apps.prover.outcome import OVERFLOWS, Outcome
from tenfold.apps.prover.resolution.matching import Without
from tenfold.apps.prover.resolution.tables import Tables, most_names, tables_of
from tenfold.apps.prover.resolution.words import Goals, joined
from tenfold.apps.prover.rollout.exhaustive import (
    GOING,
    ROWS,
    STORE,
    Search,
    Store,
    exhaust,
    grown,
)
from tenfold.apps.prover.rollout.loop import RUNNING
from tenfold.apps.prover.rollout.queue import Lane, is_known, terms_of, withouts
from tenfold.apps.prover.rollout.room import Room
from tenfold.apps.prover.rollout.run import LOST, LaneResult, check_words, leaves
from tenfold.apps.prover.rollout.usage import Capacity, Usage

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
    places: int = 1 << 16  # for states of a batch
    batch: int = 32
    overflow: str = "grow"
    backend: str = "compiled"
    mask: np.uint64 = EVERY_BIT  # which bits of a hash count; fewer for tests of collisions
    memory: int | None = None  # bytes of arrays


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


class Keeper:
    """Knows what the arrays of a search take, and whether memory holds them."""

    def __init__(self, tables: Tables, search: Exhaustion, usage: Usage) -> None:
        self.tables, self.search, self.usage = tables, search, usage
        self.bytes: dict[tuple[int, ...], int] = {}

    def count(self, room: Room, sizes: Sizes) -> int:
        """The bytes of a batch of this room and these sizes."""
        key = (sizes.rows, sizes.places, room.goals, room.variables)
        if key not in self.bytes:
            search, batch = self.search, self.search.batch
            all_ = sizes.places + sizes.rows
            number, lane = tn.spec((), "int64"), tn.spec((batch,), "int64")
            column = tn.spec((all_,), "int64")
            words = tn.spec((all_, room.goals), "int64")
            now = Search(
                Store(words, *(column for _ in Store._fields[1:])),
                tn.spec((sizes.places + 1,), "int64"),
                number, number, number, lane, tn.spec((batch,), "bool"), lane, lane, number, number,
            )  # fmt: skip
            entry = tn.spec((batch,), "int32")
            without = Without(lane, entry, entry, entry)
            given = (now, without, self.tables, search.mask, np.int64(1))
            self.bytes[key] = footprint(exhaust.graph(search.backend, *given, names=room.variables))
        return self.bytes[key]

    def holds(self, room: Room, sizes: Sizes) -> bool:
        """Whether there is memory for it."""
        memory = self.search.memory
        return memory is None or self.count(room, sizes) <= memory

    def begun(self, room: Room, sizes: Sizes) -> bool:
        """Whether there is memory to begin, with less of both if need be; `sizes` says so then."""
        least = self.search.batch
        while not self.holds(room, sizes):
            if max(sizes.places, sizes.rows) // 2 < least:
                return False
            if sizes.places >= sizes.rows:
                sizes.places //= 2
            else:
                sizes.rows //= 2
        return True

    def more(self, room: Room, sizes: Sizes, status: int) -> bool:
        """Whether there is memory for what a search asks; `sizes` says what it is given then."""
        tries = [Sizes(2 * sizes.rows, sizes.places)]
        if status == STORE:  # if need be in smaller pieces
            # much more at once, since each size is compiled for
            tries = [Sizes(sizes.rows, factor * sizes.places) for factor in (16, 4)]
            halves = range(sizes.rows.bit_length())
            rows = [max(sizes.rows >> i, self.search.batch) for i in halves]
            tries += [Sizes(count, 2 * sizes.places) for count in dict.fromkeys(rows)]
        for one in tries:
            if self.holds(room, one):
                sizes.rows, sizes.places = one.rows, one.places
                return True
        return False

    def note(self, room: Room, sizes: Sizes, candidates: int) -> None:
        """Write down what a batch has come to."""
        kept = (sizes.rows, room.goals, room.variables, None, sizes.places, self.search.batch)
        self.usage.note(Capacity(*kept, 1, self.count(room, sizes)), candidates)


def exhaust_all(
    program: Program, lanes: Sequence[Lane], search: Exhaustion, usage: Usage | None = None
) -> list[LaneResult]:
    """How each lane ends: PROVED at its lowest height, REFUTED, or DEPTH.

    >>> from tenfold.apps.prover.input.program import Clause
    >>> swap = Clause((0, -1, -2), ((0, -2, -1),))
    >>> made = Program(("p",), ("a", "b"), ((0, 0, 1),), (swap,))
    >>> exhaust_all(made, [Lane((0, 1, 0))], Exhaustion(places=32))[0].height
    1
    """
    tables = tables_of(program)
    check_words(program, tables, search.room)
    keeper = Keeper(tables, search, usage or Usage(search.memory))
    sizes = Sizes.of(search)
    results: dict[int, LaneResult] = {}
    left = list(range(len(lanes)))
    for height in range(search.height + 1):
        again: list[int] = []
        for number, result in _at_height(program, keeper, lanes, left, height, sizes):
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
    keeper: Keeper,
    lanes: Sequence[Lane],
    numbers: list[int],
    height: int,
    sizes: Sizes,
) -> list[tuple[int, LaneResult]]:
    """The ends of some lanes at one height; those that overflow run again with more room.

    Lanes that do not fit into memory together are parted. So one is lost only if it does not fit
    alone, whichever went before it or with it.
    """
    search, names = keeper.search, most_names(keeper.tables)
    ended: list[tuple[int, LaneResult]] = []
    # the last says whether the sizes are those that this lane alone has come to
    waiting: list[tuple[Room, list[int], Sizes, bool]] = [
        (search.room, numbers[i : i + search.batch], sizes, False)
        for i in range(0, len(numbers), search.batch)
    ]
    while waiting:
        room, part, mine, alone = waiting.pop()
        done = _run(keeper, [lanes[i] for i in part], height, room, mine)
        if done is None and not alone:
            middle = -(-len(part) // 2)
            parts = (part[:middle], part[middle:])
            waiting += [(room, some, Sizes.of(search), len(some) == 1) for some in parts if some]
            continue
        if done is None:
            if search.overflow == "error":
                raise CapacityError(
                    f"{program.name(lanes[part[0]].triple)} needs more than the memory that is "
                    f"allowed, at height {height}",
                    fix="allow more, or say overflow grow or mark",
                )
            keeper.usage.lost += 1
            ended.append((part[0], LOST))
            continue
        keeper.note(room, mine, len(part))
        over: dict[Outcome, list[int]] = {}
        for i, number in enumerate(part):
            outcome = Outcome(int(done.outcome[i]))
            if outcome in OVERFLOWS and search.overflow == "error":
                raise CapacityError(
                    f"{outcome.name} of {program.name(lanes[number].triple)} at {room}",
                    fix="give more room, or say overflow grow or mark",
                )
            if outcome in OVERFLOWS and search.overflow == "grow" and room.more(outcome, names):
                over.setdefault(outcome, []).append(number)
            else:
                ended.append((number, _result(done, i, outcome, height)))
        for outcome, some in over.items():
            more = room.more(outcome, names)
            assert more is not None
            waiting.append((more, some, mine, alone))
    return ended


def _run(
    keeper: Keeper, lanes: Sequence[Lane], height: int, room: Room, sizes: Sizes
) -> Search | None:
    """One batch at one height, to its end; it grows where it stands. None if memory does not hold
    what it grows to."""
    tables, search = keeper.tables, keeper.search
    if not keeper.begun(room, sizes):
        return None
    now, without, _ = begun(tables, lanes, search, height, room, sizes)
    while now.status == GOING:
        shapes = (
            str(sizes),
            room.goals,
            room.variables,
            *(np.shape(one) for one in leaves(tables)),
        )
        new = exhaust.is_new(search.backend, *shapes, len(without.key))
        with warnings.catch_warnings():  # its sizes are powers of two, and no more than it needs
            warnings.filterwarnings("ignore", message="exhaust was compiled")
            made = exhaust.on(search.backend)(
                now._replace(pieces=np.int64(0)),
                without,
                tables,
                search.mask,
                np.int64(1 if new else 1 << 62),
                names=room.variables,
            )
        now = _search(made)
        if now.status in (ROWS, STORE):
            if not keeper.more(room, sizes, int(now.status)):
                return None
            now = grown(now, search.mask, sizes.places, sizes.rows)
    # what ran to the end without a proof is refuted, unless the height cut something off
    unproved = np.where(now.cut, int(Outcome.DEPTH), int(Outcome.REFUTED))
    return now._replace(outcome=np.where(now.outcome == RUNNING, unproved, now.outcome))


def begun(
    tables: Tables,
    lanes: Sequence[Lane],
    search: Exhaustion,
    height: int,
    room: Room,
    sizes: Sizes | None = None,
) -> tuple[Search, Without, Sizes]:
    """A batch before its first step, the fact that each lane may not use, and the sizes."""
    sizes = sizes or Sizes.of(search)
    batch = search.batch
    filled = [*lanes, *[lanes[0]] * (batch - len(lanes))]
    p, s, o = terms_of(filled)
    word = joined(Goals(p, s, o, height), tables.bits)
    key, *others = withouts(filled, tables)
    without = Without(key, *(column.astype(np.int32) for column in others))
    outcome = np.full(batch, RUNNING)
    outcome[-np.minimum(np.minimum(s, o), 0) > room.variables] = Outcome.OVERFLOW_VARS
    outcome[is_known(word, s, o, key, tables)] = Outcome.PROVED
    outcome[len(lanes) :] = Outcome.REFUTED
    none = np.full(batch, -1)
    words = np.zeros((batch, room.goals), np.int64)
    words[:, 0] = word
    store = Store(words, np.arange(batch), none, 0 * none, none)
    number, zero = np.int64(batch), np.int64(0)
    first = Search(
        store, none, number, zero, number, outcome, outcome > len(Outcome), none, 0 * none,
        np.int64(GOING), zero,
    )  # fmt: skip
    return grown(first, search.mask, sizes.places, sizes.rows), without, sizes


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
