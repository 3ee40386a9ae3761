"""Trials: a branch that the run did not take, and the body of a loop of no rounds, are walked
through after it on the inputs that they would have had, unless they call Python.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from tenfold.frozen import frozen
from tenfold.parity.find.part import loop_of
from tenfold.parity.replay.state import PlanFacts, ScopeState
from tenfold.plan import BranchStep, LoopStep

Array = np.ndarray[Any, Any]

TRIED = 20_000  # nodes: inputs that a branch was not meant for may keep it busy for ever
_KEPT = 1 << 26  # bytes of inputs that are kept


class TrialTooLong(Exception):
    """A trial has gone on for long enough."""


@frozen
class Trial:
    """A scope that was not run, and the inputs that it would have had."""

    about: PlanFacts
    inputs: list[Array]
    name: str


class Trials:
    """The trials that wait for the end of the run."""

    def __init__(self, abouts: Mapping[int, PlanFacts]) -> None:
        self.abouts = abouts
        self.waiting: list[Trial] = []
        self.bytes = 0  # of their inputs

    def keep(self, state: ScopeState, position: int, knows: Callable[[PlanFacts], bool]) -> None:
        """Keep the inputs of branches that were not taken, and of a loop of no rounds, unless all
        their steps are checked: `knows`."""
        about = state.about
        step = about.plan.steps[about.scoped[position]]
        node = about.graph.nodes[position]
        plans = about.plan.plans
        name = f"{state.name}%{about.graph.starts[position]}"
        if any(v not in state.values for v in node.inputs):
            return
        given = [np.asarray(state.values[v]) for v in node.inputs]

        def add(inner: PlanFacts, inputs: list[Array], name: str) -> None:
            size = sum(a.nbytes for a in inputs)
            if self.bytes + size > _KEPT or any(inner.effects) or knows(inner):
                return
            self.bytes += size
            self.waiting.append(Trial(inner, inputs, name))

        if isinstance(step, BranchStep):
            for scope, number in enumerate(step.plans):
                inner = self.abouts[id(plans[number])]
                add(inner, given[1:], f"{name}.branch{scope}, not taken: ")
        elif isinstance(step, LoopStep) and not loop_of(node).counted:
            if position in state.loops and state.loops[position].number:
                return
            inner = self.abouts[id(plans[step.plans[-1]])]
            add(inner, given, f"{name}, of no rounds: ")
        elif isinstance(step, LoopStep) and not node["length"]:
            inner = self.abouts[id(plans[step.plans[-1]])]
            end = loop_of(node).carries(node).stop
            types = [p.type for p in inner.graph.parameters[end:]]
            slices = [np.zeros(t.shape, t.dtype) for t in types]
            add(inner, [*given[:end], *slices], f"{name}, of no rounds: ")
