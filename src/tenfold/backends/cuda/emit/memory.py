"""Loads and stores of a thread: of one element, or of several that lie packed."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial

from tenfold.backends.cuda.emit.thread import Text, Thread
from tenfold.backends.llvm.casts import narrow, widen
from tenfold.backends.llvm.instructions import instruction
from tenfold.backends.llvm.writer import MEMORY, SIZES, Writer, kind, scalar_text, vector
from tenfold.kernel.ir.index import AXIS, Index
from tenfold.kernel.ir.kernel import READ, Store
from tenfold.kernel.passes.legalise import update

PACKED = 16  # bytes of one access at most
GLOBAL = "ptr addrspace(1)"


def element(dtype: str) -> str:
    """How an element, or a part of a complex one, lies in memory."""
    return MEMORY[dtype]


def pointer(t: Thread, buffer: int, index: Index, slot: int, part: int = 0) -> Text:
    """Where an index of a buffer lies: one register for all slots, and a constant beside it."""
    w, ty = t.w, t.position
    dtype = t.kernel.buffers[buffer].dtype
    if kind(dtype) == "c":
        index = index * 2 + part
    moving, constant = t.scalar(index, slot)
    if moving is None or not isinstance(constant, int):
        rest = constant if not isinstance(constant, int) else 0
        at = w.const(ty, rest, False) if moving is None else moving
        if moving is not None and not isinstance(constant, int):
            at = w.op(f"add {ty} {moving}, {w.const(ty, constant, False)}")
        moving, constant = at, constant if isinstance(constant, int) else 0
    kept = f"%b{buffer}", moving
    if kept not in t.env:
        t.env[kept] = w.op(f"getelementptr {element(dtype)}, {GLOBAL} %b{buffer}, {ty} {moving}")
    found: Text = t.env[kept]
    if constant:
        return w.op(f"getelementptr {element(dtype)}, {GLOBAL} {found}, {ty} {constant}")
    return found


def packed(t: Thread, buffer: int, index: Index, count: int) -> bool:
    """Whether so many neighbouring slots lie side by side in memory, and begin where an access of
    as many may: anchors of slots are multiples of their count."""
    if count == 1 or t.lane is None or index.values() or t.broken(index) or buffer in t.odd:
        return False
    size = SIZES[t.kernel.buffers[buffer].dtype]
    if size * count > PACKED or kind(t.kernel.buffers[buffer].dtype) == "c":
        return False
    if not isinstance(step := index.stride(t.lane), int) or step != 1:
        return False
    others = [k for atom, k in index.terms if not (atom.kind == AXIS and atom.of == t.lane)]
    return all(k % count == 0 for k in (*others, index.const))


def guarded(
    w: Writer, test: Text | None, make: Callable[[], Sequence[Text]], types: Sequence[str]
) -> list[Text]:
    """What `make` gives where a test holds, elsewhere zeros."""
    if test is None or test == "true":
        return list(make())
    zeros = ["zeroinitializer" if ty.startswith("<") else zero(ty) for ty in types]
    if test == "false":
        return zeros
    before, inside, end = w.block, w.fresh("in"), w.fresh("out")
    w.put(f"br i1 {test}, label %{inside}, label %{end}")
    w.label(inside)
    made = make()
    last = w.block
    w.put(f"br label %{end}")
    w.label(end)
    return [
        w.op(f"phi {ty} [ {x}, %{last} ], [ {zero}, %{before} ]")
        for ty, x, zero in zip(types, made, zeros, strict=True)
    ]


def zero(ty: str) -> str:
    """Nothing, of a type."""
    return "false" if ty == "i1" else "0.0" if ty in ("float", "double") else "0"


def both(w: Writer, a: Text | None, b: Text | None) -> Text | None:
    """Whether two tests hold; None stands for one that always does."""
    if a is None or a == "true":
        return b
    if b is None or b == "true":
        return a
    return w.op(f"and i1 {a}, {b}")


def load(t: Thread, value: int, count: int = 1) -> None:
    """A load instruction, for all its slots; `count` neighbours at a time where they lie packed.
    Where it lies is worked out in any case: that is known in all blocks behind."""
    i, w = t.kernel.instructions[value], t.w
    index = i.index
    assert index is not None
    buffer, part = i.attr
    dtype = t.kernel.buffers[buffer].dtype
    ty, size = element(dtype), SIZES[dtype]
    apart = t.spread(value)
    wide = apart and not i.args and packed(t, buffer, index, count)
    step = count if wide else 1
    many = vector(ty, True, count) if wide else ty
    align = size * count if wide else size_in_memory(ty)
    for first in range(0, len(t.slots) if apart else 1, step):
        test = t.slots[first].active if apart else None
        test = both(w, test, t.get(i.args[0], first) if i.args else None)
        at = "" if test == "false" else pointer(t, buffer, index, first, part)
        found = guarded(w, test, partial(_loaded, t, buffer, many, at, align), [many])[0]
        for n in range(step):
            one = w.op(f"extractelement {many} {found}, i64 {n}") if wide else found
            t.put(value, first + n, widen(w, dtype, one, False))


def size_in_memory(ty: str) -> int:
    return {"float": 4, "double": 8}.get(ty) or int(ty[1:]) // 8


def _loaded(t: Thread, buffer: int, ty: str, at: Text, align: int) -> list[Text]:
    """What lies there; of memory that nothing writes to meanwhile, by the cache for such."""
    found = t.kernel.buffers[buffer]
    stays = found.role == READ and not found.alias
    constant = ", !invariant.load !{}" if stays else ""
    return [t.w.op(f"load {ty}, {GLOBAL} {at}, align {align}{constant}")]


def store(t: Thread, number: int, test: Text | None = None, count: int = 1) -> None:
    """A store, for all its slots, where a test holds."""
    item, w = t.kernel.stores[number], t.w
    dtype = t.kernel.buffers[item.buffer].dtype
    apart = t.lane is not None and t.lane in t.kernel.store_free(item)
    plain = item.condition is None and not item.update and kind(dtype) != "c"
    wide = apart and plain and packed(t, item.buffer, item.index, count)
    for first in range(0, len(t.slots) if apart else 1, count if wide else 1):
        alive = both(w, test, t.slots[first].active if apart else None)
        if item.condition is not None:
            alive = both(w, alive, t.get(item.condition, first if apart else 0))

        if alive == "false":
            continue
        parts = 1 if item.second is None else 2
        places = [pointer(t, item.buffer, item.index, first, part) for part in range(parts)]

        def one(first: int = first, places: Sequence[Text] = places) -> list[Text]:
            if wide:
                _store_packed(t, item, first, count, places[0])
            else:
                _store_single(t, item, first, places)
            return []

        guarded(w, alive, one, [])


def _store_packed(t: Thread, item: Store, first: int, count: int, at: Text) -> None:
    w, dtype = t.w, t.kernel.buffers[item.buffer].dtype
    many, whole = vector(element(dtype), True, count), "poison"
    for n in range(count):
        x = narrow(w, dtype, t.get(item.value, first + n), False)
        whole = w.op(f"insertelement {many} {whole}, {element(dtype)} {x}, i64 {n}")
    w.put(f"store {many} {whole}, {GLOBAL} {at}, align {SIZES[dtype] * count}")


def _store_single(t: Thread, item: Store, slot: int, places: Sequence[Text]) -> None:
    w, dtype = t.w, t.kernel.buffers[item.buffer].dtype
    values = [t.get(v, slot) for v in (item.value, item.second) if v is not None]
    ty = element(dtype)
    if item.update:
        there = [
            widen(w, dtype, w.op(f"load {ty}, {GLOBAL} {at}, align {size_in_memory(ty)}"), False)
            for at in places
        ]
        values = joined(w, item.update, dtype, there, values)
    for at, x in zip(places, values, strict=True):
        raw = narrow(w, dtype, x, False)
        w.put(f"store {ty} {raw}, {GLOBAL} {at}, align {size_in_memory(ty)}")


def guard(t: Thread, number: int, test: Text | None = None) -> None:
    """Where a check fails at any slot, and a test holds, set its bit where the host looks."""
    found, w = t.kernel.checks[number], t.w
    told = f"atomicrmw or ptr addrspace(1) %fault, i32 {1 << found.code} monotonic, align 4"

    def tell() -> list[Text]:
        w.op(told)
        return []

    apart = t.spread(found.condition)
    for slot in t.each(found.condition):
        failed: Text | None = w.op(f"xor i1 {t.get(found.condition, slot)}, true")
        failed = both(w, failed, test)
        if apart:
            failed = both(w, failed, t.slots[slot].active)
        guarded(w, failed, tell, [])


def joined(
    w: Writer, name: str, dtype: str, there: Sequence[Text], given: Sequence[Text]
) -> list[Text]:
    """What an update makes of what is there and what is given, as both lie in memory."""
    legal = update(name, dtype, brain=True)
    values: list[Text] = []
    for i in legal.instructions:
        if i.op == "param":
            values.append((there, given)[i.attr[0]][i.attr[1]])
        elif i.op == "const":
            values.append(scalar_text(i.dtype, i.attr[0]))
        else:
            sources = [legal.instructions[a].dtype for a in i.args]
            given_here = [values[a] for a in i.args]
            values.append(instruction(w, i.op, i.dtype, sources, given_here, False))
    (item,) = legal.stores
    return [values[v] for v in (item.value, item.second) if v is not None]
