"""A plan bound to code in this process."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any, Protocol
from weakref import ref

import numpy as np

from tenfold.backends.cpu.entry.bind import Binding, Bound, gate, make_entry
from tenfold.backends.cpu.entry.entry import Argument, Entry
from tenfold.backends.cpu.entry.watch import Guard, kind_of
from tenfold.backends.cpu.run.fixed import GATE, fixed
from tenfold.backends.cpu.run.kernels import judged_kernels, obtain, routine_image, steps_image
from tenfold.backends.cpu.run.words import Words, routines_of
from tenfold.backends.cpu.target import Target, host_target
from tenfold.backends.host_step import Running, make_callable
from tenfold.errors import TypeMismatch
from tenfold.kernel import Kernel
from tenfold.plan import Plan
from tenfold.reference import Callbacks
from tenfold.seam import passed
from tenfold.types import DTYPES, SHORT, TensorType

Array = np.ndarray[Any, Any]

RELEASED = 10_000  # nanoseconds of work from which the GIL is given up meanwhile


class Holder(Protocol):
    """Who keeps programs, and lets go of one when told."""

    def forget(self, program: Program) -> None: ...


class Program:
    """A plan that can be called. Any number of threads may do so at once."""

    # What checks found, set by whoever checks.
    certificate: Any = None
    refuted: str | None = None
    told: bool = False  # whether the user knows that it was refuted
    entry: bytes | None = None  # the checksum of its entry in the disk cache
    seconds = 0.0  # that it took to make
    checking: Any = None  # the job that goes on checking it
    alone = False  # whether it does so to the end, without calls
    turns = 0  # calls that could have gone on checking it
    reached = False  # whether a call came to what was not checked
    failed: BaseException | None = None  # what ended its check, until the user knows

    _own: Bound | None = None  # what `__call__` goes through

    def __init__(
        self,
        plan: Plan,
        callbacks: Callbacks | None = None,
        *,
        strict: bool = False,
        target: Target | None = None,
    ) -> None:
        self.plan = plan
        self.graph = plan.graph  # or the graph that the plan's was made of
        self.strict = strict
        self.target = target or host_target()
        running = self.running = Running()
        self._holders: dict[int, ref[Holder]] = {}
        default = self.callbacks = callbacks or Callbacks()
        self.code = obtain(plan.kernels, self.target, strict)
        ask, self._callables = _asking(plan, running, default)
        self._sorts = {name: routine_image(name, self.target) for name in routines_of(plan)}
        self.words = Words(plan, self.places(), ask, self.routines())
        self.parameters = tuple(p.type for p in plan.graph.parameters)
        self.outputs = plan.graph.output_types
        self.donated = plan.donated
        self.arena_bytes = plan.arena_bytes
        self.weight = self.words.weights[id(plan)]
        self.image = steps_image(self.target, True)
        self.given = self.words.address
        self.kept: tuple[object, ...] = (self.words, self.code, self._sorts, self._callables)
        self.judged = judged_kernels(self.target, strict)
        self._doors: list[ref[Binding]] = []

    def retire(self) -> None:
        """Have all who hold it let go: it is freed as soon as nobody runs it."""
        for held in list(self._holders.values()):
            holder = held()
            if holder is not None:
                holder.forget(self)

    def hold(self, holder: Holder) -> None:
        """Remember who is to be told."""
        self._holders[id(holder)] = ref(holder)

    def places(self) -> Mapping[Kernel, tuple[int, int]]:
        """Where the code of each kernel lies in memory, and the extent it runs over."""
        return {
            kernel: (code.image.address(code.compiled.name), code.compiled.extent)
            for kernel, code in self.code.items()
        }

    def routines(self) -> Mapping[str, int]:
        """Where the routines of ours that the plan calls lie in memory."""
        return {name: image.address(name) for name, image in self._sorts.items()}

    def asked(self, which: int, step: int) -> int:
        """The address of a callable that the words have."""
        return id(self._callables[which, step])

    def bind(
        self,
        slow: Callable[..., Any],
        captures: Sequence[Array] = (),
        guards: Sequence[Guard] = (),
        *,
        packed: bool = False,
        native: bool = True,
    ) -> Bound:
        """A callable over positional arrays, native where that is supported; `slow` answers what
        its guards turn away, and everything while the program is closed. It keeps the code alive,
        and what that reads.

        `captures` stand for the graph's last parameters. `packed`: one output comes in a tuple.
        """
        bound = self._bind(slow, captures, guards, packed, native)
        self._doors = [door for door in self._doors if door() is not None]
        self._doors.append(ref(bound.binding))
        if self.shut:  # found while it was bound
            self.close()
        return bound

    def _bind(
        self,
        slow: Callable[..., Any],
        captures: Sequence[Array],
        guards: Sequence[Guard],
        packed: bool,
        native: bool,
    ) -> Bound:
        own = self.parameters[: len(self.parameters) - len(captures)]
        entry = Entry(
            name="call",
            plan="tn_steps",
            arguments=tuple(Argument(t, n in self.donated) for n, t in enumerate(own)),
            outputs=self.outputs,
            captures=len(captures),
            guards=tuple(map(kind_of, guards)),
            arena_bytes=self.arena_bytes,
            packed=packed,
            release=self.weight > RELEASED,
        )
        door = gate(lambda text: fixed(GATE, self.target))
        entry = passed("entry", entry)
        bound = make_entry(
            entry, self.image, door, slow, captures, guards, native, self.given, self.kept
        )
        passed("binding", bound.binding)
        return bound

    def _open_doors(self) -> list[Binding]:
        return [one for door in self._doors if (one := door()) is not None]

    @property
    def answered(self) -> int:
        """How many calls were answered through what is bound now."""
        own = self._own.binding.answered if self._own else 0
        return own + sum(one.answered for one in self._open_doors())

    @property
    def shut(self) -> bool:
        """Whether calls have to be looked at: it was refuted, came to what was not checked, or has
        something to tell."""
        return self.refuted is not None or self.reached or self.failed is not None

    def close(self) -> None:
        """Have all calls go to whoever answers what guards turn away."""
        for one in self._open_doors():
            one.close()

    def open(self) -> None:
        """Have native code answer again, unless calls have to be looked at."""
        if not self.shut:
            for one in self._open_doors():
                one.open()
        if self.shut:  # found while they were opened
            self.close()

    def watch_for(self, plans: Collection[int]) -> None:
        """Note when a call reaches one of these sub-plans, by their numbers: the program is then
        `reached`, and closed, so that the next call can be checked."""
        own, words = ref(self), list[Words]()  # native code holds no program

        def alarm(number: int) -> Callable[[int, int], None]:
            def ring(table: int, arena: int) -> None:
                program = own()
                if program is not None:
                    words[0].silence(program.plan.every[number])
                    program.reached = True
                    program.close()

            return ring

        bells = {number: alarm(number) for number in plans}
        addresses = {number: id(bell) for number, bell in bells.items()}
        ask, callables = _asking(self.plan, self.running, self.callbacks)
        words.append(Words(self.plan, self.places(), ask, self.routines(), addresses))
        self.given, kept = words[0].address, (words, bells, callables)
        self.kept = (*self.kept, kept)
        for one in [*([self._own.binding] if self._own else []), *self._open_doors()]:
            one.hand(self.given, kept)

    def __call__(self, arrays: Sequence[Any], callbacks: Callbacks | None = None) -> list[Array]:
        """The outputs for these arrays, in the order of the parameters; all are new arrays."""
        own = self._own
        if own is None:
            own = self._own = self._bind(_declining(self.parameters), (), (), True, True)
        given = [_fitted(array, type) for array, type in zip(arrays, self.parameters, strict=True)]
        for n in self.donated:  # what can't be written to is not taken over
            if not given[n].flags.writeable:
                given[n] = given[n].copy()
        with self.running.using(callbacks or self.callbacks):
            return list(map(np.asarray, own.call(*given)))


def _asking(
    plan: Plan, running: Running, default: Callbacks
) -> tuple[Callable[[int, int], int], dict[tuple[int, int], Callable[[int, int], None]]]:
    """What gives the address of the callable of a host step, or of a kernel whose check fails; and
    these callables. It knows no program: native code holds none."""
    made: dict[tuple[int, int], Callable[[int, int], None]] = {}

    def ask(which: int, step: int) -> int:
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
