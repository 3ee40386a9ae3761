"""The maths functions against wider arithmetic, at each level this machine runs."""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import cache
from typing import Any

import llvmlite.binding as llvm
import numpy as np
import pytest
from scipy import special

from tenfold.backends.cpu.target import executable, host_target
from tenfold.backends.llvm.functions import definitions
from tenfold.backends.llvm.target import named, target_machine, target_with
from tenfold.errors import Unsupported
from tenfold.kernel.ir.kernel import Instruction
from tenfold.kernel.ir.legal import ELEMENTWISE, mismatch, misuse
from tenfold.kernel.maths import FUNCTIONS, INTEGERS, RARE, WHOLE, exists, function
from tenfold.types import DTYPES
from tests.backends.llvm.loops import compiled, loaded, module
from tests.backends.llvm.test_instructions import Case, expected

Array = np.ndarray[Any, Any]
HOST = host_target()
LEVELS = {n: named(n, HOST) for n in executable(HOST) if n != "x86-64-v2"}  # as x86-64
FLOATS = {"f32": np.float32, "f64": np.float64}
ALL = [(name, dtype) for name in FUNCTIONS for dtype in FLOATS]
EDGES = [
    *(0.0, 1.0, np.inf, 0.5, 2.0, 3.0, 4.0, 10.0, 0.1, 100.0, 1000.0, 1e-5, 1e-8, 1e-20, 1.5, 7.0),
    *(1e-38, 1e-40, 1.4e-45, 1e-310, 5e-324, 2.2250738585072014e-308, 1.1754943508222875e-38),
    *(88.72283, 88.7229, 87.4, 103.9, 104.1, 709.78, 709.79, 745.1, 745.2, 746.0, 89.4159, 710.47),
    *(1e5, 1e6, 1e7, 1e10, 1e16, 1e22, 1e30, 3.4028234663852886e38, 1e300, 1.7976931348623157e308),
    *(0.7071067811865476, 1.4142135623730951, 0.625, 3.141592653589793, 1.5707963267948966),
    *(8388607.5, 8388608.0, 16777215.0, 16777217.0, 4503599627370497.0, 9007199254740991.0),
    *(127.5, 128.0, 149.0, 150.0, 1023.5, 1024.0, 1074.0, 1075.0, 10.06, 27.2, 26.6, 3.92, 6.0),
]

pytestmark = pytest.mark.skipif(
    HOST.arch != "x86_64" or np.finfo(np.longdouble).nmant < 63,
    reason="runs x86 instruction sets and compares with 80-bit floats",
)


@cache
def image(level: str, wide: bool) -> Any:
    """All functions, which own the code."""
    return loaded(ALL, wide, LEVELS[level])


def run(level: str, name: str, dtype: str, *inputs: Array, wide: bool = True) -> Array:
    size = inputs[0].size
    padded = [np.pad(x, (0, -size % 16), constant_values=1) for x in inputs]
    out = np.empty_like(padded[0])
    loop = compiled(name, dtype, image(level, wide))
    loop(*(x.ctypes.data for x in padded), out.ctypes.data, out.size)
    return out[:size]


def assert_same_bits(got: Array, want: Array, inputs: list[Array]) -> None:
    """Bit for bit, but for NaN, of which one is as good as another."""
    whole = f"u{got.itemsize}"
    differ = (got.view(whole) != want.view(whole)) & ~(np.isnan(got) & np.isnan(want))
    at = np.flatnonzero(differ)
    assert not at.size, f"of {[x[at[0]] for x in inputs]}: {got[at[0]]}, not {want[at[0]]}"


def minus_square_exp(x: Array) -> Array:
    """exp(-x²) in long doubles, the square cut in two so as not to round it."""
    high = x.astype(np.float32).astype(np.longdouble)
    return np.exp(-high * high) * np.exp(-(x - high) * (x + high))


def erf(x: Array) -> Array:
    """A series of positive terms near 0, and 1 less the complement beyond."""
    near = np.clip(x, -2, 2)
    term = total = near
    for n in range(1, 60):
        term = term * (2 * near * near) / (2 * n + 1)
        total = total + term
    total = total * minus_square_exp(near) * 2 / np.sqrt(np.arctan(np.longdouble(1)) * 4)
    return np.where(np.abs(x) < 2, total, np.copysign(1 - erfc_beyond(np.abs(x)), x))


