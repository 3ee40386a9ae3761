"""Chains by matrices: the same table as by groundings one by one, to the last bit."""

from __future__ import annotations

from itertools import product
from unittest.mock import patch

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tenfold.apps.prover.closure.fixpoint import close_by_joins
from tenfold.apps.prover.closure.joins import Packing
from tenfold.apps.prover.closure.weights import chains
from tenfold.apps.prover.closure.weights.chains import Link, Matrices, chain_of, compose
from tenfold.apps.prover.closure.weights.fixpoint import weigh_facts
from tenfold.apps.prover.input.program import Clause, Program, Triple
from tenfold.apps.prover.reference.weighted_up import weigh

from .generated import CONFIDENCES


@pytest.mark.parametrize(("first", "second"), [*product([False, True], repeat=2)])
@pytest.mark.parametrize("swapped", [False, True])
def test_chains_in_every_direction(first: bool, second: bool, swapped: bool) -> None:
    one: Triple = (5, -3, -1) if first else (5, -1, -3)
    two: Triple = (6, -2, -3) if second else (6, -3, -2)
    body = (two, one) if swapped else (one, two)
    assert chain_of(Clause((0, -1, -2), body)) == (Link(5, first), Link(6, second))


@pytest.mark.parametrize(
    ("head", "body"),
    [
        ((0, -1, -2), ((1, -1, -2),)),  # one atom
        ((0, -1, -1), ((1, -1, -2), (1, -2, -1))),  # one end
        ((0, -1, 3), ((1, -1, -2), (1, -2, 3))),  # a constant for an end
        ((0, -1, -2), ((1, -1, 3), (1, 3, -2))),  # a constant between
        ((0, -1, -2), ((1, -1, -2), (1, -2, -1))),  # nothing between
        ((0, -1, -2), ((1, -1, -2), (1, -1, -2))),
        ((0, -1, -2), ((1, -1, -1), (1, -1, -2))),
        ((0, -1, -2), ((1, -1, -3), (1, -4, -2))),  # no link
        ((0, -1, -2), ((1, -1, -3), (1, -3, -3), (1, -3, -2))),
        ((0, -1, -2), ((1, -3, -3), (1, -1, -2))),
    ],
)
def test_other_rules_are_none(head: Triple, body: tuple[Triple, ...]) -> None:
    assert chain_of(Clause(head, body)) is None


@pytest.mark.parametrize("backend", ["compiled", "evaluator"])
def test_products_of_matrices(backend: str) -> None:
    draw = np.random.default_rng(0)
    one, two = draw.random((2, 3, 7, 7)) * (draw.random((2, 3, 7, 7)) < 0.4)
    made = compose.on(backend)(one, two)
    for i, x, y in product(range(3), range(7), range(7)):
        assert made[i, x, y] == max(one[i, x, z] * two[i, z, y] for z in range(7))


def dense(draw: st.DataObject, constants: int) -> Program:
    """A program of chains, most of its facts given."""
    triples = list(product(range(3), range(constants), range(constants)))
    facts = draw.draw(st.lists(st.sampled_from(triples), min_size=20, max_size=40, unique=True))
    rules = []
    for _ in range(draw.draw(st.integers(1, 6))):
        a, b, head = (draw.draw(st.integers(0, 2)) for _ in range(3))
        one = (a, -1, -3) if draw.draw(st.booleans()) else (a, -3, -1)
        two = (b, -3, -2) if draw.draw(st.booleans()) else (b, -2, -3)
        rules.append(Clause((head, -1, -2), (one, two)))
    clauses = tuple(dict.fromkeys(rules))
    weights = tuple(draw.draw(st.sampled_from(CONFIDENCES)) for _ in clauses)
    names = tuple(f"c{i}" for i in range(constants))
    return Program(("p", "q", "r"), names, tuple(sorted(facts)), clauses, weights)


@settings(max_examples=15, deadline=None)
@given(st.data(), st.integers(1, 3))
def test_matrices_and_groundings_give_the_same_bits(data: st.DataObject, height: int) -> None:
    program = dense(data, 5)
    closed = close_by_joins(program, height, facts=128, backend="evaluator")
    expected = weigh(program, height).weights
    for cost in (0, 1 << 20):  # never by matrices; always, where there is a grounding at all
        with patch.object(chains, "GROUNDING", cost):
            made = weigh_facts(program, closed, height, "evaluator")
        assert dict(zip(closed.by_triple(), made.tolist(), strict=True)) == expected


def test_bodies_are_chosen_by_counts() -> None:
    """Ten facts into a constant and ten out of it: a hundred groundings."""
    constants = 21
    program = Program(("p", "q"), tuple(f"c{i:02}" for i in range(constants)), (), ())
    packing = Packing.of(program)
    keys = np.sort(packing.keys([(0, i, 20) for i in range(10)] + [(1, 20, i) for i in range(10)]))
    matrices = Matrices.of(keys, np.ones(20), packing, 2, constants)
    assert matrices is not None
    body = (Link(0, False), Link(1, False))
    turned = (Link(0, True), Link(1, True))  # nothing in common: no grounding
    for cost, paid in ((constants**3 // 100, set()), (constants**3 // 100 + 1, {body})):
        with patch.object(chains, "GROUNDING", cost):
            assert matrices.pay([body, turned]) == paid


def test_small_weights_and_many_constants_have_no_matrices() -> None:
    program = Program(("p",), ("a", "b"), (), ())
    packing = Packing.of(program)
    keys = packing.keys([(0, 0, 1)])
    assert Matrices.of(keys, np.array([1e-149]), packing, 1, 2) is not None
    assert Matrices.of(keys, np.array([1e-151]), packing, 1, 2) is None
    assert Matrices.of(keys, np.array([0.0]), packing, 1, 2) is None
    assert Matrices.of(keys, np.array([1.0]), packing, 1, 1 << 13) is None


@pytest.mark.parametrize("weight", [1e-100, 1e-200])
def test_products_below_all_floats(weight: float) -> None:
    """Weights that are soon too small for matrices, and then for floats, on either way."""
    everyone = range(4)
    facts = tuple((0, s, o) for s, o in product(everyone, everyone) if s != o)
    step = Clause((1, -1, -2), ((0, -1, -3), (0, -3, -2)))
    twice = Clause((2, -1, -2), ((1, -1, -3), (1, -3, -2)))
    again = Clause((2, -1, -2), ((2, -1, -3), (2, -3, -2)))
    names = ("a", "b", "c", "d")
    program = Program(("p", "q", "r"), names, facts, (step, twice, again), (weight, 0.5, 0.5))
    closed = close_by_joins(program, 4, backend="evaluator")
    with patch.object(chains, "GROUNDING", 1 << 20):
        made = weigh_facts(program, closed, 4, "evaluator")
    assert dict(zip(closed.by_triple(), made.tolist(), strict=True)) == weigh(program, 4).weights
    assert made.min() >= 0
