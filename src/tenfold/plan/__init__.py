"""Plans: how a graph is run, as steps over slots."""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from tenfold.plan.steps.build import make_plan
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

# Names are loaded when they are first used: who only reads plans does without the planner, and who
# runs one that was found without either.
_HOMES = {"make_plan": "build"}


def __getattr__(name: str) -> Any:
    from importlib import import_module

    if name not in __all__:
        raise AttributeError(f"module 'tenfold.plan' has no attribute {name!r}")
    return getattr(import_module(f"tenfold.plan.steps.{_HOMES.get(name, 'plan')}"), name)


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
