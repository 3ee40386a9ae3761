"""Compile kernels and run them on arrays, for tests."""

from __future__ import annotations

import ctypes
from collections.abc import Iterable, Sequence
from functools import cache
from typing import Any

import numpy as np
import pytest

from tenfold.backends.cpu.link.compile import module_text, prepare
from tenfold.backends.cpu.link.loader import load
from tenfold.backends.cpu.schedule.schedule import Schedule, choose, tune
from tenfold.backends.cpu.target import executable, host_target
from tenfold.backends.llvm.assemble import assemble
from tenfold.backends.llvm.target import LLVMTarget, named
from tenfold.kernel import Builder, Kernel, verify
from tenfold.kernel.ir.index import Index, flat, strides
from tenfold.kernel.ir.sized import SizedKernel
from tenfold.kernel.passes.generalise import generalise
from tenfold.kernel.passes.legalise import legalise
from tenfold.types import DTYPES, SHORT
from tests.backends.as_c import Run, Runs, comparable

HOST = host_target()
LEVELS = executable(HOST)  # of which x86-64-v2 differs from the least in few instructions alone
TARGETS = {HOST.cpu: HOST} | {
    level: named(level, HOST) for level in LEVELS if level not in (HOST.cpu, "x86-64-v2")
}


KIND = ctypes.CFUNCTYPE(
    ctypes.c_int32, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int64, ctypes.c_int64
)
runs = Runs()  # of programs on targets with fma: `conftest` does them again in C
every_target = pytest.mark.parametrize("target", TARGETS.values(), ids=TARGETS.keys())


@cache
def _image(text: str, names: tuple[str, ...], target: LLVMTarget) -> Any:
    """Kernels of other sizes often have the very same text: it is compiled once."""
    return load([assemble(text, target)], names)


class Program:
    """A compiled kernel; calling it runs it on arrays, one for each buffer."""

    def __init__(
        self,
        kernel: Kernel,
        target: LLVMTarget = HOST,
        strict: bool = False,
        schedule: Schedule | None = None,
        tuned: bool = True,
        linked: bool = True,
    ) -> None:
        verify(kernel)
        if tuned:
            kernel = tune(kernel)
            verify(kernel)
        self.kernel, self.target = kernel, target
        self.legal = legalise(kernel, fused=target.fma and not strict)
        # A schedule that is given speaks of the very numbers of the kernel.
        self.call = SizedKernel(kernel) if schedule else generalise(kernel)
        code, self.compiled = prepare(self.call, target, strict, schedule)
        self.extent = self.compiled.extent(self.call)
        self.code, self.text = code, module_text([code], target)
        if linked:
            self.link(_image(self.text, (code.name,), target))

    def link(self, image: Any) -> None:
        self.function = KIND(image.address(self.code.name))

    def bind(
        self,
        arrays: Sequence[np.ndarray[Any, Any]],
        params: Sequence[bytes] = (),
        poll: tuple[int, int] = (0, 0),
    ) -> Any:
        """Everything a call needs; the answer runs a part of the outer axis."""
        arrays = list(arrays)
        for buffer in self.kernel.buffers[len(arrays) :]:
            assert buffer.role == "scratch"
            arrays.append(np.empty(buffer.size, DTYPES[buffer.dtype]))
        for array, buffer in zip(arrays, self.kernel.buffers, strict=True):
            assert array.flags.c_contiguous
            assert SHORT[array.dtype] == buffer.dtype
            assert array.size >= buffer.size
        table = np.array([*(a.ctypes.data for a in arrays), *poll], np.uint64)
        given = b"".join(p.ljust(16, b"\0") for p in params)
        raw = np.frombuffer(given + np.array([*self.call.sizes, 0], np.int64).tobytes(), np.uint8)
        whole = self.extent

        def call(low: int = 0, high: int = whole) -> int:
            return int(self.function(table.ctypes.data, raw.ctypes.data, low, high))

        call.keep = (arrays, table, raw)  # type: ignore[attr-defined]
        return call

    def __call__(self, *arrays: np.ndarray[Any, Any], params: Sequence[bytes] = ()) -> int:
        call = self.bind(arrays, params)
        if not comparable(self.legal, self.target):
            return int(call())
        raw = b"".join(p.ljust(16, b"\0") for p in params)
        # In C it is a kernel of these very sizes, whose schedule may be another.
        schedule = choose(self.kernel, self.target)
        extent = 1 if schedule.outer is None else self.kernel.axes[schedule.outer].extent
        return runs.do(Run(self.legal, schedule, extent, raw), arrays, call)


