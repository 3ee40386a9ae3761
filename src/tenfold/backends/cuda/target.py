"""What CUDA code is made for: a chip's compute capability, a version of PTX, and how functions are
computed."""

from __future__ import annotations

import re
from collections.abc import Mapping

from tenfold.backends.llvm.nvptx import TRIPLE
from tenfold.backends.llvm.target import LLVMTarget
from tenfold.digest import sha256
from tenfold.errors import ValueProblem
from tenfold.frozen import frozen

EXACT, FAST = "exact", "fast"  # maths: the CPU's bits, or the chip's own instructions
WARP = 32
_LEAST = 80  # the first chip with NaN-keeping maxima and asynchronous barriers
_NAME = re.compile(r"sm_(\d+)a?(\+fast)?")


@frozen
class CudaTarget:
    """A chip and how code is made for it.

    >>> target = named("sm_90")
    >>> target.name, target.clusters, target.llvm.features
    ('sm_90', True, '+ptx80')
    """

    capability: int  # 90 for sm_90
    ptx: int  # the version of PTX, 80 for 8.0
    maths: str = EXACT
    llvmlite: str = ""
    cublas: str = ""  # the version of cublasLt that multiplies, "" where there is none

    @property
    def name(self) -> str:
        """What users call it."""
        return f"sm_{self.capability}" + ("" if self.maths == EXACT else f"+{self.maths}")

    @property
    def clusters(self) -> bool:
        """Whether blocks can share their memory in clusters, and kernels begin before the one
        before them has ended."""
        return self.capability >= 90

    @property
    def llvm(self) -> LLVMTarget:
        """The same as LLVM takes it; a thread has no vectors."""
        return LLVMTarget(
            TRIPLE,
            f"sm_{self.capability}",
            f"+ptx{self.ptx}",
            vector_bytes=16,
            masked=False,
            fma=True,
            half=True,
            llvmlite=self.llvmlite,
            fast=self.maths == FAST,
        )

    @property
    def digest(self) -> str:
        """The part of a cache key that stands for the target and its compiler."""
        return sha256(f"{self.llvm.digest} {self.maths} {self.cublas}".encode()).hexdigest()[:32]

    @property
    def versions(self) -> Mapping[str, str]:
        return {"llvmlite": self.llvmlite, "cublasLt": self.cublas or "none"}

    @property
    def rank(self) -> int:
        return self.capability

    def __str__(self) -> str:
        return f"{TRIPLE} {self.name} PTX {self.ptx // 10}.{self.ptx % 10}"


def named(
    name: str, llvmlite: str = "", ptx: int = 80, maths: str = EXACT, cublas: str = ""
) -> CudaTarget:
    """The target of a chip by its name, with '+fast' behind it where its own exp and tanh are
    meant.

    >>> named("sm_90", maths="fast") == named("sm_90+fast")
    True
    """
    if maths not in (EXACT, FAST):
        raise ValueProblem(
            f"maths is {maths!r}", fix="give 'exact', which has the CPU's bits, or 'fast'"
        )
    found = _NAME.fullmatch(name)
    if found is None or int(found[1]) < _LEAST:
        raise ValueProblem(
            f"{name!r} is no chip that CUDA code is made for",
            fix=f"give 'sm_{_LEAST}', 'sm_90', 'sm_100' or another from sm_{_LEAST} on",
        )
    capability = int(found[1])
    maths = FAST if found[2] else maths
    return CudaTarget(
        capability, max(ptx, 86 if capability >= 100 else 80), maths, llvmlite, cublas
    )
