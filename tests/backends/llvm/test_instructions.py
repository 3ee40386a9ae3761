"""Every legal elementwise instruction, in every dtype, as a scalar and as a vector, at each level
this machine runs, against NumPy on edge values."""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from fractions import Fraction
from functools import cache
from itertools import product
from typing import Any

import numpy as np
import pytest

from tenfold.backends.cpu.link.loader import load
from tenfold.backends.cpu.target import executable, host_target
from tenfold.backends.llvm.assemble import assemble
from tenfold.backends.llvm.casts import narrow, widen
from tenfold.backends.llvm.functions import lookup
from tenfold.backends.llvm.instructions import instruction
from tenfold.backends.llvm.target import LLVMTarget, named
from tenfold.backends.llvm.writer import LANES, MEMORY, Writer, vector
from tenfold.errors import Unsupported
from tenfold.kernel.ir.legal import ELEMENTWISE, kind, mismatch
from tenfold.types import DTYPES

Array = np.ndarray[Any, Any]
HOST = host_target()
TARGETS = {level: named(level, HOST) for level in executable(HOST)}
LEGAL = ("bool", "i8", "i16", "i32", "i64", "u8", "u16", "u32", "u64", "f32", "f64")
KEEP = ("neg", "abs", "select", "bitcast")  # NaN bit by bit

pytestmark = [
    pytest.mark.filterwarnings("ignore::RuntimeWarning"),
    pytest.mark.skipif(HOST.arch != "x86_64", reason="the levels are those of x86-64"),
]


@dataclass(frozen=True)
class Case:
    op: str
    sources: tuple[str, ...]
    dtype: str

    @property
    def name(self) -> str:
        return ".".join((self.op, *self.sources, self.dtype))


CONVERSIONS = ("from_half", "to_half", "from_bfloat", "to_bfloat")


def cases() -> Iterator[Case]:
    """Whatever the specification's rules let through."""
    for op, rule in ELEMENTWISE.items():
        for first, second in product(LEGAL, LEGAL):
            # Operands after the first are of its dtype, but a choice's; else `second` is for the
            # result alone.
            sources = (first, *[second if op == "select" else first] * (len(rule.operands) - 1))
            for dtype in (second,) if op in ("select", "cast", "bitcast") else LEGAL:
                if mismatch(rule, op, list(sources), dtype) or (
                    op not in ("select", "cast", "bitcast") and second != first
                ):
                    continue
                if op == "cast" and dtype == "bool" and kind(first) == "f":
                    continue
                if op == "bitcast" and DTYPES[first].itemsize != DTYPES[dtype].itemsize:
                    continue
                if op in CONVERSIONS and first not in ("u16", "f32"):
                    continue
                yield Case(op, sources, dtype)


CASES = {case.name: case for case in cases()}


def edges(dtype: str, few: bool = False) -> Array:
    real = DTYPES[dtype]
    if dtype == "bool":
        return np.array([False, True])
    if kind(dtype) in "iu":
        top, low = np.iinfo(real).max, np.iinfo(real).min
        near = {v + d for v in (0, top, low, 100) for d in (-3, -2, -1, 0, 1, 2, 3)}
        bits = {s * ((1 << n) + d) for n in range(3, 65, 5) for s in (1, -1) for d in (0, 1)}
        return np.array(sorted(v for v in near | bits if low <= v <= top), real)
    info = np.finfo(real)
    sizes = [0.0, 0.5, 1.0, 1.5, 2.5, 3.0, float(info.max), float(info.tiny), np.inf]
    sizes += [float(info.smallest_subnormal), float(info.eps), 1 + float(info.eps), 2 / 3]
    if not few:
        sizes += [0.3, 0.7, 2.0, 127.0, 128.0, 255.5, 1e4, 65504.0, 65520.0, 2.0**31, 2.0**32]
        sizes += [2.0**23 - 0.5, 2.0**23 + 1, 2.0**52 - 0.5, 2.0**52 + 1, 2.0**63, 2.0**64, 1e18]
        sizes += [2.0**31 - 1, 2.0**63 - 1024, 1e-5, 6e-8, 2.0**-25, float(info.tiny) / 3]
    found = np.array(sizes, real)
    return np.concatenate([found, -found, np.array([np.nan, -np.nan], real)])


def operands(case: Case) -> list[Array]:
    """The edges of all operands, each with each, where the instruction is defined."""
    if case.op in ("from_half", "from_bfloat"):
        return [np.arange(65536, dtype=np.uint16)]
    if case.op in ("to_half", "to_bfloat"):
        some = np.arange(0, 2**32, 70001, dtype=np.uint64).astype(np.uint32).view(np.float32)
        return [np.concatenate([edges("f32"), some])]
    few = len(case.sources) == 3
    grid = np.meshgrid(*(edges(s, few) for s in case.sources), indexing="ij")
    given = [np.ascontiguousarray(g.ravel()) for g in grid]
    keep = np.ones(given[0].shape, bool)
    if case.op in ("div", "rem") and kind(case.sources[0]) != "f":
        low = np.iinfo(given[0].dtype).min
        keep = given[1] != 0
        if low:
            keep &= ~((given[0] == low) & (given[1] == -1))
    if case.op in ("shl", "shr"):
        keep = (given[1] >= 0) & (given[1] < given[1].dtype.itemsize * 8)
    if case.op == "cast" and kind(case.sources[0]) == "f" and kind(case.dtype) != "f":
        info = np.iinfo(DTYPES[case.dtype])
        fits = [np.isfinite(v) and info.min <= int(v) <= info.max for v in given[0]]
        keep = np.array(fits)
    return [g[keep] for g in given]


