"""Relations: facts as matrices, each predicate one and its inverse another.

A table has all matrices of one kind, the columns of each line one after the other. There are four:
the facts of earlier rounds and those of the last round, each by subject and by object. Where there
can't be many facts at all they are bits instead, those of all rounds together.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

Ints = np.ndarray[Any, np.dtype[np.int32]]
Words = np.ndarray[Any, np.dtype[np.uint64]]

BITS = 1 << 23  # bytes of all matrices as bits, at most
GROUP = 1 << 20  # entries that are inverted at a time
OLD, NEW = 0, 1  # of a direction's two tables; the inverse ones come behind


class Table(NamedTuple):
    """Where the lines of each matrix begin, and the columns of all of them."""

    starts: Ints  # [matrices, extent + 1]
    items: Ints

    @staticmethod
    def of(matrices: int, extent: int, lines: Any, columns: Any) -> Table:
        """A table of sorted lines (matrix · extent + row) and their columns."""
        begins = np.flatnonzero(np.diff(lines, prepend=-1))
        counts = np.zeros(matrices * extent, np.int32)
        counts[lines[begins]] = np.diff(begins, append=len(lines))
        return Table.of_counts(matrices, extent, counts, columns)

    @staticmethod
    def of_counts(matrices: int, extent: int, counts: Any, columns: Any) -> Table:
        """A table of how many columns each line has, and these."""
        ends = np.zeros(matrices * extent + 1, np.int32)
        np.cumsum(counts, out=ends[1:])
        starts = np.empty((matrices, extent + 1), np.int32)
        starts[:, :-1] = ends[:-1].reshape(matrices, extent)
        starts[:, -1] = ends[extent::extent]
        return Table(starts, np.asarray(columns, np.int32))

    @staticmethod
    def empty(matrices: int, extent: int) -> Table:
        return Table(np.zeros((matrices, extent + 1), np.int32), np.zeros(0, np.int32))

    def spread(self, lines: Any) -> np.ndarray[Any, np.dtype[np.int64]]:
        """For each entry the number that its line has."""
        return np.repeat(lines.reshape(-1), np.diff(self.starts, axis=1).reshape(-1))

    def used(self) -> tuple[Any, Any]:
        """The lines (matrix · extent + row) that have entries, and how many."""
        counts = np.diff(self.starts, axis=1).reshape(-1)
        lines = np.flatnonzero(counts)
        return lines, counts[lines]

    def thinned(self, most: int) -> Table:
        """Some of the entries, from all over the table."""
        if len(self.items) <= most:
            return self
        matrices, extent = self.starts.shape[0], self.starts.shape[1] - 1
        kept = np.linspace(0, len(self.items) - 1, most).astype(np.int64)
        lines = np.searchsorted(self.starts[:, :-1].reshape(-1), kept, "right") - 1
        return Table.of(matrices, extent, lines, self.items[kept])

    def sizes(self) -> Ints:
        """How many entries each matrix has."""
        return self.starts[:, -1] - self.starts[:, 0]

    @property
    def nbytes(self) -> int:
        return self.starts.nbytes + self.items.nbytes


def inverted(table: Table) -> Table:
    """The same matrices with rows for columns; some matrices at a time, so that what is sorted is
    small beside all of them."""
    matrices, extent = table.starts.shape[0], table.starts.shape[1] - 1
    bits = extent.bit_length()  # shifts are far quicker than divisions
    mask = (1 << bits) - 1
    lines, sizes = table.used()
    counts = np.zeros(matrices * extent, np.int32)
    columns = np.empty(len(table.items), np.int32)
    for first, past in _groups(table.sizes()):
        low, high = table.starts[first, 0], table.starts[past - 1, -1]
        own = slice(*np.searchsorted(lines, [first * extent, past * extent]))
        matrix, row = np.divmod(lines[own], extent)
        keys = np.repeat(matrix << 2 * bits | row, sizes[own])
        keys |= table.items[low:high].astype(np.int64) << bits
        keys.sort()
        columns[low:high] = keys & mask
        keys >>= bits
        keys = (keys >> bits) * extent + (keys & mask)
        begins = np.flatnonzero(np.diff(keys, prepend=-1))
        counts[keys[begins]] = np.diff(begins, append=len(keys))
    return Table.of_counts(matrices, extent, counts, columns)


def _groups(sizes: Ints) -> Iterator[tuple[int, int]]:
    """Matrices that have some entries together, or one that has more.

    >>> list(_groups(np.array([1, GROUP, 3, 4])))
    [(0, 1), (1, 2), (2, 4)]
    """
    first, total = 0, 0
    for number, size in enumerate(sizes.tolist()):
        if total and total + size > GROUP:
            yield first, number
            first, total = number, 0
        total += size
    if total:
        yield first, len(sizes)


def put(bits: Words, first: int, table: Table) -> None:
    """Set the bits of a table's entries in the matrices from `first` on."""
    if not len(table.items):
        return
    matrices, extent = table.starts.shape[0], table.starts.shape[1] - 1
    words = table.spread(np.arange(matrices * extent) * bits.shape[-1])
    words += table.items >> 6
    values = np.uint64(1) << (table.items & 63).astype(np.uint64)
    begins = np.flatnonzero(np.diff(words, prepend=-1))
    flat = bits[first : first + matrices].reshape(-1)
    flat[words[begins]] |= np.bitwise_or.reduceat(values, begins)


@dataclass(slots=True)
class Relations:
    """All matrices. Those by object are there for the predicates in `turned` alone."""

    extent: int
    predicates: int
    turned: tuple[int, ...]
    dense: bool  # whether all matrices are bits
    tables: list[Table]  # old and new by subject, old and new by object
    bits: Words  # [predicates + turned, extent, words]; [1, …] where there are none

    @staticmethod
    def of(extent: int, predicates: int, turned: tuple[int, ...]) -> Relations:
        words = -(-extent // 64)
        matrices = predicates + len(turned)
        dense = matrices * extent * words * 8 <= BITS
        bits = np.zeros((matrices if dense else 1, extent, words), np.uint64)
        tables = [
            Table.empty(n, extent) for n in (predicates, max(1, len(turned))) for _ in range(2)
        ]
        return Relations(extent, predicates, turned, dense, tables, bits)

    @property
    def matrices(self) -> int:
        return self.predicates + len(self.turned)

    def place(self, predicate: int, inverse: bool) -> int:
        """The number of a matrix among those of its direction."""
        return self.turned.index(predicate) if inverse else predicate

    def step(
        self, predicate: int, inverse: bool, first: int = OLD, past: int = NEW + 1
    ) -> tuple[int, int, int]:
        """A step through the facts of earlier rounds, the last one, or both."""
        number = self.place(predicate, inverse)
        if self.dense:
            return (number + (self.predicates if inverse else 0), -1, -1)
        return (number, first + 2 * inverse, past + 2 * inverse)

    def add(self, new: Table) -> None:
        """Have other facts be those of the last round."""
        turned = np.array(self.turned, np.int64)
        if len(turned):
            counts = np.diff(new.starts, axis=1)[turned].reshape(-1)
            parts = [new.items[new.starts[p, 0] : new.starts[p, -1]] for p in self.turned]
            chosen = Table.of_counts(len(turned), self.extent, counts, np.concatenate(parts))
            other = inverted(chosen)
        else:
            other = self.tables[2 + NEW]
        if self.dense:
            put(self.bits, 0, new)
            put(self.bits, self.predicates, other)
        else:
            self.tables[NEW], self.tables[2 + NEW] = new, other

    @property
    def nbytes(self) -> int:
        return self.bits.nbytes + sum(t.nbytes for t in self.tables)
