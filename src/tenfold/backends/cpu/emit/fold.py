"""Long sums of floats: rounds in blocks, blocks in chunks, and a balanced tree over chunks.

The shape is the kernel's (`Fold`), so it is the same whatever the target. Reductions other than
float sums that share a loop with one go through it unbroken.
"""

from __future__ import annotations

from itertools import accumulate
from typing import TYPE_CHECKING

from tenfold.backends.cpu.emit.loops import Body, Position
from tenfold.backends.cpu.emit.reductions import Reduction, Slot
from tenfold.backends.llvm.writer import size_of

if TYPE_CHECKING:
    from tenfold.backends.cpu.emit.emit import Emitter


def folded(
    e: Emitter, extent: int, step: int, makers: list[Reduction], slots: list[Slot], body: Body
) -> list[str]:
    """The loop over an axis whose every trip is a round; what is held in the end."""
    fold = e.kernel.fold
    if not any(m.flushed for m in makers):
        return e.loop(0, extent, step, slots, body)

    def blocks(
        low: Position, high: Position, most: int, whole: bool, level: int, held: list[Slot]
    ) -> list[str]:
        """So many rounds, or fewer unless it is `whole`, from what is held on: in blocks of the
        level below, each from nothing."""
        if level == 0:
            return e.loop(low, high, step, held, body, most, empty=False)
        size = step * fold.block**level
        if most <= size:
            return blocks(low, high, most, whole, level - 1, held)
        whole = whole and most % size == 0

        def block(i: Position, held: list[str]) -> list[str]:
            end = ending(e, i, size, high, whole)
            more = blocks(i, end, size, whole, level - 1, fresh(makers, held))
            return merged(makers, held, more)

        return e.loop(low, high, size, held, block, most, empty=False)

    chunk, rounds = step * fold.chunk, extent // step
    if fold.chunks(rounds) <= 2:
        return blocks(0, extent, extent, True, fold.levels, slots)
    tree = _Tree(e, makers, rounds)
    whole = extent % chunk == 0

    def one(i: Position, held: list[str]) -> list[str]:
        end = ending(e, i, chunk, extent, whole)
        more = blocks(i, end, chunk, whole, fold.levels - 1, fresh(makers, held))
        return tree.join(e.w.op(f"udiv i64 {i}, {chunk}"), held, more)

    return tree.whole(e.loop(0, extent, chunk, slots, one))


def ending(e: Emitter, start: Position, size: int, high: Position, whole: bool) -> str:
    """Where a block that starts here ends."""
    stop = e.w.op(f"add nsw i64 {start}, {size}")
    return stop if whole else e.w.intrinsic("smin", "i64", stop, str(high))


def fresh(makers: list[Reduction], held: list[str]) -> list[Slot]:
    """Where a block starts: float sums from nothing, all others where they are."""
    out: list[Slot] = []
    for maker in makers:
        mine = maker.slots()
        now = held[len(out) : len(out) + len(mine)]
        out += mine if maker.flushed else [(t, x) for (t, _), x in zip(mine, now, strict=True)]
    return out


def merged(makers: list[Reduction], held: list[str], more: list[str]) -> list[str]:
    """What is held after a block: float sums of both, all others as the block left them."""
    out: list[str] = []
    for maker in makers:
        here = slice(len(out), len(out) + len(maker.slots()))
        out += maker.merge(held[here], more[here]) if maker.flushed else more[here]
    return out


class _Tree:
    """Chunks joined as a binary counter carries: the sum of 2**n chunks waits in place n."""

    def __init__(self, e: Emitter, makers: list[Reduction], rounds: int) -> None:
        self.e, self.makers = e, makers
        self.count, self.most = e.kernel.fold.chunks(rounds), e.kernel.fold.waiting(rounds)
        self.slots = [slot for maker in makers if maker.flushed for slot in maker.slots()]
        self.sizes = [size_of(ty) for ty, _ in self.slots]
        self.row = sum(self.sizes)
        self.memory = e.private(self.most * self.row)

    def join(self, number: str, held: list[str], more: list[str]) -> list[str]:
        """Put a chunk's sums in their place; what the loop holds."""
        w = self.e.w
        place = w.call(
            "i64", "llvm.cttz.i64", ("i64", w.op(f"add i64 {number}, 1")), ("i1", "true")
        )

        def carry(level: Position, sums: list[str]) -> list[str]:
            return self.added(self.recall(level), sums)

        first = [(ty, x) for (ty, _), x in zip(self.slots, self.mine(more), strict=True)]
        sums = self.e.loop(0, place, 1, first, carry, self.most)
        for at, (ty, _), x in zip(self.places(place), self.slots, sums, strict=True):
            w.put(f"store {ty} {x}, ptr {at}, align 8")
        return self.put_back(more, self.mine(held))

    def whole(self, held: list[str]) -> list[str]:
        """What is held after the last chunk."""
        waiting = [level for level in range(self.most) if self.count >> level & 1]
        sums = self.recall(waiting[0])
        for level in waiting[1:]:
            sums = self.added(self.recall(level), sums)
        return self.put_back(held, sums)

    def recall(self, level: Position) -> list[str]:
        pairs = zip(self.places(level), self.slots, strict=True)
        return [self.e.w.op(f"load {ty}, ptr {at}, align 8") for at, (ty, _) in pairs]

    def added(self, a: list[str], b: list[str]) -> list[str]:
        return [
            self.e.w.op(f"fadd {ty} {x}, {y}")
            for (ty, _), x, y in zip(self.slots, a, b, strict=True)
        ]

    def places(self, level: Position) -> list[str]:
        w = self.e.w
        at = w.op(f"mul i64 {level}, {self.row}")
        row = w.op(f"getelementptr i8, ptr {self.memory}, i64 {at}")
        offsets = accumulate(self.sizes[:-1], initial=0)
        return [w.op(f"getelementptr i8, ptr {row}, i64 {offset}") for offset in offsets]

    def mine(self, held: list[str]) -> list[str]:
        """The float sums of what is held."""
        return [x for x, flushed in zip(held, self.flags(), strict=True) if flushed]

    def put_back(self, held: list[str], sums: list[str]) -> list[str]:
        """What is held with other float sums."""
        rest = iter(sums)
        return [next(rest) if f else x for x, f in zip(held, self.flags(), strict=True)]

    def flags(self) -> list[bool]:
        return [maker.flushed for maker in self.makers for _ in maker.slots()]
