"""Neighbouring axes that every index walks as one become one axis.

Kernels over (10, 100) and over (1000,) are then equal, rows have no tails of their own, and
reductions over several neighbouring axes are one loop.
"""

from __future__ import annotations

from dataclasses import replace

from tenfold.kernel.ir.index import AXIS, DIV, MOD, Index, axis
from tenfold.kernel.ir.kernel import SEQUENTIAL, Axis, Kernel


def collapse(kernel: Kernel) -> Kernel:
    """The kernel with every pair of axes put together that can be, outer × inner.

    >>> from tenfold.kernel import Builder
    >>> b = Builder()
    >>> x, y = b.buffer("f32", 12), b.buffer("f32", 12, "write")
    >>> i, j = b.axis(3), b.axis(4)
    >>> b.store(y, i * 4 + j, b.op("neg", "f32", b.load(x, i * 4 + j)))
    >>> print(collapse(b.finish()))
    kernel (a0:12)
      b0: read f32[12]
      b1: write f32[12]
      %0 = load b0[a0]                                 ; f32 a0
      %1 = neg %0                                      ; f32 a0
      b1[a0] = %1
    """
    if any(a.extent == 0 for a in kernel.axes):
        return kernel
    while (pair := _pair(kernel)) is not None:
        kernel = _joined(kernel, *pair)
    return kernel


def _pair(kernel: Kernel) -> tuple[int, int] | None:
    """An outer and an inner axis that always appear as outer * extent + inner."""
    used: set[int] = set()
    followers: dict[int, set[int]] = {}  # outer axis -> the axes that could be its inner
    for index in _indices(kernel):
        steps: dict[int, int] = {}
        for atom, k in index.terms:
            if atom.kind == AXIS:
                steps[atom.of] = k
            elif atom.kind in (DIV, MOD):
                for a in atom.of.axes():  # inside a quotient: left alone
                    steps[a] = 0
        used |= steps.keys()
        for a, k in steps.items():
            fits = {
                n
                for n, step in steps.items()
                if n != a and k and step and k == step * kernel.axes[n].extent
            }
            followers[a] = followers.get(a, fits) & fits
    leaders: dict[int, set[int]] = {}
    for index in _indices(kernel):  # the inner axis never appears without its outer
        here = index.axes()
        for a in here:
            leaders[a] = leaders.get(a, set(here)) & here
    rows = {a for buffer in kernel.buffers for a in buffer.rows}
    for outer, inners in sorted(followers.items()):
        for inner in sorted(inners):
            if outer in leaders.get(inner, ()) and _alike(kernel, outer, inner, rows):
                return outer, inner
    return None


def _alike(kernel: Kernel, outer: int, inner: int, rows: set[int]) -> bool:
    a, b = kernel.axes[outer], kernel.axes[inner]
    if a.kind != b.kind or {outer, inner} & rows:
        return False
    if a.kind == SEQUENTIAL:  # their order has to stay
        ordered = [n for n, axis in enumerate(kernel.axes) if axis.kind == SEQUENTIAL]
        if ordered.index(inner) != ordered.index(outer) + 1:
            return False
    for instruction in kernel.instructions:
        if instruction.op == "reduce":
            axes = instruction.attr[1:]
            if (outer in axes) != (inner in axes):
                return False
    free = [*kernel.free, *(kernel.store_free(s) for s in kernel.stores)]
    return all((outer in f) == (inner in f) for f in free)


def _indices(kernel: Kernel) -> list[Index]:
    found = [i.index for i in kernel.instructions if i.index is not None]
    return found + [s.index for s in kernel.stores]


def _joined(kernel: Kernel, outer: int, inner: int) -> Kernel:
    """The kernel with the inner axis gone and the outer as long as both."""
    width = kernel.axes[inner].extent
    total = kernel.axes[outer].extent * width
    number = {a: a - (a > inner) for a in range(len(kernel.axes))}
    whole = axis(number[outer], total)

    def moved(index: Index) -> Index:
        result = Index((), index.const)
        for atom, k in index.terms:
            if atom.kind == AXIS and atom.of == outer:
                result = result + whole * (k // width)
            elif atom.kind == AXIS and atom.of == inner:
                continue
            elif atom.kind == AXIS:
                result = result + axis(number[atom.of], atom.bound) * k
            else:
                renamed = {
                    a: axis(number[a], kernel.axes[a].extent) for a in range(len(kernel.axes))
                }
                result = result + Index(((atom, k),)).substitute(renamed)
        return result

    axes = [
        Axis(total, a.kind) if n == outer else a for n, a in enumerate(kernel.axes) if n != inner
    ]
    instructions = []
    for i in kernel.instructions:
        attr = i.attr
        if i.op == "reduce":
            attr = (attr[0], *(number[a] for a in attr[1:] if a != inner))
        instructions.append(
            replace(i, attr=attr, index=None if i.index is None else moved(i.index))
        )
    return Kernel(
        tuple(axes),
        tuple(replace(b, rows=tuple(number[a] for a in b.rows)) for b in kernel.buffers),
        kernel.params,
        tuple(instructions),
        tuple(replace(s, index=moved(s.index)) for s in kernel.stores),
        kernel.checks,
        kernel.fold,
    )
