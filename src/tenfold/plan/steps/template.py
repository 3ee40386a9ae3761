"""Templates: planning is skipped for graphs that equal a planned one but for their sizes.

A graph is found by its structure: all that it is, with numbered sizes for its integers. Equal ones
are one size, and those that may be axes stand as they are. So two graphs of one structure agree in
which of their types and attributes are equal; sources and the data of literals do not count.

Where a structure comes back, its outline is made with Numbers for the sizes (`kernel/ir/number`):
whatever passes, fusion and forms ask of them is a fact, and what serves as a key of a table is told
apart from other keys. Where the facts hold for other sizes, planning would ask the same and decide
the same, so the outline is the template's with other numbers. Kernels are then sized by the facts
of their own forms, and memory is laid out anew. A plan depends on its graph alone: it is the same
with and without templates.

What is planned in full each time: graphs whose nodes own scopes (the scopes are graphs of their
own, and may have templates), compositions, what may be rounds of a loop, very large graphs.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence
from operator import itemgetter
from typing import Any

from tenfold.frozen import frozen
from tenfold.graph import Graph, Node, Parameter, Source
from tenfold.graph.build import vouch
from tenfold.graph.data import read_data
from tenfold.graph.op import Table
from tenfold.kernel.ir.number import Facts, Number, TableFacts
from tenfold.locks import Lock
from tenfold.plan.capabilities import Capabilities
from tenfold.plan.fusion.fuse import Item
from tenfold.plan.lowering.form import BoundForm, immediates
from tenfold.plan.lowering.general import SizedForm, general_forms
from tenfold.plan.passes.expand import expands
from tenfold.plan.passes.reroll.reroll import repeats
from tenfold.plan.passes.write_out import lay, note
from tenfold.plan.steps.outline import Outline, outline
from tenfold.stats import count
from tenfold.types import DTYPES, DType, TensorType

LARGE = 20_000  # nodes of a graph that is planned in full
EACH = 4  # templates of a structure; sizes that none of them holds for are planned in full
NODES = 1 << 17  # of all structures that are remembered

_FIRST = -2  # how the first size is written in a structure; integers from -1 on are themselves


@frozen
class Structure:
    """A graph but for its sizes: they are `key`'s numbers from -2 downwards."""

    key: Any
    sizes: tuple[int, ...]
    least: int  # integers up to this one stand as they are


def structure_of(graph: Graph, table: Table) -> Structure:
    """The structure of a graph without scopes."""
    types, _, forms, *rest = read_data(graph._canonical)
    least = max([2, *(len(type) - 1 for type in types)])
    sizes: dict[int, int] = {}

    def plain(value: Any) -> Any:
        if type(value) is tuple:
            return tuple([plain(v) for v in value])
        if type(value) is not int or -1 <= value <= least:
            return value
        return _FIRST - sizes.setdefault(value, len(sizes))

    kinds = plain(types)
    made = []
    for op, attributes, outputs, _, arity in forms:
        if table[op].literal:
            given = dict(attributes)
            data = given.pop("data")
            kept = data if data in immediates(DTYPES[types[outputs[0]][0]]) else None
            made.append((op, tuple(given.items()), kept, outputs, arity))
        else:
            made.append((op, plain(attributes), None, outputs, arity))
    return Structure((kinds, tuple(made), *rest), tuple(sizes), least)


def _declines(graph: Graph, table: Table) -> bool:
    """Whether graphs of this structure are planned in full."""
    return any(expands(node, table) for node in graph.nodes) or repeats(graph, table)


