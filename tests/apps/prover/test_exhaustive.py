"""Exhaustive rollout: it agrees with the closure, whatever the room, even if hashes collide."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from tenfold.apps.prover.errors import CapacityError
from tenfold.apps.prover.input.load import load
from tenfold.apps.prover.input.program import Program, Triple, program_of
from tenfold.apps.prover.input.queries import queries
from tenfold.apps.prover.outcome import Outcome
from tenfold.apps.prover.proofs.proof import check_choices
from tenfold.apps.prover.reference.bottom_up import close
from tenfold.apps.prover.reference.ranks import rank_by_score
from tenfold.apps.prover.reference.top_down import Searcher
from tenfold.apps.prover.resolution.tables import tables_of
from tenfold.apps.prover.rollout.exhaustive import GOING, exhaust
from tenfold.apps.prover.rollout.exhaustive_run import (
    EVERY_BIT,
    Exhaustion,
    begun,
    enlarged,
    exhaust_all,
)
from tenfold.apps.prover.rollout.queue import Lane
from tenfold.apps.prover.rollout.room import Room
from tenfold.apps.prover.rollout.run import LaneResult

from .conftest import fact, write
from .generated import everything, programs
from .test_table import TABLE, check_mrr

SMALL = Exhaustion(room=Room(64, 4, 6), places=256, batch=8, height=2, backend="evaluator")


def check(program: Program, lanes: list[Lane], search: Exhaustion) -> list[LaneResult]:
    searcher = Searcher(program)
    ends = exhaust_all(program, lanes, search)
    heights: dict[Triple | None, dict[Triple, int]] = {}
    for lane, end in zip(lanes, ends, strict=True):
        if lane.without not in heights:
            heights[lane.without] = close(program, search.height, lane.without).heights
        assert end.height == heights[lane.without].get(lane.triple)
        answer = searcher.prove(lane.triple, search.height, lane.without, budget=3000)
        if answer.outcome != Outcome.GAVE_UP:
            assert end.outcome == answer.outcome
        if end.height is not None:
            assert end.outcome == Outcome.PROVED
            check_choices(searcher, lane.triple, end.height, end.choices, lane.without)
    return ends


@settings(max_examples=12, deadline=None)
@given(programs(), st.booleans())
def test_generated_programs(program: Program, excluded: bool) -> None:
    lanes = [Lane(goal) for goal in everything(program)[::6]]
    if excluded:
        lanes += [Lane(f, 0, f) for f in program.facts[:3]]
    # a search that is not small is left to the closure
    searcher = Searcher(program)
    answers = [searcher.prove(a.triple, 2, a.without, budget=60) for a in lanes]
    kept = [a for a, b in zip(lanes, answers, strict=True) if b.outcome != Outcome.GAVE_UP]
    assume(kept)
    check(program, kept, SMALL)


CYCLE = write(
    "p(a,b).\np(b,c).\np(c,d).\np(X,Y) :- p(Y,X).\nq(X,Z) :- p(X,Y), q(Y,Z).\nq(X,X) :- p(X,Y).",
    "q(e,a).",
)


def cycle_lanes() -> list[Lane]:
    return [Lane(goal) for goal in everything(CYCLE)[25:50:3]]


def test_cycles() -> None:
    ends = check(CYCLE, cycle_lanes(), replace(SMALL, height=4, batch=16))
    assert {end.outcome for end in ends} == {Outcome.PROVED, Outcome.DEPTH}


@pytest.mark.parametrize("mask", [0, 4])
def test_colliding_hashes(mask: int) -> None:
    search = replace(SMALL, height=3, batch=16)
    expected = exhaust_all(CYCLE, cycle_lanes(), search)
    for places in (256, 16):  # 16 do not hold them: buckets are made anew as they grow
        forced = replace(search, mask=np.uint64(mask), places=places)
        assert exhaust_all(CYCLE, cycle_lanes(), forced) == expected
    assert search.mask == EVERY_BIT


def test_no_room_or_batch_changes_an_end() -> None:
    lanes = cycle_lanes()
    first = exhaust_all(CYCLE, lanes, replace(SMALL, height=3, batch=16))
    for other in (
        replace(SMALL, height=3, batch=3),
        replace(SMALL, height=3, batch=16, places=1, room=Room(1, 4, 6)),
        replace(SMALL, height=3, batch=16, room=Room(64, 1, 1)),
    ):
        ends = exhaust_all(CYCLE, lanes, other)
        assert [(e.outcome, e.height) for e in ends] == [(e.outcome, e.height) for e in first]


def chooser(count: int) -> Program:
    """A goal with `count` successors, only the last of which is proved."""
    facts = [f"p(a,n{i:03})." for i in range(count)]
    return write("\n".join([*facts, f"q(n{count - 1:03},z).", "r(X,Y) :- p(X,U), q(U,Y)."]))


@pytest.mark.parametrize("count", [16, 17, 160])
def test_successors_at_the_room_and_beyond(count: int) -> None:
    """The only proof is the last successor of many; nothing before it is read as one."""
    program = chooser(count)
    search = replace(SMALL, room=Room(16, 4, 6), places=16, batch=2)
    goals = [program.number(fact(text)) for text in ("r(a,z)", "r(a,a)")]
    proved, refuted = exhaust_all(program, [Lane(goal) for goal in goals], search)
    assert (proved.outcome, proved.height, proved.choices) == (Outcome.PROVED, 1, (0, count - 1))
    assert refuted.outcome == Outcome.REFUTED


@pytest.mark.parametrize("body", [4, 5])
def test_atoms_at_the_room_and_beyond(body: int) -> None:
    """The last atom holds the target: without it the rest would seem proved."""
    atoms = ", ".join(f"s(X{i},X{i + 1})" for i in range(body - 1))
    text = f"s(a,a).\nr(X0,Y) :- {atoms}, t(X{body - 1},Y).\nt(a,d) :- s(a,a)."
    program = write(text, "t(a,e).")
    tight = replace(SMALL, room=Room(16, 4, 6), batch=2, height=3)
    lanes = [Lane(program.number(fact(asked))) for asked in ("r(a,d)", "r(a,e)")]
    marked = exhaust_all(program, lanes, replace(tight, overflow="mark"))
    grown = exhaust_all(program, lanes, tight)
    assert [end.outcome for end in grown] == [Outcome.PROVED, Outcome.REFUTED]
    if body == 4:
        assert marked == grown
    else:
        assert {end.outcome for end in marked} == {Outcome.OVERFLOW_ATOMS}


def test_lanes_that_have_ended_change_no_other() -> None:
    """Proved at once, proved later, refuted and cut off: together as each alone."""
    program = write(
        "p(a,b).\np(b,c).\nq(X,Y) :- p(X,Y).\nq(X,Z) :- p(X,Y), q(Y,Z).\nq(X,Y) :- q(Y,X).",
        "s(a,b).",
    )
    asked = ("p(a,b)", "q(a,b)", "q(a,c)", "s(a,b)", "q(a,a)")
    lanes = [Lane(program.number(fact(text))) for text in asked]
    together = exhaust_all(program, lanes, SMALL)
    assert together == [exhaust_all(program, [lane], SMALL)[0] for lane in lanes]
    assert [end.height for end in together] == [0, 1, 2, None, None]
    assert together[3].outcome == Outcome.REFUTED
    assert together[4].outcome == Outcome.DEPTH


def test_lanes_that_fill_a_batch_are_not_searched() -> None:
    lanes = cycle_lanes()[:1]
    used = []
    for batch in (1, 16):
        search = replace(SMALL, height=3, batch=batch)
        tables = tables_of(CYCLE)
        now, without, sizes = begun(tables, lanes, search, 3, search.room)
        while now.status == GOING:
            made = exhaust.on("evaluator")(now, without, tables, search.mask, np.int64(9), names=6)
            now = enlarged(made._replace(pieces=np.int64(0)), search.mask, sizes)
        used.append(int(now.used) - batch)
    assert used[0] == used[1] > 0


def test_marks_and_errors() -> None:
    program = write("s(a,b).\nr(X,Y) :- s(X,U), s(U,V), s(V,Y), t(Y,X).", "t(a,b).")
    lane = [Lane(program.number(fact("r(a,b)")))]
    tight = replace(SMALL, room=Room(64, 2, 6), batch=1)
    assert exhaust_all(program, lane, tight)[0].outcome == Outcome.REFUTED
    (marked,) = exhaust_all(program, lane, replace(tight, overflow="mark"))
    assert marked.outcome == Outcome.OVERFLOW_ATOMS
    (marked,) = exhaust_all(program, lane, replace(tight, room=Room(64, 4, 1), overflow="mark"))
    assert marked.outcome == Outcome.OVERFLOW_VARS
    with pytest.raises(CapacityError, match="OVERFLOW_ATOMS of r"):
        exhaust_all(program, lane, replace(tight, overflow="error"))


def test_the_compiled_search_gives_the_evaluators_ends() -> None:
    search = replace(SMALL, height=3, batch=16)
    expected = exhaust_all(CYCLE, cycle_lanes(), search)
    assert exhaust_all(CYCLE, cycle_lanes(), replace(search, backend="compiled")) == expected


@pytest.mark.parametrize("row", TABLE[:3], ids=[row[0] for row in TABLE[:3]])
def test_exact_values(data: Path, row: tuple[str, int, tuple[str, ...], int, tuple, tuple]) -> None:
    name, limit, modes, provable, by_height, binary = row
    read = load(str(data / name))
    program = program_of(read)
    asked = queries(read, program, modes)
    lanes = [Lane(q.corrupt(c)) for q in asked for c in (q.own, *q.candidates)]
    search = Exhaustion(limit, Room(1 << 11, 6, 8), places=1 << 17, batch=120)
    ends = dict(
        zip((lane.triple for lane in lanes), exhaust_all(program, lanes, search), strict=True)
    )
    ranks, either, proved = [], [], 0
    searcher = Searcher(program)
    for query in asked:
        mine = ends[query.fact]
        others = [ends[query.corrupt(c)] for c in query.candidates]
        done = [e.outcome == Outcome.PROVED for e in others]
        proved += mine.outcome == Outcome.PROVED
        ranks.append(rank_by_score(True, mine.score, done, [e.score for e in others]))
        either.append(rank_by_score(True, 0.0, done, [0.0] * len(done)))
        assert mine.height is not None
        check_choices(searcher, query.fact, mine.height, mine.choices)
    assert proved == provable
    check_mrr(ranks, by_height)
    check_mrr(either, binary)
