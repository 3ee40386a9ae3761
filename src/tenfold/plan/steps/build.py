"""From a graph to a plan: expand, fuse, lower, lay out."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from tenfold.graph import Graph, Node
from tenfold.graph.op import Branch, Loop, Routine, Table, Types
from tenfold.kernel import Kernel
from tenfold.kernel.ir.sized import SizedKernel
from tenfold.ops import TABLE
from tenfold.plan.capabilities import Capabilities
from tenfold.plan.fusion.fuse import Item
from tenfold.plan.lowering.form import BoundForm
from tenfold.plan.lowering.general import GeneralForms, LoweredForm, SizedForm, general_forms
from tenfold.plan.passes.write_out import Written, write_out
from tenfold.plan.steps.cells import Cells
from tenfold.plan.steps.outline import Outline, outline
from tenfold.plan.steps.plan import (
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
from tenfold.plan.steps.templates import Templates, templates_of
from tenfold.stats import count
from tenfold.types import DTYPES, TensorType


def make_plan(
    graph: Graph,
    capabilities: Capabilities = Capabilities(),  # noqa: B008  it is frozen
    donated: Sequence[int] = (),
    table: Table = TABLE,
    begin: Callable[[SizedKernel], object] = lambda _: None,
    begin_routine: Callable[[str, Types, Mapping[str, Any]], object] = lambda *_: None,
) -> Plan:
    """The plan of a graph and of every scope in it, each distinct scope planned once.

    `donated` are parameters whose memory the plan may use for values of its own once it has read
    them. `begin` is called with kernels as soon as they are lowered, in the order of the plan's
    calls: their code can be made meanwhile. So is `begin_routine` with the name of a routine, the
    types of what it reads and its attributes.
    """
    forms = general_forms(table, capabilities.tune)
    templates = templates_of(table, capabilities)
    plans: dict[str, Plan] = {}
    for digest, found in _written_out(graph, table, templates).items():
        if isinstance(found, Outline):
            made = found
        else:
            made = outline(*found, table, capabilities, forms)
            count("outlines")
        given = tuple(donated) if digest == graph.digest else ()
        planner = _Planner(made, table, plans, forms, capabilities, given, begin, begin_routine)
        plans[digest] = planner.run()
    return plans[graph.digest]


def _written_out(graph: Graph, table: Table, templates: Templates) -> dict[str, Outline | Written]:
    """The graph and every scope in it, written out, each after those it owns: loops that are found
    and compositions bring scopes of their own. An outline, where there is a template of it."""
    made: dict[str, Outline | Written] = {}
    opened: dict[str, Outline | Written] = {}
    stack = [(graph, False)]
    while stack:
        scope, done = stack.pop()
        if done:
            made[scope.digest] = opened[scope.digest]
        elif scope.digest not in opened:
            found = templates.find(scope)
            written = write_out(scope, table, templates.capabilities)  # a template has noted it
            opened[scope.digest] = found or written
            stack.append((scope, True))
            for node in reversed(written[0].nodes):
                stack.extend((inner, False) for inner in reversed(node.scopes))
    return made


class _Planner:
    def __init__(
        self,
        outline: Outline,
        table: Table,
        plans: dict[str, Plan],
        forms: GeneralForms,
        capabilities: Capabilities,
        donated: tuple[int, ...],
        begin: Callable[[SizedKernel], object],
        begin_routine: Callable[[str, Types, Mapping[str, Any]], object],
    ) -> None:
        self.outline = outline
        self.graph = outline.graph
        self.begin = begin
        self.begin_routine = begin_routine
        self.table = table
        self.plans = plans
        self.forms = forms
        self.capabilities = capabilities
        self.donated = donated
        self.cells = Cells()
        self.cell: dict[int, int] = {}  # by value
        self.steps: list[Step] = []
        self.kernels: dict[Kernel, int] = {}
        self.made: dict[
            int, tuple[LoweredForm, int]
        ] = {}  # by id of a form; the number of its general kernel
        self.constants: list[bytes] = []
        self.inner: dict[int, int] = {}  # id of a sub-plan -> its number
        self.used: list[Plan] = []
        self.words: Counter[str] = Counter()  # of routines

    def run(self) -> Plan:
        graph = self.graph
        for number, parameter in enumerate(graph.parameters):
            self.cell[number] = self.cells.new(parameter.type, INPUT, number)
        self.place_outputs()
        for item in self.outline.items:
            if isinstance(item, BoundForm):
                self.kernel(item)
            elif item.copied >= 0:
                self.copy(item)
            else:
                self.other(item.node)
        outputs = self.hand_out()
        found = Counter(map(str, self.outline.loops))
        notes = tuple(f"{n}× {loop}" if n > 1 else loop for loop, n in found.items()) + tuple(
            f"{reason} ({count}×, first: {graph.nodes[first].source or graph.nodes[first].op})"
            for reason, (count, first) in self.outline.notes.items()
        )
        notes += tuple(f"{words} ({count}×)" for words, count in self.words.items())
        slots, arena, live = self.cells.lay_out(self.donated, self.capabilities.device)
        return Plan(
            graph, slots, tuple(self.steps), outputs, tuple(self.kernels), tuple(self.used),
            tuple(self.constants), arena, live, self.donated, notes, self.cells.safe,
        )  # fmt: skip

    # Cells.

    def of(self, value: int) -> int:
        """The cell of a value in memory, made when first asked for."""
        value = self.outline.alias[value]
        found = self.cell.get(value)
        if found is None:
            found = self.constant(value)
            if found is None:
                found = self.cells.new(self.graph.types[value])
            self.cell[value] = found
        return found

    def constant(self, value: int) -> int | None:
        node = self.lone_literal(value)
        if node is None:
            return None
        self.constants.append(node["data"])
        return self.cells.new(self.graph.types[value], CONSTANT, len(self.constants) - 1)

    def lone_literal(self, value: int) -> Node | None:
        """The node of a literal that no kernel computes."""
        position = self.outline.makers[value]
        if position < 0 or self.outline.grouped[value]:
            return None
        node = self.graph.nodes[position]
        return node if self.table[node.op].literal else None

    def place_outputs(self) -> None:
        """Values that are handed out are made where they are handed out."""
        for number, value in enumerate(self.graph.outputs):
            root = self.outline.alias[value]
            if root in self.cell or self.lone_literal(root) is not None:
                continue
            self.cell[root] = self.cells.new(self.graph.types[value], OUTPUT, number)

    def hand_out(self) -> tuple[int, ...]:
        """The cells of the outputs; what lies elsewhere, or was handed out before, is copied."""
        outputs = []
        for number, value in enumerate(self.graph.outputs):
            source = self.of(value)
            cell = self.cells[source]
            if cell.place != OUTPUT or cell.number != number:
                made = self.cells.new(self.graph.types[value], OUTPUT, number)
                if self.graph.types[value].size:
                    self.cells.may_share(len(self.steps), source, made)
                    self.add(CopyStep(source, made), [source], [made])
                source = made
            outputs.append(source)
        return tuple(outputs)

    def add(self, step: Step, reads: list[int], writes: list[int]) -> None:
        self.cells.touch(len(self.steps), (*reads, *writes))
        self.steps.append(step)

    # Steps.

    def kernel(self, bound: BoundForm) -> None:
        found = self.made.get(id(bound.form))  # the former makes equal ones once, and keeps them
        if found is None:
            found = self.made[id(bound.form)] = self.lowered(bound.form)
        lowered, number = found
        reads = [self.of(v) for v in bound.inputs]
        for target, own in zip(bound.targets, bound.over, strict=True):
            if own >= 0:  # which the target begins as
                reads[own] = self.of(target)
        writes = [
            self.cells.range(self.of(v), shift) if shift else self.of(v)
            for v, shift in zip(bound.targets, bound.shifts, strict=True)
        ]
        scratch = [self.cells.new(type) for type in lowered.scratch]
        params = tuple(
            p if isinstance(p, bytes) else self.literal(bound.nodes[p]) for p in lowered.params
        )
        step = KernelStep(
            number,
            (*reads, *writes, *scratch),
            params,
            lowered.call.sizes,
            bound.positions,
            bound.inputs,
            bound.targets,
        )
        at = len(self.steps)
        for source, target in lowered.in_place:
            self.cells.may_share(at, reads[source], writes[target])
        for source, target in lowered.instead:
            self.cells.instead.append((at, reads[source], writes[target]))
        self.add(step, reads, [*writes, *scratch])

    def lowered(self, form: SizedForm) -> tuple[LoweredForm, int]:
        """The kernel of a form, and its number."""
        made = self.forms.lower(form)
        self.begin(made.call)
        return made, self.kernels.setdefault(made.call.kernel, len(self.kernels))

    def copy(self, item: Item) -> None:
        """Begin the value of a node as a copy of another; where that dies here, it may take its
        memory."""
        read, write = self.of(item.copied), self.of(self.graph.starts[item.node])
        self.cells.may_share(len(self.steps), read, write)
        spared = not item.over and spared_rows(self.graph, item.node) is not None
        self.add(CopyStep(read, write, item.node if spared else -1), [read], [write])

    def literal(self, value: int) -> bytes:
        data: bytes = self.graph.nodes[self.outline.makers[value]]["data"]
        return data

    def other(self, position: int) -> None:
        node, start = self.graph.nodes[position], self.graph.starts[position]
        reads = [self.of(v) for v in node.inputs]
        writes = [self.of(start + i) for i in range(len(node.types))]
        lowering = self.table[node.op].lowering
        if isinstance(lowering, Branch):
            self.branch(position, node, reads, writes)
        elif isinstance(lowering, Loop):
            self.loop(position, node, lowering, reads, writes)
        elif isinstance(lowering, Routine) and (
            (size := self.scratch(node, lowering.name)) is not None
        ):
            own = [self.cells.new(TensorType(DTYPES["u8"], (size,)))] if size else []
            step = RoutineStep(
                lowering.name, position, tuple(reads), tuple(writes), scratch=tuple(own)
            )
            self.add(step, reads, [*writes, *own])
        else:
            reason = self.reason(node)
            self.add(
                HostStep(node.op, reason, position, tuple(reads), tuple(writes), node.source),
                reads,
                writes,
            )

    def scratch(self, node: Node, routine: str) -> int | None:
        """The scratch bytes of the routine for a node; None where there is none."""
        if routine not in self.capabilities.routines:
            return None
        types = tuple(self.graph.types[v] for v in node.inputs)
        size = self.capabilities.scratch(routine, types, dict(node.attributes))
        if size is not None:
            self.begin_routine(routine, types, dict(node.attributes))
            words = self.capabilities.words(routine, types, dict(node.attributes))
            self.words.update([words] if words else [])
        return size

    def reason(self, node: Node) -> str:
        if self.table[node.op].effect:
            return "it calls Python"
        lowering, words = self.table[node.op].lowering, ""
        if isinstance(lowering, Routine):
            types = tuple(self.graph.types[v] for v in node.inputs)
            words = self.capabilities.lacks(lowering.name, types)
        known = words or self.outline.reasons.get(node.op)
        return known or "there is no kernel or routine for it yet"

    def sub(self, scope: Graph) -> int:
        plan = self.plans[scope.digest]
        if id(plan) not in self.inner:
            self.inner[id(plan)] = len(self.used)
            self.used.append(plan)
        return self.inner[id(plan)]

    def arena_for(self, plans: tuple[int, ...]) -> int:
        size = max(self.used[p].arena_bytes for p in plans)
        return self.cells.new(TensorType(DTYPES["u8"], (size,)))

    def branch(self, position: int, node: Node, reads: list[int], writes: list[int]) -> None:
        plans = tuple(self.sub(scope) for scope in node.scopes)
        arena = self.arena_for(plans)
        step = BranchStep(position, plans, reads[0], tuple(reads[1:]), tuple(writes), arena)
        # What every branch may do in place is done in place; one result in what is given once.
        free, left = {r for r, n in Counter(reads).items() if n == 1}, set(writes)
        for given, made in self.used[plans[0]].safe:
            source, target = reads[1 + given], writes[made]
            if source not in free or target not in left:
                continue
            if all((given, made) in self.used[p].safe for p in plans[1:]):
                free.remove(source)
                left.remove(target)
                self.cells.may_share(len(self.steps), source, target)
        self.add(step, reads, [*writes, arena])

    def loop(
        self, position: int, node: Node, kind: Loop, reads: list[int], writes: list[int]
    ) -> None:
        plans = tuple(self.sub(scope) for scope in node.scopes)
        arena = self.arena_for(plans)
        carried = kind.carries(node)
        captures, carries = carried.start, len(carried)
        length = node["length"] if kind.counted else -1
        alone = {i for i, o in self.used[plans[-1]].safe if i == o + captures}
        second = []
        for carry in range(carries):
            source, target = reads[captures + carry], writes[carry]
            if captures + carry in alone and length != 0:
                # The body may work in place: it begins with a copy, and there is no second place.
                self.cells.may_share(len(self.steps), source, target)
                self.add(CopyStep(source, target), [source], [target])
                reads[captures + carry] = target
                second.append(target)
            elif length in (0, 1):
                second.append(target)
            else:
                second.append(self.cells.new(self.cells[target].type))
        flag = -1 if kind.counted else self.cells.new(TensorType(DTYPES["bool"], ()))
        step = LoopStep(
            node.op, position, plans, tuple(reads), tuple(writes), captures, carries,
            tuple(second), arena, flag, length, kind.reversed(node),
        )  # fmt: skip
        own = [arena, *second, *([flag] if flag >= 0 else [])]
        self.add(step, reads, [*writes, *own])
