"""What a loop's function is given, and its text in the making: operands, numbers, memory on the
stack, lines."""

from __future__ import annotations

from typing import NamedTuple

from tenfold.frozen import frozen
from tenfold.kernel.ir.sized import SizedKernel


class Operand(NamedTuple):
    """An address that the function is given: a slot of the plan that the loop stands in, from some
    byte on; a constant of an inner plan; or the callable for an inner plan's step."""

    kind: str
    number: int
    at: int


SLOT, LITERAL, ASK = "slot", "literal", "ask"


@frozen
class Place:
    """Where a slot lies: some bytes behind an address, on the stack or in the caller's memory."""

    base: str
    shift: int = 0
    stack: bool = False

    def behind(self, shift: int) -> Place:
        return Place(self.base, self.shift + shift, self.stack)


@frozen
class OpenKernel:
    """A kernel that is to be put in place: its name in the text, where its parameters lie, the
    number that has its extent, and the name of what looks into a failed check. The addresses of its
    buffers stand before it."""

    name: str
    call: SizedKernel
    params: int
    extent: str
    fault: str = ""


class LoopWriter:
    """Collects the text of a loop's function, and what it refers to."""

    def __init__(self) -> None:
        self.operands: dict[Operand, int] = {}
        self.numbers: list[int | SizedKernel] = []  # a kernel stands for the extent it runs over
        self.memory: list[str] = []  # lines that reserve the stack
        self.lines: list[str | OpenKernel] = []
        self.count = 0

    # What the function is given.

    def operand(self, kind: str, number: int, at: int) -> str:
        return f"%o{self.operands.setdefault(Operand(kind, number, at), len(self.operands))}"

    def amount(self, value: int | SizedKernel) -> str:
        """A number that the caller gives."""
        self.numbers.append(value)
        return f"%q{len(self.numbers) - 1}"

    # Text.

    def fresh(self, letter: str) -> str:
        self.count += 1
        return f"{letter}{self.count}"

    def put(self, line: str) -> None:
        self.lines.append("  " + line)

    def label(self, name: str) -> None:
        self.put(f"br label %{name}")
        self.lines.append(f"{name}:")

    def op(self, text: str) -> str:
        name = "%" + self.fresh("v")
        self.put(f"{name} = {text}")
        return name

    def reserve(self, what: str) -> str:
        name = "%" + self.fresh("m")
        self.memory.append(f"  {name} = alloca {what}, align 64")
        return name

    def stack(self, size: int) -> Place:
        """Memory on the stack for so many bytes. Sizes are powers of two, lest loops that differ in
        an extent alone have texts of their own for each."""
        return Place(self.reserve(f"[{max(64, 1 << (size - 1).bit_length())} x i8]"), 0, True)

    def pointer(self, place: Place) -> str:
        if not place.shift:
            return place.base
        shift = str(place.shift) if place.stack else self.amount(place.shift)
        return self.op(f"getelementptr i8, ptr {place.base}, i64 {shift}")

    def copy(self, target: Place, source: Place, nbytes: int) -> None:
        """Bytes from one place to another; nothing where they are one."""
        if target == source or not nbytes:
            return
        size = str(nbytes) if target.stack or source.stack else self.amount(nbytes)
        given = f"ptr {self.pointer(target)}, ptr {self.pointer(source)}, i64 {size}, i1 false"
        if target.stack or source.stack:
            self.put(f"call void @llvm.memcpy.p0.p0.i64({given})")
            return
        same = self.op(f"icmp eq ptr {self.pointer(target)}, {self.pointer(source)}")
        move, on = self.fresh("move"), self.fresh("on")
        self.put(f"br i1 {same}, label %{on}, label %{move}")
        self.lines.append(f"{move}:")
        self.put(f"call void @llvm.memcpy.p0.p0.i64({given})")
        self.label(on)
