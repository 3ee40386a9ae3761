"""LLVM IR from a kernel: the form it is laid over a grid in, and its functions as text."""

from __future__ import annotations

from collections.abc import Callable
from math import prod
from typing import Any

from tenfold.backends.cuda.emit.aside import set_aside, used
from tenfold.backends.cuda.emit.clustercolumns import emit_cluster_columns
from tenfold.backends.cuda.emit.columns import Columns
from tenfold.backends.cuda.emit.function import FunctionWriter, KernelText, finish, together
from tenfold.backends.cuda.emit.keptcolumns import emit_kept_columns
from tenfold.backends.cuda.emit.longrows import LongRows
from tenfold.backends.cuda.emit.nested import emit_nested, is_nested
from tenfold.backends.cuda.emit.phases import is_shaped
from tenfold.backends.cuda.emit.point import (
    apart,
    emit_point,
    first_of,
    flattened,
    outside_of,
    thread_number,
)
from tenfold.backends.cuda.emit.rowform import RowForm, row_form
from tenfold.backends.cuda.emit.rows import emit_rows
from tenfold.backends.cuda.emit.scatter import emit_scatter
from tenfold.backends.cuda.emit.serial import SerialEmitter
from tenfold.backends.cuda.emit.tile import emit_tiles, tile_of
from tenfold.backends.cuda.target import CudaTarget
from tenfold.kernel.analyse.lanes import LaneChoice, rounds_in
from tenfold.kernel.analyse.nest import Loop, nest
from tenfold.kernel.ir.kernel import SEQUENTIAL, Free, Kernel
from tenfold.kernel.ir.number import Facts
from tenfold.kernel.passes.keep import recompute
from tenfold.kernel.passes.legalise import legalise

_BLOCK = 128  # threads that have loops of their own


def emit(
    kernel: Kernel,
    target: CudaTarget,
    facts: Facts,
    strict: bool = False,
    odd: frozenset[int] = frozenset(),
) -> KernelText:
    """The text of a kernel whose sizes are Numbers that these facts are about; it is right for all
    sizes of which they hold once it is written. `odd` are the buffers that may begin at no multiple
    of 16 bytes."""
    choice = LaneChoice(kernel)
    lanes = choice.best()
    order = choice.within(lanes)
    legal = legalise(recompute(kernel), fused=not strict, brain=True)

    def begin(kernel: Kernel) -> FunctionWriter:
        return FunctionWriter(kernel, target, odd)

    sequential = [n for n, a in enumerate(kernel.axes) if a.kind == SEQUENTIAL]
    if not choice.reduces and not sequential:
        tile = tile_of(legal, order)
        if tile is not None:
            return emit_tiles(begin(legal), order, tile, facts)
        legal, order = flattened(legal, order)
        return emit_point(begin(legal), order, facts)
    parts = None if sequential else set_aside(legal)
    if parts is not None:
        rest, aside = parts
        first = _emit_reduced(rest, used(rest, order), lanes, begin, facts)
        if first is not None:
            kernel, own = flattened(aside, used(aside, order))
            return together(first, emit_point(begin(kernel), own, facts))
    found = _emit_reduced(legal, order, lanes, begin, facts)
    if found is not None:
        return found
    if sequential:
        scattered = emit_scatter(legal, lambda: begin(legal), facts)
        if scattered is not None:
            return scattered
    along = rounds_in(legal, order, lanes)
    return _emit_serial(begin(legal), order, sequential, along, facts)


def _emit_reduced(
    kernel: Kernel,
    order: list[int],
    lanes: Free,
    begin: Callable[[Kernel], FunctionWriter],
    facts: Facts,
) -> KernelText | None:
    """A kernel of rows; None where it is none."""
    form = row_form(kernel, order)
    if form is None:
        return None
    along = rounds_in(kernel, order, lanes)
    return _emit_rows(form, along, lanes, lambda: begin(form.kernel), facts)


def _emit_rows(
    form: RowForm,
    along: dict[int, int | None],
    lanes: Free,
    begin: Callable[[], FunctionWriter],
    facts: Facts,
) -> KernelText | None:
    """Rows that a team keeps, long ones in chunks, or columns: as the access along them has it,
    and the shape of sums."""
    if any(axis in lanes for axis in form.outer):
        if is_shaped(form.kernel) and None not in along.values():
            return None
        for kept in (emit_kept_columns, emit_cluster_columns):
            found = kept(form, begin(), facts)
            if found is not None:
                return found
        return Columns(form, begin, facts).emit()
    if is_shaped(form.kernel) and None in along.values():
        return None
    found = emit_rows(form, begin(), facts)
    return LongRows(form, begin, facts).emit() if found is None else found


def _emit_serial(
    f: FunctionWriter,
    order: list[int],
    sequential: list[int],
    along: dict[int, int | None],
    facts: Facts,
) -> KernelText:
    """A thread for each position of the axes outside of all loops."""
    kernel, w = f.kernel, f.w
    reduced = sorted(
        {a for r in along for a in kernel.instructions[r].attr[1:]},
        key=lambda a: (a in along.values(), a),
    )
    depth = min(
        (max((order.index(a) + 1 for a in kernel.free[r] if a in order), default=0) for r in along),
        default=len(order),
    )
    outer = order[:depth]
    if not sequential and is_nested(kernel, outer, list(along)):
        items = nest(kernel, order, reduced)
        return emit_nested(f, outer, items, along, facts)
    extents = [kernel.axes[a].extent for a in outer]
    threads: Any = prod(extents)
    t = f.thread()
    ty, end = t.position, w.fresh("end")
    me = thread_number(f, ty)
    outside_of(w, ty, me, threads, end)
    t.base.update(zip(outer, apart(w, ty, me, extents), strict=True))
    items = nest(kernel, [*order, *sequential], reduced)
    emitter = SerialEmitter(t, along)
    for level in range(depth):
        *straight, last = items
        emitter.alone = first_of(t, outer[level:])
        emitter.block(straight)
        assert isinstance(last, Loop)
        items = last.body
    emitter.alone = None
    emitter.block(items)
    w.put(f"br label %{end}")
    w.label(end)
    f.memory += emitter.memory
    f.schedule = "serial"
    return finish([(f, _BLOCK, (threads + _BLOCK - 1) // _BLOCK, 1)], facts)
