"""What AVX-512 does in one instruction where the maths has several: the same bits, sooner."""

from __future__ import annotations

import struct

from tenfold.backends.llvm.writer import BITS, LANES, Writer, vector
from tenfold.kernel.maths import Own
from tenfold.kernel.maths.exponential import exp_part, reduce
from tenfold.kernel.maths.logarithm import ROOT_HALF, Parts
from tenfold.kernel.maths.values import Value, Whole

# The instructions, and an immediate operand of each. Each takes and gives floats of one dtype.
# Of range: the lesser in size, with the first one's sign, of a NaN and a number the number.
PRINTED: dict[str, int | None] = {"scalef": None, "getexp": None, "getmant": 0, "range": 0b0010}
_WIDTH = 512


def _native(op: str, *args: Value) -> Value:
    return args[0].body.write(op, args[0].dtype, *args)


def exp(x: Value) -> Value:
    """One instruction where two bounds took two: of an x that is no number or too large to be
    reduced, r may be anything, and is made small; n alone then says what comes."""
    r, whole = reduce(x)
    return scaled(exp_part(_native("range", r, x.like(0.5))), whole)


def scaled(x: Value, power: Whole) -> Value:
    return _native("scalef", x, power.real)


def parts(x: Value) -> Parts:
    """Straight from the processor, denormals too, with m between 1 and 2."""
    e, m = _native("getexp", x), _native("getmant", x)
    code = ("<I", "<f") if x.dtype == "f32" else ("<Q", "<d")
    upper = m.ge(2 * struct.unpack(code[1], struct.pack(code[0], ROOT_HALF[x.dtype]))[0])
    return Parts(upper.where(e + 1.0, e), upper.where(m * 0.5, m) - 1.0)


def beyond(x: Value, factor: float) -> Value:
    """The exponents of 0 and inf are infinite themselves."""
    return x.like(factor)


OWN: Own = (("exp", exp), ("scaled", scaled), ("parts", parts), ("beyond", beyond))


def printed(w: Writer, op: str, element: str, args: list[str]) -> str:
    """One of the processor's own instructions, on whole registers."""
    count = _WIDTH // BITS[element]
    part, mask = f"<{count} x {element}>", f"i{count}"
    called = f"llvm.x86.avx512.mask.{op}.p{'s' if element == 'float' else 'd'}.{_WIDTH}"
    between = [] if PRINTED[op] is None else [("i32", str(PRINTED[op]))]
    end = [(part, "zeroinitializer"), (mask, "-1"), ("i32", "4")]
    done = []
    for start in range(0, LANES, count):
        cut = [(part, _cut(w, element, a, start, count)) for a in args]
        done.append(w.call(part, called, *cut, *between, *end))
    if len(done) == 1:
        return done[0]
    order = ", ".join(f"i32 {n}" for n in range(LANES))
    return w.op(f"shufflevector {part} {done[0]}, {part} {done[1]}, <{LANES} x i32> <{order}>")


def _cut(w: Writer, element: str, x: str, start: int, count: int) -> str:
    """Some lanes of a vector."""
    if count == LANES:
        return x
    lanes = ", ".join(f"i32 {start + n}" for n in range(count))
    ty = vector(element)
    return w.op(f"shufflevector {ty} {x}, {ty} poison, <{count} x i32> <{lanes}>")
