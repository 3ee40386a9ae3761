"""Whether a plan would be quicker on the CPU, by rough costs: for explanations alone."""

from __future__ import annotations

from tenfold.kernel.analyse.lanes import LaneChoice
from tenfold.kernel.ir.sized import SizedKernel
from tenfold.plan import BranchStep, CopyStep, KernelStep, LoopStep, Plan, RoutineStep

CALL = 100  # microseconds of a call on a device, at least: two copies and a wait
_INSTRUCTION = 3e-4  # microseconds of one on a vector
_COPIED, _WORKED = 1e4, 1e3  # bytes a microsecond that are copied, and that routines go through


def quicker_on_cpu(plan: Plan) -> str:
    """What to say of a plan that takes less there than a call does here, or nothing. Of a loop
    whose end the data says it is not known."""
    known: dict[int, float] = {}
    kernels: dict[SizedKernel, float] = {}
    for one in plan.every:
        total = 0.0
        for step in one.steps:
            match step:
                case KernelStep():
                    call = one.call(step)
                    if call not in kernels:
                        choice = LaneChoice(call.fixed)
                        kernels[call] = _INSTRUCTION * choice.cost(choice.best())
                    total += kernels[call]
                case CopyStep():
                    total += one.slots[step.source].type.nbytes / _COPIED
                case RoutineStep():
                    touched = [*step.inputs, *step.outputs]
                    total += sum(one.slots[n].type.nbytes for n in touched) / _WORKED
                case LoopStep():
                    if not step.counted:
                        return ""
                    total += step.length * sum(known[id(one.plans[n])] for n in step.plans)
                case BranchStep():
                    total += max(known[id(one.plans[n])] for n in step.plans)
        known[id(one)] = total
    if known[id(plan)] >= CALL:
        return ""
    return (
        f"likely quicker on the CPU: by its costs it takes {known[id(plan)]:.2g} µs there, and a "
        f"call here {CALL} or more"
    )
