"""Every op against another way to compute it: floats in long double, integers as Python's own,
moves of elements by loops over positions, factorings by multiplying back."""

from __future__ import annotations

import math
from collections.abc import Callable
from itertools import product
from typing import Any

import ml_dtypes
import numpy as np
import pytest

from tenfold.graph import Op
from tenfold.graph.op import Element, Pointwise
from tenfold.ops import TABLE
from tenfold.types import DTYPES, KIND

# Elementwise ops on floats and complex numbers, in long double.
WIDE: dict[str, Callable[..., Any]] = {
    "add": lambda a, b: a + b,
    "sub": lambda a, b: a - b,
    "mul": lambda a, b: a * b,
    "div": lambda a, b: a / b,
    "mod": np.mod,
    "fmod": np.fmod,
    "floordiv": np.floor_divide,
    "pow": np.power,
    "max": lambda a, b: np.where(np.isnan(a) | (a >= b), a, b),
    "min": lambda a, b: np.where(np.isnan(a) | (a <= b), a, b),
    "fmax": lambda a, b: np.where(np.isnan(b) | (a >= b), a, b),
    "fmin": lambda a, b: np.where(np.isnan(b) | (a <= b), a, b),
    "neg": lambda a: -a,
    "abs": np.abs,
    "sign": lambda a: np.sign(a),
    "floor": lambda a: np.floor(a),
    "ceil": lambda a: -np.floor(-a),
    "trunc": lambda a: np.where(np.signbit(a), np.ceil(a), np.floor(a)),
    "round": np.rint,
    "sqrt": np.sqrt,
    "cbrt": np.cbrt,
    "rsqrt": lambda a: 1 / np.sqrt(a),
    "exp": np.exp,
    "exp2": np.exp2,
    "expm1": np.expm1,
    "log": np.log,
    "log2": np.log2,
    "log10": np.log10,
    "log1p": np.log1p,
    "sin": np.sin,
    "cos": np.cos,
    "tan": np.tan,
    "asin": np.arcsin,
    "acos": np.arccos,
    "atan": np.arctan,
    "sinh": np.sinh,
    "cosh": np.cosh,
    "tanh": np.tanh,
    "asinh": np.arcsinh,
    "acosh": np.arccosh,
    "atanh": np.arctanh,
    "sigmoid": lambda a: 1 / (1 + np.exp(-a)),
    "atan2": np.arctan2,
    "hypot": np.hypot,
    "logaddexp": np.logaddexp,
    "copysign": lambda a, b: np.where(np.signbit(b), -np.abs(a), np.abs(a)),
    "real": np.real,
    "imag": np.imag,
    "conj": lambda a: np.real(a) - 1j * np.imag(a),
    "complex": lambda a, b: a + 1j * b,
    "clip": lambda a, low, high: WIDE["min"](WIDE["max"](a, low), high),
    "eq": lambda a, b: a == b,
    "ne": lambda a, b: a != b,
    "lt": lambda a, b: a < b,
    "le": lambda a, b: a <= b,
    "gt": lambda a, b: a > b,
    "ge": lambda a, b: a >= b,
    "isnan": lambda a: a != a,
    "isinf": np.isinf,
    "isfinite": lambda a: np.isfinite(a.real) & np.isfinite(a.imag),
    "signbit": np.signbit,
}

# Elementwise ops on integers and bools, as Python's; the result wraps to its dtype.
EXACT: dict[str, Callable[..., Any]] = {
    "add": lambda a, b: a + b,
    "sub": lambda a, b: a - b,
    "mul": lambda a, b: a * b,
    "floordiv": lambda a, b: a // b if b else 0,
    "mod": lambda a, b: a % b if b else 0,
    "fmod": lambda a, b: (abs(a) % abs(b)) * (-1 if a < 0 else 1) if b else 0,
    "pow": lambda a, b: a**b,
    "max": max,
    "min": min,
    "fmax": max,
    "fmin": min,
    "neg": lambda a: -a,
    "abs": abs,
    "sign": lambda a: (a > 0) - (a < 0),
    "floor": math.floor,
    "ceil": math.ceil,
    "trunc": math.trunc,
    "round": round,
    "clip": lambda a, low, high: min(max(a, low), high),
    "and": lambda a, b: a & b,
    "or": lambda a, b: a | b,
    "xor": lambda a, b: a ^ b,
    "not": lambda a: not a if isinstance(a, bool) else ~a,
    "popcount": int.bit_count,
    "eq": lambda a, b: a == b,
    "ne": lambda a, b: a != b,
    "lt": lambda a, b: a < b,
    "le": lambda a, b: a <= b,
    "gt": lambda a, b: a > b,
    "ge": lambda a, b: a >= b,
}


