"""Calls of programs on a device: what a caller gives, checked, and what he gets."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from tenfold.backends.guard import Guard, holds
from tenfold.backends.program import ARGUMENT, NOTHING, OUTPUT, OUTPUTS, Array, given_by
from tenfold.frozen import frozen
from tenfold.types import TensorType

if TYPE_CHECKING:
    from tenfold.backends.webgpu.run.program import WebGPUProgram


@frozen(eq=False)
class Captures:
    """Arrays that stand for the last parameters, and never change."""

    arrays: tuple[Array, ...]


class CallBinding:
    """What a callable over a program is bound to."""

    def __init__(self, types: Sequence[TensorType], updates: Sequence[int]) -> None:
        self.types, self.updates = types, updates
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
            if not (array.__class__ is np.ndarray or isinstance(array, np.generic)):
                return False
            if array.dtype != type.dtype:
                return False
            flags = array.flags
            if array.shape != type.shape or not (flags.c_contiguous and flags.aligned):
                return False
        return self._may_update(args)

    def _may_update(self, args: Sequence[Any]) -> bool:
        for n in self.updates:
            if not args[n].flags.writeable:
                return False
            if any(np.may_share_memory(args[n], a) for k, a in enumerate(args) if k != n):
                return False
        return True


@frozen(eq=False)
class BoundCall:
    """A callable over a program."""

    call: Callable[..., Any]
    binding: CallBinding


def bind_call(
    program: WebGPUProgram,
    slow: Callable[..., Any],
    captures: Sequence[Array],
    guards: Sequence[Guard],
    updates: Sequence[int],
    answer: int | None,
) -> BoundCall:
    """A callable over arrays: `slow` answers what it turns away."""
    types = program.parameters[: len(program.parameters) - len(captures)]
    captured = Captures(tuple(captures)) if captures else None
    binding = CallBinding(types, updates)

    def call(*args: Any, **names: Any) -> Any:
        if names or not binding.lets_in(args) or not all(map(holds, guards)):
            return slow(*args, **names)
        given = [a if a.__class__ is np.ndarray else np.asarray(a) for a in args]
        outputs = program.answer(given, None, captured)
        binding.answered += 1
        own = len(outputs) - len(updates)
        for number, output in zip(updates, outputs[own:], strict=True):
            args[number][...] = output
        made = [o if o.ndim else o[()] for o in outputs[:own]]
        gives = given_by(answer, own)
        if gives >= ARGUMENT:
            return args[gives - ARGUMENT]
        return {OUTPUTS: tuple(made), OUTPUT: [*made, None][0], NOTHING: None}[gives]

    return BoundCall(call, binding)
