"""Convolutions where each out channel has its own sum over few terms (depthwise ones, filters of a
line), as LLVM IR: one function for each dtype, called as that of panels is.

Vectors of the result lie along its lines, one behind the other; the last of a line reaches into
the next, which is stored later. For each term a vector of the input, read as it lies there, meets
the kernel's element: `VECTORS` vectors at a time, so nothing is packed. The places of a block's
vectors are worked out once for all planes. Vectors at the end of a block, or of the input, go one
by one, with the lanes that there are.
"""

from __future__ import annotations

from tenfold.backends.cpu.library.conv.sizes import BLOCK, DIRECT_WORDS, TERMS
from tenfold.backends.cpu.library.lanes import Lanes
from tenfold.backends.cpu.library.loops import each, look_text, poll, when
from tenfold.backends.llvm import masks
from tenfold.backends.llvm.target import LLVMTarget
from tenfold.backends.llvm.text import Fragment, join
from tenfold.backends.llvm.writer import COMPUTE, Writer

VECTORS = 8  # at a time
PLACE = 3  # words of a vector's place: in the input, in the result, and how many lanes it has


def direct_text(symbol: str, target: LLVMTarget) -> str:
    """The module of the function that has this name."""
    element = COMPUTE[symbol.rpartition("_")[2]]
    w = Writer(target)
    body = look_text(3)
    for step in (1, 2):
        body += _Vectors(f"{symbol}_many{step}", element, step, VECTORS, w).text()
        body += _Vectors(f"{symbol}_one{step}", element, step, 1, w).text()
    body += _Blocks(symbol, element, w).text()
    return join([Fragment(tuple(sorted(w.declared)), body)])


class _Vectors(Lanes):
    """What writes a function that sums up some vectors, or one with the lanes that it has."""

    def __init__(self, name: str, element: str, step: int, count: int, w: Writer) -> None:
        super().__init__(element, w)
        self.name, self.step, self.count = name, step, count

    def text(self) -> str:
        w = self.w
        w.block = "entry"
        starts = [self.at("%x", self.get("%places", str(PLACE * v))) for v in range(self.count)]
        mask: list[str | None] = [None] * self.step
        if self.count == 1:
            lanes = self.get("%places", "2")
            mask = [self.reached(lanes, self.step, part) for part in range(self.step)]
        w.put("br label %terms")
        w.label("terms")
        w.put("%i = phi i64 [ 0, %entry ], [ %i.more, %terms ]")
        for v in range(self.count):
            w.put(f"%s{v} = phi {self.type} [ zeroinitializer, %entry ], [ %t{v}, %terms ]")
        offset = self.get("%offsets", "%i")
        factor = self.every_lane(self.at("%w", "%i"))
        for v, start in enumerate(starts):
            here = self.at(start, offset)
            parts = [
                masks.load(w, self.at(here, str(n * self.lanes)), self.element, one, self.lanes)
                for n, one in enumerate(mask)
            ]
            self.add_product(factor, self.apart(parts), f"%s{v}", f"%t{v}")
        w.put("%i.more = add nuw i64 %i, 1")
        w.put("%i.on = icmp ult i64 %i.more, %count")
        w.put("br i1 %i.on, label %terms, label %end")
        w.label("end")
        for v in range(self.count):
            to = self.at("%y", self.get("%places", str(PLACE * v + 1)))
            whole = None if self.count > 1 else self.below(lanes)
            masks.store(w, to, self.element, f"%t{v}", whole, self.lanes)
        w.put("ret void")
        return f"""
define internal void @{self.name}(
  ptr noalias %places, ptr noalias %x, ptr noalias %w, ptr noalias %offsets, i64 %count,
  ptr noalias %y) noinline nounwind "prefer-vector-width"="512" {{
entry:
{w.taken()}}}
"""


