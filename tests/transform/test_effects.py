"""Hooks, prints and host calls under vmap: once for each active lane, in order."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tenfold as tn

N = np.array([3, 0, 2])


class Log(list[Any]):
    """Hooks that keep what they are given."""

    def under(self, name: str) -> Any:
        return lambda x: self.append((name, np.asarray(x).tolist()))


def test_a_hook_is_called_for_each_lane_in_order() -> None:
    log = Log()

    def f(x: Any) -> Any:
        tn.hook("first", x, log.under("first"))
        tn.hook("then", {"y": x + 1}, lambda v: log.append(("then", v["y"].tolist())))
        return x * 2

    assert tn.vmap(f)(np.array([[1, 2], [3, 4]])).tolist() == [[2, 4], [6, 8]]
    assert log == [("first", [1, 2]), ("first", [3, 4]), ("then", [2, 3]), ("then", [4, 5])]


def test_a_hook_on_what_all_lanes_share_is_called_for_each_too() -> None:
    log = Log()
    tn.vmap(lambda x: (tn.hook("c", 7, log.under("c")), x))(N)
    assert log == [("c", 7)] * 3
    log.clear()
    tn.vmap(lambda x, y: (tn.hook("y", y, log.under("y")), x), in_axes=(0, None))(N, np.ones(1))
    assert log == [("y", [1])] * 3


def test_hooks_see_active_lanes_only() -> None:
    log = Log()

    def f(n: Any) -> Any:
        def some() -> Any:
            return tn.hook("some", n, log.under("some")) * 10

        def other() -> Any:
            return tn.hook("other", n, log.under("other"))

        return tn.cond(n > 1, some, other)

    assert tn.vmap(f)(N).tolist() == [30, 0, 20]
    assert log == [("other", 0), ("some", 3), ("some", 2)]
    log.clear()
    assert tn.vmap(f)(N + 5).tolist() == [80, 50, 70]
    assert log == [("some", 8), ("some", 5), ("some", 7)]


def test_hooks_in_a_loop_that_lanes_leave() -> None:
    log = Log()

    def f(n: Any) -> Any:
        more = lambda s: tn.hook("ask", s, log.under("ask")) > 0  # noqa: E731
        return tn.while_loop(more, lambda s: tn.hook("do", s - 1, log.under("do")), n)

    assert tn.vmap(f)(N).tolist() == [0, 0, 0]
    assert log == [
        *[("ask", 3), ("ask", 0), ("ask", 2)],
        *[("do", 2), ("do", 1), ("ask", 2), ("ask", 1)],
        *[("do", 1), ("do", 0), ("ask", 1), ("ask", 0)],
        *[("do", 0), ("ask", 0)],
    ]


def test_hooks_in_a_loop_that_lanes_share() -> None:
    log = Log()

    def f(n: Any) -> Any:
        def body(i: Any, s: Any) -> Any:
            tn.hook("i", i, log.under("i"))
            return tn.hook("s", s + i, log.under("s"))

        return tn.fori_loop(0, 2, body, n)

    tn.vmap(f)(N)
    assert log == [
        *[("i", 0)] * 3,
        *[("s", 3), ("s", 0), ("s", 2)],
        *[("i", 1)] * 3,
        *[("s", 4), ("s", 1), ("s", 3)],
    ]


def test_a_loop_that_all_lanes_share_and_that_has_a_hook() -> None:
    log = Log()
    count = lambda: tn.while_loop(lambda s: s < 2, lambda s: tn.hook("c", s + 1, log.under("c")), 0)  # noqa: E731
    assert tn.vmap(lambda n: n + count())(N).tolist() == [5, 2, 4]
    assert log == [("c", 1)] * 3 + [("c", 2)] * 3


def test_each_lane_sees_its_own_calls_in_order() -> None:
    def program(log: Log) -> Any:
        def f(k: Any, n: Any) -> Any:
            see = lambda name, v: tn.hook(name, np.stack([k, v]), log.under(name))  # noqa: E731

            def body(s: Any) -> Any:
                see("body", s)
                tn.cond(s % 2 == 0, lambda: see("even", s), lambda: see("odd", s))
                tn.scan(lambda c, v: (see("scan", c)[1] + v, ()), s, np.arange(2))
                return s - 1

            see("start", n)
            end = tn.while_loop(lambda s: s > 0, body, n)
            see("end", end)
            return end

        return f

    together, alone = Log(), Log()
    lanes = np.arange(3)
    tn.vmap(program(together))(lanes, N)
    one = tn.jit(program(alone))
    for k, n in zip(lanes, N, strict=True):
        one(k, n)
    for k in lanes:
        own = [(name, v) for name, v in together if v[0] == k]
        assert own == [(name, v) for name, v in alone if v[0] == k]


def test_hooks_of_nested_vmaps() -> None:
    log = Log()

    def f(a: Any) -> Any:
        see = lambda b: tn.hook("h", a * 10 + b, log.under("h"))  # noqa: E731
        return tn.vmap(lambda b: tn.cond(a > b, lambda: see(b), lambda: 0))(N)

    want = [[int(a * 10 + b) if a > b else 0 for b in N] for a in N]
    assert tn.vmap(f)(N).tolist() == want
    assert sorted(v for _, v in log) == sorted(v for row in want for v in row if v)
    for b in N:  # inner lane after inner lane, within it the outer ones in order
        own = [v for _, v in log if v % 10 == b]
        assert own == [int(a * 10 + b) for a in N if a > b]


def test_hooks_by_name_inside_jit() -> None:
    log = Log()
    f = tn.jit(tn.vmap(lambda n: tn.hook("h", n, log.under("default")) + 1))
    f(N)
    f.with_hooks({"h": log.under("mine")})(N)
    f.with_hooks({"h": None})(N)
    assert log == [("default", n) for n in N] + [("mine", n) for n in N]


def test_print(capsys: pytest.CaptureFixture[str]) -> None:
    tn.vmap(lambda n: tn.cond(n > 0, lambda: tn.print(n, label="n"), lambda: n))(N)
    assert capsys.readouterr().out == "n: 3\nn: 2\n"


def test_call_host_for_each_lane() -> None:
    calls: list[Any] = []

    def host(x: Any, n: Any) -> Any:
        calls.append((x.tolist(), n.tolist()))
        return x * n, n

    types = (tn.spec(2, "float64"), tn.spec((), "int64"))
    x = np.array([1.0, 2.0])
    f = tn.vmap(lambda n, x: tn.call_host(host, types, x, n), in_axes=(0, None))
    made, same = f(N, x)
    assert made.tolist() == [[3, 6], [0, 0], [2, 4]]
    assert same.tolist() == N.tolist()
    assert calls == [([1, 2], n) for n in N]


def test_call_host_in_active_lanes_only(compare: Any) -> None:
    def host(n: Any) -> Any:
        if n == 0:
            raise ZeroDivisionError("the host was asked about 0")
        return np.asarray(60 // n)

    ask = lambda n: tn.call_host(host, tn.spec((), "int64"), n)  # noqa: E731
    f = lambda n: tn.cond(n != 0, lambda: ask(n), lambda: -1)  # noqa: E731
    assert compare(f, N).tolist() == [20, -1, 30]
    with pytest.raises(ZeroDivisionError) as caught:
        tn.vmap(ask)(N)
    assert f"{__file__}:" in caught.value.__notes__[0]


def test_a_host_that_answers_each_call_anew() -> None:
    answers = iter(range(100))
    draw = lambda: tn.call_host(lambda: next(answers), tn.spec((), "int64"))  # noqa: E731
    got = tn.vmap(lambda n: (n, draw()))(N)
    assert got[1].tolist() == [0, 1, 2]
    total = lambda n: tn.fori_loop(0, 2, lambda i, s: s + draw(), 0)  # noqa: E731
    assert tn.vmap(total)(N).tolist() == [3 + 6, 4 + 7, 5 + 8]


def test_an_effect_inside_reduce() -> None:
    log = Log()

    def f(x: Any, n: Any) -> Any:
        add = lambda a, b: tn.hook("a", a, log.under("a")) + b  # noqa: E731
        return tn.cond(n > 0, lambda: tn.reduce(add, x, 100), lambda: 0)

    x = np.arange(6).reshape(3, 2)
    assert tn.vmap(f)(x, N).tolist() == [101, 0, 109]
    assert log == [("a", 100), ("a", 100), ("a", 100), ("a", 104)]
