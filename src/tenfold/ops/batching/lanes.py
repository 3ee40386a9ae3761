"""Lanes: what batching rules of control flow and effects share.

A lane is one place along the leading axis. Under a mask only some lanes are active: the others
go through the motions with whatever values they have, and nobody may notice. Rules keep one
promise: what runs under a mask runs only where at least one lane is active. So an unbatched
node needs no care, for it would do the same in that lane alone.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence
from typing import Any

from tenfold.frozen import frozen
from tenfold.graph.build import Builder
from tenfold.graph.node import Graph
from tenfold.graph.op import Lift
from tenfold.ops.batching.rules import Values, constant, make, reshape, shape_of, spread
from tenfold.types import BOOL, I64, TensorType

Flags = tuple[bool, ...]
Lifting = Generator[Lift, Any, Values]  # sent a graph, or values


@frozen
class BatchLanes:
    """Where a rule stands: the graph that is built, the lanes, and what is known of scopes."""

    builder: Builder
    size: int
    mask: int | None  # the value of the mask of active lanes; None: all are
    differs: Callable[[Graph, Sequence[bool]], Flags]  # which outputs differ, by parameters
    heeds: Callable[[Graph], bool]  # whether it has to know the mask
    small: Callable[[Graph], bool]  # whether it is cheap to run where no lane needs it

    def masks(self, *scopes: Graph) -> bool:
        """Whether these scopes are to be handed the mask."""
        return self.mask is not None and any(map(self.heeds, scopes))

    def active(self) -> int:
        """The mask as a value, also where all lanes are active."""
        if self.mask is not None:
            return self.mask
        return spread(self.builder, constant(self.builder, BOOL, True), self.size)

    def spread(self, inputs: Sequence[int], batched: Sequence[bool], wanted: Sequence[bool]) -> Any:
        """The inputs, those repeated along the leading axis that are wanted so and are not."""
        rows = zip(inputs, batched, wanted, strict=True)
        return [spread(self.builder, v, self.size) if w and not b else v for v, b, w in rows]

    def scope(self) -> Builder:
        """A new graph, whose nodes stand at the line of the node that is batched."""
        return Builder(self.builder.table, self.builder.at)

    def with_mask(self, masked: bool, *inputs: int) -> list[int]:
        """The inputs of a scope, the mask before them if it is masked."""
        return [self.active(), *inputs] if masked else list(inputs)


def choose(builder: Builder, lanes: int, yes: int, no: int) -> int:
    """For each lane one of two values, the first of them batched."""
    if yes == no:
        return yes
    (size,) = shape_of(builder, lanes)
    rank = len(shape_of(builder, yes))
    condition = reshape(builder, lanes, (size, *[1] * (rank - 1)))
    return make(builder, "select", condition, yes, no)


def zeros(builder: Builder, type: TensorType) -> int:
    """Zeros of this type."""
    zero = constant(builder, type.dtype, 0)
    return make(builder, "broadcast", zero, shape=type.shape) if type.shape else zero


def nothing(builder: Builder, graph: Graph) -> Graph:
    """A graph that takes and gives what this one does, does nothing and gives zeros."""
    empty = Builder(builder.table, builder.at)
    for parameter in graph.parameters:
        empty.parameter(parameter.type)
    return empty.finish([zeros(empty, type) for type in graph.output_types])


def run(builder: Builder, graph: Graph, inputs: Sequence[int]) -> Values:
    """The outputs of a graph on these values: put in place if it is flat, else called, so that
    a scope that is needed twice stays one scope."""
    if any(node.scopes for node in graph.nodes):
        return call(builder, graph, inputs)
    return builder.inline(graph, inputs)


def call(builder: Builder, graph: Graph, inputs: Sequence[int]) -> Values:
    """The outputs of a graph on these values: a switch of one branch."""
    return builder.node("switch", [constant(builder, I64, 0), *inputs], {}, [graph])


def run_if(builder: Builder, condition: int, graph: Graph, inputs: Sequence[int]) -> Values:
    """The outputs of a graph on these values where the condition holds, else zeros."""
    return builder.node("switch", [condition, *inputs], {}, [nothing(builder, graph), graph])


def per_lane(name: str) -> Callable[..., Lifting]:
    """One active lane after another: a loop over the lanes around the op as it is.

    It suits every op, and is the only way for one with an effect: what is called is called once
    for each active lane, in their order, with that lane's values.
    """

    def batch(
        lanes: BatchLanes,
        inputs: Sequence[int],
        batched: Sequence[bool],
        results: Sequence[bool],
        scopes: tuple[Graph, ...],
        **attributes: Any,
    ) -> Lifting:
        yield from ()  # it needs no scope batched
        builder, masked = lanes.builder, lanes.mask is not None
        types = [builder.types[v] for v in inputs]
        bare = [
            TensorType(t.dtype, t.shape[1:]) if b else t
            for t, b in zip(types, batched, strict=True)
        ]
        body = lanes.scope()
        # A loop's parameters are captures, then slices; the op wants them as they came.
        order = sorted(range(len(inputs)), key=lambda i: batched[i])
        captures = len(inputs) - sum(batched)
        given = {i: body.parameter(bare[i]) for i in order[:captures]}
        active = body.parameter(TensorType(BOOL, ())) if masked else None
        given |= {i: body.parameter(bare[i]) for i in order[captures:]}
        reads = [given[i] for i in range(len(inputs))]
        if active is None:
            made = body.node(name, reads, attributes, scopes)
        else:
            alone = lanes.scope()
            taken = [alone.parameter(type) for type in bare]
            once = alone.finish(alone.node(name, taken, attributes, scopes))
            made = run_if(body, active, once, reads)
        sliced = lanes.with_mask(masked, *(inputs[i] for i in order[captures:]))
        loop = {
            "captures": captures,
            "carries": 0,
            "length": lanes.size,
            "reverse": False,
            "unroll": 1,
        }
        fixed = [inputs[i] for i in order[:captures]]
        return builder.node("scan", [*fixed, *sliced], loop, [body.finish(made)])

    return batch
