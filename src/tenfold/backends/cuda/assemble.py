"""Modules on their way to a device: LLVM IR, PTX, machine code.

NVIDIA's assembler makes machine code of PTX where it is found, each module in a process of its own;
else the driver's does, when it loads the PTX. Both give the same bits: PTX says how each operation
is rounded.
"""

from __future__ import annotations

import os
import re
import subprocess
import tempfile
from collections.abc import Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import cache, lru_cache

from tenfold.backends.cuda import compile as compiling
from tenfold.backends.cuda.emit.function import KernelText
from tenfold.backends.cuda.find import find_ptxas
from tenfold.backends.cuda.target import CudaTarget
from tenfold.backends.llvm.assemble import processors
from tenfold.errors import DeviceProblem
from tenfold.frozen import frozen
from tenfold.locks import Lock

_VERSION = re.compile(r"V(\d+\.\d+)\.\d+")
_TOO_OLD = re.compile(r"is not defined for option 'gpu-name'|Unsupported \.version")


@frozen
class Assembler:
    """A program that makes machine code of PTX."""

    path: str
    version: str  # of CUDA: '13.0'

    def __call__(self, ptx: str, chip: str) -> bytes | None:
        """The machine code for a chip; None where it is older than the chip, or than the PTX."""
        with tempfile.TemporaryDirectory(prefix="tenfold-") as folder:
            made = os.path.join(folder, "module.cubin")
            command = [self.path, f"-arch={chip}", "-o", made, "-"]
            ended = subprocess.run(command, input=ptx.encode(), capture_output=True)
            if ended.returncode == 0:
                with open(made, "rb") as file:
                    return file.read()
        said = ended.stderr.decode(errors="replace").strip()
        if _TOO_OLD.search(said):
            return None
        raise DeviceProblem(
            f"ptxas {self.version} does not take a kernel: {said[:400]}",
            fix="this is a fault of Tenfold's: report the program; backend='cpu' runs it meanwhile",
        )


@cache
def assembler() -> Assembler | None:
    """NVIDIA's assembler, if it is found and runs."""
    path = find_ptxas()
    if path is None:
        return None
    try:
        said = subprocess.run([path, "--version"], capture_output=True, text=True).stdout
    except OSError:
        return None
    found = _VERSION.search(said)
    return Assembler(path, found[1]) if found else None


@frozen
class Cubin:
    """Machine code for a chip, by some version of the assembler."""

    chip: str  # 'sm_90'
    version: str
    data: bytes

    def runs_on(self, capability: int, driver: int) -> bool:
        """Whether a chip runs it, under a driver for some version of CUDA."""
        made = int(self.chip.removeprefix("sm_"))
        same = made // 10 == capability // 10 and made <= capability
        return same and int(self.version.partition(".")[0]) <= driver // 1000


class ModuleCode:
    """The functions of a module. What is not there of it is made when it is asked for."""

    def __init__(
        self,
        target: CudaTarget,
        text: str = "",
        ptx: str = "",
        cubins: Sequence[Cubin] = (),
        kernels: Iterable[str] = (),
    ) -> None:
        self.target, self.kernels = target, frozenset(kernels)
        self.text = text  # LLVM IR; '' where the module was read from a file
        self._ptx, self.cubins = ptx, list(cubins)
        self._lock = Lock()

    @property
    def ptx(self) -> str:
        with self._lock:
            if not self._ptx:
                self._ptx = compiling.to_ptx(self.text, self.target)
            return self._ptx

    def assemble(self) -> None:
        """Have machine code beside the PTX, if there is an assembler that can make it."""
        found, chip = assembler(), f"sm_{self.target.capability}"
        if found is None or any((c.chip, c.version) == (chip, found.version) for c in self.cubins):
            return
        data = found(self.ptx, chip)
        if data is not None:
            self.cubins.append(Cubin(chip, found.version, data))

    def image(self, capability: int, driver: int) -> bytes:
        """What a GPU under a driver is given: machine code for it, or else the PTX."""
        fitting = [one for one in self.cubins if one.runs_on(capability, driver)]
        return fitting[0].data if fitting else self.ptx.encode()


def assemble(codes: Sequence[ModuleCode]) -> None:
    """Have the machine code of some modules made, or their PTX, several at a time."""
    if len(codes) < 2:
        for code in codes:
            _assemble(code)
        return
    with ThreadPoolExecutor(processors(), "tenfold-ptxas") as pool:
        list(pool.map(_assemble, codes))


def _assemble(code: ModuleCode) -> None:
    if code.ptx:
        code.assemble()


@lru_cache(maxsize=256)
def shared_module(text: str, target: CudaTarget) -> ModuleCode:
    """The module of a text that many programs have, such as a routine's: it is assembled once."""
    return ModuleCode(target, text)


def modules(texts: Sequence[KernelText], target: CudaTarget) -> list[ModuleCode]:
    """Kernels in modules: as many as can be assembled at once, of about the same length. The driver
    takes one at a time, and then one is best."""
    count = min(len(texts), processors() if assembler() is not None else 1)
    parts: list[list[KernelText]] = [[] for _ in range(count)]
    sizes = [0] * count
    for text in sorted(texts, key=lambda one: -one.size):
        least = sizes.index(min(sizes))
        parts[least].append(text)
        sizes[least] += text.size
    return [
        ModuleCode(target, compiling.module_text(part, target), kernels=[one.name for one in part])
        for part in parts
    ]
