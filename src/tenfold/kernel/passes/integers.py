"""Instructions on integers and booleans: every one is defined for all operands."""

from __future__ import annotations

from tenfold.errors import Unsupported
from tenfold.kernel.ir.legal import kind
from tenfold.kernel.passes.divisors import floor_by_reciprocal, quotient_by_multiplier
from tenfold.kernel.passes.rewrite import Rewriter

_BOOL = {"add": "or", "mul": "and", "sub": "xor", "max": "or", "min": "and", "fmax": "or"} | {
    "fmin": "and",
    "ne": "ne",
    "eq": "eq",
    "and": "and",
    "or": "or",
    "xor": "xor",
}
_LEGAL_OPS = "add sub mul and or xor eq ne lt le gt ge max min"
_LEGAL = frozenset(_LEGAL_OPS.split())
_SAME = frozenset(("floor", "ceil", "trunc", "round", "real", "conj"))


def integer(b: Rewriter, op: str, dtype: str, args: list[int]) -> int:
    """One instruction on operands of an integer dtype or bool."""
    x, source = args[0], b.dtype(args[0])
    if op in _SAME:
        return x
    if op in ("isnan", "isinf", "isfinite"):
        return b.const("bool", op == "isfinite")
    if op == "imag":
        return b.like(x, 0)
    if op == "not":
        return b.do("xor", x, b.like(x, True if source == "bool" else -1))
    if source == "bool":
        return _boolean(b, op, args)
    if op in _LEGAL:
        return b.do(op, *args)
    signed = kind(source) == "i"
    if op in ("fmax", "fmin"):
        return b.do(op[1:], *args)
    if op == "neg":
        return b.do("sub", b.like(x, 0), x)
    if op == "abs":
        return _size(b, x)
    if op == "signbit":
        return b.do("lt", x, b.like(x, 0)) if signed else b.const("bool", False)
    if op == "sign":
        return _sign(b, x)
    if op in ("shl", "shr"):
        return _shift(b, op, x, args[1])
    if op in ("floordiv", "mod", "fmod"):
        return _divide(b, op, x, args[1])
    if op == "pow":
        return b.call("ipow", *args)
    if op == "popcount":
        return b.cast(b.do("popcount", _size(b, x)), dtype)
    raise Unsupported(f"{op} of {source} in a kernel; cast to a float first")


def _boolean(b: Rewriter, op: str, args: list[int]) -> int:
    x = args[0]
    if op in _BOOL:
        return b.do(_BOOL[op], *args)
    if op in ("lt", "le", "gt", "ge"):
        low, high = args if op[0] == "l" else args[::-1]
        return b.do("and" if op[1] == "t" else "or", b.do("xor", low, b.like(x, True)), high)
    if op in ("abs", "sign"):
        return x
    if op == "signbit":
        return b.like(x, False)
    raise Unsupported(f"{op} of bool in a kernel; cast to an integer first")


def _width(b: Rewriter, x: int) -> int:
    return int(b.dtype(x)[1:])


def _size(b: Rewriter, x: int) -> int:
    """The absolute value; the least integer's is itself."""
    if kind(b.dtype(x)) == "u":
        return x
    sign = b.do("shr", x, b.like(x, _width(b, x) - 1))
    return b.do("sub", b.do("xor", x, sign), sign)


def _sign(b: Rewriter, x: int) -> int:
    zero, dtype = b.like(x, 0), b.dtype(x)
    if kind(dtype) == "u":
        return b.cast(b.do("ne", x, zero), dtype)
    negative = b.do("shr", x, b.like(x, _width(b, x) - 1))
    return b.do("or", b.cast(b.do("gt", x, zero), dtype), negative)


def _shift(b: Rewriter, op: str, x: int, by: int) -> int:
    """Shifts by any amount: too wide or negative gives 0, or the sign."""
    width, known, dtype = _width(b, x), b.known(by), b.dtype(x)
    if known is not None and 0 <= known < width:
        return b.do(op, x, by)
    unsigned = b.bitcast(by, f"u{width}")
    if op == "shr" and kind(dtype) == "i":
        least = b.do("min", unsigned, b.like(unsigned, width - 1))
        return b.do(op, x, b.bitcast(least, dtype))
    fits = b.do("lt", unsigned, b.like(unsigned, width))
    zero = b.like(x, 0)
    return b.select(fits, b.do(op, x, b.select(fits, by, zero)), zero)


def _divide(b: Rewriter, op: str, x: int, y: int) -> int:
    """Division rounding down, its remainder, and the remainder of rounding towards zero. By zero
    all give 0, and the least integer by -1 gives itself and 0. What is asked of a divisor that
    many elements share is asked once, and no condition of it is spread over them."""
    known, zero, one, minus = b.known(y), b.like(x, 0), b.like(x, 1), b.like(x, -1)
    signed, shared, width = kind(b.dtype(x)) == "i", b.free[y] < b.free[x], _width(b, x)
    divisor, negated = y, zero
    safe_divisor = known is not None and known not in (0, -1)
    multiplied = shared and known is None
    if not safe_divisor:
        by_zero, by_minus = b.do("eq", y, zero), b.do("eq", y, minus)
        divisor = b.select(by_zero, one, y)
        if signed and width >= 32 and not (multiplied and width == 64):
            safe = b.select(by_minus, one, divisor)  # the least integer by 1 gives the same bits
            least = b.do("eq", x, b.like(x, -(1 << (width - 1))))
            divisor = safe if shared else b.select(least, safe, divisor)
            negated = b.select(by_minus, minus, zero) if shared else zero
    down = multiplied and width < 64 and op != "fmod"
    if down:
        quotient = floor_by_reciprocal(b, x, divisor)
    elif multiplied and width == 64:
        quotient = quotient_by_multiplier(b, x, divisor)
    else:
        quotient = _quotient(b, x, divisor)
    if negated != zero:  # by -1: the sign turned
        quotient = b.do("sub", b.do("xor", quotient, negated), negated)
    rest = b.do("sub", x, b.do("mul", quotient, y))
    if op != "fmod" and signed and not down:
        # Rounded towards zero so far; one less where the signs differ and it is inexact.
        differ = b.do("lt", b.do("xor", rest, y), zero)
        inexact = b.do("and", b.do("ne", rest, zero), differ)
        quotient = b.do("sub", quotient, b.cast(inexact, b.dtype(x)))
        rest = b.do("add", rest, b.select(inexact, y, zero))
    found = quotient if op == "floordiv" else rest
    if safe_divisor:
        return found
    if shared:  # all ones or none, once for many elements
        return b.do("and", found, b.select(by_zero, zero, minus))
    return b.select(by_zero, zero, found)


def _quotient(b: Rewriter, x: int, y: int) -> int:
    """Short integers divide as floats, which is exact and many times faster; the least by -1 has
    room in between. Of a constant a compiler makes a product."""
    dtype = b.dtype(x)
    if _width(b, x) >= 32 or b.known(y) is not None:
        return b.do("div", x, y)
    ratio = b.do("div", b.cast(x, "f32"), b.cast(y, "f32"))
    return b.cast(b.cast(ratio, "i32"), dtype)
