"""Matching: what the first goal of each of many states matches, facts and clauses.

The order is the top-down reference's: facts in their order, then clauses in theirs.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

import tenfold as tn
from tenfold.apps.prover.columns import Traced
from tenfold.apps.prover.resolution.tables import (
    ANY,
    LOOP,
    OBJECT,
    SUBJECT,
    Tables,
    lookup,
    range_key,
    take,
)
from tenfold.apps.prover.resolution.unify import unify
from tenfold.apps.prover.resolution.words import Goals, parted

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
    which: Traced  # [each + 1, states]: the first, second, … clause that unifies
    rules: Traced  # how many clauses unify and may be used


def apart(tables: Tables, names: int) -> Tables:
    """Tables whose clauses have their variables below those of any state, which has `names`."""

    def moved(terms: Traced) -> Traced:
        return np.where(terms < 0, terms - names, terms)

    bodies = tables.bodies
    return tables._replace(
        heads=moved(tables.heads), bodies=np.concatenate([bodies[:1], moved(bodies[1:])])
    )


class Entries(NamedTuple):
    """The facts that the first goal of each state matches."""

    goal: Goals
    first: Traced  # the first entry that matches
    skip: Traced  # the entry that is not to be used, or one beyond all
    count: Traced  # how many match


def entries(words: Traced, live: Traced, without: Without, tables: Tables) -> Entries:
    """The facts that first goals match. A settled state's first goal, if ground, is none."""
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
    return Entries(
        Goals(p, s, o, left),
        first,
        np.where(skipped, skip, FAR).astype(np.int32),
        np.where(open_, facts - skipped, 0).astype(np.int32),
    )


def match(words: Traced, live: Traced, without: Without, tables: Tables) -> Matches:
    """What the first goal of each state matches. A settled state's first goal, if ground, is no
    fact: there are only clauses for it."""
    found = entries(words, live, without, tables)
    p, s, o, left = found.goal
    from_ = take(tables.starts, p)
    each = tables.each[:, None]
    clause = np.minimum(from_ + each, tables.heads.shape[1] - 1)
    there = each < take(tables.starts, p + 1) - from_
    fits = unify(s, o, take(tables.heads[0], clause), take(tables.heads[1], clause))[0]
    fits = fits & there & (live & (left > 0))
    # how many fit up to each; the n-th that fits goes to place n, those that do not to one beyond
    ranks = np.cumsum(fits, axis=0, dtype=np.int32)
    states = tn.arange(fits.shape[1], dtype=np.int32)
    which = tn.zeros((fits.shape[0] + 1, fits.shape[1]), np.int32)
    # places before that have one each, so that adding is putting, in any order
    place = np.where(fits, ranks - 1, fits.shape[0])
    np.add.at(which, (place, states), clause.astype(np.int32))
    return Matches(*found, which, ranks[-1])
