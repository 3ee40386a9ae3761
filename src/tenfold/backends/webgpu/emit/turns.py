"""Scatters whose updates meet in an order that shows, as sums of floats: updates are sorted by the
places they go to, equal ones in their order, and each place takes its own one after the other.

The first of a place's updates stands for it: of its invocations each has a position in the window,
and reads a few updates before it joins them. Where drivers end long loops a further dispatch goes
on with places that have more updates than one may take.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from typing import TYPE_CHECKING, Any

from tenfold.backends.webgpu.emit.module import global_number, scattered, spread_over, total
from tenfold.backends.webgpu.library.sort_text import TILE, merge_lines, shared, tile_lines
from tenfold.backends.webgpu.shader import Shader
from tenfold.backends.webgpu.wgsl.invocation import Invocation, number
from tenfold.backends.webgpu.wgsl.memory import guard, held, joined, write

if TYPE_CHECKING:
    from tenfold.backends.webgpu.emit.scatter import ScatterForm

_WORKGROUP = 256
_AT_ONCE = 4  # updates that are read before they are joined
_POSITION = -1  # the axis of sorted updates


def turns(form: ScatterForm) -> Shader | None:
    """A scatter by sorted updates; None where they take more memory than is shown."""
    count = total([form.kernel.axes[a].extent for a in form.numbered])
    return _Turns(form, count).emit() if form.shows(8 * count) else None


class _Turns:
    def __init__(self, form: ScatterForm, count: Any) -> None:
        self.form, self.kernel, self.m = form, form.kernel, form.m
        self.count = count
        # Of each update its place and its number, twice: what is sorted goes to and fro.
        self.places = self.m.partial("u32", 2 * count)
        self.numbers = self.m.partial("u32", 2 * count)

    def emit(self) -> Shader:
        kernel, form = self.kernel, self.form
        wide = any(not kernel.free[c.condition].isdisjoint(form.windows) for c in kernel.checks)
        apart = wide or len(kernel.stores) > 1
        self._leave_places(guarded=not apart)
        if apart:
            v = self._invocation()
            axes = [*form.numbered, *form.windows]
            with form.grid(v, global_number(v.w, _WORKGROUP), axes):
                form.others(v)
            self.m.entry(v.w, form.groups(axes))
        merges = self._sort()
        self._join(merges)
        return self.m.finish("updates sorted by place, each place takes its own in order")

    def _invocation(self) -> Invocation:
        return self.m.invocation(scattered(self.kernel))

    def _leave_places(self, guarded: bool) -> None:
        """The place of each update, and checks."""
        v, form = self._invocation(), self.form
        me = global_number(v.w, _WORKGROUP)
        with form.grid(v, me, form.numbered):
            if guarded:
                form.compute(v, (c.condition for c in self.kernel.checks))
                for n in range(len(self.kernel.checks)):
                    guard(v, n)
            v.w.put(f"{self.places}[{me}] = u32({form.place(v)});")
        self.m.entry(v.w, form.groups(form.numbered))

    # Sorting.

    def _sort(self) -> Any:
        """Tiles are sorted, then merged: how many times."""
        for name, ty, size in shared("u32"):
            self.m.reserve(ty, size, name)
        self.m.functions.append("fn less(a: u32, b: u32) -> bool { return a < b; }")
        tiles: Any = (self.count + TILE - 1) // TILE
        merges: Any = (tiles - 1).bit_length()
        words = [
            "let number = group.x + group.y * grid.x;",
            f"let n = u32({number(self.count)});",
            f"let tiles = u32({number(tiles)});",
            "let lines = 1u;",
            "let following = n;",
        ]

        def from_tile(to: str, at: str, place: str) -> list[str]:
            return [f"{self.places}[{to}] = keys[i];", f"{self.numbers}[{to}] = {place};"]

        last = "4294967295u"
        lines = tile_lines(TILE, last, lambda at: f"{self.places}[{at}]", from_tile)
        self._entry([*words, f"let keep = {TILE}u;", *lines], tiles)
        words += [
            "let keep = n;",
            f"let run = {TILE}u << u32(turn);",
            "let here = u32(turn & 1) * n;",
            "let there = n - here;",
        ]

        def moved(to: str, at: str) -> list[str]:
            both = (self.places, self.numbers)
            return [f"{name}[there + {to}] = {name}[here + {at}];" for name in both]

        lines = merge_lines(lambda at: f"{self.places}[here + {at}]", moved)
        self._entry([*words, *lines], tiles, merges)
        return merges

    def _entry(self, lines: Sequence[str], groups: Any, times: Any = 1) -> None:
        v = self._invocation()
        for line in lines:
            v.w.put(line)
        self.m.entry(v.w, groups, times)

    # Joining.

    def _join(self, merges: Any) -> None:
        """Each place takes its updates."""
        v, form, store = self._invocation(), self.form, self.form.store
        w, begun = v.w, number(merges % 2 * self.count)
        axes = [_POSITION, *form.windows]
        extents = [self.count, *(self.kernel.axes[a].extent for a in form.windows)]
        me, end = global_number(w, _WORKGROUP), number(self.count)
        limit = form.target.loop_limit
        each = limit // 2 * _AT_ONCE if limit else 0
        cut = bool(each) and not self.count < each
        with w.block(f"if ({me} < {number(total(extents))})"):
            spread_over(v, axes, extents, me)
            first = v.axes.pop(_POSITION)
            sorted_ = w.let("i32", begun)
            key = w.let("u32", f"{self.places}[{sorted_} + {first}]")
            before = f"{self.places}[{sorted_} + max({first}, 1) - 1]"
            test = f"({first} == 0 || {before} != {key})"
            start, stop = first, end
            if cut:
                start = w.let("i32", f"min({first} + turn * {each}, {end})")
                stop = w.let("i32", f"min({start} + {each}, {end})")
                test += f" && {start} < {end} && {self.places}[{sorted_} + {start}] == {key}"
            with w.block(f"if ({test})"):
                with self._standing(v, f"{self.numbers}[{sorted_} + {first}]"):
                    form.compute(v, store.index.values())
                    at = w.let("i32", v.position(store.index))
                there = {w.var(ty, text): ty for ty, text in held(v, store.buffer, at)}
                w.computed.update(there)
                i = w.fresh("i")
                with w.block(f"for (var {i} = {start}; {i} < {stop}; {i} += {_AT_ONCE})"):
                    self._turn(v, there, i, stop, key, sorted_)
                write(v, store.buffer, at, [*there])
        self.m.entry(w, (total(extents) + _WORKGROUP - 1) // _WORKGROUP,
                     (self.count + each - 1) // each if cut else 1)  # fmt: skip

    def _turn(
        self, v: Invocation, there: dict[str, str], i: str, stop: str, key: str, sorted_: str
    ) -> None:
        """A few updates, read at once, then joined as far as they go to the same place."""
        w, store = v.w, self.form.store
        dtype = self.kernel.buffers[store.buffer].dtype
        given: list[tuple[str, list[str]]] = []
        for n in range(_AT_ONCE):
            place = w.let("i32", f"{sorted_} + min({i} + {n}, {stop} - 1)")
            goes = w.let("bool", f"{i} + {n} < {stop} && {self.places}[{place}] == {key}")
            with self._standing(v, f"{self.numbers}[{place}]"):
                parts = [x for x in (store.value, store.second) if x is not None]
                self.form.compute(v, parts)
                given.append((goes, [v.get(x) for x in parts]))
        for goes, values in given:
            with w.block(f"if ({goes})"):
                made = joined(w, store.update, dtype, [*there], values)
                kept = [w.let(ty, x) for ty, x in zip(there.values(), made, strict=True)]
                for name, x in zip(there, kept, strict=True):
                    w.put(f"{name} = {x};")
        w.put(f"if (!{goes}) {{ break; }}")

    @contextmanager
    def _standing(self, v: Invocation, update: str) -> Iterator[None]:
        """Axes stand where an update of this number does; what is computed is forgotten after."""
        form = self.form
        with ExitStack() as stack:
            for axis in form.numbered:
                stack.enter_context(v.inside(axis, "0"))
            extents = [self.kernel.axes[a].extent for a in form.numbered]
            spread_over(v, form.numbered, extents, v.w.let("i32", f"i32({update})"))
            yield