def wrapped(values: Any, dtype: Any) -> Any:
    """Python integers brought into a dtype."""
    if KIND[dtype] == "b":
        return np.asarray(values, object).astype(bool)
    low = np.asarray(values, object) & (2**64 - 1)
    return np.asarray(low, np.uint64).astype(dtype)


def exactly(function: Callable[..., Any], arrays: Any, dtype: Any) -> Any:
    arrays = np.broadcast_arrays(*arrays)
    made = np.empty(arrays[0].shape, object)
    for at in np.ndindex(*made.shape):
        made[at] = function(*(a[at].item() for a in arrays))
    return wrapped(made, dtype)


def widely(function: Callable[..., Any], arrays: Any) -> Any:
    kind = np.clongdouble if arrays[0].dtype.kind == "c" else np.longdouble
    narrow = [a.astype(np.float64) if a.dtype.kind == "V" else a for a in arrays]
    return np.asarray(function(*(a.astype(kind) for a in narrow)))


def within(op: Op, got: Any, want: Any, slack: Any = 0) -> None:
    """Assert that floats lie within the op's bound and one unit more; `slack` is the oracle's."""
    if got.dtype == bool:
        np.testing.assert_array_equal(got, want)
        return
    complex_ = got.dtype.kind == "c"
    part = {"complex64": np.float32, "complex128": np.float64}.get(got.dtype.name, got.dtype)
    info = ml_dtypes.finfo(part)
    wide = got.astype(np.clongdouble if complex_ else np.longdouble)
    if complex_:
        # Where a part is infinite or NaN, C leaves the other to the library.
        odd = ~(np.isfinite(wide) & np.isfinite(want)) | (np.abs(want) > float(info.max) / 4)
        wide, want = np.where(odd, 0, wide), np.where(odd, 0, want)
    else:
        want = np.where(np.abs(want) > np.longdouble(info.max), np.sign(want) * np.inf, want)
        special = ~(np.isfinite(wide) & np.isfinite(want))
        np.testing.assert_array_equal(wide[special], want[special])
        wide, want = np.where(special, 0, wide), np.where(special, 0, want)
    size = np.maximum(np.abs(want), np.longdouble(info.smallest_normal))
    unit = np.exp2(np.floor(np.log2(size))) * np.longdouble(info.eps)
    more = 4 if complex_ else 0
    allowed = (op.bound + 1 + more + slack) * unit
    error = np.abs(wide - want)
    assert np.all(error <= allowed), (op.name, float(np.max(error / unit)))


def conditioned(op: Op, arrays: Any) -> Any:
    """What complex powers may be off by besides: they multiply a logarithm by the exponent."""
    if arrays[0].dtype.kind != "c" or op.name not in ("pow", "exp2"):
        return 0
    base, exponent = arrays if op.name == "pow" else (np.array(2.0), arrays[0])
    return np.nan_to_num(4 * np.abs(exponent) * (1 + np.abs(np.log(base))), posinf=0)


OWN = ("nextafter", "erf", "erfc", "shl", "shr")  # these have tests of their own below
# These have tests of their own in the files of their kinds.
_APART = """
    erf_inv lgamma digamma gcd threefry cumsum cumprod cummax cummin windows conv conv_valid
    searchsorted top_k top_few cholesky eigh eig solve inv triangular_solve det slogdet fft rfft
    irfft reach
"""
APART = tuple(_APART.split())
ELEMENTWISE = [
    pytest.param(op, id=op.name)
    for op in TABLE.values()
    if (op.name in WIDE or op.name in EXACT or isinstance(op.lowering, Pointwise))
    and op.name not in OWN
]


@pytest.mark.parametrize("op", ELEMENTWISE)
def test_elementwise(op: Op) -> None:
    for sample in op.samples(np.random.default_rng(11)):
        (got, arrays) = (op.reference(*sample.inputs), sample.inputs)
        dtype = arrays[0].dtype
        if KIND[dtype] in "biu":
            assert op.name in EXACT, f"{op.name} has no oracle on integers"
            want = exactly(EXACT[op.name], arrays, got.dtype)
            np.testing.assert_array_equal(got, want)
        elif op.name in ("floordiv", "mod"):
            # In float32 itself: the quotient is rounded, and floor makes much of it.
            work = np.float32 if dtype.itemsize == 2 else dtype
            want = np.divmod(*(a.astype(work) for a in arrays))[op.name == "mod"]
            np.testing.assert_array_equal(got.astype(float), want.astype(dtype).astype(float))
        else:
            assert op.name in WIDE, f"{op.name} has no oracle on floats"
            within(op, got, widely(WIDE[op.name], arrays), conditioned(op, arrays))


