"""x[mask] with a mask that only a running program knows."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import tenfold as tn
from tenfold.api.call.signature import Signature
from tenfold.errors import ConcreteError, IndexProblem, MutationError, PlanError, TypeMismatch
from tenfold.trace.containers import flatten

RANDOM = np.random.default_rng(5)
X = np.round(RANDOM.normal(0, 2, (6, 4)), 2)
Y = np.round(RANDOM.normal(0, 2, (6, 4)), 2)
ROWS = np.array([True, False, True, True, False, True])
INT = RANDOM.integers(-9, 9, (6, 4))
LABELS = np.array([0, 2, 1, 0, 0, 1])

Function = Callable[..., Any]


def changed(change: Callable[..., Any]) -> Function:
    """What a function that writes into its first argument leaves there."""

    def call(x: Any, *others: Any) -> Any:
        x = np.copy(x)
        change(x, *others)
        return x

    return call


def assign(x: Any, key: Any, value: Any) -> None:
    x[key] = value


def increase(x: Any, key: Any, value: Any) -> None:
    x[key] += value


def scale(x: Any, key: Any, value: Any) -> None:
    x[key] *= value


def narrowed(x: Any) -> Any:
    s = x[x > -1]
    s[s < 0] = 0
    s += 1
    return s.sum(), s.max(), s.size


def columns(x: Any, r: Any) -> Any:
    s = x[r]
    s[:, 0] = 7
    s[:, 1] += x[r][:, 2]
    s[:, 2:] *= [2, 3]
    part = s[:, :2]
    part -= 1  # a view of it
    return s.sum(axis=0)


def nested(x: Any) -> Any:
    big = x[x > 0]
    return big[big < 2].sum(), big[big < 2].size, big[big > 99].size


REDUCED: dict[str, Function] = {
    **{
        name: lambda x, name=name: getattr(x[x > 0], name)()
        for name in ("sum", "prod", "mean", "min", "max", "any", "all", "var", "std", "argmax")
    },
    **{
        f"np.{name}": lambda x, name=name: getattr(np, name)(x[x < 1])
        for name in (
            *("sum", "prod", "mean", "min", "max", "any", "all", "var", "std", "argmin", "ptp"),
            *("median", "nansum", "nanprod", "nanmean", "nanvar", "nanmax", "nanmin", "nanmedian"),
            *("count_nonzero", "size", "ndim"),
        )
    },
    "argmin": lambda x: (x[x > 0].argmin(), x[x > 0].argmin(keepdims=True)),
    "size": lambda x: (x[x > 0].size, x[:, 0][x[:, 0] > 0].size, np.size(x[x > 0], 0)),
    "a whole matrix": lambda x: x[x > 0].mean() + x[x > 1].sum(),
    "dtype": lambda x: (x[x > 0].sum(dtype=complex), x[x > 0].mean(dtype=complex)),
    "ddof": lambda x: (x[x > 0].std(ddof=1), np.var(x[x > 0], ddof=2)),
    "initial": lambda x: (x[x > 0].max(initial=9.0), x[x > 99].min(initial=3.0)),
    "where": lambda x: x[x > 0].sum(where=x[x > 0] < 1),
    "where and initial": lambda x: np.max(x[x > 0], where=x[x > 0] < 1, initial=-5),
    "keepdims": lambda x: (x[x > 0].sum(keepdims=True), x[x > 0].max(0, keepdims=True)),
    "quantile": lambda x: (np.quantile(x[x > 0], 0.3), np.percentile(x[x > 0], [10.0, 80.0])),
    "norm": lambda x: [np.linalg.norm(x[x > 0], o) for o in (None, 1, 2, 3, np.inf, -np.inf, 0)],
    "average": lambda x: (np.average(x[x > 0]), np.average(x[x > 0], weights=x[x > 0] ** 2)),
    "ufunc.reduce": lambda x: (np.add.reduce(x[x > 0]), np.maximum.reduce(x[x > 0])),
    "cumsum": lambda x: (
        np.cumsum(x[x > 0]).max(),
        np.add.accumulate(x[x > 0]).sum(),
        np.cumprod(x[x > 0]).sum(),
    ),
    "variance by hand": lambda x: ((x[x > 0] - x[x > 0].mean()) ** 2).mean(),
    "none": lambda x: (x[x > 99].sum(), x[x > 99].size, x[x > 99].any(), x[x > 99].all()),
    "allclose": lambda x: np.allclose(x[x > 0], np.abs(x)[x > 0]),
}
ROWWISE: dict[str, Function] = {
    "mean of rows": lambda x, r: x[r].mean(axis=0),
    "over another axis": lambda x, r: (x[r].sum(axis=1).max(), x[r].mean(axis=-1).sum()),
    "all": lambda x, r: (x[r].sum(), x[r].size, x[r].std(), np.median(x[r])),
    "both axes": lambda x, r: x[r].sum(axis=(0, 1)),
    "keepdims": lambda x, r: (x[r].sum(axis=0, keepdims=True), x[r].max(keepdims=True)),
    "kept": lambda x, r: (x[r] - x[r].mean(axis=1, keepdims=True)).sum(axis=0),
    "extremes": lambda x, r: (x[r].max(axis=0), x[r].min(axis=0), np.ptp(x[r], axis=0)),
    "extremes of others": lambda x, r: (x[r].max(axis=1).sum(), x[r].argmax(axis=1).sum()),
    "positions": lambda x, r: (x[r].argmax(axis=0), x[r].argmin(axis=0), x[r].argmax()),
    "median": lambda x, r: (np.median(x[r], axis=0), np.median(x[r], axis=1).sum()),
    "quantiles": lambda x, r: np.quantile(x[r], [0.25, 0.5], axis=0, keepdims=True),
    "columns": lambda x, r: x.T[:, r].sum(axis=1),
    "columns of rows": lambda x, r: (
        x[r][:, 1].sum(),
        x[r][:, 1:3].sum(axis=0),
        x[r][..., 0].max(),
    ),
    "one column": lambda x, r: (x[r, 1].sum(), x[r, 1:3].sum(axis=0), x[1:5, 2][r[1:5]].sum()),
    "in front": lambda x, r: x.reshape(1, 6, 2, 2)[0, r, :, 1].sum(axis=0),
    "parted": lambda x, r: x.reshape(2, 6, 2)[1, :, r[:2]].sum(axis=0),
    "a new axis": lambda x, r: (x[r, None].sum(axis=0), x[r][:, None, :].max(axis=0)),
    "beside": lambda x, r: ((x[r] * [1, 2, 3, 4] + 1).sum(axis=0), (x[r] - x[:1]).sum()),
    "normalised": lambda x, r: ((x[r] - x[r].mean(axis=0)) / x[r].std(axis=0)).max(),
    "transposed": lambda x, r: (x[r].T.sum(axis=1), x[r].transpose(1, 0).mean(axis=0).sum()),
    "product": lambda x, r: (x[r].T @ x[r], np.dot(x[r, 0], x[r, 1]), x[r, 0] @ x[r]),
    "product with others": lambda x, r: ((x[r] @ x[0]).sum(), (x[:2] @ x[r].T).sum(axis=1)),
    "inner, vdot": lambda x, r: (np.inner(x[r, 0], x[r, 2]), np.vdot(x[r], x[r])),
    "norms": lambda x, r: (np.linalg.norm(x[r]), np.linalg.norm(x[r], axis=0)),
    "norms of rows": lambda x, r: np.linalg.norm(x[r], axis=1).sum(),
    "weights": lambda x, r: np.average(x[r], axis=0, weights=np.abs(x[:, 0])[r]),
    "flat": lambda x, r: (x[r].ravel().sum(), x[r].flatten().max(), x[r].reshape(-1).argmax()),
    "running": lambda x, r: (np.cumsum(x[r], axis=0).sum(axis=0), np.cumsum(x[r]).max()),
    "written": columns,
    "count": lambda x, r: (np.count_nonzero(x[r] > 0, axis=0), np.size(x[r], 1), x[r].ndim),
    "compress": lambda x, r: (np.compress(r, x, axis=0).sum(axis=0), np.compress(r[:3], x).sum()),
    "extract": lambda x, r: (np.extract(x > 0, x).sum(), np.extract(x > 0, x).size),
}
ELEMENTWISE: dict[str, Function] = {
    "operators": lambda x: ((2 * x[x > 0] - 1) / 3 + x[x > 0] ** 2 - (-x[x > 0])).sum(),
    "an array on the left": lambda x: (np.array([2.0]) * x[x > 0]).sum(),
    "a traced scalar": lambda x: (x[x > 0] * x[0, 0]).sum() + (x[0, 0] - x[x > 0]).sum(),
    "comparisons": lambda x: ((x[x > 0] < 1).sum(), (x[x > 0] == x.max()).any()),
    "logic": lambda x: (~(x[x > 0] < 1) & (x[x > 0] < 2)).sum(),
    "ufuncs": lambda x: (np.exp(x[x < 0]).sum(), np.maximum(x[x > 0], 1).sum()),
    "two results": lambda x: tuple(p.sum() for p in np.modf(x[x > 0])),
    "divmod": lambda x: tuple(p.sum() for p in divmod(x[x > 0], 2)),
    "log of what is chosen": lambda x: np.log(x[x > 0]).sum(),
    "no NaN leaks": lambda x: (np.sqrt(x)[x >= 0].sum(), (1 / np.where(x > 0, x, 0))[x > 0].max()),
    "functions": lambda x: (np.clip(x[x > 0], 0.5, 1).sum(), np.round(x[x > 0], 1).sum()),
    "where": lambda x: np.where(x[x > 0] > 1, x[x > 0], -1).sum(),
    "lookups": lambda x: np.interp(x[x > 0], [0.0, 1, 9], [0.0, 5, 6]).sum(),
    "bins": lambda x: np.digitize(x[x > 0], np.array([0.5, 1, 2])).sum(),
    "astype": lambda x: (x[x > 0].astype(int).sum(), x[x > 0].astype(np.float32).sum().dtype.num),
    "made of": lambda x: (np.array(x[x > 0]).sum(), np.asarray(x[x > 0], np.float32).max()),
    "copied": lambda x: (np.copy(x[x > 0]).sum(), np.zeros_like(x[x > 0]).size),
    "like": lambda x: (np.ones_like(x[x > 0]).sum(), np.full_like(x[x > 0], 3).mean()),
    "parts": lambda x: ((x * 1j)[x > 0].imag.sum(), (x * 1j)[x > 0].real.max()),
    "narrowed": narrowed,
    "nested": nested,
    "equal to nothing": lambda x: (x[x > 0] == None).sum(),  # noqa: E711
    "out": lambda x: _out(x),
}


def _out(x: Any) -> Any:
    s = x[x > 0]
    alias = s
    np.multiply(s, 2, out=s)
    return alias.sum()


TWO: dict[str, Function] = {
    "sum": lambda x, y: (x[y > 0] + y[y > 0]).sum(),
    "dot": lambda x, y: (np.dot(x[y > 0], y[y > 0]), x[y > 0] @ x[y > 0]),
    "hypot": lambda x, y: np.hypot(x[y > 0], y[y > 0]).max(),
    "squares": lambda x, y: ((x[y > 0] - y[y > 0]) ** 2).mean(),
    "assigned": changed(lambda x, y: assign(x, y > 0, y[y > 0])),
    "assigned a product": changed(lambda x, y: assign(x, x > 0, x[x > 0] * 2)),
    "assigned one chosen otherwise made": changed(
        lambda x, y: assign(x, x > y, np.where(x > 0, x, y)[x > y])
    ),
    "increased": changed(lambda x, y: increase(x, x > 0, 10)),
    "increased by chosen ones": changed(lambda x, y: increase(x, x > 0, y[x > 0])),
    "scaled": changed(lambda x, y: scale(x, y > 0, -1)),
    "rows assigned": changed(lambda x, y: assign(x, y[:, 0] > 0, y[0])),
    "rows assigned chosen ones": changed(lambda x, y: assign(x, y[:, 0] > 0, y[y[:, 0] > 0])),
    "rows from columns": changed(lambda x, y: assign(x, y[:, 0] > 0, y[y[:, 0] > 0][:, :1])),
    "a column assigned": changed(lambda x, y: assign(x, (y[:, 0] > 0, 1), 5)),
    "a column increased": changed(lambda x, y: increase(x, (y[:, 0] > 0, 1), y[y[:, 0] > 0, 2])),
    "columns assigned": changed(lambda x, y: assign(x, (slice(None), y[0] > 0), 5)),
    "columns scaled": changed(lambda x, y: scale(x, (slice(1, 5), y[0] > 0), 2)),
    "columns of one row": changed(lambda x, y: assign(x, (2, y[0] > 0), y[3, y[0] > 0])),
    "as many values": changed(
        lambda x, y: assign(x, x >= np.sort(x.ravel())[18], y[:2].ravel()[:6])
    ),
    "through a view": changed(lambda x, y: assign(x[1:-1, 1:-1], y[1:-1, 1:-1] > 0, 1)),
    "a view scaled": changed(lambda x, y: scale(x.T[1:], y.T[1:] > 0, y.T[1:][y.T[1:] > 0])),
    "steps": changed(lambda x, y: assign(x, (slice(None, None, 2), y[0] > 0), -1)),
    "places assigned": changed(lambda x, y: assign(x, np.where(y > 0), 3)),
    "places increased": changed(lambda x, y: increase(x, np.nonzero(y > 0), y[y > 0])),
    "places read": lambda x, y: (x[np.nonzero(y > 0)].sum(), x[np.where(y > 0)[0]].sum()),
    "places moved": lambda x, y: x[np.nonzero(y > 0)[0] - 1, np.nonzero(y > 0)[1]].sum(),
    "places of rows": lambda x, y: x[np.flatnonzero(y[:, 0] > 0)].sum(axis=0),
    "places counted": lambda x, y: (np.flatnonzero(y > 0).size, np.flatnonzero(y > 0).max()),
    "the first and last places": lambda x, y: (np.where(y > 0)[0][0], np.nonzero(y > 0)[1][-1]),
    "one of them": lambda x, y: (x[y > 0][2], x[y[:, 0] > 0][1], x[y[:, 0] > 0][-1, 2]),
    "one by a traced index": lambda x, y: x[y > 0][y[0].argmax()],
    "centre": lambda x, y: np.argwhere(y > 0).mean(axis=0),
    "mask of a lookup": lambda x, y: tn.asarray(np.arange(20.0))[(x > 0).astype(int)[y > 0]].sum(),
}


def _plain(found: Any) -> list[Any]:
    return list(found) if isinstance(found, (tuple, list)) else [found]


def _expected(f: Function, *args: Any) -> Any:
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        return f(*[np.copy(a) for a in args])


def _agree(f: Function, *args: Any, rtol: float = 1e-12) -> None:
    expected, got = _plain(_expected(f, *args)), _plain(tn.jit(f)(*args))
    assert len(got) == len(expected)
    for a, b in zip(got, expected, strict=True):
        a, b = np.asarray(a), np.asarray(b)
        assert (a.dtype, a.shape) == (b.dtype, b.shape)
        np.testing.assert_allclose(a, b, rtol, rtol)


@pytest.mark.parametrize("name", REDUCED)
def test_reduced(name: str) -> None:
    _agree(REDUCED[name], X)


@pytest.mark.parametrize("name", ROWWISE)
def test_rows(name: str) -> None:
    _agree(ROWWISE[name], X, ROWS)


@pytest.mark.parametrize("name", ELEMENTWISE)
def test_elementwise(name: str) -> None:
    _agree(ELEMENTWISE[name], X)


@pytest.mark.parametrize("name", TWO)
def test_two_arrays(name: str) -> None:
    _agree(TWO[name], X, Y)


@pytest.mark.parametrize("dtype", ["?", "i1", "u4", "i8", "f2", "f4", "c16"])
def test_dtypes_are_numpys(dtype: str, compare: Any) -> None:
    x = RANDOM.integers(0, 4, (6, 4)).astype(dtype)
    if dtype == "c16":
        x = x + 1j * RANDOM.integers(-3, 3, x.shape)
    for name in ("sum", "prod", "mean", "min", "max", "any", "all", "var", "std", "count_nonzero"):
        compare(lambda x, r, name=name: getattr(np, name)(x[r]), x, ROWS)
        compare(lambda x, r, name=name: getattr(np, name)(x[r], axis=0), x, ROWS)
    if dtype not in ("?", "c16"):
        compare(lambda x, r: (np.median(x[r], axis=0), np.argmax(x[r]), np.ptp(x[r], 0)), x, ROWS)
    compare(lambda x, r: (x[r] * 2).sum(axis=0), x, ROWS)
    compare(lambda x, r: (x[r] ** 2).sum(axis=0), x, ROWS)


def test_what_is_not_chosen_has_no_say() -> None:
    x = np.array([1.0, np.nan, np.inf, -np.inf, 0.0, 2.0])
    chosen = lambda x: x[np.isfinite(x)]  # noqa: E731
    for name in ("sum", "prod", "mean", "min", "max", "var", "std", "argmax", "median"):
        _agree(lambda x, name=name: getattr(np, name)(chosen(x)), x)
    _agree(lambda x: (np.dot(chosen(x), chosen(x)), np.linalg.norm(chosen(x))), x)
    _agree(lambda x: np.cumsum(chosen(x)).max(), x)
    y = np.array([3, 0, 5, 0, 2, 0])
    _agree(lambda x, y: (12 // y[y > 0]).sum() + (x[y > 0] / y[y > 0]).max(), x, y)
    powers = np.array([3, -1, 5, -2, 2, 0])  # no integer has a negative one
    _agree(lambda e: ((2 ** e[e >= 0]).sum(), np.power(e[e >= 0], e[e >= 0]).sum()), powers)
    _agree(changed(lambda y, e: assign(y, e >= 0, y[e >= 0] ** e[e >= 0])), y, powers)
    # What is chosen has.
    for name in ("sum", "mean", "min", "max", "median", "argmin", "argmax", "nansum", "nanmax"):
        _agree(lambda x, name=name: getattr(np, name)(x[x != 1]), x)


def test_extremes_among_the_least(compare: Any) -> None:
    x = np.array([5.0, -np.inf, -np.inf, 3.0])
    for mask in ([False, True, True, False], [False, False, True, False], [True] * 4):
        m = np.array(mask)
        compare(lambda x, m: (x[m].argmax(), x[m].argmin(), x[m].max(), x[m].min()), x, m)
        compare(lambda x, m: (x[m].argmax(), x[m].argmin()), -x, m)
        compare(lambda x, m: (x[m].argmax(), x[m].min()), x > 0, m)


def test_of_nothing() -> None:
    x = np.array([1.0, 2.0])
    mean, spread, middle = tn.jit(lambda x: (x[x > 9].mean(), x[x > 9].std(), np.median(x[x > 9])))(
        x
    )
    assert np.isnan([mean, spread, middle]).all()
    for f in (np.max, np.min, np.argmax, np.argmin, np.nanmax, np.ptp):
        g = tn.jit(lambda x, f=f: f(x[x > 1.5]))
        assert g(x) == f(x[x > 1.5])
        with pytest.raises(ValueError, match=f"{'max' if f is np.ptp else f.__name__} of the"):
            g(x - 9)
        assert g(x) == f(x[x > 1.5])
    rows = tn.jit(lambda x, r: x[r].max(axis=1).sum())  # no row is no error there
    assert rows(X, np.zeros(6, bool)) == 0


def test_so_many_values_as_are_chosen() -> None:
    f = tn.jit(changed(lambda x, v: assign(x, x > 1, v)))
    x = np.array([3.0, 0.0, 2.0, 1.0])
    assert f(x, np.array([7.0, 8.0])).tolist() == [7, 0, 8, 1]
    assert f(x, np.array([5.0])).tolist() == [5, 0, 5, 1]
    with pytest.raises(ValueError, match="2 values are assigned"):
        f(x + 2, np.array([7.0, 8.0]))
    assert f(x * 0, np.zeros(0)).tolist() == [0] * 4
    with pytest.raises(ValueError, match="0 values are assigned"):
        f(x, np.zeros(0))


def test_indices_that_are_not_chosen_are_not_looked_at() -> None:
    table = np.array([10.0, 20.0, 30.0])
    index = np.array([0, 99, 2, -50])
    good = np.array([True, False, True, False])
    f = tn.jit(lambda t, i, m: t[i[m]].sum())
    assert f(table, index, good) == 40
    with pytest.raises(IndexProblem, match="out of range"):
        f(table, index, ~good)

    def write(t: Any, i: Any, m: Any) -> Any:
        t = np.copy(t)
        t[i[m]] = i[m] + 0.5
        t[i[m]] += 1
        np.add.at(t, i[m], 100)
        np.maximum.at(t, i[m], i[m] * 2.0)
        return t

    _agree(write, table, index, good)
    _agree(write, table, np.array([0, 0, -1, 0]), np.array([True, True, True, False]))
    with pytest.raises(IndexProblem, match="out of range"):
        tn.jit(write)(table, index, ~good)


def test_a_place_that_is_not_there() -> None:
    f = tn.jit(lambda x, i: x[x > 0][i])
    x = np.array([-1.0, 5.0, 6.0])
    assert [float(f(x, i)) for i in (0, 1, -1, -2)] == [5, 6, 6, 5]
    for i in (2, -3):
        with pytest.raises(IndexError):
            f(x, i)
    with pytest.raises(IndexError):
        f(-x[1:], 0)


def test_a_row_of_a_selection_is_not_written(trace: Any) -> None:
    def f(x: Any) -> Any:
        s = x[x[:, 0] > 0]
        row = s[0]
        row[:] = 5
        return s.sum()

    with pytest.raises(MutationError, match="read-only"):
        trace(f, X)
    with pytest.raises(IndexProblem, match="3 indices"):
        trace(lambda x: x[x[:, 0] > 0][:, 0, 0], X)
    with pytest.raises(ConcreteError, match="an index of the axis"):
        trace(lambda x: x[x > 0][np.array([0, 1])], X)


def test_zero_dimensional_masks(compare: Any) -> None:
    for number in (1.0, -1.0):
        compare(lambda x: (x[x > 0].sum(), x[x > 0].size), np.float64(number))
        compare(lambda x, s: x[s > 0].sum(axis=0), X, np.float64(number))
        compare(changed(lambda x, s: assign(x, s > 0, x[s > 0] * 2)), X, np.float64(number))


def test_a_selection_is_a_copy(compare: Any) -> None:
    def f(x: Any) -> Any:
        x, m = np.copy(x), x > 0
        s, t = x[m], x[m]
        x += 100
        m &= False
        s *= 2
        return s.sum(), t.sum(), x

    compare(f, X)


def test_functions_of_tenfold() -> None:
    def f(x: Any, xp: Any) -> Any:
        s = x[x > 0]
        return xp.sum(s), xp.mean(s), xp.max(s), xp.exp(s).sum(), xp.where(s > 1, s, 0).sum()

    np.testing.assert_allclose(tn.jit(lambda x: f(x, tn))(X), f(X, np))
    got = tn.jit(lambda x: (tn.sigmoid(x[x > 0]) ** 2).sum())(X)
    np.testing.assert_allclose(got, (1 / (1 + np.exp(-X[X > 0])) ** 2).sum())


def test_beside_arrays_made_while_tracing() -> None:
    def f(x: Any, i: Any) -> Any:
        made, m = np.zeros(4), x > 0
        made[i[:, 0][m[:, 0]] % 4] = 1
        np.add.at(made, i[m] % 4, x[m])
        scaled = np.multiply(np.array([2.0]), x[m]) + np.array([1.0]) * x[m]
        table = np.arange(20.0)
        return made, scaled.sum(), table[i[m] % 20].sum(), np.where(np.ones(1) > 0, x[m], 0).max()

    _agree(f, X, INT)


def test_known_masks_are_as_before() -> None:
    got = tn.jit(lambda x: x[ROWS])(X)
    assert got.shape == (4, 4)
    assert np.array_equal(tn.asarray(X)[tn.asarray(X) > 0], X[X > 0])  # a lazy one is run
    assert np.array_equal(np.compress(ROWS, tn.asarray(X), axis=0), X[ROWS])
    assert np.array_equal(tn.jit(lambda x: np.extract(INT[0] > 0, x[0]))(X), X[0][INT[0] > 0])


def test_under_vmap_and_in_loops() -> None:
    f = tn.vmap(lambda x: (x[x > -1].mean(), x[x > -9].max(), x[x > 0].size))
    mean, top, count = tn.jit(f)(X)
    expected = [(x[x > -1].mean(), x.max(), x[x > 0].size) for x in X]
    np.testing.assert_allclose(np.stack([mean, top, count], 1), expected)

    def kmeans(x: Any, start: Any) -> Any:
        def step(_: Any, centres: Any) -> Any:
            label = ((x[:, None] - centres) ** 2).sum(-1).argmin(1)
            return np.stack([x[label == k].mean(axis=0) for k in range(2)])

        return tn.fori_loop(0, 3, step, start)

    got = tn.jit(kmeans)(X, X[:2])
    centres = X[:2]
    for _ in range(3):
        label = ((X[:, None] - centres) ** 2).sum(-1).argmin(1)
        centres = np.stack([X[label == k].mean(axis=0) for k in range(2)])
    np.testing.assert_allclose(got, centres)


def test_lanes_that_are_not_active_do_not_raise() -> None:
    def one(x: Any) -> Any:
        return tn.cond((x > 0).any(), lambda x: x[x > 0].max(), lambda x: x.sum() * 0, x)

    x = np.array([[1.0, 2.0], [-1.0, -2.0]])
    assert tn.jit(tn.vmap(one))(x).tolist() == [2, 0]


RETURNED: dict[str, Function] = {
    "elements": lambda x, r: x[x > 0],
    "none of them": lambda x, r: x[x > 99],
    "all of them": lambda x, r: x[x < 99],
    "rows": lambda x, r: x[r],
    "columns": lambda x, r: x[:, x[0] > 0],
    "the middle axis": lambda x, r: np.stack([x, -x])[:, r],
    "a matrix of places": lambda x, r: np.argwhere(x > 0),
    "places": lambda x, r: np.nonzero(x > 0),
    "in containers": lambda x, r: {"a": [x[r], 3], "b": (None, x[r].sum(), x[x < 0] * 2)},
    "computed with": lambda x, r: np.exp(x[r]) - x[0],
}


@pytest.mark.parametrize("name", RETURNED)
def test_what_is_returned_has_the_length_of_the_run(name: str) -> None:
    function, jitted = RETURNED[name], tn.jit(RETURNED[name])
    for x, r in ((X, ROWS), (Y, ~ROWS), (X, ROWS), (X, np.zeros(6, bool))):
        got, want = jitted(x, r), function(x, r)
        flat = list(zip(flatten(got)[1], flatten(want)[1], strict=True))
        assert flatten(got)[0] == flatten(want)[0]
        for one, other in flat:
            assert np.asarray(one).dtype == np.asarray(other).dtype
            np.testing.assert_allclose(one, other, rtol=1e-14)
            assert not isinstance(one, np.ndarray) or one.base is None
    assert jitted.traces == 1


def test_a_saved_plan_returns_what_a_mask_chooses(tmp_path: Any) -> None:
    jitted = tn.jit(lambda x: (x[x > 0], x.sum()))
    jitted.plan(X).save(tmp_path / "chosen.plan")
    loaded = tn.load(tmp_path / "chosen.plan")
    for x in (X, Y, -np.abs(X)):
        np.testing.assert_array_equal(loaded(x)[0], x[x > 0])


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("('cut', 0)", "('cut', 1)"),
        ("('cut', 0)", "('cut', -1)"),
        ("('cut', 0), '*', '*'", "('cut', 0), '*', ('static', None), '*'"),
        ("('cut', 0), '*', '*', '*'", "'*', ('cut', 0), '*', '*'"),
    ],
)
def test_a_malformed_cut_is_refused(old: str, new: str) -> None:
    jitted = tn.jit(lambda x: (x[x > 0], x.sum()))
    jitted(X)
    plan = jitted.plan(X)
    data = plan.signature.to_data()
    assert Signature.from_data(data, plan.graph) == plan.signature
    assert old in data["outputs"]
    data["outputs"] = data["outputs"].replace(old, new)
    with pytest.raises(PlanError, match="malformed"):
        Signature.from_data(data, plan.graph)


def test_a_function_in_a_function_goes_on_with_what_is_chosen() -> None:
    positive = tn.jit(lambda x: x[x > 0])
    np.testing.assert_allclose(tn.jit(lambda x: positive(x).mean())(X), X[X > 0].mean())


def test_arguments_are_updated_beside_what_is_chosen() -> None:
    def clip(x: Any) -> Any:
        below = x[x < 0]
        x[x < 0] = 0
        return below

    x = X.copy()
    np.testing.assert_array_equal(tn.jit(clip)(x), X[X < 0])
    np.testing.assert_array_equal(x, np.maximum(X, 0))


def test_lanes_can_not_choose_different_numbers() -> None:
    with pytest.raises(ConcreteError, match="how many elements"):
        tn.vmap(lambda x: x[x > 0])(X)


NEEDS: dict[str, Function] = {
    "np.vstack": lambda x: np.vstack([x[x > 0], x[0]]),
    "np.concatenate": lambda x: np.concatenate([x[x > 0], x[0]]),
    "np.sort": lambda x: np.sort(x[x > 0]),
    ".shape": lambda x: x[x > 0].shape[0],
    r"len\(\)": lambda x: len(x[x > 0]),
    "iteration": lambda x: [v + 1 for v in x[x > 0]],
    "reshape": lambda x: x[x > 0].reshape(2, -1),
    "an index of the axis": lambda x: x[x > 0][1:],
    "np.stack": lambda x: np.stack([x[x > 0], x[x > 0]]),
    "np.add.outer": lambda x: np.add.outer(x[x > 0], x[0]),
    "beside an array": lambda x: x[x > 0] + np.arange(3),
    "different masks": lambda x: x[x > 0] + x[x < 0],
    "float": lambda x: float(x[x > 0]),
    "np.diff": lambda x: np.diff(x[x > 0]),
    "another index array": lambda x: x[x[:, 0] > 0, np.array([0, 1])].sum(),
    "a product over": lambda x: (x[:, 0] @ x[x[:, 0] > 0]).sum(),
    "tolist": lambda x: x[x > 0].tolist(),
}


@pytest.mark.parametrize("words", NEEDS)
def test_what_needs_the_number_says_so(words: str, trace: Any) -> None:
    with pytest.raises(ConcreteError, match=words) as caught:
        trace(NEEDS[words], X)
    text = str(caught.value)
    assert "running program" in text
    assert "test_selections.py" in text
    if "another index" not in text and "different masks" not in text:
        assert "chosen at" in text
        assert "np.where(mask, x, other)" in text


def test_a_selection_shows_what_is_known(trace: Any) -> None:
    shown = []
    trace(lambda x: shown.append(repr(x[x[:, 0] > 0])) or x, X)
    assert shown[0].startswith("<selection f64[?,4]")


def test_an_update_keeps_the_dtype(trace: Any) -> None:
    with pytest.raises(TypeMismatch, match="in-place"):
        trace(changed(lambda x: increase(x, x > 0, 0.5)), INT)
    _agree(changed(lambda x: assign(x, x > 0, x[x > 0] / 2)), INT)


# Random programs.

_STEPS: tuple[Function, ...] = (
    lambda s, o: s + o,
    lambda s, o: o - s,
    lambda s, o: s * 2 - 1,
    lambda s, o: np.abs(s) + 0.5,
    lambda s, o: np.where(s > o, s, 1),
    lambda s, o: np.maximum(s, o),
    lambda s, o: s[s > -1] if s is o else s / 4,
    lambda s, o: -s,
)
_ENDS: tuple[Function, ...] = (
    lambda s: s.sum(axis=0),
    lambda s: s.sum(),
    lambda s: s.mean(axis=-1).sum(),
    lambda s: s.max(initial=-99),
    lambda s: s.prod(axis=0),
    lambda s: (s > 0).any(axis=0),
    lambda s: np.count_nonzero(s > 1),
    lambda s: s.ravel().sum(),
    lambda s: s.size,
    lambda s: s.T.sum(axis=-1),
    lambda s: np.vdot(s, s),
    lambda s: np.cumsum(s).sum(),
)


@settings(max_examples=60, deadline=None)
@given(
    shape=st.lists(st.integers(1, 4), min_size=1, max_size=3).map(tuple),
    covered=st.integers(1, 3),
    lead=st.integers(0, 1),
    steps=st.lists(st.sampled_from(_STEPS), max_size=4),
    end=st.sampled_from(_ENDS),
    seed=st.integers(0, 99),
)
def test_random_programs(
    shape: Any, covered: int, lead: int, steps: Any, end: Any, seed: int, compare: Any
) -> None:
    random = np.random.default_rng(seed)
    lead = min(lead, len(shape) - 1)
    inner = shape[lead : lead + covered]
    x, y = (np.round(random.normal(0, 2, shape), 1) for _ in "xy")
    mask = random.random(inner) < random.choice([0.0, 0.4, 0.8, 1.0])

    def f(x: Any, y: Any, m: Any) -> Any:
        key = (slice(None),) * lead + (m,)
        s, other = x[key], y[key]
        for step in steps:
            s = step(s, other)
        written = np.copy(x)
        written[key] = s
        made = end(s)
        return np.sum(made) if lead else made, written  # a selection may be left of the others

    compare(f, x, y, mask)
