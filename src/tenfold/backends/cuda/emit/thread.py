"""What an emission knows at each point of a thread's code: where axes stand, what is computed.

A thread works on one position of each axis, but along one of them, its lane axis, on several: its
slots. A value that depends on the lane axis is computed for every slot, any other once. Slots stand
at a constant distance from a common anchor, so that their addresses differ by constants, and may be
inactive where an axis is shorter than the threads reach: then nothing is read or written.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import field
from typing import Any

from tenfold.backends.cuda.emit.division import LEAST, divided, reciprocal
from tenfold.backends.cuda.emit.pairs import Paired, operate, pair
from tenfold.backends.cuda.emit.signs import SIGNS, seen, signed
from tenfold.backends.llvm.functions import called
from tenfold.backends.llvm.instructions import instruction
from tenfold.backends.llvm.writer import COMPUTE, Writer, scalar_text
from tenfold.frozen import frozen, mutable
from tenfold.kernel.analyse.access import farthest
from tenfold.kernel.ir.index import AXIS, DIV, VALUE, Atom, Index
from tenfold.kernel.ir.kernel import Kernel
from tenfold.kernel.ir.number import Number

Position = int | str | Number  # known, in a register, or a number of the kernel's sizes
Text = str


@frozen
class Slot:
    """One position along the lane axis: so far from where the thread's slots begin. `active` is
    the register that says whether there is such an element; None if there always is."""

    offset: int
    active: Text | None = None


@mutable
class Thread:
    """The state of emitting one thread's code."""

    kernel: Kernel  # a legal one
    w: Writer
    base: dict[int, Position] = field(default_factory=dict)
    bounds: dict[int, tuple[int, int]] = field(default_factory=dict)
    env: dict[Any, Any] = field(default_factory=dict)  # (value, slot) -> text, and what is cached
    lane: int | None = None
    slots: Sequence[Slot] = (Slot(0),)
    wide: bool | None = None  # whether positions need 64 bits, once that was asked
    odd: frozenset[int] = frozenset()  # buffers that may begin at no multiple of 16 bytes
    seen: frozenset[int] | None = None  # values whose bits count, once that was asked
    pairs: dict[int, Paired] = field(default_factory=dict)  # what is computed two at a time
    instead: frozenset[int] = frozenset()  # and what is then not computed
    close: dict[int, str] = field(default_factory=dict)  # what an instruction near it is enough for

    @contextmanager
    def inside(self, axis: int, position: Position) -> Iterator[None]:
        """Bind an axis; what is computed inside is forgotten after."""
        env, base = self.env, self.base
        self.env, self.base = dict(env), base | {axis: position}
        try:
            yield
        finally:
            self.env, self.base = env, base

    @contextmanager
    def across(self, axis: int, anchor: Position, slots: Sequence[Slot]) -> Iterator[None]:
        """Bind an axis to several positions."""
        before = self.lane, self.slots
        with self.inside(axis, anchor):
            self.lane, self.slots = axis, slots
            try:
                yield
            finally:
                self.lane, self.slots = before

    @property
    def position(self) -> str:
        """The type of positions in memory."""
        if self.wide is None:
            self.wide = not farthest(self.kernel) < 2**31
        return "i64" if self.wide else "i32"

    def spread(self, value: int) -> bool:
        """Whether a value may differ between slots."""
        return self.lane is not None and self.lane in self.kernel.free[value]

    def get(self, value: int, slot: int = 0) -> Text:
        found: Text = self.env[value, slot if self.spread(value) else 0]
        return found

    def put(self, value: int, slot: int, text: Text) -> None:
        self.env[value, slot] = text

    def each(self, value: int) -> range:
        """The slots that a value is computed for."""
        return range(len(self.slots)) if self.spread(value) else range(1)

    # Positions.

    def scalar(self, index: Index, slot: int = 0) -> tuple[Text | None, Any]:
        """An index at a slot: what moves, and a constant (or a number of the sizes) to add."""
        key = self._key(index, slot)
        if key not in self.env:
            self.env[key] = self._sum(index, slot)
        moving, constant = self.env[key]
        return moving, constant + index.const + self._beyond(index, slot)

    def _sum(self, index: Index, slot: int) -> tuple[Text | None, Any]:
        w, ty = self.w, self.position
        total: Text | None = None
        constant: Any = 0
        for atom, k in index.terms:
            x = self._atom(atom, slot)
            if not isinstance(x, str):
                constant = constant + k * x
                continue
            if not (isinstance(k, int) and k == 1):
                x = w.op(f"mul {ty} {x}, {w.const(ty, k, False)}")
            total = w.op(f"add {ty} {total}, {x}") if total else x
        return total, constant

    def _key(self, index: Index, slot: int) -> tuple[Any, ...]:
        """What moving parts are shared by: slots are apart only where computed values are."""
        apart = any(self.spread(v) for v in index.values()) or self.broken(index)
        return "scalar", index.terms, slot if apart else -1

    def broken(self, index: Index) -> bool:
        """Whether the lane axis stands in a quotient or remainder."""
        atoms = [atom for atom, _ in index.terms if atom.kind not in (AXIS, VALUE)]
        return any(self.lane in atom.of.axes() for atom in atoms)

    def _beyond(self, index: Index, slot: int) -> Any:
        """What a slot lies farther than the anchor."""
        offset = self.slots[slot].offset if self.lane is not None else 0
        if not offset:
            return 0
        steps = (k for atom, k in index.terms if atom.kind == AXIS and atom.of == self.lane)
        return sum((k * offset for k in steps), start=0)

    def _atom(self, atom: Atom, slot: int) -> Position:
        if atom.kind == AXIS:
            return self.base[atom.of]
        if atom.kind == VALUE:
            return self._integer(atom.of, slot)
        lift = self._lift(atom)
        x = self.whole(atom.of + lift * atom.bound, slot)
        quotient = self._divided(x, atom)
        if lift and atom.kind == DIV:
            by = self.w.const(self.position, lift, False)
            quotient = self.w.op(f"sub {self.position} {quotient}, {by}")
        return quotient

    def whole(self, index: Index, slot: int = 0) -> Text:
        """An index at a slot, as one integer."""
        moving, constant = self.scalar(index, slot)
        ty = self.position
        if moving is None:
            return self.w.const(ty, constant, False)
        if isinstance(constant, int) and not constant:
            return moving
        return self.w.op(f"add {ty} {moving}, {self.w.const(ty, constant, False)}")

    def _lift(self, atom: Atom) -> Any:
        """How many times the divisor keeps the dividend from being negative."""
        low, _ = atom.of.range(self.bounds)
        return 0 if isinstance(low, int) and low >= 0 else max(0, -(low // atom.bound))

    def _divided(self, x: Text, atom: Atom) -> Text:
        """A quotient or remainder of what is not negative."""
        w, c, ty = self.w, atom.bound, self.position
        if isinstance(c, int) or ty == "i64":
            op = "udiv" if atom.kind == DIV else "urem"
            return w.op(f"{op} {ty} {x}, {w.const(ty, c, False)}")
        quotient = divide(w, x, c)
        if atom.kind == DIV:
            return quotient
        back = w.op(f"mul i32 {quotient}, {w.const('i32', c, False)}")
        return w.op(f"sub i32 {x}, {back}")

    def _integer(self, value: int, slot: int) -> Text:
        dtype = self.kernel.instructions[value].dtype
        x, ty = self.get(value, slot), COMPUTE[dtype]
        bits = {"i1": 1}.get(ty) or int(ty[1:])
        wanted = int(self.position[1:])
        if bits == wanted or not x.startswith("%"):
            return x
        widen = "zext" if dtype == "bool" or dtype[0] == "u" else "sext"
        return self.w.op(f"{'trunc' if bits > wanted else widen} {ty} {x} to {self.position}")

    # Instructions.

    def compute(self, value: int) -> None:
        """An instruction other than a load, for all its slots."""
        i, w = self.kernel.instructions[value], self.w
        if i.op == "const":
            self.put(value, 0, scalar_text(i.dtype, i.attr[0]))
            return
        if i.op == "param":
            self.put(value, 0, f"%p{i.attr[0]}.{i.attr[1]}")
            return
        if self.spread(value) and len(self.slots) % 2 == 0:
            if value in self.instead:
                return
            if value in self.pairs:
                self._in_pairs(value)
                return
        if i.op == "div" and i.dtype in ("f32", "f64") and self._shares(value):
            self._divide(value)
            return
        sources = [self.kernel.instructions[a].dtype for a in i.args]
        for slot in self.each(value):
            given = [self.get(a, slot) for a in i.args]
            if i.op == "index":
                assert i.index is not None
                found = self.as_value(i.index, i.dtype, slot)
            elif i.op == "inside":
                assert i.index is not None
                low, high = i.attr
                found = self.within(i.index, low, high, slot)
            elif i.op == "call":
                found = called(w, i.attr[0], i.dtype, given, False)
            elif value in self.close:
                found = w.call("float", self.close[value], *(("float", x) for x in given))
            elif i.op in SIGNS and value in self._seen():
                found = signed(w, i.op, i.dtype, given[0])
            else:
                if i.op in ("shl", "shr") and i.dtype[1:] == "64":
                    # LLVM drops the test of an amount before a shift, whose own amount is cut to
                    # 32 bits; it does not where the amount is bounded once more.
                    given[1] = w.intrinsic("umin", "i64", given[1], "63")
                found = instruction(w, i.op, i.dtype, sources, given, False)
            self.put(value, slot, found)

    def _shares(self, value: int) -> bool:
        """Whether several slots are divided by the same, which is no constant. Where some slots
        may not be there, what says so takes the registers that it would need."""
        dividend, divisor = self.kernel.instructions[value].args
        if not self.spread(dividend) or self.spread(divisor) or len(self.slots) < LEAST:
            return False
        if value in self.close or any(slot.active is not None for slot in self.slots):
            return False
        return self.get(divisor).startswith("%")

    def _divide(self, value: int) -> None:
        i = self.kernel.instructions[value]
        dividend, divisor = i.args
        s, key = self.get(divisor), ("reciprocal", divisor)
        if key not in self.env:
            self.env[key] = reciprocal(self.w, i.dtype, s)
        given = [self.get(dividend, slot) for slot in range(len(self.slots))]
        found = divided(self.w, i.dtype, given, s, self.env[key])
        for slot, x in enumerate(found):
            self.put(value, slot, x)

    def _in_pairs(self, value: int) -> None:
        """Sixteen-bit floats, two slots at a time."""
        one = self.pairs[value]
        for slot in range(0, len(self.slots), 2):
            given = [self._pair(one.element, *operand, slot) for operand in one.operands]
            made, bits = operate(self.w, one, given)
            self.env["pair", one.element, value, slot] = made
            for n, x in enumerate(bits):
                self.put(value, slot + n, x)

    def _pair(self, element: str, value: int | None, constant: int, slot: int) -> Text:
        """What two slots have of a value, or twice a constant."""
        if value is None:
            letter = "R" if element == "bfloat" else "H"
            return f"splat ({element} 0x{letter}{constant:04X})"
        slot = slot if self.spread(value) else 0
        key = "pair", element, value, slot
        if key not in self.env:
            self.env[key] = pair(self.w, element, [self.get(value, slot + n) for n in range(2)])
        found: Text = self.env[key]
        return found

    def _seen(self) -> frozenset[int]:
        if self.seen is None:
            self.seen = seen(self.kernel)
        return self.seen

    def as_value(self, index: Index, dtype: str, slot: int) -> Text:
        """An index as an integer value."""
        x, ty = self.whole(index, slot), COMPUTE[dtype]
        if ty == self.position or not x.startswith("%"):
            return x
        narrower = int(ty[1:]) < int(self.position[1:])
        return self.w.op(f"{'trunc' if narrower else 'sext'} {self.position} {x} to {ty}")

    def within(self, index: Index, low: int, high: int, slot: int) -> Text:
        """Whether an index lies in [low, high)."""
        least, most = index.range(self.bounds)
        if low <= least and most < high:
            return "true"
        if most < low or least >= high or high <= low:
            return "false"
        x, ty = self.whole(index - low, slot), self.position
        return self.w.op(f"icmp ult {ty} {x}, {self.w.const(ty, high - low, False)}")


def divide(w: Writer, x: Text, by: Number) -> Text:
    """A quotient by what is known only when it runs, of a dividend below 2**31: multiplied by the
    reciprocal, rounded up, which the host computes."""
    shift = (by - 1).bit_length() + 31
    factor = w.const("i32", -(-(1 << shift) // by), False)
    long = w.op(f"mul i64 {w.op(f'zext i32 {x} to i64')}, {w.op(f'zext i32 {factor} to i64')}")
    return w.op(f"trunc i64 {w.op(f'lshr i64 {long}, {shift}')} to i32")
