"""Plans for the CPU: what its code generator can't do runs on the host."""

from __future__ import annotations

from collections.abc import Sequence

from tenfold.backends.cpu.capabilities import capabilities
from tenfold.backends.cpu.target import Target, host_target
from tenfold.graph import Graph
from tenfold.plan import Plan, make_plan
from tenfold.seam import passed


def plan_for(graph: Graph, target: Target | None = None, donated: Sequence[int] = ()) -> Plan:
    """The plan of a graph on the CPU."""
    return passed("plan", make_plan(graph, capabilities(target or host_target()), donated))
