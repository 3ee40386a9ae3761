"""Bootstrap: intervals of the figures, by drawing the queries anew.

What is drawn, with replacement, are the facts of the test: the rankings of one fact, by head and
by tail, belong together. The interval is that between two percentiles of the figures of all draws.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from tenfold.apps.prover.input.program import Triple
from tenfold.apps.prover.report.ranks import KINDS, LEVELS, Rank

Floats = np.ndarray[Any, np.dtype[np.float64]]
Interval = tuple[float, float] | None


def intervals(
    ranked: Sequence[tuple[Triple, Rank]], resamples: int, seed: int, confidence: float
) -> dict[str, Any]:
    """The interval of each figure, by kind; None where a figure has no mean.

    >>> made = intervals([((0, 0, 1), Rank(0, 0, 9)), ((0, 1, 2), Rank(1, 0, 9))], 99, 0, 0.9)
    >>> made["mrr"]["realistic"]
    (0.5, 1.0)
    """
    facts = {fact: i for i, fact in enumerate(dict.fromkeys(fact for fact, _ in ranked))}
    which = np.array([facts[fact] for fact, _ in ranked], np.int64)
    ranks = [rank for _, rank in ranked]
    columns: dict[tuple[str, ...], list[float]] = {("count",): [1.0] * len(ranks)}
    columns["chance",] = [rank.chance for rank in ranks]
    for kind in KINDS:
        columns["mrr", kind] = [rank.reciprocal(kind) for rank in ranks]
        columns["mean_rank", kind] = [rank.place(kind) for rank in ranks]
        for level in LEVELS:
            columns[f"hits@{level}", kind] = [rank.hit(level, kind) for rank in ranks]
    sums = np.zeros((len(facts), len(columns)))
    np.add.at(sums, which, np.array(list(columns.values())).T)
    drawn = _drawn(sums, resamples, seed)
    by_name = dict(zip(columns, drawn.T, strict=True))
    count = by_name.pop(("count",))
    with np.errstate(divide="ignore", invalid="ignore"):
        means = {name: column / count for name, column in by_name.items()}
        chance = means.pop(("chance",))
        for kind in KINDS:
            place = means["mean_rank", kind]
            means["adjusted_mean_rank", kind] = place / chance
            means["adjusted_mean_rank_index", kind] = 1 - (place - 1) / (chance - 1)
    made: dict[str, Any] = {}
    for (figure, kind), values in means.items():
        made.setdefault(figure, {})[kind] = _between(values, confidence)
    return made


def _drawn(sums: Floats, resamples: int, seed: int) -> Floats:
    """The sums of as many rows as there are, drawn anew, for each resample."""
    draw = np.random.default_rng(seed)
    made = np.zeros((resamples, sums.shape[1]))
    for i in range(resamples if len(sums) else 0):
        times = np.bincount(draw.integers(0, len(sums), len(sums)), minlength=len(sums))
        made[i] = times @ sums
    return made


def _between(values: Floats, confidence: float) -> Interval:
    if not np.isfinite(values).all():
        return None
    low, high = np.quantile(values, [(1 - confidence) / 2, (1 + confidence) / 2])
    return float(low), float(high)
