"""Numbers put into arrays: what NumPy does not put there is refused, and nothing is cut."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tenfold as tn

NAN, INF = np.nan, np.inf


def _update(write: Callable[[Any, Any], Any]) -> Callable[[Any, Any], Any]:
    def f(x: Any, v: Any) -> Any:
        x = x.copy()
        write(x, v)
        return x

    return f


WAYS: dict[str, Callable[[Any, Any], Any]] = {
    "x[0]": _update(lambda x, v: x.__setitem__((0, 0), v)),
    "x[:]": _update(lambda x, v: x.__setitem__(slice(None), v)),
    "x[::-1]": _update(lambda x, v: x.__setitem__(slice(None, None, -1), v)),
    "x[[0]]": _update(lambda x, v: x.__setitem__([0], v)),
    "x[mask]": _update(lambda x, v: x.__setitem__(x == x, v)),
    "fill": _update(lambda x, v: x.fill(v)),
    "put": _update(lambda x, v: np.put(x, [0], v)),
    "put list": _update(lambda x, v: np.put(x, [0], [v])),
    "place": _update(lambda x, v: np.place(x, np.eye(2) > 0, [v])),
    "putmask": _update(lambda x, v: np.putmask(x, np.eye(2) > 0, v)),
    "copyto": _update(lambda x, v: np.copyto(x, v)),
    "fill_diagonal": _update(lambda x, v: np.fill_diagonal(x, v)),
    "fill_diagonal list": _update(lambda x, v: np.fill_diagonal(x, [v, 1])),
    "put_along_axis": _update(lambda x, v: np.put_along_axis(x, np.eye(2, dtype=int), v, 1)),
    "insert": lambda x, v: np.insert(x, 1, v),
    "insert list": lambda x, v: np.insert(x, 1, [v]),
    "sum": lambda x, v: np.sum(x, initial=v),
    "max": lambda x, v: np.max(x, initial=v),
    "piecewise": lambda x, v: np.piecewise(x, [x == x], [v, 1]),
    "+=": _update(lambda x, v: x.__iadd__(v)),
    "*=": _update(lambda x, v: x.__imul__(v)),
    "out": _update(lambda x, v: np.add(x, v, out=x)),
    "add.at": _update(lambda x, v: np.add.at(x, [0], v)),
    "full_like": lambda x, v: np.full_like(x, v),
    "pad": lambda x, v: np.pad(x, 1, constant_values=v),
}
# Where NumPy itself cuts without a word, the number is refused here.
CUT = ("full_like", "pad", "add.at")
NUMBERS: list[Any] = [0, 1, 2, 300, -1, 2**40, 1.5, -0.0, NAN, INF, -INF, 1j, 2 + 0j, True, 3.7]


def _outcome(f: Callable[[], Any]) -> Any:
    try:
        return np.asarray(f())
    except (TypeError, ValueError, OverflowError):
        return None


def _lost(v: Any, dtype: Any) -> bool:
    """Whether something of a number would be lost."""
    if dtype.kind in "iu":
        limits = np.iinfo(dtype)
        return not isinstance(v, int) or not limits.min <= v <= limits.max
    return dtype.kind == "b" or isinstance(v, complex)


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("dtype", ["u1", "i1", "i8", "f2", "f4", "f8", "c8", "c16", "?"])
@pytest.mark.filterwarnings("ignore")
def test_a_number_goes_in_as_in_numpy_or_not_at_all(way: str, dtype: str) -> None:
    x = np.ones((2, 2), dtype)
    for v in NUMBERS:
        f = WAYS[way]
        wanted = _outcome(lambda f=f, v=v: f(x, v))
        runs = (
            lambda f=f, v=v: tn.jit(lambda x: f(x, v), compile="never")(x),
            lambda f=f, v=v: f(tn.asarray(x), v),
        )
        for run in runs:
            got = _outcome(run)
            if got is None and wanted is not None:
                assert way in CUT, (way, dtype, v, wanted)
                assert _lost(v, x.dtype), (way, dtype, v, wanted)
                continue
            assert (got is None) == (wanted is None), (way, dtype, v, got, wanted)
            if wanted is not None:
                assert got.dtype == wanted.dtype
                np.testing.assert_array_equal(got, wanted, str((way, dtype, v)))


def test_a_number_that_is_an_argument_is_looked_at_in_each_call() -> None:
    def f(x: Any, v: Any) -> Any:
        x = x.copy()
        x[0] = v
        return x

    g, x = tn.jit(f), np.ones(2, np.uint8)
    assert g(x, 7).tolist() == [7, 1]
    assert g(x, 7.5).tolist() == [7, 1]
    for bad, error in ((300, OverflowError), (NAN, ValueError), (INF, OverflowError)):
        with pytest.raises(error):
            g(x, bad)
    assert g(x, 8).tolist() == [8, 1]
    with pytest.raises(TypeError, match="real part"):
        g(np.ones(2), 1j)


def test_an_array_that_may_not_fit_is_not_placed() -> None:
    wide = np.array([300])
    for f in (
        lambda x: np.place(x, x == x, wide),
        lambda x: np.putmask(x, x == x, wide),
        lambda x: np.putmask(x, x == x, wide.astype(float)),
    ):
        with pytest.raises(TypeError, match="may not hold"):
            f(tn.ones(3, "u1"))
    x = tn.ones(3, "i8")
    np.putmask(x, x == x, np.array([300], "i2"))
    assert x.tolist() == [300] * 3


def test_one_element_takes_one_number() -> None:
    for value in ([5.0], np.array([5.0]), tn.asarray([5.0])):
        with pytest.raises(ValueError, match="one element"):
            tn.ones(3)[0] = value
    with pytest.raises(ValueError, match="lists 2 deep"):
        tn.ones(3)[:] = [[1.0, 2.0, 3.0]]
    x = tn.ones(3)
    x[0, ...] = [5.0]
    assert x.tolist() == [5, 1, 1]


def test_bounds_that_no_element_passes(compare: Any) -> None:
    x = np.array([0, 7, 255], np.uint8)
    compare(lambda x: (np.clip(x, -1, 300), np.clip(x, 5, 300), x.clip(-5), np.clip(x, -1, 9)), x)


def test_no_element_equals_none_or_text(compare: Any) -> None:
    for shape in ((3,), (), (0, 2)):
        compare(lambda x: (x == None, x != None, x == "a", x != "a"), np.ones(shape))  # noqa: E711


def test_interp_keeps_to_real_places() -> None:
    x, z = np.array([1.5]), np.array([1.5 + 1j])
    for f in (
        lambda x: np.interp(z, [1.0, 2.0], [3.0, 4.0]) + x,
        lambda x: np.interp(x, z, [3.0]),
        lambda x: np.interp(x, [1.0, 2.0], [3.0, 4.0], left=1j),
        lambda x: np.interp(x, [1.0, 2.0], [3.0, 4.0], right=[1.0]),
    ):
        with pytest.raises(TypeError):
            tn.jit(f)(x)
