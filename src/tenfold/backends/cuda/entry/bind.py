"""Callables over programs on a GPU, of which native code answers what it can: calls whose arrays
all lie on the device, and such with small arrays of NumPy's."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from tenfold.backends.cpu.entry.abi import Argument, CallSpec
from tenfold.backends.cpu.entry.bind import (
    BoundPlan,
    MethodDef,
    data_of,
    guard_words,
    make_builtin,
    make_entry,
)
from tenfold.backends.cpu.entry.record import RECORD_WORDS, RecordWord
from tenfold.backends.cpu.entry.slots import hash_words
from tenfold.backends.cuda.array import DeviceInput
from tenfold.backends.cuda.blocks import Kind, kind_of
from tenfold.backends.cuda.entry.code import cpu_gate, entries
from tenfold.backends.cuda.entry.rooms import KeptRoom, StagedRooms
from tenfold.backends.cuda.run.staging import may_stage
from tenfold.backends.device_program import BoundCall, Captures
from tenfold.backends.guard import Guard
from tenfold.backends.guard import kind_of as guard_kind
from tenfold.backends.program import given_by
from tenfold.frozen import frozen
from tenfold.types import TensorType

if TYPE_CHECKING:
    from tenfold.backends.cuda.run.program import CudaProgram

_NEVER = 1 << 62  # arguments that nobody gives


class KeptBinding(str):
    """The record of a plan for arguments that lie on the device, as the gate reads it. The callable
    holds it in place of its module's name, hence a string."""

    address: int
    hash: int
    method: MethodDef
    _record: np.ndarray[Any, Any]
    _count: int
    _kept: tuple[object, ...]

    def __new__(
        cls,
        room: KeptRoom,
        arguments: Sequence[Kind | type[np.generic]],
        outputs: Sequence[Kind],
        guards: Sequence[Guard],
        answer: int | None,
        slow: Callable[..., Any],
    ) -> KeptBinding:
        self, code = super().__new__(cls, "tenfold"), entries()
        bound = np.array(guard_words(guards), np.uint64)
        words = [0] * RECORD_WORDS
        words += map(id, arguments)
        outputs_at = len(words)
        for kind in outputs:
            words += (id(kind), 0, id(kind.free))
        words[RecordWord.PLAN] = code.address(room.plan)
        words[RecordWord.RELEASE] = int(room.plan == "tn_waited_plan")
        words[RecordWord.GIVEN] = room.given(any(isinstance(a, type) for a in arguments))
        words[RecordWord.SLOW] = id(slow)
        words[RecordWord.BOUND] = data_of(bound)
        words[RecordWord.OUTPUTS] = len(outputs)
        words[RecordWord.GUARDS] = len(guards)
        words[RecordWord.TABLE] = len(arguments) + len(outputs)
        words[RecordWord.ANSWER] = given_by(answer, len(outputs))
        words[RecordWord.OWNER] = id(self)
        self._record = record = np.array(words, np.uint64)
        self.address = data_of(record)
        record[RecordWord.ARGUMENTS_AT] = self.address + 8 * RECORD_WORDS
        record[RecordWord.OUTPUTS_AT] = self.address + 8 * outputs_at
        self.hash = hash_words(len(arguments), map(id, arguments))
        self._count = len(arguments)
        self._kept = (room, tuple(arguments), tuple(outputs), tuple(guards), bound, code, slow)
        self.open()
        return self

    @property
    def answered(self) -> int:
        return int(self._record[RecordWord.ANSWERED])

    def close(self) -> None:
        self._record[RecordWord.ARGUMENTS] = _NEVER

    def open(self) -> None:
        self._record[RecordWord.ARGUMENTS] = self._count


@frozen(eq=False)
class BoundKept:
    """A callable over a plan for arguments that lie on the device."""

    call: Callable[..., Any]
    binding: KeptBinding


class NativeCall:
    """A callable over a program: Python's, and before it what native code answers of its calls."""

    kept: tuple[BoundKept, ...] = ()  # for arrays alone, and with numbers beside them
    staged: BoundPlan | None = None

    def __init__(
        self,
        program: CudaProgram,
        python: BoundCall,
        captures: Captures | None,
        guards: Sequence[Guard],
        updates: Sequence[int],
        answer: int | None,
        keep: bool,
    ) -> None:
        types, outputs = python.binding.types, program.outputs
        self.types, self.writes = types, python.binding.writes
        kept = staged = None
        whole = program.whole and program.lease is None  # of a lease each call is counted
        if whole and not updates and (keep or types):
            kept = KeptRoom(program, captures)
            program.native.add(kept)
        small = may_stage(program.plan, program.target, types, outputs)
        if whole and small and not keep:
            staged = StagedRooms(program, captures, len(types))
            program.native.add(staged)
        self.python = self.call = _filling(python.call, kept, staged)
        self._bindings: list[Any] = [python.binding]
        if kept is not None:
            kinds, made = (
                [kind_of(program.device, t.dtype, t.shape) for t in some]
                for some in (types, outputs)
            )
            mixed: list[Kind | type[np.generic]] = [
                t.dtype.type if n in kept.numbers else kind
                for n, (t, kind) in enumerate(zip(types, kinds, strict=True))
            ]
            arrays: Sequence[Kind | type[np.generic]] = kinds
            ways = [arrays, mixed] if 0 < len(kept.numbers) < len(types) else [arrays]
            self.kept = tuple(
                _kept(KeptBinding(kept, way, made, guards, answer, self.python)) for way in ways
            )
            self.call = self.kept[0].call
            self._bindings += [one.binding for one in self.kept]
        if staged is not None:
            self.staged = _staged(staged, types, outputs, guards, updates, answer, self.call)
            self.call = self.staged.call
            self._bindings.append(self.staged.binding)

    @property
    def binding(self) -> NativeCall:
        return self

    @property
    def answered(self) -> int:
        return sum(one.answered for one in self._bindings)

    def close(self) -> None:
        for one in self._bindings:
            one.close()

    def open(self) -> None:
        for one in self._bindings:
            one.open()


def _kept(binding: KeptBinding) -> BoundKept:
    gate = entries().address("tn_gate")
    call, binding.method = make_builtin(b"call", gate, binding.address, binding)
    return BoundKept(call, binding)


def _filling(
    python: Callable[..., Any], kept: KeptRoom | None, staged: StagedRooms | None
) -> Callable[..., Any]:
    """Python's callable, which has native code answer the next call like this one."""

    def call(*args: Any, **names: Any) -> Any:
        made = python(*args, **names)
        there = any(isinstance(a, DeviceInput) for a in args)
        if staged is not None and not there:
            staged.fill()
        elif kept is not None and (there or not args):
            kept.fill()
        return made

    return call


def _staged(
    rooms: StagedRooms,
    arguments: Sequence[TensorType],
    outputs: Sequence[TensorType],
    guards: Sequence[Guard],
    updates: Sequence[int],
    answer: int | None,
    slow: Callable[..., Any],
) -> BoundPlan:
    entry = CallSpec(
        name="call",
        plan="tn_staged_plan",
        arguments=tuple(Argument(t, n in updates) for n, t in enumerate(arguments)),
        outputs=tuple(outputs),
        guards=tuple(map(guard_kind, guards)),
        updates=tuple(updates),
        answer=answer,
        release=True,
    )
    return make_entry(entry, entries(), cpu_gate(), slow, (), guards, True, rooms.given, rooms)
