"""What the references and the engines all say of one query."""

from __future__ import annotations

from dataclasses import replace

from tenfold.apps.prover.closure.fixpoint import close_by_joins
from tenfold.apps.prover.input.program import Program
from tenfold.apps.prover.outcome import Outcome
from tenfold.apps.prover.proofs.proof import check_choices
from tenfold.apps.prover.reference.bottom_up import close
from tenfold.apps.prover.reference.top_down import Searcher
from tenfold.apps.prover.rollout.exhaustive_run import Exhaustion, exhaust_all
from tenfold.apps.prover.rollout.queue import Lane
from tenfold.apps.prover.rollout.room import Room

from .conftest import fact


def height(program: Program, asked: str, limit: int = 10, without: str | None = None) -> int | None:
    """The height of the lowest proof, on which both references and both engines agree."""
    goal = program.number(fact(asked))
    left = program.number(fact(without)) if without else None
    closure = close(program, limit, left)
    up = closure.heights.get(goal)
    down = Searcher(program).prove(goal, limit, left)
    assert down.height == up
    assert (down.outcome == Outcome.PROVED) == (up is not None)
    less = replace(program, facts=tuple(f for f in program.facts if f != left))
    joined = close_by_joins(less, limit, facts=16, rows=16, backend="evaluator")
    assert joined.by_triple() == closure.heights
    assert joined.complete == closure.complete
    searched = Exhaustion(limit, Room(16, 4, 6), places=64, batch=1, backend="evaluator")
    (end,) = exhaust_all(program, [Lane(goal, 0, left)], searched)
    assert (end.outcome, end.height) == (down.outcome, down.height)
    if end.height is not None:
        check_choices(Searcher(program), goal, end.height, end.choices, left)
    return up