def erfc_beyond(x: Array) -> Array:
    """erfc for x ≥ 1, by its continued fraction from the far end."""
    at = np.clip(x, 1, 110)
    fraction = at
    for n in range(400, 0, -1):
        fraction = at + n / fraction / 2
    return minus_square_exp(at) / (fraction * np.sqrt(np.arctan(np.longdouble(1)) * 4))


def erfc(x: Array) -> Array:
    return np.where(x < 1, 1 - erf(np.minimum(x, 1)), erfc_beyond(x))


def sigmoid(x: Array) -> Array:
    e = np.exp(-np.abs(x))
    return np.where(x < 0, e, 1) / (1 + e)


REFERENCE: dict[str, Callable[..., Array]] = {
    "sigmoid": sigmoid,
    "rsqrt": lambda x: 1 / np.sqrt(x),
    "erf": erf,
    "erfc": erfc,
    **{n: getattr(np, n) for n in ("exp", "exp2", "expm1", "log", "log2", "log10", "log1p")},
    **{n: getattr(np, n) for n in ("sin", "cos", "tan", "tanh", "sinh", "cosh", "cbrt")},
    **{n: getattr(np, n) for n in ("hypot", "logaddexp", "pow", "asin", "acos", "atan", "atan2")},
    **{n: getattr(np, n) for n in ("asinh", "acosh", "atanh", "fmod")},
}


# What float64 is too narrow to judge in float32.
WIDE = {"pow", "erf", "erfc"}


def random_bits(count: int, dtype: str, seed: int) -> Array:
    width = np.uint32 if dtype == "f32" else np.uint64
    top = np.iinfo(width).max
    return np.random.default_rng(seed).integers(0, top, count, width).view(FLOATS[dtype])


def samples(name: str, dtype: str, count: int, seed: int = 0) -> list[Array]:
    """Edges, all magnitudes by bit pattern, and the ranges where the functions change."""
    rng = np.random.default_rng(seed)
    real = FLOATS[dtype]
    with np.errstate(all="ignore"):
        edges = np.array([*EDGES, *(-e for e in EDGES), np.nan]).astype(real)
        edges = np.concatenate(
            [edges, np.nextafter(edges, real(np.inf)), np.nextafter(edges, real(-np.inf))]
        )
    spread = [
        random_bits(count, dtype, seed),
        *(rng.uniform(-s, s, count).astype(real) for s in (1, 10, 120, 800, 1e6)),
        (rng.choice([-1, 1], count) * np.exp(rng.uniform(-20, 20, count))).astype(real),
        (1 + rng.uniform(-1, 1, count) * np.exp(rng.uniform(-20, 0, count))).astype(real),
    ]
    if FUNCTIONS[name].arity == 1:
        return [np.concatenate([edges, *spread])]
    grid = np.meshgrid(edges, edges)
    base, power = np.exp(rng.uniform(-3, 3, count)), rng.uniform(-30, 30, count)
    first = [grid[0].ravel(), *spread, base.astype(real)]
    second = [grid[1].ravel(), rng.permutation(np.concatenate(spread)), power.astype(real)]
    return [np.concatenate(first), np.concatenate(second)]


def errors(got: Array, true: Array, scale: Array) -> Array:
    """Errors in ulp of `scale`; inf where a NaN, an infinity or a zero's sign is wrong."""
    real = got.dtype.type
    with np.errstate(all="ignore"):
        want = true.astype(real)
        unit = np.spacing(np.maximum(np.abs(scale.astype(real)), np.finfo(real).tiny))
        both = np.isfinite(want) & np.isfinite(got)
        off = np.where(both, np.abs(got.astype(np.longdouble) - true) / unit, 0)
        same = (got == want) | (np.isnan(got) & np.isnan(want))
        flipped = (want == 0) & (got == 0) & (np.signbit(want) != np.signbit(got))
    return np.where((~both & ~same) | flipped, np.inf, off)


