"""Index arithmetic: positions as scalars at lane 0, and as vectors where lanes differ."""

from __future__ import annotations

from collections.abc import Iterable

from tenfold.backends.cpu.emit.state import EmitState, Position, Val
from tenfold.backends.llvm.writer import BITS, COMPUTE, LANES, is_constant, kind, vector
from tenfold.kernel.analyse.access import farthest, reach
from tenfold.kernel.ir.index import AXIS, DIV, MOD, VALUE, Atom, Index
from tenfold.kernel.ir.number import Number


def lane_step(s: EmitState, index: Index) -> int | None:
    """How far an index moves from lane to lane: 0 if not at all, None if not evenly."""
    if s.lane is None:
        return 0
    total = 0
    for atom, k in index.terms:
        if atom.kind == AXIS:
            total += k if atom.of == s.lane else 0
        elif atom.kind == VALUE:
            if s.env[atom.of].wide:
                return None
        elif s.lane in atom.of.axes() or atom.of.values():
            inner = lane_step(s, atom.of)
            if inner == 0:
                continue
            # A vector that begins at a multiple of its own reach never crosses a multiple of
            # the divisor: the quotient is the same in all lanes, the remainder counts up.
            if inner is None or inner < 0 or not s.aligned or atom.bound % (inner * LANES):
                return None
            reach = inner * LANES
            others = (c for a, c in atom.of.terms if not (a.kind == AXIS and a.of == s.lane))
            if atom.of.const % reach or any(c % reach for c in others):
                return None
            total += k * inner if atom.kind == MOD else 0
    return total


def scalar(s: EmitState, index: Index, copy: int = 0) -> tuple[str | None, int]:
    """An index at lane 0 of a copy, as an i64 and a constant to add to it."""
    key = ("scalar", index.terms, copy)
    if key in s.env:
        moving, constant = s.env[key]
        return moving, constant + index.const
    total, constant = None, 0
    w = s.w
    for atom, k in index.terms:
        if atom.kind == AXIS:
            position = s.base[atom.of]
            if atom.of == s.lane:
                constant += k * LANES * copy
            if isinstance(position, int):
                constant += k * position
                continue
            x = str(position)
        elif atom.kind == VALUE:
            x = _integer(s, atom.of, copy)
        else:
            lift = _lift(s, atom)
            x = whole(s, atom.of + lift * atom.bound, copy)
            if is_constant(x):
                number = int(x) // atom.bound if atom.kind == DIV else int(x) % atom.bound
                constant += k * (number - (lift if atom.kind == DIV else 0))
                continue
            x = _divided(s, x, atom, "i64", False)
            constant -= k * lift if atom.kind == DIV else 0
        if is_constant(x):
            constant += k * int(x)
            continue
        if k != 1:
            x = s.env.get(("product", x, str(k))) or w.op(f"mul nsw i64 {x}, {k}")
        total = w.op(f"add nsw i64 {total}, {x}") if total else x
    s.env[key] = (total, constant)
    return total, constant + index.const


def multiply_before(s: EmitState, position: Position, indices: Iterable[Index], axis: int) -> None:
    """Compute how far a position lies along an axis in these indices, for all that is written from
    here on: nobody takes it out of a loop where registers are few."""
    if isinstance(position, int):
        return
    for index in indices:
        step = index.stride(axis)
        key = "product", position, str(step)
        if isinstance(step, Number) and key not in s.env:
            s.env[key] = s.w.op(f"mul nsw i64 {position}, {step}")


def whole(s: EmitState, index: Index, copy: int = 0) -> str:
    """An index at lane 0 of a copy, as one i64."""
    moving, constant = scalar(s, index, copy)
    if moving is None:
        return str(constant)
    return s.w.op(f"add nsw i64 {moving}, {constant}") if present(constant) else moving


def present(constant: int) -> bool:
    """Whether there is anything to add: perhaps, of what is known only when it runs."""
    return isinstance(constant, Number) or constant != 0


def vectored(s: EmitState, index: Index, copy: int, element: str) -> str:
    """An index in every lane of a copy, as integers of this type."""
    w, ty = s.w, vector(element)
    even = Index(
        tuple((a, k) for a, k in index.terms if lane_step(s, Index(((a, k),))) is not None),
        index.const,
    )
    step = lane_step(s, even) or 0
    moving, constant = scalar(s, even, copy)
    if moving is None or isinstance(constant, Number):
        moving, constant = whole(s, even, copy), 0
    if not is_constant(moving) and element != "i64":
        moving = w.op(f"trunc i64 {moving} to {element}")
    # What is constant is added with the lanes' numbers: other positions share the rest.
    total = w.splat(element, moving)
    if present(step) or constant:
        total = w.op(f"add {ty} {total}, {w.iota(element, step, constant)}")
    for atom, k in index.terms:
        if lane_step(s, Index(((atom, k),))) is not None:
            continue
        if atom.kind == VALUE:
            dtype = s.kernel.instructions[atom.of].dtype
            x = s.get(atom.of, copy, True)
            x = _resize(s, x, COMPUTE[dtype], element, kind(dtype) in "bu", True)
        elif periodic(s, atom):
            x = _period(s, atom, copy, element)
        else:
            lift = _lift(s, atom)
            x = vectored(s, atom.of + lift * atom.bound, copy, element)
            x = _divided(s, x, atom, element, True)
            if lift and atom.kind == DIV:
                x = w.op(f"sub {ty} {x}, {w.const(element, lift, True)}")
        if k != 1:
            x = w.op(f"mul {ty} {x}, {w.const(element, k, True)}")
        total = w.op(f"add {ty} {total}, {x}")
    return total


