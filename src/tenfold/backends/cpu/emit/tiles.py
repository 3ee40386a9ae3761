"""Transposed loads: a tile is copied the other way round, then read like any packed array.

Reading along a long stride touches a line of memory for each element, and where the stride is a
power of two they all fall into one set of the cache. A tile is filled from short runs
instead, as many squared at a time as a register holds, and stays in the nearest cache. Tiles begin
where lines of memory begin, as far as rows lie alike in them, so that no line is read or written
by halves.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import ExitStack
from typing import TYPE_CHECKING

from tenfold.backends.cpu.emit.memory import element_size, pointer
from tenfold.backends.cpu.emit.state import Position
from tenfold.backends.cpu.schedule.schedule import TILE_COLUMNS, TILE_ROWS
from tenfold.backends.cpu.schedule.traffic import LINE
from tenfold.backends.llvm import masks
from tenfold.backends.llvm.target import LLVMTarget
from tenfold.backends.llvm.writer import LANES, Writer, vector
from tenfold.kernel.analyse.access import apart
from tenfold.kernel.analyse.nest import Loop
from tenfold.kernel.ir.index import Index
from tenfold.kernel.ir.number import Number

if TYPE_CHECKING:
    from tenfold.backends.cpu.emit.emit import Emitter


def tiled(e: Emitter, loop: Loop) -> None:
    """The loops over the row axis of a tile and the lane axis inside it, tile by tile."""
    tile, inner = e.schedule.tile, loop.body[-1]
    assert tile is not None
    assert isinstance(inner, Loop)
    row, lane = loop.axis, inner.axis
    height, width = e.kernel.axes[row].extent, e.kernel.axes[lane].extent
    sizes = {v: element_size(e.kernel.buffers[v[0]].dtype) for v in tile.loads}
    memory = {v: e.private(TILE_ROWS * TILE_COLUMNS * size) for v, size in sizes.items()}
    begin, end = e.part(row, 0, height)
    store = e.kernel.stores[0]
    above = _over(e, *tile.loads[0], row, {row: begin, lane: 0})
    before = None
    if store.index.stride(lane) == 1 and not store.index.values():
        before = _over(e, store.buffer, store.index, lane, {row: begin, lane: 0})
    exact = isinstance(width, int) and width % TILE_COLUMNS == 0 and before is None

    def one(top: Position, bottom: Position, left: Position, right: Position) -> None:
        for v in tile.loads:
            _fill(e, v, memory[v], sizes[v], (row, top, bottom), (lane, left, right))
            e.s.tiles[v] = (memory[v], row, TILE_COLUMNS, str(top), str(left))

        def rows(left: Position, right: Position, exact: bool | None, most: int) -> None:
            def body(i: Position, _: list[str]) -> list[str]:
                with e.s.inside(row, i, 0, height):
                    e.block(loop.body[:-1])
                    e.lane_range(
                        lane, 0, width, left, right, lambda: e.block(inner.body), exact, most
                    )
                return []

            some = e.w.op(f"icmp slt i64 {left}, {right}")
            stop = e.w.select(some, "i64", str(bottom), str(top))
            e.loop(top, stop, 1, (), body, TILE_ROWS)

        if exact:
            rows(left, right, True, TILE_COLUMNS)
            return
        # What is left of rows comes after all whole trips: between them it would ask for registers.
        reach = LANES * e.schedule.copies
        whole = e.whole_part(left, right, reach)
        rows(left, whole, True, TILE_COLUMNS)
        rows(whole, right, None, reach)

    def across(top: Position, bottom: Position) -> None:
        _pieces(e, (0, width, TILE_COLUMNS, width), before, lambda a, b: one(top, bottom, a, b))

    _pieces(e, (begin, end, TILE_ROWS, height), above, across)
    e.s.tiles.clear()


def _pieces(
    e: Emitter,
    bounds: tuple[Position, Position, int, int],
    over: str | None,
    body: Callable[[Position, Position], None],
) -> None:
    """The pieces of a range that is so long at most, of one size but for the ends: the first is
    shorter by `over`."""
    w, (low, high, size, most) = e.w, bounds
    whole = isinstance(high, int) and high % size == 0 and over is None

    def piece(start: Position, _: list[str]) -> list[str]:
        first = start
        if over is not None:
            start = w.op(f"sub nsw i64 {start}, {over}")
            first = w.intrinsic("smax", "i64", start, str(low))
        body(first, _least(w, start, size, high, whole))
        return []

    stop = high if over is None else w.op(f"add nsw i64 {high}, {over}")
    e.loop(low, stop, size, (), piece, most)


def _over(
    e: Emitter, buffer: int, index: Index, along: int, begin: dict[int, Position]
) -> str | None:
    """How many elements the first run of a tile lies beyond the beginning of a line. None, or 0
    when it runs, where the others do not begin at equal places in lines."""
    w, size = e.w, element_size(e.kernel.buffers[buffer].dtype)
    steps = apart(index, along, size)
    if any(isinstance(step, int) and step % LINE for step in steps):
        return None
    with ExitStack() as stack:
        for axis, position in begin.items():
            stack.enter_context(e.s.inside(axis, position, 0, 1))
        at = pointer(e.s, buffer, index, 0)
    address = w.op(f"ptrtoint ptr {at} to i64")
    beyond = w.op(f"and i64 {address}, {LINE - 1}")
    over = w.op(f"udiv i64 {beyond}, {size}")
    unlike = sum(step & LINE - 1 for step in steps if isinstance(step, Number))
    if isinstance(unlike, Number):
        over = w.select(w.op(f"icmp eq i64 {unlike}, 0"), "i64", over, "0")
    return over


def _least(w: Writer, start: Position, size: int, end: Position, exact: bool) -> Position:
    """Where a piece that starts here ends."""
    if isinstance(start, int):
        if isinstance(end, int):
            return min(start + size, end)
        return w.intrinsic("smin", "i64", str(start + size), str(end))
    stop = w.op(f"add nsw i64 {start}, {size}")
    return stop if exact else w.intrinsic("smin", "i64", stop, str(end))


def _fill(
    e: Emitter,
    load: tuple[int, Index],
    memory: str,
    size: int,
    down: tuple[int, Position, Position],
    across: tuple[int, Position, Position],
) -> None:
    """Copy what a load reads of one tile, the other way round."""
    w, (buffer, index) = e.w, load
    row, top, bottom = down
    lane, left, right = across
    with e.s.inside(row, top, 0, 1), e.s.inside(lane, left, 0, 1):
        source = pointer(e.s, buffer, index, 0)
    w.routines.add(size)
    lines = w.op(f"sub nsw i64 {right}, {left}")
    length = w.op(f"sub nsw i64 {bottom}, {top}")
    step = (index.stride(lane) or 0) * size
    w.put(
        f"call void @local.tile.{size}(ptr {source}, i64 {step}, ptr {memory}, i64 {lines}, "
        f"i64 {length})"
    )


def tile_routine(size: int, target: LLVMTarget, declared: set[str]) -> str:
    """Copy `lines` runs of `length` elements, `step` bytes apart, to columns of a tile.

    As many by as many as a register holds, up to sixteen, by rounds of shuffles. Lines beyond the
    last repeat it; what lies beyond the end of a run is masked, or copied one by one.
    """
    n = min(LANES, target.vector_bytes // size)
    element = f"i{8 * size}"
    ty, w = vector(element, True, n), Writer(target)
    w.lines = [
        f"define internal void @local.tile.{size}(ptr %from, i64 %step, ptr %to, i64 %lines, "
        "i64 %length) noinline nounwind {",
        "entry:",
        "  %last = sub i64 %lines, 1",
        "  br label %down",
        "down:",
        "  %line = phi i64 [ 0, %entry ], [ %line.next, %down.end ]",
        "  br label %along",
        "along:",
        "  %at = phi i64 [ 0, %down ], [ %at.next, %along.end ]",
        "  %left = sub i64 %length, %at",
    ]
    mask = None
    if w.masked:
        short = w.op(f"trunc i64 {w.intrinsic('smin', 'i64', '%left', str(n))} to i32")
        counts = "<" + ", ".join(f"i32 {k}" for k in range(n)) + ">"
        wide = vector("i32", True, n)
        mask = w.op(f"icmp sgt {wide} {w.splat('i32', short, n)}, {counts}")
    else:
        rest = w.op("sub i64 %lines, %line")
        least = w.intrinsic("smin", "i64", rest, "%left")
        w.put(f"{'%whole'} = icmp sge i64 {least}, {n}")
        w.put("br i1 %whole, label %fast, label %slow")
        w.label("fast")
    rows = []
    for r in range(n):
        here = w.op(f"add i64 %line, {r}")
        here = w.intrinsic("smin", "i64", here, "%last")
        start = w.op(f"getelementptr i8, ptr %from, i64 {w.op(f'mul i64 {here}, %step')}")
        start = w.op(f"getelementptr {element}, ptr {start}, i64 %at")
        rows.append(masks.load(w, start, element, mask, n))
    half = n // 2
    while half:
        low = ", ".join(f"i32 {k if not k & half else n + k - half}" for k in range(n))
        high = ", ".join(f"i32 {k + half if not k & half else n + k}" for k in range(n))
        for r in range(n):
            if not r & half:
                x, y = rows[r], rows[r + half]
                pick = f"shufflevector {ty} {x}, {ty} {y}, <{n} x i32>"
                rows[r], rows[r + half] = w.op(f"{pick} <{low}>"), w.op(f"{pick} <{high}>")
        half //= 2
    to = w.op(f"add i64 {w.op(f'mul i64 %at, {TILE_COLUMNS}')}, %line")
    for r in range(n):
        place = w.op(f"add i64 {to}, {r * TILE_COLUMNS}") if r else to
        start = w.op(f"getelementptr {element}, ptr %to, i64 {place}")
        w.put(f"store {ty} {rows[r]}, ptr {start}, align {size}")
    w.put("br label %along.end")
    if not w.masked:
        w.lines += _slow(element, n)
    w.lines += [
        "along.end:",
        f"  %at.next = add i64 %at, {n}",
        "  %more = icmp slt i64 %at.next, %length",
        "  br i1 %more, label %along, label %down.end",
        "down.end:",
        f"  %line.next = add i64 %line, {n}",
        "  %again = icmp slt i64 %line.next, %lines",
        "  br i1 %again, label %down, label %end",
        "end:",
        "  ret void",
        "}",
        "",
    ]
    declared |= w.declared
    return "\n".join(w.lines)


def _slow(element: str, n: int) -> list[str]:
    """A corner of a tile, element by element."""
    return f"""slow:
  %line.stop = add i64 %line, {n}
  %line.end = call i64 @llvm.smin.i64(i64 %line.stop, i64 %lines)
  %at.stop = add i64 %at, {n}
  %at.end = call i64 @llvm.smin.i64(i64 %at.stop, i64 %length)
  br label %each
each:
  %l = phi i64 [ %line, %slow ], [ %l.next, %each.end ]
  %l.offset = mul i64 %l, %step
  %l.from = getelementptr i8, ptr %from, i64 %l.offset
  br label %one
one:
  %a = phi i64 [ %at, %each ], [ %a.next, %one ]
  %a.from = getelementptr {element}, ptr %l.from, i64 %a
  %x = load {element}, ptr %a.from
  %a.row = mul i64 %a, {TILE_COLUMNS}
  %a.place = add i64 %a.row, %l
  %a.to = getelementptr {element}, ptr %to, i64 %a.place
  store {element} %x, ptr %a.to
  %a.next = add i64 %a, 1
  %a.more = icmp slt i64 %a.next, %at.end
  br i1 %a.more, label %one, label %each.end
each.end:
  %l.next = add i64 %l, 1
  %l.more = icmp slt i64 %l.next, %line.end
  br i1 %l.more, label %each, label %along.end""".split("\n")
