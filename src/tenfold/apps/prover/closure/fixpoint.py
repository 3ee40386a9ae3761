"""Closure: every fact that follows, with the height of its lowest proof, set at a time.

One `while_loop` over columns of a fixed capacity. A round joins the facts of the last round, in
pieces of at most `rows` bindings, with all facts below; what is new is kept apart until the round
ends. A piece that does not fit is not applied: the loop stops and says what it needs, and goes on
from there with more.

What is new is found by sorting, or, where there can't be many facts at all, in a table with a place
for each: there most facts are found many times over.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np

import tenfold as tn
from tenfold.apps.prover.backend import is_device, padded, traced
from tenfold.apps.prover.closure.allowance import FACTS as FACTS_LIMIT
from tenfold.apps.prover.closure.allowance import MEMORY, Allowance, Stopped
from tenfold.apps.prover.closure.bindings import (
    Rows,
    endpoints,
    extended_rows,
    first_rows,
    term_value,
)
from tenfold.apps.prover.closure.joins import Ints, Packing, Uses, uses_of
from tenfold.apps.prover.columns import END, Traced, compact
from tenfold.apps.prover.input.program import Program, Triple

RUNNING, FIXPOINT, LIMIT, FACTS, ROWS = range(5)  # FACTS, ROWS: more of these are needed
DENSE = 1 << 20  # places of a table of all keys, at most
SPARE = 64  # places of it for each fact there is to begin with, at most
GROWTH = 4  # of the room for facts at a time: each size is compiled for
BYTES = 64  # of the loop's columns and of what it sorts, for each fact there is room for
PIECE = 1 << 14  # rows of a piece at least: what the near caches hold
DEVICE_PIECE = 1 << 17  # on a GPU, where a piece takes about as long for few

Watch = Callable[[int, int], None]  # told the height and the facts so far


class State(NamedTuple):
    """Where the loop stands."""

    facts: Traced  # keys in the order found
    heights: Traced
    index: Traced  # keys of the facts and their keys by object, sorted
    below: Traced  # by key: how many of the index lie below it; empty without a table
    work: Traced  # how many (fact, use) there are up to each fact, of the last round's facts
    fresh: Traced  # keys found in this round, sorted unless there is a table
    marks: Traced  # by key, and one for none: not 0 if it has been found; empty without a table
    count: Traced  # of facts
    found: Traced  # of fresh keys
    at: Traced  # how many (fact, use) this round has joined
    height: Traced  # of the facts of the last round
    status: Traced
    pieces: Traced  # joined in this call


@dataclass(frozen=True, slots=True)
class Closure:
    """All that follows up to a height: keys sorted, the height of each, and what it took."""

    packing: Packing
    keys: Ints
    heights: Ints
    complete: bool
    growths: int
    stopped: str | None = None  # the limit that was met before the height was: memory, max-facts

    @property
    def height(self) -> int:
        """Up to which height every fact is there, of a closure that was stopped."""
        return int(self.heights.max(initial=0))

    def by_triple(self) -> dict[Triple, int]:
        """The heights by fact, as the reference gives them."""
        triples = self.packing.triples(self.keys).tolist()
        return {(p, s, o): h for (p, s, o), h in zip(triples, self.heights.tolist(), strict=True)}


def close_by_joins(
    program: Program,
    limit: int | None = None,
    facts: int = 1 << 10,
    rows: int | None = None,
    backend: str = "compiled",
    allowance: Allowance | None = None,
    watch: Watch | None = None,
) -> Closure:
    """The closure of a program; `facts` and `rows` are the capacities to begin with.

    `watch` is told the height and the facts so far, some times a second.

    Unless they are given, rows follow facts where these are sorted.

    >>> from tenfold.apps.prover.input.program import Clause
    >>> swap = Clause((0, -1, -2), ((0, -2, -1),))
    >>> close_by_joins(Program(("p",), ("a", "b"), ((0, 0, 1),), (swap,))).by_triple()
    {(0, 0, 1): 0, (0, 1, 0): 1}
    """
    packing, uses = Packing.of(program), uses_of(program)
    while facts < len(program.facts):
        facts *= 2
    state = begin(program, packing, uses, facts, backend)
    joins = _Joins(packing, uses, rows, backend, is_dense(program, packing), allowance, watch)
    most = np.iinfo(np.int32).max if limit is None else limit
    stopped = None
    try:
        state = joins.run(state, most)
    except Stopped as stop:
        state, stopped = joins.last, str(stop)
    except MemoryError:
        state, stopped = joins.last, MEMORY
    count = int(state.count)
    order = np.argsort(state.facts[:count])
    made = Closure(
        packing,
        state.facts[:count][order],
        state.heights[:count][order].astype(np.int64),
        stopped is None and bool(state.status == FIXPOINT),
        joins.growths,
        stopped,
    )
    return trimmed(made, allowance)


def trimmed(closed: Closure, allowance: Allowance | None) -> Closure:
    """A closure without the heights at which there are more facts than allowed."""
    most = None if allowance is None else allowance.facts
    if most is None or len(closed.keys) <= most:
        return closed
    counts = np.cumsum(np.bincount(closed.heights))
    highest = max(0, int(np.searchsorted(counts, most, "right")) - 1)
    kept = closed.heights <= highest
    return replace(
        closed,
        keys=closed.keys[kept],
        heights=closed.heights[kept],
        complete=False,
        stopped=FACTS_LIMIT,
    )


def join_once(program: Program, old: Ints, new: Ints, backend: str) -> Ints:
    """What the clauses give in one round from facts of which at least one is new, sorted."""
    packing, uses = Packing.of(program), uses_of(program)
    facts = padded(len(old) + len(new), 1 << 10)
    state = begin(program, packing, uses, facts, backend, np.concatenate([old, new]), len(old))
    joins = _Joins(packing, uses, None, backend, bool(state.marks.shape[0]), None)
    state = joins.run(state, 1)
    count = int(state.count)
    return np.sort(state.facts[:count][state.heights[:count] == 1])


@dataclass(slots=True)
class _Joins:
    """The loop with the room it has, which grows."""

    packing: Packing
    uses: Uses
    rows: int | None  # None: they follow the facts
    backend: str
    dense: bool
    allowance: Allowance | None
    watch: Watch | None = None
    growths: int = 0
    last: Any = None  # the state, also when the loop is stopped

    def run(self, state: State, limit: int) -> State:
        """Until nothing follows or the limit is met."""
        follow = self.rows is None
        rows = self.rows or _rows(len(state.facts), self.dense, self.backend)
        most_pieces = 1 << (4 if self.watch else 62)
        while True:
            self._check(state, len(state.facts), limit)
            shapes = (len(state.facts), rows, *(table.shape for table in self.uses))
            pieces = np.int64(1 if run.is_new(self.backend, *shapes) else most_pieces)
            state = state._replace(pieces=np.int64(0))
            given = (state, self.uses, self.packing, np.int64(limit), pieces)
            began = time.perf_counter()
            state = State(*run.on(self.backend)(*given, rows=rows))
            if self.watch:
                self.watch(int(state.height), int(state.count + state.found))
                # pieces change no result: as many as keep the time between two calls short
                if time.perf_counter() - began < 0.1:
                    most_pieces = min(2 * most_pieces, 1 << 62)
            if state.status in (FIXPOINT, LIMIT):
                return state
            if state.status == RUNNING:
                continue
            self.growths += 1
            if state.status == ROWS:
                rows *= 2
                state = state._replace(status=np.int64(RUNNING))
            else:
                capacity = (GROWTH**2 if self.dense else GROWTH) * len(state.facts)
                self._check(state, capacity, limit)
                state = grown(state, capacity)
                rows = max(rows, _rows(capacity, self.dense, self.backend)) if follow else rows

    def _check(self, state: State, capacity: int, limit: int) -> None:
        self.last = state
        if self.allowance is not None:
            # above the limit it is only asked whether there is something
            found = int(state.found) if state.height < limit else 0
            self.allowance.check(int(state.count) + found, BYTES * capacity)


def is_dense(program: Program, packing: Packing) -> bool:
    """Whether there is a table with a place for each key."""
    return bool(packing.reverse <= min(DENSE, SPARE * len(program.facts)))


def _rows(facts: int, dense: bool, backend: str) -> int:
    """The rows of a piece: more where each piece sorts all that is fresh, too."""
    least = DEVICE_PIECE if is_device(backend) else PIECE
    return least if dense else min(max(least, 2 * facts), 1 << 19)


def begin(
    program: Program,
    packing: Packing,
    uses: Uses,
    capacity: int,
    backend: str,
    keys: Ints | None = None,
    first: int = 0,
) -> State:
    """The loop's first state: the program's facts, or keys of which those from `first` on are
    new."""
    keys = packing.keys(program.facts) if keys is None else keys
    count = len(keys)
    facts = np.full(capacity, END)
    facts[:count] = keys
    bare = sorted({c.head for c in program.clauses if not c.body} - set(program.facts))
    fresh = np.full(max(capacity, len(bare)), END)
    fresh[: len(bare)] = packing.keys(bare)
    size = int(packing.reverse) if is_dense(program, packing) else -1
    empty = State(
        facts,
        np.zeros(capacity, np.int32),
        np.full(2 * capacity, END),
        np.zeros(2 * size + 1 if size >= 0 else 0, np.int32),
        np.zeros(capacity, np.int64),
        fresh,
        _marked(np.zeros(size + 1, np.int32), facts, fresh),
        *(np.int64(n) for n in (count, len(bare), 0, 0, RUNNING, 0)),
    )
    if len(bare) > capacity:
        empty = grown(empty, 1 << len(bare).bit_length())
    return State(*prepare.on(backend)(empty, np.int64(first), uses, packing))


def grown(state: State, capacity: int) -> State:
    """The state with more room for facts."""

    def longer(column: Traced, size: int, rest: int) -> Traced:
        return np.concatenate([column, np.full(size - len(column), rest, column.dtype)])

    return state._replace(
        facts=longer(state.facts, capacity, END),
        heights=longer(state.heights, capacity, 0),
        index=longer(state.index, 2 * capacity, END),
        work=longer(state.work, capacity, int(state.work[-1])),
        fresh=longer(state.fresh, capacity, END),
        marks=_marked(np.zeros_like(state.marks), state.facts, state.fresh),
        status=np.int64(RUNNING),
    )


def _marked(marks: Ints, *columns: Ints) -> Ints:
    """A table in which all keys of some columns are found."""
    for column in columns if len(marks) else ():
        marks[column[column < END]] = 1
    return marks


@traced("rows")
def run(
    state: State, uses: Uses, packing: Packing, limit: Traced, pieces: Traced, rows: int
) -> State:
    """The loop, from a state on, until nothing follows, the limit is met, room is wanted, or so
    many pieces are joined."""

    def over(state: State) -> Traced:
        return (state.height >= limit) & (state.found > 0)

    def more(state: State) -> Traced:
        return (state.status == RUNNING) & (state.pieces < pieces)

    def ends(state: State) -> Traced:
        return state.at >= state.work[-1]

    def piece(state: State) -> State:
        return _join(state._replace(pieces=state.pieces + 1), uses, packing, rows)

    def round_(state: State) -> State:
        state = tn.while_loop(lambda s: more(s) & ~over(s) & ~ends(s), piece, state)
        status = np.where((state.status == RUNNING) & over(state), LIMIT, state.status)
        state = state._replace(status=status)
        last: State = tn.cond(
            ends(state) & (status == RUNNING),
            lambda s: _end_round(s, uses, packing),
            lambda s: s,
            state,
        )
        return last

    final: State = tn.while_loop(more, round_, state)
    return final


@traced()
def prepare(state: State, first: Traced, uses: Uses, packing: Packing) -> State:
    """The state with its index made, and the work of the facts from `first` on."""
    return _indexed(state, first, uses, packing)


def _indexed(state: State, first: Traced, uses: Uses, packing: Packing) -> State:
    places = tn.arange(state.facts.shape[0])
    used = places < state.count
    s, o = endpoints(state.facts, packing)
    p = np.where(used, state.facts >> 2 * packing.bits, 0)
    mirrored = packing.reverse + ((p << 2 * packing.bits) | (o << packing.bits) | s)
    index = np.sort(np.concatenate([state.facts, np.where(used, mirrored, END)]))
    count = np.where(used & (places >= first), uses.starts[p + 1] - uses.starts[p], 0)
    below = state.below
    if below.shape[0]:
        there = np.zeros_like(below)
        there[np.minimum(index, below.shape[0] - 1)] = 1
        below = np.cumsum(there, dtype=np.int32) - there
    return state._replace(index=index, below=below, work=np.cumsum(count))


def _end_round(state: State, uses: Uses, packing: Packing) -> State:
    """The facts found in this round put with the others; without any, the end."""

    def put(state: State) -> State:
        capacity = state.facts.shape[0]
        places = tn.arange(capacity)
        new = (places >= state.count) & (places < state.count + state.found)
        moved = np.sort(state.fresh)[np.maximum(places - state.count, 0)]
        state = state._replace(
            facts=np.where(new, moved, state.facts),
            heights=np.where(new, (state.height + 1).astype(np.int32), state.heights),
            fresh=tn.full(capacity, END, np.int64),
            count=state.count + state.found,
            found=np.zeros_like(state.found),
            at=np.zeros_like(state.at),
            height=state.height + 1,
        )
        return _indexed(state, state.count - new.sum(), uses, packing)

    def stop(state: State) -> State:
        return state._replace(status=np.full_like(state.status, FIXPOINT))

    ended: State = tn.cond(state.found > 0, put, stop, state)
    return ended


def _join(state: State, uses: Uses, packing: Packing, rows: int) -> State:
    """One piece of this round's joins; what they give goes to the fresh keys."""
    # where there is a table facts are dense, and few pairs make many rows
    pairs = max(1, rows // 16) if state.marks.shape[0] else rows
    found = first_rows(state, uses, packing, pairs)
    total = state.work[-1]
    taken = np.minimum(total, state.at + pairs)

    def extend(place: Traced, carry: tuple[Rows, Traced]) -> tuple[Rows, Traced]:
        return extended_rows(*carry, rows, uses.atoms, place, state, uses.slots, packing)

    longest = uses.atoms.shape[1]
    if longest > 1:
        found, taken = extend(np.int64(1), (found, taken))
    if longest > 2:
        found, taken = tn.fori_loop(2, longest, extend, (found, taken))
    head = uses.heads[found.use]
    s, o = term_value(head[:, 1], found.bound), term_value(head[:, 2], found.bound)
    keys = (head[:, 0] << 2 * packing.bits) | (s << packing.bits) | o
    keys = np.where(found.live & (found.item < taken), keys, END)
    add = _marked_new if state.marks.shape[0] else _sorted_new
    added, count = add(state, keys)
    full = state.count + count > state.facts.shape[0]
    stuck = (taken == state.at) & (state.at < total)
    good = ~(full | stuck)
    status = np.where(stuck, ROWS, np.where(full, FACTS, RUNNING))
    return added._replace(
        found=np.where(good, count, state.found),
        at=np.where(good, taken, state.at),
        status=status,
    )


def _sorted_new(state: State, keys: Traced) -> tuple[State, Traced]:
    """The state with the new ones of some keys among the fresh, unless there is no room, and how
    many fresh ones there are then: they are sorted together, and looked up in the index."""
    near = np.minimum(np.searchsorted(state.index, keys), state.index.shape[0] - 1)
    keys = np.where(state.index[near] == keys, END, keys)
    both = np.sort(np.concatenate([state.fresh, keys]))
    before = np.concatenate([tn.full(1, -1, np.int64), both[:-1]])
    capacity = state.facts.shape[0]
    places, count = compact((both != before) & (both < END), capacity)
    fresh = np.where(tn.arange(capacity) < count, both[places], END)
    fits = state.count + count <= capacity
    return state._replace(fresh=np.where(fits, fresh, state.fresh)), count


def _marked_new(state: State, keys: Traced) -> tuple[State, Traced]:
    """The same by a table: of equal keys that are new, the last leaves its mark, and is added.

    Where there is no room the marks are of no more use: they are made again with more.
    """
    none = state.marks.shape[0] - 1
    place = np.where(keys < END, keys, none)
    mark = tn.arange(1, keys.shape[0] + 1, dtype=np.int32)
    new = (keys < END) & (state.marks[place] == 0)
    marks = state.marks.copy()
    marks[np.where(new, place, none)] = mark
    chosen = new & (marks[place] == mark)
    ends = state.found + np.cumsum(chosen)
    fits = chosen & (state.count + ends[-1] <= state.facts.shape[0])
    fresh = state.fresh.copy()
    # facts take some of the room, so there is a place behind the last for those that are not new
    behind = np.minimum(np.where(fits.any(), ends[-1], state.found), fresh.shape[0] - 1)
    fresh[np.where(fits, ends - 1, behind)] = np.where(fits, keys, END)
    return state._replace(fresh=fresh, marks=marks), ends[-1]
