"""What is left out of random programs changes neither what they give, nor what their hooks see,
nor what is computed by nodes that may raise."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from draw import draw_program

from tenfold.graph import Graph
from tenfold.graph.check import check
from tenfold.ops import TABLE
from tenfold.parity.rule.bits import same_bits
from tenfold.plan.passes.needless import leave_out_carries
from tenfold.plan.passes.overwritten import leave_out
from tenfold.reference import Callbacks, evaluate
from tenfold.reference.evaluate import Path

Array = np.ndarray[Any, Any]


def run(graph: Graph, arrays: Sequence[Array]) -> tuple[list[Array], list[Array], set[Any]]:
    """The results, what the hooks saw, and the results of nodes that may raise."""
    seen: list[Array] = []
    made: set[Any] = set()

    def watch(path: Path, graph: Graph, position: int, results: Sequence[Array]) -> None:
        node = graph.nodes[position]
        types = tuple([graph.types[v] for v in node.inputs])
        if not node.scopes and results and TABLE[node.op].heeds(types, dict(node.attributes)):
            made.add((node.op, node.attributes, *((r.shape, r.tobytes()) for r in results)))

    callbacks = Callbacks(overrides={"seen": seen.append})
    return evaluate(graph, arrays, callbacks, watch), seen, made


@pytest.mark.parametrize("first", range(0, 1200, 300))
def test_random_programs(first: int) -> None:
    left_out = 0
    for seed in range(first, first + 300):
        graph, arrays = draw_program(seed)
        shorter, updates = leave_out(graph, TABLE)
        shorter, carries = leave_out_carries(shorter, TABLE)
        if not (updates or carries):
            continue
        left_out += 1
        check(shorter, TABLE)
        results, seen, made = run(graph, arrays)
        others, seen_now, made_now = run(shorter, arrays)
        assert all(map(same_bits, results, others)), seed
        assert len(seen) == len(seen_now), seed
        assert all(map(same_bits, seen, seen_now)), seed
        assert made == made_now, seed
    assert left_out > 20
