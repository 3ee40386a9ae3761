"""Realise: run the nodes that a lazy value needs, as one closed graph.

What is needed is collected and brought into a canonical graph whose parameters are the arrays at
hand. Ancestors that somebody still holds become outputs beside the value, so that they are not
computed again; the others are not kept. Equal graphs are built once.
"""

from __future__ import annotations

import sys
from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from tenfold.errors import ScopeError
from tenfold.graph import Builder, Graph
from tenfold.locks import Lock
from tenfold.ops import TABLE
from tenfold.trace.lazy.lazy import LAZY, DeferredNode, Host, LazyValue
from tenfold.trace.source import Raw, locate
from tenfold.types import TensorType

Callables = tuple[Callable[..., Any], ...]
Runner = Callable[[Graph, Sequence[Any], Callables], list[Any]]
# A node of a graph being collected: op, inputs, attributes, scopes. An input is the number of a
# node's output, or below zero that of a parameter: -1 is the first.
NodeKey = tuple[str, tuple[int, ...], Any, tuple[Graph, ...]]

_KEPT = 1 << 16  # nodes of the graphs that are remembered
_runner: list[Runner] = []
_reference: list[Runner] = []


def use(runner: Runner, reference: Runner) -> None:
    """From now on graphs are run by this: `runner(graph, arguments, callables)`.

    The reference runs one that failed again: its error names the user's line.
    """
    _runner[:] = [runner]
    _reference[:] = [reference]


def run(graph: Graph, arguments: Sequence[Any], callables: Callables = ()) -> list[Any]:
    """The outputs of a graph, by the layer that knows how to run one."""
    if not _runner:
        raise ScopeError("nothing is there to run a graph with", fix="import tenfold")
    return _runner[0](graph, arguments, callables)


def realised(value: LazyValue) -> Host:
    """The array of a value; it can't be written to."""
    if value.node is not None:
        realise((value,))
    assert value.array is not None
    return value.array


def realise(values: Sequence[LazyValue]) -> None:
    """Run what these values need, so that each has its array."""
    targets = [value for value in values if value.node is not None]
    if not targets:
        return
    needed = _Subgraph(targets)
    del targets
    outputs = needed.alive()
    entries, parameters, numbers, raws = needed.numbered()
    wanted: dict[int, list[LazyValue]] = {}
    for value, node in outputs:
        wanted.setdefault(numbers[id(node)] + value.index, []).append(value)
    types = tuple([value.type for value in parameters])
    graph = _graph(entries, types, tuple(wanted))
    arrays = [value.array for value in parameters]
    try:
        made = run(graph, arrays)
    except Exception:
        _explain(entries, types, tuple(wanted), raws, arrays)
        raise
    for array, holders in zip(made, wanted.values(), strict=True):
        array = np.asarray(array)
        array.flags.writeable = False
        for value in holders:
            value.settle(array)


LAZY.overflow = lambda value: realise((value,))