@pytest.mark.parametrize("name", ["erf", "erfc"])
def test_erf(name: str) -> None:
    special = pytest.importorskip("scipy.special", reason="scipy has the other erf")
    x = np.concatenate([np.linspace(-6, 6, 101), np.array([0.0, 1e-30, 25.0, np.inf, np.nan])])
    for dtype in (np.float64, np.float32, np.float16, ml_dtypes.bfloat16):
        given = x.astype(dtype)
        want = getattr(special, name)(given.astype(np.float64)).astype(np.longdouble)
        # scipy's own erfc is off by a dozen units in the tail.
        within(TABLE[name], TABLE[name].reference(given), want, 16 if name == "erfc" else 0)


def test_nextafter() -> None:
    op = TABLE["nextafter"]
    for sample in op.samples(np.random.default_rng(12)):
        a, b = np.broadcast_arrays(*sample.inputs)
        got = op.reference(a, b)
        bits = np.dtype(f"i{a.dtype.itemsize}")
        x, y, z = (v.astype(np.longdouble) for v in (a, b, got))
        nan = np.isnan(x) | np.isnan(y)
        assert np.array_equal(np.isnan(z), nan)
        assert np.array_equal(z[~nan] > x[~nan], y[~nan] > x[~nan])
        assert np.array_equal(z[~nan] < x[~nan], y[~nan] < x[~nan])
        steps = np.abs(got.view(bits).astype(object) - a.view(bits).astype(object))
        plain = ~nan & (x != y) & (x != 0)
        assert all(s == 1 for s in steps[plain])


@pytest.mark.parametrize("name", ["shl", "shr"])
def test_shifts(name: str) -> None:
    op = TABLE[name]
    for sample in op.samples(np.random.default_rng(13)):
        width = sample.inputs[0].dtype.itemsize * 8

        def shifted(a: int, by: int, width: int = width) -> int:
            by = by if 0 <= by < width else width
            return a << by if name == "shl" else a >> by

        want = exactly(shifted, sample.inputs, sample.inputs[0].dtype)
        np.testing.assert_array_equal(op.reference(*sample.inputs), want)


# Everything else: a function of the inputs and attributes that gives what is expected.


def _loop(shape: Any, dtype: Any, element: Callable[[Any], Any]) -> Any:
    made = np.empty(shape, dtype)
    for at in np.ndindex(*shape):
        made[at] = element(at)
    return made


def _select(condition: Any, a: Any, b: Any) -> Any:
    condition, a, b = np.broadcast_arrays(condition, a, b)
    return _loop(a.shape, a.dtype, lambda at: a[at] if condition[at] else b[at])


def _cast(x: Any, dtype: str) -> Any:
    target = DTYPES[dtype]

    def element(at: Any) -> Any:
        value = x[at].item() if x.dtype.kind != "V" else float(x[at])
        if KIND[target] != "c" and isinstance(value, complex):
            value = bool(value) if KIND[target] == "b" else value.real
        if KIND[target] == "b":
            return bool(value != 0)
        if KIND[target] not in "iu":
            return np.array(value).astype(np.float32).astype(target) if dtype == "bf16" else value
        if isinstance(value, float):
            limits = np.iinfo(target)
            if math.isnan(value):
                return 0
            return (
                int(min(max(value, limits.min), limits.max))
                if math.isinf(value)
                else min(max(int(value), limits.min), limits.max)
            )
        return wrapped(int(value), target)

    return _loop(x.shape, target, element)


def _bitcast(x: Any, dtype: str) -> Any:
    return np.frombuffer(x.tobytes(), DTYPES[dtype]).reshape(x.shape)


def _constant(data: bytes, type: str) -> Any:
    from tenfold.types import parse_type

    made = parse_type(type)
    return np.ndarray(made.shape, made.dtype, data)


def _iota(dtype: str, shape: Any, axis: int) -> Any:
    target = DTYPES[dtype]
    value = (lambda i: wrapped(i, target)) if KIND[target] in "iu" else (lambda i: i)
    return _loop(shape, target, lambda at: value(at[axis]))


