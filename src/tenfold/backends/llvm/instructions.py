"""Legal elementwise instructions as LLVM IR: each as `kernel/ir/legal` specifies it, no more.

Most are one line, found in a table by the kind of their operands. The others are rounding where
the processor has none, division of short integers, and conversions.
"""

from __future__ import annotations

from collections.abc import Sequence

from tenfold.backends.llvm import nvptx
from tenfold.backends.llvm.casts import from_bfloat, from_half, to_bfloat, to_half
from tenfold.backends.llvm.ternary import note_logic, selected
from tenfold.backends.llvm.writer import (
    BITS,
    COMPUTE,
    Writer,
    is_constant,
    kind,
)
from tenfold.errors import Unsupported

_BITWISE = {"and": "and", "or": "or", "xor": "xor"}
_EQUAL = {"eq": "icmp eq", "ne": "icmp ne"}
_INTEGER = _BITWISE | _EQUAL | {"add": "add", "sub": "sub", "mul": "mul", "shl": "shl"}

# By the kind of the first operand: what takes all operands, of one type.
_OPCODES = {
    "b": _BITWISE | _EQUAL,
    "i": _INTEGER
    | {n: f"icmp s{n}" for n in ("lt", "le", "gt", "ge")}
    | {"div": "sdiv", "rem": "srem", "shr": "ashr"},
    "u": _INTEGER
    | {n: f"icmp u{n}" for n in ("lt", "le", "gt", "ge")}
    | {"div": "udiv", "rem": "urem", "shr": "lshr"},
    "f": {n: f"f{n}" for n in ("add", "sub", "mul", "div", "neg")}
    | {n: f"fcmp o{n}" for n in ("eq", "lt", "le", "gt", "ge")}
    | {"ne": "fcmp une"},
}
_INTRINSICS = {
    "b": {},
    "i": {"min": "smin", "max": "smax", "popcount": "ctpop"},
    "u": {"min": "umin", "max": "umax", "popcount": "ctpop"},
    "f": {"abs": "fabs", "sqrt": "sqrt", "fma": "fma"},
}
_CONVERSIONS = {
    "from_half": from_half,
    "to_half": to_half,
    "from_bfloat": from_bfloat,
    "to_bfloat": to_bfloat,
}
_ROUND = {"floor": "floor", "ceil": "ceil", "trunc": "trunc", "round": "nearbyint"}


def instruction(
    w: Writer, op: str, dtype: str, sources: Sequence[str], args: Sequence[str], wide: bool
) -> str:
    """Print one instruction: `dtype` is the result's, `sources` are the operands'. All operands
    are vectors, or none is."""
    if op == "select" and wide:
        args = args[0], selected(w, dtype, args[1]), selected(w, dtype, args[2])
    result = _printed(w, op, dtype, sources, args, wide)
    note_logic(w, kind(sources[0]), op, args, result)
    return result


def _printed(
    w: Writer, op: str, dtype: str, sources: Sequence[str], args: Sequence[str], wide: bool
) -> str:
    source = sources[0]
    letter, element = kind(source), COMPUTE[source]
    ty = w.vector(element, wide)
    if w.target.triple == nvptx.TRIPLE:
        made = nvptx.assembled(w, op, element, args) if letter == "i" else None
        if made is not None:
            return made
        args = nvptx.mended(w, op, letter, element, args)
    if op in ("div", "rem") and letter != "f":
        return _divide(w, op, source, args[0], args[1], wide)
    opcode = _OPCODES[letter].get(op)
    if opcode is not None:
        return w.op(f"{opcode} {ty} {', '.join(args)}")
    intrinsic = _INTRINSICS[letter].get(op)
    if intrinsic is not None:
        # Without fma in hardware LLVM calls a library's; the passes use none for such a target.
        return w.intrinsic(intrinsic, ty, *args)
    if op in _ROUND:
        return whole(w, op, element, args[0], wide)
    if op == "select":
        return w.select(args[0], w.vector(COMPUTE[dtype], wide), args[1], args[2])
    if op == "cast":
        return _cast(w, source, dtype, args[0], wide)
    if op == "bitcast":
        new = COMPUTE[dtype]
        same = new == element  # integers differ by their sign alone
        return args[0] if same else w.op(f"bitcast {ty} {args[0]} to {w.vector(new, wide)}")
    if op in _CONVERSIONS:
        return _CONVERSIONS[op](w, args[0], wide)
    raise Unsupported(f"{op} of {', '.join(sources)} in LLVM IR: it is no legal instruction")


