"""Why facts hold and why they fail, against brute force."""

from __future__ import annotations

import math
from itertools import product
from pathlib import Path

import pytest
from hypothesis import given, settings

from tenfold.apps.prover.errors import InputError
from tenfold.apps.prover.input.dataset import Dataset, build
from tenfold.apps.prover.input.program import Clause, Program, Triple, program_of, rules_of
from tenfold.apps.prover.input.read_facts import parse_facts
from tenfold.apps.prover.input.read_rules import parse_rules
from tenfold.apps.prover.input.terms import Atom, Fact, Rule, Variable
from tenfold.apps.prover.proofs.explanation import (
    SHOWN,
    Explanation,
    explained,
    number_of,
    other_reasons,
)
from tenfold.apps.prover.proofs.grounding import bind_head, bound, groundings
from tenfold.apps.prover.proofs.index import FactIndex
from tenfold.apps.prover.proofs.named import named
from tenfold.apps.prover.proofs.proof import Explainer, check_proof
from tenfold.apps.prover.reference.bottom_up import close

from .generated import programs


def every_way(
    clause: Clause, fact: Triple, heights: dict[Triple, int], below: int, constants: int
) -> set[tuple[Triple, ...]]:
    """All ways a clause gives a fact, by trying every constant for every variable."""
    found = set()
    for values in product(range(constants), repeat=clause.variables):
        binding = {-1 - i: value for i, value in enumerate(values)}
        facts = tuple(bound(atom, binding) for atom in clause.body)
        if bound(clause.head, binding) == fact and all(
            heights.get(one, below) < below for one in facts
        ):
            found.add(facts)
    return found


@settings(max_examples=60, deadline=None)
@given(programs(body=3))
def test_groundings_are_all_there_are(program: Program) -> None:
    closed = close(program, 4)
    index = FactIndex.of(closed.heights)
    for fact in list(closed.heights)[:12]:
        for clause in program.clauses:
            binding = bind_head(clause, fact)
            for below in (2, 99):
                wanted = every_way(clause, fact, closed.heights, below, len(program.constants))
                ours = (
                    []
                    if binding is None
                    else [*groundings(clause.body, binding, index, None if below == 99 else below)]
                )
                assert len(ours) == len(set(ours))
                assert set(ours) == wanted


@settings(max_examples=60, deadline=None)
@given(programs())
def test_other_rules_are_proofs_and_none_is_left_out(program: Program) -> None:
    """Each rule that is said to give a fact does, without resting on it; and each rule that gives
    it out of lower facts is said."""
    closed = close(program, 5)
    explainer = Explainer(program, FactIndex.of(closed.heights))
    for fact, height in closed.heights.items():
        reasons = [*other_reasons(explainer, fact, 5)]
        clauses = [reason.clause for reason in reasons]
        assert clauses == sorted(set(clauses))
        for reason in reasons:
            assert check_proof(program, explainer.rest_on(fact, reason)) >= min(height, 1)
        lower = {
            number
            for number, clause in enumerate(program.clauses)
            if every_way(clause, fact, closed.heights, height, len(program.constants))
        }
        assert lower <= set(clauses)


@settings(max_examples=40, deadline=None)
@given(programs())
def test_weights_are_products_over_the_tree(program: Program) -> None:
    x = Variable("X")
    rules = tuple(
        Rule(Atom("p", x, x), (), f"r{i}", 0.5 + i / 16) for i in range(len(program.clauses))
    )
    closed = close(program, 4)
    explainer = Explainer(program, FactIndex.of(closed.heights))
    for fact, height in closed.heights.items():
        proof = explainer.explain(fact)

        def weight(one: Triple) -> float:
            reason = proof.reasons[one]  # noqa: B023
            if reason is None:
                return 1.0
            return rules[reason.clause].weight * math.prod(map(weight, reason.body))

        made = named(proof, program, rules)
        assert made.height == height
        assert math.isclose(made.weight, weight(fact))
        assert made.fact == program.name(fact)
        assert len({step.fact for step in made.steps}) == len(made.steps) == len(proof.reasons)


def data_of(facts: str, rules: str) -> Dataset:
    return build("d", parse_facts(facts, "t")[0], [], [], parse_rules(rules, "rules.txt")[0])


def explain(data: Dataset, fact: Fact, limit: int = 10) -> Explanation:
    program = program_of(data)
    closed = close(program, limit)
    explainer = Explainer(program, FactIndex.of(closed.heights))
    rules = rules_of(data, program)
    return explained(explainer, rules, number_of(program, fact), limit, closed.complete)


CHAIN = """
r1:0.5:q(x,z), s(z,y) -> p(x,y)
r2:0.25:p(y,x) -> p(x,y)
r3:0.125:t(x,y) -> p(x,y)
"""