def _fold(step: Callable[[Any, Any], Any], start: Any) -> Callable[..., Any]:
    def reduced(x: Any, axes: Any) -> Any:
        kept = [a for a in range(x.ndim) if a not in axes]
        work = x.astype(np.float32) if x.dtype.itemsize == 2 and KIND[x.dtype] == "f" else x
        made = _loop([x.shape[a] for a in kept], object, lambda at: None)
        for at in np.ndindex(*x.shape):
            here = tuple(at[a] for a in kept)
            value = work[at] if made[here] is None else step(made[here], work[at])
            made[here] = value
        made = _loop(made.shape, work.dtype, lambda at: start if made[at] is None else made[at])
        return made.astype(x.dtype)

    return reduced


def _larger(a: Any, b: Any) -> Any:
    return a if a != a or a >= b else b


def _smaller(a: Any, b: Any) -> Any:
    return a if a != a or a <= b else b


def _arg(better: Callable[[Any, Any], bool]) -> Callable[..., Any]:
    def found(x: Any, axis: int) -> Any:
        x = x.astype(np.float64) if KIND[x.dtype] == "f" else x
        moved = np.moveaxis(x, axis, -1)

        def element(at: Any) -> int:
            best = 0
            for i, value in enumerate(moved[at]):
                held = moved[at][best]
                if held == held and (value != value or better(value, held)):
                    best = i
            return best

        return _loop(moved.shape[:-1], np.int64, element)

    return found


def _unflat(x: Any, shape: Any) -> Any:
    flat = list(x.ravel())
    return _loop(shape, x.dtype, lambda at: flat[np.ravel_multi_index(at, shape) if at else 0])


def _transpose(x: Any, axes: Any) -> Any:
    shape = [x.shape[a] for a in axes]
    return _loop(shape, x.dtype, lambda at: x[tuple(at[axes.index(a)] for a in range(x.ndim))])


def _broadcast(x: Any, shape: Any) -> Any:
    def element(at: Any) -> Any:
        own = at[len(shape) - x.ndim :]
        return x[tuple(0 if n == 1 else i for i, n in zip(own, x.shape, strict=True))]

    return _loop(shape, x.dtype, element)


def _pad(x: Any, value: Any, low: Any, high: Any, interior: Any) -> Any:
    shape = [
        a + b + n + max(n - 1, 0) * k
        for n, a, b, k in zip(x.shape, low, high, interior, strict=True)
    ]
    made = np.full(shape, value, x.dtype)
    for at in np.ndindex(*x.shape):
        to = tuple(i * (k + 1) + a for i, k, a in zip(at, interior, low, strict=True))
        if all(0 <= i < n for i, n in zip(to, shape, strict=True)):
            made[to] = x[at]
    return made


def _slice(x: Any, starts: Any, stops: Any, steps: Any) -> Any:
    rows = [list(range(*r)) for r in zip(starts, stops, steps, strict=True)]
    return _loop(
        [len(r) for r in rows],
        x.dtype,
        lambda at: x[tuple(r[i] for r, i in zip(rows, at, strict=True))],
    )


def _reverse(x: Any, axes: Any) -> Any:
    return _loop(
        x.shape,
        x.dtype,
        lambda at: x[tuple(x.shape[a] - 1 - i if a in axes else i for a, i in enumerate(at))],
    )


def _concatenate(*arrays: Any, axis: int) -> Any:
    rows = [np.moveaxis(a, axis, 0) for a in arrays]
    return np.moveaxis(
        np.array([r for row in rows for r in row], arrays[0].dtype).reshape(
            sum(len(row) for row in rows), *rows[0].shape[1:]
        ),
        0,
        axis,
    )


def _place(index: Any, extent: int, mode: str) -> int:
    i = int(index)
    if mode == "wrap":
        return i % extent
    if mode == "clip":
        return min(max(i, 0), extent - 1)
    return i + extent if i < 0 else i


def _frames(x: Any, indices: Any, axes: Any, at: int, mode: str) -> Any:
    """Pairs of a position in what is taken and one in x, in row-major order of the indices."""
    indices = np.broadcast_arrays(*indices)
    inner = indices[0].shape
    rest = [a for a in range(x.ndim) if a not in axes]
    shape = (*(x.shape[a] for a in rest[:at]), *inner, *(x.shape[a] for a in rest[at:]))
    pairs = []
    for s in np.ndindex(*inner):
        for r in product(*(range(x.shape[a]) for a in rest)):
            source = [0] * x.ndim
            for a, i in zip(rest, r, strict=True):
                source[a] = i
            for a, index in zip(axes, indices, strict=True):
                source[a] = _place(index[s], x.shape[a], mode)
            pairs.append(((*r[:at], *s, *r[at:]), tuple(source)))
    return shape, pairs


