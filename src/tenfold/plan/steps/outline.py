"""Outlines: what a plan computes, kernel by kernel and in order, before its memory is laid out."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

from tenfold.frozen import frozen
from tenfold.graph import Graph
from tenfold.graph.op import Table
from tenfold.plan.capabilities import Capabilities
from tenfold.plan.fusion.fuse import Fusion, Item, fuse
from tenfold.plan.lowering.form import BoundForm, Former
from tenfold.plan.lowering.general import GeneralForms
from tenfold.plan.passes.write_out import Found


@frozen(eq=False)
class Outline:
    """The kernels of a graph without compositions, and its other steps. Kernels may be formed
    while they are asked for."""

    graph: Graph
    loops: Found  # that were found in it
    items: Iterable[BoundForm | Item]  # in order
    makers: Sequence[int]  # by value: the position of its node, -1 for a parameter
    alias: Sequence[int]  # by value: the value whose memory it shares
    grouped: Sequence[bool]  # by value: it is computed in a kernel
    notes: Mapping[str, tuple[int, int]]  # what was not fused: count, first node
    reasons: Mapping[str, str]  # op: why it is no kernel


def outline(
    graph: Graph,
    loops: Found,
    table: Table,
    capabilities: Capabilities,
    forms: GeneralForms,
) -> Outline:
    """The outline of a graph that was written out."""
    fused = fuse(graph, table, capabilities)
    former = Former(fused, table, forms, capabilities.arrays)
    grouped = [home is not None for home in fused.home]
    items = _items(fused, former)
    return Outline(
        graph, loops, items, former.maker, fused.alias, grouped, fused.notes, fused.reasons
    )


def _items(fused: Fusion, former: Former) -> Iterator[BoundForm | Item]:
    for item in fused.items:
        if item.group is None:
            yield item
        else:
            yield from former.forms(item.group)
