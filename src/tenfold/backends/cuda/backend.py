"""The CUDA backend's records: one for each GPU, and one for each chip that need not be here. What
makes plans and code is imported when it is first asked for.

Their names: `cuda` is the first GPU, `cuda:1` the next, `cuda:sm_90` a chip wherever it is; with
`+fast` behind it functions are computed by the chip's own instructions.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import cache
from typing import TYPE_CHECKING, Any

from tenfold.backends.backend import Backend
from tenfold.backends.cuda.target import CHIPS, EXACT, FAST, CudaTarget, named, version_text
from tenfold.backends.llvm.target import llvmlite_version
from tenfold.errors import TenfoldError, Unsupported, ValueProblem

if TYPE_CHECKING:
    from tenfold.backends.cuda.array import DeviceArray
    from tenfold.backends.cuda.code import CudaCode
    from tenfold.backends.cuda.driver.device import Device
    from tenfold.backends.cuda.offline import OfflineProgram
    from tenfold.backends.cuda.run.kernels import Kernels
    from tenfold.backends.cuda.run.program import CudaProgram
    from tenfold.plan import Plan
    from tenfold.plan.capabilities import Capabilities
    from tenfold.reference import Callbacks

NAME = "cuda"


def _capabilities(target: CudaTarget) -> Capabilities:
    from tenfold.backends.cuda.capabilities import capabilities

    return capabilities(target)


def _code_for(plan: Plan, target: CudaTarget, strict: bool) -> CudaCode:
    from tenfold.backends.cuda.code import code_for

    return code_for(plan, target, strict)


def _compiler_missing() -> str | None:
    return None if llvmlite_version() else "there is no compiler here (llvmlite)"


@cache
def _kernels(device: Any, strict: bool, target: CudaTarget) -> Kernels:
    from tenfold.backends.cuda.run.kernels import Kernels

    return Kernels(device, strict, target)


def _release() -> int:
    """Give back what programs keep of devices' memory; none has any where none was imported."""
    import sys

    found = sys.modules.get("tenfold.backends.cuda.run.program")
    return 0 if found is None else found.release_rooms()


