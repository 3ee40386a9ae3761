"""The two references: each by itself, against each other, and against outside systems."""

from __future__ import annotations

import os
import shutil
from collections import Counter
from pathlib import Path

import pytest
from hypothesis import assume, given, settings

from tenfold.apps.prover.input.load import load
from tenfold.apps.prover.input.program import Program, Triple, program_of
from tenfold.apps.prover.input.queries import queries, sample
from tenfold.apps.prover.outcome import Outcome
from tenfold.apps.prover.reference.bottom_up import close
from tenfold.apps.prover.reference.top_down import Searcher, apply, unify

from .agree import height
from .conftest import fact, write
from .generated import everything, programs
from .outside import by_clingo, by_prolog


@pytest.mark.parametrize(
    ("left", "right", "expected"),
    [
        ((-1, -1), (0, -2), {-1: 0, -2: 0}),  # p(X,X) with p(a,Y)
        ((-1, -2), (-3, -3), {-1: -3, -2: -3}),  # p(X,Y) with p(Z,Z)
        ((0, -1), (-2, -2), {-2: 0, -1: 0}),  # p(a,Y) with p(Z,Z)
        ((-1, -1), (0, 1), None),  # p(X,X) with p(a,b)
        ((-1, -2), (-1, -2), {}),  # X with X
        ((0, 1), (0, 1), {}),
        ((0, 1), (0, 2), None),
    ],
)
def test_unification(
    left: tuple[int, int], right: tuple[int, int], expected: dict[int, int] | None
) -> None:
    found = unify(tuple(zip(left, right, strict=True)))
    assert (found is None) == (expected is None)
    if found is not None and expected is not None:
        sides = [apply(((0, *side, 0),), found) for side in (left, right)]
        assert sides[0] == sides[1]
        assert sides[0] == apply(((0, *left, 0),), expected)


def test_repeated_variables_in_heads() -> None:
    program = write("q(a,b).\nq(b,b).\np(X,X) :- q(X,Y).\nr(a,Y) :- p(Y,Y).", "r(a,c).")
    assert height(program, "p(a,a)") == 1
    assert height(program, "p(a,b)") is None
    assert height(program, "r(a,b)") == 2
    assert height(program, "r(a,c)") is None


def test_a_variable_shared_by_two_body_atoms() -> None:
    program = write("p(a,b).\np(b,c).\nq(X,Z) :- p(X,Y), p(Y,Z).")
    assert height(program, "q(a,c)") == 1
    assert height(program, "q(a,b)") is None


def test_variables_of_the_body_alone_and_repeated_in_it() -> None:
    program = write("p(a,a).\np(b,c).\nr(c,a).\nq(X,Y) :- p(X,X), r(Z,Y).")
    assert height(program, "q(a,a)") == 1
    assert height(program, "q(b,a)") is None


def test_a_fact_with_and_without_itself() -> None:
    program = write("p(a,b).\nq(a,b).\np(X,Y) :- q(X,Y).")
    assert height(program, "p(a,b)") == 0
    assert height(program, "p(a,b)", without="p(a,b)") == 1


def test_a_fact_excluded_deep_in_a_proof() -> None:
    program = write("p(a,b).\nq(X,Y) :- r(X,Y).\nr(X,Y) :- p(X,Y).\np(X,Y) :- q(X,Y).")
    assert height(program, "q(a,b)") == 2
    assert height(program, "q(a,b)", without="p(a,b)") is None
    assert height(program, "p(a,b)", without="p(a,b)") is None


def test_empty_bodies() -> None:
    program = write("q(b,b).\np(a,b) :- .\np(b,a) :- p(a,b), q(b,b).\nq(b,b) :- .")
    assert height(program, "p(a,b)") == 1
    assert height(program, "p(b,a)") == 2
    assert height(program, "q(b,b)") == 0
    assert height(program, "p(a,b)", limit=0) is None


def test_empty_bodies_without_any_fact() -> None:
    program = write("p(a,b) :- .\nq(X,Y) :- p(X,Y).")
    assert height(program, "q(a,b)") == 2


def test_constants_in_heads_and_bodies() -> None:
    program = write("p(a,b).\np(c,b).\nq(X,z) :- p(X,b).\nq(z,a) :- p(a,Y).", "q(b,z).")
    assert height(program, "q(a,z)") == 1
    assert height(program, "q(z,a)") == 1
    assert height(program, "q(b,z)") is None


