"""Programs as graphs: trace a function, read a graph, run one on the reference evaluator."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from tenfold.api.call.arguments import check_names
from tenfold.api.jit import Jitted
from tenfold.errors import TypeMismatch
from tenfold.graph import Graph, check
from tenfold.graph.text import parse as parse_text
from tenfold.ops import TABLE
from tenfold.reference import Callbacks
from tenfold.reference import evaluate as run_graph
from tenfold.trace.function import scalar

if TYPE_CHECKING:
    from tenfold.reference.watch import Values


def trace(function: Callable[..., Any], *args: Any, **kwargs: Any) -> Graph:
    """The graph of a function for these arguments: arrays, numbers, or `tn.spec`.

    >>> import numpy as np, tenfold as tn
    >>> graph = tn.trace(lambda x: np.exp(x) + 1, tn.spec((3,), "float32"))
    >>> [f"{node.op}: {node.types[0]}" for node in graph.nodes]
    ['exp: f32[3]', 'constant: f32', 'add: f32[3]']
    """
    jitted = function if isinstance(function, Jitted) else Jitted(function)
    return jitted.trace(*args, **kwargs)


def parse(text: str) -> Graph:
    """The graph that a text shows; `tn.parse(str(graph)) == graph`.

    >>> import numpy as np, tenfold as tn
    >>> graph = tn.parse("graph (%0: f32[2]) {\\n  %1 = neg %0 : f32[2]\\n  return %1\\n}")
    >>> tn.evaluate(graph, np.array([1, -2], "float32"))
    array([-1.,  2.], dtype=float32)
    """
    return parse_text(text, lambda graph: check(graph, TABLE))


def evaluate(
    graph: Graph,
    *args: Any,
    captures: Mapping[str, Any] | None = None,
    hooks: Mapping[str, Callable[..., Any] | None] | None = None,
) -> Any:
    """Run a graph on the reference evaluator: one array for one output, else a tuple.

    A graph does not hold the arrays its function closed over, nor its hooks: `captures` and
    `hooks` give them by name. Captures may also follow the arguments in their order.

    >>> import numpy as np, tenfold as tn
    >>> graph = tn.trace(lambda x: (x + 1, x.sum()), tn.spec((2,), "int64"))
    >>> tn.evaluate(graph, np.array([1, 2]))
    (array([2, 3]), np.int64(3))
    """
    if not isinstance(graph, Graph):
        raise TypeMismatch(
            f"evaluate takes a Graph, not a {type(graph).__name__}",
            fix="trace the function first: tn.evaluate(tn.trace(f, x), x)",
        )
    given = list(args)
    if captures:
        known = [p.name for p in graph.parameters[len(args) :]]
        check_names(captures, known, "the capture")
        given.extend(captures[name] for name in known if name in captures)
    outputs = run_graph(graph, given, Callbacks((), hooks or {}))
    results = tuple(scalar(o) for o in outputs)
    return results[0] if len(results) == 1 else results


def trace_values(program: Graph | Callable[..., Any], *args: Any, **options: Any) -> Values:
    """Run a function, or a graph, on the reference evaluator and see every node's value.

    Options: names, ops, positions, limit, file, directory.

    `names`, `ops` and `positions` choose: a node counts if any of them means it. A name is a
    value's (`%3`; `%5[2].%3` in round 2 of the loop %5; `%5[2]` for all of that round), that of
    a custom op or a function of yours, or a line, `model.py:12`. Positions are places in the
    outermost graph. Each node comes once however often its value is used.

    With `file` the records are printed there as the nodes run, at most `limit` elements of each;
    with `directory` each node's values go into a file of their own instead of into memory.

    >>> import numpy as np, tenfold as tn
    >>> values = tn.trace_values(lambda x: np.sqrt(x) + 1, np.array([4.0, 9.0]), ops="sqrt")
    >>> values[0].name, values[0].value
    ('%1', array([2., 3.]))
    """
    from tenfold.reference.watch import watch_values

    if isinstance(program, Graph):
        return watch_values(program, args, **options)
    jitted = program if isinstance(program, Jitted) else Jitted(program)
    traced, arrays = jitted.ready_to_run(*args)
    return watch_values(traced.graph, arrays, callbacks=Callbacks(traced.callbacks), **options)
