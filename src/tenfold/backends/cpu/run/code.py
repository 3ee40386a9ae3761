"""The native form of a plan: object code, and its bytecode with every address left open.

It is what a plan file and a cache entry hold for a target. Bringing it into a process takes
linking the objects and filling in addresses; no compiler, and no look at the plan itself.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import astuple, fields
from typing import TYPE_CHECKING, Any

import msgpack
import numpy as np

from tenfold.backends.cpu.library.routine import routine_imports
from tenfold.backends.cpu.link.loader import route
from tenfold.backends.cpu.run.fixed import interface
from tenfold.backends.cpu.run.order import StepOrder
from tenfold.backends.cpu.target import host_target
from tenfold.backends.llvm.target import LLVMTarget
from tenfold.errors import PlanError
from tenfold.frozen import frozen
from tenfold.plan.file.sections import bad, unpack
from tenfold.types import TensorType, parse_type

if TYPE_CHECKING:
    from tenfold.backends.cpu.run.restored import RestoredProgram
    from tenfold.plan import Plan
    from tenfold.reference import Callbacks

Array = np.ndarray[Any, Any]
NO_LOADER = "this system has no loader for code in files"


@frozen
class NativeCode:
    """One target's code for a plan. Plain data; see `restored` for what is done with it.

    `memory` holds constants, parameters and bytecode. The words at `own` are offsets into it; those
    at `calls` become addresses of kernels, those at `asks` of callables for a plan's step.
    """

    target: LLVMTarget
    interface: str
    strict: bool
    modules: tuple[bytes, ...]  # linked images, or object code
    # module, name, outer axis or -1, its grain, whether it polls: of the plan, then routines
    kernels: tuple[tuple[int, str, int, int, bool], ...]
    codes: tuple[int, ...]  # the kernel of each of the plan's calls
    memory: bytes
    start: int  # where in it the bytecode of the plan itself begins
    own: bytes  # numbers of words, int32
    calls: bytes  # pairs: word, kernel
    asks: bytes  # triples: word, plan, step
    parameters: tuple[TensorType, ...]
    outputs: tuple[TensorType, ...]
    donated: tuple[int, ...]
    order: StepOrder
    arena_bytes: int
    weight: int
    fixed: tuple[tuple[str, bytes], ...] = ()  # object code that is the same for every plan
    loops: tuple[tuple[int, int, int], ...] = ()  # plan, step and the kernel that is its function

    def places(self) -> tuple[Array, Array, Array]:
        """The rows of `own`, `calls` and `asks`."""
        rows = ((self.own, 1), (self.calls, 2), (self.asks, 3))
        own, calls, asks = (np.frombuffer(raw, "<i4").reshape(-1, width) for raw, width in rows)
        return own, calls, asks

    def unusable(self) -> str | None:
        """Why this code can't run here, or None."""
        if self.interface != interface(self.target):
            return "it was made by a Tenfold whose code is called in another way"
        if route() != "elf":
            return NO_LOADER
        if any(routine_imports(name) is None for _, name, *_ in self.kernels):
            return "it calls a library that is not here"
        return self.target.missing_on(host_target())

    def restore(
        self, read: Callable[[], Plan], callbacks: Callbacks | None = None
    ) -> RestoredProgram:
        """The program of this code."""
        from tenfold.backends.cpu.run.restored import RestoredProgram

        return RestoredProgram(self, read, callbacks)

    def pack(self) -> bytes:
        data = {f.name: getattr(self, f.name) for f in fields(self)}
        data["target"] = astuple(self.target)
        data["order"] = astuple(self.order)
        for name in ("parameters", "outputs"):
            data[name] = [repr(t) for t in data[name]]
        packed: bytes = msgpack.packb(data)
        return packed


def read_code(raw: bytes | memoryview) -> NativeCode:
    """The native form in these bytes. The code in it is taken on trust; the rest is checked."""
    data = unpack(raw)
    try:
        data["target"] = LLVMTarget(*data["target"])
        data["order"] = StepOrder(*data["order"])
        for name in ("parameters", "outputs"):
            data[name] = tuple(parse_type(t) for t in data[name])
        return NativeCode(**data)
    except PlanError:
        raise
    except Exception as error:  # whatever malformed data makes of reading it
        bad(f"malformed code: {error!r}")
