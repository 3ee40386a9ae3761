"""What a schedule does about memory: non-temporal stores, and rows that are prefetched."""

from __future__ import annotations

from collections.abc import Sequence

from tenfold.backends.cpu.target import cache_bytes
from tenfold.backends.llvm.target import LLVMTarget
from tenfold.backends.llvm.writer import SIZES, kind
from tenfold.kernel.analyse.access import affine, alike, in_place
from tenfold.kernel.analyse.cost import functions
from tenfold.kernel.ir.index import Index, axis
from tenfold.kernel.ir.kernel import (
    BOTH,
    REDUCED,
    SEQUENTIAL,
    Buffer,
    Free,
    Kernel,
)
from tenfold.kernel.ir.number import Number, prefers_less

LINE = 64  # bytes of memory that come and go together
_NEAR = 1 << 18  # bytes that stay in the near caches
_LONG_ROW = 256  # elements
_MANY_LINES = 1 << 14  # bytes of a row: next to these the lines that it shares do not matter
_SLOW = ("f16", "bf16")  # to round to these takes longer than to store them
_LEAD = 1024  # bytes that are prefetched before the row they belong to is begun


def streamed(kernel: Kernel, lane: int | None, tiled: bool, target: LLVMTarget) -> int | None:
    """The store of an output that won't stay in the caches, if its rows are long: a
    non-temporal store goes past them, and its line need not be read first. Where all that a kernel
    reads and writes fits half of the last cache, plain stores are faster: the next call finds it
    there. The rows of a tile lie alike in pages and so push one another out: of these a quarter has
    to fit. Lines that short rows share would be written through twice, up to thirty times as
    slowly: such rows have to lie alike in lines. What works in place when it runs stores the plain
    way (`emit/stores`); of kernels that may, and where masks are slow, only those without
    reductions store past the caches."""
    if lane is None or target.arch != "x86_64":
        return None
    if any(a.kind == SEQUENTIAL for a in kernel.axes):
        return None
    if any(b.role == BOTH for b in kernel.buffers):
        return None
    reduces = [n for n, i in enumerate(kernel.instructions) if i.op == "reduce"]
    if any(lane in kernel.free[r] for r in reduces):
        return None
    if (reduces or tiled) and (in_place(kernel) or not target.masked):
        return None
    extent = kernel.axes[lane].extent
    if reduces and extent < 4 * _LONG_ROW:
        return None
    if prefers_less(_touched(kernel), cache_bytes() // (4 if tiled else 2)):
        return None
    if extent < _LONG_ROW:
        return None
    found = [
        n
        for n, s in enumerate(kernel.stores)
        if s.index.stride(lane) == 1
        and s.condition is None
        and lane in kernel.store_free(s)
        and kernel.buffers[s.buffer].dtype not in _SLOW
        and kind(kernel.buffers[s.buffer].dtype) != "c"
    ]
    outputs = [s for s in kernel.stores if not kernel.buffers[s.buffer].rows]
    if len(found) != 1 or len(outputs) != 1:
        return None
    store = kernel.stores[found[0]]
    size = SIZES[kernel.buffers[store.buffer].dtype]
    if tiled or not (reduces or extent * size >= _MANY_LINES):
        return found[0] if alike(store.index, lane, size, LINE) else None
    return found[0]


def lined_up(kernel: Kernel, lane: int | None, order: Sequence[int]) -> int | None:
    """The store whose vectors had better begin with lines of memory, since its long rows do not:
    those of a range inside an array, as a step of a stencil writes it. A vector that crosses into
    the next line is stored twice. Of what begins where an array does rows may be odd as well, but
    to ask would be one more question of every kernel."""
    if lane is None or len(order) < 2 or order[-1] != lane:
        return None
    if kernel.axes[lane].extent < _LONG_ROW:
        return None
    for n, s in enumerate(kernel.stores):
        dtype = kernel.buffers[s.buffer].dtype
        if s.index.stride(lane) != 1 or s.condition is not None or kind(dtype) == "c":
            continue
        if not affine(s.index) or s.index.const * SIZES[dtype] % LINE:
            return n
    return None


def _touched(kernel: Kernel) -> int:
    """The bytes that a kernel reads and writes, but for tables that it looks things up in."""
    used = {s.buffer for s in kernel.stores}
    for i in kernel.instructions:
        if i.op == "load" and i.index is not None and not i.index.values():
            used.add(i.attr[0])
    return sum(_bytes(kernel.buffers[b]) for b in sorted(used) if not kernel.buffers[b].rows)


def prefetches(
    kernel: Kernel, lane: int | None, order: Sequence[int], lanes: Free, pipelined: bool
) -> tuple[tuple[int, int, Index], ...]:
    """What the reductions of the next row will read: the axis of a loop over this row, the buffer,
    and the place by the position along that axis.

    Loops over one row run from the nearest cache but for the first. Prefetched while the row before
    it is worked on, its elements are there in time. Most is gained in the loop that computes most;
    among equals in the last, where reading and writing overlap; if rows are `pipelined`, so that
    the next was begun before that, it is the one after next that is prefetched.
    """
    found: dict[tuple[int, int, Index], None] = {}
    if lane is None or len(order) < 2 or order[-1] != lane:
        return ()
    row, extent = order[-2], kernel.axes[lane].extent
    if extent < _LONG_ROW or any(a.kind == SEQUENTIAL for a in kernel.axes):
        return ()
    same = (REDUCED, extent)
    over = [a for a in lanes if (kernel.axes[a].kind, kernel.axes[a].extent) == same]
    busiest = max((lane, *sorted(over)), key=lambda a: functions(kernel, a))
    place = axis(busiest, extent)
    for n, i in enumerate(kernel.instructions):
        if i.op != "load" or i.index is None or i.args:
            continue
        if not affine(i.index):
            continue
        buffer, step = kernel.buffers[i.attr[0]], i.index.stride(row)
        if buffer.rows or not step or not far(buffer):
            continue
        across = [
            a
            for a in kernel.free[n]
            if (kernel.axes[a].kind, kernel.axes[a].extent) == same and i.index.stride(a) == 1
        ]
        if len(across) == 1 and kernel.free[n] <= {*order, *across}:
            # By the last element of a line: where a row ends inside one, nobody else fetches it.
            more = LINE // SIZES[buffer.dtype] - 1
            if step == extent:  # the end of one row fetches the beginning of the one after next
                more += min(_LEAD // SIZES[buffer.dtype], extent // 4)
            moved = i.index.substitute({across[0]: place})
            rows = 2 if pipelined and busiest == lane else 1
            found[busiest, i.attr[0], moved + rows * step + more] = None
    return tuple(found)


def far(buffer: Buffer) -> bool:
    """Whether a buffer may be too large for the near caches. Not to know costs little: it is
    prefetched in vain."""
    return isinstance(buffer.size, Number) or _bytes(buffer) >= _NEAR


def _bytes(buffer: Buffer) -> int:
    return buffer.size * SIZES[buffer.dtype]
