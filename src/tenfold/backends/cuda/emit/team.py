"""Teams: threads of a block that have a row together, and how they join what each has.

The shape of a sum is the kernel's (`kernel/analyse/reduction`): rounds of 64 neighbours, runs of
four rounds, a balanced tree over the runs of a chunk for each of 16 lanes, lanes folded by halves,
a balanced tree over chunks. Sixteen threads have a run: where rows lie packed each of them has four
neighbours of every round, elsewhere one lane, with its copies. A short row that lies packed is four
threads', with four lanes each. So every addition of the tree is made by somebody, by a shuffle or
through shared memory, and in the end all threads of a team have the result.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from tenfold.backends.cuda.emit.control import balanced
from tenfold.backends.cuda.emit.function import FunctionWriter
from tenfold.backends.cuda.emit.joining import Held, Joining
from tenfold.backends.cuda.emit.layout import LANES, QUADS, Layout
from tenfold.backends.cuda.emit.thread import Slot, Text
from tenfold.backends.cuda.target import WARP
from tenfold.backends.llvm.writer import Writer
from tenfold.kernel.ir.kernel import Fold

_REDUCED = {  # what a warp joins by one instruction
    ("min", "i32"): "min",
    ("max", "i32"): "max",
    ("sum", "i32"): "add",
    ("min", "u32"): "umin",
    ("max", "u32"): "umax",
    ("sum", "u32"): "add",
}


class Team:
    """The threads of a block as teams of one layout."""

    def __init__(self, f: FunctionWriter, layout: Layout, block: int) -> None:
        self.f, self.w, self.layout, self.block = f, f.w, layout, block
        self.thread = f.sreg("tid.x")
        self.me = self.w.op(f"and i32 {self.thread}, {layout.threads - 1}")
        self.local = self.me  # the number among those of its team in this block
        self.warps = max(1, layout.threads // WARP)  # of those

    @property
    def teams(self) -> int:
        """How many teams a block has."""
        return self.block // self.layout.threads

    def number(self) -> Text:
        """Which team of the block this is."""
        shift = self.layout.threads.bit_length() - 1
        return self.w.op(f"lshr i32 {self.thread}, {shift}")

    # Joining.

    def joined(self, joining: Joining, values: Sequence[Sequence[Text]], slots: Sequence[Slot],
               again: bool = False) -> Held:  # fmt: skip
        """What all slots of all threads come to, each with the operands of the reduction. In a
        loop, `again`, shared memory is written to more than once."""
        if joining.shaped:
            return self._shaped(joining, values, slots, again)
        w = self.w
        held = balanced(w, joining, [
            chosen(w, slot, joining, joining.identity, list(given))
            for given, slot in zip(values, slots, strict=True)
        ])  # fmt: skip
        held = self._by_shuffles(joining, held, min(self.layout.threads, WARP))
        if self.warps > 1:
            held = balanced(w, joining, self._exchanged(joining, held, again))
        return balanced(w, joining, self.across(joining, [held], 1))

    def _by_shuffles(self, joining: Joining, held: Held, count: int) -> Held:
        """What so many neighbouring threads hold, in each of them."""
        if count == WARP and (joining.kind, joining.dtype) in _REDUCED:
            name = f"llvm.nvvm.redux.sync.{_REDUCED[joining.kind, joining.dtype]}"
            return [self.w.call("i32", name, ("i32", held[0]), ("i32", "-1"))]
        if count == WARP and joining.kind in ("min", "max") and joining.types == ["float"]:
            return [self._extreme(joining, held[0])]
        step = 1
        while step < count:
            held = joining.merge(self.w, held, self.shuffled(joining, held, step))
            step *= 2
        return held

    def _extreme(self, joining: Joining, x: Text) -> Text:
        """The greatest or least float of a warp: by integers of their order, a NaN beyond all."""
        w = self.w
        keyed = self._turned(w.op(f"bitcast float {x} to i32"))
        beyond = "2147483647" if joining.kind == "max" else "-2147483648"
        nan = w.op(f"fcmp uno float {x}, {x}")
        keyed = w.op(f"select i1 {nan}, i32 {beyond}, i32 {keyed}")
        name = f"llvm.nvvm.redux.sync.{joining.kind}"
        found = w.call("i32", name, ("i32", keyed), ("i32", "-1"))
        return w.op(f"bitcast i32 {self._turned(found)} to float")

    def _turned(self, bits: Text) -> Text:
        """The bits of floats as integers of their order, and back."""
        w = self.w
        sign = w.op(f"ashr i32 {bits}, 31")
        return w.op(f"xor i32 {bits}, {w.op(f'and i32 {sign}, 2147483647')}")

    def shuffled(self, joining: Joining, held: Held, step: int) -> Held:
        """What the thread whose number differs in a bit holds."""
        return [exchange(self.w, ty, x, step) for ty, x in zip(joining.types, held, strict=True)]

    def _exchanged(self, joining: Joining, held: Held, again: bool, lanes: int = 1) -> list[Held]:
        """What the warps of a team hold, in each of them; for each of so many lanes apart."""
        return self.gathered(joining, [held], again, lanes)

    def gathered(
        self, joining: Joining, parts: Sequence[Held], again: bool, lanes: int
    ) -> list[Held]:
        """What all warps of a team have, turn by turn, warp by warp."""
        read = self._told(joining, parts, lanes)
        found = [read(number) for number in range(len(parts) * self.warps)]
        if again:
            wait(self.w)
        return found

    def _told(self, joining: Joining, parts: Sequence[Held], lanes: int) -> Callable[[int], Held]:
        """Have the first `lanes` threads of each warp write what it has; what reads, by its number,
        what those of a thread's own lane wrote."""
        w = self.w
        count = len(parts) * self.warps
        memory = [self.f.reserve(kept(ty), self.teams * count * lanes) for ty in joining.types]
        lane = w.op(f"and i32 {self.thread}, {lanes - 1}")
        within = w.op(f"and i32 {self.thread}, {WARP - 1}")
        warp = w.op(f"lshr i32 {self.local}, 5")
        base = w.op(f"mul i32 {self.number()}, {count * lanes}")
        writes = w.op(f"icmp ult i32 {within}, {lanes}")
        yes, on = w.fresh("write"), w.fresh("wrote")
        w.put(f"br i1 {writes}, label %{yes}, label %{on}")
        w.label(yes)
        for turn, part in enumerate(parts):
            row = w.op(f"add i32 {warp}, {turn * self.warps}")
            at = w.op(f"add i32 {w.op(f'mul i32 {row}, {lanes}')}, {lane}")
            at = w.op(f"add i32 {at}, {base}")
            for name, ty, x in zip(memory, joining.types, part, strict=True):
                place = _place(w, name, ty, at)
                w.put(f"store {kept(ty)} {wide(w, ty, x)}, ptr addrspace(3) {place}")
        w.put(f"br label %{on}")
        w.label(on)
        wait(w)
        start = w.op(f"add i32 {base}, {lane}")

        def read(number: int) -> Held:
            at = w.op(f"add i32 {start}, {number * lanes}") if number else start
            held = []
            for name, ty in zip(memory, joining.types, strict=True):
                place = _place(w, name, ty, at)
                held.append(short(w, ty, w.op(f"load {kept(ty)}, ptr addrspace(3) {place}")))
            return held

        return read

    def first(self) -> Text:
        """The number of the row of this block's first team."""
        block = self.f.sreg("ctaid.x")
        return block if self.teams == 1 else self.w.op(f"mul i32 {block}, {self.teams}")

    def wait(self) -> None:
        """Until all threads of the team have come here."""
        wait(self.w)

    def across(self, joining: Joining, parts: Sequence[Held], turns: int) -> list[Held]:
        """What all blocks of a team have: it has but one."""
        return list(parts)

    # Sums of floats.

    def _shaped(
        self,
        joining: Joining,
        values: Sequence[Sequence[Text]],
        slots: Sequence[Slot],
        again: bool,
    ) -> Held:
        w, layout, fold = self.w, self.layout, Fold()
        if layout.threads == QUADS:
            return self._by_quads(joining, values, slots)
        runs: list[Held] = []
        per = layout.rounds * layout.copies
        for turn in range(layout.turns):
            copies: list[Held] = []
            for c in range(layout.copies):
                held = joining.identity
                for r in range(layout.rounds):
                    n = turn * per + r * layout.copies + c
                    after = joining.step(w, held, values[n])
                    held = chosen(self.w, slots[n], joining, held, after)
                copies.append(held)
            runs.append(self._run(joining, copies))
        if layout.threads >= WARP:  # two runs lie side by side in a warp
            runs = [joining.merge(w, one, self.shuffled(joining, one, LANES)) for one in runs]
        size = fold.chunk // 2 if layout.threads >= WARP else fold.chunk
        count = len(runs) * self.warps
        read = self._told(joining, runs, LANES) if self.warps > 1 else None
        chunks = []
        for n in range(0, count, size):
            numbers = range(n, min(n + size, count))
            some = [runs[m] if read is None else read(m) for m in numbers]
            chunks.append(self._lanes(joining, balanced(w, joining, some)))
        if again and self.warps > 1:
            wait(w)
        return balanced(w, joining, self.across(joining, chunks, layout.turns))

    def _by_quads(
        self, joining: Joining, values: Sequence[Sequence[Text]], slots: Sequence[Slot]
    ) -> Held:
        """A run of which each of four threads has all copies of four lanes."""
        w, layout = self.w, self.layout
        lanes = []
        for lane in range(layout.packed):
            copies = []
            for c in range(layout.copies):
                held = joining.identity
                for r in range(layout.rounds):
                    n = (r * layout.copies + c) * layout.packed + lane
                    held = chosen(w, slots[n], joining, held, joining.step(w, held, values[n]))
                copies.append(held)
            lanes.append(balanced(w, joining, copies))
        for step in (2, 1):
            lanes = [joining.merge(w, x, self.shuffled(joining, x, step)) for x in lanes]
        halves = [joining.merge(w, lanes[n], lanes[n + 2]) for n in range(2)]
        return joining.merge(w, *halves)

    def _run(self, joining: Joining, parts: list[Held]) -> Held:
        """What one lane has of a run: its copies as a balanced tree. Where a thread has neighbours
        of four lanes, copies lie in other threads: of each exchange it keeps half of its lanes."""
        w = self.w
        if self.layout.packed == 1:
            return balanced(w, joining, parts)
        assert len(parts) == 4
        for step in (4, 8):
            upper = w.op(f"icmp ne i32 {w.op(f'and i32 {self.thread}, {step}')}, 0")
            half = len(parts) // 2
            kept = [_selected(w, joining, upper, parts[n + half], parts[n]) for n in range(half)]
            sent = [_selected(w, joining, upper, parts[n], parts[n + half]) for n in range(half)]
            parts = [
                joining.merge(w, own, self.shuffled(joining, other, step))
                for own, other in zip(kept, sent, strict=True)
            ]
        return parts[0]

    def _lanes(self, joining: Joining, held: Held) -> Held:
        """Lanes folded by halves: in which threads they lie, the layout says."""
        for step in (8, 4, 2, 1) if self.layout.packed == 1 else (2, 1, 4, 8):
            held = joining.merge(self.w, held, self.shuffled(joining, held, step))
        return held


