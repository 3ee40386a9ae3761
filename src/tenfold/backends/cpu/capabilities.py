"""What the CPU brings to a planner: its code generator's instructions, a private OpenBLAS for
products, routines."""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from typing import Any

from tenfold.backends.cpu.library.blas import blas
from tenfold.backends.cpu.library.routine import ROUTINES, routine_of
from tenfold.backends.cpu.schedule.schedule import tune
from tenfold.backends.llvm.support import missing
from tenfold.backends.llvm.target import LLVMTarget
from tenfold.graph.op import PRODUCT, Types
from tenfold.ops.algebra.products import BLAS, NARROW, WHOLE
from tenfold.plan.capabilities import Capabilities
from tenfold.types import SHORT


@lru_cache(maxsize=8)
def capabilities(target: LLVMTarget) -> Capabilities:
    """What can be done for a target, with the libraries of this machine."""
    return Capabilities(
        supports=lambda *named: missing(*named, target),
        routines=ROUTINES | {PRODUCT},
        scratch=_scratch,
        tune=tune,
    )


def _scratch(routine: str, types: Types, attributes: Mapping[str, Any]) -> int | None:
    if routine == PRODUCT:
        there = (*WHOLE, *NARROW) if blas() is None else (*WHOLE, *NARROW, *BLAS)
        return 0 if SHORT[types[0].dtype] in there else None
    found = routine_of(routine, types, attributes)
    return None if found is None else found.scratch
