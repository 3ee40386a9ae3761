"""Row blocking: how many short rows are computed at once."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from operator import index

from tenfold.backends.llvm.writer import LANES
from tenfold.kernel.analyse.access import in_place
from tenfold.kernel.analyse.cost import functions
from tenfold.kernel.ir.kernel import REDUCED, SEQUENTIAL, Kernel

_MANY = 1 << 18  # elements of a kernel that is worth longer code
_VECTORS, _ROWS = 12, 6  # in registers at once


def row_block(kernel: Kernel, lane: int, order: Sequence[int], copies: int, budget: int) -> int:
    """Some, where each row stays in registers, they are many, functions are computed, and all of a
    row is one block; else 1. `budget` is how many vectors the code may be written for."""
    reduces = [n for n, i in enumerate(kernel.instructions) if i.op == "reduce"]
    if len(order) < 2 or order[-1] != lane or not reduces:
        return 1
    over = [a.extent for a in kernel.axes if a.kind == REDUCED]
    vectors = -(-max(kernel.axes[lane].extent, *over) // LANES)
    if vectors > min(copies, kernel.fold.copies):
        return 1
    # Each reduction goes along the row and gives one result of it.
    outer = frozenset(order[:-1])
    if any(kernel.free[r] != outer or len(kernel.instructions[r].attr) != 2 for r in reduces):
        return 1
    contiguous = all(
        s.condition is None and not s.update and s.index.stride(lane) == 1 for s in kernel.stores
    )
    if not contiguous or kernel.checks or in_place(kernel):
        return 1
    if any(a.kind == SEQUENTIAL for a in kernel.axes) or any(b.rows for b in kernel.buffers):
        return 1
    if not functions(kernel) or prod(kernel.axes[a].extent for a in order) < _MANY:
        return 1
    return index(max(1, min(_ROWS, _VECTORS // vectors, budget // vectors)))
