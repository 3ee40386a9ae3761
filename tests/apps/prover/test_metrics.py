"""Metrics beside MRR and Hits, against their definitions written out."""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tenfold.apps.prover.input.queries import Query
from tenfold.apps.prover.report.auc import auc_pr
from tenfold.apps.prover.report.bootstrap import intervals
from tenfold.apps.prover.report.ranks import KINDS, LEVELS, Rank, summarise
from tenfold.apps.prover.report.seeds import over_seeds
from tenfold.apps.prover.result import Finding, Tally, tally

RANKS = st.lists(
    st.tuples(st.integers(0, 9), st.integers(0, 9), st.integers(0, 9)).map(
        lambda t: Rank(t[0], t[1], sum(t))
    ),
    min_size=1,
    max_size=8,
)


def test_by_hand() -> None:
    """Ranks 1 of 5, 3 of 5 and 2 of 9: their mean is 2, by chance it were (3 + 3 + 5) / 3."""
    made = summarise([Rank(0, 0, 4), Rank(2, 0, 4), Rank(1, 0, 8)])
    assert made.mean_rank["realistic"] == 2
    assert math.isclose(made.chance, 11 / 3)
    assert math.isclose(made.adjusted_mean_rank["realistic"], 2 / (11 / 3))
    assert math.isclose(made.adjusted_mean_rank_index["realistic"], 1 - 1 / (8 / 3))  # type: ignore[arg-type]


@settings(deadline=None)
@given(RANKS)
def test_adjusted_ranks_as_pykeen_defines_them(ranks: list[Rank]) -> None:
    """The mean rank by chance is that of a query that stands at each place as often."""
    made = summarise(ranks)
    places = [statistics.mean(range(1, rank.candidates + 2)) for rank in ranks]
    chance = statistics.mean(places)
    assert math.isclose(made.chance, chance)
    for kind in KINDS:
        given = [
            {
                "optimistic": r.better + 1,
                "pessimistic": r.better + r.ties + 1,
            }.get(kind, (2 * r.better + r.ties + 2) / 2)
            for r in ranks
        ]
        mean = sum(given) / len(given)
        assert math.isclose(made.mean_rank[kind], mean)
        assert math.isclose(made.adjusted_mean_rank[kind], mean / chance)
        index = made.adjusted_mean_rank_index[kind]
        if chance == 1:
            assert index is None
        else:
            assert index is not None
            assert math.isclose(index, 1 - (mean - 1) / (chance - 1), abs_tol=1e-12)


def test_the_index_is_one_at_best_and_none_at_chance() -> None:
    first, all_tied = [Rank(0, 0, 9)] * 3, [Rank(0, 9, 9)] * 3
    assert summarise(first).adjusted_mean_rank_index["realistic"] == 1
    assert summarise(all_tied).adjusted_mean_rank_index["realistic"] == 0
    assert summarise([Rank(9, 0, 9)]).adjusted_mean_rank_index["realistic"] == -1


def average_precision(labels: Sequence[int], scores: Sequence[float]) -> float:
    """As scikit-learn has it: over thresholds, the rise in recall times the precision."""
    total, before, area = sum(labels), 0.0, 0.0
    for threshold in sorted(set(scores), reverse=True):
        chosen = [label for label, score in zip(labels, scores, strict=True) if score >= threshold]
        recall = sum(chosen) / total
        area += (recall - before) * (sum(chosen) / len(chosen))
        before = recall
    return area


@settings(max_examples=60, deadline=None)
@given(
    st.lists(
        st.tuples(st.integers(0, 4), st.lists(st.integers(0, 4), max_size=5)),
        min_size=1,
        max_size=5,
    )
)
def test_the_area_against_all_thresholds(made: list[tuple[int, list[int]]]) -> None:
    tallies: list[Tally] = []
    labels, scores = [], []
    for own, others in made:
        tallies.append(([1, own, 0.0], [([1, other, 0.0], 1) for other in others]))
        labels += [1, *[0] * len(others)]
        scores += [own, *others]
    found = auc_pr(tallies)
    assert found is not None
    assert math.isclose(found, average_precision(labels, scores))


def test_what_is_proved_is_before_what_is_not_and_embeddings_break_ties() -> None:
    query = Query((0, 0, 1), "tail", frozenset(range(5)), frozenset({1, 4}))
    own, others = tally(query, {1: (0, (0.5, 0.25)), 2: (0, (0.5,))}, [0.0, 1.0, 2.0, 3.0, 9.0])
    assert own == [1, [0, [0.5, 0.25]], 1.0]
    assert others == [([0, 0.0, 0.0], 1), ([1, [0, [0.5]], 2.0], 1), ([0, 0.0, 3.0], 1)]
    assert auc_pr([(own, others)]) == 1
    assert auc_pr([(others[1][0], [(own, 1)])]) == 0.5


