"""Successors in PyTorch: what a first goal matches, patterns with holes, and what fills them."""

from __future__ import annotations

from collections.abc import Callable
from functools import reduce
from typing import Any

import torch

from tenfold.apps.prover.resolution.matching import FAR, Matches, Without
from tenfold.apps.prover.resolution.patterns import Indices, Patterns
from tenfold.apps.prover.resolution.successors import Filling, Successors
from tenfold.apps.prover.resolution.tables import (
    ANY,
    LOOP,
    OBJECT,
    SUBJECT,
    Lookup,
    Tables,
    range_key,
)
from tenfold.apps.prover.resolution.words import HEIGHT, Goals, joined, parted

A = Any
I64 = torch.int64
GOLDEN = -7046029254386353131  # 0x9E3779B97F4A7C15
FACTORS = (GOLDEN, -4417276706812531889)  # 0xC2B2AE3D27D4EB4F
MIXERS = (-4658895280553007687, -7723592293110705685)


def down(x: A, by: int) -> A:
    """A shift that brings zeros."""
    return (x >> by) & ((1 << (64 - by)) - 1)


def mix(x: A) -> A:
    x = (x ^ down(x, 30)) * MIXERS[0]
    x = (x ^ down(x, 27)) * MIXERS[1]
    return x ^ down(x, 31)


def take(column: A, at: A, axis: int = 0) -> A:
    return column.index_select(axis, at)


# What a first goal matches.


def bind(a: A, b: A) -> tuple[A, A, A]:
    free = b < 0
    return torch.where(free, b, a), torch.where(free, a, b), (a == b) | (a < 0) | free


def unify(s: A, o: A, x: A, y: A) -> tuple[A, Callable[[A], A]]:
    one, to_one, fit = bind(s, x)
    two, to_two, fits = bind(torch.where(o == one, to_one, o), torch.where(y == one, to_one, y))

    def binding(term: A) -> A:
        term = torch.where(term == one, to_one, term)
        return torch.where(term == two, to_two, term)

    return fit & fits, binding


def match(words: A, live: A, without: Without, t: Tables) -> Matches:
    p, s, o, left = parted(words[0], t.bits)
    # a lane that has no state yet has some goal all the same: indices are to lie within tables
    p, s, o = p.clamp(min=0), torch.where(live, s, 0), torch.where(live, o, 0)
    known, other = s >= 0, o >= 0
    kind = torch.where(s == o, LOOP, ANY)
    kind = torch.where(known, SUBJECT, torch.where(other, OBJECT, kind))
    term = torch.where(known, s, torch.where(other, o, 0))
    key = range_key(kind, p, term, t.predicates, t.bits)
    one, two = (down(key * factor, t.ranges.shift) for factor in FACTORS)
    at_one, at_two = take(t.ranges.keys[0], one) == key, take(t.ranges.keys[1], two) == key
    first, facts = (
        torch.where(at_one, take(v[0], one), torch.where(at_two, take(v[1], two), 0))
        for v in (t.firsts, t.counts)
    )
    skip = torch.where(kind == OBJECT, without.object, without.subject)
    skip = torch.where(kind == LOOP, without.loop, skip)
    skipped = (skip >= first) & (skip < first + facts)
    start = take(t.starts, p)
    each = t.each[:, None]
    clause = (start + each).clamp(max=t.heads.shape[1] - 1)
    there = each < take(t.starts, p + 1) - start
    fits = unify(s, o, t.heads[0][clause], t.heads[1][clause])[0]
    ranks = (fits & there & live & (left > 0)).cumsum(0)
    nth = (ranks[:, None] <= each).sum(0)
    return Matches(
        Goals(p, s, o, left),
        first,
        torch.where(skipped, skip, FAR),
        torch.where(live & ~(known & other), facts - skipped.long(), 0),
        (start + nth).clamp(max=t.heads.shape[1] - 1),
        ranks[-1],
    )


# What successors have in common.


def patterns(
    words: A, found: Matches, without: A, t: Tables, row: A, nth: A, names: int
) -> Patterns:
    by_fact = nth < 0
    clause = take(found.which.reshape(-1), nth.clamp(min=0) * words.shape[1] + row)
    _, s, o, left = (take(part, row) for part in found.goal)
    hole = t.constants
    x = torch.where(by_fact, torch.where(s < 0, hole, s), take(t.heads[0], clause))
    y = torch.where(o < 0, torch.where(o == s, hole, hole + 1), o)
    y = torch.where(by_fact, y, take(t.heads[1], clause))
    _, binding = unify(s, o, x, y)
    rest = take(words[1:], row, 1)
    parts = parted(rest, t.bits)
    body = take(t.bodies, clause, 2)
    there = torch.cat([(body[0] >= 0) & ~by_fact, rest != 0])
    before = [torch.cat([a, b]) for a, b in zip(body, parts, strict=False)]
    after = [binding(term) for term in before[1:]]
    # no clause is used without height left, yet every word is to be a goal
    height = torch.cat([(left - 1).clamp(min=0).expand(body[0].shape), parts.left])
    word = joined(Goals(before[0], after[0], after[1], height), t.bits)
    new = (torch.arange(word.shape[0]) < body.shape[1])[:, None]
    new = new | (after[0] != before[1]) | (after[1] != before[2])
    kept = once(word, there & ~(new & known(word, take(without, row), t)))
    word, variables = renamed(kept, t, names)
    p, s, o, _ = parted(word, t.bits)
    open_ = (word != 0) & ((s >= hole) | (o >= hole))
    closed = torch.where(open_, 0, word)
    used = closed != 0
    most = min(word.shape[0], t.open.shape[0] or word.shape[0])
    rank = open_.cumsum(0)
    chosen = open_[:, None] & (rank[:, None] == (torch.arange(most) + 1)[:, None])
    return Patterns(
        word,
        closed,
        torch.where(chosen, word[:, None], 0).sum(0),
        indices(used, p, s, o, t),
        torch.where(rank[-1] > most, FAR, used.sum(0)),
        hashed(closed).sum(0),
        variables,
        torch.where(by_fact, left, left - 1),
    )


