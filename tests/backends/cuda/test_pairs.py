"""Sixteen-bit floats two at a time on a simulated GPU: the bits of f32, rounded."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tenfold.backends.cuda.compile import module_text, prepare, to_ptx
from tenfold.backends.cuda.target import named
from tenfold.backends.llvm.target import llvmlite_version
from tenfold.kernel import Builder, Kernel
from tenfold.kernel.passes.generalise import generalise
from tests.backends.cpu.running import mapped
from tests.backends.cuda.beside import GPU, beside, values
from tests.backends.cuda.test_compile import assembled

SIZE = 8 * 132 * 256  # from here on a thread has eight elements
Array = np.ndarray[Any, Any]


pytestmark = pytest.mark.filterwarnings("ignore:invalid value:RuntimeWarning")


def every(dtype: str, seed: int) -> Array:
    """All numbers of sixteen bits, several times, in an order of their own."""
    drawn = np.random.default_rng(seed).permutation(SIZE + 3).astype(np.uint16)
    return drawn.view(values(1, dtype).dtype)


@pytest.mark.parametrize("dtype", ["f16", "bf16"])
@pytest.mark.parametrize("op", ["add", "sub", "mul"])
def test_all_numbers(op: str, dtype: str) -> None:
    """The last elements, which make no eight, are computed one by one."""
    x, y = every(dtype, 1), every(dtype, 2)
    done = beside(mapped(op, dtype, dtype, 2, x.shape), x, y, np.zeros_like(x))
    element = {"f16": "half", "bf16": "bfloat"}[dtype]
    assert done.text.count(f"f{op} <2 x {element}>") == 4


def chain(dtype: str) -> tuple[Kernel, list[bytes]]:
    """Constants, parameters and what is the same along rows, among what is paired and what is
    not."""
    b = Builder()
    rows, columns = 300, 904
    x, column = b.buffer(dtype, rows * columns), b.buffer(dtype, rows)
    row, out = b.buffer(dtype, columns), b.buffer(dtype, rows * columns, "write")
    i, j = b.axis(rows), b.axis(columns)
    total = b.op("mul", dtype, b.load(x, i * columns + j), b.load(column, i))
    total = b.op("add", dtype, total, b.const(dtype, 1))
    total = b.op("sub", dtype, b.load(row, j), total)
    root = b.op("sqrt", dtype, b.op("abs", dtype, total))
    total = b.op("mul", dtype, b.op("neg", dtype, root), b.literal(dtype, 0.75))
    b.store(out, i * columns + j, b.op("add", dtype, total, total))
    kernel = b.finish()
    return kernel, [b.literals[n] for n in range(len(b.literals))]


@pytest.mark.parametrize("dtype", ["f16", "bf16"])
def test_a_chain(dtype: str) -> None:
    kernel, params = chain(dtype)
    x, column, row = values((300, 904), dtype), values(300, dtype, 1), values(904, dtype, 2)
    done = beside(kernel, x, column, row, np.zeros_like(x), params=params)
    element = {"f16": "half", "bf16": "bfloat"}[dtype]
    assert done.text.count(f"<2 x {element}> ") > 12
    ptx = to_ptx(done.text, GPU)
    for op in ("add", "sub", "mul"):
        assert f"{op}.rn.{dtype}x2" in ptx
    assembled(ptx, GPU)


def test_older_chips_have_pairs_of_f16_alone() -> None:
    older = named("sm_80", llvmlite_version())
    for dtype, there in (("f16", True), ("bf16", False)):
        text, _ = prepare(generalise(mapped("add", dtype, dtype, 2, (SIZE,))), older)
        whole = module_text([text], older)
        assert ("<2 x half>" in whole or "<2 x bfloat>" in whole) == there
        assembled(to_ptx(whole, older), older)


@pytest.mark.parametrize("dtype", ["f16", "bf16"])
def test_rows(dtype: str) -> None:
    """A row scaled by another, then summed up."""
    b = Builder()
    x, scale = b.buffer(dtype, 3 * 512), b.buffer(dtype, 512)
    out = b.buffer(dtype, 3, "write")
    i = b.axis(3)
    over, k = b.reduced(512, 1)
    product = b.op("mul", dtype, b.load(x, i * 512 + k), b.load(scale, k))
    b.store(out, i, b.reduce("sum", (over,), product))
    rng = np.random.default_rng(1)
    kind = values(1, dtype).dtype
    given = [rng.standard_normal(shape).astype(kind) for shape in ((3, 512), (512,), (3,))]
    assert "fmul <2 x" in beside(b.finish(), *given).text


@pytest.mark.parametrize("op", ["div", "sqrt"])
def test_what_is_near_enough_for_bf16(op: str) -> None:
    """All numbers, by an instruction that the simulated chip has a unit off."""
    x, y = every("bf16", 3), every("bf16", 4)
    given = [x, y][: 2 if op == "div" else 1]
    done = beside(mapped(op, "bf16", "bf16", len(given), x.shape), *given, np.zeros_like(x))
    ptx = to_ptx(done.text, GPU)
    assert {"div": "div.full.f32", "sqrt": "sqrt.approx.f32"}[op] in ptx
    assert f"{op}.rn.f32" not in ptx
    assembled(ptx, GPU)


@pytest.mark.parametrize("dtype", ["f16", "f32"])
@pytest.mark.parametrize("op", ["div", "sqrt"])
def test_others_are_exact(op: str, dtype: str) -> None:
    x, y = values(4000, dtype, 3), values(4000, dtype, 4)
    given = [x, y][: 2 if op == "div" else 1]
    done = beside(mapped(op, dtype, dtype, len(given), x.shape), *given, np.zeros_like(x))
    assert "nvvm.div" not in done.text
    assert "approx" not in done.text
