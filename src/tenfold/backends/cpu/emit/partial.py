"""Partial results: a reduction of everything to a few numbers, in parts that are joined.

Such a kernel has no axis to be cut along but the reduced one. It is called in three ways:

- `low` is not negative: the whole of it.
- `low` is negative: the part from `~low` to `high` of the axis. What is held in the end, of all
  reductions, is kept in a row of memory, whose address stands behind those of the buffers and of
  how to poll; nothing else is done.
- `high` is negative as well: the rows of `-high` parts, one behind the other, are joined, and all
  that comes after the reductions is done.

Parts begin at multiples of a power of two of chunks, or runs, and are as long but for the last. So
they are stretches of the one tree (`kernel/analyse/reduction`), and joined by position they give
the sum that the whole gives, bit for bit.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from tenfold.backends.cpu.emit.fold import Accumulators, PartialCounter, begun
from tenfold.backends.cpu.emit.state import Position
from tenfold.backends.cpu.run.opcodes import POLL_ROWS
from tenfold.backends.cpu.threads.cut import MOST_ROWS, ROW_BYTES
from tenfold.backends.llvm.writer import size_of

if TYPE_CHECKING:
    from tenfold.backends.cpu.emit.emit import Emitter

_PLACES = MOST_ROWS.bit_length()


def fold_in_parts(
    e: Emitter,
    form: Accumulators,
    extent: int,
    run: Callable[[Position, Position], list[str]],
) -> list[str]:
    """What reductions hold, in this form: of the whole or from parts; or a part is kept."""
    w = e.w
    fold, keep, join, finish = (w.fresh(name) for name in ("fold", "keep", "join", "finish"))
    parted = w.op("icmp slt i64 %low, 0")
    low = w.select(parted, "i64", w.op("xor i64 %low, -1"), "0")
    high = w.select(parted, "i64", "%high", str(extent))
    joining = w.op("icmp slt i64 %high, 0")
    w.put(f"br i1 {joining}, label %{join}, label %{fold}")
    w.label(fold)
    made = run(low, high)
    after_fold = w.block
    w.put(f"br i1 {parted}, label %{keep}, label %{finish}")
    w.label(keep)
    for at, (ty, _), x in zip(_places(e, form, "0"), _slots(form), made, strict=True):
        w.put(f"store {ty} {x}, ptr {at}, align 8")
    answer = w.op("load i32, ptr %fault, align 4") if e.kernel.checks else "0"
    w.put(f"ret i32 {answer}")
    w.label(join)
    joined = _joined(e, form)
    after_join = w.block
    w.put(f"br label %{finish}")
    w.label(finish)
    return [
        w.op(f"phi {ty} [ {x}, %{after_fold} ], [ {y}, %{after_join} ]")
        for (ty, _), x, y in zip(_slots(form), made, joined, strict=True)
    ]


def _joined(e: Emitter, form: Accumulators) -> list[str]:
    """The rows of all parts as one: sums by position, all else one after the other."""
    w, count = e.w, e.w.op("sub i64 0, %high")
    counter = PartialCounter(e, form, _PLACES) if any(m.shaped for m in form) else None

    def one(part: Position, held: list[str]) -> list[str]:
        row = [
            w.op(f"load {ty}, ptr {at}, align 8")
            for at, (ty, _) in zip(_places(e, form, str(part)), _slots(form), strict=True)
        ]
        made: list[str] = []
        for maker in form:
            here = slice(len(made), len(made) + len(maker.slots()))
            made += row[here] if maker.shaped else maker.combined(held[here], row[here])
        return made if counter is None else counter.join(part, made)

    first = [x for _, x in _slots(form)]
    made = e.loop(0, count, 1, begun(form, form, first), one, MOST_ROWS, empty=False)
    return made if counter is None else counter.total(count, made)


def _slots(form: Accumulators) -> list[tuple[str, str]]:
    return [slot for maker in form for slot in maker.slots()]


def _places(e: Emitter, form: Accumulators, row: str) -> list[str]:
    """Where the numbers of a row lie."""
    w = e.w
    at = w.op(f"getelementptr ptr, ptr %buffers, i64 {len(e.kernel.buffers) + POLL_ROWS}")
    start = w.op(f"load ptr, ptr {at}, align 8")
    start = w.op(f"getelementptr i8, ptr {start}, i64 {w.op(f'mul i64 {row}, {ROW_BYTES}')}")
    found, offset = list[str](), 0
    for ty, _ in _slots(form):
        found.append(w.op(f"getelementptr i8, ptr {start}, i64 {offset}"))
        offset += -(-size_of(ty) // 8) * 8
    assert offset <= ROW_BYTES
    return found
