"""Ranks within a block of threads: where each of its items goes when they are sorted by one digit,
those of equal digits in their order.

A warp has neighbouring items, a row of 32 at a time. By votes each lane knows which lanes of its
row have the same digit; the first of them counts all of them for the warp. Then a thread for each
digit adds up what the warps have counted, and a scan over digits says where each begins.
"""

from __future__ import annotations

from tenfold.backends.cuda.emit.team import wait
from tenfold.backends.cuda.library.function import SHARED, Code
from tenfold.backends.cuda.target import WARP

THREADS = 256
DIGIT = 8  # bits
DIGITS = 1 << DIGIT
_WARPS = THREADS // WARP


class Ranking:
    """What a function of THREADS threads, one for each digit, ranks with."""

    def __init__(self, f: Code) -> None:
        self.f, self.w = f, f.w
        self.counts = f.reserve("i32", _WARPS * DIGITS)
        self.sums = f.reserve("i32", _WARPS)
        self.thread = f.sreg("tid.x")
        self.lane = f.num("and", "i32", self.thread, WARP - 1)
        self.warp = f.num("lshr", "i32", self.thread, 5)
        self.below = f.num("sub", "i32", f.num("shl", "i32", 1, self.lane), 1)

    def item(self, rows: int, row: int) -> str:
        """The number of a thread's item in the block's, of so many rows a warp."""
        f = self.f
        first = f.num("mul", "i32", self.warp, rows * WARP)
        return f.num("add", "i32", f.num("add", "i32", first, self.lane), row * WARP)

    def ranked(self, digits: list[str]) -> tuple[list[str], str]:
        """Where a thread's items go in the block, and where the digit of the thread's number
        begins there. `digits` are those of its items, row by row."""
        f, w = self.f, self.w
        own = f.num("mul", "i32", self.warp, DIGITS)
        for n in range(_WARPS):
            f.put(self.counts, "i32", f.num("add", "i32", self.thread, n * THREADS), "0")
        wait(w)
        # A digit beside its rank, in one register: there are many of them.
        ranks = [
            f.num("or", "i32", f.num("shl", "i32", digit, 16), self._rank(own, digit))
            for digit in digits
        ]
        wait(w)
        places = [f.num("add", "i32", self.thread, n * DIGITS) for n in range(_WARPS)]
        found = [f.get(self.counts, "i32", place) for place in places]
        total = "0"
        for x in found:
            total = f.num("add", "i32", total, x)
        start = self.scanned(total)
        at = start
        for place, x in zip(places, found, strict=True):
            f.put(self.counts, "i32", place, at)
            at = f.num("add", "i32", at, x)
        wait(w)
        made = []
        for both in ranks:
            digit, rank = f.num("lshr", "i32", both, 16), f.num("and", "i32", both, 0xFFFF)
            first = f.get(self.counts, "i32", f.num("add", "i32", own, digit))
            made.append(f.num("add", "i32", first, rank))
        return made, start

    def _rank(self, own: str, digit: str) -> str:
        """How many items of the warp with this digit come before: of earlier rows, and of this."""
        f, w = self.f, self.w
        alike = "-1"
        for bit in range(DIGIT):
            shifted = f.num("lshr", "i32", digit, bit) if bit else digit
            there = w.op(f"trunc i32 {shifted} to i1")
            votes = f.votes(there)
            other = w.op(f"select i1 {there}, i32 0, i32 -1")
            alike = f.num("and", "i32", alike, f.num("xor", "i32", votes, other))
        before = w.intrinsic("ctpop", "i32", f.num("and", "i32", alike, self.below))
        place = f.place(self.counts, "i32", f.num("add", "i32", own, digit))

        def counted() -> str:
            count = w.intrinsic("ctpop", "i32", alike)
            return w.op(f"atomicrmw add {SHARED} {place}, i32 {count} monotonic, align 4")

        old = f.where(w.op(f"icmp eq i32 {before}, 0"), "i32", counted)
        first = w.call("i32", "llvm.cttz.i32", ("i32", alike), ("i1", "false"))
        return f.num("add", "i32", f.picked("i32", old, first), before)

    def scanned(self, x: str) -> str:
        """The sum of what all threads before this one have."""
        f, w = self.f, self.w
        up_to = f.before(x, self.lane)
        last = w.op(f"icmp eq i32 {self.lane}, {WARP - 1}")
        f.when(last, lambda: f.put(self.sums, "i32", self.warp, up_to))
        wait(w)
        base = "0"
        for n in range(_WARPS - 1):
            earlier = w.op(f"icmp ult i32 {n}, {self.warp}")
            found = f.get(self.sums, "i32", str(n))
            base = f.num("add", "i32", base, w.op(f"select i1 {earlier}, i32 {found}, i32 0"))
        wait(w)  # the memory may be written to again
        return f.num("add", "i32", base, f.num("sub", "i32", up_to, x))
