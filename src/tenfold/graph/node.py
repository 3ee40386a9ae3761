"""The data of programs: Source, Node, Parameter, Graph.

Values are numbered: parameter i is value i, and each node's outputs take the next numbers.
A node names its inputs by these numbers, so that no comparison, hash or walk recurses.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from tenfold.digest import sha256
from tenfold.frozen import frozen
from tenfold.locks import cached_property
from tenfold.types import TensorType

if TYPE_CHECKING:
    from tenfold.graph.forms import Forms

# Attribute values are plain data: bool, int, str, bytes, and tuples of these.
Attributes = tuple[tuple[str, Any], ...]


def is_plain(attributes: Any) -> bool:
    """Whether these are attributes: pairs of a name and plain data."""
    if not isinstance(attributes, tuple):
        return False
    for pair in attributes:
        if not (isinstance(pair, tuple) and len(pair) == 2 and isinstance(pair[0], str)):
            return False
        items = [pair[1]]
        for item in items:
            if isinstance(item, tuple):
                items.extend(item)
            elif not isinstance(item, (bool, int, str, bytes)):
                return False
    return True


@frozen
class Source:
    """A line of the user's program."""

    file: str
    line: int
    function: str

    def __str__(self) -> str:
        return f"{self.file}:{self.line}, in {self.function}"


@frozen
class Node:
    """One operation: what it is, what it reads, what it gives."""

    op: str
    inputs: tuple[int, ...]
    attributes: Attributes
    scopes: tuple[Graph, ...]
    types: tuple[TensorType, ...]
    source: Source | None = field(default=None, compare=False)

    def __getitem__(self, name: str) -> Any:
        for key, value in self.attributes:
            if key == name:
                return value
        raise KeyError(f"{self.op} has no attribute {name!r}")


@frozen
class Parameter:
    """An input of a graph. Its name takes no part in equality."""

    type: TensorType
    name: str = field(default="", compare=False)


@dataclass(frozen=True, eq=False)
class Graph:
    """A closed program: all that it reads is in its parameters.

    `outputs` are value numbers; `effects` are positions in `nodes`, in program order.
    Two graphs are equal when their programs are: names and source lines do not count.
    """

    parameters: tuple[Parameter, ...]
    nodes: tuple[Node, ...]
    outputs: tuple[int, ...]
    effects: tuple[int, ...] = ()

    @cached_property
    def types(self) -> tuple[TensorType, ...]:
        """The type of every value, by number."""
        types = [p.type for p in self.parameters]
        for node in self.nodes:
            types.extend(node.types)
        return tuple(types)

    @cached_property
    def starts(self) -> tuple[int, ...]:
        """The number of each node's first output."""
        starts, number = [], len(self.parameters)
        for node in self.nodes:
            starts.append(number)
            number += len(node.types)
        return tuple(starts)

    @cached_property
    def forms(self) -> Forms:
        """What nodes are alike in."""
        from tenfold.graph.forms import forms_of

        return forms_of(self.nodes)

    @cached_property
    def last_uses(self) -> tuple[tuple[int, ...], ...]:
        """For each node the values that nothing after it reads, found in one backward scan.

        A node's own outputs that nobody reads are among them. Parameters that no node reads
        are in none.
        """
        alive = set(self.outputs)
        deaths: list[tuple[int, ...]] = []
        for node, start in zip(reversed(self.nodes), reversed(self.starts), strict=True):
            ends = range(start, start + len(node.types))
            dying = [v for v in dict.fromkeys((*node.inputs, *ends)) if v not in alive]
            alive.update(node.inputs)
            deaths.append(tuple(dying))
        return tuple(reversed(deaths))

    @property
    def output_types(self) -> tuple[TensorType, ...]:
        return tuple(self.types[v] for v in self.outputs)

    def scopes(self) -> tuple[Graph, ...]:
        """Every distinct graph inside this one, at any depth, each before those that own it."""
        seen: dict[str, Graph] = {}
        stack: list[tuple[Graph, bool]] = [(self, False)]
        opened: set[str] = set()
        while stack:
            graph, done = stack.pop()
            if done:
                seen.setdefault(graph.digest, graph)
            elif graph.digest not in opened:
                opened.add(graph.digest)
                stack.append((graph, True))
                for node in reversed(graph.nodes):
                    stack.extend((scope, False) for scope in reversed(node.scopes))
        seen.pop(self.digest, None)
        return tuple(seen.values())

    @cached_property
    def _canonical(self) -> bytes:
        from tenfold.graph.file import canonical_bytes

        return canonical_bytes(self)

    @cached_property
    def digest(self) -> str:
        """The name of this program: equal programs have equal digests.

        A scope's digest stands for it; those of inner scopes are taken first.
        """
        waiting = [self]
        while waiting:
            graph = waiting[-1]
            inner = [s for n in graph.nodes for s in n.scopes if "digest" not in s.__dict__]
            if inner:
                waiting.extend(inner)
                continue
            graph.__dict__["digest"] = sha256(graph._canonical).hexdigest()
            waiting.pop()
        return str(self.__dict__["digest"])

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Graph):
            return NotImplemented
        if self is other:
            return True
        return self.digest == other.digest and self.to_bytes(bare=True) == other.to_bytes(bare=True)

    def __hash__(self) -> int:
        return hash(self.digest)

    def to_bytes(self, *, bare: bool = False) -> bytes:
        """The file form: plain data, versioned and checksummed.

        A bare file leaves out the names of parameters and the user's lines.

        >>> import tenfold as tn
        >>> graph = tn.trace(lambda x: x + 1, tn.spec((3,), "float32"))
        >>> tn.Graph.from_bytes(graph.to_bytes()) == graph
        True
        """
        from tenfold.graph.file import write

        return write(self, bare=bare)

    @staticmethod
    def from_bytes(data: bytes) -> Graph:
        """The graph in these bytes, checked; a damaged file raises FileError."""
        from tenfold.graph.file import read

        return read(data)

    def text(self, limit: int | None = None) -> str:
        """The graph as text; with a limit, only that many nodes of each graph."""
        from tenfold.graph.text import show

        return show(self, limit)

    def __str__(self) -> str:
        return self.text()

    def __repr__(self) -> str:
        types = ", ".join(map(repr, (p.type for p in self.parameters)))
        return f"<Graph ({types}) of {len(self.nodes)} nodes, {self.digest[:8]}>"
