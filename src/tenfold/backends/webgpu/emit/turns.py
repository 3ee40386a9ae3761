"""Scatters whose updates meet in an order that shows, as sums of floats: updates are sorted by the
places they go to, equal ones in their order, and each place takes its own one after the other.

The first update of each place is listed, in whatever order. Of its invocations each has a position
in the window, and reads a few updates before it joins them. Where drivers end long loops a further
dispatch goes on with places that have more updates than one may take.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from typing import TYPE_CHECKING, Any

from tenfold.backends.webgpu.emit.module import global_number, scattered, spread_over, total
from tenfold.backends.webgpu.library.radix import (
    BITS,
    DIGITS,
    SHARED,
    TILE,
    TURNS,
    radix_tile,
    radix_turn,
)
from tenfold.backends.webgpu.shader import Shader
from tenfold.backends.webgpu.wgsl.invocation import Invocation, number
from tenfold.backends.webgpu.wgsl.memory import guard, held, joined, write

if TYPE_CHECKING:
    from tenfold.backends.webgpu.emit.scatter import ScatterForm

_WORKGROUP = 256
_AT_ONCE = 4  # updates that are read before they are joined
_LITTLE = 16  # bytes of a workgroup besides those for sorting
_OTHERS = 6  # bindings besides the kernel's own: what is sorted, counts, faults and words
_LISTED = -1  # the axis of listed updates


def turns(form: ScatterForm) -> Shader | None:
    """A scatter by sorted updates; None where they take more memory than is shown, or the adapter
    has too little for workgroups or binds too few buffers."""
    target, kernel = form.target, form.kernel
    if sum(4 * size for _, _, size in SHARED) > target.workgroup_bytes - _LITTLE:
        return None
    if len(kernel.buffers) + _OTHERS > target.storage_buffers:
        return None
    count = total([kernel.axes[a].extent for a in form.numbered])
    return _Turns(form, count).emit() if form.shows(8 * count) else None


class _Turns:
    def __init__(self, form: ScatterForm, count: Any) -> None:
        self.form, self.kernel, self.m = form, form.kernel, form.m
        self.count = count
        # Of each update its place and its number, twice: what is sorted goes to and fro.
        self.places = self.m.partial("u32", 2 * count)
        self.numbers = self.m.partial("u32", 2 * count)
        self.many = self.m.partial("atomic<u32>", 1)  # places that are updated

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
        begun = self._sort() % 2 * self.count  # where sorted updates begin
        self._list(begun)
        self._join(begun)
        return self.m.finish("updates sorted by place, each place takes its own in order")

    def _invocation(self) -> Invocation:
        return self.m.invocation(scattered(self.kernel))

    def _leave_places(self, guarded: bool) -> None:
        """The place of each update and its number, and checks."""
        v, form = self._invocation(), self.form
        me = global_number(v.w, _WORKGROUP)
        with form.grid(v, me, form.numbered):
            if guarded:
                form.compute(v, (c.condition for c in self.kernel.checks))
                for n in range(len(self.kernel.checks)):
                    guard(v, n)
            v.w.put(f"{self.places}[{me}] = u32({form.place(v)});")
            v.w.put(f"{self.numbers}[{me}] = u32({me});")
            v.w.put(f"if ({me} == 0) {{ atomicStore(&{self.many}[0], 0u); }}")
        self.m.entry(v.w, form.groups(form.numbered))

    def _entry(self, lines: Sequence[str], groups: Any, times: Any = 1) -> None:
        """An entry point in words of its own."""
        v = self._invocation()
        v.w.put("let number = group.x + group.y * grid.x;")
        v.w.put(f"let n = u32({number(self.count)});")
        for line in lines:
            v.w.put(line)
        self.m.entry(v.w, groups, times)

    def _sort(self) -> Any:
        """Have updates sorted: by how many passes."""
        size: Any = self.kernel.buffers[self.form.store.buffer].size
        passes = ((size - 1).bit_length() + BITS - 1) // BITS
        for name, ty, extent in SHARED:
            self.m.reserve(ty, extent, name)
        if self.count <= TILE:
            self._entry(radix_tile(self.places, self.numbers, number(passes)), 1)
            return passes
        tiles: Any = (self.count + TILE - 1) // TILE
        counts = self.m.partial("u32", DIGITS * (tiles + 1))
        lines = radix_turn(self.places, self.numbers, counts)
        head = f"let tiles = u32({number(tiles)});"
        self._entry([head, *lines], tiles + DIGITS - 1, TURNS * passes)
        return passes

    def _list(self, begun: Any) -> None:
        """The first update of each place, listed where no sorted places lie any more."""
        self.m.reserve("atomic<u32>", 1, "found")
        self.m.reserve("u32", 1, "base")
        before = f"{self.places}[max(at, 1u) - 1u]"
        lines = [
            f"let me = number * {_WORKGROUP}u + lid;",
            f"let begun = u32({number(begun)});",
            "let at = begun + min(me, n - 1u);",
            f"let first = me < n && (me == 0u || {before} != {self.places}[at]);",
            "if (lid == 0u) { atomicStore(&found[0], 0u); }",
            "workgroupBarrier();",
            "var mine = 0u;",
            "if (first) { mine = atomicAdd(&found[0], 1u); }",
            "workgroupBarrier();",
            f"if (lid == 0u) {{ base[0] = atomicAdd(&{self.many}[0], atomicLoad(&found[0])); }}",
            "workgroupBarrier();",
            f"if (first) {{ {self.places}[n - begun + base[0] + mine] = me; }}",
        ]
        self._entry(lines, (self.count + _WORKGROUP - 1) // _WORKGROUP)

    def _join(self, begun: Any) -> None:
        """Each place takes its updates."""
        v, form, store = self._invocation(), self.form, self.form.store
        w, axes = v.w, [_LISTED, *form.windows]
        extents = [self.count, *(self.kernel.axes[a].extent for a in form.windows)]
        me, end, lead = global_number(w, _WORKGROUP), number(self.count), number(begun)
        limit = form.target.loop_limit
        each = limit // 2 * _AT_ONCE if limit else 0
        cut = bool(each) and not self.count < each
        with w.block(f"if ({me} < {number(total(extents))})"):
            spread_over(v, axes, extents, me)
            spot = v.axes.pop(_LISTED)
            with w.block(f"if (u32({spot}) < atomicLoad(&{self.many}[0]))"):
                first = w.let("i32", f"i32({self.places}[{end} - {lead} + {spot}])")
                key = w.let("u32", f"{self.places}[{lead} + {first}]")
                start, stop = first, end
                if cut:
                    start = w.let("i32", f"min({first} + turn * {each}, {end})")
                    stop = w.let("i32", f"min({start} + {each}, {end})")
                with self._standing(v, f"{self.numbers}[{lead} + {first}]"):
                    form.compute(v, store.index.values())
                    at = w.let("i32", v.position(store.index))
                there = {w.var(ty, text): ty for ty, text in held(v, store.buffer, at)}
                w.computed.update(there)
                i = w.fresh("i")
                with w.block(f"for (var {i} = {start}; {i} < {stop}; {i} += {_AT_ONCE})"):
                    self._turn(v, there, i, stop, key, lead)
                write(v, store.buffer, at, [*there])
        groups = (total(extents) + _WORKGROUP - 1) // _WORKGROUP
        self.m.entry(w, groups, (self.count + each - 1) // each if cut else 1)

    def _turn(
        self, v: Invocation, there: dict[str, str], i: str, stop: str, key: str, lead: str
    ) -> None:
        """A few updates, read at once, then joined as far as they go to the same place."""
        w, store = v.w, self.form.store
        dtype = self.kernel.buffers[store.buffer].dtype
        given: list[tuple[str, list[str]]] = []
        for n in range(_AT_ONCE):
            place = w.let("i32", f"{lead} + min({i} + {n}, {stop} - 1)")
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
