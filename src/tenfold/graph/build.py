"""The builder: nodes are added one by one, equal ones merged, and finished into a graph."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any
from weakref import WeakValueDictionary

from tenfold.errors import GraphError
from tenfold.graph.node import Attributes, Graph, Node, Parameter, Source
from tenfold.graph.op import Op, Table, Types
from tenfold.types import TensorType


class NodeKind:
    """What nodes are alike in: op, attributes, scopes and the types of inputs and results. It has
    the nodes of its kind, those with effects aside: each one's values by its inputs."""

    __slots__ = ("attributes", "effect", "made", "name", "numbers", "scopes", "types")

    def __init__(
        self,
        name: str,
        attributes: Attributes,
        scopes: tuple[Graph, ...],
        types: Types,
        numbers: list[int],
        effect: bool,
    ) -> None:
        self.name = name
        self.attributes = attributes
        self.scopes = scopes
        self.types = types
        self.numbers = numbers  # of the types
        self.effect = effect
        self.made: dict[tuple[int, ...], tuple[int, ...]] = {}


class Builder:
    """Collects the nodes of one graph.

    Values are numbered in the order they are made. `node` gives a node's values; an equal
    node made earlier gives the same ones, unless it has an effect.
    """

    def __init__(self, table: Table, at: Any = None) -> None:
        self.table = table
        self.at = at  # the source of nodes that are made without one
        self.types: list[TensorType] = []  # by value
        self.parameters: list[int] = []  # values
        self.names: dict[int, str] = {}
        self.effects: list[int] = []  # positions of nodes
        # By position: a node's kind, the values it reads, its first value, its source.
        self._kinds: list[NodeKind] = []
        self._inputs: list[tuple[int, ...]] = []
        self._firsts: list[int] = []
        self._sources: list[Any] = []
        self._makers: list[int] = []  # by value: position of its node, -1 for a parameter
        # Types are hashed once, when a kind (op, numbers of input types, attributes) is new.
        self._type_numbers: dict[TensorType, int] = {}
        self._numbers: list[int] = []  # by value: the number of its type
        self._known: dict[Any, NodeKind] = {}
        self._ordered: tuple[Any, list[int]] = (None, [])  # what was asked for last, the answer

    def __len__(self) -> int:
        return len(self._kinds)

    def parameter(self, type: TensorType, name: str = "") -> int:
        value = len(self.types)
        self.types.append(type)
        self._numbers.append(self._type_numbers.setdefault(type, len(self._type_numbers)))
        self._makers.append(-1)
        self.parameters.append(value)
        self.names[value] = name
        return value

    def node(
        self,
        name: str,
        inputs: Sequence[int] = (),
        attributes: Mapping[str, Any] | Attributes | None = None,
        scopes: Sequence[Graph] = (),
        source: Any = None,
        types: Types | None = None,
    ) -> tuple[int, ...]:
        """The values of a node with this op, these inputs, attributes and scopes. Attributes of a
        node are taken as they are; so are its types."""
        if isinstance(attributes, tuple):
            given = attributes
        else:
            given = self.table[name].normalise(attributes) if attributes else ()
        reads, numbers = tuple(inputs), self._numbers
        key = (name, given, tuple(scopes), *map(numbers.__getitem__, reads))
        kind = self._known.get(key)
        if kind is None:
            kind = self._known[key] = self._kind(name, reads, given, tuple(scopes), types)
        first, position, count = len(numbers), len(self._kinds), len(kind.types)
        values = (first,) if count == 1 else tuple(range(first, first + count))
        if kind.effect:
            self.effects.append(position)
        else:
            found = kind.made.setdefault(reads, values)
            if found is not values:
                return found
        self.types += kind.types
        numbers += kind.numbers
        if count == 1:
            self._makers.append(position)
        else:
            self._makers += [position] * count
        self._kinds.append(kind)
        self._inputs.append(reads)
        self._firsts.append(first)
        self._sources.append(source or self.at)
        return values

    def again(self, node: Node, inputs: Sequence[int], alike: bool) -> tuple[int, ...]:
        """The values of a node of another graph over these inputs; `alike`: of the same types."""
        types = node.types if alike else None
        return self.node(node.op, inputs, node.attributes, node.scopes, None, types)

    def _kind(
        self,
        name: str,
        inputs: tuple[int, ...],
        given: Attributes,
        scopes: tuple[Graph, ...],
        types: Types | None,
    ) -> NodeKind:
        """The kind of a node that is the first of its kind."""
        op = self.table[name]
        if not given and op.attributes:
            op.normalise({})  # an error says which ones it needs
        if types is None:
            arriving = tuple(map(self.types.__getitem__, inputs))
            types = infer_by(op, arriving, given, scopes)
        known = self._type_numbers
        numbers = [known.setdefault(t, len(known)) for t in types]
        effect = bool(op.effect) or (bool(scopes) and any(scope.effects for scope in scopes))
        return NodeKind(op.name, given, scopes, types, numbers, effect)

    def inline(self, graph: Graph, inputs: Sequence[int]) -> tuple[int, ...]:
        """The outputs of a graph whose nodes are added here, its parameters being these values."""
        values = list(inputs)
        for node in graph.nodes:
            reads = [values[v] for v in node.inputs]
            values.extend(self.node(node.op, reads, node.attributes, node.scopes, node.source))
        return tuple(values[v] for v in graph.outputs)

    def source(self, value: int) -> Any:
        """What was given as the source of the node that made this value."""
        maker = self._makers[value]
        return self._sources[maker] if maker >= 0 else None

    def order(self, outputs: Iterable[int]) -> list[int]:
        """Positions of the nodes that count, depth-first from effects and outputs."""
        key = (len(self._kinds), tuple(outputs))  # nodes are added, never changed
        if key != self._ordered[0]:
            self._ordered = key, self._order(key[1])
        return self._ordered[1]

    def _order(self, outputs: tuple[int, ...]) -> list[int]:
        done = bytearray(len(self._kinds))
        order: list[int] = []
        makers, inputs = self._makers, self._inputs
        stack = [makers[v] for v in reversed(outputs)]
        stack += reversed(self.effects)
        while stack:
            position = stack[-1]
            if position < 0 or done[position] == 2:
                stack.pop()
            elif done[position]:  # all its inputs stand in the order by now
                done[position] = 2
                order.append(position)
                stack.pop()
            else:
                done[position] = 1
                for value in reversed(inputs[position]):
                    maker = makers[value]
                    if maker >= 0 and not done[maker]:
                        stack.append(maker)
        return order

    def used(self, outputs: Sequence[int]) -> list[int]:
        """The parameters that count, by first use in canonical order."""
        first: dict[int, None] = {}
        makers = self._makers
        for position in self.order(outputs):
            for v in self._inputs[position]:
                if makers[v] < 0:
                    first[v] = None
        first.update((v, None) for v in outputs if makers[v] < 0)
        return list(first)

    def finish(
        self,
        outputs: Sequence[int],
        parameters: Sequence[int | TensorType] | None = None,
        locate: Callable[[Any], Source | None] = lambda source: source,
    ) -> Graph:
        """The canonical closed graph of these outputs and the effects so far.

        `parameters` gives the order of the parameters; a type in it stands for one that this
        graph does not read. Without it they come in the order they were made.
        """
        wanted = self.parameters if parameters is None else parameters
        number: dict[int, int] = {}
        made: list[Parameter] = []
        for position, value in enumerate(wanted):
            if isinstance(value, TensorType):
                made.append(Parameter(value))
            else:
                number[value] = position
                made.append(Parameter(self.types[value], self.names.get(value, "")))
        order = self.order(outputs)
        nodes: list[Node] = []
        count = len(made)
        kinds, inputs, firsts, sources = self._kinds, self._inputs, self._firsts, self._sources
        raw, source = None, locate(None)
        renumbered = number.__getitem__
        try:
            for position in order:
                kind, value = kinds[position], firsts[position]
                reads = tuple(map(renumbered, inputs[position]))
                if sources[position] is not raw:  # the nodes of one call have one
                    raw = sources[position]
                    source = locate(raw)
                types = kind.types
                nodes.append(Node(kind.name, reads, kind.attributes, kind.scopes, types, source))
                for _ in types:
                    number[value] = count
                    value += 1
                    count += 1
            results = tuple([number[v] for v in outputs])
        except KeyError as error:
            raise GraphError(
                f"the graph reads value {error}, which is no parameter of it"
            ) from None
        place = {position: i for i, position in enumerate(order)} if self.effects else {}
        graph = Graph(tuple(made), tuple(nodes), results, tuple([place[e] for e in self.effects]))
        vouch(graph, self.table)
        return graph


