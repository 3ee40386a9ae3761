"""What a kernel's instructions cost, in vector instructions as cheap as an addition.

It is asked of kernels as they are lowered: what is one instruction there is about as much work
however many it takes when it is legal.
"""

from __future__ import annotations

from tenfold.kernel.ir.kernel import TRANSCENDENTAL, Kernel

_FUNCTION, _SIMPLE = 10.0, 0.5
_WORK = {"div": 3.0, "sqrt": 4.0, "rsqrt": 7.0, "floordiv": 12.0, "mod": 12.0, "fmod": 12.0}


def work(op: str) -> float:
    """How long one instruction takes."""
    return _FUNCTION if op in TRANSCENDENTAL else _WORK.get(op, _SIMPLE)


def size(kernel: Kernel) -> float:
    """About how long the code of one vector is."""
    return max(1, sum(1 + 2 * work(i.op) for i in kernel.instructions))


def functions(kernel: Kernel, axis: int | None = None) -> int:
    """How many functions are computed, in all or along an axis."""
    return sum(
        i.op in TRANSCENDENTAL
        for n, i in enumerate(kernel.instructions)
        if axis is None or axis in kernel.free[n]
    )
