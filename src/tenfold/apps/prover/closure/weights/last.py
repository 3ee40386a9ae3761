"""The last application: what each rule gives a candidate, folded in the order of the rules.

Each rule has a stretch of a table of its own, with a place for every candidate of its predicate;
as many rules as the table has room for are grounded together.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise

import numpy as np

from tenfold.apps.prover.closure.fixpoint import Closure
from tenfold.apps.prover.closure.joins import Ints
from tenfold.apps.prover.closure.weights.chains import Floats
from tenfold.apps.prover.closure.weights.fixpoint import weigh_facts
from tenfold.apps.prover.closure.weights.groundings import NONE, Given, ground
from tenfold.apps.prover.input.program import Clause, Program
from tenfold.apps.prover.input.queries import Query

ROOM = 1 << 22  # places of a table


def rank_by_weight(
    program: Program,
    closed: Closure,
    asked: Sequence[Query],
    limit: int,
    how: str,
    backend: str,
    room: int = ROOM,
) -> tuple[Ints, Floats]:
    """For each fact of a closure the number of its class, the best first, and its score.

    Facts of train are class 0, before all that is derived, with the score 1. Derived facts that no
    query asks about are in the last class.
    """
    given = closed.heights == 0
    wanted = ~given & _asked_about(closed, asked)
    classes, scores = np.where(given, 0, 1), np.where(given, 1.0, 0.0)
    if not wanted.any():
        return classes, scores
    stretches = _applied(program, closed, wanted, limit, backend, room)
    count = int(wanted.sum())
    if how == "max-then-next":
        mine, made = _by_sorted(stretches, count)
    else:
        made = _folded(stretches, count, how)
        values = np.unique(made)
        mine = len(values) - np.searchsorted(values, made)
    classes[~given] = mine.max()
    classes[wanted], scores[wanted] = mine, made
    return classes, scores


def _asked_about(
    closed: Closure, asked: Sequence[Query]
) -> np.ndarray[tuple[int], np.dtype[np.bool_]]:
    """Which facts share predicate and kept constant with a query."""
    p, s, o = closed.packing.triples(closed.keys).T
    there = np.zeros(len(closed.keys), bool)
    for mode, kept in (("head", o), ("tail", s)):
        ranges = {(q.fact[0], q.kept, 0) for q in asked if q.mode == mode}
        starts = closed.packing.keys(sorted(ranges))
        there |= np.isin(closed.packing.keys(np.stack([p, kept, 0 * p], axis=1)), starts)
    return there


def _applied(
    program: Program,
    closed: Closure,
    wanted: np.ndarray[tuple[int], np.dtype[np.bool_]],
    limit: int,
    backend: str,
    room: int,
) -> Iterator[tuple[int, Floats]]:
    """What each rule gives, in the order of rules: where its candidates begin, and their weights
    by its best groundings, -1 for those that it does not prove."""
    weights = weigh_facts(program, closed, limit - 1, backend)
    there = weights >= 0
    facts = Given.of(closed.keys[there], weights[there], program, closed.packing)
    keys = closed.keys[wanted]
    predicates = np.arange(len(program.predicates) + 1) << 2 * closed.packing.bits
    starts = np.searchsorted(keys, predicates)
    for part in _parts(program.weighed, np.diff(starts), room):
        spans = [(starts[c.head[0]], starts[c.head[0] + 1]) for c, _ in part]
        ends = np.cumsum([last - first for first, last in spans])
        begins = ends - [last - first for first, last in spans]
        offsets = [int(at - first) for at, (first, _) in zip(begins, spans, strict=True)]
        table = np.full(int(ends[-1]), NONE)
        for (clause, weight), offset in zip(part, offsets, strict=True):
            if not clause.body:
                head = closed.packing.keys([clause.head])
                place = int(np.searchsorted(keys, head)[0])
                if place < len(keys) and keys[place] == head[0]:
                    table[offset + place] = weight
        made = ground(part, offsets, facts, keys, table, backend)
        for (first, _), begin, end in zip(spans, begins, ends, strict=True):
            yield int(first), made[begin:end]


def _parts(
    rules: Sequence[tuple[Clause, float]], sizes: Ints, room: int
) -> Iterator[list[tuple[Clause, float]]]:
    """The rules in order, as many at a time as there is room for; those that no candidate has the
    predicate of are left out."""
    part: list[tuple[Clause, float]] = []
    used = 0
    for rule in rules:
        size = int(sizes[rule[0].head[0]])
        if part and used + size > room:
            yield part
            part, used = [], 0
        if size:
            part.append(rule)
            used += size
    if part:
        yield part


def _folded(stretches: Iterator[tuple[int, Floats]], count: int, how: str) -> Floats:
    """The scores, rule after rule."""
    made = np.full(count, {"max": NONE, "count": 0.0}.get(how, 1.0))
    for first, weights in stretches:
        mine = made[first : first + len(weights)]
        proves = weights >= 0
        if how == "max":
            np.maximum(mine, weights, out=mine)
        elif how == "count":
            mine += proves
        else:
            mine *= np.where(proves, 1 - weights if how == "noisy-or" else weights, 1.0)
    return 1 - made if how == "noisy-or" else made


def _by_sorted(stretches: Iterator[tuple[int, Floats]], count: int) -> tuple[Ints, Floats]:
    """The classes by all weights of a candidate, the greatest first; and the greatest.

    Floats from 0 up are ordered as their bits are, so lists of them as their bytes, high to low.
    """
    places, weights = [np.zeros(0, np.int64)], [np.zeros(0)]
    for first, given in stretches:
        proved = np.flatnonzero(given >= 0)
        places.append(first + proved)
        weights.append(given[proved])
    place, weight = np.concatenate(places), np.concatenate(weights)
    order = np.lexsort((-weight, place))
    starts = np.searchsorted(place[order], np.arange(count + 1))
    raw = (weight[order].view(np.int64) + 1).astype(">i8").tobytes()
    lists = [raw[8 * a : 8 * b] for a, b in pairwise(starts)]
    classes = {one: i for i, one in enumerate(sorted(set(lists), reverse=True), 1)}
    return np.array([classes[one] for one in lists], np.int64), weight[order][starts[:-1]]