def wait(w: Writer) -> None:
    """Wait until all threads of the block have come here; what they wrote before is seen then."""
    w.declare("void @llvm.nvvm.barrier.cta.sync.aligned.all(i32)")
    w.put("call void @llvm.nvvm.barrier.cta.sync.aligned.all(i32 0)")


def chosen(w: Writer, slot: Slot, joining: Joining, before: Held, after: Held) -> Held:
    """What is held after a slot that may not be there."""
    if slot.active is None:
        return after
    return [
        w.op(f"select i1 {slot.active}, {ty} {b}, {ty} {a}")
        for ty, a, b in zip(joining.types, before, after, strict=True)
    ]


def exchange(w: Writer, ty: str, x: Text, step: int) -> Text:
    """The value of the thread whose number differs in a bit."""
    if ty in ("i64", "double"):
        bits = w.op(f"bitcast double {x} to i64") if ty == "double" else x
        low = w.op(f"trunc i64 {bits} to i32")
        high = w.op(f"trunc i64 {w.op(f'lshr i64 {bits}, 32')} to i32")
        low, high = (w.op(f"zext i32 {_exchanged(w, 'i32', n, step)} to i64") for n in (low, high))
        both = w.op(f"or i64 {low}, {w.op(f'shl i64 {high}, 32')}")
        return w.op(f"bitcast i64 {both} to double") if ty == "double" else both
    if ty in ("i1", "i8", "i16"):
        found = _exchanged(w, "i32", w.op(f"zext {ty} {x} to i32"), step)
        return w.op(f"trunc i32 {found} to {ty}")
    return _exchanged(w, ty, x, step)


def _exchanged(w: Writer, ty: str, x: Text, step: int) -> Text:
    name = f"llvm.nvvm.shfl.sync.bfly.{'f32' if ty == 'float' else 'i32'}"
    return w.call(ty, name, ("i32", "-1"), (ty, x), ("i32", str(step)), ("i32", "31"))


def _selected(w: Writer, joining: Joining, test: Text, yes: Held, no: Held) -> Held:
    return [
        w.op(f"select i1 {test}, {ty} {a}, {ty} {b}")
        for ty, a, b in zip(joining.types, yes, no, strict=True)
    ]


def kept(ty: str) -> str:
    """How a value lies in shared memory."""
    return "i8" if ty == "i1" else ty


def wide(w: Writer, ty: str, x: Text) -> Text:
    """A value as it lies there."""
    return w.op(f"zext i1 {x} to i8") if ty == "i1" else x


def short(w: Writer, ty: str, x: Text) -> Text:
    """What lies there, as a value."""
    return w.op(f"icmp ne i8 {x}, 0") if ty == "i1" else x


def _place(w: Writer, name: str, ty: str, at: Text) -> Text:
    return w.op(f"getelementptr {kept(ty)}, ptr addrspace(3) {name}, i32 {at}")
