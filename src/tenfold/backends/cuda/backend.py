"""The CUDA backend's record. What makes plans and code is imported when it is first asked for."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import TYPE_CHECKING, Any

from tenfold.backends.backend import Backend
from tenfold.backends.cuda.target import CudaTarget, named
from tenfold.errors import TenfoldError, Unsupported

if TYPE_CHECKING:
    from tenfold.backends.cuda.driver.device import Device
    from tenfold.backends.cuda.run.kernels import Kernels
    from tenfold.backends.cuda.run.program import CudaProgram
    from tenfold.plan import Plan
    from tenfold.plan.capabilities import Capabilities
    from tenfold.reference import Callbacks


def _gpu() -> Device:
    from tenfold.backends.cuda.driver.device import gpu

    return gpu()


def _capabilities(target: CudaTarget) -> Capabilities:
    from tenfold.backends.cuda.capabilities import capabilities

    return capabilities(target)


@cache
def _kernels(device: Any, strict: bool) -> Kernels:
    from tenfold.backends.cuda.run.kernels import Kernels

    return Kernels(device, strict)


def bind_on(
    device: Device, backend: Backend, plan: Plan, callbacks: Callbacks | None, strict: bool
) -> CudaProgram:
    """A plan bound to a device."""
    from tenfold.backends.cuda.run.program import CudaProgram

    own: Any = device
    kernels = _kernels(own, strict)
    return CudaProgram(plan, device, kernels, backend, callbacks, strict=strict)


def _bind(
    plan: Plan, callbacks: Callbacks | None = None, *, strict: bool = False, request: Any = None
) -> CudaProgram:
    return bind_on(_gpu(), BACKEND, plan, callbacks, strict)


def _target() -> CudaTarget:
    return _gpu().target


def _missing() -> str | None:
    """Why there is no GPU to be used."""
    from tenfold.backends.cuda.driver.device import gpu_count

    try:
        return None if gpu_count() else "the driver knows no GPU"
    except TenfoldError as error:
        return error.message


def _describe() -> Mapping[str, str]:
    from tenfold.backends.cuda.driver.device import gpu

    one = gpu()
    free, every = one.memory()
    return {
        "target": str(one.target),
        "gpu": f"{one.name}, {one.processors} multiprocessors",
        "memory": f"{free / 2**30:.1f} of {every / 2**30:.1f} GiB free",
        "driver": f"CUDA {one.version // 1000}.{one.version % 1000 // 10}",
        "products": f"cublasLt {one.target.cublas}" if one.target.cublas else "without a library",
    }


def _unkept(*_: Any) -> Any:
    raise Unsupported("programs of the CUDA backend can't be kept yet", fix="compile them anew")


BACKEND = Backend(
    name="cuda",
    target=_target,
    named=lambda name: named(name),
    capabilities=_capabilities,
    bind=_bind,
    code_of=_unkept,
    code_for=_unkept,
    read_code=_unkept,
    describe=_describe,
    missing=_missing,
    unkept=lambda: "programs of the CUDA backend are not kept yet",
)
