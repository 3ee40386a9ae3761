"""Sorted updates of a scatter, joined to what is there one after the other.

Updates of one place follow each other, in their order. The first of them stands for the place: its
thread joins the first few, read all at once. Where there are windows, neighbouring threads have
neighbours in a window, and each goes on by itself. Where there are none, the threads of a warp see
together to one place after the other that has more: each reads an update, and all of them join what
the others have read, one after the other.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from typing import TYPE_CHECKING, Any

from tenfold.backends.cuda.emit.function import FunctionWriter
from tenfold.backends.cuda.emit.memory import (
    GLOBAL,
    element,
    guarded,
    joined,
    pointer,
    size_in_memory,
    store,
)
from tenfold.backends.cuda.emit.point import apart, thread_number
from tenfold.backends.cuda.emit.thread import Position, Text
from tenfold.backends.cuda.library.function import Code
from tenfold.backends.cuda.target import WARP
from tenfold.backends.llvm.casts import narrow, widen
from tenfold.backends.llvm.writer import COMPUTE
from tenfold.frozen import frozen
from tenfold.kernel.ir.legal import in_memory

if TYPE_CHECKING:
    from tenfold.backends.cuda.emit.scatter import ScatterForm

_AT_ONCE = 8  # updates that a thread reads before it joins them


@frozen
class _Place:
    """A place that is updated: where its updates begin, what they were sorted by, the number of the
    first, and where this thread stands in the window."""

    first: Text
    key: Text
    number: Text
    within: tuple[Position, ...]


class Turns:
    """What writes the function that joins updates."""

    def __init__(self, form: ScatterForm, keys: Any, numbers: Any) -> None:
        """`keys` and `numbers` say where the sorted places and the numbers of updates begin."""
        self.form, self.store, self.dtype = form, form.store, form.dtype
        self.keys, self.numbers = keys, numbers
        self.f: FunctionWriter = form.begin()
        self.f.partial = True
        self.t, self.w = self.f.thread(), self.f.w
        self.parts = 1 if self.store.second is None else 2
        self.types = [COMPUTE[dtype] for dtype in in_memory(self.dtype)]
        self.count = self.w.const("i32", form.count, False)
        self.last = self.w.op(f"sub i32 {self.count}, 1")

    def write(self) -> FunctionWriter:
        form, w = self.form, self.w
        first, within, alive = self.spot()
        key = self.read(self.keys, first)
        lone = w.op(f"icmp eq i32 {first}, 0")
        before = w.op(f"select i1 {lone}, i32 0, i32 {w.op(f'sub i32 {first}, 1')}")
        other = w.op(f"icmp ne i32 {self.read(self.keys, before)}, {key}")
        begins = w.op(f"and i1 {alive}, {w.op(f'or i1 {lone}, {other}')}")
        place = _Place(first, key, self.read(self.numbers, first), within)

        def begin() -> list[Text]:
            memory = element(self.dtype)
            align = size_in_memory(memory)
            held = [
                widen(w, self.dtype, w.op(f"load {memory}, {GLOBAL} {at}, align {align}"), False)
                for at in self.places(place)
            ]
            return self.alone(place, held)

        *held, goes = guarded(w, begins, begin, [*self.types, "i1"])
        if not form.windows:
            held = self.together(place, held, goes)

        def end() -> list[Text]:
            memory = element(self.dtype)
            for at, x in zip(self.places(place), held, strict=True):
                raw = narrow(w, self.dtype, x, False)
                w.put(f"store {memory} {raw}, {GLOBAL} {at}, align {size_in_memory(memory)}")
            return []

        guarded(w, begins, end, [])
        return self.f

    def write_last(self) -> FunctionWriter:
        """The same where the last update of a place wins: its thread stores it."""
        form, w = self.form, self.w
        first, within, alive = self.spot()
        following = w.intrinsic("umin", "i32", w.op(f"add i32 {first}, 1"), self.last)
        ends = w.op(f"icmp eq i32 {first}, {self.last}")
        other = self.read(self.keys, following), self.read(self.keys, first)
        ends = w.op(f"or i1 {ends}, {w.op(f'icmp ne i32 {other[0]}, {other[1]}')}")

        def keep() -> list[Text]:
            with self.bound(self.read(self.numbers, first), within):
                form.compute(self.t, self.store.uses())
                store(self.t, form.number)
            return []

        guarded(w, w.op(f"and i1 {alive}, {ends}"), keep, [])
        return self.f

    # What is read.

    def spot(self) -> tuple[Text, tuple[Position, ...], Text]:
        """Which sorted update a thread has and where it stands in the window; whether there is one
        for it. All threads stay to the end: a warp works together."""
        form, w, ty = self.form, self.w, self.t.position
        number = thread_number(self.f, ty)
        alive = w.op(f"icmp ult {ty} {number}, {w.const(ty, form.all, False)}")
        me = w.op(f"select i1 {alive}, {ty} {number}, {ty} 0")
        extents = [form.count, *(form.kernel.axes[a].extent for a in form.windows)]
        at, *within = apart(w, ty, me, extents)
        assert isinstance(at, str)
        return form.short(self.t, at), tuple(within), alive

    def read(self, start: Any, at: Text) -> Text:
        """One of the sorted numbers."""
        w = self.w
        base = w.const("i64", start, False)
        base = w.op(f"getelementptr i8, {GLOBAL} %partial, i64 {base}")
        place = w.op(f"getelementptr i32, {GLOBAL} {base}, i32 {at}")
        return w.op(f"load i32, {GLOBAL} {place}, align 4")

    @contextmanager
    def bound(self, number: Text, within: Sequence[Position]) -> Iterator[None]:
        """All axes bound: to those of an update, and to a position in a window."""
        form, t = self.form, self.t
        extents = [form.kernel.axes[a].extent for a in form.numbered]
        if t.position == "i64":
            number = t.w.op(f"zext i32 {number} to i64")
        found = [*apart(t.w, t.position, number, extents), *within]
        with ExitStack() as stack:
            for axis, position in zip([*form.numbered, *form.windows], found, strict=True):
                stack.enter_context(t.inside(axis, position))
            yield

    def places(self, place: _Place) -> list[Text]:
        """Where what is updated lies, part by part."""
        store = self.store
        with self.bound(place.number, place.within):
            self.form.compute(self.t, store.index.values())
            return [pointer(self.t, store.buffer, store.index, 0, n) for n in range(self.parts)]

    def update(self, spot: Text, place: _Place) -> tuple[Text, list[Text]]:
        """Whether the update at a spot is one of this place, and what it brings; the first of the
        place instead of one that is not."""
        w = self.w
        near = w.intrinsic("umin", "i32", spot, self.last)
        same = w.op(f"icmp eq i32 {self.read(self.keys, near)}, {place.key}")
        same = w.op(f"and i1 {same}, {w.op(f'icmp ult i32 {spot}, {self.count}')}")
        number = w.op(f"select i1 {same}, i32 {self.read(self.numbers, near)}, i32 {place.number}")
        with self.bound(number, place.within):
            wanted = [v for v in (self.store.value, self.store.second) if v is not None]
            self.form.compute(self.t, wanted)
            return same, [self.t.get(v) for v in wanted]

    def joined(self, test: Text, held: Sequence[Text], given: Sequence[Text]) -> list[Text]:
        """What is held with an update, where there is one."""
        w = self.w
        made = joined(w, self.store.update, self.dtype, held, given)
        return [
            w.op(f"select i1 {test}, {ty} {x}, {ty} {y}")
            for ty, x, y in zip(self.types, made, held, strict=True)
        ]

    # Joining.

    def several(self, spot: Text, place: _Place, held: Sequence[Text]) -> list[Text]:
        """What is held with the next few updates, and whether all of them were there."""
        w = self.w
        found = [self.update(w.op(f"add i32 {spot}, {n}"), place) for n in range(_AT_ONCE)]
        for same, given in found:  # those of a place follow each other
            held = self.joined(same, held, given)
        return [*held, found[-1][0]]

    def alone(self, place: _Place, held: Sequence[Text]) -> list[Text]:
        """A thread's first few updates; with windows all of them. Also whether there may be
        more."""
        if not self.form.windows:
            return self.several(place.first, place, held)
        w = self.w
        before, head, end = w.block, w.fresh("loop"), w.fresh("end")
        w.put(f"br label %{head}")
        w.label(head)
        spot, names = f"%{w.fresh('i')}", [f"%{w.fresh('c')}" for _ in held]
        slot = len(w.lines)
        w.lines.append("")
        *now, goes = self.several(spot, place, names)
        following = w.op(f"add i32 {spot}, {_AT_ONCE}")
        pairs = [(spot, "i32", place.first, following)]
        pairs += zip(names, self.types, held, now, strict=True)
        w.lines[slot] = self._phis(pairs, before)
        w.put(f"br i1 {goes}, label %{head}, label %{end}")
        w.label(end)
        return [*now, "false"]

    def _phis(self, pairs: Sequence[tuple[str, str, Text, Text]], before: str) -> str:
        return "\n".join(
            f"  {name} = phi {ty} [ {x}, %{before} ], [ {y}, %{self.w.block} ]"
            for name, ty, x, y in pairs
        )

    def together(self, place: _Place, held: Sequence[Text], goes: Text) -> list[Text]:
        """The places of a warp that have more updates, one after the other."""
        w, code = self.w, KernelCode(self.f)
        lane = w.op(f"and i32 {self.f.sreg('tid.x')}, {WARP - 1}")
        votes = code.votes(goes)
        some, head, end = w.op(f"icmp ne i32 {votes}, 0"), w.fresh("loop"), w.fresh("end")
        before = w.block
        w.put(f"br i1 {some}, label %{head}, label %{end}")
        w.label(head)
        left, names = f"%{w.fresh('left')}", [f"%{w.fresh('c')}" for _ in held]
        slot = len(w.lines)
        w.lines.append("")
        owner = w.call("i32", "llvm.cttz.i32", ("i32", left), ("i1", "false"))
        first, key, number = (
            code.picked("i32", x, owner) for x in (place.first, place.key, place.number)
        )
        theirs = [code.picked(ty, x, owner) for ty, x in zip(self.types, names, strict=True)]
        spot = w.op(f"add i32 {first}, {_AT_ONCE}")
        made = self.in_rows(code, lane, spot, _Place(first, key, number, ()), theirs)
        mine = w.op(f"icmp eq i32 {lane}, {owner}")
        now = [
            w.op(f"select i1 {mine}, {ty} {x}, {ty} {y}")
            for ty, x, y in zip(self.types, made, names, strict=True)
        ]
        rest = w.op(f"and i32 {left}, {w.op(f'sub i32 {left}, 1')}")
        pairs = [(left, "i32", votes, rest), *zip(names, self.types, held, now, strict=True)]
        w.lines[slot] = self._phis(pairs, before)
        latch = w.block
        w.put(f"br i1 {w.op(f'icmp ne i32 {rest}, 0')}, label %{head}, label %{end}")
        w.label(end)
        return [
            w.op(f"phi {ty} [ {x}, %{before} ], [ {y}, %{latch} ]")
            for ty, x, y in zip(self.types, held, now, strict=True)
        ]

    def in_rows(
        self, code: Code, lane: Text, first: Text, place: _Place, held: Sequence[Text]
    ) -> list[Text]:
        """The updates of a place from one on, a row of them at a time: a lane reads one, all lanes
        join all of them."""
        w = self.w
        before, head, end = w.block, w.fresh("loop"), w.fresh("end")
        w.put(f"br label %{head}")
        w.label(head)
        spot, names = f"%{w.fresh('i')}", [f"%{w.fresh('c')}" for _ in held]
        slot = len(w.lines)
        w.lines.append("")
        same, given = self.update(w.op(f"add i32 {spot}, {lane}"), place)
        count = w.intrinsic("ctpop", "i32", code.votes(same))
        now = list(names)
        for n in range(WARP):
            theirs = [code.picked(ty, x, n) for ty, x in zip(self.types, given, strict=True)]
            now = self.joined(w.op(f"icmp ugt i32 {count}, {n}"), now, theirs)
        following = w.op(f"add i32 {spot}, {WARP}")
        pairs = [(spot, "i32", first, following), *zip(names, self.types, held, now, strict=True)]
        w.lines[slot] = self._phis(pairs, before)
        w.put(f"br i1 {w.op(f'icmp eq i32 {count}, {WARP}')}, label %{head}, label %{end}")
        w.label(end)
        return now


class KernelCode(Code):
    """A function of a kernel, written as those of routines are."""

    def __init__(self, f: FunctionWriter, types: dict[str, str] | None = None) -> None:
        self.f, self.w, self.types = f, f.w, types or {}

    def sreg(self, name: str) -> str:
        return self.f.sreg(name)

    def reserve(self, ty: str, count: int) -> str:
        return self.f.reserve(ty, count)
