"""Successors: one step of proof search for many states, each successor in a slot of its own.

The slots of a step are flat: a state has as many as it has successors, one state's after
another's. A slot knows its pattern and what fills the holes. Most goals have no hole, and are
dealt with where the pattern is made; here it is those that have one. Only the states that are
chosen are ever written out.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from tenfold.apps.prover.columns import Traced
from tenfold.apps.prover.resolution.matching import Matches
from tenfold.apps.prover.resolution.patterns import Indices, Patterns, hashed, indices, known, once
from tenfold.apps.prover.resolution.tables import Tables, take
from tenfold.apps.prover.resolution.words import HEIGHT, Goals, joined, parted


class Filling(NamedTuple):
    """Which pattern each successor has, what fills its holes, and a fact that is not to be used."""

    pattern: Traced
    subject: Traced
    object: Traced
    without: Traced  # that fact's key, -1 if all may be used


class Successors(NamedTuple):
    """Successor states, one a slot."""

    filling: Filling
    parts: Indices  # [most, slots]: goals beside the pattern's closed ones
    counts: Traced  # how many goals
    variables: Traced  # how many variables
    hashes: Traced  # equal for equal states
    lowest: Traced  # the least height left to any goal that came up in the step


def fillings(
    found: Matches, without: Traced, tables: Tables, row: Traced, k: Traced, pattern: Traced
) -> Filling:
    """What makes the k-th successor of a row's state, of this pattern; `without` has the key of a
    fact that is not to be used, for each state."""
    entry = take(found.first, row) + k
    entry = np.where(entry >= take(found.skip, row), entry + 1, entry)
    subject, object_ = take(tables.subjects, entry), take(tables.objects, entry)
    return Filling(pattern, subject, object_, take(without, row))


def successors(patterns: Patterns, filling: Filling, tables: Tables) -> Successors:
    """The successors of these patterns, filled so."""
    goals = np.take(patterns.open, filling.pattern, axis=1, mode="clip")
    full = _full(goals, filling, tables)
    word = once(full, (goals != 0) & ~known(full, filling.without, tables))
    # one that stands among the closed goals is there already, if perhaps with more height left
    closed = np.take(patterns.closed, filling.pattern, axis=1, mode="clip")
    same = (closed >> HEIGHT)[None] == (word >> HEIGHT)[:, None]
    held = np.where(same, closed[None], 0).max(axis=1)
    added = (word != 0) & (held == 0)
    lowered = (held != 0) & (word < held)
    change = np.where(added | lowered, hashed(word), 0) - np.where(lowered, hashed(held), 0)
    p, s, o, _ = parted(full, tables.bits)
    return Successors(
        filling,
        indices(added, p, s, o, tables),
        take(patterns.counts, filling.pattern) + added.sum(axis=0),
        take(patterns.variables, filling.pattern),
        take(patterns.hashes, filling.pattern) + change.sum(axis=0, dtype=np.uint64),
        take(patterns.lowest, filling.pattern),
    )


def written(patterns: Patterns, filling: Filling, tables: Tables) -> Traced:
    """The words of successors [goals, successors], with gaps."""
    words = np.take(patterns.words, filling.pattern, axis=1, mode="clip")
    full = _full(words, filling, tables)
    gone = (full != words) & known(full, filling.without, tables)
    return once(full, (words != 0) & ~gone)


def _full(words: Traced, filling: Filling, tables: Tables) -> Traced:
    """Goals with their holes filled."""
    p, s, o, left = parted(words, tables.bits)
    first, second = tables.constants, tables.constants + 1

    def term(t: Traced) -> Traced:
        return np.where(t == first, filling.subject, np.where(t == second, filling.object, t))

    return np.where(words != 0, joined(Goals(p, term(s), term(o), left), tables.bits), 0)