def test_duplicates_change_nothing() -> None:
    once = write("p(a,b).\nq(X,Y) :- p(Y,X).")
    twice = write("p(a,b).\np(a,b).\nq(X,Y) :- p(Y,X).\nq(A,B) :- p(B,A).")
    assert once == twice


def test_symmetric_and_transitive_cycles() -> None:
    program = write(
        "p(a,b).\np(b,c).\np(c,d).\np(X,Y) :- p(Y,X).\np(X,Z) :- p(X,Y), p(Y,Z).", "p(e,e)."
    )
    assert height(program, "p(b,a)", 4) == 1
    assert height(program, "p(a,c)", 4) == 1
    assert height(program, "p(a,d)", 4) == 2
    assert height(program, "p(a,a)", 4) == 2
    assert close(program).complete
    assert (4, 4) not in {t[1:] for t in close(program).heights}


CHAIN = "\n".join(f"next(n{i},n{i + 1})." for i in range(12)) + (
    "\nfar(X,Y) :- next(X,Y).\nfar(X,Z) :- next(X,Y), far(Y,Z)."
)


def test_a_proof_at_the_limit_and_one_beyond() -> None:
    program = write(CHAIN)
    assert height(program, "far(n0,n7)", 7) == 7
    assert height(program, "far(n0,n8)", 7) is None
    searched = Searcher(program).prove(program.number(fact("far(n0,n8)")), 7)
    assert searched.outcome == Outcome.DEPTH
    assert not close(program, 7).complete
    assert close(program, 12).complete
    assert not close(program, 11).complete


def test_outcomes() -> None:
    program = write(CHAIN)
    search = Searcher(program)
    assert search.prove(program.number(fact("far(n3,n2)")), 20).outcome == Outcome.REFUTED
    given_up = search.prove(program.number(fact("far(n0,n9)")), 20, budget=5)
    assert given_up.outcome == Outcome.GAVE_UP
    assert given_up.height is None


def test_long_proofs_with_many_variables() -> None:
    body = ", ".join(f"next(X{i},X{i + 1})" for i in range(12))
    program = write(CHAIN + f"\nall(X0,X12) :- {body}.")
    assert height(program, "all(n0,n12)") == 1
    assert height(program, "all(n12,n0)") is None


def test_constants_that_no_fact_has() -> None:
    program = write("p(a,b).\nq(X,Y) :- p(Y,X).", "q(new,a).\nq(new,other).")
    assert height(program, "q(new,a)") is None
    assert height(program, "q(new,other)") is None
    assert height(program, "q(b,a)") == 1


def test_a_predicate_with_many_facts() -> None:
    facts = "\n".join(f"p(a,n{i:03})." for i in range(300))
    program = write(f"{facts}\nq(n299,z).\nr(X,Y) :- p(X,U), q(U,Y).", "r(a,y).")
    assert height(program, "r(a,z)") == 1
    assert height(program, "r(a,y)") is None


def test_names_with_dots_slashes_and_numbers() -> None:
    program = write("film.actor(/m/01,1.5).\nplays(X,'/m/01') :- film.actor('/m/01',X).")
    assert height(program, "plays(1.5,/m/01)") == 1


def test_the_first_state_of_successors() -> None:
    """Facts in their order, then rules in theirs; known facts dropped, variables renamed."""
    program = write("p(a,b).\np(a,c).\nq(b,b).\nr(X,Z) :- p(X,Y), q(Y,Z).\np(X,Y) :- q(X,Y).")
    a, b, c = (program.constants.index(n) for n in "abc")
    p, q, r = (program.predicates.index(n) for n in "pqr")
    search = Searcher(program)
    (start,) = search.successors(((r, a, b, 3),))
    assert start == ((p, a, -1, 2), (q, -1, b, 2))
    assert [*search.successors(start)] == [
        (),
        ((q, c, b, 2),),
        ((q, a, -1, 1), (q, -1, b, 2)),
    ]


def test_a_goal_that_stands_twice_keeps_the_lesser_height() -> None:
    program = write("p(a,b).\nq(X,Y) :- p(X,Y).")
    search = Searcher(program)
    assert search.settle(((1, 1, 1, 4), (1, 1, -5, 1), (1, 1, 1, 2)), None) == (
        (1, 1, 1, 2),
        (1, 1, -1, 1),
    )


