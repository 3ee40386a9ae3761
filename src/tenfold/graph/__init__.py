"""Graphs: the data of programs, and how they are built, checked, printed and filed.

- Every graph is closed. A scope (branch, body) takes what it uses from outside as parameters:
  captures, then carries, then slices. `Scope.capture` adds them while tracing, through any depth;
  the scopes of one node take the same list, ordered by first use.
- Canonical order is depth-first from effects and outputs. Dead nodes are gone. Equal nodes are
  merged as they are made (`Builder.node`). A node with an effect, or with a scope that has one,
  is never merged and never dropped.
- The digest is taken of a graph's section in its file form, in which a scope stands as its own
  digest. Two graphs with one digest are still compared.
- The file form (`graph/file`) lists each distinct type and form (op, attributes, types, scopes)
  once; a node is the number of its form and how far back its inputs lie: about four bytes. Names
  and lines stand beside the sections and take no part in equality.

Edges: What an op does where NumPy leaves it open or warns is in the `edges` column of its row:
integer division by zero gives 0, `INT_MIN // -1` wraps, over-wide shifts give 0 (or the sign),
casts from float to integer truncate and saturate with NaN as 0, an index out of range raises,
`finite` raises where it meets NaN or an infinity (the range of a histogram), repeated indices of
a scatter are taken in row-major order. No NumPy warnings are printed.
"""

from tenfold.graph.build import Builder
from tenfold.graph.check import check
from tenfold.graph.node import Attributes, Graph, Node, Parameter, Source
from tenfold.graph.op import Op, Table

__all__ = [
    "Attributes",
    "Builder",
    "Graph",
    "Node",
    "Op",
    "Parameter",
    "Source",
    "Table",
    "check",
]
