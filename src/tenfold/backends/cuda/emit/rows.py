"""Rows that a team of threads keeps: each element is read once, and stays in a register through all
that is computed of the row."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import TYPE_CHECKING, Any

from tenfold.backends.cuda.emit.cluster import BLOCKS, ClusterTeam, cluster_layout
from tenfold.backends.cuda.emit.control import loop
from tenfold.backends.cuda.emit.function import FunctionWriter, KernelText, finish
from tenfold.backends.cuda.emit.joining import Held, Joining
from tenfold.backends.cuda.emit.layout import Layout, layout_of
from tenfold.backends.cuda.emit.memory import both, guard, load, packed, store
from tenfold.backends.cuda.emit.point import apart
from tenfold.backends.cuda.emit.rowform import RowForm, passes, rising
from tenfold.backends.cuda.emit.team import Team
from tenfold.backends.cuda.emit.thread import Position, Slot, Text, Thread
from tenfold.backends.llvm.writer import SIZES
from tenfold.kernel.analyse.access import in_place
from tenfold.kernel.ir.number import Facts, prefers_less

if TYPE_CHECKING:
    from tenfold.backends.cuda.emit.keptcolumns import ColumnLayout, ColumnTeam

BLOCK = 128  # threads at least: several short rows
_ENOUGH = 48  # rows, from which on clusters keep a chip busy
_KEPT = 4  # bytes of an element, of which a thread keeps up to 32


def emit_rows(form: RowForm, f: FunctionWriter, facts: Facts) -> KernelText | None:
    """A kernel of rows along which rounds lie; None where they are too long to be kept."""
    kernel, t = form.kernel, f.thread()
    wide = packs(t, form)
    layout = layout_of(kernel.axes[form.row].extent, wide)
    if layout is None:
        return _by_clusters(form, f, facts, wide)
    block = max(BLOCK, layout.threads)
    team = Team(f, layout, block)
    f.schedule = f"rows{layout.threads}"
    rows = RowsEmitter(f, t, form, team)
    rows.body(4 if layout.packed > 1 else 1)
    count: Any = prod(kernel.axes[a].extent for a in form.outer)
    return finish([(f, block, (count + team.teams - 1) // team.teams, 1)], facts)


def _by_clusters(form: RowForm, f: FunctionWriter, facts: Facts, wide: bool) -> KernelText | None:
    """Longer rows, where there are enough of them and each is gone through more than once."""
    kernel = form.kernel
    layout = cluster_layout(kernel.axes[form.row].extent, wide)
    count: Any = prod(kernel.axes[a].extent for a in form.outer)
    if layout is None or not f.target.clusters or passes(form) < 2 or prefers_less(count, _ENOUGH):
        return None
    team = ClusterTeam(f, layout)
    RowsEmitter(f, f.thread(), form, team).body(4 if layout.packed > 1 else 1)
    team.wait()  # no block ends while the other reads what it told
    f.cluster, f.schedule = BLOCKS, f"cluster{team.block}"
    return finish([(f, team.block, count * BLOCKS, 1)], facts)


def packs(t: Thread, form: RowForm) -> bool:
    """Whether four neighbours of a row are read at once: all that lies along it begins where that
    can be, and there is no part of four."""
    kernel = form.kernel
    if kernel.axes[form.row].extent % 4:
        return False
    t.lane = form.row
    touched = [(i.attr[0], i.index) for i in kernel.instructions if i.op == "load"]
    touched += [(s.buffer, s.index) for s in kernel.stores]
    found = [
        packed(t, buffer, index, 4)
        for buffer, index in touched
        if index is not None and form.row in index.axes()
    ]
    t.lane = None
    sizes = [SIZES[kernel.buffers[b].dtype] for b, i in touched if i and form.row in i.axes()]
    return bool(found) and all(found) and max(sizes) <= _KEPT


class RowsEmitter:
    """One team's row, as text."""

    def __init__(
        self, f: FunctionWriter, t: Thread, form: RowForm, team: Team | ColumnTeam
    ) -> None:
        self.f, self.t, self.w, self.form, self.team = f, t, f.w, form, team
        self.kernel = form.kernel
        self.alive = self.find_row()

    def find_row(self) -> Text | None:
        """Find the row of this team, and whether there is one. Threads without one do as the last
        row's, for others count on them, and store nothing."""
        w, ty, kernel, team = self.w, self.t.position, self.kernel, self.team
        extents = [kernel.axes[a].extent for a in self.form.outer]
        count: Any = prod(extents)
        number = team.first()
        if team.teams > 1:
            number = w.op(f"add i32 {number}, {team.number()}")
        if ty == "i64":
            number = w.op(f"zext i32 {number} to i64")
        alive = None
        if team.teams > 1 and count % team.teams:
            limit = w.const(ty, count, False)
            alive = w.op(f"icmp ult {ty} {number}, {limit}")
            last = w.const(ty, count - 1, False)
            number = w.op(f"select i1 {alive}, {ty} {number}, {ty} {last}")
        self.t.base.update(zip(self.form.outer, apart(w, ty, number, extents), strict=True))
        return alive

    def slots(self, layout: Layout | ColumnLayout, start: Position = 0) -> tuple[Text, list[Slot]]:
        """The slots of this thread from a place in the row on: their anchor, and each."""
        w, ty = self.w, self.t.position
        anchor = layout.anchor(w, ty, self.team.me)
        if not (isinstance(start, int) and start == 0):
            anchor = w.op(f"add {ty} {anchor}, {start}")
        extent = self.kernel.axes[self.form.row].extent
        offsets = layout.offsets()
        if isinstance(start, int) and start == 0 and extent == layout.reach:
            return anchor, [Slot(n) for n in offsets]
        slots: list[Slot] = []
        for n, offset in enumerate(offsets):
            if layout.packed > 1 and n % layout.packed:  # neighbours are there together
                slots.append(Slot(offset, slots[-1].active))
                continue
            at = w.op(f"add {ty} {anchor}, {offset}") if offset else anchor
            slots.append(Slot(offset, w.op(f"icmp ult {ty} {at}, {w.const(ty, extent, False)}")))
        return anchor, slots

    def body(self, count: int) -> None:
        """All of the kernel, with the row in registers."""
        anchor, slots = self.slots(self.team.layout)
        kernel, t = self.kernel, self.t
        apart = frozenset(self.form.others)
        with t.across(self.form.row, anchor, slots):
            for n, i in enumerate(kernel.instructions):
                if kernel.free[n] & apart:
                    continue
                if i.op == "reduce":
                    self.reduce(n)
                elif i.op == "load":
                    load(t, n, count)
                elif (n, 0) not in t.env:
                    t.compute(n)
            for n in range(len(kernel.checks)):
                if not kernel.free[kernel.checks[n].condition] & apart:
                    guard(t, n, self.alive)
            if in_place(kernel):
                self.team.wait()  # what one thread writes over, all of its team have read
            for n in range(len(kernel.stores)):
                if not kernel.store_free(kernel.stores[n]) & apart:
                    self.store(n, count)
            self.spread()

    def reduce(self, member: int) -> None:
        joining, args = Joining.of(self.kernel, member), self.kernel.instructions[member].args
        if joining.kind in ("min", "max"):
            self.put(member, [self.extreme(joining, args[0])])
        elif joining.kind.startswith("arg") and self.places_alone(member):
            self.put(member, self.place_of(member, joining))
        else:
            self.put(member, self.joined(joining, args))

    def joined(self, joining: Joining, args: Sequence[int]) -> Held:
        t = self.t
        values = [[t.get(a, slot) for a in args] for slot in range(len(t.slots))]
        return self.team.joined(joining, values, t.slots)

    def extreme(self, joining: Joining, value: int) -> Text:
        """The least or greatest of the row, joined once for all that ask."""
        key = joining.kind, value
        if key not in self.t.env:
            self.t.env[key] = self.joined(joining, [value])[0]
        found: Text = self.t.env[key]
        return found

    def places_alone(self, member: int) -> bool:
        """Whether nothing but the position of an extreme is asked for, and positions rise from
        slot to slot by known steps."""
        kernel = self.kernel
        if self.t.position != "i32" or rising(self.form, member) is None:
            return False
        asked = [i for i in kernel.instructions if member in i.uses() and i.op != "state"]
        stored = any(member in s.uses() for s in kernel.stores)
        return not asked and not stored

    def place_of(self, member: int, joining: Joining) -> Held:
        """Where an extreme lies: once that is known, each thread looks for its first slot that has
        it, and the least position is the row's."""
        t, w = self.t, self.w
        value, place = self.kernel.instructions[member].args
        top = self.extreme(Joining(joining.kind.removeprefix("arg"), joining.dtype), value)
        index, step = self.kernel.instructions[place].index, rising(self.form, member)
        assert index is not None
        assert step is not None
        least = Joining("min", "i32")
        found = "-1"
        for n in reversed(range(len(t.slots))):
            here = both(w, joining.is_extreme(w, t.get(value, n), top), t.slots[n].active)
            found = w.op(f"select i1 {here}, i32 {step * t.slots[n].offset}, i32 {found}")
        some = w.op(f"icmp sge i32 {found}, 0")
        found = w.op(f"add i32 {t.whole(index)}, {found}")
        (found,) = self.team.joined(least, [[found]], [Slot(0, some)])
        return [top, w.op(f"sext i32 {found} to {joining.types[1]}")]

    def put(self, member: int, held: Held) -> None:
        """What a reduction came to, with its further states."""
        self.t.put(member, 0, held[0])
        for n, i in enumerate(self.kernel.instructions):
            if i.op == "state" and i.args == (member,):
                self.t.put(n, 0, held[1])

    def store(self, number: int, count: int) -> None:
        """A store: along the row by all threads, of the row by its first."""
        test = self.alive
        if self.form.row not in self.kernel.store_free(self.kernel.stores[number]):
            test = both(self.w, self.first(), test)
        store(self.t, number, test, count)

    def first(self) -> Text:
        """Whether this is the first thread of its team."""
        key = ("first",)
        if key not in self.t.env:
            self.t.env[key] = self.w.op(f"icmp eq i32 {self.team.me}, 0")
        found: Text = self.t.env[key]
        return found

    def spread(self) -> None:
        """What is computed along other axes, from what the row came to: by all threads in turn."""
        kernel, t, w = self.kernel, self.t, self.w
        others = self.form.others
        if not others:
            return
        extents = [kernel.axes[a].extent for a in others]
        ty, step = t.position, self.team.layout.threads
        me = w.op(f"zext i32 {self.team.me} to i64") if ty == "i64" else self.team.me

        def one(at: Position, _: list[Text]) -> list[Text]:
            env, base = t.env, t.base
            t.env, t.base = dict(env), dict(base)
            t.base.update(zip(others, apart(w, ty, str(at), extents), strict=True))
            self._along_others(frozenset(others))
            t.env, t.base = env, base
            return []

        stop = w.const(ty, prod(extents), False)
        if self.alive is not None:  # without a row there is nothing to be read, either
            stop = w.op(f"select i1 {self.alive}, {ty} {stop}, {ty} 0")
        loop(w, ty, me, stop, step, (), one)

    def _along_others(self, others: frozenset[int]) -> None:
        kernel, t = self.kernel, self.t
        for n, i in enumerate(kernel.instructions):
            if kernel.free[n] & others:
                if i.op == "load":
                    load(t, n)
                else:
                    t.compute(n)
        for n in range(len(kernel.checks)):
            if kernel.free[kernel.checks[n].condition] & others:
                guard(t, n, self.alive)
        for n, item in enumerate(kernel.stores):
            free = kernel.store_free(item)
            if free & others:
                test = self.alive
                for axis in others - free:  # along which it is the same
                    zero = self.w.op(f"icmp eq {t.position} {t.base[axis]}, 0")
                    test = both(self.w, test, zero)
                store(t, n, test)
