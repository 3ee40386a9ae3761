"""Running folds along lines."""

from __future__ import annotations

from typing import Any

from tenfold.backends.cuda.emit.control import loop
from tenfold.backends.cuda.emit.team import wait
from tenfold.backends.cuda.emit.thread import Position
from tenfold.backends.cuda.library.fold import Fold
from tenfold.backends.cuda.library.function import RoutineFunction
from tenfold.backends.cuda.library.routine import RoutineLaunch
from tenfold.backends.cuda.target import WARP, CudaTarget
from tenfold.backends.llvm.text import Fragment

_THREADS, _BLOCK = 256, 16
_STRETCH = _THREADS * _BLOCK
_TURN = 8  # elements that a thread loads or stores at a time
_EACH = 4  # stretches that a lane looks at at a time
_FEW = 2  # stretches of a line that one block goes through in less time than three functions take
_BUSY, _SEVERAL = 132, 8  # lines from which on blocks go through so many


def line_launches(
    symbol: str, count: int, lines: int, held: int
) -> tuple[list[RoutineLaunch], int]:
    """The launches for lines of `count` lanes, and the bytes of what comes before stretches."""
    stretches = -(-count // _STRETCH)
    team = min(_THREADS, 1 << (-(-count // _BLOCK) - 1).bit_length())
    blocks = -(-lines // (_THREADS // team)) * stretches
    shift = team.bit_length() - 1

    def words(stretches: int, apart: int) -> tuple[tuple[int, int], ...]:
        return tuple((word, 8) for word in (count, lines, shift, stretches, apart))

    if stretches == 1:
        return [RoutineLaunch(f"{symbol}_lines", blocks, _THREADS, (0, 1, 1), words(1, 0))], 0
    if stretches <= (_FEW if lines < _BUSY else _SEVERAL):
        given = (count, 8), (lines, 8), (stretches, 8)
        return [RoutineLaunch(f"{symbol}_few", lines, _THREADS, (0, 1), given)], 0
    bases = (lines, 8), (stretches, 8)
    return [
        RoutineLaunch(
            f"{symbol}_totals", lines * (stretches - 1), _THREADS, (0, 2),
            words(stretches - 1, stretches),
        ),
        RoutineLaunch(f"{symbol}_bases", lines, WARP, (2,), bases),
        RoutineLaunch(f"{symbol}_lines", blocks, _THREADS, (0, 1, 2), words(stretches, stretches)),
    ], lines * stretches * held  # fmt: skip


class LineFold(Fold):
    """What writes the functions for lines."""

    def function(self, name: str, target: CudaTarget) -> Fragment:
        if name in ("bases", "few"):
            return self.bases(target) if name == "bases" else self.few(target)
        return self.lines(target, name == "totals")

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

    def lines(self, target: CudaTarget, totals: bool) -> Fragment:
        """A team for each line, or for a stretch of one; or what each stretch comes to."""
        name = f"{self.symbol}_{'totals' if totals else 'lines'}"
        arrays = [("x", self.memory), *([] if totals else [("y", self.memory)]), ("b", self.type)]
        words = ("count", "lines", "shift", "stretches", "apart")
        f = self.f = RoutineFunction(name, target, _THREADS, arrays, words, self.sharing)
        w = f.w
        thread, block = f.sreg("tid.x"), f.sreg("ctaid.x")
        self.staged = f.reserve(self.memory, _STRETCH + _THREADS)
        self.chain = f.reserve(self.type, self.span * _THREADS)
        shift, stretches = f.short("%shift"), f.short("%stretches")
        teams = f.num("lshr", "i32", _THREADS, shift)
        which = f.num("udiv", "i32", block, stretches)
        stretch = f.num("sub", "i32", block, f.num("mul", "i32", which, stretches))
        first = f.num("mul", "i64", f.long(which), f.long(teams))
        start = f.num("mul", "i64", f.long(stretch), _STRETCH)
        self._each_slot(thread, shift, first, start, self._stage)
        wait(w)
        own, given, held = self._blocks(thread)
        wait(w)
        size = f.num("shl", "i32", 1, shift)
        me = f.num("and", "i32", thread, f.num("sub", "i32", size, 1))
        leads = w.op(f"icmp eq i32 {me}, 0")
        line = f.num("add", "i64", first, f.long(f.num("lshr", "i32", thread, shift)))
        place = f.num("mul", "i64", line, "%apart")
        place = f.num("add", "i64", place, f.long(stretch))
        place = f.num("mul", "i64", place, self.span)

        def along() -> None:
            made = self._chained(thread, size)
            if totals:
                for part, total in enumerate(made):
                    f.write("b", f.num("add", "i64", place, part), total)

        f.when(leads, along)
        if totals:
            return f.text()
        wait(w)
        carries = self._carries(thread)
        several = w.op("icmp ne i64 %apart, 0")
        bases = []
        for part in range(self.span):
            at = f.num("add", "i64", place, part)
            base = f.where(several, self.type, lambda at=at: f.read("b", at))  # type: ignore[misc]
            bases.append(w.select(several, self.type, base, self.nothing()))
        end = f.num("add", "i64", start, f.long(f.num("mul", "i32", me, _BLOCK)))
        end = f.num("add", "i64", end, _BLOCK)
        whole = w.op(f"icmp sle i64 {end}, %count")
        self._finish(own, whole, given, held, carries, bases)
        wait(w)
        self._each_slot(thread, shift, first, start, self._unstage)
        return f.text()

    def few(self, target: CudaTarget) -> Fragment:
        """A block for each line, which goes through its stretches, one after the other."""
        arrays, words = [("x", self.memory), ("y", self.memory)], ("count", "lines", "stretches")
        f = self.f = RoutineFunction(
            f"{self.symbol}_few", target, _THREADS, arrays, words, self.sharing
        )
        w = f.w
        thread, line = f.sreg("tid.x"), f.long(f.sreg("ctaid.x"))
        self.staged = f.reserve(self.memory, _STRETCH + _THREADS)
        self.chain, total = f.reserve(self.type, self.span * _THREADS), f.reserve(self.type, 2)
        shift, leads = str(_THREADS.bit_length() - 1), w.op(f"icmp eq i32 {thread}, 0")

        def along() -> None:
            for part, x in enumerate(self._chained(thread, str(_THREADS))):
                f.put(total, self.type, str(part), x)

        def stretch(number: Position, bases: list[str]) -> list[str]:
            start = f.num("mul", "i64", str(number), _STRETCH)
            self._each_slot(thread, shift, line, start, self._stage)
            wait(w)
            own, given, held = self._blocks(thread)
            wait(w)
            f.when(leads, along)
            wait(w)
            carries = self._carries(thread)
            following = [
                self.joined(base, f.get(total, self.type, str(part)))
                for part, base in enumerate(bases)
            ]
            end = f.num("add", "i64", start, f.long(f.num("mul", "i32", thread, _BLOCK)))
            whole = w.op(f"icmp sle i64 {f.num('add', 'i64', end, _BLOCK)}, %count")
            self._finish(own, whole, given, held, carries, bases)
            wait(w)
            self._each_slot(thread, shift, line, start, self._unstage)
            wait(w)
            return following

        loop(w, "i64", 0, "%stretches", 1, [(self.type, self.nothing())] * self.span, stretch)
        return f.text()

    def _blocks(self, thread: str) -> tuple[str, list[str], list[str]]:
        """Where this thread's block is staged, the block, and each of its elements joined with all
        before it; what it comes to goes to the chain."""
        f = self.f
        own = f.num("mul", "i32", thread, _BLOCK + 1)
        given = [
            self.widened(f.get(self.staged, self.memory, f.num("add", "i32", own, n)))
            for n in range(_BLOCK)
        ]
        held = self._prefix(given)
        for part in range(self.span):
            at = f.num("add", "i32", thread, part * _THREADS)
            f.put(self.chain, self.type, at, held[_BLOCK - self.span + part])
        return own, given, held

    def _carries(self, thread: str) -> list[str]:
        """What comes before this thread's block, once it is chained."""
        f = self.f
        return [
            f.get(self.chain, self.type, f.num("add", "i32", thread, part * _THREADS))
            for part in range(self.span)
        ]

    def _each_slot(self, thread: str, shift: str, first: str, start: str, do: Any) -> None:
        """Go through what a block of threads has, neighbours by neighbours: where an element lies,
        where it is staged, and whether it is there."""
        f = self.f
        reach = f.num("add", "i32", shift, _BLOCK.bit_length() - 1)
        mask = f.num("sub", "i32", f.num("shl", "i32", 1, reach), 1)

        def some(turn: Position, held: list[str]) -> list[str]:
            for n in range(_TURN):
                slot = f.num("add", "i32", f.num("add", "i32", str(turn), thread), n * _THREADS)
                line = f.num("add", "i64", first, f.long(f.num("lshr", "i32", slot, reach)))
                at = f.num("add", "i64", start, f.long(f.num("and", "i32", slot, mask)))
                inside = f.w.op(f"icmp slt i64 {at}, %count")
                inside = f.num("and", "i1", inside, f.w.op(f"icmp slt i64 {line}, %lines"))
                begins = f.num("mul", "i64", line, "%count")
                place = f.num("add", "i64", begins, self.turned(at, "%count"))
                do(place, f.num("add", "i32", slot, f.num("lshr", "i32", slot, 4)), inside)
            return held

        # In a loop, so that places of loads are not kept for the stores.
        loop(f.w, "i32", 0, _STRETCH, _TURN * _THREADS, (), some)

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
        while shift < _BLOCK:
            held = [
                self.joined(held[n - shift], x) if n >= shift else x for n, x in enumerate(held)
            ]
            shift *= 2
        return held

    def _chained(self, thread: str, size: str) -> list[str]:
        """Put what comes before each block in place of what it comes to; what all come to."""
        f, w = self.f, self.f.w

        def several(count: int) -> Any:
            def body(at: Position, held: list[str]) -> list[str]:
                made = []
                for part, carry in enumerate(held):
                    first = f.num("add", "i32", thread, str(at))
                    first = f.num("add", "i32", first, part * _THREADS)
                    places = [f.num("add", "i32", first, n) for n in range(count)]
                    found = [f.get(self.chain, self.type, place) for place in places]
                    for place, x in zip(places, found, strict=True):
                        f.put(self.chain, self.type, place, carry)
                        carry = self.joined(carry, x)
                    made.append(carry)
                return made

            return body

        held = [self.nothing()] * self.span
        whole = f.num("and", "i32", size, -_BLOCK)
        slots = [(self.type, x) for x in held]
        held = loop(w, "i32", 0, whole, _BLOCK, slots, several(_BLOCK))
        slots = [(self.type, x) for x in held]
        return loop(w, "i32", whole, size, 1, slots, several(1))

    def _finish(
        self, own: str, whole: str, given: list[str], held: list[str], carries: list[str],
        bases: list[str],
    ) -> None:  # fmt: skip
        """Stage what a block comes to with what is before it; of one that is not whole, an element
        after the other."""
        f, span = self.f, self.span

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

    def bases(self, target: CudaTarget) -> Fragment:
        """A warp for each line: what comes before each stretch, in place of what it comes to."""
        words = ("lines", "stretches")
        f = self.f = RoutineFunction(
            f"{self.symbol}_bases", target, WARP, [("b", self.type)], words
        )
        w, span = f.w, self.span
        lane = f.sreg("tid.x")
        line = f.num("mul", "i64", f.long(f.sreg("ctaid.x")), "%stretches")
        totals = f.num("sub", "i64", "%stretches", 1)

        def spot(chunk: str, n: int) -> str:
            return f.num("add", "i64", f.num("add", "i64", chunk, n * WARP), f.long(lane))

        def brought(chunk: str) -> list[str]:
            found = []
            for n in range(_EACH):
                at = spot(chunk, n)
                place = f.num("mul", "i64", f.num("add", "i64", line, at), span)
                there = w.op(f"icmp slt i64 {at}, {totals}")
                for part in range(span):
                    here = f.num("add", "i64", place, part)
                    found.append(f.where(there, self.type, lambda here=here: f.read("b", here)))  # type: ignore[misc]
            return found

        def body(chunk: Position, held: list[str]) -> list[str]:
            carry, now = held[:span], held[span:]
            following = brought(f.num("add", "i64", str(chunk), _EACH * WARP))
            for n in range(_EACH):
                mine = list(carry)
                for j in range(WARP):
                    here = w.op(f"icmp eq i32 {lane}, {j}")
                    for part in range(span):
                        mine[part] = w.select(here, self.type, carry[part], mine[part])
                        other = f.picked(self.type, now[n * span + part], j)
                        carry[part] = self.joined(carry[part], other)
                at = spot(str(chunk), n)
                place = f.num("mul", "i64", f.num("add", "i64", line, at), span)

                def keep(place: str = place, mine: list[str] = mine) -> None:
                    for part, x in enumerate(mine):
                        f.write("b", f.num("add", "i64", place, part), x)

                f.when(w.op(f"icmp slt i64 {at}, %stretches"), keep)
            return [*carry, *following]

        slots = [(self.type, x) for x in [*[self.nothing()] * span, *brought("0")]]
        loop(w, "i64", 0, "%stretches", _EACH * WARP, slots, body)
        return f.text()
