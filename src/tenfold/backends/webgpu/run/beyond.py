"""Kernels that an adapter can't run, since they reach more memory than it shows to one: they are
carried out by the CPU's backend, on copies of what they touch."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any
from weakref import WeakKeyDictionary

import numpy as np

from tenfold.backends.program import Stepper
from tenfold.backends.registry import backend_record
from tenfold.backends.webgpu.native.buffer import Range
from tenfold.backends.webgpu.run.memory import Frame
from tenfold.backends.webgpu.target import WebGPUTarget
from tenfold.frozen import frozen
from tenfold.kernel.ir.sized import SizedKernel
from tenfold.plan import KernelStep, Plan
from tenfold.plan.steps.plan import ARENA, INPUT, OUTPUT
from tenfold.types import DTYPES

Array = np.ndarray[Any, Any]


def beyond(call: SizedKernel, target: WebGPUTarget) -> str | None:
    """Why a kernel can't run on an adapter, or None."""
    kernel = call.kernel
    largest = max((call.size(b.size) * DTYPES[b.dtype].itemsize for b in kernel.buffers), default=0)
    most = target.storage_bytes - 2 * target.alignment
    if largest > most:
        return (
            f"it touches an array of {largest >> 20} MiB, and {target.adapter} shows a kernel "
            f"{target.storage_bytes >> 20} MiB of one"
        )
    if len(kernel.buffers) > target.arrays:
        return (
            f"it touches {len(kernel.buffers)} arrays, and {target.adapter} shows a kernel "
            f"{target.arrays}"
        )
    return None


@frozen(eq=False)
class HostMemory:
    """What a plan is run in on the host; of it only what is touched is ever filled."""

    inputs: list[Array]
    outputs: list[Array]
    arena: Array


_known: WeakKeyDictionary[Plan, dict[int, tuple[Plan, Stepper]]] = WeakKeyDictionary()


def _alone(plan: Plan, number: int) -> tuple[Plan, Stepper]:
    """A step as a plan of its own, and what carries it out on the CPU."""
    rows = _known.setdefault(plan, {})
    if number not in rows:
        made = replace(plan, steps=(plan.steps[number],), plans=())
        rows[number] = made, backend_record("cpu").bind(made).stepper()
    return rows[number]


class OnCPU:
    """A kernel step that the CPU's backend carries out."""

    def __init__(self, frame: Frame, number: int) -> None:
        plan, step = frame.plan, frame.plan.steps[number]
        assert isinstance(step, KernelStep)
        self._frame = frame
        self._alone, self._stepper = _alone(plan, number)
        self._touched = list(dict.fromkeys(step.slots))
        count = len(step.reads)
        self._written = list(dict.fromkeys(step.slots[count:]))

    def run(
        self,
        fetch: Callable[[Sequence[tuple[Range, Array]]], None],
        put: Callable[[Range, Array], None],
    ) -> None:
        """Fetch the bytes of what is touched, all at once, carry the step out, and put back what
        was written."""
        plan = self._frame.plan
        types = [p.type for p in plan.graph.parameters]
        memory = HostMemory(
            [np.empty(t.shape, t.dtype) for t in types],
            [np.empty(t.shape, t.dtype) for t in plan.graph.output_types],
            np.empty(plan.arena_bytes, np.uint8),
        )
        places = [(self._frame.range(slot), self._bytes(memory, slot)) for slot in self._touched]
        fetch([(where, found) for where, found in places if found is not None])
        self._stepper.step(self._alone, 0, memory)
        for slot in self._written:
            found = self._bytes(memory, slot)
            if found is not None:
                put(self._frame.range(slot), found)

    def _bytes(self, memory: HostMemory, number: int) -> Array | None:
        """The bytes of a slot in the host's memory; None for constants."""
        slot = self._frame.plan.slots[number]
        whole = {
            INPUT: memory.inputs, OUTPUT: memory.outputs, ARENA: [memory.arena]
        }.get(slot.place)  # fmt: skip
        if whole is None:
            return None
        raw: Array = whole[slot.number if slot.place != ARENA else 0].reshape(-1).view(np.uint8)
        return raw[slot.offset : slot.offset + self._frame.range(number).size]
