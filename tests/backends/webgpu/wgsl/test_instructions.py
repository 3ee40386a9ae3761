"""Every elementwise instruction and every cast as WGSL: the CPU's bits, whatever the driver makes
of floats."""

from __future__ import annotations

import numpy as np
import pytest

from tenfold.kernel import Builder, Kernel
from tenfold.kernel.ir.kernel import COMPARISONS, ELEMENTWISE
from tenfold.types import DTYPES
from tests.backends.cpu.running import mapped
from tests.backends.cpu.test_elementwise import cases, samples
from tests.backends.webgpu.beside import beside, values
from tests.backends.webgpu.here import needs_adapter

pytestmark = [needs_adapter, pytest.mark.filterwarnings("ignore::RuntimeWarning")]


@pytest.mark.parametrize("dtype", [d for d in DTYPES if d[0] != "c"])
def test_every_instruction(dtype: str) -> None:
    for name, own in cases():
        if own == dtype:
            result = "bool" if name in COMPARISONS else "u8" if name == "popcount" else dtype
            args = samples(dtype, ELEMENTWISE[name])
            kernel = mapped(name, dtype, result, len(args), args[0].shape)
            beside(kernel, *args, np.zeros(args[0].shape, DTYPES[result]))


def converted(source: str, dtype: str, count: int) -> Kernel:
    b = Builder()
    x, out = b.buffer(source, count), b.buffer(dtype, count, "write")
    i = b.axis(count)
    b.store(out, i, b.cast(b.load(x, i), dtype))
    return b.finish()


def spread(dtype: str) -> np.ndarray:
    """Values of every size."""
    x, rng = values(300, dtype), np.random.default_rng(3)
    if dtype in ("f32", "f64"):
        drawn = rng.standard_normal(200) * 10.0 ** rng.integers(-20, 25, 200)
        x[100:] = drawn.astype(x.dtype)
    elif dtype in ("i64", "u64"):
        drawn = rng.integers(0, 2**63, 200, np.uint64) >> rng.integers(0, 60, 200).astype(np.uint64)
        x[100:] = drawn.astype(x.dtype)
        x[200:] = -x[200:]
    return x


@pytest.mark.parametrize("source", DTYPES)
def test_every_cast(source: str) -> None:
    x = spread(source)
    for dtype in DTYPES:
        if dtype != source and (source[0] != "c" or dtype[0] == "c"):
            beside(converted(source, dtype, x.size), x, np.zeros(x.size, DTYPES[dtype]))


@pytest.mark.parametrize("dtype", ["c64", "c128"])
@pytest.mark.parametrize("op", ["add", "mul", "div", "conj", "neg", "eq"])
def test_complex_numbers(op: str, dtype: str) -> None:
    arity, result = ELEMENTWISE[op], "bool" if op == "eq" else dtype
    args = [values(200, dtype, n) for n in range(arity)]
    beside(mapped(op, dtype, result, arity, (200,)), *args, np.zeros(200, DTYPES[result]))


BITS = [
    ("f32", "i32"),
    ("u32", "f32"),
    ("f64", "u64"),
    ("i64", "f64"),
    ("u8", "i8"),
    ("i16", "u16"),
]


@pytest.mark.parametrize(("source", "dtype"), BITS)
def test_bits_as_another_dtype(source: str, dtype: str) -> None:
    b = Builder()
    x, out = b.buffer(source, 100), b.buffer(dtype, 100, "write")
    i = b.axis(100)
    b.store(out, i, b.bitcast(b.load(x, i), dtype))
    beside(b.finish(), values(100, source), np.zeros(100, DTYPES[dtype]))


@pytest.mark.parametrize("dtype", ["f32", "i8", "u16", "bool", "i64", "f64", "c128", "bf16"])
def test_parameters(dtype: str) -> None:
    b = Builder()
    out = b.buffer(dtype, 3, "write")
    i = b.axis(3)
    b.store(out, i, b.param(dtype))
    for raw in values(6, dtype, 9):
        beside(b.finish(), np.zeros(3, DTYPES[dtype]), params=[raw.tobytes()])


@pytest.mark.parametrize("dtype", ["f32", "f64"])
def test_nothing_by_nothing(dtype: str) -> None:
    """A driver that sees zeros through barriers stores nothing at all."""
    b = Builder()
    x, out = b.buffer("bool", 8), b.buffer(dtype, 8, "write")
    i = b.axis(8)
    value = b.load(x, i)
    never = b.cast(b.op("and", "bool", b.op("not", "bool", value), value), dtype)
    chosen = b.select(b.op("eq", "bool", never, never), never, b.const(dtype, 0))
    b.store(out, i, b.op("div", dtype, chosen, chosen))
    beside(b.finish(), values(8, "bool"), np.full(8, 7, DTYPES[dtype]))


@pytest.mark.parametrize("dtype", ["f32", "f64"])
@pytest.mark.parametrize("op", ["sub", "div", "lt", "le", "gt", "ge"])
def test_what_is_computed_beside_itself(op: str, dtype: str) -> None:
    """Also where the driver knows that it is nothing, or equal to what was computed otherwise."""
    result = dtype if op in ("sub", "div") else "bool"
    b = Builder()
    x, y = b.buffer("bool", 8), b.buffer(dtype, 100)
    nothing, twice = b.buffer(result, 8, "write"), b.buffer(result, 100, "write")
    i, j = b.axis(8), b.axis(100)
    value, other = b.load(x, i), b.load(y, j)
    never = b.cast(b.op("and", "bool", b.op("not", "bool", value), value), dtype)
    same = b.op("abs", dtype, never)
    b.store(nothing, i, b.op(op, result, same, same))
    again = b.op("neg", dtype, b.op("neg", dtype, other))
    b.store(twice, j, b.op(op, result, other, again))
    thrice, size = b.buffer(result, 100, "write"), b.op("abs", dtype, other)
    b.store(thrice, j, b.op(op, result, size, b.op("abs", dtype, size)))
    made = [np.zeros(n, DTYPES[result]) for n in (8, 100, 100)]
    beside(b.finish(), values(8, "bool"), values(100, dtype), *made)
