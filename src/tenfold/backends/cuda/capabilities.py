"""What a GPU brings to a planner: all that is a kernel on the CPU is one here, in the same form, so
that sums have the same shape."""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache, partial
from typing import Any

from tenfold.backends.cpu.schedule.schedule import tune
from tenfold.backends.cuda.library.convolution import convolution_routine
from tenfold.backends.cuda.library.product import product_scratch, product_words
from tenfold.backends.cuda.target import CudaTarget
from tenfold.backends.llvm.support import missing
from tenfold.graph.op import CONVOLUTION, PRODUCT, Types
from tenfold.plan.capabilities import Capabilities


@lru_cache(maxsize=8)
def capabilities(target: CudaTarget) -> Capabilities:
    """What can be done for a target."""
    return Capabilities(
        supports=lambda *named: missing(*named, target.llvm),
        routines=frozenset({PRODUCT, CONVOLUTION}),
        scratch=partial(_scratch, target),
        multiplied=frozenset({"f16", "bf16"}),
        words=partial(_words, target),
        tune=tune,
    )


def _scratch(
    target: CudaTarget, routine: str, types: Types, attributes: Mapping[str, Any]
) -> int | None:
    if routine == CONVOLUTION:
        found = convolution_routine(types, None, attributes)
        return None if found is None else found.scratch
    return product_scratch(types, attributes, target)


def _words(target: CudaTarget, routine: str, types: Types, attributes: Mapping[str, Any]) -> str:
    return product_words(types, attributes, target) if routine == PRODUCT else ""
