"""A program brought back from its native form: nothing is compiled, and the plan is not read
until someone looks at it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from tenfold.backends.cpu.library.routine import routine_imports
from tenfold.backends.cpu.link import prelink  # noqa: F401  what `load` will want
from tenfold.backends.cpu.link.loader import load
from tenfold.backends.cpu.run.fixed import bring
from tenfold.backends.cpu.run.kernels import judged_kernels, steps_image
from tenfold.backends.cpu.run.native import NativeProgram
from tenfold.backends.cpu.threads.pool import thread_pool
from tenfold.backends.program import Array
from tenfold.errors import PlanError
from tenfold.locks import cached_property

if TYPE_CHECKING:
    from tenfold.backends.cpu.run.callables import HostFunction
    from tenfold.backends.cpu.run.code import NativeCode
    from tenfold.backends.cpu.threads.cut import KernelPlace
    from tenfold.kernel.ir.sized import SizedKernel
    from tenfold.plan import Plan
    from tenfold.reference import Callbacks


class RestoredProgram(NativeProgram):
    """A program of native code. `read` gives its plan when that is asked for."""

    def __init__(
        self, native: NativeCode, read: Callable[[], Plan], callbacks: Callbacks | None = None
    ) -> None:
        super().__init__(callbacks)
        self.native = native
        self.target = native.target
        self.strict = native.strict
        self.parameters = native.parameters
        self.outputs = native.outputs
        self.donated = native.donated
        self.order = native.order
        self.arena_bytes = native.arena_bytes
        self.weight = native.weight
        self.judged = judged_kernels(native.target, native.strict)
        named = [name for _, name, *_ in native.kernels]
        self.loops = {(plan, step): named[kernel] for plan, step, kernel in native.loops}
        self._read = _once(read)
        for part, data in native.fixed:
            bring(part, native.target, bytes(data))
        try:
            self._memory, self.given = self._fill()
            self.image = steps_image(native.target)
            self.kept = (self._memory, self._images, self._asked)
        except (IndexError, ValueError) as error:
            raise PlanError(f"plan file: malformed code: {error}") from error

    def __getattr__(self, name: str) -> Any:
        if name != "plan":
            raise AttributeError(f"{type(self).__name__} has no {name!r}")
        self.plan: Plan = self._read()
        return self.plan

    def places(self) -> Mapping[SizedKernel, KernelPlace]:
        from tenfold.backends.cpu.threads.cut import KernelPlace

        found = {}
        for call, number in zip(self.plan.calls, self.native.codes, strict=True):
            module, name, outer, grain, polls = self.native.kernels[number]
            address = self._images[module].address(name)
            found[call] = KernelPlace(address, outer if outer >= 0 else None, grain, polls)
        return found

    def code_name(self, call: SizedKernel) -> str:
        return self._names[call]

    @cached_property
    def _names(self) -> Mapping[SizedKernel, str]:
        pairs = zip(self.plan.calls, self.native.codes, strict=True)
        return {call: self.native.kernels[number][1] for call, number in pairs}

    def routines(self) -> Mapping[str, int]:
        """Where the routines of the native form lie in memory."""
        found = self.native.kernels[len(set(self.native.codes)) :]
        return {name: self._images[module].address(name) for module, name, *_ in found}

    def _fill(self) -> tuple[Array, int]:
        """The memory of the plan with every address filled in, and where its bytecode begins."""
        native = self.native
        names: list[list[str]] = [[] for _ in native.modules]
        for module, name, *_ in native.kernels:
            names[module].append(name)
        pool = thread_pool(self.target).image
        self._images = [
            load([data], exports, _imports(exports), [pool])
            for data, exports in zip(native.modules, names, strict=True)
        ]
        addresses = np.array(
            [self._images[module].address(name) for module, name, *_ in native.kernels], np.int64
        )
        room = np.empty(len(native.memory) // 8 + 8, np.int64)
        first = -(room.__array_interface__["data"][0] // 8) % 8
        words = room[first : first + len(native.memory) // 8]
        words[...] = np.frombuffer(native.memory, np.int64)
        base: int = words.__array_interface__["data"][0]
        own, calls, asks = native.places()
        words[own[:, 0]] += base
        words[calls[:, 0]] = addresses[calls[:, 1]]
        self._asked = [self._later(int(which), int(step)) for _, which, step in asks]
        for at, made in zip(asks[:, 0], self._asked, strict=True):
            words[at] = id(made)
        return words, base + native.start

    def _later(self, which: int, step: int) -> HostFunction:
        """The callable of a host step, or of a kernel whose check fails; made when called."""
        made: list[HostFunction] = []
        read, running, callbacks = self._read, self.running, self.callbacks

        def call(table: int, arena: int) -> None:
            if not made:
                from tenfold.backends.cpu.run.callables import make_callable

                made.append(make_callable(read().every[which], step, running, callbacks))
            made[0](table, arena)

        return call


def _imports(exports: Sequence[str]) -> Mapping[str, int]:
    """The addresses that a module with these names calls."""
    return {k: v for name in exports for k, v in (routine_imports(name) or {}).items()}


def _once(read: Callable[[], Plan]) -> Callable[[], Plan]:
    """The same plan each time: threads may read it at once, then the first one that is there
    counts. Its parts are told apart by their ids."""
    made: dict[str, Plan] = {}

    def once() -> Plan:
        return made["plan"] if made else made.setdefault("plan", read())

    return once
