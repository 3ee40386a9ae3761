"""A template: the outline of a graph for all sizes of which its facts hold.

It is made with Numbers for the sizes (`kernel/ir/number`): whatever passes, fusion and forms ask of
them is a fact, and what serves as a key of a table is told apart from other keys. Where the facts
hold for other sizes, planning would ask the same and decide the same, so the outline is the
template's with other numbers. Kernels are then sized by the facts of their own forms, and memory is
laid out anew.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from operator import itemgetter
from typing import Any

from tenfold.graph import Graph, Node
from tenfold.graph.build import vouch
from tenfold.graph.op import Table
from tenfold.kernel.ir.number import Facts, Number, TableFacts
from tenfold.plan.capabilities import Capabilities
from tenfold.plan.fusion.fuse import Item
from tenfold.plan.lowering.form import BoundForm
from tenfold.plan.lowering.general import SizedForm, general_forms
from tenfold.plan.passes.expand import expand
from tenfold.plan.passes.write_out import Found, lay
from tenfold.plan.steps.outline import Outline, outline
from tenfold.plan.steps.structure import Structure, numbered
from tenfold.types import DType, TensorType

# What plain data is, given the numbers in the places that were asked for.
Maker = Callable[[Sequence[int]], Any]


class Template:
    """The outline of a graph, to be filled in with numbers."""

    def __init__(
        self, graph: Graph, structure: Structure, table: Table, capabilities: Capabilities
    ) -> None:
        self.facts = TableFacts(structure.sizes, structure.least)
        numbers = dict(zip(structure.sizes, self.facts.sizes, strict=True))
        given = numbered(graph, numbers, table)
        laid = lay(expand(given, table), table, capabilities.multiplied)
        types = {id(t): t.shape for t in laid.types}  # equal ones are mostly one object
        self.facts.tell_apart(_integers((*types.values(), *[n.attributes for n in laid.nodes])))
        forms = general_forms(table, capabilities.tune)
        self.outline = outline(laid, (), table, capabilities, forms)
        places = _Places(self.facts)
        self.graph = None if laid is given else _GraphTemplate(laid, graph, places, table)
        self.forms: dict[int, tuple[SizedForm, Maker]] = {}  # by id
        self.items: list[tuple[BoundForm, Maker] | Item] = []
        for item in self.outline.items:
            if isinstance(item, BoundForm):
                self.forms[id(item.form)] = item.form, places.of(item.form.numbers)
                self.items.append((item, places.of(item.shifts)))
            else:
                self.items.append(item)
        self.wanted = places.wanted

    def at(self, graph: Graph, sizes: tuple[int, ...], loops: Found) -> Outline | None:
        """The outline of another graph of the same structure; None where a fact does not hold."""
        numbers = self.facts.at(sizes, self.wanted)
        if numbers is None:
            return None
        forms = {
            number: SizedForm(form.general, values(numbers))
            for number, (form, values) in self.forms.items()
        }
        items: list[BoundForm | Item] = []
        for item in self.items:
            if isinstance(item, Item):
                items.append(item)
                continue
            one, shifts = item
            items.append(
                BoundForm(
                    forms[id(one.form)], one.inputs, one.nodes, one.targets, one.over,
                    shifts(numbers), one.positions,
                )
            )  # fmt: skip
        laid = graph if self.graph is None else self.graph.at(graph, numbers)
        of = self.outline
        return Outline(laid, loops, items, of.makers, of.alias, of.grouped, of.notes, of.reasons)


class _GraphTemplate:
    """A graph that was laid out, to be filled in with numbers."""

    def __init__(self, laid: Graph, graph: Graph, places: _Places, table: Table) -> None:
        self.table = table
        self.outputs, self.effects = laid.outputs, laid.effects
        numbers: dict[int, int] = {}  # by id: equal types are mostly one object
        self.types: list[tuple[DType, Maker]] = []
        # With each node the position of the one it comes from, its attributes, None for that one's,
        # and the numbers of its types.
        self.nodes: list[tuple[Node, int, Maker | None, tuple[int, ...]]] = []
        for node in laid.nodes:
            for type in node.types:
                if id(type) not in numbers:
                    numbers[id(type)] = len(self.types)
                    self.types.append((type.dtype, places.of(type.shape)))
            assert node.source is not None
            source = node.source.line
            own = table[node.op].literal and table[graph.nodes[source].op].literal
            made = None if own else places.of(node.attributes)
            kinds = tuple([numbers[id(type)] for type in node.types])
            self.nodes.append((node, source, made, kinds))

    def at(self, graph: Graph, numbers: Sequence[int]) -> Graph:
        """The graph with these numbers; literals, scopes and lines are those of the one given."""
        types = [TensorType(dtype, shape(numbers)) for dtype, shape in self.types]
        given = graph.nodes
        made = Graph(
            graph.parameters,
            tuple(
                [
                    Node(
                        node.op,
                        node.inputs,
                        given[source].attributes if attributes is None else attributes(numbers),
                        given[source].scopes if node.scopes else (),
                        tuple([types[kind] for kind in kinds]),
                        given[source].source,
                    )
                    for node, source, attributes, kinds in self.nodes
                ]
            ),
            self.outputs,
            self.effects,
        )
        vouch(made, self.table)
        return made


class _Places:
    """The places of the numbers that a template is filled in with."""

    def __init__(self, facts: Facts) -> None:
        self.facts = facts
        self._wanted: dict[int, int] = {}  # by place: its number among these

    @property
    def wanted(self) -> tuple[int, ...]:
        return tuple(self._wanted)

    def of(self, value: Any) -> Maker:
        """How plain data with Numbers in it is made."""
        if not any(type(n) is Number for n in _integers(value)):
            return lambda _: value
        if type(value) is Number:
            return itemgetter(self._at(value))
        if len(value) > 1 and all(type(v) in (int, Number) for v in value):
            return itemgetter(*[self._at(v) for v in value])
        parts = [self.of(v) for v in value]
        return lambda numbers: tuple([part(numbers) for part in parts])

    def _at(self, number: Any) -> int:
        return self._wanted.setdefault(self.facts.place(number), len(self._wanted))


def _integers(value: Any) -> Iterator[Any]:
    """The integers and Numbers in plain data."""
    items = [value]
    for item in items:
        if type(item) is tuple:
            items.extend(item)
        elif type(item) is int or type(item) is Number:
            yield item
