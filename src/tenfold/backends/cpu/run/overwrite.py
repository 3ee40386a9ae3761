"""Which outputs of a plan may be written over arguments, so that an update needs no copy.

The argument is read for the last time before the output is begun, or by the step that begins it,
element for element. And once it is begun nothing can fail or be interrupted, unless the argument is
donated: an error leaves arguments as they were. A copy of the argument with which the output begins
is none, then.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence

from tenfold.backends.cpu.run.order import Row, StepOrder
from tenfold.kernel.ir.sized import SizedKernel
from tenfold.plan import CopyStep, HostStep, KernelStep, Plan, RoutineStep
from tenfold.plan.steps.plan import INPUT, OUTPUT, Step


def step_order(plan: Plan, polling: Collection[SizedKernel], polled: Sequence[bool]) -> StepOrder:
    """The order of a plan's steps. `polling` are kernels that look for signals, `polled` says of
    each step whether that is done after it."""
    slots = plan.slots
    reads: list[list[int]] = [[] for _ in plan.graph.parameters]
    begun: list[list[int]] = [[] for _ in plan.outputs]
    copied = [-1] * len(plan.outputs)
    for at, step in enumerate(plan.steps):
        given, made = _touched(step)
        for n in {slots[s].number for s in given if slots[s].place == INPUT}:
            reads[n] = [*reads[n][-1:], at]
        for o in {slots[s].number for s in made if slots[s].place == OUTPUT}:
            if not begun[o] and isinstance(step, CopyStep):
                source, target = slots[step.source], slots[step.target]
                if source.place == INPUT and not source.offset and not target.offset:
                    copied[o] = source.number
            if len(begun[o]) < 2:
                begun[o].append(at)
    sure = len(plan.steps)
    while sure and not polled[sure - 1] and not _fails(plan, plan.steps[sure - 1], polling):
        sure -= 1
    rows = tuple(map(tuple, reads)), tuple(map(tuple, begun))
    return StepOrder(*rows, tuple(copied), plan.safe, sure)


def _touched(step: Step) -> tuple[Row, Row]:
    """The slots that a step reads, and those that it writes; some are both."""
    match step:
        case KernelStep():
            count = len(step.reads)
            return step.slots[:count], step.slots[count:]
        case CopyStep():
            return (step.source,), (step.target,)
        case RoutineStep() | HostStep():
            return step.inputs, step.outputs
    every = (*step.inputs, *step.outputs, *getattr(step, "second", ()))
    return every, every  # sub-plans may look at any of them at any time


def _fails(plan: Plan, step: Step, polling: Collection[SizedKernel]) -> bool:
    """Whether a step can raise, or stop for a signal."""
    if isinstance(step, KernelStep):
        call = plan.call(step)
        return bool(call.kernel.checks) or call in polling
    return not isinstance(step, CopyStep)
