"""Rows of elementwise ops: inputs of one dtype, broadcast; one instruction an element.

`bound` is in units in the last place of the result; 0 says that the result is exact or
correctly rounded. A complex result is judged by its modulus: the unit is that of the modulus,
and four more units are allowed, for a part of it may be the difference of larger numbers
(for pow and exp2, which multiply a logarithm, four for each unit of the exponent).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from tenfold.errors import ValueProblem
from tenfold.graph.op import Element, ErrorRule, ErrorSpread, Lowering, Op, Pointwise
from tenfold.ops import elements, rules, samples
from tenfold.ops.agreement.named import errors, spreads
from tenfold.ops.batching import guards
from tenfold.ops.batching import rules as batching
from tenfold.ops.reference import Array, direct, doubled, widened
from tenfold.types import KIND


def row(
    name: str,
    arity: int,
    function: Callable[..., Any],
    kinds: str,
    *draws: samples.Draw,
    result: rules.Result = rules.same,
    edges: str = "none",
    bound: float = 0,
    bound_from: float = 0,
    reference: Callable[[Callable[..., Any]], Callable[..., Any]] = widened,
    lowering: Lowering | None = None,
    heeds: Callable[..., bool] | None = None,
    error: Callable[[], ErrorRule] | None = None,
    spread: Callable[[], ErrorSpread] | None = None,
) -> Op:
    """A row of an elementwise op, from a NumPy function on arrays that already broadcast."""
    return Op(
        name=name,
        arity=arity,
        infer=rules.elementwise(name, kinds, result),
        reference=reference(function),
        lowering=lowering or Pointwise(name),
        edges=edges,
        bound=bound,
        bound_from=bound_from,
        batch=batching.elementwise(name),
        samples=samples.pointwise(kinds, arity, *draws),
        heeds=heeds or guards.never,
        guard=guards.zeroed(arity - 1) if heeds else None,
        error=error,
        spread=spread,
        elementwise=True,
    )


def raised(a: Array, b: Array) -> Any:
    """a to the power b, as pow has it."""
    if KIND[b.dtype] == "i" and np.any(b < 0):
        raise ValueProblem(
            f"pow: an integer to a negative power ({b[b < 0].flat[0]}) is no integer",
            fix="cast the base to a float first",
        )
    result = np.power(a, b)
    if KIND[b.dtype] != "f":
        return result
    # NumPy takes the root for an exponent of no axes that is 0.5, and the root of -inf is NaN: what
    # a power is must not hang on how many axes its exponent has.
    rooted = (a == -np.inf) & (b == 0.5)
    return np.where(rooted, np.inf, result).astype(result.dtype) if np.any(rooted) else result


def _finite(x: Array) -> Any:
    odd = x[~np.isfinite(x)]
    if odd.size:
        raise ValueProblem(
            f"finite: {odd.flat[0]} is no finite number",
            fix="leave NaN and infinities out, or give a range",
        )
    return x.copy()


def _rsqrt(x: Array) -> Any:
    return 1 / np.sqrt(x)


def _sigmoid(x: Array) -> Any:
    # exp of a negative number only, so that nothing overflows.
    small = np.exp(-np.abs(x))
    return np.where(np.signbit(x), small, np.ones_like(x)) / (1 + small)


def _complex(re: Array, im: Array) -> Any:
    made = np.empty(np.broadcast_shapes(re.shape, im.shape), rules.paired(re.dtype))
    made.real, made.imag = re, im
    return made


_erf = np.vectorize(math.erf, otypes=[np.float64])
_erfc = np.vectorize(math.erfc, otypes=[np.float64])

POW_BOUND = 4
_WRAPS = "integers wrap"
_BY_ZERO = "integers: by zero gives 0, INT_MIN by -1 gives {}; floats as NumPy"

ARITHMETIC = (
    row(
        "add",
        2,
        np.add,
        "biufc",
        edges=f"{_WRAPS}; bool: or",
        error=errors.BY_PARTS,
        spread=spreads.ADDED,
    ),
    row(
        "sub",
        2,
        np.subtract,
        "iufc",
        edges=_WRAPS,
        error=errors.BY_PARTS,
        spread=spreads.SUBTRACTED,
    ),
    row(
        "mul",
        2,
        np.multiply,
        "biufc",
        edges=f"{_WRAPS}; bool: and",
        error=errors.PRODUCT,
        spread=spreads.MULTIPLIED,
    ),
    row("div", 2, np.true_divide, "fc", edges="by zero gives ±inf or NaN"),
    row(
        "floordiv",
        2,
        np.floor_divide,
        "iuf",
        edges=_BY_ZERO.format("INT_MIN"),
        spread=spreads.QUOTIENT,
    ),
    row(
        "mod",
        2,
        np.remainder,
        "iuf",
        edges=_BY_ZERO.format(0) + "; the divisor's sign",
        bound=1,
        error=errors.REMAINDER,
        spread=spreads.REMAINDER,
    ),
    row(
        "fmod",
        2,
        np.fmod,
        "iuf",
        edges=_BY_ZERO.format(0) + "; the dividend's sign",
        error=errors.REMAINDER,
        spread=spreads.REMAINDER,
    ),
    row(
        "pow",
        2,
        raised,
        "iufc",
        samples.anything,
        samples.exponents,
        edges="integers wrap; an integer to a negative power raises ValueProblem; x**0 is 1, "
        "(-inf)**0.5 is inf",
        bound=POW_BOUND,
        lowering=Element(elements.power),
        heeds=guards.signed,
        spread=spreads.POWER,
    ),
    row(
        "max",
        2,
        np.maximum,
        "biuf",
        edges="NaN if either is; bool: or",
        error=errors.EXTREME,
        spread=spreads.ORDERED,
    ),
    row(
        "min",
        2,
        np.minimum,
        "biuf",
        edges="NaN if either is; bool: and",
        error=errors.EXTREME,
        spread=spreads.ORDERED,
    ),
    row(
        "fmax",
        2,
        np.fmax,
        "iuf",
        edges="NaN only if both are",
        error=errors.EXTREME,
        spread=spreads.ORDERED,
    ),
    row(
        "fmin",
        2,
        np.fmin,
        "iuf",
        edges="NaN only if both are",
        error=errors.EXTREME,
        spread=spreads.ORDERED,
    ),
    row(
        "neg",
        1,
        np.negative,
        "iufc",
        edges="INT_MIN gives itself; unsigned wraps",
        error=errors.BY_PARTS,
        spread=spreads.NEGATED,
    ),
    row(
        "abs",
        1,
        np.absolute,
        "iufc",
        result=rules.real,
        edges="INT_MIN gives itself; complex: its modulus, inf if a part is",
        bound=2,
        error=errors.MODULUS,
        spread=spreads.MAGNITUDE,
    ),
    row(
        "sign",
        1,
        np.sign,
        "iufc",
        edges="NaN gives NaN; ±0 gives 0; complex: x/|x|",
        bound=2,
        error=errors.MODULUS,
        spread=spreads.ORDERED,
    ),
    row("hypot", 2, np.hypot, "f", edges="inf if either is infinite, NaN or not", bound=2),
    row("copysign", 2, np.copysign, "f", edges="NaN and zero have signs too"),
    row(
        "nextafter",
        2,
        np.nextafter,
        "f",
        edges="in the dtype itself, sixteen-bit floats too; NaN if either is",
        reference=direct,
    ),
)

ROUNDING = (
    row(
        "finite",
        1,
        _finite,
        "f",
        samples.ordinary,
        edges="NaN and infinities raise ValueProblem",
        reference=direct,
        lowering=Element(elements.finite),
        heeds=guards.surely,
    ),
    row("floor", 1, np.floor, "iuf", edges="integers are left as they are", spread=spreads.ORDERED),
    row("ceil", 1, np.ceil, "iuf", edges="integers are left as they are", spread=spreads.ORDERED),
    row("trunc", 1, np.trunc, "iuf", edges="integers are left as they are", spread=spreads.ORDERED),
    row(
        "round",
        1,
        np.round,
        "iuf",
        edges="half to even; integers are left as they are",
        spread=spreads.ORDERED,
    ),
)

_OUTSIDE = "NaN outside its domain"

FUNCTIONS = (
    row("sqrt", 1, np.sqrt, "fc", edges=f"{_OUTSIDE}; -0 gives -0"),
    row("cbrt", 1, np.cbrt, "f", edges="-0 gives -0", bound=2),
    row("rsqrt", 1, _rsqrt, "f", edges=f"{_OUTSIDE}; ±0 gives ±inf", bound=2, reference=doubled),
    row("exp", 1, np.exp, "fc", edges="overflows to inf", bound=4, spread=spreads.TURNING),
    row("exp2", 1, np.exp2, "fc", edges="overflows to inf", bound=4, spread=spreads.TURNING),
    row(
        "expm1",
        1,
        np.expm1,
        "fc",
        edges="overflows to inf; -0 gives -0",
        bound=4,
        spread=spreads.TURNING,
    ),
    row("log", 1, np.log, "fc", edges=f"{_OUTSIDE}; 0 gives -inf", bound=4),
    row("log2", 1, np.log2, "fc", edges=f"{_OUTSIDE}; 0 gives -inf", bound=4),
    row("log10", 1, np.log10, "fc", edges=f"{_OUTSIDE}; 0 gives -inf", bound=4),
    row("log1p", 1, np.log1p, "fc", edges=f"{_OUTSIDE}; -1 gives -inf", bound=4),
    row("sin", 1, np.sin, "fc", edges="±inf gives NaN", bound=4, spread=spreads.WITHIN_TWO),
    row("cos", 1, np.cos, "fc", edges="±inf gives NaN", bound=4, spread=spreads.WITHIN_TWO),
    row("tan", 1, np.tan, "fc", edges="±inf gives NaN", bound=4, spread=spreads.WITH_POLES),
    row("asin", 1, np.arcsin, "fc", edges=_OUTSIDE, bound=4),
    row("acos", 1, np.arccos, "fc", edges=_OUTSIDE, bound=4),
    row("atan", 1, np.arctan, "fc", edges="±inf gives ±pi/2", bound=4),
    row("sinh", 1, np.sinh, "fc", edges="overflows to ±inf", bound=4, spread=spreads.TURNING),
    row("cosh", 1, np.cosh, "fc", edges="overflows to inf", bound=4, spread=spreads.TURNING),
    row("tanh", 1, np.tanh, "fc", edges="±inf gives ±1", bound=4, spread=spreads.TURNING),
    row("asinh", 1, np.arcsinh, "fc", edges="±inf gives itself", bound=4),
    row("acosh", 1, np.arccosh, "fc", edges=_OUTSIDE, bound=4),
    row("atanh", 1, np.arctanh, "fc", edges=f"{_OUTSIDE}; ±1 gives ±inf", bound=4),
    row("sigmoid", 1, _sigmoid, "f", edges="0 and 1 at the ends, never NaN but of NaN", bound=4),
    row("erf", 1, _erf, "f", edges="±inf gives ±1", bound=4, reference=doubled),
    row("erfc", 1, _erfc, "f", edges="inf gives 0, -inf gives 2", bound=4, reference=doubled),
    row("atan2", 2, np.arctan2, "f", edges="as C: of zeros and infinities by sign", bound=4),
    row(
        "logaddexp",
        2,
        np.logaddexp,
        "f",
        edges="of two -inf gives -inf",
        bound=4,
        bound_from=1,  # near 0 little is left of an operand between -1 and 0
    ),
)

COMPLEX = (
    row("real", 1, np.real, "c", result=rules.real, reference=direct),
    row("imag", 1, np.imag, "c", result=rules.real, reference=direct),
    row("conj", 1, np.conjugate, "c", reference=direct, error=errors.BY_PARTS),
    row("complex", 2, _complex, "w", result=rules.paired, reference=direct, error=errors.BY_PARTS),
)

ROWS = (*ARITHMETIC, *ROUNDING, *FUNCTIONS, *COMPLEX)
