"""The reference evaluator: it defines what a program means.

A loop over the flat nodes, each op by its row's reference, a value dropped at its last use.
Scopes are run by a stack of frames, not by recursion: the reference of an op with scopes or an
effect is a generator that yields what it wants done (`ScopeRequest`, `HostRequest`) and is sent the
results.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Generator, Sequence
from typing import Any

import numpy as np

from tenfold.errors import GraphError, IndexProblem, TenfoldError, TypeMismatch
from tenfold.frozen import frozen
from tenfold.graph import Graph, Node, check
from tenfold.graph.op import HostRequest, Op, ScopeRequest
from tenfold.ops import TABLE
from tenfold.reference.callbacks import Callbacks, numbered
from tenfold.types import TensorType, as_dtype, base_array

Value = np.ndarray[Any, Any]


@frozen
class ActiveScope:
    """A scope that is running: its node, the node's position and the number of its first value,
    which of the node's scopes it is, and how often that scope was run before."""

    node: Node
    position: int
    value: int
    scope: int
    count: int


Path = tuple[ActiveScope, ...]  # the scopes that are running, from the outside in
# Called with the path, the graph, the position of a node in it and the node's values.
Watch = Callable[[Path, Graph, int, Sequence[Value]], None]


def evaluate(
    graph: Graph,
    arguments: Sequence[Any],
    callbacks: Callbacks | None = None,
    watch: Watch | None = None,
) -> list[Value]:
    """The outputs of a graph for these arguments; they alias neither these nor each other.

    `callbacks` holds what hooks and host calls call; `watch` is shown every node's values.
    """
    check(graph, TABLE)
    given = accept(graph, arguments)
    callbacks = callbacks or Callbacks()
    users: dict[str, Any] = {"call": np.geterrcall(), **np.geterr()}
    programs: dict[int, _Program] = {}
    stack = [_Frame(_program(graph, programs), given, (), watch)]
    with np.errstate(all="ignore"):
        while True:
            frame = stack[-1]
            try:
                request = frame.advance()
                if isinstance(request, HostRequest):
                    with np.errstate(**users):
                        frame.reply = callbacks.answer(request)
            except Exception as error:
                _locate(error, frame.program.graph, frame.node)
                raise
            if isinstance(request, ScopeRequest):
                path = (*frame.path, frame.entered(request.graph))
                program = _program(request.graph, programs)
                stack.append(_Frame(program, request.arguments, path, watch))
            elif isinstance(request, list):
                stack.pop()
                if not stack:
                    return _apart(request, arguments)
                stack[-1].reply = request
            del request  # lest it keep values alive that die in what runs next


class _Program:
    """What running a graph needs at each node, looked up once."""

    def __init__(self, graph: Graph) -> None:
        self.graph = graph
        self.rows: list[Op] = [TABLE[node.op] for node in graph.nodes]
        self.attributes = [dict(node.attributes) for node in graph.nodes]
        read = {v for node in graph.nodes for v in node.inputs} | set(graph.outputs)
        self.unread = [v for v in range(len(graph.parameters)) if v not in read]


def _program(graph: Graph, programs: dict[int, _Program]) -> _Program:
    found = programs.get(id(graph))
    if found is None:
        found = programs[id(graph)] = _Program(graph)
    return found


