"""Cells: the slots of a plan in the making.

A cell lives from the first step that touches it to the last. Where a step reads one for the last
time and writes another element for element, the two may share memory.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence

from tenfold.frozen import mutable
from tenfold.plan.steps.plan import ARENA, INPUT, OUTPUT, Slot
from tenfold.plan.steps.slots import Request, greatest_live, lay_out
from tenfold.types import TensorType


@mutable
class Cell:
    """A slot in the making."""

    type: TensorType
    place: str = ARENA
    number: int = 0
    first: int = -1
    last: int = -1
    share: int = -1  # the cell whose memory it takes over
    part: int = -1  # the cell it is a range of, from `shift` bytes on
    shift: int = 0


class Cells:
    """All cells of a plan, by number."""

    def __init__(self) -> None:
        self.cells: list[Cell] = []
        self.candidates: list[tuple[int, int, int]] = []  # step, input, target: in place
        self.instead: list[tuple[int, int, int]] = []  # such as could take a candidate's place
        self._into: dict[int, int] = {}  # by cell: one on the way to its head, if not the head
        self.safe: tuple[tuple[int, int], ...] = ()  # inputs and outputs that may share memory

    def __getitem__(self, number: int) -> Cell:
        return self.cells[number]

    def new(self, type: TensorType, place: str = ARENA, number: int = 0) -> int:
        self.cells.append(Cell(type, place, number))
        return len(self.cells) - 1

    def range(self, whole: int, shift: int) -> int:
        """A cell for what lies in another from some byte on."""
        cell = self.cells[whole]
        made = self.new(cell.type, cell.place, cell.number)
        self.cells[made].part, self.cells[made].shift = whole, shift
        return made

    def touch(self, step: int, numbers: Iterable[int]) -> None:
        """A step reads or writes these cells."""
        for number in numbers:
            cell = self.cells[number]
            if cell.part >= 0:
                cell = self.cells[cell.part]
            cell.first = step if cell.first < 0 else cell.first
            cell.last = step

    def may_share(self, step: int, source: int, target: int) -> None:
        """A step reads one cell and writes another, element for element."""
        self.candidates.append((step, source, target))

    def lay_out(self, donated: Collection[int], device: str) -> tuple[tuple[Slot, ...], int, int]:
        """The slots, the bytes of the arena, and the most bytes that live at once. Inputs that are
        `donated` may be shared as well."""
        cells = self.cells
        for at, source, target in self.candidates:
            a, b = cells[source], cells[target]
            ours = a.place == ARENA or (a.place == INPUT and a.number in donated)
            if not ours or a.last != at or b.first != at or source == target:
                continue
            if a.part >= 0 or b.part >= 0:
                continue
            if b.place == ARENA and b.share < 0:
                b.share = source
            elif b.place == OUTPUT and cells[self._head(source)].place == ARENA:
                cells[self._head(source)].share = target  # made where it is handed out
        owner = [self._head(number) for number in range(len(cells))]
        self.safe = self._safe(owner)
        for number, cell in enumerate(cells):
            head = cells[owner[number]]
            head.last = max(head.last, cell.last)
        asked = [
            n for n, cell in enumerate(cells)
            if cell.place == ARENA and owner[n] == n and cell.first >= 0
        ]  # fmt: skip
        requests = [Request(cells[n].type.nbytes, cells[n].first, cells[n].last) for n in asked]
        offsets, total = lay_out(requests)
        at_offset = dict(zip(asked, offsets, strict=True))
        slots = tuple(
            Slot(
                c.type,
                cells[owner[n]].place,
                cells[owner[n]].number,
                at_offset.get(owner[n], 0) + c.shift,
                device,
            )
            for n, c in enumerate(cells)
        )
        return slots, total, greatest_live(requests)

    def _safe(self, owner: Sequence[int]) -> tuple[tuple[int, int], ...]:
        """Inputs that may share memory with outputs: read for the last time by the step that first
        writes where the output will lie, element for element."""
        firsts: dict[int, int] = {}  # of everything that lies in a cell
        for cell, head in zip(self.cells, owner, strict=True):
            if cell.first >= 0:
                firsts[head] = min(cell.first, firsts.get(head, cell.first))
        found = []
        for at, source, target in (*self.candidates, *self.instead):
            a, b = self.cells[source], self.cells[owner[target]]
            if a.place == INPUT and b.place == OUTPUT and a.last == firsts[owner[target]] == at:
                found.append((a.number, b.number))
        return tuple(found)

    def _head(self, cell: int) -> int:
        """The cell whose memory this one lies in. A head stays one or comes to share another's
        memory, so the way to it is looked at once."""
        cells, into = self.cells, self._into
        path = []
        while True:
            one = cells[cell]
            further = max(one.part, one.share)
            if further < 0:
                break
            path.append(cell)
            cell = into.get(cell, further)
        into.update(dict.fromkeys(path, cell))
        return cell