def _divide(w: Writer, op: str, dtype: str, a: str, b: str, wide: bool) -> str:
    """Integers up to 32 bits divide as floats, which is exact and many times faster than a scalar
    division for each lane; by a constant LLVM multiplies."""
    element, letter = COMPUTE[dtype], kind(dtype)
    ty, bits = w.vector(element, wide), BITS[element]
    if not wide or bits == 64 or is_constant(b):
        return w.op(f"{_OPCODES[letter][op]} {ty} {a}, {b}")
    sign = "s" if letter == "i" else "u"
    real, roomy = w.vector("double" if bits == 32 else "float", True), w.vector("i32", True)
    above, below = (w.op(f"{sign}itofp {ty} {v} to {real}") for v in (a, b))
    quotient = w.op(f"fdiv {real} {above}, {below}")
    quotient = w.op(f"fpto{sign}i {real} {quotient} to {roomy}")
    if bits < 32:
        quotient = w.op(f"trunc {roomy} {quotient} to {ty}")
    if op == "div":
        return quotient
    return w.op(f"sub {ty} {a}, {w.op(f'mul {ty} {quotient}, {b}')}")


def whole(w: Writer, op: str, element: str, x: str, wide: bool) -> str:
    """floor, ceil, trunc or round of a float."""
    ty = w.vector(element, wide)
    if w.modern:
        return w.intrinsic(_ROUND[op], ty, x)
    # Without rounding in hardware: adding and taking away 2**23 (or 2**52) rounds to nearest.
    magic = w.const(element, 2.0**23 if element == "float" else 2.0**52, wide)
    zero, size = w.const(element, 0.0, wide), w.intrinsic("fabs", ty, x)
    near = w.op(f"fsub {ty} {w.op(f'fadd {ty} {size}, {magic}')}, {magic}")
    if op == "trunc":
        over = w.op(f"fcmp ogt {ty} {near}, {size}")
        one = w.select(over, ty, w.const(element, 1.0, wide), zero)
        near = w.op(f"fsub {ty} {near}, {one}")
    near = w.intrinsic("copysign", ty, near, x)
    if op in ("floor", "ceil"):
        wrong = w.op(f"fcmp {'ogt' if op == 'floor' else 'olt'} {ty} {near}, {x}")
        step = w.const(element, -1.0 if op == "floor" else 1.0, wide)
        near = w.op(f"fadd {ty} {near}, {w.select(wrong, ty, step, zero)}")
        near = w.intrinsic("copysign", ty, near, x)
    small = w.op(f"fcmp olt {ty} {size}, {magic}")  # false for NaN too, which stays
    return w.select(small, ty, near, x)


def _cast(w: Writer, source: str, dtype: str, x: str, wide: bool) -> str:
    old, new = COMPUTE[source], COMPUTE[dtype]
    if old == new:
        return x
    longer = BITS[new] > BITS[old]
    match kind(source), kind(dtype):
        case "f", "f":
            op = "fpext" if longer else "fptrunc"
        case "f", to:
            op = "fptosi" if to == "i" else "fptoui"
        case of, "f":
            op = "sitofp" if of == "i" else "uitofp"
        case of, _:
            op = "trunc" if not longer else "sext" if of == "i" else "zext"
    return w.op(f"{op} {w.vector(old, wide)} {x} to {w.vector(new, wide)}")
