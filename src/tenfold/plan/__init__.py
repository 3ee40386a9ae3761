"""Plans: how a graph is run, as steps over slots."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tenfold.plan.steps.plan import (
    BranchStep,
    CopyStep,
    HostStep,
    KernelStep,
    LoopStep,
    Plan,
    RoutineStep,
    Slot,
    Step,
)

if TYPE_CHECKING:
    from tenfold.plan.steps.build import make_plan


def __getattr__(name: str) -> Any:
    # Whoever only reads plans, or runs one that was found, does without the planner.
    if name != "make_plan":
        raise AttributeError(f"module 'tenfold.plan' has no attribute {name!r}")
    from tenfold.plan.steps.build import make_plan

    return make_plan


__all__ = [
    "BranchStep",
    "CopyStep",
    "HostStep",
    "KernelStep",
    "LoopStep",
    "Plan",
    "RoutineStep",
    "Slot",
    "Step",
    "make_plan",
]
