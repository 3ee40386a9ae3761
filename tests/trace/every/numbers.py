"""Functions of numbers, polynomials, bits and dtypes; creation."""

from __future__ import annotations

import numpy as np

from .case import DTYPES, REAL, SHAPES, VECTORS, Case, plain

CASES: dict[str, Case] = {
    "round": Case(lambda x: np.round(x), lambda x: np.round(x, 1), lambda x: np.round(x, -1)),
    "around": plain(np.around),
    "fix": plain(np.fix, dtypes=REAL),
    "nan_to_num": plain(np.nan_to_num, lambda x: np.nan_to_num(x / 0, nan=1, posinf=2)),
    "isposinf": plain(np.isposinf, dtypes=REAL),
    "isneginf": plain(np.isneginf, dtypes=REAL),
    "isreal": plain(np.isreal),
    "iscomplex": plain(np.iscomplex),
    "iscomplexobj": plain(np.iscomplexobj),
    "isrealobj": plain(np.isrealobj),
    "result_type": plain(lambda x: np.zeros(1, np.result_type(x, 1.0))),
    "can_cast": Case(lambda x: np.can_cast(x, "f4"), lambda x: np.can_cast(x, "i4", "same_kind")),
    "common_type": plain(lambda x: np.zeros(1, np.common_type(x, x))),
    "min_scalar_type": plain(lambda x: np.zeros(1, np.min_scalar_type(x)), shapes=((3, 4), (0, 2))),
    "real_if_close": plain(np.real_if_close, dtypes=REAL),
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
    "real": plain(np.real),
    "imag": plain(np.imag),
    "sinc": plain(np.sinc),
    "i0": plain(np.i0, dtypes=REAL),
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
    "polyadd": plain(lambda x: np.polyadd(x, [1, 2]), shapes=((4,), (1,), ())),
    "polysub": plain(lambda x: np.polysub([1, 2], x), shapes=((4,), (1,), ())),
    "polymul": plain(
        lambda x: np.polymul(np.append(1, x), [1, 2]), shapes=((4,), (1,)), dtypes=DTYPES[1:]
    ),
    "polyder": Case(lambda x: np.polyder(x), lambda x: np.polyder(x, 2), shapes=((4,), (1,))),
    "polyint": Case(
        lambda x: np.polyint(x),
        lambda x: np.polyint(x, 2, k=3),
        lambda x: np.polyint(x, 2, k=[1, 2]),
        shapes=((4,), (1,)),
    ),
    "poly": plain(np.poly, shapes=((4,), (1,)), dtypes=REAL[1:4] + REAL[5:], fuzz=256),
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
    "zeros_like": plain(np.zeros_like, lambda x: np.zeros_like(x, dtype=int, shape=(2,))),
    "ones_like": plain(np.ones_like),
    "full_like": plain(lambda x: np.full_like(x, 1)),
    "empty_like": plain(lambda x: np.zeros_like(np.empty_like(x))),
    "copy": plain(np.copy),
    "astype": Case(lambda x: np.astype(x, np.complex128), lambda x: np.astype(x, np.bool_)),
}
