"""The reference evaluator: arguments, outputs, depth, errors."""

from __future__ import annotations

import warnings

import numpy as np
import pytest

import tenfold as tn
from tenfold.errors import GraphError, TypeMismatch
from tenfold.graph import Builder, Graph, Node, Parameter
from tenfold.ops import TABLE
from tenfold.reference import evaluate
from tenfold.types import spec

F3 = spec((3,), "float32")


def add_graph() -> Graph:
    builder = Builder(TABLE)
    x, y = builder.parameter(F3, "x"), builder.parameter(F3, "y")
    return builder.finish(builder.node("add", (x, y)))


def ones(n: int = 3, dtype: str = "f4") -> np.ndarray:
    return np.ones(n, dtype)


def test_a_graph_is_run() -> None:
    (result,) = evaluate(add_graph(), [ones(), ones()])
    assert result.dtype == np.float32
    assert (result == 2).all()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ([ones()], "1 arguments for a graph of 2 parameters"),
        ([ones(), ones(4)], r"argument 1 \(y\) is f32\[4\], the graph takes f32\[3\]"),
        ([ones(3, "f8"), ones()], r"argument 0 \(x\) is f64\[3\], the graph takes f32\[3\]"),
        ([ones(), 1.0], r"argument 1 \(y\) is f32, the graph takes f32\[3\]"),
    ],
)
def test_arguments_that_do_not_fit(arguments: list[object], message: str) -> None:
    with pytest.raises(TypeMismatch, match=message):
        evaluate(add_graph(), arguments)


def test_a_python_number_takes_the_dtype_of_its_parameter() -> None:
    builder = Builder(TABLE)
    x = builder.parameter(spec((), "float32"))
    graph = builder.finish(builder.node("neg", (x,)))
    (result,) = evaluate(graph, [2])
    assert result.dtype == np.float32
    assert result == -2
    with pytest.raises(TypeMismatch, match="argument 0 is c128"):
        evaluate(graph, [2j])


def test_an_array_of_another_byte_order_is_taken() -> None:
    (result,) = evaluate(add_graph(), [ones().astype(">f4"), ones()])
    assert (result == 2).all()


def test_a_broken_graph_is_refused_with_its_text() -> None:
    node = Node("add", (0, 0), (), (), (spec((4,), "float32"),))
    with pytest.raises(GraphError, match="add %0 %0"):
        evaluate(Graph((Parameter(F3),), (node,), (1,)), [ones()])


def test_outputs_alias_neither_arguments_nor_each_other() -> None:
    builder = Builder(TABLE)
    x = builder.parameter(spec((2, 3), "float32"))
    (turned,) = builder.node("transpose", (x,), {"axes": (1, 0)})
    graph = builder.finish([x, turned, x, turned])
    given = np.arange(6, dtype="f4").reshape(2, 3)
    outputs = evaluate(graph, [given])
    arrays = [given, *outputs]
    for i, one in enumerate(arrays):
        assert one.flags.writeable
        for other in arrays[:i]:
            assert not np.shares_memory(one, other)


def test_a_chain_of_100_000_nodes() -> None:
    builder = Builder(TABLE)
    value = builder.parameter(spec((), "int64"))
    (one,) = builder.node("constant", (), {"data": np.int64(1).tobytes(), "type": "i64"})
    for _ in range(100_000):
        (value,) = builder.node("add", (value, one))
    assert evaluate(builder.finish([value]), [0])[0] == 100_000


def test_a_doubling_graph_10_000_deep() -> None:
    builder = Builder(TABLE)
    value = builder.parameter(spec((), "float64"))
    for _ in range(10_000):
        (value,) = builder.node("add", (value, value))
    assert evaluate(builder.finish([value]), [5e-324])[0] == np.inf


def test_scopes_2_000_deep() -> None:
    builder = Builder(TABLE)
    graph = builder.finish(builder.node("neg", (builder.parameter(F3),)))
    for _ in range(2000):
        outer = Builder(TABLE)
        x = outer.parameter(F3)
        (index,) = outer.node("constant", (), {"data": np.int64(0).tobytes(), "type": "i64"})
        assert graph.digest
        graph = outer.finish(outer.node("switch", (index, x), {}, (graph,)))
    assert (evaluate(graph, [ones()])[0] == -1).all()


def test_no_warnings_and_the_users_error_state_in_callbacks() -> None:
    seen = []

    def look(_: object) -> None:
        seen.append(np.geterr()["divide"])

    def program(x: tn.Array) -> object:
        return tn.hook("state", 1 / x, look) + np.log(x)

    with np.errstate(divide="raise"), warnings.catch_warnings():
        warnings.simplefilter("error")
        result = tn.jit(program)(np.zeros(2))
        assert np.geterr()["divide"] == "raise"
    assert np.isnan(result).all()
    assert seen == ["raise"]


def test_an_error_of_a_reference_names_the_users_line() -> None:
    def program(x: tn.Array, n: tn.Array) -> object:
        y = x + 1
        return y**n  # the line meant

    f = tn.jit(program)
    with pytest.raises(tn.TenfoldError) as caught:
        f(np.arange(3), np.array([1, -1, 2]))
    assert f"{__file__}:{program.__code__.co_firstlineno + 2}, in program" in str(caught.value)
    assert (f(np.arange(3), np.array([1, 1, 2])) == [1, 2, 9]).all()


def test_a_loop_inside_a_branch_inside_a_loop() -> None:
    @tn.jit
    def program(x: tn.Array) -> object:
        def step(c: tn.Array, n: tn.Array) -> tuple[object, object]:
            grown = tn.while_loop(lambda s: s < n, lambda s: s * 2 + 1, c)
            return tn.cond(n % 2 == 0, lambda: grown, lambda: c + n), c

        return tn.scan(step, 0, x)

    last, before = program(np.array([4, 3, 20, 1]))
    carry, seen = 0, []
    for n in [4, 3, 20, 1]:
        seen.append(carry)
        grown = carry
        while grown < n:
            grown = grown * 2 + 1
        carry = grown if n % 2 == 0 else carry + n
    assert last == carry
    assert before.tolist() == seen
