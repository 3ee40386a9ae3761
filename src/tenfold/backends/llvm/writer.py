"""LLVM IR as text: lines, fresh names, labels, declarations, constants."""

from __future__ import annotations

import struct
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import field
from typing import Any

import numpy as np

from tenfold.backends.llvm.target import LLVMTarget
from tenfold.frozen import mutable
from tenfold.kernel.ir.number import Number
from tenfold.types import DTYPES

_STORES = ("store ", "call void @llvm.masked.store", "call void @llvm.x86.avx.maskstore")

LANES = 16  # elements in a vector at most, whatever the dtype

# How a dtype is held while computing, and in memory. Sixteen-bit floats compute as f32 and are
# converted by integer arithmetic or by the hardware, so that no helper is ever called; complex
# numbers are pairs.
COMPUTE = {
    "bool": "i1",
    "f16": "float",
    "bf16": "float",
    "f32": "float",
    "f64": "double",
    "c64": "float",
    "c128": "double",
} | {f"{s}{n}": f"i{n}" for s in "iu" for n in (8, 16, 32, 64)}
MEMORY = COMPUTE | {"bool": "i8", "f16": "i16", "bf16": "i16"}
BITS = {"i1": 1, "i8": 8, "i16": 16, "i32": 32, "i64": 64, "float": 32, "double": 64}
MANGLED = {"float": "f32", "double": "f64", "half": "f16", "ptr": "p0"}
SIZES = {name: dtype.itemsize for name, dtype in DTYPES.items()}


def kind(dtype: str) -> str:
    """The letter of a dtype: b, i, u, f or c."""
    return "b" if dtype == "bool" else "f" if dtype == "bf16" else dtype[0]


def vector(element: str, wide: bool = True, lanes: int = LANES) -> str:
    return f"<{lanes} x {element}>" if wide else element


def float_text(element: str, value: float) -> str:
    """A float constant that LLVM reads back bit for bit."""
    if element == "float":
        with np.errstate(over="ignore"):
            value = float(np.float32(value))
    return f"0x{struct.unpack('<Q', struct.pack('<d', value))[0]:016X}"


def scalar_text(dtype: str, raw: bytes) -> str:
    """A constant of this dtype given as raw bytes."""
    value = np.frombuffer(raw, DTYPES[dtype])[0]
    letter = kind(dtype)
    if letter == "b":
        return "true" if value else "false"
    return str(int(value)) if letter in "iu" else float_text(COMPUTE[dtype], float(value))


def is_constant(text: str) -> bool:
    return not text.startswith("%")


