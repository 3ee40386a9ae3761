"""Instructions of the interpreter against NumPy, Python's integers and exact fractions."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from numpy.typing import NDArray
from simt import IRProblem, Undefined
from simt_kernels import DTYPES, SIGNED, edges, elementwise, same_bits

INTEGERS = ["i8", "i16", "i32", "i64"]
FLOATS = ["half", "bfloat", "float", "double"]
SHORT = {"half": "f16", "bfloat": "bf16", "float": "f32", "double": "f64"}


@pytest.fixture(autouse=True)
def _quiet() -> Any:
    with np.errstate(all="ignore"):
        yield


def pair(ty: str) -> tuple[NDArray[Any], NDArray[Any]]:
    return edges(ty, seed=1), edges(ty, seed=2)


def signed(ty: str, values: NDArray[Any]) -> list[int]:
    return [int(v) for v in values.view(SIGNED[ty])]


def wrapped(ty: str, values: list[int]) -> NDArray[Any]:
    return np.array([v % 2 ** (8 * DTYPES[ty].itemsize) for v in values], DTYPES[ty])


@pytest.mark.parametrize("ty", INTEGERS)
@pytest.mark.parametrize("op", ["add", "sub", "mul", "and", "or", "xor"])
def test_integers(ty: str, op: str) -> None:
    a, b = pair(ty)
    function = {
        "add": int.__add__,
        "sub": int.__sub__,
        "mul": int.__mul__,
        "and": int.__and__,
        "or": int.__or__,
        "xor": int.__xor__,
    }[op]
    expected = wrapped(ty, [function(int(x), int(y)) for x, y in zip(a, b, strict=True)])
    same_bits(elementwise(f"  %r = {op} {ty} %a, %b", ty, (ty, a), (ty, b)), expected)


@pytest.mark.parametrize("ty", INTEGERS)
def test_division(ty: str) -> None:
    a, b = pair(ty)
    b[b == 0] = 3
    both = ((ty, a), (ty, b))
    same_bits(elementwise(f"  %r = udiv {ty} %a, %b", ty, *both), a // b)
    same_bits(elementwise(f"  %r = urem {ty} %a, %b", ty, *both), a % b)
    a[(a == 2 ** (8 * a.itemsize - 1)) & (b == b.dtype.type(-1 % 2 ** (8 * b.itemsize)))] = 1
    quotients, rests = [], []
    for x, y in zip(signed(ty, a), signed(ty, b), strict=True):
        quotient = abs(x) // abs(y) * (1 if (x < 0) == (y < 0) else -1)
        quotients.append(quotient)
        rests.append(x - quotient * y)
    same_bits(elementwise(f"  %r = sdiv {ty} %a, %b", ty, *both), wrapped(ty, quotients))
    same_bits(elementwise(f"  %r = srem {ty} %a, %b", ty, *both), wrapped(ty, rests))


@pytest.mark.parametrize("op", ["udiv", "sdiv", "urem", "srem"])
def test_division_by_zero(op: str) -> None:
    b = np.ones(64, np.uint32)
    b[37] = 0
    with pytest.raises(Undefined, match=r"division by zero\n.*line.*\n  by thread \(37, 0, 0\)"):
        elementwise(f"  %r = {op} i32 %a, %b", "i32", ("i32", b), ("i32", b))


@pytest.mark.parametrize("op", ["sdiv", "srem"])
def test_the_least_integer_by_minus_one(op: str) -> None:
    a = np.full(64, 0x80, np.uint8)
    with pytest.raises(Undefined, match="least integer"):
        elementwise(f"  %r = {op} i8 %a, -1", "i8", ("i8", a))


@pytest.mark.parametrize("ty", INTEGERS)
def test_shifts(ty: str) -> None:
    a, by = pair(ty)
    width = 8 * a.itemsize
    by %= by.dtype.type(width)
    both = ((ty, a), (ty, by))
    same_bits(elementwise(f"  %r = shl {ty} %a, %b", ty, *both), a << by)
    same_bits(elementwise(f"  %r = lshr {ty} %a, %b", ty, *both), a >> by)
    kept = [x >> int(n) for x, n in zip(signed(ty, a), by, strict=True)]
    same_bits(elementwise(f"  %r = ashr {ty} %a, %b", ty, *both), wrapped(ty, kept))
    by[11] = width
    for op in ("shl", "lshr", "ashr"):
        with pytest.raises(Undefined, match="shift"):
            elementwise(f"  %r = {op} {ty} %a, %b", ty, *both)
        with pytest.raises(Undefined, match="shift"):
            elementwise(f"  %r = {op} {ty} %a, {width}", ty, *both)


@pytest.mark.parametrize("ty", [*INTEGERS, "i1"])
def test_compared_integers(ty: str) -> None:
    a, b = pair(ty)
    b[::3] = a[::3]
    if ty == "i1":
        x, y = [-int(v) for v in a], [-int(v) for v in b]
    else:
        x, y = signed(ty, a), signed(ty, b)
    tests = {"gt": int.__gt__, "ge": int.__ge__, "lt": int.__lt__, "le": int.__le__}
    tests |= {"eq": int.__eq__, "ne": int.__ne__}
    for name, test in tests.items():
        for sign, values in (("s", (x, y)), ("u", (map(int, a), map(int, b)))):
            predicate = name if name in ("eq", "ne") else sign + name
            expected = np.array([test(v, w) for v, w in zip(*values, strict=True)])
            found = elementwise(f"  %r = icmp {predicate} {ty} %a, %b", "i1", (ty, a), (ty, b))
            same_bits(found, expected)


@pytest.mark.parametrize("op", ["add", "sub", "mul", "and", "or", "xor"])
def test_bools(op: str) -> None:
    a, b = pair("i1")
    expected = {"mul": a & b, "and": a & b, "or": a | b}.get(op, a ^ b)
    same_bits(elementwise(f"  %r = {op} i1 %a, %b", "i1", ("i1", a), ("i1", b)), expected)


@pytest.mark.parametrize("ty", FLOATS)
@pytest.mark.parametrize("op", ["fadd", "fsub", "fmul", "fdiv", "frem"])
def test_floats(ty: str, op: str) -> None:
    a, b = pair(ty)
    function = {
        "fadd": np.add,
        "fsub": np.subtract,
        "fmul": np.multiply,
        "fdiv": np.divide,
        "frem": np.fmod,
    }[op]
    found = elementwise(f"  %r = {op} {ty} %a, %b", ty, (ty, a), (ty, b))
    # Of the shorter ones, a double that is rounded at the end is exact, too.
    wide = np.float64 if ty != "double" else np.longdouble
    same_bits(found, function(a.astype(wide), b.astype(wide)).astype(np.float64).astype(a.dtype))


def test_subnormals_are_kept() -> None:
    a = np.array([1e-40, 2e-45, -3e-42, 1.2e-38], np.float32)
    found = elementwise("  %r = fmul float %a, 5.0e-01", "float", ("float", a))
    assert (found[:1] != 0).all()
    same_bits(found, a * np.float32(0.5))


@pytest.mark.parametrize("ty", FLOATS)
def test_compared_floats(ty: str) -> None:
    a, b = pair(ty)
    b[::3] = a[::3]
    x, y = a.astype(np.float64), b.astype(np.float64)
    loose = np.isnan(x) | np.isnan(y)
    ordered = {
        "eq": x == y,
        "gt": x > y,
        "ge": x >= y,
        "lt": x < y,
        "le": x <= y,
        "ne": (x != y) & ~loose,
    }
    expected = {f"o{name}": value for name, value in ordered.items()}
    expected |= {f"u{name}": value | loose for name, value in ordered.items()}
    expected |= {"ord": ~loose, "uno": loose}
    for predicate, value in expected.items():
        found = elementwise(f"  %r = fcmp {predicate} {ty} %a, %b", "i1", (ty, a), (ty, b))
        same_bits(found, value)


def test_flags_that_change_results() -> None:
    a = np.ones(4, np.float32)
    for line in ("fmul contract float %a, %a", "fadd fast float %a, %a"):
        with pytest.raises(IRProblem, match="lets results differ"):
            elementwise(f"  %r = {line}", "float", ("float", a))


@pytest.mark.parametrize("ty", ["i1", *INTEGERS, *FLOATS])
@pytest.mark.parametrize("count", [64, 4096])
def test_select(ty: str, count: int) -> None:
    c, a, b = edges("i1", count), edges(ty, count, 1), edges(ty, count, 2)
    expected = np.where(c, a, b)
    given = (("i1", c), (ty, a), (ty, b))
    same_bits(elementwise(f"  %r = select i1 %a, {ty} %b, {ty} %c", ty, *given), expected)


def test_integers_to_integers() -> None:
    for of in ["i1", *INTEGERS]:
        a = edges(of)
        for to in ["i1", *INTEGERS]:
            size, other = DTYPES[of].itemsize * (of != "i1"), DTYPES[to].itemsize * (to != "i1")
            if size < other:
                same_bits(
                    elementwise(f"  %r = zext {of} %a to {to}", to, (of, a)), a.astype(DTYPES[to])
                )
                x = [-int(v) for v in a] if of == "i1" else signed(of, a)
                same_bits(elementwise(f"  %r = sext {of} %a to {to}", to, (of, a)), wrapped(to, x))
            elif size > other:
                low = a & 1 != 0 if to == "i1" else a.astype(DTYPES[to])
                same_bits(elementwise(f"  %r = trunc {of} %a to {to}", to, (of, a)), low)


@pytest.mark.parametrize("to", FLOATS)
@pytest.mark.parametrize("of", ["i1", *INTEGERS])
def test_integers_to_floats(of: str, to: str) -> None:
    if (of, to) == ("i64", "bfloat"):
        with pytest.raises(IRProblem, match="not supported"):
            elementwise(f"  %r = uitofp {of} %a to {to}", to, (of, edges(of)))
        return
    a = edges(of, 2048)
    if of == "i64":  # halfway between floats, and next to that
        near = np.uint64(1 << 62) + np.uint64(1 << 38) * np.arange(512, dtype=np.uint64)
        a[:1536] = np.concatenate([near, near + np.uint64(1), near - np.uint64(1)])
    unsigned = [int(v) for v in a]
    numbers = {"u": unsigned, "s": [-v for v in unsigned] if of == "i1" else signed(of, a)}
    for letter, values in numbers.items():
        found = elementwise(f"  %r = {letter}itofp {of} %a to {to}", to, (of, a))
        expected = [nearest(Fraction(v), to) for v in values]
        same_bits(found, np.array(expected).astype(DTYPES[to]))


@pytest.mark.parametrize("of", FLOATS)
@pytest.mark.parametrize("to", INTEGERS)
def test_floats_to_integers(of: str, to: str) -> None:
    a, width = edges(of, 1024), 8 * DTYPES[to].itemsize
    x = a.astype(np.float64)
    for letter, least, most in (("s", -(2 ** (width - 1)), 2 ** (width - 1)), ("u", 0, 2**width)):
        whole = np.trunc(x)
        fits = (whole >= least) & (whole < most)
        given = np.where(fits, a, a.dtype.type(0))
        expected = wrapped(to, [int(v) for v in given.astype(np.float64)])
        line = f"  %r = fpto{letter}i {of} %a to {to}"
        same_bits(elementwise(line, to, (of, given)), expected)
        with pytest.raises(Undefined, match="does not hold"):
            elementwise(line, to, (of, a))
        clamped = [
            0 if v != v else least if v < least else most - 1 if v >= most else int(v) for v in x
        ]
        line = f"  %r = call {to} @llvm.fpto{letter}i.sat.{to}.{SHORT[of]}({of} %a)"
        same_bits(elementwise(line, to, (of, a)), wrapped(to, clamped))


@pytest.mark.parametrize("of", FLOATS)
@pytest.mark.parametrize("to", FLOATS)
def test_floats_to_floats(of: str, to: str) -> None:
    size, other = DTYPES[of].itemsize, DTYPES[to].itemsize
    if size == other:
        return
    a = edges(of, 4096)
    if size > other:  # halfway between two, next to that, and what becomes subnormal or infinite
        short = edges(to, 1024, 3)
        short = short[np.isfinite(short.astype(np.float64))]
        wide = short.astype(DTYPES[of])
        half = wide * (1 + a.dtype.type(2) ** -{"float": 24, "half": 11, "bfloat": 8}[to])
        near = np.concatenate([half, np.nextafter(half, 0), np.nextafter(half, np.inf)])
        a = np.concatenate([a, near.astype(a.dtype)])[:4096]
    op = "fpext" if size < other else "fptrunc"
    found = elementwise(f"  %r = {op} {of} %a to {to}", to, (of, a))
    expected = [nearest(Fraction(float(v)), to) if np.isfinite(float(v)) else float(v) for v in a]
    signs = np.copysign(np.array(expected), a.astype(np.float64))
    same_bits(found, signs.astype(DTYPES[to]))


def test_bitcasts() -> None:
    a = edges("i32", 512)
    same_bits(
        elementwise("  %r = bitcast i32 %a to float", "float", ("i32", a)), a.view(np.float32)
    )
    pairs = a.reshape(-1, 2)
    given = ("<2 x i32>", pairs)
    same_bits(elementwise("  %r = bitcast <2 x i32> %a to i64", "i64", given), a.view(np.uint64))
    back = elementwise(
        "  %w = bitcast <2 x i32> %a to i64\n  %r = bitcast i64 %w to <4 x i16>", "<4 x i16>", given
    )
    same_bits(back, a.view(np.uint16).reshape(-1, 4))
    bits = "  %b = icmp slt <2 x i32> %a, zeroinitializer\n  %c = shufflevector <2 x i1> %b, "
    bits += "<2 x i1> %b, <8 x i32> <i32 0, i32 1, i32 1, i32 0, i32 0, i32 0, i32 1, i32 0>"
    bits += "\n  %r = bitcast <8 x i1> %c to i8"
    x, y = (pairs.view(np.int32) < 0).astype(np.uint8).T
    same_bits(elementwise(bits, "i8", given), x * 0b10111001 + y * 0b01000110)
    bits = "  %t = trunc i32 %a to i8\n  %m = bitcast i8 %t to <8 x i1>\n"
    bits += "  %r = zext <8 x i1> %m to <8 x i16>"
    expected = np.unpackbits(a.astype(np.uint8)[:, None], axis=1, bitorder="little")
    same_bits(elementwise(bits, "<8 x i16>", ("i32", a)), expected.astype(np.uint16))


def test_lanes_of_vectors() -> None:
    a = edges("float", 256).reshape(-1, 4)
    body = """
  %x = extractelement <4 x float> %a, i64 2
  %i1 = insertelement <4 x float> poison, float %x, i64 0
  %s = shufflevector <4 x float> %i1, <4 x float> poison, <4 x i32> zeroinitializer
  %m = shufflevector <4 x float> %a, <4 x float> %s, <4 x i32> <i32 3, i32 5, i32 0, i32 1>
  %r = fneg <4 x float> %m
