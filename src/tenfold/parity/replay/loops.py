"""Some rounds of a loop, natively: whether carries, slices and results go where they should.

The first few rounds are judged by the bounds of their ops, by the same step with the same slots;
some more by what rounding makes of the reference. The bodies' own steps are checked apart from
this, in rounds 0, 1, 2, 4, 8 and so on: `LATER` goes past a power of two.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from tenfold.graph import Graph, Node, Parameter
from tenfold.ops.rows.control import rounds_of
from tenfold.parity.find.part import FEW, loop_of
from tenfold.parity.replay.perturb import farther
from tenfold.parity.replay.replay import Frame, Replay
from tenfold.parity.replay.state import ScopeState
from tenfold.parity.rule.agree import Uncertain, Watch, compare, judged
from tenfold.plan import LoopStep, Plan, Slot
from tenfold.plan.steps.plan import ARENA, INPUT, OUTPUT
from tenfold.reference import evaluate
from tenfold.types import TensorType

Array = np.ndarray[Any, Any]
ROUNDS = FEW  # that are judged by bounds
LATER = 17  # that are judged by what rounding makes of them


def few_rounds(
    replay: Replay, state: ScopeState, at: int, count: int, watch: Watch | None = None
) -> str | None:
    """What is wrong with the first rounds of a loop, or None."""
    about = state.about
    step = about.plan.steps[at]
    assert isinstance(step, LoopStep)
    node = about.graph.nodes[step.node]
    loop = loop_of(node)
    reverse = loop.reversed(node)
    given = [np.asarray(state.values[v]) for v in node.inputs]
    for n in range(loop.carries(node).stop, len(given)):
        given[n] = given[n][-count:] if reverse else given[n][:count]
    graph = _graph(node, given, count)
    rounds = count + (step.length - node["length"] if loop.counted else 0)
    plan = _plan(about.plan, step, graph, rounds)
    frame = Frame(plan, given)
    (only,) = plan.steps
    assert isinstance(only, LoopStep)
    for number, slot in enumerate(only.inputs):  # a body that works in place begins in its result
        if plan.slots[slot].place == OUTPUT:
            frame.outputs[plan.slots[slot].number][...] = given[number]
    replay.run(frame, 0)
    found = _beyond(graph, given, frame.outputs, count, watch)
    if found is None:
        found = (0, frame.damage() or "")
    return f"after {count} rounds, result {found[0]}: {found[1]}" if found[1] else None


def _beyond(
    graph: Graph, given: list[Array], got: list[Array], count: int, watch: Watch | None
) -> tuple[int, str] | None:
    """The first result that is too far off, and how far."""
    try:
        if count > ROUNDS:
            wanted = evaluate(graph, given, None, (lambda *_: watch()) if watch else None)
            return farther(graph, given, got, wanted, watch)
        for number, (mine, one) in enumerate(zip(got, judged(graph, given, watch), strict=True)):
            found = compare(mine, one.value, one.allowed)
            if not found.agrees:
                return number, found.text
    except Uncertain:
        pass
    return None


def _graph(node: Node, given: list[Array], length: int) -> Graph:
    """The first rounds as a loop of so many."""
    number = len(given)
    made = rounds_of(node, loop_of(node), length)
    parameters = tuple(Parameter(TensorType(a.dtype, a.shape)) for a in given)
    return Graph(parameters, (made,), tuple(range(number, number + len(made.types))))


def _plan(plan: Plan, step: LoopStep, graph: Graph, rounds: int) -> Plan:
    """A plan of that one step, with its slots: those that are one in the step are one here."""
    slots: list[Slot] = []
    at: dict[int, int] = {}

    def put(old: int, slot: Slot) -> int:
        slots.append(slot)
        at[old] = len(slots) - 1
        return at[old]

    outputs = [
        put(old, Slot(type, OUTPUT, number))
        for number, (old, type) in enumerate(zip(step.outputs, graph.output_types, strict=True))
    ]
    inputs = tuple(
        at[old] if old in at else put(~n, Slot(p.type, INPUT, n))
        for n, (old, p) in enumerate(zip(step.inputs, graph.parameters, strict=True))
    )
    offset, second = 0, []
    for old in step.second:
        if old not in at:
            put(old, Slot(plan.slots[old].type, ARENA, 0, offset))
            offset += (plan.slots[old].type.nbytes + 127) // 64 * 64
        second.append(at[old])
    arena = len(slots)
    slots.append(Slot(plan.slots[step.arena].type, ARENA, 0, offset))
    offset += plan.slots[step.arena].type.nbytes
    body = plan.plans[step.plans[-1]]
    made = replace(
        step, op=graph.nodes[0].op, node=0, plans=(0,), inputs=inputs, outputs=tuple(outputs),
        second=tuple(second), arena=arena, flag=-1, length=rounds,
    )  # fmt: skip
    return Plan(graph, tuple(slots), (made,), tuple(outputs), (), (body,), (), offset + 64, offset)
