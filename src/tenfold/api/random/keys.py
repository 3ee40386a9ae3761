"""Keys: made from a seed, split into others, folded with data.

A key is u32[2]. All that comes from it is the block function threefry of the key and a counter
of two words. The second word of the counter says what for, so that the bits drawn from a key,
the keys split off it and those folded from it never meet.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from tenfold.errors import ShapeError, TypeMismatch
from tenfold.trace.array import Array
from tenfold.trace.surface.anywhere import anywhere
from tenfold.trace.surface.emit import cast, emit, emit_all, fail, static_int, traced
from tenfold.trace.surface.ufuncs.composed import number
from tenfold.types import DTYPES, KIND

U32, U64 = DTYPES["u32"], DTYPES["u64"]

# The second word of the counter. Bits count on from 0 (and from MORE, where an element needs
# two blocks), far from the others.
MORE, SPLIT, FOLD = 0x40000000, 0x80000000, 0xC0000000


@anywhere
def key(seed: Any) -> Array:
    """The key of a seed: any integer, of which the lowest 64 bits count.

    >>> import tenfold as tn
    >>> tn.random.key(5)
    array([0, 5], dtype=uint32)
    """
    if not isinstance(seed, Array):
        digits = static_int(seed, "random.key: the seed") & (2**64 - 1)
        return traced(np.array([digits >> 32, digits & 0xFFFFFFFF], U32))
    if seed.shape or KIND[seed.dtype] not in "biu":
        fail(TypeMismatch, f"random.key of {seed.type}", "give one integer")
    whole = emit("reshape", cast(seed, U64), shape=(1,))
    high = cast(emit("shr", whole, number(32, U64)), U32)
    low = cast(emit("and", whole, number(0xFFFFFFFF, U64)), U32)
    return emit("concatenate", high, low, axis=0)


def words(name: str, key: Any) -> tuple[Array, Array]:
    """The two words of a key."""
    array = traced(key)
    if array.dtype != U32 or array.shape != (2,):
        fail(
            TypeMismatch if array.dtype != U32 else ShapeError,
            f"random.{name}: the key is {array.type}, not u32[2]",
            "make one with tn.random.key(seed), or take one of those that tn.random.split gives",
        )
    first = emit("slice", array, starts=(0,), stops=(1,), steps=(1,))
    second = emit("slice", array, starts=(1,), stops=(2,), steps=(1,))
    return emit("reshape", first, shape=()), emit("reshape", second, shape=())


def block(name: str, key: Any, low: Array, high: Array) -> tuple[Array, Array]:
    """The words that belong to these counters."""
    x, y = emit_all("threefry", *words(name, key), low, high)
    return x, y


@anywhere
def split(key: Any, n: int = 2) -> Array:
    """So many new keys, u32[n, 2]; each is a row.

    >>> import tenfold as tn
    >>> tn.random.split(tn.random.key(0), 3).shape
    (3, 2)
    """
    count = static_int(n, "random.split: the number of keys")
    if count < 0:
        fail(ShapeError, f"random.split into {count} keys", "give 0 or more")
    places = emit("iota", dtype=U32, shape=(count, 1), axis=0)
    pair = block("split", key, places, number(SPLIT, U32))
    return emit("concatenate", *pair, axis=1)


@anywhere
def fold_in(key: Any, data: Any) -> Array:
    """A new key for this key and an integer, of which the lowest 32 bits count: the number of a
    step, for one, which may be traced.

    >>> import tenfold as tn
    >>> k = tn.random.key(0)
    >>> bool((tn.random.fold_in(k, 1) != tn.random.fold_in(k, 2)).any())
    True
    """
    if isinstance(data, Array):
        if data.shape or KIND[data.dtype] not in "biu":
            fail(TypeMismatch, f"random.fold_in of {data.type}", "give one integer")
        low = cast(cast(data, U64) if KIND[data.dtype] == "i" else data, U32)
    else:
        low = number(static_int(data, "random.fold_in: the data") & 0xFFFFFFFF, U32)
    pair = block("fold_in", key, emit("reshape", low, shape=(1,)), number(FOLD, U32))
    return emit("concatenate", *pair, axis=0)
