"""Control flow: what is run, in which order, and what is let go of meanwhile."""

from __future__ import annotations

import gc
import weakref
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest

from tenfold.errors import GraphError, ShapeError, TypeMismatch, ValueProblem
from tenfold.graph import Builder, Graph
from tenfold.graph.op import HostRequest, ScopeRequest
from tenfold.ops import TABLE
from tenfold.types import parse_type

Infer = Callable[..., Any]


def graph(types: str, body: Callable[[Builder, Sequence[int]], Sequence[int]]) -> Graph:
    builder = Builder(TABLE)
    values = [builder.parameter(parse_type(t)) for t in types.split()]
    return builder.finish(body(builder, values))


def apply(name: str, *which: int) -> Callable[[Builder, Sequence[int]], Sequence[int]]:
    return lambda b, v: b.node(name, [v[i] for i in which])


def test_switch_runs_one_branch(one: Infer) -> None:
    branches = (graph("f64", apply("neg", 0)), graph("f64", apply("exp", 0)))
    x = np.array(2.0)
    assert one("switch", np.array(0), x, scopes=branches) == -2
    assert one("switch", np.array(False), x, scopes=branches) == -2
    assert one("switch", np.array(True), x, scopes=branches) == np.exp(2)
    assert one("switch", np.array(99), x, scopes=branches) == np.exp(2)
    assert one("switch", np.array(-99, np.int8), x, scopes=branches) == -2
    running = TABLE["switch"].reference([np.array(1), x], branches)
    assert next(running).graph is branches[1]


def test_switch_shows_both_sides(infer: Infer) -> None:
    a = graph("f32[3] f32[3]", apply("add", 0, 1))
    b = graph("f32[3] f32[3]", apply("eq", 0, 1))
    with pytest.raises(TypeMismatch, match=r"switch: branch 1 has bool\[3\] at 0, f32\[3\] needed"):
        infer("switch", "bool", "f32[3]", "f32[3]", scopes=(a, b))
    with pytest.raises(TypeMismatch, match=r"the parameters of branch 0 has 2 values"):
        infer("switch", "bool", "f32[3]", scopes=(a,))
    with pytest.raises(TypeMismatch, match=r"switch: the index: f32 is not a dtype it takes"):
        infer("switch", "f32", scopes=(a,))
    with pytest.raises(ShapeError, match=r"switch: the index is i32\[2\], not a scalar"):
        infer("switch", "i32[2]", scopes=(a,))
    with pytest.raises(ValueProblem, match="no branches"):
        infer("switch", "i32", scopes=())


def test_while_checks_its_scopes(infer: Infer) -> None:
    condition = graph("f32 f32", apply("lt", 0, 1))
    body = graph("f32 f32", apply("add", 0, 1))
    assert str(infer("while", "f32", "f32", captures=1, scopes=(condition, body))) == "(f32,)"
    with pytest.raises(TypeMismatch, match=r"the body's result has 1 values \(f32\), 2 needed"):
        infer("while", "f32", "f32", captures=0, scopes=(condition, body))
    with pytest.raises(TypeMismatch, match=r"while: the condition has f32 at 0, bool needed"):
        infer("while", "f32", "f32", captures=1, scopes=(body, body))
    with pytest.raises(GraphError, match="3 captures of 2 inputs"):
        infer("while", "f32", "f32", captures=3, scopes=(condition, body))
    with pytest.raises(GraphError, match="1 scopes, 2 needed"):
        infer("while", "f32", "f32", captures=1, scopes=(body,))


def test_scan_checks_its_body(infer: Infer) -> None:
    body = graph("f32 f32", lambda b, v: [*b.node("add", v), v[1]])
    given = {"captures": 0, "carries": 1, "length": 4, "reverse": False, "unroll": 1}
    assert str(infer("scan", "f32", "f32[4]", scopes=(body,), **given)) == "(f32, f32[4])"
    with pytest.raises(ShapeError, match=r"a stacked input is f32\[3\], and the length is 4"):
        infer("scan", "f32", "f32[3]", scopes=(body,), **given)
    with pytest.raises(ShapeError, match="a stacked input is f32, "):
        infer("scan", "f32", "f32", scopes=(body,), **given)
    with pytest.raises(ValueProblem, match="unroll"):
        infer("scan", "f32", "f32[4]", scopes=(body,), **{**given, "unroll": 0})
    with pytest.raises(TypeMismatch, match="the parameters of the body"):
        infer("scan", "f64", "f32[4]", scopes=(body,), **given)
    wrong = graph("f32 f32", lambda b, v: [*b.node("eq", v), v[1]])
    with pytest.raises(TypeMismatch, match="the carry that the body gives has bool at 0, f32"):
        infer("scan", "f32", "f32[4]", scopes=(wrong,), **given)


