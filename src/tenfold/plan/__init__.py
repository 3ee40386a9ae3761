"""Plans: how a graph is run, as steps over slots."""

from tenfold.plan.build import make_plan
from tenfold.plan.plan import (
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
