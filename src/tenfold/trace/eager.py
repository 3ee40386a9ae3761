"""Running at once: what control flow and effects do outside any trace.

The function is traced for the arguments and the graph is run. How graphs are run is not known
down here: the layer that knows says so with `use`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from tenfold.errors import ScopeError
from tenfold.graph import Graph
from tenfold.trace.array import Array
from tenfold.trace.containers import flatten
from tenfold.trace.function import Leaf, Traced, trace_function
from tenfold.trace.operand import is_operand, refusal, weak_of
from tenfold.trace.scope import leak
from tenfold.types import TensorType, as_dtype

Callables = tuple[Callable[..., Any], ...]
Runner = Callable[[Graph, Sequence[Any], Callables], list[Any]]

_runner: list[Runner] = []


def use(runner: Runner) -> None:
    """From now on graphs are run by this: `runner(graph, arguments, callables)`."""
    _runner[:] = [runner]


def at_once(function: Callable[..., Any], *arguments: Any) -> Any:
    """What the function gives for these containers of NumPy arrays and numbers."""
    traced, inputs = prepare(function, *arguments)
    if not _runner:
        raise ScopeError("nothing is there to run a graph with", fix="import tenfold")
    return traced.results(_runner[0](traced.graph, inputs, traced.callbacks))


def prepare(function: Callable[..., Any], *arguments: Any) -> tuple[Traced, list[Any]]:
    """The function traced for these arguments, and what its graph is to be run on."""
    structure, found = flatten(arguments)
    inputs, leaves = [], []
    for item in found:
        if isinstance(item, Array):
            raise leak(item, None)
        if not is_operand(item):
            raise refusal(item)
        array = np.asarray(item)
        array = array.astype(as_dtype(array.dtype), copy=False)
        inputs.append(array)
        leaves.append(Leaf(TensorType(array.dtype, array.shape), weak=weak_of(item)))
    traced = trace_function(function, leaves, lambda given: function(*structure.unflatten(given)))
    traced.check_limits(found)
    return traced, [*inputs, *(capture.array for capture in traced.captures)]
