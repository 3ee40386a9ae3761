"""Which kernels are scatters that many threads can carry out, if one store's order is kept."""

from __future__ import annotations

from tenfold.kernel.ir.kernel import BOTH, SCRATCH, Kernel


def scatter_of(kernel: Kernel) -> int | None:
    """The one store of a kernel whose order matters; None where the kernel does other things that
    depend on an order."""
    if any(i.op == "reduce" for i in kernel.instructions):
        return None
    if any(b.role == SCRATCH for b in kernel.buffers):
        return None
    written = {s.buffer for s in kernel.stores}
    aliases = {kernel.buffers[b].alias for b in written} - {0}
    for i in kernel.instructions:
        if i.op == "load":
            buffer = kernel.buffers[i.attr[0]]
            if i.attr[0] in written or buffer.role == BOTH or buffer.alias in aliases:
                return None
    scattered = [n for n, s in enumerate(kernel.stores) if kernel.buffers[s.buffer].role == BOTH]
    if len(scattered) != 1:
        return None
    for n, s in enumerate(kernel.stores):
        if s.condition is not None:
            return None
        free = frozenset[int]().union(*(kernel.free[v] for v in s.uses()))
        if n not in scattered and (s.index.values() or not free <= s.index.axes()):
            return None
    return scattered[0]
