"""The sizes that a kernel will be called with, where they grow step by step.

An array that grows by an element a call, as the cache of a model that writes a text does, takes its
kernels past the sizes that their code is for: from few elements to many, from rows with a rest to
rows without, to extents that happen to be equal. So where sizes have moved by a small step since
the kernel was last asked for, those that follow are looked at, and what has no code is compiled
while the calls between are answered. Which code a kernel has for its sizes, and so its bits, does
not depend on that: only when it is made does.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from tenfold.kernel.ir.kernel import Kernel
from tenfold.kernel.ir.number import Size
from tenfold.kernel.ir.sized import EXTENT, MEMORY, SizedKernel, changed

STEPS = 128  # that are foreseen; and one as far again
_LEAST = 4  # steps that lie behind, at least


class Course:
    """The sizes that a kernel was called with: the last, the step to them, and how many more of
    such steps were foreseen."""

    def __init__(self) -> None:
        self.sizes: tuple[int, ...] = ()
        self.step: tuple[int, ...] = ()
        self.left = 0

    def follow(self, call: SizedKernel) -> tuple[int, ...]:
        """Go on to the sizes of a call. The step, where those that follow are to be foreseen now;
        else nothing."""
        before, self.sizes = self.sizes, call.sizes
        if not before or before == call.sizes:
            return ()
        step = tuple([b - a for a, b in zip(before, call.sizes, strict=True)])
        if step == self.step and self.left > 0:
            self.left -= 1
            return ()
        self.step, self.left = step, STEPS
        moved = zip(call.sizes, step, strict=True)
        return step if all(_regular(n, d) for n, d in moved if d) else ()


def _regular(n: int, step: int) -> bool:
    """Whether a size looks like one of many equal steps from 0."""
    return n % step == 0 and n // step > _LEAST


def coming(call: SizedKernel, step: tuple[int, ...]) -> Iterator[SizedKernel]:
    """What will be called if sizes go on by this step."""
    for turns in (*range(1, STEPS + 1), 2 * STEPS):
        yield SizedKernel(call.kernel, _moved(call.sizes, step, turns))
    yield from _equal_extents(call, step)


def _moved(sizes: tuple[int, ...], step: tuple[int, ...], turns: int) -> tuple[int, ...]:
    return tuple([n + turns * d for n, d in zip(sizes, step, strict=True)])


def _equal_extents(call: SizedKernel, step: tuple[int, ...]) -> Iterator[SizedKernel]:
    """The kernels of sizes at which an extent that moves is as large as another: equal extents are
    one size, so they are other kernels."""
    extents = sorted({a.extent.number for a in call.kernel.axes if isinstance(a.extent, Size)})
    for one in extents:
        for other in extents:
            if step[one] and not step[other]:
                turns, rest = divmod(call.sizes[other] - call.sizes[one], step[one])
                if not rest and 0 < turns <= STEPS:
                    yield _joined(call.kernel, _moved(call.sizes, step, turns), one, other)


def _joined(kernel: Kernel, sizes: tuple[int, ...], one: int, other: int) -> SizedKernel:
    """The kernel in which two extents are one, and so are the sizes of memory that are equal then;
    numbered as the sizes of any."""
    known: dict[tuple[str, int], Size] = {}
    values: list[int] = []

    def change(role: str, n: Any) -> Any:
        if not isinstance(n, Size):
            return n
        size = sizes[n.number]
        number = one if role == EXTENT and n.number == other else n.number
        key = role, size if role == MEMORY else number
        if key not in known:
            values.append(size)
        return known.setdefault(key, Size(len(known)))

    made = changed(kernel, change, lambda: len(known))
    return SizedKernel(made, tuple(values))
