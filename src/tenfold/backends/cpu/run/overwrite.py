"""Which outputs of a plan may be written over arguments, so that an update needs no copy.

The argument is read for the last time before the output is begun, or by the step that begins it,
element for element. And once it is begun nothing can fail or be interrupted, unless the argument is
donated: an error leaves arguments as they were. A copy of the argument with which the output begins
is none, then.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence

from tenfold.frozen import frozen
from tenfold.kernel.ir.sized import SizedKernel
from tenfold.plan import CopyStep, HostStep, KernelStep, Plan, RoutineStep
from tenfold.plan.steps.plan import INPUT, OUTPUT, Step

Row = tuple[int, ...]


@frozen
class StepOrder:
    """When a plan reads its inputs for the last time, and begins its outputs; steps by number."""

    reads: tuple[Row, ...]  # of each input: the last two steps that read it
    begun: tuple[Row, ...]  # of each output: the first two steps that write it
    copied: Row  # of each output: the input that the first is a copy of, or -1
    safe: tuple[Row, ...]  # inputs and outputs: read last and begun by one step, by elements
    sure: int  # the step from which on nothing can fail or be interrupted

    def lets(self, argument: int, output: int, donated: bool) -> bool:
        """Whether the output may be written over the argument."""
        reads, begun = list(self.reads[argument]), list(self.begun[output])
        safe = (argument, output) in self.safe
        if self.copied[output] == argument:
            reads = [at for at in reads if at != begun[0]]
            del begun[0]
            safe = False  # it is of the copy that this is said
        last = max(reads, default=-1)
        first = min(begun, default=len(self.reads) + self.sure)
        return (donated or first >= self.sure) and (last < first or (last == first and safe))


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
