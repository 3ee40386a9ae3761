"""Successors: one step of proof search for many states, each successor in a slot of its own.

The slots of a step are flat: a state has as many as it has successors, one state's after
another's. A column is a slot, a row a goal, so that what is done to a goal is done to many slots
at once. A successor's goals stay where they were made; those that are dropped leave a gap, and
only the states that are chosen are packed.

The order is the top-down reference's: facts in their order, then clauses in theirs.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

import tenfold as tn
from tenfold.apps.prover.columns import Traced
from tenfold.apps.prover.rollout.resolution import unify
from tenfold.apps.prover.rollout.tables import (
    ANY,
    LOOP,
    OBJECT,
    SUBJECT,
    Tables,
    holds,
    lookup,
    range_key,
    take,
)
from tenfold.apps.prover.rollout.words import HEIGHT, Goals, joined, parted

FAR = 1 << 30  # an entry beyond all


class Without(NamedTuple):
    """A fact that is not to be used: its word without the height, and its entries."""

    key: Traced  # -1 if all facts may be used
    subject: Traced  # its entry by subject, FAR if there is none
    object: Traced
    loop: Traced


class Matches(NamedTuple):
    """What the first goal of each state matches."""

    goal: Goals
    first: Traced  # the first entry that matches
    skip: Traced  # the entry that is not to be used, or one beyond all
    facts: Traced  # how many entries match
    which: Traced  # [each, states]: the first, second, … clause that unifies
    rules: Traced  # how many clauses unify and may be used


class Indices(NamedTuple):
    """Goals as places in tables: of predicates, and of constants with variables after them."""

    predicate: Traced  # that of no predicate where there is no goal
    subject: Traced
    object: Traced


class Made(NamedTuple):
    """Successor states, one a slot."""

    words: Traced  # [goals, slots]; 0 where there is none
    parts: Indices  # the same, as places in the policy's tables
    counts: Traced  # how many goals
    variables: Traced  # how many variables
    hashes: Traced  # equal for equal states
    lowest: Traced  # the least height left to any goal that came up in the step


def apart(tables: Tables, names: int) -> Tables:
    """Tables whose clauses have their variables below those of any state, which has `names`."""

    def moved(terms: Traced) -> Traced:
        return np.where(terms < 0, terms - names, terms)

    bodies = tables.bodies
    return tables._replace(
        heads=moved(tables.heads), bodies=np.concatenate([bodies[:1], moved(bodies[1:])])
    )


def match(words: Traced, live: Traced, without: Without, tables: Tables) -> Matches:
    """What the first goal of each state matches. A settled state's first goal, if ground, is no
    fact: there are only clauses for it."""
    p, s, o, left = parted(words[0], tables.bits)
    p = np.maximum(p, 0)
    known, other = s >= 0, o >= 0
    kind = np.where(known, SUBJECT, np.where(other, OBJECT, np.where(s == o, LOOP, ANY)))
    key = range_key(
        kind, p, np.where(known, s, np.where(other, o, 0)), tables.predicates, tables.bits
    )
    first, facts = lookup(tables.ranges, key, tables.firsts, tables.counts)
    open_ = live & ~(known & other)
    skip: Traced = np.where(kind == OBJECT, without.object, without.subject)
    skip = np.where(kind == LOOP, without.loop, skip)
    skipped = (skip >= first) & (skip < first + facts)
    from_ = take(tables.starts, p)
    each = tables.each[:, None]
    clause = np.minimum(from_ + each, tables.heads.shape[1] - 1)
    there = each < take(tables.starts, p + 1) - from_
    fits = unify(s, o, take(tables.heads[0], clause), take(tables.heads[1], clause))[0]
    fits = fits & there & (live & (left > 0))
    ranks = _running(fits)
    nth = (ranks[None] <= tables.each[:, None, None]).sum(axis=1, dtype=np.int32)
    which = np.minimum(from_ + nth, tables.heads.shape[1] - 1)
    return Matches(
        Goals(p, s, o, left),
        first,
        np.where(skipped, skip, FAR).astype(np.int32),
        np.where(open_, facts - skipped, 0).astype(np.int32),
        which.astype(np.int32),
        ranks[-1],
    )


def _running(flags: Traced) -> Traced:
    """Running counts along the first axis, which is short."""
    width = flags.shape[0]
    upto = tn.arange(width)[:, None] >= tn.arange(width)
    return (flags[None] & upto[:, :, None]).sum(axis=1, dtype=np.int32)


def successors(
    words: Traced, found: Matches, without: Traced, tables: Tables, row: Traced, k: Traced,
    names: int,
) -> Made:  # fmt: skip
    """The k-th successor of a row's state, for each slot. `without` has the key of a fact that is
    not to be used, for each state; `tables` are apart from `names` variables."""
    facts = take(found.facts, row)
    by_fact = k < facts
    entry = take(found.first, row) + k
    entry = np.where(entry >= take(found.skip, row), entry + 1, entry)
    states = words.shape[1]
    nth = np.where(by_fact, 0, k - facts)
    clause = take(found.which.reshape(-1), nth * states + row)
    x = np.where(by_fact, take(tables.subjects, entry), take(tables.heads[0], clause))
    y = np.where(by_fact, take(tables.objects, entry), take(tables.heads[1], clause))
    s, o = (take(term.astype(np.int32), row) for term in found.goal[1:3])
    left = take(found.goal.left, row)
    _, binding = unify(s, o, x, y)
    rest = np.take(words[1:], row, axis=1, mode="clip")
    parts = parted(rest, tables.bits)
    body = [np.take(column, clause, axis=1, mode="clip") for column in tables.bodies]
    there = np.concatenate([(body[0] >= 0) & ~by_fact, rest != 0])
    before = [np.concatenate([a.astype(np.int64), b]) for a, b in zip(body, parts, strict=False)]
    after = [binding(term) for term in before[1:]]
    height = np.concatenate([np.broadcast_to(left - 1, body[0].shape), parts.left])
    word = joined(Goals(before[0], after[0], after[1], height), tables.bits)
    key = word >> HEIGHT
    # what was ground before was looked up when its state was made
    size = body[0].shape[0]
    new = (tn.arange(word.shape[0]) < size)[:, None]
    new = new | (after[0] != before[1]) | (after[1] != before[2])
    look = there & new & (after[0] >= 0) & (after[1] >= 0)
    known = look & holds(tables.facts, np.where(look, key, 0)) & (key != take(without, row))
    kept = _once(word, there & ~known)
    made = _renamed(kept, tables, names)
    return made._replace(lowest=np.where(by_fact, left, left - 1))


def _once(word: Traced, used: Traced) -> Traced:
    """Words with every goal once, in its first place, with its least height; 0 elsewhere."""
    places = tn.arange(word.shape[0])[:, None]
    # what is not used is like nothing else
    key = np.where(used, word >> HEIGHT, -1 - places)
    same = key[:, None] == key[None]
    earlier = places[:, None] > places
    again = (same & earlier).any(axis=1)
    least = np.where(same, word[None], np.iinfo(np.int64).max).min(axis=1)
    return np.where(used & ~again, least, 0)


def _renamed(word: Traced, tables: Tables, names: int) -> Made:
    """States with their variables numbered in order of appearance.

    The numbers given so far are kept in the bits of a few integers, by the variable's old number.
    """
    most = names + tables.fresh.shape[0]
    width = most.bit_length()
    each = 63 // width
    count = -(-most // each)
    nothing = word[0] * 0

    def number(
        maps: tuple[Traced, ...], given: Traced, term: Traced, used: Traced
    ) -> tuple[tuple[Traced, ...], Traced, Traced]:
        old = -1 - term
        place = (old % each if count > 1 else old) * width
        place = np.where(used & (term < 0), place, 0)
        part = old // each if count > 1 else 0
        map_ = maps[0]
        for i in range(1, count):
            map_ = np.where(part == i, maps[i], map_)
        had = (map_ >> place) & ((1 << width) - 1)
        new = used & (term < 0) & (had == 0)
        given = given + new
        mark = np.where(new, given << place, 0)
        if count == 1:
            maps = (maps[0] | mark,)
        else:
            maps = tuple(m | np.where(part == i, mark, 0) for i, m in enumerate(maps))
        return maps, given, np.where(term < 0, -np.where(new, given, had), term)

    def step(carry: tuple[Traced, ...], word: Traced) -> tuple[tuple[Traced, ...], Traced]:
        given, counts, hashes, *maps = carry
        used = word != 0
        p, s, o, left = parted(word, tables.bits)
        now, given, s = number(tuple(maps), given, s, used)
        now, given, o = number(now, given, o, used)
        made = np.where(used, joined(Goals(p, s, o, left), tables.bits), 0)
        row = made, indices(used, p, s, o, tables)
        return (given, counts + used, np.where(used, mixed(hashes, made), hashes), *now), row

    start = (nothing, nothing, nothing.astype(np.uint64), *(nothing,) * count)
    (given, counts, hashes, *_), (renamed, parts) = tn.scan(step, start, word)
    return Made(renamed, parts, counts, given, hashes, counts)


def mixed(hashes: Traced, word: Traced) -> Traced:
    """Hashes of states with one goal more."""
    made = (hashes ^ word.astype(np.uint64)) * np.uint64(0x9E3779B97F4A7C15)
    return made ^ (made >> np.uint64(29))


def indices(used: Traced, p: Traced, s: Traced, o: Traced, tables: Tables) -> Indices:
    """Where the parts of goals stand in tables; those not in use have the last predicate."""
    s, o = (
        np.where(used, np.where(t < 0, tables.constants - 1 - t, t), 0).astype(np.int32)
        for t in (s, o)
    )
    return Indices(np.where(used, p, tables.predicates).astype(np.int32), s, o)
