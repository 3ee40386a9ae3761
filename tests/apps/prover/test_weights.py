"""Weights: every engine and reference against all proofs written out, bit for bit."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import replace
from functools import cache
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from tenfold.apps.prover.closure.engine import close_program, rank_in_closure
from tenfold.apps.prover.closure.fixpoint import close_by_joins
from tenfold.apps.prover.closure.weights.fixpoint import weigh_facts
from tenfold.apps.prover.closure.weights.last import rank_by_weight
from tenfold.apps.prover.errors import InputError
from tenfold.apps.prover.evaluation import evaluate
from tenfold.apps.prover.input.load import load
from tenfold.apps.prover.input.program import Clause, Program, Triple, program_of
from tenfold.apps.prover.input.queries import Query, queries
from tenfold.apps.prover.input.read_rules import parse_rules
from tenfold.apps.prover.reference.aggregates import AGGREGATES, aggregate
from tenfold.apps.prover.reference.weighted_down import Weigher
from tenfold.apps.prover.reference.weighted_up import weigh
from tenfold.apps.prover.report.ranks import Rank, summarise
from tenfold.apps.prover.rollout.engine import rank_by_rollout
from tenfold.apps.prover.rollout.queue import Lane
from tenfold.apps.prover.rollout.weighted import weigh_all
from tenfold.apps.prover.scores.weights import check_weights
from tenfold.apps.prover.settings import AGGREGATES as NAMES
from tenfold.apps.prover.settings import Settings

from .conftest import fact, write
from .generated import everything, weighted

MANY = 4000  # weights of one goal's proofs: programs with more are left out


class AllProofs:
    """The weights of all proofs of a ground atom, by trying every constant for every variable."""

    def __init__(self, program: Program, without: Triple | None = None) -> None:
        self.program, self.without = program, without
        self.of = cache(self._of)

    def _of(self, goal: Triple, height: int) -> frozenset[float]:
        given = goal in self.program.facts and goal != self.without
        found = {1.0} if given else set()
        for by_rule in self.by_rule(goal, height).values():
            found |= by_rule
        return frozenset(found)

    def by_rule(self, goal: Triple, height: int) -> dict[int, set[float]]:
        """The weights of the proofs that end in each rule."""
        found: dict[int, set[float]] = {}
        for place, (clause, weight) in enumerate(self.program.weighed if height else ()):
            for body in self._bodies(clause, goal):
                products = {1.0}
                for atom in body:
                    mine = self.of(atom, height - 1)
                    products = {one * other for one in products for other in mine}
                    assume(len(products) < MANY)
                found.setdefault(place, set()).update(one * weight for one in products)
        return {place: weights for place, weights in found.items() if weights}

    def _bodies(self, clause: Clause, goal: Triple) -> Iterator[list[Triple]]:
        for values in product(range(len(self.program.constants)), repeat=clause.variables):

            def ground(atom: Triple, values: tuple[int, ...] = values) -> Triple:
                p, s, o = atom
                return p, values[-1 - s] if s < 0 else s, values[-1 - o] if o < 0 else o

            if ground(clause.head) == goal:
                yield [ground(atom) for atom in clause.body]


def best(proofs: AllProofs, goal: Triple, height: int) -> list[float]:
    """The best weight by each rule, in the order of rules."""
    return [max(weights) for _, weights in sorted(proofs.by_rule(goal, height).items())]


@settings(max_examples=25, deadline=None)
@given(weighted(clauses=3), st.integers(0, 2))
def test_references_and_engines_against_all_proofs(program: Program, height: int) -> None:
    proofs, up, down = AllProofs(program), weigh(program, height), Weigher(program)
    closed = close_by_joins(program, height, facts=64, rows=64, backend="evaluator")
    engine = weigh_facts(program, closed, height, "evaluator", rows=8)
    by_closure = dict(zip(closed.by_triple(), engine.tolist(), strict=True))
    assert by_closure == up.weights
    asked = [goal for goal in everything(program)[::4] if goal not in program.facts]
    searched = weigh_all(program, [Lane(goal) for goal in asked], height, 8, "evaluator")
    for goal, weights in zip(asked, searched, strict=True):
        expected = best(proofs, goal, height)
        assert [w for _, w in sorted(up.rules.get(goal, {}).items())] == expected
        assert [w for _, w in down.rules(goal, height)] == expected
        assert weights == expected
        assert up.weights.get(goal) == max(expected, default=None)


@settings(max_examples=15, deadline=None)
@given(weighted(body=3), st.integers(1, 3))
def test_longer_bodies_and_greater_heights(program: Program, height: int) -> None:
    """Where all proofs are too many: the two references and the closure."""
    up, down = weigh(program, height), Weigher(program)
    for goal in everything(program):
        if down.given(goal):
            assert up.weights[goal] == 1
        else:
            assert dict(down.rules(goal, height)) == up.rules.get(goal, {})
    closed = close_by_joins(program, height, facts=64, rows=64, backend="evaluator")
    engine = weigh_facts(program, closed, height, "evaluator")
    assert dict(zip(closed.by_triple(), engine.tolist(), strict=True)) == up.weights


def some_queries(program: Program) -> list[Query]:
    """Queries in both modes; some of their facts are known, some candidates filtered."""
    everyone = frozenset(range(len(program.constants)))
    goals = everything(program)[::11]
    known = {*goals, *everything(program)[3::9]}
    made = []
    for p, s, o in goals:
        heads = frozenset(c for c in everyone if (p, c, o) in known)
        tails = frozenset(c for c in everyone if (p, s, c) in known)
        made += [Query((p, s, o), "head", everyone, heads)]
        made += [Query((p, s, o), "tail", everyone, tails)]
    return made


def found(program: Program, asked: list[Query], told: Settings) -> list[tuple[Rank, Any]]:
    """Ranks and scores, by the engine that the settings name."""
    if told.engine == "rollout":
        made = rank_by_rollout(told, program, asked)
    else:
        made = rank_in_closure(told, program, close_program(told, program), asked)
    return [(one.rank, one.weight) for one in made]


@settings(max_examples=10, deadline=None)
@given(weighted(clauses=3), st.integers(0, 2), st.sampled_from(NAMES))
def test_ranks_by_every_aggregate(program: Program, height: int, how: str) -> None:
    """Closure, exhaustive rollout and both references, against ranks by all proofs."""
    proofs, asked = AllProofs(program), some_queries(program)

    def key(goal: Triple) -> tuple[int, Any]:
        if goal in program.facts:
            return 2, 1.0
        weights = best(proofs, goal, height)
        return (1, aggregate(weights, how)) if weights else (0, None)

    expected = []
    for query in asked:
        mine = key(query.fact)
        others = [key(query.corrupt(c)) for c in query.candidates]
        ties = sum(other == mine for other in others)
        better = sum(o[0] > mine[0] or (o[0] == mine[0] == 1 and o[1] > mine[1]) for o in others)
        score = mine[1][0] if isinstance(mine[1], tuple) else mine[1]
        expected.append((Rank(better, ties, len(others)), score))
    told = Settings("family:", score="weight", aggregate=how, height=height, backend="evaluator")
    for changes in (
        {},
        {"backend": "python"},
        {"engine": "rollout", "search": "exhaustive", "batch": 8},
        {"engine": "rollout", "search": "exhaustive", "backend": "python"},
    ):
        assert found(program, asked, replace(told, **changes)) == expected


def drawn_weights(program: Program) -> Program:
    draw = np.random.default_rng(0)
    return replace(program, weights=tuple((1 - draw.random(len(program.clauses))).tolist()))


@pytest.fixture(scope="module")
def family() -> tuple[Program, list[Query]]:
    data = load("family:families=2")
    program = drawn_weights(program_of(data))
    return program, queries(data, program)[::3]


@pytest.mark.parametrize("how", NAMES)
def test_compiled_closures_give_the_references_bits(
    family: tuple[Program, list[Query]], how: str
) -> None:
    program, asked = family
    told = Settings("family:", score="weight", aggregate=how, height=3)
    plain = found(program, asked, replace(told, backend="python"))
    assert found(program, asked, told) == plain
    assert len({score for _, score in plain}) > 3


def test_compiled_rollouts_give_the_references_bits(family: tuple[Program, list[Query]]) -> None:
    program, _ = family
    up = weigh(program, 2)
    lanes = [Lane(goal) for goal in sorted(up.rules)[:150:10]]
    made = weigh_all(program, lanes, 2, 16, "compiled")
    assert made == [[w for _, w in sorted(up.rules[lane.triple].items())] for lane in lanes]


def test_no_room_or_piece_changes_a_bit(family: tuple[Program, list[Query]]) -> None:
    program, asked = family
    closed = close_by_joins(program, 2)
    first = weigh_facts(program, closed, 2, "compiled")
    for rows in (1, 100, 1 << 12):
        assert weigh_facts(program, closed, 2, "compiled", rows).tobytes() == first.tobytes()
    whole = rank_by_weight(program, closed, asked, 2, "noisy-or", "compiled")
    parts = rank_by_weight(program, closed, asked, 2, "noisy-or", "compiled", room=1000)
    assert all(a.tobytes() == b.tobytes() for a, b in zip(whole, parts, strict=True))


def test_all_queries_or_some_give_the_same_ranks(family: tuple[Program, list[Query]]) -> None:
    program, asked = family
    told = Settings("family:", score="weight", aggregate="max-then-next", height=2)
    closed = close_program(told, program)
    whole = list(rank_in_closure(told, program, closed, asked))
    assert list(rank_in_closure(told, program, closed, asked, done=10)) == whole[10:]
    assert list(rank_in_closure(told, program, closed, asked[20:30])) == whole[20:30]


@pytest.mark.parametrize(
    ("how", "mrr"),
    [
        ("max", (0.99994, 0.78124, 0.78112)),
        ("max-then-next", (0.99994, 0.78131, 0.78122)),
        ("noisy-or", (0.99994, 0.78131, 0.78122)),
    ],
)
def test_exact_values(data: Path, how: str, mrr: tuple[float, ...]) -> None:
    """The figures of the documentation, which the reference gives, too."""
    told = Settings(str(data / "family"), score="weight", aggregate=how, height=3)
    made = summarise(result.found.rank for result in evaluate(told).results).mrr
    kinds = ("optimistic", "realistic", "pessimistic")
    assert tuple(round(made[kind], 5) for kind in kinds) == mrr


# What the definition says, case by case.


def by_every_way(program: Program, asked: str, height: int, without: str | None = None) -> Any:
    """The weights of the rules that prove a fact, on which references and search agree."""
    goal = program.number(fact(asked))
    left = program.number(fact(without)) if without else None
    down = [w for _, w in Weigher(program, left).rules(goal, height)]
    up = weigh(program, height, left).rules.get(goal, {})
    assert [w for _, w in sorted(up.items())] == down
    assert weigh_all(program, [Lane(goal, 0, left)], height, 1, "evaluator") == [down]
    if left is None:
        closed = close_by_joins(program, height, backend="evaluator")
        weights = weigh_facts(program, closed, height, "evaluator")
        known = dict(zip(closed.by_triple(), weights.tolist(), strict=True))
        assert known.get(goal) == max(down, default=None)
    return down


def weighing(text: str, *weights: float) -> Program:
    return replace(write(text), weights=weights)


def test_a_fact_that_is_used_twice_counts_twice() -> None:
    program = weighing("e(a,a).\nq(X,Y) :- e(X,Y).\np(X,Z) :- q(X,Y), q(Y,Z).", 0.5, 0.8)
    assert by_every_way(program, "p(a,a)", 2) == [0.5 * 0.5 * 0.8]
    program = weighing("e(a,b).\nq(X,Y) :- e(X,Y).\np(X,Y) :- q(X,Y), q(X,Y).", 0.5, 0.8)
    assert by_every_way(program, "p(a,b)", 2) == [0.5 * 0.5 * 0.8]


def test_a_higher_proof_may_be_better() -> None:
    text = "e(a,b).\np(X,Y) :- e(X,Y).\np(X,Y) :- q(X,Y).\nq(X,Y) :- e(X,Y).\nr(X,Y) :- p(X,Y)."
    program = weighing(text, 0.1, 0.9, 0.9, 1.0)
    assert by_every_way(program, "r(a,b)", 2) == [0.1]
    assert by_every_way(program, "r(a,b)", 3) == [0.9 * 0.9]
    assert by_every_way(program, "p(a,b)", 3) == [0.1, 0.9 * 0.9]


def test_weights_are_multiplied_in_the_order_of_the_body() -> None:
    rules = "x(X,Y) :- e(X,Y).\ny(X,Y) :- e(X,Y).\nz(X,Y) :- e(X,Y)."
    weights = (0.1, 0.7, 0.3, 0.9)
    for body in (("x", "y", "z"), ("z", "y", "x"), ("y", "z", "x")):
        text = f"e(a,a).\n{rules}\np(X,Y) :- {body[0]}(X,Z), {body[1]}(Z,U), {body[2]}(U,Y)."
        one, two, three = (weights["xyz".index(name)] for name in body)
        made = by_every_way(weighing(text, *weights), "p(a,a)", 2)
        assert made == [one * two * three * 0.9]
    assert 0.1 * 0.7 * 0.3 != 0.3 * 0.7 * 0.1  # the orders differ in their last bit


def test_cycles_constants_and_rules_without_a_body() -> None:
    text = "p(a,b).\np(X,Y) :- p(Y,X).\nq(a,X) :- p(X,a), r(X,X).\nr(b,b) :- ."
    program = weighing(text, 0.5, 0.6, 0.25)
    assert by_every_way(program, "p(b,a)", 5) == [0.5]
    assert by_every_way(program, "r(b,b)", 1) == [0.25]
    assert by_every_way(program, "r(b,b)", 0) == []
    assert by_every_way(program, "q(a,b)", 2) == [0.5 * 0.25 * 0.6]
    assert by_every_way(program, "q(a,b)", 1) == []


def test_a_fact_of_train_weighs_one_and_without_itself_what_rules_give() -> None:
    program = weighing("p(a,b).\nq(a,b).\np(X,Y) :- q(X,Y).\nr(X,Y) :- p(X,Y).", 0.3, 0.5)
    assert weigh(program, 3).weights[program.number(fact("p(a,b)"))] == 1
    assert by_every_way(program, "r(a,b)", 3) == [0.5]
    assert by_every_way(program, "p(a,b)", 3, without="p(a,b)") == [0.3]
    assert by_every_way(program, "r(a,b)", 3, without="p(a,b)") == [0.3 * 0.5]


ENGINES = (
    {"backend": "evaluator"},
    {"backend": "python"},
    {"engine": "rollout", "search": "exhaustive", "batch": 4, "backend": "evaluator"},
    {"engine": "rollout", "search": "exhaustive", "backend": "python"},
)


@pytest.mark.parametrize("how", NAMES)
def test_a_query_of_train_is_before_what_is_derived(how: str) -> None:
    """Also before a candidate that a rule of weight 1 proves, or that more rules prove."""
    program = weighing("p(a,b).\nq(a,c).\np(X,Y) :- q(X,Y).\np(Y,X) :- q(X,Z), q(Y,X).", 1.0, 1.0)
    query = Query((0, 0, 1), "tail", frozenset({0, 1, 2}), frozenset({1}))
    for engine in ENGINES:
        told = Settings("family:", score="weight", aggregate=how, height=2, **engine)
        assert found(program, [query], told) == [(Rank(0, 0, 2), 1.0)]


@pytest.mark.parametrize("how", NAMES)
def test_weights_too_small_for_a_float_are_proofs_all_the_same(how: str) -> None:
    """0 is a weight; what has no proof is worse."""
    text = "e(a,b).\ne(a,c).\nq(X,Y) :- e(X,Y).\np(X,Y) :- q(X,Y).\np(X,c) :- e(X,d).\np(a,d) :- ."
    program = weighing(text, 1e-200, 1e-200, 0.5, 1e-310)
    query = Query(program.number(fact("p(a,b)")), "tail", frozenset(range(4)), frozenset({1}))
    expected = {"count": Rank(0, 2, 3)}.get(how)
    for engine in ENGINES:
        told = Settings("family:", score="weight", aggregate=how, height=2, **engine)
        ((rank, score),) = found(program, [query], told)
        assert score == (1.0 if how == "count" else 0.0)
        # c as good as b; d by a weight below the smallest normal one; a has no proof. One less
        # 1e-310 is 1 in floats: by noisy-or all of them tie at 0
        assert rank == (expected or Rank(how != "noisy-or", 1 + (how == "noisy-or"), 3))


def test_noisy_or_saturates_at_one() -> None:
    """Floats below 1 end at 2**-53 from it: what is nearer ties, as the definition has it."""
    assert aggregate([1 - 2**-30] * 2, "noisy-or") == 1.0
    assert aggregate([1 - 2**-20] * 2, "noisy-or") < 1.0


def test_ties_of_the_maximum_are_broken_by_the_next_and_fewer_are_worse() -> None:
    made = [aggregate(w, "max-then-next") for w in ([0.9, 0.2], [0.3, 0.9], [0.9], [0.8, 0.8])]
    assert sorted(range(4), key=lambda i: made[i], reverse=True) == [1, 0, 2, 3]
    assert set(AGGREGATES) == set(NAMES)


def test_no_rules_no_candidates_no_facts() -> None:
    none = Program(("p",), ("a", "b"), (), ())
    query = Query((0, 0, 1), "tail", frozenset(), frozenset({1}))
    for program in (none, replace(none, facts=((0, 0, 0),))):
        for engine in ENGINES:
            told = Settings("family:", score="weight", height=2, **engine)
            assert found(program, [query], told) == [(Rank(0, 0, 0), None)]


# Weights as they are read.


@pytest.mark.parametrize(
    ("weight", "said"),
    [("0", "0 or less"), ("-0.5", "0 or less"), ("87.5", "percentages"), ("1.0001", "above 1")],
)
def test_what_is_no_confidence_is_refused_with_its_line(weight: str, said: str) -> None:
    rules, _ = parse_rules(f"a:1:p(x,y) -> q(x,y)\nb:{weight}:p(x,y) -> r(x,y)", "rules.txt")
    with pytest.raises(InputError, match="no confidence") as raised:
        check_weights(rules)
    assert "rules.txt:2" in str(raised.value)
    assert said in str(raised.value)


def test_one_and_the_smallest_float_are_confidences() -> None:
    rules, _ = parse_rules("a:1:p(x,y) -> q(x,y)\nb:5e-324:p(x,y) -> r(x,y)", "rules.txt")
    assert check_weights(rules) == []


def test_a_rule_without_a_weight_weighs_one() -> None:
    rules, _ = parse_rules("q(X,Y) :- p(X,Y).", "rules.txt")
    assert rules[0].weight == 1
    (notice,) = check_weights(rules)
    assert "every rule weighs 1" in str(notice)


def test_a_rule_that_stands_twice_counts_once_with_its_first_weight() -> None:
    """The names of its variables make no other rule of it."""
    from tenfold.apps.prover.input.dataset import build

    text = "a:0.5:p(x,y) -> q(x,y)\nb:0.9:p(u,v) -> q(u,v)\nc:0.9:p(x,y) -> q(y,x)"
    rules, _ = parse_rules(text, "rules.txt")
    notices = [str(notice) for notice in check_weights(rules)]
    assert len(notices) == 1
    assert "first weight 0.5" in notices[0]
    assert "rules.txt:2" in notices[0]
    data = build("d", [fact("p(a,b)")], [], [fact("q(a,b)")], rules)
    assert program_of(data).weights == (0.5, 0.9)


def test_weights_go_with_their_clauses() -> None:
    program = Program(("p",), ("a",), (), (Clause((0, 0, 0), ()),))
    assert program.weighed == [(program.clauses[0], 1.0)]
    with pytest.raises(ValueError, match="argument"):
        _ = replace(program, weights=(0.5, 0.5)).weighed


def test_every_weight_that_is_finite_is_folded_in_rule_order() -> None:
    weights = [0.1, 0.2, 0.3]
    assert aggregate(weights, "product") == 0.1 * 0.2 * 0.3
    assert aggregate(weights, "noisy-or") == 1 - (1 - 0.1) * (1 - 0.2) * (1 - 0.3)
    assert aggregate(weights[::-1], "product") != aggregate(weights, "product")
    assert math.isclose(aggregate([0.5] * 3, "noisy-or"), 0.875)  # type: ignore[arg-type]
