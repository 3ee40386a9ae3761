"""Rows of linear algebra that solve: cholesky, eigh, eig, solve, inv, triangular_solve, det,
slogdet.

Bounds are as of factorings: relative to the greatest magnitude of the input times its extent,
and for solutions times the condition of the matrix, and they hold for what is multiplied back.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import wraps
from typing import Any

import numpy as np

from tenfold.errors import MatrixProblem, ShapeError
from tenfold.graph.node import Graph
from tenfold.graph.op import Attribute, ErrorRule, Op, Routine, Sample, TypeRule, Types
from tenfold.ops import attributes as attribute
from tenfold.ops import reads, rules, samples
from tenfold.ops.agreement.named import matrices
from tenfold.ops.batching import guards
from tenfold.ops.batching import rules as batching
from tenfold.ops.reference import Array
from tenfold.types import C64, C128, F32, DType, Shape, TensorType

Given = Mapping[str, Any]


def square(name: str, type: TensorType) -> Shape:
    """The shape of an array of square matrices, or an error."""
    rules.require(name, "wc", type)
    if type.rank < 2 or type.shape[-1] != type.shape[-2]:
        raise ShapeError(f"{name}: {type} is no square matrix", fix="its last two axes must agree")
    return type.shape


def _raising(name: str, why: str, fix: str, function: Callable[..., Any]) -> Callable[..., Any]:
    """A reference whose LinAlgError says what, and what to do."""

    @wraps(function, assigned=("__doc__",), updated=())
    def reference(*arrays: Array, **given: Any) -> Any:
        try:
            return function(*arrays, **given)
        except np.linalg.LinAlgError as error:
            raise MatrixProblem(f"{name}: {why} ({error})", fix=fix) from None

    return reference


def _infer_cholesky(types: Types, given: Given, scopes: tuple[Graph, ...]) -> Types:
    square("cholesky", types[0])
    return types


def _infer_eigh(types: Types, given: Given, scopes: tuple[Graph, ...]) -> Types:
    (x,) = types
    shape = square("eigh", x)
    w = TensorType(rules.real(x.dtype), shape[:-1])
    return (w, x) if given["vectors"] else (w,)


def _eigh(x: Array, lower: bool, vectors: bool) -> tuple[Array, ...]:
    side: Any = "L" if lower else "U"
    if not vectors:
        return (np.asarray(np.linalg.eigvalsh(x, side)),)
    made = np.linalg.eigh(x, side)
    return made.eigenvalues, made.eigenvectors


def _paired(dtype: DType) -> DType:
    return dtype if dtype in (C64, C128) else C64 if dtype == F32 else C128


def _infer_eig(types: Types, given: Given, scopes: tuple[Graph, ...]) -> Types:
    (x,) = types
    shape = square("eig", x)
    w, v = rules.shaped(_paired(x.dtype), shape[:-1], shape)
    return (w, v) if given["vectors"] else (w,)


def _eig(x: Array, vectors: bool) -> tuple[Array, ...]:
    dtype = _paired(x.dtype)
    if not vectors:
        return (np.asarray(np.linalg.eigvals(x)).astype(dtype),)
    made = np.linalg.eig(x)
    return made.eigenvalues.astype(dtype), made.eigenvectors.astype(dtype)


def _infer_solve(name: str) -> TypeRule:
    def infer(types: Types, given: Given, scopes: tuple[Graph, ...]) -> Types:
        a, b = types
        shape = square(name, a)
        rules.alike(name, a, b)
        if b.rank != a.rank or b.shape[:-1] != shape[:-1]:
            raise ShapeError(
                f"{name}: {a} and {b} do not fit",
                fix="give as many right sides, with as many rows as the matrix",
            )
        return (b,)

    return infer


def _infer_inv(types: Types, given: Given, scopes: tuple[Graph, ...]) -> Types:
    square("inv", types[0])
    return types


def _substituted(a: Array, b: Array, lower: bool, unit: bool) -> Array:
    """Row by row, each from those before it (or, of an upper matrix, behind it); in double
    precision, as all of NumPy's linear algebra is."""
    n = a.shape[-1]
    x = b.astype(np.result_type(b, np.float64))
    diagonal = np.diagonal(a, axis1=-2, axis2=-1)
    if not unit and np.any(diagonal == 0):
        raise np.linalg.LinAlgError("there is a zero on the diagonal")
    for i in range(n) if lower else reversed(range(n)):
        known = slice(0, i) if lower else slice(i + 1, n)
        x[..., i, :] -= np.matmul(a[..., i : i + 1, known], x[..., known, :])[..., 0, :]
        if not unit:
            x[..., i, :] /= diagonal[..., i, None]
    return x.astype(b.dtype)


def _infer_det(types: Types, given: Given, scopes: tuple[Graph, ...]) -> Types:
    (x,) = types
    return rules.shaped(x.dtype, square("det", x)[:-2])


def _infer_slogdet(types: Types, given: Given, scopes: tuple[Graph, ...]) -> Types:
    (x,) = types
    shape = square("slogdet", x)[:-2]
    return TensorType(x.dtype, shape), TensorType(rules.real(x.dtype), shape)


def _slogdet(x: Array) -> tuple[Array, Array]:
    made = np.linalg.slogdet(x)
    return np.asarray(made.sign), np.asarray(made.logabsdet)


