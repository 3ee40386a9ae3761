"""A plan bound to code in this process."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from tenfold.backends.cpu.bind import Bound, Guard, gate, make_entry
from tenfold.backends.cpu.entry import Argument, Entry
from tenfold.backends.cpu.program import Words, routines_of
from tenfold.backends.cpu.target import Target, host_target
from tenfold.errors import TypeMismatch
from tenfold.execute.faults import guards_with_fault, loosen
from tenfold.execute.fixed import GATE, fixed
from tenfold.execute.host import Running, make_callable
from tenfold.execute.kernels import obtain, routine_image, steps_image
from tenfold.kernel import Kernel
from tenfold.plan import Plan
from tenfold.reference import Callbacks
from tenfold.types import DTYPES, SHORT, TensorType

Array = np.ndarray[Any, Any]

_RELEASED = 10_000  # nanoseconds of work from which the GIL is given up meanwhile


class Program:
    """A plan that can be called. Any number of threads may do so at once."""

    # What a check found, set by whoever checks; the first one stays.
    certificate: Any = None
    refuted: str | None = None
    told: bool = False  # whether the user knows that it was refuted
    kept: bytes | None = None  # the checksum of its entry in the disk cache

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
        self._call: Callable[..., Any] | None = None

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
        its guards turn away. It keeps the code alive, and what that reads.

        `captures` stand for the graph's last parameters. `packed`: one output comes in a tuple.
        """
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
            release=self.weight > _RELEASED,
        )
        door = gate(lambda text: fixed(GATE, self.target))
        bound = make_entry(
            entry, self.image, door, slow, captures, guards, native, self.given, self.kept
        )
        loosen(bound.binding)
        return bound

    def __call__(self, arrays: Sequence[Any], callbacks: Callbacks | None = None) -> list[Array]:
        """The outputs for these arrays, in the order of the parameters; all are new arrays."""
        call = self._call
        if call is None:
            call = self._call = self.bind(_declining(self.parameters), packed=True).call
        given = [_fitted(array, type) for array, type in zip(arrays, self.parameters, strict=True)]
        for n in self.donated:  # what can't be written to is not taken over
            if not given[n].flags.writeable:
                given[n] = given[n].copy()
        with self.running.using(callbacks or self.callbacks):
            return [np.asarray(made) for made in call(*given)]


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
