"""Running plans: code brought into this process, arenas, faults, host steps."""

from tenfold.execute.plan import plan_for
from tenfold.execute.program import Program

__all__ = ["Program", "plan_for"]
