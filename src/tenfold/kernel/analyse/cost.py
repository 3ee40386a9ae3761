"""What a kernel's instructions cost, in vector instructions as cheap as an addition; and how long
their code is.

It is asked of kernels as they are lowered: what is one instruction there is about as much work
however many it takes when it is legal.
"""

from __future__ import annotations

from math import prod

from tenfold.kernel.analyse.nest import carried_out
from tenfold.kernel.ir.kernel import TRANSCENDENTAL, Kernel

_FUNCTION, _SIMPLE = 10.0, 0.5
_SMALL = 1 << 15  # elements
_WORK = {"div": 3.0, "sqrt": 4.0, "rsqrt": 7.0, "floordiv": 12.0, "mod": 12.0, "fmod": 12.0}


def work(op: str) -> float:
    """How long one instruction takes."""
    return _FUNCTION if op in TRANSCENDENTAL else _WORK.get(op, _SIMPLE)


def size(kernel: Kernel) -> float:
    """About how long the code of one vector is."""
    return max(1, sum(1 + 2 * work(i.op) for i in kernel.instructions))


_LENGTH = {"floordiv": 40, "mod": 32, "fmod": 24, "sign": 8, "nextafter": 8}
_CALL = 8  # with what is saved around it
_PAIR, _PAIRS = 4, 40  # of complex numbers: products, and what has to look at both parts
_PLAIN = frozenset(("add", "sub", "mul", "neg", "conj", "real", "imag", "cast"))


def length(op: str, dtype: str) -> int:
    """About how many instructions the code of one has for a vector, which is what compiling it
    costs. Integers are divided element by element.

    >>> length("add", "i64"), length("floordiv", "i64"), length("div", "c128")
    (1, 40, 40)
    """
    if op in TRANSCENDENTAL:
        return _CALL
    if dtype.startswith("c"):
        return _PAIR if op in _PLAIN else _PAIRS
    return _LENGTH.get(op, 1)


def space(kernel: Kernel) -> int:
    """How many elements are computed, in all nests of axes that lie in no other."""
    nests = {carried_out(kernel, n) for n in range(len(kernel.instructions))}
    nests |= {kernel.store_free(s) for s in kernel.stores}
    largest = sorted(sorted(nest) for nest in nests if not any(nest < other for other in nests))
    return sum(prod(kernel.axes[a].extent for a in nest) for nest in largest)


def small(kernel: Kernel) -> bool:
    """Whether a kernel computes few elements: it takes microseconds, whatever its code is."""
    return space(kernel) < _SMALL


def functions(kernel: Kernel, axis: int | None = None) -> int:
    """How many functions are computed, in all or along an axis."""
    return sum(
        i.op in TRANSCENDENTAL
        for n, i in enumerate(kernel.instructions)
        if axis is None or axis in kernel.free[n]
    )
