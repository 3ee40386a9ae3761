"""What the rollouts in JAX and in PyTorch share: where a search stands, the room it takes, and how
a queue is handed over.

They read the same tables and the same queue as `tenfold.apps.prover`, overflow and grow as it does,
and take shapes of their own: what suits one library's loops need not suit another's.
"""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

from tenfold.apps.prover.input.program import Program
from tenfold.apps.prover.outcome import Outcome
from tenfold.apps.prover.rollout.loop import RUNNING, Ends, Requests
from tenfold.apps.prover.rollout.queue import Lanes
from tenfold.apps.prover.rollout.results import LaneResults
from tenfold.apps.prover.rollout.room import Room, lanes_for
from tenfold.apps.prover.rollout.run import Rollout, options_of, rolled
from tenfold.apps.prover.rollout.run import Search as How
from tenfold.apps.prover.rollout.usage import Capacity

A = Any
GRAVE = tuple(
    int(outcome)
    for outcome in (
        Outcome.GAVE_UP,
        RUNNING,
        Outcome.PROVED,
        Outcome.OVERFLOW_VARS,
        Outcome.OVERFLOW_ATOMS,
        Outcome.OVERFLOW_STATES,
    )
)
PROVED, DEPTH = int(Outcome.PROVED), int(Outcome.DEPTH)


class Search(NamedTuple):
    """Where the search stands; the last row of what is by candidate is for none."""

    words: A
    live: A
    scores: A
    lowest: A
    hashes: A
    sums: A
    past: A
    past_words: A
    number: A
    step: A
    near: A
    ends: Ends
    next: A


class Sizes(NamedTuple):
    """What a rollout is traced for."""

    slots: int
    lanes: int
    size: int
    names: int
    most: int

    def patterns(self, clauses: int) -> int:
        """Room for the patterns of a round, if a predicate has so many clauses at most."""
        return min(self.slots, max(3 * self.lanes + 32, 1 + clauses))

    def places(self) -> int:
        """Of the table in which repetitions are found."""
        return 1 << (8 * self.slots - 1).bit_length()


@dataclass(frozen=True, slots=True)
class Shape:
    """How a library goes about it: so many times the slots and lanes of Tenfold, and how many
    threads search at once, each with its own part of the queue."""

    slots: int
    lanes: int
    threads: int


# The fastest of those tried with countries_s3 and family, on two busy cores, by seconds of the
# processor. Slots and lanes tried: JAX 1 and 1, 1 and 2, 2 and 4, 4 and 8 times Tenfold's, with one
# thread and with two; PyTorch 1 and 1, 1 and 2, 3 and 4, 4 and 8, compiled as well from 1 and 2 on.
# An operation by itself costs PyTorch so much that many lanes must share it.
JAX, TORCH = Shape(1, 1, 2), Shape(4, 8, 1)


class Peer(Rollout):
    """A rollout by another library: `run` answers as Tenfold's does."""

    def __init__(
        self, program: Program, search: How, shape: Shape, roll: Callable[[Requests, Sizes], Ends]
    ) -> None:
        room = replace(search.room, successors=shape.slots * search.room.successors)
        lanes = shape.lanes * (search.batch or lanes_for(program))
        super().__init__(program, replace(search, room=room, batch=lanes, threads=shape.threads))
        self.roll = roll
        self.met: set[Sizes] = set()

    def _roll(self, lanes: Lanes, room: Room, fit: Capacity) -> LaneResults:
        threads = self.search.threads
        count = min(
            len(lanes), threads * -(-len(lanes) // (threads * room.queue(self.search.beam)))
        )
        parts = [lanes[i::count] for i in range(count)]
        options = options_of(self.search, room, fit.lanes)
        sizes = Sizes(*(options[name] for name in Sizes._fields))
        if sizes not in self.met:  # compiled once, before threads share it
            self.met.add(sizes)
            self.roll(self.asked(parts[0][: sizes.lanes], room), sizes)

        def ends(part: Lanes) -> LaneResults:
            made = self.roll(self.asked(part, room), sizes)
            return rolled(made, len(part), self.search.height)

        with ThreadPoolExecutor(threads) as pool:
            made = list(pool.map(ends, parts))
        return LaneResults.dealt(made)