def test_tallies_come_back_from_a_journal() -> None:
    import json
    from collections import Counter

    query = Query((0, 0, 1), "tail", frozenset(range(3)), frozenset({1}))
    made = tally(query, {1: (0.1, 0.3), 0: (0.3,)}, None)
    one = Finding(Rank(0, 0, 2), 1, Counter(), weight=0.1, tally=made)
    assert Finding.of_list(json.loads(json.dumps(one.as_list()))) == one


def test_no_queries_and_scores_that_were_not_kept_have_no_area() -> None:
    assert auc_pr([]) is None
    assert auc_pr([None]) is None


# Intervals.


def ranked(ranks: Sequence[Rank]) -> list[tuple[tuple[int, int, int], Rank]]:
    """Two rankings for each fact."""
    return [((0, i // 2, 0), rank) for i, rank in enumerate(ranks)]


def test_intervals_against_drawing_by_hand() -> None:
    draw = np.random.default_rng(5)
    ranks = [Rank(int(b), int(t), 20) for b, t in draw.integers(0, 6, (24, 2))]
    made = intervals(ranked(ranks), 200, seed=3, confidence=0.9)
    again = np.random.default_rng(3)
    mrr, index, hits = [], [], []
    for _ in range(200):
        facts = again.integers(0, 12, 12)
        chosen = [rank for fact in facts for rank in ranks[2 * fact : 2 * fact + 2]]
        summary = summarise(chosen)
        mrr.append(summary.mrr["expected"])
        index.append(summary.adjusted_mean_rank_index["realistic"])
        hits.append(summary.hits[3]["pessimistic"])
    for values, found in (
        (mrr, made["mrr"]["expected"]),
        (index, made["adjusted_mean_rank_index"]["realistic"]),
        (hits, made["hits@3"]["pessimistic"]),
    ):
        assert np.allclose(found, np.percentile(values, [5, 95]))
    assert made == intervals(ranked(ranks), 200, seed=3, confidence=0.9)
    assert made != intervals(ranked(ranks), 200, seed=4, confidence=0.9)


def test_intervals_hold_the_figure_and_grow_with_confidence() -> None:
    draw = np.random.default_rng(1)
    ranks = [Rank(int(b), 0, 50) for b in draw.integers(0, 50, 60)]
    figure = summarise(ranks).mrr["realistic"]
    narrow, wide = (
        intervals(ranked(ranks), 400, 0, level)["mrr"]["realistic"] for level in (0.5, 0.99)
    )
    assert wide[0] < narrow[0] < figure < narrow[1] < wide[1]


def test_one_query_has_an_interval_of_no_width_and_none_has_none() -> None:
    made = intervals(ranked([Rank(1, 0, 9)]), 10, 0, 0.95)
    assert made["mrr"]["realistic"] == (0.5, 0.5)
    assert set(made) == {
        "mrr",
        "mean_rank",
        *(f"hits@{level}" for level in LEVELS),
        "adjusted_mean_rank",
        "adjusted_mean_rank_index",
    }
    assert intervals([], 10, 0, 0.95)["mrr"]["realistic"] is None
    alone = intervals(ranked([Rank(0, 0, 0)]), 10, 0, 0.95)
    assert alone["adjusted_mean_rank_index"]["realistic"] is None


# Seeds.


@settings(deadline=None)
@given(st.lists(st.floats(0, 1), min_size=2, max_size=6))
def test_means_and_deviations_over_seeds(values: list[float]) -> None:
    runs = [{"both": {"mrr": {"realistic": value}, "auc_pr": None}} for value in values]
    made = over_seeds(range(len(values)), runs)
    found = made["both"]["mrr"]["realistic"]
    assert math.isclose(found["mean"], statistics.mean(values), abs_tol=1e-15)
    assert math.isclose(found["deviation"], statistics.stdev(values), abs_tol=1e-12)
    assert found["each"] == values
    assert made["seeds"] == list(range(len(values)))
    assert made["both"]["auc_pr"] == {"mean": None, "deviation": None, "each": [None] * len(values)}


def test_one_seed_has_no_deviation() -> None:
    made = over_seeds([7], [{"both": {"mrr": {"realistic": 0.5}}}])
    assert made["both"]["mrr"]["realistic"] == {"mean": 0.5, "deviation": None, "each": [0.5]}


@pytest.mark.parametrize("kind", KINDS)
def test_places_lie_within_their_bounds(kind: str) -> None:
    rank = Rank(2, 4, 9)
    assert rank.optimistic <= rank.place(kind) <= rank.pessimistic