def _lift(s: EmitState, atom: Atom) -> int:
    """How many times the divisor keeps the dividend from being negative."""
    low, _ = atom.of.range(s.bounds)
    return 0 if isinstance(low, int) and low >= 0 else max(0, -(low // atom.bound))


def _divided(s: EmitState, x: str, atom: Atom, element: str, wide: bool) -> str:
    """A quotient or remainder of what is not negative."""
    w, c, ty = s.w, atom.bound, vector(element, wide)
    if isinstance(c, int) or not _narrow(s):
        op = "udiv" if atom.kind == DIV else "urem"
        return w.op(f"{op} {ty} {x}, {w.const(element, c, wide)}")
    # By what is known only when it runs: multiplied by the reciprocal, rounded up, which is exact
    # for dividends below 2**31.
    shift = (c - 1).bit_length() + 31
    factor, long = w.const("i32", -(-(1 << shift) // c), wide), vector("i64", wide)
    factor = w.op(f"zext {vector('i32', wide)} {factor} to {long}")
    dividend = w.op(f"zext {ty} {x} to {long}") if element == "i32" else x
    product = w.op(f"mul nuw nsw {long} {dividend}, {factor}")
    quotient = w.op(f"lshr {long} {product}, {w.const('i64', shift, wide)}")
    if element == "i32":
        quotient = w.op(f"trunc {long} {quotient} to {ty}")
    if atom.kind == DIV:
        return quotient
    return w.op(f"sub {ty} {x}, {w.op(f'mul {ty} {quotient}, {w.const(element, c, wide)}')}")


def periodic(s: EmitState, atom: Atom) -> bool:
    """Whether a quotient or remainder by a small number has the same pattern over the lanes in
    every trip: the lanes count up by one from a multiple of the number."""
    if atom.kind not in (DIV, MOD) or s.lane is None or isinstance(atom.bound, Number):
        return False
    if s.multiple % atom.bound:
        return False
    others = [c for a, c in atom.of.terms if not (a.kind == AXIS and a.of == s.lane)]
    return atom.of.stride(s.lane) == 1 and not any(c % atom.bound for c in (*others, atom.of.const))


def _period(s: EmitState, atom: Atom, copy: int, element: str) -> str:
    """The pattern of a copy, and for a quotient where it starts."""
    w, c = s.w, atom.bound
    lanes = range(copy * LANES, (copy + 1) * LANES)
    each = (n // c if atom.kind == DIV else n % c for n in lanes)
    pattern = "<" + ", ".join(f"{element} {n}" for n in each) + ">"
    if atom.kind == MOD:
        return pattern
    first = whole(s, Index(((atom, 1),)), 0)
    if not is_constant(first) and element != "i64":
        first = w.op(f"trunc i64 {first} to {element}")
    return w.op(f"add {vector(element)} {w.splat(element, first)}, {pattern}")


def narrowest(s: EmitState, index: Index) -> str:
    """i32 where every step of the arithmetic stays within it, else i64. Of a general kernel that
    is one question, asked of all its positions."""
    most = reach(index)
    return "i32" if (_narrow(s) if isinstance(most, Number) else most < 2**31) else "i64"


def _narrow(s: EmitState) -> bool:
    if s.narrow is None:
        s.narrow = farthest(s.kernel) < 2**31
    return s.narrow


def as_value(s: EmitState, index: Index, dtype: str) -> Val:
    """An index as an integer value."""
    element = COMPUTE[dtype]
    if lane_step(s, index) == 0:
        parts = []
        for copy in range(s.copies if _moves(s, index) else 1):
            x = whole(s, index, copy)
            if not is_constant(x):
                x = _resize(s, x, "i64", element, False, False)
            parts.append(x)
        return Val(tuple(parts), False)
    compute = element if BITS[element] >= 32 else "i32"
    made = (vectored(s, index, c, compute) for c in range(s.copies))
    return Val(tuple(_resize(s, x, compute, element, False, True) for x in made), True)


def inside(s: EmitState, index: Index, low: int, high: int) -> Val:
    """Whether an index lies in [low, high)."""
    least, most = index.range(s.bounds)
    if low <= least and most < high:
        return Val(("true",), False, True)
    if most < low or least >= high or high <= low:
        return Val(("false",), False, False)
    shifted, last = index - low, high - low - 1  # one unsigned comparison does for both ends
    parts = []
    if lane_step(s, index) == 0:
        copies = range(s.copies if _moves(s, index) else 1)
        parts = [s.w.op(f"icmp ule i64 {whole(s, shifted, c)}, {last}") for c in copies]
        return Val(tuple(parts), False)
    element = narrowest(s, shifted)
    for copy in range(s.copies):
        x = vectored(s, shifted, copy, element)
        parts.append(s.w.op(f"icmp ule {vector(element)} {x}, {s.w.const(element, last, True)}"))
    return Val(tuple(parts), True)


def _moves(s: EmitState, index: Index) -> bool:
    """Whether a lane-uniform index can still differ between copies."""
    values = index.values()
    return s.lane in index.axes() or any(len(s.env[v].copies) > 1 for v in values)


def _integer(s: EmitState, value: int, copy: int) -> str:
    dtype = s.kernel.instructions[value].dtype
    x = s.get(value, copy, False)
    return _resize(s, x, COMPUTE[dtype], "i64", kind(dtype) in "bu", False)


def _resize(s: EmitState, x: str, old: str, new: str, unsigned: bool, wide: bool) -> str:
    if BITS[old] == BITS[new] or is_constant(x):
        return x
    op = "trunc" if BITS[old] > BITS[new] else "zext" if unsigned else "sext"
    return s.w.op(f"{op} {vector(old, wide)} {x} to {vector(new, wide)}")
