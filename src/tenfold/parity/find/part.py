"""Parts of graphs: the nodes of one step as a graph of their own, and whole graphs of plans."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from tenfold.frozen import frozen
from tenfold.graph import Graph, Node, Parameter
from tenfold.graph.op import Composition, Loop
from tenfold.ops import TABLE
from tenfold.plan import BranchStep, CopyStep, KernelStep, LoopStep, Plan, Step
from tenfold.plan.capabilities import Capabilities
from tenfold.plan.passes.write_out import rerolled, write_out

Array = np.ndarray[Any, Any]
FEW = 3  # rounds of a loop that can be judged as a whole


@frozen
class Part:
    """Some nodes of a graph as a graph. `inputs` and `outputs` are values of the graph they come
    from; `nodes` are the positions there of the part's nodes."""

    graph: Graph
    inputs: tuple[int, ...]
    outputs: tuple[int, ...]
    nodes: tuple[int, ...]

    def arrays(self, values: Mapping[int, Array]) -> list[Array]:
        """The arguments, from the values of the graph."""
        types = [p.type for p in self.graph.parameters]
        return [
            np.asarray(values[v]).reshape(t.shape) for v, t in zip(self.inputs, types, strict=True)
        ]


def whole_graphs(plan: Plan) -> dict[int, Graph]:
    """The graph of each plan, by id, with the scopes that the plans below it carry out."""
    made: dict[int, Graph] = {}
    for one in plan.every:
        steps = {s.node: s for s in one.steps if s.kind in ("loop", "branch")}  # type: ignore[union-attr]
        if not steps:
            made[id(one)] = one.graph
            continue
        nodes = []
        for position, node in enumerate(one.graph.nodes):
            step: Any = steps.get(position)
            if step is not None:
                node = replace(node, scopes=tuple(made[id(one.plans[p])] for p in step.plans))
            nodes.append(node)
        made[id(one)] = Graph(
            one.graph.parameters, tuple(nodes), one.graph.outputs, one.graph.effects
        )
    return made


def part_of(graph: Graph, positions: Iterable[int], outputs: Iterable[int]) -> Part:
    """The nodes at these positions that the outputs need, as a graph that gives these outputs."""
    wanted = tuple(dict.fromkeys(outputs))
    within = sorted(positions)
    maker = {
        value: position
        for position in within
        for value in range(
            graph.starts[position], graph.starts[position] + len(graph.nodes[position].types)
        )
    }
    needed: set[int] = set()
    stack = [v for v in wanted if v in maker]
    while stack:
        position = maker[stack.pop()]
        if position not in needed:
            needed.add(position)
            stack.extend(v for v in graph.nodes[position].inputs if v in maker)
    order = sorted(needed)
    made = {v for v, p in maker.items() if p in needed}
    reads = [v for p in order for v in graph.nodes[p].inputs if v not in made]
    inputs = tuple(dict.fromkeys([*reads, *(v for v in wanted if v not in made)]))
    number = {value: n for n, value in enumerate(inputs)}
    count = len(inputs)
    nodes = []
    for position in order:
        node, start = graph.nodes[position], graph.starts[position]
        nodes.append(replace(node, inputs=tuple(number[v] for v in node.inputs)))
        for value in range(start, start + len(node.types)):
            number[value] = count
            count += 1
    made_of = Graph(
        tuple(Parameter(graph.types[v]) for v in inputs),
        tuple(nodes),
        tuple(number[v] for v in wanted),
    )
    return Part(made_of, inputs, wanted, tuple(order))


def computed(graph: Graph, step: Step) -> tuple[int, ...]:
    """The positions of the nodes that a step computes, from what it reads."""
    if isinstance(step, CopyStep):
        return ()
    if not isinstance(step, KernelStep):
        return (step.node,)
    # What it reads is given; what another kind of step makes is only copied here.
    given = {bisect_right(graph.starts, v) - 1 for v in step.reads}
    rows = [(p, TABLE[graph.nodes[p].op]) for p in step.nodes]
    return tuple([p for p, row in rows if p not in given and row.scopes == 0 and not row.effect])


def has_effects(node: Node) -> bool:
    """Whether a node asks for callbacks, itself or in a scope."""
    return TABLE[node.op].effect is not None or any(scope.effects for scope in node.scopes)


def loop_of(node: Node) -> Loop:
    """What kind of loop a node is."""
    lowering = TABLE[node.op].lowering
    assert isinstance(lowering, Loop)
    return lowering


def misplaced(plan: Plan, capabilities: Capabilities) -> tuple[Node, int] | None:
    """A node, and which of its scopes the plan has something else for; None if all is well."""
    known: dict[str, Graph] = {}
    for one in plan.every:
        for step in one.steps:
            if not isinstance(step, (LoopStep, BranchStep)):
                continue
            node = one.graph.nodes[step.node]
            for number, scope in enumerate(node.scopes):
                if scope.digest not in known:
                    known[scope.digest] = written_out(scope, capabilities)
                below = step.plans[number] if number < len(step.plans) else -1
                if below < 0 or one.plans[below].graph.digest != known[scope.digest].digest:
                    return node, number
    return None


def written_out(graph: Graph, capabilities: Capabilities) -> Graph:
    """The graph that a backend's plan of this graph carries out."""
    return write_out(graph, TABLE, capabilities)[0]


def is_rewritten(graph: Graph) -> bool:
    """Whether the planner writes an op as others, or nodes as a loop."""
    return any(
        rerolled(one, TABLE)[1]
        or any(isinstance(TABLE[node.op].lowering, Composition) for node in one.nodes)
        for one in (graph, *graph.scopes())
    )


def goes_long(node: Node) -> bool:
    """Whether a scope of a node has a loop of many rounds, or of nobody knows how many."""
    return any(
        isinstance(loop := TABLE[inner.op].lowering, Loop)
        and not (loop.counted and inner["length"] <= FEW)
        for scope in node.scopes
        for graph in (scope, *scope.scopes())
        for inner in graph.nodes
    )
