"""Rank reference: the ranks of queries by their closure, in plain Python."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence

from tenfold.apps.prover.errors import ScoreError
from tenfold.apps.prover.input.program import Triple
from tenfold.apps.prover.input.queries import Query
from tenfold.apps.prover.report.ranks import Rank


def rank_by_height(asked: Iterable[Query], heights: Mapping[Triple, int]) -> list[Rank]:
    """The rank of each query where a lower proof is better and no proof is worst."""
    rows: dict[tuple[str, int, int], dict[int, int]] = {}
    for (p, s, o), height in heights.items():
        rows.setdefault(("head", p, o), {})[s] = height
        rows.setdefault(("tail", p, s), {})[o] = height
    result = []
    for query in asked:
        row = rows.get((query.mode, query.fact[0], query.kept), {})
        members = [c for c in row if c in query.pool and c not in query.known]
        count = len(query.pool) - len(query.pool & query.known)
        mine = row.get(query.own)
        if mine is None:
            better, ties = len(members), count - len(members)
        else:
            better = sum(row[c] < mine for c in members)
            ties = sum(row[c] == mine for c in members)
        result.append(Rank(better, ties, count))
    return result


def rank_by_score(
    proved: bool, score: float, others_proved: Sequence[bool], others: Sequence[float]
) -> Rank:
    """The rank of a query by (proved, score): any proof is better than none.

    >>> rank_by_score(True, -9.0, [False, True], [0.0, -9.0])
    Rank(better=0, ties=1, candidates=2)
    """
    for value in (score, *others):
        if math.isnan(value):
            raise ScoreError("a score is not a number", fix="look at the weights of the policy")
    mine = (proved, score)
    pairs = list(zip(others_proved, others, strict=True))
    better = sum(pair > mine for pair in pairs)
    return Rank(better, sum(pair == mine for pair in pairs), len(pairs))
