"""Stable sorts of lines, and the few greatest of them: every bit as the CPU gives it.

Lines of up to a tile are sorted by a workgroup, several of them where they are short. Longer ones
are tiles that are sorted, then runs that are merged, twice as long each time. The few greatest of a
long line are the greatest of the greatest of its tiles, or the first ones of a sort where they are
not few.
"""

from __future__ import annotations

from tenfold.backends.webgpu.library.elements import bits_of
from tenfold.backends.webgpu.library.routine import Given, Launch, Routine
from tenfold.backends.webgpu.library.sort_text import (
    FIRST,
    OUTSIDE,
    SECOND,
    TILE,
    SortForm,
    Step,
    sort_shader,
)
from tenfold.types import SHORT, TensorType

_LONGEST = 1 << 31  # elements of a line: positions have 32 bits


def sort_routine(name: str, type: TensorType, given: Given) -> Routine | None:
    """The routine of a sort along the last axis, of positions or of elements."""
    if not _sorts(type) or given["axis"] != type.rank - 1:
        return None
    positions = name == "argsort"
    form = SortForm(SHORT[type.dtype], False, not positions, positions)
    return _Calls(form, type).sort(type.shape[-1])


def greatest_routine(type: TensorType, k: int) -> Routine | None:
    """The routine for the k greatest elements along the last axis, and their positions."""
    if not _sorts(type) or not k:
        return None
    calls = _Calls(SortForm(SHORT[type.dtype], True, True, True), type)
    return calls.greatest(k) if 2 * k <= TILE or calls.n <= TILE else calls.sort(k)


def _sorts(type: TensorType) -> bool:
    dtype = SHORT[type.dtype]
    return bool(type.size) and dtype[0] != "c" and type.shape[-1] < _LONGEST


class _Calls:
    """The launches of a sort."""

    def __init__(self, form: SortForm, type: TensorType) -> None:
        self.form, self.n = form, type.shape[-1]
        self.lines = type.size // self.n
        self.size = 8 if form.type != "u32" else 4
        self.steps: list[Step] = []
        self.launches: list[Launch] = []
        self.kept: dict[str, int] = {}  # items of a line at a place in scratch

    def step(self, step: Step, n: int, keep: int, following: int, run: int = 0) -> None:
        """One launch, of lines of n items: what is kept of a tile, or of a merge; how many items
        of a line there are after it; how long merged runs are."""
        tiles = -(-n // (step.size or TILE))
        lines = self.lines
        if step.size:
            lines = -(-lines // (TILE // step.size))
        words = (n, self.lines, tiles, keep, following, run)
        self.launches.append(Launch(step.name, lines * tiles, words))
        self.steps.append(step)
        if step.target != OUTSIDE:
            self.kept[step.target] = max(self.kept.get(step.target, 0), following)

    def routine(self) -> Routine:
        places = [self.lines * self.kept[p] for p in sorted(self.kept)]
        scratch = [count * self.size for count in places]
        largest = self.lines * self.n * bits_of(self.form.dtype) // 8
        if self.form.positions:
            scratch += [4 * count for count in places]
            largest = max(largest, 8 * self.lines * self.launches[-1].words[4])
        return Routine(
            sort_shader(self.form, self.steps), tuple(self.launches), largest, tuple(scratch)
        )

    def sort(self, keep: int) -> Routine:
        """All in order, and so many of them kept."""
        n = self.n
        if n <= TILE:
            self.step(Step(_size(n), OUTSIDE, OUTSIDE), n, keep, keep)
            return self.routine()
        source, other, run = FIRST, SECOND, TILE
        self.step(Step(TILE, OUTSIDE, source), n, TILE, n)
        while 2 * run < n:
            self.step(Step(0, source, other), n, n, n, run)
            source, other, run = other, source, 2 * run
        self.step(Step(0, source, OUTSIDE), n, keep, keep, run)
        return self.routine()

    def greatest(self, k: int) -> Routine:
        """The greatest of each tile, of those again, until there is one tile."""
        source, target, n = OUTSIDE, FIRST, self.n
        while n > TILE:
            left = n - (n - 1) // TILE * TILE
            following = (n - 1) // TILE * k + min(k, left)
            self.step(Step(TILE, source, target), n, k, following)
            source, target, n = target, SECOND if target == FIRST else FIRST, following
        self.step(Step(_size(n), source, OUTSIDE), n, k, k)
        return self.routine()


def _size(n: int) -> int:
    """Items that a line of n is sorted as.

    >>> _size(1), _size(5), _size(8)
    (2, 8, 8)
    """
    size: int = max(2, 1 << (n - 1).bit_length())
    return size
