"""Kernels without loops on a simulated GPU: the CPU's bits, whatever the shape and where arrays
begin."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest

from tenfold.backends.cpu.schedule.schedule import tune
from tenfold.backends.cuda.compile import to_ptx
from tenfold.kernel import Builder, Kernel
from tests.backends.cpu.running import at, mapped, position
from tests.backends.cuda.beside import EVERY, GPU, beside, launched, values

FULL = 132 * 256  # threads, above which each has several elements


def added(dtype: str, *shape: int) -> Kernel:
    return mapped("add" if dtype != "bool" else "xor", dtype, dtype, 2, shape)


def run(kernel: Kernel, dtype: str, shape: Any, **options: Any) -> Any:
    out = np.zeros(shape, values(1, dtype).dtype)
    return beside(kernel, values(shape, dtype), values(shape, dtype, 1), out, **options)


@pytest.mark.parametrize("dtype", EVERY)
def test_every_dtype(dtype: str) -> None:
    run(added(dtype, 300), dtype, 300)


@pytest.mark.parametrize("extent", [1, 2, 31, 32, 33, 255, 256, 257, 1000, 4 * 256 + 3])
def test_around_warps_and_blocks(extent: int) -> None:
    done = run(added("f32", extent), "f32", extent)
    assert done.launches == [(-(-extent // 256), 256)]


@pytest.mark.parametrize("dtype", ["f32", "f16", "bf16", "i8", "f64", "u64"])
@pytest.mark.parametrize("more", [0, 1, 7])
def test_several_elements_a_thread(dtype: str, more: int) -> None:
    """Sixteen bytes, or eight elements, and those behind the last such by one thread."""
    extent = 8 * FULL + more
    done = run(added(dtype, extent), dtype, extent)
    size = values(1, dtype).itemsize
    count = min(8, 16 // size)
    assert done.launches == [(-(-extent // (count * 256)), 256)]
    words = {1: "i8", 2: "i16", 4: "float", 8: "double" if dtype[0] == "f" else "i64"}
    assert f"load <{count} x {words[size]}>, ptr addrspace(1)" in done.text


@pytest.mark.parametrize("odd", [{0}, {1}, {2}, {0, 1, 2}])
def test_odd_places(odd: set[int]) -> None:
    """What begins at no multiple of 16 bytes is read one by one, the others at once."""
    extent = 4 * FULL
    done = run(added("f32", extent), "f32", extent, odd=frozenset(odd))
    assert done.text.count("load <4 x float>") == 2 - len(odd & {0, 1})
    assert done.text.count("store <4 x float>") == 1 - len(odd & {2})


@pytest.mark.parametrize("shape", [(3, 5), (70, 31), (2, 3, 4), (129, 300), (300, 128 * 4)])
def test_broadcasts(shape: tuple[int, ...]) -> None:
    """A row beside all rows, a column beside all columns."""
    b = Builder()
    size = int(np.prod(shape))
    x, row = b.buffer("f32", size), b.buffer("f32", shape[-1])
    column, out = b.buffer("f32", shape[0]), b.buffer("f32", size, "write")
    where = position(b, shape)
    total = b.op("add", "f32", b.load(x, at(where, shape)), b.load(row, where[-1]))
    b.store(out, at(where, shape), b.op("mul", "f32", total, b.load(column, where[0])))
    beside(
        b.finish(), values(shape), values(shape[-1]), values(shape[0]), np.zeros(shape, np.float32)
    )


@pytest.mark.parametrize("shape", [(300, 467), (2, 300, 234), (70001, 3), (3, 70001), (5, 300, 93)])
def test_rows_of_odd_length(shape: tuple[int, ...]) -> None:
    """The inner two axes are one: what lies as the result does is read several at once."""
    b = Builder()
    size = int(np.prod(shape))
    x, row = b.buffer("f32", size), b.buffer("f32", shape[-1])
    column, out = b.buffer("f32", shape[-2]), b.buffer("f32", size, "write")
    where = position(b, shape)
    total = b.op("add", "f32", b.load(x, at(where, shape)), b.load(row, where[-1]))
    b.store(out, at(where, shape), b.op("mul", "f32", total, b.load(column, where[-2])))
    given = values(shape), values(shape[-1]), values(shape[-2]), np.zeros(shape, np.float32)
    done = beside(b.finish(), *given)
    assert "load <4 x float>" in done.text or "load <2 x float>" in done.text


@pytest.mark.parametrize("dtype", ["i64", "u64"])
def test_shifts_by_too_much(dtype: str) -> None:
    """The test of an amount is there in the assembler's text, too: LLVM has dropped it."""
    for op in ("shl", "shr"):
        done = beside(
            mapped(op, dtype, dtype, 2, (300,)), values(300, dtype), values(300, dtype, 1),
            np.zeros(300, values(1, dtype).dtype),
        )  # fmt: skip
        ptx = to_ptx(done.text, GPU)
        assert "min.u64" in ptx
        assert ("selp" in ptx) == (op == "shl" or dtype == "u64")


