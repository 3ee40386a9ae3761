"""Resolution: one step of proof search, for many states at once, as one pure function.

A state is a list of goals, padded to `A`, with its count: a state without goals is proved, and is
not padding. A goal is predicate, two terms, and the height left; terms below 0 are variables,
-1, -2, … in order of appearance. Successors come from facts in their order, then from rules in
theirs, just as the top-down reference gives them.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

import tenfold as tn
from tenfold.apps.prover.backend import padded
from tenfold.apps.prover.closure.joins import Ints, Packing
from tenfold.apps.prover.columns import END, Traced
from tenfold.apps.prover.input.program import Clause, Program

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


class States(NamedTuple):
    """States, one a row."""

    goals: Traced  # [rows, A, 4] i32
    count: Traced  # [rows]


class Matches(NamedTuple):
    """What the first goal of each state matches."""

    first: Traced  # the first matching fact in the index
    skip: Traced  # where the fact that is not to be used stands there, or beyond all
    facts: Traced  # how many facts match
    which: Traced  # [rows, each + 1]: the first, second, … clause that unifies
    rules: Traced  # how many clauses unify and may be used
    cut: Traced  # whether a clause unifies and no height is left for it


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
    return Base(
        index, packing.bits, packing.reverse, starts, heads, bodies, np.arange(padded(most, 4))
    )


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


def match(states: States, without: Traced, base: Base) -> Matches:
    """What each state's first goal matches; `without` is the key of a fact not to use, or -1."""
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
    clause = np.minimum(base.starts[p][:, None] + base.each, base.heads.shape[0] - 1)
    there = base.each < (base.starts[p + 1] - base.starts[p])[:, None]
    head = base.heads[clause]
    # apart from the state's variables: those go down from -1, a clause's lie below all of them
    apart = np.where(head < 0, head - states.goals.shape[1] * 2, head)
    fits = unify(s[:, None], o[:, None], apart[:, :, 0], apart[:, :, 1])[0] & there & live[:, None]
    used = fits & (left > 0)[:, None]
    # how many fit up to each; the n-th that fits goes to place n, those that do not to one beyond
    ranks = np.cumsum(used, axis=1, dtype=np.int32)
    rows = tn.arange(used.shape[0])[:, None]
    which = tn.zeros((used.shape[0], used.shape[1] + 1), np.int32)
    which[rows, np.where(used, ranks - 1, used.shape[1])] = clause.astype(np.int32)
    return Matches(
        first,
        skip,
        np.where(live, last - first - excluded, 0),
        which,
        ranks[:, -1].astype(np.int64),
        (fits & (left <= 0)[:, None]).any(axis=1),
    )


def nth_clause(matches: Matches, row: Traced, k: Traced) -> Traced:
    """The clause of the k-th successor of a row's state; some clause if a fact makes it."""
    return matches.which[row, np.maximum(k - matches.facts[row], 0)]


class Binding(NamedTuple):
    """Two bindings of a variable to a term, one after the other: the most general unifier of two
    pairs of terms. A binding of a term to itself does nothing."""

    one: Traced
    to_one: Traced
    two: Traced
    to_two: Traced

    def __call__(self, term: Traced) -> Traced:
        term = np.where(term == self.one, self.to_one, term)
        return np.where(term == self.two, self.to_two, term)


def unify(s: Traced, o: Traced, x: Traced, y: Traced) -> tuple[Traced, Binding]:
    """Whether (s, o) and (x, y) unify, and how.

    >>> ok, binding = unify(np.array([-1]), np.array([-1]), np.array([4]), np.array([-9]))
    >>> ok, binding(np.array([-9])), binding(np.array([-1]))
    (array([ True]), array([4]), array([4]))
    """
    one, to_one, fit = _bind(s, x)
    second, other = np.where(o == one, to_one, o), np.where(y == one, to_one, y)
    two, to_two, fits = _bind(second, other)
    return fit & fits, Binding(one, to_one, two, to_two)


def _bind(a: Traced, b: Traced) -> tuple[Traced, Traced, Traced]:
    """The variable bound, what to, and whether a and b unify; b's variable is bound first."""
    return np.where(b < 0, b, a), np.where(b < 0, a, b), (a == b) | (a < 0) | (b < 0)


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
