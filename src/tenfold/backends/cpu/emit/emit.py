"""LLVM IR from a legal kernel and its schedule.

A kernel becomes one function,

    i32 name(ptr buffers, ptr params, i64 low, i64 high)

- `buffers`: the address of each buffer of the kernel, in order, scratch included; then how to
  poll (see `emit.polling`), or null.
- `params`: the parameters, each in 16 bytes of its own; then the sizes of a general kernel, in 8
  bytes each.
- `low`, `high`: the part of the schedule's outer axis to run, cut at multiples of its grain; the
  whole is 0 to its extent. Parts write different elements, or the same elements alike, so they
  may run at once, each with scratch buffers of its own.
- The answer has the bit of each check that failed; 0 is good; `STOPPED` when a poll said so.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

from tenfold.backends.cpu.emit.accumulate import reduce
from tenfold.backends.cpu.emit.columns import accumulate_columns
from tenfold.backends.cpu.emit.division import divide, invert
from tenfold.backends.cpu.emit.loads import load
from tenfold.backends.cpu.emit.loops import Loops
from tenfold.backends.cpu.emit.memory import element_size
from tenfold.backends.cpu.emit.pipelining import pipeline_rows
from tenfold.backends.cpu.emit.positions import as_value, inside, periodic
from tenfold.backends.cpu.emit.prefetch import prefetch_next_row
from tenfold.backends.cpu.emit.row_blocking import block_rows
from tenfold.backends.cpu.emit.sizes import registers
from tenfold.backends.cpu.emit.state import Position, Val
from tenfold.backends.cpu.emit.stores import store, stored_over
from tenfold.backends.cpu.emit.tiles import tile_routine, tiled
from tenfold.backends.cpu.entry.abi import PARAM_BYTES
from tenfold.backends.cpu.schedule.schedule import Schedule
from tenfold.backends.llvm.casts import widen
from tenfold.backends.llvm.functions import called, shared, widest
from tenfold.backends.llvm.instructions import instruction
from tenfold.backends.llvm.target import LLVMTarget
from tenfold.backends.llvm.text import Fragment
from tenfold.backends.llvm.writer import (
    COMPUTE,
    LANES,
    MEMORY,
    Writer,
    scalar_text,
    vector,
)
from tenfold.digest import sha256
from tenfold.frozen import frozen
from tenfold.kernel.analyse.nest import Compute, Guard, Item, Loop, Write, nest
from tenfold.kernel.ir.index import AXIS, MOD, Atom
from tenfold.kernel.ir.kernel import BOTH, Instruction, Kernel
from tenfold.kernel.ir.number import Facts

# Where registers are few, functions spill theirs and read their constants from memory. A read of a
# place that lies as far into its page as one that was just written waits for that (4K aliasing):
# softmax took 1.7 times as long in one process of ten. So frames end where pages end, and constants
# lie before that (`link`).
_FRAME = (
    "  %frame = alloca i8, align 4096",
    "  store volatile i8 0, ptr %frame, align 1",  # or it would be left out
)


@frozen
class KernelText:
    """One kernel as text, with what it refers to."""

    name: str
    fragment: Fragment
    maths: frozenset[tuple[str, str, int]]  # functions of ours to define beside it

    @property
    def size(self) -> int:
        return self.fragment.body.count("\n")


def emit(
    kernel: Kernel, schedule: Schedule, target: LLVMTarget, facts: Facts | None = None
) -> KernelText:
    """The text of one legal kernel, named by its digest. Its sizes are Numbers that these facts
    are about; the text is right for all sizes of which they hold once it is written."""
    w = Writer(target, brief=schedule.small)
    Emitter(kernel, schedule, w, facts).function()
    given = "ptr %buffers, ptr %params, i64 %low, i64 %high"
    head = f"define i32 @local.({given}) nounwind{widest(target)} {{"
    body = "\n".join((head, *w.lines, "}", ""))
    body += "".join(tile_routine(size, target, w.declared) for size in sorted(w.routines))
    body, maths = shared(body, frozenset(w.maths), target, w.brief)
    name = f"tn_{sha256(body.encode()).hexdigest()[:32]}"
    body = body.replace("@local.(", f"@{name}(").replace("@local.", f"@{name}.")
    fragment = Fragment(tuple(sorted(w.declared)), body)
    return KernelText(name, fragment, maths)


class Emitter(Loops):
    """Walks the loops of a kernel and writes them."""

    def function(self) -> None:
        w, kernel = self.w, self.kernel
        w.label("entry")
        start = len(w.lines)
        for n in range(len(kernel.buffers)):
            at = w.op(f"getelementptr ptr, ptr %buffers, i64 {n}") if n else "%buffers"
            w.lines.append(f"  %b{n} = load ptr, ptr {at}, align 8")
        if self.schedule.stream is not None:
            self.s.over = stored_over(self.s, self.schedule.stream)
        if kernel.checks:
            w.lines.append("  store i32 0, ptr %fault, align 4")
        if all(kernel.axes[a].extent for a in self.schedule.order):
            self.block(nest(kernel, self.schedule.order, self.schedule.reduced))
        if self.fenced:
            w.put("call void @llvm.x86.sse.sfence()")
        answer = w.op("load i32, ptr %fault, align 4") if kernel.checks else "0"
        w.put(f"ret i32 {answer}")
        memory = [f"  {m} = alloca [{size} x i8], align 64" for m, size in self.memory]
        if kernel.checks:
            memory.append("  %fault = alloca i32, align 4")
        if w.maths and w.target.arch == "x86_64" and w.target.vector_bytes < 64:
            memory += _FRAME
        if self.facts is not None:
            memory += registers(self.facts, len(kernel.params), w.lines)
        w.lines[start:start] = memory

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
                reduce(self, item)
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
            truth = any(i.attr[0]) if i.dtype == "bool" else None
            return Val((scalar_text(i.dtype, i.attr[0]),), False, truth)
        if i.op == "param":
            x = self.param(*i.attr)
            if self.schedule.lanes:  # spread before the loops: LLVM would do so in each trip
                s.env["splat", value, 0] = w.splat(COMPUTE[i.dtype], x)
            return Val((x,), False)
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
        sources = [self.kernel.instructions[a].dtype for a in i.args]
        # What was loaded before the loop may have more copies than a tail.
        copies = range(min(s.copies, max(len(a.copies) for a in args)))
        if i.op == "div" and ("inverse", i.args[1]) in s.env and args[0].wide:
            return self.divided(i, copies)
        out: list[str] = []
        for copy in copies:
            given = [s.get(a, copy, wide) for a in i.args]
            if i.op == "call":
                out.append(called(w, i.attr[0], i.dtype, given, wide))
            else:
                out.append(instruction(w, i.op, i.dtype, sources, given, wide))
        return Val(tuple(out), wide)

    def divided(self, i: Instruction, copies: range) -> Val:
        """A quotient by what has its reciprocal at hand."""
        s, w, (a, by) = self.s, self.w, i.args
        given = [s.get(a, copy, True) for copy in copies]
        found = divide(w, COMPUTE[i.dtype], given, s.get(by, 0, True), s.env["inverse", by])
        return Val(tuple(found), True)

    def known(self, op: str, dtype: str, args: list[Val]) -> Val | None:
        """What conditions settled by the bounds of a loop make of an instruction."""
        if op == "select" and args[0].truth is not None:
            return args[1] if args[0].truth else args[2]
        if dtype == "bool" and op in ("and", "or"):
            for one, other in (args, args[::-1]):
                if one.truth is not None:
                    return other if one.truth is (op == "and") else one
        return None

    def param(self, number: int, part: int) -> str:
        w, dtype = self.w, self.kernel.params[number]
        offset = number * PARAM_BYTES + part * element_size(dtype)
        at = w.op(f"getelementptr i8, ptr %params, i64 {offset}") if offset else "%params"
        return widen(w, dtype, w.op(f"load {MEMORY[dtype]}, ptr {at}, align 8"), False)

    def guard(self, check: int) -> None:
        """Remember a failed check in the fault's bits."""
        s, w = self.s, self.w
        condition, code = self.kernel.checks[check].condition, self.kernel.checks[check].code
        val: Val = s.env[condition]
        for copy in range(s.copies if val.wide else len(val.copies)):
            if val.wide:
                ok = s.get(condition, copy, True)
                mask = s.mask(copy)
                bad = w.op(f"xor {vector('i1')} {ok}, {w.const('i1', True, True)}")
                if mask is not None:
                    bad = w.op(f"and {vector('i1')} {bad}, {mask}")
                failed = w.call("i1", f"llvm.vector.reduce.or.v{LANES}i1", (vector("i1"), bad))
            else:
                failed = w.op(f"xor i1 {val.at(copy)}, true")
            bit = w.op(f"select i1 {failed}, i32 {1 << code}, i32 0")
            old = w.op("load i32, ptr %fault, align 4")
            w.put(f"store i32 {w.op(f'or i32 {old}, {bit}')}, ptr %fault, align 4")

    # Loops.

    def parallel(self, loop: Loop) -> None:
        """A loop over a parallel or sequential axis, segment by segment."""
        axis, extent = loop.axis, self.kernel.axes[loop.axis].extent
        if self.schedule.tile is not None and axis == self.schedule.tile.row:
            tiled(self, loop)
            return
        if self.schedule.chunk and axis in self.schedule.lanes:
            accumulate_columns(self, loop)
            return
        if self.schedule.rows > 1 and axis == self.schedule.order[-2]:
            block_rows(self, loop)
            return
        if pipeline_rows(self, loop):
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

            self.loop(begin, end, 1, (), body, high - low)

    def lanes(self, loop: Loop, low: int, high: int) -> None:
        """A parallel loop across lanes: whole vectors, and the tail without a second body."""
        begin, end = self.part(loop.axis, low, high)
        if self.schedule.period and low == 0:
            self.hoist(loop)
        invert(self, loop.body, loop.axis)

        def body() -> None:
            prefetch_next_row(self, loop)
            self.block(loop.body)

        exact = None
        if self.reducing and not self.schedule.small and not isinstance(high, int):
            exact = (low == 0 and high % self.kernel.fold.round == 0) or None
        self.lane_range(loop.axis, low, high, begin, end, body, exact)

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


def axes_of(atom: Atom) -> frozenset[int]:
    """The axes an atom of an index depends on."""
    inside: frozenset[int] = frozenset((atom.of,)) if atom.kind == AXIS else atom.of.axes()
    return inside


__all__ = ["KernelText", "emit"]
