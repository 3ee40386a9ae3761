"""A tiny parallel axis of reductions written out, where they share costly work.

`(apart * pull[:, :, None]).sum(axis=1)` has three sums of (N, N) for the three columns of `apart`.
With an axis of three for them, what they are all made of is computed for each. Written out they
are three reductions in one loop, with an accumulator each, and what they share is one value.
"""

from __future__ import annotations

import operator
from dataclasses import replace
from typing import Any

from tenfold.kernel.analyse.cost import size, work
from tenfold.kernel.ir.build import Builder
from tenfold.kernel.ir.index import Index, axis
from tenfold.kernel.ir.kernel import (
    ELEMENTWISE,
    PARALLEL,
    SEQUENTIAL,
    Check,
    Instruction,
    Kernel,
    Store,
    moved,
)
from tenfold.kernel.ir.number import Number
from tenfold.kernel.ir.sized import MEMORY, changed
from tenfold.kernel.passes.flatten import tiny

_LONGEST = 1000  # the code of one vector of all that is written out
_SHARED = 2.0  # times the work of each reduction's own, less of which is computed for each
_READ = 1.0  # what a load costs, or a value that joins a reduction


def unroll(kernel: Kernel) -> Kernel:
    """The kernel with the tiny axes written out whose reductions share most of their work.

    >>> b = Builder()
    >>> x, v, y = b.buffer("f32", 800), b.buffer("f32", 1600), b.buffer("f32", 16, "write")
    >>> i, j = b.axis(8), b.axis(2)
    >>> n, k = b.reduced(100, 1)
    >>> weight = b.op("exp", "f32", b.load(x, i * 100 + k))
    >>> own = b.op("mul", "f32", weight, b.load(v, k * 2 + j))
    >>> b.store(y, i * 2 + j, b.reduce("sum", [n], own))
    >>> print(unroll(b.finish()))
    kernel (a0:8, a1:100 reduced)
      b0: read f32[800]
      b1: read f32[1600]
      b2: write f32[16]
      %0 = load b0[100*a0 + a1]                        ; f32 a0 a1
      %1 = exp %0                                      ; f32 a0 a1
      %2 = load b1[2*a1]                               ; f32 a1
      %3 = mul %1 %2                                   ; f32 a0 a1
      %4 = reduce sum %3 over a1                       ; f32 a0
      %5 = load b1[2*a1 + 1]                           ; f32 a1
      %6 = mul %1 %5                                   ; f32 a0 a1
      %7 = reduce sum %6 over a1                       ; f32 a0
      b2[2*a0] = %4
      b2[2*a0 + 1] = %7
    """
    if any(a.kind == SEQUENTIAL for a in kernel.axes) or any(b.rows for b in kernel.buffers):
        return kernel
    for number in range(len(kernel.axes) - 1, -1, -1):
        if kernel.axes[number].kind != PARALLEL or not _shares(kernel, number):
            continue
        width = kernel.axes[number].extent
        if 1 < width <= tiny(kernel) and size(kernel) * width <= _LONGEST:
            kernel = _written(_fixed(kernel, operator.index(width)), number)
    return kernel


def _shares(kernel: Kernel, number: int) -> bool:
    """Whether the loops of reductions over other axes compute much that does not hang on this one,
    for each of its positions."""
    shared, own = set[int](), set[int]()
    for r, i in enumerate(kernel.instructions):
        if i.op != "reduce" or number not in kernel.free[r]:
            continue
        over, stack = frozenset(i.attr[1:]), list(i.args)
        own.add(r)
        while stack:
            v = stack.pop()
            if kernel.free[v].isdisjoint(over) or v in shared or v in own:
                continue
            (own if number in kernel.free[v] else shared).add(v)
            stack += kernel.instructions[v].uses()
    return _work(kernel, shared) > _SHARED * _work(kernel, own) > 0


def _work(kernel: Kernel, values: set[int]) -> float:
    ops = (kernel.instructions[v].op for v in sorted(values))
    return sum(_READ if op in ("load", "reduce") else work(op) for op in ops)


def _fixed(kernel: Kernel, most: int) -> Kernel:
    """The kernel with its tiny numbers as they are: what is read at a position of an axis that is
    written out is then seen to be what was read there before."""

    def fixed(role: str, n: Any) -> Any:
        if role == MEMORY or not isinstance(n, Number) or not 0 <= n <= most:
            return n
        return operator.index(n)

    return changed(kernel, fixed, lambda: kernel.sizes)


def _written(kernel: Kernel, number: int) -> Kernel:
    """The kernel without an axis: what depends on it once for each position."""
    b = Builder(kernel.fold)
    left = {a: a - (a > number) for a in range(len(kernel.axes)) if a != number}
    b.axes = [kernel.axes[a] for a in left]
    b.buffers, b.params = list(kernel.buffers), list(kernel.params)
    places = {a: axis(new, kernel.axes[a].extent) for a, new in left.items()}
    width = kernel.axes[number].extent
    once = [dict[int, int]() for _ in range(width)]  # for each position what values are now

    def at(index: Index, position: int) -> Index:
        gone = {number: Index((), position)}
        return moved(index.substitute(places | gone), once[position])

    def made(i: Instruction, position: int) -> int:
        args = [once[position][a] for a in i.args]
        if i.index is not None:
            index = at(i.index, position)
            if i.op == "load":
                return b.load(i.attr[0], index, *args)
            return b.index(index, i.dtype) if i.op == "index" else b.inside(index, *i.attr)
        if i.op == "reduce":
            attr = (i.attr[0], *(left[a] for a in i.attr[1:]))
            return b.put(Instruction("reduce", i.dtype, tuple(args), attr))
        if i.op == "select":
            return b.select(*args)
        if i.op in ELEMENTWISE:
            return b.op(i.op, i.dtype, *args)
        return b.put(replace(i, args=tuple(args)))

    for position in range(width):
        for n, i in enumerate(kernel.instructions):
            again = position and number not in kernel.free[n]
            once[position][n] = once[0][n] if again else made(i, position)
    for s in kernel.stores:
        for position in range(width if number in kernel.store_free(s) else 1):
            now = once[position]
            condition = None if s.condition is None else now[s.condition]
            b.stores.append(Store(s.buffer, at(s.index, position), now[s.value], condition))
    for c in kernel.checks:
        for position in range(width if number in kernel.free[c.condition] else 1):
            b.checks.append(Check(once[position][c.condition], c.code))
    return b.finish()
