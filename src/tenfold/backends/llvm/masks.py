"""Masked loads, stores, gathers and scatters, each no wider than the target's registers.

LLVM parts wider ones by itself, and not rightly. For AVX, where a part of a mask turns out to be
constant, versions 20 to 22 read and write in lanes that are masked off, or end the process; and so
with vectors that were parted before, of masks that were not. So vectors are parted here. What is
known of a part is used: it is whole, or left out. The others are moved by AVX-512's masks, or named
as AVX's own moves, which LLVM leaves as they are. Where a processor has neither, LLVM goes from
lane to lane before it parts anything. `refuse` holds all text to this.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence

from tenfold.backends.llvm import lane_moves
from tenfold.backends.llvm.target import LLVMTarget
from tenfold.backends.llvm.writer import BITS, Writer, is_constant, mangle, vector
from tenfold.errors import Unsupported

_USED = re.compile(r"@llvm\.masked\.(\w+)\.v(\d+)([a-z])(\d+)")


def load(
    w: Writer,
    at: str,
    element: str,
    mask: str | None,
    lanes: int = 0,
    align: int = 0,
    whole: str | None = None,
) -> str:
    """Contiguous elements; 0 where masked off. They are aligned as elements are, unless told.
    `whole`, where `singly` asks for it, is whether what is masked off may be read when it runs."""
    align, lanes = align or BITS[element] // 8, lanes or w.lanes
    if mask is None:
        return w.op(f"load {vector(element, True, lanes)}, ptr {at}, align {align}")

    def part(first: int, count: int, live: str | None) -> str:
        here = _offset(w, at, element, first)
        ty, truth = vector(element, True, count), vector("i1", True, count)
        if live is None:
            return w.op(f"load {ty}, ptr {here}, align {align}")
        lane = _only(live, count)
        if lane is not None:
            x = w.op(f"load {element}, ptr {_offset(w, here, element, lane)}, align {align}")
            return w.op(f"insertelement {ty} zeroinitializer, {element} {x}, i64 {lane}")
        if _moved(w.target, element):
            name, kept, bits = _move("load", w, mask, element, lanes, range(first, first + count))
            x = w.call(kept, name, ("ptr", here), bits)
            return w.op(f"bitcast {kept} {x} to {ty}")
        name = f"llvm.masked.load.{mangle(ty)}.p0"

        def some() -> str:
            w.declare(f"{ty} @{name}(ptr, i32, {truth}, {ty})")
            given = f"ptr {here}, i32 {align}, {truth} {live}, {ty} zeroinitializer"
            return w.op(f"call {ty} @{name}({given})")

        if w.masked or is_constant(live):
            return some()
        if w.brief:
            return lane_moves.load(w, here, element, live, count)
        return some() if whole is None else _whole_or(w, here, element, live, count, whole, some)

    return _joined(w, element, lanes, _parted(w, element, mask, lanes, part))


def store(
    w: Writer, at: str, element: str, x: str, mask: str | None, lanes: int = 0, align: int = 0
) -> None:
    """Contiguous elements; what lies where they are masked off stays."""
    align, lanes = align or BITS[element] // 8, lanes or w.lanes
    if mask is None:
        w.put(f"store {vector(element, True, lanes)} {x}, ptr {at}, align {align}")
        return

    def part(first: int, count: int, live: str | None) -> str:
        here, own = (
            _offset(w, at, element, first),
            pick(w, element, x, lanes, range(first, first + count)),
        )
        ty, truth = vector(element, True, count), vector("i1", True, count)
        if live is None:
            w.put(f"store {ty} {own}, ptr {here}, align {align}")
            return ""
        lane = _only(live, count)
        if lane is not None:
            one = w.op(f"extractelement {ty} {own}, i64 {lane}")
            place = _offset(w, here, element, lane)
            w.put(f"store {element} {one}, ptr {place}, align {align}")
        elif _moved(w.target, element):
            name, kept, bits = _move("store", w, mask, element, lanes, range(first, first + count))
            given = w.op(f"bitcast {ty} {own} to {kept}")
            w.declare(f"void @{name}(ptr, {bits[0]}, {kept})")
            w.put(f"call void @{name}(ptr {here}, {bits[0]} {bits[1]}, {kept} {given})")
        elif w.brief and not w.masked and not is_constant(live):
            lane_moves.store(w, here, element, own, live, count)
        else:
            if w.masked and element in ("i8", "i16", "i32"):
                # LLVM 22 joins a narrowing with its store, and then writes too much of one lane.
                own = _fenced(w, ty, own, count * BITS[element] // 32)
            name = f"llvm.masked.store.{mangle(ty)}.p0"
            w.declare(f"void @{name}({ty}, ptr, i32, {truth})")
            w.put(f"call void @{name}({ty} {own}, ptr {here}, i32 {align}, {truth} {live})")
        return ""

    _parted(w, element, mask, lanes, part)


def gather(w: Writer, start: str, element: str, index: str, offsets: str, mask: str | None) -> str:
    """The elements at offsets (integers of the type `index`) from an address; 0 where masked
    off."""
    align = BITS[element] // 8
    if mask is None and not (w.masked and align >= 4):  # no instruction does it
        if w.brief:
            return lane_moves.gather(w, start, element, index, offsets)
        x, ty = "poison", w.vector(element)
        at = _addresses(w, start, element, index, offsets, 0, w.lanes)
        for lane in range(w.lanes):
            here = w.op(f"extractelement <{w.lanes} x ptr> {at}, i64 {lane}")
            one = w.op(f"load {element}, ptr {here}, align {align}")
            x = w.op(f"insertelement {ty} {x}, {element} {one}, i64 {lane}")
        return x

    def part(first: int, count: int, live: str | None) -> str:
        ty, truth = vector(element, True, count), vector("i1", True, count)
        at = _addresses(w, start, element, index, offsets, first, count)
        name = f"llvm.masked.gather.{mangle(ty)}.v{count}p0"
        w.declare(f"{ty} @{name}(<{count} x ptr>, i32, {truth}, {ty})")
        given = live or "splat (i1 true)"
        return w.op(
            f"call {ty} @{name}(<{count} x ptr> {at}, i32 {align}, {truth} {given}, "
            f"{ty} zeroinitializer)"
        )

    return _joined(w, element, w.lanes, _parted(w, element, mask, w.lanes, part))


def scatter(
    w: Writer, start: str, element: str, index: str, offsets: str, x: str, mask: str | None
) -> None:
    """Elements to offsets from an address, but for those masked off."""
    align = BITS[element] // 8
    if w.brief and not (w.masked and align >= 4):
        lane_moves.scatter(w, start, element, index, offsets, x, mask or "splat (i1 true)")
        return

    def part(first: int, count: int, live: str | None) -> str:
        ty, truth = vector(element, True, count), vector("i1", True, count)
        at = _addresses(w, start, element, index, offsets, first, count)
        own = pick(w, element, x, w.lanes, range(first, first + count))
        name = f"llvm.masked.scatter.{mangle(ty)}.v{count}p0"
        w.declare(f"void @{name}({ty}, <{count} x ptr>, i32, {truth})")
        given = live or "splat (i1 true)"
        w.put(f"call void @{name}({ty} {own}, <{count} x ptr> {at}, i32 {align}, {truth} {given})")
        return ""

    _parted(w, element, mask, w.lanes, part)


def pick(w: Writer, element: str, x: str, lanes: int, picked: Sequence[int]) -> str:
    """The lanes of these numbers, of a vector that has so many."""
    if list(picked) == list(range(lanes)) or (is_constant(x) and not x.startswith("<")):
        return x  # all of them, or they are alike
    if is_constant(x):
        known = x.strip("<>").split(", ")
        return "<" + ", ".join(known[n] for n in picked) + ">"
    ty, numbers = vector(element, True, lanes), ", ".join(f"i32 {n}" for n in picked)
    return w.op(f"shufflevector {ty} {x}, {ty} poison, <{len(picked)} x i32> <{numbers}>")


def alive(mask: str, lanes: int) -> list[int]:
    """The lanes that a constant mask leaves alive."""
    if not mask.startswith("<"):
        return list(range(lanes)) if "true" in mask else []
    return [n for n, one in enumerate(mask.strip("<>").split(", ")) if one == "i1 true"]


def refuse(text: str, target: LLVMTarget) -> None:
    """Stop text that LLVM would compile wrongly: see above.

    >>> from tenfold.backends.llvm.target import named, target_with
    >>> avx2 = named("x86-64-v3", target_with("x86_64-unknown-linux-gnu", ()))
    >>> refuse("declare void @llvm.masked.store.v16i64.p0(…)", avx2)
    Traceback (most recent call last):
        ...
    tenfold.errors.Unsupported: a masked store of i64; x86-64-v3 has moves of its own
      write it by backends/llvm/masks
    """
    for what, lanes, letter, bits in set(_USED.findall(text)):
        size, element = int(lanes) * int(bits) // 8, f"i{bits}"  # a float is moved as an integer
        wrong = ""
        if target.masked and size > target.vector_bytes:
            wrong = f"of {size} bytes; registers of {target.cpu} hold {target.vector_bytes}"
        elif what in ("load", "store") and _moved(target, element):
            wrong = f"of {letter}{bits}; {target.cpu} has moves of its own"
        if wrong:
            raise Unsupported(f"a masked {what} {wrong}", fix="write it by backends/llvm/masks")


def singly(w: Writer, element: str, mask: str | None) -> bool:
    """Whether a masked load goes from lane to lane in place: nothing moves such lanes, and code
    need not be short."""
    if mask is None or is_constant(mask):
        return False
    return not (w.masked or w.brief or _moved(w.target, element))


def _whole_or(
    w: Writer, at: str, element: str, mask: str, lanes: int, test: str, some: Callable[[], str]
) -> str:
    """A whole vector, zero where masked off, if it may be read; else what `some` loads."""
    ty, whole, part, then = vector(element, True, lanes), *map(w.fresh, ("whole", "part", "then"))
    w.put(f"br i1 {test}, label %{whole}, label %{part}")
    w.label(whole)
    read = w.op(f"load {ty}, ptr {at}, align {BITS[element] // 8}")
    kept = w.select(mask, ty, read, "zeroinitializer")
    w.put(f"br label %{then}")
    w.label(part)
    picked, last = some(), w.block
    w.put(f"br label %{then}")
    w.label(then)
    return w.op(f"phi {ty} [ {kept}, %{whole} ], [ {picked}, %{last} ]")


def _parted(
    w: Writer,
    element: str,
    mask: str | None,
    lanes: int,
    part: Callable[[int, int, str | None], str],
) -> list[str]:
    """What `part` makes of each part of a vector: its first lane, how many it has, and its mask,
    None where all of them are alive. Parts where none is are left out: zeros."""
    count = lanes
    if w.masked or _moved(w.target, element):
        count = min(lanes, w.target.lanes(BITS[element] // 8))
    found = []
    for first in range(0, lanes, count):
        live = None if mask is None else pick(w, "i1", mask, lanes, range(first, first + count))
        if live is not None and is_constant(live):
            known = len(alive(live, count))
            if known == 0:
                found.append("zeroinitializer")
                continue
            live = None if known == count else live
        found.append(part(first, count, live))
    return found


def _joined(w: Writer, element: str, lanes: int, parts: list[str]) -> str:
    """One vector of parts that follow each other, a power of two of them."""
    count = lanes // len(parts)
    while len(parts) > 1:
        ty = vector(element, True, count)
        count *= 2
        both = ", ".join(f"i32 {n}" for n in range(count))
        parts = [
            w.op(f"shufflevector {ty} {a}, {ty} {b}, <{count} x i32> <{both}>")
            for a, b in zip(parts[::2], parts[1::2], strict=True)
        ]
    return parts[0]


def _offset(w: Writer, at: str, element: str, lanes: int) -> str:
    return w.op(f"getelementptr {element}, ptr {at}, i64 {lanes}") if lanes else at


def _addresses(
    w: Writer, start: str, element: str, index: str, offsets: str, first: int, count: int
) -> str:
    own = pick(w, index, offsets, w.lanes, range(first, first + count))
    return w.op(f"getelementptr {element}, ptr {start}, {vector(index, True, count)} {own}")


def _only(mask: str, lanes: int) -> int | None:
    """The one lane that is alive, where that is known."""
    found = alive(mask, lanes) if is_constant(mask) else []
    return found[0] if len(found) == 1 else None


def _moved(target: LLVMTarget, element: str) -> bool:
    """Whether AVX's own masked moves take such elements, and nothing better does."""
    return target.moves and BITS[element] >= 32


