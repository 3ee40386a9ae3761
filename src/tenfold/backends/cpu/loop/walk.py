"""A loop's steps as text, kernels left open, and what its function is given.

The function is `i32 name(ptr buffers, ptr params, i64 low, i64 high)`, as a kernel's is. `buffers`
has the addresses of operands, then how to poll and how to call Python; `params` has for each kernel
its parameters and sizes, then numbers. Both are worked out from the plan alone, so whoever writes
bytecode needs no text.

A `Place` is where a slot lies: in memory of the caller's, or on the stack, where LLVM makes
registers of it: a value of up to 256 bytes that is carried, or made and read within a round, and a
capture of up to 64. Memory that such slots have in the plan is touched only where a check fails:
then what the step reads is put there, and the step looked into as the interpreter has it done.
"""

from __future__ import annotations

import struct
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from tenfold.backends.cpu.entry.abi import PARAM_BYTES, STOPPED
from tenfold.backends.cpu.loop.writer import ASK, LITERAL, SLOT, LoopWriter, OpenKernel, Place
from tenfold.plan import BranchStep, CopyStep, KernelStep, LoopStep, Plan
from tenfold.plan.steps.plan import ARENA, CONSTANT, OUTPUT
from tenfold.types import KIND

SMALL = 256  # bytes of a slot that is kept in registers
CAPTURED = 64  # bytes of a capture that is: of longer ones, text would differ with their length
SCALAR = 16  # bytes of a slice that is
POLLED = 4000  # nanoseconds of work between two looks at the clock
_UNTIMED = 1_000_000_000  # weight of a round, at most
_SELDOM = '!prof !{!"branch_weights", i32 1, i32 2000}'


@dataclass
class Scope:
    """An inner plan that is carried out in one place of the loop."""

    plan: Plan
    number: int
    table: list[Place]  # of parameters, then of outputs
    arena: tuple[int, int]  # a slot of the outermost plan, and bytes behind it
    stacked: Mapping[int, Place] = field(default_factory=dict)  # by slot


