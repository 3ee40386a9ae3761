"""A plan bound to code in this process: what every backend's programs have in common."""

from __future__ import annotations

import threading
from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Protocol
from weakref import ref

import numpy as np

from tenfold.reference import Callbacks

if TYPE_CHECKING:
    from tenfold.backends.backend import Backend, Target
    from tenfold.backends.guard import Guard
    from tenfold.graph import Graph, Source
    from tenfold.kernel.ir.sized import SizedKernel
    from tenfold.plan import Plan
    from tenfold.plan.steps.loops import Which
    from tenfold.types import TensorType

Array = np.ndarray[Any, Any]


class Holder(Protocol):
    """Who keeps programs, and lets go of one when told."""

    def forget(self, program: Program) -> None: ...


class Binding(Protocol):
    """What a callable over a program is bound to."""

    @property
    def types(self) -> Sequence[TensorType]:
        """Those of the arguments."""
        ...

    @property
    def writes(self) -> bool:
        """Whether the program writes into arguments."""
        ...

    @property
    def answered(self) -> int:
        """How many calls were answered."""
        ...

    def close(self) -> None:
        """Turn every call away until it is opened again."""
        ...

    def open(self) -> None: ...


class BoundProgram(Protocol):
    """A callable over a program."""

    @property
    def call(self) -> Callable[..., Any]: ...

    @property
    def binding(self) -> Binding: ...


class Dispatch(Protocol):
    """What a callable over many programs is bound to: it finds the one for the arguments."""

    slow: Callable[..., Any]  # answers what none of them takes, and all that has keywords

    def __len__(self) -> int: ...

    def add(self, plan: Any) -> None:
        """Let one more answer calls: a `BoundProgram` whose own slow path is `decline`."""
        ...

    def remove(self, plan: Any) -> None: ...

    def clear(self) -> None: ...


# What a call gives: a tuple of the outputs, the one output, None, or an argument (plus its number).
OUTPUTS, OUTPUT, NOTHING, ARGUMENT = range(4)


def given_by(answer: int | None, count: int) -> int:
    """What a call gives that has so many results, and whose answer was left open or not."""
    return answer if answer is not None else OUTPUT if count == 1 else OUTPUTS


class NoMatch(Exception):
    """No plan took these arguments."""


def decline(*args: Any, **names: Any) -> Any:
    """The slow path of whoever has another."""
    raise NoMatch


class PlanMemory(Protocol):
    """What a plan is run in: arrays that are packed and aligned, laid out by whoever checks."""

    @property
    def inputs(self) -> Sequence[Array]: ...

    @property
    def outputs(self) -> Sequence[Array]: ...

    @property
    def arena(self) -> Array:
        """Bytes."""
        ...


class Stepper(Protocol):
    """A program's plan carried out in memory that the caller lays out. What a host step raises is
    raised."""

    def step(self, plan: Plan, number: int, memory: PlanMemory) -> None:
        """One step of the plan, or of a plan over the same kernels, by the program's own code."""
        ...

    def whole(self, memory: PlanMemory) -> None:
        """All of it, by the very code that answers calls."""
        ...


class CurrentCallbacks(threading.local):
    """The callbacks of the call that this thread is in."""

    callbacks: Callbacks | None = None

    @contextmanager
    def using(self, callbacks: Callbacks) -> Iterator[None]:
        before, self.callbacks = self.callbacks, callbacks
        try:
            yield
        finally:
            self.callbacks = before


