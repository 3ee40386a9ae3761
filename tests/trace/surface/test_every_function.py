"""Every function that is traced, beside NumPy's: on sampled dtypes and shapes, empty and
zero-dimensional ones among them, with axes and keepdims.

Where NumPy raises for a sample, the traced function has to raise as well.
"""

from __future__ import annotations

import inspect
import warnings
from collections.abc import Callable, Iterator
from functools import wraps
from operator import attrgetter
from typing import Any

import numpy as np
import pytest

import tenfold as tn
from tenfold.trace.array import FUNCTIONS, REASONS
from tenfold.trace.containers import flatten

DTYPES = ("bool", "i8", "u32", "i64", "f16", "f32", "f64", "c64")
FLOATS = ("f32", "f64", "c128")
REAL = ("bool", "i8", "u32", "i64", "f16", "f32", "f64")
SHAPES = ((3, 4), (2, 3, 4), (4,), (), (0, 3))
VECTORS = ((5,), (1,), (0,))
SOLVED = ("f32", "f64", "c64", "c128")
SQUARE = ((3, 3), (2, 3, 3))
MATRICES = ((3, 4), (4, 3), (2, 3, 4))


class Case:
    """What is called, on which samples, and how near NumPy's results it has to be."""

    def __init__(
        self,
        *calls: Callable[..., Any],
        shapes: tuple[tuple[int, ...], ...] = SHAPES,
        dtypes: tuple[str, ...] = DTYPES,
        fuzz: int = 64,
        compiled: bool = False,
        late: bool = False,
    ) -> None:
        self.calls = calls
        self.shapes = shapes
        self.dtypes = dtypes
        self.fuzz = fuzz  # units in the last place of the greatest result
        self.compiled = compiled
        self.late = late  # NumPy looks at values before it raises

    def samples(self) -> Iterator[tuple[str, tuple[int, ...]]]:
        for dtype in self.dtypes:
            yield dtype, self.shapes[0]
        for shape in self.shapes[1:]:
            yield ("f64" if "f64" in self.dtypes else self.dtypes[-1]), shape


def _changed(change: Callable[..., Any]) -> Callable[..., Any]:
    """What a function that writes into its argument leaves there."""

    def call(x: Any, y: Any) -> Any:
        x = np.copy(x)
        change(x, y)
        return x

    return call


def _reduction(f: Any, *more: Any, **given: Any) -> Case:
    """A function with axis and keepdims."""
    given["dtypes"] = (*given.get("dtypes", DTYPES), "f32 nan")
    return Case(
        lambda x: f(x),
        lambda x: f(x, axis=0),
        lambda x: f(x, axis=-1, keepdims=True),
        lambda x: f(x, axis=(0, 1)),
        lambda x: f(x, keepdims=True),
        *more,
        **given,
    )


def _along(f: Any, *more: Any, **given: Any) -> Case:
    """A function with one axis."""
    return Case(lambda x: f(x), lambda x: f(x, axis=0), lambda x: f(x, axis=-1), *more, **given)


def _plain(f: Any, *more: Any, **given: Any) -> Case:
    """A function of its own, or a call that is written out."""
    written = inspect.isfunction(f) and f.__name__ == "<lambda>"
    return Case(f if written else lambda x: f(x), *more, **given)


def _transform(name: str) -> Case:
    """A Fourier transform along one axis."""
    f = getattr(np.fft, name)
    return Case(
        lambda x: f(x),
        lambda x: f(x, 6, axis=0),
        lambda x: f(x, 3, norm="ortho"),
        dtypes=("i64", "f32", "f64") if name in ("rfft", "ihfft") else (*FLOATS, "i64"),
        fuzz=512,
    )


def _transforms(name: str) -> Case:
    """A Fourier transform along several axes."""
    f = getattr(np.fft, name)
    return Case(
        lambda x: f(x),
        lambda x: f(x, (3, 6), axes=(0, 1)),
        lambda x: f(x, norm="forward"),
        shapes=MATRICES,
        dtypes=(*FLOATS, "i64"),
        fuzz=512,
    )


def _definite(x: Any) -> Any:
    """A matrix that is far from singular, of one that may be."""
    return np.matmul(x, np.conj(np.matrix_transpose(x))) + 9 * np.eye(3, dtype=x.dtype)


