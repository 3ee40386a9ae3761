"""Kernels that begin before those before them have ended, launched by programmatic edges: each lets
the ones behind it begin at once, then waits until all before it have ended and what they wrote is
seen. So each ends after all before it, and may write where these read."""

from __future__ import annotations

import re

_BEGINNING = re.compile(r"define ptx_kernel [^\n]*\{\n(?:[\w.]+:[^\n]*\n)?")
_CALLS = [f"void @llvm.nvvm.griddepcontrol.{name}()" for name in ("launch.dependents", "wait")]


def overlapped(text: str) -> str:
    """A module all of whose kernels wait. They have no loads by the cache for what nobody writes
    to, as such loads could be moved before the wait."""
    calls = "".join(f"  call {one}\n" for one in _CALLS)
    made = _BEGINNING.sub(lambda found: found[0].replace(" readonly ", " ") + calls, text)
    declared = "".join(f"declare {one}\n" for one in _CALLS)
    return declared + made.replace(", !invariant.load !{}", "")
