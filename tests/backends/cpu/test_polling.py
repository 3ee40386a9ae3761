"""Long kernels poll, and stop when they are told to; short ones do not know how."""

from __future__ import annotations

import ctypes
from typing import Any

import numpy as np
import pytest

from tenfold.backends.cpu.entry.abi import STOPPED
from tenfold.backends.llvm.target import LLVMTarget
from tenfold.kernel import Builder, Kernel
from tenfold.kernel.ir.index import Index
from tests.backends.cpu.running import Program, every_target

POLL = ctypes.CFUNCTYPE(ctypes.c_int32, ctypes.c_void_p)


class Told:
    """A poll that says stop from some call on, and what it was called with."""

    def __init__(self, last: int) -> None:
        self.seen: list[int] = []

        def answer(given: int) -> int:
            self.seen.append(given)
            return int(len(self.seen) > last)

        self.kept = POLL(answer)
        self.address = ctypes.cast(self.kept, ctypes.c_void_p).value or 0


def total(rows: int, columns: int, kind: str = "sum") -> Kernel:
    """One number of a product of two axes."""
    b = Builder()
    x, y, out = b.buffer("f32", rows), b.buffer("f32", columns), b.buffer("f32", 1, "write")
    r, i = b.reduced(rows, 1)
    q, j = b.reduced(columns, 1)
    b.store(out, Index(), b.reduce(kind, (r, q), b.op("mul", "f32", b.load(x, i), b.load(y, j))))
    return b.finish()


def flat(n: int) -> Kernel:
    """One loop and no more."""
    b = Builder()
    x, out = b.buffer("f32", n), b.buffer("f32", 1, "write")
    r, i = b.reduced(n, 1)
    b.store(out, Index(), b.reduce("max", (r,), b.op("tanh", "f32", b.load(x, i))))
    return b.finish()


def rows(height: int, width: int) -> Kernel:
    """A number a row, with accumulators in memory."""
    b = Builder()
    x, y, out = b.buffer("f32", width), b.buffer("f32", height), b.buffer("f32", width, "write")
    j = b.axis(width)
    r, i = b.reduced(height, 1)
    b.store(out, j, b.reduce("sum", (r,), b.op("mul", "f32", b.load(x, j), b.load(y, i))))
    return b.finish()


def picked(n: int) -> Kernel:
    b = Builder()
    x, ids, out = b.buffer("f32", n), b.buffer("i32", n), b.buffer("f32", n, "write")
    i = b.axis(n)
    b.store(out, i, b.load(x, b.as_index(b.load(ids, i), n)))
    return b.finish()


def turned(n: int) -> Kernel:
    b = Builder()
    x, y, out = b.buffer("f32", n * n), b.buffer("f32", n), b.buffer("f32", n * n, "write")
    i, j = b.axis(n), b.axis(n)
    value = b.load(x, j * n + i)
    for _ in range(12):
        value = b.op("tanh", "f32", b.op("add", "f32", value, b.load(y, j)))
    b.store(out, i * n + j, value)
    return b.finish()


def arrays(kernel: Kernel) -> list[np.ndarray[Any, Any]]:
    draw = np.random.default_rng(0)
    found: list[np.ndarray[Any, Any]] = []
    for buffer in kernel.buffers:
        if buffer.dtype == "i32":
            found.append(draw.integers(0, buffer.size, buffer.size).astype(np.int32))
        elif buffer.role == "read":
            found.append(draw.random(buffer.size, np.float32))
        else:
            found.append(np.zeros(buffer.size, np.float32))
    return found


LONG = {
    "a sum of a product of axes": total(9001, 9103),
    "a maximum of a product of axes": total(9001, 9103, "max"),
    "one loop": flat(12_000_000),
    "accumulators in memory": rows(20_000, 7000),
    "gathers": picked(3_000_000),
    "a transpose": turned(1024),
}


@every_target
@pytest.mark.parametrize("name", LONG)
def test_long_kernels_stop_when_told_to(name: str, target: LLVMTarget) -> None:
    program = Program(LONG[name], target)
    given = arrays(program.kernel)
    quiet = Told(10**9)
    assert program.bind(given, poll=(quiet.address, 77))() == 0
    assert len(quiet.seen) > 2
    assert set(quiet.seen) == {77}
    result = given[-1].copy()
    for last in (0, 1, len(quiet.seen) // 2):
        told = Told(last)
        assert program.bind(given, poll=(told.address, 1))() == STOPPED
        assert len(told.seen) == last + 1
    assert program.bind(given)() == 0  # with nobody to ask it runs as ever
    assert given[-1].tobytes() == result.tobytes()


@pytest.mark.parametrize("kernel", [total(900, 901), flat(100_000), rows(300, 700), turned(64)])
def test_short_kernels_do_not_poll(kernel: Kernel) -> None:
    text = Program(kernel).text
    assert f"ret i32 {STOPPED}" not in text


@pytest.mark.parametrize("name", LONG)
def test_a_poll_is_in_one_loop_of_a_nest(name: str) -> None:
    text = Program(LONG[name]).text
    assert 1 <= text.count(f"ret i32 {STOPPED}") <= 2  # a tail may have its own
