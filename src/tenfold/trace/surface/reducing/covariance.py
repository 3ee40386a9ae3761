"""Covariance: cov and corrcoef."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from tenfold.errors import ShapeError
from tenfold.trace.array import Array
from tenfold.trace.surface.emit import cast, dtype_of, emit, fail, on, traced
from tenfold.trace.surface.indexing.diagonals import diagonal
from tenfold.trace.surface.reducing.reductions import total
from tenfold.trace.surface.reducing.statistics import average
from tenfold.trace.surface.ufuncs.composed import filled, number
from tenfold.trace.surface.ufuncs.promotion import common
from tenfold.trace.tables import FUNCTIONS, UFUNCS
from tenfold.types import F64, KIND, DType


def _rows(a: Any, dtype: DType, rowvar: bool, name: str) -> Array:
    """A matrix with a row for each variable."""
    x = traced(a)
    if x.ndim > 2:
        fail(ShapeError, f"cov: {name} is {x.type}", "give a vector or a matrix")
    flat = x.ndim < 2
    x = cast(x, dtype)
    if flat:
        return emit("reshape", x, shape=(1, x.size))
    return x if rowvar else emit("transpose", x, axes=(1, 0))


def _weights(given: Any, samples: int, name: str) -> Array | None:
    if given is None:
        return None
    w = traced(given, F64)
    if w.shape != (samples,):
        fail(ShapeError, f"cov: {name} {w.type} for {samples} samples", "give one for each")
    return w


@on(np.cov)
def cov(
    m: Any,
    y: Any = None,
    rowvar: bool = True,
    bias: bool = False,
    ddof: Any = None,
    fweights: Any = None,
    aweights: Any = None,
    *,
    dtype: Any = None,
) -> Array:
    given = [traced(v) for v in (m, y) if v is not None]
    made = common((*(x.dtype for x in given), F64)) if dtype is None else dtype_of(dtype)
    x = _rows(m, made, rowvar, "m")
    if x.shape[0] == 0:
        return filled(0, F64, (0, 0))
    if y is not None:
        x = emit("concatenate", x, _rows(y, made, rowvar, "y"), axis=0)
    if ddof is None:
        ddof = 0 if bias else 1
    samples = x.shape[1]
    counts = _weights(fweights, samples, "fweights")
    shares = _weights(aweights, samples, "aweights")
    if counts is not None and shares is not None:
        w: Array | None = emit("mul", counts, shares)
    else:
        w = counts if shares is None else shares
    centre, whole = average(x, 1, w, True)
    away = UFUNCS[np.subtract](x, emit("reshape", centre, shape=(x.shape[0], 1)))
    other = away if w is None else UFUNCS[np.multiply](away, w)
    if KIND[other.dtype] == "c":
        other = emit("conj", other)
    product = FUNCTIONS[np.dot](away, emit("transpose", other, axes=(1, 0)))
    result = UFUNCS[np.multiply](product, _scale(samples, ddof, w, shares, whole))
    squeezed: Array = FUNCTIONS[np.squeeze](cast(result, product.dtype))
    return squeezed


def _scale(samples: int, ddof: Any, w: Array | None, shares: Array | None, whole: Array) -> Any:
    """One over the degrees of freedom, infinite where there are none."""
    if w is None:
        left = samples - ddof
        return 1 / left if left > 0 else math.inf
    whole = whole[0]
    free = whole
    if ddof != 0 and shares is None:
        free = whole - ddof
    elif ddof != 0:
        free = whole - ddof * total(emit("mul", w, shares)) / whole  # type: ignore[arg-type]
    if KIND[free.dtype] == "c":
        free = emit("real", free)
    zero = number(0, free.dtype)
    return emit("div", number(1, free.dtype), emit("max", free, zero))


@on(np.corrcoef)
def corrcoef(x: Any, y: Any = None, rowvar: bool = True, *, dtype: Any = None) -> Array:
    c = cov(x, y, rowvar, dtype=dtype)
    if c.ndim == 0:
        return emit("div", c, c)
    spread = diagonal(c)
    if KIND[c.dtype] == "c":
        spread = emit("real", spread)
    spread = emit("sqrt", spread)
    n = c.shape[0]
    tall = cast(emit("reshape", spread, shape=(n, 1)), c.dtype)
    c = emit("div", c, tall)
    c = emit("div", c, cast(emit("reshape", spread, shape=(1, n)), c.dtype))
    if KIND[c.dtype] == "c":
        return emit("complex", *(_bounded(emit(part, c)) for part in ("real", "imag")))
    return _bounded(c)


def _bounded(x: Array) -> Array:
    return emit("clip", x, number(-1, x.dtype), number(1, x.dtype))
