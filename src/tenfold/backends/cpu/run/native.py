"""Programs of native code: called through the gate, carried out by `tn_steps`."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import TYPE_CHECKING, Any
from weakref import ref

import numpy as np

from tenfold.backends.cpu.entry.abi import Argument, CallSpec
from tenfold.backends.cpu.entry.bind import BoundPlan, NativeBinding, gate, make_entry
from tenfold.backends.cpu.entry.table import make_dispatch
from tenfold.backends.cpu.link.loader import Image
from tenfold.backends.cpu.run.fixed import GATE, fixed
from tenfold.backends.guard import Guard, kind_of
from tenfold.backends.llvm.target import LLVMTarget
from tenfold.backends.program import OUTPUTS, Array, CurrentCallbacks, Dispatch, Program
from tenfold.errors import TypeMismatch
from tenfold.seam import passed
from tenfold.types import DTYPES, SHORT, TensorType

if TYPE_CHECKING:
    from tenfold.backends.backend import Backend
    from tenfold.backends.cpu.run.bytecode import Bytecode
    from tenfold.backends.cpu.run.callables import HostFunction
    from tenfold.backends.cpu.run.order import StepOrder
    from tenfold.backends.cpu.run.stepper import NativeStepper
    from tenfold.backends.cpu.threads.cut import KernelPlace
    from tenfold.kernel.ir.sized import SizedKernel
    from tenfold.plan import Plan
    from tenfold.reference import Callbacks

RELEASED = 10_000  # nanoseconds of work from which the GIL is given up meanwhile


class NativeProgram(Program):
    """A program whose bytecode lies in memory."""

    target: LLVMTarget
    image: Image  # of the function that carries out steps
    given: int  # the address of its bytecode
    weight: int  # about how many nanoseconds it takes
    kept: tuple[object, ...]  # what the bytecode points at
    order: StepOrder
    bytecode: Bytecode | None = None  # its plan's as it was written, where it was written here
    _own: BoundPlan | None = None  # what `__call__` goes through

    @property
    def backend(self) -> Backend:
        from tenfold.backends.cpu.backend import BACKEND

        return BACKEND

    @abstractmethod
    def places(self) -> Mapping[SizedKernel, KernelPlace]:
        """Where the code of each kernel lies in memory, and where it may be cut."""

    @abstractmethod
    def routines(self) -> Mapping[str, int]:
        """Where the routines of ours that the plan calls, and its loops, lie in memory."""

    def make_bound(
        self,
        slow: Callable[..., Any],
        captures: Sequence[Array],
        guards: Sequence[Guard],
        updates: Sequence[int],
        answer: int | None,
    ) -> BoundPlan:
        own = self.parameters[: len(self.parameters) - len(captures)]
        written = {*updates, *self.donated}
        first = len(self.outputs) - len(updates)
        over = [n for o, n in enumerate(updates, first) if self.overwrites(n, o)]
        entry = CallSpec(
            name="call",
            plan="tn_steps",
            arguments=tuple(Argument(t, n in written) for n, t in enumerate(own)),
            outputs=self.outputs,
            captures=len(captures),
            guards=tuple(map(kind_of, guards)),
            arena_bytes=self.arena_bytes,
            updates=tuple(updates),
            over=tuple(over),
            answer=answer,
            release=self.weight > RELEASED,
        )
        entry = passed("entry", entry)
        bound = make_entry(
            entry, self.image, self._gate(), slow, captures, guards, True, self.given, self.kept
        )
        passed("binding", bound.binding)
        return bound

    def overwrites(self, argument: int, output: int) -> bool:
        return self.order.lets(argument, output, argument in self.donated)

    def dispatch(self, slow: Callable[..., Any]) -> tuple[Callable[..., Any], Dispatch]:
        return make_dispatch(self._gate(), slow)

    def _gate(self) -> Image:
        return gate(lambda: fixed(GATE, self.target))

    @property
    def answered(self) -> int:
        own = self._own.binding.answered if self._own else 0
        return own + super().answered

    def stepper(self) -> NativeStepper:
        from tenfold.backends.cpu.run.stepper import NativeStepper  # for checks alone

        return NativeStepper(self)

    def watch_for(self, plans: Collection[int]) -> None:
        from tenfold.backends.cpu.run.bytecode import Bytecode

        own, bytecode = ref(self), list[Bytecode]()  # native code holds no program

        def alarm(number: int) -> HostFunction:
            def ring(table: int, arena: int) -> None:
                program = own()
                if program is not None:
                    bytecode[0].silence(program.plan.every[number])
                    program.reached = True
                    program.close()

            return ring

        bells = {number: alarm(number) for number in plans}
        addresses = {number: id(bell) for number, bell in bells.items()}
        ask, callables = asking(self.plan, self.running, self.callbacks)
        bytecode.append(
            Bytecode(
                self.plan, self.target, self.places(), ask, self.routines(), self.loops, addresses
            )
        )
        self.given, kept = bytecode[0].address, (bytecode, bells, callables)
        self.kept = (*self.kept, kept)
        bindings: list[NativeBinding] = self.bindings()
        if self._own is not None:
            bindings.append(self._own.binding)
        for one in bindings:
            one.hand(self.given, kept)

    def __call__(self, arrays: Sequence[Any], callbacks: Callbacks | None = None) -> list[Array]:
        own = self._own
        if own is None:
            own = self._own = self.make_bound(_declining(self.parameters), (), (), (), OUTPUTS)
        given = [_fitted(array, type) for array, type in zip(arrays, self.parameters, strict=True)]
        for n in self.donated:  # what can't be written to is not taken over
            if not given[n].flags.writeable:
                given[n] = given[n].copy()
        with self.running.using(callbacks or self.callbacks):
            return list(map(np.asarray, own.call(*given)))


def asking(
    plan: Plan, running: CurrentCallbacks, default: Callbacks
) -> tuple[Callable[[int, int], int], dict[tuple[int, int], HostFunction]]:
    """What gives the address of the callable of a host step, or of a kernel whose check fails; and
    these callables. It knows no program: native code holds none."""
    from tenfold.backends.cpu.run.callables import make_callable

    made: dict[tuple[int, int], HostFunction] = {}

    def ask(which: int, step: int) -> int:
        if (which, step) not in made:  # a loop's function and the interpreter ask for the same
            made[which, step] = make_callable(plan.every[which], step, running, default)
        return id(made[which, step])

    return ask, made


def _declining(parameters: Sequence[TensorType]) -> Callable[..., Any]:
    def decline(*arrays: Any) -> Any:
        types = ", ".join(map(str, parameters))
        raise TypeMismatch(f"the program takes ({types})", fix="convert the arrays to these types")

    return decline


def _fitted(given: Any, type: TensorType) -> Array:
    """An array as the program takes it: packed, aligned, of the stated type."""
    array = np.asarray(given)
    dtype = DTYPES[SHORT[type.dtype]]  # the one object of its kind
    if array.dtype is not dtype:
        array = array.astype(dtype, copy=False).view(dtype)
    if not (array.flags.c_contiguous and array.flags.aligned):
        array = np.array(array, order="C")  # ascontiguousarray leaves an odd address as it is
    return array
