"""Shrink a case: fewer elements and plainer numbers, as long as the fault shows."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from tenfold.parity.find.narrow import narrowed
from tenfold.parity.verdict import Case
from tenfold.types import KIND

Array = np.ndarray[Any, Any]

TRIES = 40  # each compiles a program


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
        for simpler in _simpler(case.arrays[number]):
            if tries <= 0:
                return case
            tries -= 1
            arrays = list(case.arrays)
            arrays[number] = simpler
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
    made = narrowed(case.graph, extent, smaller)
    if made is None:
        return None
    arrays = []
    for array, parameter in zip(case.arrays, made.parameters, strict=True):
        part = tuple(slice(0, n) for n in parameter.type.shape)
        arrays.append(np.ascontiguousarray(np.asarray(array)[part]).reshape(parameter.type.shape))
    return Case(made, tuple(arrays))


def _simpler(array: Array) -> list[Array]:
    """Simpler arrays of the same type: small whole numbers, in order."""
    if KIND[array.dtype] == "b" or array.size <= 4:
        return []
    ramp = (np.arange(array.size) % 7 + 1).reshape(array.shape)
    return [ramp.astype(array.dtype)]
