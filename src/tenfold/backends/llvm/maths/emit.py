"""Writing one maths function as LLVM IR text, through values that know their type."""

from __future__ import annotations

import struct

from tenfold.frozen import frozen

_INT = {"float": "i32", "double": "i64"}
_FLOAT = {"i32": "float", "i64": "double"}
_SHORT = {"float": "f32", "double": "f64"}


@frozen
class Target:
    """What of a processor changes the text of the maths: fused multiply-add, and AVX-512."""

    fma: bool
    avx512: bool = False

    @staticmethod
    def of(features: frozenset[str] | set[str], aarch64: bool = False) -> Target:
        """The target with these LLVM feature names.

        >>> Target.of({"avx2", "fma"})
        Target(fma=True, avx512=False)
        """
        wide = {"avx512f", "avx512vl", "avx512dq"} <= features
        return Target(fma=aarch64 or wide or "fma" in features, avx512=wide)


BASELINE = Target(fma=False)
AVX2 = Target(fma=True)
AVX512 = Target(fma=True, avx512=True)
AARCH64 = Target(fma=True)


class Body:
    """The body of one function: its lines, and what they need declared in the module."""

    def __init__(self, lanes: int, target: Target) -> None:
        self.lanes = lanes
        self.target = target
        self.lines: list[str] = []
        self.allocas: list[str] = []  # they come first, where inlining moves them out of loops
        self.needs: set[str] = set()
        self._count = 0

    def type(self, kind: str) -> str:
        """The LLVM type of a value of this element type: a vector, or the element alone."""
        return kind if self.lanes == 1 else f"<{self.lanes} x {kind}>"

    def name(self) -> str:
        self._count += 1
        return f"%v{self._count}"

    def write(self, kind: str, text: str) -> Value:
        """Append an instruction and give its result."""
        name = self.name()
        self.lines.append(f"  {name} = {text}")
        return Value(self, kind, name)

    def constant(self, kind: str, value: float | int | bool) -> Value:
        """A constant in every lane.

        >>> Body(4, BASELINE).constant("float", 0.1).text
        'splat (float 0x3FB99999A0000000)'
        """
        if kind in _INT:
            exact = float(value)
            if kind == "float" and abs(exact) != float("inf"):
                exact = struct.unpack("<f", struct.pack("<f", exact))[0]
            text = f"0x{struct.unpack('<Q', struct.pack('<d', exact))[0]:016X}"
        else:
            text = str(int(value))
        return Value(self, kind, text if self.lanes == 1 else f"splat ({kind} {text})")

    def call(self, intrinsic: str, *args: Value) -> Value:
        """A call of an LLVM intrinsic overloaded on the type of its first argument."""
        first = args[0]
        size = _SHORT[first.kind]
        suffix = size if self.lanes == 1 else f"v{self.lanes}{size}"
        name, kind = f"@llvm.{intrinsic}.{suffix}", self.type(first.kind)
        self.needs.add(f"declare {kind} {name}({', '.join([kind] * len(args))})")
        passed = ", ".join(f"{kind} {a.text}" for a in args)
        return self.write(first.kind, f"call {kind} {name}({passed})")

    def has_avx512(self, kind: str) -> bool:
        """Whether AVX-512's own instructions take vectors of this element type."""
        bits = self.lanes * (32 if kind == "float" else 64)
        width = min(bits, 512)
        pieces, left = divmod(bits, width)
        whole = not left and not pieces & (pieces - 1) and width in (128, 256, 512)
        return self.target.avx512 and whole

    def avx512(self, name: str, *args: Value, immediate: int | None = None) -> Value | None:
        """One of AVX-512's own instructions on whole registers; None where it lacks."""
        first = args[0]
        if not self.has_avx512(first.kind):
            return None
        size = 32 if first.kind == "float" else 64
        width = min(self.lanes * size, 512)
        pieces = self.lanes * size // width
        count = width // size
        part, mask = f"<{count} x {first.kind}>", "i16" if count > 8 else "i8"
        called = f"@llvm.x86.avx512.mask.{name}.p{'s' if size == 32 else 'd'}.{width}"
        between = [] if immediate is None else [f"i32 {immediate}"]
        end = [f"{part} zeroinitializer", f"{mask} -1", *(["i32 4"] if width == 512 else [])]
        kinds = [part] * len(args) + [e.rsplit(" ", 1)[0] for e in between + end]
        self.needs.add(f"declare {part} {called}({', '.join(kinds)})")
        done = []
        for i in range(pieces):
            cut = [f"{part} {self._cut(a, i * count, count)}" for a in args]
            text = f"call {part} {called}({', '.join(cut + between + end)})"
            done.append(self.write(first.kind, text))
        return self._joined(done, count)

    def _cut(self, x: Value, start: int, count: int) -> str:
        """Some lanes of a vector."""
        if count == self.lanes:
            return x.text
        lanes = ", ".join(f"i32 {start + i}" for i in range(count))
        kind = self.type(x.kind)
        text = f"shufflevector {kind} {x.text}, {kind} poison, <{count} x i32> <{lanes}>"
        return self.write(x.kind, text).text

    def _joined(self, pieces: list[Value], count: int) -> Value:
        """Vectors one after another as one; their number must be a power of two."""
        while len(pieces) > 1:
            lanes = ", ".join(f"i32 {i}" for i in range(2 * count))
            order = f"<{2 * count} x i32> <{lanes}>"
            kind = f"<{count} x {pieces[0].kind}>"
            pieces = [
                self.write(a.kind, f"shufflevector {kind} {a.text}, {kind} {b.text}, {order}")
                for a, b in zip(pieces[0::2], pieces[1::2], strict=True)
            ]
            count *= 2
        return pieces[0]

    def any(self, condition: Value) -> str:
        """The i1 that says whether a condition holds in some lane."""
        if self.lanes == 1:
            return condition.text
        name = f"@llvm.vector.reduce.or.v{self.lanes}i1"
        self.needs.add(f"declare i1 {name}({condition.type})")
        return self.write("i1", f"call i1 {name}({condition.type} {condition.text})").text


