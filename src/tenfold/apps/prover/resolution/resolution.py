"""Resolution: what the first goals of many states match, with facts and clauses as sorted tables.

A goal is predicate, two terms, and the height left; terms below 0 are variables. Facts match in
their order, then clauses in theirs, just as in the top-down reference.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from tenfold.apps.prover.backend import padded
from tenfold.apps.prover.closure.joins import Ints, Packing
from tenfold.apps.prover.columns import END, Traced
from tenfold.apps.prover.input.program import Clause, Program
from tenfold.apps.prover.resolution.trying import Heads, Tried, general, tried
from tenfold.apps.prover.resolution.words import Goals

PAD = -1  # the predicate of a place that holds no goal


class Base(NamedTuple):
    """The facts and rules of a program as tables."""

    keys: Ints  # of facts by subject, by object, and those of facts p(a,a); sorted
    bits: np.int64
    reverse: np.int64
    starts: Ints  # [predicates + 1]: the clauses with head predicate p are those from starts[p]
    heads: Ints  # [clauses, 2]
    bodies: Ints  # [clauses, longest body, 3]; predicate PAD where a body is shorter
    each: Ints  # 0, 1, 2, … up to the most clauses of one predicate
    general: Any  # [predicates]: whether the head of a clause is p(X,Y)


class States(NamedTuple):
    """States, one a row."""

    goals: Traced  # [rows, A, 4] i32
    count: Traced  # [rows]


class Matches(NamedTuple):
    """What the first goal of each state matches."""

    first: Traced  # the first matching fact in the index
    skip: Traced  # where the fact that is not to be used stands there, or beyond all
    facts: Traced  # how many facts match
    clauses: Tried  # the clauses that fit
    rules: Traced  # how many of them there are
    cut: Traced  # whether a clause fits and no height is left for it


def base_of(program: Program) -> Base:
    """The tables of a program."""
    packing = Packing.of(program)
    facts = np.array(program.facts, np.int64).reshape(-1, 3)
    keys = packing.keys(facts)
    loops = keys[facts[:, 1] == facts[:, 2]]
    index = np.sort(
        np.concatenate(
            [keys, packing.reverse + packing.keys(facts[:, [0, 2, 1]]), 2 * packing.reverse + loops]
        )
    )
    index = np.concatenate([index, np.full(padded(len(index), 64) - len(index), END)])
    clauses = sorted(program.clauses, key=lambda clause: clause.head[0])
    firsts = [clause.head[0] for clause in clauses]
    count = padded(len(program.predicates), 4)
    starts = np.searchsorted(firsts, np.arange(count + 1)).astype(np.int64)
    heads, bodies = _tables(clauses)
    most = int(np.diff(starts).max())
    some = np.array(general([clause.head for clause in clauses], count), bool)
    each = np.arange(padded(most, 4))
    return Base(index, packing.bits, packing.reverse, starts, heads, bodies, each, some)


def _tables(clauses: list[Clause]) -> tuple[Ints, Ints]:
    longest = max((len(clause.body) for clause in clauses), default=0)
    heads = np.zeros((padded(len(clauses), 16), 2), np.int64)
    bodies = np.full((padded(len(clauses), 16), max(1, longest), 3), PAD, np.int64)
    for i, clause in enumerate(clauses):
        heads[i] = clause.head[1:]
        if clause.body:
            bodies[i, : len(clause.body)] = clause.body
    return heads, bodies


def _key(base: Base, p: Traced, s: Traced, o: Traced) -> Traced:
    return (p << 2 * base.bits) | (s << base.bits) | o


def _goal(states: States) -> tuple[Traced, Traced, Traced, Traced]:
    """The first goals, as wide integers; those of proved states are some goal all the same."""
    goal = states.goals[:, 0].astype(np.int64)
    return np.maximum(goal[:, 0], 0), goal[:, 1], goal[:, 2], goal[:, 3]


def match(states: States, without: Traced, base: Base, tries: int) -> Matches:
    """What each state's first goal matches; `without` is the key of a fact not to use, or -1.

    There is room to try so many clauses, of all states together.
    """
    p, s, o, left = _goal(states)
    live = states.count > 0
    known, other, loop = s >= 0, o >= 0, (s == o) & (s < 0)
    root = p << 2 * base.bits
    start = np.where(known, s << base.bits, 0) | np.where(other & known, o, 0)
    reversed_ = base.reverse + (root | (np.maximum(o, 0) << base.bits))
    low = np.where(known | ~other, np.where(loop, 2 * base.reverse + root, root | start), reversed_)
    one = 1 << base.bits
    width = np.where(known & other, 1, np.where(known | other, one, one * one))
    first, last = np.searchsorted(base.keys, low), np.searchsorted(base.keys, low + width)
    mask = one - 1
    a, b = (without >> base.bits) & mask, without & mask
    q = without >> 2 * base.bits
    section = np.where(
        known | ~other,
        np.where(loop, np.where(a == b, 2 * base.reverse + without, -1), without),
        base.reverse + _key(base, q, b, a),
    )
    section = np.where(without >= 0, section, -1)
    place = np.searchsorted(base.keys, section)
    inside = (place >= first) & (place < last)
    at = np.minimum(place, base.keys.shape[0] - 1)
    excluded = inside & (base.keys[at] == section)
    skip = np.where(excluded, place, base.keys.shape[0])
    # apart from the state's variables: those go down from -1, a clause's lie below all of them
    apart = np.where(base.heads < 0, base.heads - states.goals.shape[1] * 2, base.heads)
    heads = Heads(base.starts, base.general, apart[:, 0], apart[:, 1])
    clauses = tried(Goals(p, s, o, left), live, heads, tries)
    facts = np.where(live, last - first - excluded, 0)
    return Matches(first, skip, facts, clauses, clauses.count, clauses.cut)


def nth_clause(matches: Matches, row: Traced, k: Traced) -> Traced:
    """The clause of the k-th successor of a row's state; some clause if a fact makes it."""
    return matches.clauses.nth(row, k - matches.facts[row])
