"""Write a graph out: all passes from graph to graph before fusion, one after another."""

from __future__ import annotations

from typing import Any

from tenfold.graph import Graph
from tenfold.graph.op import Table
from tenfold.plan.capabilities import Capabilities
from tenfold.plan.passes.expand import expand
from tenfold.plan.passes.hoist import HoistedProduct, hoist
from tenfold.plan.passes.lines import lay_lines
from tenfold.plan.passes.needless import NeedlessCarries, leave_out_carries
from tenfold.plan.passes.overwritten import OverwrittenUpdates, leave_out
from tenfold.plan.passes.products import lay_products, widen_products
from tenfold.plan.passes.reroll.reroll import FoundLoop, reroll
from tenfold.plan.passes.row_blocks import block_rows

# What was rewritten, in words.
Found = tuple[FoundLoop | HoistedProduct | NeedlessCarries | OverwrittenUpdates, ...]
Written = tuple[Graph, Found]


def write_out(graph: Graph, table: Table, capabilities: Capabilities) -> Written:
    """The graph that a backend's plan of this graph carries out, and what was found in it. Its
    scopes are still to be written out."""
    known = graph.__dict__.get("written_out")  # the planner asks, and who checks a plan
    if known is None or known[0] is not table or known[1] != capabilities:
        looped, found = rewritten(graph, table, capabilities)
        laid = lay(expand(looped, table), table, capabilities.multiplied)
        known = note(graph, table, capabilities, laid, found)
    return known[2], known[3]


def rewritten(graph: Graph, table: Table, capabilities: Capabilities) -> Written:
    """The graph as `rerolled` gives it, with rows in blocks where a backend gains from that."""
    made, found = rerolled(graph, table)
    return (block_rows(made, table) if capabilities.row_blocks else made), found


def rerolled(graph: Graph, table: Table) -> Written:
    """The graph with the loops that are found in it, without updates that are written over nor
    carries that nobody needs, and with products before loops; and what was found."""
    known = graph.__dict__.get("rerolled")  # whoever looks for a template asks, too
    if known is None or known[0] is not table:
        looped, loops = reroll(graph, table)
        needed, over = leave_out(looped, table)
        lean, carries = leave_out_carries(needed, table)
        hoisted, products = hoist(lean, table)
        found: Found = (*loops, *over, *carries, *products)
        known = graph.__dict__["rerolled"] = table, hoisted, found
    return known[1], known[2]


def note(graph: Graph, table: Table, capabilities: Capabilities, made: Graph, found: Found) -> Any:
    """Note what a graph is, written out."""
    known = graph.__dict__["written_out"] = table, capabilities, made, found
    return known


def lay(graph: Graph, table: Table, multiplied: frozenset[str] = frozenset()) -> Graph:
    """A graph without compositions, its routines laid out as libraries want them."""
    widened = widen_products(graph, table, multiplied)
    return lay_lines(lay_products(widened, table, multiplied), table)