@cache
def with_truth(name: str, dtype: str) -> tuple[list[Array], Array, Array]:
    """Inputs, true results, and the size in whose ulp errors count."""
    slow = name in ("erf", "erfc")
    inputs = samples(name, dtype, 1000 if slow else 4000)
    if dtype == "f32" and FUNCTIONS[name].arity == 1:
        every = np.arange(0, 2**32, 400009 if slow else 40009, dtype=np.uint64)
        inputs = [np.concatenate([inputs[0], every.astype(np.uint32).view(np.float32)])]
    with np.errstate(all="ignore"):
        wide = np.float64 if dtype == "f32" and name not in WIDE else np.longdouble
        true = REFERENCE[name](*(x.astype(wide) for x in inputs)).astype(np.longdouble)
        size = np.abs(true)
        if name == "logaddexp":
            # The sum of two near-opposite terms: nobody's result is exact in its own ulp.
            size = np.fmax(size, np.fmax(*(np.where(np.isfinite(x), abs(x), 0) for x in inputs)))
    return inputs, true, size


@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.parametrize(("name", "dtype"), ALL)
def test_error_is_within_the_bound(name: str, dtype: str, level: str) -> None:
    inputs, true, size = with_truth(name, dtype)
    got = run(level, name, dtype, *inputs)
    off = errors(got, true, size)
    if name == "logaddexp":
        # Terms that cancel among the denormals leave a zero of either sign.
        off = np.where((got == 0) & (np.abs(true) < np.finfo(got.dtype).tiny), 0, off)
    worst = int(np.argmax(off))
    at = [x[worst] for x in inputs]
    assert off[worst] <= FUNCTIONS[name].ulp[dtype], f"at {at}: {got[worst]} for {true[worst]}"


@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.parametrize(("name", "dtype"), ALL)
def test_bits_do_not_depend_on_lanes(name: str, dtype: str, level: str) -> None:
    inputs = samples(name, dtype, 300, seed=1)
    inputs = [x[-6000:] for x in inputs]
    whole = run(level, name, dtype, *inputs)
    assert_same_bits(run(level, name, dtype, *inputs, wide=False), whole, inputs)
    moved = run(level, name, dtype, *(np.roll(x, 5) for x in inputs))
    assert_same_bits(np.roll(moved, -5), whole, inputs)


@pytest.mark.skipif("x86-64-v4" not in LEVELS, reason="this machine has no AVX-512")
@pytest.mark.parametrize(("name", "dtype"), ALL)
def test_every_level_with_fma_gives_the_same_bits(name: str, dtype: str) -> None:
    inputs = samples(name, dtype, 20_000, seed=2)
    if dtype == "f32" and FUNCTIONS[name].arity == 1:
        every = np.arange(0, 2**32, 4099, dtype=np.uint64).astype(np.uint32).view(np.float32)
        inputs = [np.concatenate([inputs[0], every])]
    got = run("x86-64-v3", name, dtype, *inputs)
    assert_same_bits(got, run("x86-64-v4", name, dtype, *inputs), inputs)


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("level", LEVELS)
def test_pow_has_numpys_special_cases(dtype: str, level: str) -> None:
    real = FLOATS[dtype]
    bases = [0.0, 1.0, 0.5, 2.0, np.inf, np.nan, 1e-40, 3.0, 1e30]
    powers = [0.0, 1.0, 2.0, 3.0, 0.5, 2.5, np.inf, np.nan, 1e-30, 2.0**23 + 1, 2.0**24 + 2, 1e300]
    with np.errstate(all="ignore"):
        x, y = (
            a.ravel().astype(real)
            for a in np.meshgrid([*bases, *(-b for b in bases)], [*powers, *(-p for p in powers)])
        )
        want = np.power(x, y)
    got = run(level, "pow", dtype, x, y)
    special = ~np.isfinite(want) | (want == 0) | (np.abs(want) == 1)
    np.testing.assert_array_equal(got[special], want[special])
    signed = ~np.isnan(want)
    np.testing.assert_array_equal(np.signbit(got[signed]), np.signbit(want[signed]))
    np.testing.assert_allclose(got, want, rtol=4 * np.finfo(real).eps, equal_nan=True)


