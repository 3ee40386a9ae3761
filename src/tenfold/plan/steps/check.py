"""The checker of plans: slots within their memory, steps that fit the graph, kernels that fit
their slots. What a stranger wrote is held to it before anything is done with it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from tenfold.graph import Graph, Node, check
from tenfold.graph.op import Branch, Loop, Routine
from tenfold.kernel import Index, Kernel, verify
from tenfold.kernel.ir.index import AXIS, DIV, MOD, VALUE
from tenfold.kernel.ir.kernel import BOTH, PARALLEL, READ, REDUCED, SCRATCH, SEQUENTIAL, WRITE
from tenfold.ops import TABLE
from tenfold.plan.capabilities import Capabilities
from tenfold.plan.file.sections import bad
from tenfold.plan.steps.plan import (
    ARENA,
    CONSTANT,
    INPUT,
    OUTPUT,
    BranchStep,
    CopyStep,
    HostStep,
    KernelStep,
    LoopStep,
    Plan,
    RoutineStep,
    Step,
)
from tenfold.plan.steps.spared import spared_rows
from tenfold.types import DTYPES, TensorType

_MOST = 1 << 47  # bytes: what addresses reach


def check_graphs(graphs: Iterable[Graph]) -> None:
    """Raise unless every graph keeps the rules of graphs, and its values can be addressed."""
    for graph in graphs:
        check(graph, TABLE)
        for type in graph.types:
            if type.rank > 64 or type.nbytes >= _MOST:
                bad(f"a value of type {type!r} is too large")


# Kernels.


def check_kernel(kernel: Kernel) -> None:
    """Raise unless a kernel's numbers are numbers of its own parts."""
    for axis in kernel.axes:
        if axis.kind not in (PARALLEL, REDUCED, SEQUENTIAL) or not _size(axis.extent):
            bad("a kernel's axis is malformed")
    for buffer in kernel.buffers:
        if (
            buffer.dtype not in DTYPES
            or not _size(buffer.size)
            or buffer.role not in (READ, WRITE, BOTH, SCRATCH)
            or not _size(buffer.alias)
            or any(not _below(a, kernel.axes) for a in buffer.rows)
        ):
            bad("a kernel's buffer is malformed")
    if any(p not in DTYPES for p in kernel.params):
        bad("a kernel's parameter is of no dtype")
    fold = kernel.fold
    shape = (fold.lanes, fold.copies, fold.run, fold.chunk)
    if any(not _size(n) or not 2 <= n <= 64 for n in shape) or fold.chunk.bit_count() > 1:
        bad("the shape of a kernel's reductions is malformed")
    for n, i in enumerate(kernel.instructions):
        before = range(n)
        if any(type(a) is not int or a not in before for a in i.args):
            bad(f"%{n} of a kernel reads a value that does not stand before it")
        if i.index is not None:
            _check_index(i.index, kernel, before)
        _check_attr(i.op, i.attr, i.args, kernel)
        if i.op in ("load", "index", "inside") and i.index is None:
            bad(f"%{n} of a kernel has no index")
        wanted = DTYPES[i.dtype].itemsize if i.op == "const" else 0
        if i.op == "const" and len(i.attr[0]) != wanted:
            bad(f"%{n} of a kernel is a constant of another size")
    values = range(len(kernel.instructions))
    for store in kernel.stores:
        _check_index(store.index, kernel, values)
        if (
            not _below(store.buffer, kernel.buffers)
            or not _below(store.value, kernel.instructions)
            or (store.condition is not None and not _below(store.condition, kernel.instructions))
            or type(store.update) is not str
        ):
            bad("a kernel's store is malformed")
    for check_ in kernel.checks:
        if not _below(check_.condition, kernel.instructions) or not _below(check_.code, range(64)):
            bad("a kernel's check is malformed")
    verify(kernel)


def _size(number: Any) -> bool:
    return type(number) is int and 0 <= number < _MOST


