"""Plans for the CPU: what its code generator can't do runs on the host."""

from __future__ import annotations

from tenfold.backends.cpu.blas import blas
from tenfold.backends.cpu.support import missing
from tenfold.backends.cpu.target import Target, host_target
from tenfold.graph import Graph
from tenfold.graph.op import Op, Pointwise
from tenfold.plan import Plan, make_plan
from tenfold.types import SHORT, TensorType


def plan_for(graph: Graph, target: Target | None = None) -> Plan:
    """The plan of a graph on the CPU."""
    chosen = target or host_target()

    def supports(op: Op, types: tuple[TensorType, ...], result: TensorType) -> str | None:
        if not isinstance(op.lowering, Pointwise):
            return None
        operands = tuple(SHORT[t.dtype] for t in types)
        return missing(op.lowering.instruction, operands, SHORT[result.dtype], chosen)

    routines = frozenset(("contract",)) if blas() is not None else frozenset[str]()
    return make_plan(graph, supports=supports, routines=routines)
