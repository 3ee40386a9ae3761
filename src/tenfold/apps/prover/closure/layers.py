"""Layers: the facts of each height, at four bytes each, until they are put together.

A fact's key is a prefix, of predicate and subject, and a column, its object. A layer has its
columns and, once for all facts that share it, each prefix. All layers become one sorted list of
keys from the last block to the first, and give back what they held of it: so at no time is there
much more than the keys.
"""

from __future__ import annotations

import mmap
from dataclasses import dataclass
from typing import Any

import numpy as np

from tenfold.apps.prover.closure.joins import Ints, Packing

Flags = np.ndarray[Any, np.dtype[np.bool_]]
Shorts = np.ndarray[Any, np.dtype[np.int32]]

BLOCK = 1 << 16  # keys that are put together at a time
PAGES = 1 << 16  # bytes from which on memory is asked of the system, and goes back to it


@dataclass(slots=True)
class Layer:
    """Sorted facts."""

    bits: int  # of a column
    prefixes: Ints  # each once, rising
    ends: Ints  # where the columns of each prefix end
    columns: Shorts  # rising for each prefix

    @staticmethod
    def of_keys(keys: Ints, packing: Packing) -> Layer:
        """A layer of sorted keys.

        >>> packing = Packing(np.int64(2), np.int64(16))
        >>> made = Layer.of_keys(np.array([1, 2, 7]), packing)
        >>> made.prefixes.tolist(), made.ends.tolist(), made.columns.tolist()
        ([0, 1], [2, 3], [1, 2, 3])
        """
        bits = int(packing.bits)
        prefixes = keys >> bits
        last = np.flatnonzero(np.diff(prefixes, append=-1))
        columns = (keys & ((1 << bits) - 1)).astype(np.int32)
        return Layer(bits, prefixes[last], last + 1, columns)

    def __len__(self) -> int:
        return len(self.columns)

    def keys(self, predicates: list[int] | None = None) -> Ints:
        """The keys of all facts, or of those with these predicates."""
        chosen = np.ones(len(self.prefixes), bool)
        if predicates is not None:
            chosen = np.isin(self.prefixes >> self.bits, predicates)
        counts = np.diff(self.ends, prepend=0)
        columns = self.columns if chosen.all() else self.columns[np.repeat(chosen, counts)]
        return np.repeat(self.prefixes[chosen] << self.bits, counts[chosen]) | columns

    def holds(self, keys: Ints) -> Flags:
        """Which keys are here.

        >>> packing = Packing(np.int64(2), np.int64(16))
        >>> Layer.of_keys(np.array([1, 2, 7]), packing).holds(np.array([2, 3, 6, 7, 9])).tolist()
        [True, False, False, True, False]
        """
        if not len(self):
            return np.zeros(len(keys), bool)
        prefix, column = keys >> self.bits, keys & ((1 << self.bits) - 1)
        at = np.minimum(np.searchsorted(self.prefixes, prefix), len(self.prefixes) - 1)
        high = self.ends[at]
        past = high.copy()
        low = np.where(at > 0, self.ends[at - 1], 0)
        for _ in range(int((high - low).max(initial=0)).bit_length()):
            middle = np.minimum((low + high) // 2, len(self) - 1)
            below = (low < high) & (self.columns[middle] < column)
            low, high = np.where(below, middle + 1, low), np.where(below, high, middle)
        there = self.columns[np.minimum(low, len(self) - 1)] == column
        return np.asarray((self.prefixes[at] == prefix) & (low < past) & there)

    def taken_from(self, prefix: Any) -> Ints:
        """The keys from a prefix on, which are here no more; their memory goes back."""
        line = int(np.searchsorted(self.prefixes, prefix))
        first = int(self.ends[line - 1]) if line else 0
        counts = np.diff(self.ends[line:], prepend=first)
        keys: Ints = np.repeat(self.prefixes[line:] << self.bits, counts) | self.columns[first:]
        self.prefixes, self.ends = self.prefixes[:line], self.ends[:line]
        try:
            self.columns.resize(first)
        except ValueError:  # somebody else holds them: nothing would be gained
            self.columns = self.columns[:first]
        return keys


def put_together(layers: list[Layer], packing: Packing) -> tuple[Ints, Any]:
    """The keys of all layers, sorted, each with the number of its layer. Layers are used up.

    >>> packing = Packing(np.int64(2), np.int64(16))
    >>> parts = [Layer.of_keys(np.array(keys), packing) for keys in ([1, 7], [2, 3, 12])]
    >>> [part.tolist() for part in put_together(parts, packing)]
    [[1, 2, 3, 7, 12], [0, 1, 1, 0, 1]]
    """
    at = sum(map(len, layers))
    keys = np.empty(at, np.int64)
    numbers = np.empty(at, np.uint8 if len(layers) <= 256 else np.int32)
    places = max(1, (len(layers) - 1).bit_length())
    narrow = int(packing.reverse).bit_length() + places <= 63
    while at:
        share = max(1, BLOCK // len(layers))
        ahead = [
            layer.prefixes[np.searchsorted(layer.ends, len(layer) - share, "right")]
            for layer in layers
            if len(layer)
        ]
        parts = [layer.taken_from(max(ahead)) for layer in layers]
        block = np.concatenate(parts)
        first = at - len(block)
        own = np.repeat(np.arange(len(parts)), [len(part) for part in parts])
        if narrow:  # sorted at once: it goes by runs, and each part is one
            block <<= places
            block |= own
            block.sort(kind="stable")
            np.right_shift(block, places, out=keys[first:at])
            numbers[first:at] = block & ((1 << places) - 1)
        else:
            order = np.argsort(block, kind="stable")
            keys[first:at], numbers[first:at] = block[order], own[order]
        at = first
    return keys, numbers


def kept(columns: Shorts) -> Shorts:
    """A copy. That of many columns has pages of its own, which the system gets back with it."""
    if columns.nbytes < PAGES:
        return columns.copy()
    made: Shorts = np.frombuffer(mmap.mmap(-1, columns.nbytes), np.int32)
    made[:] = columns
    return made
