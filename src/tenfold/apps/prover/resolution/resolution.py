"""Resolution: one step of proof search, for many states at once, as one pure function.

A state is a list of goals, padded to `A`, with its count: a state without goals is proved, and is
not padding. A goal is predicate, two terms, and the height left; terms below 0 are variables,
-1, -2, … in order of appearance. Successors come from facts in their order, then from rules in
theirs, just as the top-down reference gives them.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

import tenfold as tn
from tenfold.apps.prover.backend import padded
from tenfold.apps.prover.closure.joins import Ints, Packing
from tenfold.apps.prover.columns import END, Traced
from tenfold.apps.prover.input.program import Clause, Program
from tenfold.apps.prover.resolution.trying import Heads, Tried, general, tried
from tenfold.apps.prover.resolution.unify import Binding, unify
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


class Successors(NamedTuple):
    """The states one step on, and what did not fit."""

    states: States
    lowest: Traced  # the least height left to any goal that came up in the step
    atoms: Traced  # how many goals there are, which may be more than A
    variables: Traced  # how many variables there are


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


def build(
    states: States, matches: Matches, row: Traced, k: Traced, without: Traced, base: Base
) -> Successors:
    """The k-th successor of a row's state, for each pair of `row` and `k`."""
    size = states.goals.shape[1]
    by_fact = k < matches.facts[row]
    place = matches.first[row] + k
    place = np.where(place >= matches.skip[row], place + 1, place)
    key = base.keys[np.where(by_fact, np.minimum(place, base.keys.shape[0] - 1), 0)]
    mask = (1 << base.bits) - 1
    high, low = (key >> base.bits) & mask, key & mask
    turned = (key >= base.reverse) & (key < 2 * base.reverse)
    s, o, left = (column[row] for column in _goal(states)[1:])
    clause = nth_clause(matches, row, k)
    shift = 2 * size  # a state of A goals has at most 2 A variables
    head = base.heads[clause]
    head = np.where(head < 0, head - shift, head)
    x = np.where(by_fact, np.where(turned, low, high), head[:, 0])
    y = np.where(by_fact, np.where(turned, high, low), head[:, 1])
    _, binding = unify(s, o, x, y)
    body = base.bodies[clause]
    terms = np.where(body[:, :, 1:] < 0, body[:, :, 1:] - shift, body[:, :, 1:])
    depth = np.broadcast_to((left - 1)[:, None, None], (*body.shape[:2], 1))
    new = np.concatenate([body[:, :, :1], terms, depth], axis=2)
    goals = np.concatenate([new, states.goals[row][:, 1:].astype(np.int64)], axis=1)
    used = _used(body, by_fact, states.count[row], size)
    lowest = np.where(by_fact, left, left - 1)
    shaped = Binding(*(part[:, None, None] for part in binding))
    goals = np.concatenate([goals[:, :, :1], shaped(goals[:, :, 1:3]), goals[:, :, 3:]], axis=2)
    return settle(goals, used, without[row], base, size)._replace(lowest=lowest)


def _used(body: Traced, by_fact: Traced, count: Traced, size: int) -> Traced:
    """Which places hold a goal: those of the body, then the goals after the first."""
    from_body = (body[:, :, 0] >= 0) & ~by_fact[:, None]
    rest = tn.arange(1, size) < count[:, None] if size > 1 else tn.zeros((count.shape[0], 0), bool)
    return np.concatenate([from_body, rest], axis=1)


def settle(goals: Traced, used: Traced, without: Traced, base: Base, size: int) -> Successors:
    """States in their one form: no known facts, no goal twice, no gaps, variables in order.

    Of a goal that stands twice the first place is kept, with the lesser height.
    """
    p, s, o, left = (goals[:, :, i] for i in range(4))
    key = _key(base, np.maximum(p, 0), np.maximum(s, 0), np.maximum(o, 0))
    near = np.minimum(np.searchsorted(base.keys, key), base.keys.shape[0] - 1)
    ground = used & (s >= 0) & (o >= 0)
    known = ground & (base.keys[near] == key) & (key != without[:, None])
    used = used & ~known
    same = (p[:, :, None] == p[:, None]) & (s[:, :, None] == s[:, None])
    same = same & (o[:, :, None] == o[:, None]) & used[:, :, None] & used[:, None]
    width = goals.shape[1]
    places = tn.arange(width)
    before = places[:, None] > places  # [i, j]: j stands before i
    left = np.where(same, left[:, None], np.iinfo(np.int64).max).min(axis=2)
    keep = used & ~(same & before).any(axis=2)
    target = (keep[:, None] & before).sum(axis=2)
    # for each place the goal that goes there: a sum over one goal, rather than a scatter
    goes = keep[:, None] & (target[:, None] == tn.arange(size)[:, None])
    source = np.where(goes, places, 0).sum(axis=2)
    rows = tn.arange(goals.shape[0])[:, None]
    packed = np.stack([column[rows, source] for column in (p, s, o, left)], axis=2)
    count = keep.sum(axis=1)
    named, variables = _rename(packed, np.minimum(count, size))
    return Successors(States(named.astype(np.int32), count), count, count, variables)


def _rename(goals: Traced, count: Traced) -> tuple[Traced, Traced]:
    """The goals with their variables numbered in order of appearance, and how many there are."""
    rows, size = goals.shape[:2]
    terms = goals[:, :, 1:3].reshape(rows, 2 * size)
    places = tn.arange(2 * size)
    variable = (terms < 0) & (places < 2 * count[:, None])
    same = (terms[:, :, None] == terms[:, None]) & variable[:, :, None] & variable[:, None]
    first = np.where(same, places, 2 * size).min(axis=2)  # where the variable comes up
    new = variable & (first == places)
    number = (new[:, None] & (places < first[:, :, None])).sum(axis=2)
    terms = np.where(variable, -1 - number, terms)
    pairs = terms.reshape(rows, size, 2)
    used = (tn.arange(size) < count[:, None])[:, :, None]
    named = np.concatenate([goals[:, :, :1], pairs, goals[:, :, 3:]], axis=2)
    blank = np.concatenate(
        [tn.full((1, 1, 1), PAD, np.int64), tn.zeros((1, 1, 3), np.int64)], axis=2
    )
    return np.where(used, named, blank), new.sum(axis=1)


def begin(triples: Traced, height: Traced, without: Traced, base: Base, size: int) -> Successors:
    """The states that ask triples, each with a height to prove it in."""
    depth = np.zeros_like(triples[:, :1]) + height
    goals = np.concatenate([triples, depth], axis=1)[:, None]
    used = tn.ones((triples.shape[0], 1), bool)
    return settle(goals, used, without, base, size)