def _move(
    what: str, w: Writer, mask: str, element: str, lanes: int, picked: range
) -> tuple[str, str, tuple[str, str]]:
    """The masked move of AVX for some lanes: its name, the type it moves, and the type and text of
    its mask, which is the highest bit of each element. It is made for all lanes at once: LLVM packs
    and unpacks truths that it has to part."""
    bits, count = BITS[element], len(picked)
    own = vector(f"i{bits}", True, count)
    high = w.select(
        mask,
        vector(f"i{bits}", True, lanes),
        f"splat (i{bits} {-1 << bits - 1})",
        "zeroinitializer",
    )
    kept = vector("float" if bits == 32 else "double", True, count)
    suffix = ("ps" if bits == 32 else "pd") + (".256" if count * bits == 256 else "")
    return (
        f"llvm.x86.avx.mask{what}.{suffix}",
        kept,
        (own, pick(w, f"i{bits}", high, lanes, picked)),
    )


def _fenced(w: Writer, ty: str, x: str, words: int) -> str:
    """A vector of which LLVM knows nothing; there is such a fence for floats alone."""
    floats = vector("float", True, words)
    plain = w.op(f"bitcast {ty} {x} to {floats}")
    return w.op(f"bitcast {floats} {w.intrinsic('arithmetic.fence', floats, plain)} to {ty}")


__all__ = ["alive", "gather", "load", "pick", "refuse", "scatter", "singly", "store"]
