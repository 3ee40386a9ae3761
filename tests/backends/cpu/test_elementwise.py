"""Every elementwise instruction in every dtype against NumPy, edges included."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import ml_dtypes
import numpy as np
import pytest
import scipy.special

import tenfold as tn
from tenfold.backends.cpu.backend import BACKEND
from tenfold.backends.cpu.run.compiled import CompiledProgram
from tenfold.backends.llvm.target import LLVMTarget
from tenfold.kernel import Builder, Kernel
from tenfold.kernel.ir.kernel import COMPARISONS, ELEMENTWISE
from tenfold.types import DTYPES
from tests.backends.cpu.running import TARGETS, Program, at, mapped, position, together

Array = np.ndarray[Any, Any]

pytestmark = pytest.mark.filterwarnings("ignore::RuntimeWarning")

NAMES = {
    "neg": "negative",
    "abs": "absolute",
    "round": "rint",
    "asin": "arcsin",
    "acos": "arccos",
    "atan": "arctan",
    "asinh": "arcsinh",
    "acosh": "arccosh",
    "atanh": "arctanh",
    "sub": "subtract",
    "mul": "multiply",
    "div": "divide",
    "floordiv": "floor_divide",
    "mod": "remainder",
    "pow": "power",
    "max": "maximum",
    "min": "minimum",
    "atan2": "arctan2",
    "eq": "equal",
    "ne": "not_equal",
    "lt": "less",
    "le": "less_equal",
    "gt": "greater",
    "ge": "greater_equal",
    "and": "bitwise_and",
    "or": "bitwise_or",
    "xor": "bitwise_xor",
    "not": "invert",
    "shl": "left_shift",
    "shr": "right_shift",
    "popcount": "bitwise_count",
}


def wide(f: Callable[..., Any]) -> Callable[..., Any]:
    return lambda *args: f(*(np.asarray(a, np.float64) for a in args))


def _logaddexp(x: Array, y: Array) -> Array:
    x, y = x.astype(np.longdouble), y.astype(np.longdouble)
    return np.logaddexp(x, y)


OTHER = {
    "sigmoid": wide(lambda x: 1 / (1 + np.exp(-x))),
    "rsqrt": wide(lambda x: 1 / np.sqrt(x)),
    "erf": wide(scipy.special.erf),
    "erfc": wide(scipy.special.erfc),
    "logaddexp": _logaddexp,
}
_INTEGER = """
    neg abs sign floor ceil trunc round add sub mul floordiv mod fmod max min fmax fmin eq ne lt
    le gt ge and or xor not shl shr popcount signbit isnan isinf isfinite real conj imag
"""
_EXACT = """
    neg abs sign floor ceil trunc round sqrt add sub mul div floordiv mod fmod max min fmax fmin
    copysign nextafter real conj imag
