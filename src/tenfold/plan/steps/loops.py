"""Which loops of a plan may run as one native function each, and why others may not.

A backend that compiles may make one function of a loop: its kernels put in place, its loops and
branches as native control flow, what is small in registers. The rule is the plan's alone, so it is
the same in every process:

- all that a round does, at any depth, are kernels, copies, loops and branches: a step on the host
  or a routine has to be called from outside;
- the rounds are many, or nobody knows how many: compiling takes milliseconds, and saves some 20 ns
  a step;
- a round is short: where each kernel has thousands of elements, what is saved does not count;
- the code is not long: kernels are put in place where they stand, so each counts as often.

A loop inside such a loop is part of it. A backend may still leave a loop to its interpreter, where
its code turns out to be long. `plan.explain()` says it of each loop.
"""

from __future__ import annotations

from collections.abc import Mapping
from math import prod

from tenfold.frozen import frozen
from tenfold.plan.steps.plan import (
    BranchStep,
    CopyStep,
    HostStep,
    KernelStep,
    LoopStep,
    Plan,
    RoutineStep,
)

FEW = 32  # rounds in all: fewer are not worth a function
LONG = 4096  # elements a step: a round of more gains nothing
STEPS = 64  # kernels and copies that are put in place, at most
INSTRUCTIONS = 1000  # of kernels as they were lowered
DEEP = 6  # loops and branches inside one another
_UNKNOWN = 1 << 20  # rounds, where a condition ends them

Which = tuple[int, int]  # a plan in `plan.every`, and one of its steps


@frozen
class Round:
    """What a plan that is a loop's body does, with all below it."""

    steps: int = 0
    instructions: int = 0
    elements: int = 0  # that its kernels compute, inner rounds counted
    turns: int = 0  # of inner loops
    depth: int = 0
    refused: str = ""  # why it can't be put in place

    def __add__(self, other: Round) -> Round:
        return Round(
            self.steps + other.steps,
            self.instructions + other.instructions,
            self.elements + other.elements,
            self.turns + other.turns,
            max(self.depth, other.depth),
            self.refused or other.refused,
        )


def native_loops(plan: Plan) -> dict[Which, str]:
    """The loops that are not part of another's function: why each has none of its own, or nothing.

    A plan may be met in several places; it is looked at once."""
    rounds: dict[int, Round] = {}
    numbers = {id(one): n for n, one in enumerate(plan.every)}
    for one in plan.every[:-1]:  # all but this plan itself
        rounds[id(one)] = _round(one, rounds)
    found: dict[Which, str] = {}
    waiting, met = [plan], {id(plan)}
    while waiting:
        one = waiting.pop()
        for at, step in enumerate(one.steps):
            if not isinstance(step, (LoopStep, BranchStep)):
                continue
            if isinstance(step, LoopStep):
                reason = found[numbers[id(one)], at] = _refusal(one, step, rounds)
                if not reason:
                    continue
            inner = [one.plans[p] for p in step.plans]
            waiting += [p for p in inner if id(p) not in met]
            met.update(map(id, inner))
    return found


def _round(plan: Plan, known: Mapping[int, Round]) -> Round:
    total = Round()
    for step in plan.steps:
        if isinstance(step, KernelStep):
            call = plan.call(step)
            space = prod(max(call.size(axis.extent), 1) for axis in call.kernel.axes)
            total += Round(1, len(call.kernel.instructions), space)
        elif isinstance(step, CopyStep):
            total += Round(1)
        elif isinstance(step, HostStep):
            total += Round(refused=f"{step.op} runs on the host")
        elif isinstance(step, RoutineStep):
            total += Round(refused=f"{step.name} is a routine")
        else:
            total += _below(plan, step, known)
    return total


def _below(plan: Plan, step: LoopStep | BranchStep, known: Mapping[int, Round]) -> Round:
    inner = sum((known[id(plan.plans[p])] for p in step.plans), Round())
    turns = 1
    if isinstance(step, LoopStep):
        turns = step.length if step.counted else _UNKNOWN
    return Round(
        inner.steps,
        inner.instructions,
        inner.elements * max(turns, 1),
        turns * max(inner.turns, 1) if isinstance(step, LoopStep) else inner.turns,
        inner.depth + 1,
        inner.refused,
    )


def _refusal(plan: Plan, step: LoopStep, known: Mapping[int, Round]) -> str:
    """Why a loop gets no function of its own, or nothing."""
    inner = sum((known[id(plan.plans[p])] for p in step.plans), Round())
    whole = _below(plan, step, known)
    if inner.refused:
        return inner.refused
    if whole.turns < FEW:
        return f"it has {whole.turns} rounds, fewer than {FEW}"
    if inner.elements > LONG * max(inner.steps, 1) * max(inner.turns, 1):
        return f"a step computes more than {LONG} elements: nothing would be gained"
    if inner.steps > STEPS or inner.instructions > INSTRUCTIONS or whole.depth > DEEP:
        return "its code would be long"
    return ""
