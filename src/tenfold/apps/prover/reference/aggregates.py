"""Aggregates: the weights of the rules that prove a candidate made into one score.

Weights come in the order of the rules, and are folded in that order in float64. Greater is better.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

Score = float | tuple[float, ...]


def aggregate(weights: Sequence[float], how: str) -> Score:
    """The score of a candidate that these rules prove, at least one.

    >>> [aggregate([0.5, 0.75], how) for how in AGGREGATES]
    [0.75, 0.875, 0.375, 2.0, (0.75, 0.5)]
    """
    return AGGREGATES[how](weights)


def _noisy_or(weights: Sequence[float]) -> float:
    """One minus the chance that no rule is right, if each is by itself."""
    wrong = 1.0
    for weight in weights:
        wrong *= 1 - weight
    return 1 - wrong


def _product(weights: Sequence[float]) -> float:
    made = 1.0
    for weight in weights:
        made *= weight
    return made


def _sorted(weights: Sequence[float]) -> tuple[float, ...]:
    """Compared one by one: ties of the maximum are broken by the next. Fewer are worse."""
    return tuple(sorted(weights, reverse=True))


AGGREGATES: dict[str, Callable[[Sequence[float]], Score]] = {
    "max": max,
    "noisy-or": _noisy_or,
    "product": _product,
    "count": lambda weights: float(len(weights)),
    "max-then-next": _sorted,
}
