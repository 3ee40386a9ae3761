"""What is known at each point of an invocation's code: where axes stand, what is computed.

An invocation has one position of each axis, but along its lane axis a few neighbours: its slots.
What depends on that axis is computed for each of them, all else once.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import field
from typing import Any

from tenfold.backends.webgpu.wgsl.casts import cast, resized
from tenfold.backends.webgpu.wgsl.functions import computed
from tenfold.backends.webgpu.wgsl.types import REGISTER
from tenfold.backends.webgpu.wgsl.writer import Writer
from tenfold.frozen import mutable
from tenfold.kernel.ir.index import AXIS, DIV, VALUE, Atom, Index
from tenfold.kernel.ir.kernel import Kernel
from tenfold.kernel.ir.number import Number


def number(n: Any) -> str:
    """An integer of 32 bits: known, or one of the words of a dispatch.

    >>> number(-3)
    '(-3)'
    """
    if isinstance(n, Number):
        return f"n{n.at}"
    return f"{n}" if n >= 0 else f"({n})"


@mutable
class Invocation:
    """The state of printing one invocation's code."""

    kernel: Kernel  # a legal one
    w: Writer
    atomic: frozenset[int] = frozenset()  # buffers whose words several invocations write
    axes: dict[int, str] = field(default_factory=dict)  # where axes stand
    env: dict[tuple[int, int], str] = field(default_factory=dict)  # by value and slot
    lane: int | None = None
    slots: int = 1
    wide: frozenset[int] = frozenset()  # buffers that are bound as vectors of as many as slots

    @contextmanager
    def inside(self, axis: int, position: str) -> Iterator[None]:
        """Bind an axis; what is computed inside is forgotten after."""
        axes, env = self.axes, self.env
        self.axes, self.env = axes | {axis: position}, dict(env)
        try:
            yield
        finally:
            self.axes, self.env = axes, env

    def spread(self, value: int) -> bool:
        """Whether a value may differ between slots."""
        return self.lane is not None and self.lane in self.kernel.free[value]

    def each(self, value: int) -> range:
        return range(self.slots if self.spread(value) else 1)

    def get(self, value: int, slot: int = 0) -> str:
        return self.env[value, slot if self.spread(value) else 0]

    def put(self, value: int, slot: int, text: str) -> None:
        self.env[value, slot] = text

    # Positions.

    def position(self, index: Index, slot: int = 0) -> str:
        """An index at a slot, as an i32."""
        parts = []
        for atom, k in index.terms:
            x = self._atom(atom, slot)
            parts.append(x if _is(k, 1) else f"{x} * {number(k)}")
        if not _is(index.const, 0) or not parts:
            parts.append(number(index.const))
        return f"({' + '.join(parts)})" if len(parts) > 1 else parts[0]

    def _atom(self, atom: Atom, slot: int) -> str:
        if atom.kind == AXIS:
            at = self.axes[atom.of]
            return f"({at} + {slot})" if slot and atom.of == self.lane else at
        if atom.kind == VALUE:
            held = REGISTER[self.kernel.instructions[atom.of].dtype]
            x = self.get(atom.of, slot)
            return f"select(0, 1, {x})" if held == "bool" else resized(held, "i32", x)
        # Rounded down: of what is not negative.
        low, _ = atom.of.range()
        lift = 0 if low >= 0 else -(low // atom.bound)
        x, c = self.position(atom.of, slot), number(atom.bound)
        if not _is(lift, 0):
            x = f"({x} + {number(lift * atom.bound)})"
        if atom.kind != DIV:
            return f"({x} % {c})"
        return f"({x} / {c})" if _is(lift, 0) else f"({x} / {c} - {number(lift)})"

    # Instructions.

    def compute(self, value: int) -> None:
        """An instruction other than a load or a reduction, for all slots."""
        i = self.kernel.instructions[value]
        sources = [self.kernel.instructions[a].dtype for a in i.args]
        for slot in self.each(value):
            if i.op == "param":
                found = f"p{i.attr[0]}_{i.attr[1]}"
            elif i.op == "index":
                assert i.index is not None
                at = cast(self.w, "i32", i.dtype, self.position(i.index, slot))
                found = self.w.let(REGISTER[i.dtype], at)
            elif i.op == "inside":
                assert i.index is not None
                low, high = map(number, i.attr)
                at = self.w.let("i32", self.position(i.index, slot))
                found = self.w.let("bool", f"({at} >= {low} && {at} < {high})")
            else:
                found = computed(self.w, i, sources, [self.get(a, slot) for a in i.args])
            self.put(value, slot, found)


def _is(n: Any, known: int) -> bool:
    return isinstance(n, int) and n == known
