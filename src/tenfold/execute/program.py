"""A plan bound to code in this process."""

from __future__ import annotations

import weakref
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any

import numpy as np

from tenfold.backends.cpu.bind import Binding, Bound, Guard, gate, make_entry
from tenfold.backends.cpu.entry import Argument, Entry
from tenfold.backends.cpu.program import Words, routines_of
from tenfold.backends.cpu.target import Target, host_target
from tenfold.errors import TypeMismatch
from tenfold.execute.faults import guards_with_fault, loosen
from tenfold.execute.fixed import GATE, fixed
from tenfold.execute.host import Running, make_callable
from tenfold.execute.kernels import judged_kernels, obtain, routine_image, steps_image
from tenfold.kernel import Kernel
from tenfold.plan import Plan
from tenfold.reference import Callbacks
from tenfold.types import DTYPES, SHORT, TensorType

Array = np.ndarray[Any, Any]

RELEASED = 10_000  # nanoseconds of work from which the GIL is given up meanwhile


class Program:
    """A plan that can be called. Any number of threads may do so at once."""

    # What checks found, set by whoever checks.
    certificate: Any = None
    refuted: str | None = None
    told: bool = False  # whether the user knows that it was refuted
    entry: bytes | None = None  # the checksum of its entry in the disk cache
    seconds = 0.0  # that it took to make
    checking: Any = None  # the job that goes on checking it
    turns = 0  # calls that could have gone on checking it
    reached = False  # whether a call came to what was not checked

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
        self.running = Running()
        self.callbacks = callbacks or Callbacks()
        self.code = obtain(plan.kernels, self.target, strict)
        self._callables: dict[tuple[int, int], Callable[[int, int], None]] = {}
        self._sorts = {name: routine_image(name, self.target) for name in routines_of(plan)}
        self.words = Words(plan, self.places(), self._ask, self.routines())
        self.parameters = tuple(p.type for p in plan.graph.parameters)
        self.outputs = plan.graph.output_types
        self.donated = plan.donated
        self.arena_bytes = plan.arena_bytes
        self.weight = self.words.weights[id(plan)]
        self.image = steps_image(self.target, True)
        self.given = self.words.address
        self.kept: tuple[object, ...] = (self.words, self.code, self._sorts, self._callables)
        self.judged = judged_kernels(self.target, strict)
        self._doors: list[weakref.ref[Binding]] = []

    def places(self) -> Mapping[Kernel, tuple[int, int]]:
        """Where the code of each kernel lies in memory, and the extent it runs over."""
        return {
            kernel: (code.image.address(code.compiled.name), code.compiled.extent)
            for kernel, code in self.code.items()
        }

    def routines(self) -> Mapping[str, int]:
        """Where the routines of ours that the plan calls lie in memory."""
        return {name: image.address(name) for name, image in self._sorts.items()}

    def _ask(self, which: int, step: int) -> int:
        """The address of the callable of a host step, or of a kernel whose check fails."""
        made = make_callable(self.plan.every[which], step, self.running, self.callbacks)
        self._callables[which, step] = made
        return id(made)

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
        self._doors.append(weakref.ref(bound.binding))
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
            arguments=guards_with_fault(
                [Argument(t, n in self.donated) for n, t in enumerate(own)]
            ),
            outputs=self.outputs,
            captures=len(captures),
            guards=tuple("cell" if key is None else "dict" for _, key, _ in guards),
            arena_bytes=self.arena_bytes,
            packed=packed,
            release=self.weight > RELEASED,
        )
        door = gate(lambda text: fixed(GATE, self.target))
        bound = make_entry(
            entry, self.image, door, slow, captures, guards, native, self.given, self.kept
        )
        loosen(bound.binding)
        return bound

    def _open_doors(self) -> list[Binding]:
        return [one for door in self._doors if (one := door()) is not None]

    @property
    def answered(self) -> int:
        """How many calls were answered through what is bound now."""
        own = self._own.binding.answered if self._own else 0
        return own + sum(one.answered for one in self._open_doors())

    def close(self) -> None:
        """Have all calls go to whoever answers what guards turn away."""
        for one in self._open_doors():
            one.close()

    def open(self) -> None:
        for one in self._open_doors():
            one.open()

    def watch_for(self, plans: Collection[int]) -> None:
        """Note when a call reaches one of these sub-plans, by their numbers: the program is then
        `reached`, and closed, so that the next call can be checked."""
        words: list[Words] = []

        def alarm(number: int) -> Callable[[int, int], None]:
            def ring(table: int, arena: int) -> None:
                words[0].silence(self.plan.every[number])
                self.reached = True
                self.close()

            return ring

        bells = {number: alarm(number) for number in plans}
        addresses = {number: id(bell) for number, bell in bells.items()}
        words.append(Words(self.plan, self.places(), self._ask, self.routines(), addresses))
        self.given, kept = words[0].address, (words, bells)
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
            return [np.asarray(made) for made in own.call(*given)]


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
