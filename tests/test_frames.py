"""Tracebacks show the user's frames, and warnings point at the user's line."""

from __future__ import annotations

import os
import pickle
import subprocess
import sys
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tenfold as tn
from tenfold import frames
from tenfold.api.specialised import SpecialisedFunction

OURS = os.path.dirname(tn.__file__) + os.sep
x = np.arange(4.0)


def mismatched(x: Any) -> Any:
    return x + np.ones(3)


def broken(*args: Any) -> Any:
    raise LookupError("the user's own")


def wrapped(x: Any) -> Any:
    try:
        return mismatched(x)
    except ValueError as error:
        raise RuntimeError("wrapped") from error


def replaced(x: Any) -> Any:
    try:
        return mismatched(x)
    except ValueError:
        return {}["missing"]


def known(**given: Any) -> Any:
    """A function that native code answers already, given something else."""
    f = tn.jit(lambda x: x["a"] + np.ones(4))
    for _ in range(2):
        f({"a": x})
    return f(given)


def known_by_position(x: Any) -> Any:
    f = tn.jit(lambda x, y: x + y)
    f(np.ones(4), np.ones(4))
    return f(x=x, y=np.ones(3))


plan = tn.jit(lambda x: x + 1).plan(x)
lazy = tn.asarray(x)
many = np.ones((2, 4))
scalar = tn.spec((), "float64")

# What is called, and the names of the user's frames beneath the call.
CASES: dict[str, tuple[Callable[[], Any], list[str]]] = {
    "tracing": (lambda: tn.jit(mismatched)(x), ["mismatched"]),
    "a number of arguments": (lambda: tn.jit(mismatched)(x, x), []),
    "a call that native code declines": (lambda: known(a=np.ones(3)), ["known", "<lambda>"]),
    "a call by keywords": (lambda: known_by_position(x), ["known_by_position", "<lambda>"]),
    "the user's own": (lambda: tn.jit(broken)(x), ["broken"]),
    "a nested function": (lambda: tn.jit(tn.jit(broken))(x), ["broken"]),
    "a cause": (lambda: tn.jit(wrapped)(x), ["wrapped"]),
    "a context": (lambda: tn.jit(replaced)(x), ["replaced"]),
    "hook": (lambda: tn.jit(lambda x: tn.hook("h", x, broken))(x), ["broken"]),
    "host call": (lambda: tn.jit(lambda x: tn.call_host(broken, scalar, x))(x), ["broken"]),
    "hook at once": (lambda: tn.hook("h", x, broken), ["broken"]),
    "other hooks": (
        lambda: tn.jit(lambda x: tn.hook("h", x)).with_hooks({"h": broken})(x),
        ["broken"],
    ),
    "vmap": (lambda: tn.vmap(mismatched)(many), ["mismatched"]),
    "vmap in jit": (lambda: tn.jit(tn.vmap(mismatched))(many), ["mismatched"]),
    "scan": (lambda: tn.scan(broken, 0.0, x), ["broken"]),
    "scan in jit": (lambda: tn.jit(lambda x: tn.scan(broken, 0.0, x))(x), ["<lambda>", "broken"]),
    "a body of other arguments": (lambda: tn.scan(mismatched, 0.0, x), []),
    "a call of other arguments": (lambda: tn.scan(mismatched), []),
    "while": (lambda: tn.while_loop(lambda s: s < 3, broken, 0), ["broken"]),
    "cond": (lambda: tn.cond(True, mismatched, np.sin, x), ["mismatched"]),
    "custom": (lambda: tn.custom("mine", mismatched)(x), ["mismatched"]),
    "parity": (lambda: tn.parity(mismatched, x), ["mismatched"]),
    "bisect": (lambda: tn.bisect(mismatched, x), ["mismatched"]),
    "trace": (lambda: tn.trace(mismatched, x), ["mismatched"]),
    "plan": (lambda: tn.jit(mismatched).plan(x), ["mismatched"]),
    "a loaded plan": (lambda: plan(np.ones(3)), []),
    "a file that is none": (lambda: tn.load(__file__), []),
    "an option": (lambda: tn.jit(mismatched, compile="soon"), []),
    "what is no function": (lambda: tn.jit(static="n")(3), []),
    "lazy operator": (lambda: lazy + np.ones(3), []),
    "lazy operator, other side": (lambda: np.ones(3) + lazy, []),
    "lazy ufunc": (lambda: np.add(lazy, np.ones(3)), []),
    "lazy function": (lambda: np.concatenate([lazy, lazy[None]]), []),
    "lazy method": (lambda: lazy.reshape(3), []),
    "lazy index": (lambda: lazy[7], []),
    "lazy namespace": (lambda: tn.add(lazy, np.ones(3)), []),
    "lazy linalg": (lambda: tn.linalg.cholesky(lazy), []),
    "lazy value": (lambda: float(tn.linalg.inv(tn.zeros((2, 2)))[0, 0]), []),
    "traced value": (lambda: tn.jit(lambda x: float(x[0]))(x), ["<lambda>"]),
    "random": (lambda: tn.random.uniform(3.5, (2,)), []),
    "attribute": (lambda: tn.jit(lambda x: x.nothing)(x), ["<lambda>"]),
}


