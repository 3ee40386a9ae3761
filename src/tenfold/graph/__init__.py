"""Graphs: the data of programs, and how they are built, checked, printed and filed."""

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
