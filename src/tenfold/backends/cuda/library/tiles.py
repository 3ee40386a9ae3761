"""How a block multiplies: a tile of the result in the registers of its threads.

A block goes through the terms sixteen at a time. These parts of both operands lie in shared memory,
term after term, twice: while one half is multiplied, what the other will hold is on its way from
global memory through registers, so that a round has one barrier. Each thread has so many rows and
columns of the tile, in groups of 16 bytes: of shared memory it reads such a group at a time.

Terms are added in their order, one after the other. Beyond the last there are zeros; lines beyond
the end of an operand are its last one again, and what comes of them is not stored.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence

from tenfold.backends.cuda.emit.memory import guarded
from tenfold.backends.cuda.emit.team import wait
from tenfold.backends.cuda.library.arithmetic import GLOBAL, SHARED, Arithmetic, Parts
from tenfold.backends.cuda.target import CudaTarget
from tenfold.backends.llvm.text import Fragment
from tenfold.backends.llvm.writer import Writer, vector
from tenfold.frozen import frozen

DEEP = 16  # terms of a round
_PACKED = 16  # bytes of an access


@frozen
class Tile:
    """A tile: `side` times `side` threads have `each` by `each` results."""

    side: int
    each: int

    @property
    def extent(self) -> int:
        return self.side * self.each

    @property
    def threads(self) -> int:
        return self.side * self.side


TILES = {tile.extent: tile for tile in (Tile(16, 8), Tile(16, 4), Tile(8, 4), Tile(8, 2))}


class TileWriter(ABC):
    """The text of a function that multiplies tile by tile. What operands are and where results go
    says a class below."""

    def __init__(self, name: str, tile: Tile, dtype: str, target: CudaTarget) -> None:
        self.name, self.tile = name, tile
        self.w = Writer(target.llvm)
        self.sums = Arithmetic(self.w, dtype)
        size = self.sums.size
        self.group = min(tile.each, _PACKED // size)  # neighbours that a thread has
        self.pitch = tile.extent + _PACKED // size  # elements from a term to the next
        self.half = DEEP * self.pitch
        self.begin, self.end = "0", "%k"  # the terms that a block adds up, by whole rounds

    @abstractmethod
    def operands(self) -> tuple[Operand, Operand]:
        """The left one and the right one, at the beginning of their lines."""

    @abstractmethod
    def store(self, rows: Sequence[str], columns: Sequence[str], found: list[list[Parts]]) -> None:
        """Store results, of which `rows` and `columns` are the places in the tile: of columns, the
        first of each group."""

    @abstractmethod
    def parameters(self) -> str:
        """What the function is given."""

    def memory(self, which: str, part: int) -> str:
        """Shared memory of an operand."""
        return f"@{self.name}.{which}{part}"

    def least(self, a: str, b: str) -> str:
        return self.w.select(self.w.op(f"icmp slt i64 {a}, {b}"), "i64", a, b)

    def text(self) -> Fragment:
        w, sums, tile = self.w, self.sums, self.tile
        w.label("entry")
        self.thread = w.call("i32", "llvm.nvvm.read.ptx.sreg.tid.x")
        bits = tile.side.bit_length() - 1
        own = [w.op(f"lshr i32 {self.thread}, {bits}"),
               w.op(f"and i32 {self.thread}, {tile.side - 1}")]  # fmt: skip
        self.own = [w.op(f"mul i32 {n}, {self.group}") for n in own]
        operands = self.operands()
        for operand in operands:
            operand.keep(operand.fetch(self.begin), "0")
        wait(w)
        found = self._rounds(operands)
        group, apart = self.group, tile.side * self.group
        places = [
            [
                w.op(f"add i32 {one}, {g * apart + n}")
                for g in range(tile.each // group)
                for n in range(0, group, step)
            ]
            for one, step in zip(self.own, (1, group), strict=True)
        ]
        self.store(places[0], places[1], found)
        w.put("ret void")
        shared = [
            f"{self.memory(which, part)} = internal addrspace(3) global "
            f"[{2 * self.half} x {sums.ty}] undef, align 16"
            for which in ("left", "right")
            for part in range(sums.parts)
        ]
        head = (
            f"define ptx_kernel void @{self.name}({self.parameters()}) nounwind "
            f'"nvvm.maxntid"="{tile.threads}" {{'
        )
        return Fragment((*shared, *sorted(w.declared)), "\n".join((head, *w.lines, "}")))

    def _rounds(self, operands: Sequence[Operand]) -> list[list[Parts]]:
        """All rounds: the sums of a thread, row by row."""
        w, sums, each = self.w, self.sums, self.tile.each
        before, head, on, end = w.block, w.fresh("loop"), w.fresh("multiply"), w.fresh("end")
        w.put(f"br label %{head}")
        w.label(head)
        start, half = f"%{w.fresh('k')}", f"%{w.fresh('half')}"
        held = [[[f"%{w.fresh('s')}" for _ in range(sums.parts)] for _ in range(each)]
                for _ in range(each)]  # fmt: skip
        phis = len(w.lines)
        w.lines.append("")
        following = w.op(f"add i64 {start}, {DEEP}")
        more = w.op(f"icmp slt i64 {following}, {self.end}")
        fetching = w.fresh("fetch")
        w.put(f"br i1 {more}, label %{fetching}, label %{on}")
        w.label(fetching)
        fetched = [operand.fetch(following) for operand in operands]
        last = w.block
        w.put(f"br label %{on}")
        w.label(on)
        fetched = [
            [
                [w.op(f"phi {sums.ty} [ {x}, %{last} ], [ {sums.zero}, %{head} ]") for x in element]
                for element in elements
            ]
            for elements in fetched
        ]
        found = self._multiplied(half, held)
        other = w.op(f"sub i32 {self.half}, {half}")
        keeping, latch = w.fresh("keep"), w.fresh("latch")
        w.put(f"br i1 {more}, label %{keeping}, label %{latch}")
        w.label(keeping)
        for operand, elements in zip(operands, fetched, strict=True):
            operand.keep(elements, other)
        w.put(f"br label %{latch}")
        w.label(latch)
        wait(w)
        w.put(f"br i1 {more}, label %{head}, label %{end}")
        lines = [f"  {start} = phi i64 [ {self.begin}, %{before} ], [ {following}, %{latch} ]"]
        lines.append(f"  {half} = phi i32 [ 0, %{before} ], [ {other}, %{latch} ]")
        for names, values in zip(held, found, strict=True):
            for name, value in zip(names, values, strict=True):
                lines += [
                    f"  {a} = phi {sums.ty} [ {sums.zero}, %{before} ], [ {b}, %{latch} ]"
                    for a, b in zip(name, value, strict=True)
                ]
        w.lines[phis] = "\n".join(lines)
        w.label(end)
        return found

    def _multiplied(self, half: str, held: list[list[Parts]]) -> list[list[Parts]]:
        """The sums after the terms of one round."""
        w, sums = self.w, self.sums
        found = [list(row) for row in held]
        bases = []
        for which, own in zip(("left", "right"), self.own, strict=True):
            at = w.op(f"add i32 {half}, {own}")
            bases.append([
                w.op(f"getelementptr {sums.ty}, {SHARED} {self.memory(which, part)}, i32 {at}")
                for part in range(sums.parts)
            ])  # fmt: skip
        for deep in range(DEEP):
            a, b = (self._lines(base, deep) for base in bases)
            for r, left in enumerate(a):
                for c, right in enumerate(b):
                    found[r][c] = sums.add_product(found[r][c], left, right)
        return found

    def _lines(self, bases: Sequence[str], deep: int) -> list[Parts]:
        """One term of all rows, or columns, that a thread has."""
        w, ty, group = self.w, self.sums.ty, self.group
        many = vector(ty, group > 1, group)
        align = self.sums.size * group
        parts: list[list[str]] = []
        for base in bases:
            values = []
            for g in range(self.tile.each // group):
                offset = deep * self.pitch + g * self.tile.side * group
                at = w.op(f"getelementptr {ty}, {SHARED} {base}, i32 {offset}")
                x = w.op(f"load {many}, {SHARED} {at}, align {align}")
                values += [
                    w.op(f"extractelement {many} {x}, i64 {n}") if group > 1 else x
                    for n in range(group)
                ]
            parts.append(values)
        return [list(one) for one in zip(*parts, strict=True)]


class Operand:
    """One operand of a tile: lines of terms, `extent` in all, from number `first` on. `along`:
    terms of a line are neighbours in memory, and lines `pitch` apart; else the other way about.
    `count` neighbours are read at a time: their number divides the extents, and they begin at
    multiples of their bytes."""

    def __init__(
        self,
        of: TileWriter,
        which: str,
        dtype: str,
        base: str,
        first: str,
        extent: str,
        pitch: str,
        along: bool,
        count: int,
    ) -> None:
        self.of, self.w, self.sums, self.which, self.dtype = of, of.w, of.sums, which, dtype
        self.pitch, self.along, self.count = pitch, along, count
        self.places = self._places()
        known = {line: self._start(base, first, extent, line) for line, _ in self.places}
        self.starts = [known[line] for line, _ in self.places]

    def _start(self, base: str, first: str, extent: str, line: str) -> str:
        """Where a line of the tile begins."""
        here = self.w.op(f"add i64 {first}, {wide(self.w, line)}")
        here = self.line(self.near(here, extent, 1 if self.along else self.count))
        return self.sums.place(self.dtype, base, here)

    def line(self, at: str) -> str:
        """Where a line begins."""
        return self.w.op(f"mul i64 {at}, {self.pitch}") if self.along else at

    def _places(self) -> list[tuple[str, str]]:
        """The line and the term of each access of a thread."""
        w, tile, thread = self.w, self.of.tile, self.of.thread
        per = (DEEP if self.along else tile.extent) // self.count  # accesses of a line, or a term
        far = w.op(f"lshr i32 {thread}, {per.bit_length() - 1}")
        near = w.op(f"and i32 {thread}, {per - 1}")  # the same for all accesses
        if self.count > 1:
            near = w.op(f"mul i32 {near}, {self.count}")
        found = []
        for n in range(tile.extent * DEEP // (self.count * tile.threads)):
            at = w.op(f"add i32 {far}, {n * tile.threads // per}") if n else far
            found.append((at, near) if self.along else (near, at))
        return found

    def near(self, x: str, extent: str, step: int) -> str:
        """A place, or the last one that there is."""
        return self.of.least(x, self.w.op(f"sub i64 {extent}, {step}"))

    def fetch(self, start: str) -> list[Parts]:
        """What a thread brings of the terms from a number on."""
        w, found = self.w, list[Parts]()
        for (_, depth), place in zip(self.places, self.starts, strict=True):
            term = w.op(f"add i64 {start}, {w.op(f'zext i32 {depth} to i64')}")
            inside = w.op(f"icmp slt i64 {term}, %k")
            found += [self.sums.chosen(inside, one) for one in self.load(place, term)]
        return found

    def load(self, place: str, term: str) -> list[Parts]:
        """Neighbours from a term on, of lines that begin there; of a term that is not there, any
        that is."""
        near = self.near(term, "%k", self.count if self.along else 1)
        if not self.along:
            near = self.w.op(f"mul i64 {near}, {self.pitch}")
        at = self.sums.place(self.dtype, place, near)
        return self.sums.load(self.dtype, at, self.count)

    def keep(self, elements: Sequence[Parts], half: str) -> None:
        """Put what was fetched into shared memory."""
        w, sums, count = self.w, self.sums, self.count
        for n, (line, depth) in enumerate(self.places):
            here = elements[n * count : (n + 1) * count]
            at = w.op(f"add i32 {w.op(f'mul i32 {depth}, {self.of.pitch}')}, {line}")
            at = w.op(f"add i32 {at}, {half}")
            for part in range(sums.parts):
                memory = self.of.memory(self.which, part)
                first = w.op(f"getelementptr {sums.ty}, {SHARED} {memory}, i32 {at}")
                self._put(first, [one[part] for one in here])

    def _put(self, first: str, values: Sequence[str]) -> None:
        w, ty, size = self.w, self.sums.ty, self.sums.size
        packed = min(len(values), _PACKED // size)
        if self.along or packed == 1:
            step = self.of.pitch if self.along else 1
            for n, x in enumerate(values):
                at = w.op(f"getelementptr {ty}, {SHARED} {first}, i32 {n * step}") if n else first
                w.put(f"store {ty} {x}, {SHARED} {at}, align {size}")
            return
        many = vector(ty, True, packed)
        for n in range(0, len(values), packed):
            whole = "poison"
            for e, x in enumerate(values[n : n + packed]):
                whole = w.op(f"insertelement {many} {whole}, {ty} {x}, i64 {e}")
            at = w.op(f"getelementptr {ty}, {SHARED} {first}, i32 {n}") if n else first
            w.put(f"store {many} {whole}, {SHARED} {at}, align {size * packed}")


def wide(w: Writer, x: str) -> str:
    """A small number in 64 bits."""
    return w.op(f"zext i32 {x} to i64")


def store_if(w: Writer, test: str, sums: Arithmetic, place: str, elements: Sequence[Parts]) -> None:
    """Store where a test holds."""

    def stored() -> list[str]:
        sums.store(place, elements)
        return []

    guarded(w, test, stored, [])


def arrays(sides: Sequence[tuple[str, int]]) -> str:
    """Parameters that are arrays: their names, and the multiples of bytes that they begin at."""
    return ", ".join(f"{GLOBAL} align {align} %{name}" for name, align in sides)
