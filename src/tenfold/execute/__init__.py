"""Running plans: code brought into this process, arenas, faults, host steps."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tenfold.execute.program import Program

if TYPE_CHECKING:
    from tenfold.execute.plan import plan_for


def __getattr__(name: str) -> Any:
    # Whoever runs a plan that was found does without the planner.
    if name != "plan_for":
        raise AttributeError(f"module 'tenfold.execute' has no attribute {name!r}")
    from tenfold.execute.plan import plan_for

    return plan_for


__all__ = ["Program", "plan_for"]
