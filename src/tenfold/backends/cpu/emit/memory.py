"""Loads and stores: scalar, contiguous, reversed, gathered; masked by tails and conditions."""

from __future__ import annotations

from tenfold.backends.cpu.emit.positions import lane_step, narrowest, scalar, vectored
from tenfold.backends.cpu.emit.state import Parts, State, Val
from tenfold.backends.cpu.emit.updates import joined
from tenfold.backends.llvm import masks
from tenfold.backends.llvm.casts import narrow, widen
from tenfold.backends.llvm.writer import (
    COMPUTE,
    LANES,
    MEMORY,
    SIZES,
    Writer,
    float_text,
    is_constant,
    kind,
    scalar_text,
    vector,
)
from tenfold.kernel.ir.index import Index
from tenfold.kernel.ir.kernel import SEQUENTIAL, Store
from tenfold.kernel.ir.legal import in_memory

_EVEN = "<" + ", ".join(f"i32 {2 * n}" for n in range(LANES)) + ">"
_ODD = "<" + ", ".join(f"i32 {2 * n + 1}" for n in range(LANES)) + ">"
_PAIRS = "<" + ", ".join(f"i32 {n // 2 + n % 2 * LANES}" for n in range(2 * LANES)) + ">"
_BACK = "<" + ", ".join(f"i32 {LANES - 1 - n}" for n in range(LANES)) + ">"


def load(s: State, value: int) -> Val:
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
        mask = s.mask(copy)
        if condition is not None:
            mask = both(s.w, mask, s.get(instruction.args[0], copy, True))
        if step == 0:
            out.append(_spread_one(s, buffer, part, index, copy, mask))
        else:
            # The parts of complex numbers come together: what was found for one is there still.
            key = ("parts", buffer, index, copy, instruction.args)
            if key not in s.env:
                s.env[key] = _parts(s, buffer, index, copy, mask, step)
            out.append(s.env[key][part])
    return Val(tuple(out), True)


def _parts(
    s: State, buffer: int, index: Index, copy: int, mask: str | None, step: int | None
) -> Parts:
    """What lies at an index that moves with the lanes."""
    if step == 1 or (step == -1 and kind(s.kernel.buffers[buffer].dtype) != "c"):
        return _contiguous(s, buffer, index, copy, mask, step)
    return _gather(s, buffer, index, copy, mask)


def store(s: State, number: int) -> None:
    """A store, for all copies."""
    item = s.kernel.stores[number]
    dtype = s.kernel.buffers[item.buffer].dtype
    condition: Val | None = None if item.condition is None else s.env[item.condition]
    if condition is not None and condition.truth is not None:
        if not condition.truth:
            return
        condition = None
    axes = s.kernel.store_free(item)
    step = lane_step(s, item.index)
    for copy in range(s.copies if s.lane in axes else 1):
        if s.lane is None or s.lane not in axes:
            test = condition.at(copy) if condition else None
            at = pointer(s, item.buffer, item.index, 0)
            _store_single(s, item, at, _given(s, item, copy, False), test)
            continue
        parts = _given(s, item, copy, True)
        mask = s.mask(copy)
        if condition is not None:
            assert item.condition is not None
            mask = both(s.w, mask, s.get(item.condition, copy, True))
        if s.kernel.axes[s.lane].kind == SEQUENTIAL and not step:
            _store_in_order(s, item, copy, parts, mask)
            continue
        if item.update:
            there = 1 if step == 1 else None
            found = _parts(s, item.buffer, item.index, copy, mask, there)
            parts = joined(s.w, item.update, dtype, found, parts, True)
        raw = tuple(narrow(s.w, dtype, p, True) for p in parts)
        if step == 1 and s.streaming == number and mask is None:
            at = pointer(s, item.buffer, item.index, copy)
            ty, size = MEMORY[dtype], stream_bytes(dtype)
            past = f"align {size}, !nontemporal !{{i32 1}}"
            s.w.put(f"store {vector(ty)} {raw[0]}, ptr {at}, {past}")
        elif step == 1:
            at = pointer(s, item.buffer, item.index, copy, inside=mask is None)
            _store_contiguous(s.w, at, dtype, raw, mask)
        else:
            _scatter(s, item.buffer, dtype, item.index, copy, raw, mask)


