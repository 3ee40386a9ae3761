"""Kernels for any size: extents, strides and offsets as sizes that the caller gives.

0 and ±1 stay as they are: an axis of one element is none, and what lies packed along an axis is a
matter of the kernel. Equal numbers of one role are one size, so that equal strides are computed
once; which are equal is part of the kernel.
"""

from __future__ import annotations

from typing import Any

from tenfold.kernel.ir.kernel import Kernel
from tenfold.kernel.ir.number import Size
from tenfold.kernel.ir.sized import SizedKernel, changed


def generalise(kernel: Kernel) -> SizedKernel:
    """The general kernel of one of fixed numbers, and the sizes that make it that.

    >>> from tenfold.kernel import Builder
    >>> b = Builder()
    >>> x, y = b.buffer("f32", 600), b.buffer("f32", 12, "write")
    >>> i = b.axis(12)
    >>> b.store(y, i, b.load(x, i * 50))
    >>> made = generalise(b.finish())
    >>> print(made.kernel)
    kernel (a0:n0)
      b0: read f32[n1]
      b1: write f32[n2]
      %0 = load b0[n3*a0]                              ; f32 a0
      b1[a0] = %0
    >>> made.sizes
    (12, 600, 12, 50)
    """
    known: dict[tuple[str, int], Size] = {}

    def change(role: str, number: int) -> Any:
        if -1 <= number <= 1:
            return number
        return known.setdefault((role, number), Size(len(known)))

    general = changed(kernel, change, lambda: len(known))
    return SizedKernel(general, tuple([number for _, number in known]))
