"""Rollouts against the plain reference, with every size of batch and every room."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tenfold.apps.prover.errors import CapacityError, ProofError
from tenfold.apps.prover.input.load import load
from tenfold.apps.prover.input.program import Program, program_of
from tenfold.apps.prover.input.queries import queries, sample
from tenfold.apps.prover.outcome import Outcome
from tenfold.apps.prover.proofs.proof import check_choices
from tenfold.apps.prover.reference.bottom_up import close
from tenfold.apps.prover.reference.rollout import roll_plainly
from tenfold.apps.prover.reference.top_down import Searcher
from tenfold.apps.prover.rollout.draws import lane_id
from tenfold.apps.prover.rollout.exhaustive_run import Exhaustion, exhaust_all
from tenfold.apps.prover.rollout.policy import random_weights
from tenfold.apps.prover.rollout.queue import Lane
from tenfold.apps.prover.rollout.room import QUEUE, Room
from tenfold.apps.prover.rollout.run import LaneResult, Rollout, Search

from .conftest import fact, write
from .generated import chains, everything, programs

PLAIN = Search(batch=1, backend="evaluator", room=Room(512, 8, 8))
SEARCHES = {
    "greedy": replace(PLAIN, batch=16),
    "beam": replace(PLAIN, batch=16, beam=3),
    "sampled": replace(PLAIN, batch=16, sampled=True),
}


def roll_all(program: Program, lanes: list[Lane], search: Search) -> list[LaneResult]:
    return Rollout(program, search).run(lanes)


def plainly(program: Program, lanes: list[Lane], search: Search) -> list[LaneResult]:
    searcher = Searcher(program)
    return [roll_plainly(searcher, lane, search, len(program.constants)) for lane in lanes]


def lanes_of(program: Program, step: int = 1) -> list[Lane]:
    goals = everything(program)[::step]
    return [Lane(goal, lane_id(0, "tail", goal, i)) for i, goal in enumerate(goals)]


def check(program: Program, lanes: list[Lane], search: Search) -> list[LaneResult]:
    """The engine's ends are the reference's, and every proof of them replays."""
    found, expected = roll_all(program, lanes, search), plainly(program, lanes, search)
    searcher = Searcher(program)
    proved = close(program, search.height).heights
    for lane, one, other in zip(lanes, found, expected, strict=True):
        if search.weights is None:
            assert one == other, lane
        elif not one.near:
            assert (one.outcome, one.choices) == (other.outcome, other.choices), lane
            assert math.isclose(one.score, other.score, rel_tol=1e-4, abs_tol=1e-4)
        if one.outcome == Outcome.PROVED:
            check_choices(searcher, lane.triple, search.height, one.choices, lane.without)
            if lane.without is None:
                assert one.height is not None
                assert one.height >= proved[lane.triple]
    return found


@pytest.mark.parametrize("kind", SEARCHES)
def test_generated_programs(kind: str) -> None:
    small = replace(SEARCHES[kind], steps=5, height=3, room=Room(8, 4, 4))

    @settings(max_examples=12, deadline=None)
    @given(st.one_of(programs(), chains()), st.booleans())
    def run(program: Program, excluded: bool) -> None:
        lanes = lanes_of(program, 7)
        if excluded and program.facts:
            lanes += [Lane(f, i, f) for i, f in enumerate(program.facts[:3])]
        check(program, lanes, small)

    run()


FAMILY = load("family:families=2")


def family_lanes() -> tuple[Program, list[Lane]]:
    program = program_of(FAMILY)
    asked = sample(queries(FAMILY, program, ["tail"], limit=6), 4, seed=0)
    return program, [
        Lane(q.corrupt(c), lane_id(0, q.mode, q.fact, c))
        for q in asked
        for c in (q.own, *q.candidates)
    ]


@pytest.mark.parametrize("kind", SEARCHES)
def test_family(kind: str) -> None:
    program, lanes = family_lanes()
    check(program, lanes, replace(SEARCHES[kind], steps=8, height=4, batch=30))


@pytest.mark.parametrize("kind", SEARCHES)
def test_the_learned_policy(kind: str) -> None:
    program, lanes = family_lanes()
    weights = random_weights(program, variables=16, seed=1)
    search = replace(SEARCHES[kind], weights=weights, steps=6, height=4, batch=30)
    check(program, lanes, search)


def test_no_batch_room_or_order_changes_an_end() -> None:
    program, lanes = family_lanes()
    lanes = lanes[::2]
    for search in SEARCHES.values():
        search = replace(search, steps=4, height=3)
        first = roll_all(program, lanes, search)
        for other in (
            replace(search, batch=7),
            replace(search, room=Room(4, 2, 2)),
            replace(search, room=Room(40, 9, 20)),
        ):
            assert roll_all(program, lanes, other) == first
        assert roll_all(program, lanes[::-1], search)[::-1] == first


@pytest.mark.parametrize("kind", SEARCHES)
@pytest.mark.parametrize("mask", [0, 3])
def test_states_with_equal_hashes_are_told_apart(kind: str, mask: int) -> None:
    """Every state collides, or one in four does; heights that come back make states be seen."""
    program, lanes = family_lanes()
    search = replace(SEARCHES[kind], steps=4, height=3, room=Room(256, 6, 6))
    expected = roll_all(program, lanes[::3], search)
    assert roll_all(program, lanes[::3], replace(search, mask=mask)) == expected
    twice = write("p(a,b).\np(a,c).\nq(X,Y) :- p(X,Z), r(X,Y).\nq(X,Y) :- r(X,Y).", "r(a,d).")
    lane = [Lane(twice.number(fact("q(a,d)")))]
    for one in (search, replace(search, mask=mask)):
        assert roll_all(twice, lane, one) == plainly(twice, lane, one)


def test_lanes_take_turns_and_threads_share_them() -> None:
    """More lanes than the batch, the last batch not full; fewer slots than the lanes need."""
    program, lanes = family_lanes()
    search = replace(SEARCHES["greedy"], steps=4, height=3, batch=4, threads=1)
    expected = plainly(program, lanes, search)
    for other in (
        search,
        replace(search, batch=64),
        replace(search, threads=2),
        replace(search, threads=3, batch=7, room=Room(64, 8, 8)),
    ):
        assert roll_all(program, lanes, other) == expected
    assert roll_all(program, [], search) == []


def test_more_lanes_than_a_queue_holds() -> None:
    program = write("p(a,b).\nq(X,Y) :- p(X,Y).\nr(X,Y) :- q(Y,X).")
    goals = [program.number(fact(text)) for text in ("q(a,b)", "p(a,b)", "r(a,b)", "r(b,a)")]
    lanes = [Lane(goals[i % 4], i) for i in range(QUEUE + 7)]
    found = roll_all(program, lanes, replace(PLAIN, batch=256, threads=1))
    expected = plainly(program, lanes[:4], PLAIN)
    assert all(one == expected[i % 4] for i, one in enumerate(found))


@pytest.mark.parametrize("policy", ["uniform", "learned"])
def test_compiled_as_by_the_reference(policy: str) -> None:
    program, lanes = family_lanes()
    weights = random_weights(program, 16, seed=3) if policy == "learned" else None
    search = replace(SEARCHES["greedy"], steps=6, height=4, weights=weights, backend="compiled")
    check(program, lanes, search)


@pytest.mark.parametrize("goal", [(0, -1, -1), (0, -3, -2), (0, 0, -5), (0, -1, 1), (1, -2, -2)])
def test_goals_with_variables(goal: tuple[int, int, int]) -> None:
    program = write("p(a,b).\np(b,b).\np(b,c).\nq(X,X) :- p(X,Y).\np(X,Y) :- q(Y,X).")
    for without in (None, program.number(fact("p(b,b)")), program.number(fact("p(a,b)"))):
        lanes = [Lane(goal, 0, without)]
        for search in (PLAIN, replace(PLAIN, beam=3), replace(PLAIN, room=Room(64, 4, 1))):
            search = replace(search, height=2, steps=5)
            assert roll_all(program, lanes, search) == plainly(program, lanes, search)


def test_no_steps_at_all() -> None:
    program = write("p(a,b).\nq(X,Y) :- p(X,Y).")
    lanes = [Lane(program.number(fact(text))) for text in ("q(a,b)", "p(a,b)")]
    none = replace(PLAIN, steps=0)
    assert [one.outcome for one in roll_all(program, lanes, none)] == [
        Outcome.DEPTH,
        Outcome.PROVED,
    ]
    assert roll_all(program, lanes, none) == plainly(program, lanes, none)


def test_random_numbers_depend_on_query_candidate_and_seed() -> None:
    program, lanes = family_lanes()
    search = replace(SEARCHES["sampled"], steps=8, height=4, batch=30)
    other = [replace(lane, id=lane_id(1, "tail", lane.triple, 0)) for lane in lanes]
    assert roll_all(program, lanes, search) != roll_all(program, other, search)


# Overflows.


def chooser(count: int, last: bool = True) -> Program:
    """A goal with `count` successors, only the last (or first) of which leads to a proof."""
    good = f"n{count - 1:04}" if last else "n0000"
    facts = [f"p(a,n{i:04})." for i in range(count)]
    return write("\n".join([*facts, f"q({good},z).", "r(X,Y) :- p(X,U), q(U,Y)."]))


def ask(program: Program, text: str, search: Search) -> LaneResult:
    (one,) = roll_all(program, [Lane(program.number(fact(text)))], search)
    return one


@pytest.mark.parametrize("count", [8, 9, 80])
def test_successors_at_the_room_and_beyond(count: int) -> None:
    program = chooser(count)
    base = replace(PLAIN, room=Room(8, 4, 4), batch=1)
    grown = ask(program, "r(a,z)", base)
    assert (
        grown.outcome == Outcome.PROVED
    )  # the known fact q(last,z) is dropped: a proof among many
    assert grown.choices == (0, count - 1)
    marked = ask(program, "r(a,z)", replace(base, overflow="mark"))
    assert marked.outcome == (Outcome.PROVED if count <= 8 else Outcome.OVERFLOW_STATES)
    if count > 8:
        with pytest.raises(CapacityError, match="OVERFLOW_STATES of r"):
            ask(program, "r(a,z)", replace(base, overflow="error"))


@pytest.mark.parametrize("body", [4, 5])
def test_atoms_at_the_room_and_beyond(body: int) -> None:
    """The last atom holds the target: without it the rest would seem proved."""
    atoms = ", ".join(f"s(X{i},X{i + 1})" for i in range(body - 1))
    text = f"s(a,b).\ns(b,c).\nr(X0,Y) :- {atoms}, t(X{body - 1},Y).\nt(c,d) :- s(a,b)."
    program = write(text, "t(a,e).")
    base = replace(PLAIN, room=Room(8, 4, 16), batch=1)
    marked = ask(program, "r(a,e)", replace(base, overflow="mark"))
    if body == 4:
        assert marked.outcome != Outcome.OVERFLOW_ATOMS
    else:
        assert marked.outcome == Outcome.OVERFLOW_ATOMS
    grown = ask(program, "r(a,e)", base)
    assert grown.outcome in (Outcome.GAVE_UP, Outcome.DEPTH)
    assert grown == plainly(program, [Lane(program.number(fact("r(a,e)")))], base)[0]


def test_variables_beyond_the_room() -> None:
    program = write("s(a,b).\nr(X,Y) :- s(X,U), s(V,W), s(W,Y).")
    base = replace(PLAIN, room=Room(8, 4, 2), batch=1)
    marked = ask(program, "r(a,b)", replace(base, overflow="mark"))
    assert marked.outcome == Outcome.OVERFLOW_VARS
    assert ask(program, "r(a,b)", base).outcome != Outcome.OVERFLOW_VARS


@pytest.mark.parametrize("length", [7, 19, 40])
def test_long_proofs_with_many_variables(length: int) -> None:
    """A chain of goals, each with a variable more, up to several words of numbers for them."""
    atoms = ", ".join(f"s(X{i},X{i + 1})" for i in range(length))
    facts = "\n".join(f"s(n{i:02},n{i + 1:02})." for i in range(length))
    program = write(f"{facts}\nr(X0,X{length}) :- {atoms}.")
    lanes = [Lane(program.number(fact(f"r(n00,n{end:02})"))) for end in (length, length - 1)]
    search = replace(PLAIN, steps=length + 2, batch=2, room=Room(16, length, length))
    assert roll_all(program, lanes, search) == plainly(program, lanes, search)
    proved = roll_all(program, lanes, replace(search, room=Room(16, 4, 4)))[0]
    assert (proved.outcome, proved.length) == (Outcome.PROVED, length)
    exact = replace(search, overflow="mark", room=Room(16, length, length - 1))
    assert roll_all(program, lanes, exact)[0] == proved
    less = replace(exact, room=Room(16, length, length - 2))
    assert roll_all(program, lanes, less)[0].outcome == Outcome.OVERFLOW_VARS


def test_a_predicate_with_more_facts_than_any_room() -> None:
    program = chooser(300)
    assert (
        ask(program, "r(a,z)", replace(PLAIN, room=Room(4, 4, 4), batch=2)).outcome
        == Outcome.PROVED
    )
    assert ask(program, "p(a,n0299)", replace(PLAIN, room=Room(1, 1, 1), batch=2)).length == 0


WIDE = ", ".join(f"s(X{i},X{i + 1})" for i in range(150))
LARGE = f"s(a,b).\nr(X0,X150) :- {WIDE}, t(X150,X0).\nq(X,Y) :- s(X,Y)."


def test_variables_that_words_have_no_bits_for_are_refused() -> None:
    """They would be read as other terms."""
    program = write("s(a,b).\nr(X,Y) :- s(X,Z), s(Z,Y).")
    lane = [Lane(program.number(fact("r(a,b)")))]
    for count, fits in ((253, True), (254, False)):  # a rule has three, a word 256
        room = Room(16, 4, count)
        for run in (
            lambda room=room: roll_all(program, lane, replace(PLAIN, batch=1, room=room)),
            lambda room=room: exhaust_all(
                program, lane, Exhaustion(2, room, places=16, batch=1, backend="evaluator")
            ),
        ):
            if fits:
                assert run()[0].outcome != Outcome.PROVED
            else:
                with pytest.raises(CapacityError, match="variables is 254") as error:
                    run()
                assert error.value.fix == "give 253 or less"
    wide = ", ".join(f"s(X{i},X{i + 1})" for i in range(256))
    program = write(f"s(a,b).\nr(X0,X256) :- {wide}.")
    with pytest.raises(CapacityError, match="a rule of 257 variables"):
        roll_all(program, [Lane(program.number(fact("r(a,b)")))], PLAIN)


@pytest.mark.parametrize("overflow", ["grow", "mark"])
def test_a_state_larger_than_any_may_be_ends_as_an_overflow(overflow: str) -> None:
    """More than 128 goals: that lane has no answer, the others have theirs."""
    program = write(LARGE, "t(a,a).")
    lanes = [Lane(program.number(fact(text))) for text in ("r(a,b)", "q(a,b)")]
    search = replace(PLAIN, batch=2, overflow=overflow, room=Room(16, 8, 8))
    lost, proved = roll_all(program, lanes, search)
    assert lost.outcome in (Outcome.OVERFLOW_ATOMS, Outcome.OVERFLOW_VARS)
    assert proved.outcome == Outcome.PROVED
    slow = Exhaustion(2, Room(16, 8, 8), places=16, batch=2, overflow=overflow, backend="evaluator")
    assert [end.outcome for end in exhaust_all(program, lanes, slow)] == [
        lost.outcome,
        Outcome.PROVED,
    ]


# Ends.


def test_a_fact_is_proved_at_once_unless_it_is_excluded() -> None:
    program = write("p(a,b).\nq(a,b).\np(X,Y) :- q(X,Y).")
    goal = program.number(fact("p(a,b)"))
    plain, bare = roll_all(program, [Lane(goal), Lane(goal, 0, goal)], replace(PLAIN, batch=2))
    assert (plain.outcome, plain.length, plain.height) == (Outcome.PROVED, 0, 0)
    assert (bare.outcome, bare.length, bare.height) == (Outcome.PROVED, 1, 1)


def test_a_dead_end_is_not_refuted() -> None:
    program = write("p(a,b).\nq(X,Y) :- p(Y,X).\nq(X,Y) :- p(X,Y).")
    assert ask(program, "q(b,b)", replace(PLAIN, batch=1)).outcome == Outcome.GAVE_UP


def test_the_last_step_and_one_beyond() -> None:
    chain = "\n".join(f"r{i}(X,Y) :- r{i + 1}(X,Y), s(X,Y)." for i in range(4))
    program = write(chain + "\nr4(a,b).\ns(a,b).")
    assert ask(program, "r0(a,b)", replace(PLAIN, steps=4, batch=1)).outcome == Outcome.PROVED
    assert ask(program, "r0(a,b)", replace(PLAIN, steps=3, batch=1)).outcome == Outcome.DEPTH
    assert ask(program, "r0(a,b)", replace(PLAIN, steps=4, height=4, batch=1)).height == 4
    assert (
        ask(program, "r0(a,b)", replace(PLAIN, steps=4, height=3, batch=1)).outcome
        == Outcome.GAVE_UP
    )


def test_cycles_end_in_a_dead_end() -> None:
    program = write("p(a,b).\nq(X,Y) :- q(Y,X).", "q(a,c).")
    end = ask(program, "q(a,b)", replace(PLAIN, batch=1, height=10))
    assert end.outcome == Outcome.GAVE_UP  # the height that is left tells the states apart
    assert end.length == 10


def test_lanes_that_have_ended_stay_as_they_are() -> None:
    program, lanes = family_lanes()
    short = replace(SEARCHES["greedy"], steps=3, height=4, batch=30)
    long = replace(short, steps=9)
    pairs = zip(roll_all(program, lanes, short), roll_all(program, lanes, long), strict=True)
    ended = [(one, other) for one, other in pairs if one.outcome != Outcome.DEPTH]
    assert ended
    for one, other in ended:
        assert one == other


def test_beams_find_what_greedy_misses() -> None:
    program = write("p(a,b).\nq(X,Y) :- p(Y,X).\nq(X,Y) :- p(X,Y).")
    assert ask(program, "q(a,b)", replace(PLAIN, batch=1)).outcome == Outcome.PROVED
    two = write(
        "s(a,b).\nq(X,Y) :- u(X,Y).\nq(X,Y) :- v(X,Y).\nv(X,Y) :- s(X,Y), s(X,Y).", "u(a,b)."
    )
    assert ask(two, "q(a,b)", replace(PLAIN, batch=1)).outcome == Outcome.GAVE_UP
    assert ask(two, "q(a,b)", replace(PLAIN, batch=1, beam=2)).outcome == Outcome.PROVED


def test_wrong_searches_are_said() -> None:
    for wrong in (
        {"overflow": "drop"},
        {"beam": 0},
        {"beam": 2, "sampled": True},
        {"height": 2000},
    ):
        with pytest.raises(CapacityError):
            Search(**wrong)  # type: ignore[arg-type]


def test_wrong_traces_do_not_replay() -> None:
    program = write("p(a,b).\nq(X,Y) :- p(X,Z), p(Z,Y).")
    searcher = Searcher(program)
    goal = program.number(fact("q(a,b)"))
    with pytest.raises(ProofError, match="goals are left"):
        check_choices(searcher, goal, 5, (0,))
    with pytest.raises(ProofError, match="successor 3 of"):
        check_choices(searcher, goal, 5, (3,))
    with pytest.raises(ProofError):
        check_choices(searcher, program.number(fact("p(a,b)")), 5, (0,))


def test_uniform_numbers_are_uniform() -> None:
    from tenfold.apps.prover.rollout.draws import as_bits, uniform

    drawn = uniform(as_bits([5])[:, None], as_bits([2]), as_bits(range(20000)))
    assert 0 < drawn.min() < drawn.max() < 1
    assert abs(drawn.mean() - 0.5) < 0.01
    counts, _ = np.histogram(drawn, 20, (0, 1))
    assert counts.min() > 850


@pytest.mark.parametrize("kind", SEARCHES)
def test_the_compiled_rollout_gives_the_evaluators_bits(kind: str) -> None:
    program, lanes = family_lanes()
    search = replace(SEARCHES[kind], steps=6, height=4, batch=30)
    expected = roll_all(program, lanes, search)
    assert roll_all(program, lanes, replace(search, backend="compiled")) == expected


def test_the_compiled_learned_policy() -> None:
    program, lanes = family_lanes()
    weights = random_weights(program, variables=16, seed=1)
    search = replace(PLAIN, weights=weights, steps=6, height=4, batch=30)
    check(program, lanes, replace(search, backend="compiled"))
