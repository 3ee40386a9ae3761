"""All successors of states against the top-down reference: the same states, in the same order."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import tenfold as tn
from tenfold.apps.prover.input.program import Program, Triple
from tenfold.apps.prover.outcome import Outcome
from tenfold.apps.prover.reference.top_down import Goal, Searcher, State, unify
from tenfold.apps.prover.resolution.matching import Without, apart
from tenfold.apps.prover.resolution.step import Step, hopeless, stepped
from tenfold.apps.prover.resolution.tables import Tables, tables_of
from tenfold.apps.prover.resolution.words import HEIGHT, Goals, joined, parted
from tenfold.apps.prover.rollout.exhaustive_run import Exhaustion, begun
from tenfold.apps.prover.rollout.loop import RUNNING
from tenfold.apps.prover.rollout.queue import Lane, withouts
from tenfold.apps.prover.rollout.room import Room
from tenfold.apps.prover.rollout.seen import packed

from .conftest import write
from .generated import programs

NAMES = 12  # variables of a state


def one_step(
    words: object, live: object, without: Without, tables: Tables, rows: int, tries: int
) -> object:
    tables = apart(tables, NAMES)
    made = stepped(words, live, without, tables, rows, NAMES, tries)
    first = packed(made.words, 1)[0]
    return made, hopeless(first, tables)


STEPS = {
    "evaluator": tn.jit(one_step, static=("rows", "tries"), compile="never"),
    "compiled": tn.jit(one_step, static=("rows", "tries")),
}


def pack(states: list[State], size: int, tables: Tables) -> np.ndarray:
    words = np.zeros((size, len(states)), np.int64)
    for i, state in enumerate(states):
        for j, goal in enumerate(state):
            words[j, i] = joined(Goals(*goal), tables.bits)
    return words


def unpack(words: np.ndarray, tables: Tables) -> State:
    """The goals of a column, without its gaps."""
    parts = np.stack(parted(words[words != 0], tables.bits), axis=-1)
    return tuple(tuple(goal) for goal in parts.tolist())


def check(
    program: Program,
    states: list[State],
    without: Triple | None = None,
    backend: str = "evaluator",
) -> None:
    """Every successor of every state, in order, and whether a height cut something off."""
    search = Searcher(program)
    expected = [[*search.successors(s, without)] if s else [] for s in states]
    total = sum(map(len, expected))
    size = max(1, *(len(s) for s in states))
    tables = tables_of(program)
    left = withouts([Lane((0, 0, 0), 0, without)] * len(states), tables)
    live = np.array([bool(state) for state in states])
    tries = len(states) * len(tables.each)
    given_ = (pack(states, size, tables), live, left, tables)
    made, (dead, blocked) = STEPS[backend](*given_, rows=total + 1, tries=tries)
    made = Step(*made)
    assert made.taken == len(states)
    assert made.inside.tolist() == [True] * total + [False]
    at = 0
    for i, successors in enumerate(expected):
        for k, state in enumerate(successors):
            assert (made.row[at], made.k[at]) == (i, k)
            assert unpack(made.words[:, at], tables) == state
            assert made.variables[at] == len({t for g in state for t in g[1:3] if t < 0})
            if dead[at]:
                assert not [*search.successors(state, without)]
            assert bool(blocked[at]) <= (state != () and _cut(search, state))
            if dead[at]:
                assert bool(blocked[at]) == _cut(search, state)
            at += 1
        assert bool(made.cut[i]) == _cut(search, states[i])
    _with_less_room(program, expected, given_, backend)


def _cut(search: Searcher, state: State) -> bool:
    """Whether a height cuts something off."""
    if not state or state[0][3] > 0:
        return False
    return next(search.by_rules(state, heights=False), None) is not None


def _with_less_room(program: Program, expected: list, given_: tuple, backend: str) -> None:
    """Only the first states are taken, those whose successors and tries fit."""
    rows = max(1, sum(map(len, expected)) // 2)
    tries = len(given_[3].each)
    made = Step(*STEPS[backend](*given_, rows=rows, tries=tries)[0])
    taken = int(made.taken)
    counts = np.cumsum([len(successors) for successors in expected])
    assert taken <= int((counts <= rows).sum())
    assert int(made.inside.sum()) == (counts[taken - 1] if taken else 0)
    # at least what can be tried at once, if its successors fit
    assert taken or counts[0] > rows


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
    tables = tables_of(program)
    triples: list[Triple] = [(0, 0, 1), (0, 1, 0), (0, 0, 1)]
    lanes = [Lane(triple, 0, w) for triple, w in zip(triples, (None, None, (0, 0, 1)), strict=True)]
    search = Exhaustion(room=Room(8, 2, 2), places=8, batch=4)
    made, _, _ = begun(tables, lanes, search, 4, search.room)
    # the third may not use p(a,b); the fourth fills the batch
    assert made.outcome.tolist() == [Outcome.PROVED, RUNNING, RUNNING, Outcome.REFUTED]
    assert unpack(made.store.words[1], tables) == ((0, 1, 0, 4),)
    assert made.store.words[1, 0] & ((1 << HEIGHT) - 1) == 4
