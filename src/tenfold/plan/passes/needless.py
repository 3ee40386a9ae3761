"""Leave out needless carries: what a loop hands on and nobody reads, with all that is for it alone.

A variable that a loop assigns is carried from round to round, though each round may assign it
before it reads it, and nobody may read it after the loop, as `q` in `q = p.copy()` of a stencil.
That costs a copy a round. A carry is needed where its last value is, or where the condition, an
effect, or what else is needed reads it in a round, and where what may raise is computed for it.
Stacked results that nobody reads are left out likewise, then captures and slices that no round
reads.

It goes by the graph alone, whatever extents and literals are: backwards from the outputs, into the
bodies of loops and out of them, each value once. Loops that are equal have one body, of which is
needed what any of them needs. Branches need all that they are given.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import cached_property
from typing import Any

from tenfold.frozen import frozen
from tenfold.graph import Builder, Graph, Node
from tenfold.graph.op import Loop, Table
from tenfold.plan.passes.raising import raising


@frozen
class NeedlessCarries:
    """Values that a loop does not hand on any more: the user's line, and how many."""

    file: str
    line: int
    count: int

    def __str__(self) -> str:
        where = f"{self.file}, line {self.line}: " if self.file else ""
        which = "a value" if self.count == 1 else f"{self.count} values"
        return f"{where}{which} that nobody reads left out of what a loop carries"


def leave_out_carries(graph: Graph, table: Table) -> tuple[Graph, tuple[NeedlessCarries, ...]]:
    """The graph whose loops hand on what is needed, and what was left out."""
    found = _Needs(graph, table) if _has_loops(graph, table) else None
    notes = found.notes() if found is not None else ()
    return (found.write(), notes) if found is not None and notes else (graph, ())


def may_leave_out_carries(graph: Graph, table: Table) -> bool:
    """Whether a loop hands on what nobody reads. No literal decides that, nor any extent."""
    return _has_loops(graph, table) and bool(_Needs(graph, table).notes())


def _has_loops(graph: Graph, table: Table) -> bool:
    return any(isinstance(table[node.op].lowering, Loop) for node in graph.nodes)


class _Body:
    """What is needed of a graph, or of the body of a loop: its parameters, values and outputs."""

    def __init__(self, graph: Graph, carried: range = range(0)) -> None:
        self.graph = graph
        self.carried = carried  # parameters
        # The loops whose body it is, with the bodies that they stand in.
        self.users: list[tuple[_Body, Node]] = []
        self.inputs: set[int] = set()
        self.values: set[int] = set()
        self.results: set[int] = set()
        self.loops: dict[int, _Body] = {}  # by id of a node

    @cached_property
    def makers(self) -> list[int]:
        """The position of the node that makes a value, by value less the parameters."""
        return [p for p, node in enumerate(self.graph.nodes) for _ in node.types]

    def maker(self, value: int) -> tuple[Node, int] | None:
        """The node that makes a value, and which of its results it is; None for a parameter."""
        if value < len(self.graph.parameters):
            return None
        position = self.makers[value - len(self.graph.parameters)]
        return self.graph.nodes[position], value - self.graph.starts[position]


