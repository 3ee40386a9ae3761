"""Ufuncs: which op each of NumPy's is, and how its operands are brought to one dtype."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from tenfold.errors import ValueProblem
from tenfold.trace.array import Array
from tenfold.trace.lazy.lazy import LAZY
from tenfold.trace.operand import as_value, dtype_key
from tenfold.trace.scope import local
from tenfold.trace.surface.emit import emit, fail, is_array, traced
from tenfold.trace.surface.ufuncs import composed
from tenfold.trace.surface.ufuncs.promotion import dtypes_for
from tenfold.trace.tables import UFUNCS
from tenfold.types import BOOL, KIND, DType

# What computes a ufunc for some dtypes: an op, or a function of arrays in those dtypes.
Build = str | Callable[..., Any]
_PLAIN = frozenset({Array, float, int})  # what most operands are
# For the dtypes that operands are cast to, what computes the ufunc.
Choice = Callable[[tuple[DType, ...]], Build]


def define(
    ufunc: np.ufunc,
    choice: Build | Choice,
    *,
    choose: bool = False,
    around: Callable[[Any], Any] = lambda apply: apply,
) -> None:
    """File what a ufunc does: one op or function for all dtypes, or a choice among them; `around`
    that, what looks at its operands first."""
    plans: dict[Any, tuple[tuple[DType, ...], Build]] = {}
    pick: Choice = choice if choose else lambda dtypes: choice  # type: ignore[assignment]

    def plan(keys: tuple[Any, ...]) -> tuple[tuple[DType, ...], Build]:
        dtypes = dtypes_for(ufunc, keys)[: ufunc.nin]
        found = plans[keys] = dtypes, pick(dtypes)
        return found

    UFUNCS[ufunc] = around((_unary if ufunc.nin == 1 else _binary)(plans, plan))


def _unary(plans: dict[Any, Any], plan: Callable[..., Any]) -> Callable[..., Any]:
    def apply(x: Any) -> Any:
        scope = local.scope or LAZY
        if type(x) not in _PLAIN and not is_array(x):
            x = traced(x)
        key = (dtype_key(x),)
        dtypes, build = plans.get(key) or plan(key)
        value = as_value(x, scope, dtypes[0])
        if type(build) is str:
            return Array(scope, scope.node(build, (value,))[0])
        return build(Array(scope, value))

    return apply


def _binary(plans: dict[Any, Any], plan: Callable[..., Any]) -> Callable[..., Any]:
    def apply(x: Any, y: Any) -> Any:
        scope = local.scope or LAZY
        if type(x) not in _PLAIN and not is_array(x):
            x = traced(x)
        if type(y) not in _PLAIN and not is_array(y):
            y = traced(y)
        keys = dtype_key(x), dtype_key(y)
        dtypes, build = plans.get(keys) or plan(keys)
        left, right = as_value(x, scope, dtypes[0]), as_value(y, scope, dtypes[1])
        if type(build) is str:
            return Array(scope, scope.node(build, (left, right))[0])
        return build(Array(scope, left), Array(scope, right))

    return apply


def _on_bool(op: str, logical: Build) -> Choice:
    """One op for numbers, another for bools."""
    return lambda dtypes: logical if dtypes[0] == BOOL else op


def _on_floats(op: str, exact: Build) -> Choice:
    """One op for floats and complex numbers, another for bools and integers."""
    return lambda dtypes: op if KIND[dtypes[0]] in "fc" else exact


def _on_complex(op: Build, other: Build) -> Choice:
    return lambda dtypes: other if KIND[dtypes[0]] == "c" else op


def _extreme(op: str, logical: str, comparison: str, *, quiet: bool) -> Choice:
    """The greater or lesser of two, for every dtype."""
    builds: dict[str, Build] = {"b": logical, "c": composed.complex_extreme(comparison, quiet)}
    return lambda dtypes: builds.get(KIND[dtypes[0]], op)


# Ufuncs that are one op whatever the dtype.
_ONE_OP: dict[np.ufunc, Build] = {
    np.subtract: "sub",
    np.true_divide: "div",
    np.floor_divide: "floordiv",
    np.remainder: "mod",
    np.fmod: "fmod",
    np.negative: "neg",
    np.sign: "sign",
    np.sqrt: "sqrt",
    np.cbrt: "cbrt",
    np.exp: "exp",
    np.exp2: "exp2",
    np.expm1: "expm1",
    np.log: "log",
    np.log2: "log2",
    np.log10: "log10",
    np.log1p: "log1p",
    np.sin: "sin",
    np.cos: "cos",
    np.tan: "tan",
    np.arcsin: "asin",
    np.arccos: "acos",
    np.arctan: "atan",
    np.sinh: "sinh",
    np.cosh: "cosh",
    np.tanh: "tanh",
    np.arcsinh: "asinh",
    np.arccosh: "acosh",
    np.arctanh: "atanh",
    np.arctan2: "atan2",
    np.hypot: "hypot",
    np.logaddexp: "logaddexp",
    np.copysign: "copysign",
    np.nextafter: "nextafter",
    np.bitwise_and: "and",
    np.bitwise_or: "or",
    np.bitwise_xor: "xor",
    np.logical_and: composed.logical("and"),
    np.logical_or: composed.logical("or"),
    np.logical_xor: composed.logical("xor"),
    np.invert: "not",
    np.logical_not: composed.logical("not"),
    np.left_shift: "shl",
    np.right_shift: "shr",
    np.signbit: "signbit",
    np.bitwise_count: composed.bit_count,
    np.rint: composed.rint,
    np.positive: composed.same,
    np.square: composed.square,
    np.deg2rad: composed.deg2rad,
    np.radians: composed.deg2rad,
    np.rad2deg: composed.rad2deg,
    np.degrees: composed.rad2deg,
    np.heaviside: composed.heaviside,
    np.float_power: "pow",
    np.fabs: "abs",
    np.divmod: composed.divmod_,
    np.logaddexp2: composed.logaddexp2,
    np.modf: composed.modf,
    np.spacing: composed.spacing,
    np.ldexp: composed.ldexp,
    np.reciprocal: composed.reciprocal,
}
# Ufuncs whose op depends on the dtype.
_CHOICES: dict[np.ufunc, Choice] = {
    np.add: _on_bool("add", "or"),
    np.multiply: _on_bool("mul", "and"),
    np.maximum: _extreme("max", "or", "ge", quiet=False),
    np.minimum: _extreme("min", "and", "le", quiet=False),
    np.fmax: _extreme("fmax", "or", "ge", quiet=True),
    np.fmin: _extreme("fmin", "and", "le", quiet=True),
    np.absolute: lambda dtypes: "abs" if KIND[dtypes[0]] in "ifc" else composed.same,
    np.conjugate: _on_complex(composed.same, "conj"),
    np.floor: _on_floats("floor", composed.same),
    np.ceil: _on_floats("ceil", composed.same),
    np.trunc: _on_floats("trunc", composed.same),
    np.isnan: _on_floats("isnan", composed.never),
    np.isinf: _on_floats("isinf", composed.never),
    np.isfinite: _on_floats("isfinite", composed.always),
}

for _ufunc, _build in _ONE_OP.items():
    define(_ufunc, _build)
for _ufunc, _choice in _CHOICES.items():
    define(_ufunc, _choice, choose=True)


# Exponents that are part of the op: whole, or a half more.
_KNOWN = frozenset(n / 2 for n in range(-32, 33)) - {0, 1}


def _power(within: Callable[..., Any]) -> Callable[..., Any]:
    """Powers with the short ways that NumPy takes for some numbers as exponents."""

    def apply(x: Any, y: Any) -> Any:
        if (type(y) is int or type(y) is float) and type(x) is Array and not x._weak:
            kind = KIND[x.dtype]
            if y == 0 and kind in "fc":
                return composed.filled(1, x.dtype, x.shape)
            if y == 1 and kind in "fc":
                return composed.same(x) if kind == "f" else composed.unsigned_zero(x)
            if y == 2 and (kind in "fc" or (kind in "iu" and type(y) is int)):
                return UFUNCS[np.square](x)
            if y == 0.5 and kind in "fc":
                return UFUNCS[np.sqrt](x)
            if y == -1 and kind in "fc":
                return UFUNCS[np.reciprocal](x)
            if type(y) is int and y < 0 and kind in "biu":
                fail(
                    ValueProblem,
                    f"an integer array of type {x.type} to the negative integer power {y}",
                    f"write x ** {float(y)}, or 1.0 / x ** {-y}",
                )
            if kind == "f" and x.dtype.itemsize >= 4 and y in _KNOWN:
                return emit("constant_pow", x, exponent=f"{y:g}")
        return within(x, y)

    return apply


define(np.power, _on_floats("pow", composed.integer_power), choose=True, around=_power)
_raised = Array.__pow__


def _to_power(x: Array, y: Any) -> Any:
    """x ** y: the power 2 is a square, which of bools is int8, other than np.power has it."""
    if type(y) is int and y == 2 and x.dtype == BOOL:
        return UFUNCS[np.square](x)
    return _raised(x, y)


setattr(Array, "__pow__", _to_power)  # noqa: B010
