"""Functions of routines as LLVM IR: what they are given, shared memory, and what threads of a warp
tell each other."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence

from tenfold.backends.cuda.emit.memory import guarded
from tenfold.backends.cuda.target import CudaTarget
from tenfold.backends.llvm.text import Fragment
from tenfold.backends.llvm.writer import BITS, Writer

GLOBAL, SHARED = "ptr addrspace(1)", "ptr addrspace(3)"


class Code(ABC):
    """What routines are written with: integers, memory, tests, and warps. `types` has those of the
    elements of arrays by their names."""

    w: Writer
    types: dict[str, str]

    @abstractmethod
    def sreg(self, name: str) -> str:
        """One of the registers that say which thread this is."""

    @abstractmethod
    def reserve(self, ty: str, count: int) -> str:
        """Shared memory for so many elements: its name."""

    # Numbers.

    def long(self, x: str) -> str:
        return self.w.op(f"zext i32 {x} to i64")

    def short(self, x: str) -> str:
        return self.w.op(f"trunc i64 {x} to i32")

    def num(self, op: str, ty: str, a: str | int, b: str | int) -> str:
        """An instruction on two integers."""
        return self.w.op(f"{op} {ty} {a}, {b}")

    # Memory.

    def read(self, array: str, at: str) -> str:
        """The element of an array at an i64."""
        w, ty = self.w, self.types[array]
        place = w.op(f"getelementptr {ty}, {GLOBAL} %{array}, i64 {at}")
        return w.op(f"load {ty}, {GLOBAL} {place}, align {BITS[ty] // 8}")

    def write(self, array: str, at: str, value: str) -> None:
        w, ty = self.w, self.types[array]
        place = w.op(f"getelementptr {ty}, {GLOBAL} %{array}, i64 {at}")
        w.put(f"store {ty} {value}, {GLOBAL} {place}, align {BITS[ty] // 8}")

    def place(self, memory: str, ty: str, at: str) -> str:
        return self.w.op(f"getelementptr {ty}, {SHARED} {memory}, i32 {at}")

    def get(self, memory: str, ty: str, at: str) -> str:
        """The element of shared memory at an i32."""
        place = self.place(memory, ty, at)
        return self.w.op(f"load {ty}, {SHARED} {place}, align {BITS[ty] // 8}")

    def put(self, memory: str, ty: str, at: str, value: str) -> None:
        place = self.place(memory, ty, at)
        self.w.put(f"store {ty} {value}, {SHARED} {place}, align {BITS[ty] // 8}")

    def when(self, test: str, make: Callable[[], None]) -> None:
        """Code for where a test holds."""

        def one() -> list[str]:
            make()
            return []

        guarded(self.w, test, one, [])

    def where(self, test: str, ty: str, make: Callable[[], str]) -> str:
        """What is made where a test holds, elsewhere zero."""
        return guarded(self.w, test, lambda: [make()], [ty])[0]

    # Warps.

    def picked(self, ty: str, x: str, lane: str | int) -> str:
        """What a lane of the warp has."""
        w = self.w
        if BITS[ty] == 64:
            bits = w.op(f"bitcast double {x} to i64") if ty == "double" else x
            low, high = self.short(bits), self.short(w.op(f"lshr i64 {bits}, 32"))
            low, high = (self.long(self.picked("i32", n, lane)) for n in (low, high))
            both = w.op(f"or i64 {low}, {w.op(f'shl i64 {high}, 32')}")
            return w.op(f"bitcast i64 {both} to double") if ty == "double" else both
        if BITS[ty] < 32:
            found = self.picked("i32", w.op(f"zext {ty} {x} to i32"), lane)
            return w.op(f"trunc i32 {found} to {ty}")
        name = f"llvm.nvvm.shfl.sync.idx.{'f32' if ty == 'float' else 'i32'}"
        return w.call(ty, name, ("i32", "-1"), (ty, x), ("i32", str(lane)), ("i32", "31"))

    def votes(self, test: str) -> str:
        """Of which lanes a test holds, as bits."""
        return self.w.call("i32", "llvm.nvvm.vote.ballot.sync", ("i32", "-1"), ("i1", test))

    def before(self, x: str, lane: str) -> str:
        """The sum of what the lanes up to this one have, of i32."""
        w = self.w
        for step in (1, 2, 4, 8, 16):
            moved = w.call("i32", "llvm.nvvm.shfl.sync.up.i32", ("i32", "-1"), ("i32", x),
                           ("i32", str(step)), ("i32", "0"))  # fmt: skip
            there = w.op(f"icmp uge i32 {lane}, {step}")
            x = w.op(f"add i32 {x}, {w.op(f'select i1 {there}, i32 {moved}, i32 0')}")
        return x


class RoutineFunction(Code):
    """The text of one function on its way. Its arrays are named with the type of their elements,
    its words are of 64 bits."""

    def __init__(
        self,
        name: str,
        target: CudaTarget,
        threads: int,
        arrays: Sequence[tuple[str, str]],
        words: Sequence[str],
        least: int = 1,
        moved: bool = False,
    ) -> None:
        """At `least` so many of its blocks are meant to share a processor. Where arrays are
        `moved`, further words say how many bytes behind what is given each of them begins."""
        self.least, self.moved = least, moved
        self.name, self.threads, self.arrays, self.words = name, threads, arrays, words
        self.w = Writer(target.llvm)
        self.w.label("entry")
        self.types = dict(arrays)
        self._shared: list[str] = []
        if moved:
            for array, _ in arrays:
                self.w.put(f"%{array} = getelementptr i8, {GLOBAL} %{array}.base, i64 %{array}.at")

    def sreg(self, name: str) -> str:
        return self.w.call("i32", f"llvm.nvvm.read.ptx.sreg.{name}")

    def reserve(self, ty: str, count: int) -> str:
        name = f"@{self.name}.{len(self._shared)}"
        self._shared.append(
            f"{name} = internal addrspace(3) global [{count} x {ty}] undef, align 16"
        )
        return name

    def text(self) -> Fragment:
        self.w.put("ret void")
        base = ".base" if self.moved else ""
        given = [f"{GLOBAL} %{name}{base}" for name, _ in self.arrays]
        given += [f"i64 %{name}" for name in self.words]
        given += [f"i64 %{name}.at" for name, _ in self.arrays if self.moved]
        attributes = f'"nvvm.maxntid"="{self.threads}"'
        if self.least > 1:
            attributes += f' "nvvm.minctasm"="{self.least}"'
        head = f"define ptx_kernel void @{self.name}({', '.join(given)}) nounwind {attributes} {{"
        body = "\n".join((head, *self.w.lines, "}", ""))
        return Fragment((*self._shared, *sorted(self.w.declared)), body)
