"""Loads: scalar, contiguous, reversed, gathered; masked by tails and conditions."""

from __future__ import annotations

from tenfold.backends.cpu.emit.memory import (
    both,
    computed,
    doubled,
    element_size,
    places,
    pointer,
)
from tenfold.backends.cpu.emit.positions import lane_step
from tenfold.backends.cpu.emit.state import EmitState, Parts, Val
from tenfold.backends.llvm import masks
from tenfold.backends.llvm.casts import widen
from tenfold.backends.llvm.writer import (
    LANES,
    MEMORY,
    SIZES,
    Writer,
    float_text,
    kind,
    scalar_text,
    vector,
)
from tenfold.kernel.ir.index import Index

_EVEN = "<" + ", ".join(f"i32 {2 * n}" for n in range(LANES)) + ">"
_ODD = "<" + ", ".join(f"i32 {2 * n + 1}" for n in range(LANES)) + ">"
_BACK = "<" + ", ".join(f"i32 {LANES - 1 - n}" for n in range(LANES)) + ">"


def load(s: EmitState, value: int) -> Val:
    """A load instruction, for all copies."""
    instruction = s.kernel.instructions[value]
    (buffer, part), index = instruction.attr, instruction.index
    assert index is not None
    condition: Val | None = s.env[instruction.args[0]] if instruction.args else None
    if condition is not None and condition.truth is not None:
        if not condition.truth:
            return _zero(instruction.dtype)
        condition = None
    if s.kernel.buffers[buffer].size == 0:
        return _zero(instruction.dtype)
    if (buffer, index) in s.tiles and not instruction.args:
        return _from_tile(s, buffer, index)
    step = lane_step(s, index)
    moving = s.lane is not None and (s.lane in index.axes() or _many(s, index))
    if step == 0 and not (condition is not None and condition.wide):
        many = moving or (condition is not None and len(condition.copies) > 1)
        copies = range(s.copies if many else 1)
        tests = (condition.at(c) if condition else None for c in copies)
        found = (_single(s, buffer, part, index, c, test) for c, test in enumerate(tests))
        return Val(tuple(found), False)
    out = []
    for copy in range(s.copies):
        mask = s.mask(copy, buffer)
        if condition is not None:
            mask = both(s.w, mask, s.get(instruction.args[0], copy, True))
        if step == 0:
            out.append(_spread_one(s, buffer, part, index, copy, mask))
        else:
            # The parts of complex numbers come together: what was found for one is there still.
            key = ("parts", buffer, index, copy, instruction.args)
            if key not in s.env:
                s.env[key] = parts_at(s, buffer, index, copy, mask, step)
            out.append(s.env[key][part])
    return Val(tuple(out), True)


def parts_at(
    s: EmitState, buffer: int, index: Index, copy: int, mask: str | None, step: int | None
) -> Parts:
    """What lies at an index that moves with the lanes."""
    if step == 1 or (step == -1 and kind(s.kernel.buffers[buffer].dtype) != "c"):
        return _contiguous(s, buffer, index, copy, mask, step)
    return _gather(s, buffer, index, copy, mask)


def _zero(dtype: str) -> Val:
    truth = False if dtype == "bool" else None
    return Val((scalar_text(dtype, bytes(SIZES[dtype])),), False, truth)


def _many(s: EmitState, index: Index) -> bool:
    return any(len(s.env[v].copies) > 1 for v in index.values())


def _single(s: EmitState, buffer: int, part: int, index: Index, copy: int, test: str | None) -> str:
    """One element; where the test fails a safe address is read instead."""
    w, dtype = s.w, s.kernel.buffers[buffer].dtype
    ty = MEMORY[dtype]
    at = pointer(s, buffer, index, copy)
    if test is not None:
        at = w.op(f"select i1 {test}, ptr {at}, ptr %b{buffer}")
    if part:
        at = w.op(f"getelementptr inbounds {ty}, ptr {at}, i64 {part}")
    x = w.op(f"load {ty}, ptr {at}, align {element_size(dtype)}")
    if test is not None:
        zero = float_text(ty, 0.0) if ty in ("float", "double") else "0"
        x = w.select(test, ty, x, zero)
    return widen(w, dtype, x, False)


