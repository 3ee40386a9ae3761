"""What a GPU brings to a planner: all that is a kernel on the CPU is one here, in the same form, so
that sums have the same shape."""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache, partial
from typing import Any

from tenfold.backends.cpu.schedule.schedule import tune
from tenfold.backends.cuda.library.convolution import convolution_routine
from tenfold.backends.cuda.library.factoring import factoring_reason, factoring_routine
from tenfold.backends.cuda.library.fourier import fourier_routine, fourier_scratch
from tenfold.backends.cuda.library.product import product_scratch, product_words
from tenfold.backends.cuda.library.reach import reach_scratch
from tenfold.backends.cuda.library.routine import FACTORED, FOURIER, LINES, REACH, line_routine
from tenfold.backends.cuda.target import CudaTarget
from tenfold.backends.llvm.support import missing
from tenfold.backends.llvm.writer import kind
from tenfold.graph.op import CONVOLUTION, PRODUCT, Types
from tenfold.plan.capabilities import Capabilities
from tenfold.types import SHORT

_LAPACK = ("cholesky", "det", "eig", "eigh", "inv", "lu", "qr", "slogdet", "solve", "svd",
           "triangular_solve")  # fmt: skip
_LACKING = dict.fromkeys(FOURIER, "Fourier transforms are cuFFT's, and there is none")


@lru_cache(maxsize=8)
def capabilities(target: CudaTarget) -> Capabilities:
    """What can be done for a target."""
    return Capabilities(
        supports=lambda *named: missing(*named, target.llvm),
        routines=LINES | FACTORED | {PRODUCT, CONVOLUTION, REACH, *FOURIER},
        scratch=partial(_scratch, target),
        lacks=partial(_lacks, target),
        multiplied=frozenset({"f16", "bf16"}),
        one_row=True,
        row_blocks=False,  # one block after another would leave most of the chip idle
        words=partial(_words, target),
        tune=tune,
    )


def _scratch(
    target: CudaTarget, routine: str, types: Types, attributes: Mapping[str, Any]
) -> int | None:
    if routine in LINES:
        line = line_routine(routine, types[0], attributes)
        return None if line is None else line.scratch
    if routine == CONVOLUTION:
        found = convolution_routine(types, None, attributes)
        return None if found is None else found.scratch
    if routine == REACH:
        return reach_scratch(types)
    if routine in FOURIER:
        return fourier_scratch(routine, types[0], attributes, target)
    if routine in FACTORED:
        made = factoring_routine(routine, types, attributes, target)
        return None if made is None else made.scratch
    return product_scratch(types, attributes, target)


def _lacks(target: CudaTarget, routine: str, types: Types) -> str:
    """Why there is no such routine on a GPU."""
    if routine in _LAPACK:
        return factoring_reason(routine, types, target)
    if routine in LINES and kind(SHORT[types[0].dtype]) == "c":
        return "complex numbers are sorted by NumPy"
    return _LACKING.get(routine, "")


def _words(target: CudaTarget, routine: str, types: Types, attributes: Mapping[str, Any]) -> str:
    if routine == PRODUCT:
        return product_words(types, attributes, target)
    found = None
    if routine in FOURIER:
        found = fourier_routine(routine, types[0], attributes, target=target, aligned=True)
    elif routine in FACTORED:
        found = factoring_routine(routine, types, attributes, target)
    if found is None or not found.launches:
        return ""
    by = found.made_by or "an elimination of ours"
    return f"{routine} of {types[0]}: by {by}, whose bits are its own"
