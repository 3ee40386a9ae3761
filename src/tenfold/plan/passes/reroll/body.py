"""The body of a loop: the graph of one round, and what it is given."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from itertools import pairwise

import numpy as np

from tenfold.frozen import frozen
from tenfold.graph import Builder, Graph, Node
from tenfold.ops.batching.rules import move
from tenfold.plan.passes.reroll.grow import Rounds
from tenfold.plan.passes.reroll.reads import Internal, Literals, Read, SameValue
from tenfold.types import I64, SHORT, Shape, TensorType

INDEX = TensorType(I64, ())
Made = tuple[int, int]  # a column and an output of it


@frozen
class Part:
    """Rows of a value from outside, along an axis, perhaps from the last to the first."""

    value: int
    starts: Shape
    stops: Shape
    steps: Shape
    axis: int
    backwards: bool

    def whole(self, type: TensorType) -> bool:
        """Whether no element of the value is left out."""
        return not any(self.starts) and self.stops == type.shape and set(self.steps) <= {1}

    def cut(self, builder: Builder, value: int) -> int:
        """The rows, along the first axis."""
        if not self.whole(builder.types[value]):
            given = {"starts": self.starts, "stops": self.stops, "steps": self.steps}
            (value,) = builder.node("slice", [value], given)
        if self.backwards:
            (value,) = builder.node("reverse", [value], {"axes": (self.axis,)})
        return move(builder, value, self.axis, 0) if self.axis else value


# What a body is given slices of: raw data and the type of a slice, or what is there.
Stack = tuple[bytes, TensorType] | Part


def regular(starts: Sequence[Shape]) -> tuple[int, int] | None:
    """The axis along which starts move by equal steps, and the step; None if they do not."""
    moves = [tuple(b - a for a, b in zip(*pair, strict=True)) for pair in pairwise(starts)]
    axes = [axis for axis, step in enumerate(moves[0]) if step]
    if len(axes) != 1 or moves.count(moves[0]) < len(moves):
        return None
    return axes[0], moves[0][axes[0]]


class Body:
    """The graph of one round of a loop.

    `captures` are values from outside, `carries` pairs of what is carried and the values that it
    begins with, the nearest round first, `stacks` what is sliced. The results are for each carry
    its values, the nearest round first, and those of `kept`, stacked. Of `last` the last round's
    are wanted. What has its id in `outer` is captured, though it is the same in all rounds.
    """

    def __init__(
        self,
        rounds: Rounds,
        kept: Sequence[Made],
        last: Sequence[Made],
        outer: Collection[int],
    ) -> None:
        self.rounds, self.kept, self.outer = rounds, tuple(kept), outer
        self.structure = rounds.structure
        self.builder = Builder(self.structure.table)
        self.regular = True  # whether all parts that are cut out are rows
        self.captures: dict[int | bytes, int] = {}  # a value, or a position: its parameter
        self.carries: dict[tuple[Made, tuple[int, ...]], list[int]] = {}  # parameters
        self.stacks: dict[Stack, int] = {}
        self._values: dict[int, tuple[int, ...]] = {}  # by column
        self._carried()
        for column in rounds.order():
            node = self._node(rounds.columns[column])
            inputs = [self._read(read) for read in rounds.reads[column]]
            self.builder.at = node.source
            self._values[column] = self._make(rounds.columns[column], inputs)
        begun = {made for made, _ in self.carries}
        self.zeros = tuple(made for made in last if made not in begun)  # carried for the end alone
        self.graph = self._finish()

    def type(self, made: Made) -> TensorType:
        return self._node(self.rounds.columns[made[0]]).types[made[1]]

    def _node(self, column: Sequence[int]) -> Node:
        return self.structure.nodes[column[self.rounds.low]]

    def _carried(self) -> None:
        for reads in self.rounds.reads:
            for read in reads:
                if isinstance(read, Internal) and read.distance:
                    key = self._carry(read)
                    if key not in self.carries:
                        type = self.type(key[0])
                        self.carries[key] = [
                            self.builder.parameter(type) for _ in range(read.distance)
                        ]

    def _carry(self, read: Internal) -> tuple[Made, tuple[int, ...]]:
        """What is carried, and what it begins with, the nearest round first."""
        first = read.values[self.rounds.low : self.rounds.low + read.distance]
        return (read.column, read.output), tuple(reversed(first))

    def _read(self, read: Read) -> int:
        if isinstance(read, SameValue):
            return self._capture(read.value)
        if isinstance(read, Literals):
            return self._literals(read)
        if isinstance(read, Internal):
            if not read.distance:
                return self._values[read.column][read.output]
            return self.carries[self._carry(read)][read.distance - 1]
        *outer, innermost = read.nodes
        self.builder.at = self._node(innermost).source
        if isinstance(read.source, SameValue):
            value = self._rows(innermost, read.source.value)
            if value is None:
                (value,) = self._make(innermost, [self._capture(read.source.value)])
        else:
            (value,) = self._make(innermost, [self._literals(read.source)])
        for nodes in reversed(outer):
            (value,) = self._make(nodes, [value])
        return value

    def _capture(self, value: int | bytes) -> int:
        if value not in self.captures:
            type = self.structure.graph.types[value] if isinstance(value, int) else INDEX
            self.captures[value] = self.builder.parameter(type)
        return self.captures[value]

    def _stack(self, stack: Stack, type: TensorType) -> int:
        if stack not in self.stacks:
            self.stacks[stack] = self.builder.parameter(type)
        return self.stacks[stack]

    def _literals(self, read: Literals) -> int:
        data, first = self.rounds.data(read), read.values[self.rounds.low]
        if data.count(data[0]) < len(data):
            type = self.structure.graph.types[first]
            return self._stack((b"".join(data), type), type)
        if id(read) in self.outer:
            return self._capture(first)
        node = self.structure.nodes[self.structure.makers[first]]
        return self.builder.node(node.op, (), dict(node.attributes))[0]

    def _make(self, column: Sequence[int], inputs: list[int]) -> tuple[int, ...]:
        """The node of a column; one that cuts a part out does so where each round does."""
        node = self._node(column)
        if self.structure.table[node.op].cuts:
            starts, outer = self.rounds.starts(column), id(column) in self.outer
            if outer or starts.count(starts[0]) < len(starts):
                return self._cut(node, starts, inputs[0], outer)
        return self.builder.node(node.op, inputs, dict(node.attributes), node.scopes)

    def _cut(self, node: Node, starts: list[Shape], value: int, outer: bool) -> tuple[int, ...]:
        """A part that begins elsewhere in each round."""
        self.regular = False
        positions = []
        for axis in range(node.types[0].rank):
            along = np.array([start[axis] for start in starts], I64)
            first = along[:1].tobytes()
            if (along != along[0]).any():
                positions.append(self._stack((along.tobytes(), INDEX), INDEX))
            elif outer:
                positions.append(self._capture(first))
            else:
                given = {"data": first, "type": SHORT[I64]}
                positions += self.builder.node("constant", (), given)
        # From the first element that is read to the last: where a round's part stops is its own.
        extents = tuple(
            max(0, (n - 1) * step + 1)
            for n, step in zip(node.types[0].shape, node["steps"], strict=True)
        )
        if set(node["steps"]) <= {1}:
            return self.builder.node("dynamic_slice", [value, *positions], {"sizes": extents})
        cut = self.builder.node("dynamic_slice", [value, *positions], {"sizes": extents})
        every = {"starts": (0,) * len(extents), "stops": extents, "steps": node["steps"]}
        return self.builder.node(node.op, cut, every)

    def _rows(self, column: Sequence[int], source: int) -> int | None:
        """Rows of a value, one after another, that are handed over one by one. A loop takes the
        first axis whole, as it lies; where rounds are lanes, rows of any axis are as good."""
        node, type = self._node(column), self.structure.graph.types[source]
        if not self.structure.table[node.op].cuts:
            return None
        rows = regular(self.rounds.starts(column))
        if rows is None or node.types[0].shape[rows[0]] != 1:
            return None
        axis, step = rows
        starts, stops, steps = (list(node[name]) for name in ("starts", "stops", "steps"))
        end = starts[axis] + step * (len(self.rounds) - 1)
        starts[axis], stops[axis] = min(starts[axis], end), max(starts[axis], end) + 1
        steps[axis] = abs(step)
        shape = (*node.types[0].shape[:axis], *node.types[0].shape[axis + 1 :])
        part = Part(source, tuple(starts), tuple(stops), tuple(steps), axis, step < 0)
        if not self.rounds.lanes and (axis or step < 0 or not part.whole(type)):
            return None
        value = self._stack(part, TensorType(type.dtype, shape))
        return self.builder.node("reshape", [value], {"shape": node.types[0].shape})[0]

    def _finish(self) -> Graph:
        results: list[int] = []
        carried: list[int] = []
        for ((column, output), _), parameters in self.carries.items():
            carried += parameters
            results += [self._values[column][output], *parameters[:-1]]
        for column, output in self.zeros:
            carried.append(self.builder.parameter(self.type((column, output))))
            results.append(self._values[column][output])
        results += [self._values[column][output] for column, output in self.kept]
        parameters = [*self.captures.values(), *carried, *self.stacks.values()]
        return self.builder.finish(results, parameters)
