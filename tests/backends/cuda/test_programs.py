"""Programs on a simulated GPU: rows of the op table on their own samples, and drawn ones. What
comes out has the CPU's bits."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from draw import draw_program

from tenfold.graph import Graph, Op
from tenfold.graph.op import Element, Pointwise
from tenfold.ops import TABLE
from tests.backends.cuda.beside import node_graph, program_beside

pytestmark = pytest.mark.filterwarnings("ignore::RuntimeWarning")

KERNELS = [
    pytest.param(op, id=op.name)
    for op in TABLE.values()
    if isinstance(op.lowering, Element | Pointwise) and op.samples
]


def unordered(graph: Graph) -> bool:
    """Whether a graph has a product of complex numbers, which each backend multiplies in an order
    of its own (`kernel/analyse/reduction`)."""
    waiting = [graph]
    while waiting:
        one = waiting.pop()
        for node in one.nodes:
            if node.op == "reduce_prod" and node.types[0].dtype.kind == "c":
                return True
            waiting += node.scopes
    return False


@pytest.mark.parametrize("op", KERNELS)
def test_samples_of_every_row(op: Op) -> None:
    """One sample of each dtype, the largest: kernels of the other shapes have the same code."""
    largest: dict[Any, Any] = {}
    for sample in op.samples(np.random.default_rng(41)):
        key = tuple(x.dtype for x in sample.inputs)
        size = sum(x.size for x in sample.inputs)
        if key not in largest or size > sum(x.size for x in largest[key].inputs):
            largest[key] = sample
    assert largest
    for sample in largest.values():
        arrays = [np.asarray(x, order="C") for x in sample.inputs]
        graph = node_graph(op.name, arrays, sample.attributes)
        if not unordered(graph):
            program_beside(graph, arrays)


@pytest.mark.parametrize("seed", range(60))
def test_drawn_programs(seed: int) -> None:
    graph, arrays = draw_program(seed)
    if unordered(graph):
        pytest.skip("a product of complex numbers has no order of its own")
    program_beside(graph, arrays)