def holds(found: Lookup, keys: A) -> A:
    one, two = (down(keys * factor, found.shift) for factor in FACTORS)
    return (found.keys[0][one] == keys) | (found.keys[1][two] == keys)


def known(word: A, without: A, t: Tables) -> A:
    _, s, o, _ = parted(word, t.bits)
    key = word >> HEIGHT
    ground = (s >= 0) & (o >= 0)
    return ground & holds(t.facts, torch.where(ground, key, 0)) & (key != without)


def once(word: A, used: A) -> A:
    at = torch.arange(word.shape[0])[:, None]
    key = torch.where(used, word >> HEIGHT, -1 - at)
    same = key[:, None] == key[None]
    again = (same & (at[:, None] < at)).any(0)
    # row by row, which is over ten times as fast as `amin`
    least = reduce(torch.minimum, torch.where(same, word[:, None], torch.iinfo(I64).max))
    return torch.where(used & ~again, least, 0)


def renamed(word: A, t: Tables, names: int) -> tuple[A, A]:
    """Where each variable first appears is kept in a table, by its old number: no loop over
    goals."""
    count, states = word.shape
    p, s, o, left = parted(word, t.bits)
    term = torch.stack([s, o], 1).reshape(2 * count, states)
    there = (term < 0) & (word != 0).repeat_interleave(2, 0)
    old = torch.where(there, -term, 0)
    at = torch.arange(2 * count)[:, None].expand(term.shape)
    table = torch.full((names + t.fresh.shape[0] + 1, states), 2 * count)
    first = table.scatter_reduce(0, old, at, "amin").gather(0, old)
    given = (there & (first == at)).cumsum(0)
    term = torch.where(there, -given.gather(0, first), term)
    s, o = term.reshape(count, 2, states).unbind(1)
    return torch.where(word != 0, joined(Goals(p, s, o, left), t.bits), 0), given[-1]


def hashed(word: A) -> A:
    return mix(word)  # of no goal it is 0


def indices(used: A, p: A, s: A, o: A, t: Tables) -> Indices:
    s, o = (torch.where(used, torch.where(v < 0, t.constants - 1 - v, v), 0) for v in (s, o))
    return Indices(torch.where(used, p, t.predicates), s, o)


# Successors: patterns with their holes filled.


def fillings(found: Matches, without: A, t: Tables, row: A, k: A, pattern: A) -> Filling:
    entry = take(found.first, row) + k
    entry = torch.where(entry >= take(found.skip, row), entry + 1, entry)
    # of a rule there is no entry, and it may lie beyond all
    entry = entry.clamp(max=len(t.subjects) - 1)
    return Filling(pattern, take(t.subjects, entry), take(t.objects, entry), take(without, row))


def full(words: A, filling: Filling, t: Tables) -> A:
    p, s, o, left = parted(words, t.bits)

    def term(v: A) -> A:
        second = torch.where(v == t.constants + 1, filling.object, v)
        return torch.where(v == t.constants, filling.subject, second)

    return torch.where(words != 0, joined(Goals(p, term(s), term(o), left), t.bits), 0)


def successors(made: Patterns, filling: Filling, t: Tables) -> Successors:
    goals = take(made.open, filling.pattern, 1)
    filled = full(goals, filling, t)
    word = once(filled, (goals != 0) & ~known(filled, filling.without, t))
    closed = take(made.closed, filling.pattern, 1)
    same = (closed >> HEIGHT)[:, None] == (word >> HEIGHT)[None]
    held = reduce(torch.maximum, torch.where(same, closed[:, None], 0))
    added = (word != 0) & (held == 0)
    lowered = (held != 0) & (word < held)
    change = torch.where(added | lowered, hashed(word), 0) - torch.where(lowered, hashed(held), 0)
    p, s, o, _ = parted(filled, t.bits)
    return Successors(
        filling,
        indices(added, p, s, o, t),
        take(made.counts, filling.pattern) + added.sum(0),
        take(made.variables, filling.pattern),
        take(made.hashes, filling.pattern) + change.sum(0),
        take(made.lowest, filling.pattern),
    )


def written(made: Patterns, filling: Filling, t: Tables) -> A:
    words = take(made.words, filling.pattern, 1)
    filled = full(words, filling, t)
    gone = (filled != words) & known(filled, filling.without, t)
    return once(filled, (words != 0) & ~gone)