class Value:
    """A value in a body: an element type and the text that names it. Arithmetic appends to it."""

    __slots__ = ("body", "kind", "text")

    def __init__(self, body: Body, kind: str, text: str) -> None:
        self.body = body
        self.kind = kind
        self.text = text

    @property
    def type(self) -> str:
        return self.body.type(self.kind)

    @property
    def dtype(self) -> str:
        return _SHORT[self.kind]

    @property
    def fma_exists(self) -> bool:
        return self.body.target.fma

    def like(self, other: Value | float) -> Value:
        """The other value, a Python number as a constant of this one's type."""
        if isinstance(other, Value):
            return other
        return self.body.constant(self.kind, other)

    def _binary(
        self, on_floats: str, on_ints: str, left: Value | float, right: Value | float
    ) -> Value:
        op = on_floats if self.kind in _INT else on_ints
        a, b = self.like(left), self.like(right)
        return self.body.write(self.kind, f"{op} {self.type} {a.text}, {b.text}")

    def __add__(self, other: Value | float) -> Value:
        return self._binary("fadd", "add", self, other)

    def __radd__(self, other: float) -> Value:
        return self._binary("fadd", "add", other, self)

    def __sub__(self, other: Value | float) -> Value:
        return self._binary("fsub", "sub", self, other)

    def __rsub__(self, other: float) -> Value:
        return self._binary("fsub", "sub", other, self)

    def __mul__(self, other: Value | float) -> Value:
        return self._binary("fmul", "mul", self, other)

    def __rmul__(self, other: float) -> Value:
        return self._binary("fmul", "mul", other, self)

    def __truediv__(self, other: Value | float) -> Value:
        return self._binary("fdiv", "sdiv", self, other)

    def __rtruediv__(self, other: float) -> Value:
        return self._binary("fdiv", "sdiv", other, self)

    def __and__(self, other: Value | int) -> Value:
        return self._binary("and", "and", self, other)

    def __or__(self, other: Value | int) -> Value:
        return self._binary("or", "or", self, other)

    def __xor__(self, other: Value | int) -> Value:
        return self._binary("xor", "xor", self, other)

    def __lshift__(self, other: int) -> Value:
        return self._binary("shl", "shl", self, other)

    def __rshift__(self, other: int) -> Value:
        """A shift that brings in zeros."""
        return self._binary("lshr", "lshr", self, other)

    def halved(self) -> Value:
        """Half of an int, rounded down."""
        return self._binary("ashr", "ashr", self, 1)

    def __invert__(self) -> Value:
        return self ^ (1 if self.kind == "i1" else -1)

    def __neg__(self) -> Value:
        return self.body.write(self.kind, f"fneg {self.type} {self.text}")

    def __abs__(self) -> Value:
        return self.body.call("fabs", self)

    def fma(self, factor: Value | float, term: Value | float) -> Value:
        """self · factor + term: one rounding where the target can, two elsewhere."""
        if self.body.target.fma:
            return self.body.call("fma", self, self.like(factor), self.like(term))
        return self * factor + term

    def sqrt(self) -> Value:
        return self.body.call("sqrt", self)

    def copysign(self, sign: Value) -> Value:
        return self.body.call("copysign", self, sign)

    def flip(self, sign: Value) -> Value:
        """This float with its sign turned where the other's (an int's top bit) is set."""
        return (self.bits() ^ sign).floats()

    def _compare(self, how: str, other: Value | float) -> Value:
        op = "fcmp" if self.kind in _INT else "icmp"
        return self.body.write("i1", f"{op} {how} {self.type} {self.text}, {self.like(other).text}")

    def lt(self, other: Value | float) -> Value:
        return self._compare("olt", other)

    def gt(self, other: Value | float) -> Value:
        return self._compare("ogt", other)

    def le(self, other: Value | float) -> Value:
        return self._compare("ole", other)

    def ge(self, other: Value | float) -> Value:
        return self._compare("oge", other)

    def eq(self, other: Value | float) -> Value:
        return self._compare("oeq" if self.kind in _INT else "eq", other)

    def ne(self, other: Value | float) -> Value:
        return self._compare("une" if self.kind in _INT else "ne", other)

    def not_ge(self, other: Value | float) -> Value:
        """Less, or either is NaN."""
        return self._compare("ult", other)

    def is_nan(self) -> Value:
        return self._compare("uno", self)

    def where(self, yes: Value | float, no: Value | float) -> Value:
        """One of two values by this condition; at least one of them must be a Value."""
        model = yes if isinstance(yes, Value) else no
        assert isinstance(model, Value)
        a, b = model.like(yes), model.like(no)
        text = f"select {self.type} {self.text}, {model.type} {a.text}, {model.type} {b.text}"
        return self.body.write(model.kind, text)

    def at_most(self, bound: float) -> Value:
        """The lesser of this and a constant; NaN stays."""
        return self.gt(bound).where(bound, self)

    def at_least(self, bound: float) -> Value:
        return self.lt(bound).where(bound, self)

    def _cast(self, op: str, kind: str) -> Value:
        text = f"{op} {self.type} {self.text} to {self.body.type(kind)}"
        return self.body.write(kind, text)

    def bits(self) -> Value:
        return self._cast("bitcast", _INT[self.kind])

    def floats(self) -> Value:
        return self._cast("bitcast", _FLOAT[self.kind])

    def wide(self) -> Value:
        """This float32 as float64."""
        return self._cast("fpext", "double")

    def narrow(self) -> Value:
        """This float64 rounded to float32."""
        return self._cast("fptrunc", "float")