def trail(error: BaseException) -> list[traceback.FrameSummary]:
    return list(traceback.extract_tb(error.__traceback__))


@pytest.mark.parametrize("name", CASES)
def test_tracebacks_have_the_user_s_frames_alone(name: str) -> None:
    call, beneath = CASES[name]
    with pytest.raises(Exception) as caught:
        call()
    names = [frame.name for frame in trail(caught.value)]
    assert names == [test_tracebacks_have_the_user_s_frames_alone.__name__, "<lambda>", *beneath]
    shown = "".join(traceback.format_exception(caught.value))
    assert OURS not in shown.replace(f"{OURS}apps", "")


@pytest.mark.parametrize("name", ["a cause", "a context"])
def test_what_led_to_an_error_stays(name: str) -> None:
    with pytest.raises((RuntimeError, KeyError)) as caught:
        CASES[name][0]()
    before = caught.value.__context__
    assert isinstance(before, tn.TenfoldError)
    assert (before is caught.value.__cause__) == (name == "a cause")
    assert [frame.name for frame in trail(before)][-1] == "mismatched"


def test_what_declined_a_call_is_not_among_what_led_to_an_error() -> None:
    with pytest.raises(ValueError) as caught:
        known(a=np.ones(3))
    assert caught.value.__context__ is None


def test_full_tracebacks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tn.config, "traceback", "full")
    with pytest.raises(ValueError) as caught:
        tn.jit(mismatched)(x)
    assert any(frame.filename.startswith(OURS) for frame in trail(caught.value))


def test_the_environment_asks_for_full_tracebacks() -> None:
    code = "import numpy as np, tenfold as tn\ntn.jit(lambda x: x + np.ones(3))(np.ones(4))\n"
    said = {}
    for value in ("short", "full"):
        env = {**os.environ, "TENFOLD_TRACEBACK": value}
        found = subprocess.run([sys.executable, "-c", code], env=env, capture_output=True)
        said[value] = found.stderr.decode()
    assert "ShapeError" in said["short"]
    assert OURS not in said["short"]
    assert OURS in said["full"]


@pytest.mark.parametrize("kind", [KeyError, AssertionError, TypeError])
def test_a_fault_of_ours_keeps_every_frame(
    kind: type[Exception], monkeypatch: pytest.MonkeyPatch
) -> None:
    def faulty(self: Any, call: Any) -> Any:
        raise kind("ours")

    place = Path(OURS) / "api" / "specialised.py"
    faulty.__code__ = faulty.__code__.replace(co_filename=str(place))
    monkeypatch.setattr(SpecialisedFunction, "_ready", faulty)
    with pytest.raises(kind) as caught:
        tn.jit(mismatched)(x)
    names = [frame.name for frame in trail(caught.value)]
    assert names[-1] == "faulty"
    assert {"__call__", "_call", "_run", "_outputs"} <= set(names)


def test_public_functions_pickle() -> None:
    for function in (tn.add, tn.cond, tn.vmap, tn.random.uniform, tn.linalg.inv):
        assert pickle.loads(pickle.dumps(function)) is function


def test_an_entry_stands_for_its_function() -> None:
    def f(x: int) -> int:
        "Says what it does."
        return x + 1

    made = frames.entry(f)
    assert (made(1), made.__name__, made.__doc__) == (2, "f", f.__doc__)
