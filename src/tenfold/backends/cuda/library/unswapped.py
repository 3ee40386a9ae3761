"""The swaps of rows of a matrix that is in triangles already: each row with itself, counted as in
LAPACK."""

from __future__ import annotations

from tenfold.backends.cuda.library.function import RoutineFunction
from tenfold.backends.cuda.library.laying import Place
from tenfold.backends.cuda.library.routine import RoutineLaunch
from tenfold.backends.cuda.target import CudaTarget
from tenfold.backends.llvm.text import Fragment

_NAME, _THREADS = "tn_unswapped", 128


def unswapped_launch(swaps: Place, count: int, n: int) -> RoutineLaunch:
    """The launch that writes the swaps of so many matrices of n rows."""
    blocks = -(-count * n // _THREADS)
    words = ((count * n, 8), (n, 8), (swaps.start, 8))
    return RoutineLaunch(_NAME, blocks, _THREADS, (swaps.array,), words)


def unswapped_text(target: CudaTarget) -> Fragment:
    """A thread writes a number."""
    f = RoutineFunction(_NAME, target, _THREADS, [("base", "i8")], ("count", "n", "at"))
    w = f.w
    f.types["swaps"] = "i32"
    w.put("%swaps = getelementptr i8, ptr addrspace(1) %base, i64 %at")
    thread, block = f.long(f.sreg("tid.x")), f.long(f.sreg("ctaid.x"))
    number = f.num("add", "i64", f.num("mul", "i64", block, _THREADS), thread)
    row = f.short(f.num("add", "i64", f.num("urem", "i64", number, "%n"), 1))
    f.when(w.op(f"icmp slt i64 {number}, %count"), lambda: f.write("swaps", number, row))
    return f.text()
