"""Graph: facts in numbers, indexed by where a step begins and by the pair that it joins.

A step is a relation walked from subject to object, or back: with R relations, step p walks p, step
p + R walks it back.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from tenfold.apps.prover.input.terms import Fact

Ints = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Steps:
    """Steps, sorted by where they begin; those of entity e lie from first[e] to first[e + 1]."""

    first: Ints
    source: Ints
    step: Ints
    target: Ints

    def after(self, places: Ints) -> tuple[Ints, Ints]:
        """Every step that goes on from each of some places: (which of them, the step's number).

        >>> graph = graph_of([Fact("p", "a", "b"), Fact("p", "a", "c")])
        >>> [column.tolist() for column in graph.walks.after(np.array([0, 1]))]
        [[0, 0, 1], [0, 1, 2]]
        """
        return after(self.first, places)


@dataclass(frozen=True, slots=True)
class Graph:
    """Facts in numbers. Walks leave out the loops, from an entity to itself; attributes do not."""

    relations: tuple[str, ...]
    entities: tuple[str, ...]
    walks: Steps
    attributes: Steps
    pairs: Ints  # subject * entities + object of each fact, sorted
    relation: Ints  # of the fact at the same place

    @property
    def size(self) -> int:
        """How many entities there are."""
        return len(self.entities)

    def between(self, keys: Ints) -> tuple[Ints, Ints]:
        """Every fact that joins each of some pairs: (which of them, the relation)."""
        begin = np.searchsorted(self.pairs, keys)
        count = np.searchsorted(self.pairs, keys, "right") - begin
        which, at = _ranges(begin, count)
        return which, self.relation[at]


def after(first: Ints, places: Ints) -> tuple[Ints, Ints]:
    """The rows from first[e] to first[e + 1] for each e of places: (which place, which row)."""
    return _ranges(first[places], first[places + 1] - first[places])


def _ranges(begin: Ints, count: Ints) -> tuple[Ints, Ints]:
    which = np.repeat(np.arange(len(count)), count)
    return which, np.arange(len(which)) + np.repeat(begin - np.cumsum(count) + count, count)


def graph_of(facts: Iterable[Fact]) -> Graph:
    """The graph of some facts; what is numbered is numbered in the order of names."""
    facts = set(facts)
    relations = tuple(sorted({f.predicate for f in facts}))
    entities = tuple(sorted({e for f in facts for e in f[1:]}))
    p_of = {name: i for i, name in enumerate(relations)}
    e_of = {name: i for i, name in enumerate(entities)}
    rows = sorted((e_of[f.subject], e_of[f.object], p_of[f.predicate]) for f in facts)
    subject, object_, relation = np.array(rows, np.int64).reshape(-1, 3).T
    step = np.concatenate([relation, relation + len(relations)])
    source = np.concatenate([subject, object_])
    target = np.concatenate([object_, subject])
    size = len(entities)
    kept = source != target
    return Graph(
        relations,
        entities,
        _sorted(source[kept], step[kept], target[kept], size),
        _sorted(source, step, target, size),
        subject * size + object_,
        relation,
    )


def _sorted(source: Ints, step: Ints, target: Ints, size: int) -> Steps:
    order = np.lexsort((target, step, source))
    first = np.searchsorted(source[order], np.arange(size + 1))
    return Steps(first, source[order], step[order], target[order])
