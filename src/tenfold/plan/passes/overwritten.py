"""Leave out updates that are written over: `a[i] -= x` and then `a[i] /= y` write one place twice.

Whatever reads the array between the two reads that place, which is the value that was written, or
places beside it, where the array is as it was before. So the first update need not be made. It is
left out where all that read its result are parts of either kind, and updates that write at least
where it wrote. Literals have to say where. Whoever reads the result whole, or a part across the
edge of what was written, has it made as before. So is what is made of nodes that may raise, where
one of these would be left out with it.

One walk decides. An update that is left out is written over by whatever updates its result, so what
lies beside the later one lies beside the earlier one as well.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from tenfold.frozen import frozen
from tenfold.graph import Graph, Node
from tenfold.graph.op import Ranges, Table
from tenfold.graph.rewrite import substitute
from tenfold.ops.ranges import Start, updates
from tenfold.plan.passes.raising import raising
from tenfold.types import Shape

# From where to where a part goes, for each axis.
Box = tuple[Shape, Shape]


@frozen
class OverwrittenUpdates:
    """Updates that were left out: the user's lines, and how many."""

    file: str
    first: int
    last: int
    count: int

    def __str__(self) -> str:
        lines = f"line {self.last}"
        if self.first < self.last:
            lines = f"lines {self.first} to {self.last}"
        where = f"{self.file}, {lines}: " if self.file else ""
        which = "an update that is" if self.count == 1 else f"{self.count} updates that are"
        return f"{where}{which} written over left out"


def leave_out(graph: Graph, table: Table) -> tuple[Graph, tuple[OverwrittenUpdates, ...]]:
    """The graph without updates that are written over, and what is said of them."""
    dead = _Updates(graph, table).dead() if may_leave_out(graph, table) else {}
    if not dead:
        return graph, ()
    made, before = _without(graph, table, dead), raising(graph, table)[graph.digest]
    if before and len(raising(made, table)[made.digest]) < len(before):
        for value in _made_of(graph, before, dead):
            del dead[value]
        made = _without(graph, table, dead)
    return (made, (_note(graph, dead),)) if dead else (graph, ())


def _made_of(graph: Graph, positions: Sequence[int], dead: dict[int, Box]) -> list[int]:
    """The dead updates that write what is made of these nodes, which are needed where these are."""
    made, found = set(positions), list[int]()
    known: set[int] = set()  # values
    for position, (node, start) in enumerate(zip(graph.nodes, graph.starts, strict=True)):
        if start in dead and node.inputs[1] in known:
            found.append(start)
        if position in made or not known.isdisjoint(node.inputs):
            known.update(range(start, start + len(node.types)))
    return found


def _without(graph: Graph, table: Table, dead: dict[int, Box]) -> Graph:
    """The graph without these updates."""
    instead: dict[int, int] = {}
    changed: dict[int, Node] = {}
    written: dict[int, tuple[int, Box]] = {}  # by value: what was to be written, and where
    for position, (node, start) in enumerate(zip(graph.nodes, graph.starts, strict=True)):
        if start in dead:
            instead[start], value = node.inputs[:2]
            written[start] = value, dead[start]
        elif table[node.op].cuts and node.inputs[0] in written:
            value, box = written[node.inputs[0]]
            part = _cut(node)
            if part == box and graph.types[value] == node.types[0]:
                instead[start] = value
            elif _within(part, box):
                changed[position] = _inside(node, value, box)
            # Else it is beside: of what there was before.
    return substitute(graph, table, instead, changed)


def _inside(node: Node, value: int, box: Box) -> Node:
    """A part of what was written, cut from that."""
    low, _ = box
    given = [
        (name, tuple([at - n for at, n in zip(here, low, strict=True)]))
        if name in ("starts", "stops")
        else (name, here)
        for name, here in node.attributes
    ]
    return Node(node.op, (value,), tuple(given), node.scopes, node.types, node.source)


