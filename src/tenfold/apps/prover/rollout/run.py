"""Rollout run: candidates in queues of one shape; those that overflow again, with more room."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np

from tenfold.apps.prover.errors import CapacityError
from tenfold.apps.prover.input.program import Program
from tenfold.apps.prover.outcome import Outcome
from tenfold.apps.prover.resolution.tables import Tables, tables_of
from tenfold.apps.prover.resolution.words import HEIGHT
from tenfold.apps.prover.rollout.loop import Ends, Requests, roll
from tenfold.apps.prover.rollout.policy import Weights
from tenfold.apps.prover.rollout.queue import QUEUE, asked_of
from tenfold.apps.prover.rollout.queue import Lane as Lane

_OUTCOMES = {int(outcome): outcome for outcome in Outcome}
OVERFLOWS = (Outcome.OVERFLOW_STATES, Outcome.OVERFLOW_ATOMS, Outcome.OVERFLOW_VARS)


@dataclass(frozen=True, slots=True)
class Room:
    """How much there is room for: successors of all lanes together, goals and variables of each
    state."""

    successors: int = 576  # no power of two: rows of such a length share cache sets
    goals: int = 12
    variables: int = 11

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

    def more(self, outcome: Outcome) -> Room:
        """Twice the room of what overflowed."""
        if outcome == Outcome.OVERFLOW_STATES:
            return replace(self, successors=2 * self.successors)
        if outcome == Outcome.OVERFLOW_ATOMS:
            if self.goals > 64:
                raise CapacityError(
                    f"more than {self.goals} goals in one state", fix="lower the height or steps"
                )
            return replace(self, goals=2 * self.goals)
        return replace(self, variables=2 * self.variables)


@dataclass(frozen=True, slots=True)
class Search:
    """How to search: the policy's weights (None: uniform), the beam, and the limits."""

    weights: Weights | None = None
    beam: int = 1
    sampled: bool = False
    steps: int = 20
    height: int = 10
    room: Room = Room()
    overflow: str = "grow"  # error, grow or mark
    batch: int | None = None  # lanes that search together; None: as many as suit the program
    backend: str = "compiled"
    threads: int = 0  # that search at once, each with its own part of the queue; 0: one a core
    mask: int = 2**64 - 1  # which bits of a state's hash count; fewer for tests of collisions

    def __post_init__(self) -> None:
        if self.overflow not in ("error", "grow", "mark"):
            raise CapacityError(f"overflow is {self.overflow!r}", fix="say error, grow or mark")
        if self.beam < 1 or (self.sampled and self.beam > 1):
            raise CapacityError(f"a beam of {self.beam}", fix="1 or more; 1 if sampled")
        if self.height >= 1 << 10:
            raise CapacityError(f"a height of {self.height}", fix="give less than 1024")


class LaneResult(NamedTuple):
    """How a lane ended. Score and choices are those of the proof where there is one."""

    outcome: Outcome
    score: float
    height: int | None
    length: int
    choices: tuple[int, ...]
    near: int = 0  # choices within rounding of another


def lanes_for(program: Program) -> int:
    """Lanes that fill the slots of a round: few where states have many successors, since a lane
    that waits is work for nothing. A power of two from 32 to 128, by trials with several sets: more
    lanes do more at once, but all wait for the last."""
    wanted = (1 << 28) // max(1, _most_successors(program)) ** 2
    return min(128, max(32, 1 << wanted.bit_length() >> 1))


def _most_successors(program: Program) -> int:
    """The most that a state may have."""
    facts = Counter(fact[0] for fact in program.facts)
    clauses = Counter(clause.head[0] for clause in program.clauses)
    return max((facts[p] + clauses[p] for p in {*facts, *clauses}), default=0)


