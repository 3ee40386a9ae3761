"""Maths functions as named lists of legal instructions: pure data, the same for every backend.

A list is made on first use and kept. Those for targets with a fused multiply-add, and those for
targets without, are two classes: within each, every target gives the same bits. A backend may do
some in its own way: by one instruction of its processor where that gives the same bits, or by
faster code within the bound.

>>> f = function("rsqrt", "f32")
>>> [(i.op, i.args) for i in f.instructions]
[('param', ()), ('sqrt', (0,)), ('const', ()), ('div', (2, 1))]
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cache
from importlib import import_module
from typing import Any

from tenfold.errors import Unsupported
from tenfold.frozen import frozen
from tenfold.kernel.ir.kernel import Instruction, renumbered
from tenfold.kernel.maths.values import Body

DTYPES = ("f32", "f64")
INTEGERS = ("i8", "i16", "i32", "i64", "u8", "u16", "u32", "u64")
BITS = {"f32": "u32", "f64": "u64"}

# What a backend does in its own way: functions of the table, or what they are made of and is
# marked as `replaceable`, as Python functions of values.
Own = tuple[tuple[str, Callable[..., Any]], ...]


@frozen
class Function:
    """A list of legal instructions, among them its parameters; the last one is its result, of
    the dtype that it is named by."""

    name: str
    dtype: str
    params: tuple[str, ...]
    instructions: tuple[Instruction, ...]


@frozen
class FunctionRow:
    """One function of the table: its arity, the module of this package that has it, and the
    largest error in ulp, by dtype."""

    arity: int
    module: str
    ulp: Mapping[str, float]


def _rows(module: str, arity: int = 1, **ulp: tuple[float, float]) -> dict[str, FunctionRow]:
    return {
        name: FunctionRow(arity, module, dict(zip(DTYPES, bounds, strict=True)))
        for name, bounds in ulp.items()
    }


# The bounds stand a little above the largest errors found, over all targets; those without fused
# multiply-add set most of them. logaddexp's is in ulp of the larger of its arguments and result.
FUNCTIONS: dict[str, FunctionRow] = {
    **_rows("exponential", exp=(1.25, 1.25), exp2=(1.3, 1.35), expm1=(1.4, 1.4)),
    **_rows("exponential", sigmoid=(2.1, 2.1), tanh=(1.45, 1.45)),
    **_rows("exponential", sinh=(0.55, 1.95), cosh=(0.55, 1.7)),
    **_rows("logarithm", log=(0.9, 0.9), log2=(1.1, 1.15), log10=(1.15, 1.0), log1p=(1.5, 1.5)),
    **_rows("logarithm", 2, logaddexp=(0.55, 2.6)),
    **_rows("trigonometric", sin=(0.95, 0.95), cos=(0.95, 0.95), tan=(1.25, 1.25)),
    **_rows("error", erf=(2.0, 1.8), erfc=(0.85, 2.6)),
    **_rows("inverse", asin=(0.75, 0.85), acos=(1.0, 1.15), atan=(1.3, 1.4)),
    **_rows("inverse", 2, atan2=(1.5, 1.5)),
    **_rows("inverse", asinh=(0.55, 1.7), acosh=(0.55, 1.6), atanh=(0.55, 2.2)),
    **_rows("power", 2, pow=(0.6, 1.5), hypot=(0.55, 0.6)),
    **_rows("power", rsqrt=(1.5, 1.5), cbrt=(0.55, 0.55)),
    **_rows("remainder", 2, fmod=(0.0, 0.0)),
}

# Of integers: the module that has it, and what it takes.
WHOLE = {"ipow": ("integers", "ii")}

# What these call for arguments that are rare: likewise, of floats (f), bits (u) and integers (i).
RARE = {
    "sine_large": ("trigonometric", "fu"),
    "tan_large": ("trigonometric", "f"),
    "fmod_large": ("remainder", "ff"),
    "product_modulo": ("remainder", "fff"),
    "ipow_large": ("integers", "ii"),
    "ipow_digit": ("integers", "ii"),
}


_SIGNATURES = {n: (row.module, "f" * row.arity) for n, row in FUNCTIONS.items()} | WHOLE | RARE


def exists(name: str, dtype: str) -> bool:
    if name not in _SIGNATURES:
        return False
    return dtype in (INTEGERS if "i" in _SIGNATURES[name][1] else DTYPES)


def params(name: str, dtype: str) -> tuple[str, ...]:
    """The dtypes of what a function takes."""
    return tuple([BITS[dtype] if kind == "u" else dtype for kind in _SIGNATURES[name][1]])


@cache
def function(name: str, dtype: str, fma: bool = True, own: Own = ()) -> Function:
    """A function of a dtype, which is that of its result."""
    if not exists(name, dtype):
        raise Unsupported(
            f"{name} of {dtype}: there are {', '.join(FUNCTIONS)} of f32 and f64",
            fix="cast to one of these dtypes, or write it in terms of these functions",
        )
    body, taken = Body(fma, dict(own)), params(name, dtype)
    module = import_module(f"{__name__}.{_SIGNATURES[name][0]}")
    build = body.own.get(name) or getattr(module, name)
    result = build(*[body.param(p) for p in taken])
    assert result.dtype == dtype
    return Function(name, dtype, taken, _live(body.instructions, result.at))


def _live(instructions: list[Instruction], result: int) -> tuple[Instruction, ...]:
    """The parameters, and what a result is made of; the result is the last."""
    wanted = {result}
    for n in range(result, -1, -1):
        if n in wanted:
            wanted.update(instructions[n].args)
    kept = [n for n in range(result + 1) if n in wanted or instructions[n].op == "param"]
    at = {old: new for new, old in enumerate(kept)}
    return tuple(renumbered(instructions[n], at) for n in kept)