"""
INTEGER, EXACT = set(_INTEGER.split()), set(_EXACT.split())
FLOAT = set(ELEMENTWISE) - {"and", "or", "xor", "not", "shl", "shr", "popcount", "complex"}
FLOATS = [0.0, -0.0, 1, -1, 0.5, -0.5, 2, -2, 3, 1.5, 2.5, -2.5, np.inf, -np.inf, np.nan, 1e-3]
FLOATS += [1e3, 100, -100, 7, -7, 0.1, 4097.5, 65504, 65520, 1e-7, 5.96e-8, 3e-8, 1e38, -1e38]
FLOATS += [1e-40, 8388609.0, -8388607.5]


def reference(name: str) -> Callable[..., Any]:
    return OTHER.get(name) or getattr(np, NAMES.get(name, name))


def samples(dtype: str, arity: int) -> list[Array]:
    rng = np.random.default_rng(7)
    kind = DTYPES[dtype]
    if dtype == "bool":
        x = np.array([False, True])
    elif dtype[0] in "iu":
        info = np.iinfo(kind)
        edges = [info.min, info.max, info.min + 1, info.max - 1, 0, 1, 2, 3, 7, 8, 9, 31, 33, 63]
        edges += [5, 64, 65, 100] + ([-1, -2, -3, -7, -8, -64] if dtype[0] == "i" else [])
        random = rng.integers(info.min, info.max, 12, dtype=kind, endpoint=True)
        x = np.concatenate([np.array(edges, object).astype(kind), random])
    else:
        x = np.concatenate([np.array(FLOATS), rng.standard_normal(30) * 3]).astype(kind)
    if arity == 1:
        return [x]
    a, b = np.meshgrid(x, x)
    return [a.ravel().copy(), b.ravel().copy()]


def expected(name: str, dtype: str, args: list[Array]) -> Array:
    kind = DTYPES[dtype]
    if name in ("real", "conj"):
        return args[0]
    if name == "imag":
        return np.zeros_like(args[0])
    if name in ("isnan", "isinf", "isfinite") and dtype[0] in "iu":
        return np.full(args[0].shape, name == "isfinite")
    if name == "signbit" and dtype[0] in "iu":
        return args[0] < 0
    if name in ("shl", "shr") and dtype[0] == "i":  # negative amounts count as too wide
        width = kind.itemsize * 8
        far = (args[1] < 0) | (args[1] >= width)
        plain = reference(name)(args[0], np.where(far, 0, args[1]).astype(kind))
        fill = args[0] >> (width - 1) if name == "shr" else np.zeros_like(plain)
        return np.where(far, fill, plain).astype(kind)
    if dtype in ("f16", "bf16") and name != "nextafter":
        rounded = np.asarray(reference(name)(*(a.astype(np.float32) for a in args)))
        return rounded if name in COMPARISONS else rounded.astype(np.float32).astype(kind)
    return np.asarray(reference(name)(*args))


def agree(name: str, dtype: str, got: Array, want: Array, args: list[Array]) -> Array:
    if dtype[0] in "iu" or dtype == "bool" or name in COMPARISONS:
        return got == want
    info = ml_dtypes.finfo(DTYPES[dtype])
    g, e = got.astype(np.float64), want.astype(DTYPES[dtype]).astype(np.float64)
    near = (g == e) | (np.isnan(g) & np.isnan(e))
    if name in EXACT:
        if name not in ("max", "min", "fmax", "fmin", "sign"):
            near &= (np.signbit(g) == np.signbit(e)) | np.isnan(e)
        return near
    scale = np.abs(e)
    if name == "logaddexp":  # it cancels where the result is near 0
        scale = scale + np.maximum(*(np.abs(a.astype(np.float64)) for a in args)) + 1
    least = float(info.smallest_subnormal)
    relative = 24 if name == "erfc" else 4  # SciPy's erfc errs by that much
    return near | (np.abs(g - e) <= relative * float(info.eps) * scale + 2 * least)


def cases() -> list[tuple[str, str]]:
    found = [(name, d) for d in ("f32", "f64", "f16", "bf16") for name in sorted(FLOAT)]
    found += [(n, d) for d in DTYPES if d[0] in "iu" for n in sorted(INTEGER)]
    plain = ["add", "mul", "max", "min", "and", "or", "xor", "not", "eq", "ne", "lt", "ge"]
    return found + [(n, "bool") for n in plain]


@pytest.mark.parametrize("target", TARGETS.values(), ids=TARGETS.keys())
@pytest.mark.parametrize("dtype", [d for d in DTYPES if d[0] != "c"])
def test_against_numpy(dtype: str, target: LLVMTarget) -> None:
    names = [n for n, d in cases() if d == dtype and (n, d) != ("nextafter", "bf16")]
    given = [samples(dtype, ELEMENTWISE[name]) for name in names]
    results = [
        "bool" if name in COMPARISONS else "u8" if name == "popcount" else dtype for name in names
    ]
    programs = together(
        (
            mapped(name, dtype, result, len(args), args[0].shape)
            for name, result, args in zip(names, results, given, strict=True)
        ),
        target,
    )
    for name, result, args, program in zip(names, results, given, programs, strict=True):
        out = np.zeros(args[0].shape, DTYPES[result])
        program(*args, out)
        with np.errstate(all="ignore"):
            want = expected(name, dtype, args)
            good = agree(name, dtype, out, want, args)
        if not good.all():
            n = int(np.flatnonzero(~good)[0])
            at_fault = [a[n] for a in args]
            pytest.fail(f"{name} {dtype} of {at_fault}: {out[n]} instead of {want[n]}")


@pytest.mark.parametrize("target", TARGETS.values(), ids=TARGETS.keys())
@pytest.mark.parametrize("name", ["add", "sub", "mul", "div"])
def test_bfloat16_keeps_every_nan(name: str, target: LLVMTarget) -> None:
    """Whatever its payload and sign, and those that arithmetic makes of infinities and zeros."""
    odd = np.array([0x7F81, 0x7FFF, 0xFF81, 0xFFFF, 0x7FC0, 0x7F80, 0xFF80, 0, 0x8000], np.uint16)
    x, y = (a.ravel().view(DTYPES["bf16"]) for a in np.meshgrid(odd, odd))
    x, y = np.ascontiguousarray(x), np.ascontiguousarray(y)
    out = np.zeros_like(x)
    Program(mapped(name, "bf16", "bf16", 2, x.shape), target)(x, y, out)
    whole = {"add": np.add, "sub": np.subtract, "mul": np.multiply, "div": np.divide}[name]
    with np.errstate(all="ignore"):
        want = whole(x.astype(np.float32), y.astype(np.float32))
    np.testing.assert_array_equal(out.astype(np.float32), want)


@pytest.mark.parametrize("target", TARGETS.values(), ids=TARGETS.keys())
@pytest.mark.parametrize("name", ["select", "neg", "abs"])
def test_moves_of_float16_keep_every_nan(name: str, target: LLVMTarget) -> None:
    """Signalling ones too, beside a value that is computed."""
    odd = np.array([0x7E01, 0xFFF9, 0x7C01, 0xFD03, 0x7C00, 0x3C00, 1, 0x8000, 0x7FFF], np.uint16)
    where = np.arange(odd.size) != 5

    def moved(where: Any, bits: Any) -> Any:
        x = bits.view(np.float16)
        made = {
            "select": lambda: np.where(where, x, x + x),
            "neg": lambda: -x,
            "abs": lambda: abs(x),
        }
        return made[name]().view(np.uint16)

    graph = tn.trace(moved, where, odd)
    (got,) = CompiledProgram(BACKEND.plan(graph, target=target), target=target)([where, odd])
    with np.errstate(all="ignore"):
        np.testing.assert_array_equal(got, moved(where, odd))


def test_next_bfloat16() -> None:
    x = np.array([0.0, -0.0, 1.0, -1.0, 3.38e38, np.inf, np.nan, 1e-40], DTYPES["bf16"])
    for towards in (np.inf, -np.inf):
        y = np.full_like(x, towards)
        out = np.zeros_like(x)
        Program(mapped("nextafter", "bf16", "bf16", 2, x.shape))(x, y, out)
        want = np.nextafter(x, y)
        assert (out.view(np.uint16) == want.view(np.uint16))[~np.isnan(x)].all()
        assert np.isnan(out.astype(float)[6])


def test_integer_powers() -> None:
    for dtype in ("i8", "i32", "i64", "u16", "u64"):
        base, exponent = (
            a.ravel() for a in np.meshgrid([0, 1, 2, 3, 7, 100], [0, 1, 2, 5, 40, 63])
        )
        x, y = base.astype(DTYPES[dtype]), exponent.astype(DTYPES[dtype])
        out = np.zeros_like(x)
        Program(mapped("pow", dtype, dtype, 2, x.shape))(x, y, out)
        assert (out == np.power(x, y)).all()


@pytest.mark.parametrize("target", TARGETS.values(), ids=TARGETS.keys())
@pytest.mark.parametrize("source", list(DTYPES))
def test_casts(source: str, target: LLVMTarget) -> None:
    x = samples("f32" if source in ("c64", "c128") else source, 1)[0].astype(DTYPES[source])
    if source in ("f32", "f64"):
        edges = [2.0**31, 2.0**32, 2.0**63, 2.0**64, -(2.0**31), -(2.0**63), 127.9, 255.9, -128.9]
        edges += [0.1, 1 / 3, 65519.99, 2049.0000001, 2.0**-24 * 1.5, 2.0**-25, 1.0009765]
        x = np.concatenate([x, np.array(edges).astype(x.dtype)])

    def cast(name: str) -> Kernel:
        b = Builder()
        i = b.axis(x.size)
        read, write = b.buffer(source, x.size), b.buffer(name, x.size, "write")
        b.store(write, i, b.cast(b.load(read, i), name))
        return b.finish()

    programs = together(map(cast, DTYPES), target)
    for (name, kind), program in zip(DTYPES.items(), programs, strict=True):
        out = np.zeros(x.size, kind)
        program(x, out)
        with np.errstate(all="ignore"):
            real = x.real if source[0] == "c" and name[0] != "c" and name != "bool" else x
            if name[0] in "iu" and source[0] in "fbc" and source != "bool":
                want = saturate(real, name)
            elif source == "f64" and name == "bf16":  # through f32, as ml_dtypes does it
                want = real.astype(np.float32).astype(kind)
            else:
                want = real.astype(kind)
        if name in ("c64", "c128"):
            good = np.isclose(out, want, rtol=0, atol=0, equal_nan=True) | (
                np.isnan(out.real) & np.isnan(want.real)
            )
        elif name[0] in "fb" and name != "bool":
            g, e = out.astype(np.float64), want.astype(np.float64)
            good = (g == e) | (np.isnan(g) & np.isnan(e))
        else:
            good = out == want
        n = int(np.argmin(good))
        assert good.all(), f"{source} -> {name} of {x[n]!r}: {out[n]!r} instead of {want[n]!r}"


@pytest.mark.parametrize("target", TARGETS.values(), ids=TARGETS.keys())
@pytest.mark.parametrize("dtype", ["f16", "bf16"])
@pytest.mark.parametrize("source", ["f32", "f64"])
def test_a_nan_keeps_its_sign_in_a_cast(source: str, dtype: str, target: LLVMTarget) -> None:
    x = np.array([np.nan, -np.nan] * 20, DTYPES[source])
    out = np.zeros(x.size, DTYPES[dtype])
    b = Builder()
    i = b.axis(x.size)
    read, write = b.buffer(source, x.size), b.buffer(dtype, x.size, "write")
    b.store(write, i, b.cast(b.load(read, i), dtype))
    Program(b.finish(), target)(x, out)
    assert np.isnan(out.astype(np.float32)).all()
    np.testing.assert_array_equal(out.view(np.uint16) >> 15, np.signbit(x))


def saturate(x: Array, dtype: str) -> Array:
    """Floats as integers: cut towards zero, kept within the range, NaN as 0."""
    info = np.iinfo(DTYPES[dtype])
    out = []
    for value in x.astype(np.float64):
        if np.isnan(value):
            out.append(0)
        elif np.isinf(value):
            out.append(info.max if value > 0 else info.min)
        else:
            out.append(min(max(int(value), info.min), info.max))
    return np.array(out, DTYPES[dtype])


@pytest.mark.parametrize("target", TARGETS.values(), ids=TARGETS.keys())
@pytest.mark.parametrize("dtype", ["c64", "c128"])
def test_complex(dtype: str, target: LLVMTarget) -> None:
    kind, real = DTYPES[dtype], "f32" if dtype == "c64" else "f64"
    parts = [0.0, -0.0, 1.0, -2.5, 3.0, 1e10, -1e-10, np.inf, np.nan]
    rng = np.random.default_rng(3)
    x = np.array([complex(a, b) for a in parts for b in parts], kind)
    noise = (rng.standard_normal(60) + 1j * rng.standard_normal(60)).astype(kind)
    x = np.concatenate([x, noise])
    a, b = (v.ravel().copy() for v in np.meshgrid(x, x))
    finite = np.isfinite(a) & np.isfinite(b)
    tolerance = 8 * np.finfo(DTYPES[real]).eps
    for name in ("add", "sub", "mul", "div", "eq", "ne", "lt", "le", "gt", "ge"):
        result = "bool" if name in COMPARISONS else dtype
        out = np.zeros(a.shape, DTYPES[result])
        Program(mapped(name, dtype, result, 2, a.shape), target, strict=True)(a, b, out)
        with np.errstate(all="ignore"):
            want = reference(name)(a, b)
        if result == "bool":
            assert (out == want)[finite].all(), name
        else:
            some = finite & np.isfinite(want)
            assert (np.abs(out - want)[some] <= tolerance * np.abs(want[some])).all(), name
    for name in ("neg", "conj", "abs", "real", "imag", "isnan", "isinf", "isfinite"):
        result = "bool" if name in COMPARISONS else dtype if name in ("neg", "conj") else real
        out = np.zeros(x.shape, DTYPES[result])
        Program(mapped(name, dtype, result, 1, x.shape), target)(x, out)
        with np.errstate(all="ignore"):
            want = reference(name)(x)
        if name == "abs":
            np.testing.assert_allclose(out, want, rtol=4 * float(tolerance))
        else:
            np.testing.assert_array_equal(out, want)


def test_complex_made_of_parts() -> None:
    b = Builder()
    n = 21
    re, im, out = b.buffer("f64", n), b.buffer("f64", n), b.buffer("c128", n, "write")
    i = b.axis(n)
    b.store(out, i, b.op("complex", "c128", b.load(re, i), b.load(im, i)))
    x, y, z = np.arange(n) * 1.0, np.arange(n) * -2.0, np.zeros(n, complex)
    Program(b.finish())(x, y, z)
    assert (z == x + 1j * y).all()


@pytest.mark.parametrize(
    ("source", "dtype"),
    [("f32", "i32"), ("i64", "f64"), ("f16", "u16"), ("i16", "bf16"), ("u8", "i8"), ("f64", "u64")],
)
def test_bitcast(source: str, dtype: str) -> None:
    raw = np.random.default_rng(1).integers(0, 255, 37 * DTYPES[source].itemsize, np.uint8)
    x = raw.view(DTYPES[source])
    if source[0] in "f":
        x = np.where(np.isnan(x), 1, x).astype(x.dtype)
    out = np.zeros(x.size, DTYPES[dtype])
    b = Builder()
    i = b.axis(x.size)
    read, write = b.buffer(source, x.size), b.buffer(dtype, x.size, "write")
    b.store(write, i, b.bitcast(b.load(read, i), dtype))
    Program(b.finish())(x, out)
    same = out.view(np.uint8) == x.view(np.uint8)
    if dtype in ("bf16", "f16"):  # a NaN becomes quiet on the way
        same |= np.isnan(out.astype(np.float32)).repeat(2)
    assert same.all()


@pytest.mark.parametrize("target", TARGETS.values(), ids=TARGETS.keys())
@pytest.mark.parametrize("extent", [0, 1, 3, 15, 16, 17, 63, 64, 65, 1000, 1003, 1024, 5003])
def test_extents(extent: int, target: LLVMTarget) -> None:
    x, y = np.random.default_rng(extent).standard_normal((2, extent)).astype(np.float32)
    out = np.full(extent + 16, 7, np.float32)
    program = Program(mapped("add", "f32", "f32", 2, (extent,)), target)
    program(x, y, out)
    assert (out[:extent] == x + y).all()
    assert (out[extent:] == 7).all()
    grain = program.compiled.schedule.grain
    if extent > grain:  # in parts, as threads would
        out[:] = 7
        call = program.bind([x, y, out])
        for low in range(0, extent, grain):
            call(low, min(low + grain, extent))
        assert (out[:extent] == x + y).all()
        assert (out[extent:] == 7).all()


@pytest.mark.parametrize("target", TARGETS.values(), ids=TARGETS.keys())
@pytest.mark.parametrize("shape", [(3, 5), (4, 16), (7, 33), (4, 1003), (2, 3, 70), (1, 1, 9)])
@pytest.mark.parametrize("dtype", ["f32", "i8", "c64", "bool", "f16", "i64"])
def test_broadcast(shape: tuple[int, ...], dtype: str, target: LLVMTarget) -> None:
    rng = np.random.default_rng(0)
    x = (rng.standard_normal(shape) * 20).astype(DTYPES[dtype])
    y = (rng.standard_normal(shape[-1]) * 5).astype(DTYPES[dtype])
    b = Builder()
    left, right = b.buffer(dtype, x.size), b.buffer(dtype, y.size)
    write = b.buffer(dtype, x.size, "write")
    i = position(b, shape)
    total = b.op("add", dtype, b.load(left, at(i, shape)), b.load(right, i[-1]))
    b.store(write, at(i, shape), total)
    out = np.zeros(shape, DTYPES[dtype])
    Program(b.finish(), target)(x, y, out)
    with np.errstate(all="ignore"):
        np.testing.assert_array_equal(out, x + y)


def test_strict_keeps_rounding() -> None:
    """Without strict, a product and a sum may be one operation; with it, never."""
    b = Builder()
    n = 64
    i = b.axis(n)
    xs, ys, zs = (b.buffer("f32", n) for _ in range(3))
    out = b.buffer("f32", n, "write")
    product = b.op("mul", "f32", b.load(xs, i), b.load(ys, i))
    b.store(out, i, b.op("add", "f32", product, b.load(zs, i)))
    rng = np.random.default_rng(0)
    x, y = rng.standard_normal((2, n)).astype(np.float32)
    z = -(x * y)
    got = np.zeros(n, np.float32)
    Program(b.finish(), strict=True)(x, y, z, got)
    assert (got == 0).all()


@pytest.mark.parametrize("target", TARGETS.values(), ids=TARGETS.keys())
@pytest.mark.parametrize("dtype", ["i8", "i16", "i32", "i64", "u8", "u32", "u64"])
def test_division_by_what_all_elements_share(dtype: str, target: LLVMTarget) -> None:
    (x,) = samples(dtype, 1)
    for op in ("floordiv", "mod", "fmod"):
        b = Builder()
        given, out = b.buffer(dtype, x.size), b.buffer(dtype, x.size, "write")
        i = b.axis(x.size)
        b.store(out, i, b.op(op, dtype, b.load(given, i), b.param(dtype)))
        program, got = Program(b.finish(), target), np.zeros_like(x)
        for y in x:
            program(x, got, params=[y.tobytes()])
            assert np.array_equal(got, reference(op)(x, y)), (op, y)
