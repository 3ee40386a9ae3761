"""Write groups down as forms: what each kernel computes, reads and writes."""

from __future__ import annotations

from collections.abc import Iterable, Sequence, Set
from dataclasses import replace
from functools import cache
from typing import Any

import numpy as np

from tenfold.frozen import frozen
from tenfold.graph.op import Ranges, Scatter, Table
from tenfold.kernel.ir.index import strides
from tenfold.ops.ranges import Start, WrittenRange
from tenfold.plan.fusion.fuse import Fusion
from tenfold.plan.fusion.groups import Group, find
from tenfold.plan.lowering.general import GeneralForms, SizedForm
from tenfold.plan.lowering.lower import (
    IMMEDIATE,
    LITERAL,
    SAME,
    Place,
    ScatterIndices,
)
from tenfold.plan.lowering.shorthand import FormKey, Said
from tenfold.types import DType


@frozen
class BoundForm:
    """A form with the values that its parts stand for in the graph.

    `shifts` has for each target where the range that is written begins in it, in bytes.
    """

    form: SizedForm
    inputs: tuple[int, ...]
    nodes: tuple[int, ...]  # values
    targets: tuple[int, ...]  # values
    over: tuple[int, ...]  # for each target the input that it begins as and is written over, or -1
    shifts: tuple[int, ...]
    positions: tuple[int, ...]  # of the graph's nodes that it carries out


@frozen
class _Wish:
    """A value to be written, along these axes of the group; whole, or into a range of another."""

    value: int
    place: Place
    into: int = -1
    shift: int = 0  # in bytes
    starts: tuple[tuple[int, int], ...] = ()  # where the program says: a value and its limit
    scatter: int = -1  # the node that says where, element by element
    over: int = -1  # the value whose copy it is written into, if it may be read from there