def may_leave_out(graph: Graph, table: Table) -> bool:
    """Whether an update is updated. No literal decides that, nor any extent."""
    made: set[int] = set()
    for node, start in zip(graph.nodes, graph.starts, strict=True):
        if isinstance(table[node.op].lowering, Ranges):
            if node.inputs[0] in made:
                return True
            made.add(start)
    return False


class _Updates:
    """The updates of a graph that say where they write, by their values."""

    def __init__(self, graph: Graph, table: Table) -> None:
        self.graph, self.table = graph, table
        self._starts: dict[int, int] = {}  # of literals that are one integer, by value
        self._parts: dict[tuple[str, int, int], tuple[int | Start, ...] | None] = {}
        self.boxes: dict[int, Box] = {}
        for node, start in zip(graph.nodes, graph.starts, strict=True):
            row = table[node.op]
            if row.literal and node.types[0].dtype.kind == "i" and not node.types[0].rank:
                self._starts[start] = int(np.frombuffer(node["data"], node.types[0].dtype)[0])
            elif isinstance(row.lowering, Ranges):
                box = self._box(node, row.lowering)
                if box is not None:
                    self.boxes[start] = box

    def _box(self, node: Node, lowering: Ranges) -> Box | None:
        """Where a node writes its second input over its first; None where it does not say."""
        types = [self.graph.types[v] for v in node.inputs]
        key = node.op, id(types[0]), id(types[1]) if len(types) > 1 else 0
        if key not in self._parts:
            parts = lowering.ranges(types, dict(node.attributes))
            fits = updates(parts) and (parts[0].input, parts[1].input) == (0, 1)
            self._parts[key] = parts[1].starts if fits else None
        starts, known, low = self._parts[key], self._starts, []
        if starts is None:
            return None
        for at in starts:
            if isinstance(at, Start):
                found = known.get(node.inputs[at.input])
                if found is None:
                    return None
                at = min(max(found, 0), at.limit)
            low.append(at)
        high = [at + n for at, n in zip(low, types[1].shape, strict=True)]
        return tuple(low), tuple(high)

    def dead(self) -> dict[int, Box]:
        """Those that are written over, and read by parts that need them not."""
        kept = set(self.graph.outputs)
        over: set[int] = set()
        for node, start in zip(self.graph.nodes, self.graph.starts, strict=True):
            for number, value in enumerate(node.inputs):
                box = self.boxes.get(value)
                if box is None:
                    continue
                mine = self.boxes.get(start)
                if number == 0 and self.table[node.op].cuts:
                    part = _cut(node)
                    if not (_within(part, box) or _beside(part, box)):
                        kept.add(value)
                elif number == 0 and mine is not None and _within(box, mine):
                    over.add(value)
                else:
                    kept.add(value)
        return {value: self.boxes[value] for value in sorted(over - kept)}


def _cut(node: Node) -> Box:
    return node["starts"], node["stops"]


def _within(part: Box, whole: Box) -> bool:
    return all(map(int.__ge__, part[0], whole[0])) and all(map(int.__le__, part[1], whole[1]))


def _beside(part: Box, other: Box) -> bool:
    """Whether two parts have nothing in common; one of no elements has nothing."""
    return any(map(int.__ge__, part[0], other[1])) or any(map(int.__le__, part[1], other[0]))


def _note(graph: Graph, dead: dict[int, Box]) -> OverwrittenUpdates:
    """What is said of updates: the lines of those in the file that has most of them."""
    makers = zip(graph.nodes, graph.starts, strict=True)
    known = [n.source for n, start in makers if start in dead and n.source is not None]
    if not known:
        return OverwrittenUpdates("", 0, 0, len(dead))
    files = [source.file for source in known]
    file = max(set(files), key=files.count)
    lines = [source.line for source in known if source.file == file]
    return OverwrittenUpdates(file, min(lines), max(lines), len(dead))
