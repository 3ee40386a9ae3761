"""The seam where tests plant faults: what a broken compiler would have made, put in the place of
what this one made. The package never sets the hook.

    "plan"     a plan as it was made, before it becomes a program
    "options"  what stands beside a graph in a plan's key: what is spoilt is never found by others
    "entry"    what a call is to be answered by, before it is bound
    "binding"  the native record of a call, once it is bound
    "memory"   the bytes of a plan in the form that is kept
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

T = TypeVar("T")

hook: Callable[[str, Any], Any] | None = None


def passed(what: str, made: T) -> T:
    """What was made, or what the hook puts in its place.

    >>> passed("plan", 1)
    1
    """
    return made if hook is None else hook(what, made)
