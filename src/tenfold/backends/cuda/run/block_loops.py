"""Which loops a single block goes through, and what it is given for that."""

from __future__ import annotations

from collections.abc import Sequence
from math import gcd
from typing import TYPE_CHECKING

from tenfold.backends.cuda.emit.block_loop import (
    PLAIN,
    POINTER,
    BlockLoop,
    Call,
    Carry,
    Copy,
    Item,
    Moving,
    Sliced,
    Static,
    loop_text,
    parts_of,
    shared_bytes,
)
from tenfold.backends.cuda.emit.function import KernelText
from tenfold.backends.cuda.recording import Address, Word, place_address, place_of
from tenfold.backends.cuda.run.memory import DeviceFrame
from tenfold.plan import CopyStep, KernelStep, LoopStep, Plan

if TYPE_CHECKING:
    from tenfold.backends.cuda.run.dependences import Range
    from tenfold.backends.cuda.run.record import Recorder

MOVING = 1 << 12  # places from here on are pointers that move
_MOST = 8192  # threads that a round would have
_COPIED = 65536  # bytes that a round copies
_STEPS = 32
_SHARED = 40 << 10  # bytes


class NotOneFunction(Exception):
    """The loop can't be one function."""


def recorded_by_block(recorder: Recorder, frame: DeviceFrame, step: LoopStep) -> bool:
    """Record a loop as one function, if it is one for a single block."""
    plans = [frame.plan.plans[p] for p in step.plans]
    if not all(_simple(plan) for plan in plans):
        return False
    try:
        _BlockLoopRecorder(recorder, frame, step).record()
    except NotOneFunction:
        return False
    return True


def _simple(plan: Plan) -> bool:
    kinds = all(isinstance(step, (KernelStep, CopyStep)) for step in plan.steps)
    return kinds and len(plan.steps) <= _STEPS


