"""Running at once: what control flow and effects do outside any trace.

The function is traced for the arguments and the graph is run.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from tenfold.trace.array import Array
from tenfold.trace.containers import flatten
from tenfold.trace.function import FunctionTrace, Leaf, trace_function
from tenfold.trace.lazy.host import fresh
from tenfold.trace.lazy.lazy import LAZY
from tenfold.trace.lazy.realise import run
from tenfold.trace.operand import is_operand, refusal, weak_of
from tenfold.trace.scope import leak
from tenfold.types import TensorType, as_dtype, base_array


def at_once(function: Callable[..., Any], *arguments: Any) -> Any:
    """What the function gives for these containers of arrays and numbers: lazy arrays where one
    was given, else NumPy's."""
    traced, inputs = prepare(function, *arguments)
    outputs = run(traced.graph, inputs, traced.callbacks)
    given = any(isinstance(item, Array) for item in flatten(arguments)[1])
    return traced.results(outputs, give=fresh if given else None)


def prepare(function: Callable[..., Any], *arguments: Any) -> tuple[FunctionTrace, list[Any]]:
    """The function traced for these arguments, and what its graph is to be run on."""
    structure, found = flatten(arguments)
    inputs, leaves = [], []
    for item in found:
        if isinstance(item, Array) and item._scope is not LAZY:
            raise leak(item, None)
        if not is_operand(item):
            raise refusal(item)
        array = np.asarray(base_array(item))
        array = array.astype(as_dtype(array.dtype), copy=False)
        inputs.append(array)
        leaves.append(Leaf(TensorType(array.dtype, array.shape), weak=weak_of(item)))
    traced = trace_function(function, leaves, lambda given: function(*structure.unflatten(given)))
    traced.check_limits(found)
    return traced, [*inputs, *(capture.array for capture in traced.captures)]
