"""Flat: x.flat, the elements of an array in C order, read and written by number."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from tenfold.errors import ShapeError
from tenfold.frames import entry
from tenfold.frozen import frozen
from tenfold.trace.array import Array
from tenfold.trace.surface.emit import emit, fail, traced, update
from tenfold.trace.surface.indexing.indexing import getitem, setitem
from tenfold.trace.surface.indexing.parts import gather
from tenfold.trace.surface.ufuncs.composed import number
from tenfold.types import I64


@frozen(eq=False)
class Flat:
    """What NumPy calls a flatiter: reading gives copies, writing reaches the array."""

    base: Array

    def __len__(self) -> int:
        return self.base.size

    def __iter__(self) -> Iterator[Array]:
        return (self[i] for i in range(len(self)))

    @entry
    def __getitem__(self, key: Any) -> Array:
        return getitem(self.copy(), key)

    @entry
    def __setitem__(self, key: Any, value: Any) -> None:
        self.base._check_writable()
        flat = self.copy()
        made = traced(value, flat.dtype)
        if made.size == 1:
            made = emit("reshape", made, shape=())
        else:
            made = _cycled(made, getitem(flat, key).size)
        setitem(flat, key, made)
        update(self.base, emit("reshape", flat, shape=self.base.shape))

    def copy(self) -> Array:
        """The elements as an array of their own."""
        return emit("reshape", self.base, shape=(self.base.size,))


def _cycled(values: Array, count: int) -> Array:
    """So many of the values, from the first again after the last, as NumPy assigns them."""
    if not values.size and count:
        fail(ShapeError, f"no values are assigned to {count} elements", "give at least one")
    values = emit("reshape", values, shape=(values.size,))
    if values.size == count:
        return values
    along = emit("iota", dtype=I64, shape=(count,), axis=0)
    return gather(values, (0,), 0, [emit("mod", along, number(max(values.size, 1), I64))])


def assign(self: Array, value: Any) -> None:
    """x.flat = value"""
    Flat(self)[:] = value
