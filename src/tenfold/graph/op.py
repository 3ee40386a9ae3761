"""Op: one row of the op table, and what a row is made of.

The rows themselves stand in `tenfold.ops`. Graphs name their ops by name; the builder, the
checker and the parser are handed the table.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from typing import Any

from tenfold.errors import GraphError
from tenfold.frozen import frozen
from tenfold.graph.node import Attributes, Graph, Node
from tenfold.types import TensorType

Types = tuple[TensorType, ...]
# A type rule: the types of a node's inputs, its attributes and scopes give its types.
TypeRule = Callable[[Types, Mapping[str, Any], tuple[Graph, ...]], Types]


PRODUCT = "product"  # the routine of a library that multiplies matrices
CONVOLUTION = "convolution"  # the routine of convolutions in panels


@frozen
class Attribute:
    """One attribute of an op: its name and how a value is brought into its one form."""

    name: str
    normalise: Callable[[Any], Any]


@frozen
class Pointwise:
    """Lowering: one scalar instruction for each output element, inputs broadcast."""

    instruction: str


@frozen
class Element:
    """Lowering: a generator that computes one output element from readers of the inputs.

    One that `mixes` makes an element of the result from many of an input.
    """

    generate: Callable[..., Generator[Any, Any, Any]]
    mixes: bool = False


@frozen
class Routine:
    """Lowering: a routine that a backend may have by this name, or else runs on the host.

    Where `inline(types, result, attributes)` holds, a kernel by `generate` serves better. One over
    `lines` works along the last axis, so `axis` is brought there. How it goes about it says
    `words(types, result, attributes)`.
    """

    name: str
    generate: Callable[..., Generator[Any, Any, Any]] | None = None
    inline: Callable[..., bool] | None = None
    lines: bool = False
    words: Callable[..., str] | None = None


@frozen
class Composition:
    """Lowering: the same value from other ops; `compose(builder, inputs, attributes)`."""

    compose: Callable[..., tuple[int, ...]]


@frozen
class Ranges:
    """Lowering: each input is written into a range of one slot; the routine names the ranges."""

    ranges: Callable[..., Any]


@frozen
class Scatter:
    """Lowering: the result begins as the first input, and the second is written into it at
    computed positions, in order.

    `place` is a generator like an Element's. It is asked where an element of the second input
    goes, reads the other inputs, and returns a position in the result. `serial(types, attributes)`
    has the axes of the second input along which two elements may meet: those are taken in order.
    `update(attributes)` is the instruction that joins a value to what is there, or "" for none.
    `wider(type, attributes)` is the dtype that values are joined in, or None for their own.
    """

    place: Callable[..., Generator[Any, Any, Any]]
    serial: Callable[..., tuple[int, ...]]
    update: Callable[[Mapping[str, Any]], str]
    wider: Callable[..., str | None]


@frozen
class Branch:
    """Lowering: one of the scopes, by the first input as an index that is clamped."""


@frozen
class Loop:
    """Lowering: the last scope, time after time.

    A `counted` loop goes `length` rounds, perhaps in `reverse`, with slices of stacked inputs and
    stacked results; any other as long as its first scope says so. Inputs are `captures`, then the
    carries, then what is sliced.
    """

    counted: bool

    def carries(self, node: Node) -> range:
        """Which inputs of a node are carried from round to round."""
        first: int = node["captures"]
        return range(first, first + node["carries"] if self.counted else len(node.inputs))

    def reversed(self, node: Node) -> bool:
        """Whether the rounds of a node go from the last slice to the first."""
        return self.counted and bool(node["reverse"])


@frozen
class Inline:
    """Lowering: the nodes of its one scope take its place."""


@frozen
class Combine:
    """Lowering: its scope combines elements two by two, on the host."""


Scopes = Branch | Loop | Inline | Combine
Lowering = Pointwise | Element | Routine | Composition | Ranges | Scatter | Scopes


@frozen
class Effect:
    """What an op asks of the host: to show its inputs, or with `named` to call what is bound to its
    `name`. One that `answers` needs such a callable, and has its results."""

    named: bool = True
    answers: bool = False


@frozen
class ErrorRule:
    """What a compiled float result may be off by, beyond what its inputs' errors make of it.

    `own(case)` is the most, `usual(case)` what rounding makes of most results, and where to begin:
    without it, the most, from the result itself. `unrounded(case)` is what it may be off by where
    it goes straight into a sum, without being rounded. The rules stand in `ops.agreement`.
    """

    own: Callable[[Any], Any]
    usual: Callable[[Any], tuple[Any, Any]] | None = None
    unrounded: Callable[[Any], Any] | None = None


@frozen
class ErrorSpread:
    """What inputs that may be off make of a result, where trying their ends does not tell.

    `rule(case)` is that, or None where trying tells. `range` is how far apart two results can be,
    of an op that takes all of them on within a period. `turns`: it has a period among complex
    numbers, within which even infinities change signs. `together`: how one input's error counts
    hangs on the other's. The rules stand in `ops.agreement`.
    """

    rule: Callable[[Any], Any] | None = None
    range: float | None = None
    turns: bool = False
    together: bool = False


@frozen
class ScopeRequest:
    """What the reference of an op with scopes yields to have a scope run; it gets its outputs.

    The list is handed over: whoever runs the scope empties it, so that values can die early.
    """

    graph: Graph
    arguments: list[Any]


@frozen
class HostRequest:
    """What the reference of an op with an effect yields to have the host called."""

    op: str
    attributes: Mapping[str, Any]
    arguments: list[Any]


@frozen
class Lift:
    """What the batching rule of an op with scopes yields to have a scope batched.

    `batched` says which parameters have the leading axis, `results` which outputs are to have
    it. A masked scope gets the mask of active lanes as its first parameter. The reply is a
    graph, which is to run only where at least one lane is active. With `inputs`, the values of
    its parameters, it is put in place instead, and the reply is the values of its outputs.
    """

    graph: Graph
    batched: tuple[bool, ...]
    results: tuple[bool, ...]
    masked: bool
    inputs: tuple[int, ...] | None = None


@frozen
class Sample:
    """One way to use an op, for tests: input arrays (or their types), attributes, scopes."""

    inputs: tuple[Any, ...]
    attributes: Mapping[str, Any]
    scopes: tuple[Graph, ...] = ()


@frozen(kw_only=True)
class Op:
    """Everything about one op.

    `reference(*arrays, **attributes)` gives an array or a tuple of arrays. For an op with scopes
    or an effect it is a generator, `reference(inputs, scopes, **attributes)`, which yields
    `ScopeRequest` and `HostRequest`, is sent the list of results, and returns the tuple of outputs.

    `batch(builder, inputs, batched, size, **attributes)` gives values with a leading axis of
    that size for inputs of which some (`batched`) have one. For an op with scopes or an effect
    it is a generator, `batch(lanes, inputs, batched, results, scopes, **attributes)`, which
    yields Lift, is sent the batched scope, and returns values that have the leading axis where
    `results` says so.

    Three more columns are for batching, each with a default that suits most ops. `differs` says
    which results have the leading axis, by sets of what the inputs depend on; without it, all
    have it that read something that has it. `heeds(types, attributes)` says whether the op may
    raise, go on for ever or be noticed, so that lanes that are not active must be kept from it;
    `guard(builder, inputs, batched, mask, size, **attributes)` then gives inputs that are
    harmless in these lanes.

    `reads(site)` tells which elements of the inputs an element of a result is made of, where the
    lowering does not: it is a generator like an Element's that computes nothing.

    `error` and `spread` give what the rule of agreement needs to know; without them, an op is off
    by its `bound` in units in the last place, and what its inputs' errors make of it is tried.
    """

    name: str
    arity: int | None  # None: any number
    infer: TypeRule
    reference: Callable[..., Any]
    lowering: Lowering
    edges: str  # what happens on the edges, in words; "none" is said, not implied
    bound: float  # units in the last place that a compiled float result may differ by
    batch: Callable[..., Any]
    samples: Callable[..., Sequence[Sample]]
    bound_from: float = 0.0  # a result below this is held to the units of this magnitude
    attributes: tuple[Attribute, ...] = ()
    scopes: int | None = 0  # None: any number
    effect: Effect | None = None
    differs: Callable[..., Sequence[int]] | None = None
    heeds: Callable[[Types, Mapping[str, Any]], bool] = lambda types, attributes: False
    guard: Callable[..., Sequence[int]] | None = None
    reads: Callable[..., Generator[Any, Any, Any]] | None = None
    error: Callable[[], ErrorRule] | None = None
    spread: Callable[[], ErrorSpread] | None = None
    elementwise: bool = False  # an element of the result is made of the same one of the inputs
    literal: bool = False  # its value is its attribute `data`, its inputs none
    permutes: bool = False  # its result is its input with axes in the order `axes`
    cuts: bool = False  # its result is its input from `starts` to `stops` by `steps`
    joins: bool = False  # its result is its inputs side by side along `axis`
    indices: int | None = None  # from this input on, all are positions in the first

    def normalise(self, given: Mapping[str, Any]) -> Attributes:
        """The attributes in their one form, in the order of the row."""
        if len(given) != len(self.attributes):
            known = [a.name for a in self.attributes]
            raise GraphError(f"{self.name}: attributes {sorted(given)} given, {known} needed")
        try:
            return tuple([(a.name, a.normalise(given[a.name])) for a in self.attributes])
        except KeyError as error:
            raise GraphError(f"{self.name}: the attribute {error} is missing") from None


Table = Mapping[str, Op]


def asking(graph: Graph, table: Table) -> Iterator[tuple[Node, Effect]]:
    """Every node that asks something of the host, at any depth, with what that is."""
    for one in (*graph.scopes(), graph):
        if one.effects:
            for node in one.nodes:
                effect = table[node.op].effect
                if effect is not None:
                    yield node, effect