LIMIT = 3


@settings(max_examples=120, deadline=None)
@given(programs())
def test_they_agree_on_generated_programs(program: Program) -> None:
    closure = close(program, LIMIT)
    search = Searcher(program)
    goals = everything(program)[::2]
    answers = {goal: search.prove(goal, LIMIT, budget=2000) for goal in goals}
    found = {goal: a for goal, a in answers.items() if a.outcome != Outcome.GAVE_UP}
    assume(found)
    for goal, answer in found.items():
        assert answer.height == closure.heights.get(goal), goal
        if answer.outcome == Outcome.REFUTED:
            assert goal not in close(program).heights


@settings(max_examples=40, deadline=None)
@given(programs(body=3))
def test_a_limit_only_cuts_off(program: Program) -> None:
    whole = close(program)
    assert whole.complete
    for limit in range(3):
        part = close(program, limit)
        assert part.heights == {t: h for t, h in whole.heights.items() if h <= limit}
        assert part.complete == (len(part.heights) == len(whole.heights))


@settings(max_examples=40, deadline=None)
@given(programs(body=3))
def test_bottom_up_against_the_definition(program: Program) -> None:
    """Every clause tried with every substitution, round by round."""
    from itertools import product

    heights = dict.fromkeys(program.facts, 0)
    for level in range(1, LIMIT + 1):
        new = {}
        for head, body in program.clauses:
            count = max([0, *(-t for atom in (head, *body) for t in atom[1:])])
            for values in product(range(len(program.constants)), repeat=count):

                def ground(atom: Triple, values: tuple[int, ...] = values) -> Triple:
                    s, o = (values[-1 - t] if t < 0 else t for t in atom[1:])
                    return (atom[0], s, o)

                if all(ground(atom) in heights for atom in body) and ground(head) not in heights:
                    new[ground(head)] = level
        heights |= new
    assert close(program, LIMIT).heights == heights


def countries(data: Path) -> dict[str, Program]:
    names = ("countries_s1", "countries_s2", "countries_s3")
    return {name: program_of(load(str(data / name))) for name in names}


def test_clingo_agrees() -> None:
    clingo = pytest.importorskip("clingo", reason="clingo is not installed")

    @settings(max_examples=60, deadline=None)
    @given(programs(body=3))
    def check(program: Program) -> None:
        assert close(program, LIMIT).heights == by_clingo(clingo, program, LIMIT)

    check()


def test_clingo_agrees_on_data_sets(data: Path) -> None:
    clingo = pytest.importorskip("clingo", reason="clingo is not installed")
    for name, program in countries(data).items():
        assert close(program, 10).heights == by_clingo(clingo, program, 10), name
    family = program_of(load("family:families=3"))
    assert close(family, 10).heights == by_clingo(clingo, family, 10)


def prolog() -> str:
    found = os.environ.get("SWIPL") or shutil.which("swipl")
    if found is None:
        pytest.skip("SWI-Prolog is not installed")
    return found


def test_swi_prolog_agrees(tmp_path: Path) -> None:
    swipl = prolog()

    @settings(max_examples=12, deadline=None)
    @given(programs(body=3))
    def check(program: Program) -> None:
        assert set(close(program).heights) == by_prolog(swipl, program, tmp_path)

    check()


def test_swi_prolog_agrees_on_data_sets(data: Path, tmp_path: Path) -> None:
    swipl = prolog()
    for name, program in countries(data).items():
        assert set(close(program).heights) == by_prolog(swipl, program, tmp_path), name
    family = program_of(load("family:families=3"))
    assert set(close(family).heights) == by_prolog(swipl, family, tmp_path)


@pytest.mark.parametrize("name", ["family", "kinship"])
def test_they_agree_on_a_part_of_large_data_sets(data: Path, name: str) -> None:
    """To a low height: higher ones are beyond a search of each candidate by itself."""
    read = load(str(data / name))
    program = program_of(read)
    heights, search = close(program, 1).heights, Searcher(program)
    found = Counter()
    for query in sample(queries(read, program, limit=60), 5, seed=0):
        for candidate in (query.own, *query.candidates):
            goal = query.corrupt(candidate)
            answer = search.prove(goal, 1)
            assert answer.height == heights.get(goal)
            found[answer.outcome] += 1
    assert found[Outcome.PROVED] > 50
    assert found.total() == 720
