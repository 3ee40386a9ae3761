"""Hooks, prints and host calls: in order, once each time they are reached, never dropped."""

from __future__ import annotations

import traceback
from collections import namedtuple
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tenfold as tn
from tenfold.errors import HookError
from tenfold.reference import Callbacks, evaluate

Pair = namedtuple("Pair", "left right")


class Log(list[Any]):
    """A hook that keeps what it is given, as lists of numbers."""

    def under(self, name: str) -> Callable[[Any], None]:
        return lambda x: self.append((name, np.asarray(x).tolist()))


# -- hook


def test_a_hook_leaves_its_value_and_the_program_unchanged() -> None:
    log = Log()
    f = tn.jit(lambda x: tn.hook("twice", x * 2, log.under("twice")) + 1)
    assert f(np.array([1.0, 2.0])).tolist() == [3, 5]
    assert log == [("twice", [2, 4])]
    x = np.ones(2)
    assert tn.hook("at once", x, log.under("at once")) is x
    assert log[1] == ("at once", [1, 1])


def test_default_override_added_and_silenced() -> None:
    log = Log()

    def program(x: Any) -> Any:
        tn.hook("a", x, log.under("default"))
        tn.hook("b", x + 1)
        return x

    f = tn.jit(program)
    f(1)
    assert log == [("default", 1)]
    log.clear()
    f.with_hooks({"a": log.under("mine"), "b": log.under("added")})(1)
    assert log == [("mine", 1), ("added", 2)]
    log.clear()
    f.with_hooks({"a": None})(1)
    assert log == []
    f(1)
    assert log == [("default", 1)]
    assert f.traces == 1


def test_a_subset_of_hooks_is_replaced() -> None:
    log = Log()

    def program(x: Any) -> Any:
        for name in ("a", "b", "c"):
            x = tn.hook(name, x + 1, log.under(name))
        return x

    f = tn.jit(program)
    f.with_hooks({"b": log.under("other")})(0)
    assert log == [("a", 1), ("other", 2), ("c", 3)]


def test_a_hook_on_a_container() -> None:
    seen: list[Any] = []
    f = tn.jit(
        lambda x: tn.hook("c", {"p": Pair(x, [x + 1]), "name": "n", "none": None}, seen.append)
    )
    result = f(np.array([1.0]))
    assert seen == [result]
    assert isinstance(seen[0]["p"], Pair)
    assert result["p"].right[0] == 2


def test_hooks_inside_hooks() -> None:
    log = Log()

    def program(x: Any) -> Any:
        inner = tn.hook("inner", x * 2, log.under("inner"))
        return tn.hook("outer", inner + tn.hook("beside", x), log.under("outer"))

    f = tn.jit(program)
    assert f(3) == 9
    assert log == [("inner", 6), ("outer", 9)]
    log.clear()
    f.with_hooks({"beside": log.under("beside"), "outer": None})(3)
    assert log == [("inner", 6), ("beside", 3)]


def test_the_same_hook_twice_is_called_twice() -> None:
    log = Log()
    hook = log.under("h")

    def program(x: Any) -> Any:
        tn.hook("h", x, hook)
        tn.hook("h", x, hook)
        return x

    tn.jit(program)(1)
    assert log == [("h", 1), ("h", 1)]


def test_hooks_in_loops_and_branches_in_order() -> None:
    log = Log()

    def program(x: Any) -> Any:
        def body(i: Any, s: Any) -> Any:
            tn.hook("i", i, log.under("i"))
            even = lambda: tn.hook("even", s + 1, log.under("even"))  # noqa: E731
            return tn.cond(i % 2 == 0, even, lambda: tn.hook("odd", s * 3, log.under("odd")))

        tn.hook("before", x, log.under("before"))
        out = tn.fori_loop(0, 3, body, x)
        tn.hook("after", out, log.under("after"))
        return x

    assert tn.jit(program)(1) == 1
    assert log == [
        ("before", 1),
        ("i", 0),
        ("even", 2),
        ("i", 1),
        ("odd", 6),
        ("i", 2),
        ("even", 7),
        ("after", 7),
    ]


def test_effects_of_a_loop_whose_result_is_unused_still_happen() -> None:
    log = Log()

    def program(x: Any) -> Any:
        tn.while_loop(lambda s: s < 3, lambda s: tn.hook("s", s + 1, log.under("s")), x)
        tn.map(lambda row: tn.hook("row", row, log.under("row")), np.arange(2))
        return x

    tn.jit(program)(1)
    assert log == [("s", 2), ("s", 3), ("row", 0), ("row", 1)]


def test_a_hook_in_a_condition_is_called_once_more_than_the_body() -> None:
    log = Log()
    f = tn.jit(
        lambda x: tn.while_loop(lambda s: tn.hook("c", s, log.under("c")) < 2, lambda s: s + 1, x)
    )
    assert f(0) == 2
    assert log == [("c", 0), ("c", 1), ("c", 2)]


def test_a_hook_can_change_nothing() -> None:
    kept: list[Any] = []

    def spoil(x: Any) -> None:
        kept.append(x)
        x[:] = 100

    given = np.array([1.0, 2.0])
    f = tn.jit(lambda x: tn.hook("spoil", x, spoil) + tn.hook("spoil", x * 1, spoil))
    assert f(given).tolist() == [2, 4]
    assert given.tolist() == [1, 2]
    assert [k.tolist() for k in kept] == [[100, 100], [100, 100]]