class Templates:
    """The templates for one table and one backend's capabilities, the least recently used dropped.

    A structure that is met for the first time is remembered; its template is made when it comes
    back, since making one takes longer than a plan does.
    """

    def __init__(self, table: Table, capabilities: Capabilities) -> None:
        self.table = table
        self.capabilities = capabilities
        self._known: OrderedDict[Any, _Known] = OrderedDict()
        self._weight = 0  # nodes of these
        self._lock = Lock()

    def find(self, graph: Graph) -> Outline | None:
        """The outline of a graph, unless it has to be planned in full."""
        if len(graph.nodes) > LARGE or any(node.scopes for node in graph.nodes):
            return None
        structure = structure_of(graph, self.table)
        with self._lock:
            known = self._known.get(structure.key)
            if known is None:
                self._remember(structure.key, len(graph.nodes))
                return None
            self._known.move_to_end(structure.key)
        return known.at(graph, structure, self)

    def _remember(self, key: Any, nodes: int) -> None:
        self._known[key] = _Known(nodes)
        self._weight += nodes
        while self._weight > NODES and len(self._known) > 1:
            _, gone = self._known.popitem(last=False)
            self._weight -= gone.nodes


class _Known:
    """A structure that was met before, and its templates so far; None where it has none."""

    def __init__(self, nodes: int) -> None:
        self.nodes = nodes
        self.templates: list[Template] | None = []
        self._making = Lock()

    def at(self, graph: Graph, structure: Structure, of: Templates) -> Outline | None:
        found = self._found(graph, structure.sizes)
        if found is not None or self.templates is None or len(self.templates) == EACH:
            return found
        with self._making:  # one thread makes it, the others wait and find it
            found = self._found(graph, structure.sizes)
            if found is not None or self.templates is None or len(self.templates) == EACH:
                return found
            if not self.templates and _declines(graph, of.table):
                self.templates = None
                return None
            made = Template(graph, structure, of.table, of.capabilities)
            self.templates.append(made)
            count("templates")
        return made.at(graph, structure.sizes)

    def _found(self, graph: Graph, sizes: tuple[int, ...]) -> Outline | None:
        for template in tuple(self.templates or ()):
            found = template.at(graph, sizes)
            if found is not None:
                return found
        return None


# What a value is, given the numbers in the places that were asked for.
Maker = Callable[[Sequence[int]], Any]


class _Places:
    """The places of numbers that a template is filled in with."""

    def __init__(self, facts: Facts) -> None:
        self.facts = facts
        self._wanted: dict[int, int] = {}  # by place: its number among these

    @property
    def wanted(self) -> tuple[int, ...]:
        return tuple(self._wanted)

    def of(self, value: Any) -> Maker:
        """How plain data with Numbers in it is made."""
        if not _has_numbers(value):
            return lambda _: value
        if type(value) is Number:
            return itemgetter(self._at(value))
        if len(value) > 1 and all(type(v) in (int, Number) for v in value):
            return itemgetter(*[self._at(v) for v in value])
        parts = [self.of(v) for v in value]
        return lambda numbers: tuple([part(numbers) for part in parts])

    def _at(self, number: Any) -> int:
        return self._wanted.setdefault(self.facts.place(number), len(self._wanted))


def _has_numbers(value: Any) -> bool:
    if type(value) is tuple:
        return any(map(_has_numbers, value))
    return type(value) is Number


def _numbered(graph: Graph, numbers: Mapping[int, Number], table: Table) -> Graph:
    """A graph with Numbers for its sizes. The source of each node is its position."""
    types: dict[TensorType, TensorType] = {}

    def plain(value: Any) -> Any:
        if type(value) is tuple:
            return tuple([plain(v) for v in value])
        return numbers.get(value, value) if type(value) is int else value

    def typed(type: TensorType) -> TensorType:
        made = types.get(type)
        if made is None:
            made = types[type] = TensorType(type.dtype, plain(type.shape))
        return made

    made = Graph(
        tuple([Parameter(typed(p.type), p.name) for p in graph.parameters]),
        tuple(
            [
                Node(
                    node.op,
                    node.inputs,
                    node.attributes if table[node.op].literal else plain(node.attributes),
                    (),
                    tuple([typed(type) for type in node.types]),
                    Source("", position, ""),
                )
                for position, node in enumerate(graph.nodes)
            ]
        ),
        graph.outputs,
        graph.effects,
    )
    vouch(made, table)
    return made


