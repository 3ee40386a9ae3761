"""The WebGPU backend's records, one for each adapter. What makes plans and code is imported when it
is first asked for.

Their names: `webgpu` is the best adapter of this machine, `webgpu:1` the next.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from tenfold.backends.backend import Backend, KernelRequest
from tenfold.errors import TenfoldError, Unsupported
from tenfold.locks import once

if TYPE_CHECKING:
    from tenfold.backends.webgpu.array import DeviceArray
    from tenfold.backends.webgpu.code import WebGPUCode
    from tenfold.backends.webgpu.probe import Opened
    from tenfold.backends.webgpu.run.kernels import Kernels
    from tenfold.backends.webgpu.run.program import WebGPUProgram
    from tenfold.backends.webgpu.target import WebGPUTarget
    from tenfold.plan import Plan
    from tenfold.plan.capabilities import Capabilities
    from tenfold.reference import Callbacks

NAME = "webgpu"


def _capabilities(target: WebGPUTarget) -> Capabilities:
    from tenfold.backends.webgpu.capabilities import capabilities

    return capabilities(target)


def _code_for(plan: Plan, target: WebGPUTarget, strict: bool) -> WebGPUCode:
    from tenfold.backends.webgpu.code import code_for

    return code_for(plan, target, strict)


def _code_of(program: WebGPUProgram, whole: bool) -> WebGPUCode:
    from tenfold.backends.webgpu.code import code_of

    return code_of(program)


@once
def _kernels(number: int, strict: bool) -> Kernels:
    from tenfold.backends.webgpu.probe import opened
    from tenfold.backends.webgpu.run.kernels import Kernels

    found = opened(number)
    return Kernels(found.device, found.target, strict)


def _release() -> int:
    """Give back what is kept of devices' memory; there is none where nothing was imported."""
    import sys

    program, device = (
        sys.modules.get(f"tenfold.backends.webgpu.{name}")
        for name in ("run.program", "native.device")
    )
    if program is not None:
        return int(program.release_rooms())
    return 0 if device is None else int(device.release_spare())


class Place:
    """An adapter that programs run on."""

    def __init__(self, number: int = 0) -> None:
        self.number = number
        self.record = self._record()

    def opened(self) -> Opened:
        from tenfold.backends.webgpu.probe import opened

        return opened(self.number)

    def target(self) -> WebGPUTarget:
        return self.opened().target

    def bind(
        self,
        plan: Plan,
        callbacks: Callbacks | None = None,
        *,
        strict: bool = False,
        request: Any = None,
    ) -> WebGPUProgram:
        from tenfold.backends.webgpu.run.program import WebGPUProgram

        kernels = _kernels(self.number, strict)
        return WebGPUProgram(plan, kernels, self.record, callbacks, strict=strict, request=request)

    def request(self, strict: bool) -> KernelRequest:
        from tenfold.backends.webgpu.run.request import Request

        return Request(_kernels(self.number, strict))

    def restored(self, code: WebGPUCode, plan: Plan, callbacks: Callbacks | None) -> WebGPUProgram:
        """A program of code that was kept. Its kernels are its own: what was judged of others says
        nothing about them."""
        from tenfold.backends.webgpu.run.kernels import Kernels
        from tenfold.backends.webgpu.run.program import WebGPUProgram

        kernels = Kernels(self.opened().device, code.target, code.strict)
        code.fill(kernels, plan)
        made = WebGPUProgram(plan, kernels, self.record, callbacks, strict=code.strict)
        made.compiled, made.unjudged = False, True
        return made

    def _read_code(self, raw: bytes | memoryview) -> WebGPUCode:
        from tenfold.backends.webgpu.code import read_code

        return read_code(raw, self)

    def _put(self, given: Any) -> DeviceArray:
        from tenfold.backends.webgpu.array import put

        return put(given, self.opened().device)

    def _check_place(self, given: Any, name: str) -> None:
        from tenfold.backends.webgpu.array import check_place

        check_place(given, self.opened().device, name)

    def _named(self, name: str) -> WebGPUTarget:
        here = self.target()
        if name != here.name:
            raise Unsupported(
                f"shaders are made for the adapter at hand, {here.name!r}, and not for {name!r}",
                fix="leave targets out: on another adapter a plan is made again from its file",
            )
        return here

    def _problem(self) -> TenfoldError | None:
        from tenfold.backends.webgpu.native.adapter import adapter_of

        return _error_of(lambda: adapter_of(self.number))

    def _missing(self) -> str | None:
        """Why the adapter can't be used."""
        found = self._problem()
        return None if found is None else found.message

    def _remedy(self) -> str | None:
        found = self._problem()
        return None if found is None else found.fix

    def _describe(self) -> Mapping[str, str]:
        from tenfold.backends.webgpu.native.adapter import adapters

        target = self.target()
        features = [name for name in ("f64", "i64", "f16", "subgroups") if getattr(target, name)]
        rows = {
            "target": str(target),
            "features": ", ".join(features) or "none",
            "computes": _computes(target),
            "memory": f"{target.buffer_bytes / 2**30:.1f} GiB an array, "
            f"{target.storage_bytes / 2**20:.0f} MiB of it in a kernel",
        }
        others = [f"webgpu:{n} ({one.name})" for n, one in enumerate(adapters())]
        return {**rows, "adapters": ", ".join(others)}

    def _record(self) -> Backend:
        return Backend(
            name=f"{NAME}:{self.number}" if self.number else NAME,
            kind=NAME,
            target=self.target,
            named=self._named,
            capabilities=_capabilities,
            bind=self.bind,
            code_of=_code_of,
            code_for=_code_for,
            read_code=self._read_code,
            describe=self._describe,
            missing=self._missing,
            uninstalled=_uninstalled,
            remedy=self._remedy,
            absent=lambda: {"remedy": self._remedy() or ""},
            variant=_variant,
            put=self._put,
            check_place=self._check_place,
            release=_release,
            request=self.request,
        )


def _computes(target: WebGPUTarget) -> str:
    """How the adapter computes, in words."""
    words = [
        "fma in one rounding" if target.fma else "no fma",
        "subnormals kept" if target.subnormals else "subnormals flushed",
        f"{target.lanes} lanes",
    ]
    if target.loop_limit:
        words.append(f"loops of {target.loop_limit} rounds at most")
    return ", ".join(words)


def _uninstalled() -> str | None:
    """Why no adapter can be, as far as files tell: a library that is loaded outlives no fork."""
    from tenfold.backends.webgpu.native.find import library_path

    found = _error_of(library_path)
    return None if found is None else found.message


def _error_of(ask: Callable[[], object]) -> TenfoldError | None:
    try:
        ask()
    except TenfoldError as error:
        return error
    return None


@once
def _variant(device: str, maths: str) -> Backend:
    """Another adapter by its number."""
    if maths != "exact":
        raise Unsupported(
            f"maths={maths!r}: WebGPU's own functions keep no bound", fix="leave maths out"
        )
    if device and not device.isdecimal():
        raise Unsupported(
            f"there is no adapter {device!r}", fix=f"give its number: '{NAME}:1' is the second"
        )
    number = int(device or 0)
    return Place(number).record if number else BACKEND


BACKEND = Place().record
