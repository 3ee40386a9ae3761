"""One step of search against the top-down reference: the same states, in the same order."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import tenfold as tn
from tenfold.apps.prover.closure.joins import Packing
from tenfold.apps.prover.input.program import Program, Triple
from tenfold.apps.prover.reference.top_down import Goal, Searcher, State, unify
from tenfold.apps.prover.resolution.resolution import Base, States, base_of, begin, build, match

from .conftest import write
from .generated import programs


def one_step(states: States, without: object, base: Base, room: int) -> object:
    rows = states.count.shape[0]
    matches = match(states, without, base, rows * base.each.shape[0])
    row = np.repeat(tn.arange(rows), room)
    k = np.tile(tn.arange(room), rows)
    return matches, build(states, matches, row, k, without, base)


STEPS = {
    "evaluator": tn.jit(one_step, static="room", compile="never"),
    "compiled": tn.jit(one_step, static="room"),
}


def pack(states: list[State], size: int) -> States:
    goals = np.zeros((len(states), size, 4), np.int32)
    goals[:, :, 0] = -1
    for i, state in enumerate(states):
        goals[i, : len(state)] = np.array(state, np.int32).reshape(-1, 4)
    return States(goals, np.array([len(state) for state in states]))


def unpack(states: States, i: int) -> State:
    return tuple(tuple(g) for g in states.goals[i, : states.count[i]].tolist())  # type: ignore[misc]


def check(
    program: Program,
    states: list[State],
    without: Triple | None = None,
    backend: str = "evaluator",
) -> None:
    """Every successor of every state, in order, and whether a height cut something off."""
    search = Searcher(program)
    expected = [[*search.successors(s, without)] if s else [] for s in states]
    room = max(1, *(len(e) for e in expected))
    size = max(1, *(len(s) for s in states), *(len(s) for e in expected for s in e))
    packing = Packing.of(program)
    key = int(packing.keys([without])[0]) if without else -1
    step = STEPS[backend]
    matches, made = step(pack(states, size), np.full(len(states), key), base_of(program), room=room)
    for i, successors in enumerate(expected):
        assert matches.facts[i] + matches.rules[i] == len(successors)
        found = [unpack(made.states, i * room + k) for k in range(len(successors))]
        assert found == successors
        for k, state in enumerate(successors):
            at = i * room + k
            assert made.atoms[at] == len(state)
            assert made.variables[at] == len({t for g in state for t in g[1:3] if t < 0})
            assert (made.states.goals[at, len(state) :] == [-1, 0, 0, 0]).all()
        blocked = bool(states[i]) and states[i][0][3] == 0
        by_rules = states[i] and next(search.by_rules(states[i], heights=False), None) is not None
        assert bool(matches.cut[i]) == bool(blocked and by_rules)


@st.composite
def asked(draw: st.DrawFn) -> tuple[Program, list[State], Triple | None]:
    """A program, some states that its search could meet, and perhaps a fact not to use."""
    program = draw(programs(body=3))
    term = st.one_of(st.integers(-4, -1), st.integers(0, 3))
    goal: st.SearchStrategy[Goal] = st.tuples(st.integers(0, 2), term, term, st.integers(0, 2))
    without = draw(st.one_of(st.none(), st.sampled_from(program.facts))) if program.facts else None
    raw = draw(st.lists(st.lists(goal, min_size=1, max_size=3), min_size=1, max_size=5))
    search = Searcher(program)
    return program, [search.settle(tuple(goals), without) for goals in raw], without


@settings(max_examples=60, deadline=None)
@given(asked())
def test_successors_of_generated_states(case: tuple[Program, list[State], Triple | None]) -> None:
    check(*case)


def test_the_compiled_step() -> None:
    program = write(
        "p(a,a).\np(a,b).\np(b,c).\nq(X,X) :- p(X,Y).\n"
        "q(X,Z) :- p(X,Y), q(Y,Z), p(Z,W).\nq(a,X) :- p(X,b)."
    )
    goals: list[Goal] = [(1, s, o, 2) for s in (0, 1, -1, -2) for o in (0, 2, -1)]
    search = Searcher(program)
    states = [search.settle((g, (0, -1, 1, 1)), None) for g in goals]
    states += [s for state in states for s in search.successors(state)]
    for without in (None, (0, 0, 1)):
        check(program, states, without, "compiled")


@pytest.mark.parametrize(
    ("text", "goal"),
    [
        ("p(X,X) :- q(X,Y).\nq(a,b).", (0, 0, -1, 1)),  # p(X,X) with p(a,Y)
        ("p(Z,Z) :- q(Z,Y).\nq(a,b).", (0, -1, -2, 1)),  # p(X,Y) with p(Z,Z)
        ("p(Z,Z) :- q(Z,Y).\nq(a,b).", (0, 1, -1, 1)),  # p(a,Y) with p(Z,Z)
        ("p(Z,Z) :- q(Z,Y).\nq(a,b).", (0, 0, 1, 1)),  # p(a,b) with p(Z,Z)
        ("p(a,a).\np(a,b).\np(b,b).", (0, -1, -1, 1)),  # p(X,X) among facts
        ("p(X,Y) :- p(X,Y).\np(a,b).", (0, -1, -1, 1)),  # X with X
    ],
)
def test_repeated_variables(text: str, goal: Goal) -> None:
    program = write(text)
    check(program, [(goal,), (goal, (0, -1, 1, 1)), (goal, goal)])


def test_the_unifier_of_two_pairs_is_the_references() -> None:
    from itertools import product

    from tenfold.apps.prover.resolution.unify import unify as by_arrays

    terms = [-1, -2, 0, 1]
    others = [-5, -6, 0, 1]
    for s, o, x, y in product(terms, terms, others, others):
        expected = unify(((s, x), (o, y)))
        ok, binding = by_arrays(*(np.array(t) for t in (s, o, x, y)))
        assert bool(ok) == (expected is not None)
        if ok:  # equal up to names: what is equal under one is equal under the other
            found = [int(binding(np.array(t))) for t in (s, o, x, y)]
            assert found[0] == found[2]
            assert found[1] == found[3]
            by_walk = [_walk(t, expected or {}) for t in (s, o, x, y)]
            assert [t if t >= 0 else found.index(t) for t in found] == [
                t if t >= 0 else by_walk.index(t) for t in by_walk
            ]


def _walk(term: int, found: dict[int, int]) -> int:
    while term in found:
        term = found[term]
    return term


def test_gaps_are_compacted_in_order() -> None:
    program = write(
        "p(a,b).\nq(a,b).\nr(X,Y) :- s(X,X), p(X,Y), s(X,Y), q(X,Y), s(Y,Y).", "s(a,a)."
    )
    p = program.predicates.index
    check(program, [((p("r"), 0, 1, 3), (p("s"), 1, 0, 2))])


def test_a_proved_state_has_no_successors_and_is_no_padding() -> None:
    check(write("p(a,b)."), [(), ((0, 0, -1, 1),), ()])


def test_the_excluded_fact_in_every_order_of_the_index() -> None:
    program = write("p(a,a).\np(a,b).\np(b,a).\np(b,b).")
    goals: list[State] = [
        ((0, 0, 1, 0),),
        ((0, 0, -1, 0),),
        ((0, -1, 1, 0),),
        ((0, -1, -2, 0),),
        ((0, -1, -1, 0),),
    ]
    for fact in program.facts:
        search = Searcher(program)
        check(program, [search.settle(g, fact) for g in goals], fact)


def test_the_first_state() -> None:
    program = write("p(a,b).\nq(X,Y) :- p(X,Y).")
    first = tn.jit(begin, static="size", compile="never")
    asked = np.array([(0, 0, 1), (0, 1, 0), (0, 0, 1)])
    made = first(asked, np.int64(4), np.array([-1, -1, 1]), base_of(program), size=2)
    assert made.states.count.tolist() == [0, 1, 1]  # the third may not use p(a,b)
    assert unpack(made.states, 1) == ((0, 1, 0, 4),)
