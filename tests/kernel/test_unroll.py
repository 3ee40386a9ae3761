"""Tiny axes of reductions written out: what they share is computed once, in one loop."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tenfold as tn
from tenfold.kernel import Builder, Kernel
from tenfold.kernel.passes.unroll import unroll
from tests.backends.cpu.running import Program, every_target, random

Array = np.ndarray[Any, Any]


def weighted(rows: int, terms: int, width: int, kind: str = "sum", op: str = "exp") -> Kernel:
    """`y[i, j] += op(x[i, k]) * v[k, j]` over k, and what it comes to beside: z = v[i, j] + y."""
    b = Builder()
    x, v = b.buffer("f64", rows * terms), b.buffer("f64", max(terms, rows) * width)
    y, z = (b.buffer("f64", rows * width, "write") for _ in range(2))
    i, j = b.axis(rows), b.axis(width)
    n, k = b.reduced(terms, 1)
    weight = b.op(op, "f64", b.load(x, i * terms + k))
    own = b.op("mul", "f64", weight, b.load(v, k * width + j))
    found = b.reduce(kind, [n], own)
    b.store(y, i * width + j, found)
    b.store(z, i * width + j, b.op("add", "f64", b.load(v, i * width + j), found))
    return b.finish()


def ops(kernel: Kernel) -> list[str]:
    return [i.op for i in kernel.instructions]


def test_what_is_shared_is_one_value() -> None:
    made = unroll(weighted(40, 100, 3))
    assert len(made.axes) == 2
    assert ops(made).count("exp") == 1
    assert ops(made).count("reduce") == 3
    assert len(made.stores) == 6


@pytest.mark.parametrize(
    "kernel",
    [
        weighted(40, 100, 1),
        weighted(40, 100, 9),  # not tiny
        weighted(40, 100, 3, op="abs"),  # little is shared
    ],
)
def test_others_stay_as_they_are(kernel: Kernel) -> None:
    assert unroll(kernel) == kernel


@every_target
@pytest.mark.parametrize("shape", [(40, 100, 3), (600, 300, 2), (7, 1000, 4), (300, 40, 8)])
def test_values_are_those_of_each_position(shape: tuple[int, int, int], target: Any) -> None:
    rows, terms, width = shape
    for kind in ("sum", "max"):
        x, v = random((rows, terms), "f64"), random((max(rows, terms), width), "f64", 1)
        y, z = np.empty((rows, width)), np.empty((rows, width))
        program = Program(weighted(*shape, kind), target)
        assert program(x, v, y, z) == 0
        each = np.exp(x)[:, :, None] * v[None, :terms]
        wanted = each.sum(1) if kind == "sum" else each.max(1)
        np.testing.assert_allclose(y, wanted, 1e-12, 1e-12)
        np.testing.assert_array_equal(z, v[:rows] + y)


def bodies(place: Array, speed: Array, mass: Array) -> tuple[Array, Array]:
    apart = place[None, :, :] - place[:, None, :]
    squared = (apart * apart).sum(axis=-1) + 1e-3
    pull = (apart * (mass[None, :] / (squared * np.sqrt(squared)))[:, :, None]).sum(axis=1)
    speed = speed + 0.01 * pull
    return place + 0.01 * speed, speed


def given(count: int) -> tuple[Array, Array, Array]:
    return random((count, 3), "f64"), random((count, 3), "f64", 1), random((count,), "f64", 2) ** 2


@pytest.mark.parametrize("count", [5, 70, 300])
def test_bodies_share_their_distances(count: int) -> None:
    program = tn.jit(bodies)
    found = program(*given(count))
    (kernel,) = program.plan(*given(count)).kernels
    assert [ops(kernel).count(op) for op in ("sqrt", "div", "reduce")] == [1, 1, 3]
    # The squares and the pull are made of the same differences, read once.
    assert ops(kernel).count("sub") == 3
    for one, wanted in zip(found, bodies(*given(count)), strict=True):
        np.testing.assert_allclose(one, wanted, 1e-10, 1e-12)


def test_one_code_serves_all_lengths_of_the_other_axes() -> None:
    program = tn.jit(bodies)
    kernels = {k.digest for n in (256, 512) for k in program.plan(*given(n)).kernels}
    assert len(kernels) == 1


def test_an_argument_is_written_over_by_what_is_written_out() -> None:
    def step(place: Array, speed: Array, mass: Array) -> None:
        place[:], speed[:] = bodies(place, speed, mass)

    place, speed, mass = given(300)
    wanted = bodies(place, speed, mass)
    program = tn.jit(step)
    for _ in range(3):  # the second call writes in place
        here = place.copy(), speed.copy()
        program(*here, mass)
        for one, other in zip(here, wanted, strict=True):
            np.testing.assert_allclose(one, other, 1e-10, 1e-12)


@every_target
def test_conditions_and_faults_are_those_of_each_position(target: Any) -> None:
    b = Builder()
    x, v = b.buffer("f64", 40 * 50), b.buffer("f64", 50 * 3)
    at, y = b.buffer("i64", 3), b.buffer("f64", 40 * 3, "write")
    i, j = b.axis(40), b.axis(3)
    n, k = b.reduced(50, 1)
    weight = b.op("exp", "f64", b.load(x, i * 50 + k))
    column = b.load(at, j)
    known = b.op("lt", "bool", column, b.literal("i64", 3))
    first = b.load(v, k * 3 + j - 1, b.inside(j - 1, 0, 3))  # nothing stands before the first
    chosen = b.load(v, k * 3 + b.as_index(column, 3), known)
    own = b.op("mul", "f64", weight, b.op("add", "f64", first, chosen))
    b.store(y, i * 3 + j, b.reduce("sum", [n], own))
    b.check(known)
    kernel = b.finish()
    assert ops(unroll(kernel)).count("reduce") == 3
    assert "inside" not in ops(unroll(kernel))
    program = Program(kernel, target)
    xs, vs, out = random((40, 50), "f64"), random((50, 3), "f64", 1), np.empty((40, 3))
    where, raw = np.array([2, 0, 1]), [np.int64(3).tobytes()]
    assert program(xs, vs, where, out, params=raw) == 0
    before = np.pad(vs, ((0, 0), (1, 0)))[:, :3]
    np.testing.assert_allclose(out, np.exp(xs) @ (before + vs[:, where]), 1e-12, 1e-12)
    assert program(xs, vs, np.array([2, 0, 3]), out, params=raw) == 1
