"""Batching: a graph that does for every lane of a leading axis what another does once.

Each node is batched by its row's rule; a node that nothing batched reaches stays as it is.
Scopes are batched as the rules ask for them, on a stack of frames and not by recursion: the
rule of an op with scopes is a generator that yields Lift and is sent the batched scope.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from tenfold.errors import TenfoldError
from tenfold.graph import Builder, Graph, Node
from tenfold.graph.op import Branch, Lift
from tenfold.ops import TABLE
from tenfold.ops.batching.differs import ALWAYS, union
from tenfold.ops.batching.lanes import BatchLanes, Flags, Lifting
from tenfold.ops.batching.rules import spread
from tenfold.types import BOOL, TensorType

SMALL = 256  # nodes of a branch that is put in place


def batch(graph: Graph, batched: Sequence[bool], size: int) -> tuple[Graph, Flags]:
    """The graph for so many lanes, where these parameters have a leading axis for them; and
    which of its outputs have one.

    >>> import tenfold as tn
    >>> graph = tn.trace(lambda x, y: (x + y, y * 2), tn.spec(3), tn.spec(()))
    >>> lifted, flags = batch(graph, (True, False), 4)
    >>> lifted.output_types, flags
    ((f64[4,3], f64), (True, False))
    """
    known = Knowledge(graph.scopes())
    results = known.reached(graph, batched)
    wanted = Lift(graph, tuple(batched), results, masked=False)
    made: dict[tuple[int, Flags, Flags, bool], Graph] = {}
    stack = [_Frame(wanted, size, known, Builder(TABLE))]
    reply: Graph | tuple[int, ...] | None = None
    while stack:
        frame = stack[-1]
        request = frame.advance(reply)
        if isinstance(request, Lift):
            reply = made.get(_key(request)) if request.inputs is None else None
            if reply is None:
                builder = Builder(TABLE) if request.inputs is None else frame.lanes.builder
                stack.append(_Frame(request, size, known, builder))
            continue
        if isinstance(request, Graph):
            made[_key(frame.lift)] = request
        reply = request
        stack.pop()
    assert isinstance(reply, Graph)
    return reply, results


def _key(lift: Lift) -> tuple[int, Flags, Flags, bool]:
    # By identity, not by program: equal scopes may stand at different lines.
    return id(lift.graph), lift.batched, lift.results, lift.masked


class Knowledge:
    """What holds of scopes whatever is batched, found in one walk over each."""

    def __init__(self, scopes: Sequence[Graph]) -> None:  # each before those that own it
        self._depends: dict[str, list[int]] = {}  # by digest: what each output depends on
        self._heeds: dict[str, bool] = {}
        self._weights: dict[str, float] = {}  # in nodes, branches counted with what owns them
        for scope in scopes:
            self._look(scope)

    def _look(self, graph: Graph) -> None:
        sets = [1 << (i + 1) for i in range(len(graph.parameters))]
        heeds, weight = False, float(len(graph.nodes))
        for node in graph.nodes:
            row, given = TABLE[node.op], dict(node.attributes)
            reads = [sets[v] for v in node.inputs]
            if row.differs is not None:
                inner = [self._depends[scope.digest] for scope in node.scopes]
                sets.extend(row.differs(reads, inner, **given))
            else:
                sets.extend([union(reads)] * len(node.types))
            heeds = (
                heeds
                or row.heeds(tuple(graph.types[v] for v in node.inputs), given)
                or any(self._heeds[scope.digest] for scope in node.scopes)
            )
            if node.scopes:
                inside = sum(self._weights[scope.digest] for scope in node.scopes)
                weight += inside if isinstance(row.lowering, Branch) else math.inf
        self._depends[graph.digest] = [sets[v] for v in graph.outputs]
        self._heeds[graph.digest] = heeds
        self._weights[graph.digest] = weight

    def differs(self, graph: Graph, batched: Sequence[bool]) -> Flags:
        """Which outputs of a scope differ between lanes where these parameters do."""
        given = union([1 << (i + 1) for i, own in enumerate(batched) if own])
        return tuple(bool(found & (given | ALWAYS)) for found in self._depends[graph.digest])

    def results(self, node: Node, batched: Sequence[bool]) -> Flags:
        """Which results of a node differ between lanes where these inputs do."""
        row = TABLE[node.op]
        if row.differs is None:
            return (any(batched),) * len(node.types)
        inner = [self._depends[scope.digest] for scope in node.scopes]
        sets = [ALWAYS if own else 0 for own in batched]
        return tuple(map(bool, row.differs(sets, inner, **dict(node.attributes))))

    def reached(self, graph: Graph, batched: Sequence[bool]) -> Flags:
        """Which outputs differ, of a graph that is not one of the scopes."""
        flags = list(batched)
        for node in graph.nodes:
            flags.extend(self.results(node, [flags[v] for v in node.inputs]))
        return tuple(flags[v] for v in graph.outputs)

    def heeds(self, graph: Graph) -> bool:
        """Whether it matters to this graph which lanes are active: something in it may raise,
        go on for ever or be noticed."""
        return self._heeds[graph.digest]

    def small(self, graph: Graph) -> bool:
        """Whether this graph may be put in place wherever it is used: no loops, and few nodes,
        so that a scope that many share does not grow out of proportion."""
        return self._weights[graph.digest] <= SMALL


class _Frame:
    """One graph that is being batched: where it stands and what its values became."""

    def __init__(self, lift: Lift, size: int, known: Knowledge, builder: Builder) -> None:
        self.lift = lift
        self.known = known
        self.position = 0
        if lift.inputs is None:
            given = [builder.parameter(TensorType(BOOL, (size,)))] if lift.masked else []
            for parameter, own in zip(lift.graph.parameters, lift.batched, strict=True):
                type = parameter.type
                if own:
                    type = TensorType(type.dtype, (size, *type.shape))
                given.append(builder.parameter(type, parameter.name))
        else:
            given = list(lift.inputs)
        mask = given.pop(0) if lift.masked else None
        self.values: list[int] = given
        self.batched = list(lift.batched)
        self.lanes = BatchLanes(builder, size, mask, known.differs, known.heeds, known.small)
        self.waiting: Lifting | None = None

    def advance(self, reply: Graph | tuple[int, ...] | None) -> Lift | Graph | tuple[int, ...]:
        """Go on to the next scope that a rule wants batched, or to the end."""
        graph, builder = self.lift.graph, self.lanes.builder
        while self.position < len(graph.nodes):
            node = graph.nodes[self.position]
            builder.at = node.source
            try:
                if self.waiting is None:
                    self._start(node)
                    if self.waiting is None:
                        continue
                    return next(self.waiting)
                return self.waiting.send(reply)
            except StopIteration as stop:
                self._finish(node, stop.value)
            except TenfoldError as error:
                error.at(str(node.source) if node.source else None)
                raise
        outputs = self._outputs()
        if self.lift.inputs is not None:
            return tuple(outputs)
        return builder.finish(outputs)

    def _start(self, node: Node) -> None:
        """Batch a node without scopes and effects; of any other, start its rule."""
        row, lanes = TABLE[node.op], self.lanes
        builder, given = lanes.builder, dict(node.attributes)
        inputs: Sequence[int] = [self.values[v] for v in node.inputs]
        batched = [self.batched[v] for v in node.inputs]
        effect = row.effect or any(scope.effects for scope in node.scopes)
        if not any(batched) and not effect:
            self._finish(node, builder.node(node.op, inputs, given, node.scopes))
        elif row.effect or node.scopes:
            results = self.known.results(node, batched)
            self.waiting = row.batch(lanes, inputs, batched, results, node.scopes, **given)
        else:
            if lanes.mask is not None and row.guard is not None:
                types = tuple(self.lift.graph.types[v] for v in node.inputs)
                if row.heeds(types, given):
                    inputs = row.guard(builder, inputs, batched, lanes.mask, lanes.size, **given)
            self._finish(node, row.batch(builder, inputs, batched, lanes.size, **given))

    def _finish(self, node: Node, values: Sequence[int]) -> None:
        """Take down what the node at hand became and go on to the next one."""
        batched = [self.batched[v] for v in node.inputs]
        self.values.extend(values)
        self.batched.extend(self.known.results(node, batched))
        self.waiting = None
        self.position += 1

    def _outputs(self) -> list[int]:
        builder, size = self.lanes.builder, self.lanes.size
        made = []
        for v, wanted in zip(self.lift.graph.outputs, self.lift.results, strict=True):
            value = self.values[v]
            assert wanted or not self.batched[v]
            made.append(spread(builder, value, size) if wanted != self.batched[v] else value)
        return made