class LoopRecorder:
    """What a loop that is one function is given: its arguments, each of them once, and the kernels
    of its rounds as functions of their own."""

    def __init__(self, recorder: Recorder, frame: DeviceFrame, step: LoopStep) -> None:
        self.r, self.frame, self.step = recorder, frame, step
        self.types: list[str] = []
        self.words: list[Word] = []
        self.known: dict[tuple[str, Word], int] = {}
        self.kernels: dict[str, KernelText] = {}
        self.work = self.copied = 0
        self.teams: set[int] = set()
        self.aligned: list[int] = []  # what each moving pointer is a multiple of
        self.launches: list[tuple[int, int]] = []  # blocks and threads of each call

    def static(self, ty: str, word: Word) -> Static:
        """The number of an argument; equal ones are one."""
        key = (ty, word)
        if key not in self.known:
            self.known[key] = len(self.words)
            self.types.append(ty)
            self.words.append(word)
        return self.known[key]

    def number(self, value: int, size: int = 8) -> Static:
        return self.static(f"i{8 * size}", value.to_bytes(size, "little", signed=True))

    def _ranges(self) -> tuple[list[Range], list[Range]]:
        step, r, frame = self.step, self.r, self.frame
        reads = [r._range(frame, s) for s in step.inputs]
        writes = [r._range(frame, s) for s in (*step.outputs, *step.second)]
        room = max((frame.plan.plans[p].arena_bytes for p in step.plans), default=0)
        arena = frame.address(step.arena)
        writes.append((arena, arena + room))
        if not step.counted:
            writes.append(r._range(frame, step.flag))
        return reads, writes

    def _sliced(self, slot: int) -> Sliced:
        start = self.frame.address(slot)
        each = self.frame.plan.slots[slot].type.nbytes // max(self.step.length, 1)
        self.aligned.append(gcd(start, each))
        return Sliced(self.static(POINTER, start), self.number(each))

    def _items(
        self, which: int, inputs: Sequence[Address], outputs: Sequence[Address]
    ) -> list[Item]:
        """The steps of a plan below, as a round has them."""
        below = self.r._below(self.frame, which, inputs, outputs, self.step.arena)
        found: list[Item] = []
        for step in below.plan.steps:
            if isinstance(step, KernelStep):
                found += self._kernel(below, step)
            elif isinstance(step, CopyStep):
                size = below.plan.slots[step.source].type.nbytes
                target, source = below.address(step.target), below.address(step.source)
                if size and target != source:
                    found.append(self._copy(target, source, size))
        return found

    def _copy(self, target: Address, source: Address, nbytes: int) -> Copy:
        unit = _unit(gcd(nbytes, self._multiple(target), self._multiple(source)))
        self.copied += nbytes
        units = self.number(nbytes // unit, 4)
        return Copy(self._pointer(target), self._pointer(source), units, unit)

    def _multiple(self, address: Address) -> int:
        found = place_of(address)
        if found is None or found[0] < MOVING:
            return address
        return gcd(self.aligned[found[0] - MOVING], found[1])

    def _pointer(self, address: Address) -> Static | Moving:
        found = place_of(address)
        if found is None or found[0] < MOVING:
            return self.static(POINTER, address)
        return found[0] - MOVING, found[1]

    def _kernel(self, frame: DeviceFrame, step: KernelStep) -> list[Call]:
        around = self.r.around
        found = around.kernels[frame.plan.call(step)]
        text = found.code.text
        if found.partial or any(launch.cluster > 1 for launch in text.launches):
            raise NotOneFunction
        self.kernels[text.name] = text
        parts = parts_of(text)
        buffers = [frame.address(slot) for slot in step.slots]
        calls = []
        for launch, named in zip(found.launches, text.launches, strict=True):
            part = parts.get(named.name)
            if part is None:  # other kernels have it, too
                raise NotOneFunction
            if not launch.blocks:
                continue
            self.work += launch.blocks * launch.threads
            if part.team:
                self.teams.add(launch.threads)
            words = found.words(launch, buffers, step.params, around.partials[0], around.fault)
            given = tuple(
                self._pointer(word) if isinstance(word, int) else self.static(ty, word)
                for ty, word in zip(part.types, words, strict=True)
            )
            self.launches.append((launch.blocks, launch.threads))
            calls.append(Call(part, self.number(launch.blocks, 4), given))
        return calls


class _BlockLoopRecorder(LoopRecorder):
    def record(self) -> None:
        step, frame, around = self.step, self.frame, self.r.around
        first = step.captures + step.carries
        captures = [frame.address(s) for s in step.inputs[: step.captures]]
        carries = [self._carry(n) for n in range(step.carries)]
        sliced = [*step.inputs[first:], *step.outputs[step.carries :]]
        moved = [self._sliced(slot) for slot in sliced]
        moving = [place_address(MOVING + n) for n in range(2 * step.carries + len(sliced))]
        now, made = moving[: step.carries], moving[step.carries : 2 * step.carries]
        own = moving[2 * step.carries :]
        count = len(step.inputs) - first
        round_ = self._items(step.plans[-1], [*captures, *now, *own[:count]], [*made, *own[count:]])
        condition: list[Item] = []
        if not step.counted:
            flag = frame.address(step.flag)
            condition = self._items(step.plans[0], [*captures, *now], [flag])
        threads, fault = self._threads(), self.static(POINTER, around.fault)
        length = self.number(step.length) if step.counted else None
        flagged = None if step.counted else self.static(POINTER, frame.address(step.flag))
        loop = BlockLoop(
            types=tuple(self.types),
            carries=tuple(carries),
            sliced=tuple(moved),
            condition=tuple(condition),
            round=tuple(round_),
            threads=threads,
            fault=fault,
            length=length,
            flag=flagged,
            reverse=step.reverse,
        )
        kernels = list(self.kernels.values())
        if shared_bytes(kernels) > _SHARED:
            raise NotOneFunction
        name, text = loop_text(loop, kernels, around.target)
        module = around.glue(name, lambda _: text)
        reads, writes = self._ranges()
        self.r.launch(module.function(name), 1, loop.threads, self.words, reads, writes)

    def _threads(self) -> int:
        """Those of the block: as many as functions want whose threads work together."""
        if len(self.teams) > 1 or self.work > _MOST or self.copied > _COPIED:
            raise NotOneFunction
        return next(iter(self.teams), PLAIN)

    def _carry(self, n: int) -> Carry:
        step, frame = self.step, self.frame
        slot = step.outputs[n]
        places = [frame.address(s) for s in (step.inputs[step.captures + n], slot, step.second[n])]
        size = frame.plan.slots[slot].type.nbytes
        exact = gcd(size, *places)
        self.aligned.insert(n, exact)
        self.aligned.append(exact)
        unit = _unit(exact)
        first, final, second = (self.static(POINTER, p) for p in places)
        return Carry(first, final, second, self.number(size // unit, 4), unit)


def _unit(exact: int) -> int:
    return 16 if exact % 16 == 0 else 4 if exact % 4 == 0 else 1