def _below(number: Any, items: Sequence[Any]) -> bool:
    return type(number) is int and 0 <= number < len(items)


def _check_attr(op: str, attr: tuple[Any, ...], args: tuple[int, ...], kernel: Kernel) -> None:
    count = {"load": 1, "const": 1, "param": 1, "inside": 2, "state": 1}.get(op)
    if op == "reduce":
        fine = len(attr) > 1 and all(_below(a, kernel.axes) for a in attr[1:])
        fine = fine and len(args) == 1 + (attr[0] in ("argmin", "argmax"))
    elif len(attr) != (count or 0):
        fine = False
    elif op == "load":
        fine = _below(attr[0], kernel.buffers) and len(args) <= 1
    elif op == "param":
        fine = _below(attr[0], kernel.params)
    elif op == "const":
        fine = type(attr[0]) is bytes
    elif op == "inside":
        fine = all(type(a) is int and abs(a) < _MOST for a in attr)
    elif op == "state":
        fine = len(args) == 1 and kernel.instructions[args[0]].op == "reduce"
        fine = fine and _below(attr[0], kernel.instructions[args[0]].args)
    else:
        fine = op not in ("select", "cast", "bitcast") or len(args) == (3 if op == "select" else 1)
    if not fine:
        bad(f"a kernel's {op} has the attributes {attr!r}")


def _check_index(index: Index, kernel: Kernel, values: range) -> None:
    waiting = [index]
    for one in waiting:
        if type(one.const) is not int or abs(one.const) >= _MOST:
            bad("a kernel's index is malformed")
        for atom, factor in one.terms:
            fine = type(factor) is int and abs(factor) < _MOST and _size(atom.bound) and atom.bound
            if atom.kind == AXIS:
                fine = fine and _below(atom.of, kernel.axes)
                fine = fine and kernel.axes[atom.of].extent == atom.bound
            elif atom.kind == VALUE:
                fine = fine and type(atom.of) is int and atom.of in values
            elif atom.kind in (DIV, MOD) and isinstance(atom.of, Index):
                waiting.append(atom.of)
            else:
                fine = False
            if not fine:
                bad("a kernel's index is malformed")


# Plans.


def check_plan(plan: Plan, capabilities: Capabilities) -> None:
    """Raise unless the plan's parts fit each other, and its routines those of a backend. Its graph
    is checked already."""
    graph = plan.graph
    places: dict[str, Sequence[int]] = {
        INPUT: [p.type.nbytes for p in graph.parameters],
        OUTPUT: [t.nbytes for t in graph.output_types],
        CONSTANT: [len(raw) for raw in plan.constants],
    }
    for slot in plan.slots:
        if slot.type.nbytes >= _MOST or slot.number < 0 or slot.offset < 0:
            bad("a slot is malformed")
        if slot.device != capabilities.device:
            bad(f"a slot lies on {slot.device}, where the backend has no memory")
        if slot.place != ARENA and slot.number >= len(places[slot.place]):
            bad(f"a slot is for {slot.place} {slot.number}, which is not there")
        room = plan.arena_bytes if slot.place == ARENA else places[slot.place][slot.number]
        if slot.offset > room:
            bad(f"a slot lies beyond its {slot.place}")
    if plan.arena_bytes < 0 or any(not _below(n, graph.parameters) for n in plan.donated):
        bad("its arena or what is donated is malformed")
    for source, target in plan.safe:
        if not _below(source, graph.parameters) or not _below(target, graph.outputs):
            bad("an input or output that may share memory is not there")
    if len(plan.outputs) != len(graph.outputs):
        bad("it has not as many outputs as its graph")
    for number, (at, type) in enumerate(zip(plan.outputs, graph.output_types, strict=True)):
        slot = _slot(plan, at)
        if (slot.place, slot.number, slot.offset) != (OUTPUT, number, 0) or slot.type != type:
            bad(f"output {number} is not where it is handed out")
    for step in plan.steps:
        _check_step(plan, step)
        if isinstance(step, RoutineStep):
            _check_routine(plan, step, capabilities)


