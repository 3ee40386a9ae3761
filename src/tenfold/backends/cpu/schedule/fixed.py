"""What the code of a general kernel fixes, and what it asks of its sizes.

Extents, strides and offsets are given when a kernel runs. Its code depends on them by these rules.

1. Fixed are tiny divisors of positions, whose remainders repeat with a period of a few vectors: up
   to 4, or 8 in a kernel that is not small. Of such a kernel also what is so short that it is
   written out: rows reduced along lanes that stay in registers, windows, inner rows of up to 8
   whole vectors; with masks, and where nothing is reduced, also of any elements in so many. With
   vectors of 16 bytes also how many rows of a table are reduced, up to 64: they are prefetched, and
   where the last are costs registers that are short there.
2. A kernel of less than 32,768 elements is small. Nothing else of it depends on sizes but which
   axis lies across lanes: no row blocking, no prefetch of rows, no non-temporal stores, and no
   cuts but for a single one. Below AVX-512, where it reduces nothing, it asks whether rows fill the
   vectors of a trip: then the last ones overlap, and there are no masks.
3. Any other asks a few questions, each of one number and a constant: whether what it touches goes
   past the caches and rows are long, whether a range of rows begins with a line of memory, whether
   the parts of an axis that is cut are long, whether both sides of a tile fill a vector, whether it
   runs so long that it has to poll, whether a reduction of everything is so long that it may be
   cut (131,072).
4. Of an axis that is reduced along lanes it asks whether that is one chunk of the fold (8,192), as
   a small kernel does; whether it is a multiple of a round (64), or of two runs (512); and of up to
   8 runs, whether there are 1, 2, 4 or 8. Where long functions are computed, it asks how many
   vectors the last round has, there and in what is stored along such rows: one for nothing would
   cost more than the masks do. The last round is masked, runs and chunks are joined by a binary
   counter. Accumulators of more than 256 columns and 32 rows lie in memory, with places
   for 2**10, 2**20 or 2**40 runs; there it asks whether columns are whole vectors.
5. Whether all positions fit 32 bits, and whether a divisor is a multiple of the lanes, so that
   neighbours stay neighbours, is asked where it matters.
6. A condition is settled where the range of its positions does so, else it is computed.

What is not asked is worked out when the code runs: how many vectors are whole, where lines of
memory begin, how to divide by a number (`backends/cpu/emit`).
"""

from __future__ import annotations

import operator
from collections.abc import Iterator
from typing import Any

from tenfold.backends.cpu.schedule.schedule import Schedule, choose
from tenfold.backends.llvm.target import LLVMTarget
from tenfold.backends.llvm.writer import LANES
from tenfold.kernel.analyse.lanes import rounds_in
from tenfold.kernel.ir.index import DIV, MOD, Index
from tenfold.kernel.ir.kernel import REDUCED, Kernel
from tenfold.kernel.ir.number import Number
from tenfold.kernel.ir.sized import changed
from tenfold.kernel.passes.flatten import tiny
from tenfold.kernel.passes.keep import keep_in_output

_SHORT_ROW = 8 * LANES  # elements
_FEW_ROWS = 64
_CHEAP = frozenset({"f32"})  # with AVX-512: 1024² of them are read back in 1.15 of the time


def choose_fixed(kernel: Kernel, target: LLVMTarget) -> tuple[Kernel, Schedule]:
    """The schedule of a kernel whose sizes are Numbers, and the kernel with some of them fixed.
    What would be computed twice down its columns waits in the result."""
    indices = [i.index for i in kernel.instructions if i.index is not None]
    divisors = [n for index in indices for n in _divisors(index)]
    if divisors:
        most = tiny(kernel)
        kernel = _fix(kernel, [n for n in divisors if n <= most])
    schedule = choose(kernel, target)
    if not schedule.small:
        extents = [kernel.axes[a].extent for a in _short(kernel, schedule, target)]
        kernel = _fix(kernel, extents)
        schedule = choose(kernel, target)
    if schedule.chunk:
        kernel = keep_in_output(kernel, _CHEAP if target.vector_bytes == 64 else frozenset())
    return kernel, schedule


def _short(kernel: Kernel, schedule: Schedule, target: LLVMTarget) -> Iterator[int]:
    """The axes that are written out: rows and windows that are reduced, what is blocked, and rows
    of a few whole vectors; and few rows of a table, where registers are short."""
    across = rounds_in(kernel, schedule.order, schedule.lanes).values()
    indices = [i.index for i in kernel.instructions if i.index is not None]
    gathered = {a for index in indices for v in index.values() for a in kernel.free[v]}
    for n, axis in enumerate(kernel.axes):
        most = kernel.fold.round if n in across else LANES
        if n in gathered and n not in across and target.vector_bytes == 16:
            most = _FEW_ROWS
        if axis.kind == REDUCED and axis.extent <= most:
            yield n
    unit = 1 if target.masked and not schedule.reduced else LANES
    for n in () if schedule.tile else schedule.order[1:]:
        extent = kernel.axes[n].extent
        if n in schedule.lanes and extent <= _SHORT_ROW and extent % unit == 0:
            yield n
    if schedule.rows > 1:
        yield from schedule.lanes


def _divisors(index: Index) -> Iterator[int]:
    for atom, _ in index.terms:
        if atom.kind in (DIV, MOD):
            yield atom.bound
            yield from _divisors(atom.of)


def _fix(kernel: Kernel, numbers: list[Any]) -> Kernel:
    """The kernel with these numbers as they are now, wherever they stand."""
    known = {n.at for n in numbers if isinstance(n, Number)}
    if not known:
        return kernel

    def fixed(_: str, n: int) -> int:
        return operator.index(n) if isinstance(n, Number) and n.at in known else n

    return changed(kernel, fixed, lambda: kernel.sizes)
