"""Compare: the compiled engine and the evaluator, step by step, up to the first difference."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from tenfold.apps.prover.closure import FACTS, GROWTH, ROWS, RUNNING, State, begin, grown, run
from tenfold.apps.prover.joins import Packing, uses_of
from tenfold.apps.prover.program import Program
from tenfold.apps.prover.resolution import base_of
from tenfold.apps.prover.rollout import Lanes, roll
from tenfold.apps.prover.rollout_run import Lane, Search, asked_of, options_of


@dataclass(frozen=True, slots=True)
class Difference:
    """The first place where two backends differ."""

    step: int
    column: str
    place: tuple[int, ...]
    compiled: Any
    evaluator: Any

    def __str__(self) -> str:
        return (
            f"step {self.step}: {self.column}{list(self.place)} is {self.compiled} compiled "
            f"and {self.evaluator} by the evaluator"
        )


def compare_closures(
    program: Program, limit: int, most: int = 1 << 62
) -> tuple[int, Difference | None]:
    """How many pieces were joined by both alike, and the first difference if there is one."""
    packing, uses = Packing.of(program), uses_of(program)
    facts, rows = 1 << max(6, len(program.facts).bit_length()), 1 << 12
    state = begin(program, packing, uses, facts, "evaluator")
    step = 0
    while step < most:
        one = np.int64(1)
        state = state._replace(pieces=np.int64(0))
        given = (state, uses, packing, np.int64(limit), one)
        ours = State(*run.on("compiled")(*given, rows=rows))
        theirs = State(*run.on("evaluator")(*given, rows=rows))
        found = first_difference(step, State._fields, ours, theirs)
        if found:
            return step, found
        step += 1
        state = theirs
        if state.status == FACTS:
            state = grown(state, GROWTH * len(state.facts))
        elif state.status == ROWS:
            rows, state = 2 * rows, state._replace(status=np.int64(RUNNING))
        elif state.status != RUNNING:
            break
    return step, None


def compare_rollouts(
    program: Program, lanes: Sequence[Lane], search: Search
) -> tuple[int, Difference | None]:
    """How many steps both took alike, and the first difference if there is one."""
    base = base_of(program)
    asked = asked_of(program, base, lanes, search, search.room)
    options = options_of(search, search.room)
    for step in range(1, search.steps + 1):
        given = (asked._replace(steps=np.int64(step)), base, search.weights)
        ours = Lanes(*roll.on("compiled")(*given, **options))
        theirs = Lanes(*roll.on("evaluator")(*given, **options))
        # scores of the network are rounded differently: choices are what has to be equal
        skipped = () if search.weights is None else ("scores", "near")
        fields = [name for name in Lanes._fields if name not in skipped]
        found = first_difference(step, fields, ours, theirs)
        if found:
            return step - 1, found
    return search.steps, None


def first_difference(step: int, fields: Sequence[str], ours: Any, theirs: Any) -> Difference | None:
    """The first element of the first column that differs, bit for bit.

    >>> one = State(*[np.arange(3)] * 11)
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
