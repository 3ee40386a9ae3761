"""Room: how much the arrays of a rollout hold, and how many lanes share it."""

from __future__ import annotations

import os
from collections import Counter
from dataclasses import dataclass, replace

from tenfold.apps.prover.backend import is_device
from tenfold.apps.prover.input.program import Program
from tenfold.apps.prover.outcome import Outcome

QUEUE = 4096  # candidates of one call
GOALS = 64  # of a state that is given more
WAYS = 1 << 22  # choices that the candidates of one call may come to
DEVICE_LANES = 1 << 13  # on a GPU, of one state each
DEVICE_SLOTS = 4  # of each of these states


@dataclass(frozen=True, slots=True)
class Room:
    """How much there is room for: successors of all lanes together, goals and variables of each
    state, and steps of each lane."""

    successors: int = 576  # no power of two: rows of such a length share cache sets
    goals: int = 12
    variables: int = 11
    steps: int = 64  # of one lane

    @staticmethod
    def of(program: Program, variables: int, height: int) -> Room:
        """Room for the successors of any one state of a program, unless these are very many; for
        so many variables at most; and for all goals that there can be within a height, or for few
        to begin with, where there could be many."""
        room = Room()
        most = _most_successors(program)
        # a multiple of 64 that is an odd one of these, for the caches' sake
        count = max(room.successors, min(-(-most // 128) * 128 + 64, 1 << 16))
        # a clause puts its body in a goal's place, and each goal of it has a height less left
        longest = max((len(clause.body) for clause in program.clauses), default=1)
        goals = 1 + height * max(0, longest - 1)
        return Room(count, goals if goals <= room.goals else 6, min(variables, room.variables))

    def more(self, outcome: Outcome, names: int) -> Room | None:
        """Twice the room of what overflowed; None if a state would be larger than any may be. Words
        have bits for so many `names` of variables."""
        if outcome == Outcome.OVERFLOW_STATES:
            return replace(self, successors=2 * self.successors)
        if outcome == Outcome.OVERFLOW_ATOMS:
            return None if self.goals > GOALS else replace(self, goals=2 * self.goals)
        if outcome == Outcome.OVERFLOW_STEPS:
            return replace(self, steps=4 * self.steps)
        if self.variables >= names:
            return None
        return replace(self, variables=min(2 * self.variables, names))

    def queue(self, beam: int, most: int = QUEUE) -> int:
        """Candidates of one call: fewer where their ways may be long, so that these stay small."""
        return max(1, min(most, WAYS // (self.steps * beam)))


@dataclass(frozen=True, slots=True)
class Batch:
    """How much goes together on a backend: candidates of one call, lanes that search at once, slots
    for successors that each lane adds to those of the room, calls at a time; of an exhaustive
    search candidates at once, and successors of one piece."""

    queue: int
    lanes: int
    slots: int = 0
    threads: int = 1
    exhausted: int = 64
    piece: int = 1 << 12

    @staticmethod
    def of(backend: str, program: Program, beam: int, lanes: int | None = None) -> Batch:
        """What suits a backend, with so many lanes if they are given. On a GPU a round takes about
        as long for thousands of lanes as for one."""
        if not is_device(backend):
            return Batch(QUEUE, lanes or lanes_for(program, beam), threads=_cores())
        lanes = lanes or max(1, DEVICE_LANES // beam)
        queue = max(QUEUE, 4 * lanes)
        return Batch(queue, lanes, DEVICE_SLOTS * beam, exhausted=1 << 10, piece=1 << 15)

    def within(self, room: Room, beam: int) -> Batch:
        """As much of it as goes with a room: each lane keeps all states of its way."""
        queue = room.queue(beam, self.queue)
        return replace(self, queue=queue, lanes=max(1, min(self.lanes, queue // 4)))


def lanes_for(program: Program, beam: int = 1) -> int:
    """Lanes that fill the slots of a round: few where states have many successors, since a lane
    that waits is work for nothing. Each state of a beam is matched with all clauses of its goal, so
    beams share what one lane for each state would have. A power of two, by trials with several
    sets: more lanes do more at once, but all wait for the last."""
    wanted = (1 << 28) // max(1, _most_successors(program)) ** 2
    lanes = min(128, max(32, 1 << wanted.bit_length() >> 1))
    return max(4, lanes // (1 << (beam - 1).bit_length()))


def _cores() -> int:
    """How many cores this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def _most_successors(program: Program) -> int:
    """The most that a state may have."""
    facts = Counter(fact[0] for fact in program.facts)
    clauses = Counter(clause.head[0] for clause in program.clauses)
    return max((facts[p] + clauses[p] for p in {*facts, *clauses}), default=0)
