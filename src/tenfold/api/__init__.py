"""The public face: jit, tracing, running, the namespace.

Whoever imports a part of it has NumPy's functions known to traced arrays, and graphs run as the
policy says.
"""

from collections.abc import Sequence
from typing import Any

from tenfold.graph import Graph
from tenfold.trace import surface
from tenfold.trace.lazy import realise


def _run(graph: Graph, arrays: Sequence[Any], callables: realise.Callables = ()) -> list[Any]:
    from tenfold.api.policy import run  # which takes the place of this: few programs are lazy

    return run(graph, arrays, callables)


def _planned(*given: Any) -> list[Any] | None:
    from tenfold.api.policy import planned

    return planned(*given)


realise.use(_run, _planned)

__all__ = ["surface"]
