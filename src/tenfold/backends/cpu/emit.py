"""LLVM IR from a kernel and its schedule.

A kernel becomes one function,

    i32 name(ptr buffers, ptr params, i64 low, i64 high)

- `buffers`: the address of each buffer of the kernel, in order, scratch included.
- `params`: the parameters, each in 16 bytes of its own.
- `low`, `high`: the part of the schedule's outer axis to run, cut at multiples of its grain; the
  whole is 0 to its extent. Parts write different elements, or the same elements alike, so they
  may run at once, each with scratch buffers of its own.
- The answer has the bit of each check that failed; 0 is good.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise

from tenfold.backends.cpu.casts import bitcast, cast
from tenfold.backends.cpu.integers import power_routine
from tenfold.backends.cpu.memory import load, store
from tenfold.backends.cpu.operations import elementwise
from tenfold.backends.cpu.positions import as_value, inside, periodic
from tenfold.backends.cpu.reductions import Reduction, Slot
from tenfold.backends.cpu.schedule import Schedule
from tenfold.backends.cpu.spread import spread
from tenfold.backends.cpu.state import Parts, State, Val
from tenfold.backends.cpu.target import Target
from tenfold.backends.cpu.text import Fragment
from tenfold.backends.cpu.tiles import tile_routine, tiled
from tenfold.backends.cpu.writer import (
    LANES,
    MEMORY,
    Writer,
    kind,
    scalar_text,
    vector,
)
from tenfold.kernel.index import AXIS, MOD, Atom
from tenfold.kernel.kernel import BOTH, Kernel
from tenfold.kernel.nest import Compute, Guard, Item, Loop, Write, nest

PARAM_BYTES = 16

Position = int | str
Body = Callable[[Position, list[str]], list[str]]


@dataclass(frozen=True, slots=True)
class Code:
    """One kernel as text, with what it refers to."""

    name: str
    fragment: Fragment
    maths: frozenset[tuple[str, str, int]]  # functions of ours to define beside it
    outside: tuple[str, ...]  # functions of libm that are called lane by lane

    @property
    def size(self) -> int:
        return self.fragment.body.count("\n")


def emit(
    kernel: Kernel, schedule: Schedule, target: Target, name: str, strict: bool = False
) -> Code:
    """The text of one kernel. `strict` keeps products and sums apart."""
    w = Writer(
        contract=not strict,
        modern=target.half,
        masked=target.masked,
        fma=target.fma,
    )
    Emitter(kernel, schedule, w).function()
    wide = f' "prefer-vector-width"="{8 * target.vector_bytes}"' if target.vector_bytes > 16 else ""
    head = f"define i32 @{name}(ptr %buffers, ptr %params, i64 %low, i64 %high) nounwind{wide} {{"
    body = "\n".join((head, *w.lines, "}", ""))
    more = [
        power_routine(number) if which == "power" else tile_routine(number, w.masked, w.declared)
        for which, number in sorted(w.routines)
    ]
    private = "".join(more).replace("@local.", f"@{name}.")
    body = body.replace("@local.", f"@{name}.")
    fragment = Fragment(tuple(sorted(w.declared)), body + private)
    return Code(name, fragment, frozenset(w.maths), tuple(sorted(w.outside)))


class Emitter:
    """Walks the loops of a kernel and writes them."""

    def __init__(self, kernel: Kernel, schedule: Schedule, w: Writer) -> None:
        self.kernel = kernel
        self.schedule = schedule
        self.w = w
        self.s = State(kernel, w, schedule.lanes)
        self.reducing = any(i.op == "reduce" for i in kernel.instructions)
        self.memory: list[tuple[str, int]] = []  # private memory: name and bytes

    def function(self) -> None:
        w, kernel = self.w, self.kernel
        w.label("entry")
        start = len(w.lines)
        for n in range(len(kernel.buffers)):
            at = w.op(f"getelementptr ptr, ptr %buffers, i64 {n}") if n else "%buffers"
            w.lines.append(f"  %b{n} = load ptr, ptr {at}, align 8")
        if kernel.checks:
            w.lines.append("  store i32 0, ptr %fault, align 4")
        if all(kernel.axes[a].extent for a in self.schedule.order):
            self.block(nest(kernel, self.schedule.order, self.schedule.reduced))
        answer = w.op("load i32, ptr %fault, align 4") if kernel.checks else "0"
        w.put(f"ret i32 {answer}")
        memory = [f"  {m} = alloca [{size} x i8], align 64" for m, size in self.memory]
        if kernel.checks:
            memory.append("  %fault = alloca i32, align 4")
        w.lines[start:start] = memory

    def private(self, size: int) -> str:
        """Memory on the stack, reserved once for the whole call."""
        name = "%" + self.w.fresh("m")
        self.memory.append((name, size))
        return name

    # Instructions.

    def block(self, items: Sequence[Item]) -> None:
        for item in items:
            if isinstance(item, Compute):
                self.s.env[item.value] = self.compute(item.value)
            elif isinstance(item, Write):
                store(self.s, item.store)
            elif isinstance(item, Guard):
                self.guard(item.check)
            elif item.members:
                self.reduce(item)
            else:
                self.parallel(item)

    def compute(self, value: int) -> Val:
        s, w = self.s, self.w
        i = self.kernel.instructions[value]
        if value in s.env:  # a reduction's further states are there already
            found: Val = s.env[value]
            return found
        if i.op == "load":
            return load(s, value)
        if i.op == "const":
            return Val((scalar_text(i.dtype, i.attr[0]),), False)
        if i.op == "param":
            return Val((self.param(i.attr[0], i.dtype),), False)
        if i.op == "index":
            assert i.index is not None
            return as_value(s, i.index, i.dtype)
        if i.op == "inside":
            assert i.index is not None
            return inside(s, i.index, *i.attr)
        args: list[Val] = [s.env[a] for a in i.args]
        known = self.known(i.op, i.dtype, args)
        if known is not None:
            return known
        wide = any(a.wide for a in args)
        source = self.kernel.instructions[i.args[0]].dtype
        out: list[Parts] = []
        # What was loaded before the loop may have more copies than a tail.
        for copy in range(min(s.copies, max(len(a.copies) for a in args))):
            given = [s.get(a, copy, wide) for a in i.args]
            if i.op == "select":
                element = MEMORY[i.dtype] if i.dtype not in ("bool", "f16", "bf16") else ""
                ty = vector(element or ("i1" if i.dtype == "bool" else "float"), wide)
                pairs = zip(given[1], given[2], strict=True)
                out.append(tuple(w.select(given[0][0], ty, a, b) for a, b in pairs))
            elif i.op == "cast":
                out.append(cast(w, source, i.dtype, given[0], wide))
            elif i.op == "bitcast":
                out.append((bitcast(w, source, i.dtype, given[0][0], wide),))
            else:
                out.append(elementwise(w, i.op, i.dtype, source, given, wide))
        return Val(tuple(out), wide)

    def known(self, op: str, dtype: str, args: list[Val]) -> Val | None:
        """What conditions settled by the bounds of a loop make of an instruction."""
        if op == "select" and args[0].truth is not None:
            return args[1] if args[0].truth else args[2]
        if dtype == "bool" and op in ("and", "or"):
            for one, other in (args, args[::-1]):
                if one.truth is not None:
                    return other if one.truth is (op == "and") else one
        return None

    def param(self, number: int, dtype: str) -> Parts:
        from tenfold.backends.cpu.casts import widen
        from tenfold.backends.cpu.memory import element_size

        w, ty, parts = self.w, MEMORY[dtype], []
        for part in range(2 if kind(dtype) == "c" else 1):
            offset = number * PARAM_BYTES + part * element_size(dtype)
            at = w.op(f"getelementptr i8, ptr %params, i64 {offset}") if offset else "%params"
            parts.append(widen(w, dtype, w.op(f"load {ty}, ptr {at}, align 8"), False))
        return tuple(parts)

    def guard(self, check: int) -> None:
        """Remember a failed check in the fault's bits."""
        s, w = self.s, self.w
        condition, code = self.kernel.checks[check].condition, self.kernel.checks[check].code
        val: Val = s.env[condition]
        for copy in range(s.copies if val.wide else len(val.copies)):
            if val.wide:
                ok = s.get(condition, copy, True)[0]
                mask = s.mask(copy)
                bad = w.op(f"xor {vector('i1')} {ok}, {w.const('i1', True, True)}")
                if mask is not None:
                    bad = w.op(f"and {vector('i1')} {bad}, {mask}")
                failed = w.call("i1", f"llvm.vector.reduce.or.v{LANES}i1", (vector("i1"), bad))
            else:
                failed = w.op(f"xor i1 {val.at(copy)[0]}, true")
            bit = w.op(f"select i1 {failed}, i32 {1 << code}, i32 0")
            old = w.op("load i32, ptr %fault, align 4")
            w.put(f"store i32 {w.op(f'or i32 {old}, {bit}')}, ptr %fault, align 4")

    # Loops.

    def loop(
        self, low: Position, high: Position, step: int, carried: Sequence[Slot], body: Body
    ) -> list[str]:
        """Positions from low to high; what the last trip carried. A single trip stands alone."""
        w = self.w
        first = [x for _, x in carried]
        if isinstance(low, int) and isinstance(high, int):
            if high <= low:
                return first
            if high - low <= step:
                return body(low, first)
        before, head, end = w.block, w.fresh("loop"), w.fresh("end")
        dynamic = not (isinstance(low, int) and isinstance(high, int))
        if dynamic:
            some = w.op(f"icmp slt i64 {low}, {high}")
            w.put(f"br i1 {some}, label %{head}, label %{end}")
        else:
            w.put(f"br label %{head}")
        w.label(head)
        i, slot = f"%{w.fresh('i')}", len(w.lines)
        w.lines.append("")
        names = [f"%{w.fresh('c')}" for _ in carried]
        results = body(i, names)
        latch = w.block
        following = w.op(f"add nuw nsw i64 {i}, {step}")
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

    def parallel(self, loop: Loop) -> None:
        """A loop over a parallel or sequential axis, segment by segment."""
        axis, extent = loop.axis, self.kernel.axes[loop.axis].extent
        if self.schedule.tile is not None and axis == self.schedule.tile.row:
            tiled(self, loop)
            return
        if self.schedule.chunk and axis in self.schedule.lanes:
            spread(self, loop)
            return
        cuts = [0, *self.schedule.cuts_of(axis), extent]
        for low, high in pairwise(cuts):
            if axis in self.schedule.lanes and self.s.lane is None:
                self.lanes(loop, low, high)
                continue
            begin, end = self.part(axis, low, high)

            def body(i: Position, _: list[str], low: int = low, high: int = high) -> list[str]:
                with self.s.inside(axis, i, low, high):
                    self.block(loop.body)
                return []

            self.loop(begin, end, 1, (), body)

    def part(self, axis: int, low: int, high: int) -> tuple[Position, Position]:
        """The bounds of a segment: of the outer axis, only what this call is to run."""
        if axis != self.schedule.outer or self.kernel.axes[axis].extent <= self.schedule.grain:
            return low, high
        w = self.w
        begin: str = "%low"
        end: str = "%high"
        if low:
            begin = w.intrinsic("smax", "i64", begin, str(low))
        if high < self.kernel.axes[axis].extent:
            end = w.intrinsic("smin", "i64", end, str(high))
        return begin, end

    def lanes(self, loop: Loop, low: int, high: int) -> None:
        """A parallel loop across lanes: whole vectors, and the tail without a second body."""
        begin, end = self.part(loop.axis, low, high)
        if self.schedule.period and low == 0:
            self.hoist(loop)
        self.lane_range(loop.axis, low, high, begin, end, lambda: self.block(loop.body))

    def hoist(self, loop: Loop) -> None:
        """Load before the loop what is the same in each of its trips: loads whose place moves
        with the lanes by a fixed pattern only."""
        s, found = self.s, {}
        extent = self.kernel.axes[loop.axis].extent
        with s.inside(loop.axis, 0, 0, extent):
            s.lane, s.copies, s.aligned = loop.axis, self.schedule.copies, True
            s.multiple = LANES * s.copies
            s.masks = [None] * s.copies
            for item in loop.body:
                if not isinstance(item, Compute):
                    continue
                i = self.kernel.instructions[item.value]
                if i.op != "load" or i.index is None or i.args or i.index.values():
                    continue
                if self.kernel.buffers[i.attr[0]].role == BOTH:
                    continue
                moving = [a for a, _ in i.index.terms if loop.axis in axes_of(a)]
                if moving and all(a.kind == MOD and periodic(s, a) for a in moving):
                    found[item.value] = load(s, item.value)
        s.env.update(found)

    def lane_range(
        self,
        axis: int,
        low: int,
        high: int,
        begin: Position,
        end: Position,
        inner: Callable[[], None],
        exact: bool = False,
    ) -> None:
        """Run `inner` with lanes along a range of an axis that lies within [low, high); where
        it is `exact`, ranges are multiples of all copies."""
        extent = high - low
        static = isinstance(begin, int) and isinstance(end, int)
        wanted = self.schedule.copies
        if static:
            extent = end - begin  # type: ignore[operator]
            wanted = min(wanted, -(-extent // LANES))
        reach = LANES * wanted
        aligned = low % LANES == 0

        def run(
            start: Position, stop: Position, copies: int, mode: str, align: bool = aligned
        ) -> None:
            def body(i: Position, _: list[str]) -> list[str]:
                if mode == "overlap":
                    i = self.w.intrinsic("smin", "i64", str(i), str(high - LANES * copies))
                with self.s.inside(axis, i, low, high):
                    self.s.lane, self.s.copies, self.s.aligned = axis, copies, align
                    self.s.multiple = 1 if mode == "overlap" or low % reach else reach
                    self.s.masks = [None] * copies
                    if mode == "each":
                        self.s.masks = [self.live(i, stop, c) for c in range(copies)]
                    elif mode == "last":
                        self.s.masks[-1] = self.first_lanes(extent % LANES)
                    inner()
                return []

            self.loop(start, stop, LANES * copies, (), body)

        if exact or extent % reach == 0:
            run(begin, end, wanted, "whole")
        elif not static:
            if self.w.masked:
                run(begin, end, wanted, "each")
            elif self.schedule.overlap and extent >= reach:
                run(begin, end, wanted, "overlap", False)
            else:
                main = self.w.op(f"sub nsw i64 {end}, {begin}")
                main = self.w.op(f"srem i64 {main}, {reach}")
                main = self.w.op(f"sub nsw i64 {end}, {main}")
                run(begin, main, wanted, "whole")
                run(main, end, wanted, "each")
        elif extent < reach + LANES or not self.w.masked or self.reducing or extent % LANES == 0:
            assert isinstance(begin, int)
            assert isinstance(end, int)
            rest = extent % reach
            overlapping = not self.w.masked and self.schedule.overlap and extent > reach
            if overlapping and extent % LANES and not self.reducing:
                run(begin, end, wanted, "overlap", False)
                return
            run(begin, end - rest, wanted, "whole")
            if rest:
                mode = "last" if rest % LANES else "whole"
                run(end - rest, end, -(-rest // LANES), mode)
        else:
            run(begin, end, wanted, "each")

    def live(self, i: Position, end: Position, copy: int) -> str:
        """The lanes of a copy that lie before the end."""
        w = self.w
        left = w.op(f"sub nsw i64 {end}, {i}")
        if copy:
            left = w.op(f"sub nsw i64 {left}, {copy * LANES}")
        most = w.intrinsic("smin", "i64", left, str(LANES))
        short = w.op(f"trunc i64 {most} to i32")
        return w.op(f"icmp sgt {vector('i32')} {w.splat('i32', short)}, {w.iota('i32')}")

    def first_lanes(self, count: int) -> str:
        return "<" + ", ".join(f"i1 {'true' if n < count else 'false'}" for n in range(LANES)) + ">"

    # Reductions.

    def reduce(self, loop: Loop) -> None:
        """The loop of some reductions, and their results."""
        s = self.s
        crossing = self.crossing(loop)
        makers = []
        for m in loop.members:
            i = self.kernel.instructions[m]
            dtype = self.kernel.instructions[i.args[0]].dtype
            place = self.kernel.instructions[i.args[1]].dtype if len(i.args) > 1 else ""
            # Lanes that only the operand's own loops bind make the result a vector.
            wide = crossing or (s.lane is not None and s.lane in self.kernel.free[m])
            copies = self.fold_copies(loop) if crossing else s.copies if wide else 1
            makers.append(Reduction(self.w, i.attr[0], dtype, place, copies, wide, crossing))
        slots = [slot for maker in makers for slot in maker.slots()]
        held = self.accumulate(loop, makers, slots)
        at = 0
        for m, maker in zip(loop.members, makers, strict=True):
            width = len(maker.slots())
            result, place_val = maker.finish(held[at : at + width])
            at += width
            s.env[m] = result
            if place_val is not None:
                for n, i in enumerate(self.kernel.instructions):
                    if i.op == "state" and i.args == (m,):
                        s.env[n] = place_val

    def crossing(self, loop: Loop) -> bool:
        """Whether lanes lie along one of the axes that a reduction runs over."""
        inner: Loop | None = loop
        while inner is not None:
            if inner.axis in self.schedule.lanes and self.s.lane is None:
                return True
            inner = inner.inner
        return False

    def fold_copies(self, loop: Loop) -> int:
        inner = loop
        while inner.inner is not None:
            inner = inner.inner
        extent = self.kernel.axes[inner.axis].extent
        return max(1, min(self.kernel.fold.copies, -(-extent // LANES)))

    def accumulate(self, loop: Loop, makers: list[Reduction], slots: list[Slot]) -> list[str]:
        """Run the loop, or the loops, over the reduced axes; what they hold in the end."""
        extent = self.kernel.axes[loop.axis].extent
        if loop.axis in self.schedule.lanes and self.s.lane is None:
            return self.accumulate_lanes(loop, makers, slots, extent)

        def body(i: Position, held: list[str]) -> list[str]:
            with self.s.inside(loop.axis, i, 0, extent):
                return self.trip(loop, makers, slots, held)

        return self.blocked(0, extent, 1, loop, makers, slots, body)

    def trip(
        self, loop: Loop, makers: list[Reduction], slots: list[Slot], held: list[str]
    ) -> list[str]:
        """One trip: the body, then the next axis or the joining of values."""
        inner = loop.inner
        if inner is not None:
            self.block(loop.body[:-1])
            here = [(ty, x) for (ty, _), x in zip(slots, held, strict=True)]
            return self.accumulate(inner, makers, here)
        self.block(loop.body)
        s, out, at = self.s, list[str](), 0
        for m, maker in zip(loop.members, makers, strict=True):
            args = self.kernel.instructions[m].args
            width = len(maker.slots())
            copies = range(min(s.copies, maker.copies) if maker.wide else 1)
            values = [s.get(args[0], c, maker.wide) for c in copies]
            places = [s.get(args[1], c, maker.wide)[0] for c in copies] if len(args) > 1 else []
            masks = [s.mask(c) if maker.wide else None for c in copies]
            out += maker.step(held[at : at + width], values, places, masks)
            at += width
        return out

    def accumulate_lanes(
        self, loop: Loop, makers: list[Reduction], slots: list[Slot], extent: int
    ) -> list[str]:
        copies = max((m.copies for m in makers), default=1)
        reach = LANES * copies
        rest = extent % reach

        def body_of(count: int, masked: bool) -> Body:
            def body(i: Position, held: list[str]) -> list[str]:
                with self.s.inside(loop.axis, i, 0, extent):
                    self.s.lane, self.s.copies, self.s.aligned = loop.axis, count, True
                    self.s.masks = [None] * count
                    if masked:
                        self.s.masks[-1] = self.first_lanes(extent % LANES)
                    return self.trip(loop, makers, slots, held)

            return body

        held = self.blocked(0, extent - rest, reach, loop, makers, slots, body_of(copies, False))
        if rest:
            body = body_of(-(-rest // LANES), extent % LANES != 0)
            held = body(extent - rest, held)
        return held

    def blocked(
        self,
        low: int,
        high: int,
        step: int,
        loop: Loop,
        makers: list[Reduction],
        slots: list[Slot],
        body: Body,
    ) -> list[str]:
        """A loop whose float sums are put aside after every block of trips, so that the error
        grows with the block and the number of blocks, not with their product."""
        size = self.kernel.fold.block * step
        if high - low <= 2 * size or not any(m.flushed for m in makers) or loop.inner is not None:
            return self.loop(low, high, step, slots, body)
        middle = low + (high - low) // size * size

        def fresh(held: list[str]) -> list[Slot]:
            """Where a block starts: float sums from nothing, all others where they are."""
            out: list[Slot] = []
            for maker in makers:
                mine = maker.slots()
                now = held[len(out) : len(out) + len(mine)]
                out += (
                    mine if maker.flushed else [(t, x) for (t, _), x in zip(mine, now, strict=True)]
                )
            return out

        def merged(held: list[str], more: list[str]) -> list[str]:
            out: list[str] = []
            for maker in makers:
                here = slice(len(out), len(out) + len(maker.slots()))
                out += maker.merge(held[here], more[here]) if maker.flushed else more[here]
            return out

        def outer(i: Position, held: list[str]) -> list[str]:
            stop = self.w.op(f"add nsw i64 {i}, {size}")
            return merged(held, self.loop(i, stop, step, fresh(held), body))

        held = self.loop(low, middle, size, slots, outer)
        if middle < high:
            held = merged(held, self.loop(middle, high, step, fresh(held), body))
        return held


def axes_of(atom: Atom) -> frozenset[int]:
    """The axes an atom of an index depends on."""
    inside: frozenset[int] = frozenset((atom.of,)) if atom.kind == AXIS else atom.of.axes()
    return inside


def outer_extent(kernel: Kernel, schedule: Schedule) -> int:
    """What `high` is when the whole kernel is to run."""
    return kernel.axes[schedule.outer].extent if schedule.outer is not None else 1


__all__ = ["PARAM_BYTES", "Code", "emit", "outer_extent"]
