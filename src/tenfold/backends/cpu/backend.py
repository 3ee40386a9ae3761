"""The CPU backend's record. What makes plans and code is imported when it is first asked for: a
plan from the disk runs without."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from functools import cache
from typing import TYPE_CHECKING, Any

from tenfold.backends.backend import Backend
from tenfold.backends.cpu.entry.bind import gate
from tenfold.backends.cpu.entry.kept_memory import describe_memory, release_memory
from tenfold.backends.cpu.entry.ndarray import supported
from tenfold.backends.cpu.link.loader import route
from tenfold.backends.cpu.run.code import NO_LOADER, read_code
from tenfold.backends.cpu.run.fixed import GATE, compile_ahead, fixed
from tenfold.backends.cpu.run.kernels import Request, steps_image
from tenfold.backends.cpu.target import VARIABLE, host_target, machine
from tenfold.backends.cpu.threads.limits import thread_limit
from tenfold.backends.llvm.target import LLVMTarget, llvmlite_version, named
from tenfold.config import config
from tenfold.errors import TenfoldError
from tenfold.version import versions

if TYPE_CHECKING:
    from tenfold.backends.cpu.run.code import NativeCode
    from tenfold.backends.cpu.run.compiled import CompiledProgram
    from tenfold.backends.cpu.run.restored import RestoredProgram
    from tenfold.plan import Plan
    from tenfold.plan.capabilities import Capabilities
    from tenfold.reference import Callbacks


def _capabilities(target: LLVMTarget) -> Capabilities:
    from tenfold.backends.cpu.capabilities import capabilities

    return capabilities(target)


def _bind(plan: Plan, callbacks: Callbacks | None = None, **options: Any) -> CompiledProgram:
    from tenfold.backends.cpu.run.compiled import CompiledProgram

    return CompiledProgram(plan, callbacks, **options)


def _code_of(program: CompiledProgram | RestoredProgram, whole: bool) -> NativeCode:
    from tenfold.backends.cpu.run.freeze import code_of

    return code_of(program, whole)


def _code_for(plan: Plan, target: LLVMTarget, strict: bool) -> NativeCode:
    from tenfold.backends.cpu.run.freeze import code_for

    return code_for(plan, target, strict)


def _compiler_missing() -> str | None:
    return None if llvmlite_version() else "there is no compiler here (llvmlite)"


def _unkept() -> str | None:
    return None if route() == "elf" else NO_LOADER


@cache
def _prepare() -> None:
    """Find the target, have the gate and the steps made, or begin it. What fails here fails again,
    and is reported, where it is needed."""
    target = host_target()
    with suppress(TenfoldError, ImportError, OSError):
        ready = compile_ahead(target)
        versions()
        supported()
        if ready:
            gate(lambda: fixed(GATE, target))
            steps_image(target)


def _describe() -> Mapping[str, str]:
    missing = supported()
    target, best = host_target(), machine()
    why = "the best of this machine"
    if target != best:
        why = f"as {VARIABLE} asks; the best of this machine is {best.name}"
    return {
        "target": f"{target.name} ({target.triple}), {why}",
        "compiler": f"llvmlite {llvmlite_version() or 'not installed'}",
        "loader": route(),
        "entry": "native" if missing is None else f"ctypes, because {missing}",
        "threads": _threads(),
        "memory": describe_memory(),
        "products": _products(),
    }


def _products() -> str:
    from tenfold.backends.cpu.library.blas import blas, why_not

    if blas() is None:
        return f"on the host, because {why_not()}"
    return "code of our own, or OpenBLAS with one thread"


def _threads() -> str:
    if config.threads is not None:
        return f"{thread_limit()}, as `tn.config.threads` says"
    return f"{thread_limit()}, as many processors as this process may use"


BACKEND = Backend(
    name="cpu",
    target=host_target,
    named=lambda name: named(name, host_target()),
    capabilities=_capabilities,
    bind=_bind,
    code_of=_code_of,
    code_for=_code_for,
    read_code=read_code,
    describe=_describe,
    compiler_missing=_compiler_missing,
    unkept=_unkept,
    prepare=_prepare,
    release=release_memory,
    request=lambda strict: Request(host_target(), strict),
)
