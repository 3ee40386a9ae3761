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
from tenfold.backends.llvm.writer import kind
from tenfold.graph.op import PRODUCT, Types
from tenfold.plan.capabilities import Capabilities
from tenfold.types import SHORT

_LAPACK = ("cholesky", "det", "eig", "eigh", "inv", "lu", "qr", "slogdet", "solve", "svd",
           "triangular_solve")  # fmt: skip
_LACKING = dict.fromkeys(_LAPACK, "LAPACK factors and solves matrices")
_LACKING |= dict.fromkeys(("fft", "rfft", "irfft"), "Fourier transforms are NumPy's own")
_LACKING["reach"] = "chains of sparse matrices are followed one element after the other"


@lru_cache(maxsize=8)
def capabilities(target: CudaTarget) -> Capabilities:
    """What can be done for a target."""
    return Capabilities(
        supports=lambda *named: missing(*named, target.llvm),
        routines=LINES | {PRODUCT},
        scratch=_scratch,
        lacks=_lacks,
        tune=tune,
    )


def _scratch(routine: str, types: Types, attributes: Mapping[str, Any]) -> int | None:
    if routine in LINES:
        found = line_routine(routine, types[0], attributes)
        return None if found is None else found.scratch
    return 0 if all(SHORT[t.dtype] in MULTIPLIED for t in types) else None


def _lacks(routine: str, types: Types) -> str:
    """Why there is no such routine on a GPU."""
    if routine in LINES and kind(SHORT[types[0].dtype]) == "c":
        return "complex numbers are sorted by NumPy"
    return _LACKING.get(routine, "")
