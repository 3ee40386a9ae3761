"""Routines of nodes: which functions carry one out on a device, and what they are given."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from tenfold.backends.llvm.text import Fragment
from tenfold.frozen import frozen
from tenfold.types import TensorType


@frozen
class RoutineLaunch:
    """One launch of a routine's function: its name, blocks and threads, which of the routine's
    arrays it is given (inputs, outputs, then scratch), and further words of so many bytes."""

    function: str
    blocks: int
    threads: int
    arrays: tuple[int, ...]
    words: tuple[tuple[int, int], ...] = ()  # value and bytes


@frozen
class GpuRoutine:
    """How a node is carried out: the text of its functions, which hangs on dtypes alone, and their
    launches, in order."""

    text: Callable[[Any], Fragment]  # of the target
    key: str  # equal texts have equal keys
    launches: tuple[RoutineLaunch, ...]
    scratch: int = 0  # bytes


RUNNING = ("cumsum", "cumprod", "cummax", "cummin")
SORTS, GREATEST = ("sort", "argsort"), "top_few"
LINES = frozenset((*RUNNING, *SORTS, GREATEST))  # routines that work along lines of their one input

Given = Mapping[str, Any]
Find = Callable[[Sequence[TensorType], TensorType, Given], GpuRoutine | None]


def routine_of(
    name: str, types: Sequence[TensorType], result: TensorType, given: Given
) -> GpuRoutine | None:
    """The routine of a node with inputs and a first result of these types, or None where there is
    none here."""
    from tenfold.backends.cuda.library.product import product_routine
    from tenfold.graph.op import PRODUCT

    found: dict[str, Find] = {PRODUCT: product_routine}
    if name in found:
        return found[name](types, result, given)
    return line_routine(name, types[0], given)


def line_routine(name: str, type: TensorType, given: Given) -> GpuRoutine | None:
    """The routine of a node that works along lines of its one input, or None."""
    if name in RUNNING:
        from tenfold.backends.cuda.library.running import running_routine

        return running_routine(name, type, given)
    if name in SORTS:
        from tenfold.backends.cuda.library.sort import sort_routine

        return sort_routine(name, type, given)
    if name == GREATEST:
        from tenfold.backends.cuda.library.sort import greatest_routine

        return greatest_routine(type, given["k"])
    return None