"""
    expected = -np.stack([a[:, 3], a[:, 2], a[:, 0], a[:, 1]], 1)
    same_bits(elementwise(body, "<4 x float>", ("<4 x float>", a)), expected)
    lane = np.arange(64, dtype=np.uint32) % 4
    body = """
  %x = extractelement <4 x float> %a, i32 %b
  %r = insertelement <4 x float> %a, float 1.0, i32 %b
"""
    expected = a.copy()
    expected[np.arange(64), lane] = 1
    given = (("<4 x float>", a), ("i32", lane))
    same_bits(elementwise(body, "<4 x float>", *given), expected)
    body = "  %r = extractelement <4 x float> %a, i32 %b"
    same_bits(elementwise(body, "float", *given), a[np.arange(64), lane])
    lane[9] = 4
    with pytest.raises(Undefined, match="lane that is not there"):
        elementwise(body, "float", *given)


def test_constants() -> None:
    body = """
  %x = add <4 x i32> <i32 0, i32 -1, i32 7, i32 2147483648>, splat (i32 1)
  %f = fadd float 0x3FF8000000000000, 1.250000e+00
  %g = bitcast float %f to i32
  %h = bitcast half 0xH3C00 to i16
  %k = zext i16 %h to i32
  %b = bitcast bfloat 0xR3F80 to i16
  %l = zext i16 %b to i32
  %y = insertelement <4 x i32> zeroinitializer, i32 %g, i64 0
  %z = insertelement <4 x i32> %y, i32 %k, i64 1
  %w = insertelement <4 x i32> %z, i32 %l, i64 2
  %r = add <4 x i32> %x, %w
