"""Sums in the order of `kernel/analyse/reduction`, by NumPy: what compiled code must give."""

from __future__ import annotations

from typing import Any

import numpy as np

from tenfold.kernel import Fold
from tenfold.kernel.analyse.reduction import Tree

Array = np.ndarray[Any, Any]


def interpreted(values: Array, tree: Tree, join: np.ufunc = np.add) -> Array:
    """The sum over the first axis, or the product, one step at a time."""
    if isinstance(tree, int):
        return np.asarray(values[tree])
    left, right = (interpreted(values, part, join) for part in tree)
    return np.asarray(join(left, right))


def leaves(tree: Tree) -> list[int]:
    return [tree] if isinstance(tree, int) else [n for part in tree for n in leaves(part)]


def depth(tree: Tree) -> int:
    """The most additions that a term goes through."""
    return 0 if isinstance(tree, int) else 1 + max(depth(part) for part in tree)


def down(rounds: Array, fold: Fold) -> Array:
    """The sums over the first axis, of which each element is a round."""
    return balanced([_serial(rounds[n : n + fold.run]) for n in range(0, len(rounds), fold.run)])


def across_lanes(values: Array, fold: Fold) -> Array:
    """The sum over the last axis, where rounds lie along it."""
    starts = range(0, values.shape[-1], fold.stretch)
    return balanced([halved(by_lanes(values[..., n : n + fold.stretch], fold)) for n in starts])


def by_lanes(values: Array, fold: Fold) -> Array:
    """The sums of each lane over the last axis, of one chunk at most; 0 where there is none."""
    extent, size = values.shape[-1], fold.round * fold.run
    runs = -(-extent // size)
    padded = np.zeros((*values.shape[:-1], runs * size), values.dtype)
    padded[..., :extent] = values
    each = padded.reshape(*values.shape[:-1], runs, fold.run, fold.copies, fold.lanes)
    copies = _serial(np.moveaxis(each, -3, 0))
    return balanced(list(np.moveaxis(balanced(list(np.moveaxis(copies, -2, 0))), -2, 0)))


def halved(lanes: Array) -> Array:
    while (half := lanes.shape[-1] // 2) > 0:
        lanes = lanes[..., :half] + lanes[..., half:]
    return lanes[..., 0]


def balanced(parts: list[Array]) -> Array:
    while len(parts) > 1:
        pairs = [parts[n : n + 2] for n in range(0, len(parts), 2)]
        parts = [p[0] + p[1] if len(p) == 2 else p[0] for p in pairs]
    return parts[0]


def _serial(parts: Array) -> Array:
    total = parts[0] + np.zeros((), parts.dtype)
    for one in parts[1:]:
        total = total + one
    return np.asarray(total)


def additions(extent: int, fold: Fold) -> int:
    """The most additions that one of so many elements goes through, where a round is one."""
    return min(extent, fold.run) - 1 + _levels(-(-extent // fold.run))


def additions_across(extent: int, fold: Fold) -> int:
    """The same where rounds lie along the axis."""
    first = min(extent, fold.stretch)  # the elements of the first chunk
    rounds = -(-first // fold.round)
    copies = min(fold.copies, -(-first // fold.lanes))
    counts = (copies, -(-rounds // fold.run), min(first, fold.lanes), -(-extent // fold.stretch))
    return min(rounds, fold.run) - 1 + sum(_levels(count) for count in counts)


def _levels(count: int) -> int:
    return (count - 1).bit_length()
