"""Proofs from a closure, and the checker that replays them."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from tenfold.apps.prover.errors import ProofError
from tenfold.apps.prover.input.load import load
from tenfold.apps.prover.input.program import Program, program_of
from tenfold.apps.prover.outcome import Outcome
from tenfold.apps.prover.proofs.index import FactIndex
from tenfold.apps.prover.proofs.proof import Explainer, Proof, Reason, check_proof
from tenfold.apps.prover.proofs.trajectory import Retracer
from tenfold.apps.prover.reference.bottom_up import close
from tenfold.apps.prover.reference.rollout import roll_plainly
from tenfold.apps.prover.reference.top_down import Searcher, apply, unify
from tenfold.apps.prover.rollout.queue import Lane
from tenfold.apps.prover.rollout.run import Search

from .conftest import write
from .generated import everything, programs


@settings(max_examples=60, deadline=None)
@given(programs(body=3))
def test_every_fact_of_a_closure_has_a_proof_of_its_height(program: Program) -> None:
    heights = close(program).heights
    explainer = Explainer(program, FactIndex.of(heights))
    for fact, height in heights.items():
        assert check_proof(program, explainer.explain(fact)) == height


def test_family() -> None:
    program = program_of(load("family:families=3"))
    heights = close(program).heights
    explainer = Explainer(program, FactIndex.of(heights))
    for fact, height in heights.items():
        assert check_proof(program, explainer.explain(fact)) == height


def test_a_long_chain_is_no_deep_recursion() -> None:
    count = 1200
    rules = "\n".join(f"p{i + 1}(X,Y) :- p{i}(X,Y)." for i in range(count))
    program = write(f"p0(a,b).\n{rules}")
    heights = close(program).heights
    top = max(heights, key=lambda fact: heights[fact])
    assert check_proof(program, Explainer(program, FactIndex.of(heights)).explain(top)) == count


def proved() -> tuple[Program, Proof]:
    program = write("p(a,b).\np(b,c).\nq(X,Z) :- p(X,Y), p(Y,Z).\nq(X,Y) :- q(Y,X).")
    heights = close(program).heights
    return program, Explainer(program, FactIndex.of(heights)).explain((1, 2, 0))


def test_wrong_proofs_are_found() -> None:
    program, proof = proved()
    assert check_proof(program, proof) == 2
    fact = proof.fact
    wrong = {
        "rests on itself": {fact: Reason(1, ((1, 0, 2),)), (1, 0, 2): Reason(1, (fact,))},
        "which has no reason": {fact: Reason(1, ((1, 0, 2),))},
        "is not": {fact: None},
        "no clause 7": {fact: Reason(7, ())},
        "1 body atoms": {fact: Reason(1, ())},
        "other predicates": {fact: Reason(1, ((0, 0, 1),))},
        "does not unify": {fact: Reason(1, ((1, 0, 1),))},
        "it has no reason": {(0, 0, 1): None},
    }
    for message, reasons in wrong.items():
        with pytest.raises(ProofError, match=message):
            check_proof(program, replace(proof, reasons=reasons))
    with pytest.raises(ProofError, match="is not"):
        check_proof(program, proof, without=(0, 0, 1))


def test_what_has_no_proof_is_said() -> None:
    program, _ = proved()
    with pytest.raises(ProofError, match="has no proof"):
        Explainer(program, FactIndex.of({})).explain((0, 0, 0))
    with pytest.raises(ProofError, match="no clause gives"):
        Explainer(program, FactIndex.of({(0, 0, 0): 3})).explain((0, 0, 0))


@settings(max_examples=25, deadline=None)
@given(programs(), st.booleans())
def test_every_step_of_a_trajectory_names_its_source(program: Program, excluded: bool) -> None:
    """The fact or clause that is named gives the next state by plain unification."""
    searcher, retracer = Searcher(program), Retracer(program)
    search, size = Search(steps=5, height=3), len(program.constants)
    goals = [(goal, goal if excluded else None) for goal in everything(program)[::5]]
    ends = [
        (goal, without, roll_plainly(searcher, Lane(goal, 0, without), search, size))
        for goal, without in goals
    ]
    proved = [end for end in ends if end[-1].outcome == Outcome.PROVED]
    assume(proved)
    for goal, without, end in proved:
        steps = [*retracer.steps(goal, 3, end.choices, without)]
        states = [step.state for step in steps] + [()]
        for step, after in zip(steps, states[1:], strict=True):
            p, s, o, left = step.state[0]
            if step.fact is not None:
                assert step.fact in program.facts
                assert step.fact != without
                head, body = step.fact, ()
            else:
                assert step.clause is not None
                head, body = program.clauses[step.clause]
            assert head[0] == p
            apart = [
                (atom[0], *(t - 50 if t < 0 else t for t in atom[1:])) for atom in (head, *body)
            ]
            found = unify(((s, apart[0][1]), (o, apart[0][2])))
            assert found is not None
            rest = (*((*atom, left - 1) for atom in apart[1:]), *step.state[1:])
            assert searcher.settle(apply(rest, found), without) == after
