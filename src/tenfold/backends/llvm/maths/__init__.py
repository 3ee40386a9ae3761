"""The vector maths of the CPU backend, as LLVM IR text.

`define` gives one always-inlined function, `requires` what it needs beside it in its module:
declarations of intrinsics, now and then a function or table out of line. Both give text; put each
distinct text once into a module.

>>> print(define("rsqrt", "f32", 4, BASELINE))
define internal dso_local <4 x float> @tenfold.rsqrt.f32.4(<4 x float> %a0) alwaysinline nounwind {
  %v1 = call <4 x float> @llvm.sqrt.v4f32(<4 x float> %a0)
  %v2 = fdiv <4 x float> splat (float 0x3FF0000000000000), %v1
  ret <4 x float> %v2
}
>>> requires("rsqrt", "f32", 4, BASELINE)
frozenset({'declare <4 x float> @llvm.sqrt.v4f32(<4 x float>)'})
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cache

from tenfold.backends.llvm.maths import error, exponential, inverse, logarithm, power, trigonometric
from tenfold.backends.llvm.maths.emit import AARCH64, AVX2, AVX512, BASELINE, Body, Target, Value
from tenfold.errors import Unsupported
from tenfold.frozen import frozen

__all__ = [
    "AARCH64",
    "AVX2",
    "AVX512",
    "BASELINE",
    "FUNCTIONS",
    "Function",
    "Target",
    "define",
    "requires",
    "symbol",
]

KINDS = {"f32": "float", "f64": "double"}


@frozen
class Function:
    """One maths function: its arity, the code, and the largest error in ulp, by dtype."""

    arity: int
    build: Callable[..., Value]
    ulp: Mapping[str, float]


def _function(build: Callable[..., Value], f32: float, f64: float, arity: int = 1) -> Function:
    return Function(arity, build, {"f32": f32, "f64": f64})


# The bounds stand a little above the largest errors found, over all targets; those without fused
# multiply-add set most of them. logaddexp's is in ulp of the larger of its arguments and result.
FUNCTIONS: dict[str, Function] = {
    "exp": _function(exponential.exp, 1.25, 1.25),
    "exp2": _function(exponential.exp2, 1.3, 1.35),
    "expm1": _function(exponential.expm1, 1.4, 1.4),
    "sigmoid": _function(exponential.sigmoid, 2.1, 2.1),
    "tanh": _function(exponential.tanh, 1.45, 1.45),
    "sinh": _function(exponential.sinh, 0.55, 1.95),
    "cosh": _function(exponential.cosh, 0.55, 1.7),
    "log": _function(logarithm.log, 0.9, 0.9),
    "log2": _function(logarithm.log2, 1.1, 1.15),
    "log10": _function(logarithm.log10, 1.15, 1.0),
    "log1p": _function(logarithm.log1p, 1.5, 1.5),
    "logaddexp": _function(logarithm.logaddexp, 0.55, 2.6, arity=2),
    "sin": _function(trigonometric.sin, 0.95, 0.95),
    "cos": _function(trigonometric.cos, 0.95, 0.95),
    "tan": _function(trigonometric.tan, 1.25, 1.25),
    "erf": _function(error.erf, 2.1, 1.8),
    "erfc": _function(error.erfc, 0.85, 2.6),
    "asin": _function(inverse.asin, 0.75, 0.85),
    "acos": _function(inverse.acos, 1.0, 1.15),
    "atan": _function(inverse.atan, 1.3, 1.4),
    "atan2": _function(inverse.atan2, 1.5, 1.5, arity=2),
    "asinh": _function(inverse.asinh, 0.55, 1.7),
    "acosh": _function(inverse.acosh, 0.55, 1.6),
    "atanh": _function(inverse.atanh, 0.55, 2.2),
    "pow": _function(power.pow, 0.6, 1.5, arity=2),
    "sqrt": _function(power.sqrt, 0.5, 0.5),
    "rsqrt": _function(power.rsqrt, 1.5, 1.5),
    "cbrt": _function(power.cbrt, 0.55, 0.55),
    "hypot": _function(power.hypot, 0.55, 0.6, arity=2),
}


def symbol(name: str, dtype: str, lanes: int) -> str:
    """The IR name of a function.

    >>> symbol("exp", "f32", 16)
    '@tenfold.exp.f32.16'
    """
    return f"@tenfold.{name}.{dtype}.{lanes}"


@cache
def _written(name: str, dtype: str, lanes: int, target: Target) -> tuple[str, frozenset[str]]:
    if name not in FUNCTIONS or dtype not in KINDS:
        raise Unsupported(
            f"{name} of {dtype}: the vector maths has {', '.join(FUNCTIONS)} for f32 and f64; "
            "call the C library's for others"
        )
    function, kind = FUNCTIONS[name], KINDS[dtype]
    body = Body(lanes, target)
    args = [Value(body, kind, f"%a{i}") for i in range(function.arity)]
    result = function.build(*args)
    passed = ", ".join(f"{a.type} {a.text}" for a in args)
    text = "\n".join(
        [
            f"define internal dso_local {result.type} {symbol(name, dtype, lanes)}({passed}) "
            "alwaysinline nounwind {",
            *body.allocas,
            *body.lines,
            f"  ret {result.type} {result.text}",
            "}",
        ]
    )
    return text, frozenset(body.needs)


def define(name: str, dtype: str, lanes: int, target: Target) -> str:
    """The IR text of one function on vectors of `lanes` floats (scalars for one lane)."""
    return _written(name, dtype, lanes, target)[0]


def requires(name: str, dtype: str, lanes: int, target: Target) -> frozenset[str]:
    """What must stand in the same module, each distinct text once."""
    return _written(name, dtype, lanes, target)[1]