# Samples.

_SQUARES: tuple[Shape, ...] = ((3, 3), (1, 1), (2, 4, 4), (0, 0), (0, 2, 2))


def _adjoint(x: Array) -> Array:
    return np.conj(np.swapaxes(x, -1, -2))


def _drawn(change: Callable[[Array], Array], *givens: Given) -> samples.Samples:
    def draw(random: samples.Random) -> list[Sample]:
        return [
            Sample((change(samples.ordinary(random, dtype, shape)),), given)
            for dtype in rules.taken("wc")
            for shape in _SQUARES
            for given in givens
        ]

    return draw


def _positive(x: Array) -> Array:
    return np.asarray(x @ _adjoint(x) + np.eye(x.shape[-1], dtype=x.dtype), x.dtype)


def _sides(change: Callable[[Array], Array], *givens: Given) -> samples.Samples:
    def draw(random: samples.Random) -> list[Sample]:
        return [
            Sample(
                (
                    change(samples.ordinary(random, dtype, shape)),
                    samples.ordinary(random, dtype, (*shape[:-1], columns)),
                ),
                given,
            )
            for dtype in rules.taken("wc")
            for shape, columns in zip(_SQUARES, (2, 1, 3, 2, 0), strict=True)
            for given in givens
        ]

    return draw


def row(
    name: str,
    infer: TypeRule,
    reference: Callable[..., Any],
    draw: samples.Samples,
    *attributes: Attribute,
    edges: str,
    arity: int = 1,
    raises: bool = True,
    error: Callable[[], ErrorRule] = matrices.MATRICES,
) -> Op:
    """A row of an op on the square matrices in the last two axes."""
    return Op(
        name=name,
        arity=arity,
        infer=infer,
        reference=reference,
        lowering=Routine(name),
        edges=edges,
        bound=16,
        batch=batching.shifted(name, batching.unchanged),
        samples=draw,
        attributes=attributes,
        heeds=guards.surely if raises else guards.never,
        guard=guards.identity if raises else None,
        reads=reads.matrices,
        error=error,
    )


def _flags(*rows: Sequence[bool], names: Sequence[str]) -> list[Given]:
    return [dict(zip(names, values, strict=True)) for values in rows]


ROWS = (
    row(
        "cholesky",
        _infer_cholesky,
        _raising(
            "cholesky",
            "the matrix is not positive definite",
            "add a little to its diagonal, or factor it with np.linalg.eigh",
            np.linalg.cholesky,
        ),
        _drawn(_positive, {}),
        edges="the lower factor, from the lower triangle; not positive definite: MatrixProblem",
    ),
    row(
        "eigh",
        _infer_eigh,
        _raising("eigh", "no convergence", "remove infs and NaNs from the matrix", _eigh),
        _drawn(
            lambda x: x + _adjoint(x),
            *_flags((True, True), (False, True), (True, False), names=("lower", "vectors")),
        ),
        attribute.flag("lower"),
        attribute.flag("vectors"),
        edges="eigenvalues rise; one triangle is read; the signs of vectors are the routine's own",
    ),
    row(
        "eig",
        _infer_eig,
        _raising("eig", "no eigenvalues", "remove infs and NaNs from the matrix", _eig),
        _drawn(lambda x: x, {"vectors": True}, {"vectors": False}),
        attribute.flag("vectors"),
        edges="complex whatever the input; the order is the routine's own; inf, NaN: MatrixProblem",
    ),
    row(
        "solve",
        _infer_solve("solve"),
        _raising(
            "solve",
            "the matrix is singular",
            "use np.linalg.lstsq or np.linalg.pinv",
            np.linalg.solve,
        ),
        _sides(_positive, {}),
        edges="a singular matrix raises MatrixProblem; NaN spreads",
        arity=2,
    ),
    row(
        "inv",
        _infer_inv,
        _raising(
            "inv",
            "the matrix is singular",
            "use np.linalg.pinv, or solve with np.linalg.lstsq",
            np.linalg.inv,
        ),
        _drawn(_positive, {}),
        edges="a singular matrix raises MatrixProblem; NaN spreads",
    ),
    row(
        "triangular_solve",
        _infer_solve("triangular_solve"),
        _raising(
            "triangular_solve",
            "the matrix is singular",
            "make its diagonal nonzero, or say unit=True if it stands for ones",
            _substituted,
        ),
        _sides(
            _positive,
            *_flags(
                (True, False), (False, False), (True, True), (False, True), names=("lower", "unit")
            ),
        ),
        attribute.flag("lower"),
        attribute.flag("unit"),
        edges="one triangle is read; a zero on the diagonal raises MatrixProblem",
        arity=2,
    ),
    row(
        "det",
        _infer_det,
        lambda x: np.asarray(np.linalg.det(x)),
        _drawn(lambda x: x, {}),
        edges="of a singular matrix 0, of no rows 1",
        raises=False,
        error=matrices.DETERMINANT,
    ),
    row(
        "slogdet",
        _infer_slogdet,
        _slogdet,
        _drawn(lambda x: x, {}),
        edges="of a singular matrix 0 and -inf, of no rows 1 and 0",
        raises=False,
    ),
)