def _slot(plan: Plan, number: int) -> Any:
    if not _below(number, plan.slots):
        bad(f"slot {number!r} is not there")
    return plan.slots[number]


def _whole(plan: Plan, number: int, type: TensorType | None = None) -> None:
    """A slot that lies within its memory in full, of this size."""
    slot = _slot(plan, number)
    if slot.place == ARENA:
        room = plan.arena_bytes
    elif slot.place == CONSTANT:
        room = len(plan.constants[slot.number])
    elif slot.place == INPUT:
        room = plan.graph.parameters[slot.number].type.nbytes
    else:
        room = plan.graph.output_types[slot.number].nbytes
    if slot.offset + slot.type.nbytes > room:
        bad(f"slot {number} reaches beyond its {slot.place}")
    if type is not None and (slot.type.nbytes, slot.type.dtype) != (type.nbytes, type.dtype):
        bad(f"slot {number} is of type {slot.type!r}, not {type!r}")


def _written(plan: Plan, number: int, type: TensorType | None = None) -> None:
    _whole(plan, number, type)
    slot = plan.slots[number]
    donated = slot.place == INPUT and slot.number in plan.donated
    if slot.place not in (ARENA, OUTPUT) and not donated:
        bad(f"slot {number}, an {slot.place}, is written into")


def _check_step(plan: Plan, step: Step) -> None:
    if isinstance(step, KernelStep):
        _check_kernel_step(plan, step)
    elif isinstance(step, CopyStep):
        _whole(plan, step.source)
        _written(plan, step.target)
        if plan.slots[step.source].type.nbytes != plan.slots[step.target].type.nbytes:
            bad("a copy is between slots of different sizes")
        if step.update != -1 and not _is_written(plan, step):
            bad("a copy leaves out what no step writes")
    else:
        _check_node_step(plan, step)


def _is_written(plan: Plan, copy: CopyStep) -> bool:
    """Whether a copy is that of an update, and a kernel writes its range without reading it."""
    if not _below(copy.update, plan.graph.nodes) or not spared_rows(plan.graph, copy.update):
        return False
    value = plan.graph.starts[copy.update]
    writers = [s for s in plan.steps if isinstance(s, KernelStep) and value in s.writes]
    return bool(writers) and not any(copy.target in s.slots[: len(s.reads)] for s in writers)


def _check_kernel_step(plan: Plan, step: KernelStep) -> None:
    if not _below(step.kernel, plan.own):
        bad(f"kernel {step.kernel} is not there")
    kernel = plan.own[step.kernel]
    if len(step.sizes) != kernel.sizes:
        bad("a step gives a kernel another number of sizes than it takes")
    kernel = plan.call(step).fixed
    check_kernel(kernel)
    if len(step.slots) != len(kernel.buffers) or len(step.params) != len(kernel.params):
        bad("a step gives a kernel another number of slots or parameters than it takes")
    for number, buffer in zip(step.slots, kernel.buffers, strict=True):
        slot = _slot(plan, number)
        if slot.type.nbytes != buffer.size * DTYPES[buffer.dtype].itemsize:
            bad(f"slot {number} of type {slot.type!r} is given for a buffer of another size")
        donated = slot.place == INPUT and slot.number in plan.donated
        if buffer.role != READ and slot.place not in (ARENA, OUTPUT) and not donated:
            bad(f"a kernel writes into slot {number}, an {slot.place}")
        if buffer.role != WRITE:  # what is written may begin within a larger value
            _whole(plan, number)
    for raw, dtype in zip(step.params, kernel.params, strict=True):
        if len(raw) != DTYPES[dtype].itemsize:
            bad("a kernel's parameter is given in another size")
    if any(not _below(n, plan.graph.nodes) for n in step.nodes):
        bad("a kernel step names a node that is not there")
    if len(step.reads) > len(step.slots) or any(
        not _below(v, plan.graph.types) for v in step.reads
    ):
        bad("a kernel step names a value that is not there")
    for value, number in zip(step.reads, step.slots, strict=False):
        if plan.graph.types[value].nbytes != plan.slots[number].type.nbytes:
            bad(f"slot {number} is not of the size of the value that is read there")


