"""Loops that threads go through by themselves, on a simulated GPU: the CPU's bits, one launch."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tenfold as tn
from tests.backends.cuda.against import draw, same
from tests.backends.cuda.simulated import SimulatedGpu, simulated

Array = np.ndarray[Any, Any]
ROUNDS = 9


def launched(f: Any, *arrays: Array, alone: bool = True) -> SimulatedGpu:
    """What was launched for a call, which gave the CPU's bits; `alone`: by threads themselves."""
    gpu = SimulatedGpu()
    program = simulated(gpu).compile(tn.trace(f, *arrays))
    given = [np.array(a) for a in arrays]
    made = [np.asarray(x) for x in program(given)]
    with np.errstate(all="ignore"):
        wanted = tn.jit(f)(*arrays)
    for ours, theirs in zip(made, wanted, strict=True):
        same(ours, theirs)
    names = [name.split("_")[1] for name, *_ in gpu.launches]
    assert names.count("threads") == alone
    return gpu


@pytest.mark.parametrize("reverse", [False, True])
@pytest.mark.parametrize("dtype", ["i64", "f32", "u8", "bool"])
def test_carries_slices_and_stacks(dtype: str, reverse: bool) -> None:
    x, ys = draw(dtype, (700,)), draw(dtype, (ROUNDS, 700), 1)

    def step(carry: Any, y: Any) -> Any:
        a, b = carry
        return (a ^ y if dtype == "bool" else a + y, np.maximum(a, b)), (a > b)

    def f(x: Any, ys: Any) -> Any:
        (a, b), made = tn.scan(step, (x, x), ys, reverse=reverse)
        return a, b, made

    with np.errstate(all="ignore"):
        launched(f, x, ys)


@pytest.mark.parametrize("shape", [(1,), (5, 7), (2, 300), (0, 3)])
def test_shapes(shape: tuple[int, ...]) -> None:
    x, y = draw("f64", shape), draw("f64", shape, 1)

    def f(x: Any, y: Any) -> Any:
        return (tn.fori_loop(0, 40, lambda i, c: c * 0.5 + y, x),)

    launched(f, x, y, alone=x.size > 0)


def test_a_carry_that_goes_on_as_another() -> None:
    """What an element was in one carry it is in another in the next round."""
    x, y = draw("i32", (600,)), draw("i32", (600,), 1)

    def f(x: Any, y: Any) -> Any:
        return tn.fori_loop(0, ROUNDS, lambda i, c: (c[1] - 1, c[0] * 3 + c[1]), (x, y))

    with np.errstate(all="ignore"):
        launched(f, x, y)


ELSEWHERE = {
    "neighbours": lambda c, y: np.roll(c, 1) + y,
    "turned": lambda c, y: c[::-1] - y,
    "a sum": lambda c, y: c - c.sum() + y,
    "places that are computed": lambda c, y: c[y & 7],
    "one of them": lambda c, y: c + c[3],
}


@pytest.mark.parametrize("name", ELSEWHERE)
def test_what_hangs_on_other_elements(name: str) -> None:
    x, y = draw("i32", (600,)), draw("i32", (600,), 1)

    def f(x: Any, y: Any) -> Any:
        body = ELSEWHERE[name]
        return (tn.fori_loop(0, 40, lambda i, c: body(c, y).astype(np.int32), x),)

    with np.errstate(all="ignore"):
        launched(f, x, y, alone=False)


def test_indices_that_are_checked() -> None:
    x, at = draw("i32", (600,)), np.arange(600) % 10

    def f(x: Any, table: Any, at: Any) -> Any:
        return (tn.fori_loop(0, 40, lambda i, c: c + table[at], x),)

    with np.errstate(all="ignore"):
        launched(f, x, draw("i32", (10,), 2), at, alone=False)


def test_a_scalar_beside_elements() -> None:
    x = draw("i32", (600,))

    def f(x: Any) -> Any:
        return tn.fori_loop(0, 40, lambda i, c: (c[0] + c[1].astype(np.int32), c[1] + 2), (x, 0))

    with np.errstate(all="ignore"):
        launched(f, x, alone=False)