class Place:
    """A GPU that programs run on, and how functions are computed there."""

    def __init__(self, number: int = 0, maths: str = EXACT) -> None:
        self.number, self.maths = number, maths
        self.record = self._record()

    def device(self) -> Device:
        from tenfold.backends.cuda.driver.device import gpu

        return gpu(self.number)

    def target(self) -> CudaTarget:
        return replace(self.device().target, maths=self.maths)

    def runs(self) -> tuple[int, int]:
        """The capability of the GPU, and the version of CUDA that its driver is for."""
        from tenfold.backends.cuda.driver.device import gpu

        found = gpu(self.number)
        return found.capability, found.version

    def bind(
        self,
        plan: Plan,
        callbacks: Callbacks | None = None,
        *,
        strict: bool = False,
        request: Any = None,
    ) -> CudaProgram:
        from tenfold.backends.cuda.run.program import CudaProgram

        device: Any = self.device()
        kernels = _kernels(device, strict, self.target())
        return CudaProgram(plan, device, kernels, self.record, callbacks, strict=strict)

    def restored(self, code: CudaCode, plan: Plan, callbacks: Callbacks | None) -> CudaProgram:
        """A program of code that was kept. Its kernels are its own: what was judged of others says
        nothing about them."""
        from tenfold.backends.cuda.run.kernels import Kernels
        from tenfold.backends.cuda.run.program import CudaProgram

        device, strict = self.device(), code.strict
        kernels = Kernels(device, strict, code.target)
        own: Any = device
        kernels.results = _kernels(own, strict, code.target).results  # memory is for all
        code.fill(kernels, plan)
        made = CudaProgram(plan, device, kernels, self.record, callbacks, strict=strict)
        made.compiled, made.unjudged = False, True
        return made

    def _code_of(self, program: CudaProgram, whole: bool) -> CudaCode:
        from tenfold.backends.cuda.code import code_of

        return code_of(program)

    def _read_code(self, raw: bytes | memoryview) -> CudaCode:
        from tenfold.backends.cuda.code import read_code

        return read_code(raw, self)

    def _put(self, given: Any) -> DeviceArray:
        from tenfold.backends.cuda.array import put

        return put(given, self.device())

    def _check_place(self, given: Any, name: str) -> None:
        from tenfold.backends.cuda.array import check_place

        check_place(given, self.device(), name)

    def _missing(self) -> str | None:
        """Why the GPU can't be used."""
        found = self._problem()
        return None if found is None else found.message

    def _uninstalled(self) -> str | None:
        """The same, as far as the driver tells that is not begun: a fork may follow."""
        from tenfold.backends.cuda.driver.library import opened

        found = _error_of(opened)
        return None if found is None else found.message

    def _problem(self) -> TenfoldError | None:
        return _error_of(self.device)

    def _remedy(self) -> str | None:
        found = self._problem()
        if found is None or found.fix is None:
            return None
        return f"{found.fix}; plans for a GPU elsewhere can be made here: target='sm_90'"

    def _describe(self) -> Mapping[str, str]:
        from tenfold.backends.cuda.driver.device import gpu
        from tenfold.backends.cuda.entry.code import unsupported

        one, why = gpu(self.number), unsupported()
        free, every = one.memory()
        return {
            "target": str(self.target()),
            "gpu": f"{one.name}, {one.processors} multiprocessors",
            "memory": f"{free / 2**30:.1f} of {every / 2**30:.1f} GiB free",
            "driver": f"CUDA {version_text(one.version)}",
            "entry": "native" if why is None else f"Python's, because {why}",
            **_found(one.version // 1000),
        }

    def _absent(self) -> Mapping[str, str]:
        return {"remedy": self._remedy() or "", "targets": _chips(), **_found()}

    def _record(self) -> Backend:
        fast = "" if self.maths == EXACT else f"+{self.maths}"
        return Backend(
            name=(f"{NAME}:{self.number}" if self.number else NAME) + fast,
            kind=NAME + fast,
            target=self.target,
            named=lambda name: named(name, llvmlite_version(), self.maths),
            capabilities=_capabilities,
            bind=self.bind,
            code_of=self._code_of,
            code_for=_code_for,
            read_code=self._read_code,
            describe=self._describe,
            missing=self._missing,
            uninstalled=self._uninstalled,
            remedy=self._remedy,
            absent=self._absent,
            compiler_missing=_compiler_missing,
            variant=_variant,
            maths=(EXACT, FAST),
            put=self._put,
            release=_release,
            check_place=self._check_place,
        )


def _error_of(ask: Callable[[], object]) -> TenfoldError | None:
    try:
        ask()
    except TenfoldError as error:
        return error
    return None


def _found(newest: int | None = None) -> dict[str, str]:
    """What lies here beside the driver, which is for this major version of CUDA."""
    from tenfold.backends.cuda.assemble import assembler
    from tenfold.backends.cuda.find import LIBRARIES, NEWEST, Shared, find_library, version_of

    ptxas = assembler()

    def said(library: Shared) -> str:
        try:
            path = find_library(library, newest or NEWEST)
        except ValueProblem as error:
            return error.message
        if path is None:
            return f"not found, or {library.variable} is off (pip install {library.wheel})"
        return ", ".join(filter(None, (version_of(path), path)))

    own = "the driver's own; ptxas, which is faster, was not found (pip install nvidia-cuda-nvcc)"
    return {
        "compiler": f"llvmlite {llvmlite_version() or 'not installed'}",
        "assembler": own if ptxas is None else f"ptxas {ptxas.version}, {ptxas.path}",
    } | {one.title: said(one) for one in LIBRARIES}


def _chips() -> str:
    return ", ".join(f"sm_{chip}" for chip in CHIPS)


def _offline(target: CudaTarget) -> Backend:
    """The record of a chip that need not be here."""

    def bind(
        plan: Plan, callbacks: Callbacks | None = None, *, strict: bool = False, request: Any = None
    ) -> OfflineProgram:
        from tenfold.backends.cuda.offline import OfflineProgram

        return OfflineProgram(plan, target, made, callbacks, strict=strict)

    def code_of(program: OfflineProgram, whole: bool) -> CudaCode:
        return _code_for(program.plan, target, program.strict)

    fast = "" if target.maths == EXACT else f"+{target.maths}"
    made = replace(
        Place(0, target.maths).record,
        name=f"{NAME}:{target.name}",
        kind=NAME + fast,
        target=lambda: target,
        bind=bind,
        code_of=code_of,
        describe=lambda: {
            "target": str(target),
            "gpu": "none needed: plans to be saved",
            **_found(),
        },
        put=None,
        check_place=lambda given, name: None,
        missing=_compiler_missing,
        uninstalled=None,
        remedy=lambda: "install llvmlite",
        unkept=lambda: "a plan for a GPU elsewhere is kept where it is saved",
    )
    return made


@cache
def _variant(device: str, maths: str) -> Backend:
    """Another GPU by its number, or a chip by its name, and how functions are computed."""
    if maths not in (EXACT, FAST):
        raise Unsupported(f"maths={maths!r} is no way to compute", fix="give 'exact' or 'fast'")
    if device.startswith("sm_"):
        return _offline(named(device, llvmlite_version(), maths))
    if device and not device.isdecimal():
        raise Unsupported(
            f"there is no GPU {device!r}",
            fix=f"give its number ('{NAME}:1'), or a chip ('{NAME}:sm_90') for plans to be saved",
        )
    number = int(device or 0)
    return BACKEND if (number, maths) == (0, EXACT) else Place(number, maths).record


BACKEND = Place().record