class _Needs:
    """What is needed of a graph and of the bodies of its loops."""

    def __init__(self, graph: Graph, table: Table) -> None:
        self.table = table
        self.bodies: dict[Any, _Body] = {}  # by what loops are alike in
        self.waiting: list[tuple[_Body, int]] = []
        self.root = _Body(graph)
        self.met = [self.root]  # bodies whose effects are still to be looked at
        for result in range(len(graph.outputs)):
            self._need_result(self.root, result)
        self._follow()
        for body in [b for b in self.bodies.values() if b.graph.outputs and not b.results]:
            self._need_result(body, 0)  # for effects alone: a node has its name by what it gives
            self._follow()
        if self.notes():
            self._need_raising()

    # What is needed.

    def _begin(self, body: _Body) -> None:
        """Effects are needed whatever is handed on."""
        for position in body.graph.effects:
            node = body.graph.nodes[position]
            if self._is_loop(node):
                self._loop(body, node)
            else:
                self.waiting.extend((body, value) for value in node.inputs)

    def _follow(self) -> None:
        waiting = self.waiting
        while self.met or waiting:
            if self.met:
                self._begin(self.met.pop())
                continue
            body, value = waiting.pop()
            if value in body.values:
                continue
            body.values.add(value)
            made = body.maker(value)
            if made is None:
                self._need_input(body, value)
                continue
            node, result = made
            if self._is_loop(node):
                self._need_result(self._loop(body, node), result)
            else:
                waiting.extend((body, v) for v in node.inputs)

    def _is_loop(self, node: Node) -> bool:
        return isinstance(self.table[node.op].lowering, Loop)

    def _loop(self, outer: _Body, node: Node) -> _Body:
        """The body of a loop that stands in another, or in the graph."""
        found = outer.loops.get(id(node))
        if found is not None:
            return found
        key = node.op, node.attributes, tuple([scope.digest for scope in node.scopes])
        body = self.bodies.get(key)
        fresh = body is None
        if body is None:
            lowering = self.table[node.op].lowering
            assert isinstance(lowering, Loop)
            body = self.bodies[key] = _Body(node.scopes[-1], lowering.carries(node))
        outer.loops[id(node)] = body
        body.users.append((outer, node))
        self.waiting.extend((outer, node.inputs[n]) for n in body.inputs)
        if fresh:
            self.met.append(body)
            for condition in node.scopes[:-1]:
                every = {v for one in condition.nodes for v in one.inputs}
                for value in sorted(every.union(condition.outputs)):
                    if value < len(condition.parameters):
                        self._need_input(body, value)
        return body

    def _need_result(self, body: _Body, result: int) -> None:
        if result in body.results:
            return
        body.results.add(result)
        self.waiting.append((body, body.graph.outputs[result]))
        if result < len(body.carried):
            self._need_input(body, body.carried[result])

    def _need_input(self, body: _Body, parameter: int) -> None:
        if parameter in body.inputs:
            return
        body.inputs.add(parameter)
        self.waiting.extend((outer, node.inputs[parameter]) for outer, node in body.users)
        if parameter in body.carried:
            self._need_result(body, parameter - body.carried.start)

    def _need_raising(self) -> None:
        """What may raise is needed though nobody reads it, and so is what depends on it."""
        places = raising(self.root.graph, self.table)
        done = 0
        while done <= len(self.bodies):
            bodies = [self.root, *self.bodies.values()]  # more of them are met on the way
            for body in bodies[done:]:
                self._need_dependents(body, places[body.graph.digest])
                self._follow()
            done = len(bodies)

    def _need_dependents(self, body: _Body, positions: Sequence[int]) -> None:
        """Outputs of a body, and inputs of loops in it, that depend on these nodes."""
        graph = body.graph
        waiting = set(positions).difference(graph.effects)
        dependent: set[int] = set()
        for position, (node, start) in enumerate(zip(graph.nodes, graph.starts, strict=True)):
            own = range(start, start + len(node.types))
            read = [n for n, v in enumerate(node.inputs) if v in dependent]
            if read and self._is_loop(node):
                inner = self._loop(body, node)
                for n in read:
                    self._need_input(inner, n)
            if read or (position in waiting and body.values.isdisjoint(own)):
                dependent.update(own)
        for result, value in enumerate(graph.outputs):
            if value in dependent:
                self._need_result(body, result)

    def notes(self) -> tuple[NeedlessCarries, ...]:
        """What each loop need not hand on."""
        found = []
        for body in self.bodies.values():
            count = len(body.graph.outputs) - len(body.results)
            for _, node in body.users if count else ():
                file, line = (node.source.file, node.source.line) if node.source else ("", 0)
                found.append(NeedlessCarries(file, line, count))
        return tuple(found)

    # What becomes of it.

    def write(self) -> Graph:
        """The graph anew: bodies before those that they stand in."""
        order = {scope.digest: n for n, scope in enumerate(self.root.graph.scopes())}
        made: dict[int, Graph] = {}  # by id of a body
        for body in sorted(self.bodies.values(), key=lambda body: order[body.graph.digest]):
            outputs = [body.graph.outputs[n] for n in sorted(body.results)]
            made[id(body)] = self._cut(body, body.graph, outputs, made)
        self.root.inputs.update(range(len(self.root.graph.parameters)))
        return self._cut(self.root, self.root.graph, self.root.graph.outputs, made)

    def _cut(
        self, body: _Body, graph: Graph, outputs: Iterable[int], made: dict[int, Graph]
    ) -> Graph:
        """A graph with the parameters that are needed, and the nodes."""
        builder, effects = Builder(self.table), set(graph.effects)
        found = {
            n: builder.parameter(graph.types[n], graph.parameters[n].name)
            for n in sorted(body.inputs)
        }
        for position, (node, start) in enumerate(zip(graph.nodes, graph.starts, strict=True)):
            own = range(start, start + len(node.types))
            if position not in effects and body.values.isdisjoint(own):
                continue
            builder.at = node.source
            inner = body.loops.get(id(node))
            if inner is None:
                results: Sequence[int] = own
                values = builder.again(node, [found[v] for v in node.inputs], False)
            else:
                results = [start + n for n in sorted(inner.results)]
                values = self._loop_again(builder, node, inner, found, made)
            found.update(zip(results, values, strict=True))
        return builder.finish([found[v] for v in outputs])

    def _loop_again(
        self,
        builder: Builder,
        node: Node,
        body: _Body,
        found: dict[int, int],
        made: dict[int, Graph],
    ) -> tuple[int, ...]:
        """The values of a loop that are needed."""
        kept = sorted(body.inputs)
        attributes = dict(node.attributes)
        attributes["captures"] = sum(n < body.carried.start for n in kept)
        if "carries" in attributes:
            attributes["carries"] = sum(n in body.carried for n in kept)
        scopes = [_narrowed(scope, kept, self.table) for scope in node.scopes[:-1]]
        inputs = [found[node.inputs[n]] for n in kept]
        return builder.node(node.op, inputs, attributes, [*scopes, made[id(body)]])


def _narrowed(condition: Graph, kept: Sequence[int], table: Table) -> Graph:
    """A condition that takes what is needed alone."""
    builder = Builder(table)
    found = {n: builder.parameter(condition.types[n], condition.parameters[n].name) for n in kept}
    for node, start in zip(condition.nodes, condition.starts, strict=True):
        builder.at = node.source
        values = builder.again(node, [found[v] for v in node.inputs], False)
        found.update(zip(range(start, start + len(node.types)), values, strict=True))
    return builder.finish([found[v] for v in condition.outputs])
