"""`tn.config.disable` has functions run as they are written: values in bodies, no tracing."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

import tenfold as tn
from tenfold.errors import ShapeError, TenfoldError, TypeMismatch, ValueProblem
from tenfold.trace.scope import current

X = np.arange(4.0)
M = np.arange(12.0).reshape(3, 4)

seen: list[Any] = []


def met(x: Any) -> Any:
    """Notes what a body is given while nothing is traced."""
    if tn.config.disable:
        assert current() is None
        seen.append(x)
    return x


@pytest.fixture
def disabled(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    seen.clear()
    monkeypatch.setattr(tn.config, "disable", True)
    yield
    tn.config.disable = False


def newton(x: Any) -> Any:
    return tn.while_loop(lambda y: np.abs(y * y - x) > 1e-9, lambda y: met((y + x / y) / 2), x)


halve = tn.custom("halve", lambda x: met(x) / 2)

PROGRAMS: dict[str, tuple[Callable[..., Any], tuple[Any, ...]]] = {
    "plain": (lambda x: met(x) * 2, (X,)),
    "containers": (lambda p: {"a": (met(p["x"]) + 1, [p["y"]])}, ({"x": X, "y": 2.0},)),
    "nested": (lambda x: tn.jit(lambda y: met(y) + 1)(x) * 2, (X,)),
    "cond": (lambda x: tn.cond(x.sum() > 1, lambda y: met(y) * 2, lambda y: y, x), (X,)),
    "switch": (lambda x: tn.switch(7, [np.sin, lambda y: met(y) - 1], x), (X,)),
    "while": (newton, (np.array(4.0),)),
    "for": (lambda x: tn.fori_loop(1, 4, lambda i, y: met(y) * i, x), (X,)),
    "scan": (lambda x: tn.scan(lambda c, v: (met(c + v), c * 2), 0.0, x), (X,)),
    "scan backwards": (
        lambda x: tn.scan(lambda c, v: (met(c + v), {"y": c}), np.zeros(4), x, reverse=True),
        (M,),
    ),
    "scan of a length": (lambda x: tn.scan(lambda c, _: (met(c) + 1, None), x, length=3), (X,)),
    "scan of nothing": (lambda x: tn.scan(lambda c, v: (c + v, v), 0.0, x), (met(X[:0]),)),
    "map": (lambda x: tn.map(lambda row: met(row) / 2, x), (M,)),
    "reduce": (lambda x: tn.reduce(lambda a, b: np.maximum(met(a), b), x, 0.0, axis=1), (M,)),
    "reduce all": (lambda x: tn.reduce(lambda a, b: met(a) + b, x, 1.0), (M,)),
    "vmap": (lambda x: tn.vmap(lambda row: met(row).sum())(x), (M,)),
    "vmap of axes": (
        lambda x, y: tn.vmap(lambda a, b: (met(a) + b, b), (1, None), (-1, None))(x, y),
        (M, np.ones(3)),
    ),
    "vmap of no lanes": (lambda x: tn.vmap(lambda row: row.sum())(x), (met(M[:0]),)),
    "vmap of jit": (lambda x: tn.vmap(tn.jit(lambda row: met(row).sum()))(x), (M,)),
    "custom": (lambda x: halve(x) + 1, (X,)),
    "hook": (lambda x: tn.hook("h", met(x) * 2, lambda v: None) + 1, (X,)),
    "host call": (lambda x: tn.call_host(np.median, tn.spec((), "float64"), met(x)), (X,)),
    "random": (lambda k: tn.random.uniform(met(k), (3,)), (tn.random.key(3),)),
    "lazy arrays": (lambda x: tn.zeros((4,)) + met(x), (X,)),
    "array API": (lambda x: tn.sum(tn.concat([met(x), x])), (X,)),
}


def same(a: Any, b: Any) -> None:
    if isinstance(a, dict):
        assert a.keys() == b.keys()
        a, b = list(a.values()), list(b.values())
    if isinstance(a, (list, tuple)):
        assert type(a) is type(b)
        for one, other in zip(a, b, strict=True):
            same(one, other)
    elif a is not None:
        assert not isinstance(b, tn.Array)
        np.testing.assert_allclose(b, a, rtol=1e-14)
        assert np.asarray(a).dtype == np.asarray(b).dtype


@pytest.mark.parametrize("name", PROGRAMS)
def test_results_are_the_same_and_bodies_see_values(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    function, args = PROGRAMS[name]
    f = tn.jit(function)
    expected = f(*args)
    seen.clear()
    monkeypatch.setattr(tn.config, "disable", True)
    traces = f.traces
    same(expected, f(*args))
    assert f.traces == traces
    assert all(isinstance(x, (np.ndarray, np.generic, float)) for x in seen)
    assert seen or "no" in name


def test_bodies_run_each_round(disabled: None) -> None:
    tn.jit(lambda x: tn.scan(lambda c, v: (met(c + v), c), 0.0, x))(X)
    assert [float(v) for v in seen] == [0, 1, 3, 6]
    seen.clear()
    tn.vmap(lambda row: met(row).sum())(M)
    assert [row.tolist() for row in seen] == M.tolist()


@pytest.mark.parametrize("call", [lambda g: g(X), lambda g: g(x=X), lambda g: g(3.0)])
def test_native_code_takes_no_calls_while_it_is_on(
    call: Callable[[Any], Any], capsys: pytest.CaptureFixture[str]
) -> None:
    def said() -> list[str]:
        return capsys.readouterr().out.split()

    g = tn.jit(lambda x: print(type(x).__name__) or x + 1)
    *_, expected = [call(g) for _ in range(3)]
    assert said() == ["Array"]
    tn.config.disable = True
    try:
        np.testing.assert_array_equal([call(g) for _ in range(3)], [expected] * 3)
        assert said() == ["float" if np.ndim(expected) == 0 else "ndarray"] * 3
        h = tn.jit(lambda x: x * 3)
        h(X)
        assert h.traces == 0
    finally:
        tn.config.disable = False
    slow = tn.stats()["slow_calls"]
    np.testing.assert_array_equal([call(g) for _ in range(3)], [expected] * 3)
    assert said() == []
    assert tn.stats()["slow_calls"] == slow
    h(X)
    assert h.traces == 1


def test_options_are_taken(disabled: None) -> None:
    f = tn.jit(lambda x, n: met(x).reshape(n, -1), static="n", donate="x", strict=True)
    assert f(X, 2).shape == (2, 2)
    g = tn.jit(lambda x: met(x) + 1, buckets={"x": [8]}, compile="background")
    assert g(X).tolist() == [1, 2, 3, 4]
    assert len(seen) == 2


def test_the_caller_s_arrays_stay_as_they_were(disabled: None) -> None:
    """A branch or body has its own, as when it is compiled."""

    def update(y: Any) -> Any:
        y += 1
        return y

    x = X.copy()
    assert tn.cond(True, update, update, x).tolist() == [1, 2, 3, 4]
    assert tn.fori_loop(0, 2, lambda i, y: update(y), x).tolist() == [2, 3, 4, 5]
    assert tn.vmap(update)(M).tolist() == (M + 1).tolist()
    assert tn.scan(lambda c, row: (c, update(row)), 0, M)[1].tolist() == (M + 1).tolist()
    assert x.tolist() == X.tolist()
    assert M[0].tolist() == [0, 1, 2, 3]


def test_hooks_are_replaced_and_silenced(disabled: None) -> None:
    f = tn.jit(lambda x: tn.hook("h", x * 2, seen.append) + 1)
    others: list[Any] = []
    assert f.with_hooks({"h": others.append})(X).tolist() == [1, 3, 5, 7]
    assert (len(seen), len(others)) == (0, 1)
    f.with_hooks({"h": None})(X)
    f(X)
    assert (len(seen), len(others)) == (1, 1)


def test_print(disabled: None, capsys: pytest.CaptureFixture[str]) -> None:
    f = tn.jit(lambda x: tn.print(x, "total", lambda y: met(y).sum()) * 2)
    assert f(X).tolist() == [0, 2, 4, 6]
    assert capsys.readouterr().out == "total: 6.0\n"
    assert isinstance(seen[0], np.ndarray)


def test_a_method_is_given_its_object(disabled: None) -> None:
    class Scale:
        k = 3.0

        @tn.jit
        def scaled(self, x: Any) -> Any:
            return met(x) * self.k

    assert Scale().scaled(X).tolist() == [0, 3, 6, 9]


def test_lazy_arrays_come_back_where_they_are_given(disabled: None) -> None:
    made = tn.jit(lambda x: x + 1)(tn.asarray(X))
    assert isinstance(made, tn.Array)
    assert made.tolist() == [1, 2, 3, 4]


def test_lazy_arrays_reach_bodies_as_numpy_s(disabled: None) -> None:
    lazy = tn.asarray(M)
    tn.scan(lambda c, row: (c, met(row)), 0, lazy)
    tn.vmap(met)(lazy)
    tn.map(met, lazy)
    tn.cond(lazy.sum() > 0, met, met, lazy)
    tn.while_loop(lambda s: False, met, lazy)
    tn.reduce(lambda a, b: met(a) + b, lazy, 0.0)
    assert len(seen) == 3 + 3 + 3 + 1 + 12
    assert all(isinstance(x, (np.ndarray, np.generic)) for x in seen)


def test_a_plan_is_run_by_the_reference(monkeypatch: pytest.MonkeyPatch) -> None:
    plan = tn.jit(lambda x: x * 2 + 1).plan(X)
    for _ in range(3):
        plan(X)
    answered = plan.program.answered
    monkeypatch.setattr(tn.config, "disable", True)
    assert plan(X).tolist() == [1, 3, 5, 7]
    assert plan.program.answered == answered
    with pytest.raises(TypeMismatch, match="this plan was made for"):
        plan(X[:2])


def test_what_is_asked_for_by_name_is_traced_still(disabled: None) -> None:
    f = tn.jit(lambda x: tn.scan(lambda c, v: (c + v, c), 0.0, x))
    assert [node.op for node in f.trace(X).nodes][-1] == "scan"
    assert tn.parity(f, X).agrees


@pytest.mark.parametrize(
    ("call", "kind"),
    [
        (lambda: tn.scan(lambda c, v: c, 0.0, X), TypeMismatch),
        (lambda: tn.scan(lambda c, v: (c, v), 0.0, (X, M)), ShapeError),
        (lambda: tn.scan(lambda c, v: (c, v), 0.0), ValueProblem),
        (lambda: tn.vmap(lambda x: x, 3)(X), ShapeError),
        (lambda: tn.vmap(lambda x: x, 0, None)(X), ValueProblem),
        (lambda: tn.fori_loop(0, 2.5, lambda i, x: x, 1), TypeMismatch),
    ],
)
def test_wrong_uses_are_said(call: Callable[[], Any], kind: type[TenfoldError]) -> None:
    with pytest.raises(kind) as compiled:
        call()
    tn.config.disable = True
    try:
        with pytest.raises(kind) as plain:
            call()
    finally:
        tn.config.disable = False
    assert (plain.value.fix, plain.value.where) == (compiled.value.fix, compiled.value.where)


@pytest.mark.parametrize("value", ["1", "0"])
def test_the_environment_disables(value: str) -> None:
    code = (
        "import numpy as np, tenfold as tn\n"
        "f = tn.jit(lambda x: print(type(x).__name__) or x)\n"
        "f(np.ones(3))\n"
    )
    env = {**os.environ, "TENFOLD_DISABLE": value}
    found = subprocess.run([sys.executable, "-c", code], env=env, capture_output=True, text=True)
    assert found.stdout == ("ndarray\n" if value == "1" else "Array\n")


def test_a_setting_that_is_none() -> None:
    with pytest.raises(ValueProblem, match="disable is 1"):
        tn.config.disable = 1  # type: ignore[assignment]
