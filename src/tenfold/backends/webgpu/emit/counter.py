"""Partial results joined as a binary counter carries: that of 2**n waits in place n. So they make a
balanced tree, however many they are."""

from __future__ import annotations

from tenfold.backends.webgpu.emit.joining import Joining
from tenfold.backends.webgpu.wgsl.types import REGISTER
from tenfold.backends.webgpu.wgsl.writer import Writer

PLACES = 30  # for more results than there is memory


class Counter:
    """One shaped reduction's partial results, in variables of the invocation."""

    def __init__(self, w: Writer, joining: Joining, places: int = PLACES) -> None:
        self.w, self.joining = w, joining
        self.dtype, ty = joining.dtype, REGISTER[joining.dtype]
        self.memory = w.fresh("c")
        w.put(f"var {self.memory}: array<{ty}, {places}>;")
        self.count = w.var("u32", "0u", "k")

    def join(self, made: str) -> None:
        """The next result."""
        w = self.w
        held, place = self._variable(made), w.fresh("i")
        w.put(f"let {place}n = countTrailingZeros(~{self.count});")
        with w.block(f"for (var {place} = 0u; {place} < {place}n; {place}++)"):
            below = self._read(place)
            w.put(f"{held} = {self.joining.merge(w, [below], [held])[0]};")
        w.put(f"{self.memory}[{place}n] = {held};")
        w.put(f"{self.count}++;")

    def total(self) -> str:
        """All that waits, the smallest first; what a reduction begins with where nothing does."""
        w = self.w
        held, left = self._variable(self.joining.identity[0]), w.var("u32", self.count)
        with w.block(f"if ({left} != 0u)"):
            w.put(f"{held} = {self.memory}[countTrailingZeros({left})];")
            w.put(f"{left} &= {left} - 1u;")
        with w.block(f"while ({left} != 0u)"):
            waits = self._read(f"countTrailingZeros({left})")
            w.put(f"{held} = {self.joining.merge(w, [waits], [held])[0]};")
            w.put(f"{left} &= {left} - 1u;")
        return held

    def _variable(self, text: str) -> str:
        name = self.w.var(REGISTER[self.dtype], text)
        self.w.computed.add(name)
        return name

    def _read(self, place: str) -> str:
        name = self.w.let(REGISTER[self.dtype], f"{self.memory}[{place}]")
        self.w.computed.add(name)
        return name
