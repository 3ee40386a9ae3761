"""Every kernel that is compiled is held to the specification of legal kernels."""

from __future__ import annotations

from tenfold.backends.cpu.link import compile as compiling
from tenfold.kernel import Kernel
from tenfold.kernel.ir.legal import check
from tenfold.kernel.passes.legalise import legalise


def _checked(kernel: Kernel, fused: bool) -> Kernel:
    legal = legalise(kernel, fused)
    check(legal)
    return legal


def hold_kernels_to_it() -> None:
    """From now on, in this process."""
    compiling.legalise = _checked
