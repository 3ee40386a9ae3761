"""Running folds in plans: routines, beside NumPy's and beside their own order of joining."""

from __future__ import annotations

import ctypes
import os
import signal
import threading
import time
from typing import Any

import numpy as np
import pytest

import tenfold as tn
from tenfold.backends.cpu.backend import BACKEND
from tenfold.backends.cpu.library.running import running_routine, running_text
from tenfold.backends.cpu.link.loader import load
from tenfold.backends.cpu.run.compiled import CompiledProgram
from tenfold.backends.llvm.assemble import assemble
from tenfold.backends.llvm.target import LLVMTarget
from tenfold.graph import Builder, Graph
from tenfold.ops import TABLE
from tenfold.parity.rule.agree import disagreement, judged
from tenfold.types import DTYPES, SHORT, TensorType
from tests.backends.cpu.running import every_target

Array = np.ndarray[Any, Any]
OPS = {"cumsum": "iufc", "cumprod": "iufc", "cummax": "biuf", "cummin": "biuf"}
SHAPES: tuple[tuple[tuple[int, ...], int], ...] = (
    ((1,), 0), ((5,), 0), ((16,), 0), ((17,), 0), ((100,), 0), ((4096,), 0), ((4097,), 0),
    ((9000,), 0), ((3, 40), 0), ((3, 40), 1), ((40, 3), 0), ((20, 300), 0), ((2, 50, 7), 1),
    ((2, 3, 33), 2), ((4, 5, 600), 1), ((7, 1), 0), ((7, 1), 1),
)  # fmt: skip


def graph_of(name: str, x: Array, axis: int, reverse: bool) -> Graph:
    builder = Builder(TABLE)
    value = builder.parameter(TensorType(x.dtype, x.shape))
    return builder.finish(builder.node(name, [value], {"axis": axis, "reverse": reverse}))


def draw(name: str, dtype: str, shape: tuple[int, ...]) -> Array:
    random = np.random.default_rng(sum(shape))
    x = random.standard_normal(shape) * 3
    if dtype[0] == "c":
        x = x + 1j * random.standard_normal(shape)
    if name == "cumprod" and dtype[0] in "fcb":  # products that stay near 1
        x = x / np.maximum(np.abs(x), 1e-9) * 1.001
    if dtype == "bf16":
        x = x.astype(np.float32)
    elif dtype[0] in "iu":  # what a negative float is without a sign differs between processors
        x = x.astype(np.int64)
    made = x.astype(DTYPES[dtype])
    if dtype in ("f32", "f64") and made.size > 20:
        made.reshape(-1)[:4] = -0.0, -0.0, 0.0, -0.0
    return made


@pytest.mark.parametrize("reverse", [False, True])
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("name", OPS)
def test_beside_the_reference(name: str, dtype: str, reverse: bool) -> None:
    kind = "b" if dtype == "bool" else "f" if dtype == "bf16" else dtype[0]
    for shape, axis in SHAPES if kind in OPS[name] else ():
        x = draw(name, dtype, shape)
        graph = graph_of(name, x, axis, reverse)
        plan = BACKEND.plan(graph)
        assert not plan.host_steps, plan.explain()
        (got,) = CompiledProgram(plan)([x])
        assert disagreement(got, judged(graph, [x])[0]) is None, (shape, axis)


@pytest.mark.parametrize("name", ["cumsum", "cummax", "cummin"])
def test_nan_infinities_and_zeros(name: str) -> None:
    random = np.random.default_rng(5)
    for n in (3, 16, 40, 5000):
        for axis, shape in ((0, (n,)), (0, (n, 20)), (1, (3, n))):
            x = random.standard_normal(shape)
            x.reshape(-1)[:: max(n // 3, 1)] = random.choice([np.nan, np.inf, -np.inf, -0.0])
            graph = graph_of(name, x, axis, False)
            (got,) = CompiledProgram(BACKEND.plan(graph))([x])
            with np.errstate(all="ignore"):
                assert disagreement(got, judged(graph, [x])[0]) is None


def test_the_sign_of_zero() -> None:
    for n in (1, 15, 16, 17, 5000):
        x = np.full(n, -0.0)
        got = tn.jit(np.cumsum)(x)
        assert np.signbit(got).all()
        x[n // 2] = 0.0
        np.testing.assert_array_equal(np.signbit(tn.jit(np.cumsum)(x)), np.arange(n) < n // 2)


def in_order(x: Array) -> Array:
    """The sums of a line, joined as the module says."""
    zero = x.dtype.type(-0.0)
    made, base = [], zero
    for low in range(0, len(x), 4096):
        stretch, carry = x[low : low + 4096], zero
        whole = len(stretch) // 16 * 16
        for block in stretch[:whole].reshape(-1, 16):
            for shift in (1, 2, 4, 8):
                block = np.append(np.full(shift, zero), block[:-shift]) + block
            made.append(base + (carry + block))
            carry = carry + block[-1]
        base = base + carry
        for one in stretch[whole:]:
            base = base + one
            made.append(np.array([base]))
    return np.concatenate(made)


@every_target
def test_every_target_has_the_bits_of_the_order(target: LLVMTarget) -> None:
    for dtype in (np.float32, np.float64):
        for n in (2, 16, 33, 4096, 4100, 9000):
            x = np.random.default_rng(n).standard_normal(n).astype(dtype)
            np.testing.assert_array_equal(run("cumsum", x, 0, target), in_order(x))


@every_target
def test_columns_have_numpys_bits(target: LLVMTarget) -> None:
    for shape in ((50, 2), (50, 16), (50, 300)):
        x = np.random.default_rng(0).standard_normal(shape).astype(np.float32)
        np.testing.assert_array_equal(run("cumsum", x, 0, target), np.cumsum(x, 0))


def run(name: str, x: Array, axis: int, target: LLVMTarget) -> Array:
    """A routine for a target, called as a kernel is."""
    routine = running_routine(name, TensorType(x.dtype, x.shape), {"axis": axis, "reverse": False})
    image = load([assemble(running_text(name, SHORT[x.dtype], target), target)], [routine.symbol])
    made = np.empty_like(x)
    word, size = ctypes.c_void_p, ctypes.c_int64
    function = ctypes.CFUNCTYPE(ctypes.c_int32, word, word, size, size)(
        image.address(routine.symbol)
    )
    table = np.array([x.ctypes.data, made.ctypes.data, 0, 0], np.uint64)
    params = np.array(routine.params, np.int64)
    assert function(table.ctypes.data, params.ctypes.data, 0, routine.parts) == 0
    return made


def test_ctrl_c_stops_a_long_line() -> None:
    f = tn.jit(np.maximum.accumulate, verify="off")
    x = np.ones(30_000_000, np.float32)
    f(x)
    start = time.perf_counter()
    wanted = f(x)
    whole = time.perf_counter() - start
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        for _ in range(5):
            timer = threading.Timer(whole / 4, os.kill, (os.getpid(), signal.SIGINT))
            timer.start()
            try:
                f(x)
            except KeyboardInterrupt:
                break
            finally:
                timer.join()
        else:
            pytest.fail("it went on")
    finally:
        signal.signal(signal.SIGINT, before)
    np.testing.assert_array_equal(f(x), wanted)