class Program(ABC):
    """A plan that can be called. Any number of threads may do so at once."""

    # What checks found, set by whoever checks.
    certificate: Any = None
    noted: Any = None  # the certificate that the disk cache knows of
    refuted: str | None = None
    told: bool = False  # whether the user knows that it was refuted
    checksum: bytes | None = None  # of its entry in the disk cache
    seconds = 0.0  # that it took to make
    retired = False  # whether it is to be held no more
    wiring: str | None = None  # its plan without sizes, where its first check asked for that
    binds = False  # whether it can be replayed on arrays that stay where they are
    known = False  # whether all its kernels had been judged before its first check
    compiled = True  # whether any of its code was compiled for it
    unkept: Callable[[Program], None] | None = None  # what writes it to disk, if that can wait
    counted = 1  # calls that it had answered when the cache looked last; its first is no use
    checking: Any = None  # the job that goes on checking it
    alone = False  # whether it does so to the end, without calls
    turns = 0  # calls that could have gone on checking it
    leases = False  # whether native code answers meanwhile, since other ways are far slower
    lease: int | None = None  # calls that it answers before the next one is looked at
    reached = False  # whether a call came to what was not checked
    rung = 0  # how often that was noticed
    unjudged = False  # whether it was made where it can't run, so that nobody has checked it
    failed: BaseException | None = None  # what ended its check, until the user knows
    loops: Mapping[Which, str] = {}  # the names of the functions that loops of the plan have

    graph: Graph  # that its plan was made of
    plan: Plan
    target: Target
    strict: bool
    parameters: tuple[TensorType, ...]
    outputs: tuple[TensorType, ...]
    donated: tuple[int, ...]  # parameters that it may write into
    arena_bytes: int
    judged: set[str]  # names of kernels that were judged on drawn values with this very code

    def code_name(self, call: SizedKernel) -> str:
        """The name of the code of a kernel: calls with other sizes may share it."""
        return f"{call.kernel.digest} {call.sizes}"

    def serves(self, call: SizedKernel, other: SizedKernel) -> bool:
        """Whether the code of one of its calls is known to be right for another, too."""
        return call == other

    def lend(self, call: SizedKernel, plan: Plan) -> Program:
        """A program of a plan that is a call of one kernel, with the code that serves it of one of
        its own calls."""
        return self.backend.bind(plan, strict=self.strict)

    def __init__(self, callbacks: Callbacks | None = None) -> None:
        self.callbacks = callbacks or Callbacks()
        self.running = CurrentCallbacks()
        self._holders: dict[int, ref[Holder]] = {}
        self._bindings: list[ref[Any]] = []

    @property
    @abstractmethod
    def backend(self) -> Backend:
        """The backend that made it."""

    @abstractmethod
    def __call__(self, arrays: Sequence[Any], callbacks: Callbacks | None = None) -> list[Array]:
        """The outputs for these arrays, in the order of the parameters; all are new arrays."""

    @abstractmethod
    def make_bound(
        self,
        slow: Callable[..., Any],
        captures: Sequence[Array],
        guards: Sequence[Guard],
        updates: Sequence[int],
        answer: int | None,
    ) -> BoundProgram:
        """What `bind` gives, open."""

    def make_keeping(
        self,
        slow: Callable[..., Any],
        captures: Sequence[Array],
        guards: Sequence[Guard],
        updates: Sequence[int],
        answer: int | None,
    ) -> BoundProgram:
        """What `bind` gives with `keep`, for backends with memory of their own."""
        raise NotImplementedError

    def memory_of(self, array: Any) -> Any:
        """An array on the device as `bind_memory` takes it, with a dtype and a shape; None
        for one that is not."""
        return None

    def bind_memory(
        self, names: Sequence[str], inputs: Sequence[Any], captures: Sequence[Array]
    ) -> Any:
        """What replays the plan on arrays that stay where they are, for backends with memory of
        their own; the arrays' names are for errors."""
        raise NotImplementedError

    def remarks(self) -> Sequence[str]:
        """What an explanation says of it beside its plan, a line each."""
        return ()

    def fallbacks(self) -> Iterator[tuple[str, str, Source | None]]:
        """What of its plan its backend can't do: an op, why, and where it stands. Hooks and calls
        of Python are the host's anyway."""
        from tenfold.ops import TABLE

        for step in self.plan.host_steps:
            if not TABLE[step.op].effect:
                yield step.op, step.reason, step.source

    def overwrites(self, argument: int, output: int) -> bool:
        """Whether an output that is the update of an argument is written over it by the plan."""
        return False

    def dispatch(self, slow: Callable[..., Any]) -> tuple[Callable[..., Any], Dispatch]:
        """A callable over this program and others of its backend, and what they are added to once
        they are bound."""
        from tenfold.backends.python_dispatch import PythonDispatch  # where there is no better one

        made = PythonDispatch(slow)
        return made, made

    @abstractmethod
    def stepper(self) -> Stepper:
        """What carries its plan out for a check."""

    @abstractmethod
    def watch_for(self, plans: Collection[int]) -> None:
        """Note when a call reaches one of these sub-plans, by their numbers: the program is then
        `reached`, and closed, so that the next call can be checked."""

    def like(self, graph: Graph) -> Program:
        """Another graph, compiled as this program was."""
        return self.backend.compile(graph, strict=self.strict)

    def retire(self) -> None:
        """Have all who hold it let go: it is freed as soon as nobody runs it. Who comes to hold it
        later looks whether it is `retired`."""
        self.retired = True
        for held in list(self._holders.values()):
            holder = held()
            if holder is not None:
                holder.forget(self)

    def hold(self, holder: Holder) -> None:
        """Remember who is to be told."""
        self._holders[id(holder)] = ref(holder)

    def bind(
        self,
        slow: Callable[..., Any],
        captures: Sequence[Array] = (),
        guards: Sequence[Guard] = (),
        *,
        updates: Sequence[int] = (),
        answer: int | None = None,
        keep: bool = False,
    ) -> BoundProgram:
        """A callable over positional arrays, native where that is supported; `slow` answers what
        its guards turn away, and everything while the program is closed. It keeps the code alive,
        and what that reads.

        `captures` stand for the graph's last parameters. `updates` are arguments that the last
        outputs are written into when nothing can fail any more; the others are results. `answer`
        is what a call gives; None is the one result, or a tuple of them. With `keep` results stay
        on the program's device.
        """
        make = self.make_keeping if keep else self.make_bound
        bound = make(slow, captures, guards, updates, answer)
        self._bindings = [one for one in self._bindings if one() is not None]
        self._bindings.append(ref(bound.binding))
        if self.shut:  # found while it was bound
            self.close()
        return bound

    def bindings(self) -> list[Any]:
        """Those that are still in use."""
        return [found for one in self._bindings if (found := one()) is not None]

    @property
    def answered(self) -> int:
        """How many calls were answered through what is bound now."""
        return sum(one.answered for one in self.bindings())

    @property
    def shut(self) -> bool:
        """Whether calls have to be looked at: it was refuted, came to what was not checked, has
        something to tell, or is to go on with its check."""
        looked_at = self.reached or self.lease == 0
        return self.refuted is not None or self.failed is not None or looked_at

    def close(self) -> None:
        """Have all calls go to whoever answers what guards turn away."""
        for one in self.bindings():
            one.close()

    def open(self) -> None:
        """Have native code answer again, unless calls have to be looked at."""
        if not self.shut:
            for one in self.bindings():
                one.open()
        if self.shut:  # found while they were opened
            self.close()
