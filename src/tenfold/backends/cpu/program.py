"""A plan as native code: LLVM IR in which every step of the plan is a few lines.

Each plan, sub-plans too, becomes one function of the form that `entry` states,

    i32 plan(ptr table, ptr arena, ptr poll)

where the table has the inputs' addresses, then the outputs'. A long plan is cut into parts, each a
function, so that the time to compile it stays linear. What belongs to one process (kernels, BLAS,
Python callables) is imported by name; no address stands in the text.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from tenfold.backends.cpu.blas import BLAS
from tenfold.backends.cpu.compile import Compiled
from tenfold.backends.cpu.contract import call_gemm
from tenfold.backends.cpu.emit import PARAM_BYTES
from tenfold.backends.cpu.host import HOST
from tenfold.backends.cpu.entry import DONE, FAILED
from tenfold.backends.cpu.poll import POLL
from tenfold.backends.cpu.text import Fragment
from tenfold.kernel import Kernel
from tenfold.types import KIND

# Plans are the business of a layer above; what is read here is their plain data.
Plan = Any
Step = Any

PART = 64  # steps in one function
_MEMCPY = "declare void @llvm.memcpy.p0.p0.i64(ptr, ptr, i64, i1)"
_POLLED = 20_000  # nanoseconds of work after which a step polls


@dataclass(frozen=True, slots=True)
class Text:
    """A plan as text, and the Python callables it imports: which plan and which step each is of."""

    name: str
    fragment: Fragment
    callables: tuple[tuple[str, int, int], ...]  # name, number of the plan in `every`, step


def host_name(name: str, plan: int, step: int) -> str:
    """The import that stands for a host step, or for who looks into a kernel's fault."""
    return f"{name}.host.{plan}.{step}"


def print_plan(plan: Plan, compiled: Mapping[Kernel, Compiled], name: str) -> Text:
    """The text of a plan and of all below it."""
    number = {id(one): n for n, one in enumerate(plan.every)}
    bodies: list[str] = []
    data: list[str] = []
    declared = {_MEMCPY}
    callables: list[tuple[str, int, int]] = []
    for n, one in enumerate(plan.every):
        function = name if one is plan else f"{name}.{n}"
        names = {i: f"{name}.{number[id(p)]}" for i, p in enumerate(one.plans)}
        w = _Writer(one, n, function, name, names, compiled, declared)
        bodies.append(w.function())
        data += w.data
        callables += w.callables
    return Text(
        name,
        Fragment(
            (*sorted(declared), *POLL.declarations, *HOST.declarations, *BLAS.declarations,
             *(f'@"{c}" = external global i8' for c, _, _ in callables)),
            "\n".join([*data, POLL.body, HOST.body, *bodies]),
        ),
        tuple(callables),
    )  # fmt: skip


def weight(plan: Plan) -> int:
    """About how many nanoseconds a plan takes."""
    return sum(step_weight(plan, step) for step in plan.steps) + 10


def step_weight(plan: Plan, step: Step) -> int:
    if step.kind == "kernel":
        size = sum(plan.slots[s].type.size for s in step.slots)
        space = 1
        for axis in plan.own[step.kernel].axes:
            space *= max(axis.extent, 1)
        return 20 + max(size, min(space, 1 << 40)) // 4
    if step.kind == "routine":
        sizes = [plan.slots[s].type.size for s in (*step.inputs, *step.outputs)]
        return 100 + int((sizes[0] * sizes[1] * sizes[2]) ** 0.5) // 16
    if step.kind == "loop":
        inner = max(weight(plan.plans[p]) for p in step.plans)
        return 20 + inner * max(step.length, 1)
    if step.kind == "branch":
        return 20 + max(weight(plan.plans[p]) for p in step.plans)
    if step.kind == "copy":
        return 10 + plan.slots[step.source].type.nbytes // 8
    return 1000


