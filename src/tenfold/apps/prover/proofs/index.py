"""Index: the facts of a closure by subject and by object, with their heights.

A row is made when it is first asked for, so that to explain a few facts of a large closure costs
what those few touch.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import numpy as np

from tenfold.apps.prover.closure.fixpoint import Closure
from tenfold.apps.prover.closure.joins import Ints
from tenfold.apps.prover.input.program import Triple

Row = dict[int, int]  # a constant, and the height of the fact that has it


class FactIndex:
    """Facts with their heights, sorted both ways.

    >>> index = FactIndex.of({(0, 1, 2): 0, (0, 1, 0): 3})
    >>> index.row(0, 1), index.column(0, 2), index.height((0, 1, 0)), index.height((0, 2, 2))
    ({0: 3, 2: 0}, {1: 0}, 3, None)
    """

    def __init__(self, triples: Ints, heights: Ints) -> None:
        """Facts, one a row, in rising order."""
        self._ways = (_Way(triples, heights, 1), _Way(triples, heights, 2))
        self._loops: dict[int, Row] = {}

    @staticmethod
    def of_closure(closed: Closure) -> FactIndex:
        """The facts of a closure."""
        return FactIndex(closed.packing.triples(closed.keys), closed.heights)

    @staticmethod
    def of(heights: Mapping[Triple, int]) -> FactIndex:
        """Facts by hand."""
        facts = sorted(heights)
        triples = np.array(facts, np.int64).reshape(-1, 3)
        return FactIndex(triples, np.array([heights[fact] for fact in facts], np.int64))

    def row(self, predicate: int, subject: int) -> Row:
        """The objects of a subject, in rising order, with the heights of the facts."""
        return self._ways[0].row(predicate, subject)

    def column(self, predicate: int, object: int) -> Row:
        """The subjects of an object, in rising order, with the heights of the facts."""
        return self._ways[1].row(predicate, object)

    def subjects(self, predicate: int) -> Row:
        """Every subject of a predicate, with the least height of its facts."""
        return self._ways[0].ends(predicate)

    def objects(self, predicate: int) -> Row:
        """Every object of a predicate, with the least height of its facts."""
        return self._ways[1].ends(predicate)

    def loops(self, predicate: int) -> Row:
        """What a predicate relates to itself, with the heights of the facts."""
        if predicate not in self._loops:
            all_ = {c: self.row(predicate, c).get(c) for c in self.subjects(predicate)}
            self._loops[predicate] = {c: height for c, height in all_.items() if height is not None}
        return self._loops[predicate]

    def height(self, fact: Triple) -> int | None:
        """The height of a fact's lowest proof."""
        return self.row(fact[0], fact[1]).get(fact[2])

    def facts(self) -> Iterator[tuple[Triple, int]]:
        """Every fact, in rising order, with its height."""
        way = self._ways[0]
        yield from zip(map(tuple, way.triples.tolist()), way.heights.tolist(), strict=True)


class _Way:
    """Facts sorted by predicate and one of their ends."""

    def __init__(self, triples: Ints, heights: Ints, end: int) -> None:
        order = np.lexsort((triples[:, 3 - end], triples[:, end], triples[:, 0]))
        self.triples, self.heights, self.end = triples[order], heights[order], end
        self._starts = (
            np.searchsorted(self.triples[:, 0], np.arange(triples[:, 0].max() + 2))
            if (len(triples))
            else np.zeros(1, np.int64)
        )
        self._rows: dict[tuple[int, int], Row] = {}
        self._ends: dict[int, Row] = {}

    def _part(self, predicate: int) -> slice:
        if not 0 <= predicate < len(self._starts) - 1:
            return slice(0, 0)
        return slice(int(self._starts[predicate]), int(self._starts[predicate + 1]))

    def row(self, predicate: int, constant: int) -> Row:
        found = self._rows.get((predicate, constant))
        if found is None:
            part = self._part(predicate)
            ends = self.triples[part, self.end]
            first, last = part.start + np.searchsorted(ends, (constant, constant + 1))
            others = self.triples[first:last, 3 - self.end].tolist()
            found = dict(zip(others, self.heights[first:last].tolist(), strict=True))
            self._rows[predicate, constant] = found
        return found

    def ends(self, predicate: int) -> Row:
        if predicate not in self._ends:
            part = self._part(predicate)
            found: Row = {}
            ends, heights = self.triples[part, self.end].tolist(), self.heights[part].tolist()
            for constant, height in zip(ends, heights, strict=True):
                found[constant] = min(height, found.get(constant, height))
            self._ends[predicate] = found
        return self._ends[predicate]
