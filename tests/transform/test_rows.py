"""Every row of the table under vmap: against a loop, under a mask, and on what makes it raise."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import product
from typing import Any

import numpy as np
import pytest

import tenfold as tn
from tenfold.graph import Builder, Op
from tenfold.graph.op import Sample
from tenfold.ops import TABLE, samples
from tenfold.reference import evaluate
from tenfold.trace.array import Array
from tenfold.trace.operand import as_value
from tenfold.trace.scope import current
from tenfold.types import BOOL, TensorType

ROWS = [pytest.param(op, id=op.name) for op in TABLE.values() if not op.effect]
PLAIN = [pytest.param(op, id=op.name) for op in TABLE.values() if not op.effect and op.scopes == 0]
SIZE = 3
MOST = 10  # forms of one op that are tried, taken evenly from all


def of(op: Op, sample: Sample) -> Callable[..., Any]:
    """The op as a function of its inputs."""
    given = dict(op.normalise(sample.attributes))

    def function(*inputs: Any) -> Any:
        scope = current()
        assert scope is not None
        values = [as_value(x, scope) for x in inputs]
        return tuple(Array(scope, v) for v in scope.node(op.name, values, given, sample.scopes))

    return function


def forms(op: Op) -> Iterator[list[Sample]]:
    """A sample for each lane, for each distinct form (shapes and attributes); dtypes take turns."""
    draws = [op.samples(np.random.default_rng(seed)) for seed in range(SIZE)]
    found: dict[Any, list[list[Sample]]] = {}
    for row in zip(*draws, strict=True):
        shapes = tuple(a.shape for a in row[0].inputs)
        attributes = {k: v for k, v in row[0].attributes.items() if k not in ("data", "dtype")}
        found.setdefault((shapes, repr(attributes)), []).append(list(row))
    step = len(found) // MOST + 1
    for number, rows in enumerate(list(found.values())[::step]):
        yield rows[(number * 7 + 3) % len(rows)]


def close(op: Op, got: Any, want: Any, identical: Any) -> None:
    if op.bound == 0 or want.dtype.kind in "iub":
        identical(got, want)
        return
    assert (got.dtype, got.shape) == (want.dtype, want.shape)
    tolerance = 1e-2 if want.dtype.itemsize == 2 else 1e-4
    wide = np.complex128 if want.dtype.kind == "c" else np.float64
    np.testing.assert_allclose(got.astype(wide), want.astype(wide), tolerance, tolerance)


@pytest.mark.parametrize("op", ROWS)
def test_vmap_of_one_op_is_a_loop(op: Op, identical: Any, stacked: Any) -> None:
    tried = 0
    for number, row in enumerate(forms(op)):
        function = of(op, row[0])
        once = tn.jit(function)
        count = len(row[0].inputs)
        for batched in product((False, True), repeat=count):
            axes, arguments = [], []
            for i, own in enumerate(batched):
                x = row[0].inputs[i]
                axis = (number + i) % (x.ndim + 1) - (x.ndim + 1) * (number % 2)
                axes.append(axis if own else None)
                arguments.append(np.stack([s.inputs[i] for s in row], axis) if own else x)
            got = tn.vmap(function, tuple(axes), size=SIZE)(*arguments)
            rows = [
                once(*(s.inputs[i] if own else row[0].inputs[i] for i, own in enumerate(batched)))
                for s in row
            ]
            for one, other in zip(got, stacked(rows), strict=True):
                close(op, one, other, identical)
            tried += 1
    assert tried, f"{op.name}: nothing was tried"


@pytest.mark.parametrize("op", ROWS)
def test_an_op_that_only_some_lanes_come_to(op: Op, identical: Any, stacked: Any) -> None:
    for row in forms(op):
        function = of(op, row[0])

        def program(take: Any, *inputs: Any, op_: Any = function) -> Any:
            types = [r.type for r in op_(*inputs)]
            other = lambda: tuple(np.zeros(t.shape, t.dtype) for t in types)  # noqa: E731
            return tn.cond(take, lambda: op_(*inputs), other)

        once = tn.jit(program)
        take = np.array([True, False, True])
        inputs = [np.stack([s.inputs[i] for s in row]) for i in range(len(row[0].inputs))]
        got = tn.vmap(program)(take, *inputs)
        rows = [once(t, *s.inputs) for t, s in zip(take, row, strict=True)]
        for one, other in zip(got, stacked(rows), strict=True):
            close(op, one, other, identical)


def garbage(sample: Sample, seed: int) -> list[list[Any]]:
    """What lanes that are not active may hold: anything at all, nothing but zeros, and so on."""
    random = np.random.default_rng(seed)
    anything = [samples.anything(random, a.dtype, a.shape) for a in sample.inputs]
    zeros = [np.zeros_like(a) for a in sample.inputs]
    least = [np.full_like(a, True if a.dtype == BOOL else _least(a.dtype)) for a in sample.inputs]
    return [anything, zeros, least]


def _least(dtype: Any) -> Any:
    return np.iinfo(dtype).min if dtype.kind in "iu" else np.nan


@pytest.mark.parametrize("op", PLAIN)
def test_a_row_that_may_raise_says_so_and_has_a_guard(op: Op) -> None:
    """Lanes that are not active hold anything at all, and must not raise."""
    for number, row in enumerate(forms(op)):
        sample = row[0]
        given = dict(op.normalise(sample.attributes))
        bad = garbage(sample, number)
        types = tuple(TensorType(a.dtype, a.shape) for a in sample.inputs)
        with np.errstate(all="ignore"):
            if not op.heeds(types, given):
                for inputs in bad:
                    op.reference(*inputs, **given)
                continue
        assert op.guard is not None, f"{op.name} heeds which lanes are active and has no guard"
        builder, count = Builder(TABLE), len(bad)
        mask = builder.parameter(TensorType(BOOL, (count,)))
        values = [builder.parameter(TensorType(t.dtype, (count, *t.shape))) for t in types]
        batched = [True] * len(values)
        values = op.guard(builder, values, batched, mask, count, **given)
        graph = builder.finish(op.batch(builder, values, batched, count, **given))
        stacks = [np.stack(column) for column in zip(*bad, strict=True)]
        evaluate(graph, [np.zeros(count, bool), *stacks])


RAISING: dict[str, tuple[Callable[..., Any], Any, Any]] = {
    "gather": (lambda x, i: x[i], (np.arange(3.0), 1), (np.arange(3.0), 3)),
    "scatter": (
        lambda x, i: _written(x, i),
        (np.arange(3.0), 2),
        (np.arange(3.0), -4),
    ),
    "pow": (lambda x, i: x**i, (np.arange(3), 2), (np.arange(3), -1)),
    "svd": (
        lambda x, i: np.linalg.svd(x * i, compute_uv=False),
        (np.eye(2), 1.0),
        (np.eye(2), np.nan),
    ),
}


def _written(x: Any, i: Any) -> Any:
    y = x.copy()
    y[i] = 7
    return y


@pytest.mark.parametrize("name", RAISING)
def test_it_raises_in_an_active_lane_and_in_no_other(name: str, compare: Any) -> None:
    function, good, bad = RAISING[name]
    xs = [np.stack(pair) for pair in zip(good, bad, good, strict=True)]
    with pytest.raises(tn.TenfoldError) as caught:
        tn.vmap(function)(*xs)
    assert f"{__file__}:" in str(caught.value)
    shape = tn.jit(function)(*good)

    def guarded(fine: Any, *arguments: Any) -> Any:
        return tn.cond(fine, lambda: function(*arguments), lambda: shape * 0)

    compare(guarded, np.array([True, False, True]), *xs)
    nobody = tn.vmap(guarded)(np.zeros(3, bool), *xs)
    np.testing.assert_array_equal(nobody, np.zeros_like(nobody))
    with pytest.raises(tn.TenfoldError):
        tn.vmap(guarded)(np.array([False, True, False]), *xs)


def test_what_all_lanes_share_raises_if_one_lane_comes_to_it() -> None:
    x = np.arange(3.0)
    f = tn.vmap(lambda p, x, i: tn.cond(p, lambda: x[i], lambda: 0.0), in_axes=(0, None, None))
    assert f(np.zeros(2, bool), x, np.int64(5)).tolist() == [0, 0]
    with pytest.raises(IndexError, match="index 5 is out of range"):
        f(np.array([False, True]), x, np.int64(5))
