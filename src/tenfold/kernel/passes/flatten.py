"""A tiny inner axis and the one outside it as one: positions inside by remainder.

An array of (N, 3) fills three lanes of sixteen when its inner axis lies across them. Over the
flat axis of 3N all lanes are filled, and what depends on the inner axis alone repeats with a
period of a few vectors.
"""

from __future__ import annotations

from dataclasses import replace

from tenfold.kernel.analyse.cost import small
from tenfold.kernel.ir.index import Index, axis
from tenfold.kernel.ir.kernel import PARALLEL, Axis, Kernel

TINY, TINIEST = 8, 4
_LEAST = 64  # elements of the flat axis


def tiny(kernel: Kernel) -> int:
    """What an axis does not exceed whose code is made for it alone. A small kernel had better do
    for many sizes."""
    return TINIEST if small(kernel) else TINY


def flatten(kernel: Kernel, inner: int) -> Kernel:
    """The kernel with a tiny parallel axis joined to the one outside it in every output.

    >>> from tenfold.kernel import Builder
    >>> b = Builder()
    >>> x, y, z = b.buffer("f32", 600), b.buffer("f32", 3), b.buffer("f32", 600, "write")
    >>> i, j = b.axis(200), b.axis(3)
    >>> b.store(z, i * 3 + j, b.op("add", "f32", b.load(x, i * 3 + j), b.load(y, j)))
    >>> print(flatten(b.finish(), 1))
    kernel (a0:600)
      b0: read f32[600]
      b1: read f32[3]
      b2: write f32[600]
      %0 = load b0[a0]                                 ; f32 a0
      %1 = load b1[a0%3]                               ; f32 a0
      %2 = add %0 %1                                   ; f32 a0
      b2[a0] = %2
    """
    width = kernel.axes[inner].extent
    outer = outside(kernel, inner)
    if outer is None or not 1 < width <= tiny(kernel) or kernel.axes[inner].kind != PARALLEL:
        return kernel
    total = kernel.axes[outer].extent * width
    if total < _LEAST or any(b.rows for b in kernel.buffers):
        return kernel
    return joined(kernel, outer, inner)


def joined(kernel: Kernel, outer: int, inner: int) -> Kernel:
    """The kernel with one axis for two parallel ones; those behind the inner one move up."""
    width = kernel.axes[inner].extent
    total = kernel.axes[outer].extent * width
    number = {a: a - (a > inner) for a in range(len(kernel.axes))}
    moves = {a: axis(number[a], kernel.axes[a].extent) for a in number}
    whole = axis(number[outer], total)
    moves[outer], moves[inner] = whole // width, whole % width

    def moved(index: Index) -> Index:
        return index.substitute(moves)

    axes = list(kernel.axes)
    axes[outer] = Axis(total, PARALLEL)
    del axes[inner]
    return Kernel(
        tuple(axes),
        kernel.buffers,
        kernel.params,
        tuple(
            replace(
                i,
                attr=(i.attr[0], *(number[a] for a in i.attr[1:])) if i.op == "reduce" else i.attr,
                index=None if i.index is None else moved(i.index),
            )
            for i in kernel.instructions
        ),
        tuple(replace(s, index=moved(s.index)) for s in kernel.stores),
        kernel.checks,
        kernel.fold,
        sizes=kernel.sizes,
    )


def outside(kernel: Kernel, inner: int) -> int | None:
    """The parallel axis just outside a packed inner one, the same in all stores."""
    width = kernel.axes[inner].extent
    found: set[int] = set()
    for store in kernel.stores:
        if store.index.stride(inner) != 1:
            return None
        outers = [
            a
            for a, ax in enumerate(kernel.axes)
            if a != inner and ax.kind == PARALLEL and store.index.stride(a) == width
        ]
        if not outers:
            return None
        found.add(outers[0])
    return found.pop() if len(found) == 1 else None
