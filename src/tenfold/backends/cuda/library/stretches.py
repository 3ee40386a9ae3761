"""Running folds along lines of several stretches, by two functions that read a line once each.

The first has a block of threads for each stretch: it leaves what comes before each block of
elements in the stretch, and what the stretch comes to. Of the second each block of threads has some
stretches that follow each other: it goes along all before them, then joins what comes before a
stretch, before a block and before an element. Whoever goes along is one thread, which adds as fast
as a processor can, one after the other; the others have brought what it adds.
"""

from __future__ import annotations

from tenfold.backends.cuda.emit.control import loop
from tenfold.backends.cuda.emit.memory import guarded
from tenfold.backends.cuda.emit.team import wait
from tenfold.backends.cuda.emit.thread import Position, Text
from tenfold.backends.cuda.library.function import SHARED, RoutineFunction
from tenfold.backends.cuda.library.lines import BLOCK, STRETCH, THREADS, LineFold
from tenfold.backends.cuda.library.routine import RoutineLaunch
from tenfold.backends.cuda.target import CudaTarget
from tenfold.backends.llvm.text import Fragment
from tenfold.backends.llvm.writer import BITS

_TURNS = STRETCH // THREADS  # elements that a thread brings
_PROCESSORS = 132  # of a large chip
_FIRST, _SECOND = 8, 6  # blocks of threads that are meant to share one, by 32 bits of a result
_AT_ONCE = 8  # results that are on their way while as many are joined


