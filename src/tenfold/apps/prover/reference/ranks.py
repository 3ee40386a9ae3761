"""Rank reference: the ranks of queries by their closure, in plain Python."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from itertools import repeat
from typing import Any

from tenfold.apps.prover.errors import ScoreError
from tenfold.apps.prover.input.program import Triple
from tenfold.apps.prover.input.queries import Query
from tenfold.apps.prover.report.ranks import Rank


def rank_by_height(asked: Iterable[Query], heights: Mapping[Triple, int]) -> list[Rank]:
    """The rank of each query where a lower proof is better and no proof is worst."""
    return rank_by_value(asked, {fact: -height for fact, height in heights.items()})


def rank_by_value(
    asked: Iterable[Query],
    values: Mapping[Triple, Any],
    orders: Iterable[Sequence[int]] | None = None,
) -> list[Rank]:
    """The rank of each query where a greater value is better and none is worst.

    Where there are orders, one for each query, ties are broken by them: above 0 for a constant that
    is better than the query's own, below 0 for one that is worse.
    """
    rows: dict[tuple[str, int, int], dict[int, Any]] = {}
    for (p, s, o), value in values.items():
        rows.setdefault(("head", p, o), {})[s] = value
        rows.setdefault(("tail", p, s), {})[o] = value
    result = []
    for query, order in zip(asked, repeat(None) if orders is None else orders, strict=False):
        row = rows.get((query.mode, query.fact[0], query.kept), {})
        members = [c for c in row if c in query.pool and c not in query.known]
        count = len(query.pool) - len(query.pool & query.known)
        mine = row.get(query.own)
        if mine is None:
            better, ties = len(members), count - len(members)
        else:
            better = sum(row[c] > mine for c in members)
            ties = sum(row[c] == mine for c in members)
        if order is not None:
            tied = [c for c in query.pool - query.known if row.get(c) == mine]
            better += sum(order[c] > 0 for c in tied)
            ties = sum(order[c] == 0 for c in tied)
        result.append(Rank(better, ties, count))
    return result


def rank_by_score(
    proved: bool, score: float, others_proved: Sequence[bool], others: Sequence[float]
) -> Rank:
    """The rank of a query by (proved, score): any proof is better than none.

    >>> rank_by_score(True, -9.0, [False, True], [0.0, -9.0])
    Rank(better=0, ties=1, candidates=2)
    """
    pairs = list(zip(others_proved, others, strict=True))
    return rank_by_key((proved, score), pairs, [0] * len(pairs))


def rank_by_key(
    mine: tuple[bool, Any], others: Sequence[tuple[bool, Any]], orders: Sequence[int]
) -> Rank:
    """The rank of a query by (proved, score); orders break ties, above 0 for what is better.

    >>> rank_by_key((True, (0.9,)), [(True, (0.9, 0.1)), (True, (0.9,)), (False, 0)], [0, -1, 1])
    Rank(better=1, ties=0, candidates=3)
    """
    counts = Counter(zip(others, orders, strict=True))  # most have few different scores
    for _, value in (mine, *(key for key, _ in counts)):
        if isinstance(value, float) and math.isnan(value):
            raise ScoreError("a score is not a number", fix="look at the weights of the policy")
    better = ties = 0
    for (key, order), count in counts.items():
        if key == mine and order == 0:
            ties += count
        elif key > mine or (key == mine and order > 0):
            better += count
    return Rank(better, ties, len(others))
