"""What a GPU brings to a planner: all that is a kernel on the CPU is one here, in the same form, so
that sums have the same shape."""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from typing import Any

from tenfold.backends.cpu.schedule.schedule import tune
from tenfold.backends.cuda.library.product import DTYPES as MULTIPLIED
from tenfold.backends.cuda.library.routine import LINES, line_routine
from tenfold.backends.cuda.target import CudaTarget
from tenfold.backends.llvm.support import missing
from tenfold.graph.op import PRODUCT, Types
from tenfold.plan.capabilities import Capabilities
from tenfold.types import SHORT


@lru_cache(maxsize=8)
def capabilities(target: CudaTarget) -> Capabilities:
    """What can be done for a target."""
    return Capabilities(
        supports=lambda *named: missing(*named, target.llvm),
        routines=LINES | {PRODUCT},
        scratch=_scratch,
        tune=tune,
    )


def _scratch(routine: str, types: Types, attributes: Mapping[str, Any]) -> int | None:
    if routine in LINES:
        found = line_routine(routine, types[0], attributes)
        return None if found is None else found.scratch
    return 0 if all(SHORT[t.dtype] in MULTIPLIED for t in types) else None
