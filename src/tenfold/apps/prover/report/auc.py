"""AUC-PR: the area under the precision-recall curve of all queries and candidates together.

Queries are the positives, their candidates the negatives, and all scores are compared with each
other, as in the literature on Countries. The area is the average precision: at each score, from
the best down, the precision of all that is as good or better, weighed by the share of the queries
that have this score. Equal scores are one step.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from tenfold.apps.prover.result import Tally


def auc_pr(tallies: Iterable[Tally | None]) -> float | None:
    """The area for some queries; None without queries, or where scores were not kept.

    >>> auc_pr([([1, 0.9, 0.0], [([1, 0.8, 0.0], 2)]), ([1, 0.7, 0.0], [])])
    0.75
    """
    counts: dict[Any, tuple[Any, int, int]] = {}  # by key: positives and negatives
    total = 0
    for one in tallies:
        if one is None:
            return None
        own, others = one
        total += 1
        for key, positives, negatives in ((own, 1, 0), *((k, 0, n) for k, n in others)):
            _, yes, no = counts.get(repr(key), (key, 0, 0))
            counts[repr(key)] = (key, yes + positives, no + negatives)
    if not total:
        return None
    hits = misses = 0
    parts = []
    for _, yes, no in sorted(counts.values(), key=lambda one: one[0], reverse=True):
        hits, misses = hits + yes, misses + no
        parts.append(yes / total * (hits / (hits + misses)))
    return math.fsum(parts)
