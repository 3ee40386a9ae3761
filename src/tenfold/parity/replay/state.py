"""A graph that the reference is running: its values so far, and what is known of its plan."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import field
from functools import lru_cache
from typing import Any

import numpy as np

from tenfold.frozen import mutable
from tenfold.graph import Graph
from tenfold.locks import cached_property
from tenfold.ops import TABLE
from tenfold.parity.find.part import Part, computed, has_effects, part_of
from tenfold.parity.replay.replay import Frame, Layout
from tenfold.plan import BranchStep, LoopStep, Plan
from tenfold.reference.evaluate import ActiveScope
from tenfold.types import SHORT

Array = np.ndarray[Any, Any]
_FEW = range(-1, 8)  # numbers of axes and the like: they are no sizes


class PlanFacts:
    """What checking a plan needs to know of it, looked up once."""

    def __init__(self, plan: Plan, graph: Graph, number: int) -> None:
        self.plan = plan
        self.graph = graph
        self.number = number
        self.scoped = {s.node: n for n, s in enumerate(plan.steps)
                       if isinstance(s, (LoopStep, BranchStep))}  # fmt: skip
        self.positions = [computed(graph, step) for step in plan.steps]  # the nodes of each step
        noticed = {p for p, node in enumerate(graph.nodes) if has_effects(node)}
        self.effects = [not noticed.isdisjoint(positions) for positions in self.positions]
        self.kept = frozenset(graph.outputs)
        self._parts: dict[int, Part] = {}

    @cached_property
    def layout(self) -> Layout:
        """Where the plan has its values."""
        return Layout(self.plan)

    @cached_property
    def needed(self) -> list[tuple[int, ...]]:
        """The values of each step's check."""
        nodes, starts = self.graph.nodes, self.graph.starts
        made = []
        for inside, reads, writes in zip(
            self.positions, self.layout.reads, self.layout.writes, strict=True
        ):
            own = {v for p in inside for v in range(starts[p], starts[p] + len(nodes[p].types))}
            values = [v for p in inside for v in nodes[p].inputs if v not in own]
            made.append(tuple(dict.fromkeys([*values, *(v for _, v in (*writes, *reads))])))
        return made

    @cached_property
    def last(self) -> dict[int, int]:
        """The step after which a value is not needed."""
        found = {v: at for at, values in enumerate(self.needed) for v in values}
        for position in self.scoped:
            for value in self.graph.nodes[position].inputs:
                found.setdefault(value, len(self.plan.steps))
        return found

    def part(self, at: int) -> Part:
        """What a step computes, as a graph."""
        found = self._parts.get(at)
        if found is None:
            writes = [v for _, v in self.layout.writes[at]]
            found = self._parts[at] = part_of(self.graph, self.positions[at], writes)
        return found

    def form(self, at: int) -> tuple[object, ...]:
        """What a step computes whatever its extents and offsets: ops, who reads whose, dtypes and
        ranks, attributes but for sizes. Literals are parameters of its kernel."""
        nodes, starts = self.graph.nodes, self.graph.starts
        number: dict[int, int] = {}
        made: list[tuple[object, ...]] = []
        for position in self.positions[at]:
            node = nodes[position]
            reads = [number.setdefault(v, len(number)) for v in node.inputs]
            types = [(SHORT[t.dtype], t.rank) for t in node.types]
            for value in range(starts[position], starts[position] + len(types)):
                number.setdefault(value, len(number))
            given = () if TABLE[node.op].literal else but_sizes(node.attributes)
            made.append((node.op, *reads, *types, given))
        return tuple(made)

    def size(self, at: int) -> int:
        """How many elements a step reads and writes; or those of the largest array that the
        reference makes on the way, if these are more: the kernel may never have it in memory."""
        places = {slot for slot, _ in (*self.layout.reads[at], *self.layout.writes[at])}
        held = sum(self.plan.slots[slot].type.size for slot in places)
        nodes = (self.graph.nodes[position] for position in self.positions[at])
        return max([held, *(type.size for node in nodes for type in node.types)])

    def what(self, at: int) -> str:
        """A step in words."""
        step = self.plan.steps[at]
        ops = [self.graph.nodes[p].op for p in self.positions[at]]
        shown = " ".join(ops[:12]) + (" …" if len(ops) > 12 else "")
        if step.kind == "kernel":
            digest = self.plan.own[step.kernel].digest[:8]  # type: ignore[union-attr]
            return f"step {at}, kernel {digest} ({shown or 'copy'})"
        return f"step {at}, {step.kind} {shown}".rstrip()


@lru_cache(1 << 14)
def but_sizes(given: Any) -> Any:
    """Attributes with a mark in place of each extent and offset."""
    if type(given) is tuple:
        return tuple([but_sizes(one) for one in given])
    return "n" if type(given) is int and given not in _FEW else given


@mutable
class Round:
    """A loop on its way: the carries of the round at hand and the last rounds of its scopes."""

    carries: list[Array]
    number: int = 0
    checked: int = 0
    latest: dict[int, ScopeState] = field(default_factory=dict)


class ScopeState:
    """A graph that the reference is running: its values so far, and the plan's memory for it."""

    def __init__(
        self,
        about: PlanFacts,
        inputs: Sequence[Array],
        name: str,
        entry: ActiveScope | None,
        sampled: bool,
    ) -> None:
        self.about = about
        self.inputs = list(inputs)
        self.name = name
        self.entry = entry
        self.sampled = sampled
        self.values: dict[int, Array] = dict(enumerate(inputs))
        self.next = 0  # step
        self.reached = -1  # the node that the reference computed last
        self.frame: Frame | None = None
        self.alone = False  # whether steps are tried one by one, without those before them
        self.loops: dict[int, Round] = {}  # by the position of the loop's node
        self.outputs: list[Array] | None = None
