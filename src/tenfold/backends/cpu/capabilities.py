"""What the CPU brings to a planner: its code generator's instructions, a private OpenBLAS for
products, sorts of its own."""

from __future__ import annotations

from functools import lru_cache, partial

from tenfold.backends.cpu.library.blas import blas
from tenfold.backends.cpu.link.support import missing
from tenfold.backends.cpu.schedule.schedule import tune
from tenfold.backends.llvm.target import LLVMTarget
from tenfold.graph.op import PRODUCT
from tenfold.plan.capabilities import Capabilities

_SORTS = frozenset(("sort", "argsort"))
_PRODUCTS = ("f32", "f64", "c64", "c128")


@lru_cache(maxsize=8)
def capabilities(target: LLVMTarget) -> Capabilities:
    """What can be done for a target, with the libraries of this machine."""
    return Capabilities(
        supports=lambda *named: missing(*named, target),
        routines=_SORTS if blas() is None else _SORTS | {PRODUCT},
        scratch=_scratch,
        tune=partial(tune, target=target),
    )


def _scratch(routine: str, dtype: str, length: int) -> int | None:
    if routine in _SORTS:
        from tenfold.backends.cpu.library.sort.sort import scratch_bytes  # few plans sort

        return scratch_bytes(routine, dtype, length)
    return 0 if routine == PRODUCT and dtype in _PRODUCTS else None
