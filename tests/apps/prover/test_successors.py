"""Flat successors against the plain reference's: the same states in the same order."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import tenfold as tn
from tenfold.apps.prover.input.program import Program, Triple
from tenfold.apps.prover.reference.top_down import Searcher, State
from tenfold.apps.prover.resolution.layout import laid_out
from tenfold.apps.prover.resolution.matching import FAR, Without, apart, match
from tenfold.apps.prover.resolution.patterns import hashed, indices, patterns
from tenfold.apps.prover.resolution.successors import fillings, successors, written
from tenfold.apps.prover.resolution.tables import (
    ANY,
    LOOP,
    OBJECT,
    SUBJECT,
    Tables,
    _placed,
    holds,
    lookup,
    range_key,
    tables_of,
)
from tenfold.apps.prover.resolution.words import Goals, joined, parted
from tenfold.apps.prover.rollout.queue import Lane, asked_of
from tenfold.apps.prover.rollout.seen import packed

from .conftest import write
from .generated import chains, everything, programs

SIZE, NAMES, SLOTS, ROWS = 6, 9, 96, 8
EVERY_BIT = 2**64 - 1


def step(words: np.ndarray, without: Without, tables: Tables) -> tuple[object, ...]:
    """All successors of some states, one state's after another's."""
    apart_ = apart(tables, NAMES)
    found = match(words, words[0] != 0, without, apart_)
    some = found.facts > 0
    kind = laid_out(some + found.rules, SLOTS)
    nth = kind.k - some[kind.row]
    made_of = patterns(words, found, without.key, apart_, kind.row, nth, NAMES)
    need = found.facts + found.rules
    slot = laid_out(need, SLOTS)
    after = slot.k - found.facts[slot.row]
    pattern = kind.starts[slot.row] + np.where(after < 0, 0, after + some[slot.row])
    filling = fillings(found, without.key, apart_, slot.row, slot.k, pattern)
    full = written(made_of, filling, apart_)
    return need, packed(full, full.shape[0]), successors(made_of, filling, apart_)


STEP = tn.jit(step, compile="never")


def put(states: list[State], tables: Tables) -> np.ndarray:
    words = np.zeros((SIZE, ROWS), np.int64)
    for column, state in enumerate(states):
        for row, goal in enumerate(state):
            words[row, column] = joined(Goals(*map(np.int64, goal)), tables.bits)
    return words


def got(words: np.ndarray, tables: Tables) -> State:
    goals = [parted(np.int64(word), tables.bits) for word in words if word]
    return tuple(tuple(int(part) for part in goal) for goal in goals)  # type: ignore[misc]


def reached(program: Program, goal: Triple, without: Triple | None, limit: int) -> list[State]:
    """Some states that a search comes to, with at most ROWS and few enough goals."""
    searcher = Searcher(program)
    found, todo = [], [searcher.settle(((*goal, limit),), without)]
    while todo and len(found) < ROWS:
        state = todo.pop(0)
        if state and state not in found and len(state) <= SIZE:
            found.append(state)
            todo.extend(searcher.successors(state, without))
    return found


@settings(max_examples=80, deadline=None)
@given(st.one_of(programs(), chains()), st.integers(0, 10_000), st.integers(0, 3), st.booleans())
def test_successors_are_the_reference_s(
    program: Program, which: int, limit: int, excluded: bool
) -> None:
    goals = [*everything(program), *((p, -1, o) for p in range(3) for o in (-1, -2))]
    without = program.facts[which % len(program.facts)] if excluded and program.facts else None
    lane = Lane(goals[which % len(goals)], 0, without)
    tables, searcher = tables_of(program), Searcher(program)
    states = reached(program, lane.triple, without, limit)
    asked = asked_of([lane], tables, NAMES, SLOTS, limit, 5, EVERY_BIT)
    mine = Without(*(np.repeat(column[:1], ROWS) for column in asked.without))
    need, packed_, made = STEP(put(states, tables), mine, tables)
    at = 0
    for row, state in enumerate(states):
        expected = [*searcher.successors(state, without)]
        assert need[row] == len(expected)
        if at + len(expected) > SLOTS:
            break
        for one in expected:
            assert got(packed_[:, at], tables) == one
            assert made.counts[at] == len(one)
            assert made.variables[at] == max([0, *(-t for g in one for t in g[1:3])])
            words = [joined(Goals(*map(np.int64, goal)), tables.bits) for goal in one]
            assert made.hashes[at] == hashed(np.array(words, np.int64)).sum()
            at += 1


@settings(max_examples=60, deadline=None)
@given(chains(), st.integers(0, 10_000), st.integers(0, 3))
def test_a_fact_changes_no_more_goals_than_is_said(
    program: Program, which: int, limit: int
) -> None:
    goals = [*everything(program), *((p, -1, o) for p in range(3) for o in (-1, -2))]
    most = len(tables_of(program).open)
    assert most in (2, 4)  # a variable stands in two body atoms, or in three
    for state in reached(program, goals[which % len(goals)], None, limit):
        mine = {t for t in state[0][1:3] if t < 0}
        assert sum(bool(mine & {*goal[1:3]}) for goal in state[1:]) <= most


@pytest.mark.parametrize(
    ("rule", "most"),
    [
        ("p(X,Y) :- q(X,Z), q(Z,Y).", 2),
        ("p(X,Y) :- q(X,Z), q(Z,Y), r(Z,a).", 4),
        ("p(X,Y) :- q(X,Y), r(X,a).", 0),  # X stands in ever more goals
        ("p(X,Y) :- q(Z,Z), q(X,Y).", 0),
        ("p(X,X) :- q(X,a).", 0),  # two variables become one
    ],
)
def test_how_many_goals_a_fact_can_change(rule: str, most: int) -> None:
    assert len(tables_of(write(f"q(a,b).\nr(a,b).\n{rule}")).open) == most


def test_where_a_fact_that_is_not_to_be_used_stands() -> None:
    program = write("p(a,a).\np(a,b).\np(b,b).\np(c,b).\nq(a,b).")
    tables = tables_of(program)
    lanes = [Lane((0, 0, 0), 0, fact) for fact in (*program.facts, (1, 0, 0))]
    without = asked_of(lanes, tables, NAMES, SLOTS, 3, 5, EVERY_BIT).without
    for i, (p, s, o) in enumerate(program.facts):
        for entry in (int(without.subject[i]), int(without.object[i])):
            assert (tables.subjects[entry], tables.objects[entry]) == (s, o)
        assert (without.loop[i] < FAR) == (s == o and p == 0)
    # one that is no fact is nowhere, and excludes nothing
    assert [int(column[len(program.facts)]) for column in without] == [-1, FAR, FAR, FAR]


@settings(max_examples=30, deadline=None)
@given(st.sets(st.integers(0, 2**40), max_size=300), st.integers(0, 2**40))
def test_every_key_is_found_and_no_other(keys: set[int], other: int) -> None:
    array = np.array(sorted(keys), np.int64)
    found, at = _placed(array)
    assert holds(found, array).all()
    assert (found.keys[at] == array).all()
    assert bool(holds(found, np.array([other]))[0]) == (other in keys)


@settings(max_examples=30, deadline=None)
@given(programs())
def test_ranges_are_the_matching_facts(program: Program) -> None:
    tables = tables_of(program)
    for p in range(len(program.predicates)):
        for c in range(len(program.constants)):
            expected = {
                SUBJECT: [f for f in program.facts if f[:2] == (p, c)],
                OBJECT: [f for f in program.facts if f[0] == p and f[2] == c],
                ANY: [f for f in program.facts if f[0] == p],
                LOOP: [f for f in program.facts if f[0] == p and f[1] == f[2]],
            }
            for kind, facts in expected.items():
                term = np.array([c if kind in (SUBJECT, OBJECT) else 0])
                key = range_key(kind, np.array([p]), term, tables.predicates, tables.bits)
                first, count = lookup(tables.ranges, key, tables.firsts, tables.counts)
                part = slice(int(first[0]), int(first[0]) + int(count[0]))
                pairs = zip(tables.subjects[part], tables.objects[part], strict=True)
                assert [(p, int(s), int(o)) for s, o in pairs] == facts


def test_parts_of_goals_as_places_in_tables() -> None:
    tables = tables_of(write("p(a,b).\nq(b,c)."))
    used = np.array([True, True, False])
    p, s, o = np.array([1, 0, 0]), np.array([2, -1, 0]), np.array([-2, 0, 0])
    made = indices(used, p, s, o, tables)
    assert [column.tolist() for column in made] == [[1, 0, 2], [2, 3, 0], [4, 0, 0]]


@pytest.mark.parametrize("size", [1, 3, 5])
def test_packing_keeps_the_order_and_closes_gaps(size: int) -> None:
    words = np.array([[0, 4], [7, 0], [0, 5], [6, 6]])
    made = tn.jit(packed, static="size", compile="never")(words, size=size)
    assert made.T.tolist() == [
        [7, 6, 0, 0, 0][:size],
        [4, 5, 6, 0, 0][:size],
    ]
