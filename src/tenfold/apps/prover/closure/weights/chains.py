"""Chains: rules of two atoms that lead from one end of the head to the other, by matrices.

Where there are few constants and many facts, a rule has far more groundings than there are pairs of
constants. The best grounding for each pair is then a product of two matrices of weights in which
the sum is a maximum: the same products as by groundings one by one, so the same bits. Rules with
the same body share it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from tenfold.apps.prover.backend import traced
from tenfold.apps.prover.closure.joins import Ints, Packing
from tenfold.apps.prover.columns import Traced
from tenfold.apps.prover.input.program import Clause

Floats = np.ndarray[Any, np.dtype[np.float64]]
CELLS = 1 << 24  # of all matrices together, at most
TOGETHER = 1 << 16  # cells of the matrices that are multiplied in one call
GROUNDING = 64  # what a grounding costs, in products of a matrix
SMALL = 1e-150  # products of weights above it are above 0, so that 0 can stand for no proof


class Link(NamedTuple):
    """A predicate, and whether it leads from its object to its subject."""

    predicate: int
    turned: bool


Body = tuple[Link, Link]


def chain_of(clause: Clause) -> Body | None:
    """The two links from the head's subject to its object; None where a rule is no such chain.

    >>> chain_of(Clause((0, -1, -2), ((1, -1, -3), (2, -2, -3))))
    (Link(predicate=1, turned=False), Link(predicate=2, turned=True))
    """
    _, x, y = clause.head
    if len(clause.body) != 2 or x >= 0 or y >= 0 or x == y:
        return None
    for one, two in (clause.body, clause.body[::-1]):
        between = set(one[1:]) - {x}
        if x in one[1:] and y in two[1:] and between == set(two[1:]) - {y} and len(between) == 1:
            (z,) = between
            if z < 0 and z not in (x, y):
                return Link(one[0], one[2] == x), Link(two[0], two[1] == y)
    return None


@dataclass(frozen=True, slots=True)
class Matrices:
    """The weights of facts, a matrix for each predicate and direction; 0 where there is no fact."""

    cells: Floats  # [predicates, directions, constants, constants]

    @staticmethod
    def of(
        keys: Ints, weights: Floats, packing: Packing, predicates: int, constants: int
    ) -> Matrices | None:
        """The matrices, unless they are too large, or a weight is too small to be told from 0."""
        if 2 * predicates * constants**2 > CELLS or weights.min(initial=1.0) < SMALL:
            return None
        cells = np.zeros((predicates, 2, constants, constants))
        p, s, o = packing.triples(keys).T
        cells[p, 0, s, o] = weights
        cells[p, 1, o, s] = weights
        return Matrices(cells)

    def pay(self, bodies: Iterable[Body]) -> set[Body]:
        """The bodies for which matrices cost less than groundings, which are counted."""
        there = self.cells > 0
        into, onto = there.sum(axis=2), there.sum(axis=3)  # [predicates, directions, constants]
        least = self.cells.shape[-1] ** 3
        return {
            (a, b)
            for a, b in bodies
            if GROUNDING * int(into[a.predicate, int(a.turned)] @ onto[b.predicate, int(b.turned)])
            > least
        }

    def best(self, bodies: Sequence[Body], backend: str) -> Iterator[Floats]:
        """For each body the best product for each pair of constants, 0 for none."""
        size = max(1, TOGETHER // self.cells.shape[-1] ** 2)
        for first in range(0, len(bodies), size):
            part = bodies[first : first + size]
            filled = [*part, *[part[0]] * (size - len(part))]
            one, two = (
                self.cells[[b[i].predicate for b in filled], [int(b[i].turned) for b in filled]]
                for i in (0, 1)
            )
            yield from np.asarray(compose.on(backend)(one, two))[: len(part)]


@traced()
def compose(one: Traced, two: Traced) -> Traced:
    """For each pair of matrices the greatest product over what is between [chains, n, n]."""
    return (one[:, :, :, None] * two[:, None, :, :]).max(axis=2)


def ground_chains(
    rules: Sequence[tuple[Body, Clause, float, int]],
    matrices: Matrices,
    wanted: Ints,
    table: Floats,
    packing: Packing,
    backend: str,
) -> None:
    """Put the best groundings of chains into a table, each rule's at its offset, where they are
    greater than what is there."""
    by_body: dict[Body, list[tuple[Clause, float, int]]] = {}
    for body, clause, weight, offset in rules:
        by_body.setdefault(body, []).append((clause, weight, offset))
    bodies = list(by_body)
    _, s, o = packing.triples(wanted).T
    for body, best in zip(bodies, matrices.best(bodies, backend), strict=True):
        for clause, weight, offset in by_body[body]:
            p = clause.head[0]
            ends = np.array([p, p + 1]) << 2 * packing.bits
            first, last = np.searchsorted(wanted, ends).tolist()
            product = best[s[first:last], o[first:last]]
            mine = table[offset + first : offset + last]
            np.maximum(mine, np.where(product > 0, product * weight, mine), out=mine)
