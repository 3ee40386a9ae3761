"""What instructions do to values, beyond what one operator of NumPy says.

All threads that are there come as `rows`; they are needed to name a thread in an error. `rank` is
1 for vectors, whose lanes are the last axis, else 0.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import ml_dtypes
import numpy as np
from numpy.typing import NDArray

from .errors import Fault, Site, Undefined
from .types import SIGNED, UNSIGNED, Value

if TYPE_CHECKING:
    from .context import Context

Rows = np.ndarray[Any, np.dtype[np.int64]]
_LONG = 2048  # elements from which on a select by bits is faster than one by branches


def check(
    ctx: Context,
    rows: Rows,
    site: Site,
    rank: int,
    bad: Value,
    message: str,
    kind: type[Fault] = Undefined,
) -> None:
    """Raise for the first thread for which something is bad."""
    if bad.any():
        threads = bad.any(-1) if rank else bad
        raise ctx.fault(kind, site, rows[int(threads.argmax())], message)


def select(condition: Value, yes: Value, no: Value) -> Value:
    """Both are of one scalar or vector type; a condition of a vector may be a scalar."""
    if not isinstance(condition, np.ndarray):
        return yes if condition else no
    if condition.ndim < max(yes.ndim, no.ndim):
        condition = condition[:, None]
    return select_lanes(condition, yes, no)


def select_lanes(condition: Value, yes: Value, no: Value) -> Value:
    """The same where the condition has the shape of what is selected, or one that spreads to it."""
    kind = yes.dtype
    if condition.size < _LONG or kind.itemsize < 4:
        return np.where(condition, yes, no)
    # Branches on random data cost ten times as much as moving bits about.
    signed = SIGNED[kind.itemsize]
    mask = np.negative(condition.view(np.int8).astype(signed))
    other = no.view(signed)
    mask = mask & (yes.view(signed) ^ other)
    mask ^= other
    return mask.view(kind)


def select_struct(condition: Value, yes: Value, no: Value) -> Value:
    return tuple(select(condition, a, b) for a, b in zip(yes, no, strict=True))


def udiv(ctx: Context, rows: Rows, site: Site, rank: int, a: Value, b: Value) -> Value:
    check(ctx, rows, site, rank, b == 0, "division by zero")
    return a // b


def urem(ctx: Context, rows: Rows, site: Site, rank: int, a: Value, b: Value) -> Value:
    check(ctx, rows, site, rank, b == 0, "division by zero")
    return a % b


def sdiv(ctx: Context, rows: Rows, site: Site, rank: int, a: Value, b: Value) -> Value:
    a, b = _signed_division(ctx, rows, site, rank, a, b)
    # NumPy's quotient is the floor; without the remainder of C it is exact.
    return ((a - np.fmod(a, b)) // b).view(UNSIGNED[a.dtype.itemsize])


def srem(ctx: Context, rows: Rows, site: Site, rank: int, a: Value, b: Value) -> Value:
    a, b = _signed_division(ctx, rows, site, rank, a, b)
    return np.fmod(a, b).view(UNSIGNED[a.dtype.itemsize])


def _signed_division(
    ctx: Context, rows: Rows, site: Site, rank: int, a: Value, b: Value
) -> tuple[Value, Value]:
    kind = SIGNED[a.dtype.itemsize]
    a, b = a.view(kind), b.view(kind)
    check(ctx, rows, site, rank, b == 0, "division by zero")
    least = (a == np.iinfo(kind).min) & (b == -1)
    check(ctx, rows, site, rank, least, "the least integer divided by -1")
    return a, b


def check_shift(ctx: Context, rows: Rows, site: Site, rank: int, by: Value, width: int) -> None:
    check(ctx, rows, site, rank, by >= width, f"a shift by {width} bits or more")


def to_integer(
    ctx: Context, rows: Rows, site: Site, rank: int, x: Value, width: int, signed: bool
) -> Value:
    """Towards zero; what does not fit is an error."""
    kind = SIGNED[max(8, width) // 8] if signed else UNSIGNED[max(8, width) // 8]
    if x.dtype.itemsize == 2:
        x = x.astype(np.float32)
    whole = np.trunc(x)
    least, beyond = (-(2.0 ** (width - 1)), 2.0 ** (width - 1)) if signed else (0.0, 2.0**width)
    one = x.dtype.type
    fits = (whole >= one(least)) & (whole < one(beyond))
    check(ctx, rows, site, rank, ~fits, f"a float that i{width} does not hold")
    made = whole.astype(kind)
    if width == 1:
        return made != 0
    return made.view(UNSIGNED[width // 8])


def saturated(x: Value, width: int, signed: bool) -> Value:
    """Towards zero, what does not fit as the nearest that does, NaN as 0."""
    kind = SIGNED[width // 8] if signed else UNSIGNED[width // 8]
    wide = x if x.dtype.itemsize > 2 else x.astype(np.float32)
    whole = np.trunc(wide)
    limits = np.iinfo(kind)
    beyond = whole.dtype.type(2.0 ** (width - 1 if signed else width))
    low, high = whole < whole.dtype.type(limits.min), whole >= beyond
    made = np.where(low | high | (whole != whole), 0, whole).astype(kind)
    made = np.where(low, kind.type(limits.min), np.where(high, kind.type(limits.max), made))
    return made.astype(kind).view(UNSIGNED[width // 8])[()]


def odd_float(x: Value) -> Value:
    """A double as a float, rounded to odd: rounded to an even shorter one that is as if the double
    were rounded at once."""
    near = x.astype(np.float32)
    back = near.astype(np.float64)
    inexact = (back != x) & (x == x)
    raw = near.view(np.uint32)
    # Where the nearest is even, the odd one is its neighbour on the other side of x.
    away = np.abs(back) > np.abs(x)
    fixed = np.where(away, raw - np.uint32(1), raw + np.uint32(1))
    return np.where(inexact & (raw % 2 == 0), fixed, raw).astype(np.uint32).view(np.float32)[()]


def double_to_bfloat(x: Value) -> Value:
    return odd_float(x).astype(ml_dtypes.bfloat16)


def short_fma(a: Value, b: Value, c: Value) -> Value:
    """a * b + c of sixteen-bit floats, rounded once: the product is exact as a double, and the sum
    is rounded to odd."""
    kind = a.dtype
    x, y = a.astype(np.float64) * b.astype(np.float64), c.astype(np.float64)
    total = x + y
    part = total - x
    rest = (x - (total - part)) + (y - part)
    raw = np.asarray(total).view(np.int64)
    # The rest says on which side of the sum the true value lies: towards zero or away from it.
    step = np.where((rest > 0) == (total > 0), 1, -1)
    inexact = (rest != 0) & np.isfinite(rest) & (raw % 2 == 0)
    exact = np.where(inexact, raw + step, raw).view(np.float64)[()]
    return double_to_bfloat(exact) if kind == ml_dtypes.bfloat16 else exact.astype(kind)


def bitcast(x: Value, rank: int, kind: np.dtype[Any], count: int) -> Value:
    """The same bits as `count` lanes of another dtype, 0 for a scalar."""
    raw = x if rank else np.asarray(x)[..., None]
    if raw.dtype == np.bool_:
        raw = np.packbits(raw, axis=-1, bitorder="little")
    raw = np.ascontiguousarray(raw)
    if kind == np.bool_:
        made = np.unpackbits(raw.view(np.uint8), axis=-1, bitorder="little")
        return made[..., :count].astype(np.bool_)
    made = raw.view(kind)
    return made if count else made[..., 0][()]


def extract(ctx: Context, rows: Rows, site: Site, vector: Value, lane: Value) -> Value:
    """A lane that is no constant."""
    check(ctx, rows, site, 0, lane >= vector.shape[-1], "a lane that is not there")
    if not isinstance(lane, np.ndarray):
        return vector[..., int(lane)][()]
    if vector.ndim == 1:
        return vector[lane]
    return np.take_along_axis(vector, lane.astype(np.int64)[:, None], 1)[:, 0]


def insert(vector: Value, value: Value, lane: int) -> Value:
    """With one lane replaced."""
    shape = np.broadcast_shapes(vector.shape[:-1], value.shape)
    made = np.empty((*shape, vector.shape[-1]), vector.dtype)
    made[...] = vector
    made[..., lane] = value
    return made


def insert_at(
    ctx: Context, rows: Rows, site: Site, vector: Value, value: Value, lane: Value
) -> Value:
    """With a lane replaced that is no constant."""
    check(ctx, rows, site, 0, lane >= vector.shape[-1], "a lane that is not there")
    here = np.arange(vector.shape[-1]) == np.asarray(lane)[..., None]
    return np.where(here, np.asarray(value)[..., None], vector)


def shuffle(a: Value, b: Value, picks: NDArray[np.int64]) -> Value:
    """Lanes of two vectors."""
    count = a.shape[-1]
    if picks.max() < count:
        return a[..., picks]
    shape = np.broadcast_shapes(a.shape, b.shape)
    return np.concatenate((np.broadcast_to(a, shape), np.broadcast_to(b, shape)), -1)[..., picks]


def offset32(index: Value, step: np.uint64) -> Value:
    """Bytes of an index of fewer than 64 bits, which has a sign."""
    wide = index.view(SIGNED[index.dtype.itemsize]).astype(np.int64)
    return wide.view(np.uint64) * step
