"""Kernels that go through rows: reductions along one axis for each position of some others, and
what is computed from them along the same rows.

A lowered kernel has an axis of its own for each loop over a row. Where they are equally long, they
become one: what several loops compute alike is then one value, which a thread can keep.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from tenfold.frozen import frozen
from tenfold.kernel.ir.index import VALUE, Atom, Index
from tenfold.kernel.ir.kernel import PARALLEL, SEQUENTIAL, Instruction, Kernel, stages
from tenfold.kernel.ir.number import Number


@frozen
class RowForm:
    """A legal kernel with one axis for all loops over a row. `outer` are the axes of rows, `others`
    those that a row's results are spread over besides."""

    kernel: Kernel
    outer: tuple[int, ...]
    row: int
    others: tuple[int, ...]


def row_form(kernel: Kernel, order: list[int]) -> RowForm | None:
    """A legal kernel as one of rows; None where it is none."""
    reduces = [n for n, i in enumerate(kernel.instructions) if i.op == "reduce"]
    if any(a.kind == SEQUENTIAL for a in kernel.axes):
        return None
    if any(len(kernel.instructions[r].attr) != 2 for r in reduces):
        return None
    free = {kernel.free[r] for r in reduces}
    if len(free) != 1:
        return None
    (outer,) = free
    if any(kernel.axes[a].kind != PARALLEL for a in outer):
        return None  # a reduction inside of another
    reduced = list(dict.fromkeys(kernel.instructions[r].attr[1] for r in reduces))
    row = reduced[0]
    extent = kernel.axes[row].extent
    if not all(_same(kernel.axes[a].extent, extent) for a in reduced):
        return None
    inner = [a for a in order if a not in outer]
    joined = next((a for a in reversed(inner) if _same(kernel.axes[a].extent, extent)), None)
    others = tuple(a for a in inner if a != joined)
    moved = dict.fromkeys(reduced, row) | ({joined: row} if joined is not None else {})
    made = _moved(kernel, moved)
    for n in range(len(made.instructions)):
        if row in made.free[n] and made.free[n].intersection(others):
            return None
    if any(row in (f := made.store_free(s)) and f.intersection(others) for s in made.stores):
        return None
    return RowForm(made, tuple(a for a in order if a in outer), row, others)


def swept(form: RowForm) -> bool:
    """Whether rows are gone through once more in the end: something is stored along them, or
    checked."""
    kernel = form.kernel
    free = [kernel.free[c.condition] for c in kernel.checks]
    return any(form.row in axes for axes in (*free, *map(kernel.store_free, kernel.stores)))


def passes(form: RowForm) -> int:
    """How often a row is gone through: once for each stage of reductions, and in the end."""
    kernel, deep = form.kernel, stages(form.kernel)
    found = {deep[n] for n, i in enumerate(kernel.instructions) if i.op == "reduce"}
    return len(found) + swept(form)


def rising(form: RowForm, member: int) -> int | None:
    """By how much the positions of an argmin or argmax rise from each element of a row to the next;
    None where they do not."""
    args = form.kernel.instructions[member].args
    place = form.kernel.instructions[args[-1]]
    if len(args) < 2 or place.op != "index" or place.index is None:
        return None
    step = place.index.stride(form.row)
    return step if isinstance(step, int) and step > 0 else None


def _same(a: Any, b: Any) -> bool:
    """Whether two extents are known to be one: by the kernel, not by what they happen to be."""
    if isinstance(a, Number) or isinstance(b, Number):
        return isinstance(a, Number) and isinstance(b, Number) and a.at == b.at
    return bool(a == b)


def _moved(kernel: Kernel, moves: dict[int, int]) -> Kernel:
    """The kernel with some axes in the place of others; equal instructions become one."""
    made: list[Instruction] = []
    known: dict[Instruction, int] = {}
    at: dict[int, int] = {}

    def index(old: Index) -> Index:
        def leaf(atom: Atom) -> Index:
            if atom.kind == VALUE:
                return Index(((Atom(VALUE, at[atom.of], atom.bound), 1),))
            return Index(((replace(atom, of=moves.get(atom.of, atom.of)), 1),))

        return old.rebuild(leaf)

    for n, i in enumerate(kernel.instructions):
        attr = i.attr
        if i.op == "reduce":
            attr = (attr[0], *(moves.get(a, a) for a in attr[1:]))
        changed = replace(
            i,
            args=tuple(at[a] for a in i.args),
            attr=attr,
            index=None if i.index is None else index(i.index),
        )
        at[n] = known.setdefault(changed, len(made))
        if at[n] == len(made):
            made.append(changed)
    axes = tuple(replace(a, kind=PARALLEL) for a in kernel.axes)
    stores = tuple(
        replace(
            s,
            index=index(s.index),
            value=at[s.value],
            condition=None if s.condition is None else at[s.condition],
            second=None if s.second is None else at[s.second],
        )
        for s in kernel.stores
    )
    checks = tuple(replace(c, condition=at[c.condition]) for c in kernel.checks)
    return Kernel(
        axes, kernel.buffers, kernel.params, tuple(made), stores, checks, kernel.fold,
        sizes=kernel.sizes,
    )  # fmt: skip
