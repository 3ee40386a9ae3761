"""Policy: which graphs are compiled and which the reference runs.

A graph met for the first time is run by the reference, which needs no time to get ready. One
that comes back, or one with much to do, is worth compiling. Only counts decide, never a clock;
`tn.config` has them.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Sequence
from typing import Any

from tenfold.api.verify import verify_option
from tenfold.config import config
from tenfold.graph import Graph
from tenfold.locks import Lock
from tenfold.reference import Callbacks, evaluate
from tenfold.trace.lazy import realise

# A compiled graph: its outputs for these arrays.
Compiled = Callable[[Sequence[Any]], list[Any]]

KEPT = 1024  # graphs that are counted or kept compiled


def planned(graph: Graph) -> Compiled:
    """A graph compiled by its plan, from the cache of plans; checked as a function's is."""
    # The compiler is loaded when something is compiled.
    from tenfold.api.checking import answer, go_on, note
    from tenfold.cache import plans

    program = plans.get(graph)

    def compiled(arrays: Sequence[Any]) -> list[Any]:
        verify, given = verify_option(None), list(arrays)
        outputs = answer(program, graph, given, Callbacks(), verify, strict=False)
        if verify not in ("off", "always"):
            go_on(program, graph, given)
        note(program)
        return outputs

    return compiled


_lock = Lock()
_runs: OrderedDict[Graph, int] = OrderedDict()
_compiled: OrderedDict[Graph, Compiled] = OrderedDict()


def work(graph: Graph) -> int:
    """How many elements a graph computes in one run, its scopes counted once."""
    return sum(t.size for g in (graph, *graph.scopes()) for n in g.nodes for t in n.types)


def run(graph: Graph, arrays: Sequence[Any], callables: realise.Callables = ()) -> list[Any]:
    """The outputs of a graph, compiled where the policy says so."""
    if not graph.effects and not callables and graph.nodes:
        compiled = _chosen(graph)
        if compiled is not None:
            return compiled(arrays)
    return reference(graph, arrays, callables)


def reference(graph: Graph, arrays: Sequence[Any], callables: realise.Callables = ()) -> list[Any]:
    """The outputs of a graph by the reference."""
    return list(evaluate(graph, arrays, Callbacks(callables)))


def _chosen(graph: Graph) -> Compiled | None:
    """The compiled form of a graph, if it is to be compiled now or was before."""
    if config.compile == "never" or config.disable:
        return None
    with _lock:
        if graph in _compiled:
            return _compiled[graph]
        if config.compile == "auto" and work(graph) < config.compile_work:
            runs = _runs[graph] = _runs.pop(graph, 0) + 1
            if len(_runs) > KEPT:
                _runs.popitem(last=False)
            if runs < config.compile_runs:
                return None
    made = planned(graph)
    with _lock:
        _compiled[graph] = made
        _runs.pop(graph, None)
        if len(_compiled) > KEPT:
            _compiled.popitem(last=False)
    return made


realise.use(run, reference)
