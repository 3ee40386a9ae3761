"""Every function beside NumPy's, on sampled dtypes, shapes and arguments."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

SOME = ("bool", "i8", "u32", "i64", "f16", "f32", "c64")
NUMBERS = ("i16", "u64", "f32", "f64", "c128")
SHAPES = ((3, 4), (4,), (), (2, 0, 3), (2, 3, 4))

REDUCTIONS = {
    "sum": np.sum,
    "prod": np.prod,
    "max": np.max,
    "min": np.min,
    "any": np.any,
    "all": np.all,
    "mean": np.mean,
    "var": np.var,
    "std": np.std,
    "ptp": np.ptp,
    "count_nonzero": np.count_nonzero,
    "nansum": np.nansum,
    "nanprod": np.nanprod,
    "nanmax": np.nanmax,
    "nanmin": np.nanmin,
    "nanmean": np.nanmean,
    "nanvar": np.nanvar,
    "nanstd": np.nanstd,
}
ORDERED = ("max", "min", "ptp", "nanmax", "nanmin")


@pytest.mark.parametrize("name", REDUCTIONS)
def test_reductions(name: str, compare: Any, draw: Any) -> None:
    function = REDUCTIONS[name]
    for dtype in SOME:
        if name in ORDERED and dtype == "c64":  # the op table has no greatest complex number
            continue
        if name == "ptp" and dtype == "bool":
            continue
        for shape in SHAPES:
            x = draw(dtype, shape)
            if dtype == "f32" and x.size > 2:
                x.flat[1] = np.nan
            for axis in (None, 0, -1, (0, -1)):
                if axis is not None and len(shape) < (2 if isinstance(axis, tuple) else 1):
                    continue
                if name in ORDERED and x.size == 0:
                    continue
                for keepdims in (False, True):
                    compare(lambda x: function(x, axis=axis, keepdims=keepdims), x)  # noqa: B023


def test_reductions_over_no_axis(compare: Any, draw: Any) -> None:
    for dtype in ("bool", "i8", "f32"):
        compare(lambda x: (np.sum(x, axis=()), np.max(x, ()), np.mean(x, ())), draw(dtype))


def test_reductions_of_nothing(compare: Any) -> None:
    x = np.zeros((2, 0, 3), "f4")
    compare(lambda x: np.max(x, axis=0), x)
    compare(lambda x: np.max(x, axis=1, initial=3.0), x)
    compare(lambda x: (np.sum(x), np.prod(x), np.any(x), np.all(x), np.mean(x, axis=0)), x)


@pytest.mark.parametrize(
    "f",
    [
        lambda x: np.sum(x, dtype=np.float32),
        lambda x: np.sum(x, axis=(0, 1), initial=5),
        lambda x: np.sum(x, axis=0, where=x > 1),
        lambda x: np.prod(x, where=x > 2),
        lambda x: np.max(x, axis=1, initial=7),
        lambda x: np.min(x, axis=1, initial=0, where=x > 2),
        lambda x: np.mean(x, axis=0, dtype=np.float32),
        lambda x: np.mean(x, axis=1, where=x > -3),
        lambda x: np.var(x, axis=1, ddof=1),
        lambda x: np.std(x, ddof=1, keepdims=True),
        lambda x: np.var(x, where=x > 0),
        lambda x: np.any(x, where=x > 2),
        lambda x: np.all(x, axis=0, where=x > 2),
        lambda x: np.average(x, axis=0),
        lambda x: np.average(x, axis=1, weights=[1, 2, 3, 4]),
        lambda x: np.average(x, weights=np.abs(x) + 1, returned=True),
        lambda x: np.add.reduce(x),
        lambda x: np.add.reduce(x, axis=1, keepdims=True),
        lambda x: np.multiply.reduce(x, axis=None),
        lambda x: np.maximum.reduce(x, axis=1),
        lambda x: np.minimum.reduce(x),
        lambda x: np.logical_and.reduce(x),
        lambda x: np.logical_or.reduce(x, axis=1),
        lambda x: np.subtract.outer(x, x[0]),
        lambda x: (x.sum(), x.sum(0), x.mean(-1), x.min(), x.max(1), x.any(), x.all(0)),
        lambda x: (x.prod(1), x.var(0), x.std(axis=1, keepdims=True), x.argmax(), x.argmin(1)),
    ],
)
@pytest.mark.parametrize("dtype", ["i32", "f64"])
def test_arguments_of_reductions(f: Any, dtype: str, compare: Any, draw: Any) -> None:
    compare(f, draw(dtype))


@pytest.mark.parametrize("function", [np.argmax, np.argmin])
def test_positions(function: Any, compare: Any, draw: Any) -> None:
    for dtype in ("bool", "i8", "f32", "f16"):
        for shape in ((3, 4), (4,), (), (2, 3, 4)):
            for axis in (None, 0, -1):
                if shape or axis is None:
                    compare(lambda x: function(x, axis=axis), draw(dtype, shape))  # noqa: B023
                    compare(
                        lambda x: function(x, axis=axis, keepdims=True),  # noqa: B023
                        draw(dtype, shape),
                    )


SHAPE_CASES: dict[str, tuple[Any, tuple[Any, ...]]] = {
    "reshape": (lambda x: np.reshape(x, (4, 3)), ((3, 4), (2, 6))),
    "reshape -1": (lambda x: np.reshape(x, (2, -1)), ((3, 4), (4,), (0, 2))),
    "reshape int": (lambda x: np.reshape(x, -1), ((3, 4), (), (2, 3))),
    "reshape method": (lambda x: (x.reshape(-1), x.reshape((3, -1)), x.reshape(3, 4)), ((3, 4),)),
    "ravel": (np.ravel, SHAPES),
    "flatten": (lambda x: x.flatten(), SHAPES),
    "transpose": (np.transpose, SHAPES),
    "transpose axes": (lambda x: np.transpose(x, (1, -1, 0)), ((2, 3, 4),)),
    "transpose method": (
        lambda x: (x.transpose(), x.transpose(1, 0), x.transpose((1, 0))),
        ((3, 4),),
    ),
    "T": (lambda x: x.T, SHAPES),
    "mT": (lambda x: (x.mT, np.matrix_transpose(x)), ((3, 4), (2, 3, 4))),
    "swapaxes": (lambda x: np.swapaxes(x, 0, -1), ((3, 4), (2, 3, 4))),
    "moveaxis": (lambda x: np.moveaxis(x, (0, 1), (-1, 0)), ((3, 4), (2, 3, 4))),
    "rollaxis": (lambda x: (np.rollaxis(x, 1), np.rollaxis(x, 0, 2)), ((3, 4), (2, 3, 4))),
    "squeeze": (np.squeeze, ((1, 3, 1), (3,), (), (1, 1))),
    "squeeze axis": (lambda x: np.squeeze(x, 0), ((1, 3, 1), (1,))),
    "expand_dims": (lambda x: (np.expand_dims(x, 0), np.expand_dims(x, (0, -1))), SHAPES),
    "broadcast_to": (lambda x: np.broadcast_to(x, (2, 3, 4)), ((3, 4), (4,), (), (1, 3, 1))),
    "broadcast_arrays": (lambda x: np.broadcast_arrays(x, x[..., :1]), ((3, 4), (4,))),
    "atleast": (
        lambda x: (np.atleast_1d(x), np.atleast_2d(x), np.atleast_3d(x)),
        ((), (4,), (3, 4), (2, 3, 4)),
    ),
    "flip": (lambda x: (np.flip(x), np.flip(x, 0)), ((3, 4), (4,), (0, 2))),
    "fliplr": (lambda x: (np.fliplr(x), np.flipud(x)), ((3, 4),)),
    "rot90": (lambda x: [np.rot90(x, k) for k in range(-1, 4)], ((3, 4), (2, 3, 2))),
    "roll": (
        lambda x: (np.roll(x, 2), np.roll(x, -1, 0), np.roll(x, 5, -1)),
        ((3, 4), (4,), (0, 2)),
    ),
    "roll both": (lambda x: np.roll(x, (1, 2), (0, 1)), ((3, 4),)),
    "tile": (lambda x: (np.tile(x, 2), np.tile(x, (2, 1, 3))), ((3, 4), (), (2,))),
    "repeat": (lambda x: (np.repeat(x, 2), np.repeat(x, 3, axis=0)), ((3, 4), (2,))),
    "repeat counts": (lambda x: np.repeat(x, [2, 0, 1], axis=0), ((3, 4), (3,))),
    "pad": (lambda x: np.pad(x, 1), ((3, 4), (2,), (0, 2))),
    "pad pairs": (lambda x: np.pad(x, ((1, 2), (0, 3)), constant_values=2), ((3, 4),)),
    "pad values": (
        lambda x: np.pad(x, ((1, 2), (0, 3)), constant_values=((1, 2), (0, 1))),
        ((3, 4),),
    ),
    "pad edge": (lambda x: np.pad(x, (2, 1), "edge"), ((3, 4), (2,))),
    "pad reflect": (lambda x: np.pad(x, (2, 1), "reflect"), ((3, 4), (3,))),
    "pad symmetric": (lambda x: np.pad(x, (2, 1), "symmetric"), ((3, 4), (3,))),
    "pad wrap": (lambda x: np.pad(x, (2, 1), mode="wrap"), ((3, 4), (3,))),
    "concatenate": (lambda x: np.concatenate([x, x[:1]]), ((3, 4), (2,))),
    "concatenate axis": (lambda x: np.concatenate((x, x), axis=-1), ((3, 4), (2,), (0, 1))),
    "concatenate flat": (lambda x: np.concatenate((x, x), axis=None), ((3, 4), ())),
    "stack": (lambda x: (np.stack([x, x]), np.stack([x, x], -1)), SHAPES),
    "vstack": (lambda x: np.vstack([x, x]), SHAPES[:3]),
    "hstack": (lambda x: np.hstack([x, x]), SHAPES),
    "dstack": (lambda x: np.dstack([x, x]), SHAPES),
    "column_stack": (lambda x: np.column_stack([x, x]), ((3, 4), (4,))),
    "append": (lambda x: np.append(x, x), ((3, 4), ())),
    "block": (lambda x: np.block([[x, x], [x, x]]), ((3, 4), (2,))),
    "split": (lambda x: np.split(x, 3), ((3, 4), (6,))),
    "array_split": (lambda x: np.array_split(x, 3, axis=-1), ((3, 4), (5,))),
    "split places": (lambda x: np.split(x, [1, 2]), ((3, 4), (6,), (1,))),
    "hsplit": (lambda x: np.hsplit(x, 2), ((3, 4), (6,))),
    "vsplit": (lambda x: np.vsplit(x, 2), ((4, 3),)),
    "dsplit": (lambda x: np.dsplit(x, 2), ((1, 3, 4),)),
    "unstack": (np.unstack, ((3, 4), (2,))),
    "meshgrid": (lambda x: np.meshgrid(x, x[:2]), ((4,),)),
    "meshgrid ij": (lambda x: np.meshgrid(x, x[:2], x[1:], indexing="ij", sparse=True), ((4,),)),
    "sort": (np.sort, ((3, 4), (4,), (0, 3))),
    "sort axis": (lambda x: (np.sort(x, 0), np.sort(x, None)), ((3, 4), (4,))),
    "argsort": (lambda x: (np.argsort(x, kind="stable"), x.argsort(0, kind="stable")), ((3, 4),)),
    "diagonal": (
        lambda x: [np.diagonal(x, k) for k in (-3, -1, 0, 1, 2, 4)],
        ((3, 4), (2, 3, 4), (4, 3)),
    ),
    "diagonal axes": (lambda x: np.diagonal(x, 1, 2, 0), ((2, 3, 4),)),
    "diag": (lambda x: [np.diag(x, k) for k in (-1, 0, 2)], ((3, 4), (3,), (0,))),
    "diagflat": (np.diagflat, ((2, 2), ())),
    "tril": (lambda x: [np.tril(x, k) for k in (-1, 0, 1)], ((3, 4), (2, 3, 3), (3,))),
    "triu": (lambda x: [np.triu(x, k) for k in (-1, 0, 1)], ((3, 4), (2, 3, 3))),
    "take": (
        lambda x: (np.take(x, [0, 2, 1]), np.take(x, 1, 0), x.take([[0], [1]], -1)),
        ((3, 4),),
    ),
    "take clip": (
        lambda x: (np.take(x, [-9, 9], 0, mode="clip"), np.take(x, [-9, 9], mode="wrap")),
        ((3, 4), (3,)),
    ),
    "take_along_axis": (
        lambda x: np.take_along_axis(x, np.array([[0, 1], [2, 3], [-1, 0]]), 1),
        ((3, 4),),
    ),
    "like": (
        lambda x: (
            np.zeros_like(x),
            np.ones_like(x),
            np.full_like(x, 1),
            np.zeros_like(x, shape=2),
        ),
        SHAPES,
    ),
    "copy": (lambda x: (np.copy(x), x.copy()), SHAPES),
    "astype": (lambda x: (x.astype(bool), x.astype("c8"), np.astype(x, np.complex128)), SHAPES),
    "real imag": (lambda x: (x.real, x.imag, np.real(x), np.imag(x), x.conj()), SHAPES),
    "where": (lambda x: np.where(x != 0, x, 1), SHAPES),
    "select": (lambda x: np.select([x == 1, x != 0], [x, x + x], 1), SHAPES),
    "iter": (lambda x: [row + row for row in x], ((3, 4), (2,))),
    "asks": (lambda x: np.zeros((*np.shape(x), np.ndim(x), np.size(x) + len(x))), ((3,), (2, 2))),
}


@pytest.mark.parametrize("name", SHAPE_CASES)
def test_shapes(name: str, compare: Any, draw: Any) -> None:
    f, shapes = SHAPE_CASES[name]
    for i, shape in enumerate(shapes):
        for dtype in SOME if i == 0 else ("f32",):
            compare(f, draw(dtype, shape), exact=True)


def test_reshape_keeps_the_array_at_hand(trace: Any) -> None:
    graph = trace(lambda x: x.reshape(2, 2).reshape(2, 2), np.ones(4))
    assert graph.nodes[0].op == "reshape"


PRODUCTS: dict[str, tuple[Any, tuple[Any, Any]]] = {
    "dot": (np.dot, ((3, 4), (4, 2))),
    "dot vectors": (np.dot, ((4,), (4,))),
    "dot scalar": (np.dot, ((), (4,))),
    "dot deep": (np.dot, ((2, 3, 4), (5, 4, 2))),
    "dot method": (lambda x, y: x.dot(y), ((3, 4), (4,))),
    "vdot": (np.vdot, ((2, 3), (3, 2))),
    "inner": (np.inner, ((2, 4), (3, 4))),
    "inner scalar": (np.inner, ((), (3, 4))),
    "outer": (np.outer, ((3,), (2, 2))),
    "matmul": (np.matmul, ((3, 4), (4, 2))),
    "matmul vector": (lambda x, y: x @ y, ((4,), (4, 2))),
    "matmul to vector": (lambda x, y: x @ y, ((3, 4), (4,))),
    "matmul vectors": (lambda x, y: x @ y, ((4,), (4,))),
    "matmul batch": (np.matmul, ((5, 3, 4), (5, 4, 2))),
    "matmul broadcast": (np.matmul, ((5, 1, 3, 4), (2, 4, 2))),
    "matmul left": (np.matmul, ((3, 4), (5, 4, 2))),
    "matmul right": (np.matmul, ((2, 5, 3, 4), (4, 2))),
    "matmul vector batch": (np.matmul, ((4,), (5, 4, 2))),
    "matmul batch vector": (np.matmul, ((5, 3, 4), (4,))),
    "matmul empty": (np.matmul, ((3, 0), (0, 2))),
    "vecdot": (np.vecdot, ((5, 4), (4,))),
    "matvec": (np.matvec, ((5, 3, 4), (5, 4))),
    "vecmat": (np.vecmat, ((5, 3), (5, 3, 2))),
    "tensordot": (np.tensordot, ((2, 3, 4), (3, 4, 5))),
    "tensordot axes": (lambda x, y: np.tensordot(x, y, ([0, 1], [1, 0])), ((2, 3, 4), (3, 2, 5))),
    "tensordot none": (lambda x, y: np.tensordot(x, y, 0), ((2, 3), (2,))),
    "kron": (np.kron, ((2, 3), (4,))),
    "cross": (np.cross, ((2, 3), (2, 3))),
    "einsum": (lambda x, y: np.einsum("ij,jk->ik", x, y), ((3, 4), (4, 2))),
    "einsum implied": (lambda x, y: np.einsum("ij,kj", x, y), ((3, 4), (2, 4))),
    "einsum batch": (lambda x, y: np.einsum("bij,bjk->bik", x, y), ((5, 3, 4), (5, 4, 2))),
    "einsum dots": (lambda x, y: np.einsum("...ij,jk->...ik", x, y), ((5, 3, 4), (4, 2))),
    "einsum outer": (lambda x, y: np.einsum("i,j->ji", x, y), ((3,), (2,))),
    "einsum sum": (lambda x, y: np.einsum("ij,jk->", x, y), ((3, 4), (4, 2))),
    "einsum mixed": (lambda x, y: np.einsum("ij,ij->j", x, y), ((3, 4), (3, 4))),
    "einsum lists": (lambda x, y: np.einsum(x, [0, 1], y, [1, 2], [2, 0]), ((3, 4), (4, 2))),
    "einsum stretch": (lambda x, y: np.einsum("ij,jk->ik", x, y), ((3, 1), (4, 2))),
    "einsum three": (lambda x, y: np.einsum("ij,jk,kl->li", x, y, x), ((3, 3), (3, 3))),
    "einsum trace": (lambda x, y: np.einsum("ii,jj->", x, y), ((3, 3), (2, 2))),
    "einsum diagonal": (lambda x, y: np.einsum("ii,i->i", x, y), ((3, 3), (3,))),
    "einsum thrice": (lambda x, y: np.einsum("iii,j->ij", x, y), ((2, 2, 2), (3,))),
    "einsum one": (lambda x, y: (np.einsum("ij->ji", x), np.einsum("ij->i", y)), ((2, 3), (2, 3))),
    "trace": (lambda x, y: (np.trace(x), np.trace(y, 1, 1, 2)), ((3, 4), (2, 3, 4))),
}


@pytest.mark.parametrize("name", PRODUCTS)
def test_products(name: str, compare: Any, draw: Any) -> None:
    f, (left, right) = PRODUCTS[name]
    for dtype in ("bool", *NUMBERS):
        if name == "cross" and dtype == "bool":
            continue
        x, y = draw(dtype, left), draw(dtype, right, seed=1)
        compare(f, x, y)
    compare(f, draw("f32", left), draw("i8", right, 1))


def test_captured_operands(compare: Any, draw: Any) -> None:
    w = draw("f64", (4, 5))
    compare(lambda x: (x @ w, w.T @ x.T, np.add(w[:3, :4], x), w[0, 0] * x), draw("f32"))


def test_captured_tables(compare: Any) -> None:
    from tenfold.trace.scope import current
    from tenfold.trace.surface.shaping.creation import asarray

    table = np.arange(60.0).reshape(20, 3)
    places = np.arange(40).reshape(2, 20) % 3
    compare(lambda i: asarray(table)[i], np.array([3, -1, 0]))
    compare(lambda x: x[places], np.arange(3.0))
    compare(lambda x: x[places.astype(np.uint8)], np.arange(3.0))
    assert current() is None
    assert asarray([1, 2], "f4").dtype == np.float32


def test_linspace_between_traced_numbers(compare: Any) -> None:
    compare(lambda a, b: np.linspace(a, b, 5), np.float32(1), np.float64(3))
    compare(lambda a: np.linspace(0, a, 4, endpoint=False), np.float32(1))
    compare(lambda a: (np.linspace(a, 1j, 4), np.linspace(a, 2, 3, dtype=int)), np.float16(1))


def test_factorisations(run: Any, draw: Any) -> None:
    from tenfold.trace.surface.algebra.linalg import lu

    x = draw("f64", (4, 3))
    q, r = run(lambda x: np.linalg.qr(x), x)
    np.testing.assert_allclose(q @ r, x, atol=1e-12)
    u, s, vh = run(lambda x: np.linalg.svd(x, full_matrices=False), x)
    np.testing.assert_allclose(u * s @ vh, x, atol=1e-12)
    p, lower, upper = run(lu, x)
    np.testing.assert_allclose(p @ lower @ upper, x, atol=1e-12)
    (values,) = run(lambda x: np.linalg.svd(x, compute_uv=False), x.astype(int))
    assert values.shape == (3,)
    (norm,) = run(lambda x: np.linalg.qr(x).R.sum() + np.linalg.svd(x).S.sum(), x)
    assert norm.shape == ()


def test_other_names(compare: Any, draw: Any) -> None:
    def f(x: Any, y: Any) -> Any:
        return (
            np.linalg.matrix_transpose(x),
            np.linalg.matmul(x, y.T),
            np.linalg.outer(x[0], y[0]),
            np.linalg.tensordot(x, y),
            np.linalg.vecdot(x, y, axis=0),
            np.linalg.cross(x[:, :3], y[:, :3]),
            np.linalg.diagonal(x, offset=1),
            np.linalg.trace(x),
            np.linalg.svdvals(x),
            np.amax(x),
            np.amin(x, 0),
            np.concat([x, y]),
            np.permute_dims(x, (1, 0)),
            np.pow(x, 2),
            np.atan2(x, y),
        )

    compare(f, draw("f64"), draw("f64", seed=1))


def test_empty_like_is_of_zeros(run: Any, draw: Any) -> None:
    (made,) = run(lambda x: np.empty_like(x, dtype=np.int8), draw("f64"))
    assert made.dtype == np.int8
    assert made.shape == (3, 4)
    assert not made.any()


@pytest.mark.parametrize(
    "f",
    [
        np.linalg.norm,
        lambda x: np.linalg.norm(x, axis=1),
        lambda x: np.linalg.norm(x, 1, axis=0, keepdims=True),
        lambda x: np.linalg.norm(x, np.inf, axis=-1),
        lambda x: np.linalg.norm(x, 3, axis=-1),
        lambda x: np.linalg.norm(x, 0, axis=-1),
        lambda x: [np.linalg.norm(x, o) for o in ("fro", 1, -1, np.inf, -np.inf)],
        lambda x: (np.linalg.vector_norm(x), np.linalg.matrix_norm(x)),
    ],
)
def test_norms(f: Any, compare: Any, draw: Any) -> None:
    for dtype in ("i32", "f32", "c128"):
        compare(f, draw(dtype))


NUMERIC: dict[str, Any] = {
    "round": lambda x: (np.round(x), np.around(x, 1), np.round(x, -1), x.round()),
    "clip": lambda x: (np.clip(x, 0, 2), np.clip(x, None, 1), x.clip(0), np.clip(x, min=1, max=3)),
    "nan_to_num": lambda x: np.nan_to_num(x),
    "isclose": lambda x: (np.isclose(x, x + 1e-9), np.isclose(x, 2), np.allclose(x, x)),
    "array_equal": lambda x: (np.array_equal(x, x), np.array_equal(x, x[:1])),
    "diff": lambda x: (np.diff(x), np.diff(x, 2, 0), np.diff(x, prepend=1, append=0)),
    "polyval": lambda x: np.polyval([1, 2, 3], x),
    "sinc": np.sinc,
    "angle": lambda x: (np.angle(x), np.angle(x, deg=True)),
    "fix": np.fix,
    "isreal": lambda x: (np.isreal(x), np.iscomplex(x)),
    "infinities": lambda x: (np.isposinf(x), np.isneginf(x)),
    "trapezoid": lambda x: (np.trapezoid(x), np.trapezoid(x, dx=2.0, axis=0)),
    "choose": lambda x: np.choose(np.array([0, 1, 1, 0]), [x, x + 1]),
}


@pytest.mark.parametrize("name", NUMERIC)
def test_numeric(name: str, compare: Any, draw: Any) -> None:
    for dtype in ("i32", "u8", "f32", "f64", "c64"):
        if dtype == "c64" and name in ("fix", "infinities"):
            continue
        x = draw(dtype)
        if dtype == "f64" and name != "choose":
            x[0, :3] = np.nan, np.inf, -np.inf
        compare(NUMERIC[name], x)


def test_creation_inside_a_trace(compare: Any) -> None:
    from tenfold.trace.scope import current
    from tenfold.trace.surface.shaping import creation as tn

    def f(x: Any) -> Any:
        module: Any = np if current() is None else tn
        return (
            x + module.zeros((2, 3)),
            module.ones(3, np.float32),
            module.full((2, 2), 7, np.int8),
            module.arange(20),
            module.arange(2, 30, 3),
            module.arange(0.5, 3.0, 0.25),
            module.arange(9, 0, -2),
            module.arange(5, 5),
            module.linspace(0, 1, 7),
            module.linspace(2, 9, 5, endpoint=False),
            module.linspace(1, 1, 3),
            module.linspace(0, 1, 1),
            module.eye(3),
            module.eye(3, 4, 1, np.int32),
        )

    compare(f, np.ones((2, 3)))


def test_creation_outside_a_trace() -> None:
    from tenfold.trace.surface.shaping import creation as tn

    assert tn.zeros((2,), "bfloat16").dtype.name == "bfloat16"
    assert tn.iota((2, 2), axis=1).tolist() == [[0, 1], [0, 1]]
    assert tn.arange(3).tolist() == [0, 1, 2]
    assert tn.full((2,), 3).tolist() == [3, 3]
    assert tn.eye(1).tolist() == [[1.0]]
    assert tn.linspace(0, 1, 2).tolist() == [0.0, 1.0]
    assert tn.ones(1, "i8").dtype == np.int64


def test_what_is_known_while_tracing(run: Any) -> None:
    def f(x: Any) -> Any:
        assert np.shape(x) == x.shape == (3, 4)
        assert np.ndim(x) == 2
        assert np.size(x) == 12
        assert np.size(x, 0) == len(x) == 3
        assert np.result_type(x, np.float64) == np.float64
        assert np.result_type(x, 1.0) == np.float32
        assert np.iscomplexobj(x) is False
        assert np.isrealobj(x) is True
        assert x.nbytes == 48
        assert x.itemsize == 4
        return x

    run(f, np.ones((3, 4), "f4"))
