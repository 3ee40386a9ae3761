"""Seeds: the same run with several seeds, and the mean and deviation of its figures."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

FIGURES = ("mrr", "hits", "mean_rank", "adjusted_mean_rank", "adjusted_mean_rank_index", "auc_pr")


def over_seeds(seeds: Sequence[int], made: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """What the figures of several runs come to, by mode: the mean, the standard deviation (of a
    sample: by one less than the seeds), and each seed's own figures.

    >>> two = [{"both": {"mrr": {"realistic": x}}} for x in (0.25, 0.5, 0.75)]
    >>> over_seeds([0, 1, 2], two)["both"]["mrr"]
    {'realistic': {'mean': 0.5, 'deviation': 0.25, 'each': [0.25, 0.5, 0.75]}}
    """
    modes = made[0]
    return {
        "seeds": list(seeds),
        **{
            mode: {
                figure: _spread([one[mode][figure] for one in made])
                for figure in FIGURES
                if figure in modes[mode]
            }
            for mode in modes
        },
    }


def _spread(values: list[Any]) -> Any:
    if isinstance(values[0], dict):
        return {name: _spread([value[name] for value in values]) for name in values[0]}
    if any(value is None for value in values):
        return {"mean": None, "deviation": None, "each": values}
    mean = math.fsum(values) / len(values)
    off = math.fsum((value - mean) ** 2 for value in values)
    deviation = math.sqrt(off / (len(values) - 1)) if len(values) > 1 else None
    return {"mean": mean, "deviation": deviation, "each": values}
