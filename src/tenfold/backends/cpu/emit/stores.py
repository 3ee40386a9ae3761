"""Stores: scalar, contiguous, scattered, non-temporal, in order; masked by tails and conditions."""

from __future__ import annotations

from tenfold.backends.cpu.emit.loads import parts_at
from tenfold.backends.cpu.emit.memory import (
    both,
    computed,
    doubled,
    element_size,
    places,
    pointer,
    stream_bytes,
)
from tenfold.backends.cpu.emit.polling import OTHER_WAY
from tenfold.backends.cpu.emit.positions import lane_step, narrowest, vectored
from tenfold.backends.cpu.emit.state import EmitState, Parts, Val
from tenfold.backends.llvm import masks
from tenfold.backends.llvm.casts import narrow, widen
from tenfold.backends.llvm.instructions import instruction
from tenfold.backends.llvm.writer import (
    COMPUTE,
    LANES,
    MEMORY,
    Writer,
    is_constant,
    kind,
    scalar_text,
    vector,
)
from tenfold.kernel.ir.index import Index
from tenfold.kernel.ir.kernel import SEQUENTIAL, Store
from tenfold.kernel.passes.legalise import update

_PAIRS = "<" + ", ".join(f"i32 {n // 2 + n % 2 * LANES}" for n in range(2 * LANES)) + ">"


def store(s: EmitState, number: int) -> None:
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
    past: list[tuple[str, str]] = []
    for copy in range(s.copies if s.lane in axes else 1):
        if s.lane is None or s.lane not in axes:
            test = condition.at(copy) if condition else None
            at = pointer(s, item.buffer, item.index, 0)
            _store_single(s, item, at, _given(s, item, copy, False), test)
            continue
        parts = _given(s, item, copy, True)
        mask = s.mask(copy, item.buffer)
        if condition is not None:
            assert item.condition is not None
            mask = both(s.w, mask, s.get(item.condition, copy, True))
        if s.kernel.axes[s.lane].kind == SEQUENTIAL and not step:
            _store_in_order(s, item, copy, parts, mask)
            continue
        if item.update:
            there = 1 if step == 1 else None
            found = parts_at(s, item.buffer, item.index, copy, mask, there)
            parts = _joined(s.w, item.update, dtype, found, parts, True)
        raw = tuple(narrow(s.w, dtype, p, True) for p in parts)
        if step == 1 and s.streaming == number and mask is None:
            past.append((raw[0], pointer(s, item.buffer, item.index, copy)))
        elif step == 1:
            at = pointer(s, item.buffer, item.index, copy, inside=mask is None)
            _store_contiguous(s.w, at, dtype, raw, mask)
        else:
            _scatter(s, item.buffer, dtype, item.index, copy, raw, mask)
    if past:
        _store_past(s, dtype, past)


def stored_over(s: EmitState, number: int) -> str | None:
    """Whether a store goes over what the kernel reads; None where it never does."""
    buffers, own = s.kernel.buffers, s.kernel.stores[number].buffer
    group = buffers[own].alias
    alike = [n for n, b in enumerate(buffers) if group and b.alias == group and n != own]
    if not alike:
        return None
    first, *tests = [s.w.op(f"icmp eq ptr %b{n}, %b{own}") for n in alike]
    for test in tests:
        first = s.w.op(f"or i1 {first}, {test}")
    return first


def _store_past(s: EmitState, dtype: str, pairs: list[tuple[str, str]]) -> None:
    """Store vectors past the caches; where the kernel works in place, what they go over has just
    been read into them, and they go the plain way."""
    w = s.w
    ty, size = vector(MEMORY[dtype]), stream_bytes(dtype)
    ends = [f"{ty} {value}, ptr {at}, align {size}" for value, at in pairs]
    past = [f"store {one}, !nontemporal !{{i32 1}}" for one in ends]
    if s.over is None:
        for line in past:
            w.put(line)
        return
    plain = [f"store volatile {one}" for one in ends]  # LLVM would make one store of both ways
    over, beyond, end = (w.fresh(name) for name in ("over", "past", "end"))
    w.put(f"br i1 {s.over}, label %{over}, label %{beyond}")
    written = [f"{over}:", *plain, f"br label %{end}", f"{beyond}:"]
    w.lines += [f"{line}{OTHER_WAY}" for line in written]
    w.lines += [*past, f"br label %{end}{OTHER_WAY}", f"{end}:{OTHER_WAY}"]
    w.block = end


def _given(s: EmitState, item: Store, copy: int, wide: bool) -> Parts:
    """What a store writes: one value, or the parts of a complex number."""
    parts = (item.value, item.second)
    return tuple(s.get(v, copy, wide) for v in parts if v is not None)


def _store_in_order(s: EmitState, item: Store, copy: int, parts: Parts, mask: str | None) -> None:
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


def _store_at_one(s: EmitState, item: Store, offsets: str, element: str, values: str) -> str:
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
            (values,) = _joined(w, item.update, dtype, (values,), (next_,), True)
        lanes = range(1)
    for lane in lanes:
        own = w.op(f"extractelement {vector(ty)} {values}, i64 {lane}")
        held = _joined(w, item.update, dtype, held, (own,), False)
    w.put(f"store {ty} {held[0]}, ptr {at}, align {size}")
    w.put(f"br label %{end}")
    w.label(other)
    return end


def _store_single(s: EmitState, item: Store, at: str, parts: Parts, test: str | None) -> None:
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
        parts = _joined(w, item.update, dtype, found, parts, False)
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
    masks.store(w, at, ty, x, doubled(w, mask), 2 * LANES)


def _scatter(
    s: EmitState, buffer: int, dtype: str, index: Index, copy: int, raw: Parts, mask: str | None
) -> None:
    ty = MEMORY[dtype]
    starts, element, offsets = places(s, buffer, index, copy, None)
    for start, x in zip(starts, raw, strict=True):
        masks.scatter(s.w, start, ty, element, offsets, x, mask)


def _joined(w: Writer, name: str, dtype: str, there: Parts, given: Parts, wide: bool) -> Parts:
    """What is there joined to what is given, in a buffer of a dtype."""
    body, values = update(name, dtype), list[str]()
    for i in body.instructions:
        if i.op == "param":
            values.append((there, given)[i.attr[0]][i.attr[1]])
        elif i.op == "const":
            text = scalar_text(i.dtype, i.attr[0])
            values.append(w.splat(COMPUTE[i.dtype], text) if wide else text)
        else:
            sources = [body.instructions[a].dtype for a in i.args]
            args = [values[a] for a in i.args]
            values.append(instruction(w, i.op, i.dtype, sources, args, wide))
    (store,) = body.stores
    return tuple(values[v] for v in (store.value, store.second) if v is not None)
