"""Which loops threads go through by themselves, and what they are given for that: those whose
rounds are one kernel in which each element of a carry hangs on this very element."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tenfold.backends.cuda.emit.block_loop import POINTER, Call
from tenfold.backends.cuda.emit.thread_loop import ThreadLoop, thread_loop_text
from tenfold.backends.cuda.recording import place_address
from tenfold.backends.cuda.run.block_loops import MOVING, LoopRecorder, NotOneFunction
from tenfold.backends.cuda.run.memory import DeviceFrame
from tenfold.kernel.ir.kernel import PARALLEL
from tenfold.plan import KernelStep, LoopStep, Plan
from tenfold.plan.steps.plan import INPUT, OUTPUT

if TYPE_CHECKING:
    from tenfold.backends.cuda.run.record import Recorder

_LONGEST = 1 << 10  # rounds: nobody can end the loop before they are done


def recorded_by_threads(recorder: Recorder, frame: DeviceFrame, step: LoopStep) -> bool:
    """Record a loop as one function, if its threads can go through it by themselves."""
    if not step.counted or not 1 < step.length <= _LONGEST:
        return False
    if not _elementwise(frame.plan.plans[step.plans[-1]], step):
        return False
    try:
        _ThreadLoopRecorder(recorder, frame, step).record()
    except NotOneFunction:
        return False
    return True


def _elementwise(plan: Plan, step: LoopStep) -> bool:
    """Whether a round is one kernel whose threads read of carries what they have written."""
    if len(plan.steps) != 1 or not isinstance(plan.steps[0], KernelStep):
        return False
    call = plan.steps[0]
    kernel = plan.own[call.kernel]
    if kernel.checks or any(axis.kind != PARALLEL for axis in kernel.axes):
        return False
    every = frozenset(range(len(kernel.axes)))
    places = [plan.slots[slot] for slot in call.slots]
    written = {}
    for store in kernel.stores:
        place = places[store.buffer]
        if place.place == OUTPUT and place.number < step.carries:
            if place.offset or store.condition is not None or store.index.axes() != every:
                return False
            written[place.number] = store.index
    if len(written) != step.carries:
        return False
    for instruction in kernel.instructions:
        if instruction.op != "load":
            continue
        place = places[instruction.attr[0]]
        carry = place.number - step.captures
        if place.place == OUTPUT and place.number < step.carries:
            return False
        own = place.place == INPUT and 0 <= carry < step.carries
        if own and (place.offset or instruction.index != written[carry]):
            return False
    return True


class _ThreadLoopRecorder(LoopRecorder):
    def record(self) -> None:
        step, frame, around = self.step, self.frame, self.r.around
        first = step.captures + step.carries
        captures = [frame.address(s) for s in step.inputs[: step.captures]]
        begin = [frame.address(s) for s in step.inputs[step.captures : first]]
        final = [frame.address(s) for s in step.outputs[: step.carries]]
        self.aligned += begin
        sliced = [*step.inputs[first:], *step.outputs[step.carries :]]
        moved = [self._sliced(slot) for slot in sliced]
        moving = [place_address(MOVING + n) for n in range(step.carries + len(sliced))]
        now, own = moving[: step.carries], moving[step.carries :]
        count = len(step.inputs) - first
        calls = self._items(step.plans[-1], [*captures, *now, *own[:count]], [*final, *own[count:]])
        if len(calls) != 1 or self.teams:  # nothing to do, or threads that work together
            raise NotOneFunction
        call = calls[0]
        assert isinstance(call, Call)
        launch, length = self.launches[0], self.number(step.length)
        carries = [
            (self.static(POINTER, a), self.static(POINTER, b))
            for a, b in zip(begin, final, strict=True)
        ]
        loop = ThreadLoop(
            tuple(self.types), tuple(carries), tuple(moved), call, length, step.reverse
        )
        kernel = next(iter(self.kernels.values()))
        name, text = thread_loop_text(loop, kernel, around.target)
        module = around.glue(name, lambda _: text)
        reads, writes = self._ranges()
        self.r.launch(module.function(name), *launch, self.words, reads, writes)
