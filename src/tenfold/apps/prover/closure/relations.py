"""Relations: facts as matrices, each predicate one and its inverse another.

A table has all matrices of one kind, the columns of each line one after the other, and nothing for
the lines without columns, which are most. There are four: the facts of earlier rounds and those of
the last round, each by subject and by object. Where there can't be many facts at all they are bits
instead, those of all rounds together.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np

Ints = np.ndarray[Any, np.dtype[np.int32]]
Words = np.ndarray[Any, np.dtype[np.uint64]]
Places = np.ndarray[Any, np.dtype[np.int64]]

BITS = 1 << 23  # bytes of all matrices as bits, at most
GROUP = 1 << 17  # entries that are inverted, or made bits, at a time
OLD, NEW = 0, 1  # of a direction's two tables; the inverse ones come behind


class Table(NamedTuple):
    """Which lines of each matrix have columns, and these: nothing is held of the other lines.

    A line's number is that of its bit: matrix · 64 words + row.
    """

    lines: Words  # [matrices, words]: a bit for each line that has columns
    ranks: Ints  # [matrices, words]: how many such lines there are before those of a word
    starts: Ints  # where the columns of each of them begin, and those of the last end
    items: Ints

    @staticmethod
    def of(matrices: int, extent: int, lines: Any, columns: Any) -> Table:
        """A table of sorted numbers of lines, one for each of their columns."""
        begins = np.flatnonzero(np.diff(lines, prepend=-1))
        counts = np.diff(begins, append=len(lines))
        return Table.of_counts(matrices, extent, lines[begins], counts, columns)

    @staticmethod
    def of_counts(matrices: int, extent: int, lines: Any, counts: Any, columns: Any) -> Table:
        """A table of the lines that have columns, rising, how many each has, and these."""
        shape = (matrices, _words(extent))
        starts = np.zeros(len(lines) + 1, np.int32)
        np.cumsum(counts, out=starts[1:])
        word = lines >> 6
        bits = np.zeros(matrices * shape[1], np.uint64)
        np.bitwise_or.at(bits, word, np.uint64(1) << (lines & 63).astype(np.uint64))
        each = np.bincount(word, minlength=len(bits))
        ranks = (np.cumsum(each) - each).astype(np.int32)
        return Table(
            bits.reshape(shape), ranks.reshape(shape), starts, np.asarray(columns, np.int32)
        )

    @staticmethod
    def empty(matrices: int, extent: int) -> Table:
        none = np.zeros(0, np.int64)
        return Table.of_counts(matrices, extent, none, none, none)

    def numbers(self) -> Places:
        """The numbers of the lines that have columns."""
        flat = self.lines.reshape(-1)
        words = np.flatnonzero(flat)
        bits = np.unpackbits(flat[words].view(np.uint8), bitorder="little")
        bit = np.flatnonzero(bits)
        found: Places = (words[bit >> 6] << 6) | (bit & 63)
        return found

    def counts(self) -> Ints:
        """How many columns each of these lines has."""
        return np.diff(self.starts)

    def bounds(self) -> Places:
        """The first line with columns of each matrix, and their number."""
        count = len(self.starts) - 1
        firsts = self.ranks[:, 0] if self.ranks.size else np.zeros(len(self.ranks), np.int64)
        return np.append(firsts, count)

    def sizes(self) -> Ints:
        """How many entries each matrix has."""
        return np.diff(self.starts[self.bounds()])

    def thinned(self, most: int) -> Table:
        """Some of the entries, from all over the table."""
        if len(self.items) <= most:
            return self
        kept = np.linspace(0, len(self.items) - 1, most).astype(np.int64)
        lines = self.numbers()[np.searchsorted(self.starts, kept, "right") - 1]
        return Table.of(len(self.lines), 64 * self.lines.shape[1], lines, self.items[kept])

    @property
    def nbytes(self) -> int:
        return sum(part.nbytes for part in self)


def _words(extent: int) -> int:
    return -(-extent // 64)


def numbers_of(matrices: Any, rows: Any, extent: int) -> Any:
    """The numbers of lines."""
    return (matrices * _words(extent) << 6) + rows


def inverted(table: Table, matrices: Sequence[int]) -> Table:
    """Some matrices, which become the first and so on, with rows for columns; a few at a time, so
    that what is sorted is small beside all of them."""
    words = table.lines.shape[1]
    bits = (words << 6).bit_length()
    mask = (1 << bits) - 1
    numbers, counts, bounds = table.numbers(), table.counts(), table.bounds()
    sizes = table.sizes()[list(matrices)]
    columns = np.empty(int(sizes.sum()), np.int32)
    lines, lengths, at = [np.zeros(0, np.int64)], [np.zeros(0, np.int64)], 0
    for first, past in _groups(sizes):
        parts = []
        for new in range(first, past):
            own = slice(bounds[matrices[new]], bounds[matrices[new] + 1])
            low, high = table.starts[own.start], table.starts[own.stop]
            rows = np.repeat(numbers[own] - (matrices[new] * words << 6), counts[own])
            keys = table.items[low:high].astype(np.int64) + (new * words << 6)  # the new lines
            keys <<= bits
            keys |= rows
            parts.append(keys)
        keys = np.concatenate(parts) if len(parts) > 1 else parts[0]
        keys.sort()
        np.bitwise_and(keys, mask, out=columns[at : at + len(keys)], casting="unsafe")
        at += len(keys)
        keys >>= bits
        begins = np.flatnonzero(np.diff(keys, prepend=-1))
        lines.append(keys[begins])
        lengths.append(np.diff(begins, append=len(keys)))
    made = np.concatenate(lines), np.concatenate(lengths)
    return Table.of_counts(len(matrices), words << 6, *made, columns)


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
    extent, words = bits.shape[1:]
    flat = bits.reshape(-1)
    lines, counts = table.numbers(), table.counts()
    matrix, row = np.divmod(lines, max(1, words << 6))
    begins = ((first + matrix) * extent + row) * words
    cuts = np.searchsorted(table.starts, np.arange(0, len(table.items), GROUP))
    for low, past in pairwise([*np.unique(cuts).tolist(), len(lines)]):
        own = slice(low, past)
        items = table.items[table.starts[low] : table.starts[past]]
        place = np.repeat(begins[own], counts[own])
        place += items >> 6
        values = np.uint64(1) << (items & 63).astype(np.uint64)
        starts = np.flatnonzero(np.diff(place, prepend=-1))
        flat[place[starts]] |= np.bitwise_or.reduceat(values, starts)


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
        words = _words(extent)
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
        other = inverted(new, self.turned) if self.turned else self.tables[2 + NEW]
        if self.dense:
            put(self.bits, 0, new)
            put(self.bits, self.predicates, other)
        else:
            self.tables[NEW], self.tables[2 + NEW] = new, other

    @property
    def nbytes(self) -> int:
        """What is in use: bits that nobody sets take no memory."""
        bits = self.bits.nbytes if self.dense else 0
        return bits + sum(t.nbytes for t in self.tables)