@mutable
class Writer:
    """Collects the body of one function and what it refers to."""

    target: LLVMTarget
    lanes: int = LANES  # elements in each of its vectors
    brief: bool = False  # short code is worth more than fast code
    lines: list[str] = field(default_factory=list)
    declared: set[str] = field(default_factory=set)
    maths: set[tuple[str, str, int]] = field(default_factory=set)
    routines: set[int] = field(default_factory=set)  # that transpose tiles of elements so large
    block: str = "entry"
    count: int = 0
    held: list[str] | None = None  # stores that are to come last
    logic: dict[str, int] = field(default_factory=dict)  # by value: see `ternary`

    @property
    def masked(self) -> bool:
        return self.target.masked

    @property
    def fma(self) -> bool:
        return self.target.fma

    @property
    def modern(self) -> bool:
        """Whether rounding, and halves, are done in hardware."""
        return self.target.half

    def vector(self, element: str, wide: bool = True) -> str:
        """The type of a value, for all lanes if it is wide."""
        return vector(element, wide, self.lanes)

    def some(self, mask: str) -> str:
        """Whether any lane of a mask is alive."""
        return self.call("i1", f"llvm.vector.reduce.or.v{self.lanes}i1", (self.vector("i1"), mask))

    def fresh(self, prefix: str = "v") -> str:
        self.count += 1
        return f"{prefix}{self.count}"

    def put(self, line: str) -> None:
        if self.held is not None and line.startswith(_STORES):
            self.held.append("  " + line)
            return
        self.lines.append("  " + line)

    def op(self, text: str) -> str:
        """A new value defined by an instruction."""
        self.count += 1
        name = f"%v{self.count}"
        self.lines.append(f"  {name} = {text}")
        return name

    @contextmanager
    def stores_last(self) -> Iterator[None]:
        """Hold stores of vectors back until the end of this, which is all one block."""
        self.held = []
        yield
        self.lines += self.held
        self.held = None

    def taken(self) -> str:
        """The lines so far, for text that is put together by hand."""
        text = "".join(f"{line}\n" for line in self.lines)
        self.lines.clear()
        return text

    def label(self, name: str) -> None:
        self.lines.append(f"{name}:")
        self.block = name

    def declare(self, signature: str) -> None:
        self.declared.add("declare " + signature)

    def call(self, result: str, name: str, *args: tuple[str, str], flags: str = "") -> str:
        """A call of a function that is declared as these types say."""
        self.declare(f"{result} @{name}({', '.join(t for t, _ in args)})")
        given = ", ".join(f"{t} {a}" for t, a in args)
        return self.op(f"call {flags}{result} @{name}({given})")

    def intrinsic(self, name: str, ty: str, *args: str, flags: str = "") -> str:
        """An intrinsic over operands and result of one type."""
        return self.call(ty, f"llvm.{name}.{mangle(ty)}", *((ty, a) for a in args), flags=flags)

    def splat(self, element: str, value: str, lanes: int = 0) -> str:
        """A vector of one value."""
        if is_constant(value):
            return f"splat ({element} {value})"
        lanes = lanes or self.lanes
        ty, zeros = vector(element, True, lanes), f"<{lanes} x i32> zeroinitializer"
        first = self.op(f"insertelement {ty} poison, {element} {value}, i64 0")
        return self.op(f"shufflevector {ty} {first}, {ty} poison, {zeros}")

    def halves(self, element: str, value: str, lanes: int) -> tuple[str, str]:
        """The first half of a vector, and the second."""
        ty, half = vector(element, True, lanes), lanes // 2
        picks = (", ".join(f"i32 {n}" for n in range(at, at + half)) for at in (0, half))
        first, second = (
            self.op(f"shufflevector {ty} {value}, {ty} poison, <{half} x i32> <{pick}>")
            for pick in picks
        )
        return first, second

    def const(self, element: str, value: Any, wide: bool) -> str:
        """A constant, or what is computed from sizes; of every lane if wide."""
        if isinstance(value, Number):
            if wide:
                return f"{value}.{element}.wide"
            return str(value) if element == "i64" else f"{value}.{element}"
        if element in ("float", "double"):
            text = float_text(element, value)
        elif element == "i1":
            text = "true" if value else "false"
        else:
            text = str(int(value))
        return f"splat ({element} {text})" if wide else text

    def select(self, condition: str, ty: str, yes: str, no: str) -> str:
        one = vector("i1", ty.startswith("<"), lanes_of(ty))
        return self.op(f"select {one} {condition}, {ty} {yes}, {ty} {no}")

    def iota(self, element: str, step: int = 1, first: int = 0) -> str:
        """A vector that counts up: a constant, but for what is computed from sizes."""
        if isinstance(step, Number) or isinstance(first, Number):
            ty = self.vector(element)
            steps = self.op(f"mul {ty} {self.iota(element)}, {self.const(element, step, True)}")
            return self.op(f"add {ty} {steps}, {self.const(element, first, True)}")
        return "<" + ", ".join(f"{element} {first + step * n}" for n in range(self.lanes)) + ">"


def lanes_of(ty: str) -> int:
    return int(ty[1:].partition(" ")[0]) if ty.startswith("<") else 1


def element_of(ty: str) -> str:
    return ty.partition(" x ")[2][:-1] if ty.startswith("<") else ty


def size_of(ty: str) -> int:
    """Bytes of a vector or an element, of bools one each."""
    return max(1, BITS[element_of(ty)] // 8) * lanes_of(ty)


def mangle(ty: str) -> str:
    """A type as it stands in an intrinsic's name."""
    if ty.startswith("<"):
        lanes, _, element = ty[1:-1].partition(" x ")
        return f"v{lanes}{MANGLED.get(element, element)}"
    return MANGLED.get(ty, ty)
