"""What CUDA code is made for: a chip's compute capability, a version of PTX, and how functions are
computed."""

from __future__ import annotations

import re
from collections.abc import Mapping

from tenfold.backends.llvm.nvptx import TRIPLE
from tenfold.backends.llvm.target import LLVMTarget
from tenfold.digest import sha256
from tenfold.errors import DeviceProblem, ValueProblem
from tenfold.frozen import frozen

EXACT, FAST = "exact", "fast"  # maths: the CPU's bits, or the chip's own instructions
WARP = 32
# The chips that LLVM knows, from the first with maxima that keep NaN on, and the least version of
# PTX for each: LLVM ends the process where it is given a lesser one.
CHIPS = {
    80: 80, 86: 80, 87: 80, 89: 80, 90: 80,
    100: 86, 101: 86, 103: 88, 110: 90, 120: 87, 121: 88,
}  # fmt: skip
# The version of PTX that drivers from some version of CUDA on take.
_TAKEN = {
    12000: 80, 12010: 81, 12020: 82, 12030: 83, 12040: 84, 12050: 85, 12070: 86, 12080: 87,
    12090: 88, 13000: 90,
}  # fmt: skip
LEAST_DRIVER = min(_TAKEN)
_NAME = re.compile(r"sm_(\d+)(\+\w+)?")


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
    # The versions of libraries, "" where there is none: what multiplies, transforms, and factors.
    cublas: str = ""
    cufft: str = ""
    cusolver: str = ""

    @property
    def name(self) -> str:
        """What users call it."""
        return f"sm_{self.capability}" + ("" if self.maths == EXACT else f"+{self.maths}")

    @property
    def clusters(self) -> bool:
        """Whether blocks can share their memory in clusters."""
        return self.capability >= 90

    @property
    def overlap(self) -> bool:
        """Whether kernels may begin before those before them have ended (`emit/overlap`)."""
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
        libraries = " ".join(self.libraries.values())
        return sha256(f"{self.llvm.digest} {self.maths} {libraries}".encode()).hexdigest()[:32]

    @property
    def libraries(self) -> Mapping[str, str]:
        """The versions of libraries that results may have the bits of."""
        return {"cublasLt": self.cublas, "cuFFT": self.cufft, "cuSOLVER": self.cusolver}

    @property
    def versions(self) -> Mapping[str, str]:
        return {"llvmlite": self.llvmlite} | {
            name: version or "none" for name, version in self.libraries.items()
        }

    @property
    def rank(self) -> int:
        return self.capability

    def __str__(self) -> str:
        return f"{TRIPLE} {self.name} PTX {self.ptx // 10}.{self.ptx % 10}"


def named(name: str, llvmlite: str = "", maths: str = EXACT, **libraries: str) -> CudaTarget:
    """The target of a chip by its name. The version of PTX hangs on the chip alone, so that a plan
    made elsewhere has the code that would be made here. `libraries` are versions, as targets have
    them.

    >>> named("sm_100+fast").maths
    'fast'
    """
    found = _NAME.fullmatch(name)
    chip = int(found[1]) if found else 0
    way = found[2][1:] if found and found[2] else maths
    if way not in (EXACT, FAST):
        raise ValueProblem(
            f"maths is {way!r}", fix=f"give {EXACT!r}, which has the CPU's bits, or {FAST!r}"
        )
    if chip not in CHIPS:
        raise ValueProblem(
            f"{name!r} is no chip that CUDA code is made for",
            fix=f"give one of {', '.join(f'sm_{known}' for known in CHIPS)}",
        )
    return CudaTarget(chip, CHIPS[chip], way, llvmlite, **libraries)


def takes(driver: int) -> int:
    """The newest version of PTX that a driver for this version of CUDA takes; 0 where it is too
    old.

    >>> takes(12080), takes(11080)
    (87, 0)
    """
    return max((ptx for since, ptx in _TAKEN.items() if since <= driver), default=0)


def target_on(capability: int, driver: int, llvmlite: str = "", **libraries: str) -> CudaTarget:
    """The target of a GPU: its chip, or the newest before it that LLVM and the driver know, whose
    PTX it runs, too.

    >>> target_on(90, 13000).name, target_on(130, 13000).name, target_on(121, 12080).name
    ('sm_90', 'sm_121', 'sm_120')
    """
    if driver < LEAST_DRIVER:
        raise DeviceProblem(
            f"NVIDIA's driver is for CUDA {version_text(driver)}, which is too old",
            fix=f"install a driver for CUDA {version_text(LEAST_DRIVER)} or later, "
            "or give backend='cpu'",
        )
    fitting = [c for c, ptx in CHIPS.items() if c <= capability and ptx <= takes(driver)]
    if not fitting:
        raise DeviceProblem(
            f"the GPU is an sm_{capability}, and code is made from sm_{min(CHIPS)} on",
            fix="use a later GPU, or give backend='cpu'",
        )
    return named(f"sm_{max(fitting)}", llvmlite, **libraries)


def target_remark(target: CudaTarget) -> str:
    """What an explanation says of a target."""
    if target.maths == EXACT:
        return f"for {target.name}: the CPU's bits, but for those of NaN"
    return f"for {target.name}: functions by the chip's own instructions, within the ops' bounds"


def version_text(version: int) -> str:
    """A version of CUDA as people write it.

    >>> version_text(12080)
    '12.8'
    """
    return f"{version // 1000}.{version % 1000 // 10}"
