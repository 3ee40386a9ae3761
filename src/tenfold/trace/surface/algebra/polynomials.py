"""Polynomials: np.poly and its kin, coefficients highest first; and vander.

Leading zeros are kept: how many there are, only a running program knows.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import ml_dtypes
import numpy as np

from tenfold.errors import ShapeError, Unsupported, ValueProblem
from tenfold.trace.array import Array
from tenfold.trace.lazy.host import on_host
from tenfold.trace.operand import dtype_key
from tenfold.trace.surface.algebra.convolution import convolve
from tenfold.trace.surface.emit import cast, emit, fail, is_traced, on, static_int, traced
from tenfold.trace.surface.reducing.reductions import total
from tenfold.trace.surface.ufuncs.composed import filled
from tenfold.trace.surface.ufuncs.promotion import common
from tenfold.trace.tables import FUNCTIONS, UFUNCS
from tenfold.types import F32, F64, I64, KIND


def _line(name: str, given: Any) -> Array:
    x = traced(given)
    if x.ndim > 1:
        fail(ShapeError, f"{name}: coefficients {x.type}", "give them along one axis")
    return x if x.ndim else emit("reshape", x, shape=(1,))


def _lengthened(x: Array, n: int) -> Array:
    return emit("concatenate", filled(0, x.dtype, (n - x.size,)), x, axis=0) if n > x.size else x


def _termwise(name: str, ufunc: np.ufunc) -> Callable[..., Array]:
    def apply(a1: Any, a2: Any) -> Array:
        x, y = _line(name, a1), _line(name, a2)
        n = max(x.size, y.size)
        made: Array = UFUNCS[ufunc](_lengthened(x, n), _lengthened(y, n))
        return made

    return apply


polyadd = on(np.polyadd)(_termwise("polyadd", np.add))
polysub = on(np.polysub)(_termwise("polysub", np.subtract))


@on(np.polymul)
def polymul(a1: Any, a2: Any) -> Array:
    return convolve(_line("polymul", a1), _line("polymul", a2))


def _times(name: str, m: Any) -> int:
    times = static_int(m, f"{name}: m")
    if times < 0:
        fail(ValueProblem, f"{name} {times} times", "give 0 or more")
    return times


@on(np.polyder)
def polyder(p: Any, m: Any = 1) -> Array:
    x = _line("polyder", p)
    for _ in range(_times("polyder", m)):
        powers = np.arange(max(x.size - 1, 0), 0, -1)
        x = UFUNCS[np.multiply](x[:-1], traced(powers))
    return x


@on(np.polyint)
def polyint(p: Any, m: Any = 1, k: Any = None) -> Array:
    x, times = _line("polyint", p), _times("polyint", m)
    constants = filled(0, F64, (times,)) if k is None else _line("polyint", k)
    if constants.size == 1 and times > 1:
        constants = UFUNCS[np.multiply](constants, filled(1, F64, (times,)))
    if constants.size < times:
        fail(ShapeError, f"polyint: k is {constants.type} for m={times}", f"give {times}, or one")
    for i in range(times):
        raised = UFUNCS[np.true_divide](x, traced(np.arange(x.size, 0, -1)))
        x = FUNCTIONS[np.concatenate]([raised, constants[i : i + 1]])
    return x


@on(np.poly)
def poly(seq_of_zeros: Any) -> Array:
    roots = traced(seq_of_zeros)
    special = roots.ndim > 1 or KIND[roots.dtype] == "c"
    if special and not is_traced(roots):
        known: Array = on_host(np.poly, (roots,), {})
        return known
    if special:
        fail(
            Unsupported,
            f"np.poly of {roots.type}: whether its result is complex, only a running program knows",
            "multiply (1, -r) for the roots r with np.convolve",
        )
    roots = _line("poly", cast(roots, roots.dtype if roots.dtype == F32 else F64))
    if not roots.size:
        return filled(1, F64, ())
    made = filled(1, roots.dtype, (1,))
    for i in range(roots.size):
        moved = UFUNCS[np.multiply](made, emit("neg", roots[i]))
        zero = filled(0, roots.dtype, (1,))
        up = emit("concatenate", made, zero, axis=0)
        made = emit("add", up, emit("concatenate", zero, moved, axis=0))
    return made


@on(np.vander)
def vander(x: Any, N: Any = None, increasing: bool = False) -> Array:  # noqa: N803
    line = traced(x)
    if line.ndim != 1:
        fail(ShapeError, f"vander of {line.type}", "give a vector")
    columns = line.size if N is None else static_int(N, "vander: N")
    if columns < 0:
        fail(ShapeError, f"vander with {columns} columns", "give 0 or more")
    dtype = common((line.dtype, I64))
    n = line.size
    if columns == 0 or n == 0:
        return filled(0, dtype, (n, columns))
    made = filled(1, dtype, (n, 1))
    if columns > 1:
        tall = emit("reshape", cast(line, dtype), shape=(n, 1))
        wide = emit("broadcast", tall, shape=(n, columns - 1))
        powers = emit("cumprod", wide, axis=1, reverse=False)
        made = emit("concatenate", made, powers, axis=1)
    return made if increasing else emit("reverse", made, axes=(1,))


@on(np.polyfit)
def polyfit(
    x: Any,
    y: Any,
    deg: Any,
    rcond: Any = None,
    full: bool = False,
    w: Any = None,
    cov: Any = False,
) -> Any:
    order = static_int(deg, "polyfit: deg") + 1
    places, values = (cast(v, common((dtype_key(v), float))) for v in (traced(x), traced(y)))
    if order < 1 or places.ndim != 1 or not places.size or values.ndim not in (1, 2):
        fail(
            ShapeError,
            f"polyfit of degree {order - 1} of {values.type} at {places.type}",
            "give a degree of 0 or more, places along one axis, and values along one or two",
        )
    n = places.size
    if values.shape[0] != n:
        fail(ShapeError, f"polyfit: {values.type} at {places.type}", "give as many of both")
    if rcond is None:
        rcond = n * float(ml_dtypes.finfo(places.dtype).eps)  # type: ignore[no-untyped-call]
    left, right = vander(places, order), values
    if w is not None:
        weights = traced(w)
        if weights.shape != (n,):
            fail(ShapeError, f"polyfit: weights {weights.type}", f"give {n} of them")
        left = left * weights[:, None]
        right = right * (weights[:, None] if right.ndim == 2 else weights)
    scale = UFUNCS[np.sqrt](total(left * left, 0))
    left = left / scale
    found, rest, rank, s = FUNCTIONS[np.linalg.lstsq](left, right, rcond)
    found = found / (scale if right.ndim == 1 else scale[:, None])
    if full:
        return found, rest, rank, s, rcond
    if not cov:
        return found
    base = FUNCTIONS[np.linalg.inv](FUNCTIONS[np.dot](left.T, left))
    base = base / FUNCTIONS[np.outer](scale, scale)
    share: Any = 1
    if cov != "unscaled":
        if n <= order:
            fail(ValueProblem, f"polyfit: {n} places for {order} coefficients", "give more")
        share = rest / (n - order)
    return found, (base * share if right.ndim == 1 else base[:, :, None] * share)
