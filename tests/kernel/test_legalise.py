"""Legal kernels, run by NumPy, against their code and against kernels as they were lowered."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import ml_dtypes
import numpy as np
import pytest

import tenfold as tn
from tenfold.backends.cpu.backend import BACKEND
from tenfold.errors import GraphError, Unsupported
from tenfold.kernel import Builder, Kernel
from tenfold.kernel.ir.kernel import COMPARISONS, ELEMENTWISE, SCRATCH, TRANSCENDENTAL, UPDATES
from tenfold.kernel.ir.legal import check
from tenfold.kernel.passes.legalise import legalise, update
from tenfold.types import DTYPES
from tests.backends.cpu.running import HOST, Program, mapped, reduction
from tests.backends.cpu.test_elementwise import samples
from tests.backends.cpu.test_random import Draw
from tests.kernel.interpret import interpret

Array = np.ndarray[Any, Any]

pytestmark = pytest.mark.filterwarnings("ignore::RuntimeWarning")

PARTS = {"c64": "f32", "c128": "f64"}
OPS = sorted(set(ELEMENTWISE) - TRANSCENDENTAL - {"complex"})


def drawn(dtype: str, arity: int) -> list[Array]:
    """Edges of a dtype, each with each."""
    if dtype not in PARTS:
        return samples(dtype, arity)
    rng = np.random.default_rng(5)
    values = np.array([0.0, -0.0, 1, -2.5, np.inf, np.nan, 1e30, 3e-20])
    parts = rng.choice(values, (2, arity, 300)).astype(DTYPES[PARTS[dtype]])
    return list((parts[0] + 1j * parts[1]).astype(DTYPES[dtype]))


def same(a: Array, b: Array) -> bool:
    """Equal bit for bit, but that any NaN is as good as another."""
    if a.dtype.kind == "c":
        return same(a.real.copy(), b.real.copy()) and same(a.imag.copy(), b.imag.copy())
    bits = f"u{a.dtype.itemsize}"
    equal = a.view(bits) == b.view(bits)
    if a.dtype.kind not in "iub":
        equal |= np.isnan(a) & np.isnan(b)
    return bool(equal.all())


def compared(kernel: Kernel, arrays: list[Array]) -> None:
    """What a legal kernel means is what its code does."""
    legal = legalise(kernel, fused=False)
    check(legal)
    want, got = [a.copy() for a in arrays], [a.copy() for a in arrays]
    interpret(legal, want)
    Program(kernel, HOST, strict=True, tuned=False)(*got)
    for a, b in zip(got, want, strict=True):
        assert same(a, b), f"{legal}\n{a}\n{b}"


@pytest.mark.parametrize("dtype", DTYPES)
def test_elementwise_instructions_mean_what_their_code_does(dtype: str) -> None:
    done = 0
    for op in OPS:
        if (op, dtype) == ("abs", "c128"):  # a call of hypot
            continue
        arrays = drawn(dtype, ELEMENTWISE[op])
        result = "bool" if op in COMPARISONS else "u8" if op == "popcount" else dtype
        if op in ("abs", "real", "imag"):
            result = PARTS.get(dtype, dtype)
        kernel = mapped(op, dtype, result, len(arrays), arrays[0].shape)
        try:
            legalise(kernel, fused=False)
        except Unsupported:
            continue
        done += 1
        compared(kernel, [*arrays, np.zeros(arrays[0].shape, DTYPES[result])])
    assert done >= 15


@pytest.mark.parametrize("source", DTYPES)
def test_casts_mean_what_their_code_does(source: str) -> None:
    (x,) = drawn(source, 1)
    for dtype in DTYPES:
        b = Builder()
        given, out = b.buffer(source, x.size), b.buffer(dtype, x.size, "write")
        i = b.axis(x.size)
        b.store(out, i, b.cast(b.load(given, i), dtype))
        compared(b.finish(), [x.copy(), np.zeros(x.size, DTYPES[dtype])])


@pytest.mark.parametrize("source", [d for d in DTYPES if d not in PARTS])
def test_bits_mean_what_their_code_does(source: str) -> None:
    (x,) = drawn(source, 1)
    size = DTYPES[source].itemsize
    for dtype in (d for d in DTYPES if d not in (*PARTS, "bool") and DTYPES[d].itemsize == size):
        b = Builder()
        given, out = b.buffer(source, x.size), b.buffer(dtype, x.size, "write")
        i = b.axis(x.size)
        b.store(out, i, b.bitcast(b.load(given, i), dtype))
        compared(b.finish(), [x.copy(), np.zeros(x.size, DTYPES[dtype])])


@pytest.mark.parametrize("dtype", DTYPES)
def test_reductions_are_legal(dtype: str) -> None:
    kinds = ["sum", "prod"] if dtype in PARTS else ["sum", "prod", "max", "min", "argmax", "argmin"]
    for kind in kinds:
        kernel = reduction(kind, dtype, (5, 40), (1,))
        for fused in (False, True):
            check(legalise(kernel, fused))


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("name", UPDATES)
def test_updates_are_legal(name: str, dtype: str) -> None:
    if dtype in PARTS and name in ("max", "min"):
        with pytest.raises(Unsupported):
            update(name, dtype)
        return
    body = update(name, dtype)
    check(body)
    assert body.params == (dtype, dtype)


@pytest.mark.parametrize("start", range(0, 100, 20))
def test_random_kernels_mean_the_same_when_they_are_legal(start: int) -> None:
    """Their values are quarters: sums and products are exact, rounded once or twice."""
    for seed in range(start, start + 20):
        kernel, arrays = Draw(seed).kernel()
        want = [a.copy() for a in arrays]
        interpret(kernel, want)
        for fused in (False, True):
            legal = legalise(kernel, fused)
            check(legal)
            got = [a.copy() for a in arrays]
            interpret(legal, got)
            for a, b in zip(got, want, strict=True):
                assert np.array_equal(a, b, equal_nan=a.dtype.kind == "f"), f"{seed}\n{legal}"


def product_of(store: bool) -> Kernel:
    """x * y + z, and the product itself if asked."""
    b = Builder()
    x, y, z = (b.buffer("f32", 8) for _ in range(3))
    out, more = b.buffer("f32", 8, "write"), b.buffer("f32", 8, "write")
    i = b.axis(8)
    product = b.op("mul", "f32", b.load(x, i), b.load(y, i))
    b.store(out, i, b.op("sub", "f32", b.load(z, i), product))
    if store:
        b.store(more, i, product)
    return b.finish()


def test_products_are_fused_where_one_sum_reads_them() -> None:
    ops = [i.op for i in legalise(product_of(False), fused=True).instructions]
    assert "fma" in ops
    assert "mul" not in ops
    ops = [i.op for i in legalise(product_of(True), fused=True).instructions]
    assert "fma" not in ops
    assert "fma" not in [i.op for i in legalise(product_of(False), fused=False).instructions]


def test_kernels_that_are_not_legal_are_refused() -> None:
    with pytest.raises(GraphError, match="load of no part"):
        check(mapped("mod", "i32", "i32", 2, (4,)))
    with pytest.raises(GraphError, match="gives c64"):
        check(mapped("add", "c64", "c64", 2, (4,)))
    legal = legalise(mapped("add", "f32", "f32", 2, (4,)), fused=False)
    for op, why in (("mod", "no instruction mod"), ("and", "and of f32, f32"), ("eq", "gives f32")):
        changed = [replace(i, op=op) if i.op == "add" else i for i in legal.instructions]
        with pytest.raises(GraphError, match=why):
            check(replace(legal, instructions=tuple(changed)))


@pytest.mark.parametrize("dtype", [np.float16, ml_dtypes.bfloat16])
def test_halves_that_are_kept_stand_before_their_loads(dtype: type) -> None:
    """A long row of halves whose exponentials are stored to scratch memory and read again."""
    x = np.random.default_rng(0).standard_normal((3, 300)).astype(dtype)

    def softmax(x: Any) -> Any:
        e = np.exp(x - x.max(1, keepdims=True))
        return e / e.sum(1, keepdims=True)

    kernels = BACKEND.plan(tn.trace(softmax, x)).kernels
    assert any(b.role == SCRATCH for k in kernels for b in k.buffers)
    mine, theirs = tn.jit(softmax, verify="off")(x), softmax(x.astype(np.float64))
    np.testing.assert_allclose(mine.astype(np.float64), theirs, rtol=0.1)
