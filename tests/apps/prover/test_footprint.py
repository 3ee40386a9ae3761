"""What searches keep in memory: counted from their programs, before anything runs."""

from __future__ import annotations

import numpy as np
import pytest

import tenfold as tn
from tenfold.apps.prover.footprint import footprint
from tenfold.apps.prover.input.program import Clause, Program
from tenfold.apps.prover.resolution.resolution import States, base_of, match
from tenfold.apps.prover.rollout.loop import roll
from tenfold.apps.prover.rollout.queue import Lane
from tenfold.apps.prover.rollout.run import Rollout, Room, Search, options_of

ROOM = Room(256, 6, 8)


def with_rules(count: int) -> Program:
    """A program whose only predicate has so many rules."""
    constants = tuple(f"c{i:04}" for i in range(count))
    clauses = tuple(Clause((0, -1, i), ((0, i, -1),)) for i in range(count))
    return Program(("p",), constants, ((0, 0, 1),), clauses)


def bytes_of(search: Search, program: Program) -> int:
    rollout = Rollout(program, search)
    asked = rollout.asked([Lane((0, 1, 0))], search.room)
    given = (asked, rollout.tables, None)
    return footprint(roll.on("evaluator").trace(*given, **options_of(search, search.room)))


@pytest.mark.parametrize("beam", [1, 4])
def test_no_table_of_a_rollout_is_quadratic_in_the_rules(beam: int) -> None:
    search = Search(beam=beam, batch=16, room=ROOM, backend="evaluator")
    few, many = (bytes_of(search, with_rules(n)) for n in (256, 1024))
    assert few < many < 4 * few


def test_no_table_of_a_rollout_is_quadratic_in_the_beam_or_in_successors() -> None:
    program = with_rules(64)
    for one, four in (
        (Search(beam=2, batch=16, room=ROOM), Search(beam=8, batch=16, room=ROOM)),
        (Search(batch=16, room=ROOM), Search(batch=16, room=Room(1024, 6, 8))),
    ):
        assert bytes_of(four, program) < 4 * bytes_of(one, program)


def test_matching_is_linear_in_the_rules() -> None:
    def found(goals: np.ndarray, base: object) -> object:
        count = goals[:, 0, 0] * 0 + 1
        return match(States(goals, count), count * 0 - 1, base)  # type: ignore[arg-type]

    goals = tn.spec((64, 4, 4), "int32")
    few, many = (footprint(tn.trace(found, goals, base_of(with_rules(n)))) for n in (256, 1024))
    assert few < many < 4.1 * few
