"""Policy: which graphs are compiled and which the reference runs.

A graph met for the first time is run by the reference, which needs no time to get ready. One
that comes back, or one with much to do, is worth compiling. Only counts decide, never a clock.
What compiles can be replaced: `use_compiler`.
"""

from __future__ import annotations

import os
import threading
from collections import OrderedDict
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

from tenfold.errors import ValueProblem
from tenfold.frozen import frozen
from tenfold.graph import Graph
from tenfold.reference import Callbacks, evaluate
from tenfold.trace import realise
from tenfold.trace.lazy import LAZY

# A compiled graph: its outputs for these arrays. A compiler gives one, or None where it can't.
Compiled = Callable[[Sequence[Any]], list[Any]]
Compiler = Callable[[Graph], Compiled | None]

MODES = ("auto", "always", "never")


@frozen
class Policy:
    """When a graph is compiled."""

    mode: str = "auto"  # TENFOLD_COMPILE: auto, always, never
    seen: int = 4  # the run from which on a graph is compiled
    work: int = 1 << 20  # elements computed in one run from which on it is compiled at once
    kept: int = 1024  # graphs that are counted or kept compiled


def _from_environment() -> Policy:
    mode = os.environ.get("TENFOLD_COMPILE", "auto") or "auto"
    if mode not in MODES:
        raise ValueProblem(
            f"TENFOLD_COMPILE is {mode!r}", fix=f"set it to one of {', '.join(MODES)}"
        )
    return Policy(mode)


_policy = [_from_environment()]


def planned(graph: Graph) -> Compiled:
    """A graph compiled by its plan, from the cache of plans."""
    from tenfold.cache import plans  # the compiler is loaded when something is compiled

    return plans.get(graph)


_compiler: list[Compiler] = [planned]
_lock = threading.Lock()
_runs: OrderedDict[Graph, int] = OrderedDict()
_compiled: OrderedDict[Graph, Compiled | None] = OrderedDict()


def policy() -> Policy:
    """The policy in force."""
    return _policy[0]


def configure(*, pending: int | None = None, **changes: Any) -> Policy:
    """Change when graphs are compiled, and how many nodes may be pending; gives the policy.

    >>> configure(seen=2).seen, configure(seen=4).seen
    (2, 4)
    """
    made = replace(_policy[0], **changes)
    if made.mode not in MODES:
        raise ValueProblem(f"the mode {made.mode!r}", fix=f"give one of {', '.join(MODES)}")
    _policy[0] = made
    if pending is not None:
        LAZY.limit = pending
    return made


def use_compiler(compiler: Compiler) -> None:
    """From now on this compiles graphs."""
    _compiler[:] = [compiler]
    with _lock:
        _compiled.clear()


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
    now = _policy[0]
    if now.mode == "never":
        return None
    with _lock:
        if graph in _compiled:
            return _compiled[graph]
        if now.mode == "auto" and work(graph) < now.work:
            runs = _runs[graph] = _runs.pop(graph, 0) + 1
            if len(_runs) > now.kept:
                _runs.popitem(last=False)
            if runs < now.seen:
                return None
    made = _compiler[0](graph)
    with _lock:
        _compiled[graph] = made
        _runs.pop(graph, None)
        if len(_compiled) > now.kept:
            _compiled.popitem(last=False)
    return made


realise.use(run, reference)
