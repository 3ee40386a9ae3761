"""Running folds along lines of a stretch at most."""

from __future__ import annotations

from typing import Any

from tenfold.backends.cuda.emit.control import loop
from tenfold.backends.cuda.emit.team import wait
from tenfold.backends.cuda.emit.thread import Position
from tenfold.backends.cuda.library.fold import Fold
from tenfold.backends.cuda.library.function import RoutineFunction
from tenfold.backends.cuda.library.routine import RoutineLaunch
from tenfold.backends.cuda.target import CudaTarget
from tenfold.backends.llvm.text import Fragment

THREADS, BLOCK = 256, 16
STRETCH = THREADS * BLOCK
_TURN = 8  # elements that a thread loads or stores at a time


def line_launch(symbol: str, count: int, lines: int) -> RoutineLaunch:
    """The launch for lines of `count` lanes, no more than a stretch has."""
    team = min(THREADS, 1 << (-(-count // BLOCK) - 1).bit_length())
    words = (count, 8), (lines, 8), (team.bit_length() - 1, 8)
    return RoutineLaunch(f"{symbol}_lines", -(-lines // (THREADS // team)), THREADS, (0, 1), words)


class LineFold(Fold):
    """What writes the functions for lines."""

    def function(self, name: str, target: CudaTarget) -> Fragment:
        return self.lines(target)

    def turned(self, at: str, count: str) -> str:
        """Where a lane lies, of so many: parts of an element keep their order."""
        if not self.reverse:
            return at
        f = self.f
        back = f.num("sub", "i64", f.num("sub", "i64", count, self.span), at)
        if self.span == 1:
            return back
        part = f.num("and", "i64", at, 1)
        return f.num("add", "i64", back, f.num("shl", "i64", part, 1))

    def lines(self, target: CudaTarget) -> Fragment:
        """A team for each line."""
        name, words = f"{self.symbol}_lines", ("count", "lines", "shift")
        arrays = [("x", self.memory), ("y", self.memory)]
        f = self.f = RoutineFunction(name, target, THREADS, arrays, words, self.sharing)
        w = f.w
        thread, block = f.sreg("tid.x"), f.sreg("ctaid.x")
        self.reserve()
        shift = f.short("%shift")
        teams = f.num("lshr", "i32", THREADS, shift)
        first = f.num("mul", "i64", f.long(block), f.long(teams))
        self._each_slot(thread, shift, first, self._stage)
        wait(w)
        given, held = self.own(thread)
        self.tell(thread, held)
        wait(w)
        size = f.num("shl", "i32", 1, shift)
        me = f.num("and", "i32", thread, f.num("sub", "i32", size, 1))
        f.when(w.op(f"icmp eq i32 {me}, 0"), lambda: self._chained(thread, size))
        wait(w)
        end = f.long(f.num("mul", "i32", me, BLOCK))
        whole = w.op(f"icmp sle i64 {f.num('add', 'i64', end, BLOCK)}, %count")
        bases = [self.nothing()] * self.span
        self.finish(thread, whole, given, held, self.carries(thread), bases)
        wait(w)
        self._each_slot(thread, shift, first, self._unstage)
        return f.text()

    def reserve(self) -> None:
        """Shared memory for a stretch, of which each block begins a place farther, so that threads
        that go through theirs do not meet; and for what blocks come to."""
        self.staged = self.f.reserve(self.memory, STRETCH + THREADS)
        self.chain = self.f.reserve(self.type, self.span * THREADS)

    def own(self, thread: str) -> tuple[list[str], list[str]]:
        """A thread's block, and each element joined with all before it in the block."""
        f = self.f
        first = f.num("mul", "i32", thread, BLOCK + 1)
        given = [
            self.widened(f.get(self.staged, self.memory, f.num("add", "i32", first, n)))
            for n in range(BLOCK)
        ]
        return given, self._prefix(given)

    def tell(self, thread: str, held: list[str]) -> None:
        """Put what a thread's block comes to where blocks are gone along."""
        for part in range(self.span):
            at = self.f.num("add", "i32", thread, part * THREADS)
            self.f.put(self.chain, self.type, at, held[BLOCK - self.span + part])

    def carries(self, thread: str) -> list[str]:
        """What comes before a thread's block."""
        f = self.f
        places = [f.num("add", "i32", thread, part * THREADS) for part in range(self.span)]
        return [f.get(self.chain, self.type, place) for place in places]

    def _each_slot(self, thread: str, shift: str, first: str, do: Any) -> None:
        """Go through what a block of threads has, neighbours by neighbours: where an element lies,
        where it is staged, and whether it is there."""
        f = self.f
        reach = f.num("add", "i32", shift, BLOCK.bit_length() - 1)
        mask = f.num("sub", "i32", f.num("shl", "i32", 1, reach), 1)

        def some(turn: Position, held: list[str]) -> list[str]:
            for n in range(_TURN):
                slot = f.num("add", "i32", f.num("add", "i32", str(turn), thread), n * THREADS)
                line = f.num("add", "i64", first, f.long(f.num("lshr", "i32", slot, reach)))
                at = f.long(f.num("and", "i32", slot, mask))
                inside = f.w.op(f"icmp slt i64 {at}, %count")
                inside = f.num("and", "i1", inside, f.w.op(f"icmp slt i64 {line}, %lines"))
                begins = f.num("mul", "i64", line, "%count")
                place = f.num("add", "i64", begins, self.turned(at, "%count"))
                do(place, f.num("add", "i32", slot, f.num("lshr", "i32", slot, 4)), inside)
            return held

        # In a loop, so that places of loads are not kept for the stores.
        loop(f.w, "i32", 0, STRETCH, _TURN * THREADS, (), some)

    def _stage(self, place: str, slot: str, inside: str) -> None:
        f = self.f
        found = f.where(inside, self.memory, lambda: f.read("x", place))
        f.put(self.staged, self.memory, slot, found)

    def _unstage(self, place: str, slot: str, inside: str) -> None:
        f = self.f
        f.when(inside, lambda: f.write("y", place, f.get(self.staged, self.memory, slot)))

    def _prefix(self, given: list[str]) -> list[str]:
        """A block, each element joined with all before it in the block."""
        held, shift = list(given), self.span
        while shift < BLOCK:
            held = [
                self.joined(held[n - shift], x) if n >= shift else x for n, x in enumerate(held)
            ]
            shift *= 2
        return held

    def _chained(self, thread: str, size: str) -> None:
        """Put what comes before each block in place of what it comes to."""
        f, w = self.f, self.f.w

        def several(count: int) -> Any:
            def body(at: Position, held: list[str]) -> list[str]:
                made = []
                for part, carry in enumerate(held):
                    first = f.num("add", "i32", thread, str(at))
                    first = f.num("add", "i32", first, part * THREADS)
                    places = [f.num("add", "i32", first, n) for n in range(count)]
                    found = [f.get(self.chain, self.type, place) for place in places]
                    for place, x in zip(places, found, strict=True):
                        f.put(self.chain, self.type, place, carry)
                        carry = self.joined(carry, x)
                    made.append(carry)
                return made

            return body

        held = [self.nothing()] * self.span
        whole = f.num("and", "i32", size, -BLOCK)
        slots = [(self.type, x) for x in held]
        held = loop(w, "i32", 0, whole, BLOCK, slots, several(BLOCK))
        slots = [(self.type, x) for x in held]
        loop(w, "i32", whole, size, 1, slots, several(1))

    def finish(
        self, thread: str, whole: str, given: list[str], held: list[str], carries: list[str],
        bases: list[str],
    ) -> None:  # fmt: skip
        """Stage what a block comes to with what is before it; of one that is not whole, an element
        after the other."""
        f, span = self.f, self.span
        own = f.num("mul", "i32", thread, BLOCK + 1)

        def keep(n: int, value: str) -> None:
            at = f.num("add", "i32", own, n)
            f.put(self.staged, self.memory, at, self.narrowed(value))

        def at_once() -> None:
            for n, x in enumerate(held):
                made = self.joined(bases[n % span], self.joined(carries[n % span], x))
                keep(n, made)

        def in_order() -> None:
            last = [self.joined(b, c) for b, c in zip(bases, carries, strict=True)]
            for n, x in enumerate(given):
                last[n % span] = self.joined(last[n % span], x)
                keep(n, last[n % span])

        f.when(whole, at_once)
        f.when(f.num("xor", "i1", whole, "true"), in_order)
