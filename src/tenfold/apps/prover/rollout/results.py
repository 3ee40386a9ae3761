"""Results: how lanes ended, a column for each thing that is known of all of them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, overload

import numpy as np

from tenfold.apps.prover.outcome import Outcome

Column = np.ndarray[Any, Any]
NO_HEIGHT = -1
_OUTCOMES = {int(outcome): outcome for outcome in Outcome}


class LaneResult(NamedTuple):
    """How a lane ended. Score and choices are those of the proof where there is one."""

    outcome: Outcome
    score: float
    height: int | None
    length: int
    choices: tuple[int, ...]
    near: int = 0  # choices within rounding of another


LOST = LaneResult(Outcome.OVERFLOW_STATES, 0.0, None, 0, ())  # a lane that had no room at all


@dataclass(frozen=True, slots=True)
class LaneResults(Sequence[LaneResult]):
    """How many lanes ended; one by itself is a LaneResult.

    >>> made = LaneResults.of([LOST, LaneResult(Outcome.PROVED, -1.0, 1, 1, (0,))])
    >>> made[0] == LOST, made.outcomes.tolist(), made[1:].choices
    (True, [4, 0], [(0,)])
    """

    outcomes: Column
    scores: Column
    heights: Column  # NO_HEIGHT where there is no proof
    lengths: Column
    nears: Column
    choices: list[tuple[int, ...]]

    @staticmethod
    def of(ends: Sequence[LaneResult]) -> LaneResults:
        """These very ends."""
        if isinstance(ends, LaneResults):
            return ends
        made = LaneResults.lost(len(ends))
        for n, end in enumerate(ends):
            made[n] = end
        return made

    @staticmethod
    def lost(count: int) -> LaneResults:
        """Lanes of which nothing is known yet."""
        none = np.zeros(count, np.int64)
        code = np.full(count, int(LOST.outcome))
        return LaneResults(code, np.zeros(count), none + NO_HEIGHT, none, none.copy(), [()] * count)

    @staticmethod
    def dealt(parts: Sequence[LaneResults]) -> LaneResults:
        """Those of lanes that were dealt out in turn: `lanes[i::n]` to part i of n."""
        made = LaneResults.lost(sum(map(len, parts)))
        for i, part in enumerate(parts):
            made.put(slice(i, None, len(parts)), part)
        return made

    def _columns(self) -> tuple[Column, ...]:
        return self.outcomes, self.scores, self.heights, self.lengths, self.nears

    def __len__(self) -> int:
        return len(self.choices)

    @overload
    def __getitem__(self, at: int) -> LaneResult: ...

    @overload
    def __getitem__(self, at: slice) -> LaneResults: ...

    def __getitem__(self, at: Any) -> Any:
        if isinstance(at, slice):
            parts: list[Any] = [*(column[at] for column in self._columns()), self.choices[at]]
            return LaneResults(*parts)
        outcome, score, height, length, near = (column[at].item() for column in self._columns())
        known = None if height == NO_HEIGHT else height
        return LaneResult(_OUTCOMES[outcome], score, known, length, self.choices[at], near)

    def __setitem__(self, at: int, end: LaneResult) -> None:
        height = NO_HEIGHT if end.height is None else end.height
        parts = (int(end.outcome), end.score, height, end.length, end.near)
        for column, value in zip(self._columns(), parts, strict=True):
            column[at] = value
        self.choices[at] = end.choices

    def __iter__(self) -> Iterator[LaneResult]:
        outcomes, scores, heights, lengths, nears = (c.tolist() for c in self._columns())
        known = [None if height == NO_HEIGHT else height for height in heights]
        named = map(_OUTCOMES.__getitem__, outcomes)
        return map(LaneResult, named, scores, known, lengths, self.choices, nears)

    def put(self, numbers: Any, ends: LaneResults) -> None:
        """Take over how the lanes of these numbers ended: a slice, or numbers in a list."""
        for mine, theirs in zip(self._columns(), ends._columns(), strict=True):
            mine[numbers] = theirs
        if isinstance(numbers, slice):
            self.choices[numbers] = ends.choices
            return
        for number, way in zip(numbers, ends.choices, strict=True):
            self.choices[number] = way