"""
    one = np.float32(2.75).view(np.uint32)
    expected = np.array([1 + one, 0x3C00, 8 + 0x3F80, 0x80000001], np.uint32)
    same_bits(elementwise(body, "<4 x i32>"), np.tile(expected, (64, 1)))
    for bad in ("i8 256", "float 0x3FF0000000000001", "float 0.1", "i32 1.0", "i1 2"):
        ty = bad.split()[0]
        with pytest.raises(IRProblem, match="in @k, line"):
            elementwise(f"  %r = select i1 true, {bad}, {ty} poison", ty)


def test_structs() -> None:
    a, b = pair("i32")
    body = """
  %s = call {i32, i1} @llvm.uadd.with.overflow.i32(i32 %a, i32 %b)
  %x = extractvalue {i32, i1} %s, 0
  %o = extractvalue {i32, i1} %s, 1
  %t = insertvalue {i32, i1} poison, i32 %x, 0
  %u = insertvalue {i32, i1} %t, i1 %o, 1
  %y = extractvalue {i32, i1} %u, 0
  %r = select i1 %o, i32 %y, i32 7
"""
    over = a.astype(np.uint64) + b > 0xFFFFFFFF
    same_bits(elementwise(body, "i32", ("i32", a), ("i32", b)), np.where(over, a + b, np.uint32(7)))


@pytest.mark.parametrize("ty", INTEGERS)
def test_overflow(ty: str) -> None:
    a, b = pair(ty)
    a[:40] %= 5
    b[:50] %= 3
    width = 8 * a.itemsize
    for name, function in (("add", int.__add__), ("sub", int.__sub__), ("mul", int.__mul__)):
        for letter in "us":
            given = (map(int, a), map(int, b)) if letter == "u" else (signed(ty, a), signed(ty, b))
            exact = [function(x, y) for x, y in zip(*given, strict=True)]
            least = -(2 ** (width - 1)) if letter == "s" else 0
            most = least + 2**width - 1
            call = f"{letter}{name}.with.overflow.{ty}"
            body = f"  %s = call {{{ty}, i1}} @llvm.{call}({ty} %a, {ty} %b)\n"
            both = ((ty, a), (ty, b))
            found = elementwise(body + f"  %r = extractvalue {{{ty}, i1}} %s, 1", "i1", *both)
            same_bits(found, np.array([not least <= v <= most for v in exact]))
            if name != "mul":
                body = f"  %r = call {ty} @llvm.{letter}{name}.sat.{ty}({ty} %a, {ty} %b)"
                clamped = [min(max(v, least), most) for v in exact]
                same_bits(elementwise(body, ty, *both), wrapped(ty, clamped))


@pytest.mark.parametrize("ty", INTEGERS)
def test_intrinsics_of_integers(ty: str) -> None:
    a, b = pair(ty)
    width = 8 * a.itemsize
    x, y = signed(ty, a), signed(ty, b)
    both = ((ty, a), (ty, b))

    def called(name: str, args: str = "%a, {} %b") -> NDArray[Any]:
        return elementwise(f"  %r = call {ty} @llvm.{name}.{ty}({ty} {args.format(ty)})", ty, *both)

    same_bits(called("umin"), np.minimum(a, b))
    same_bits(called("umax"), np.maximum(a, b))
    same_bits(called("smin"), wrapped(ty, list(map(min, x, y))))
    same_bits(called("smax"), wrapped(ty, list(map(max, x, y))))
    same_bits(called("ctpop", "%a"), wrapped(ty, [int(v).bit_count() for v in a]))
    same_bits(called("abs", "%a, i1 false"), wrapped(ty, list(map(abs, x))))
    leading = [width - int(v).bit_length() for v in a]
    same_bits(called("ctlz", "%a, i1 false"), wrapped(ty, leading))
    trailing = [(int(v) & -int(v)).bit_length() - 1 if v else width for v in a]
    same_bits(called("cttz", "%a, i1 false"), wrapped(ty, trailing))
    turned = [int(f"{int(v):0{width}b}"[::-1], 2) for v in a]
    same_bits(called("bitreverse", "%a"), wrapped(ty, turned))
    if width > 8:
        same_bits(called("bswap", "%a"), a.byteswap())
    for name in ("ctlz", "cttz", "abs"):
        with pytest.raises(Undefined, match="is poison"):
            called(name, "%a, i1 true")
    joined = [int(p) << width | int(q) for p, q in zip(a, b, strict=True)]
    by = [int(v) % width for v in b]
    shifted = [v << n >> width for v, n in zip(joined, by, strict=True)]
    same_bits(called("fshl", "%a, {0} %b, {0} %b"), wrapped(ty, shifted))
    shifted = [v >> n for v, n in zip(joined, by, strict=True)]
    same_bits(called("fshr", "%a, {0} %b, {0} %b"), wrapped(ty, shifted))


def test_high_products() -> None:
    for ty, names in (("i32", ("i", "ui")), ("i64", ("ll", "ull"))):
        a, b = pair(ty)
        width = 8 * a.itemsize
        for name, x, y in (
            (names[0], signed(ty, a), signed(ty, b)),
            (names[1], map(int, a), map(int, b)),
        ):
            body = f"  %r = call {ty} @llvm.nvvm.mulhi.{name}({ty} %a, {ty} %b)"
            expected = [v * w >> width for v, w in zip(x, y, strict=True)]
            same_bits(elementwise(body, ty, (ty, a), (ty, b)), wrapped(ty, expected))


@pytest.mark.parametrize("ty", FLOATS)
def test_intrinsics_of_floats(ty: str) -> None:
    a, b = pair(ty)
    b[::5] = a[::5]
    b[::7] = -a[::7]
    zeros = (a.astype(np.float64) == 0) | (b.astype(np.float64) == 0)
    assert zeros.any()
    x, y = a.astype(np.float64), b.astype(np.float64)
    x[:3], y[:3] = (0.0, -0.0, -0.0), (-0.0, 0.0, -0.0)
    a[:3], b[:3] = x[:3].astype(a.dtype), y[:3].astype(a.dtype)

    def called(name: str, *args: str) -> NDArray[Any]:
        given = ", ".join(f"{ty} {arg}" for arg in args)
        body = f"  %r = call {ty} @llvm.{name}.{SHORT[ty]}({given})"
        return elementwise(body, ty, (ty, a), (ty, b))

    for name in ("floor", "ceil", "trunc", "sqrt"):
        same_bits(called(name, "%a"), getattr(np, name)(x).astype(a.dtype))
    for name in ("nearbyint", "rint", "roundeven"):
        same_bits(called(name, "%a"), np.rint(x).astype(a.dtype))
    same_bits(called("arithmetic.fence", "%a"), a)
    unsigned = f"u{a.itemsize}"
    top = 1 << (8 * a.itemsize - 1)
    fabs, sign = called("fabs", "%a").view(unsigned), called("copysign", "%a", "%b").view(unsigned)
    nan = np.isnan(x) if ty != "double" else np.zeros(x.shape, bool)  # of which there is one
    assert ty == "double" or nan.any()
    np.testing.assert_array_equal(fabs, np.where(nan, top - 1, a.view(unsigned) & (top - 1)))
    np.testing.assert_array_equal(sign, (a.view(unsigned) & (top - 1)) | (b.view(unsigned) & top))
    found = elementwise(f"  %r = fneg {ty} %a", ty, (ty, a)).view(unsigned)
    np.testing.assert_array_equal(found, np.where(nan, top - 1, a.view(unsigned) ^ top))
    # -0 is less than +0, which a pair of value and sign says.
    low, high = [], []
    for v, w in zip(x, y, strict=True):
        pair_ = sorted(((v, not np.signbit(v)), (w, not np.signbit(w))))
        nan = v != v or w != w
        low.append(np.nan if nan else pair_[0][0])
        high.append(np.nan if nan else pair_[1][0])
    same_bits(called("minimum", "%a", "%b"), np.array(low).astype(a.dtype))
    same_bits(called("maximum", "%a", "%b"), np.array(high).astype(a.dtype))
    number = np.where(np.isnan(x), y, x)
    for name, values in (("minnum", low), ("maxnum", high)):
        expected = np.where(np.isnan(values), number, values)
        same_bits(called(name, "%a", "%b"), expected.astype(a.dtype))


def test_reductions_of_vectors() -> None:
    a = edges("i32", 1024).reshape(-1, 8)
    s = a.view(np.int32)
    expected = {
        "add": np.add.reduce(a, 1, dtype=np.uint32),
        "mul": np.multiply.reduce(a, 1, dtype=np.uint32),
        "and": np.bitwise_and.reduce(a, 1),
        "or": np.bitwise_or.reduce(a, 1),
        "xor": np.bitwise_xor.reduce(a, 1),
        "umin": a.min(1),
        "umax": a.max(1),
        "smin": s.min(1).view(np.uint32),
        "smax": s.max(1).view(np.uint32),
    }
    for name, value in expected.items():
        body = f"  %r = call i32 @llvm.vector.reduce.{name}.v8i32(<8 x i32> %a)"
        same_bits(elementwise(body, "i32", ("<8 x i32>", a)), value)
    body = "  %c = icmp slt <8 x i32> %a, zeroinitializer\n"
    body += "  %r = call i1 @llvm.vector.reduce.{}.v8i1(<8 x i1> %c)"
    same_bits(elementwise(body.format("or"), "i1", ("<8 x i32>", a)), (s < 0).any(1))
    same_bits(elementwise(body.format("and"), "i1", ("<8 x i32>", a)), (s < 0).all(1))
    f = np.random.default_rng(0).standard_normal((64, 4)).astype(np.float32)
    given = ("<4 x float>", f)
    body = "  %r = call float @llvm.vector.reduce.fadd.v4f32(float 1.0, <4 x float> %a)"
    total = np.float32(1)
    for lane in f.T:
        total = total + lane
    same_bits(elementwise(body, "float", given), total)
    body = "  %r = call float @llvm.vector.reduce.fmaximum.v4f32(<4 x float> %a)"
    same_bits(elementwise(body, "float", given), f.max(1))


def test_poison() -> None:
    a = np.arange(64, dtype=np.uint32)
    fine = """
  %c = icmp ult i32 %a, 100
  %p = select i1 %c, i32 %a, i32 poison
  %q = add i32 %p, 1
  %v = insertelement <2 x i32> poison, i32 %q, i64 0
  %w = insertelement <2 x i32> %v, i32 %a, i64 1
  %x = shufflevector <2 x i32> %w, <2 x i32> undef, <2 x i32> <i32 1, i32 0>
  %r = extractelement <2 x i32> %x, i64 1
