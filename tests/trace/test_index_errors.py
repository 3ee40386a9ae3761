"""Errors of x[key] say which array x is: its name, or the line that made it; its type, the axis."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tenfold as tn
from tenfold.errors import TenfoldError

X = np.arange(4.0)
W = np.arange(20.0)


def made(x: Any) -> Any:
    h = x * 2
    return h[1, 2]


def assigned(x: Any) -> Any:
    h = x * 2
    h[1:3] = np.ones(3)
    return h


def again(x: Any, i: Any) -> Any:
    f = tn.jit(lambda x, i: x[i])
    for _ in range(3):
        f(x, 1)
    return f(x, i)


MADE = f"f64[4], made at {Path(__file__)}:{made.__code__.co_firstlineno + 1}, in made: h = x * 2"
ASSIGNED = f"f64[4], made at {Path(__file__)}:{assigned.__code__.co_firstlineno + 1}, in assigned"

CASES: dict[str, tuple[Callable[[], Any], str, str]] = {
    "argument": (lambda: tn.jit(lambda x: x[7])(X), "x, f64[4]", "axis 0"),
    "part of one": (
        lambda: tn.jit(lambda p: p["w"][:, 7])({"w": np.ones((2, 3))}),
        "p['w'], f64[2,3]",
        "axis 1",
    ),
    "an array of places": (lambda: tn.jit(lambda x: x[[1, 7]])(X), "x, f64[4]", "axis 0"),
    "captured": (lambda: tn.jit(lambda x: tn.asarray(W)[77] + x)(X), "W, f64[20]", "axis 0"),
    "made": (lambda: tn.jit(made)(X), MADE, "2 indices"),
    "assigned": (lambda: tn.jit(assigned)(X), ASSIGNED, "(2,)"),
    "a mask": (lambda: tn.jit(lambda x: x[np.ones(3, bool)])(X), "x, f64[4]", "(3,)"),
    "a string": (lambda: tn.jit(lambda x: x["a"])(X), "x, f64[4]", "str"),
    "a traced bound": (lambda: tn.jit(lambda x, n: x[:n])(X, 2), "x, f64[4]", "axis 0"),
    "a step of 0": (lambda: tn.jit(lambda x: x[::0])(X), "x, f64[4]", "axis 0"),
    "a bound that is no integer": (lambda: tn.jit(lambda x: x[1.5:])(X), "x, f64[4]", "axis 0"),
    "lazy": (lambda: tn.asarray(X)[7], "f64[4]", "axis 0"),
    "when it runs": (lambda: tn.jit(lambda x, i: x[i])(X, 9), "x, f64[4]", "axis 0"),
    "when native code runs": (lambda: again(X, 9), "x, f64[4]", "axis 0"),
    "in the reference": (
        lambda: tn.jit(lambda x, i: x[i], compile="never")(X, 9),
        "x, f64[4]",
        "axis 0",
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_the_array_is_named(name: str) -> None:
    call, array, axis = CASES[name]
    with pytest.raises(TenfoldError) as caught:
        call()
    lines = str(caught.value).splitlines()
    assert axis in lines[0]
    assert lines[1].startswith(f"  the array is {array}")
    assert lines[2].startswith(f"  at {Path(__file__)}")
