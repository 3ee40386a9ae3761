"""Loops as text: scalar ones, and ranges of an axis laid across lanes with their tails."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from operator import index

from tenfold.backends.cpu.emit.memory import element_size, pointer, stream_bytes
from tenfold.backends.cpu.emit.polling import PollCounter
from tenfold.backends.cpu.emit.reductions import Slot
from tenfold.backends.cpu.emit.state import EmitState, Position
from tenfold.backends.cpu.schedule.schedule import Schedule
from tenfold.backends.llvm.writer import LANES, Writer, vector
from tenfold.kernel.ir.kernel import SEQUENTIAL, Kernel
from tenfold.kernel.ir.number import Facts

Body = Callable[[Position, list[str]], list[str]]


class Loops:
    """What every part of an emission shares: the kernel, the text so far, and making loops."""

    def __init__(
        self, kernel: Kernel, schedule: Schedule, w: Writer, facts: Facts | None = None
    ) -> None:
        self.kernel = kernel
        self.facts = facts
        self.schedule = schedule
        self.w = w
        self.s = EmitState(kernel, w)
        self.reducing = any(i.op == "reduce" for i in kernel.instructions)
        # Whether a vector of rows that are reduced too takes long: it is not computed in vain.
        calls = any(i.op == "call" for i in kernel.instructions)
        self.heavy = self.reducing and calls and not schedule.small
        self.fenced = False  # streamed stores have to be fenced in the end
        self.polls = PollCounter(kernel, schedule.small)
        self.memory: list[tuple[str, int]] = []  # private memory: name and bytes

    def sum(self, a: Position, b: int) -> Position:
        return a + b if isinstance(a, int) else self.w.op(f"add nsw i64 {a}, {b}") if b else a

    def least(self, a: Position, b: Position) -> Position:
        if isinstance(a, int) and isinstance(b, int):
            return min(a, b)
        return self.w.intrinsic("smin", "i64", str(a), str(b))

    def private(self, size: int) -> str:
        """Memory on the stack, reserved once for the whole call."""
        name = "%" + self.w.fresh("m")
        self.memory.append((name, index(size)))
        return name

    def loop(
        self,
        low: Position,
        high: Position,
        step: int,
        carried: Sequence[Slot],
        body: Body,
        most: int = 0,
        *,
        empty: bool = True,
    ) -> list[str]:
        """Positions from low to high; what the last trip carried. A single trip stands alone.
        Where the bounds are known only when it runs, they lie `most` apart at most, and there may
        be no trip unless `empty` is False."""
        w = self.w
        first = [x for _, x in carried]
        if isinstance(low, int) and isinstance(high, int):
            if high <= low:
                return first
            if high - low <= step:
                return body(low, first)
        before, head, end = w.block, w.fresh("loop"), w.fresh("end")
        dynamic = empty and not (isinstance(low, int) and isinstance(high, int))
        if dynamic:
            some = w.op(f"icmp slt i64 {low}, {high}")
            w.put(f"br i1 {some}, label %{head}, label %{end}")
        else:
            w.put(f"br label %{head}")
        w.label(head)
        i, slot = f"%{w.fresh('i')}", len(w.lines)
        w.lines.append("")
        names = [f"%{w.fresh('c')}" for _ in carried]
        reach = most if isinstance(low, str) or isinstance(high, str) else high - low
        with self.polls.measured(w, -(-reach // step)) as measure:
            results = body(i, names)
        following = w.op(f"add nuw nsw i64 {i}, {step}")
        if measure.turns:
            self.polls.poll(w, following, step, measure.turns)
        latch = w.block
        again = w.op(f"icmp slt i64 {following}, {high}")
        w.put(f"br i1 {again}, label %{head}, label %{end}")
        phis = [f"  {i} = phi i64 [ {low}, %{before} ], [ {following}, %{latch} ]"]
        for name, (ty, x), result in zip(names, carried, results, strict=True):
            phis.append(f"  {name} = phi {ty} [ {x}, %{before} ], [ {result}, %{latch} ]")
        w.lines[slot] = "\n".join(phis)
        w.label(end)
        if not dynamic:
            return results
        out = []
        for (ty, x), result in zip(carried, results, strict=True):
            out.append(w.op(f"phi {ty} [ {x}, %{before} ], [ {result}, %{latch} ]"))
        return out

    def first(
        self, low: Position, high: Position, step: int, test: Callable[[Position], str], most: int
    ) -> str:
        """The first position from low to high that passes a test; high, a whole number of steps
        away, where none does."""
        w = self.w
        before, head, on, end = w.block, *(w.fresh(name) for name in ("look", "on", "end"))
        w.put(f"br i1 {w.op(f'icmp slt i64 {low}, {high}')}, label %{head}, label %{end}")
        w.label(head)
        i, slot = f"%{w.fresh('i')}", len(w.lines)
        w.lines.append("")
        with self.polls.measured(w, -(-most // step)) as measure:
            passed = test(i)
        looked = w.block
        w.put(f"br i1 {passed}, label %{end}, label %{on}")
        w.label(on)
        following = w.op(f"add nuw nsw i64 {i}, {step}")
        if measure.turns:
            self.polls.poll(w, following, step, measure.turns)
        latch = w.block
        again = w.op(f"icmp slt i64 {following}, {high}")
        w.put(f"br i1 {again}, label %{head}, label %{end}")
        w.lines[slot] = f"  {i} = phi i64 [ {low}, %{before} ], [ {following}, %{latch} ]"
        w.label(end)
        ways = f"[ {low}, %{before} ], [ {i}, %{looked} ], [ {following}, %{latch} ]"
        return w.op(f"phi i64 {ways}")

    def part(self, axis: int, low: int, high: int) -> tuple[Position, Position]:
        """The bounds of a segment: of the outer axis, only what this call is to run."""
        extent = self.kernel.axes[axis].extent
        if axis != self.schedule.outer or (
            isinstance(extent, int) and extent <= self.schedule.grain
        ):
            return low, high
        w = self.w
        begin: str = "%low"
        end: str = "%high"
        if low:
            begin = w.intrinsic("smax", "i64", begin, str(low))
        if high != extent:
            end = w.intrinsic("smin", "i64", end, str(high))
        return begin, end

    def lane_range(
        self,
        axis: int,
        low: int,
        high: int,
        begin: Position,
        end: Position,
        inner: Callable[[], None],
        exact: bool | None = None,
        most: int = 0,
    ) -> None:
        """Run `inner` with lanes along a range of an axis that lies within [low, high). Where
        it is `exact`, ranges are multiples of all copies; where that is False, they begin and
        end anywhere. They are no longer than `most`, if given; what is no longer than a trip of all
        copies is done vector by vector."""
        extent = high - low
        static = isinstance(begin, int) and isinstance(end, int)
        wanted = self.schedule.copies
        if static:
            extent = end - begin  # type: ignore[operator]
            wanted = min(wanted, -(-extent // LANES))
        if most and most <= LANES * wanted:
            wanted = 1
        reach = LANES * wanted
        anywhere = exact is False
        # Where a range begins is known of plain numbers alone.
        multiple = 1
        if isinstance(low, int) and not anywhere:
            multiple = next(n for n in (reach, LANES, 1) if low % n == 0)

        def run(
            start: Position,
            stop: Position,
            copies: int,
            mode: str,
            multiple: int = multiple,
            most: int = most or extent,
        ) -> None:
            """Trips of so many copies, with masks as the mode says."""

            def body(i: Position, _: list[str]) -> list[str]:
                if mode == "overlap":
                    i = self.w.intrinsic("smin", "i64", str(i), str(high - LANES * copies))
                with self.s.inside(axis, i, low, high):
                    self.s.lane, self.s.copies = axis, copies
                    self.s.aligned, self.s.multiple = multiple % LANES == 0, multiple
                    self.s.masks = [None] * copies
                    if mode == "stream":
                        self.s.streaming = self.schedule.stream
                    if mode == "each":
                        self.s.masks = self.live(i, stop, copies)
                    elif mode == "rest":
                        self.s.masks = self.last_lanes(i, stop, copies)
                    elif mode == "last":
                        self.s.masks[-1] = self.first_lanes(extent % LANES)
                    inner()
                return []

            self.loop(start, stop, LANES * copies, (), body, most)

        streams = self.schedule.stream
        by_lines = self.schedule.lined if streams is None else streams
        if by_lines is not None and extent >= 2 * reach:
            first, last = self.aligned_part(by_lines, axis, begin, end, reach)
            run(first, last, wanted, "whole" if streams is None else "stream", 1)
            overlaps = streams is None and not self.w.masked

            def edge(which: Position, _: list[str]) -> list[str]:
                """What lies before the first aligned vector, then what lies after the last."""
                before = self.w.op(f"icmp eq i64 {which}, 0")
                low_end = self.w.select(before, "i64", str(begin), last)
                high_end = self.w.select(before, "i64", first, str(end))
                run(low_end, high_end, 1, "overlap" if overlaps else "each", 1, reach)
                return []

            self.loop(0, 2, 1, (), edge)
            if streams is not None:
                self.w.declare("void @llvm.x86.sse.sfence()")
                self.fenced = True
        elif exact or (isinstance(extent, int) and extent % reach == 0 and not anywhere):
            run(begin, end, wanted, "whole")
        elif not static and self.heavy and begin is low and end is high:
            whole = high - extent % reach
            run(begin, whole, wanted, "whole")
            count = self.last_round(extent, reach)
            overlaps = self.schedule.overlap and not (self.w.masked or self.reducing)
            if count and overlaps and extent >= LANES * count:
                run(whole, end, count, "overlap", 1, reach)
            elif count:
                run(whole, end, count, "rest", most=reach)
        elif not static:
            sequential = self.kernel.axes[axis].kind == SEQUENTIAL
            light = wanted == 1 and not (self.schedule.small or isinstance(extent, int))
            if self.w.masked and not (anywhere or sequential or light):
                run(begin, end, wanted, "each")
                return
            overlaps = self.schedule.overlap and not self.w.masked
            main: Position
            if overlaps and self.schedule.small:
                if self.reducing:
                    long = self.w.op(f"icmp sge i64 {extent}, {reach}")
                    main = self.w.select(long, "i64", str(end), str(begin))
                    run(begin, main, wanted, "overlap", 1)
                elif extent >= reach:
                    run(begin, end, wanted, "overlap", 1)
                    return
                else:
                    main = begin
            else:
                main = self.whole_part(begin, end, reach)
                run(begin, main, wanted, "whole")
                if overlaps and extent >= LANES:
                    run(main, end, 1, "overlap", 1)
                    return
            if self.schedule.period:
                run(main, end, wanted, "each")
                return
            # With masks on all copies most of the last ones would be wholly masked off.
            single = min(multiple, LANES)
            if wanted > 1 and not (self.w.masked or overlaps):  # masks are slow
                begin, main = main, self.whole_part(main, end, LANES)
                run(begin, main, 1, "whole", single)
            run(main, end, 1, "each", single)
        elif (
            extent < reach + LANES
            or not self.w.masked
            or self.reducing
            or extent % LANES == 0
            or self.kernel.axes[axis].kind == SEQUENTIAL  # which lanes store is known beforehand
        ):
            assert isinstance(begin, int)
            assert isinstance(end, int)
            left = extent % reach
            overlapping = not self.w.masked and self.schedule.overlap and extent > reach
            if overlapping and extent % LANES and not self.reducing:
                run(begin, end, wanted, "overlap", 1)
                return
            run(begin, end - left, wanted, "whole")
            if left:
                mode = "last" if left % LANES else "whole"
                run(end - left, end, -(-left // LANES), mode)
        else:
            run(begin, end, wanted, "each")

    def last_round(self, extent: int, reach: int) -> int:
        """How many vectors a range of this extent has after the last whole trip: what is asked of
        a general kernel, so that nothing is computed for lanes that are all masked off."""
        return index((extent % reach + LANES - 1) // LANES)

    def last_lanes(self, i: Position, end: Position, copies: int) -> list[str | None]:
        """The masks of so many vectors from here, of which the last alone may go past the end."""
        masks: list[str | None] = [None] * (copies - 1)
        return [*masks, *self.live(self.sum(i, (copies - 1) * LANES), end, 1)]

    def whole_part(self, begin: Position, end: Position, reach: int) -> str:
        """The end of as many whole trips as a range has."""
        w = self.w
        if isinstance(begin, int) and begin == 0 and reach & (reach - 1) == 0:
            return w.op(f"and i64 {end}, {-reach}")  # LLVM takes this out of loops around
        rest = w.op(f"srem i64 {w.op(f'sub nsw i64 {end}, {begin}')}, {reach}")
        return w.op(f"sub nsw i64 {end}, {rest}")

    def aligned_part(
        self, number: int, axis: int, begin: Position, end: Position, reach: int
    ) -> tuple[str, str]:
        """The part of a range where a store is aligned and whole."""
        w, store = self.w, self.kernel.stores[number]
        dtype = self.kernel.buffers[store.buffer].dtype
        with self.s.inside(axis, begin, 0, 1):
            start = pointer(self.s, store.buffer, store.index, 0)
        address = w.op(f"ptrtoint ptr {start} to i64")
        short = w.op(f"sub i64 0, {address}")
        short = w.op(f"and i64 {short}, {stream_bytes(dtype) - 1}")
        short = w.op(f"udiv exact i64 {short}, {element_size(dtype)}")
        first = w.op(f"add nsw i64 {short}, {begin}")
        first = w.intrinsic("smin", "i64", first, str(end))
        length = w.op(f"sub nsw i64 {end}, {first}")
        whole = w.op(f"and i64 {length}, {-reach}")
        return first, w.op(f"add nsw i64 {first}, {whole}")

    def live(self, i: Position, end: Position, copies: int) -> list[str | None]:
        """The lanes of each copy that lie before the end."""
        w, ty = self.w, vector("i32")
        left = w.op(f"sub nsw i64 {end}, {i}")
        most = w.intrinsic("smin", "i64", left, str(LANES * copies))
        short = w.splat("i32", w.op(f"trunc i64 {most} to i32"))
        firsts = (w.iota("i32", 1, LANES * copy) for copy in range(copies))
        return [w.op(f"icmp sgt {ty} {short}, {first}") for first in firsts]

    def first_lanes(self, count: int) -> str:
        return "<" + ", ".join(f"i1 {'true' if n < count else 'false'}" for n in range(LANES)) + ">"
