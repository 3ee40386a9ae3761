"""Kernels whose buffers begin amid what is bound.

Memory is bound from multiples of some bytes on, and a slot that is a range of another may begin
anywhere. Then more is bound, and the kernel's own indices say where the slot begins: they are sizes
as all others.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import lru_cache
from typing import Any

from tenfold.frozen import frozen
from tenfold.kernel.ir.index import Index
from tenfold.kernel.ir.kernel import Kernel
from tenfold.kernel.ir.number import Size
from tenfold.kernel.ir.sized import SizedKernel

Odd = frozenset[int]  # buffers that may begin amid what is bound


@frozen(eq=False)
class Shifted:
    """A general kernel some of whose buffers begin at an element that is given: each number of it
    that has to be moved is one more size, this element added to what it was."""

    original: Kernel
    kernel: Kernel
    moved: tuple[tuple[int, Any], ...]  # the buffer, and the number

    def call(self, call: SizedKernel, starts: Mapping[int, int]) -> SizedKernel:
        """A call of the kernel that it was made of, its buffers beginning at these elements."""
        more = (call.size(number) + starts.get(buffer, 0) for buffer, number in self.moved)
        return SizedKernel(self.kernel, (*call.sizes, *more))


@lru_cache(maxsize=1024)
def shifted(kernel: Kernel, odd: Odd) -> Shifted:
    """The kernel with starts for some of its buffers."""
    if not odd:
        return Shifted(kernel, kernel, ())
    numbers: dict[tuple[int, Any], Size] = {}

    def number(buffer: int, was: Any) -> Any:
        return numbers.setdefault((buffer, was), Size(kernel.sizes + len(numbers)))

    def index(buffer: int, was: Index) -> Index:
        return Index(was.terms, number(buffer, was.const)) if buffer in odd else was

    buffers = tuple(
        replace(b, size=number(n, b.size)) if n in odd else b for n, b in enumerate(kernel.buffers)
    )
    instructions = []
    for i in kernel.instructions:
        if i.op == "load" and i.index is not None:
            i = replace(i, index=index(i.attr[0], i.index))
        instructions.append(i)
    stores = tuple(replace(s, index=index(s.buffer, s.index)) for s in kernel.stores)
    made = Kernel(
        kernel.axes, buffers, kernel.params, tuple(instructions), stores, kernel.checks,
        kernel.fold, kernel.free, kernel.sizes + len(numbers),
    )  # fmt: skip
    return Shifted(kernel, made, tuple(numbers))
