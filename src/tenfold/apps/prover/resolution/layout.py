"""Layout: which places of one flat row the things of many states take, a state's one after
another."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

import tenfold as tn
from tenfold.apps.prover.columns import Traced, spread


class Layout(NamedTuple):
    """What stands in each place."""

    row: Traced  # [places]: the state
    k: Traced  # [places]: which of the state's things
    valid: Traced  # [places]: whether anything stands there
    starts: Traced  # [states]: where each state's begin


def laid_out(counts: Traced, places: int) -> Layout:
    """So many things of each state, in so many places; there is room for all.

    >>> made = tn.jit(laid_out, static="places")(np.array([2, 0, 1], np.int32), places=4)
    >>> made.row.tolist(), made.k.tolist(), made.valid.tolist()
    ([0, 0, 2, 2], [0, 1, 0, 0], [True, True, True, False])
    """
    ends = np.cumsum(counts, dtype=np.int32)
    starts = ends - counts
    place = tn.arange(places, dtype=np.int32)
    row = spread(ends, places)
    valid = place < ends[-1]
    k = np.where(valid, place - np.take(starts, row, mode="clip"), 0)
    return Layout(row, k, valid, starts)


def fitting(wants: tuple[Traced, ...], rooms: tuple[int, ...]) -> Traced:
    """Which lanes go on, if each wants so much of several rooms: as many as fit, in order; then, of
    the others, more that fit into what is left.

    >>> tn.jit(lambda a: fitting((a,), (5,)))(np.array([3, 4, 1, 2])).tolist()
    [True, False, True, False]
    """
    first = _upto(wants, rooms)
    left = [
        room - np.where(first, want, 0).sum(dtype=np.int32)
        for want, room in zip(wants, rooms, strict=True)
    ]
    small = ~first
    for want, room in zip(wants, left, strict=True):
        small = small & (want <= room)
    return first | (small & _upto(tuple(np.where(small, want, 0) for want in wants), left))


def _upto(wants: tuple[Traced, ...], rooms: Sequence[Traced | int]) -> Traced:
    """Which lanes fit together with all before them."""
    fit = tn.ones(wants[0].shape, bool)
    for want, room in zip(wants, rooms, strict=True):
        fit = fit & (np.cumsum(want, dtype=np.int32) <= room)
    return fit