class _Writer:
    """Prints one plan."""

    def __init__(
        self,
        plan: Plan,
        number: int,
        function: str,
        name: str,
        inner: Mapping[int, str],
        compiled: Mapping[Kernel, Compiled],
        declared: set[str],
    ) -> None:
        self.plan = plan
        self.number = number
        self.name = function
        self.prefix = name
        self.inner = inner
        self.compiled = compiled
        self.declared = declared
        self.data: list[str] = []
        self.callables: list[tuple[str, int, int]] = []
        self.lines: list[str] = []
        self.allocas: list[str] = []
        self.pointers: dict[int, str] = {}
        self.count = 0
        self.most = 0  # buffers of a kernel

    # Text.

    def function(self) -> str:
        for n, raw in enumerate(self.plan.constants):
            self.data.append(
                f'@"{self.name}.c{n}" = private constant [{len(raw)} x i8] {_bytes(raw)}, align 64'
            )
        steps = list(enumerate(self.plan.steps))
        if len(steps) <= PART:
            return self.part(self.name, steps)
        parts = [steps[i : i + PART] for i in range(0, len(steps), PART)]
        names = [f"{self.name}.part{n}" for n in range(len(parts))]
        bodies = [self.part(n, p) for n, p in zip(names, parts, strict=True)]
        self.begin()
        for n in names:
            self.checked(f'call i32 @"{n}"(ptr %table, ptr %arena, ptr %poll)')
        return "\n".join([*bodies, self.end(self.name)])

    def part(self, name: str, steps: Sequence[tuple[int, Step]]) -> str:
        self.begin()
        for number, step in steps:
            if step.kind == "kernel":
                self.kernel(number, step)
            elif step.kind == "copy":
                nbytes = self.plan.slots[step.source].type.nbytes
                self.copy(self.slot(step.target), self.slot(step.source), nbytes)
            elif step.kind == "host":
                self.host(number)
            elif step.kind == "routine":
                self.routine(step)
            elif step.kind == "loop":
                self.loop(step)
            else:
                self.branch(step)
            heavy = step_weight(self.plan, step)
            if heavy > _POLLED and step.kind != "loop":
                self.checked(f"call i32 @tn_poll(ptr %poll, i64 {heavy})")
        return self.end(name)

    def begin(self) -> None:
        self.lines, self.allocas, self.pointers = [], [], {}
        self.most = 0

    def end(self, name: str) -> str:
        if self.most:
            self.allocas.append(f"  %buffers = alloca [{self.most} x ptr], align 16")
        linkage = "dso_local" if name == self.prefix else "internal"
        head = f'define {linkage} i32 @"{name}"(ptr %table, ptr %arena, ptr %poll) nounwind {{'
        return "\n".join(
            [head, "entry:", *self.allocas, *self.lines, f"  ret i32 {DONE}", "fail:",
             f"  ret i32 {FAILED}", "}", ""]
        )  # fmt: skip

    def fresh(self, stem: str = "v") -> str:
        self.count += 1
        return f"{stem}{self.count}"

    def op(self, text: str) -> str:
        name = f"%{self.fresh()}"
        self.lines.append(f"  {name} = {text}")
        return name

    def label(self, name: str) -> None:
        self.lines.append(f"{name}:")

    def alloca(self, count: int) -> str:
        name = f"%{self.fresh('m')}"
        self.allocas.append(f"  {name} = alloca [{max(count, 1)} x ptr], align 16")
        return name

    def put(self, table: str, number: int, pointer: str) -> None:
        at = self.op(f"getelementptr ptr, ptr {table}, i64 {number}") if number else table
        self.lines.append(f"  store ptr {pointer}, ptr {at}, align 8")

    def checked(self, call: str) -> None:
        """A call whose answer is nonzero when it failed."""
        code = self.op(call)
        bad = self.op(f"icmp ne i32 {code}, 0")
        on = self.fresh("on")
        self.lines.append(
            f'  br i1 {bad}, label %fail, label %{on}, !prof !{{!"branch_weights", i32 1, i32 2000}}'
        )
        self.label(on)

    def slot(self, number: int) -> str:
        """The address of a slot. It is computed where it is used: cheap, and never out of reach."""
        slot, plan = self.plan.slots[number], self.plan
        if slot.place == "constant":  # never a range: constants are not written
            return f'@"{self.name}.c{slot.number}"'
        if slot.place == "arena":
            return self.op(f"getelementptr i8, ptr %arena, i64 {slot.offset}") if slot.offset else (
                "%arena"
            )
        at = slot.number + (len(plan.graph.parameters) if slot.place == "output" else 0)
        address = self.op(f"getelementptr ptr, ptr %table, i64 {at}") if at else "%table"
        pointer = self.op(f"load ptr, ptr {address}, align 8, !invariant.load !{{}}")
        return self.offset(pointer, str(slot.offset)) if slot.offset else pointer

    def offset(self, pointer: str, offset: str) -> str:
        return self.op(f"getelementptr i8, ptr {pointer}, i64 {offset}")

    def copy(self, target: str, source: str, nbytes: int) -> None:
        if nbytes:
            self.lines.append(
                f"  call void @llvm.memcpy.p0.p0.i64(ptr {target}, ptr {source}, i64 {nbytes}, "
                "i1 false)"
            )

    # Steps.

    def kernel(self, number: int, step: Step) -> None:
        kernel = self.plan.own[step.kernel]
        made = self.compiled[kernel]
        self.declared.add(f"declare i32 @{made.name}(ptr, ptr, i64, i64)")
        self.most = max(self.most, len(step.slots))
        for n, slot in enumerate(step.slots):
            self.put("%buffers", n, self.slot(slot))
        params = "null"
        if step.params:
            params = f'@"{self.name}.k{number}"'
            raw = b"".join(p.ljust(PARAM_BYTES, b"\0") for p in step.params)
            self.data.append(
                f"{params} = private constant [{len(raw)} x i8] {_bytes(raw)}, align 16"
            )
        call = f"call i32 @{made.name}(ptr %buffers, ptr {params}, i64 0, i64 {made.extent})"
        if not kernel.checks:
            self.op(call)
            return
        fault = self.op(call)
        bad = self.op(f"icmp ne i32 {fault}, 0")
        look, on = self.fresh("look"), self.fresh("on")
        self.lines.append(f"  br i1 {bad}, label %{look}, label %{on}")
        self.label(look)
        self.host(number)
        self.lines.append("  br label %fail")
        self.label(on)

    def host(self, number: int) -> None:
        name = host_name(self.prefix, self.number, number)
        self.callables.append((name, self.number, number))
        self.checked(f'call i32 @tn_host(ptr @"{name}", ptr %table, ptr %arena)')

    def routine(self, step: Step) -> None:
        pointers = [self.slot(s) for s in (*step.inputs, *step.outputs)]
        node = self.plan.graph.nodes[step.node]
        graph = self.plan.graph
        types = [*(graph.types[v] for v in node.inputs), node.types[0]]
        call_gemm(self, pointers, types, dict(node.attributes))

    def branch(self, step: Step) -> None:
        table = self.alloca(len(step.inputs) + len(step.outputs))
        for n, slot in enumerate((*step.inputs, *step.outputs)):
            self.put(table, n, self.slot(slot))
        arena = self.slot(step.arena)
        chosen = self.index(step.index, len(step.plans))
        done = self.fresh("done")
        cases = [self.fresh("case") for _ in step.plans]
        listed = " ".join(f"i64 {n}, label %{c}" for n, c in enumerate(cases))
        self.lines.append(f"  switch i64 {chosen}, label %{cases[-1]} [ {listed} ]")
        codes = []
        for case, inner in zip(cases, step.plans, strict=True):
            self.label(case)
            call = f'call i32 @"{self.inner[inner]}"(ptr {table}, ptr {arena}, ptr %poll)'
            codes.append((self.op(call), case))
            self.lines.append(f"  br label %{done}")
        self.label(done)
        answers = ", ".join(f"[ {code}, %{case} ]" for code, case in codes)
        code = self.op(f"phi i32 {answers}")
        bad = self.op(f"icmp ne i32 {code}, 0")
        on = self.fresh("on")
        self.lines.append(f"  br i1 {bad}, label %fail, label %{on}")
        self.label(on)

    def index(self, slot: int, count: int) -> str:
        """The index of a branch, clamped."""
        dtype = self.plan.slots[slot].type.dtype
        bits = 8 * dtype.itemsize
        raw = self.op(f"load i{bits}, ptr {self.slot(slot)}, align 1")
        signed = KIND[dtype] == "i"
        if bits < 64:
            raw = self.op(f"{'sext' if signed else 'zext'} i{bits} {raw} to i64")
        if signed:
            self.declared.add("declare i64 @llvm.smax.i64(i64, i64)")
            raw = self.op(f"call i64 @llvm.smax.i64(i64 {raw}, i64 0)")
        self.declared.add("declare i64 @llvm.umin.i64(i64, i64)")
        return self.op(f"call i64 @llvm.umin.i64(i64 {raw}, i64 {count - 1})")

    def loop(self, step: Step) -> None:
        """A loop. A carry goes from the input to one of two places in turn; a scan begins so that
        the last round writes to the output."""
        plan = self.plan
        types = [plan.slots[s].type for s in step.outputs[: step.carries]]
        if step.op == "scan" and step.length == 0:
            for source, target, type in zip(
                step.inputs[step.captures :], step.outputs, types, strict=False
            ):
                self.copy(self.slot(target), self.slot(source), type.nbytes)
            return
        scan = step.op == "scan"
        body = step.plans[-1]
        captures = [self.slot(s) for s in step.inputs[: step.captures]]
        first = [self.slot(s) for s in step.inputs[step.captures :][: step.carries]]
        slices = [self.slot(s) for s in step.inputs[step.captures + step.carries :]]
        final = [self.slot(s) for s in step.outputs[: step.carries]]
        stacks = [self.slot(s) for s in step.outputs[step.carries :]]
        second = [self.slot(s) for s in step.second] or final
        arena = self.slot(step.arena)
        flag = self.slot(step.flag) if step.flag >= 0 else ""
        table = self.alloca(
            step.captures + 2 * step.carries + len(slices) + len(stacks) + (not scan)
        )
        for n, pointer in enumerate(captures):
            self.put(table, n, pointer)
        before, head, turn, go, end = (
            self.fresh(s) for s in ("before", "head", "turn", "go", "end")
        )
        self.lines.append(f"  br label %{before}")
        self.label(before)
        self.lines.append(f"  br label %{head}")
        self.label(head)
        i, more = f"%{self.fresh('i')}", f"%{self.fresh('i')}"
        self.lines.append(f"  {i} = phi i64 [ 0, %{before} ], [ {more}, %{go} ]")
        held, goes = [], []
        for pointer in first:
            held.append(f"%{self.fresh('h')}")
            goes.append(f"%{self.fresh('g')}")
            self.lines.append(
                f"  {held[-1]} = phi ptr [ {pointer}, %{before} ], [ {goes[-1]}, %{go} ]"
            )
        for n, pointer in enumerate(held):
            self.put(table, step.captures + n, pointer)
        if scan:
            again = self.op(f"icmp ult i64 {i}, {step.length}")
        else:
            self.put(table, step.captures + step.carries, flag)
            self.checked(
                f'call i32 @"{self.inner[step.plans[0]]}"(ptr {table}, ptr {arena}, ptr %poll)'
            )
            raw = self.op(f"load i8, ptr {flag}, align 1")
            again = self.op(f"icmp ne i8 {raw}, 0")
        self.lines.append(f"  br i1 {again}, label %{turn}, label %{end}")
        self.label(turn)
        at = i
        if step.reverse:
            at = self.op(f"sub i64 {step.length - 1}, {i}")
        # Even rounds from the end write to the output.
        odd = self.op(f"and i64 {self.op(f'sub i64 {step.length - 1}, {i}')}, 1")
        away = self.op(f"icmp ne i64 {odd}, 0")
        for n, (target, a, b) in enumerate(zip(goes, final, second, strict=True)):
            self.lines.append(f"  {target} = select i1 {away}, ptr {b}, ptr {a}")
            self.put(table, step.captures + step.carries + len(slices) + n, target)
        stacked = zip(step.inputs[step.captures + step.carries :], slices, strict=True)
        for n, (slot, pointer) in enumerate(stacked):
            size = plan.slots[slot].type.nbytes // step.length
            moved = self.offset(pointer, self.op(f"mul i64 {at}, {size}"))
            self.put(table, step.captures + step.carries + n, moved)
        base = step.captures + 2 * step.carries + len(slices)
        for n, (slot, pointer) in enumerate(
            zip(step.outputs[step.carries :], stacks, strict=True)
        ):
            size = plan.slots[slot].type.nbytes // step.length
            moved = self.offset(pointer, self.op(f"mul i64 {at}, {size}"))
            self.put(table, base + n, moved)
        self.checked(f'call i32 @"{self.inner[body]}"(ptr {table}, ptr {arena}, ptr %poll)')
        cost = sum(weight(plan.plans[p]) for p in step.plans)
        self.checked(f"call i32 @tn_poll(ptr %poll, i64 {cost})")
        self.lines.append(f"  br label %{go}")
        self.label(go)
        self.lines.append(f"  {more} = add i64 {i}, 1")
        self.lines.append(f"  br label %{head}")
        self.label(end)
        if scan:
            return
        for pointer, target, type in zip(held, final, types, strict=True):
            same = self.op(f"icmp eq ptr {pointer}, {target}")
            move, on = self.fresh("move"), self.fresh("on")
            self.lines.append(f"  br i1 {same}, label %{on}, label %{move}")
            self.label(move)
            self.copy(target, pointer, type.nbytes)
            self.lines.append(f"  br label %{on}")
            self.label(on)


def _bytes(raw: bytes) -> str:
    """Bytes as an LLVM constant."""
    return 'c"' + "".join(f"\\{b:02X}" for b in raw) + '"'