@pytest.mark.parametrize("level", LEVELS)
def test_arguments_of_any_size_are_reduced_exactly(level: str) -> None:
    # The double nearest to a multiple of π/2, and others from beyond the vector path.
    hard = [
        5.319372648326541e255,
        1e22,
        2.0**1023,
        2.0**30,
        1048576.5,
        -6381956970095103.0 * 2**797,
    ]
    for name in ("sin", "cos", "tan"):
        got = run(level, name, "f64", np.array(hard))
        want = REFERENCE[name](np.array(hard, np.longdouble)).astype(np.float64)
        np.testing.assert_allclose(got, want, rtol=4.5e-16)


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("level", LEVELS)
def test_remainders_are_exact_however_far_the_exponents_are_apart(level: str, dtype: str) -> None:
    rng, count = np.random.default_rng(5), 20_000
    info = np.finfo(FLOATS[dtype])
    whole, bits = (np.uint32, 23) if dtype == "f32" else (np.uint64, 52)
    top = int(info.max.view(whole)) >> bits
    for apart in (3, 30, 60, top):
        below = rng.integers(0, top + 1, count)
        above = np.minimum(below + rng.integers(0, apart + 1, count), top)
        # Among the mantissas many of all ones, whose products have the most bits.
        full = (1 << bits) - 1
        ones = np.where(rng.random((2, count)) < 0.2, full, rng.integers(0, full, (2, count)))
        x, y = (
            ((e.astype(whole) << whole(bits)) | m.astype(whole)).view(info.dtype)
            for e, m in zip((above, below), ones, strict=True)
        )
        x = np.where(rng.random(count) < 0.5, -x, x)
        assert_same_bits(run(level, "fmod", dtype, x, y), np.fmod(x, y), [x, y])