class _Blocks(Lanes):
    """What writes the function itself."""

    def __init__(self, symbol: str, element: str, w: Writer) -> None:
        super().__init__(element, w)
        self.symbol = symbol

    def text(self) -> str:
        w = self.w
        w.block = "entry"
        x, kernel, y = (self.buffer(n) for n in range(3))
        given = {name: self.get("%params", str(n)) for n, name in enumerate(DIRECT_WORDS)}
        self.given = given
        taps = w.op(f"getelementptr i64, ptr %params, i64 {len(DIRECT_WORDS)}")
        self.places = w.op(f"alloca i64, i64 {PLACE * BLOCK}, align 16")
        offsets = w.op(f"alloca i64, i64 {TERMS}, align 16")
        self.many, self.end, known = (w.op("alloca i64, align 8") for _ in range(3))
        with each(w, "0", given["channels"]) as channel:
            far = self.times(channel, given["channel"])
            first = self.times(channel, given["taps"])
            with each(w, "0", given["taps"]) as tap:
                self.put(self.total(far, self.get(taps, tap)), offsets, self.total(first, tap))
        last = self.total(given["terms"], "-1")
        reach = self.total(self.get(offsets, last), str(2 * self.lanes))
        self.put("-1", known)
        with each(w, "%low", "%high") as chunk:
            block, plane = self.split(chunk, given["planes"])
            with when(w, w.op(f"icmp ne i64 {block}, {self.get(known)}")):
                self.put(block, known)
                self.lay(block)
            many = self.get(self.many)
            image, out = self.split(plane, given["outs"])
            group = w.op(f"udiv i64 {out}, {given['rows']}")
            seen = self.times(group, self.times(given["channels"], given["channel"]))
            start = self.total(self.times(image, given["image"]), seen)
            source, target = self.at(x, start), self.at(y, self.times(plane, given["plane"]))
            factors = self.at(kernel, self.times(out, given["terms"]))
            # What may be read, and written, in whole vectors.
            seen_end = self.less(self.less(given["elements"], start), reach)
            end = self.less(self.get(self.end), str(self.lanes))
            others = (
                f"ptr {source}, ptr {factors}, ptr {offsets}, i64 {given['terms']}, ptr {target}"
            )
            whole = w.op(f"udiv i64 {many}, {VECTORS}")
            with each(w, "0", whole) as number:
                first = self.times(number, str(VECTORS))
                last = self.times(self.total(first, str(VECTORS - 1)), str(PLACE))
                read = w.op(f"icmp sle i64 {self.get(self.places, last)}, {seen_end}")
                there = self.get(self.places, self.total(last, "1"))
                written = w.op(f"icmp sle i64 {there}, {end}")
                inside = w.op(f"and i1 {read}, {written}")
                with when(w, inside):
                    self.call("many", first, others)
                outside = w.op(f"xor i1 {inside}, true")
                with when(w, outside), each(w, first, self.total(first, str(VECTORS))) as one:
                    self.call("one", one, others)
            with each(w, self.times(whole, str(VECTORS)), many) as one:
                self.call("one", one, others)
            poll(w)
        w.put("ret i32 0")
        return f"""
define dso_local i32 @{self.symbol}(
  ptr %buffers, ptr %params, i64 %low, i64 %high) nounwind "prefer-vector-width"="512" {{
entry:
{w.taken()}}}
"""

    def lay(self, block: str) -> None:
        """Work out the places of a block's vectors: of some lines, or of a piece of one."""
        w, given = self.w, self.given
        over, piece = self.split(block, given["pieces"])
        left = self.times(piece, str(BLOCK))
        right = self.least(self.total(left, str(BLOCK)), given["out2"])
        top = self.times(over, given["lines"])
        bottom = self.least(self.total(top, given["lines"]), given["all_lines"])
        self.put("0", self.many)
        with each(w, top, bottom) as line:
            slab, row = self.split(line, given["out1"])
            far = self.total(self.times(slab, given["step0"]), self.times(row, given["step1"]))
            below = self.times(line, given["out2"])
            with each(w, left, right, str(self.lanes)) as column:
                number = self.get(self.many)
                word = self.times(number, str(PLACE))
                self.put(self.total(far, self.times(column, given["step2"])), self.places, word)
                self.put(self.total(below, column), self.places, self.total(word, "1"))
                lanes = self.least(self.less(right, column), str(self.lanes))
                self.put(lanes, self.places, self.total(word, "2"))
                self.put(self.total(number, "1"), self.many)
            self.put(self.total(below, right), self.end)

    def call(self, which: str, number: str, others: str) -> None:
        """A call for the vectors from one on, for the step that there is."""
        w = self.w
        at = w.op(f"getelementptr i64, ptr {self.places}, i64 {self.times(number, str(PLACE))}")
        for step in (1, 2):
            with when(w, w.op(f"icmp eq i64 {self.given['step2']}, {step}")):
                w.put(f"call void @{self.symbol}_{which}{step}(ptr {at}, {others})")
