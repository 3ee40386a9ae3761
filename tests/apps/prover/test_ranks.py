"""Ranks and what they come to, against another way to compute them."""

from __future__ import annotations

import math
from itertools import pairwise, permutations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tenfold.apps.prover.errors import ScoreError
from tenfold.apps.prover.input.dataset import build
from tenfold.apps.prover.input.program import program_of
from tenfold.apps.prover.input.queries import Query, queries
from tenfold.apps.prover.input.terms import Fact
from tenfold.apps.prover.reference.ranks import rank_by_height, rank_by_score
from tenfold.apps.prover.report.ranks import KINDS, LEVELS, Rank, summarise


@given(st.lists(st.integers(0, 2), max_size=5), st.integers(0, 2))
def test_every_kind_against_all_orders_of_the_ties(others: list[int], mine: int) -> None:
    """Sort in every order that the scores allow, and look where the query lands."""
    entries = [(mine, "mine"), *((score, str(i)) for i, score in enumerate(others))]
    places = [
        1 + [name for _, name in order].index("mine")
        for order in permutations(entries)
        if all(a[0] >= b[0] for a, b in pairwise(order))
    ]
    rank = rank_by_score(True, float(mine), [True] * len(others), [float(s) for s in others])
    assert rank.optimistic == min(places)
    assert rank.pessimistic == max(places)
    assert rank.realistic == (min(places) + max(places)) / 2
    expected = sum(1 / p for p in places) / len(places)
    assert math.isclose(rank.reciprocal("expected"), expected)
    for level in LEVELS:
        share = sum(p <= level for p in places) / len(places)
        assert math.isclose(rank.hit(level, "expected"), share)


def test_all_tied() -> None:
    rank = rank_by_score(False, 0.0, [False] * 9, [0.0] * 9)
    assert (rank.optimistic, rank.realistic, rank.pessimistic) == (1, 5.5, 10)


def test_any_proof_is_better_than_none_whatever_the_scores() -> None:
    assert rank_by_score(True, -1e9, [False], [1e9]).better == 0
    assert rank_by_score(False, 1e9, [True], [-1e9]).better == 1


def test_zero_candidates_rank_first() -> None:
    rank = rank_by_score(False, 0.0, [], [])
    assert rank == Rank(0, 0, 0)
    assert all(rank.reciprocal(kind) == 1 for kind in KINDS)


@pytest.mark.parametrize("scores", [(math.nan, [0.0]), (0.0, [math.nan])])
def test_a_score_that_is_no_number_is_an_error(scores: tuple[float, list[float]]) -> None:
    with pytest.raises(ScoreError):
        rank_by_score(True, scores[0], [True], scores[1])


def test_no_queries_have_no_mean() -> None:
    summary = summarise([])
    assert summary.queries == 0
    assert all(math.isnan(value) for value in summary.mrr.values())


@given(st.lists(st.tuples(st.integers(0, 50), st.integers(0, 50)), min_size=1))
def test_the_order_of_queries_changes_no_bit(pairs: list[tuple[int, int]]) -> None:
    ranks = [Rank(b, t, b + t) for b, t in pairs]
    assert summarise(ranks) == summarise(ranks[::-1])
    mrr = summarise(ranks).mrr
    assert mrr["pessimistic"] <= mrr["realistic"] <= mrr["expected"] <= mrr["optimistic"] + 1e-12


def test_ranks_by_height() -> None:
    query = Query((0, 0, 1), "tail", frozenset(range(8)), frozenset({1, 2}))
    heights = {(0, 0, 1): 2, (0, 0, 2): 0, (0, 0, 3): 1, (0, 0, 4): 2, (0, 0, 5): 3, (0, 1, 6): 0}
    # 2 is known elsewhere and filtered, 6 is proved of another subject; 0, 6 and 7 have no proof
    assert rank_by_height([query], heights) == [Rank(1, 1, 6)]


def test_a_query_without_proof_ties_with_all_that_have_none() -> None:
    query = Query((0, 0, 1), "tail", frozenset(range(6)), frozenset({1}))
    assert rank_by_height([query], {(0, 0, 2): 5}) == [Rank(1, 4, 5)]


def test_filtered_corruptions_known_only_in_valid_or_test() -> None:
    train = [Fact("p", "a", "b")]
    valid, test = [Fact("p", "a", "c")], [Fact("p", "a", "d"), Fact("p", "a", "e")]
    made = build("d", train, valid, test, ())
    known = program_of(made)
    ranks = rank_by_height(queries(made, known, ["tail"]), {known.number(f): 0 for f in valid})
    assert ranks == [Rank(0, 1, 1), Rank(0, 1, 1)]  # only p(a,a) is left to rank against