def quotient(a: Array, b: Array) -> Array:
    whole = [abs(int(x)) // abs(int(y)) for x, y in zip(a, b, strict=True)]
    signs = (a < 0) != (b < 0)
    return np.array([-q if s else q for q, s in zip(whole, signs, strict=True)], a.dtype)


def fused(a: Array, b: Array, c: Array) -> Array:
    return np.array([_fused(*v) for v in zip(a, b, c, strict=True)], a.dtype)


def _fused(a: Any, b: Any, c: Any) -> Any:
    real = type(a)
    if not (np.isfinite(a) and np.isfinite(b) and np.isfinite(c)):
        # No product of finite factors is infinite, or takes an infinite term's sign away.
        return a * b + c if not (np.isfinite(a) and np.isfinite(b)) else c
    exact = Fraction(float(a)) * Fraction(float(b)) + Fraction(float(c))
    if not exact:
        return a * b + c  # then the product is exact
    limit = Fraction(float(np.finfo(real).max)) * (1 + Fraction(1, 2 ** (np.finfo(real).nmant + 2)))
    if abs(exact) >= limit:
        return real(np.inf if exact > 0 else -np.inf)
    near = real(min(max(float(exact), -float(np.finfo(real).max)), float(np.finfo(real).max)))
    around = [near, np.nextafter(near, real(np.inf)), np.nextafter(near, real(-np.inf))]
    width = np.uint32 if real is np.float32 else np.uint64

    def distance(x: Any) -> tuple[Fraction, int]:
        return abs(Fraction(float(x)) - exact), int(x.view(width)) & 1

    best = min((x for x in around if np.isfinite(x)), key=distance)
    return real(np.copysign(best, 1 if exact > 0 else -1))


ORACLE: dict[str, Callable[..., Array]] = {
    "add": lambda a, b: a + b,
    "sub": lambda a, b: a - b,
    "mul": lambda a, b: a * b,
    "div": lambda a, b: a / b if a.dtype.kind == "f" else quotient(a, b),
    "rem": lambda a, b: a - quotient(a, b) * b,
    "fma": fused,
    "neg": np.negative,
    "abs": np.abs,
    "sqrt": np.sqrt,
    "floor": np.floor,
    "ceil": np.ceil,
    "trunc": np.trunc,
    "round": np.rint,
    "min": np.minimum,
    "max": np.maximum,
    "and": np.bitwise_and,
    "or": np.bitwise_or,
    "xor": np.bitwise_xor,
    "shl": np.left_shift,
    "shr": np.right_shift,
    "popcount": lambda a: np.bitwise_count(a.view(f"u{a.itemsize}")),
    "eq": np.equal,
    "ne": np.not_equal,
    "lt": np.less,
    "le": np.less_equal,
    "gt": np.greater,
    "ge": np.greater_equal,
    "select": np.where,
    "from_half": lambda a: a.view(np.float16).astype(np.float32),
    "to_half": lambda a: a.astype(np.float16).view(np.uint16),
    "from_bfloat": lambda a: a.view(DTYPES["bf16"]).astype(np.float32),
    "to_bfloat": lambda a: a.astype(DTYPES["bf16"]).view(np.uint16),
}


def expected(case: Case, given: list[Array]) -> Array:
    new = DTYPES[case.dtype]
    if case.op == "cast":
        return (given[0] & 1).astype(bool) if case.dtype == "bool" else given[0].astype(new)
    if case.op == "bitcast":
        return given[0].view(new)
    return ORACLE[case.op](*given).astype(new)


def loop(case: Case, target: LLVMTarget, wide: bool) -> tuple[str, set[str]]:
    """A function that maps an instruction over arrays."""
    w = Writer(target)
    step, count = LANES if wide else 1, len(case.sources)
    w.label("body")
    w.put("%i = phi i64 [ 0, %entry ], [ %next, %body ]")
    given = []
    for n, dtype in enumerate(case.sources):
        at = w.op(f"getelementptr {MEMORY[dtype]}, ptr %in{n}, i64 %i")
        x = w.op(f"load {vector(MEMORY[dtype], wide)}, ptr {at}, align 1")
        given.append(widen(w, dtype, x, wide))
    y = instruction(w, case.op, case.dtype, case.sources, given, wide)
    y = narrow(w, case.dtype, y, wide)
    at = w.op(f"getelementptr {MEMORY[case.dtype]}, ptr %out, i64 %i")
    w.put(f"store {vector(MEMORY[case.dtype], wide)} {y}, ptr {at}, align 1")
    w.put(f"%next = add i64 %i, {step}")
    w.put("%more = icmp ult i64 %next, %n")
    w.put("br i1 %more, label %body, label %done")
    inputs = ", ".join(f"ptr %in{n}" for n in range(count))
    head = f'define void @"{case.name}.{step}"({inputs}, ptr %out, i64 %n) nounwind {{'
    return (
        "\n".join((head, "entry:", "  br label %body", *w.lines, "done:", "  ret void", "}")),
        w.declared,
    )


@cache
def compiled(level: str) -> Any:
    """All instructions in one module, which owns the code."""
    texts, declared = [], set[str]()
    for case in CASES.values():
        for wide in (False, True):
            text, needed = loop(case, TARGETS[level], wide)
            texts.append(text)
            declared |= needed
    names = [f"{name}.{step}" for name in CASES for step in (1, LANES)]
    text = "\n".join([*sorted(declared), *texts]) + "\n"
    return load([assemble(text, TARGETS[level])], names)


def run(level: str, case: Case, given: list[Array], step: int) -> Array:
    address = compiled(level).address(f"{case.name}.{step}")
    size = given[0].size
    # The last vector is filled with a pair that every instruction is defined for.
    padded = [np.concatenate([g, np.repeat(g[:1], -size % LANES)]) for g in given]
    out = np.empty(padded[0].size, DTYPES[case.dtype])
    pointers = [ctypes.c_void_p] * (len(given) + 1)
    call = ctypes.CFUNCTYPE(None, *pointers, ctypes.c_int64)(address)
    call(*(p.ctypes.data for p in padded), out.ctypes.data, out.size)
    return out[:size]


@pytest.mark.parametrize("level", TARGETS)
@pytest.mark.parametrize("op", ELEMENTWISE)
def test_an_instruction_does_what_its_specification_says(op: str, level: str) -> None:
    chosen = [case for case in CASES.values() if case.op == op]
    assert chosen
    for case in chosen:
        given = operands(case)
        want = expected(case, given)
        for step in (1, LANES):
            got = run(level, case, given, step)
            same = got.view(f"u{got.itemsize}") == want.view(f"u{want.itemsize}")
            if kind(case.dtype) == "f" and op not in KEEP:
                nan = np.isnan(got) & np.isnan(want)
                same |= nan if op != "from_half" else nan & (np.signbit(got) == np.signbit(want))
            if op == "to_half":
                both = got.view(np.float16), want.view(np.float16)
                nan = np.isnan(both[0]) & np.isnan(both[1])
                same |= nan & (np.signbit(both[0]) == np.signbit(both[1]))
            if op == "to_bfloat":
                same |= np.isnan(got.view(DTYPES["bf16"])) & np.isnan(want.view(DTYPES["bf16"]))
            wrong = np.flatnonzero(~same)
            assert not wrong.size, (
                f"{case.name}, {step} at once, of {[g[wrong[0]] for g in given]}: "
                f"{got[wrong[0]]}, not {want[wrong[0]]}"
            )


def test_every_instruction_is_tried_in_every_dtype_it_takes() -> None:
    dtypes = {op: {c.sources[-1] for c in CASES.values() if c.op == op} for op in ELEMENTWISE}
    assert dtypes["add"] == set(LEGAL) - {"bool"}
    assert dtypes["select"] == dtypes["cast"] == dtypes["eq"] == set(LEGAL)
    assert dtypes["fma"] == {"f32", "f64"}
    assert len([c for c in CASES.values() if c.op == "cast"]) == len(LEGAL) ** 2 - 2


def test_what_is_not_legal_is_refused() -> None:
    with pytest.raises(Unsupported, match="tanh of f32"):
        instruction(Writer(HOST), "tanh", "f32", ("f32",), ("%x",), True)


@pytest.mark.parametrize("level", TARGETS)
@pytest.mark.parametrize("dtype", ["u8", "i32", "u64", "f32", "f64"])
def test_a_lookup_takes_an_element_of_a_table(dtype: str, level: str) -> None:
    table = np.concatenate([edges(dtype), edges(dtype)[::-1]])
    position = np.random.default_rng(0).permutation(np.arange(table.size, dtype=np.int32))[:16]
    for wide in (False, True):
        w = Writer(TARGETS[level])
        w.label("entry")
        x = w.op(f"load {vector('i32', wide)}, ptr %in, align 4")
        y = lookup(w, dtype, table.tobytes(), x, wide)
        w.put(f"store {vector(MEMORY[dtype], wide)} {y}, ptr %out, align 1")
        head = "define void @f(ptr %in, ptr %out) nounwind {"
        text = "\n".join((*sorted(w.declared), head, *w.lines, "  ret void", "}", ""))
        image = load([assemble(text, TARGETS[level])], ["f"])
        out = np.zeros(LANES, DTYPES[dtype])
        call = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_void_p)(image.address("f"))
        call(position.ctypes.data, out.ctypes.data)
        count = LANES if wide else 1
        assert out[:count].tobytes() == table[position[:count]].tobytes()
