"""Bits: packbits and unpackbits."""

from __future__ import annotations

from typing import Any

import numpy as np

from tenfold.errors import ShapeError, TypeMismatch, ValueProblem
from tenfold.trace.array import Array
from tenfold.trace.surface.emit import axis_of, cast, emit, fail, on, static_int, traced
from tenfold.trace.surface.shaping.shapes import cut
from tenfold.trace.surface.ufuncs.composed import number
from tenfold.trace.tables import FUNCTIONS
from tenfold.types import BOOL, DTYPES, KIND

_U8 = DTYPES["u8"]


def _line(x: Array, axis: Any) -> tuple[Array, int]:
    """The array with the axis last."""
    if axis is None:
        return emit("reshape", x, shape=(x.size,)), 0
    if x.ndim == 0:
        axis_of(axis, 1)
        return emit("reshape", x, shape=(1,)), 0
    at = axis_of(axis, x.ndim)
    return FUNCTIONS[np.moveaxis](x, at, -1), at


def _shifts(name: str, bitorder: str) -> Array:
    """How far each bit of a byte is from the lowest, in the order they come."""
    if bitorder not in ("big", "little"):
        fail(ValueProblem, f"{name}: bitorder={bitorder!r}", "say 'big' or 'little'")
    along = emit("iota", dtype=_U8, shape=(8,), axis=0)
    return along if bitorder == "little" else emit("sub", number(7, _U8), along)


@on(np.packbits)
def packbits(a: Any, /, axis: Any = None, bitorder: str = "big") -> Array:
    x = traced(a)
    if KIND[x.dtype] not in "biu":
        fail(TypeMismatch, f"packbits of {x.type}", "give bools or integers")
    x, at = _line(cast(x, BOOL), axis)
    n = x.shape[-1]
    short = -n % 8
    if short:
        zeros, high = (0,) * x.ndim, (*(0,) * (x.ndim - 1), short)
        x = emit("pad", x, number(False, BOOL), low=zeros, high=high, interior=zeros)
    eights = emit("reshape", x, shape=(*x.shape[:-1], (n + short) // 8, 8))
    worth = emit("shl", cast(eights, _U8), _shifts("packbits", bitorder))
    packed = emit("reduce_sum", worth, axes=(x.ndim,))
    made: Array = FUNCTIONS[np.moveaxis](packed, -1, at)
    return made


@on(np.unpackbits)
def unpackbits(a: Any, /, axis: Any = None, count: Any = None, bitorder: str = "big") -> Array:
    x = traced(a)
    if x.dtype != _U8:
        fail(TypeMismatch, f"unpackbits of {x.type}", "give bytes: x.astype(np.uint8)")
    x, at = _line(x, axis)
    tall = emit("reshape", x, shape=(*x.shape, 1))
    bits = emit("and", emit("shr", tall, _shifts("unpackbits", bitorder)), number(1, _U8))
    n = x.shape[-1] * 8
    bits = emit("reshape", bits, shape=(*x.shape[:-1], n))
    if count is not None:
        wanted = static_int(count, "unpackbits: the count")
        wanted = wanted if wanted >= 0 else n + wanted
        if wanted < 0:
            fail(ShapeError, f"unpackbits: count={count} of {n} bits", f"give {-n} or more")
        if wanted > n:
            zeros, high = (0,) * x.ndim, (*(0,) * (x.ndim - 1), wanted - n)
            bits = emit("pad", bits, number(0, _U8), low=zeros, high=high, interior=zeros)
        else:
            bits = cut(bits, bits.ndim - 1, 0, wanted)
    made: Array = FUNCTIONS[np.moveaxis](bits, -1, at)
    return made