@frozen
class Format:
    """The numbers that describe a float format."""

    kind: str
    mantissa: int  # stored bits
    bias: int
    magic: float  # 1.5 · 2**mantissa: adding it rounds to an integer, found in the low bits

    @property
    def magic_bits(self) -> int:
        code = ("<f", "<i") if self.kind == "float" else ("<d", "<q")
        return int(struct.unpack(code[1], struct.pack(code[0], self.magic))[0])

    @property
    def sign(self) -> int:
        """The sign bit as a signed int."""
        return -(1 << (31 if self.kind == "float" else 63))


FORMATS = {
    "float": Format("float", 23, 127, 1.5 * 2.0**23),
    "double": Format("double", 52, 1023, 1.5 * 2.0**52),
}


def form(x: Value) -> Format:
    return FORMATS[x.kind]


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


@frozen
class Whole:
    """An integer, as a float and as an int; the unused one costs nothing."""

    real: Value
    n: Value


def rounded(x: Value, scale: float) -> Whole:
    """The integer nearest to x · scale.

    Right for products up to a quarter of the format's integers. NaN gives NaN and any bits, where
    a conversion to int would be undefined.
    """
    magic = form(x).magic
    moved = x.fma(scale, magic) if scale != 1 else x + magic
    return Whole(moved - magic, moved.bits() - form(x).magic_bits)


def power_of_two(n: Value, kind: str) -> Value:
    """2**n for ints n within the exponents of normal numbers."""
    f = FORMATS[kind]
    return ((n + f.bias) << f.mantissa).floats()


def scaled(x: Value, power: Whole) -> Value:
    """x · 2**power with one rounding, for any power whose half is a normal number's exponent."""
    by_processor = x.body.avx512("scalef", x, power.real)
    if by_processor is not None:
        return by_processor
    n = power.n
    if x.kind == "double":
        # No 64-bit arithmetic shift before AVX-512: halve as a non-negative number.
        half = ((n + 4096) >> 1) - 2048
    else:
        half = n.halved()
    return x * power_of_two(half, x.kind) * power_of_two(n - half, x.kind)


def as_float(n: Value) -> Value:
    """An int of up to 2**21 in size as a float of its own width, on every target in two steps."""
    if n.kind == "i32":
        return n._cast("sitofp", "float")
    f = FORMATS["double"]
    return (n + f.magic_bits).floats() - f.magic
