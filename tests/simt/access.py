"""Loads, stores and atomic operations of many threads at once."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .context import Context, Ints, space_of
from .errors import Misaligned, OutOfBounds, Race, Site, Undefined
from .instructions import Access
from .memory import CLUSTER, RANK, SHARED, WINDOW, Segment
from .serial import one_by_one, serial_exchange
from .types import BOOL, UNSIGNED, Type, Value, Vector, chunk, dtype, element, lanes, stored

# Windows that a pointer into an address space may lie in; a generic pointer, in any.
_WINDOWS = {1: (0, 3), 3: (1,), 4: (0, 3), 5: (2,), 7: (4, 1)}
_ONES = {size: UNSIGNED[size].type(0x0101010101010101 & (256**size - 1)) for size in UNSIGNED}

Positions = NDArray[Any] | None  # of some of the threads; None for all of them


@dataclass(frozen=True, eq=False)
class Move:
    """How an instruction moves a value to or from memory: in `parts` chunks, each `width` items."""

    site: Site
    kind: np.dtype[Any]
    boolean: bool
    count: int  # lanes, 0 for a scalar
    size: int
    align: int
    order: str
    space: int
    item: int
    grain: int  # bytes of a chunk
    shift: int  # its logarithm
    parts: int
    width: int

    @property
    def unsigned(self) -> np.dtype[Any]:
        return UNSIGNED[self.item]


def move(site: Site, ty: Type, access: Access, space: int) -> Move:
    size, item = stored(ty), stored(element(ty))
    grain = chunk(size, access.align)
    return Move(
        site=site,
        kind=dtype(ty),
        boolean=element(ty) == BOOL,
        count=lanes(ty) if isinstance(ty, Vector) else 0,
        size=size,
        align=access.align,
        order=access.order,
        space=space,
        item=item,
        grain=grain,
        shift=grain.bit_length() - 1,
        parts=size // grain,
        width=grain // item,
    )


def load(ctx: Context, rows: Ints, address: Value, m: Move) -> Value:
    """What threads find: one value if they all look at one place."""
    made: NDArray[Any] | None = None
    for segment, some, at in _located(ctx, rows, address, m):
        threads = rows if some is None else rows[some]
        raw = _gathered(segment.view(m.item, m.width), at, m)
        if segment.defined is not None:
            marks = _gathered(segment.defined_view(m.item, m.width), at, m)
            _check_defined(ctx, threads, address, some, marks, m)
        if ctx.races and segment.writable and segment.owner != "thread":
            if m.order:
                ctx.races.atomic(segment, at, m.grain, threads, m.site, m.order, writes=False)
            else:
                ctx.races.load(segment, at, m.grain, threads, m.site)
        if some is None:
            one = at.shape[0] == 1 and not isinstance(address, np.ndarray)
            return _value(ctx, threads, raw[0] if one else raw, m)
        if made is None:
            made = np.empty((rows.size, *raw.shape[1:]), raw.dtype)
        made[some] = raw
    assert made is not None
    return _value(ctx, rows, made, m)


def _value(ctx: Context, rows: Ints, raw: Value, m: Move) -> Value:
    if not m.boolean:
        return raw.view(m.kind)
    wrong = raw > 1
    if wrong.any():
        row = rows[int(np.argmax(wrong))]
        raise ctx.fault(Undefined, m.site, row, "a bool in memory that is neither 0 nor 1")
    return raw.view(np.bool_)


def store(ctx: Context, rows: Ints, value: Value, address: Value, m: Move) -> None:
    raw = value.view(m.unsigned)
    uniform = raw.ndim == int(m.count > 0)
    if not isinstance(address, np.ndarray):
        address = np.full(rows.size, address)
    for segment, some, at in _located(ctx, rows, address, m):
        threads = rows if some is None else rows[some]
        given = raw if some is None or uniform else raw[some]
        if m.count:
            given = given.reshape((*given.shape[:-1], *_chunked(m)))
        _check_writable(ctx, threads, segment, m)
        view = segment.view(m.item, m.width)
        shared = segment.owner != "thread"
        if ctx.races and shared:
            if m.order:
                ctx.races.atomic(segment, at, m.grain, threads, m.site, m.order, writes=True)
            else:
                equal = partial(_equal, view, at, given)
                ctx.races.store(segment, at, m.grain, threads, m.site, equal)
        view[at] = given
        if segment.defined is not None:
            segment.defined_view(m.item, m.width)[at] = _ONES[m.item]
        if ctx.races and shared and not m.order:
            same = _equal(view, at, given)
            if not same.all():
                row = threads[int(same.argmin())]
                where = int((address if some is None else address[some])[int(same.argmin())])
                message = f"race: two threads write different values to {where:#x} at once"
                raise ctx.fault(Race, m.site, row, message)


def _chunked(m: Move) -> tuple[int, ...]:
    """The shape of one access in a view of memory."""
    inner = () if m.width == 1 else (m.width,)
    return inner if m.parts == 1 else (m.parts, *inner)


def _equal(view: NDArray[Any], at: Ints, given: Any) -> NDArray[np.bool_]:
    """For each thread, whether memory holds what is given."""
    same = np.asarray(view[at] == given).reshape(at.shape[0], -1)
    return np.asarray(same.all(axis=1))


def atomicrmw(ctx: Context, rows: Ints, what: str, address: Value, value: Value, m: Move) -> Value:
    address = np.broadcast_to(address, rows.shape)
    value = np.broadcast_to(value, rows.shape)
    made = np.empty(rows.size, m.kind)
    for segment, some, at in _located(ctx, rows, address, m):
        view = _atomic_view(ctx, rows, segment, address, some, at, m)
        given = value if some is None else value[some]
        old = one_by_one(what, view, at, given, m.kind)
        made[slice(None) if some is None else some] = old
    return made


def cmpxchg(
    ctx: Context, rows: Ints, address: Value, expected: Value, new: Value, m: Move
) -> Value:
    address, expected, new = (np.broadcast_to(x, rows.shape) for x in (address, expected, new))
    made, done = np.empty(rows.size, m.kind), np.empty(rows.size, np.bool_)
    for segment, some, at in _located(ctx, rows, address, m):
        view = _atomic_view(ctx, rows, segment, address, some, at, m)
        here = slice(None) if some is None else some
        made[here], done[here] = serial_exchange(view, at, expected[here], new[here])
    return made, done


def _atomic_view(
    ctx: Context, rows: Ints, segment: Segment, address: Value, some: Positions, at: Ints, m: Move
) -> NDArray[Any]:
    """The view of memory that atomic operations work on, when they may."""
    threads = rows if some is None else rows[some]
    _check_writable(ctx, threads, segment, m)
    if segment.defined is not None:
        marks = segment.defined_view(m.item, m.width)[at]
        _check_defined(ctx, threads, address, some, marks, m)
    if ctx.races and segment.owner != "thread":
        ctx.races.atomic(segment, at, m.grain, threads, m.site, m.order, writes=True)
    return segment.view(m.item, m.width)


def fresh(ctx: Context, rows: Ints, address: np.uint64) -> Value:
    """An alloca: nobody has written there."""
    segment = ctx.segments.at(int(address))
    if segment is not None and segment.defined is not None:
        segment.defined.reshape(ctx.threads, -1)[rows] = 0
    return address


def _gathered(view: NDArray[Any], at: Ints, m: Move) -> NDArray[Any]:
    """What lies at chunks, one row a thread."""
    raw = view.take(at, 0)
    return raw.reshape(-1, m.count) if m.count else raw


def _check_defined(
    ctx: Context, rows: Ints, address: Value, some: Positions, marks: Any, m: Move
) -> None:
    known = marks == _ONES[m.item]
    if not known.all():
        each = known.reshape(-1, max(1, m.count)).all(1)
        first = int(each.argmin())
        where = np.broadcast_to(address, np.shape(address) or rows.shape)
        where = where if some is None else where[some]
        message = f"reads what was never written, {m.size} bytes at {_shown(int(where[first]))}"
        raise ctx.fault(Undefined, m.site, rows[first], message)


def _check_writable(ctx: Context, rows: Ints, segment: Segment, m: Move) -> None:
    if not segment.writable:
        raise ctx.fault(OutOfBounds, m.site, rows[0], f"writes to the constant {segment.name}")


def _located(
    ctx: Context, rows: Ints, address: Value, m: Move
) -> Iterator[tuple[Segment, Positions, Ints]]:
    """The segments that threads access, which of the threads (None: all), and the numbers of the
    chunks there, one row a thread; a single row where all threads access one place."""
    address = np.atleast_1d(address)
    low, high = int(address.min()), int(address.max())
    blocks = ctx.block_of
    if low >> WINDOW == CLUSTER >> WINDOW:
        address, blocks = _of_cluster(ctx, rows, address, m)
        low, high = int(address.min()), int(address.max())
    segment = ctx.segments.at(low)
    for one in (low, high):
        if one >> WINDOW not in _WINDOWS.get(m.space, (one >> WINDOW,)):
            message = f"out of bounds: {_shown(one)} is no address of space {m.space}"
            first = int(np.argmax(address == np.uint64(one)))
            raise ctx.fault(OutOfBounds, m.site, rows[first], message)
    if m.align > 1 and int(np.bitwise_or.reduce(address)) & (m.align - 1):
        first = int(np.argmax(address & np.uint64(m.align - 1) != 0))
        message = f"misaligned: {_shown(int(address[first]))} is no multiple of {m.align}"
        raise ctx.fault(Misaligned, m.site, rows[first], message)
    if segment is not None and high + m.size <= segment.end:
        yield segment, None, _chunks(segment, address, rows, blocks, m)
        return
    # Threads are in several segments, or outside of all.
    address = np.broadcast_to(address, rows.shape)
    found = np.searchsorted(np.array(ctx.segments.bases, np.uint64), address, "right") - 1
    ends = np.array([s.end for s in ctx.segments.list] + [0], np.uint64)
    outside = (found < 0) | (address + np.uint64(m.size) > ends[found])
    if outside.any():
        first = int(np.argmax(outside))
        raise ctx.fault(OutOfBounds, m.site, rows[first], _outside(ctx, int(address[first]), m))
    for number in np.unique(found):
        some = np.flatnonzero(found == number)
        segment = ctx.segments.list[number]
        yield segment, some, _chunks(segment, address[some], rows[some], blocks, m)


def _chunks(segment: Segment, address: Value, rows: Ints, blocks: Ints, m: Move) -> Ints:
    offset = (address - np.uint64(segment.base)).view(np.int64)
    if segment.owner == "block":
        offset = offset + blocks[rows] * segment.stride
    elif segment.owner == "thread":
        offset = offset + rows * segment.stride
    at: Ints = offset >> m.shift
    return at if m.parts == 1 else at[..., None] + np.arange(m.parts)


def _of_cluster(ctx: Context, rows: Ints, address: Value, m: Move) -> tuple[Value, Ints]:
    """Addresses in the shared memory of another block of the cluster: as in that block, and the
    number of the block for each thread."""
    rank = (address >> np.uint64(RANK) & np.uint64((1 << (WINDOW - RANK)) - 1)).astype(np.int64)
    blocks = ctx.block_of.copy()
    blocks[rows] = blocks[rows] // ctx.cluster * ctx.cluster + rank
    inner = address & np.uint64((1 << RANK) - 1)
    return inner | np.uint64(SHARED), blocks


def _outside(ctx: Context, address: int, m: Move) -> str:
    """What is wrong with an address, and what would be near."""
    below = [s for s in ctx.segments.list if s.base <= address]
    near = ""
    if below and below[-1].base >> WINDOW == address >> WINDOW:
        last = below[-1]
        by = address + m.size - last.end
        near = f", {by} bytes beyond the end of {last.name}"
    return f"out of bounds: {m.size} bytes at {_shown(address)}{near}"


def _shown(address: int) -> str:
    window = address >> WINDOW
    if window in (1, 2, 3):
        return f"{space_of(address)} {address & ((1 << WINDOW) - 1):#x}"
    return f"{address:#x}"
