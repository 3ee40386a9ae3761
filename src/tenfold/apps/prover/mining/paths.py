"""Paths: rules whose body leads from the subject of the head to its object in up to three steps.

The body of `h(X,Y)` is a walk from X to Y. It never visits an entity twice, except that X and Y
may be one; so it never uses the very fact that it is to predict. All steps that go on from a
body are taken at once, by one join. A pair counts once, however many walks lead from X to Y.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from tenfold.apps.prover.mining.found import Found
from tenfold.apps.prover.mining.graph import Graph, Ints

SEVERAL = -1  # before the end of a pair that walks reach by more than one entity


@dataclass(slots=True)
class Walks:
    """How many walks are followed, so that time and memory have bounds on any data."""

    of_body: int = 1 << 21  # by the steps after one of length 1
    of_long: int = 1 << 18  # by the steps after one of length 2
    in_all: int = 1 << 25  # of three steps
    sampled: int = 0  # bodies of which only some starts were followed
    left_out: int = 0  # bodies of two steps that were not followed further


@dataclass(frozen=True, slots=True)
class Bodies:
    """The pairs of bodies that differ in their last step, sorted by it: each pair once."""

    step: Ints
    start: Ints
    end: Ints
    before: Ints  # the one entity before the end, or SEVERAL

    def of(self, step: int) -> Bodies:
        """The one with this last step, without the pairs that lead back to where they began."""
        low, high = np.searchsorted(self.step, (step, step + 1))
        kept = np.flatnonzero(self.start[low:high] != self.end[low:high]) + low
        return Bodies(self.step[kept], self.start[kept], self.end[kept], self.before[kept])


def mine_paths(graph: Graph, found: Found, walks: Walks) -> None:
    """Add the rules whose bodies are paths."""
    steps = 2 * len(graph.relations)
    short = _single(graph)
    _add(graph, short, (), found)
    closed = np.zeros((steps, steps), np.int64)  # facts that a body of two steps joins
    cost = np.zeros((steps, steps), np.int64)
    degree = np.diff(graph.walks.first)
    for first in range(steps):
        made = _go_on(graph, short.of(first), walks, walks.of_body)
        closed[first] = _add(graph, made, (first,), found)
        cost[first] = np.bincount(made.step, degree[made.end], steps)
    for first, seconds in _worth(closed, cost, walks):
        made = _go_on(graph, short.of(first), walks, walks.of_body)
        for second in seconds:
            long = _go_on(graph, made.of(second), walks, walks.of_long)
            _add(graph, long, (first, second), found)


def _worth(closed: Ints, cost: Ints, walks: Walks) -> Iterator[tuple[int, list[int]]]:
    """The bodies of two steps that are followed further: as many as the walks allow, those that
    join most facts first."""
    order = np.lexsort((np.arange(closed.size), -closed.ravel()))
    order = order[cost.ravel()[order] > 0]
    spent = np.cumsum(np.minimum(cost.ravel()[order], walks.of_long))
    chosen = order[spent <= walks.in_all]
    walks.left_out += len(order) - len(chosen)
    firsts, seconds = np.divmod(np.sort(chosen), len(closed))
    for first in np.unique(firsts).tolist():
        yield first, seconds[firsts == first].tolist()


def _single(graph: Graph) -> Bodies:
    """The bodies of one step: the steps themselves."""
    walks = graph.walks
    order = np.lexsort((walks.target, walks.source, walks.step))
    several = np.full(len(order), SEVERAL)  # what comes before is X, and Y may be X
    return Bodies(walks.step[order], walks.source[order], walks.target[order], several)


def _go_on(graph: Graph, bodies: Bodies, walks: Walks, limit: int) -> Bodies:
    """One step further, by every step there is."""
    bodies = _sample(graph, bodies, walks, limit)
    which, at = graph.walks.after(bodies.end)
    end = graph.walks.target[at]
    kept = np.flatnonzero(end != bodies.before[which])
    which, at, end = which[kept], at[kept], end[kept]
    start, before, step = bodies.start[which], bodies.end[which], graph.walks.step[at]
    key = (step * graph.size + start) * graph.size + end
    room = 2 * len(graph.relations) * graph.size**2
    if room <= 4 * len(key) + (1 << 16):  # a place for each key is cheaper than sorting
        count = np.bincount(key, minlength=room)
        last = np.empty(room, np.int64)
        last[key] = before
        key = np.flatnonzero(count)
        count, before = count[key], last[key]
    else:
        key, index, count = np.unique(key, return_index=True, return_counts=True)
        before = before[index]
    pair = key % graph.size**2
    return Bodies(
        key // graph.size**2,
        pair // graph.size,
        pair % graph.size,
        np.where(count == 1, before, SEVERAL),
    )


def _sample(graph: Graph, bodies: Bodies, walks: Walks, limit: int) -> Bodies:
    """The pairs of as many starts as the walks allow."""
    cost = np.diff(graph.walks.first)[bodies.end]
    if cost.sum() <= limit:
        return bodies
    walks.sampled += 1
    kept = np.flatnonzero(starts(bodies.start, cost, graph.size, limit)[bodies.start])
    return Bodies(bodies.step[kept], bodies.start[kept], bodies.end[kept], bodies.before[kept])


def starts(start: Ints, cost: Ints, size: int, limit: int) -> NDArray[np.bool_]:
    """Which of the entities are taken: as many as the limit allows, and one at least.

    They are taken in an order that has nothing to do with names, and is always the same.
    """
    of_start = np.bincount(start, cost, size)
    order = np.argsort(np.arange(size, dtype=np.uint64) * np.uint64(0x9E3779B97F4A7C15))
    spent = np.cumsum(of_start[order])
    taken = np.zeros(size, np.bool_)
    taken[order[(spent <= limit) | (spent == of_start[order])]] = True
    return taken


def _add(graph: Graph, bodies: Bodies, prefix: tuple[int, ...], found: Found) -> Ints:
    """Add the rules of bodies that begin alike; how many facts each body joins."""
    relations = len(graph.relations)
    steps = 2 * relations
    which, relation = graph.between(bodies.start * graph.size + bodies.end)
    hits = np.bincount(bodies.step[which] * relations + relation, minlength=steps * relations)
    predictions = np.bincount(bodies.step, minlength=steps)
    step, head = np.divmod(np.flatnonzero(hits), relations)
    if not prefix:  # nothing follows from itself
        kept = step != head
        step, head = step[kept], head[kept]
    names = ("first", "second", "third")
    parts: dict[str, Ints | int] = dict(zip(names, (*prefix, step), strict=False))
    found.add(
        hits[step * relations + head],
        body=predictions[step],
        head=head,
        **parts,
    )
    joined: Ints = hits.reshape(steps, relations).sum(axis=1)
    return joined