class Template:
    """The outline of a graph, for all sizes of which its facts hold."""

    def __init__(
        self, graph: Graph, structure: Structure, table: Table, capabilities: Capabilities
    ) -> None:
        self.table = table
        self.facts: Facts = TableFacts(structure.sizes, structure.least)
        numbered = _numbered(
            graph, dict(zip(structure.sizes, self.facts.sizes, strict=True)), table
        )
        laid = lay(numbered, table)
        forms = general_forms(table, capabilities.tune)
        self.outline = outline(laid, (), table, capabilities, forms)
        places = _Places(self.facts)
        self.graph = None if laid is numbered else _GraphTemplate(laid, places, table)
        self.forms: dict[int, tuple[SizedForm, Maker]] = {}  # by id
        self.items: list[tuple[BoundForm, Maker] | Item] = []
        for item in self.outline.items:
            if isinstance(item, BoundForm):
                self.forms[id(item.form)] = item.form, places.of(item.form.numbers)
                self.items.append((item, places.of(item.shifts)))
            else:
                self.items.append(item)
        self.wanted = places.wanted

    def at(self, graph: Graph, sizes: tuple[int, ...]) -> Outline | None:
        """The outline for another graph of the same structure; None where a fact does not hold."""
        numbers = self.facts.at(sizes, self.wanted)
        if numbers is None:
            return None
        written = graph if self.graph is None else self.graph.at(graph, numbers)
        note(graph, self.table, written, ())
        forms = {
            id(form): SizedForm(form.general, places(numbers))
            for form, places in self.forms.values()
        }
        items: list[BoundForm | Item] = []
        for item in self.items:
            if isinstance(item, Item):
                items.append(item)
                continue
            one, shifts = item
            items.append(
                BoundForm(
                    forms[id(one.form)], one.inputs, one.nodes, one.targets, shifts(numbers),
                    one.positions,
                )
            )  # fmt: skip
        of = self.outline
        return Outline(written, (), items, of.makers, of.alias, of.grouped, of.notes, of.reasons)


class _GraphTemplate:
    """A graph that was laid out, its numbers as places."""

    def __init__(self, graph: Graph, places: _Places, table: Table) -> None:
        self.table = table
        self.outputs, self.effects = graph.outputs, graph.effects
        numbers: dict[int, int] = {}  # by id: equal types are mostly one object
        self.types: list[tuple[DType, Maker]] = []
        self.nodes: list[tuple[Node, int, Maker | None, tuple[int, ...]]] = []
        for node in graph.nodes:
            for type in node.types:
                if id(type) not in numbers:
                    numbers[id(type)] = len(self.types)
                    self.types.append((type.dtype, places.of(type.shape)))
            assert node.source is not None
            given = None if table[node.op].literal else places.of(node.attributes)
            kinds = tuple([numbers[id(type)] for type in node.types])
            self.nodes.append((node, node.source.line, given, kinds))

    def at(self, graph: Graph, numbers: Sequence[int]) -> Graph:
        """The graph with these numbers; literals and sources are those of the one given."""
        types = [TensorType(dtype, places(numbers)) for dtype, places in self.types]
        given = graph.nodes
        made = Graph(
            graph.parameters,
            tuple(
                [
                    Node(
                        node.op,
                        node.inputs,
                        given[source].attributes if places is None else places(numbers),
                        (),
                        tuple([types[kind] for kind in kinds]),
                        given[source].source,
                    )
                    for node, source, places, kinds in self.nodes
                ]
            ),
            self.outputs,
            self.effects,
        )
        vouch(made, self.table)
        return made


_every: dict[tuple[int, Capabilities], Templates] = {}


def templates_of(table: Table, capabilities: Capabilities) -> Templates:
    """The templates by a table for a backend's capabilities, in this process."""
    key = id(table), capabilities
    return _every.get(key) or _every.setdefault(key, Templates(table, capabilities))