def _gather(x: Any, *indices: Any, axes: Any, at: int, mode: str) -> Any:
    shape, pairs = _frames(x, indices, axes, at, mode)
    made = np.empty(shape, x.dtype)
    for target, source in pairs:
        made[target] = x[source]
    return made


def _scatter(x: Any, updates: Any, *indices: Any, axes: Any, at: int, mode: str, kind: str) -> Any:
    step = {
        "set": lambda a, b: b,
        "add": lambda a, b: a + b,
        "mul": lambda a, b: a * b,
        "min": _smaller,
        "max": _larger,
    }[kind]
    narrow = x.dtype.itemsize == 2 and KIND[x.dtype] == "f"
    made = x.astype(np.float32) if narrow else x.copy()
    _, pairs = _frames(x, indices, axes, at, mode)
    for source, target in pairs:
        made[target] = step(made[target], updates[source].astype(made.dtype))
    return made.astype(x.dtype)


def _firsts(starts: Any, shape: Any, sizes: Any) -> Any:
    rows = zip(starts, shape, sizes, strict=True)
    return [min(max(int(s), 0), n - m) for s, n, m in rows]


def _dynamic_slice(x: Any, *starts: Any, sizes: Any) -> Any:
    firsts = _firsts(starts, x.shape, sizes)
    return _loop(
        sizes, x.dtype, lambda at: x[tuple(a + i for a, i in zip(firsts, at, strict=True))]
    )


def _dynamic_update(x: Any, update: Any, *starts: Any) -> Any:
    made, firsts = x.copy(), _firsts(starts, x.shape, update.shape)
    for at in np.ndindex(*update.shape):
        made[tuple(a + i for a, i in zip(firsts, at, strict=True))] = update[at]
    return made


def _contract(
    lhs: Any, rhs: Any, lhs_contract: Any, rhs_contract: Any, lhs_batch: Any, rhs_batch: Any
) -> Any:
    letters = iter("abcdefghijklmnop")
    left, right = [""] * lhs.ndim, [""] * rhs.ndim
    for a, b in [
        *zip(lhs_batch, rhs_batch, strict=True),
        *zip(lhs_contract, rhs_contract, strict=True),
    ]:
        left[a] = right[b] = next(letters)
    left = [c or next(letters) for c in left]
    right = [c or next(letters) for c in right]
    out = [left[a] for a in lhs_batch]
    out += [c for c in left if c not in right] + [c for c in right if c not in left]
    wide = {"f": np.float64, "c": np.complex128, "b": np.int64}.get(KIND[lhs.dtype], lhs.dtype)
    formula = f"{''.join(left)},{''.join(right)}->{''.join(out)}"
    return np.einsum(formula, lhs.astype(wide), rhs.astype(wide)).astype(lhs.dtype)


def _ordered(x: Any, axis: int) -> Any:
    """The stable order, NaN last, by Python's sort."""
    wide = x.astype(np.float64) if KIND[x.dtype] == "f" else x
    moved = np.moveaxis(wide, axis, -1)

    def key(value: Any) -> Any:
        if KIND[x.dtype] != "c":
            return (value != value, 0 if value != value else value)
        re, im = value.real, value.imag
        odd = (re != re) * 2 + (im != im)  # with NaN: in the imaginary, the real, both
        return (odd, 0 if re != re else re, 0 if im != im else im)

    made = np.empty(moved.shape, np.int64)
    for at in np.ndindex(*moved.shape[:-1]):
        row = moved[at]
        made[at] = sorted(range(len(row)), key=lambda i: key(row[i]))
    return np.moveaxis(made, -1, axis)


def _sort(x: Any, axis: int) -> Any:
    return np.take_along_axis(x, _ordered(x, axis), axis)


