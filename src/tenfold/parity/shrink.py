"""Shrink a case: fewer elements and plainer numbers, as long as the fault shows."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from tenfold.errors import TenfoldError
from tenfold.graph import Builder, Graph
from tenfold.ops import TABLE
from tenfold.parity.verdict import Case
from tenfold.types import KIND, TensorType

Array = np.ndarray[Any, Any]

TRIES = 40  # each compiles a program
# Attributes that hold extents of axes.
_EXTENTS = frozenset(("shape", "stops", "sizes", "length"))


def shrink(case: Case, diverges: Callable[[Case], bool]) -> Case:
    """A smaller case on which the fault shows too."""
    tries = TRIES
    extents = sorted(
        {n for p in case.graph.parameters for n in p.type.shape if n > 1}, reverse=True
    )
    for extent in extents:
        now = extent
        for smaller in _steps(extent):
            if tries <= 0:
                return case
            made = _narrowed(case, now, smaller)
            tries -= 1
            if made is None or not diverges(made):
                continue
            case, now = made, smaller
            break
    for number in range(len(case.arrays)):
        for plain in _plain(case.arrays[number]):
            if tries <= 0:
                return case
            tries -= 1
            arrays = list(case.arrays)
            arrays[number] = plain
            made = Case(case.graph, tuple(arrays))
            if diverges(made):
                case = made
                break
    return case


def _steps(extent: int) -> list[int]:
    """Smaller extents worth trying, the smallest first."""
    return [n for n in (2, 3, 5, 17, 33, 65, extent // 2) if n < extent]


def _narrowed(case: Case, extent: int, smaller: int) -> Case | None:
    """The case with every axis of one extent made shorter; None where its graph does not allow."""

    def cut(shape: tuple[int, ...]) -> tuple[int, ...]:
        return tuple(smaller if n == extent else n for n in shape)

    scopes: dict[str, Graph] = {}
    try:
        for graph in (*case.graph.scopes(), case.graph):  # inner ones first
            builder = Builder(TABLE)
            first = [builder.parameter(TensorType(p.type.dtype, cut(p.type.shape)), p.name)
                     for p in graph.parameters]  # fmt: skip
            values = list(first)
            for node in graph.nodes:
                given = {k: _cut_attribute(k, v, extent, smaller) for k, v in node.attributes}
                inner = [scopes[s.digest] for s in node.scopes]
                inputs = [values[v] for v in node.inputs]
                values += builder.node(node.op, inputs, given, inner, node.source)
            outputs = [values[v] for v in graph.outputs]
            scopes[graph.digest] = builder.finish(outputs, first, lambda source: source)
    except (TenfoldError, ValueError, IndexError):
        return None
    made = scopes[case.graph.digest]
    arrays = []
    for array, parameter in zip(case.arrays, made.parameters, strict=True):
        part = tuple(slice(0, n) for n in parameter.type.shape)
        arrays.append(np.ascontiguousarray(np.asarray(array)[part]).reshape(parameter.type.shape))
    return Case(made, tuple(arrays))


def _cut_attribute(name: str, value: Any, extent: int, smaller: int) -> Any:
    if name in _EXTENTS:
        if isinstance(value, tuple):
            return tuple(smaller if n == extent else n for n in value)
        return smaller if value == extent else value
    return value


def _plain(array: Array) -> list[Array]:
    """Plainer arrays of the same type: small whole numbers, in order."""
    if KIND[array.dtype] == "b" or array.size <= 4:
        return []
    ramp = (np.arange(array.size) % 7 + 1).reshape(array.shape)
    return [ramp.astype(array.dtype)]
