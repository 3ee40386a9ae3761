"""Kernels with sizes: one for any, and what it is called with."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from tenfold.frozen import frozen
from tenfold.kernel.ir.index import AXIS, VALUE, Atom, Index
from tenfold.kernel.ir.kernel import Axis, Kernel
from tenfold.kernel.ir.number import Facts, Size

EXTENT, OFFSET, MEMORY = "extent", "offset", "memory"  # what a number is for


@frozen
class SizedKernel:
    """A general kernel and the sizes that it is called with."""

    kernel: Kernel
    sizes: tuple[int, ...] = ()

    @property
    def fixed(self) -> Kernel:
        """The kernel with its sizes filled in."""
        return changed(self.kernel, lambda _, n: self.size(n))

    def numbered(self, facts: Facts) -> Kernel:
        """The kernel with Numbers for its sizes, for whoever makes code of it."""
        numbers = facts.sizes
        return changed(
            self.kernel,
            lambda _, n: numbers[n.number] if isinstance(n, Size) else n,
            lambda: len(numbers),
        )

    def size(self, number: Any) -> int:
        """A number of the kernel."""
        return self.sizes[number.number] if isinstance(number, Size) else number


def changed(
    kernel: Kernel, change: Callable[[str, Any], Any], count: Callable[[], int] = lambda: 0
) -> Kernel:
    """The kernel with its numbers changed, each by what it is for; so many are sizes then."""
    indices: dict[Index, Index] = {}

    def index(old: Index) -> Index:
        made = indices.get(old)
        if made is None:
            terms = tuple([(atom(a), change(EXTENT, k)) for a, k in old.terms])
            made = indices[old] = Index(terms, change(OFFSET, old.const))
        return made

    def atom(a: Atom) -> Atom:
        of = a.of if a.kind in (AXIS, VALUE) else index(a.of)
        return Atom(a.kind, of, change(EXTENT, a.bound))

    axes = tuple([Axis(change(EXTENT, a.extent), a.kind) for a in kernel.axes])
    buffers = tuple([replace(b, size=change(MEMORY, b.size)) for b in kernel.buffers])
    instructions = []
    for i in kernel.instructions:
        if i.index is not None:
            attr = i.attr
            if i.op == "inside":
                attr = tuple([change(OFFSET, n) for n in attr])
            i = replace(i, attr=attr, index=index(i.index))
        instructions.append(i)
    stores = tuple([replace(s, index=index(s.index)) for s in kernel.stores])
    return Kernel(
        axes, buffers, kernel.params, tuple(instructions), stores, kernel.checks, kernel.fold,
        kernel.free, count(),
    )  # fmt: skip
