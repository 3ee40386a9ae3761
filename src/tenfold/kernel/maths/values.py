"""Writing a maths function as a list of legal instructions, through values that know their dtype.

>>> body = Body(fma=True)
>>> x = body.param("f32")
>>> y = x * x + 1.0
>>> [i.op for i in body.instructions]
['param', 'mul', 'const', 'add']
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Mapping
from functools import wraps
from typing import Any, TypeVar

from tenfold.frozen import frozen
from tenfold.kernel.ir.kernel import Instruction

_FLOAT = {"u32": "f32", "u64": "f64"}
_BITS = {real: bits for bits, real in _FLOAT.items()}
_CODES = {"f32": "<f", "f64": "<d"}


class Body:
    """The instructions of one function, as they are appended. With `fma` products go unrounded
    into sums; without, no instruction needs it, and lists are other ones. `own` has what a
    backend does in its own way, by name."""

    def __init__(self, fma: bool, own: Mapping[str, Callable[..., Any]] | None = None) -> None:
        self.fma = fma
        self.own = own or {}
        self.instructions: list[Instruction] = []
        self.params: list[str] = []
        self._written: dict[tuple[object, ...], Value] = {}

    def write(self, op: str, dtype: str, *args: Value, attr: tuple[object, ...] = ()) -> Value:
        """Append an instruction, unless it stands there already, and give its result."""
        given = tuple([a.at for a in args])
        found = self._written.get((op, dtype, given, attr))
        if found is None:
            found = Value(self, dtype, len(self.instructions))
            self._written[op, dtype, given, attr] = found
            self.instructions.append(Instruction(op, dtype, given, attr))
        return found

    def param(self, dtype: str) -> Value:
        self.params.append(dtype)
        return self.write("param", dtype, attr=(len(self.params) - 1,))

    def constant(self, dtype: str, value: float | int) -> Value:
        """A constant; integers wrap."""
        if dtype in _CODES:
            raw = struct.pack(_CODES[dtype], value)
        elif dtype == "bool":
            raw = b"\1" if value else b"\0"
        else:
            bits = int(dtype[1:])
            raw = (int(value) % (1 << bits)).to_bytes(bits // 8, "little")
        return self.write("const", dtype, attr=(raw,))

    def call(self, name: str, *args: Value) -> Value:
        """Another function, of the dtype of its first argument."""
        return self.write("call", args[0].dtype, *args, attr=(name,))

    def rarely(self, name: str, condition: Value, value: Value, *args: Value) -> Value:
        """A function's result where a condition holds that seldom does, else a value."""
        return self.write("rarely", value.dtype, condition, value, *args, attr=(name,))

    def lookup(self, dtype: str, table: bytes, position: Value) -> Value:
        return self.write("lookup", dtype, position, attr=(table,))


class Value:
    """A value in a body. Arithmetic appends to the body; Python's numbers become constants."""

    __slots__ = ("at", "body", "dtype")

    def __init__(self, body: Body, dtype: str, at: int) -> None:
        self.body = body
        self.dtype = dtype
        self.at = at

    def like(self, other: Value | float) -> Value:
        """The other value, a Python number as a constant of this one's dtype."""
        if isinstance(other, Value):
            return other
        return self.body.constant(self.dtype, other)

    def _same(self, op: str, *others: Value | float) -> Value:
        return self.body.write(op, self.dtype, self, *map(self.like, others))

    def __add__(self, other: Value | float) -> Value:
        return self._same("add", other)

    def __radd__(self, other: float) -> Value:
        return self.like(other)._same("add", self)

    def __sub__(self, other: Value | float) -> Value:
        return self._same("sub", other)

    def __rsub__(self, other: float) -> Value:
        return self.like(other)._same("sub", self)

    def __mul__(self, other: Value | float) -> Value:
        return self._same("mul", other)

    def __truediv__(self, other: Value | float) -> Value:
        return self._same("div", other)

    def __rtruediv__(self, other: float) -> Value:
        return self.like(other)._same("div", self)

    def __and__(self, other: Value | int) -> Value:
        return self._same("and", other)

    def __or__(self, other: Value | int) -> Value:
        return self._same("or", other)

    def __xor__(self, other: Value | int) -> Value:
        return self._same("xor", other)

    def __lshift__(self, other: Value | int) -> Value:
        return self._same("shl", other)

    def __rshift__(self, other: Value | int) -> Value:
        """Of bits, which are unsigned, a shift that brings in zeros."""
        return self._same("shr", other)

    def __invert__(self) -> Value:
        return self ^ (1 if self.dtype == "bool" else -1)

    def __neg__(self) -> Value:
        return self._same("neg")

    def __abs__(self) -> Value:
        return self._same("abs")

    def sqrt(self) -> Value:
        return self._same("sqrt")

    def trunc(self) -> Value:
        return self._same("trunc")

    def round(self) -> Value:
        return self._same("round")

    def fma(self, factor: Value | float, term: Value | float) -> Value:
        """self · factor + term: one rounding where there is an fma, two elsewhere."""
        if self.body.fma:
            return self._same("fma", factor, term)
        return self * factor + term

    def copysign(self, sign: Value) -> Value:
        """This float with the other's sign."""
        bit = form(self).sign
        return ((self.bits() & (bit - 1)) | (sign.bits() & bit)).floats()

    def flip(self, sign: Value) -> Value:
        """This float with its sign turned where the other's (the top one of bits) is set."""
        return (self.bits() ^ sign).floats()

    def _compare(self, op: str, other: Value | float) -> Value:
        return self.body.write(op, "bool", self, self.like(other))

    def lt(self, other: Value | float) -> Value:
        return self._compare("lt", other)

    def gt(self, other: Value | float) -> Value:
        return self._compare("gt", other)

    def ge(self, other: Value | float) -> Value:
        return self._compare("ge", other)

    def eq(self, other: Value | float) -> Value:
        return self._compare("eq", other)

    def ne(self, other: Value | float) -> Value:
        return self._compare("ne", other)

    def is_nan(self) -> Value:
        return self.ne(self)

    def where(self, yes: Value | float, no: Value | float) -> Value:
        """One of two values by this condition; at least one of them must be a Value."""
        model = yes if isinstance(yes, Value) else no
        assert isinstance(model, Value)
        return self.body.write("select", model.dtype, self, model.like(yes), model.like(no))

    def at_most(self, bound: float) -> Value:
        """The lesser of this and a constant; NaN stays."""
        return self.gt(bound).where(bound, self)

    def at_least(self, bound: float) -> Value:
        return self.lt(bound).where(bound, self)

    def cast(self, dtype: str) -> Value:
        return self.body.write("cast", dtype, self)

    def _as(self, dtype: str) -> Value:
        return self.body.write("bitcast", dtype, self)

    def bits(self) -> Value:
        """The bits of this float, as an unsigned integer."""
        return self._as(_BITS[self.dtype])

    def floats(self) -> Value:
        """The float that has these bits."""
        return self._as(_FLOAT[self.dtype])

    def signed(self) -> Value:
        """These bits as a signed integer."""
        return self._as("i" + self.dtype[1:])

    def unsigned(self) -> Value:
        return self._as("u" + self.dtype[1:])

    def wide(self) -> Value:
        """This float32 as float64."""
        return self.cast("f64")

    def narrow(self) -> Value:
        """This float64 rounded to float32."""
        return self.cast("f32")