def test_scan_forwards_and_back(call: Infer) -> None:
    body = graph("f64 f64", lambda b, v: [*b.node("add", v), *b.node("mul", v)])
    given = {"captures": 0, "carries": 1, "length": 3, "unroll": 1}
    x = np.array([1.0, 2.0, 3.0])
    for reverse, want in ((False, [10, 22, 39]), (True, [15, 26, 30])):
        total, made = call(
            TABLE["scan"], [np.array(10.0), x], {**given, "reverse": reverse}, (body,)
        )
        assert total == 16
        assert made.tolist() == want
    total, made = call(
        TABLE["scan"], [np.array(10.0), x[:0]], {**given, "length": 0, "reverse": True}, (body,)
    )
    assert total == 10
    assert made.shape == (0,)


def test_reduce_folds_from_the_left(one: Infer, infer: Infer) -> None:
    minus = graph("i64 i64", apply("sub", 0, 1))
    x = np.arange(6).reshape(2, 3)
    assert one("reduce", x, np.array(100), axes=(0, 1), scopes=(minus,)) == 85
    assert one("reduce", x, np.array(0), axes=(1,), scopes=(minus,)).tolist() == [-3, -12]
    assert one("reduce", x, np.array(0), axes=(0,), scopes=(minus,)).tolist() == [-3, -5, -7]
    assert one("reduce", x[:0], np.array(7), axes=(0, 1), scopes=(minus,)) == 7
    with pytest.raises(ShapeError, match=r"reduce: the initial value is i64\[1\], not a scalar"):
        infer("reduce", "i64[3]", "i64[1]", axes=(0,), scopes=(minus,))
    with pytest.raises(TypeMismatch, match="the parameters of the function"):
        infer("reduce", "f32[3]", "i64", axes=(0,), scopes=(minus,))


def test_custom_runs_its_fallback(one: Infer, infer: Infer) -> None:
    fallback = graph("f64[2]", apply("neg", 0))
    assert one("custom", np.ones(2), name="mine", scopes=(fallback,)).tolist() == [-1, -1]
    with pytest.raises(TypeMismatch, match="custom mine: the parameters of the fallback"):
        infer("custom", "f32[2]", name="mine", scopes=(fallback,))


def watched() -> tuple[Any, Any]:
    array = np.zeros(1000)
    return array, weakref.ref(array)


def test_while_lets_the_old_carry_go_while_the_body_runs() -> None:
    condition = graph("f64[1000]", lambda b, v: [])
    body = graph("f64[1000]", apply("neg", 0))
    first, alive = watched()
    inputs = [first]
    del first
    running = TABLE["while"].reference(inputs, (condition, body), captures=0)
    reply: list[Any] | None = None
    for _ in range(3):
        wish = running.send(reply)
        reply = None
        assert isinstance(wish, ScopeRequest)
        assert wish.graph is condition
        wish.arguments.clear()
        wish = running.send([np.array(True)])
        assert wish.graph is body
        assert len(wish.arguments) == 1
        wish.arguments.clear()
        gc.collect()
        assert alive() is None, "the loop keeps a carry that the body has let go of"
        carry, alive = watched()
        reply = [carry]
        del carry


def test_scan_lets_the_old_carry_and_outputs_go_while_the_body_runs() -> None:
    body = graph("f64[1000] f64", lambda b, v: [v[0], v[0]])
    first, alive = watched()
    running = TABLE["scan"].reference(
        [first, np.zeros(3)],
        (body,),
        captures=0,
        carries=1,
        length=3,
        reverse=False,
        unroll=1,
    )
    del first
    reply: list[Any] | None = None
    output = alive
    for _ in range(3):
        wish = running.send(reply)
        reply = None
        wish.arguments.clear()
        gc.collect()
        assert alive() is None
        assert output() is None
        carry, alive = watched()
        made, output = watched()
        reply = [carry, made]
        del carry, made


def test_effects_ask_the_host() -> None:
    x = np.ones(2)
    given = {"name": "watch", "default": -1, "structure": "*"}
    running = TABLE["hook"].reference([x], (), **given)
    wish = next(running)
    assert wish == HostRequest("hook", given, [x])
    with pytest.raises(StopIteration) as end:
        running.send([])
    assert end.value.value == ()
    given = {"name": "f", "default": 0, "structure": "*", "types": ("f64[2]",)}
    running = TABLE["call_host"].reference([x], (), **given)
    assert next(running).op == "call_host"
    with pytest.raises(StopIteration) as end:
        running.send([x])
    (result,) = end.value.value
    assert result is not x
    assert result.tolist() == [1, 1]


def test_effects_are_never_merged() -> None:
    builder = Builder(TABLE)
    x = builder.parameter(parse_type("f32"))
    for _ in range(2):
        builder.node("print", [x], {"label": "x", "structure": "*"})
        builder.node(
            "call_host", [x], {"name": "f", "default": 0, "structure": "*", "types": ("f32",)}
        )
    made = builder.finish([])
    assert [n.op for n in made.nodes] == ["print", "call_host"] * 2
    assert made.effects == (0, 1, 2, 3)
