"""Compare: the compiled engine and the evaluator, step by step, up to the first difference.

Each step is taken by both from the evaluator's state, so what is found is where they part.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from tenfold.apps.prover.closure.fixpoint import (
    FACTS,
    GROWTH,
    ROWS,
    RUNNING,
    State,
    begin,
    grown,
    run,
)
from tenfold.apps.prover.closure.joins import Packing, uses_of
from tenfold.apps.prover.input.program import Program
from tenfold.apps.prover.reference.top_down import Searcher
from tenfold.apps.prover.resolution.tables import tables_of
from tenfold.apps.prover.resolution.words import parted
from tenfold.apps.prover.rollout.exhaustive import GOING, exhaust
from tenfold.apps.prover.rollout.exhaustive import Search as Exhausting
from tenfold.apps.prover.rollout.exhaustive_run import Exhaustion, begun, enlarged
from tenfold.apps.prover.rollout.loop import Ends, roll
from tenfold.apps.prover.rollout.queue import Lane
from tenfold.apps.prover.rollout.run import Rollout, Search, options_of, rolled

Shown = Callable[[Any, str, tuple[int, ...]], str]  # the state at a place of a column, in words


@dataclass(frozen=True, slots=True)
class Difference:
    """The first place where two backends differ, and the state there by each."""

    step: int
    column: str
    place: tuple[int, ...]
    compiled: Any
    evaluator: Any
    ours: str = ""
    theirs: str = ""

    def __str__(self) -> str:
        where = f"{self.column}{list(self.place)}"
        lines = [
            f"step {self.step}: {where} is {self.compiled} compiled "
            f"and {self.evaluator} by the evaluator"
        ]
        if self.ours or self.theirs:
            lines += [f"  compiled:  {self.ours}", f"  evaluator: {self.theirs}"]
        return "\n".join(lines)

    def with_states(self, shown: Shown, ours: Any, theirs: Any) -> Difference:
        """The same, with the state that each backend has there."""
        if not self.place:
            return self
        one, other = (shown(made, self.column, self.place) for made in (ours, theirs))
        return replace(self, ours=one, theirs=other)


def show_goals(program: Program, goals: Any) -> str:
    """A state in words: its goals, each with the height that is left to it.

    >>> made = Program(("p",), ("a",), (), ())
    >>> show_goals(made, [(0, 0, -1, 2), (-1, 0, 0, 0)])
    'p(a,X1) within 2'
    """
    said = [
        f"{program.written((p, s, o))} within {left}"
        for p, s, o, left in np.asarray(goals).tolist()
        if p >= 0
    ]
    return ", ".join(said) or "proved: no goals"


def compare_closures(
    program: Program, limit: int, most: int = 1 << 62, backend: str = "compiled"
) -> tuple[int, Difference | None]:
    """How many pieces were joined by both alike, and the first difference if there is one."""
    packing, uses = Packing.of(program), uses_of(program)
    facts, rows = 1 << max(6, len(program.facts).bit_length()), 1 << 12
    state = begin(program, packing, uses, facts, "evaluator")

    def shown(made: State, column: str, place: tuple[int, ...]) -> str:
        keys = getattr(made, column if column in ("index", "fresh") else "facts")
        by_key = column in ("marks", "below")
        key = place[0] if by_key else int(keys[min(place[0], len(keys) - 1)])
        if not 0 <= key < 2 * packing.reverse:
            return "no fact"
        p, s, o = packing.triples(np.array([key % packing.reverse]))[0].tolist()
        return str(program.name((p, s, o) if key < packing.reverse else (p, o, s)))

    step = 0
    while step < most:
        one = np.int64(1)
        state = state._replace(pieces=np.int64(0))
        given = (state, uses, packing, np.int64(limit), one)
        ours = State(*run.on(backend)(*given, rows=rows))
        theirs = State(*run.on("evaluator")(*given, rows=rows))
        found = first_difference(step, State._fields, ours, theirs)
        if found:
            return step, found.with_states(shown, ours, theirs)
        step += 1
        state = theirs
        if state.status == FACTS:
            state = grown(state, GROWTH * len(state.facts))
        elif state.status == ROWS:
            rows, state = 2 * rows, state._replace(status=np.int64(RUNNING))
        elif state.status != RUNNING:
            break
    return step, None


def compare_exhaustions(
    program: Program, lanes: Sequence[Lane], search: Exhaustion
) -> tuple[int, Difference | None]:
    """How many pieces both resolved alike at all heights, and the first difference."""
    tables = tables_of(program)

    def shown(made: Exhausting, column: str, place: tuple[int, ...]) -> str:
        words = made.store.words
        if not hasattr(made.store, column):
            return str(program.name(lanes[place[0]].triple)) if place[0] < len(lanes) else "padding"
        parts = parted(words[min(place[0], len(words) - 1)], tables.bits)
        return show_goals(program, np.stack(parts, axis=-1))

    step = 0
    for height in range(search.height + 1):
        now, without, sizes = begun(tables, lanes, search, height, search.room)
        while now.status == GOING:
            one = now._replace(pieces=np.int64(0))
            given = (one, without, tables, search.mask, np.int64(1))
            ours, theirs = (
                Exhausting(*exhaust.on(backend)(*given, names=search.room.variables))
                for backend in (search.backend, "evaluator")
            )
            found = first_difference(step, ours.store._fields, ours.store, theirs.store)
            found = found or first_difference(step, Exhausting._fields[1:], ours, theirs)
            if found:
                return step, found.with_states(shown, ours, theirs)
            step += 1
            now = enlarged(theirs, search.mask, sizes)
    return step, None


def compare_rollouts(
    program: Program, lanes: Sequence[Lane], search: Search
) -> tuple[int, Difference | None]:
    """How many steps both took alike, and the first difference if there is one."""
    rollout = Rollout(program, search)
    search = rollout.search
    batch = rollout.batch.within(search.room, search.beam)
    asked = rollout.asked(lanes[: batch.queue], search.room)
    options = options_of(search, search.room)

    searcher = Searcher(program)

    def shown(made: Ends, column: str, place: tuple[int, ...]) -> str:
        lane = lanes[place[0]] if place[0] < len(lanes) else None
        if lane is None:
            return "padding"
        end = rolled(made, place[0] + 1, search.height)[-1]
        state = searcher.settle(((*lane.triple, search.height),), lane.without)
        for choice in end.choices:
            next_ = [*searcher.successors(state, lane.without)] if state else []
            if choice >= len(next_):
                return f"{program.name(lane.triple)}: there is no successor {choice}"
            state = next_[choice]
        return f"{program.name(lane.triple)}: {show_goals(program, state)}"

    def judged(ends: Ends) -> Ends:
        """What has to be equal. The last row is for no candidate: what is not kept goes there."""
        ends = Ends(*(column[:-1] for column in ends))
        if search.weights is None:
            return ends
        # scores of the network are rounded differently: choices are what has to be equal
        return ends._replace(scores=ends.scores[:0], rest=ends.rest[:, :3])

    for step in range(1, search.steps + 1):
        given = (asked._replace(steps=np.int64(step)), rollout.tables, search.weights)
        ours, theirs = (
            Ends(*roll.on(backend)(*given, **options)[0])
            for backend in (search.backend, "evaluator")
        )
        found = first_difference(step, Ends._fields, *(judged(ends) for ends in (ours, theirs)))
        if found:
            return step - 1, found.with_states(shown, ours, theirs)
    return search.steps, None


def first_difference(step: int, fields: Sequence[str], ours: Any, theirs: Any) -> Difference | None:
    """The first element of the first column that differs, bit for bit.

    >>> one = State(*[np.arange(3)] * 13)
    >>> print(first_difference(4, ["facts"], one, one._replace(facts=np.array([0, 7, 2]))))
    step 4: facts[1] is 1 compiled and 7 by the evaluator
    """
    for name in fields:
        a, b = np.asarray(getattr(ours, name)), np.asarray(getattr(theirs, name))
        if a.dtype == b.dtype and a.shape == b.shape and a.tobytes() == b.tobytes():
            continue
        if a.shape != b.shape:
            return Difference(step, name, (), a.shape, b.shape)
        where = np.argwhere(~((a == b) | ((a != a) & (b != b))))
        if not len(where):  # -0.0 and 0.0, or kinds of NaN
            continue
        place = tuple(int(i) for i in where[0])
        return Difference(step, name, place, a[place], b[place])
    return None