CASES: dict[str, Case] = {
    # reductions
    "sum": _reduction(np.sum, lambda x: np.sum(x, 0, np.float32), compiled=True),
    "prod": _reduction(np.prod, compiled=True),
    "max": _reduction(np.max, compiled=True),
    "min": _reduction(np.min, compiled=True),
    "amax": _reduction(np.amax),
    "amin": _reduction(np.amin),
    "any": _reduction(np.any, compiled=True),
    "all": _reduction(np.all, compiled=True),
    "mean": _reduction(np.mean, compiled=True),
    "var": _reduction(np.var, lambda x: np.var(x, ddof=1), compiled=True),
    "std": _reduction(np.std, lambda x: np.std(x, axis=0, correction=1), compiled=True),
    "ptp": _reduction(np.ptp),
    "count_nonzero": _reduction(np.count_nonzero),
    "average": _reduction(np.average, lambda x, y: np.average(x, weights=y * y + 1), late=True),
    "nansum": _reduction(np.nansum),
    "nanprod": _reduction(np.nanprod),
    "nanmax": _reduction(np.nanmax),
    "nanmin": _reduction(np.nanmin),
    "nanmean": _reduction(np.nanmean),
    "nanvar": _reduction(np.nanvar),
    "nanstd": _reduction(np.nanstd),
    "median": _reduction(np.median, compiled=True),
    "nanmedian": _reduction(np.nanmedian, dtypes=REAL),
    "quantile": _reduction(
        lambda x, **k: np.quantile(x, 0.3, **k),
        lambda x: np.quantile(x, [0.1, 0.5, 1], axis=0),
        lambda x: np.quantile(x, 0.4, method="lower"),
        lambda x: np.quantile(x, 0.4, method="median_unbiased"),
    ),
    "percentile": _reduction(lambda x, **k: np.percentile(x, 30, **k)),
    "nanquantile": _reduction(lambda x, **k: np.nanquantile(x, [0.25, 0.5], **k), dtypes=REAL),
    "nanpercentile": _reduction(lambda x, **k: np.nanpercentile(x, 60, **k), dtypes=REAL),
    "argmax": _along(np.argmax, lambda x: np.argmax(x, 0, keepdims=True), dtypes=REAL),
    "argmin": _along(np.argmin, lambda x: np.argmin(x, keepdims=True), dtypes=REAL),
    "nanargmax": _along(np.nanargmax, dtypes=REAL),
    "nanargmin": _along(np.nanargmin, dtypes=REAL),
    "cumsum": _along(np.cumsum, compiled=True),
    "cumprod": _along(np.cumprod),
    "nancumsum": _along(np.nancumsum),
    "nancumprod": _along(np.nancumprod),
    "cumulative_sum": _along(
        np.cumulative_sum, lambda x: np.cumulative_sum(x, axis=0, include_initial=True)
    ),
    "cumulative_prod": _along(np.cumulative_prod),
    "cov": Case(
        lambda x: np.cov(x),
        lambda x: np.cov(x, rowvar=False),
        lambda x, y: np.cov(x, y, bias=True),
        lambda x: np.cov(x, ddof=0, aweights=[1.0, 2, 3, 4]),
        lambda x: np.cov(x, fweights=[1, 2, 3, 4], aweights=[1.0, 2, 3, 4]),
        shapes=((3, 4), (4,), (1, 4)),
        fuzz=512,
        compiled=True,
    ),
    "corrcoef": Case(
        lambda x: np.corrcoef(x),
        lambda x, y: np.corrcoef(x, y, rowvar=False),
        shapes=((3, 4), (4,)),
        fuzz=512,
    ),
    # shapes
    "reshape": Case(lambda x: np.reshape(x, -1), lambda x: np.reshape(x, (2, 6)), compiled=True),
    "ravel": _plain(np.ravel),
    "transpose": _plain(np.transpose, lambda x: np.transpose(x, (1, 0)), compiled=True),
    "matrix_transpose": _plain(np.matrix_transpose),
    "swapaxes": _plain(lambda x: np.swapaxes(x, 0, -1)),
    "moveaxis": _plain(lambda x: np.moveaxis(x, 0, -1)),
    "rollaxis": _plain(lambda x: np.rollaxis(x, 1), lambda x: np.rollaxis(x, -1, 0)),
    "squeeze": _plain(np.squeeze, shapes=((1, 3, 1), (3,), (), (1, 0))),
    "expand_dims": Case(lambda x: np.expand_dims(x, 0), lambda x: np.expand_dims(x, (0, -1))),
    "broadcast_to": _plain(lambda x: np.broadcast_to(x, (2, 3, 4))),
    "broadcast_arrays": _plain(lambda x: np.broadcast_arrays(x, x[..., :1])),
    "atleast_1d": _plain(np.atleast_1d),
    "atleast_2d": _plain(np.atleast_2d),
    "atleast_3d": _plain(np.atleast_3d),
    "flip": _plain(np.flip, lambda x: np.flip(x, 0), compiled=True),
    "flipud": _plain(np.flipud),
    "fliplr": _plain(np.fliplr),
    "rot90": Case(*(lambda x, k=k: np.rot90(x, k) for k in range(4))),
    "shape": _plain(lambda x: np.zeros(np.shape(x))),
    "ndim": _plain(np.ndim),
    "size": _plain(np.size, lambda x: np.size(x, 0)),
    "roll": Case(
        lambda x: np.roll(x, 2),
        lambda x: np.roll(x, -1, 0),
        lambda x: np.roll(x, (1, 2), (0, 1)),
        compiled=True,
    ),
    "tile": Case(lambda x: np.tile(x, 2), lambda x: np.tile(x, (2, 1, 3))),
    "repeat": Case(lambda x: np.repeat(x, 2), lambda x: np.repeat(x, [1, 0, 2], axis=0)),
    "pad": Case(
        lambda x: np.pad(x, 1),
        lambda x: np.pad(x, (1, 2), constant_values=1),
        lambda x: np.pad(x, 1, "edge"),
        lambda x: np.pad(x, 1, "wrap"),
        compiled=True,
    ),
    "concatenate": Case(
        lambda x, y: np.concatenate([x, y]), lambda x, y: np.concatenate([x, y], -1), compiled=True
    ),
    "stack": Case(lambda x, y: np.stack([x, y]), lambda x, y: np.stack([x, y], -1), compiled=True),
    "vstack": _plain(lambda x: np.vstack([x, x])),
    "hstack": _plain(lambda x: np.hstack([x, x])),
    "dstack": _plain(lambda x: np.dstack([x, x])),
    "column_stack": _plain(lambda x: np.column_stack([x, x])),
    "append": Case(lambda x, y: np.append(x, y), lambda x, y: np.append(x, y, 0)),
    "block": _plain(lambda x: np.block([[x, x], [x, x]])),
    "split": Case(lambda x: np.split(x, [1, 2]), lambda x: np.split(x, 2, -1)),
    "array_split": Case(lambda x: np.array_split(x, 3), lambda x: np.array_split(x, 3, -1)),
    "hsplit": _plain(lambda x: np.hsplit(x, 2)),
    "vsplit": _plain(lambda x: np.vsplit(x, [1])),
    "dsplit": _plain(lambda x: np.dsplit(x, 2)),
    "unstack": _plain(np.unstack, lambda x: np.unstack(x, axis=-1)),
    "meshgrid": Case(
        lambda x: np.meshgrid(x, x[:2]),
        lambda x: np.meshgrid(x, x, indexing="ij", sparse=True),
        shapes=VECTORS,
    ),
    "insert": Case(
        lambda x: np.insert(x, 1, 5),
        lambda x: np.insert(x, [0, 2, 2], 1, axis=0),
        lambda x: np.insert(x, 1, x[0], axis=0),
        lambda x: np.insert(x, slice(0, 2), 1),
        lambda x: np.insert(x, -1, [[1], [2], [3]], axis=1),
        lambda x: np.insert(x, 9, 1, axis=0),
        compiled=True,
    ),
    "delete": Case(
        lambda x: np.delete(x, 1),
        lambda x: np.delete(x, [0, -1], axis=0),
        lambda x: np.delete(x, slice(None, None, 2), axis=-1),
        lambda x: np.delete(x, np.array([True, False, True]), axis=0),
        lambda x: np.delete(x, 7, axis=0),
        compiled=True,
    ),
    "resize": Case(lambda x: np.resize(x, 7), lambda x: np.resize(x, (5, 4))),
    # sorting and searching
    "sort": _along(np.sort, lambda x: np.sort(x, None)),
    "argsort": _plain(
        lambda x: np.argsort(x, kind="stable"), lambda x: np.argsort(x, 0, kind="stable")
    ),
    "sort_complex": _plain(np.sort_complex),
    "lexsort": _plain(lambda x, y: np.lexsort((x, y))),
    "partition": _plain(lambda x: np.partition(x, 1)[..., 1]),
    "argpartition": _plain(
        lambda x: np.take_along_axis(x, np.argpartition(x, 1), -1)[..., 1], shapes=SHAPES[:3]
    ),
    "searchsorted": Case(
        lambda x, y: np.searchsorted(np.sort(x), y),
        lambda x, y: np.searchsorted(np.sort(x), y, side="right"),
        shapes=VECTORS,
        dtypes=REAL,
    ),
    "digitize": _plain(lambda x: np.digitize(x, [-1, 0, 2]), dtypes=REAL),
    "isin": Case(
        lambda x: np.isin(x, [1, 2]), lambda x, y: np.isin(x, y, invert=True), dtypes=REAL
    ),
    "interp": Case(
        lambda x: np.interp(x, [-1.0, 0, 3], [2.0, 1, 5]),
        lambda x: np.interp(x, [0.0, 1, 2], [2.0, 1, 5], period=3),
        dtypes=REAL,
        compiled=True,
    ),
    "histogram": Case(
        lambda x: np.histogram(x, 4),
        lambda x: np.histogram(x, [-1, 0, 2, 3], density=True),
        lambda x: np.histogram(x, 3, range=(-2, 5)),
        dtypes=REAL[1:],
    ),
    "histogram_bin_edges": _plain(lambda x: np.histogram_bin_edges(x, 4), dtypes=REAL[1:]),
    "histogram2d": Case(
        lambda x, y: np.histogram2d(x, y, 3),
        lambda x, y: np.histogram2d(x, y, [2, 4], density=True),
        lambda x, y: np.histogram2d(x, y, 3, range=[[-2, 2], [0, 4]], weights=x),
        shapes=((8,), (1,), (0,)),
        dtypes=("i64", "f32", "f64"),
    ),
    "histogramdd": Case(
        lambda x: np.histogramdd(x, 2),
        lambda x: np.histogramdd(x, [np.array([-3.0, 0, 3])] * 3),
        shapes=((6, 3), (0, 3)),
        dtypes=("i64", "f32", "f64"),
    ),
    # places
    "take": Case(
        lambda x: np.take(x, [0, 2, 1]),
        lambda x: np.take(x, 1, 0),
        lambda x: np.take(x, [9], 0),
        compiled=True,
    ),
    "take_along_axis": Case(
        lambda x: np.take_along_axis(x, np.array([[0, 1], [2, 3], [-1, 0]]), 1),
        lambda x: np.take_along_axis(x, np.array([0, 1]), None),
        shapes=((3, 4), (3, 5)),
    ),
    "put": Case(_changed(lambda x, y: np.put(x, [0, 2], 1)), shapes=((3, 4), (4,))),
    "put_along_axis": Case(
        _changed(lambda x, y: np.put_along_axis(x, np.array([[0], [2], [1]]), 1, 1)),
        shapes=((3, 4),),
    ),
    "putmask": Case(
        _changed(lambda x, y: np.putmask(x, y != 0, 1)),
        _changed(lambda x, y: np.putmask(x, x != 0, y)),
    ),
    "place": Case(_changed(lambda x, y: np.place(x, y != 0, [1, 0, 1]))),
    "copyto": Case(
        _changed(lambda x, y: np.copyto(x, y)), _changed(lambda x, y: np.copyto(x, 1, where=y != 0))
    ),
    "fill_diagonal": Case(
        _changed(lambda x, y: np.fill_diagonal(x, 1)), shapes=((3, 4), (4, 3), (3, 3))
    ),
    "ix_": Case(
        lambda x: np.ix_(x, [0, 2], x),
        shapes=VECTORS,
        dtypes=DTYPES[1:],
    ),
    "unravel_index": Case(
        lambda x: np.unravel_index(np.abs(x), (4, 5)),
        lambda x: np.unravel_index(np.abs(x), (2, 3, 2), order="F"),
        dtypes=("i64", "u32", "i8", "f64"),
    ),
    "ravel_multi_index": Case(
        lambda x, y: np.ravel_multi_index((abs(x), abs(y)), (10, 11)),
        lambda x, y: np.ravel_multi_index((x, y), (4, 3), mode=("clip", "wrap"), order="F"),
        dtypes=("i64", "u32", "i8"),
    ),
    "tril_indices_from": _plain(np.tril_indices_from, lambda x: x[np.tril_indices_from(x, 1)]),
    "triu_indices_from": _plain(np.triu_indices_from, lambda x: x[np.triu_indices_from(x, 1)]),
    "diag_indices_from": _plain(np.diag_indices_from, shapes=((3, 3), (2, 2, 2), (3, 4), (3,))),
    "diagonal": Case(lambda x: np.diagonal(x), lambda x: np.diagonal(x, 1), compiled=True),
    "diag": Case(lambda x: np.diag(x), lambda x: np.diag(x, -1)),
    "diagflat": Case(lambda x: np.diagflat(x), shapes=((2, 2), (), (3,), (0,))),
    "trace": Case(lambda x: np.trace(x), lambda x: np.trace(x, 1), compiled=True),
    "tril": Case(lambda x: np.tril(x), lambda x: np.tril(x, 1), compiled=True),
    "triu": Case(lambda x: np.triu(x), lambda x: np.triu(x, -1)),
    # choosing
    "where": Case(
        lambda x, y: np.where(x != 0, x, y), lambda x: np.where(x != 0, x, 1), compiled=True
    ),
    "select": _plain(lambda x, y: np.select([x == 1, x != 0], [x, y], 1), compiled=True),
    "choose": Case(
        lambda x, y: np.choose(np.array([0, 1, 1, 0]), [x, y]), shapes=((3, 4), (2, 3, 4), (4,))
    ),
    "clip": Case(
        lambda x: np.clip(x, 0, 2),
        lambda x: np.clip(x, None, 1),
        lambda x, y: np.clip(x, y, 3),
        compiled=True,
    ),
    "piecewise": Case(
        lambda x: np.piecewise(x, [x < 0, x > 1], [-1, 1]),
        lambda x: np.piecewise(x, [x == 0], [lambda v: v, lambda v: v * v]),
        lambda x: np.piecewise(x, x > 0, [2]),
        dtypes=("i64", "f16", "f32", "f64"),
    ),
    # numbers
    "round": Case(lambda x: np.round(x), lambda x: np.round(x, 1), lambda x: np.round(x, -1)),
    "around": _plain(np.around),
    "fix": _plain(np.fix, dtypes=REAL),
    "nan_to_num": _plain(np.nan_to_num, lambda x: np.nan_to_num(x / 0, nan=1, posinf=2)),
    "isposinf": _plain(np.isposinf, dtypes=REAL),
    "isneginf": _plain(np.isneginf, dtypes=REAL),
    "isreal": _plain(np.isreal),
    "iscomplex": _plain(np.iscomplex),
    "iscomplexobj": _plain(np.iscomplexobj),
    "isrealobj": _plain(np.isrealobj),
    "result_type": _plain(lambda x: np.zeros(1, np.result_type(x, 1.0))),
    "can_cast": Case(lambda x: np.can_cast(x, "f4"), lambda x: np.can_cast(x, "i4", "same_kind")),
    "common_type": _plain(lambda x: np.zeros(1, np.common_type(x, x))),
    "min_scalar_type": _plain(
        lambda x: np.zeros(1, np.min_scalar_type(x)), shapes=((3, 4), (0, 2))
    ),
    "real_if_close": _plain(np.real_if_close, dtypes=REAL),
    "isclose": Case(
        lambda x, y: np.isclose(x, y), lambda x: np.isclose(x, x + 1e-9), compiled=True
    ),
    "allclose": Case(lambda x, y: np.allclose(x, y), lambda x: np.allclose(x, x)),
    "array_equal": Case(lambda x, y: np.array_equal(x, y), lambda x: np.array_equal(x, x)),
    "array_equiv": Case(
        lambda x, y: np.array_equiv(x, y),
        lambda x: np.array_equiv(x, x[..., :1]),
        lambda x: np.array_equiv(x, np.ones((5, 7))),
        shapes=((3, 4), (1, 1), (4,), (0, 3)),
    ),
    "angle": Case(lambda x: np.angle(x), lambda x: np.angle(x, deg=True)),
    "real": _plain(np.real),
    "imag": _plain(np.imag),
    "sinc": _plain(np.sinc),
    "i0": _plain(np.i0, dtypes=REAL),
    "diff": Case(
        lambda x: np.diff(x),
        lambda x: np.diff(x, 2, 0),
        lambda x: np.diff(x, prepend=1),
        compiled=True,
    ),
    "ediff1d": Case(
        lambda x: np.ediff1d(x), lambda x: np.ediff1d(x, to_begin=x[:1], to_end=x), dtypes=DTYPES
    ),
    "gradient": Case(
        lambda x: np.gradient(x),
        lambda x: np.gradient(x, 2.0, axis=0),
        lambda x: np.gradient(x, [0.0, 1, 3, 7], axis=-1),
        lambda x: np.gradient(x, [0, 1, 2, 3], axis=-1, edge_order=2),
        lambda x: np.gradient(x, [0.0, 1, 3, 7], axis=-1, edge_order=2),
        shapes=((3, 4), (2, 3, 4), (4,)),
        compiled=True,
    ),
    "unwrap": Case(
        lambda x: np.unwrap(x),
        lambda x: np.unwrap(x, axis=0, period=4),
        lambda x: np.unwrap(x, discont=4.0),
        dtypes=("i8", "i64", "f16", "f32", "f64"),
        compiled=True,
    ),
    "trapezoid": Case(
        lambda x: np.trapezoid(x), lambda x: np.trapezoid(x, dx=2.0, axis=0), shapes=SHAPES[:3]
    ),
    "polyval": Case(lambda x: np.polyval([1, 2, 3], x), lambda x: np.polyval(x, 2), fuzz=256),
    "polyadd": _plain(lambda x: np.polyadd(x, [1, 2]), shapes=((4,), (1,), ())),
    "polysub": _plain(lambda x: np.polysub([1, 2], x), shapes=((4,), (1,), ())),
    "polymul": _plain(
        lambda x: np.polymul(np.append(1, x), [1, 2]), shapes=((4,), (1,)), dtypes=DTYPES[1:]
    ),
    "polyder": Case(lambda x: np.polyder(x), lambda x: np.polyder(x, 2), shapes=((4,), (1,))),
    "polyint": Case(
        lambda x: np.polyint(x),
        lambda x: np.polyint(x, 2, k=3),
        lambda x: np.polyint(x, 2, k=[1, 2]),
        shapes=((4,), (1,)),
    ),
    "poly": _plain(np.poly, shapes=((4,), (1,)), dtypes=REAL[1:4] + REAL[5:], fuzz=256),
    "polyfit": Case(
        lambda x: np.polyfit(np.arange(6.0), x, 2),
        lambda x: np.polyfit(np.arange(6.0), x, 1, w=[1.0, 2, 1, 2, 1, 2]),
        lambda x: np.polyfit(np.arange(6.0), x, 1, cov=True),
        shapes=((6,), (6, 2)),
        dtypes=("i64", "f64"),
        fuzz=1 << 14,
    ),
    "vander": Case(
        lambda x: np.vander(x),
        lambda x: np.vander(x, 3, increasing=True),
        shapes=VECTORS,
        compiled=True,
    ),
    "packbits": Case(
        lambda x: np.packbits(x),
        lambda x: np.packbits(x, axis=0),
        lambda x: np.packbits(x, axis=-1, bitorder="little"),
        compiled=True,
    ),
    "unpackbits": Case(
        lambda x: np.unpackbits(x),
        lambda x: np.unpackbits(x, axis=0, bitorder="little"),
        lambda x: np.unpackbits(x, count=5),
        lambda x: np.unpackbits(x, axis=-1, count=-3),
        dtypes=("u8", "i8"),
    ),
    "linspace": Case(
        lambda x, y: np.linspace(x, y, 4),
        lambda x: np.linspace(x, 9, 3, endpoint=False, axis=-1),
        lambda x: np.linspace(x, 2, 5, dtype=int),
        lambda x: np.linspace(x, 2, 5, retstep=True),
        dtypes=("i64", "f32", "f64", "c64"),
        compiled=True,
    ),
    "logspace": Case(
        lambda x: np.logspace(x, 2, 4),
        lambda x: np.logspace(0, x, 4, base=2.0, endpoint=False),
        dtypes=("i64", "f32", "f64"),
        fuzz=1 << 10,
    ),
    "geomspace": Case(
        lambda x: np.geomspace(abs(x) + 1, 20, 4),
        lambda x: np.geomspace(abs(x) + 1, 9, 4, endpoint=False, axis=-1),
        lambda x: np.geomspace(-1, -abs(x) - 2, 4, dtype=np.float32),
        dtypes=("i64", "f32", "f64"),
        fuzz=1 << 10,
    ),
    "zeros_like": _plain(np.zeros_like, lambda x: np.zeros_like(x, dtype=int, shape=(2,))),
    "ones_like": _plain(np.ones_like),
    "full_like": _plain(lambda x: np.full_like(x, 1)),
    "empty_like": _plain(lambda x: np.zeros_like(np.empty_like(x))),
    "copy": _plain(np.copy),
    "astype": Case(lambda x: np.astype(x, np.complex128), lambda x: np.astype(x, np.bool_)),
    # products
    "dot": Case(
        lambda x, y: np.dot(x, y.T), lambda x: np.dot(x, 2), shapes=SHAPES[:1] + SHAPES[2:]
    ),
    "vdot": _plain(lambda x, y: np.vdot(x, y)),
    "inner": _plain(lambda x, y: np.inner(x, y)),
    "outer": _plain(lambda x, y: np.outer(x, y)),
    "tensordot": Case(lambda x, y: np.tensordot(x, y), lambda x, y: np.tensordot(x, y, ([0], [0]))),
    "kron": _plain(lambda x, y: np.kron(x, y), shapes=((2, 3), (3,), ())),
    "cross": _plain(lambda x, y: np.cross(x, y), shapes=((4, 3), (3,)), dtypes=DTYPES[1:]),
    "einsum": Case(
        lambda x, y: np.einsum("ij,kj->ik", x, y),
        lambda x: np.einsum("ij->j", x),
        shapes=((3, 4), (0, 3)),
        compiled=True,
    ),
    "einsum_path": _plain(
        lambda x, y: np.array(np.einsum_path("ij,kj->ik", x, y)[0][1]), shapes=((3, 4),)
    ),
    "convolve": Case(
        lambda x, y: np.convolve(x, y),
        lambda x, y: np.convolve(x, y[:2], "same"),
        lambda x, y: np.convolve(x, y[:2], "valid"),
        shapes=((5,), (2,)),
    ),
    "correlate": Case(
        lambda x, y: np.correlate(x, y),
        lambda x, y: np.correlate(x, y, "full"),
        shapes=((5,), (2,)),
    ),
    "apply_along_axis": Case(
        lambda x: np.apply_along_axis(np.sum, 0, x),
        lambda x: np.apply_along_axis(lambda v: v[:2] * 2, -1, x),
        lambda x: np.apply_along_axis(lambda v: np.outer(v, v), 1, x),
        shapes=((3, 4), (2, 3, 4), (4,)),
    ),
    "apply_over_axes": Case(
        lambda x: np.apply_over_axes(np.sum, x, (0, -1)),
        lambda x: np.apply_over_axes(np.max, x, 0),
        shapes=SHAPES[:3],
        dtypes=REAL,
    ),
    "lib.stride_tricks.sliding_window_view": Case(
        lambda x: np.lib.stride_tricks.sliding_window_view(x, 2, axis=0),
        lambda x: np.lib.stride_tricks.sliding_window_view(x, (2, 3)),
    ),
    # linear algebra
    "linalg.matrix_transpose": _plain(np.linalg.matrix_transpose),
    "linalg.diagonal": _plain(np.linalg.diagonal, lambda x: np.linalg.diagonal(x, offset=1)),
    "linalg.trace": _plain(np.linalg.trace),
    "linalg.outer": _plain(lambda x, y: np.linalg.outer(x, y), shapes=VECTORS),
    "linalg.tensordot": _plain(lambda x, y: np.linalg.tensordot(x, y, axes=1), shapes=SQUARE),
    "linalg.matmul": _plain(lambda x, y: np.linalg.matmul(x, y), shapes=SQUARE),
    "linalg.vecdot": _plain(lambda x, y: np.linalg.vecdot(x, y)),
    "linalg.cross": _plain(lambda x, y: np.linalg.cross(x, y), shapes=SQUARE, dtypes=DTYPES[1:]),
    "linalg.norm": Case(
        lambda x: np.linalg.norm(x),
        lambda x: np.linalg.norm(x, axis=0, keepdims=True),
        lambda x: np.linalg.norm(x, np.inf, axis=-1),
        lambda x: np.linalg.norm(x, "nuc"),
        lambda x: np.linalg.norm(x, 2),
    ),
    "linalg.vector_norm": _plain(
        np.linalg.vector_norm, lambda x: np.linalg.vector_norm(x, axis=0, ord=1, keepdims=True)
    ),
    "linalg.matrix_norm": _plain(
        np.linalg.matrix_norm, lambda x: np.linalg.matrix_norm(x, ord=1, keepdims=True)
    ),
    "linalg.qr": Case(
        lambda x: np.matmul(*np.linalg.qr(x)),
        lambda x: np.abs(np.linalg.qr(x, "r")),
        shapes=MATRICES,
        dtypes=SOLVED,
        fuzz=512,
    ),
    "linalg.svd": Case(
        lambda x: np.linalg.svd(x, compute_uv=False),
        lambda x: np.linalg.svd(x)[1],
        shapes=MATRICES,
        dtypes=SOLVED,
        fuzz=512,
    ),
    "linalg.svdvals": _plain(np.linalg.svdvals, shapes=MATRICES, dtypes=SOLVED, fuzz=512),
    "linalg.cholesky": Case(
        lambda x: np.linalg.cholesky(_definite(x)),
        lambda x: np.linalg.cholesky(_definite(x), upper=True),
        shapes=SQUARE,
        dtypes=SOLVED,
        fuzz=512,
    ),
    "linalg.eigh": Case(
        lambda x: np.linalg.eigh(_definite(x))[0],
        lambda x: np.abs(np.linalg.eigh(_definite(x))[1]),
        shapes=SQUARE,
        dtypes=SOLVED,
        fuzz=1 << 12,
    ),
    "linalg.eigvalsh": _plain(
        lambda x: np.linalg.eigvalsh(_definite(x)), shapes=SQUARE, dtypes=SOLVED, fuzz=1 << 10
    ),
    "linalg.eig": _plain(
        lambda x: np.sort(np.abs(np.linalg.eig(x)[0]), -1),
        shapes=SQUARE,
        dtypes=SOLVED,
        fuzz=1 << 12,
    ),
    "linalg.eigvals": _plain(
        lambda x: np.sort(np.abs(np.linalg.eigvals(x)), -1),
        shapes=SQUARE,
        dtypes=SOLVED,
        fuzz=1 << 12,
    ),
    "linalg.solve": Case(
        lambda x, y: np.linalg.solve(_definite(x), y),
        lambda x: np.linalg.solve(_definite(x), np.ones(3)),
        shapes=SQUARE,
        dtypes=SOLVED,
        fuzz=1 << 12,
    ),
    "linalg.inv": _plain(
        lambda x: np.linalg.inv(_definite(x)), shapes=SQUARE, dtypes=SOLVED, fuzz=1 << 12
    ),
    "linalg.pinv": _plain(np.linalg.pinv, shapes=MATRICES, dtypes=SOLVED, fuzz=1 << 14),
    "linalg.det": _plain(np.linalg.det, shapes=SQUARE, dtypes=SOLVED, fuzz=1 << 12),
    "linalg.slogdet": _plain(
        lambda x: np.linalg.slogdet(_definite(x)), shapes=SQUARE, dtypes=SOLVED, fuzz=1 << 12
    ),
    "linalg.matrix_rank": _plain(np.linalg.matrix_rank, shapes=MATRICES, dtypes=SOLVED),
    "linalg.matrix_power": Case(
        lambda x: np.linalg.matrix_power(x, 3),
        lambda x: np.linalg.matrix_power(x, 0),
        lambda x: np.linalg.matrix_power(_definite(x), -2),
        shapes=SQUARE,
        dtypes=SOLVED,
        fuzz=1 << 14,
    ),
    "linalg.lstsq": _plain(
        lambda x: np.linalg.lstsq(x, np.ones(4)), shapes=((4, 3),), dtypes=SOLVED, fuzz=1 << 14
    ),
    "linalg.cond": Case(
        lambda x: np.linalg.cond(x),
        lambda x: np.linalg.cond(_definite(x), 1),
        shapes=SQUARE,
        dtypes=SOLVED,
        fuzz=1 << 14,
    ),
    "linalg.multi_dot": _plain(
        lambda x, y: np.linalg.multi_dot([x, y, x]), shapes=((3, 3),), dtypes=DTYPES[1:]
    ),
    "linalg.tensorsolve": _plain(
        lambda x: np.linalg.tensorsolve(np.eye(6).reshape(6, 2, 3) * 2 + x[0, 0] * 0, np.ones(6)),
        shapes=((2, 3),),
        dtypes=("f32", "f64"),
        fuzz=1 << 12,
    ),
    "linalg.tensorinv": _plain(
        lambda x: np.linalg.tensorinv(np.eye(6).reshape(6, 2, 3) * 2 + x[0, 0] * 0, ind=1),
        shapes=((2, 3),),
        dtypes=("f32", "f64"),
        fuzz=1 << 12,
    ),
    # Fourier transforms
    **{f"fft.{n}": _transform(n) for n in ("fft", "ifft", "rfft", "irfft", "hfft", "ihfft")},
    **{f"fft.{n}": _transforms(n) for n in ("fftn", "ifftn", "rfftn", "irfftn")},
    **{f"fft.{n}": _transforms(n) for n in ("fft2", "ifft2", "rfft2", "irfft2")},
    "fft.fftshift": _plain(np.fft.fftshift, lambda x: np.fft.fftshift(x, 0)),
    "fft.ifftshift": _plain(np.fft.ifftshift, lambda x: np.fft.ifftshift(x, 0)),
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
