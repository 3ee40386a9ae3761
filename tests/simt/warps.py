"""What the threads of a warp do together: shuffles, votes, reductions."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from .context import WARP, Context, Ints
from .errors import Divergence, Site, Undefined
from .types import SIGNED, Value

Bits = NDArray[np.uint32]
Mask = NDArray[np.bool_]
_REDUCED: dict[str, tuple[np.ufunc, bool]] = {
    "add": (np.add, False),
    "umax": (np.maximum, False),
    "umin": (np.minimum, False),
    "max": (np.maximum, True),
    "min": (np.minimum, True),
    "and": (np.bitwise_and, False),
    "or": (np.bitwise_or, False),
    "xor": (np.bitwise_xor, False),
}


def _together(ctx: Context, rows: Ints, site: Site, mask: Value) -> tuple[Ints, Mask]:
    """The slots of threads in the table of all warps, and which slots are theirs; an error unless
    all threads of the masks are here."""
    slots = ctx.warp_slot[rows]
    masks: Bits = np.broadcast_to(mask, rows.shape)
    here = np.zeros(ctx.warp_slots, np.bool_)
    here[slots] = True
    active = _bits(here)[slots // WARP]
    if (active == masks).all():
        return slots, here
    own = masks >> ctx.lane[rows].astype(np.uint32) & 1
    if not own.all():
        row = rows[int(own.argmin())]
        raise ctx.fault(Divergence, site, row, "a thread that is not in its own mask")
    alive = np.zeros(ctx.warp_slots, np.bool_)
    alive[ctx.warp_slot] = ~ctx.returned
    missing = masks & _bits(alive)[slots // WARP] & ~active
    if missing.any():
        first = int(missing.argmax())
        lanes = [n for n in range(WARP) if missing[first] >> n & 1]
        message = f"lanes {lanes} of the mask are not at this instruction with the others"
        raise ctx.fault(Divergence, site, rows[first], message)
    common = np.zeros(ctx.warp_slots // WARP, np.uint32)
    common[slots // WARP] = masks
    if (common[slots // WARP] != masks).any():
        row = rows[int((common[slots // WARP] != masks).argmax())]
        raise ctx.fault(Divergence, site, row, "threads of one warp have different masks")
    return slots, here


def _bits(table: Mask) -> Bits:
    """The lanes of each warp as the bits of a word."""
    return np.packbits(table, bitorder="little").view(np.uint32)


def shuffle(
    kind: str,
    found: bool,
    ctx: Context,
    rows: Ints,
    site: Site,
    mask: Value,
    value: Value,
    by: Value,
    clamp: Value,
) -> Value:
    """The value of another lane; with `found`, also whether there was one, as PTX defines it."""
    slots, here = _together(ctx, rows, site, mask)
    lane = ctx.lane[rows]
    step = np.asarray(by).astype(np.int64) & 31
    bound = np.asarray(clamp).astype(np.int64)
    part = bound >> 8 & 31  # bits of the lane that must stay
    last = (lane & part) | (bound & 31 & ~part)
    if kind == "idx":
        source = (lane & part) | (step & ~part)
    elif kind == "bfly":
        source = lane ^ step
    else:
        source = lane - step if kind == "up" else lane + step
    inside = source >= last if kind == "up" else source <= last
    source = np.where(inside, source, lane)
    places = slots - lane + source
    absent = ~here[places]
    if absent.any():
        first = int(absent.argmax())
        message = f"a shuffle reads lane {int(source[first])}, which has ended or never was"
        raise ctx.fault(Undefined, site, rows[first], message)
    table = np.empty(ctx.warp_slots, value.dtype)
    table[slots] = value
    made = table[places]
    return (made, inside) if found else made


def vote(kind: str, ctx: Context, rows: Ints, site: Site, mask: Value, holds: Value) -> Value:
    slots, here = _together(ctx, rows, site, mask)
    table = np.zeros(ctx.warp_slots, np.bool_)
    table[slots] = holds
    yes, active = _bits(table)[slots // WARP], _bits(here)[slots // WARP]
    if kind == "ballot":
        return yes
    if kind == "any":
        return yes != 0
    all_of_them = yes == active
    return all_of_them if kind == "all" else all_of_them | (yes == 0)


def reduce(kind: str, ctx: Context, rows: Ints, site: Site, value: Value, mask: Value) -> Value:
    """redux.sync of 32-bit integers."""
    slots, _ = _together(ctx, rows, site, mask)
    operation, signed = _REDUCED[kind]
    values = np.broadcast_to(value, rows.shape)
    if signed:
        values = values.view(SIGNED[4])
    # Rows rise, so the threads of a warp follow each other.
    first = np.flatnonzero(np.diff(slots // WARP, prepend=-1))
    made = operation.reduceat(values, first, dtype=values.dtype).view(np.uint32)
    return np.repeat(made, np.diff(first, append=rows.size))


def arrive(ctx: Context, rows: Ints, site: Site) -> None:
    """Arrive at a barrier of the cluster."""
    twice = ctx.arrived[rows] > ctx.waited[rows]
    if twice.any():
        row = rows[int(twice.argmax())]
        raise ctx.fault(Divergence, site, row, "arrives at the cluster's barrier twice")
    ctx.arrived[rows] += 1
    if ctx.races:
        ctx.races.update_words()
