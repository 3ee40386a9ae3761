"""Plans for the CPU: what its code generator can't do runs on the host."""

from __future__ import annotations

from collections.abc import Sequence

from tenfold.backends.cpu.library.blas import blas
from tenfold.backends.cpu.library.sort.sort import scratch_bytes
from tenfold.backends.cpu.link.support import missing, outside
from tenfold.backends.cpu.schedule.schedule import tune
from tenfold.backends.cpu.target import Target, host_target
from tenfold.graph import Graph
from tenfold.plan import Plan, make_plan
from tenfold.seam import passed


def plan_for(graph: Graph, target: Target | None = None, donated: Sequence[int] = ()) -> Plan:
    """The plan of a graph on the CPU."""
    chosen = target or host_target()

    def supports(instruction: str, operands: tuple[str, ...], result: str) -> str | None:
        return missing(instruction, operands, result, chosen)

    routines = frozenset(("contract",)) if blas() is not None else frozenset[str]()
    plan = make_plan(
        graph,
        supports=supports,
        routines=routines,
        tune=lambda kernel: tune(kernel, chosen),
        outside=outside,
        donated=donated,
        lines=scratch_bytes,
    )
    return passed("plan", plan)