def test_a_raising_callback_reaches_the_caller_and_leaves_everything_usable() -> None:
    def fail(x: Any) -> None:
        raise LookupError("mine")  # the line meant

    def program(x: Any) -> Any:
        return tn.fori_loop(0, 3, lambda i, s: tn.hook("h", s + 1, fail), x)

    f = tn.jit(program)
    for _ in range(2):
        with pytest.raises(LookupError, match="mine") as caught:
            f(1)
        frames = traceback.extract_tb(caught.value.__traceback__)
        assert frames[-1].name == "fail"
        assert "the line meant" in (frames[-1].line or "")
        assert f"{__file__}:{program.__code__.co_firstlineno + 1}" in caught.value.__notes__[0]
    assert f.with_hooks({"h": None})(1) == 4
    assert f.traces == 1
    with pytest.raises(LookupError):
        tn.hook("at once", 1, fail)
    assert tn.fori_loop(0, 2, lambda i, s: s + 1, 0) == 2


def test_a_callback_may_run_programs_of_its_own() -> None:
    log = Log()
    inner = tn.jit(lambda x: x * 10)
    f = tn.jit(lambda x: tn.hook("h", x, lambda v: log.append(inner(v).tolist())) + 1)
    assert f(np.array([1.0])).tolist() == [2]
    assert log == [[10]]


def test_a_graph_alone_holds_no_callables() -> None:
    graph = tn.trace(lambda x: tn.hook("h", x, lambda v: None) + 1, 1)
    with pytest.raises(HookError, match="hook 'h' has no callable"):
        evaluate(graph, [1])
    log = Log()
    assert evaluate(graph, [1], Callbacks((), {"h": log.under("h")}))[0] == 2
    assert log == [("h", 1)]
    assert evaluate(graph, [1], Callbacks((), {"h": None}))[0] == 2
    assert tn.Graph.from_bytes(graph.to_bytes()) == graph


# -- print


def test_print_with_a_label_and_with_a_mapping(capsys: pytest.CaptureFixture[str]) -> None:
    def program(x: Any) -> Any:
        y = tn.print(x * 2, label="y")
        tn.print(y)
        return tn.print(y, label="sum", map=np.sum)

    assert tn.jit(program)(np.array([1.0, 2.0])).tolist() == [2, 4]
    assert capsys.readouterr().out == "y: [2. 4.]\n[2. 4.]\nsum: 6.0\n"
    x = {"a": np.ones(1)}
    assert tn.print(x, label="x") is x
    assert capsys.readouterr().out == "x: {'a': array([1.])}\n"


def test_print_in_a_loop(capsys: pytest.CaptureFixture[str]) -> None:
    tn.jit(lambda: tn.fori_loop(0, 3, lambda i, s: tn.print(s + i, label="s"), 0))()
    assert capsys.readouterr().out == "s: 0\ns: 1\ns: 3\n"


# -- call_host


def test_call_host_gives_what_the_function_gives() -> None:
    f = tn.jit(lambda x: tn.call_host(np.median, tn.spec((), "float64"), x) + x)
    assert f(np.array([3.0, 1, 2])).tolist() == [5, 3, 4]
    assert tn.call_host(np.median, tn.spec((), "float64"), np.array([3.0, 1, 2])) == 2


def test_call_host_in_containers() -> None:
    def host(pair: Pair, scale: Any) -> Any:
        return {"low": pair.left * scale, "high": (pair.right,)}

    types = {"low": tn.spec(2, "float64"), "high": (tn.spec(2, "float64"),)}
    f = tn.jit(lambda a, b: tn.call_host(host, types, Pair(a, b), 3))
    made = f(np.ones(2), np.zeros(2))
    assert made["low"].tolist() == [3, 3]
    assert made["high"][0].tolist() == [0, 0]


def test_host_calls_are_neither_merged_nor_dropped() -> None:
    calls: list[Any] = []

    def host(x: Any) -> Any:
        calls.append(x.tolist())
        return x

    def program(x: Any) -> Any:
        call = lambda: tn.call_host(host, tn.spec((), "int64"), x)  # noqa: E731
        call()
        return call() + call()

    assert tn.jit(program)(2) == 4
    assert calls == [2, 2, 2]


def test_a_number_takes_the_dtype_that_is_declared() -> None:
    for dtype in ("float32", "bfloat16", "uint8"):
        made = tn.call_host(lambda: 1, tn.spec((), dtype))
        assert made.dtype == tn.spec((), dtype).dtype
    with pytest.raises(tn.TenfoldError, match="result 0 is f64, i32 declared"):
        tn.call_host(lambda: 1.5, tn.spec((), "int32"))
    with pytest.raises(OverflowError, match="300 does not fit uint8"):
        tn.call_host(lambda: 300, tn.spec((), "uint8"))


@pytest.mark.parametrize(
    ("host", "message"),
    [
        (lambda x: x.astype("f4"), r"call_host 'f': result 0 is f32\[2\], f64\[2\] declared"),
        (lambda x: x[:1], r"result 0 is f64\[1\], f64\[2\] declared"),
        (lambda x: (x, x), r"the function gave \(\*, \*\), \* declared"),
        (lambda x: None, r"the function gave None, \* declared"),
    ],
)
def test_a_host_call_that_gives_something_else(host: Any, message: str) -> None:
    with pytest.raises(tn.TenfoldError, match=message) as caught:
        tn.call_host(host, tn.spec(2, "float64"), np.ones(2), name="f")
    assert __file__ in str(caught.value)


def test_a_host_call_replaced_by_its_name() -> None:
    f = tn.trace(
        lambda x: tn.call_host(np.sum, tn.spec((), "float64"), x, name="total"), np.ones(2)
    )
    with pytest.raises(HookError, match="host call 'total'"):
        evaluate(f, [np.ones(2)])
    assert evaluate(f, [np.ones(2)], Callbacks((), {"total": np.prod}))[0] == 1
