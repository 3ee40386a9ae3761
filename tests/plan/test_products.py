"""Products of every layout, by the library and as kernels."""

from __future__ import annotations

import random

import numpy as np
import pytest

from tenfold.backends.cpu.backend import BACKEND
from tenfold.backends.cpu.library.product import tiles
from tenfold.backends.cpu.run.compiled import CompiledProgram
from tenfold.graph import Builder
from tenfold.ops import TABLE
from tenfold.plan import RoutineStep
from tenfold.reference import evaluate
from tenfold.types import DTYPES, TensorType


@pytest.mark.parametrize("seed", range(48))
def test_any_layout(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Batched, contracted and free axes in any order, with transposes before the product; every
    other one in many tiles, as very long ones are."""
    if seed % 2:
        for name, value in {
            "_CUT": 10,
            "_CUT_PANELS": 10,
            "_TWICE": 10,
            "_WHOLE": 9,
            "_ALIGNED": 5,
        }.items():
            monkeypatch.setattr(tiles, name, value)
        for name in ("_READ", "_WIDE", "_RUN_ALONG", "_RUN_ACROSS", "_TRIANGLE"):
            monkeypatch.setattr(tiles, name, 7 * (seed % 5 + 1))
    drawn = random.Random(seed)
    numbers = np.random.default_rng(seed)
    short = drawn.choice(("f32", "f64", "c64", "c128"))
    batch = [drawn.choice((2, 3)) for _ in range(drawn.choice((0, 0, 1, 2)))]
    over = [drawn.choice((9, 16, 31)) for _ in range(drawn.choice((1, 1, 2)))]
    sides = []
    for _ in "ab":
        free = [drawn.choice((7, 12, 33)) for _ in range(drawn.choice((0, 1, 1, 2)))]
        labels = [("b", i) for i in range(len(batch))] + [("k", i) for i in range(len(over))]
        labels += [("f", i) for i in range(len(free))]
        drawn.shuffle(labels)
        shape = tuple({"b": batch, "k": over, "f": free}[kind][i] for kind, i in labels)
        sides.append((labels, shape))
    builder = Builder(TABLE)
    values, arrays = [], []
    for _, shape in sides:
        turn = list(range(len(shape)))
        if drawn.random() < 0.5:
            drawn.shuffle(turn)
        source = [0] * len(shape)
        for i, axis in enumerate(turn):
            source[axis] = shape[i]
        array = numbers.standard_normal(source).astype(DTYPES[short])
        arrays.append(array)
        value = builder.parameter(TensorType(DTYPES[short], tuple(source)))
        if turn != sorted(turn):
            (value,) = builder.node("transpose", [value], {"axes": tuple(turn)})
        values.append(value)
    axes = {
        f"{side}_{name}": tuple(labels.index((kind, i)) for i in range(len(extents)))
        for side, (labels, _) in zip(("lhs", "rhs"), sides, strict=True)
        for name, kind, extents in (("batch", "b", batch), ("contract", "k", over))
    }
    graph = builder.finish(builder.node("contract", values, axes))
    plan = BACKEND.plan(graph)
    (got,), (wanted,) = CompiledProgram(plan)(arrays), evaluate(graph, arrays)
    np.testing.assert_allclose(got, wanted, rtol=1e-3, atol=1e-3)
    assert sum(isinstance(step, RoutineStep) for step in plan.steps) <= 1
    assert len(plan.steps) <= 3
    assert not plan.host_steps


def test_the_error_of_a_long_product_of_vectors_does_not_grow_with_it() -> None:
    """One term after the other, equal terms are rounded the same way each time."""
    builder = Builder(TABLE)
    a, b = (builder.parameter(TensorType(DTYPES["f32"], (210_002,))) for _ in "ab")
    over = {"lhs_contract": (0,), "rhs_contract": (0,), "lhs_batch": (), "rhs_batch": ()}
    graph = builder.finish(builder.node("contract", [a, b], over))
    arrays = [np.full(210_002, x, np.float32) for x in (148.41316, 119131.21)]
    (got,) = BACKEND.compile(graph)(arrays)
    right = float(arrays[0][0]) * float(arrays[1][0]) * 210_002
    assert abs(float(got) / right - 1) < 1e-6


@pytest.mark.parametrize("length", [2, 21, 22, 700, 1500])
def test_several_products_by_vectors_are_kernels_however_long(length: int) -> None:
    builder = Builder(TABLE)
    a, b = (builder.parameter(TensorType(DTYPES["f32"], (12, n, 64))) for n in (1, length))
    over = {"lhs_contract": (2,), "rhs_contract": (2,), "lhs_batch": (0,), "rhs_batch": (0,)}
    plan = BACKEND.plan(builder.finish(builder.node("contract", [a, b], over)))
    assert not any(isinstance(step, RoutineStep) for step in plan.steps)