class _Frame:
    """One graph being run: where it stands and the values that are alive."""

    def __init__(
        self, program: _Program, arguments: list[Value], path: Path, watch: Watch | None
    ) -> None:
        self.program = program
        self.path = path
        self.watch = watch
        self.position = 0
        made = len(program.graph.types) - len(arguments)
        self.values: list[Any] = [*arguments, *[None] * made]
        arguments.clear()  # so that whoever handed them over does not keep them alive
        for value in program.unread:
            self.values[value] = None
        self.waiting: Generator[ScopeRequest | HostRequest, list[Value], Any] | None = None
        self.reply: list[Value] | None = None  # what the waiting node asked for
        self.runs: dict[int, int] = {}  # how often each scope of the waiting node was run

    @property
    def node(self) -> Node:
        return self.program.graph.nodes[self.position]

    def advance(self) -> ScopeRequest | HostRequest | list[Value]:
        """Go on to the next thing a node wants done, or to the end: then the outputs."""
        graph, rows, values = self.program.graph, self.program.rows, self.values
        while self.position < len(graph.nodes):
            if self.waiting is not None:
                reply, self.reply = self.reply, None
                assert reply is not None
                try:
                    return self.waiting.send(reply)
                except StopIteration as stop:
                    del reply
                    self._finish(stop.value)
                    continue
            node, row = graph.nodes[self.position], rows[self.position]
            attributes = self.program.attributes[self.position]
            inputs = [values[v] for v in node.inputs]
            for value in graph.last_uses[self.position]:
                values[value] = None  # from here on `inputs` alone holds what dies at this node
            if not row.effect and row.scopes == 0:
                self._finish(row.reference(*inputs, **attributes))
                continue
            self.waiting = row.reference(inputs, node.scopes, **attributes)
            del inputs
            try:
                return next(self.waiting)
            except StopIteration as stop:
                self._finish(stop.value)
        return [values[v] for v in graph.outputs]

    def entered(self, scope: Graph) -> ActiveScope:
        """The entry into this scope of the waiting node."""
        scopes = self.node.scopes
        which = next((i for i, s in enumerate(scopes) if s is scope), -1)
        count = self.runs.get(which, 0)
        self.runs[which] = count + 1
        at, starts = self.position, self.program.graph.starts
        return ActiveScope(self.node, at, starts[at], which, count)

    def _finish(self, result: Any) -> None:
        """Keep the results of the node at hand and go on to the next one."""
        graph, position = self.program.graph, self.position
        node, start = graph.nodes[position], graph.starts[position]
        results = result if isinstance(result, (tuple, list)) else (result,)
        for value, type in zip(results, node.types, strict=True):
            if value.shape != type.shape or value.dtype != type.dtype:
                got = f"{value.dtype}{list(value.shape)}"
                raise GraphError(f"{node.op}: the reference gave {got}, its type rule {type}")
        if self.watch is not None:
            self.watch(self.path, graph, position, results)
        self.values[start : start + len(results)] = results
        for value in graph.last_uses[position]:
            self.values[value] = None  # what this node made and nobody reads
        self.waiting = None
        self.runs.clear()
        self.position += 1


def accept(graph: Graph, arguments: Sequence[Any]) -> list[Value]:
    """The arguments as arrays of the parameters' types, or TypeMismatch."""
    if len(arguments) != len(graph.parameters):
        names = ", ".join(f"{p.name or i}: {p.type}" for i, p in enumerate(graph.parameters))
        raise TypeMismatch(
            f"{len(arguments)} arguments for a graph of {len(graph.parameters)} parameters",
            fix=f"pass one array for each of ({names})",
        )
    accepted = []
    for i, (argument, parameter) in enumerate(zip(arguments, graph.parameters, strict=True)):
        type = parameter.type
        array = np.asarray(numbered(base_array(argument), type.dtype))
        got = TensorType(as_dtype(array.dtype), array.shape)
        if got != type:
            raise TypeMismatch(
                f"argument {i}{f' ({parameter.name})' if parameter.name else ''} is {got}, "
                f"the graph takes {type}",
                fix="convert it with np.asarray(x, dtype) and reshape, or trace again for it",
            )
        accepted.append(array.astype(type.dtype, copy=False))
    return accepted


def _apart(outputs: list[Value], arguments: Sequence[Any]) -> list[Value]:
    """The outputs as arrays of their own: what is a view, an argument or there twice is copied."""
    taken = {id(argument) for argument in arguments}
    made = []
    for output in outputs:
        own = output.copy() if output.base is not None or id(output) in taken else output
        taken.add(id(own))
        made.append(own)
    return made


def _locate(error: Exception, graph: Graph, node: Node) -> None:
    """Say in an error which line of the user's program it comes from; which array was indexed."""
    if isinstance(error, IndexProblem) and node.inputs:
        error.of(_named(graph, node.inputs[0]))
    if node.source is None:
        return
    if isinstance(error, TenfoldError):
        error.at(str(node.source))
    else:
        error.add_note(f"in {node.op}, at {node.source}")


def _named(graph: Graph, value: int) -> str:
    """A value in the words of a message: its name, or the line that made it, and its type."""
    type = graph.types[value]
    if value < len(graph.parameters):
        name = graph.parameters[value].name
        return f"{name}, {type}" if name else f"{type}"
    made = graph.nodes[bisect_right(graph.starts, value) - 1].source
    return f"{type}, made at {made}" if made else f"{type}"