# Graphs that keep the rules of a table, by their ids: made by a builder, or checked.
_sound: WeakValueDictionary[tuple[int, int], Graph] = WeakValueDictionary()


def vouch(graph: Graph, table: Table) -> None:
    """Note that a graph keeps the rules, its scopes aside."""
    _sound[id(graph), id(table)] = graph


def is_sound(graph: Graph, table: Table) -> bool:
    """Whether a graph is known to keep the rules."""
    return _sound.get((id(graph), id(table))) is graph


def infer(
    name: str, table: Table, inputs: Types, attributes: Attributes, scopes: tuple[Graph, ...]
) -> Types:
    """The types of a node, by its row's rule."""
    try:
        op = table[name]
    except KeyError:
        raise GraphError(f"{name!r} is no op of the table") from None
    return infer_by(op, inputs, attributes, scopes)


def infer_by(op: Op, inputs: Types, attributes: Attributes, scopes: tuple[Graph, ...]) -> Types:
    """The types of a node of this row."""
    name = op.name
    if op.arity is not None and len(inputs) != op.arity:
        raise GraphError(f"{name}: {len(inputs)} inputs, {op.arity} needed")
    if op.scopes is not None and len(scopes) != op.scopes:
        raise GraphError(f"{name}: {len(scopes)} scopes, {op.scopes} needed")
    return op.infer(inputs, dict(attributes), scopes)
