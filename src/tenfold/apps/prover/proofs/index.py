"""Index: the facts of a closure by subject and by object, with their heights.

A row is made when it is first asked for, so that to explain a few facts of a large closure costs
what those few touch.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import numpy as np

from tenfold.apps.prover.closure.fixpoint import Closure
from tenfold.apps.prover.closure.joins import Ints, Packing
from tenfold.apps.prover.input.program import Triple

Row = dict[int, int]  # a constant, and the height of the fact that has it


class FactIndex:
    """Facts with their heights, sorted both ways.

    >>> index = FactIndex.of({(0, 1, 2): 0, (0, 1, 0): 3})
    >>> index.row(0, 1), index.column(0, 2), index.height((0, 1, 0)), index.height((0, 2, 2))
    ({0: 3, 2: 0}, {1: 0}, 3, None)
    """

    def __init__(self, closed: Closure) -> None:
        """The facts of a closure: what it has is shared, and sorted by object once more."""
        packing = closed.packing
        p, s, o = packing.triples(closed.keys).T
        mirrored = packing.keys(np.stack([p, o, s], axis=1))
        order = np.argsort(mirrored, kind="stable")
        bits = int(packing.bits)
        self._closed = closed
        self._ways = (
            _Way(closed.keys, closed.heights, bits),
            _Way(mirrored[order], closed.heights[order], bits),
        )
        self._loops: dict[int, Row] = {}

    @staticmethod
    def of(heights: Mapping[Triple, int]) -> FactIndex:
        """Facts by hand."""
        facts = sorted(heights)
        most = max((max(fact) for fact in facts), default=0)
        bits = max(1, most.bit_length())
        packing = Packing(np.int64(bits), np.int64((most + 1) << 2 * bits))
        numbers = np.array([heights[fact] for fact in facts], np.int64)
        return FactIndex(Closure(packing, packing.keys(facts), numbers, True, 0))

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
        triples = self._closed.packing.triples(self._closed.keys).tolist()
        yield from zip(map(tuple, triples), self._closed.heights.tolist(), strict=True)


class _Way:
    """Facts sorted by predicate and one of their ends: keys of these and of the other end."""

    def __init__(self, keys: Ints, heights: Ints, bits: int) -> None:
        self.keys, self.heights, self.bits = keys, heights, bits
        self._rows: dict[tuple[int, int], Row] = {}
        self._ends: dict[int, Row] = {}

    def _part(self, start: int, size: int) -> tuple[list[int], list[int]]:
        """What lies from a key on, as far as some size: how far from it, and the heights."""
        first, last = np.searchsorted(self.keys, (start, start + size))
        return (self.keys[first:last] - start).tolist(), self.heights[first:last].tolist()

    def row(self, predicate: int, constant: int) -> Row:
        found = self._rows.get((predicate, constant))
        if found is None:
            start = (predicate << 2 * self.bits) | (constant << self.bits)
            found = dict(zip(*self._part(start, 1 << self.bits), strict=True))
            self._rows[predicate, constant] = found
        return found

    def ends(self, predicate: int) -> Row:
        if predicate not in self._ends:
            found: Row = {}
            start = predicate << 2 * self.bits
            for key, height in zip(*self._part(start, 1 << 2 * self.bits), strict=True):
                constant = key >> self.bits
                found[constant] = min(height, found.get(constant, height))
            self._ends[predicate] = found
        return self._ends[predicate]
