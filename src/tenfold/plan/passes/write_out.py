"""Write a graph out: all passes from graph to graph before fusion, one after another."""

from __future__ import annotations

from tenfold.graph import Graph
from tenfold.graph.op import Table
from tenfold.plan.passes.expand import expand
from tenfold.plan.passes.lines import lay_lines
from tenfold.plan.passes.products import lay_products
from tenfold.plan.passes.reroll.reroll import FoundLoop, reroll


def write_out(graph: Graph, table: Table) -> tuple[Graph, tuple[FoundLoop, ...]]:
    """The graph that a plan of this graph carries out, and the loops that were found in it. Its
    scopes are still to be written out."""
    known = graph.__dict__.get("written_out")  # the planner asks, and who checks a plan
    if known is None or known[0] is not table:
        looped, found = reroll(graph, table)
        made = lay_lines(lay_products(expand(looped, table), table), table)
        known = graph.__dict__["written_out"] = table, made, found
    return known[1], known[2]