def _spread_one(
    s: EmitState, buffer: int, part: int, index: Index, copy: int, mask: str | None
) -> str:
    """An address that is the same in all lanes under a condition that is not."""
    w, element = s.w, computed(s.kernel.buffers[buffer].dtype)
    if mask is None:
        return w.splat(element, _single(s, buffer, part, index, copy, None))
    any_lane = w.call("i1", f"llvm.vector.reduce.or.v{LANES}i1", (vector("i1"), mask))
    found = w.splat(element, _single(s, buffer, part, index, copy, any_lane))
    return w.select(mask, vector(element), found, w.const(element, 0, True))


def _contiguous(
    s: EmitState, buffer: int, index: Index, copy: int, mask: str | None, step: int
) -> Parts:
    w, dtype = s.w, s.kernel.buffers[buffer].dtype
    ty = MEMORY[dtype]
    at = pointer(s, buffer, index, copy, 0 if step == 1 else 1 - LANES, mask is None)
    if kind(dtype) == "c":
        return _pair(w, at, ty, mask)
    wide = vector(ty)
    whole = _inside(s, buffer, at) if masks.singly(w, ty, mask) else None
    if step == 1:
        return (widen(w, dtype, masks.load(w, at, ty, mask, whole=whole), True),)
    if mask is not None:
        mask = masks.pick(w, "i1", mask, LANES, range(LANES)[::-1])
    x = masks.load(w, at, ty, mask, whole=whole)
    x = w.op(f"shufflevector {wide} {x}, {wide} poison, <{LANES} x i32> {_BACK}")
    return (widen(w, dtype, x, True),)


def _inside(s: EmitState, buffer: int, at: str) -> str:
    """Whether a whole vector lies in a buffer: then all of it may be read."""
    w, ty, room = s.w, MEMORY[s.kernel.buffers[buffer].dtype], s.kernel.buffers[buffer].size
    last = w.op(f"getelementptr {ty}, ptr %b{buffer}, i64 {room}")
    end = w.op(f"getelementptr {ty}, ptr {at}, i64 {LANES}")
    begun = w.op(f"icmp uge ptr {at}, %b{buffer}")
    return w.op(f"and i1 {begun}, {w.op(f'icmp ule ptr {end}, {last}')}")


def _pair(w: Writer, at: str, ty: str, mask: str | None) -> Parts:
    """Complex numbers, taken apart into real and imaginary vectors."""
    both_parts = vector(ty, True, 2 * LANES)
    x = masks.load(w, at, ty, doubled(w, mask), 2 * LANES)
    return tuple(
        w.op(f"shufflevector {both_parts} {x}, {both_parts} poison, <{LANES} x i32> {pick}")
        for pick in (_EVEN, _ODD)
    )


def _gather(s: EmitState, buffer: int, index: Index, copy: int, mask: str | None) -> Parts:
    w, dtype = s.w, s.kernel.buffers[buffer].dtype
    ty = MEMORY[dtype]
    # Where there is no gather, safe addresses are read one by one, with no branches.
    quick = w.masked and element_size(dtype) >= 4
    starts, element, offsets = places(s, buffer, index, copy, None if quick else mask)
    out = []
    for start in starts:
        x = masks.gather(w, start, ty, element, offsets, mask if quick else None)
        if mask is not None and not quick:
            x = w.select(mask, vector(ty), x, "zeroinitializer")
        out.append(widen(w, dtype, x, True))
    return tuple(out)


def _from_tile(s: EmitState, buffer: int, index: Index) -> Val:
    """A transposed load, from the tile that holds it the right way round."""
    tile, row_axis, width, row, column = s.tiles[buffer, index]
    w, dtype = s.w, s.kernel.buffers[buffer].dtype
    ty = MEMORY[dtype]
    assert s.lane is not None
    down = w.op(f"sub nsw i64 {s.base[row_axis]}, {row}")
    across = w.op(f"sub nsw i64 {s.base[s.lane]}, {column}")
    at = w.op(f"add nsw i64 {w.op(f'mul nsw i64 {down}, {width}')}, {across}")
    p = w.op(f"getelementptr inbounds {ty}, ptr {tile}, i64 {at}")
    out = []
    for copy in range(s.copies):
        q = w.op(f"getelementptr inbounds {ty}, ptr {p}, i64 {copy * LANES}") if copy else p
        x = masks.load(w, q, ty, s.mask(copy))
        out.append(widen(w, dtype, x, True))
    return Val(tuple(out), True)
