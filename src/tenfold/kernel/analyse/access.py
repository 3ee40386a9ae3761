"""How memory is touched: what is contiguous along an axis, strided, computed, or overlaps."""

from __future__ import annotations

from tenfold.kernel.ir.index import AXIS, DIV, MOD, Index
from tenfold.kernel.ir.kernel import BOTH, PARALLEL, WRITE, Kernel

# How an index moves along an axis.
UNIFORM, PACKED, TRANSPOSED, STRIDED, GATHERED = (
    "uniform",  # not at all
    "packed",  # by one element, forwards or backwards
    "transposed",  # farther, while it is packed along another parallel axis
    "strided",
    "gathered",  # unevenly, or by a value that is computed there
)


def access(kernel: Kernel, index: Index, along: int | None, load: bool = True) -> str:
    """How a load, or a store, moves along an axis."""
    if along is None:
        return UNIFORM
    if any(along in kernel.free[v] for v in index.values()):
        return GATHERED
    step = index.stride(along)
    if step is None:
        return GATHERED
    if step in (0, 1, -1):
        return PACKED if step else UNIFORM
    parallel = [n for n, a in enumerate(kernel.axes) if a.kind == PARALLEL]
    if load and along in parallel and any(index.stride(a) == 1 for a in parallel if a != along):
        return TRANSPOSED
    return STRIDED


def affine(index: Index) -> bool:
    """Whether an index is a sum of axes alone."""
    return all(atom.kind == AXIS for atom, _ in index.terms)


def contiguity(kernel: Kernel, axis: int) -> int:
    """How well the loads over an axis lie along it: 2 for each that is packed, 1 for a uniform."""
    found = 0
    for n, i in enumerate(kernel.instructions):
        if i.op == "load" and i.index is not None and axis in kernel.free[n] and affine(i.index):
            found += {1: 2, 0: 1}.get(i.index.stride(axis) or 0, 0)
    return found


def alike(index: Index, along: int, size: int, line: int) -> bool:
    """Whether the rows along an axis begin at equal places in lines of memory."""
    return not any(step % line for step in apart(index, along, size))


def apart(index: Index, along: int, size: int) -> list[int]:
    """How many bytes the rows along an axis lie apart, along each of the others."""
    others = (k for atom, k in index.terms if not (atom.kind == AXIS and atom.of == along))
    return [k * size for k in others]


def in_place(kernel: Kernel) -> bool:
    """Whether an element may be read where another has been written."""
    if any(b.role == BOTH for b in kernel.buffers):
        return True
    groups = {b.alias for b in kernel.buffers if b.alias and b.role == WRITE}
    return any(b.alias in groups for b in kernel.buffers if b.role != WRITE)


def reach(index: Index) -> int:
    """What no part of an index exceeds while it is summed up."""
    total = abs(index.const)
    for atom, k in index.terms:
        most = atom.bound - 1
        if atom.kind in (DIV, MOD):
            inner = reach(atom.of) + atom.bound
            total += inner
            most = inner // atom.bound if atom.kind == DIV else most
        total += abs(k) * most
    return total


def farthest(kernel: Kernel) -> int:
    """What no part of any index exceeds, in memory too, where a complex number is two."""
    total = sum(reach(s.index) for s in kernel.stores)
    for i in kernel.instructions:
        if i.index is not None:
            ends = i.attr if i.op == "inside" else ()
            total += reach(i.index) + sum(abs(end) for end in ends)
    return 2 * total
