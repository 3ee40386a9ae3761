"""Rollout run: candidates in queues of one shape; those that overflow again, with more room."""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from itertools import pairwise
from typing import Any

import numpy as np

from tenfold.apps.prover.errors import CapacityError
from tenfold.apps.prover.footprint import footprint
from tenfold.apps.prover.input.program import Program
from tenfold.apps.prover.outcome import OVERFLOWS, Outcome
from tenfold.apps.prover.resolution.tables import Tables, most_names, tables_of
from tenfold.apps.prover.resolution.words import HEIGHT
from tenfold.apps.prover.rollout.loop import Ends, Requests, roll
from tenfold.apps.prover.rollout.policy import Weights
from tenfold.apps.prover.rollout.queue import Lane as Lane
from tenfold.apps.prover.rollout.queue import Lanes, asked_of
from tenfold.apps.prover.rollout.results import LOST as LOST
from tenfold.apps.prover.rollout.results import NO_HEIGHT, LaneResults
from tenfold.apps.prover.rollout.results import LaneResult as LaneResult
from tenfold.apps.prover.rollout.room import Batch, Room
from tenfold.apps.prover.rollout.usage import Capacity, Usage, megabytes

_OVERFLOWS = [int(outcome) for outcome in OVERFLOWS]


@dataclass(frozen=True, slots=True)
class Search:
    """How to search: the policy's weights (None: uniform), the beam, and the limits."""

    weights: Weights | None = None
    beam: int = 1
    sampled: bool = False
    steps: int = 20
    height: int = 10
    room: Room = field(default_factory=Room)
    overflow: str = "grow"  # error, grow or mark
    # lanes that search together; None: as many as suit the program and the backend
    batch: int | None = None
    backend: str = "compiled"
    # that search at once, each with its own part of the queue; 0: as many as suit the backend
    threads: int = 0
    mask: int = 2**64 - 1  # which bits of a state's hash count; fewer for tests of collisions
    memory: int | None = None  # bytes of arrays, of all threads together
    every_way: bool = True  # whether choices that lead to no proof are kept, too

    def __post_init__(self) -> None:
        if self.overflow not in ("error", "grow", "mark"):
            raise CapacityError(f"overflow is {self.overflow!r}", fix="say error, grow or mark")
        if self.beam < 1 or (self.sampled and self.beam > 1):
            raise CapacityError(f"a beam of {self.beam}", fix="1 or more; 1 if sampled")
        if self.height >= 1 << 10:
            raise CapacityError(f"a height of {self.height}", fix="give less than 1024")


