"""Stores set aside: what a kernel of few rows stores that needs no reduction has its own function.

A few long rows are gone through by few blocks. What is stored along them would be stored by these
alone, while most of the chip is idle; a thread for each element is faster, though it computes again
what the reductions need.
"""

from __future__ import annotations

from dataclasses import replace
from math import prod
from typing import Any

from tenfold.kernel.ir.kernel import Kernel, Store, stages
from tenfold.kernel.ir.number import prefers_less

_FEW, _MANY = 1 << 12, 1 << 20  # elements: fewer are soon stored, more keep many blocks busy
_ROWS = 64  # from which on as many blocks are busy


def set_aside(kernel: Kernel) -> tuple[Kernel, Kernel] | None:
    """A legal kernel with reductions and without axes in order as two, of which the first is
    carried out first: what hangs on reductions, with all checks, and the rest, which has none.
    None where it is better whole."""
    deep = stages(kernel)
    outer = {kernel.free[n] for n, i in enumerate(kernel.instructions) if i.op == "reduce"}
    loose = [n for n, s in enumerate(kernel.stores) if not any(deep[v] for v in s.uses())]
    if len(outer) != 1 or not 0 < len(loose) < len(kernel.stores):
        return None
    rows: Any = prod(kernel.axes[a].extent for a in next(iter(outer)))
    axes = frozenset[int]().union(*(kernel.store_free(kernel.stores[n]) for n in loose))
    elements: Any = prod(kernel.axes[a].extent for a in axes)
    if not prefers_less(rows, _ROWS) or prefers_less(elements, _FEW):
        return None
    if not prefers_less(elements, _MANY):
        return None
    kept = tuple(s for n, s in enumerate(kernel.stores) if n not in loose)
    aside = replace(kernel, stores=tuple(kernel.stores[n] for n in loose), checks=(), free=())
    aside = aside.live()
    if _written_over(kept, aside):
        return None
    return replace(kernel, stores=kept, free=()).live(), aside


def _written_over(stores: tuple[Store, ...], kernel: Kernel) -> bool:
    """Whether a kernel reads what some stores before it may have written over."""
    written = {s.buffer for s in stores}
    groups = {kernel.buffers[n].alias for n in written} - {0}
    read = {i.attr[0] for i in kernel.instructions if i.op == "load"}
    return any(n in written or kernel.buffers[n].alias in groups for n in read)


def used(kernel: Kernel, order: list[int]) -> list[int]:
    """The axes that something is stored along, or hangs on, in order."""
    free = frozenset[int]().union(*map(kernel.store_free, kernel.stores))
    free |= frozenset[int]().union(*(kernel.free[c.condition] for c in kernel.checks))
    return [a for a in order if a in free]