class _Subgraph:
    """The nodes that some values need, each before those that read it."""

    def __init__(self, targets: Sequence[LazyValue]) -> None:
        self.targets: list[tuple[LazyValue, DeferredNode]] = []
        for value in targets:
            node = value.node
            if node is not None:  # another thread may have run it meanwhile
                self.targets.append((value, node))
        # What makes each input is looked at once: another thread may run it while we walk.
        self.makers: dict[int, list[DeferredNode | None]] = {}
        self.order: list[DeferredNode] = []
        makers, order = self.makers, self.order
        done: set[int] = set()
        for _, root in self.targets:
            stack = [root]
            while stack:
                node = stack[-1]
                key = id(node)
                if key in done:
                    stack.pop()
                elif key in makers:
                    done.add(key)
                    order.append(node)
                    stack.pop()
                else:
                    found = makers[key] = [value.node for value in node.inputs]
                    stack.extend([m for m in reversed(found) if m and id(m) not in makers])

    def alive(self) -> list[tuple[LazyValue, DeferredNode]]:
        """The targets, then the values on the way that somebody else holds."""
        held, uses = self._uses()
        kept = {id(value): (value, node) for value, node in self.targets}
        kept.update(self._siblings(held))
        for key, pair in held.items():
            if sys.getrefcount(pair[0]) - uses[key] > _SOLE:
                kept.setdefault(key, pair)
        return list(kept.values())

    def _uses(self) -> tuple[dict[int, tuple[LazyValue, DeferredNode]], dict[int, int]]:
        """The values on the way, and how often the nodes here read each, by id.

        A function of its own: when it is done, no name of it holds a value any more.
        """
        held: dict[int, tuple[LazyValue, DeferredNode]] = {}
        uses: dict[int, int] = {}
        for node in self.order:
            for value, maker in zip(node.inputs, self.makers[id(node)], strict=True):
                if maker is not None and maker.op != "constant":
                    key = id(value)
                    if key in uses:
                        uses[key] += 1
                    else:
                        uses[key] = 1
                        held[key] = value, maker
        return held, uses

    def _siblings(self, held: Mapping[int, Any]) -> dict[int, tuple[LazyValue, DeferredNode]]:
        """The results that somebody holds of nodes that give several, and nothing here reads."""
        found: dict[int, tuple[LazyValue, DeferredNode]] = {}
        for node in self.order:
            for reference in node.results:
                value = reference()
                if value is not None and value.node is not None and id(value) not in held:
                    found[id(value)] = value, node
        return found

    def numbered(
        self,
    ) -> tuple[tuple[NodeKey, ...], list[LazyValue], dict[int, int], list[Raw | None]]:
        """The nodes with equal ones merged, the values they start from, the number of each
        node's first output (by id), and the line of each node."""
        parameters: dict[int, tuple[int, LazyValue]] = {}
        numbers: dict[int, int] = {}
        interned: dict[NodeKey, int] = {}
        raws: list[Raw | None] = []
        count = 0
        for node in self.order:
            inputs = []
            for value, maker in zip(node.inputs, self.makers[id(node)], strict=True):
                if maker is not None:
                    inputs.append(numbers[id(maker)] + value.index)
                    continue
                found = parameters.get(id(value))
                if found is None:
                    found = parameters[id(value)] = -1 - len(parameters), value
                inputs.append(found[0])
            entry = (node.op, tuple(inputs), node.attributes, node.scopes)
            number = interned.get(entry)
            if number is None:
                number = interned[entry] = count
                count += len(node.types)
                raws.append(node.raw)
            numbers[id(node)] = number
        return tuple(interned), [value for _, value in parameters.values()], numbers, raws


def _sole() -> int:
    """What is counted for a value that nothing but a node holds, less the node's uses."""
    value = LazyValue(TensorType(np.dtype(bool), ()), 0, None)
    node = (value,)
    held = {0: (value, None)}
    del value
    (pair,) = held.values()
    return sys.getrefcount(pair[0]) - len(node)


_SOLE = _sole()
_graphs: OrderedDict[Any, Graph] = OrderedDict()
_kept = [0]  # how many nodes these have
_lock = Lock()


def _graph(
    entries: tuple[NodeKey, ...], types: tuple[TensorType, ...], outputs: tuple[int, ...]
) -> Graph:
    """The graph of these entries; it names no lines, since it stands for all that are equal."""
    key = entries, types, outputs
    with _lock:
        found = _graphs.get(key)
    if found is not None:
        return found
    made = _build(entries, types, outputs, [None] * len(entries))
    with _lock:
        found = _graphs.setdefault(key, made)
        if found is made:
            _kept[0] += len(made.nodes)
        while _kept[0] > _KEPT and len(_graphs) > 1:
            _kept[0] -= len(_graphs.popitem(last=False)[1].nodes)
    return found


def _build(
    entries: tuple[NodeKey, ...],
    types: tuple[TensorType, ...],
    outputs: tuple[int, ...],
    raws: Sequence[Raw | None],
) -> Graph:
    builder = Builder(TABLE)
    parameters = [builder.parameter(type) for type in types]
    values: list[int] = []
    for (op, inputs, attributes, scopes), raw in zip(entries, raws, strict=True):
        given = [values[i] if i >= 0 else parameters[-1 - i] for i in inputs]
        values.extend(builder.node(op, given, dict(attributes), scopes, raw))
    return builder.finish([values[i] for i in outputs], None, locate)


def _explain(
    entries: tuple[NodeKey, ...],
    types: tuple[TensorType, ...],
    outputs: tuple[int, ...],
    raws: Sequence[Raw | None],
    arrays: Sequence[Any],
) -> None:
    """Run once more, with the lines, so that the error is raised anew and names its own."""
    try:
        _reference[0](_build(entries, types, outputs, raws), arrays, ())
    except Exception as again:
        raise again from None
