"""Tables: a program's facts and rules, found by hashing.

Each key has two places, one in each half of a table, and stands in one of them: whether it is
there takes two looks. Entries are the facts by subject, by object, and those p(a,a); what a goal
matches is a range of them, found by its predicate and the term that it knows.
"""

from __future__ import annotations

from collections import Counter
from typing import Any, NamedTuple

import numpy as np

from tenfold.apps.prover.backend import padded
from tenfold.apps.prover.closure.joins import Ints, Packing
from tenfold.apps.prover.columns import Traced
from tenfold.apps.prover.errors import CapacityError
from tenfold.apps.prover.input.program import Clause, Program
from tenfold.apps.prover.resolution.trying import general
from tenfold.apps.prover.resolution.words import HEIGHT, word_bits, words

Shorts = np.ndarray[Any, np.dtype[np.int32]]
EMPTY = -1  # of a place that holds no key
ABSENT = -1  # the predicate of a body atom that is not there
SUBJECT, OBJECT, ANY, LOOP = range(4)  # which ranges: p(a,X), p(X,a), p(X,Y), p(X,X)
_FACTORS = (np.uint64(0x9E3779B97F4A7C15), np.uint64(0xC2B2AE3D27D4EB4F))
_ROUNDS = 100  # of moving keys to their other place, before the table is doubled


class Lookup(NamedTuple):
    """Keys with two places each: [2, places]."""

    keys: Ints
    shift: np.uint64  # of a product, so that it is a place


class Tables(NamedTuple):
    """The facts and rules of a program."""

    bits: np.int64  # of a term in a word
    facts: Lookup  # words of facts, without the height
    ranges: Lookup  # kind, predicate and term
    firsts: Shorts  # [2, places]: the first entry of a range
    counts: Shorts  # [2, places]: and how many there are
    predicates: np.int64  # how many: a range's key is (kind * predicates + predicate), term
    constants: np.int64  # how many
    subjects: Shorts  # of each entry
    objects: Shorts  # of each entry
    starts: Shorts  # [predicates + 1]: the clauses with head predicate p are those from starts[p]
    heads: Shorts  # [2, clauses]
    bodies: Shorts  # [3, longest body, clauses]; predicate ABSENT where a body is shorter
    each: Shorts  # 0, 1, 2, … up to the most clauses of one predicate
    fresh: Shorts  # 0, 1, 2, … up to the most variables of a clause
    general: Any  # [predicates]: whether the head of a clause is p(X,Y)
    open: Shorts  # 0, 1, 2, … up to the most goals that a fact changes; none if nobody knows


def tables_of(program: Program) -> Tables:
    """The tables of a program.

    >>> made = tables_of(Program(("p",), ("a", "b"), ((0, 0, 1),), ()))
    >>> made.subjects[:2].tolist(), made.objects[:2].tolist()  # by subject, then by object
    ([0, 0], [1, 1])
    """
    packing = Packing.of(program)
    facts = np.array(program.facts, np.int64).reshape(-1, 3)
    count = max(1, len(program.predicates))
    turned = facts[np.lexsort((facts[:, 1], facts[:, 2], facts[:, 0]))]
    loops = facts[facts[:, 1] == facts[:, 2]]
    entries = np.concatenate([facts, turned, loops])
    keys, firsts, counts = _ranges(facts, turned, loops, count, word_bits(packing.bits))
    ranges, at = _placed(keys)
    tall = np.concatenate([facts, np.zeros((len(facts), 1), np.int64)], axis=1)
    clauses = sorted(program.clauses, key=lambda clause: clause.head[0])
    starts = np.searchsorted(
        [clause.head[0] for clause in clauses], np.arange(padded(count, 4) + 1)
    )
    heads, bodies = _clauses(clauses)
    return Tables(
        np.int64(word_bits(packing.bits)),
        _placed(words(tall, packing.bits) >> HEIGHT)[0],
        ranges,
        _spread(firsts, at, ranges),
        _spread(counts, at, ranges),
        np.int64(count),
        np.int64(len(program.constants)),
        _column(entries[:, 1], padded(len(entries), 64)),
        _column(entries[:, 2], padded(len(entries), 64)),
        starts.astype(np.int32),
        heads,
        bodies,
        np.arange(padded(int(np.diff(starts).max(initial=0)), 4), dtype=np.int32),
        np.arange(padded(max((c.variables for c in clauses), default=0), 4), dtype=np.int32),
        np.array(general([clause.head for clause in clauses], padded(count, 4)), bool),
        np.arange(_most_open(clauses), dtype=np.int32),
    )


def most_names(tables: Tables) -> int:
    """The most variables that a state may have: words have bits for them and for a clause's."""
    clause = -min(0, int(tables.heads.min()), int(tables.bodies[1:].min()))
    return (1 << (int(tables.bits) - 1)) - clause


