"""Cut: into how many parts the work of a kernel goes, by its cost and its sizes alone.

A part takes some 6 µs or more, against 0.3 µs that cutting costs while workers spin; work below
that of a few parts stays on the caller. There are at most 64: enough for the threads of a machine
to end at about the same time, however many they are. Where a part begins is a function of shapes,
never of the number of threads.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

from tenfold.frozen import frozen
from tenfold.kernel.analyse.cost import work
from tenfold.kernel.analyse.nest import carried_out
from tenfold.kernel.ir.index import AXIS
from tenfold.kernel.ir.kernel import BOTH, REDUCED, SCRATCH, Kernel
from tenfold.kernel.ir.sized import SizedKernel

LEAST = 12_000.0  # nanoseconds of work that is cut
PART = 6_000.0  # of a part, at least
_MOST = 64  # parts
_FINE = 1e9  # nanoseconds of what is cut as finely as can be
MOST_ROWS, ROW_BYTES = 32, 2048  # of what parts of a reduction hold in the end
# Nanoseconds an element: of what is as cheap as an addition, of memory read or written at places
# that follow each other, and at computed ones.
_WORK, _MEMORY, _GATHERED = 0.03, 0.06, 1.0
_JOIN = 4.0  # and of what a row's lanes come to, which are joined one after the other
_DEAREST = 1.0  # more than an instruction takes on average


@frozen
class Cut:
    """The parts of a kernel: how far each reaches along the outer axis, how many they are, and
    about how long they take in all."""

    chunk: int
    parts: int
    nanoseconds: int
    joined: bool = False  # they are parts of a reduction, to be joined in the end


@frozen
class KernelPlace:
    """Where the code of a kernel lies, and where a call of it may be cut: at multiples of the grain
    along the outer axis, if it has one. `polls`: it may be stopped by a signal."""

    address: int
    outer: int | None
    grain: int
    polls: bool = False

    def extent(self, call: SizedKernel) -> int:
        """Of the outer axis, in a call: the whole kernel is [0, extent). One that is reduced counts
        for parts alone."""
        axis = None if self.outer is None else call.kernel.axes[self.outer]
        return 1 if axis is None or axis.kind == REDUCED else call.size(axis.extent)


def cut(call: SizedKernel, place: KernelPlace, fine: bool = False) -> Cut | None:
    """The parts of a call of a kernel; None for one. `fine`: whatever it costs, it is cut where it
    can be."""
    kernel, outer, grain = call.kernel, place.outer, place.grain
    if outer is None:
        return None
    extents = [call.size(axis.extent) for axis in kernel.axes]
    most = prod(max(extent, 1) for extent in extents) * len(kernel.instructions) * _DEAREST
    if most < LEAST and not fine:
        return None
    nanoseconds = _FINE if fine else cost(kernel, extents, outer)
    if kernel.axes[outer].kind == REDUCED:
        return _stretches(nanoseconds, extents[outer], grain)
    return share(nanoseconds, extents[outer], grain) if apart(kernel, outer) else None


def share(nanoseconds: float, extent: int, grain: int) -> Cut | None:
    """Parts of work that takes about so long."""
    if nanoseconds < LEAST or extent < 2 * grain:
        return None
    wanted = min(_MOST, max(2, int(nanoseconds / PART)), extent // grain)
    chunk = -(-extent // (wanted * grain)) * grain
    parts = -(-extent // chunk)
    return Cut(chunk, parts, int(nanoseconds)) if parts > 1 else None


def _stretches(nanoseconds: float, extent: int, grain: int) -> Cut | None:
    """Parts of a reduction: stretches of its tree, a power of two of grains each."""
    found = share(nanoseconds, extent, grain)
    if found is None:
        return None
    least = max(found.chunk, -(-extent // MOST_ROWS))
    chunk = grain << (-(-least // grain) - 1).bit_length()
    parts = -(-extent // chunk)
    return Cut(chunk, parts, int(nanoseconds), joined=True) if parts > 1 else None


def apart(kernel: Kernel, outer: int) -> bool:
    """Whether parts along an axis have nothing to do with each other: every element is written by
    one of them, and what is read where others write is what is written there."""
    written: dict[int, set[object]] = {}
    for store in kernel.stores:
        if kernel.buffers[store.buffer].role != SCRATCH:
            if outer not in store.index.axes():
                return False
            written.setdefault(store.buffer, set()).add(store.index)
    return not any(
        i.op == "load"
        and kernel.buffers[i.attr[0]].role == BOTH
        and i.index not in written.get(i.attr[0], ())
        for i in kernel.instructions
    )


def cost(kernel: Kernel, extents: Sequence[int], outer: int) -> float:
    """About how many nanoseconds a kernel takes of what is parted along an axis; none, where as
    much lies outside it, which every part would do."""
    inside = outside = 0.0
    for n, i in enumerate(kernel.instructions):
        bound = carried_out(kernel, n)
        each = _WORK * work(i.op)
        if i.op == "load" and i.index is not None:
            each = _GATHERED if i.index.values() else _MEMORY
        trips = prod(extents[a] for a in bound)
        if outer in bound:
            inside += each * trips
            if i.op == "reduce" and outer not in i.attr[1:] and _along_lanes(kernel, i.attr[1:]):
                inside += _JOIN * prod(extents[a] for a in kernel.free[n])
        elif any(kernel.axes[a].kind == REDUCED for a in bound):
            outside += each * trips
    for store in kernel.stores:
        each = _GATHERED if store.index.values() else _MEMORY
        inside += each * prod(extents[a] for a in kernel.store_free(store))
    return inside if outside * _MOST < inside else 0.0


def _along_lanes(kernel: Kernel, axes: Sequence[int]) -> bool:
    """Whether what is reduced lies packed in memory, so that lanes lie along it."""
    return any(
        atom.kind == AXIS and atom.of in axes and isinstance(step, int) and step == 1
        for i in kernel.instructions
        if i.op == "load" and i.index is not None
        for atom, step in i.index.terms
    )