def together(kernels: Iterable[Kernel], target: LLVMTarget = HOST) -> list[Program]:
    """The programs of kernels, compiled as one module: each alone takes LLVM some 2 ms more."""
    made = [Program(kernel, target, linked=False) for kernel in kernels]
    codes = {program.code.name: program.code for program in made}
    image = _image(module_text(list(codes.values()), target), tuple(codes), target)
    for program in made:
        program.link(image)
    return made


def fixed(kernel: Kernel, target: LLVMTarget = HOST) -> Program:
    """The program of a kernel for its own sizes alone."""
    kernel = tune(kernel)
    return Program(kernel, target, schedule=choose(kernel, target), tuned=False)


def position(b: Builder, shape: Sequence[int]) -> tuple[Index, ...]:
    """A new parallel axis for each extent."""
    return tuple(b.axis(n) for n in shape)


def at(index: Sequence[Index], shape: Sequence[int]) -> Index:
    """The flat position in a packed array."""
    return flat(index, strides(shape))


def mapped(op: str, dtype: str, result: str, arity: int, shape: Sequence[int]) -> Kernel:
    """One elementwise instruction over packed arrays."""
    b = Builder()
    size = int(np.prod(shape))
    inputs = [b.buffer(dtype, size) for _ in range(arity)]
    out = b.buffer(result, size, "write")
    where = at(position(b, shape), shape)
    b.store(out, where, b.op(op, result, *(b.load(x, where) for x in inputs)))
    return b.finish()


def random(shape: Sequence[int], dtype: str = "f32", seed: int = 0) -> np.ndarray[Any, Any]:
    rng = np.random.default_rng(seed)
    if dtype == "bool":
        return rng.random(shape) > 0.5
    drawn = rng.standard_normal(shape)
    if DTYPES[dtype].kind == "f":
        return drawn.astype(DTYPES[dtype])
    # By way of integers: what a negative float is without a sign differs between processors.
    whole = (drawn * 9).astype(np.int64) if DTYPES[dtype].kind in "iu" else drawn * 9
    return whole.astype(DTYPES[dtype])


def reduction(kind: str, dtype: str, shape: Sequence[int], axes: Sequence[int]) -> Kernel:
    """One reduction of a packed array over some of its axes."""
    b = Builder()
    kept = [n for k, n in enumerate(shape) if k not in axes]
    x = b.buffer(dtype, int(np.prod(shape)))
    out = b.buffer(dtype, int(np.prod(kept)), "write")
    places = b.buffer("i64", int(np.prod(kept)), "write")
    where: list[Index] = []
    outer: list[Index] = []
    inner: list[Index] = []
    numbers: list[int] = []
    for k, n in enumerate(shape):
        if k in axes:
            number, index = b.reduced(n, 1, len(numbers))
            numbers.append(number)
            inner.append(index)
        else:
            index = b.axis(n)
            outer.append(index)
        where.append(index)
    value = b.load(x, at(where, shape))
    counted = b.index(at(inner, [shape[k] for k in axes])) if kind.startswith("arg") else None
    result = b.reduce(kind, numbers, value, counted)
    b.store(out, at(outer, kept), result)
    if counted is not None:
        b.store(places, at(outer, kept), b.state(result, 1))
    return b.finish()