def _check_node_step(plan: Plan, step: RoutineStep | HostStep | LoopStep | BranchStep) -> None:
    graph = plan.graph
    if not _below(step.node, graph.nodes):
        bad(f"a step is for node {step.node}, which is not there")
    node = graph.nodes[step.node]
    if not _fits(step, node):
        bad(f"a {step.kind} step is for a node of op {node.op}")
    given = (step.index, *step.inputs) if isinstance(step, BranchStep) else step.inputs
    if len(given) != len(node.inputs) or len(step.outputs) != len(node.types):
        bad(f"a {step.kind} step has not as many slots as its node has inputs and outputs")
    for number, value in zip(given, node.inputs, strict=True):
        _whole(plan, number, graph.types[value])
    for number, type in zip(step.outputs, node.types, strict=True):
        _written(plan, number, type)
    if isinstance(step, (LoopStep, BranchStep)):
        _check_below(plan, step)
    if isinstance(step, LoopStep):
        _check_loop(plan, step)


def _fits(step: RoutineStep | HostStep | LoopStep | BranchStep, node: Node) -> bool:
    """Whether a step carries out such a node."""
    lowering = TABLE[node.op].lowering
    if isinstance(step, RoutineStep):
        return isinstance(lowering, Routine) and step.name == lowering.name
    if isinstance(step, BranchStep):
        return isinstance(lowering, Branch)
    return step.op == node.op and (step.kind == "loop") <= isinstance(lowering, Loop)


def _check_routine(plan: Plan, step: RoutineStep, capabilities: Capabilities) -> None:
    """A routine that there is, with its scratch memory."""
    node = plan.graph.nodes[step.node]
    types = tuple(plan.graph.types[v] for v in node.inputs)
    size = capabilities.scratch(step.name, types, dict(node.attributes))
    if size is None or len(step.scratch) != (size > 0):
        bad(f"there is no such routine {step.name}")
    for slot in step.scratch:
        _written(plan, slot, TensorType(DTYPES["u8"], (size,)))


def _check_below(plan: Plan, step: LoopStep | BranchStep) -> None:
    """The sub-plans: those of the node's scopes, with room for their arenas."""
    scopes = plan.graph.nodes[step.node].scopes
    if len(step.plans) != len(scopes) or any(not _below(p, plan.plans) for p in step.plans):
        bad(f"a {step.kind} step has not a plan for each scope")
    _written(plan, step.arena)
    room = plan.slots[step.arena].type.nbytes
    for number, scope in zip(step.plans, scopes, strict=True):
        inner = plan.plans[number]
        if inner.arena_bytes > room:
            bad(f"a {step.kind} step has no room for the arena of its plan")
        types = [p.type for p in inner.graph.parameters]
        if types != [p.type for p in scope.parameters] or (
            inner.graph.output_types != scope.output_types
        ):
            bad(f"a plan below a {step.kind} step is for another scope")


def _check_loop(plan: Plan, step: LoopStep) -> None:
    node = plan.graph.nodes[step.node]
    kind = TABLE[node.op].lowering
    assert isinstance(kind, Loop)
    carried = kind.carries(node)
    length = node["length"] if kind.counted else -1
    if (step.captures, step.carries, step.length) != (carried.start, len(carried), length):
        bad("a loop step is not as its node says")
    if step.reverse != kind.reversed(node) or step.counted != kind.counted:
        bad("a loop step is not as its node says")
    if len(step.second) != len(carried):
        bad("a loop step has not a second slot for each carry")
    for number, type in zip(step.second, node.types, strict=False):
        _written(plan, number, type)
    if not step.counted:
        _written(plan, step.flag)
        if plan.slots[step.flag].type.nbytes < 1:
            bad("a loop's condition has no room")
