"""Every function that is traced, beside NumPy's: on sampled dtypes and shapes, empty and
zero-dimensional ones among them, with axes and keepdims.

Where NumPy raises for a sample, the traced function has to raise as well.
"""

from __future__ import annotations

import inspect
import warnings
from collections.abc import Callable
from functools import wraps
from operator import attrgetter
from typing import Any

import numpy as np
import pytest

import tenfold as tn
from tenfold.trace.containers import flatten
from tenfold.trace.tables import FUNCTIONS, REASONS

from . import algebra, numbers, places, reductions, shapes
from .case import Case

CASES: dict[str, Case] = {
    **reductions.CASES,
    **shapes.CASES,
    **places.CASES,
    **numbers.CASES,
    **algebra.CASES,
}


def _names(function: Any) -> list[str]:
    """The names a function has, such as 'sum' and 'linalg.norm'."""
    found = []
    for prefix in ("", "linalg.", "fft.", "lib.stride_tricks."):
        module = attrgetter(prefix[:-1])(np) if prefix else np
        found += [prefix + n for n in dir(module) if getattr(module, n, None) is function]
    return found


SUPPORTED = [f for f in FUNCTIONS if callable(f) and f not in REASONS]


def test_every_function_has_a_case() -> None:
    missing = [_names(f) for f in SUPPORTED if not any(n in CASES for n in _names(f))]
    assert not missing, f"traced, yet without a case: {missing}"


def _draw(dtype: str, shape: tuple[int, ...], seed: int) -> np.ndarray[Any, Any]:
    dtype, _, nan = dtype.partition(" ")
    random = np.random.default_rng(seed)
    made = np.asarray(random.integers(-4, 5, shape))
    kind = dtype[0]
    if kind == "u":
        made = abs(made)
    if kind in "fc":
        made = made + np.round(random.normal(0, 1, shape) * 8) / 8
    if kind == "c":
        made = made + 1j * np.round(random.normal(0, 2, shape) * 8) / 8
    names = {"bool": "?", "i8": "i1", "u8": "u1", "u32": "u4", "i64": "i8", "f16": "f2"}
    names |= {"f32": "f4", "f64": "f8", "c64": "c8", "c128": "c16"}
    drawn = np.asarray(made).astype(names[dtype])
    if nan and drawn.size > 1:
        drawn.flat[1] = np.nan
    return drawn


def _near(got: Any, expected: Any, fuzz: int) -> None:
    expected = np.asarray(expected)
    assert got.dtype == expected.dtype
    assert got.shape == expected.shape
    if expected.dtype.kind not in "fc":
        np.testing.assert_array_equal(got, expected)
        return
    finite = np.abs(expected[np.isfinite(expected)])
    bound = fuzz * np.finfo(expected.dtype).eps * max(float(finite.max(initial=0)), 1.0)
    np.testing.assert_allclose(got, expected, 0, bound, equal_nan=True)


def _arguments(call: Callable[..., Any], dtype: str, shape: tuple[int, ...]) -> list[Any]:
    plain = [p for p in inspect.signature(call).parameters.values() if p.default is p.empty]
    return [_draw(dtype, shape, seed) for seed in range(len(plain))]


def _check(case: Case, call: Callable[..., Any], arguments: list[Any], compile: str) -> bool:
    """Compare with NumPy; whether NumPy had a result to compare with."""
    traced = tn.jit(call, compile=compile)
    try:
        _, expected = flatten(call(*(a.copy() for a in arguments)))
    except Exception:
        if case.late:
            return False
        with pytest.raises(Exception):  # noqa: B017
            traced(*arguments)
        return False
    _, got = flatten(traced(*arguments))
    assert len(got) == len(expected)
    for a, b in zip(got, expected, strict=True):
        _near(np.asarray(a), b, case.fuzz)
    return True


def _function(name: str) -> Any:
    return attrgetter(name)(np)


@pytest.mark.parametrize("name", CASES)
def test_beside_numpy(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    case, function = CASES[name], _function(name)
    within, seen = FUNCTIONS[function], []

    @wraps(within)
    def spy(*args: Any, **kwargs: Any) -> Any:
        seen.append(name)
        return within(*args, **kwargs)

    monkeypatch.setitem(FUNCTIONS, function, spy)
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        for number, call in enumerate(case.calls):
            compared = False
            for dtype, shape in case.samples():
                try:
                    compared |= _check(case, call, _arguments(call, dtype, shape), "never")
                except Exception as error:
                    raise AssertionError(
                        f"{name}, call {number}, {dtype}{shape}: {error}"
                    ) from error
            assert compared or number, f"{name}, call {number}: NumPy gives no sample a result"
    assert seen, f"the case of {name} does not call it"


@pytest.mark.parametrize("name", [name for name, case in CASES.items() if case.compiled])
def test_compiled(name: str) -> None:
    case = CASES[name]
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        call, shape = case.calls[0], case.shapes[0]
        done = {_check(case, call, _arguments(call, t, shape), "now") for t in ("f32", "i64")}
        assert True in done
