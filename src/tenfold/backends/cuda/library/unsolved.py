"""What cuSOLVER says of matrices, told by the fault word: a number other than 0 for one that it has
left unsolved."""

from __future__ import annotations

from tenfold.backends.cuda.library.function import RoutineFunction
from tenfold.backends.cuda.library.laying import Place
from tenfold.backends.cuda.library.routine import FAULT, RoutineLaunch
from tenfold.backends.cuda.target import CudaTarget
from tenfold.backends.llvm.text import Fragment

_NAME, _THREADS = "tn_unsolved", 128


def unsolved_launch(info: Place, count: int) -> RoutineLaunch:
    """The launch that looks at so many numbers."""
    words = ((count, 8), (info.start, 8))
    return RoutineLaunch(_NAME, -(-count // _THREADS), _THREADS, (info.array, FAULT), words)


def unsolved_text(target: CudaTarget) -> Fragment:
    """A thread looks at a number."""
    arrays = [("base", "i8"), ("fault", "i32")]
    f = RoutineFunction(_NAME, target, _THREADS, arrays, ("count", "at"))
    w = f.w
    f.types["info"] = "i32"
    w.put("%info = getelementptr i8, ptr addrspace(1) %base, i64 %at")
    thread, block = f.long(f.sreg("tid.x")), f.long(f.sreg("ctaid.x"))
    number = f.num("add", "i64", f.num("mul", "i64", block, _THREADS), thread)
    there = w.op(f"icmp slt i64 {number}, %count")
    said = f.where(there, "i32", lambda: f.read("info", number))

    def tell() -> None:
        w.op("atomicrmw or ptr addrspace(1) %fault, i32 1 monotonic, align 4")

    f.when(w.op(f"icmp ne i32 {said}, 0"), tell)
    return f.text()
