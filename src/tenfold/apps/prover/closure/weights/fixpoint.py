"""Weights of all facts of a closure: the best proof of each within a height, height by height."""

from __future__ import annotations

import numpy as np

from tenfold.apps.prover.closure.fixpoint import Closure
from tenfold.apps.prover.closure.joins import Ints
from tenfold.apps.prover.closure.weights.chains import Floats
from tenfold.apps.prover.closure.weights.groundings import NONE, Given, ground
from tenfold.apps.prover.input.program import Program


def weigh_facts(
    program: Program, closed: Closure, limit: int, backend: str, rows: int | None = None
) -> Floats:
    """The weight of each fact of a closure by its best proof within a height, -1 without one.

    A round takes the rules of which a body's predicate changed in the round before.

    >>> from tenfold.apps.prover.closure.fixpoint import close_by_joins
    >>> from tenfold.apps.prover.input.program import Clause
    >>> swap = Clause((0, -1, -2), ((0, -2, -1),))
    >>> made = Program(("p",), ("a", "b"), ((0, 0, 1),), (swap,), (0.5,))
    >>> weigh_facts(made, close_by_joins(made), 1, "compiled").tolist()
    [1.0, 0.5]
    """
    given = closed.heights == 0
    weights = np.where(given, 1.0, NONE)
    predicates = closed.keys >> 2 * closed.packing.bits
    changed = set(range(len(program.predicates)))
    for height in range(1, limit + 1):
        rules = [
            one
            for one in program.weighed
            if one[0].body and any(a[0] in changed for a in one[0].body)
        ]
        there = weights >= 0
        facts = Given.of(closed.keys[there], weights[there], program, closed.packing)
        wanted = ~given & (closed.heights <= height)
        before = weights[wanted]
        table = before.copy()
        if height == 1:
            _bare(program, closed.keys[wanted], table, closed)
        made = ground(
            rules,
            [0] * len(rules),
            facts,
            closed.keys[wanted],
            table,
            backend,
            rows,
        )
        weights[wanted] = made
        changed = set(predicates[wanted][made != before].tolist())
        if not changed:
            break
    return weights


def _bare(program: Program, wanted: Ints, table: Floats, closed: Closure) -> None:
    """What rules without a body give, which is their own weight."""
    for clause, weight in program.weighed:
        if not clause.body:
            place = np.searchsorted(wanted, closed.packing.keys([clause.head]))[0]
            if place < len(wanted) and wanted[place] == closed.packing.keys([clause.head])[0]:
                table[place] = max(table[place], weight)
