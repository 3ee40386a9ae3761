"""Host steps, what a routine left unsolved, and what a kernel's fault means: nodes of a plan
carried out by the evaluator."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Container, Sequence
from typing import Any

import numpy as np

from tenfold.graph import Graph, Node, Parameter
from tenfold.graph.op import Element, Scatter
from tenfold.ops import TABLE
from tenfold.plan import HostStep, KernelStep, Plan, RoutineStep
from tenfold.reference import Callbacks, evaluate

Array = np.ndarray[Any, Any]


class HostCall:
    """A host step, a routine step that was left unsolved, or a kernel step whose check failed, as a
    graph of its own: called with what gives the array over a slot."""

    def __init__(self, plan: Plan, number: int) -> None:
        step = plan.steps[number]
        assert isinstance(step, (HostStep, RoutineStep, KernelStep))
        self._graph = _alone(plan, step)
        if not isinstance(step, KernelStep):
            self._reads, self._writes = step.inputs, step.outputs
        else:
            self._reads = (*step.slots[: len(step.reads)], *_begun(plan, step).values())
            self._writes = ()
        self._faulty = isinstance(step, KernelStep)

    def __call__(self, slot: Callable[[int], Array], callbacks: Callbacks) -> None:
        types = [p.type for p in self._graph.parameters]
        arrays = [slot(n).reshape(t.shape) for n, t in zip(self._reads, types, strict=True)]
        for array in arrays:
            array.flags.writeable = False
        results = evaluate(self._graph, arrays, callbacks)
        if self._faulty:
            raise SystemError("a kernel found a fault that the evaluator does not find")
        for number, result in zip(self._writes, results, strict=True):
            made = slot(number)
            made[...] = np.asarray(result).reshape(made.shape)


def _begun(plan: Plan, step: KernelStep) -> dict[int, int]:
    """Values that a scatter writes over, with the slots where it does. They are half written when
    a check fails, but what fails is an index."""
    graph, found = plan.graph, {}
    slots = dict(zip(step.writes, step.slots[len(step.reads) :], strict=False))
    for position in step.nodes:
        node, start = graph.nodes[position], graph.starts[position]
        fitting = isinstance(TABLE[node.op].lowering, Scatter) and start in slots
        if fitting and node.inputs[0] not in step.reads:
            found[node.inputs[0]] = slots[start]
    return found


def _alone(plan: Plan, step: HostStep | RoutineStep | KernelStep) -> Graph:
    """The nodes of a step as a graph of their own."""
    graph = plan.graph
    if not isinstance(step, KernelStep):
        node = graph.nodes[step.node]
        inputs = list(range(len(node.inputs)))
        first = len(inputs)
        made = Node(node.op, tuple(inputs), node.attributes, node.scopes, node.types, node.source)
        effects = (0,) if step.node in graph.effects else ()
        parameters = tuple(_parameter(graph, v) for v in node.inputs)
        return Graph(parameters, (made,), tuple(range(first, first + len(node.types))), effects)
    given = (*step.reads, *_begun(plan, step))
    number = {value: n for n, value in enumerate(given)}
    nodes: list[Node] = []
    count = len(given)
    for position in _with_views(graph, step.nodes, number):
        node, start = graph.nodes[position], graph.starts[position]
        if any(v not in number for v in node.inputs):
            continue  # made by another step: read from memory here
        nodes.append(
            Node(node.op, tuple(number[v] for v in node.inputs), node.attributes, node.scopes,
                 node.types, node.source)
        )  # fmt: skip
        for value in range(start, start + len(node.types)):
            number.setdefault(value, count)
            count += 1
    return Graph(tuple(_parameter(graph, v) for v in given), tuple(nodes), ())


def _parameter(graph: Graph, value: int) -> Parameter:
    """What stands for a value of the graph: errors call an argument by its name."""
    if value < len(graph.parameters):
        return graph.parameters[value]
    return Parameter(graph.types[value])


def _with_views(graph: Graph, nodes: Sequence[int], known: Container[int]) -> list[int]:
    """The nodes, each behind the views of known values that it reads: these have no step."""
    found: dict[int, None] = {}
    for position in nodes:
        chain = [position]
        for value in graph.nodes[position].inputs:
            while value not in known:
                maker = bisect_right(graph.starts, value) - 1
                if maker < 0 or not _moves(graph.nodes[maker]):
                    break
                chain.append(maker)
                (value,) = graph.nodes[maker].inputs
        found.update(dict.fromkeys(reversed(chain)))
    return list(found)


def _moves(node: Node) -> bool:
    """Whether a node makes each element from one of its one input, as a view does."""
    lowering = TABLE[node.op].lowering
    return len(node.inputs) == 1 and isinstance(lowering, Element) and not lowering.mixes
