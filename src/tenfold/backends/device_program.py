"""Programs on a device with memory of its own: what a caller gives, checked, and what he gets, on
the host or left on the device."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from tenfold.backends.guard import Guard, holds
from tenfold.backends.program import (
    ARGUMENT,
    NOTHING,
    OUTPUT,
    OUTPUTS,
    Array,
    BoundProgram,
    Program,
    given_by,
)
from tenfold.frozen import frozen
from tenfold.reference import Callbacks
from tenfold.types import TensorType

Give = Callable[[Any], Any]


@frozen(eq=False)
class Captures:
    """Arrays that stand for the last parameters, and never change."""

    arrays: tuple[Array, ...]


def captures_of(arrays: Sequence[Array]) -> Captures | None:
    """Them, if there are any."""
    return Captures(tuple(arrays)) if arrays else None


@frozen(eq=False)
class BoundCall:
    """A callable over a program."""

    call: Callable[..., Any]
    binding: CallBinding


class DeviceProgram(Program):
    """A program whose arguments and results may lie on its device; for a call that is looked at
    they are brought to the host."""

    leases = True

    def spend(self) -> None:
        """Count a call; the one after the last of a lease is looked at."""
        lease = self.lease
        if lease and not self.certificate.complete:
            self.lease = lease - 1
            if lease == 1:
                self.close()

    @abstractmethod
    def answer(
        self,
        given: Sequence[Array],
        callbacks: Callbacks | None = None,
        captures: Captures | None = None,
    ) -> list[Array]:
        """The outputs for packed arrays of the very types; what is captured stands for the last
        parameters."""

    @abstractmethod
    def answer_kept(self, args: Sequence[Any], captures: Captures | None = None) -> list[Any]:
        """The outputs, left on the device. Arguments are NumPy's, or what `holds` says yes to."""

    @abstractmethod
    def holds(self, given: Any) -> bool:
        """Whether this is an array on its device, as calls are given it."""

    @abstractmethod
    def giver(self, args: Sequence[Any], keep: bool) -> Give | None:
        """How results that stay on the device are given for these arguments; None: they don't."""

    def make_bound(
        self,
        slow: Callable[..., Any],
        captures: Sequence[Array],
        guards: Sequence[Guard],
        updates: Sequence[int],
        answer: int | None,
    ) -> BoundProgram:
        return bind_call(self, slow, captures_of(captures), guards, updates, answer, False)

    def make_keeping(
        self,
        slow: Callable[..., Any],
        captures: Sequence[Array],
        guards: Sequence[Guard],
        updates: Sequence[int],
        answer: int | None,
    ) -> BoundProgram:
        return bind_call(self, slow, captures_of(captures), guards, updates, answer, True)


class CallBinding:
    """What a callable over a program is bound to."""

    def __init__(
        self, types: Sequence[TensorType], updates: Sequence[int], there: Callable[[Any], bool]
    ) -> None:
        self.types, self.updates, self._there = types, updates, there
        self.writes = bool(updates)
        self.answered, self.shut = 0, False

    def close(self) -> None:
        self.shut = True

    def open(self) -> None:
        self.shut = False

    def lets_in(self, args: Sequence[Any]) -> bool:
        """Whether these are arrays of the types that the program takes, and can be written to
        where it updates them."""
        if self.shut or len(args) != len(self.types):
            return False
        for array, type in zip(args, self.types, strict=True):
            if array.__class__ is np.ndarray or isinstance(array, np.generic):
                flags = array.flags
                if not (flags.c_contiguous and flags.aligned):
                    return False
            elif not self._there(array):
                return False
            if array.dtype != type.dtype or array.shape != type.shape:
                return False
        return self._may_update(args)

    def _may_update(self, args: Sequence[Any]) -> bool:
        for n in self.updates:
            if self._there(args[n]) or not args[n].flags.writeable:
                return False
            others = (a for k, a in enumerate(args) if k != n and a.__class__ is np.ndarray)
            if any(np.may_share_memory(args[n], a) for a in others):
                return False
        return True


def bind_call(
    program: DeviceProgram,
    slow: Callable[..., Any],
    captured: Captures | None,
    guards: Sequence[Guard],
    updates: Sequence[int],
    answer: int | None,
    keep: bool,
) -> BoundCall:
    """A callable over arrays: `slow` answers what it turns away. With `keep` results stay on the
    device; they do so, too, where an argument lies there."""
    count = 0 if captured is None else len(captured.arrays)
    types = program.parameters[: len(program.parameters) - count]
    binding, leased = CallBinding(types, updates, program.holds), program.lease is not None

    def call(*args: Any, **names: Any) -> Any:
        over = leased and program.lease is None  # who binds it again finds faster ways
        if names or over or not binding.lets_in(args) or not all(map(holds, guards)):
            return slow(*args, **names)
        give = program.giver(args, keep)
        outputs: Any
        if give is None:
            given = [a if a.__class__ is np.ndarray else np.asarray(a) for a in args]
            outputs = program.answer(given, None, captured)
        else:
            outputs = program.answer_kept(args, captured)
        binding.answered += 1
        program.spend()
        own = len(outputs) - len(updates)
        for number, output in zip(updates, outputs[own:], strict=True):
            args[number][...] = output
        made = [give(o) if give else o if o.ndim else o[()] for o in outputs[:own]]
        gives = given_by(answer, own)
        if gives >= ARGUMENT:
            return args[gives - ARGUMENT]
        return {OUTPUTS: tuple(made), OUTPUT: [*made, None][0], NOTHING: None}[gives]

    return BoundCall(call, binding)
