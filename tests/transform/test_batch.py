"""The pass itself: graphs in, graphs out, of any size and depth."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tenfold as tn
from tenfold.graph import Builder, Graph, check
from tenfold.ops import TABLE
from tenfold.reference import evaluate
from tenfold.transform.batch import batch
from tenfold.types import TensorType, parse_type

F32 = parse_type("f32")


def size(graph: Graph) -> int:
    return sum(len(g.nodes) for g in (graph, *graph.scopes()))


def test_what_nothing_batched_reaches_stays_as_it_is() -> None:
    graph = tn.trace(lambda x, w: (x + (w * 2).sum(), w + 1), tn.spec(3), tn.spec(4))
    lifted, flags = batch(graph, (True, False), 5)
    assert flags == (True, False)
    assert [str(t) for t in lifted.output_types] == ["f64[5,3]", "f64[4]"]
    assert [str(n.types[0]) for n in lifted.nodes if n.op == "reduce_sum"] == ["f64"]
    assert check(lifted, TABLE) is lifted
    same, flags = batch(graph, (False, False), 5)
    assert same == graph
    assert flags == (False, False)


def test_a_chain_of_thirty_thousand_nodes() -> None:
    builder = Builder(TABLE)
    value = builder.parameter(F32)
    for _ in range(30_000):
        (value,) = builder.node("neg", [value])
    lifted, flags = batch(builder.finish([value]), (True,), 2)
    assert flags == (True,)
    assert len(lifted.nodes) == 30_000


@pytest.mark.parametrize("op", ["switch", "while", "scan", "custom"])
def test_scopes_a_thousand_deep(op: str) -> None:
    builder = Builder(TABLE)
    x = builder.parameter(F32)
    graph = builder.finish(builder.node("neg", [x]))
    less = Builder(TABLE)
    test = less.finish(less.node("lt", [x := less.parameter(F32), x]))
    for _ in range(1000):
        builder = Builder(TABLE)
        x = builder.parameter(F32)
        made: Any
        if op == "switch":
            (truth,) = builder.node("lt", [x, x])
            (other,) = builder.node("exp", [x])
            # Each scope stands there twice, on inputs of its own: put in place it would double.
            (made,) = builder.node("switch", [truth, other], {}, [graph, graph])
            made = builder.node("switch", [truth, made], {}, [graph, graph])
        elif op == "while":
            made = builder.node("while", [x], {"captures": 0}, [test, graph])
        elif op == "scan":
            given = {"captures": 0, "carries": 1, "length": 1, "reverse": False, "unroll": 1}
            made = builder.node("scan", [x], given, [graph])
        else:
            made = builder.node("custom", [x], {"name": "mine"}, [graph])
        (value,) = made
        graph = builder.finish(builder.node("abs", [value]))
        _ = graph.digest
    lifted, _ = batch(graph, (True,), 3)
    assert size(lifted) < 100 * 1000
    assert lifted.output_types == (TensorType(F32.dtype, (3,)),)


def test_loops_grow_linearly() -> None:
    def program(steps: int) -> Any:
        def f(x: Any) -> Any:
            for _ in range(steps):
                x = tn.while_loop(lambda s: s[0] < 9, lambda s: (s[0] + s[1], s[1] + 1), (x, 1))[0]
            return x

        return f

    sizes = [size(tn.trace(tn.vmap(program(n)), np.arange(3))) for n in (1, 11, 21)]
    assert sizes[2] - sizes[1] == sizes[1] - sizes[0]


def test_a_scope_is_batched_once_for_each_way_it_is_used() -> None:
    def f(x: Any, w: Any) -> Any:
        body = lambda s: s * 2 + 1  # noqa: E731
        return tn.vmap(lambda a: tn.fori_loop(0, 3, lambda i, s: body(s), a))(x) + w

    graph = tn.trace(f, np.ones((2, 3)), np.ones(3))
    loops = [n for n in graph.nodes if n.op == "scan"]
    assert len(loops) == 1
    assert len(graph.scopes()) == 1


def test_lines_are_kept() -> None:
    def f(x: Any) -> Any:
        y = x * 2
        return (tn.while_loop(lambda s: s.sum() < 9, lambda s: s + y, y),)

    graph = tn.trace(lambda x: tn.vmap(f, -1, (1,))(x), np.ones((2, 3)))
    for scope in (graph, *graph.scopes()):
        assert all(n.source is not None and n.source.file == __file__ for n in scope.nodes)


def test_a_file_of_a_batched_program() -> None:
    def f(x: Any) -> Any:
        tn.hook("x", x)
        return tn.cond(x > 1, lambda: tn.while_loop(lambda s: s > 0, lambda s: s - 1, x), lambda: x)

    x = np.arange(3.0)
    graph = tn.trace(tn.vmap(f), x)
    assert tn.Graph.from_bytes(graph.to_bytes()) == graph
    assert tn.parse(str(graph)) == graph
    np.testing.assert_array_equal(evaluate(graph, [x])[0], [0, 1, 0])
