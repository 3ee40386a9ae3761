"""At what multiples the slots of a plan begin on a device, whatever addresses it is given.

Inputs, outputs, arenas and constants begin at multiples of 16 bytes: who calls sees to it. A slot
may begin elsewhere: where it is a range of another, or one round's slice of an input. Kernels read
several elements at once only where all begin as they should.
"""

from __future__ import annotations

from math import gcd

from tenfold.plan import BranchStep, KernelStep, LoopStep, Plan
from tenfold.plan.steps.plan import INPUT, OUTPUT

ALIGNED = 16


def unaligned(plan: Plan) -> dict[int, list[frozenset[int]]]:
    """For each plan, by identity, and each of its steps: the buffers of a kernel that may begin at
    no multiple of 16."""
    inputs = {id(p): [ALIGNED] * len(p.graph.parameters) for p in plan.every}
    outputs = {id(p): [ALIGNED] * len(p.outputs) for p in plan.every}
    found: dict[int, list[frozenset[int]]] = {}
    for one in reversed(plan.every):  # outer ones first
        slots = [_slot(one, n, inputs[id(one)], outputs[id(one)]) for n in range(len(one.slots))]
        rows = []
        for step in one.steps:
            odd: frozenset[int] = frozenset()
            if isinstance(step, KernelStep):
                odd = frozenset(n for n, s in enumerate(step.slots) if slots[s] < ALIGNED)
            elif isinstance(step, (LoopStep, BranchStep)):
                _pass_on(one, step, slots, inputs, outputs)
            rows.append(odd)
        found[id(one)] = rows
    return found


def _slot(plan: Plan, number: int, inputs: list[int], outputs: list[int]) -> int:
    slot = plan.slots[number]
    base = ALIGNED
    if slot.place == INPUT:
        base = inputs[slot.number]
    elif slot.place == OUTPUT:
        base = outputs[slot.number]
    return gcd(base, slot.offset)


def _pass_on(
    plan: Plan,
    step: LoopStep | BranchStep,
    slots: list[int],
    inputs: dict[int, list[int]],
    outputs: dict[int, list[int]],
) -> None:
    """What the plans below are given."""

    def meet(known: list[int], at: int, found: int) -> None:
        known[at] = gcd(known[at], found)

    if isinstance(step, BranchStep):
        for which in step.plans:
            below = id(plan.plans[which])
            for at, slot in enumerate(step.inputs):
                meet(inputs[below], at, slots[slot])
            for at, slot in enumerate(step.outputs):
                meet(outputs[below], at, slots[slot])
        return
    first = step.captures + step.carries
    body = id(plan.plans[step.plans[-1]])
    given = [slots[s] for s in step.inputs]
    made = [slots[s] for s in step.outputs]
    for carry in range(step.carries):
        both = gcd(made[carry], slots[step.second[carry]] if step.second else ALIGNED)
        given[step.captures + carry] = gcd(given[step.captures + carry], both)
        made[carry] = both
    for at in range(first, len(step.inputs)):
        given[at] = gcd(given[at], _stride(plan, step.inputs[at], step))
    for at in range(step.carries, len(step.outputs)):
        made[at] = gcd(made[at], _stride(plan, step.outputs[at], step))
    for at, found in enumerate(given):
        meet(inputs[body], at, found)
    for at, found in enumerate(made):
        meet(outputs[body], at, found)
    if not step.counted:
        for at, found in enumerate(given[:first]):
            meet(inputs[id(plan.plans[step.plans[0]])], at, found)


def _stride(plan: Plan, slot: int, step: LoopStep) -> int:
    return plan.slots[slot].type.nbytes // max(step.length, 1)
