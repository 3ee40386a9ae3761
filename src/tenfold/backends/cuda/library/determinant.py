"""Determinants from the triangles that pivoting gives: the product of a diagonal, with a sign for
each swap of rows.

As NumPy has it, a determinant is its sign times the exponential of a sum of logarithms, so that no
product on the way is too large. A warp has a matrix: each lane takes every 32nd element of the
diagonal, and what lanes have is joined as a balanced tree. Of complex numbers the sign is a product
of numbers of magnitude 1. A zero on the diagonal is the evaluator's.
"""

from __future__ import annotations

from collections.abc import Sequence

from tenfold.backends.cuda.emit.control import loop
from tenfold.backends.cuda.emit.team import exchange
from tenfold.backends.cuda.library.function import RoutineFunction
from tenfold.backends.cuda.library.laying import Place
from tenfold.backends.cuda.library.polar import multiplied, polar
from tenfold.backends.cuda.library.routine import RoutineLaunch
from tenfold.backends.cuda.target import WARP, CudaTarget
from tenfold.backends.llvm.functions import called, definitions
from tenfold.backends.llvm.text import Fragment, merged
from tenfold.backends.llvm.writer import COMPUTE, Writer, float_text, kind

_ONE, _ZERO = (float_text("double", x) for x in (1.0, 0.0))


def _name(dtype: str, logs: bool) -> str:
    return f"tn_{'slogdet' if logs else 'det'}_{dtype}"


def determinant_launch(
    dtype: str,
    logs: bool,
    matrix: Place,
    swaps: Place,
    results: Sequence[Place],
    count: int,
    n: int,
) -> RoutineLaunch:
    """The launch for so many matrices of n rows: results are determinants, or with `logs` their
    signs and the logarithms of their magnitudes."""
    arrays = (matrix.array, *(result.array for result in results))
    words = tuple((word, 8) for word in (n, matrix.start, swaps.start))
    return RoutineLaunch(_name(dtype, logs), count, WARP, arrays, words)


def determinant_text(dtype: str, logs: bool, target: CudaTarget) -> Fragment:
    """The function of a dtype of results."""
    ty, parts = COMPUTE[dtype], 2 if kind(dtype) == "c" else 1
    arrays = [("scratch", "i8"), ("sign", ty), *([("log", ty)] if logs else [])]
    f = RoutineFunction(_name(dtype, logs), target, WARP, arrays, ("n", "matrix.at", "swaps.at"))
    w = f.w
    f.types |= {"matrix": "double", "swaps": "i32"}
    for name in ("matrix", "swaps"):
        w.put(f"%{name} = getelementptr i8, ptr addrspace(1) %scratch, i64 %{name}.at")
    lane, which = f.long(f.sreg("tid.x")), f.long(f.sreg("ctaid.x"))
    rows = f.num("mul", "i64", which, "%n")
    begin = f.num("mul", "i64", rows, "%n")
    beside = f.num("add", "i64", "%n", 1)

    def body(row: object, held: list[str]) -> list[str]:
        at = f.num("add", "i64", begin, f.num("mul", "i64", str(row), beside))
        first = f.num("mul", "i64", at, parts)
        value = [f.read("matrix", f.num("add", "i64", first, n)) for n in range(parts)]
        size, sign = polar(w, value)
        swapped = f.read("swaps", f.num("add", "i64", rows, str(row)))
        own = w.op(f"trunc i64 {f.num('add', 'i64', str(row), 1)} to i32")
        other = w.op(f"icmp ne i32 {swapped}, {own}")
        sign = [w.select(other, "double", w.op(f"fneg double {x}"), x) for x in sign]
        total = w.op(f"fadd double {held[0]}, {called(w, 'log', 'f64', [size], False)}")
        return [total, *multiplied(w, held[1:], sign)]

    first = [_ZERO, _ONE, _ZERO][: 1 + parts]
    slots = [("double", x) for x in first]
    total, *sign = loop(w, "i64", lane, "%n", WARP, slots, body)
    for step in (1, 2, 4, 8, 16):
        other = [exchange(w, "double", x, step) for x in (total, *sign)]
        total = w.op(f"fadd double {total}, {other[0]}")
        sign = multiplied(w, sign, other[1:])

    def write() -> None:
        found = sign
        if logs:
            f.write("log", which, _short(w, ty, total))
        else:
            size = called(w, "exp", "f64", [total], False)
            found = [w.op(f"fmul double {x}, {size}") for x in sign]
        at = f.num("mul", "i64", which, parts)
        for n, x in enumerate(found):
            f.write("sign", f.num("add", "i64", at, n), _short(w, ty, x))

    f.when(w.op(f"icmp eq i64 {lane}, 0"), write)
    return merged([f.text(), *definitions(sorted(w.maths), target.llvm)])


def _short(w: Writer, ty: str, x: str) -> str:
    return x if ty == "double" else w.op(f"fptrunc double {x} to {ty}")
