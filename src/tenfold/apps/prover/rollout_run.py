"""Rollout run: candidates in batches of one shape; those that overflow again, with more room."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from tenfold.apps.prover.draws import as_bits
from tenfold.apps.prover.errors import CapacityError
from tenfold.apps.prover.joins import Packing
from tenfold.apps.prover.outcome import Outcome
from tenfold.apps.prover.policy import Weights
from tenfold.apps.prover.program import Program, Triple
from tenfold.apps.prover.resolution import Base, base_of
from tenfold.apps.prover.rollout import Asked, Lanes, roll, word_bits

OVERFLOWS = (Outcome.OVERFLOW_STATES, Outcome.OVERFLOW_ATOMS, Outcome.OVERFLOW_VARS)


@dataclass(frozen=True, slots=True)
class Room:
    """How much a lane has room for."""

    successors: int = 32
    goals: int = 6
    variables: int = 8

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
    batch: int = 256
    backend: str = "compiled"

    def __post_init__(self) -> None:
        if self.overflow not in ("error", "grow", "mark"):
            raise CapacityError(f"overflow is {self.overflow!r}", fix="say error, grow or mark")
        if self.beam < 1 or (self.sampled and self.beam > 1):
            raise CapacityError(f"a beam of {self.beam}", fix="1 or more; 1 if sampled")
        if self.height >= 1 << 10:
            raise CapacityError(f"a height of {self.height}", fix="give less than 1024")


@dataclass(frozen=True, slots=True)
class Lane:
    """A candidate to prove: its id for random numbers, and the fact it may not use."""

    triple: Triple
    id: int = 0
    without: Triple | None = None


@dataclass(frozen=True, slots=True)
class Rolled:
    """How a lane ended. Score and choices are those of the proof where there is one."""

    outcome: Outcome
    score: float
    height: int | None
    length: int
    choices: tuple[int, ...]
    near: int = 0  # choices within rounding of another


def roll_all(program: Program, lanes: Sequence[Lane], search: Search) -> list[Rolled]:
    """Every lane's end, in order; no batch, padding or first capacity changes any of them.

    >>> from tenfold.apps.prover.program import Clause
    >>> swap = Clause((0, -1, -2), ((0, -2, -1),))
    >>> made = Program(("p",), ("a", "b"), ((0, 0, 1),), (swap,))
    >>> [r.outcome.name for r in roll_all(made, [Lane((0, 1, 0)), Lane((0, 1, 1))], Search())]
    ['PROVED', 'GAVE_UP']
    """
    base = base_of(program)
    check_words(program, base)
    results: dict[int, Rolled] = {}
    left: dict[Room, list[int]] = {search.room: list(range(len(lanes)))}
    while left:
        room = min(left, key=lambda r: (r.goals, r.successors, r.variables))
        numbers = left.pop(room)
        for first in range(0, len(numbers), search.batch):
            part = numbers[first : first + search.batch]
            ended = _roll(program, base, [lanes[i] for i in part], search, room)
            for number, result in zip(part, ended, strict=True):
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


def check_words(program: Program, base: Base) -> None:
    """An error where a goal does not fit one integer."""
    bits = 2 * int(word_bits(base.bits)) + (len(program.predicates) + 1).bit_length() + 10
    if bits > 62:
        raise CapacityError(
            f"a goal of {len(program.predicates)} predicates and {len(program.constants)} "
            f"constants takes {bits} bits, more than 62",
            fix="split the data set",
        )


def asked_of(
    program: Program, base: Base, lanes: Sequence[Lane], search: Search, room: Room
) -> Asked:
    """A batch of lanes in arrays; the last batch is filled with its first lane."""
    packing = Packing(base.bits, base.reverse)
    filled = [*lanes, *[lanes[0]] * (search.batch - len(lanes))]
    bare = [lane.without is not None for lane in filled]
    keys = packing.keys([lane.without or (0, 0, 0) for lane in filled])
    return Asked(
        np.array([lane.triple for lane in filled], np.int64),
        np.where(bare, keys, -1),
        as_bits([lane.id for lane in filled]),
        np.int64(search.height),
        np.int32(len(program.constants)),
        np.log(np.maximum(np.arange(room.successors + 1), 1)),
        np.int64(search.steps),
    )


def options_of(search: Search, room: Room) -> dict[str, Any]:
    """What a rollout is traced for."""
    return {
        "room": room.successors,
        "size": room.goals,
        "names": room.variables,
        "beam": search.beam,
        "most": search.steps,
        "sampled": search.sampled,
    }


def _roll(
    program: Program, base: Base, lanes: Sequence[Lane], search: Search, room: Room
) -> Iterator[Rolled]:
    asked = asked_of(program, base, lanes, search, room)
    options = options_of(search, room)
    shapes = (*options.values(), search.batch, *(np.shape(table) for table in base))
    kind = None if search.weights is None else tuple(w.shape for w in search.weights)
    if roll.is_new(search.backend, *shapes, kind):
        roll.on(search.backend)(asked._replace(steps=np.int64(1)), base, search.weights, **options)
    done = Lanes(*roll.on(search.backend)(asked, base, search.weights, **options))
    for i in range(len(lanes)):
        outcome = Outcome(int(done.outcome[i]))
        length = int(done.length[i])
        proved = outcome == Outcome.PROVED
        yield Rolled(
            outcome,
            float(done.scores[i, 0]),
            search.height - int(done.lowest[i, 0]) if proved else None,
            length,
            _way(done.parents[i], done.choices[i], length),
            int(done.near[i]),
        )


def _way(
    parents: np.ndarray[tuple[int, int], np.dtype[np.int32]],
    choices: np.ndarray[tuple[int, int], np.dtype[np.int32]],
    length: int,
) -> tuple[int, ...]:
    """The successors chosen, from the first state to the best of the last step."""
    way: list[int] = []
    at = 0
    for step in reversed(range(length)):
        way.append(int(choices[step, at]))
        at = int(parents[step, at])
    return tuple(reversed(way))
