"""Footprint: the bytes of a program's arrays, counted before any of them is made."""

from __future__ import annotations

import tenfold as tn


def footprint(graph: tn.Graph) -> int:
    """The most bytes that the values of a graph take at once, its arguments among them.

    Values are counted as the evaluator keeps them, each from where it is made to where it is read
    last. Compiled code keeps less: values inside a kernel are never in memory.

    >>> import numpy as np
    >>> double = tn.trace(lambda x: np.outer(x, x).sum(), tn.spec((1000,), "float64"))
    >>> 8_000_000 < footprint(double) < 8_100_000
    True
    """
    beside: dict[str, int] = {}  # of each distinct graph, without its arguments
    for inner in (*graph.scopes(), graph):
        beside[inner.digest] = _beside(inner, beside)
    return sum(parameter.type.nbytes for parameter in graph.parameters) + beside[graph.digest]


def _beside(graph: tn.Graph, inside: dict[str, int]) -> int:
    """The most bytes beside the arguments; those of the graphs inside are known."""
    sizes = [type_.nbytes for type_ in graph.types]
    given = len(graph.parameters)
    now = most = 0
    for node, start, dead in zip(graph.nodes, graph.starts, graph.last_uses, strict=True):
        now += sum(sizes[start : start + len(node.types)])
        most = max(most, now + max((inside[scope.digest] for scope in node.scopes), default=0))
        now -= sum(sizes[value] for value in dead if value >= given)
    return most