@pytest.mark.parametrize("level", LEVELS)
def test_powers_of_integers_wrap(level: str) -> None:
    rng = np.random.default_rng(3)
    for dtype in INTEGERS:
        info, width = np.iinfo(DTYPES[dtype]), int(dtype[1:])
        some = [0, 1, 2, 3, 7, 10, info.max, info.min, info.max - 4, *([-1, -2] * (info.min < 0))]
        powers = [*range(12), 15, 16, 31, 63, 64, 65, 100, 127, info.max, info.min]
        x, n = (g.ravel() for g in np.meshgrid(*(np.array(v, info.dtype) for v in (some, powers))))
        x = np.concatenate([x, rng.integers(info.min, info.max, 320, info.dtype, True)])
        n = np.concatenate([n, rng.integers(0, 127, 320, info.dtype)])
        top = 1 << width
        want = [pow(int(a) % top, int(b) % top, top) for a, b in zip(x, n, strict=True)]
        for wide in (False, True):
            loops = loaded([("ipow", dtype)], wide, LEVELS[level])
            x, n = (np.resize(v, -(-x.size // 16) * 16) for v in (x, n))
            got = np.empty_like(x)
            compiled("ipow", dtype, loops)(x.ctypes.data, n.ctypes.data, got.ctypes.data, x.size)
            assert got.view(f"u{got.itemsize}").tolist()[: len(want)] == want, dtype


def calls(assembly: str) -> set[str]:
    """The names that assembly calls or jumps to, other than our own."""
    found = re.findall(r"^\s+(?:callq?|bl|jmp)\s+\"?([A-Za-z_][\w.]*)", assembly, re.MULTILINE)
    return {f for f in found if not f.startswith("tenfold.")}


@pytest.mark.parametrize("target", [*LEVELS.values(), target_with("aarch64-unknown-linux-gnu", ())])
@pytest.mark.parametrize("wide", [False, True])
def test_no_library_is_called(target: Any, wide: bool) -> None:
    assert calls("\tcallq\tsinf@PLT\n\tbl\tldexp\n\tjmp\t.LBB0_1\n") == {"sinf", "ldexp"}
    machine = target_machine(target)
    head = f'target triple = "{machine.triple}"\ntarget datalayout = "{machine.target_data}"\n'
    parsed = llvm.parse_assembly(head + module(ALL, wide, target), llvm.create_context())
    assert not calls(machine.emit_assembly(parsed))


@pytest.mark.parametrize("fma", [True, False])
@pytest.mark.parametrize("dtype", [*FLOATS, *INTEGERS])
def test_lists_are_legal(dtype: str, fma: bool) -> None:
    """Every instruction is one of the specification, on dtypes that it takes."""
    for name in (n for n in (*FUNCTIONS, *WHOLE, *RARE) if exists(n, dtype)):
        f = function(name, dtype, fma)
        assert f.instructions[-1].dtype == dtype
        assert [i.dtype for i in f.instructions if i.op == "param"] == list(f.params)
        for n, i in enumerate(f.instructions):
            given = [f.instructions[a].dtype for a in i.args]
            assert all(a < n for a in i.args)
            assert fma or i.op != "fma"
            if i.op in ("call", "rarely"):
                assert not misuse(i, given), (name, i)
            elif i.op == "lookup":
                assert given == ["i32"]
            elif i.op not in ("param", "const"):
                assert not mismatch(ELEMENTWISE[i.op], i.op, given, i.dtype), (name, i)


def interpreted(name: str, dtype: str, args: list[Array]) -> Array:
    """A list without fma, instruction for instruction by NumPy."""
    f = function(name, dtype, fma=False)
    values: list[Array] = []
    for i in f.instructions:
        given = [values[a] for a in i.args]
        match i.op:
            case "param":
                value = args[i.attr[0]]
            case "const":
                value = np.full(args[0].shape, np.frombuffer(i.attr[0], DTYPES[i.dtype])[0])
            case "lookup":
                value = np.frombuffer(i.attr[0], DTYPES[i.dtype])[given[0]]
            case "call":
                value = interpreted(i.attr[0], i.dtype, given)
            case "rarely":
                value = np.where(given[0], interpreted(i.attr[0], i.dtype, given[2:]), given[1])
            case _:
                sources = tuple(f.instructions[a].dtype for a in i.args)
                value = expected(Case(i.op, sources, i.dtype), given)
        values.append(value)
    return values[-1]


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize(("name", "dtype"), ALL)
def test_code_does_what_its_list_says(name: str, dtype: str) -> None:
    """No more and no less: nothing is contracted, reassociated or flushed to zero."""
    inputs = [x[-9000:] for x in samples(name, dtype, 500, seed=4)]
    got = run("x86-64", name, dtype, *inputs)
    assert_same_bits(got, interpreted(name, dtype, inputs), inputs)


def test_texts_need_no_flags() -> None:
    for target in LEVELS.values():
        for name, dtype in ALL:
            text = "\n".join(f.body for f in definitions([(name, dtype, 16)], target))
            assert text.count("define") >= 1
            assert not re.search(r"\b(fast|contract|reassoc|nnan|ninf|nsz|arcp|afn)\b", text)


def test_unknown_functions_are_refused() -> None:
    with pytest.raises(Unsupported, match="gamma of f32"):
        function("gamma", "f32")
    with pytest.raises(Unsupported, match="exp of f16"):
        function("exp", "f16")


def test_calls_are_held_to_what_functions_take() -> None:
    assert not misuse(Instruction("call", "f32", (), ("pow",)), ["f32", "f32"])
    assert "pow of f32" in misuse(Instruction("call", "f32", (), ("pow",)), ["f32"])
    assert "no function gamma" in misuse(Instruction("call", "f32", (), ("gamma",)), ["f32"])
    assert "no function ipow of f32" in misuse(Instruction("call", "f32", (), ("ipow",)), ["f32"])
    rare = Instruction("rarely", "f64", (), ("sine_large",))
    assert not misuse(rare, ["bool", "f64", "f64", "u64"])
    assert misuse(rare, ["f64", "f64", "u64"])


@pytest.mark.parametrize("level", LEVELS)
def test_erf_of_f32_is_right_where_its_paths_meet_and_never_exceeds_one(level: str) -> None:
    ends = [(0.0, 1e-42), (0.96, 1.12), (3.5, 4.1)]
    bits = [np.arange(*np.float32(end).view(np.uint32), dtype=np.uint32) for end in ends]
    x = np.concatenate([b.view(np.float32) for b in bits])
    found, wanted = run(level, "erf", "f32", x), special.erf(x.astype(np.float64))
    assert found.max() == 1
    apart = np.abs(found - wanted) / np.spacing(np.nextafter(found, np.float32(0)))
    assert apart.max() <= FUNCTIONS["erf"].ulp["f32"]
    np.testing.assert_array_equal(run(level, "erf", "f32", -x), -found)


def test_what_is_called_most_stays_short() -> None:
    """Nothing is divided, scaling takes one shift, and results at edges are no selections."""

    def ops(name: str) -> list[str]:
        return [i.op for i in function(name, "f32").instructions if i.op not in ("param", "const")]

    arithmetic = ("add", "sub", "mul", "fma", "div")
    assert sum(op in arithmetic for op in ops("erf")) <= 17
    assert ops("exp").count("shl") == 1
    assert "shr" not in ops("exp")
    assert len(ops("exp")) <= 23
    assert sum(op in arithmetic for op in ops("log")) <= 21
    assert not any("div" in ops(name) for name in ("exp", "log", "erf"))