class Rollout:
    """A search made ready for a program: its tables are built once.

    >>> from tenfold.apps.prover.input.program import Clause
    >>> swap = Clause((0, -1, -2), ((0, -2, -1),))
    >>> rollout = Rollout(Program(("p",), ("a", "b"), ((0, 0, 1),), (swap,)), Search())
    >>> [r.outcome.name for r in rollout.run([Lane((0, 1, 0)), Lane((0, 1, 1))])]
    ['PROVED', 'GAVE_UP']
    """

    def __init__(self, program: Program, search: Search, usage: Usage | None = None) -> None:
        self.batch = Batch.of(search.backend, program, search.beam, search.batch)
        if search.batch is None:
            search = replace(search, batch=self.batch.lanes)
        self.program = program
        self.search = search
        self.usage = usage or Usage(search.memory)
        self.tables = tables_of(program)
        self.fits: dict[Room, Capacity | None] = {}
        check_words(program, self.tables, search.room)

    def run(self, lanes: Sequence[Lane]) -> list[LaneResult]:
        """Every lane's end, in order; no batch, padding, thread or first room changes any."""
        return list(self.ends(Lanes.of(lanes)))

    def ends(self, lanes: Lanes) -> LaneResults:
        """The same, as columns."""
        search = self.search
        results = LaneResults.lost(len(lanes))
        left: dict[Room, list[int]] = {search.room: list(range(len(lanes)))}
        while left:
            room = min(left, key=lambda r: (r.goals, r.successors, r.variables, r.steps))
            numbers = left.pop(room)
            fit = self.fit(room)
            if fit is None:  # what more room would find is not known: an end with less room stands
                self.usage.lost += len(numbers)
                continue
            self.usage.note(fit, len(numbers))
            whole = len(numbers) == len(lanes)
            made = self._roll(lanes if whole else lanes.some(numbers), room, fit)
            results.put(slice(None) if whole else numbers, made)
            for n in np.flatnonzero(np.isin(made.outcomes, _OVERFLOWS)).tolist():
                outcome = Outcome(made.outcomes[n])
                # the room for steps is no limit of a lane, only how memory is handed out
                if outcome == Outcome.OVERFLOW_STEPS or search.overflow == "grow":
                    more = room.more(outcome, most_names(self.tables))
                    if more is not None:  # else it ends as the overflow that it is
                        left.setdefault(more, []).append(numbers[n])
                elif search.overflow == "error":
                    raise CapacityError(
                        f"{outcome.name} of {self._name(lanes[numbers[n]])} at {room}",
                        fix="give more room, or say overflow grow or mark",
                    )
        return results

    def _name(self, lane: Lane) -> str:
        return str(self.program.name(lane.triple))

    def fit(self, room: Room) -> Capacity | None:
        """So many lanes and threads as the memory holds with this room; None if it is too little
        for one. Which lanes go together changes no result, so only the last does."""
        if room not in self.fits:
            self.fits[room] = self._fit(room)
        return self.fits[room]

    def _fit(self, room: Room) -> Capacity | None:
        search, batch = self.search, self.batch.within(room, self.search.beam)
        lanes, threads = batch.lanes, search.threads or batch.threads
        while True:
            options = self.options(room, lanes)
            given = (self.asked([], room, options["slots"]), self.tables, search.weights)
            each = footprint(roll.graph(search.backend, *given, **options))
            if search.memory is not None:
                threads = min(threads, search.memory // each)
            if threads:
                sizes = (room.goals, room.variables, _most(search, room), None)
                return Capacity(options["slots"], *sizes, lanes, threads, threads * each)
            if lanes == 1:
                if search.overflow == "error":
                    raise CapacityError(
                        f"{room} takes {megabytes(each)}, more than the memory that is allowed",
                        fix="allow more, or say overflow grow or mark",
                    )
                return None
            lanes, threads = lanes // 2, 1

    def _roll(self, lanes: Lanes, room: Room, fit: Capacity) -> LaneResults:
        """How lanes end with so much room; several threads share them."""
        if not lanes:
            return LaneResults.lost(0)
        search, threads = self.search, fit.threads
        # each thread has its share of every query's lanes, so that all end at about one time
        queue = self.batch.within(room, search.beam).queue
        count = min(len(lanes), threads * -(-len(lanes) // (threads * queue)))
        parts = [lanes[i::count] for i in range(count)]
        options = self.options(room, fit.lanes)
        shapes = (*options.values(), *(np.shape(t) for t in leaves(self.tables)))
        kind = None if search.weights is None else tuple(w.shape for w in search.weights)
        if roll.is_new(search.backend, *shapes, kind):
            short = self.asked(parts[0], room, options["slots"])._replace(steps=np.int64(1))
            roll.on(search.backend)(short, self.tables, search.weights, **options)

        def ends(part: Lanes) -> LaneResults:
            return self._ends(part, room, options)

        if count == 1 or threads == 1:
            made = [ends(part) for part in parts]
        else:
            with ThreadPoolExecutor(threads) as pool:
                made = list(pool.map(ends, parts))
        return LaneResults.dealt(made)

    def options(self, room: Room, lanes: int) -> dict[str, Any]:
        """What a rollout of so many lanes is traced for on this backend."""
        slots = room.successors + self.batch.slots * lanes
        return options_of(self.search, replace(room, successors=slots), lanes)

    def asked(self, lanes: Sequence[Lane], room: Room, slots: int | None = None) -> Requests:
        """Lanes as a queue, for a rollout with so many slots; without, those of the room."""
        search, queue = self.search, self.batch.within(room, self.search.beam).queue
        return asked_of(
            lanes, self.tables, room.variables, slots or room.successors, search.height,
            search.steps, search.mask, queue,
        )  # fmt: skip

    def _ends(self, lanes: Lanes, room: Room, options: dict[str, Any]) -> LaneResults:
        search = self.search
        asked = self.asked(lanes, room, options["slots"])
        ends, *_ = roll.on(search.backend)(asked, self.tables, search.weights, **options)
        return rolled(Ends(*ends), len(lanes), search.height, search.every_way)


def rolled(ends: Ends, count: int, height: int, every_way: bool = True) -> LaneResults:
    """The ends of the first so many lanes of a queue; their ways, or those of proofs alone."""
    outcomes, lowest, lengths, nears = ends.rest[:count].T.astype(np.int64)
    proved = outcomes == Outcome.PROVED
    wanted = np.arange(count) if every_way else np.flatnonzero(proved)
    choices: list[tuple[int, ...]] = [()] * count
    found = _ways(ends.choices[:count][wanted], lengths[wanted])
    for number, way in zip(wanted.tolist(), found, strict=True):
        choices[number] = way
    heights = np.where(proved, height - lowest, NO_HEIGHT)
    return LaneResults(outcomes, ends.scores[:count], heights, lengths, nears, choices)


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


def leaves(tables: Tables) -> list[Any]:
    """The arrays of tables, without the tuples around them."""
    return [leaf for part in tables for leaf in (part if isinstance(part, tuple) else (part,))]


def check_words(program: Program, tables: Tables, room: Room) -> None:
    """An error where a goal does not fit one integer, or the variables of a state do not."""
    bits = 2 * int(tables.bits) + (len(program.predicates) + 1).bit_length() + HEIGHT
    if bits > 62:
        raise CapacityError(
            f"a goal of {len(program.predicates)} predicates and {len(program.constants)} "
            f"constants takes {bits} bits, more than 62",
            fix="split the data set",
        )
    most = most_names(tables)
    if most < 1:
        raise CapacityError(
            f"a rule of {(1 << (int(tables.bits) - 1)) - most} variables does not fit a search",
            fix="say --engine closure, or part the rule in two",
        )
    if room.variables > most:
        raise CapacityError(
            f"variables is {room.variables}, and a state of this data set has room for {most}",
            fix=f"give {most} or less",
        )


def options_of(search: Search, room: Room, lanes: int | None = None) -> dict[str, Any]:
    """What a rollout is traced for: with so many lanes, or those of the search."""
    return {
        "slots": room.successors,
        "lanes": lanes or search.batch,
        "size": room.goals,
        "names": room.variables,
        "beam": search.beam,
        "most": _most(search, room),
        "sampled": search.sampled,
    }


def _most(search: Search, room: Room) -> int:
    """Steps of a lane that there is room for: no more than it may take."""
    return max(1, min(search.steps, room.steps))


def _way(codes: list[list[int]], beam: int) -> tuple[int, ...]:
    """The successors chosen, from the first state to the best of the last step."""
    way: list[int] = []
    at = 0
    for chosen in reversed(codes):
        choice, at = divmod(chosen[at], beam)
        way.append(choice)
    return tuple(reversed(way))
