"""Batching rules against a loop over the batch, for every choice of batched inputs.

Those of ops with scopes or effects are tried with vmap, in tests/transform."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from itertools import product
from typing import Any

import numpy as np
import pytest

from tenfold.graph import Builder, Op, check
from tenfold.graph.op import Sample
from tenfold.ops import TABLE
from tenfold.types import TensorType

PLAIN = [pytest.param(op, id=op.name) for op in TABLE.values() if op.scopes == 0 and not op.effect]
SIZE = 2


def forms(op: Op) -> Iterator[list[Sample]]:
    """Draws of two samples for each distinct form (shapes and attributes); dtypes take turns."""
    draws = [op.samples(np.random.default_rng(seed)) for seed in range(SIZE)]
    found: dict[Any, list[list[Sample]]] = {}
    for row in zip(*draws, strict=True):
        shapes = tuple(a.shape for a in row[0].inputs)
        attributes = {k: v for k, v in row[0].attributes.items() if k not in ("data", "dtype")}
        found.setdefault((shapes, repr(attributes)), []).append(list(row))
    for number, rows in enumerate(found.values()):
        for turn in {number % len(rows), (number * 7 + 3) % len(rows)}:
            yield rows[turn]


def close(op: Op, got: Any, want: Any, same: Callable[..., None]) -> None:
    if op.bound == 0 or want.dtype.kind in "iub":
        same(got, want)
        return
    assert (got.dtype, got.shape) == (want.dtype, want.shape)
    tolerance = 1e-2 if want.dtype.itemsize == 2 else 1e-4
    wide = np.complex128 if want.dtype.kind == "c" else np.float64
    np.testing.assert_allclose(got.astype(wide), want.astype(wide), tolerance, tolerance)


def ways(count: int) -> Iterable[tuple[bool, ...]]:
    """Which of so many inputs are batched: every way; of many inputs none, all, and each alone."""
    if count <= 6:
        return product((False, True), repeat=count)
    alone = (tuple(i == k for i in range(count)) for k in range(count))
    return ((False,) * count, (True,) * count, *alone)


@pytest.mark.parametrize("op", PLAIN)
def test_a_batch_is_a_loop(
    op: Op, call: Callable[..., Any], run: Callable[..., Any], same: Callable[..., None]
) -> None:
    tried = 0
    for row in forms(op):
        count = len(row[0].inputs)
        for batched in ways(count):
            # A sample's attributes may be drawn too (the data of a constant): the first's count.
            given = dict(op.normalise(row[0].attributes))
            arguments = [
                np.stack([s.inputs[i] for s in row]) if own else row[0].inputs[i]
                for i, own in enumerate(batched)
            ]
            builder = Builder(TABLE)
            inputs = [builder.parameter(TensorType(a.dtype, a.shape)) for a in arguments]
            outputs = op.batch(builder, inputs, batched, SIZE, **given)
            graph = check(builder.finish(outputs), TABLE)
            results = run(graph, list(arguments))
            pairs = list(zip(arguments, batched, strict=True))
            loop = [
                call(op, [np.asarray(a[k]) if own else a for a, own in pairs], given)
                for k in range(SIZE)
            ]
            for number, result in enumerate(results):
                close(op, result, np.stack([one[number] for one in loop]), same)
            assert len(results) == len(loop[0])
            tried += 1
    assert tried, f"{op.name}: nothing was tried"


@pytest.mark.parametrize("op", PLAIN)
def test_a_batch_may_be_empty(op: Op) -> None:
    sample = op.samples(np.random.default_rng(0))[0]
    given = dict(op.normalise(sample.attributes))
    types = tuple(TensorType(a.dtype, a.shape) for a in sample.inputs)
    builder = Builder(TABLE)
    inputs = [builder.parameter(TensorType(t.dtype, (0, *t.shape))) for t in types]
    outputs = op.batch(builder, inputs, [True] * len(inputs), 0, **given)
    wanted = op.infer(types, given, ())
    assert [builder.types[v] for v in outputs] == [
        TensorType(t.dtype, (0, *t.shape)) for t in wanted
    ]