def test_reversed_and_strided() -> None:
    b = Builder()
    x, y, out = b.buffer("i32", 999), b.buffer("i32", 333), b.buffer("i32", 333, "write")
    i = b.axis(333)
    b.store(out, i, b.op("sub", "i32", b.load(x, i * 3 + 1), b.load(y, i * -1 + 332)))
    beside(b.finish(), values(999, "i32"), values(333, "i32", 1), np.zeros(333, np.int32))


@pytest.mark.parametrize("extent", [700, 4 * FULL, 4 * FULL + 3])
@pytest.mark.parametrize("before", [1, 2, 4])
def test_a_check_that_fails_sets_its_bit(extent: int, before: int) -> None:
    """At whichever of a thread's elements it is."""
    b = Builder()
    places, x = b.buffer("i32", extent), b.buffer("f32", 50)
    out = b.buffer("f32", extent, "write")
    i = b.axis(extent)
    at = b.load(places, i)
    low, high = b.const("i32", 0), b.literal("i32", 50)
    fits = b.op("and", "bool", b.op("ge", "bool", at, low), b.op("lt", "bool", at, high))
    b.check(fits, 3)
    b.store(out, i, b.load(x, b.as_index(at, 50), fits))
    kernel = b.finish()
    params = [b.literals[n] for n in range(len(b.literals))]
    inside = (np.arange(extent) * 7 % 50).astype(np.int32)
    done = beside(kernel, inside, values(50), np.zeros(extent, np.float32), params=params)
    assert done.fault == 0
    inside[extent - before] = 50
    done = beside(kernel, inside, values(50), np.zeros(extent, np.float32), params=params)
    assert done.fault == 8


@pytest.mark.parametrize("dtype", ["f16", "bf16", "f32", "f64"])
@pytest.mark.parametrize("op", ["neg", "abs"])
def test_signs_of_nan_are_seen(op: str, dtype: str) -> None:
    """Where they are stored, taken by copysign, or chosen: the chip's instructions lose them."""
    b = Builder()
    x, y = b.buffer(dtype, 200), b.buffer(dtype, 200)
    out, signs, more = (b.buffer(dtype, 200, "write") for _ in range(3))
    i = b.axis(200)
    turned = b.op(op, dtype, b.load(x, i))
    b.store(out, i, turned)
    b.store(signs, i, b.op("copysign", dtype, b.load(y, i), turned))
    less = b.op("lt", "bool", b.load(y, i), b.const(dtype, 0))
    b.store(more, i, b.op("add", dtype, b.select(less, turned, b.load(x, i)), b.load(y, i)))
    given = values(200, dtype)
    assert np.isnan(given).any()
    given[::3] = -given[::3]
    raw = f"u{given.itemsize}"
    arrays = [given, values(200, dtype, 1), *(np.zeros_like(given) for _ in range(3))]
    beside(b.finish(), *arrays)
    made = [a.copy() for a in arrays]
    launched(tune(b.finish()), made)
    top = 1 << (8 * given.itemsize - 1)
    want = given.view(raw) ^ top if op == "neg" else given.view(raw) & (top - 1)
    np.testing.assert_array_equal(made[2].view(raw), want)  # bit by bit


def test_nan_stays_one_in_rounded_sums() -> None:
    """The chip's NaN has all bits set: rounded as an integer it would be a zero."""
    x = np.full(100, np.nan, ml_dtypes.bfloat16)
    done = beside(added("bf16", 100), x, values(100, "bf16"), np.zeros_like(x))
    assert "fptrunc float" in done.text