@frozen
class Format:
    """The numbers that describe a float format."""

    dtype: str
    mantissa: int  # stored bits
    bias: int
    magic: float  # 1.5 · 2**mantissa: adding it rounds to an integer, found in the low bits
    magic_bits: int
    sign: int  # the sign's bit


FORMATS = {
    "f32": Format("f32", 23, 127, 1.5 * 2.0**23, 0x4B400000, 1 << 31),
    "f64": Format("f64", 52, 1023, 1.5 * 2.0**52, 0x4338000000000000, 1 << 63),
}


def form(x: Value) -> Format:
    return FORMATS[x.dtype]


def poly(x: Value, coefficients: tuple[float, ...]) -> Value:
    """The polynomial with these coefficients, lowest power first.

    Short ones by Horner's rule. Long ones as two polynomials in x², of the even and the odd
    powers, which halves the chain of instructions that wait for each other.
    """
    if len(coefficients) < 8:
        return horner(x, coefficients)
    square = x * x
    even, odd = horner(square, coefficients[0::2]), horner(square, coefficients[1::2])
    return odd.fma(x, even)


def horner(x: Value, coefficients: tuple[float, ...]) -> Value:
    """The polynomial by Horner's rule: where large terms would cancel, more exact than `poly`."""
    total = x.like(coefficients[-1])
    for c in reversed(coefficients[:-1]):
        total = total.fma(x, c)
    return total


Build = TypeVar("Build", bound=Callable[..., Any])


def replaceable(build: Build) -> Build:
    """A function of a value, and of more, that a backend may do in its own way."""

    @wraps(build)
    def chosen(x: Value, *more: Any) -> Any:
        return x.body.own.get(build.__name__, build)(x, *more)

    return chosen  # type: ignore[return-value]


@frozen
class Whole:
    """An integer n, as a float and as bits; what is not used costs nothing."""

    real: Value
    lifted: Value  # bits whose low ones are those of n + 2 · bias

    @property
    def n(self) -> Value:
        """Its bits."""
        f = form(self.real)
        return self.lifted - (f.magic_bits + 2 * f.bias)


def rounded(x: Value, scale: float) -> Whole:
    """The integer nearest to x · scale.

    Right for products up to a quarter of the format's integers. NaN gives NaN and any bits, where
    a conversion to an integer would be undefined.
    """
    magic = form(x).magic + 2 * form(x).bias
    moved = x.fma(scale, magic) if scale != 1 else x + magic
    return Whole(moved - magic, moved.bits())


def power_of_two(n: Value, dtype: str) -> Value:
    """2**n for integers n within the exponents of normal numbers."""
    f = FORMATS[dtype]
    return ((n + f.bias) << f.mantissa).floats()


@replaceable
def scaled(x: Value, power: Whole) -> Value:
    """x · 2**power with one rounding, for x near 1 and any power whose half is the exponent of
    a normal number. By halves, each with the bias of an exponent, the odd one rounded down and
    up: a mask cuts them out of one shift, for shifts and products wait for the same units."""
    f = form(x)
    twice, mask = power.lifted << (f.mantissa - 1), (f.sign - 1) & -(1 << f.mantissa)
    for half in (twice, twice + (1 << (f.mantissa - 1))):
        x = x * (half & mask).floats()
    return x


def as_float(n: Value) -> Value:
    """Signed bits of up to 2**21 in size as a float of their width, in two steps at most."""
    if n.dtype == "u32":
        return n.signed().cast("f32")
    f = FORMATS["f64"]
    return (n + f.magic_bits).floats() - f.magic
