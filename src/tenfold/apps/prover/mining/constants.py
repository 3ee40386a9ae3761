"""Constants: rules that say of an entity how it stands to one constant, because of something else.

`h(X,c)`, or `h(c,X)`, follows from `b(X,d)`, or from `b(X,A)` with any A. Where that is the
head's own relation, A is another than c: nothing follows from itself.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from tenfold.apps.prover.mining.found import LEAST, Found
from tenfold.apps.prover.mining.graph import Graph, Ints, Steps, after
from tenfold.apps.prover.mining.paths import Walks, starts


@dataclass(frozen=True, slots=True)
class Attributes:
    """What entities have: steps to constants, and steps to anything."""

    given: Steps
    steps: int
    having: Ints  # step and constant of each, sorted
    first: Ints  # the steps of entity e lie from first[e] to first[e + 1], each once
    step: Ints
    many: Ints  # constants that this step leads to
    entities: Ints  # that have each step

    @property
    def size(self) -> int:
        """How many entities there are."""
        return len(self.first) - 1


def mine_constants(graph: Graph, found: Found, walks: Walks) -> None:
    """Add the rules with constants."""
    steps = 2 * len(graph.relations)
    whole = _attributes(graph.attributes, steps)
    degree = np.diff(graph.attributes.first)
    for head in range(steps):
        had = whole
        entity = had.given.source[had.given.step == head]
        cost = degree[entity]
        if cost.sum() > walks.of_body:
            walks.sampled += 1
            taken = starts(entity, cost, graph.size, walks.of_body)
            had = _attributes(_only(graph.attributes, taken), steps)
        own = np.flatnonzero(had.given.step == head)
        entity, constant = had.given.source[own], had.given.target[own]
        _with_two(had, head, entity, constant, found)
        _with_one(had, head, entity, constant, found)


def _attributes(given: Steps, steps: int) -> Attributes:
    size = len(given.first) - 1
    pair, many = np.unique(given.source * steps + given.step, return_counts=True)
    source, step = np.divmod(pair, steps)
    first = np.searchsorted(source, np.arange(size + 1))
    having = np.sort(given.step * size + given.target)
    return Attributes(given, steps, having, first, step, many, np.bincount(step, minlength=steps))


def _only(given: Steps, taken: NDArray[np.bool_]) -> Steps:
    """The steps that begin at some entities."""
    kept = np.flatnonzero(taken[given.source])
    source = given.source[kept]
    first = np.searchsorted(source, np.arange(len(given.first)))
    return Steps(first, source, given.step[kept], given.target[kept])


def _with_two(had: Attributes, head: int, entity: Ints, constant: Ints, found: Found) -> None:
    """h(X,c) <= b(X,d)."""
    size = had.size
    which, at = had.given.after(entity)
    attribute = had.given.step[at] * size + had.given.target[at]
    key, support = np.unique(constant[which] * (had.steps * size) + attribute, return_counts=True)
    kept = support >= LEAST
    own, wanted = np.divmod(key[kept], had.steps * size)
    support = support[kept]
    itself = wanted == head * size + own
    own, wanted, support = own[~itself], wanted[~itself], support[~itself]
    body = np.searchsorted(had.having, wanted, "right") - np.searchsorted(had.having, wanted)
    first, other = np.divmod(wanted, size)
    found.add(support, body=body, head=head, first=first, own=own, other=other)


def _with_one(had: Attributes, head: int, entity: Ints, constant: Ints, found: Found) -> None:
    """h(X,c) <= b(X,A)."""
    which, at = after(had.first, entity)
    alone = (had.step[at] == head) & (had.many[at] == 1)  # the head's step leads to c alone
    lone = np.bincount(constant[which[alone]], minlength=had.size)
    key = constant[which[~alone]] * had.steps + had.step[at[~alone]]
    key, support = np.unique(key, return_counts=True)
    own, first = np.divmod(key, had.steps)
    body = had.entities[first] - np.where(first == head, lone[own], 0)
    found.add(support, body=body, head=head, first=first, own=own)
