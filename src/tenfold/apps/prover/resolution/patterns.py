"""Patterns: what successors of a state have in common, worked out once for all of them.

A clause makes one successor. Facts make many, which differ only in what the goal's variables are
bound to: they share a pattern, with a hole in place of each constant. A hole is a constant beyond
all others, so a pattern is made as any successor is. Filling a hole never changes how variables
are numbered: a goal that goes since it is a known fact has none, and one that goes since it stands
twice has only those of the one before it.

A column is a pattern, a row a goal, so that what is done to a goal is done to many patterns at
once. Goals stay where they were made; those that are dropped leave a gap.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

import tenfold as tn
from tenfold.apps.prover.columns import Traced
from tenfold.apps.prover.resolution.matching import FAR, Matches
from tenfold.apps.prover.resolution.tables import Tables, holds, take
from tenfold.apps.prover.resolution.unify import unify
from tenfold.apps.prover.resolution.words import HEIGHT, Goals, joined, parted
from tenfold.apps.prover.rollout.draws import mix


class Indices(NamedTuple):
    """Goals as places in tables: of predicates, and of constants with variables after them."""

    predicate: Traced  # that of no predicate where there is no goal
    subject: Traced
    object: Traced


class Patterns(NamedTuple):
    """Successors with holes."""

    words: Traced  # [goals, patterns]; 0 where there is none
    closed: Traced  # the same without those that have a hole
    open: Traced  # [most, patterns]: those that have one, in order
    parts: Indices  # closed goals as places in the policy's tables
    counts: Traced  # how many closed goals
    hashes: Traced  # of the closed goals
    variables: Traced  # how many variables
    lowest: Traced  # the least height left to any goal that came up in the step


def patterns(
    words: Traced, found: Matches, without: Traced, tables: Tables, row: Traced, nth: Traced,
    names: int,
) -> Patterns:  # fmt: skip
    """For each row's state, its successor by the nth clause that fits; that by a fact if nth is
    -1. `without` has the key of a fact that is not to be used, for each state; `tables` are apart
    from `names` variables."""
    by_fact = nth < 0
    states = words.shape[1]
    clause = take(found.which.reshape(-1), np.maximum(nth, 0) * states + row)
    s, o = (take(term.astype(np.int32), row) for term in found.goal[1:3])
    left = take(found.goal.left, row)
    hole = tables.constants.astype(np.int32)
    x = np.where(by_fact, np.where(s < 0, hole, s), take(tables.heads[0], clause))
    y = np.where(o < 0, np.where(o == s, hole, hole + 1), o)
    y = np.where(by_fact, y, take(tables.heads[1], clause))
    goal = Goals(None, s, o, left)
    kept = resolved(words, goal, (x, y), clause, by_fact, take(without, row), tables, row)
    named, variables = renamed(kept, tables, names)
    return _opened(named, variables, np.where(by_fact, left, left - 1), tables)


def resolved(
    words: Traced,
    goal: Goals,
    head: tuple[Traced, Traced],
    clause: Traced,
    by_fact: Traced,
    without: Traced,
    tables: Tables,
    row: Traced,
) -> Traced:
    """The words of successors [goals, successors], with gaps and with variables of any numbers:
    those of each row's state, whose goal is unified with a head, or fact, of these terms. In its
    place is the body of the clause, nothing if it is by a fact."""
    _, binding = unify(goal.subject, goal.object, *head)
    rest = np.take(words[1:], row, axis=1, mode="clip")
    parts = parted(rest, tables.bits)
    body = [np.take(column, clause, axis=1, mode="clip") for column in tables.bodies]
    there = np.concatenate([(body[0] >= 0) & ~by_fact, rest != 0])
    before = [np.concatenate([a.astype(np.int64), b]) for a, b in zip(body, parts, strict=False)]
    after = [binding(term) for term in before[1:]]
    height = np.concatenate([np.broadcast_to(goal.left - 1, body[0].shape), parts.left])
    word = joined(Goals(before[0], after[0], after[1], height), tables.bits)
    # what was ground before was looked up when its state was made
    new = (tn.arange(word.shape[0]) < body[0].shape[0])[:, None]
    new = new | (after[0] != before[1]) | (after[1] != before[2])
    return once(word, there & ~(new & known(word, without, tables)))


def known(word: Traced, without: Traced, tables: Tables) -> Traced:
    """Which goals are facts that may be used."""
    _, s, o, _ = parted(word, tables.bits)
    key = word >> HEIGHT
    ground = (s >= 0) & (o >= 0)
    return ground & holds(tables.facts, np.where(ground, key, 0)) & (key != without)


def once(word: Traced, used: Traced) -> Traced:
    """Words with every goal once, in its first place, with its least height; 0 elsewhere."""
    places = tn.arange(word.shape[0])[:, None]
    # what is not used is like nothing else
    key = np.where(used, word >> HEIGHT, -1 - places)
    same = key[:, None] == key[None]
    earlier = places[:, None] > places
    again = (same & earlier).any(axis=1)
    least = np.where(same, word[None], np.iinfo(np.int64).max).min(axis=1)
    return np.where(used & ~again, least, 0)


def renamed(word: Traced, tables: Tables, names: int) -> tuple[Traced, Traced]:
    """States with their variables numbered in order of appearance, and how many there are.

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
        given, *maps = carry
        used = word != 0
        p, s, o, left = parted(word, tables.bits)
        now, given, s = number(tuple(maps), given, s, used)
        now, given, o = number(now, given, o, used)
        made = np.where(used, joined(Goals(p, s, o, left), tables.bits), 0)
        return (given, *now), made

    (given, *_), made = tn.scan(step, (nothing, *(nothing,) * count), word)
    return made, given


def _opened(words: Traced, variables: Traced, lowest: Traced, tables: Tables) -> Patterns:
    """Patterns with the goals that have a hole apart from the others."""
    p, s, o, _ = parted(words, tables.bits)
    hole = (words != 0) & ((s >= tables.constants) | (o >= tables.constants))
    closed = np.where(hole, 0, words)
    used = closed != 0
    most = min(words.shape[0], tables.open.shape[0] or words.shape[0])
    rank = np.cumsum(hole, axis=0, dtype=np.int32)
    chosen = hole & (rank == (tn.arange(most) + 1)[:, None, None])
    counts = np.where(rank[-1] > most, FAR, used.sum(axis=0))  # more than there can be: no room
    return Patterns(
        words,
        closed,
        np.where(chosen, words, 0).sum(axis=1),
        indices(used, p, s, o, tables),
        counts,
        hashed(closed).sum(axis=0),
        variables,
        lowest,
    )


def hashed(word: Traced) -> Traced:
    """What each goal adds to the hash of its state, which is the sum, whatever gaps there are."""
    return np.where(word != 0, mix(word.astype(np.uint64)), np.uint64(0))


def indices(used: Traced, p: Traced, s: Traced, o: Traced, tables: Tables) -> Indices:
    """Where the parts of goals stand in tables; those not in use have the last predicate."""
    s, o = (
        np.where(used, np.where(t < 0, tables.constants - 1 - t, t), 0).astype(np.int32)
        for t in (s, o)
    )
    return Indices(np.where(used, p, tables.predicates).astype(np.int32), s, o)
