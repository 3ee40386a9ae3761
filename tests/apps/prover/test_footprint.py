"""What searches keep in memory: counted from their programs, before anything runs."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import tenfold as tn
from tenfold.apps.prover.errors import CapacityError
from tenfold.apps.prover.footprint import footprint
from tenfold.apps.prover.input.program import Clause, Program
from tenfold.apps.prover.outcome import Outcome
from tenfold.apps.prover.resolution.resolution import States, base_of, match
from tenfold.apps.prover.rollout.loop import roll
from tenfold.apps.prover.rollout.queue import Lane
from tenfold.apps.prover.rollout.room import Batch, Room
from tenfold.apps.prover.rollout.run import LOST, Rollout, Search, options_of

from .conftest import fact, write

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
        return match(States(goals, count), count * 0 - 1, base, 64 * len(base.each))  # type: ignore[arg-type,attr-defined]

    goals = tn.spec((64, 4, 4), "int32")
    few, many = (footprint(tn.trace(found, goals, base_of(with_rules(n)))) for n in (256, 1024))
    assert few < many < 4.1 * few


# The room of a rollout.

LONG = "\n".join(f"s(n{i:02},n{i + 1:02})." for i in range(30))
CHAIN = f"{LONG}\nr(X,Y) :- s(X,Z), r(Z,Y).\nr(X,Y) :- s(X,Y)."
SMALL = Search(batch=4, height=40, steps=50, room=ROOM, threads=1, backend="evaluator")


def chain_lanes(program: Program) -> list[Lane]:
    r = program.predicates.index("r")
    return [Lane((r, 0, end)) for end in (1, 4, 9, 30)]


def test_the_room_for_steps_changes_no_result_and_grows_whatever_is_said_of_overflows() -> None:
    program = write(CHAIN)
    lanes = chain_lanes(program)
    expected = Rollout(program, SMALL).run(lanes)
    assert max(end.length for end in expected) > 8
    for beam in (1, 2):
        for overflow in ("grow", "mark", "error"):
            search = replace(SMALL, beam=beam, overflow=overflow)
            tight = Rollout(program, replace(search, room=replace(ROOM, steps=2)))
            assert tight.run(lanes) == Rollout(program, search).run(lanes)
            assert {room.steps for room in tight.usage.rooms} >= {2, 8, 32}


def test_memory_does_not_grow_with_steps_that_nobody_takes() -> None:
    program = write("p(a,b).\np(b,c).\nq(X,Y) :- p(X,Y).", "q(a,c).")
    lanes = [Lane(program.number(fact("q(a,c)")))]
    few, many = (Rollout(program, replace(SMALL, steps=n)) for n in (64, 100_000))
    assert few.run(lanes) == many.run(lanes)
    assert few.usage.nbytes == many.usage.nbytes


def test_long_ways_are_kept_for_fewer_candidates_at_a_time() -> None:
    for room in (Room(), replace(Room(), steps=1 << 12), replace(Room(), steps=1 << 20)):
        assert room.queue(8) * room.steps * 8 <= max(1 << 22, 8 * room.steps)
        assert Batch(4096, 128).within(room, 8).lanes <= max(1, room.queue(8))


def test_only_ways_of_proofs_are_kept_where_no_others_are_read() -> None:
    program = write(CHAIN)
    lanes = [*chain_lanes(program), Lane((program.predicates.index("r"), 5, 0))]
    every = Rollout(program, SMALL).run(lanes)
    some = Rollout(program, replace(SMALL, every_way=False)).run(lanes)
    assert {end.outcome for end in every} > {Outcome.PROVED}
    for one, other in zip(every, some, strict=True):
        proved = one.outcome == Outcome.PROVED
        assert other == (one if proved else one._replace(choices=()))


# Memory that is bounded.


def test_less_memory_is_shared_by_fewer_lanes_and_threads() -> None:
    program = write(CHAIN)
    lanes = chain_lanes(program)
    free = Rollout(program, replace(SMALL, batch=64, threads=4))
    expected = free.run(lanes)
    (room,) = free.usage.rooms
    assert (room.lanes, room.threads) == (64, 4)
    one = Rollout(program, replace(SMALL, batch=1)).fit(ROOM)
    assert one is not None
    for bound in (room.nbytes // 2, room.nbytes // 4, one.nbytes):
        less = Rollout(program, replace(SMALL, batch=64, threads=4, memory=bound))
        assert less.run(lanes) == expected
        assert less.usage.nbytes <= bound
        assert less.usage.lost == 0


def test_what_has_no_room_in_memory_is_lost_and_never_proved() -> None:
    program = write(CHAIN)
    lanes = chain_lanes(program)
    none = Rollout(program, replace(SMALL, memory=1000))
    assert none.run(lanes) == [LOST] * len(lanes)
    assert (none.usage.lost, none.usage.nbytes) == (len(lanes), 0)
    with pytest.raises(CapacityError, match="more than the memory"):
        Rollout(program, replace(SMALL, memory=1000, overflow="error")).run(lanes)


def test_what_outgrows_memory_ends_as_the_overflow_that_it_was() -> None:
    program = write(CHAIN)
    lanes = chain_lanes(program)
    tight = replace(SMALL, room=replace(ROOM, steps=2))
    first = Rollout(program, replace(tight, batch=1)).fit(tight.room)
    assert first is not None
    some = Rollout(program, replace(tight, batch=1, memory=first.nbytes))
    ends = some.run(lanes)
    expected = Rollout(program, SMALL).run(lanes)
    lost = [end.outcome == Outcome.OVERFLOW_STEPS for end in ends]
    assert sum(lost) == some.usage.lost == sum(end.length > 2 for end in expected)
    for gone, one, other in zip(lost, ends, expected, strict=True):
        assert gone or one == other
