"""Every warning points at the user's line: the call that met it, or the first after the background
did."""

from __future__ import annotations

import ast
import time
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from faults import plant
from fresh import forget_code

import tenfold as tn
from tenfold.cache.memory import plans
from tenfold.errors import CompileWarning, RecompileWarning, TraceWarning
from tenfold.parity.check import check

X = np.linspace(0.5, 1.5, 12)


def told(
    category: type[Warning], call: Callable[[], Any], match: str, at: int | None = None
) -> None:
    """Assert that the call warns, once, at this line."""
    with pytest.warns(category, match=match) as seen:
        call()
    (found,) = [w for w in seen if issubclass(w.category, category)]
    assert (found.filename, found.lineno) == (__file__, at or line_of(call))


def line_of(call: Callable[..., Any]) -> int:
    return call.__code__.co_firstlineno


def often(f: Callable[..., Any]) -> None:
    for n in range(1, 12):
        f(np.ones((n, 3)))
        getattr(f, "ready", bool)(60)


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(tn.config, "cache", tmp_path)
    return tmp_path


def waves(wave: Any) -> Any:
    """A function that is another one for each number of rows."""

    def repeated(x: Any) -> Any:
        for _ in range(len(x)):
            x = wave(x)
        return x

    return repeated


def test_compiling_again_and_again(monkeypatch: pytest.MonkeyPatch) -> None:
    forget_code(monkeypatch)
    f = tn.jit(waves(np.sin))
    often(f)
    told(RecompileWarning, lambda: f(np.ones((20, 3))), "12 times")


def test_compiling_again_and_again_in_the_background(monkeypatch: pytest.MonkeyPatch) -> None:
    forget_code(monkeypatch)
    f = tn.jit(waves(np.cos), compile="background")
    often(f)
    f(np.ones((20, 3)))
    assert f.ready(60)
    told(RecompileWarning, lambda: f(np.ones((20, 3))), "12 times")
    f(np.ones((20, 3)))  # without another word


def test_a_compiler_that_fails_in_the_background(monkeypatch: pytest.MonkeyPatch) -> None:
    def failing(*_: Any, **__: Any) -> Any:
        raise RuntimeError("out of order")

    monkeypatch.setattr(plans, "get", failing)
    f = tn.jit(lambda x: x * 2, compile="background")
    f(X)
    assert f.ready(60)
    told(CompileWarning, lambda: f(X), "out of order")


def test_a_plan_that_is_refuted() -> None:
    with plant("instruction", "exp>exp2"):
        f = tn.jit(lambda x: np.exp(x) * 2)
        told(tn.ParityWarning, lambda: f(X), "disagrees")
        g = tn.jit(lambda x: np.exp(x) * 3, compile="background")
        g(X)
        assert g.ready(60)
        told(tn.ParityWarning, lambda: g(X), "disagrees")
        h = tn.asarray(X)
        tn.config.compile = "always"
        try:
            told(tn.ParityWarning, lambda: np.asarray(np.exp(h) * 4), "disagrees")
        finally:
            tn.config.compile = "auto"


def test_a_plan_that_is_refuted_after_it_was_loaded() -> None:
    with plant("instruction", "exp>exp2"):
        f = tn.jit(lambda x: np.exp(x) * 2)
        plan = f.plan(X)
        with pytest.warns(tn.ParityWarning):
            f(X)
        plan.program.told = False  # as in another process
        told(tn.ParityWarning, lambda: plan(X), "disagrees")


def test_a_partial_check_in_strict_mode() -> None:
    def f(x: Any, n: Any) -> Any:
        return tn.cond(n > 0, lambda v: v * 3, lambda v: tn.hook("never", v, print), x)

    g = tn.jit(f, strict=True)
    told(tn.ParityWarning, lambda: g(X, 1), "partial")


def test_a_check_that_fails_in_the_background(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def failing(*given: Any, stop: Any = None, **options: Any) -> Any:
        if stop is not None:
            raise RuntimeError("out of order")
        return check(*given, **options)

    monkeypatch.setattr(import_module("tenfold.parity.check"), "check", failing)
    f = tn.jit(lambda x, y: x - y * 0.5, verify=1e-9)
    f(X, X)
    assert f.ready(60)
    told(tn.ParityWarning, lambda: f(X, X), "stays partial")


def test_a_plan_that_is_not_kept(folder: Path) -> None:
    with plant("frozen"):
        f = tn.jit(lambda x: np.sort(np.cbrt(x) - np.sin(x)))
        told(tn.ParityWarning, lambda: f(X), "not kept")
        g = tn.jit(lambda x: np.sort(np.cbrt(x) + np.cos(x)), compile="background")
        g(X)
        assert g.ready(60)
        told(tn.ParityWarning, lambda: g(X), "not kept")


def test_a_clock() -> None:
    def f(x: Any) -> Any:
        return x * time.time()

    told(TraceWarning, lambda: tn.jit(f)(X), "time.time", line_of(f) + 1)


def test_every_warning_goes_by_the_frames() -> None:
    """Or says its line itself."""
    own = Path(tn.__file__).parent
    asked = [
        path.relative_to(own).as_posix()
        for path in own.rglob("*.py")
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.Attribute)
        and isinstance(node.value, ast.Name)
        and (node.value.id, node.attr) in {("warnings", "warn"), ("warnings", "warn_explicit")}
    ]
    assert sorted(asked) == ["api/captures/clocks.py", "frames.py"]