def _ranges(facts: Ints, turned: Ints, loops: Ints, count: int, bits: Any) -> tuple[Ints, ...]:
    """The key of each range of entries, its first entry and how many there are."""
    none = np.zeros_like(facts[:, 0])
    parts = (
        (SUBJECT, facts[:, 0], facts[:, 1], 0),
        (OBJECT, turned[:, 0], turned[:, 2], len(facts)),
        (ANY, facts[:, 0], none, 0),
        (LOOP, loops[:, 0], none[: len(loops)], 2 * len(facts)),
    )
    made = []
    for kind, p, term, offset in parts:
        keys, firsts, counts = np.unique(
            range_key(kind, p, term, count, bits), return_index=True, return_counts=True
        )
        made.append((keys, firsts + offset, counts))
    keys, firsts, counts = (np.concatenate(columns) for columns in zip(*made, strict=True))
    return keys, firsts, counts


def range_key(kind: Traced, p: Traced, term: Traced, count: Traced, bits: Traced) -> Traced:
    """The key of a range; `bits` are at least those of a constant."""
    return ((kind * count + p) << bits) | term


def _clauses(clauses: list[Clause]) -> tuple[Shorts, Shorts]:
    size = padded(len(clauses), 16)
    longest = max((len(clause.body) for clause in clauses), default=0)
    heads = np.zeros((2, size), np.int32)
    bodies = np.zeros((3, max(1, longest), size), np.int32)
    bodies[0] = ABSENT
    for i, clause in enumerate(clauses):
        heads[:, i] = clause.head[1:]
        for j, atom in enumerate(clause.body):
            bodies[:, j, i] = atom
    return heads, bodies


def _most_open(clauses: list[Clause]) -> int:
    """The most other goals of a state that share a variable with its first; 0 if nobody knows.

    Let no atom have a variable twice, and no variable of a head stand in two atoms of its body.
    Then no clause makes two variables one, and none puts a variable into more goals: it stands in
    as many as where it came up. Only a query p(X,X) may put X into two.
    """
    most = 2
    for clause in clauses:
        atoms = [{t for t in atom[1:] if t < 0} for atom in (clause.head, *clause.body)]
        if any(atom[1] == atom[2] < 0 for atom in (clause.head, *clause.body)):
            return 0
        counts = Counter(t for atom in atoms[1:] for t in atom)
        if any(counts[t] > 1 for t in atoms[0]):
            return 0
        most = max(most, *counts.values(), 0)
    return 2 * (most - 1)


def _column(values: Ints, size: int) -> Shorts:
    made = np.zeros(size, np.int32)
    made[: len(values)] = values
    return made


# Hashing.


def places(keys: Traced, shift: Traced) -> tuple[Traced, Traced]:
    """The two places of each key, one in each half."""
    bits = keys.astype(np.uint64)
    one, two = ((bits * factor) >> shift for factor in _FACTORS)
    return one.astype(np.int64), two.astype(np.int64)


def _placed(keys: Ints) -> tuple[Lookup, tuple[Ints, Ints]]:
    """Keys, each once, in one of their two places; and for each its half and place.

    All that have no place yet take one, and drive out who was there; those go to their other.
    """
    size = padded(len(keys) + len(keys) // 2, 16)
    while size <= 1 << 40:
        shift = np.uint64(64 - (size.bit_length() - 1))
        both = np.stack(places(keys, shift))
        held = np.full((2, size), EMPTY, np.int64)  # numbers of keys
        half = np.zeros(len(keys), np.int64)
        waiting = np.arange(len(keys))
        for _ in range(_ROUNDS):
            at = both[half[waiting], waiting]
            before = held[half[waiting], at]
            held[half[waiting], at] = waiting
            out = np.concatenate([before[before != EMPTY], waiting])
            out = np.unique(out)
            waiting = out[held[half[out], both[half[out], out]] != out]
            if not len(waiting):
                table = np.where(held == EMPTY, EMPTY, keys[held] if len(keys) else EMPTY)
                return Lookup(table.astype(np.int64), shift), (
                    half,
                    both[half, np.arange(len(keys))],
                )
            half[waiting] ^= 1
        size *= 2
    raise CapacityError(f"{len(keys)} keys find no places", fix="report this data set")


def _spread(values: Ints, at: tuple[Ints, Ints], found: Lookup) -> Shorts:
    """Values laid out as their keys are."""
    made = np.zeros(found.keys.shape, np.int32)
    made[at] = values
    return made


def holds(found: Lookup, keys: Traced) -> Traced:
    """Which keys are there.

    >>> made = _placed(np.array([3, 50, 7]))[0]
    >>> holds(made, np.array([50, 8])).tolist()
    [True, False]
    """
    one, two = places(keys, found.shift)
    return (take(found.keys[0], one) == keys) | (take(found.keys[1], two) == keys)


def lookup(found: Lookup, keys: Traced, *values: Traced) -> tuple[Traced, ...]:
    """The values of each key; 0 where it is not there."""
    one, two = places(keys, found.shift)
    first, second = take(found.keys[0], one) == keys, take(found.keys[1], two) == keys
    return tuple(
        np.where(first, take(value[0], one), np.where(second, take(value[1], two), 0))
        for value in values
    )


def take(column: Traced, at: Traced) -> Traced:
    """Entries of a column; the places are known to lie within it."""
    return np.take(column, at, mode="clip")
