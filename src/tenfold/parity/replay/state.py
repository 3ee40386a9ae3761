"""A graph that the reference is running: its values so far, and what is known of its plan."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from tenfold.graph import Graph
from tenfold.parity.find.part import Part, has_effects, part_of_step
from tenfold.parity.replay.replay import Frame, Layout
from tenfold.plan import BranchStep, LoopStep, Plan
from tenfold.reference.evaluate import ActiveScope

Array = np.ndarray[Any, Any]


class PlanFacts:
    """What checking a plan needs to know of it, looked up once."""

    def __init__(self, plan: Plan, graph: Graph, number: int) -> None:
        self.plan = plan
        self.graph = graph
        self.number = number
        self.layout = Layout(plan)
        self.parts: list[Part] = []
        self.needed: list[tuple[int, ...]] = []  # the values of each step's check
        self.last: dict[int, int] = {}  # the step after which a value is not needed
        self.scoped = {s.node: n for n, s in enumerate(plan.steps)
                       if isinstance(s, (LoopStep, BranchStep))}  # fmt: skip
        self.effects: list[bool] = []
        for at, step in enumerate(plan.steps):
            writes = [v for _, v in self.layout.writes[at]]
            part = part_of_step(graph, step, writes)
            values = (*part.inputs, *writes, *(v for _, v in self.layout.reads[at]))
            self.parts.append(part)
            self.needed.append(tuple(dict.fromkeys(values)))
            for value in values:
                self.last[value] = at
            position = getattr(step, "node", None)
            self.effects.append(position is not None and has_effects(graph.nodes[position]))
        self.kept = frozenset(graph.outputs)
        for position in self.scoped:
            for value in graph.nodes[position].inputs:
                self.last.setdefault(value, len(plan.steps))

    def size(self, at: int) -> int:
        """How many elements a step reads and writes."""
        places = {slot for slot, _ in (*self.layout.reads[at], *self.layout.writes[at])}
        return sum(self.plan.slots[slot].type.size for slot in places)

    def what(self, at: int) -> str:
        """A step in words."""
        step = self.plan.steps[at]
        ops = [n.op for n in self.parts[at].graph.nodes]
        shown = " ".join(ops[:12]) + (" …" if len(ops) > 12 else "")
        if step.kind == "kernel":
            digest = self.plan.own[step.kernel].digest[:8]  # type: ignore[union-attr]
            return f"step {at}, kernel {digest} ({shown or 'copy'})"
        return f"step {at}, {step.kind} {shown}".rstrip()


@dataclass(eq=False, slots=True)
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
        self.next = 0
        self.frame: Frame | None = None
        self.alone = False  # whether steps are tried one by one, without those before them
        self.loops: dict[int, Round] = {}  # by the position of the loop's node
        self.outputs: list[Array] | None = None