def _given(s: State, item: Store, copy: int, wide: bool) -> Parts:
    """What a store writes: one value, or the parts of a complex number."""
    parts = (item.value, item.second)
    return tuple(s.get(v, copy, wide) for v in parts if v is not None)


def prefetch(s: State, buffer: int, index: Index, near: bool = True) -> None:
    """Ask for what lies at an index, a line of memory at a time, into the nearest cache or the
    next. It may lie beyond the end."""
    size = element_size(s.kernel.buffers[buffer].dtype)
    for copy in range(0, s.copies, max(1, 64 // (LANES * size))):
        at = pointer(s, buffer, index, copy)
        s.w.declare("void @llvm.prefetch.p0(ptr, i32, i32, i32)")
        s.w.put(f"call void @llvm.prefetch.p0(ptr {at}, i32 0, i32 {3 if near else 2}, i32 1)")


def pointer(
    s: State, buffer: int, index: Index, copy: int, extra: int = 0, inside: bool = True
) -> str:
    """The address of an element at lane 0 of a copy. Where that lane is masked off, it need not
    lie inside the buffer."""
    gep = "getelementptr inbounds" if inside else "getelementptr"
    dtype = s.kernel.buffers[buffer].dtype
    ty, factor = MEMORY[dtype], 2 if kind(dtype) == "c" else 1
    moving, constant = scalar(s, index * factor, copy)
    at = f"%b{buffer}"
    if moving is not None:
        at = s.w.op(f"{gep} {ty}, ptr {at}, i64 {moving}")
    constant += extra * factor
    return s.w.op(f"{gep} {ty}, ptr {at}, i64 {constant}") if constant else at


def both(w: Writer, a: str | None, b: str | None, lanes: int = LANES) -> str | None:
    """Two masks together; None is a mask of all lanes."""
    if a is None or b is None:
        return b if a is None else a
    return w.op(f"and {vector('i1', True, lanes)} {a}, {b}")


def computed(dtype: str) -> str:
    """The type of what is loaded from a buffer of this dtype, as it is computed with."""
    return COMPUTE[in_memory(dtype)[0]]


def element_size(dtype: str) -> int:
    """Bytes of what one address holds: for complex, of a part."""
    return {"i8": 1, "i16": 2, "i32": 4, "i64": 8, "float": 4, "double": 8}[MEMORY[dtype]]


def stream_bytes(dtype: str) -> int:
    """What a store past the caches has to be aligned to."""
    return min(64, LANES * element_size(dtype))


def _zero(dtype: str) -> Val:
    truth = False if dtype == "bool" else None
    return Val((scalar_text(dtype, bytes(SIZES[dtype])),), False, truth)


def _many(s: State, index: Index) -> bool:
    return any(len(s.env[v].copies) > 1 for v in index.values())


def _single(s: State, buffer: int, part: int, index: Index, copy: int, test: str | None) -> str:
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


def _spread_one(s: State, buffer: int, part: int, index: Index, copy: int, mask: str | None) -> str:
    """An address that is the same in all lanes under a condition that is not."""
    w, element = s.w, computed(s.kernel.buffers[buffer].dtype)
    if mask is None:
        return w.splat(element, _single(s, buffer, part, index, copy, None))
    any_lane = w.call("i1", f"llvm.vector.reduce.or.v{LANES}i1", (vector("i1"), mask))
    found = w.splat(element, _single(s, buffer, part, index, copy, any_lane))
    return w.select(mask, vector(element), found, w.const(element, 0, True))


def _contiguous(
    s: State, buffer: int, index: Index, copy: int, mask: str | None, step: int
) -> Parts:
    w, dtype = s.w, s.kernel.buffers[buffer].dtype
    ty = MEMORY[dtype]
    at = pointer(s, buffer, index, copy, 0 if step == 1 else 1 - LANES, mask is None)
    if kind(dtype) == "c":
        return _pair(w, at, ty, mask)
    wide = vector(ty)
    if step == 1:
        return (widen(w, dtype, masks.load(w, at, ty, mask), True),)
    if mask is not None:
        mask = masks.pick(w, "i1", mask, LANES, range(LANES)[::-1])
    x = masks.load(w, at, ty, mask)
    x = w.op(f"shufflevector {wide} {x}, {wide} poison, <{LANES} x i32> {_BACK}")
    return (widen(w, dtype, x, True),)


def _pair(w: Writer, at: str, ty: str, mask: str | None) -> Parts:
    """Complex numbers, taken apart into real and imaginary vectors."""
    both_parts = vector(ty, True, 2 * LANES)
    x = masks.load(w, at, ty, _doubled(w, mask), 2 * LANES)
    return tuple(
        w.op(f"shufflevector {both_parts} {x}, {both_parts} poison, <{LANES} x i32> {pick}")
        for pick in (_EVEN, _ODD)
    )


def _doubled(w: Writer, mask: str | None) -> str | None:
    if mask is None:
        return None
    return masks.pick(w, "i1", mask, LANES, [n // 2 for n in range(2 * LANES)])


def _places(
    s: State, buffer: int, index: Index, copy: int, mask: str | None
) -> tuple[list[str], str, str]:
    """Where each part of lane 0 lies, and how far from there the lanes do: the integers' type and
    the vector. Where there is a mask, lanes that are off lie at the start."""
    w, dtype = s.w, s.kernel.buffers[buffer].dtype
    parts = 2 if kind(dtype) == "c" else 1
    index = index * parts
    element, step = narrowest(s, index), lane_step(s, index)
    if step is None or mask is not None:
        start, offsets = f"%b{buffer}", vectored(s, index, copy, element)
    else:
        start = pointer(s, buffer, index if parts == 1 else _halved(index), copy, inside=False)
        offsets = w.iota(element, step)
    if mask is not None:
        offsets = w.select(mask, vector(element), offsets, "zeroinitializer")
    starts = [start]
    if parts > 1:
        starts.append(w.op(f"getelementptr inbounds {MEMORY[dtype]}, ptr {start}, i64 1"))
    return starts, element, offsets


def _halved(index: Index) -> Index:
    return Index(tuple((a, k // 2) for a, k in index.terms), index.const // 2)


def _gather(s: State, buffer: int, index: Index, copy: int, mask: str | None) -> Parts:
    w, dtype = s.w, s.kernel.buffers[buffer].dtype
    ty = MEMORY[dtype]
    # Where there is no gather, safe addresses are read one by one, with no branches.
    quick = w.masked and element_size(dtype) >= 4
    starts, element, offsets = _places(s, buffer, index, copy, None if quick else mask)
    out = []
    for start in starts:
        x = masks.gather(w, start, ty, element, offsets, mask if quick else None)
        if mask is not None and not quick:
            x = w.select(mask, vector(ty), x, "zeroinitializer")
        out.append(widen(w, dtype, x, True))
    return tuple(out)


def _store_in_order(s: State, item: Store, copy: int, parts: Parts, mask: str | None) -> None:
    """A store of one lane after another: a later one may meet an earlier one."""
    w, dtype = s.w, s.kernel.buffers[item.buffer].dtype
    element, wide = narrowest(s, item.index), vector(computed(dtype))
    lanes: dict[int, str | None] = dict.fromkeys(range(LANES))
    if mask is not None and is_constant(mask):
        lanes = dict.fromkeys(masks.alive(mask, LANES))
    elif mask is not None:
        lanes = {n: w.op(f"extractelement {vector('i1')} {mask}, i64 {n}") for n in lanes}
    offsets = vectored(s, item.index * (2 if kind(dtype) == "c" else 1), copy, element)
    end = ""
    if mask is None and item.update and dtype != "bool" and len(parts) == 1:
        end = _store_at_one(s, item, offsets, element, parts[0])
    for lane, test in lanes.items():
        offset = w.op(f"extractelement {vector(element)} {offsets}, i64 {lane}")
        at = w.op(f"getelementptr {MEMORY[dtype]}, ptr %b{item.buffer}, {element} {offset}")
        own = tuple(w.op(f"extractelement {wide} {p}, i64 {lane}") for p in parts)
        _store_single(s, item, at, own, test)
    if end:
        w.put(f"br label %{end}")
        w.label(end)


def _store_at_one(s: State, item: Store, offsets: str, element: str, values: str) -> str:
    """Where all lanes update one place, as those of a sorted scatter do, read and write it once,
    rather than wait for each write in turn. What follows is for other lanes, and goes on to the
    block whose name is returned."""
    w, dtype = s.w, s.kernel.buffers[item.buffer].dtype
    ty, size, wide = MEMORY[dtype], element_size(dtype), vector(element)
    close, same, other, end = (w.fresh(name) for name in ("close", "same", "other", "end"))
    first, last = (w.op(f"extractelement {wide} {offsets}, i64 {n}") for n in (0, LANES - 1))
    alike = w.op(f"icmp eq {element} {first}, {last}")  # cheaper than to ask all at once
    w.put(f"br i1 {alike}, label %{close}, label %{other}")
    w.label(close)
    equal = w.op(f"icmp eq {wide} {offsets}, {w.splat(element, first)}")
    one = w.call("i1", f"llvm.vector.reduce.and.v{LANES}i1", (vector("i1"), equal))
    w.put(f"br i1 {one}, label %{same}, label %{other}")
    w.label(same)
    at = w.op(f"getelementptr {ty}, ptr %b{item.buffer}, {element} {first}")
    held: Parts = (w.op(f"load {ty}, ptr {at}, align {size}"),)
    lanes = range(LANES)
    if item.update in ("max", "min") or kind(dtype) != "f":
        # neighbours are joined first: the order of lanes is kept, so ties and NaNs come out alike
        for step in (1, 2, 4, 8):
            moved = ", ".join(f"i32 {(n + step) % LANES}" for n in lanes)
            next_ = w.op(
                f"shufflevector {vector(ty)} {values}, {vector(ty)} poison, "
                f"<{LANES} x i32> <{moved}>"
            )
            (values,) = joined(w, item.update, dtype, (values,), (next_,), True)
        lanes = range(1)
    for lane in lanes:
        own = w.op(f"extractelement {vector(ty)} {values}, i64 {lane}")
        held = joined(w, item.update, dtype, held, (own,), False)
    w.put(f"store {ty} {held[0]}, ptr {at}, align {size}")
    w.put(f"br label %{end}")
    w.label(other)
    return end


def _store_single(s: State, item: Store, at: str, parts: Parts, test: str | None) -> None:
    w, dtype = s.w, s.kernel.buffers[item.buffer].dtype
    ty, size = MEMORY[dtype], element_size(dtype)
    end = ""
    if test is not None:
        then, end = w.fresh("then"), w.fresh("end")
        w.put(f"br i1 {test}, label %{then}, label %{end}")
        w.label(then)
    places = [at]
    if len(parts) > 1:
        places.append(w.op(f"getelementptr inbounds {ty}, ptr {at}, i64 1"))
    if item.update:
        there = [w.op(f"load {ty}, ptr {p}, align {size}") for p in places]
        found = tuple(widen(w, dtype, x, False) for x in there)
        parts = joined(w, item.update, dtype, found, parts, False)
    for p, part in zip(places, parts, strict=True):
        w.put(f"store {ty} {narrow(w, dtype, part, False)}, ptr {p}, align {size}")
    if test is not None:
        w.put(f"br label %{end}")
        w.label(end)


def _store_contiguous(w: Writer, at: str, dtype: str, raw: Parts, mask: str | None) -> None:
    ty = MEMORY[dtype]
    if kind(dtype) != "c":
        masks.store(w, at, ty, raw[0], mask)
        return
    wide = vector(ty)
    x = w.op(f"shufflevector {wide} {raw[0]}, {wide} {raw[1]}, <{2 * LANES} x i32> {_PAIRS}")
    masks.store(w, at, ty, x, _doubled(w, mask), 2 * LANES)


def _scatter(
    s: State, buffer: int, dtype: str, index: Index, copy: int, raw: Parts, mask: str | None
) -> None:
    ty = MEMORY[dtype]
    starts, element, offsets = _places(s, buffer, index, copy, None)
    for start, x in zip(starts, raw, strict=True):
        masks.scatter(s.w, start, ty, element, offsets, x, mask)


def _from_tile(s: State, buffer: int, index: Index) -> Val:
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
