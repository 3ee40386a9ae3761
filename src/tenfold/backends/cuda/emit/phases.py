"""Kernels whose rows are gone through in parts, by several blocks: one function after another, each
of which joins what the blocks of those before it left in memory.

A row has as many parts as keep a chip busy, each a power of two of chunks (or of runs, where rows
are columns): the partial results of parts, joined as a balanced tree by position, are then what the
kernel's fold asks for. Where nothing is stored along rows, the block of a row that comes last does
that at once. A row of one part needs no memory: all stages are loops of one function.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from math import prod
from typing import Any

from tenfold.backends.cuda.emit.control import loop
from tenfold.backends.cuda.emit.counter import Counter, counter_for
from tenfold.backends.cuda.emit.function import FunctionWriter, KernelText, finish
from tenfold.backends.cuda.emit.joining import Held, Joining
from tenfold.backends.cuda.emit.memory import both, guard, guarded, load, store
from tenfold.backends.cuda.emit.parts import ARRIVALS, comes_last
from tenfold.backends.cuda.emit.point import apart
from tenfold.backends.cuda.emit.rowform import RowForm, rising, swept
from tenfold.backends.cuda.emit.team import wait
from tenfold.backends.cuda.emit.thread import Position, Text, Thread
from tenfold.backends.llvm.writer import BITS, COMPUTE
from tenfold.kernel.analyse.access import in_place
from tenfold.kernel.ir.kernel import Kernel, stages
from tenfold.kernel.ir.number import Facts, prefers_less

BUSY = 264  # blocks that keep a large chip busy


def most(threads: int) -> int:
    """Blocks of so many threads, above which parts grow: some rounds of a chip, not dozens."""
    return max(2, 1024 // threads) * BUSY


class Phases(ABC):
    """The functions of one kernel."""

    threads: int  # of a block

    def __init__(self, form: RowForm, begin: Callable[[], FunctionWriter], facts: Facts) -> None:
        self.form, self.kernel = form, form.kernel
        self.begin, self.facts = begin, facts
        self.extent = form.kernel.axes[form.row].extent
        deep = stages(form.kernel)
        self.members: dict[int, list[int]] = {}
        for n, i in enumerate(form.kernel.instructions):
            if i.op == "reduce":
                self.members.setdefault(deep[n], []).append(n)
        self.sweeps = swept(form)
        self.rows: Any = prod(form.kernel.axes[a].extent for a in form.outer)
        self.groups = self.groups_of(self.rows)
        self.units = -(-self.extent // self.unit)
        self.size = self._size()
        self.parts: Any = (self.units + self.size - 1) // self.size if self.size else 1

    @property
    @abstractmethod
    def name(self) -> str:
        """What functions are named after."""

    @property
    @abstractmethod
    def unit(self) -> int:
        """The elements of which a part has a power of two."""

    def groups_of(self, rows: Any) -> Any:
        """How many blocks the rows take that are gone through side by side."""
        return rows

    @abstractmethod
    def writer(self, f: FunctionWriter, t: Thread) -> PhaseWriter:
        """What writes one of the functions."""

    def _size(self) -> int:
        """How many units a part has; 0 where a row is one part."""
        if not prefers_less(self.groups, BUSY) or self.units <= 1:
            return 0
        size = 1
        while size < 1 << 20 and not prefers_less(
            self.groups * ((self.units + size - 1) // size), most(self.threads)
        ):
            size *= 2
        return size

    def emit(self) -> KernelText:
        """All functions, in their order."""
        if not self.size:
            one = self._function()
            for members in self.members.values():
                one.through(members)
            one.end()
            return finish([(one.f, self.threads, self.groups, 1)], self.facts)
        if not self.groups <= ARRIVALS:
            raise AssertionError("so many groups keep a chip busy")
        functions = list[PhaseWriter]()
        known: list[int] = []
        for members in self.members.values():
            functions.append(one := self._function(known))
            one.leave(one.partial(members), members)
            known += members
        if self.sweeps:
            functions.append(one := self._function(known))
            one.end()
        else:
            one.conclude(members)
        blocks = self.groups * self.parts
        launched = [(one.f, self.threads, blocks, 1) for one in functions]
        return finish(launched, self.facts, self.room(known, None))

    def _function(self, known: Sequence[int] = ()) -> PhaseWriter:
        """One function that begins with what those before it left."""
        f = self.begin()
        f.schedule = self.name
        made = self.writer(f, f.thread())
        made.begin(known)
        return made

    def room(self, members: Sequence[int], until: tuple[int, int] | None) -> Any:
        """Where the partial results of a state of a member begin, in bytes; of all, their end."""
        total: Any = 0
        for member in members:
            for state, ty in enumerate(Joining.of(self.kernel, member).types):
                if (member, state) == until:
                    return total
                size = self.rows * self.parts * max(1, BITS[ty] // 8)
                total = total + (size + 15) // 16 * 16
        return total

    @property
    def every(self) -> list[int]:
        return [m for members in self.members.values() for m in members]


class PhaseWriter(ABC):
    """One function of a kernel in phases."""

    def __init__(self, phases: Phases, f: FunctionWriter, t: Thread) -> None:
        self.phases, self.f, self.t, self.w = phases, f, t, f.w
        self.form, self.kernel = phases.form, phases.kernel
        self.part: Text | None = None  # which part of its row this block has; None: all of it
        self.alive: Text | None = None  # whether there is a row for this thread at all

    # What the two ways of going through rows differ in.

    @abstractmethod
    def place(self) -> Text:
        """Find which rows this block has; the number of this thread's row."""

    @abstractmethod
    def partial(self, members: Sequence[int]) -> list[Held]:
        """Go through this block's part of the rows: what it comes to, in all threads of a row."""

    @abstractmethod
    def sweep(self) -> None:
        """Go through it once more, and store what lies along rows."""

    @abstractmethod
    def first(self) -> Text:
        """Whether this thread is the first of those that have a row."""

    @abstractmethod
    def share(self) -> tuple[Text, int]:
        """The number of this thread among those that have its row, and how many these are."""

    @abstractmethod
    def recall(self, joining: Joining, read: Any) -> Held:
        """The partial results of all parts of a row, joined, in all of its threads."""

    # What they have in common.

    def begin(self, known: Sequence[int]) -> None:
        """Find rows and part, and what earlier functions left."""
        phases, w, ty = self.phases, self.w, self.t.position
        self.number = self.place()
        extents = [self.kernel.axes[a].extent for a in self.form.outer]
        self.t.base.update(zip(self.form.outer, apart(w, ty, self.number, extents), strict=True))
        self.f.partial = bool(phases.size)
        self.recalled(known)

    def recalled(self, known: Sequence[int]) -> None:
        """What all parts left of some reductions, joined."""
        for member in known:
            joining = Joining.of(self.kernel, member)

            def read(part: Text, member: int = member, joining: Joining = joining) -> Held:
                return [
                    self._left(member, state, ty, part) for state, ty in enumerate(joining.types)
                ]

            self.put(member, self.recall(joining, read))

    def block_of(self, groups: Any) -> Text:
        """The number of this block's group of rows; notes which part it has, where there are."""
        w, phases = self.w, self.phases
        block = self.f.sreg("ctaid.x")
        if not phases.size:
            return block
        group, part = apart(w, "i32", block, [groups, phases.parts])
        self.group, self.part = str(group), str(part)
        return self.group

    def _left(self, member: int, state: int, ty: str, part: Text) -> Text:
        w = self.w
        at = self._partial_at(member, state, ty, part)
        kept = "i8" if ty == "i1" else ty
        found = w.op(f"load {kept}, ptr addrspace(1) {at}, align {max(1, BITS[ty] // 8)}")
        return w.op(f"icmp ne i8 {found}, 0") if ty == "i1" else found

    def _partial_at(self, member: int, state: int, ty: str, part: Text) -> Text:
        """Where a partial result lies: those of a row side by side."""
        w, phases = self.w, self.phases
        start = phases.room(phases.every, (member, state))
        base = "%partial"
        if not (isinstance(start, int) and start == 0):
            base = w.op(
                f"getelementptr i8, ptr addrspace(1) %partial, i64 {w.const('i64', start, False)}"
            )
        row = self.number
        if self.t.position == "i32":
            row = w.op(f"zext i32 {row} to i64")
        at = w.op(f"mul i64 {row}, {w.const('i64', phases.parts, False)}")
        at = w.op(f"add i64 {at}, {w.op(f'zext i32 {part} to i64')}")
        kept = "i8" if ty == "i1" else ty
        return w.op(f"getelementptr {kept}, ptr addrspace(1) {base}, i64 {at}")

    def leave(self, held: Sequence[Held], members: Sequence[int]) -> None:
        """Have the first thread of each row write what its part came to."""
        w = self.w
        assert self.part is not None
        part = self.part

        def write() -> list[Text]:
            for member, states in zip(members, held, strict=True):
                joining = Joining.of(self.kernel, member)
                for state, (ty, x) in enumerate(zip(joining.types, states, strict=True)):
                    at = self._partial_at(member, state, ty, part)
                    raw = w.op(f"zext i1 {x} to i8") if ty == "i1" else x
                    kept = "i8" if ty == "i1" else ty
                    size = max(1, BITS[ty] // 8)
                    w.put(f"store {kept} {raw}, ptr addrspace(1) {at}, align {size}")
            return []

        guarded(w, both(w, self.first(), self.alive), write, [])

    def conclude(self, members: Sequence[int]) -> None:
        """Have the block that comes last of its group do what is left: it joins the parts by
        position, so it does not matter which one that is."""
        w, end = self.w, self.w.fresh("end")
        comes = comes_last(self.f, self.group, self.phases.parts)
        last = w.fresh("last")
        w.put(f"br i1 {comes}, label %{last}, label %{end}")
        w.label(last)
        self.part = None
        self.recalled(members)
        self.end()
        w.put(f"br label %{end}")
        w.label(end)

    def through(self, members: Sequence[int]) -> None:
        """Go through whole rows, and have what they come to."""
        for member, held in zip(members, self.partial(members), strict=True):
            self.put(member, held)

    def put(self, member: int, held: Held) -> None:
        """What a reduction came to, with its further states."""
        if rising(self.form, member) is not None:
            held = [held[0], self._lies_at(member, held[1])]
        self.t.put(member, 0, held[0])
        for n, i in enumerate(self.kernel.instructions):
            if i.op == "state" and i.args == (member,):
                self.t.put(n, 0, held[1])

    def _lies_at(self, member: int, place: Text) -> Text:
        """Where an extreme lies: at the first element where none is farther than what was held at
        first."""
        w, i = self.w, self.kernel.instructions[member]
        _, none = Joining.of(self.kernel, member).identity
        first = self.kernel.instructions[i.args[1]]
        assert first.index is not None
        with self.t.inside(self.form.row, 0):
            begin = self.t.as_value(first.index, first.dtype, 0)
        ty = COMPUTE[first.dtype]
        return w.op(
            f"select i1 {w.op(f'icmp eq {ty} {place}, {none}')}, {ty} {begin}, {ty} {place}"
        )

    def need(self, roots: Sequence[int], count: int = 1) -> None:
        """Compute what these values are made of, as far as it is not known."""
        wanted, stack = set[int](), list(roots)
        while stack:
            n = stack.pop()
            if n not in wanted and (n, 0) not in self.t.env:
                wanted.add(n)
                stack += self.kernel.instructions[n].uses()
        for n in sorted(wanted):
            if self.kernel.instructions[n].op == "load":
                load(self.t, n, count)
            else:
                self.t.compute(n)

    def uniform(self, roots: Sequence[int]) -> None:
        """Compute, before a loop over rows, what is the same along them."""
        inside, stack = list[int](), list(roots)
        seen = set[int]()
        while stack:
            n = stack.pop()
            if n in seen:
                continue
            seen.add(n)
            if self.form.row in self.kernel.free[n]:
                stack += self.kernel.instructions[n].uses()
            else:
                inside.append(n)
        self.need(inside)

    def roots_of(self, members: Sequence[int]) -> list[int]:
        return [a for m in members for a in self.kernel.instructions[m].args]

    def end(self) -> None:
        """What is stored of rows, and along them."""
        kernel, row = self.kernel, self.form.row
        others = frozenset(self.form.others)
        test = both(self.w, self.first(), self.alive)
        if self.part is not None:
            zero = self.w.op(f"icmp eq i32 {self.part}, 0")
            test = both(self.w, test, zero)
        own = [
            n
            for n, item in enumerate(kernel.stores)
            if row not in (free := kernel.store_free(item)) and not free & others
        ]
        self.need([v for n in own for v in kernel.stores[n].uses()])
        if own and in_place(kernel):
            wait(self.w)  # what one thread writes over, all that have the row have read
        for n in own:
            store(self.t, n, test)
        for n, check in enumerate(kernel.checks):
            free = kernel.free[check.condition]
            if row not in free and not free & others:
                self.need([check.condition])
                guard(self.t, n, test)
        if others:
            self._spread(others)
        if self.phases.sweeps:
            roots = [v for s in kernel.stores if row in kernel.store_free(s) for v in s.uses()]
            roots += [c.condition for c in kernel.checks if row in kernel.free[c.condition]]
            self.uniform(roots)
            self.sweep()

    def along(self, count: int = 1) -> None:
        """Inside of a sweep: what is stored and checked along rows."""
        kernel, row = self.kernel, self.form.row
        for n, item in enumerate(kernel.stores):
            if row in kernel.store_free(item):
                self.need(item.uses(), count)
                store(self.t, n, self.alive, count)
        for n, check in enumerate(kernel.checks):
            if row in kernel.free[check.condition]:
                self.need([check.condition], count)
                guard(self.t, n, self.alive)

    def _spread(self, others: frozenset[int]) -> None:
        """What is computed along other axes from what rows came to, by all threads of a row in
        turn; of its parts, by the first."""
        kernel, t, w = self.kernel, self.t, self.w
        named = list(self.form.others)
        extents = [kernel.axes[a].extent for a in named]
        roots = [v for s in kernel.stores if kernel.store_free(s) & others for v in s.uses()]
        roots += [c.condition for c in kernel.checks if kernel.free[c.condition] & others]
        same = [n for n in self._below(roots) if not kernel.free[n] & others]
        self.need(same)

        def one(at: Position, _: list[Text]) -> list[Text]:
            env, base = t.env, t.base
            t.env, t.base = dict(env), dict(base)
            t.base.update(zip(named, apart(w, t.position, str(at), extents), strict=True))
            for n, item in enumerate(kernel.stores):
                free = kernel.store_free(item)
                if free & others:
                    self.need(item.uses())
                    alone: Text | None = None
                    for axis in others - free:
                        zero = w.op(f"icmp eq {t.position} {t.base[axis]}, 0")
                        alone = both(w, alone, zero)
                    store(t, n, alone)
            for n, check in enumerate(kernel.checks):
                if kernel.free[check.condition] & others:
                    self.need([check.condition])
                    guard(self.t, n, None)
            t.env, t.base = env, base
            return []

        test = self.alive
        if self.part is not None:
            test = both(w, test, w.op(f"icmp eq i32 {self.part}, 0"))
        me, step = self.share()
        if t.position == "i64":
            me = w.op(f"zext i32 {me} to i64")
        stop = w.const(t.position, prod(extents), False)
        if test is not None:  # without a row there is nothing to be read, either
            stop = w.op(f"select i1 {test}, {t.position} {stop}, {t.position} 0")
        loop(w, t.position, me, stop, step, (), one)

    def _below(self, roots: Sequence[int]) -> set[int]:
        """What these are made of, as far as it is not known."""
        found, stack = set[int](), list(roots)
        while stack:
            n = stack.pop()
            if n not in found and (n, 0) not in self.t.env:
                found.add(n)
                stack += self.kernel.instructions[n].uses()
        return found

    def counter(self, joining: Joining, most: Any) -> Counter:
        """A counter of so many partial results at most."""
        made = counter_for(self.w, joining, "i32", most)
        self.f.memory += made.declared
        return made


def is_shaped(kernel: Kernel) -> bool:
    """Whether a kernel has sums whose order shows."""
    reduces = (n for n, i in enumerate(kernel.instructions) if i.op == "reduce")
    return any(Joining.of(kernel, n).shaped for n in reduces)
