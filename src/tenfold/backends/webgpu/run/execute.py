"""Have done what was recorded of a plan: dispatches are sent in few submissions; what the host does
or decides waits for those before it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np

from tenfold.backends.host_step import HostCall
from tenfold.backends.webgpu.native.buffer import Range
from tenfold.backends.webgpu.native.commands import Commands
from tenfold.backends.webgpu.run.gates import Sent
from tenfold.backends.webgpu.run.memory import FAULT_BYTES, Frame, Room
from tenfold.backends.webgpu.run.moves import Mover
from tenfold.backends.webgpu.run.record import (
    Beyond,
    Choice,
    Item,
    OnHost,
    Rounds,
    Run,
    which_round,
)
from tenfold.plan import HostStep
from tenfold.reference import Callbacks
from tenfold.types import TensorType

Array = np.ndarray[Any, Any]

SENT = 512  # dispatches in one submission
MOST_AHEAD = 32  # rounds that are sent before one is known to be wanted
MARKED, AHEAD = 4, 2  # submissions between marks, and marks that are not waited for
PIECE = 64 << 20  # bytes that come back at once


class Faulted(Exception):
    """A kernel told of a fault."""


class Execution:
    """One run of what was recorded for a room. Where it is `careful`, each kernel that checks is
    waited for: an error then names its line."""

    def __init__(
        self, room: Room, mover: Mover, callbacks: Callable[[], Callbacks], careful: bool = False
    ) -> None:
        self.room, self.device, self.callbacks = room, room.device, callbacks
        self.careful, self._mover = careful, mover
        self._commands: Commands | None = None

    @property
    def commands(self) -> Commands:
        """What is recorded on the way."""
        if self._commands is None:
            self._commands = Commands(self.device)
        return self._commands

    def run(self, items: Sequence[Item]) -> None:
        """Everything in order. What is left of it has yet to be submitted when this returns."""
        for item in items:
            match item:
                case Run():
                    self._dispatch(item)
                case OnHost():
                    self._host(item.frame, item.number)
                case Beyond():
                    item.step.run(self._fetch_bytes, self.put)
                case Rounds():
                    self._rounds(item)
                case Choice() if not self.careful and (sent := item.gated(None)) is not None:
                    self._send(sent)
                case Choice():
                    (index,) = self.read([(item.index, TensorType(np.dtype(item.dtype), ()))])
                    which = min(max(int(index), 0), len(item.step.plans) - 1)
                    self.run(item.branch(which))

    def _dispatch(self, item: Run) -> None:
        commands = self.commands
        for one in item.dispatches:
            commands.dispatch(one.pipeline, one.group, one.groups)
        if self.careful and item.frame is not None:
            try:
                self.read([])
            except Faulted:
                self._host(item.frame, item.number)
        elif commands.count >= SENT:
            self.submit()

    def _send(self, sent: Sequence[Sent]) -> None:
        """Dispatches, some of them behind gates."""
        for one in sent:
            bound, commands = one.bound, self.commands
            if one.wanted is None:
                commands.dispatch(bound.pipeline, bound.group, bound.groups)
            else:
                commands.dispatch_found(bound.pipeline, bound.group, one.wanted.buffer, one.offset)
        if self.commands.count >= SENT:
            self.submit()

    def submit(self) -> None:
        """Have everything done that was recorded by now. It stays a few submissions ahead."""
        if self._commands is None:
            return
        commands, self._commands = self._commands, None
        commands.submit()
        room = self.room
        room.submitted += 1
        if room.submitted % MARKED == 0:
            room.marks.append(self.device.mark())
            if len(room.marks) > AHEAD:
                self.device.reach(room.marks.pop(0))

    def read(self, wanted: Sequence[tuple[Range, TensorType]]) -> list[Array]:
        """What lies in these ranges when everything before is done. Raises if a kernel told of a
        fault, which is forgotten."""
        made = [np.empty(type.shape, type.dtype) for _, type in wanted]
        parts: list[tuple[Range, Array]] = []
        for (where, _), array in zip(wanted, made, strict=True):
            raw = array.reshape(-1).view(np.uint8)
            for start in range(0, raw.size, PIECE):
                piece = raw[start : start + PIECE]
                parts.append((where.part(start, piece.size), piece))
        fault = np.zeros(1, np.uint32)
        parts.append((self.room.fault, fault.view(np.uint8)))
        batch: list[tuple[Range, Array]] = []
        for part in parts:
            if batch and sum(_room(a) for _, a in (*batch, part)) > PIECE + _room(fault):
                self._take(batch)
                batch = []
            batch.append(part)
        self._take(batch)
        if fault[0]:
            self.device.write(self.room.fault, np.zeros(1, np.uint32))
            raise Faulted
        return made

    def _take(self, batch: Sequence[tuple[Range, Array]]) -> None:
        """Bring bytes back through the staging buffer."""
        staging = self.room.staging.of(sum(_room(array) for _, array in batch))
        commands, at = self.commands, 0
        placed: list[tuple[int, Array]] = []
        for where, array in batch:
            source = where
            if where.offset % 4:  # copies begin at words
                source = self.room.more("taken", array.nbytes).part(0, array.nbytes)
                for one in self._mover.move(self.room, where, source, array.nbytes):
                    commands.dispatch(one.pipeline, one.group, one.groups)
            commands.copy(source.part(0, array.nbytes), staging, at)
            placed.append((at, array))
            at += _room(array)
        self.submit()
        self.device.read(staging, placed)
        while self.room.marks:
            self.device.reach(self.room.marks.pop())

    def put(self, where: Range, array: Array) -> None:
        """Have an array lie there, and nothing else changed."""
        if not array.nbytes:
            return
        if not array.nbytes % 4 and not where.offset % 4:
            self.submit()
            self.device.write(where, array)
            return
        self.submit()
        between = self.device.range(array.nbytes)
        self.device.write(between, array)
        for one in self._mover.move(self.room, between, where, array.nbytes):
            self.commands.dispatch(one.pipeline, one.group, one.groups)

    def _host(self, frame: Frame, number: int) -> None:
        """A step carried out by the evaluator, on copies of what it reads."""
        plan, step = frame.plan, frame.plan.steps[number]
        made: dict[int, Array] = {}
        if isinstance(step, HostStep):
            self._fetch(frame, dict.fromkeys(step.inputs), made)
            for n in step.outputs:
                if n not in made:
                    made[n] = np.empty(plan.slots[n].type.shape, plan.slots[n].type.dtype)

        def slot(at: int) -> Array:
            if at not in made:
                self._fetch(frame, [at], made)
            return made[at]

        HostCall(plan, number)(slot, self.callbacks())
        for n in step.outputs if isinstance(step, HostStep) else ():
            self.put(frame.range(n), made[n])

    def _fetch(self, frame: Frame, slots: Iterable[int], made: dict[int, Array]) -> None:
        """What lies in slots."""
        wanted = [(n, frame.plan.slots[n].type) for n in slots]
        found = self.read([(frame.range(n), type) for n, type in wanted])
        made.update(zip((n for n, _ in wanted), found, strict=True))

    def _fetch_bytes(self, wanted: Sequence[tuple[Range, Array]]) -> None:
        found = self.read([(where, TensorType(a.dtype, a.shape)) for where, a in wanted])
        for (_, into), made in zip(wanted, found, strict=True):
            into[...] = made

    def _rounds(self, item: Rounds) -> None:
        """A loop, round by round; those of known number are sent without waiting, and others
        behind gates where they can be."""
        count = 0
        if item.begin:
            self._dispatch(Run(item.begin))
        if not item.step.counted and not self.careful and item.gated(0) is not None:
            self._ahead(item)
            return
        while self._goes_on(item, count):
            self.run(item.rounds(which_round(count)))
            count += 1
        self.run(item.end(count))

    def _ahead(self, item: Rounds) -> None:
        """A loop whose end the data says: ever more rounds are sent at once, so that no more are
        in vain than were wanted."""
        self._dispatch(Run((item.open,)))
        sent, more = 0, 1
        while True:
            for number in range(sent, sent + more):
                one = item.gated(which_round(number))
                assert one is not None
                self._send(one)
            (state,) = self.read([(item.state, TensorType(np.dtype(np.uint32), (2,)))])
            if not state[0]:
                self.run(item.end(int(state[1])))
                return
            sent, more = sent + more, min(2 * more, MOST_AHEAD)

    def _goes_on(self, item: Rounds, count: int) -> bool:
        if item.step.counted:
            return count < item.step.length
        self.run(item.condition(which_round(count)))
        assert item.flag is not None
        (flag,) = self.read([(item.flag, TensorType(np.dtype(np.bool_), ()))])
        return bool(flag)


def _room(array: Array) -> int:
    """Bytes of a staging buffer: places in it are multiples of 8."""
    return -(-max(array.nbytes, FAULT_BYTES) // 8) * 8