def test_a_proof_with_its_rules_weights_and_alternatives() -> None:
    made = explain(data_of("q(a,b).\ns(b,c).\nt(c,a).", CHAIN), Fact("p", "a", "c"))
    assert (made.height, made.alternatives, made.tried, made.complete) == (1, 1, 3, True)
    low, other = made.proofs
    assert [rule.name for rule in low.rules] == ["r1"]
    assert (low.weight, other.weight) == (0.5, 0.25 * 0.125)
    assert [step.fact for step in other.steps] == [
        Fact("p", "a", "c"),
        Fact("p", "c", "a"),
        Fact("t", "c", "a"),
    ]
    text = str(made)
    assert "p(a,c)  by r1 (0.5): p(x,y) :- q(x,z), s(z,y)." in text
    assert "├─ q(a,b)  known" in text
    assert "1 other rule gives it, too:" in text
    plain = made.as_dict()
    assert plain["proofs"][1]["steps"][0]["rule"]["weight"] == 0.25


def test_a_fact_does_not_prove_itself() -> None:
    """p(c,a) follows from p(a,c) alone, so that it is no other reason for p(a,c)."""
    made = explain(data_of("q(a,b).\ns(b,c).", CHAIN), Fact("p", "a", "c"))
    assert made.alternatives == 0


def test_a_known_fact_may_follow_too() -> None:
    made = explain(data_of("t(a,b).\np(a,b).", CHAIN), Fact("p", "a", "b"))
    assert (made.height, made.alternatives) == (0, 1)
    assert str(made).startswith("p(a,b): known, weight 1\np(a,b)  known")


@pytest.mark.parametrize(
    ("facts", "line"),
    [
        ("q(a,b).\nq(a,e).\ns(d,c).", "q(a,z) holds in 2 ways, as q(a,b); none of them has s(z,c)"),
        ("q(a,b).\ns(d,c).", "q(a,z) holds in one way; none of them has s(z,c)"),
        ("q(a,b).\nt(c,b).", "s(z,c) has no proof"),
    ],
)
def test_the_subgoal_that_fails_is_named(facts: str, line: str) -> None:
    made = explain(data_of(facts, "r1:0.5:q(x,z), s(z,y) -> p(x,y)"), Fact("p", "a", "c"))
    assert not made.proved
    assert str(made).splitlines()[0] == "p(a,c): no proof, at any height"
    assert line in str(made)


def test_a_height_that_is_too_low_is_said() -> None:
    data = data_of("q(a,b).", "r1:1:q(x,y) -> r(x,y)\nr2:1:r(x,y) -> p(x,y)")
    made = explain(data, Fact("p", "a", "b"), limit=1)
    assert "a greater --height might find one" in str(made)
    assert made.failures[0].fails is None
    assert explain(data, Fact("p", "a", "b"), limit=2).height == 2
    nothing = explain(data, Fact("q", "b", "a"))
    assert "no rule has a head" in str(nothing)


def test_many_rules_are_counted_and_a_few_shown() -> None:
    many = "\n".join(f"r{i}:1:t{i}(x,y) -> p(x,y)" for i in range(30))
    facts = "\n".join(f"t{i}(a,b)." for i in range(30))
    good = explain(data_of(facts, many), Fact("p", "a", "b"))
    assert (good.alternatives, len(good.proofs)) == (29, 1 + SHOWN)
    assert "… and 19 more" in str(good)
    bad = explain(data_of(facts, many), Fact("p", "b", "a"))
    assert (bad.tried, len(bad.failures)) == (30, SHOWN)
    assert "… and 20 more rules" in str(bad)


def test_a_deep_proof_and_one_with_shared_facts() -> None:
    """Proofs are drawn without recursion; what is used twice is drawn once."""
    count = 3000
    rules = "\n".join(f"r{i}:0.5:p{i}(x,y), p{i}(x,y) -> p{i + 1}(x,y)" for i in range(40))
    made = explain(data_of("p0(a,b).", rules), Fact("p40", "a", "b"), limit=50)
    assert made.proofs[0].weight == 0  # 2^40 rules in the tree
    assert len(str(made).splitlines()) < 200
    chain = "\n".join(f"n(c{i},c{i + 1})." for i in range(count))
    data = data_of(f"{chain}\nr(c0,c0).", "s:1:r(x,y), n(y,z) -> r(x,z)")
    program = program_of(data)
    heights = close(program).heights
    explainer = Explainer(program, FactIndex.of(heights))
    fact = number_of(program, Fact("r", "c0", f"c{count}"))
    deep = explained(explainer, rules_of(data, program), fact, count, True)
    assert deep.height == count
    assert str(deep.proofs[0]).count("\n") == 2 * count


def test_unknown_names_are_errors_with_what_is_near() -> None:
    program = program_of(data_of("likes(anna,bert).", ""))
    with pytest.raises(InputError, match=r"'liks'.*not in the data"):
        number_of(program, Fact("liks", "anna", "bert"))
    with pytest.raises(InputError, match="anna"):
        number_of(program, Fact("likes", "ana", "bert"))


def test_the_rule_behind_a_clause_is_the_first_that_says_it(tmp_path: Path) -> None:
    data = data_of("q(a,b).", "r1:0.5:q(x,y) -> p(x,y)\nr2:0.9:q(u,v) -> p(u,v)")
    assert [rule.name for rule in rules_of(data, program_of(data))] == ["r1"]
