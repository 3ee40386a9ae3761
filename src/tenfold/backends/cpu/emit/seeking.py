"""Where an extreme lies: argmax and argmin of a long row, by two loops.

The first finds the extreme as max and min do, and keeps no positions: these take twice as many
registers as values do, and as many instructions again. The second goes through the row, which is in
the nearest cache by then, until it meets the extreme.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tenfold.backends.cpu.emit.state import Position, Val
from tenfold.backends.llvm.writer import COMPUTE, LANES, kind, vector
from tenfold.kernel.analyse.cost import work
from tenfold.kernel.analyse.nest import Compute, Loop
from tenfold.kernel.ir.index import AXIS, Index

if TYPE_CHECKING:
    from tenfold.backends.cpu.emit.emit import Emitter

_LIGHT = 4.0  # work that is done again sooner than positions are kept


def is_sought(e: Emitter, loop: Loop, member: int) -> bool:
    """Whether the position of a reduction's result is looked for afterwards."""
    i, axis = e.kernel.instructions[member], loop.axis
    if i.attr[0] not in ("argmax", "argmin") or e.schedule.small or loop.inner is not None:
        return False
    if axis not in e.schedule.lanes or e.s.lane is not None or axis == e.schedule.folded:
        return False
    extent, place = e.kernel.axes[axis].extent, e.kernel.instructions[i.args[1]]
    if isinstance(extent, int) and extent <= e.kernel.fold.round:
        return False  # all of it stays in registers
    if place.op != "index" or place.index is None or not _is_axis(place.index, axis):
        return False
    items = [item for item in loop.body if isinstance(item, Compute)]
    light = sum(work(e.kernel.instructions[item.value].op) for item in items) <= _LIGHT
    return light and len(items) == len(loop.body)


def extreme(e: Emitter, loop: Loop, member: int) -> int:
    """The reduction of the same loop that finds the extreme: it may be there beside."""
    own = e.kernel.instructions[member]
    wanted = own.attr[0].removeprefix("arg"), *own.attr[1:]
    for m in loop.members:
        i = e.kernel.instructions[m]
        if i.attr == wanted and i.args == own.args[:1]:
            return m
    return member


def _is_axis(index: Index, axis: int) -> bool:
    ones = [
        a.kind == AXIS and a.of == axis and isinstance(k, int) and k == 1 for a, k in index.terms
    ]
    return ones == [True] and isinstance(index.const, int) and index.const == 0


def seek(e: Emitter, loop: Loop, member: int) -> Val:
    """The first position of what a reduction found, or of a NaN, if that is what it found."""
    s, w, axis = e.s, e.w, loop.axis
    i = e.kernel.instructions[member]
    value = i.args[0]
    extent, copies = e.kernel.axes[axis].extent, e.kernel.fold.copies
    dtype = e.kernel.instructions[value].dtype
    ty, truth = vector(COMPUTE[dtype]), vector("i1")
    best = w.splat(COMPUTE[dtype], s.env[member].at(0))

    def equal(copy: int) -> str:
        x = s.get(value, copy, True)
        if kind(dtype) != "f":
            return w.op(f"icmp eq {ty} {x}, {best}")
        # Where there is a NaN, that is what was found, and nothing is equal to it.
        nan = w.op(f"fcmp uno {ty} {x}, {x}")
        return w.op(f"or {truth} {w.op(f'fcmp oeq {ty} {x}, {best}')}, {nan}")

    def here(position: Position) -> str:
        with s.inside(axis, position, 0, extent):
            s.lane, s.copies, s.aligned, s.masks = axis, copies, True, [None] * copies
            e.block(loop.body)
            some = equal(0)
            for copy in range(1, copies):
                some = w.op(f"or {truth} {some}, {equal(copy)}")
            return w.some(some)

    reach = LANES * copies
    at = e.first(0, extent // reach * reach, reach, here, extent)
    lanes = ""
    with s.inside(axis, at, 0, extent):
        s.lane, s.copies, s.aligned, s.masks = axis, copies, True, e.live(at, extent, copies)
        e.block(loop.body)
        for copy in range(copies):
            living = w.op(f"and {truth} {equal(copy)}, {s.mask(copy)}")
            bits = w.op(
                f"zext i{LANES} {w.op(f'bitcast {truth} {living} to i{LANES}')} to i{reach}"
            )
            moved = w.op(f"shl i{reach} {bits}, {copy * LANES}")
            lanes = w.op(f"or i{reach} {lanes}, {moved}") if lanes else moved
    lane = w.call(f"i{reach}", f"llvm.cttz.i{reach}", (f"i{reach}", lanes), ("i1", "true"))
    found = w.op(f"add nsw i64 {at}, {lane}")
    element = COMPUTE[e.kernel.instructions[i.args[1]].dtype]
    return Val((found if element == "i64" else w.op(f"trunc i64 {found} to {element}"),), False)
