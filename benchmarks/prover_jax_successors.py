"""Successors in JAX: what a first goal matches, patterns with holes, and what fills them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax.numpy as jnp
import numpy as np
from jax import lax

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
    places,
    range_key,
)
from tenfold.apps.prover.resolution.words import HEIGHT, Goals, joined, parted
from tenfold.apps.prover.rollout.draws import mix

A = Any


def take(column: A, at: A, axis: int = 0) -> A:
    return jnp.take(column, at, axis=axis, mode="clip")


# What a first goal matches.


def bind(a: A, b: A) -> tuple[A, A, A]:
    return jnp.where(b < 0, b, a), jnp.where(b < 0, a, b), (a == b) | (a < 0) | (b < 0)


def unify(s: A, o: A, x: A, y: A) -> tuple[A, Callable[[A], A]]:
    one, to_one, fit = bind(s, x)
    two, to_two, fits = bind(jnp.where(o == one, to_one, o), jnp.where(y == one, to_one, y))

    def binding(term: A) -> A:
        term = jnp.where(term == one, to_one, term)
        return jnp.where(term == two, to_two, term)

    return fit & fits, binding


def match(words: A, live: A, without: Without, t: Tables) -> Matches:
    p, s, o, left = parted(words[0], t.bits)
    p = jnp.maximum(p, 0)
    known, other = s >= 0, o >= 0
    kind = jnp.where(known, SUBJECT, jnp.where(other, OBJECT, jnp.where(s == o, LOOP, ANY)))
    term = jnp.where(known, s, jnp.where(other, o, 0))
    key = range_key(kind, p, term, t.predicates, t.bits)
    one, two = places(key, t.ranges.shift)
    at_one, at_two = take(t.ranges.keys[0], one) == key, take(t.ranges.keys[1], two) == key
    first, facts = (
        jnp.where(at_one, take(v[0], one), jnp.where(at_two, take(v[1], two), 0))
        for v in (t.firsts, t.counts)
    )
    skip = jnp.where(kind == OBJECT, without.object, without.subject)
    skip = jnp.where(kind == LOOP, without.loop, skip)
    skipped = (skip >= first) & (skip < first + facts)
    start = take(t.starts, p)
    each = t.each[:, None]
    clause = jnp.minimum(start + each, t.heads.shape[1] - 1)
    there = each < take(t.starts, p + 1) - start
    fits = unify(s, o, take(t.heads[0], clause), take(t.heads[1], clause))[0]
    ranks = jnp.cumsum(fits & there & live & (left > 0), axis=0, dtype=jnp.int32)
    nth = (ranks[None] <= t.each[:, None, None]).sum(axis=1, dtype=jnp.int32)
    return Matches(
        Goals(p, s, o, left),
        first,
        jnp.where(skipped, skip, FAR),
        jnp.where(live & ~(known & other), facts - skipped, 0).astype(jnp.int32),
        jnp.minimum(start + nth, t.heads.shape[1] - 1).astype(jnp.int32),
        ranks[-1],
    )


# What successors have in common.


def patterns(
    words: A, found: Matches, without: A, t: Tables, row: A, nth: A, names: int
) -> Patterns:
    by_fact = nth < 0
    clause = take(found.which.reshape(-1), jnp.maximum(nth, 0) * words.shape[1] + row)
    s, o = (take(term.astype(jnp.int32), row) for term in found.goal[1:3])
    left = take(found.goal.left, row)
    hole = t.constants.astype(jnp.int32)
    x = jnp.where(by_fact, jnp.where(s < 0, hole, s), take(t.heads[0], clause))
    y = jnp.where(o < 0, jnp.where(o == s, hole, hole + 1), o)
    y = jnp.where(by_fact, y, take(t.heads[1], clause))
    _, binding = unify(s, o, x, y)
    rest = take(words[1:], row, axis=1)
    parts = parted(rest, t.bits)
    body = take(t.bodies, clause, axis=2)
    there = jnp.concatenate([(body[0] >= 0) & ~by_fact, rest != 0])
    before = [jnp.concatenate([a.astype(jnp.int64), b]) for a, b in zip(body, parts, strict=False)]
    after = [binding(term) for term in before[1:]]
    height = jnp.concatenate([jnp.broadcast_to(left - 1, body[0].shape), parts.left])
    word = joined(Goals(before[0], after[0], after[1], height), t.bits)
    new = (jnp.arange(word.shape[0]) < body.shape[1])[:, None]
    new = new | (after[0] != before[1]) | (after[1] != before[2])
    kept = once(word, there & ~(new & known(word, take(without, row), t)))
    word, variables = renamed(kept, t, names)
    p, s, o, _ = parted(word, t.bits)
    open_ = (word != 0) & ((s >= t.constants) | (o >= t.constants))
    closed = jnp.where(open_, 0, word)
    used = closed != 0
    most = min(word.shape[0], t.open.shape[0] or word.shape[0])
    rank = jnp.cumsum(open_, axis=0, dtype=jnp.int32)
    chosen = open_ & (rank == (jnp.arange(most) + 1)[:, None, None])
    return Patterns(
        word,
        closed,
        jnp.where(chosen, word, 0).sum(axis=1),
        indices(used, p, s, o, t),
        jnp.where(rank[-1] > most, FAR, used.sum(axis=0)),
        hashed(closed).sum(axis=0),
        variables,
        jnp.where(by_fact, left, left - 1),
    )


def holds(found: Lookup, keys: A) -> A:
    one, two = places(keys, found.shift)
    return (take(found.keys[0], one) == keys) | (take(found.keys[1], two) == keys)


def known(word: A, without: A, t: Tables) -> A:
    _, s, o, _ = parted(word, t.bits)
    key = word >> HEIGHT
    ground = (s >= 0) & (o >= 0)
    return ground & holds(t.facts, jnp.where(ground, key, 0)) & (key != without)


def once(word: A, used: A) -> A:
    # behind a barrier, or the fusion works out all words anew for each pair; a row at a time, for
    # a reduction of pairs is slower
    word, used = lax.optimization_barrier((word, used))
    at = jnp.arange(word.shape[0])[:, None]
    key = lax.optimization_barrier(jnp.where(used, word >> HEIGHT, -1 - at))
    rows = []
    for i in range(word.shape[0]):
        same = key == key[i]
        least = jnp.where(same, word, jnp.iinfo(jnp.int64).max).min(axis=0)
        rows.append(jnp.where(used[i] & ~same[:i].any(axis=0), least, 0))
    return jnp.stack(rows)


def renamed(word: A, t: Tables, names: int) -> tuple[A, A]:
    most = names + t.fresh.shape[0]
    width = most.bit_length()
    each = 63 // width
    count = -(-most // each)

    def number(maps: tuple[A, ...], given: A, term: A, used: A) -> tuple[tuple[A, ...], A, A]:
        old = -1 - term
        place = jnp.where(used & (term < 0), (old % each if count > 1 else old) * width, 0)
        part = old // each if count > 1 else 0
        map_ = maps[0]
        for i in range(1, count):
            map_ = jnp.where(part == i, maps[i], map_)
        had = (map_ >> place) & ((1 << width) - 1)
        new = used & (term < 0) & (had == 0)
        given = given + new
        mark = jnp.where(new, given << place, 0)
        maps = tuple(m | jnp.where(part == i, mark, 0) for i, m in enumerate(maps))
        return maps, given, jnp.where(term < 0, -jnp.where(new, given, had), term)

    def step(carry: tuple[A, ...], word: A) -> tuple[tuple[A, ...], A]:
        given, *maps = carry
        used = word != 0
        p, s, o, left = parted(word, t.bits)
        now, given, s = number(tuple(maps), given, s, used)
        now, given, o = number(now, given, o, used)
        return (given, *now), jnp.where(used, joined(Goals(p, s, o, left), t.bits), 0)

    nothing = jnp.zeros(word.shape[1], jnp.int64)
    (given, *_), made = lax.scan(step, (nothing, *(nothing,) * count), word)
    return made, given


def hashed(word: A) -> A:
    return jnp.where(word != 0, mix(word.astype(jnp.uint64)), np.uint64(0))


def indices(used: A, p: A, s: A, o: A, t: Tables) -> Indices:
    s, o = (
        jnp.where(used, jnp.where(v < 0, t.constants - 1 - v, v), 0).astype(jnp.int32)
        for v in (s, o)
    )
    return Indices(jnp.where(used, p, t.predicates).astype(jnp.int32), s, o)


# Successors: patterns with their holes filled.


def fillings(found: Matches, without: A, t: Tables, row: A, k: A, pattern: A) -> Filling:
    entry = take(found.first, row) + k
    entry = jnp.where(entry >= take(found.skip, row), entry + 1, entry)
    return Filling(pattern, take(t.subjects, entry), take(t.objects, entry), take(without, row))


def full(words: A, filling: Filling, t: Tables) -> A:
    p, s, o, left = parted(words, t.bits)

    def term(v: A) -> A:
        second = jnp.where(v == t.constants + 1, filling.object, v)
        return jnp.where(v == t.constants, filling.subject, second)

    return jnp.where(words != 0, joined(Goals(p, term(s), term(o), left), t.bits), 0)


def successors(made: Patterns, filling: Filling, t: Tables) -> Successors:
    goals = take(made.open, filling.pattern, axis=1)
    filled = full(goals, filling, t)
    word = once(filled, (goals != 0) & ~known(filled, filling.without, t))
    closed = take(made.closed, filling.pattern, axis=1)
    same = (closed >> HEIGHT)[None] == (word >> HEIGHT)[:, None]
    held = jnp.where(same, closed[None], 0).max(axis=1)
    added = (word != 0) & (held == 0)
    lowered = (held != 0) & (word < held)
    change = jnp.where(added | lowered, hashed(word), 0) - jnp.where(lowered, hashed(held), 0)
    p, s, o, _ = parted(filled, t.bits)
    return Successors(
        filling,
        indices(added, p, s, o, t),
        take(made.counts, filling.pattern) + added.sum(axis=0),
        take(made.variables, filling.pattern),
        take(made.hashes, filling.pattern) + change.sum(axis=0),
        take(made.lowest, filling.pattern),
    )


def written(made: Patterns, filling: Filling, t: Tables) -> A:
    words = take(made.words, filling.pattern, axis=1)
    filled = full(words, filling, t)
    gone = (filled != words) & known(filled, filling.without, t)
    return once(filled, (words != 0) & ~gone)
