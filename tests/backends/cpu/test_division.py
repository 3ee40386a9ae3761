"""Division by what many elements share: the bits of a division, whatever the operands."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tenfold.backends.llvm.target import LLVMTarget, target_with
from tenfold.kernel import Builder, Kernel
from tenfold.types import DTYPES
from tests.backends.cpu.running import HOST, Program, every_target, fixed

Array = np.ndarray[Any, Any]
NUMPYS = {"floordiv": np.floor_divide, "mod": np.remainder, "fmod": np.fmod}
EDGES = [0.0, -0.0, 1.0, -1.0, 3.0, np.inf, -np.inf, np.nan]


def by_row(rows: int, columns: int, dtype: str, op: str = "div") -> Kernel:
    """Each row divided by a number of its own."""
    b = Builder()
    x, s = b.buffer(dtype, rows * columns), b.buffer(dtype, rows)
    out = b.buffer(dtype, rows * columns, "write")
    i, j = b.axis(rows), b.axis(columns)
    quotient = b.op(op, dtype, b.load(x, i * columns + j), b.load(s, i))
    b.store(out, i * columns + j, quotient)
    return b.finish()


def divided(x: Array, s: Array, dtype: str, target: LLVMTarget = HOST) -> tuple[Array, Array]:
    """What a kernel gives, and what NumPy does."""
    program = fixed(by_row(*x.shape, dtype), target)
    if x.size >= 1 << 15:  # a small kernel for any size has no reciprocals
        program = Program(by_row(*x.shape, dtype), target)
    out = np.zeros_like(x)
    program(x, s, out)
    with np.errstate(all="ignore"):
        return out, x / s[:, None]


def same(a: Array, b: Array) -> bool:
    bits = {2: np.uint16, 4: np.uint32, 8: np.uint64}[a.itemsize]
    nan = np.isnan(a.astype(np.float64)) & np.isnan(b.astype(np.float64))
    return bool(((a.view(bits) == b.view(bits)) | nan).all())


def spread(rng: np.random.Generator, dtype: str, shape: tuple[int, ...], powers: int) -> Array:
    """Numbers of either sign whose exponents lie within ±powers."""
    found = rng.uniform(1, 2, shape) * 2.0 ** rng.integers(-powers, powers + 1, shape)
    return (found * rng.choice([-1.0, 1.0], shape)).astype(DTYPES[dtype])


@every_target
@pytest.mark.parametrize("dtype", ["f32", "f64", "f16", "bf16"])
@pytest.mark.parametrize("columns", [128, 300, 1001])
def test_quotients_have_the_bits_of_a_division(
    columns: int, dtype: str, target: LLVMTarget
) -> None:
    rng = np.random.default_rng(columns)
    for powers in (0, 5, 14):
        x, s = spread(rng, dtype, (40, columns), powers), abs(spread(rng, dtype, (40,), powers))
        assert same(*divided(x, s, dtype, target))


@pytest.mark.parametrize("dtype", ["f32", "f64"])
def test_numbers_of_any_size(dtype: str) -> None:
    """Quotients that underflow, overflow or have few bits are divided after all."""
    info = np.finfo(DTYPES[dtype])
    most = int(np.log2(float(info.max))) if dtype == "f32" else 1023
    rng = np.random.default_rng(3)
    for powers in (most // 4, most // 2, most):
        x, s = spread(rng, dtype, (200, 256), powers), spread(rng, dtype, (200,), powers)
        with np.errstate(all="ignore"):
            x[:, ::7] *= info.smallest_subnormal
        assert same(*divided(x, s, dtype))


@pytest.mark.parametrize("dtype", ["f32", "f64"])
def test_edges(dtype: str) -> None:
    info = np.finfo(DTYPES[dtype])
    values = [*EDGES, float(info.max), float(info.tiny), float(info.smallest_subnormal)]
    for s in (*values, -2.0, 2.0**-40, 2.0**40, 1 + float(info.eps), 2 - float(info.eps)):
        for alone in values:  # one odd element among many, and a row of nothing else
            x = np.full((2, 256), 5.0, DTYPES[dtype])
            x[0, 77] = alone
            x[1] = alone
            assert same(*divided(x, np.array([s, s], DTYPES[dtype]), dtype)), (alone, s)


def test_neighbours_of_the_divisor() -> None:
    """Dividends just below the divisor: there the first quotient may be off by more than an ulp."""
    rng = np.random.default_rng(5)
    s = rng.integers(1 << 23, 1 << 24, 4000)
    x = s[:, None] - np.arange(256)
    x = np.maximum(x, 1 << 22)
    assert same(*divided(x.astype(np.float32), s.astype(np.float32), "f32"))


def test_only_a_remainder_that_is_exact_will_do() -> None:
    """Without fused multiply-add there is nothing to be gained."""

    def fused(rows: int, target: LLVMTarget) -> bool:
        return "@llvm.fma" in Program(by_row(rows, 256, "f32"), target, linked=False).text

    least, more = (target_with("x86_64-unknown-linux-gnu", has) for has in ((), ("fma",)))
    assert not fused(400, least)
    assert fused(400, more)
    assert not fused(4, more)  # a small kernel


@every_target
@pytest.mark.parametrize("dtype", ["i8", "i16", "i32", "i64", "u8", "u16", "u32", "u64"])
def test_integers_are_divided_exactly(dtype: str, target: LLVMTarget) -> None:
    """By every power of two and its neighbours, by what is near the ends, by 0 and by -1."""
    rng, info = np.random.default_rng(7), np.iinfo(DTYPES[dtype])
    near = [2**k + d for k in range(info.bits) for d in (-1, 0, 1)]
    near += [info.max - d for d in range(3)] + [info.min + d for d in range(3)]
    near += [
        info.max // 3,
        info.max // 2,
        *map(int, rng.integers(1, info.max, 30, dtype=info.dtype)),
    ]
    by = [v for n in near for v in (n, -n) if info.min <= v <= info.max]
    s = np.array(sorted({0, *by}), info.dtype)
    ends = [info.min, info.min + 1, info.max, info.max - 1, 0, 1]
    drawn = rng.integers(info.min, info.max, (s.size, 150), info.dtype, endpoint=True)
    x = np.concatenate([drawn, np.tile(np.array(ends, info.dtype), (s.size, 1))], 1)
    with np.errstate(all="ignore"):
        x[:, :20] = s[:, None] * rng.integers(1, 9, 20).astype(info.dtype)  # multiples
        x[:, 20:40] = x[:, :20] - 1
        for op, wanted in NUMPYS.items():
            out = np.zeros_like(x)
            fixed(by_row(*x.shape, dtype, op), target)(x, s, out)
            np.testing.assert_array_equal(out, wanted(x, s[:, None]))
