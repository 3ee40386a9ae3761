"""How long steps take, about: what is polled, what gives up the GIL, and which rounds of loops go
side by side hang on it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import prod

from tenfold.backends.cpu.library.routine import NodeRoutine, routine_of
from tenfold.backends.cpu.threads.cut import LEAST
from tenfold.graph.op import PRODUCT
from tenfold.plan import (
    BranchStep,
    CopyStep,
    HostStep,
    KernelStep,
    LoopStep,
    Plan,
    RoutineStep,
    Step,
)
from tenfold.plan.steps.spared import spared_rows

_TURNS = 1000  # of a loop whose length nobody knows: it may be endless
_SHORTEST, _LONGEST = 10_000, 50_000_000  # nanoseconds of rounds that go side by side
_TOUCHED = 4  # bytes a nanosecond


def weigh(plans: Sequence[Plan]) -> tuple[dict[int, int], dict[int, list[int]]]:
    """About how many nanoseconds each of these plans takes, by id, and each of its steps; inner
    plans come first."""
    known: dict[int, int] = {}
    steps: dict[int, list[int]] = {}
    for plan in plans:
        sizes = [slot.type.size for slot in plan.slots]
        steps[id(plan)] = [_weight(plan, step, sizes, known) for step in plan.steps]
        known[id(plan)] = 10 + sum(steps[id(plan)])
    return known, steps


def _weight(plan: Plan, step: Step, sizes: Sequence[int], known: Mapping[int, int]) -> int:
    match step:
        case KernelStep():
            call = plan.call(step)
            space = prod([max(call.size(axis.extent), 1) for axis in call.kernel.axes])
            return int(20 + len(step.slots) * min(space, 1 << 40) // 4)
        case RoutineStep() if step.name == PRODUCT:
            return 100 + int(prod([sizes[s] for s in (*step.inputs, *step.outputs)]) ** 0.5) // 16
        case RoutineStep():
            return 100 + routine_step(plan, step).weight
        case LoopStep() | BranchStep():
            inner = max(known[id(plan.plans[p])] for p in step.plans)
            turns = 1
            if isinstance(step, LoopStep):
                turns = step.length if step.counted else _TURNS
            return 20 + inner * max(turns, 1)
        case CopyStep():
            return 10 + (plan.slots[step.source].type.nbytes - spared_bytes(plan, step)) // 8
        case HostStep():
            return 1000


def spared_bytes(plan: Plan, step: CopyStep) -> int:
    """What of a copy is left out, less what it costs to go from row to row."""
    rows = spared_rows(plan.graph, step.update)
    if rows is None:
        return 0
    return max(0, rows.total - 32 * (rows.total // rows.bytes))


def routine_step(plan: Plan, step: RoutineStep) -> NodeRoutine:
    """How the node of a step is carried out by its routine."""
    node = plan.graph.nodes[step.node]
    types = tuple(plan.graph.types[v] for v in node.inputs)
    found = routine_of(step.name, types, dict(node.attributes))
    assert found is not None
    return found


def side_by_side(plan: Plan, step: LoopStep, steps: Mapping[int, Sequence[int]]) -> bool:
    """Whether the rounds of a loop may run side by side, and are worth it: they carry nothing, call
    no Python, and are neither too short to be handed out nor long without a poll. `steps` has the
    weights of each plan's steps."""
    if not step.counted or step.carries:
        return False
    body = plan.plans[step.plans[-1]]
    time = _least(body, steps)
    if not _SHORTEST <= time <= _LONGEST or time * step.length < LEAST:
        return False
    return not any(_asks(one, inner) for one in body.every for inner in one.steps)


def _least(plan: Plan, steps: Mapping[int, Sequence[int]]) -> int:
    """About how many nanoseconds a plan takes, at least: kernels as long as to touch memory."""
    total = 0
    for step, weight in zip(plan.steps, steps[id(plan)], strict=True):
        if isinstance(step, KernelStep):
            total += sum(plan.slots[s].type.nbytes for s in step.slots) // _TOUCHED
        elif isinstance(step, LoopStep):
            inner = _least(plan.plans[step.plans[-1]], steps)
            total += inner * (step.length if step.counted else 1)
        else:
            total += weight
    return total


def _asks(plan: Plan, step: Step) -> bool:
    """Whether a step may call Python."""
    match step:
        case KernelStep():
            return bool(plan.own[step.kernel].checks)
        case RoutineStep():
            return step.name != PRODUCT and routine_step(plan, step).leaves
    return isinstance(step, HostStep)
