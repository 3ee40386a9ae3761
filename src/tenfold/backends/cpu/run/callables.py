"""What native code calls in the midst of a plan: host steps, and kernels whose check failed."""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from typing import Any

import numpy as np

from tenfold.backends.host_step import HostCall
from tenfold.backends.program import CurrentCallbacks
from tenfold.plan import Plan
from tenfold.plan.steps.plan import ARENA, CONSTANT, OUTPUT
from tenfold.reference import Callbacks

Array = np.ndarray[Any, Any]
HostFunction = Callable[[int, int], None]  # of the addresses of a table and of an arena


def make_callable(
    plan: Plan, number: int, running: CurrentCallbacks, default: Callbacks
) -> HostFunction:
    """The callable of one step."""
    work = HostCall(plan, number)

    def call(table: int, arena: int) -> None:
        work(lambda slot: _slot_array(plan, slot, table, arena), running.callbacks or default)

    return call


def _slot_array(plan: Plan, number: int, table: int, arena: int) -> Array:
    """The array over a slot."""
    slot = plan.slots[number]
    if slot.place == CONSTANT:
        raw = plan.constants[slot.number]
        return np.frombuffer(raw, slot.type.dtype).reshape(slot.type.shape).copy()
    if slot.place == ARENA:
        address = arena + slot.offset
    else:
        at = slot.number + (len(plan.graph.parameters) if slot.place == OUTPUT else 0)
        address = ctypes.c_uint64.from_address(table + 8 * at).value + slot.offset
    size = slot.type.nbytes
    if not size:
        return np.empty(slot.type.shape, slot.type.dtype)
    memory: Any = (ctypes.c_char * size).from_address(address)
    made: Array = np.frombuffer(memory, slot.type.dtype).reshape(slot.type.shape)
    return made
