"""What factorings, solutions and transforms may be off by: rules of the column `error`.

- A library factors, in double precision whatever the type, a matrix that lies within its bound of
  the one given: as many units of the greatest magnitude, for each row or column. What that makes
  of the results, which hangs on the condition of the matrix, is found by asking the reference
  about such matrices; the farthest element of a matrix counts for all of them. Where the signs of
  vectors or the order of pivots hang on the last bits, so do those of the matrices that are tried.
- NumPy takes a determinant from its logarithm, which costs as many units as that is large.
- A transform is off by its bound in units of the greatest result of the line, for each doubling of
  its points. Where the terms of a line add up to more than the type holds, anything goes.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from tenfold.errors import TenfoldError
from tenfold.graph.op import ErrorRule
from tenfold.ops.agreement.evaluation import Evaluation
from tenfold.ops.agreement.moved import distance, moved
from tenfold.ops.agreement.units import EPS, finite_size, size_of, unit
from tenfold.types import KIND

Array = np.ndarray[Any, Any]

_TRIALS = 6
_DOUBLE = {"f": np.float64, "c": np.complex128}
_SLACK = 4.0  # how much farther than some trials another may go


def _of_matrices(case: Evaluation) -> Array:
    """Of an op on the matrices in the last two axes of its inputs."""
    results = case.ask(case.node, case.values)
    which = next(n for n, one in enumerate(results) if _same(one, case.result))
    wide: list[Array] = [value.astype(_DOUBLE[KIND[value.dtype]]) for value in case.values]
    inner = tuple(range(case.values[0].ndim - 2, case.result.ndim))
    random = np.random.default_rng(0)
    most = np.zeros(case.result.shape)
    try:
        right = case.ask(case.node, wide)[which]
        for _ in range(_TRIALS):
            tried = [_moved(value, case.row.bound, random) for value in wide]
            off = distance(case.ask(case.node, tried)[which], right)
            most = np.maximum(most, off.max(axis=inner, keepdims=True, initial=0.0))
    except TenfoldError:  # singular, say
        return np.full(case.result.shape, np.inf)
    return np.asarray(_SLACK * most + np.where(most > 0, unit(case.result), 0.0))


def _same(one: Array, other: Array) -> bool:
    alike = one.dtype == other.dtype and one.shape == other.shape
    return alike and one.tobytes() == other.tobytes()


def _moved(value: Array, bound: float, random: np.random.Generator) -> Array:
    """Matrices moved by a bound, each element its own way."""
    size = finite_size(value).max(axis=(-2, -1), keepdims=True, initial=0.0)
    error = bound * max(value.shape[-2:]) * EPS["f64"] * size
    signs = random.choice((-1.0, 1.0), value.shape)
    return moved(value, np.broadcast_to(error, value.shape), signs)


def _of_determinant(case: Evaluation) -> Array:
    size = size_of(case.result)
    logs = np.abs(np.log(np.where((size > 0) & np.isfinite(size), size, 1.0)))
    own = _of_matrices(case) + (case.row.bound + logs) * unit(case.result)
    # Of complex numbers that are too large, which part is NaN nobody promises.
    return np.where(np.isfinite(case.result) | (not case.complex), own, np.inf)


def _of_transform(case: Evaluation) -> Array:
    (value,), result, axis = case.values, case.result, case.node["axis"]
    points = max(value.shape[axis], result.shape[axis])
    limit = float(np.finfo(result.dtype).max)
    largest = finite_size(result).max(axis=axis, keepdims=True, initial=0.0)
    own = case.row.bound * (np.log2(points) + 1) * EPS[case.short] * largest
    whole = 2 * size_of(value).sum(axis=axis, keepdims=True)
    settled = np.isfinite(result).all(axis=axis, keepdims=True) & (whole < limit / 2)
    parts = 1.0 if KIND[result.dtype] == "f" else 2.0
    return np.broadcast_to(np.where(settled, parts * own, np.inf), result.shape)


MATRICES = ErrorRule(_of_matrices)
DETERMINANT = ErrorRule(_of_determinant)
TRANSFORM = ErrorRule(_of_transform)
