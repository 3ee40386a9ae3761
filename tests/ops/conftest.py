"""A tiny evaluator of nodes and graphs, enough to try rows with."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import pytest

from tenfold.graph import Graph, Op
from tenfold.graph.op import ScopeRequest
from tenfold.ops import TABLE

HOST = (np.array([1, 2, 3], np.float32), np.array(7, np.int64))


def call(
    op: Op, inputs: Sequence[Any], attributes: Mapping[str, Any], scopes: tuple[Graph, ...] = ()
) -> tuple[Any, ...]:
    """The outputs of one op. Host calls are answered with HOST."""
    given = dict(op.normalise(attributes))
    if op.scopes == 0 and not op.effect:
        result = op.reference(*inputs, **given)
        return result if isinstance(result, tuple) else (result,)
    running = op.reference(list(inputs), scopes, **given)
    reply = None
    while True:
        try:
            wish = running.send(reply)
        except StopIteration as end:
            return tuple(end.value)
        if isinstance(wish, ScopeRequest):
            reply = run(wish.graph, wish.arguments)
        else:
            reply = list(HOST) if wish.op == "call_host" else []


def run(graph: Graph, arguments: list[Any]) -> list[Any]:
    """The outputs of a graph."""
    values = list(arguments)
    arguments.clear()
    for node in graph.nodes:
        inputs = [values[v] for v in node.inputs]
        values.extend(call(TABLE[node.op], inputs, dict(node.attributes), node.scopes))
    return [values[v] for v in graph.outputs]


@pytest.fixture(autouse=True)
def quiet() -> Iterator[None]:
    """References are run with NumPy's warnings off, as the evaluator runs them."""
    with np.errstate(all="ignore"):
        yield


@pytest.fixture(name="call")
def call_fixture() -> Callable[..., tuple[Any, ...]]:
    return call


@pytest.fixture(name="run")
def run_fixture() -> Callable[..., list[Any]]:
    return run


def _one(op: str, /, *inputs: Any, scopes: tuple[Graph, ...] = (), **attributes: Any) -> Any:
    arrays = [np.asarray(x) for x in inputs]
    (result,) = call(TABLE[op], arrays, attributes, scopes)
    return result


@pytest.fixture
def one() -> Callable[..., Any]:
    """`one(name, *inputs, **attributes)`: the one output of an op."""
    return _one


def _infer(name: str, /, *types: Any, scopes: tuple[Graph, ...] = (), **attributes: Any) -> Any:
    from tenfold.graph.build import infer
    from tenfold.types import parse_type

    op = TABLE[name]
    given = op.normalise(attributes)
    return infer(name, TABLE, tuple(parse_type(t) for t in types), given, scopes)


@pytest.fixture
def infer() -> Callable[..., Any]:
    """`infer(name, *types as text, **attributes)`: the types of a node."""
    return _infer


def _same(got: Any, want: Any) -> None:
    """Equal dtype, shape and values, NaN equal to NaN, -0 not equal to 0."""
    assert got.dtype == want.dtype
    assert got.shape == want.shape
    if want.dtype.kind in "fcV":  # V: bfloat16
        wide = np.complex128 if want.dtype.kind == "c" else np.float64
        got, want = got.astype(wide), want.astype(wide)
        for part in (np.real, np.imag):
            number = ~np.isnan(part(want))
            signs = np.signbit(part(got))[number], np.signbit(part(want))[number]
            np.testing.assert_array_equal(*signs)
    np.testing.assert_array_equal(got, want)


@pytest.fixture
def same() -> Callable[[Any, Any], None]:
    return _same