class Walk(LoopWriter):
    """One loop of a plan, written down."""

    def __init__(self, plan: Plan, step: LoopStep, numbers: Mapping[int, int]) -> None:
        """`numbers` has the number of each plan below, by id."""
        super().__init__()
        self.plan = plan
        self.plans = numbers
        self.chunks: list[KernelStep] = []
        self.size = 0  # bytes of the chunks
        outer = Scope(plan, -1, [], (0, 0))
        self.loop(outer, step)

    @property
    def params(self) -> bytes:
        """The parameters and sizes of kernels, each behind the last at a multiple of 16 bytes; the
        numbers come behind them."""
        raw = bytearray()
        for step in self.chunks:
            raw += _chunk(step)
        return bytes(raw)

    # Slots.

    def scope(self, plan: Plan, rows: Sequence[Place], arena: tuple[int, int]) -> Scope:
        scope = Scope(plan, self.plans[id(plan)], list(rows), arena)
        scope.stacked = self.stacked(plan)
        return scope

    def stacked(self, plan: Plan) -> dict[int, Place]:
        """The slots of an arena that are small, on the stack. Some lie in others, and some where
        others lay: what overlaps stays together."""
        below = {s.arena for s in plan.steps if isinstance(s, (LoopStep, BranchStep))}
        spans = sorted(
            (slot.offset, slot.offset + slot.type.nbytes, n)
            for n, slot in enumerate(plan.slots)
            if slot.place == ARENA and slot.type.nbytes and n not in below
        )
        found: dict[int, Place] = {}
        group: list[tuple[int, int]] = []
        start = end = 0
        for low, high, n in (*spans, (1 << 62, 0, -1)):
            if group and low >= end:
                if end - start <= SMALL:
                    home = self.stack(end - start)
                    found.update((m, home.behind(at - start)) for at, m in group)
                group = []
            if not group:
                start, end = low, high
            group.append((low, n))
            end = max(end, high)
        return found

    def place(self, scope: Scope, number: int) -> Place:
        slot = scope.plan.slots[number]
        if scope.number < 0:  # of the plan that the loop stands in
            return Place(self.operand(SLOT, number, 0))
        if slot.place == ARENA:
            known = scope.stacked.get(number)
            return known or Place(self.operand(SLOT, *self.inside(scope, slot.offset)))
        if slot.place == CONSTANT:
            which = scope.number << 32 | slot.number
            return Place(self.operand(LITERAL, which, slot.offset))
        first = len(scope.plan.graph.parameters) if slot.place == OUTPUT else 0
        return scope.table[first + slot.number].behind(slot.offset)

    def inside(self, scope: Scope, offset: int) -> tuple[int, int]:
        slot, at = scope.arena
        return slot, at + offset

    def arena(self, scope: Scope, number: int) -> tuple[int, int]:
        """Where the arena of an inner plan lies."""
        if scope.number < 0:
            return number, 0
        return self.inside(scope, scope.plan.slots[number].offset)

    # Steps.

    def steps(self, scope: Scope) -> int:
        """Carry out a plan; about how many nanoseconds that takes."""
        weight = 1
        for at, step in enumerate(scope.plan.steps):
            if isinstance(step, KernelStep):
                weight += self.kernel(scope, at, step)
            elif isinstance(step, CopyStep):
                nbytes = scope.plan.slots[step.source].type.nbytes
                target, source = self.place(scope, step.target), self.place(scope, step.source)
                self.copy(target, source, nbytes)
                weight += nbytes // 8 if target != source else 0
            elif isinstance(step, LoopStep):
                weight += self.loop(scope, step)
            else:
                assert isinstance(step, BranchStep)
                weight += self.branch(scope, step)
        return weight

    def kernel(self, scope: Scope, at: int, step: KernelStep) -> int:
        name, call = self.fresh("k"), scope.plan.call(step)
        for n, slot in enumerate(step.slots):
            place = self.place(scope, slot)
            shift = str(place.shift) if place.stack or not place.shift else self.amount(place.shift)
            self.put(f"%{name}.b{n} = getelementptr i8, ptr {place.base}, i64 {shift}")
        fault = self.fresh("fault") if call.kernel.checks else ""
        self.lines.append(OpenKernel(name, call, self.size, self.amount(call), fault))
        self.chunks.append(step)
        self.size += len(_chunk(step))
        if fault:
            self.fault(scope, at, step, fault)
        return 1 + sum(call.size(axis.extent) for axis in call.kernel.axes)

    def fault(self, scope: Scope, at: int, step: KernelStep, name: str) -> None:
        """Look into a failed check: the callable gets the table and the arena of the plan, with
        what the step reads in them."""
        on = self.fresh("on")
        self.put(f"br i1 %{name}, label %{name}.look, label %{on}, {_SELDOM}")
        self.lines.append(f"{name}.look:")
        table = self.reserve(f"[{max(len(scope.table), 1)} x ptr]")
        for number in step.slots:
            slot = scope.plan.slots[number]
            if slot.place == ARENA and number in scope.stacked:
                memory = Place(self.operand(SLOT, *self.inside(scope, slot.offset)))
                self.copy(memory, scope.stacked[number], slot.type.nbytes)
            elif slot.place not in (ARENA, CONSTANT):
                first = len(scope.plan.graph.parameters) if slot.place == OUTPUT else 0
                place = scope.table[first + slot.number]
                if place.stack:
                    spilled = self.stack(slot.type.nbytes)
                    self.copy(spilled, place, slot.type.nbytes)
                    place = spilled
                row = self.op(f"getelementptr ptr, ptr {table}, i64 {first + slot.number}")
                self.put(f"store ptr {self.pointer(place)}, ptr {row}, align 8")
        ask = self.operand(ASK, scope.number, at)
        arena = self.operand(SLOT, *scope.arena)
        self.op(f"call i32 %host(ptr {ask}, ptr {table}, ptr {arena})")
        self.put("br label %stopped")
        self.lines.append(f"{on}:")

    def branch(self, scope: Scope, step: BranchStep) -> int:
        dtype = scope.plan.slots[step.index].type.dtype
        bits, signed = 8 * dtype.itemsize, KIND[dtype] == "i"
        found = self.op(f"load i{bits}, ptr {self.pointer(self.place(scope, step.index))}, align 1")
        if bits < 64:
            found = self.op(f"{'sext' if signed else 'zext'} i{bits} {found} to i64")
        if signed:
            found = self.op(f"call i64 @llvm.smax.i64(i64 {found}, i64 0)")
        name, last = self.fresh("branch"), len(step.plans) - 1
        cases = " ".join(f"i64 {n}, label %{name}.{n}" for n in range(last))
        self.put(f"switch i64 {found}, label %{name}.{last} [ {cases} ]")
        rows = [self.place(scope, s) for s in (*step.inputs, *step.outputs)]
        weight = 1
        for n, p in enumerate(step.plans):
            self.lines.append(f"{name}.{n}:")
            inner = self.scope(scope.plan.plans[p], rows, self.arena(scope, step.arena))
            weight = max(weight, self.steps(inner))
            self.put(f"br label %{name}.end")
        self.lines.append(f"{name}.end:")
        return weight

    def loop(self, scope: Scope, step: LoopStep) -> int:
        name = self.fresh("loop")
        slots, carried = scope.plan.slots, step.captures + step.carries
        length = self.amount(step.length) if step.counted else ""
        arena = self.arena(scope, step.arena)
        counter = self.reserve("i64")
        self.put(f"store i64 0, ptr {counter}, align 8")
        captures = [
            self.kept(self.place(scope, s), slots[s].type.nbytes, CAPTURED)
            for s in step.inputs[: step.captures]
        ]
        carries = [self.carry(scope, step, n) for n in range(step.carries)]
        self.label(f"{name}.head")
        turn = self.op(f"load i64, ptr {counter}, align 8")
        for one in carries:
            one.look(self)
        now = [one.now for one in carries]
        weight = 1
        if step.counted:
            on = self.op(f"icmp slt i64 {turn}, {length}")
        else:
            flag = self.stack(1)
            test = self.scope(scope.plan.plans[step.plans[0]], [*captures, *now, flag], arena)
            weight += self.steps(test)
            said = self.op(f"load i8, ptr {flag.base}, align 1")
            on = self.op(f"icmp ne i8 {said}, 0")
        self.put(f"br i1 {on}, label %{name}.body, label %{name}.end")
        self.lines.append(f"{name}.body:")
        left = at = turn
        if step.counted:
            last = self.op(f"sub i64 {length}, 1")
            left = self.op(f"sub i64 {last}, {turn}")
            at = left if step.reverse else turn
        for one in carries:
            one.aim(self, left)
        rows = step.inputs[carried:], step.outputs[step.carries :]
        slices, stacks = (
            [self.row(self.place(scope, s), slots[s].type.nbytes // max(step.length, 1), at)
             for s in part]
            for part in rows
        )  # fmt: skip
        slices = [
            self.kept(place, slots[s].type.nbytes // max(step.length, 1), SCALAR)
            for place, s in zip(slices, rows[0], strict=True)
        ]
        given = [*captures, *now, *slices, *(one.next for one in carries), *stacks]
        weight += self.steps(self.scope(scope.plan.plans[step.plans[-1]], given, arena))
        self.poll(min(weight, _UNTIMED))
        for one in carries:
            one.move(self)
        self.put(f"store i64 {self.op(f'add i64 {turn}, 1')}, ptr {counter}, align 8")
        self.put(f"br label %{name}.head")
        self.lines.append(f"{name}.end:")
        for one in carries:
            self.copy(one.final, one.now, one.nbytes)
        return weight * max(step.length, 1) if step.counted else weight

    def kept(self, place: Place, nbytes: int, most: int) -> Place:
        """What is read and never written: on the stack, if it has no more bytes than that."""
        if place.stack or not 0 < nbytes <= most:
            return place
        held = self.stack(nbytes)
        self.copy(held, place, nbytes)
        return held

    def carry(self, scope: Scope, step: LoopStep, n: int) -> Carry:
        begins, ends = step.inputs[step.captures + n], step.outputs[n]
        other = step.second[n] if step.second else ends
        nbytes = scope.plan.slots[ends].type.nbytes
        source, final, second = (self.place(scope, s) for s in (begins, ends, other))
        if nbytes <= SMALL:
            now = self.stack(nbytes)
            self.copy(now, source, nbytes)
            return Carry(nbytes, final, now, self.stack(nbytes))
        if source == final == second:
            return Carry(nbytes, final, final, final)
        held = self.reserve("ptr")
        self.put(f"store ptr {self.pointer(source)}, ptr {held}, align 8")
        return Carry(nbytes, final, source, final, second, held)

    def row(self, place: Place, nbytes: int, at: str) -> Place:
        shift = self.op(f"mul i64 {self.amount(nbytes)}, {at}")
        return Place(self.op(f"getelementptr i8, ptr {self.pointer(place)}, i64 {shift}"))

    def poll(self, weight: int) -> None:
        """Count a round's work; look for signals when there was much."""
        had = self.op("load i64, ptr %left, align 8")
        left = self.op(f"sub i64 {had}, {self.amount(weight)}")
        self.put(f"store i64 {left}, ptr %left, align 8")
        due, look, on = self.op(f"icmp slt i64 {left}, 0"), self.fresh("look"), self.fresh("on")
        self.put(f"br i1 {due}, label %{look}, label %{on}, {_SELDOM}")
        self.lines.append(f"{look}:")
        self.put(f"store i64 {POLLED}, ptr %left, align 8")
        raised = self.op("call i32 %poll(ptr %state)")
        bad = self.op(f"icmp ne i32 {raised}, 0")
        self.put(f"br i1 {bad}, label %stopped, label %{on}, {_SELDOM}")
        self.lines.append(f"{on}:")


@dataclass
class Carry:
    """A carry of a loop: where it lies in a round, and where the round puts the next. A small one
    lies on the stack, one that is updated in place where it will be in the end; another goes to and
    fro between two places, so that the last round ends in the first of them."""

    nbytes: int
    final: Place
    now: Place
    next: Place
    second: Place | None = None
    held: str = ""  # where the address of the present one is kept

    def look(self, walk: Walk) -> None:
        """A round begins."""
        if self.second is not None:
            self.now = Place(walk.op(f"load ptr, ptr {self.held}, align 8"))

    def aim(self, walk: Walk, left: str) -> None:
        """So many rounds are left behind this one."""
        if self.second is not None:
            odd = walk.op(f"trunc i64 {left} to i1")
            second, final = walk.pointer(self.second), walk.pointer(self.final)
            self.next = Place(walk.op(f"select i1 {odd}, ptr {second}, ptr {final}"))

    def move(self, walk: Walk) -> None:
        """The round is done, and so are all others' results."""
        if self.second is not None:
            walk.put(f"store ptr {self.next.base}, ptr {self.held}, align 8")
        elif self.now.stack:
            walk.copy(self.now, self.next, self.nbytes)


def _chunk(step: KernelStep) -> bytes:
    """A kernel's parameters and sizes, as they lie in memory."""
    raw = b"".join(p.ljust(PARAM_BYTES, b"\0") for p in step.params)
    raw += struct.pack(f"{len(step.sizes)}q", *step.sizes)
    return raw + bytes(-len(raw) % PARAM_BYTES)


STOP = f"stopped:\n  ret i32 {STOPPED}\n"