class Rollout:
    """A search made ready for a program: its tables are built once.

    >>> from tenfold.apps.prover.input.program import Clause
    >>> swap = Clause((0, -1, -2), ((0, -2, -1),))
    >>> rollout = Rollout(Program(("p",), ("a", "b"), ((0, 0, 1),), (swap,)), Search())
    >>> [r.outcome.name for r in rollout.run([Lane((0, 1, 0)), Lane((0, 1, 1))])]
    ['PROVED', 'GAVE_UP']
    """

    def __init__(self, program: Program, search: Search) -> None:
        if search.batch is None:
            search = replace(search, batch=lanes_for(program))
        self.program = program
        self.search = search
        self.tables = tables_of(program)
        check_words(program, int(self.tables.bits))

    def run(self, lanes: Sequence[Lane]) -> list[LaneResult]:
        """Every lane's end, in order; no batch, padding, thread or first room changes any."""
        search, program = self.search, self.program
        results: dict[int, LaneResult] = {}
        left: dict[Room, list[int]] = {search.room: list(range(len(lanes)))}
        while left:
            room = min(left, key=lambda r: (r.goals, r.successors, r.variables))
            numbers = left.pop(room)
            for number, result in zip(
                numbers, self._roll([lanes[i] for i in numbers], room), strict=True
            ):
                if result.outcome in OVERFLOWS and search.overflow == "grow":
                    left.setdefault(room.more(result.outcome), []).append(number)
                elif result.outcome in OVERFLOWS and search.overflow == "error":
                    raise CapacityError(
                        f"{result.outcome.name} of {program.name(lanes[number].triple)} at {room}",
                        fix="give more room, or say overflow grow or mark",
                    )
                else:
                    results[number] = result
        return [results[i] for i in range(len(lanes))]

    def _roll(self, lanes: Sequence[Lane], room: Room) -> list[LaneResult]:
        """How lanes end with so much room; several threads share them."""
        if not lanes:
            return []
        search = self.search
        threads = search.threads or _cores()
        # each thread has its share of every query's lanes, so that all end at about one time
        count = min(len(lanes), threads * -(-len(lanes) // (threads * QUEUE)))
        parts = [lanes[i::count] for i in range(count)]
        options = options_of(search, room)
        shapes = (*options.values(), *(np.shape(t) for t in _leaves(self.tables)))
        kind = None if search.weights is None else tuple(w.shape for w in search.weights)
        if roll.is_new(search.backend, *shapes, kind):
            short = self.asked(parts[0], room)._replace(steps=np.int64(1))
            roll.on(search.backend)(short, self.tables, search.weights, **options)

        def ends(part: Sequence[Lane]) -> list[LaneResult]:
            return self._ends(part, room)

        if count == 1 or threads == 1:
            made = [ends(part) for part in parts]
        else:
            with ThreadPoolExecutor(threads) as pool:
                made = list(pool.map(ends, parts))
        return [made[i % count][i // count] for i in range(len(lanes))]

    def asked(self, lanes: Sequence[Lane], room: Room) -> Requests:
        """Lanes as a queue."""
        search = self.search
        return asked_of(
            lanes, self.tables, room.variables, room.successors, search.height, search.steps,
            search.mask,
        )  # fmt: skip

    def _ends(self, lanes: Sequence[Lane], room: Room) -> list[LaneResult]:
        search = self.search
        options = options_of(search, room)
        asked = self.asked(lanes, room)
        ends, *_ = roll.on(search.backend)(asked, self.tables, search.weights, **options)
        return rolled(Ends(*ends), len(lanes), search.height)


def rolled(ends: Ends, count: int, height: int) -> list[LaneResult]:
    """The ends of the first so many lanes of a queue."""
    outcomes, lowest, lengths, nears = ends.rest[:count].T
    proved = outcomes == Outcome.PROVED
    heights = [h if p else None for h, p in zip((height - lowest).tolist(), proved, strict=True)]
    return list(
        map(
            LaneResult,
            map(_OUTCOMES.__getitem__, outcomes.tolist()),
            ends.scores[:count].tolist(),
            heights,
            lengths.tolist(),
            _ways(ends.choices[:count], lengths),
            nears.tolist(),
        )
    )


def _ways(choices: Any, lengths: Any) -> list[tuple[int, ...]]:
    """The successors chosen by each lane, of [lanes, steps, beam] choices."""
    if choices.shape[2] > 1:
        return [
            _way(codes[:length], choices.shape[2])
            for codes, length in zip(choices.tolist(), lengths.tolist(), strict=True)
        ]
    used = np.arange(choices.shape[1]) < lengths[:, None]
    flat = tuple(choices[:, :, 0][used].tolist())
    ends = np.cumsum(lengths).tolist()
    return [flat[a:b] for a, b in pairwise([0, *ends])]


def _cores() -> int:
    """How many cores this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def _leaves(tables: Tables) -> list[Any]:
    """The arrays of tables, without the tuples around them."""
    return [leaf for part in tables for leaf in (part if isinstance(part, tuple) else (part,))]


def check_words(program: Program, bits: int) -> None:
    """An error where a goal does not fit one integer; `bits` are those of a term in a word."""
    bits = 2 * bits + (len(program.predicates) + 1).bit_length() + HEIGHT
    if bits > 62:
        raise CapacityError(
            f"a goal of {len(program.predicates)} predicates and {len(program.constants)} "
            f"constants takes {bits} bits, more than 62",
            fix="split the data set",
        )


def options_of(search: Search, room: Room) -> dict[str, Any]:
    """What a rollout is traced for."""
    return {
        "slots": room.successors,
        "lanes": search.batch,
        "size": room.goals,
        "names": room.variables,
        "beam": search.beam,
        "most": max(1, search.steps),
        "sampled": search.sampled,
    }


def _way(codes: list[list[int]], beam: int) -> tuple[int, ...]:
    """The successors chosen, from the first state to the best of the last step."""
    way: list[int] = []
    at = 0
    for chosen in reversed(codes):
        choice, at = divmod(chosen[at], beam)
        way.append(choice)
    return tuple(reversed(way))
