"""Sums as a kernel's fold says, one addition at a time by NumPy: what compiled code must give."""

from __future__ import annotations

from typing import Any

import numpy as np

from tenfold.kernel import Fold

Array = np.ndarray[Any, Any]


def rounds_folded(rounds: Array, fold: Fold) -> Array:
    """The sums over the first axis, of which each element is a round."""
    waiting: dict[int, Array] = {}
    total = np.zeros(rounds.shape[1:], rounds.dtype)
    for number, start in enumerate(range(0, len(rounds), fold.chunk)):
        part, place = _block(rounds[start : start + fold.chunk], fold, fold.levels - 1), 0
        while number >> place & 1:
            part = waiting.pop(place) + part
            place += 1
        waiting[place] = part
    for n, place in enumerate(sorted(waiting)):
        total = waiting[place] + total if n else waiting[place]
    return np.asarray(total + np.zeros((), rounds.dtype))


def across_lanes(values: Array, fold: Fold) -> Array:
    """The sum of a vector that lies across lanes."""
    copies = min(fold.copies, max(1, -(-values.size // fold.lanes)))
    reach = fold.lanes * copies
    whole = values.size // reach * reach
    held = rounds_folded(values[:whole].reshape(-1, reach), fold)
    rest = np.zeros(reach, values.dtype)
    rest[: values.size - whole] = values[whole:]
    held = (held + rest).reshape(copies, fold.lanes)
    while len(held) > 1:
        pairs = [held[n : n + 2] for n in range(0, len(held), 2)]
        held = np.stack([p[0] + p[1] if len(p) == 2 else p[0] for p in pairs])
    lanes = held[0]
    while lanes.size > 1:
        lanes = lanes[: lanes.size // 2] + lanes[lanes.size // 2 :]
    return np.asarray(lanes[0])


def _block(rounds: Array, fold: Fold, level: int) -> Array:
    if level:
        size = fold.block**level
        parts = range(0, len(rounds), size)
        rounds = np.stack([_block(rounds[n : n + size], fold, level - 1) for n in parts])
    total = np.zeros(rounds.shape[1:], rounds.dtype)
    for one in rounds:
        total = total + one
    return total


def additions(rounds: int, fold: Fold) -> int:
    """The most additions that a round goes through in a sum of so many."""

    def block(count: int, level: int) -> int:
        size = fold.block**level
        if not level:
            return count - 1
        if count <= size:
            return block(count, level - 1)
        whole, left = divmod(count, size)
        depth = block(size, level - 1) + whole - 1
        return max(depth, block(left, level - 1)) + 1 if left else depth

    if rounds <= fold.chunk:
        return block(rounds, fold.levels - 1) if rounds else 0
    return block(fold.chunk, fold.levels - 1) + (fold.chunks(rounds) - 1).bit_length()


def additions_across(extent: int, fold: Fold) -> int:
    """The same of an element that lies across lanes."""
    copies = min(fold.copies, -(-extent // fold.lanes))
    whole, left = divmod(extent, fold.lanes * copies)
    tree = (copies - 1).bit_length() + (min(extent, fold.lanes) - 1).bit_length()
    return (additions(whole, fold) + (left > 0) if whole else 0) + tree