class Former:
    """Makes the forms of the groups of one graph."""

    def __init__(
        self, fused: Fusion, table: Table, general: GeneralForms, arrays: int = 1 << 30
    ) -> None:
        """A kernel touches so many arrays, if it can be had."""
        self.arrays = arrays
        self.fused = fused
        self.table = table
        self.general = general
        self.graph = fused.graph
        self.ranges: dict[int, list[WrittenRange]] = {}
        self.known: dict[Any, SizedForm] = {}  # by what they say, types being numbers
        self.maker = [-1] * len(fused.graph.types)
        for position, (node, start) in enumerate(
            zip(self.graph.nodes, self.graph.starts, strict=True)
        ):
            for value in range(start, start + len(node.types)):
                self.maker[value] = position

    def forms(self, group: Group) -> list[BoundForm]:
        """The kernels of a group: one, and one more for each value that does not fit its loops."""
        wishes = self.wishes(group)
        while True:
            main, apart = self.parted(group, wishes)
            made = self.within(group, main) if main else []
            done = {w.value for w in main if w.into < 0}
            wanted = {w.value for w in wishes if w.into < 0}
            missing: dict[int, _Wish] = {}
            for wish in sorted(apart, key=lambda w: (w.value, w.into)):
                bound = self.bind(group, [wish], frozenset(done - {wish.value}))
                made.append(bound)
                if wish.into < 0:
                    done.add(wish.value)
                for node, value in zip(bound.form.general.form.nodes, bound.nodes, strict=True):
                    if node.reduces and value not in wanted:
                        missing[value] = _Wish(value, self.place(value))
            if not missing:
                return made
            # A reduction that a value apart needs is stored rather than computed twice.
            wishes += missing.values()

    def within(self, group: Group, wishes: Sequence[_Wish]) -> list[BoundForm]:
        """The form that writes these values, or several where it touches too many arrays."""
        made, middle = self.bind(group, wishes, frozenset()), len(wishes) // 2
        few = len(made.inputs) + len(made.targets) <= self.arrays
        if few or not middle or group.over or group.ordered:
            return [made]
        return [*self.within(group, wishes[:middle]), *self.within(group, wishes[middle:])]

    def wishes(self, group: Group) -> list[_Wish]:
        fused = self.fused
        wishes = [
            _Wish(value, self.place(value))
            for value in sorted(group.members)
            if fused.stored[value]
        ]
        for position, number in group.writes:
            node, result = self.graph.nodes[position], self.graph.starts[position]
            lowering = self.table[node.op].lowering
            place = fused.write_places[position, number]
            if isinstance(lowering, Scatter):
                wishes.append(_Wish(node.inputs[1], place, result, scatter=position))
                continue
            assert isinstance(lowering, Ranges)
            if position not in self.ranges:
                types = [self.graph.types[v] for v in node.inputs]
                self.ranges[position] = lowering.ranges(types, dict(node.attributes))
            one = self.ranges[position][number]
            steps = strides(node.types[0].shape)
            fixed = [0 if isinstance(s, Start) else s for s in one.starts]
            shift = sum(s * step for s, step in zip(fixed, steps, strict=True))
            starts: tuple[tuple[int, int], ...] = ()
            if any(isinstance(s, Start) for s in one.starts):
                starts = tuple(
                    (node.inputs[s.input], s.limit) if isinstance(s, Start) else (-1, 0)
                    for s in one.starts
                )
            size = node.types[0].dtype.itemsize
            wish = _Wish(node.inputs[one.input], place, result, shift * size, starts)
            wishes.append(replace(wish, over=node.inputs[0]) if group.over else wish)
        return wishes

    def place(self, value: int) -> Place:
        """The axes of a value; axes of its own where its group has none for it."""
        place, home = self.fused.place[value], self.fused.home[value]
        if place is None or home is None or find(home)[1]:
            axes = self.fused.axes
            shape = self.graph.types[value].shape
            return tuple(None if n == 1 else axes.new(n) for n in shape)
        return place

    def parted(self, group: Group, wishes: Sequence[_Wish]) -> tuple[list[_Wish], list[_Wish]]:
        """What one nest of loops writes: the largest, and what lies on a level around it."""
        axes = self.fused.axes
        if len(wishes) < 2:
            return list(wishes), []
        ordered = [w for w in wishes if w.scatter >= 0]
        if ordered:  # its axes run in order: a kernel of its own
            inner, outer = self.parted(group, [w for w in wishes if w.scatter < 0])
            return inner, [*outer, *ordered]
        places = [[axes.find(a) for a in w.place if a is not None] for w in wishes]
        full = max(places, key=lambda p: (axes.size(p), len(p)))
        levels = {frozenset(axes.find(a) for a in free) for free in group.reductions}
        levels.update(frozenset(full[:n]) for n in range(len(full) + 1))
        main: list[_Wish] = []
        apart: list[_Wish] = []
        for wish, place in zip(wishes, places, strict=True):
            fits = set(place) == set(full) or (
                set(place) < set(full) and frozenset(place) in levels
            )
            (main if fits else apart).append(wish)
        return main, apart

    def bind(self, group: Group, wishes: Sequence[_Wish], cut: frozenset[int]) -> BoundForm:
        """The form that writes these values; `cut` are values of the group found in memory."""
        wanted = [w.value for w in wishes]
        wanted += [v for w in wishes for v, _ in w.starts if v >= 0]
        wanted += [v for w in wishes for v in self.indices(w)]
        memory = group.streams.difference(group.members) | cut
        order, inputs = self.reach(memory, wanted)
        number = {value: n for n, value in enumerate(order)}
        number.update((value, ~n) for n, value in enumerate(inputs))
        types, kinds = self.graph.types, self.fused.kinds
        nodes = [self.node(memory, value, number) for value in order]
        axes = self.fused.axes
        named: dict[int, int] = {}
        extents: list[int] = []

        def local(place: Place) -> Place:
            made: list[int | None] = []
            for axis in place:
                if axis is None:
                    made.append(None)
                    continue
                root = axes.find(axis)
                if root not in named:
                    named[root] = len(named)
                    extents.append(axes.extents[root])
                made.append(named[root])
            return tuple(made)

        largest = max(wishes, key=lambda w: types[w.value].size)
        local(largest.place)
        over = [inputs.index(w.over) if w.over in inputs else -1 for w in wishes]
        targets = tuple(
            [
                (
                    self.number(number, w.value, nodes, order),
                    local(w.place),
                    kinds[w.into] if w.into >= 0 else None,
                    tuple([(number[v] if v >= 0 else None, limit) for v, limit in w.starts]),
                    self.scattered(w, number),
                    at,
                )
                for w, at in zip(wishes, over, strict=True)
            ]
        )
        reductions = []
        for n, (node, value) in enumerate(zip(nodes, order, strict=True)):
            if not node[-1]:
                continue
            home = self.fused.home[value]
            place = self.fused.place[value]
            if home is not None and place is not None and not find(home)[1]:
                roots = [None if a is None else axes.find(a) for a in place]
                if all(r is None or r in named for r in roots):
                    reductions.append((n, local(place)))
        arriving = tuple([kinds[v] for v in inputs])
        key: Said = (tuple(nodes), arriving, targets, tuple(reductions), tuple(extents))
        form = self.known.get(key)
        if form is None:
            form = self.known[key] = self.general.said(key, self.fused.distinct)
        written = tuple(w.into if w.into >= 0 else w.value for w in wishes)
        shifts = tuple(w.shift for w in wishes)
        positions = {self.maker[v] for v in (*order, *written)}
        carried = tuple(sorted(positions - {-1}))
        return BoundForm(form, tuple(inputs), tuple(order), written, tuple(over), shifts, carried)

    def indices(self, wish: _Wish) -> tuple[int, ...]:
        """The values that say where a scatter writes."""
        return self.graph.nodes[wish.scatter].inputs[2:] if wish.scatter >= 0 else ()

    def scattered(self, wish: _Wish, number: dict[int, int]) -> ScatterIndices | None:
        if wish.scatter < 0:
            return None
        node = self.graph.nodes[wish.scatter]
        return ScatterIndices(
            node.op, node.attributes, tuple(number[v] for v in self.indices(wish))
        )

    def number(
        self,
        number: dict[int, int],
        value: int,
        nodes: list[FormKey],
        order: list[int],
    ) -> int:
        """The node that a target names; what is only copied gets one."""
        found = number[value]
        if found >= 0:
            return found
        nodes.append((SAME, None, (found,), self.fused.kinds[value], False))
        order.append(value)
        return len(nodes) - 1

    def reach(self, memory: Set[int], values: Iterable[int]) -> tuple[list[int], list[int]]:
        """The values computed for these, in order, and those read from memory, in the order in
        which they are met: the same for equal groups, wherever in the program they stand."""
        fused, graph = self.fused, self.graph
        order: set[int] = set()
        inputs: dict[int, None] = {}
        stack = list(values)
        while stack:
            value = stack.pop()
            if value in order or value in inputs:
                continue
            if value in memory:
                inputs[value] = None
                continue
            order.add(value)
            same = fused.alias[value]
            if same != value and same in memory:
                inputs[same] = None
                continue
            position = self.maker[value]
            assert position >= 0, "a parameter is read that is no stream of its group"
            stack.extend(graph.nodes[position].inputs)
        return sorted(order), list(inputs)

    def node(self, memory: Set[int], value: int, number: dict[int, int]) -> FormKey:
        fused, graph = self.fused, self.graph
        kind = fused.kinds[value]
        same = fused.alias[value]
        if same != value and same in memory:
            return SAME, None, (number[same],), kind, False
        position = self.maker[value]
        node, access = graph.nodes[position], fused.accesses[position]
        if self.table[node.op].literal:
            data = node["data"]
            if data in immediates(graph.types[value].dtype):
                return IMMEDIATE, data, (), kind, False
            return LITERAL, None, (), kind, False
        assert access is not None
        inputs = tuple([number[v] for v in node.inputs])
        return node.op, node.attributes, inputs, kind, bool(access.reduced)


@cache
def immediates(dtype: DType) -> frozenset[bytes]:
    """The literals that stay in a kernel as immediates: zeros, ones, minus one, and all of bool."""
    values: list[Any] = [0, 1]
    with np.errstate(all="ignore"):
        if dtype.kind not in "bu":
            values += [-1, -0.0] if dtype.kind not in "i" else [-1]
        return frozenset(np.asarray(v).astype(dtype).tobytes() for v in values)
