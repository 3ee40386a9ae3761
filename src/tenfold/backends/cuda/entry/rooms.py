"""The rooms that native entries answer calls in, with the launches of their graphs.

They are filled when Python has answered a call that native code could have answered, and emptied
where memory runs short: until the next such call Python answers again.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from contextlib import suppress
from typing import TYPE_CHECKING, Any

import numpy as np

from tenfold.backends.cuda.entry.code import entries
from tenfold.backends.cuda.entry.launch import Launch
from tenfold.backends.cuda.entry.plans import ROOMS, KeptWord, NumberWord, StagedWord
from tenfold.backends.cuda.run.staging import carried
from tenfold.backends.device_program import Captures
from tenfold.errors import DeviceProblem
from tenfold.locks import Lock, once

if TYPE_CHECKING:
    from tenfold.backends.cuda.run.program import CudaProgram
    from tenfold.backends.cuda.run.room import Room


_Number = ctypes.c_uint64 * (len(NumberWord) + 1)


class KeptRoom:
    """The room of calls whose arrays lie on the device. They are begun in one stream, one at a time
    by whoever has the GIL: so there is one. Where a call is waited for, which is done without the
    GIL, others are Python's meanwhile."""

    def __init__(self, program: CudaProgram, captures: Captures | None) -> None:
        self._program, self._captures = program, captures
        self._lock = Lock()
        self._held: tuple[Room, Launch] | None = None
        self._never = False  # whether native code can't do it
        self._cell = ctypes.c_uint64(0)  # the launch
        count = len(program.parameters) - (0 if captures is None else len(captures.arrays))
        # Parameters that numbers of the host may stand for.
        self.numbers = tuple(
            n
            for n, type in enumerate(program.parameters[:count])
            if not type.rank and n not in program.donated
        )
        self._rows: Any = (_Number * len(self.numbers))()
        self.plan = "tn_kept_plan" if program.single else "tn_waited_plan"
        cell, rows = ctypes.addressof(self._cell), ctypes.addressof(self._rows)
        self._arrays: Any = (ctypes.c_uint64 * len(KeptWord))(cell, 0, 0)
        self._mixed: Any = (ctypes.c_uint64 * len(KeptWord))(cell, len(self.numbers), rows)

    def given(self, numbers: bool) -> int:
        """What the plan's function is given, for arrays alone or with numbers."""
        return ctypes.addressof(self._mixed if numbers else self._arrays)

    def fill(self) -> None:
        """Have native code answer from now on."""
        if self._never or self._cell.value:
            return
        _hold(self._program, self._captures, self._take)

    def _take(self, room: Room) -> bool:
        program, captures = self._program, self._captures
        fixed = 0 if captures is None else len(captures.arrays)
        count, results = len(program.parameters) - fixed, len(program.outputs)
        rows = [*range(count), *[None] * fixed, *range(count, count + results)]
        replay, main, launch = program.replay(room), program.device.main, None
        if len(replay.items) == 1 and not isinstance(replay.items[0], int):
            launch = replay.items[0].native(rows, main)
            if launch is None:
                moving = [n for n, row in enumerate(rows) if row is not None]
                graph = carried(replay, room.places, moving)
                launch = None if graph is None else graph.native(rows, main)
        if launch is None:
            self._never = True
            return False
        zeros = np.zeros(2, np.uint64)  # so few bytes are read at once
        for n in self.numbers:
            program.device.upload(room.places[n], zeros, main)
        with self._lock:
            if self._cell.value:  # another thread was quicker
                return False
            for row, n in zip(self._rows, self.numbers, strict=True):
                row[:] = (n, room.places[n], program.parameters[n].nbytes, 0, 0)
            for words in (self._arrays, self._mixed):
                words[KeptWord.FAULT] = room.fault.pinned
            self._held, self._cell.value = (room, launch), launch.address
        return True

    def release(self) -> int:
        """Let go of the room, unless somebody is in it: how many bytes."""
        with self._lock:
            if self._held is None or not _emptied()(ctypes.addressof(self._cell), 0):
                return 0
            held, self._held = self._held, None
            return held[0].nbytes


class StagedRooms:
    """The rooms of calls with small arrays of the host: each of one caller at a time."""

    def __init__(self, program: CudaProgram, captures: Captures | None, count: int) -> None:
        """`count` arguments are brought by a call."""
        self._program, self._captures, self._count = program, captures, count
        self._lock = Lock()
        self._never = False
        self._held: dict[int, tuple[Room, Launch, Any]] = {}
        results = len(program.outputs)
        self._parts: Any = (ctypes.c_uint64 * max(1, 2 * (count + results)))()
        words = [count, results, ctypes.addressof(self._parts), *[0] * ROOMS]
        self._words: Any = (ctypes.c_uint64 * len(words))(*words)

    @property
    def given(self) -> int:
        return ctypes.addressof(self._words)

    def fill(self) -> None:
        """One room more, where none waits."""
        if self._never or len(self._held) == ROOMS or any(self._words[StagedWord.POOL :]):
            return
        _hold(self._program, self._captures, self._take)

    def _take(self, room: Room) -> bool:
        staging, launch = self._program.stage(room, self._count), None
        if staging is not None:
            launch = staging.graph.native([None] * len(room.places), room.stream)
        if staging is None or launch is None:
            self._never = True
            return False
        words = (launch.address, staging.pinned, room.fault.pinned)
        record: Any = (ctypes.c_uint64 * len(words))(*words)
        at = ctypes.addressof(record)
        with self._lock:
            if len(self._held) == ROOMS:  # another thread was quicker
                return False
            for n, word in enumerate(staging.parts):
                self._parts[n] = word
            self._held[at] = room, launch, record
            _give()(self.given, at)
        return True

    def release(self) -> int:
        """Let go of the rooms that nobody is in: how many bytes."""
        freed = 0
        while at := _taken()(self.given):
            with self._lock:
                freed += self._held.pop(at)[0].nbytes
        return freed


def _hold(program: CudaProgram, captures: Captures | None, take: Callable[[Room], bool]) -> None:
    """Give a room of a program to who says whether he keeps it."""
    with suppress(DeviceProblem):  # a call was answered: the next one says what is wrong
        room, kept = program.enter(), False
        try:
            if room.under_way:
                room.follow()
            program.capture(room, captures)
            kept = take(room)
        finally:
            if not kept:
                program.leave(room)


@once
def _emptied() -> Callable[[int, int], int | None]:
    kind = ctypes.CFUNCTYPE(ctypes.c_void_p, ctypes.c_void_p, ctypes.c_uint64)
    return kind(entries().address("tn_cell_take"))


@once
def _taken() -> Callable[[int], int | None]:
    kind = ctypes.CFUNCTYPE(ctypes.c_void_p, ctypes.c_void_p)
    return kind(entries().address("tn_room_take"))


@once
def _give() -> Callable[[int, int], None]:
    kind = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_void_p)
    return kind(entries().address("tn_room_give"))