def stretch_launches(
    symbol: str, count: int, lines: int, span: int, size: int
) -> tuple[list[RoutineLaunch], int]:
    """The launches for lines of `count` lanes, and the bytes that the first leaves the second."""
    stretches = -(-count // STRETCH)
    each = -(-lines * stretches // resident(size * span))
    parts = -(-stretches // each)
    totals = lines * stretches * span
    words = tuple((word, 8) for word in (count, stretches, totals, each, parts))
    return [
        RoutineLaunch(f"{symbol}_carries", lines * stretches, THREADS, (0, 2), words[:3]),
        RoutineLaunch(f"{symbol}_stretches", lines * parts, THREADS, (0, 1, 2), words),
    ], totals * (1 + THREADS) * size


def resident(size: int) -> int:
    """How many blocks of the second function a large chip has at a time, for results of so many
    bytes."""
    return _PROCESSORS * _shared(_SECOND, size)


def _shared(blocks: int, size: int) -> int:
    return blocks if size <= 4 else blocks // 2


class StretchFold(LineFold):
    """What writes the functions."""

    def function(self, name: str, target: CudaTarget) -> Fragment:
        return self.first(target) if name == "carries" else self.second(target)

    def _begin(
        self, name: str, target: CudaTarget, arrays: str, words: tuple[str, ...], blocks: int
    ) -> None:
        kept = {"x": self.memory, "y": self.memory, "b": self.type}
        least = _shared(blocks, BITS[self.type] // 8 * self.span)
        f = self.f = RoutineFunction(
            f"{self.symbol}_{name}", target, THREADS, [(a, kept[a]) for a in arrays], words, least
        )
        self.reserve()
        self.thread = f.sreg("tid.x")

    def first(self, target: CudaTarget) -> Fragment:
        """What comes before each block in its stretch, and what each stretch comes to."""
        self._begin("carries", target, "xb", ("count", "stretches", "totals"), _FIRST)
        f, w = self.f, self.f.w
        number = f.long(f.sreg("ctaid.x"))
        line, stretch = self._apart("%stretches")
        self._place(line, stretch)
        self._stage_all()
        wait(w)
        self.tell(self.thread, self.own(self.thread)[1])
        wait(w)

        def along() -> None:
            total = self._along([self.nothing()] * self.span, str(THREADS), True)
            for part, x in enumerate(total):
                f.write("b", self._total(number, part), x)

        f.when(w.op(f"icmp eq i32 {self.thread}, 0"), along)
        wait(w)
        for part, x in enumerate(self.carries(self.thread)):
            f.write("b", self._carry(number, part), x)
        return f.text()

    def second(self, target: CudaTarget) -> Fragment:
        """All elements of some stretches, joined with what comes before them."""
        words = ("count", "stretches", "totals", "each", "parts")
        self._begin("stretches", target, "xyb", words, _SECOND)
        f, w = self.f, self.f.w
        line, low = self._apart("%parts")
        low = f.num("mul", "i64", low, "%each")
        high = w.intrinsic("smin", "i64", f.num("add", "i64", low, "%each"), "%stretches")
        row = f.num("mul", "i64", line, "%stretches")
        last = f.num("sub", "i64", "%stretches", 1)

        def brought(stretch: str) -> list[str]:
            number = f.num("add", "i64", row, w.intrinsic("smin", "i64", stretch, last))
            places = [self._total(number, part) for part in range(self.span)]
            places += [self._carry(number, part) for part in range(self.span)]
            return [f.read("b", place) for place in places]

        def bring(stretch: str) -> None:
            self._place(line, stretch)
            self._stage_all()

        # A stretch is on its way while all that comes before it is gone along, or written.
        bring(low)
        first = brought(low)
        bases = self._base(row, low)

        def one(stretch: Position, held: list[str]) -> list[str]:
            bases, totals, carries = (held[n * self.span : (n + 1) * self.span] for n in range(3))
            self._place(line, str(stretch))
            wait(w)
            given, made = self.own(self.thread)
            end = f.num("mul", "i32", f.num("add", "i32", self.thread, 1), BLOCK)
            whole = w.op(f"icmp sle i32 {end}, {self.left}")
            self.finish(self.thread, whole, given, made, carries, bases)
            wait(w)
            self._unstage_all()
            following = f.num("add", "i64", str(stretch), 1)
            f.when(w.op(f"icmp slt i64 {following}, {high}"), lambda: bring(following))
            bases = [self.joined(x, total) for x, total in zip(bases, totals, strict=True)]
            return [*bases, *brought(following)]

        loop(w, "i64", low, high, 1, [(self.type, x) for x in (*bases, *first)], one)
        return f.text()

    # Where things lie.

    def _apart(self, count: str) -> tuple[str, str]:
        """The line of this block of threads, and which of so many it has of that. There is no
        quick quotient of 64 bits."""
        f = self.f
        block, count = f.sreg("ctaid.x"), f.short(count)
        line = f.num("udiv", "i32", block, count)
        rest = f.num("sub", "i32", block, f.num("mul", "i32", line, count))
        return f.long(line), f.long(rest)

    def _total(self, number: str, part: int) -> str:
        """Of what a stretch comes to, by its number among all."""
        f = self.f
        return f.num("add", "i64", f.num("mul", "i64", number, self.span), part)

    def _carry(self, number: str, part: int) -> str:
        """Of what comes before a thread's block: those of all threads side by side."""
        f = self.f
        row = f.num("mul", "i64", self._total(number, part), THREADS)
        return f.num("add", "i64", f.num("add", "i64", "%totals", row), f.long(self.thread))

    def _place(self, line: str, stretch: str) -> None:
        """Find where the first element lies that this thread brings; the others follow in steps.
        And how many lanes the stretch has."""
        f = self.f
        start = f.num("mul", "i64", stretch, STRETCH)
        at = f.num("add", "i64", start, f.long(self.thread))
        begins = f.num("mul", "i64", line, "%count")
        self.place = f.num("add", "i64", begins, self.turned(at, "%count"))
        left = f.num("sub", "i64", "%count", start)
        self.left = f.short(f.w.intrinsic("smin", "i64", left, str(STRETCH)))

    def _turns(self, inside: bool) -> list[tuple[str, str, str]]:
        """Of each element that this thread brings where it lies, where it is staged, and whether it
        is there, if that is to be asked."""
        f, step = self.f, "sub" if self.reverse else "add"
        own = f.num("add", "i32", self.thread, f.num("lshr", "i32", self.thread, 4))
        found = []
        for n in range(_TURNS):
            slot = f.num("add", "i32", self.thread, n * THREADS)
            found.append((
                f.num(step, "i64", self.place, n * THREADS),
                f.num("add", "i32", own, n * (THREADS + THREADS // BLOCK)),
                f.w.op(f"icmp slt i32 {slot}, {self.left}") if inside else "true",
            ))  # fmt: skip
        return found

    def _both_ways(self, do: object) -> None:
        """Where a stretch is whole, nothing is asked of its elements."""
        f = self.f
        whole = f.w.op(f"icmp eq i32 {self.left}, {STRETCH}")
        f.when(whole, lambda: do(self._turns(False)))  # type: ignore[operator]
        f.when(f.num("xor", "i1", whole, "true"), lambda: do(self._turns(True)))  # type: ignore[operator]

    def _stage_all(self) -> None:
        f = self.f

        def do(turns: list[tuple[str, str, str]]) -> None:
            found = [f.where(there, self.memory, lambda place=place: f.read("x", place))  # type: ignore[misc]
                     for place, _, there in turns]  # fmt: skip
            for (_, slot, _), x in zip(turns, found, strict=True):
                f.put(self.staged, self.memory, slot, x)

        self._both_ways(do)

    def _unstage_all(self) -> None:
        f = self.f

        def do(turns: list[tuple[str, str, str]]) -> None:
            found = [f.get(self.staged, self.memory, slot) for _, slot, _ in turns]
            for (place, _, there), x in zip(turns, found, strict=True):
                f.when(there, lambda place=place, x=x: f.write("y", place, x))  # type: ignore[misc]

        self._both_ways(do)

    # Going along.

    def _along(self, carries: list[str], upto: str, keep: bool) -> list[str]:
        """Join so many results in shared memory, one after the other, with what comes before; with
        `keep` each is replaced by that. Some are on their way while those before are joined."""
        f, w = self.f, self.f.w
        parts = range(self.span)

        def brought(at: str) -> list[str]:
            return [x for part in parts for x in self._some(at, part)]

        def body(at: Position, held: list[str]) -> list[str]:
            carries, now = held[: self.span], held[self.span :]
            following = f.num("add", "i32", str(at), _AT_ONCE)
            last = w.intrinsic("umin", "i32", following, str(THREADS - _AT_ONCE))
            onward = brought(last)
            for part in parts:
                before = []
                for x in now[part * _AT_ONCE : (part + 1) * _AT_ONCE]:
                    before.append(carries[part])
                    carries[part] = self.joined(carries[part], x)
                if keep:
                    self._leave(str(at), part, before)
            return [*carries, *onward]

        slots = [(self.type, x) for x in (*carries, *brought("0"))]
        return loop(w, "i32", 0, upto, _AT_ONCE, slots, body)[: self.span]

    def _wide(self, at: str, part: int) -> tuple[str, int, list[str]]:
        """Where some results lie in shared memory, as vectors: their type, length and places."""
        size = BITS[self.type] // 8
        length = min(4, 16 // size)
        first = self.f.num("add", "i32", at, part * THREADS)
        places = [self.f.num("add", "i32", first, n) for n in range(0, _AT_ONCE, length)]
        found = [self.f.place(self.chain, self.type, place) for place in places]
        return f"<{length} x {self.type}>", length, found

    def _some(self, at: str, part: int) -> list[str]:
        w, (many, length, places) = self.f.w, self._wide(at, part)
        align = length * BITS[self.type] // 8
        found = [w.op(f"load {many}, {SHARED} {place}, align {align}") for place in places]
        return [w.op(f"extractelement {many} {x}, i64 {n}") for x in found for n in range(length)]

    def _leave(self, at: str, part: int, values: list[str]) -> None:
        w, (many, length, places) = self.f.w, self._wide(at, part)
        for k, place in enumerate(places):
            whole = "poison"
            for n, x in enumerate(values[k * length : (k + 1) * length]):
                whole = w.op(f"insertelement {many} {whole}, {self.type} {x}, i64 {n}")
            align = length * BITS[self.type] // 8
            w.put(f"store {many} {whole}, {SHARED} {place}, align {align}")

    def _base(self, row: str, stretches: str) -> list[str]:
        """What comes before this block's stretches: the first thread joins so many results, which
        all threads bring."""
        f, w, span = self.f, self.f.w, self.span
        leads = w.op(f"icmp eq i32 {self.thread}, 0")

        def brought(first: str) -> list[str]:
            at = f.num("add", "i64", first, f.long(self.thread))
            there = w.op(f"icmp slt i64 {at}, {stretches}")
            number = f.num("add", "i64", row, at)

            def one(part: int) -> Text:
                return f.where(there, self.type, lambda: f.read("b", self._total(number, part)))

            return [w.select(there, self.type, one(part), self.nothing()) for part in range(span)]

        def body(first: Position, held: list[str]) -> list[str]:
            carries, now = held[:span], held[span:]
            for part, x in enumerate(now):
                f.put(self.chain, self.type, f.num("add", "i32", self.thread, part * THREADS), x)
            wait(w)
            after = f.num("add", "i64", str(first), THREADS)
            following = brought(after)
            left = f.num("sub", "i64", stretches, str(first))
            left = f.short(w.intrinsic("smin", "i64", left, str(THREADS)))
            made = guarded(w, leads, lambda: self._along(carries, left, False), [self.type] * span)
            wait(w)
            return [*made, *following]

        slots = [(self.type, x) for x in (*[self.nothing()] * span, *brought("0"))]
        carries = loop(w, "i64", "0", stretches, THREADS, slots, body)[:span]

        def tell() -> None:
            for part, x in enumerate(carries):
                f.put(self.chain, self.type, str(part), x)

        f.when(leads, tell)
        wait(w)
        found = [f.get(self.chain, self.type, str(part)) for part in range(span)]
        wait(w)
        return found