ORACLE: dict[str, Callable[..., Any]] = {
    "select": _select,
    "cast": _cast,
    "bitcast": _bitcast,
    "constant": _constant,
    "iota": _iota,
    "reduce_sum": _fold(lambda a, b: a + b, 0),
    "reduce_prod": _fold(lambda a, b: a * b, 1),
    "reduce_max": _fold(_larger, 0),
    "reduce_min": _fold(_smaller, 0),
    "reduce_any": _fold(lambda a, b: a or b, False),
    "reduce_all": _fold(lambda a, b: a and b, True),
    "argmax": _arg(lambda a, b: a > b),
    "argmin": _arg(lambda a, b: a < b),
    "reshape": _unflat,
    "transpose": _transpose,
    "broadcast": _broadcast,
    "pad": _pad,
    "slice": _slice,
    "reverse": _reverse,
    "concatenate": _concatenate,
    "gather": _gather,
    "scatter": _scatter,
    "dynamic_slice": _dynamic_slice,
    "dynamic_update": _dynamic_update,
    "finite": lambda x: x,
    "refuse": lambda x, reason: x,
    "contract": _contract,
    "contract_narrow": lambda lhs, rhs, dtype, **axes: _contract(
        lhs.astype(np.int64), rhs.astype(np.int64), **axes
    ).astype(DTYPES[dtype]),
    "constant_pow": lambda x, exponent: np.power(x.astype("g"), float(exponent)).astype(x.dtype),
    "sort": _sort,
    "argsort": _ordered,
}
FACTORINGS = ("lu", "qr", "svd")
OTHERS = [
    pytest.param(op, id=op.name)
    for op in TABLE.values()
    if op.scopes == 0
    and not op.effect
    and op.name not in (*FACTORINGS, *APART, "clip", "pow")
    and not isinstance(op.lowering, Pointwise)
]


@pytest.mark.parametrize("op", OTHERS)
def test_other_ops(op: Op, same: Callable[..., None]) -> None:
    assert op.name in ORACLE, f"{op.name} has no oracle"
    for sample in op.samples(np.random.default_rng(14)):
        given = dict(op.normalise(sample.attributes))
        got = op.reference(*sample.inputs, **given)
        want = np.asarray(ORACLE[op.name](*sample.inputs, **given))
        if op.bound and KIND[got.dtype] in "fc":
            wide = np.complex128 if got.dtype.kind == "c" else np.float64
            loose = 1e-2 if got.dtype.itemsize == 2 else 1e-4
            assert (got.dtype, got.shape) == (want.dtype, want.shape)
            np.testing.assert_allclose(got.astype(wide), want.astype(wide), loose, loose)
        else:
            same(got, want)


@pytest.mark.parametrize("name", FACTORINGS)
def test_factors_multiply_back(name: str, call: Callable[..., Any]) -> None:
    op = TABLE[name]
    for sample in op.samples(np.random.default_rng(15)):
        (x,) = sample.inputs
        given = dict(op.normalise(sample.attributes))
        parts = call(op, [x], given)
        loose = 1e-10 if x.dtype.name in ("float64", "complex128") else 1e-4
        if name == "lu":
            p, lower, upper = parts
            back = p @ lower @ upper
            assert np.all((p == 0) | (p == 1))
            assert np.all(p.sum(-1) == 1)
            assert np.all(p.sum(-2) == 1)
            assert np.array_equal(lower, np.tril(lower))
            assert np.all(np.maximum(np.abs(lower.real), np.abs(lower.imag)) <= 1 + loose)
            assert np.array_equal(upper, np.triu(upper))
        elif name == "qr":
            if given["mode"] == "r":
                (r,) = parts
                gram = np.conj(np.swapaxes(r, -1, -2)) @ r
                np.testing.assert_allclose(gram, np.conj(np.swapaxes(x, -1, -2)) @ x, loose, loose)
                continue
            q, r = parts
            back = q @ r
            assert np.array_equal(r, np.triu(r))
        else:
            if not given["compute_uv"]:
                (s,) = parts
                np.testing.assert_allclose(
                    np.sum(s**2, -1), np.sum(np.abs(x) ** 2, (-1, -2)), loose, loose
                )
                continue
            u, s, vh = parts
            k = s.shape[-1]
            back = (u[..., :k] * s[..., None, :]) @ vh[..., :k, :]
            assert np.all(np.diff(s, axis=-1) <= 0)
        np.testing.assert_allclose(back, x, loose, loose)


def test_every_plain_op_has_an_oracle() -> None:
    for op in TABLE.values():
        if op.scopes == 0 and not op.effect:
            known = (
                op.name in WIDE
                or op.name in EXACT
                or op.name in ORACLE
                or op.name in (*OWN, *FACTORINGS, *APART)
            )
            assert known, f"{op.name} has no oracle"
            assert op.name not in ORACLE or not isinstance(op.lowering, Pointwise)
    assert any(isinstance(op.lowering, Element) for op in TABLE.values())