"""
    same_bits(elementwise(fine, "i32", ("i32", a)), a + 1)
    for bad in (
        fine.replace("100", "20"),
        fine.replace("i64 1\n  %x", "i64 0\n  %x").replace("%x, i64 1", "%x, i64 0"),
        fine.replace("<i32 1, i32 0>", "<i32 1, i32 poison>"),
        fine.replace("<i32 1, i32 0>", "<i32 1, i32 2>"),
        "  %r = add i32 %a, poison",
        "  %s = insertvalue {i32, i32} poison, i32 %a, 0\n  %r = extractvalue {i32, i32} %s, 1",
        "  %g = inttoptr i64 undef to ptr addrspace(1)\n  %r = load i32, ptr addrspace(1) %g",
        "  %v = insertelement <2 x i16> poison, i16 1, i64 0\n  %r = bitcast <2 x i16> %v to i32",
    ):
        with pytest.raises(Undefined, match="poison gets to where it matters"):
            elementwise(bad, "i32", ("i32", a))
    with pytest.raises(Undefined, match=r"poison(.*\n)*.*thread \(20, 0, 0\)"):
        elementwise(fine.replace("100", "20"), "i32", ("i32", a))
    frozen = "  %f = freeze i32 poison\n  %z = and i32 %f, 0\n  %r = add i32 %z, 5"
    same_bits(elementwise(frozen, "i32", ("i32", a)), np.full(64, 5, np.uint32))


def nearest(x: Fraction, ty: str) -> float:
    """The float of a type that is nearest to a number, the even one of two."""
    digits, least, most = {
        "half": (11, -24, 15),
        "bfloat": (8, -133, 127),
        "float": (24, -149, 127),
        "double": (53, -1074, 1023),
    }[ty]
    if not x:
        return 0.0
    size = abs(x)
    top = size.numerator.bit_length() - size.denominator.bit_length()
    if Fraction(2) ** top > size:
        top -= 1
    step = Fraction(2) ** max(top - digits + 1, least)
    rounded = round(size / step) * step  # Python rounds halves to even
    if rounded >= Fraction(2) ** (most + 1):
        return np.inf if x > 0 else -np.inf
    return float(rounded) if x > 0 else -float(rounded)


@pytest.mark.parametrize("ty", FLOATS)
def test_fma_is_exact(ty: str) -> None:
    """Random numbers, and such where the product is halfway, or cancels, or is subnormal."""
    rng = np.random.default_rng(4)
    kind = DTYPES[ty]
    digits = {"half": 11, "bfloat": 8, "float": 24, "double": 53}[ty]
    a, b, c = (edges(ty, 3000, seed) for seed in range(3))
    for x in (a, b, c):
        x[~np.isfinite(x.astype(np.float64))] = 1
    third = slice(1000, 2000)
    a[third] = (1 + rng.integers(0, 2 ** (digits // 2), 1000) * 2.0 ** (1 - digits)).astype(kind)
    b[third] = (1 + rng.integers(0, 2 ** (digits // 2), 1000) * 2.0 ** (1 - digits)).astype(kind)
    # A sum that is just above, just below or at the middle of two floats.
    c[third] = (2.0 ** rng.integers(-digits - 2, digits + 2, 1000)).astype(kind)
    last = slice(2000, 3000)
    c[last] = -(a[last].astype(np.float64) * b[last].astype(np.float64)).astype(kind)
    c[~np.isfinite(c.astype(np.float64))] = -1
    given = ((ty, a), (ty, b), (ty, c))
    body = f"  %r = call {ty} @llvm.fma.{SHORT[ty]}({ty} %a, {ty} %b, {ty} %c)"
    found = elementwise(body, ty, *given).astype(np.float64)
    for x, y, z, r in zip(*(v.astype(np.float64) for v in (a, b, c)), found, strict=True):
        exact = Fraction(float(x)) * Fraction(float(y)) + Fraction(float(z))
        assert r == nearest(exact, ty), (x, y, z)


def test_fma_of_shapes_and_specials() -> None:
    a, b = pair("float")
    for line, expected in (
        ("float %a, float 2.0, float %b", a * np.float32(2) + b),
        ("float 2.0, float 2.0, float %b", np.float32(4) + b),
        ("float %a, float 2.0, float -0.0", a * np.float32(2)),
    ):
        # Doubling is exact, so that two roundings are one.
        body = f"  %r = call float @llvm.fma.f32({line})"
        same_bits(elementwise(body, "float", ("float", a), ("float", b)), expected)
    v = a.reshape(-1, 4)
    body = "  %x = extractelement <4 x float> %a, i64 1\n"
    body += "  %r = call float @llvm.fma.f32(float %x, float 1.0, float -0.0)"
    same_bits(elementwise(body, "float", ("<4 x float>", v)), v[:, 1].copy())
    body = "  %r = call <4 x float> @llvm.fma.v4f32(<4 x float> %a, <4 x float> "
    body += "splat (float 2.0), <4 x float> zeroinitializer)"
    same_bits(elementwise(body, "<4 x float>", ("<4 x float>", v)), v * np.float32(2) + 0)


def test_bfloat_vectors() -> None:
    a, b = edges("bfloat", 512, 1).reshape(-1, 8), edges("bfloat", 512, 2).reshape(-1, 8)
    ty = "<8 x bfloat>"
    found = elementwise(f"  %r = fmul {ty} %a, %b", ty, (ty, a), (ty, b))
    expected = (a.astype(np.float32) * b.astype(np.float32)).astype(ml_dtypes.bfloat16)
    same_bits(found, expected)
