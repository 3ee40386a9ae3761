"""Trying: which clauses the first goals of many states unify with.

A state tries the clauses of its goal's predicate, one state's after another's in one flat row: so
what it takes follows how many clauses there are to try, and not how many some predicate has.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

import tenfold as tn
from tenfold.apps.prover.columns import Traced, spread
from tenfold.apps.prover.resolution.unify import unify
from tenfold.apps.prover.resolution.words import Goals


class Heads(NamedTuple):
    """The clauses by the predicates of their heads."""

    starts: Traced  # [predicates + 1]: those with head predicate p are those from starts[p]
    general: Traced  # [predicates]: whether the head of one of them is p(X,Y), which any goal fits
    x: Traced  # [clauses]: the terms of a head, its variables apart from those of all states
    y: Traced


class Tried(NamedTuple):
    """The clauses that fit each goal."""

    which: Traced  # [tries + 1]: those that may be used, one state's after another's
    begins: Traced  # where each state's begin
    count: Traced  # how many they are
    cut: Traced  # whether one fits and no height is left for it
    whole: Traced  # whether there was room to try all; with those of all states before it

    def nth(self, row: Traced, n: Traced) -> Traced:
        """The nth of a row's state; some clause if it has fewer."""
        at = self.begins[row] + np.maximum(n, 0)
        return np.take(self.which, np.minimum(at, self.which.shape[0] - 1), mode="clip")


def general(heads: list[tuple[int, int, int]], count: int) -> list[bool]:
    """For each of so many predicates whether one of the heads is p(X,Y).

    >>> general([(0, -1, -1), (1, -1, -2)], 3)
    [False, True, False]
    """
    found = {p for p, x, y in heads if x < 0 and y < 0 and x != y}
    return [p in found for p in range(count)]


def tried(goal: Goals, live: Traced, heads: Heads, tries: int) -> Tried:
    """The clauses that fit the goals of states that are live, with room for so many tries: at
    least as many as one predicate has."""
    p, s, o, left = goal
    begin = heads.starts[p].astype(np.int64)
    # where no height is left, it only matters whether there is a clause that fits
    some = heads.general[p]
    count = heads.starts[p + 1].astype(np.int64) - begin
    wants = np.where(live & ((left > 0) | ~some), count, 0)
    ends = np.cumsum(wants)
    whole = ends <= tries
    room = np.where(whole, ends, 0).max()
    slot = tn.arange(tries)
    row = spread(np.minimum(ends, room), tries)
    inside = slot < room
    clause = np.where(inside, begin[row] + slot - (ends[row] - wants[row]), 0)
    fits = inside & unify(s[row], o[row], heads.x[clause], heads.y[clause])[0]
    used = fits & (left[row] > 0)
    upto = np.concatenate([tn.zeros(1, np.int64), np.cumsum(used, dtype=np.int64)])
    which = tn.zeros(tries + 1, np.int32)
    which[np.where(used, upto[1:] - 1, tries)] = clause.astype(np.int32)
    rows = ends.shape[0]
    blocked = tn.zeros(rows + 1, bool)
    blocked[np.where(fits & ~used, row, rows)] = True
    last = np.minimum(ends, tries)
    begins = upto[last - np.where(whole, wants, 0)]
    return Tried(
        which,
        begins,
        np.where(whole, upto[last] - begins, 0),
        live & (left <= 0) & (some | blocked[:rows]),
        whole,
    )
