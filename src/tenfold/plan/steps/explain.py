"""Plans in words."""

from __future__ import annotations

from collections.abc import Container

from tenfold.graph.op import Routine
from tenfold.ops import TABLE
from tenfold.plan.steps.loops import Which, native_loops
from tenfold.plan.steps.plan import (
    BranchStep,
    CopyStep,
    HostStep,
    KernelStep,
    LoopStep,
    Plan,
    RoutineStep,
    Step,
)


def show(plan: Plan) -> str:
    """Every slot and step, sub-plans below."""
    lines: list[str] = []
    for number, one in enumerate(reversed(plan.every)):
        lines.append(f"plan {number}: {one.arena_bytes} bytes of arena")
        lines += [f"  s{n}: {slot}" for n, slot in enumerate(one.slots)]
        lines += [f"  {_line(one, step)}" for step in one.steps]
        lines.append("  return " + " ".join(f"s{n}" for n in one.outputs))
    return "\n".join(lines)


def explain(plan: Plan, functions: Container[Which] | None = None) -> str:
    """What runs, with the user's lines; what was not fused and why; host steps and why; which loops
    are functions, of those that may be: all, or those that a program has."""
    lines = [
        f"{sum(len(p.steps) for p in plan.every)} steps, {len(plan.kernels)} kernels, "
        f"{len(plan.host_steps)} host steps, {plan.peak_bytes} bytes of arena"
    ]
    loops, last = native_loops(plan), len(plan.every) - 1
    for number, one in enumerate(reversed(plan.every)):
        if number:
            lines.append(f"sub-plan {number}:")
        for at, step in enumerate(one.steps):
            lines.append(f"  {_line(one, step)}")
            which = last - number, at
            if which in loops:
                lines.append(f"    {_way(loops[which], functions is None or which in functions)}")
            if isinstance(step, KernelStep):
                ops = [one.graph.nodes[n].op for n in step.nodes]
                lines.append(f"    fused: {' '.join(ops[:40])}{' …' if len(ops) > 40 else ''}")
                lines += [f"    from {line}" for line in one.lines(step)]
            elif isinstance(step, RoutineStep):
                lines += [f"    {words}" for words in _words(one, step)]
        lines += [f"  note: {note}" for note in one.notes]
    lines += [
        f"on the host: {step.op}: {step.reason}" + (f"  # {step.source}" if step.source else "")
        for step in plan.host_steps
    ]
    return "\n".join(lines)


def _way(reason: str, made: bool) -> str:
    """How a loop is run."""
    if not reason and made:
        return "one native function"
    return f"step by step: {reason or 'its code would be long, or a kernel polls'}"


def _words(plan: Plan, step: RoutineStep) -> list[str]:
    """How a routine goes about a step, where its row says so."""
    node = plan.graph.nodes[step.node]
    lowering = TABLE[node.op].lowering
    if not isinstance(lowering, Routine) or lowering.words is None:
        return []
    types = [plan.graph.types[v] for v in node.inputs]
    return [lowering.words(types, node.types[0], dict(node.attributes))]


def _line(plan: Plan, step: Step) -> str:
    def named(slots: tuple[int, ...]) -> str:
        return " ".join(f"s{n}" for n in slots)

    if isinstance(step, KernelStep):
        kernel = plan.own[step.kernel]
        return f"kernel {kernel.digest[:8]} {named(step.slots)}"
    if isinstance(step, CopyStep):
        but = ", but for what is written later" if step.update >= 0 else ""
        return f"copy s{step.source} to s{step.target}{but}"
    if isinstance(step, (RoutineStep, HostStep)):
        name = step.name if isinstance(step, RoutineStep) else step.op
        return f"{step.kind} {name} {named(step.inputs)} -> {named(step.outputs)}"
    if isinstance(step, LoopStep):
        trips = f" {step.length} times" if step.counted else ""
        return f"{step.op}{trips} {named(step.inputs)} -> {named(step.outputs)}"
    assert isinstance(step, BranchStep)
    return f"branch on s{step.index} {named(step.inputs)} -> {named(step.outputs)}"
