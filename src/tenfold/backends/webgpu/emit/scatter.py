"""Scatters by many invocations, with the bits of one that takes updates in their order.

- Where the order does not matter (integers of 32 bits that are added, or of which the extreme
  stays), each update is an atomic operation. Where all updates write the same, it is a store.
- Where the last update wins, each leaves its number by an atomic maximum, then the winners store.
- Elsewhere, as with sums of floats, updates are sorted by the places they go to, and each place
  takes its own one after the other (`turns`).

Updates are numbered along the axes that places hang on: parallel ones, then those in order. What
lies along other axes, the windows, never meets what lies elsewhere there: it shares a number.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from tenfold.backends.webgpu.emit.grid import first_of
from tenfold.backends.webgpu.emit.module import (
    ModuleWriter,
    global_number,
    scattered,
    spread_over,
    total,
)
from tenfold.backends.webgpu.emit.turns import turns
from tenfold.backends.webgpu.shader import Shader
from tenfold.backends.webgpu.target import WebGPUTarget
from tenfold.backends.webgpu.wgsl.invocation import Invocation, number
from tenfold.backends.webgpu.wgsl.memory import guard, load, store
from tenfold.kernel.analyse.scatter import scatter_of
from tenfold.kernel.ir.index import AXIS, Atom, Index
from tenfold.kernel.ir.kernel import SEQUENTIAL, Kernel
from tenfold.kernel.ir.number import prefers_less

_WORKGROUP = 256
_FEW = 33  # updates in order below which each invocation takes all of its window's
_MOST = 1 << 31  # invocations: they are numbered by 32 bits
_ATOMIC = {"add": "atomicAdd", "max": "atomicMax", "min": "atomicMin"}


def emit_scatter(kernel: Kernel, target: WebGPUTarget) -> Shader | None:
    """A legal kernel with axes in order, if it is a scatter that many invocations can carry out."""
    found = scatter_of(kernel)
    if found is None:
        return None
    form = ScatterForm(kernel, target, found)
    if prefers_less(total([kernel.axes[a].extent for a in form.ordered]), _FEW):
        return None
    if not total([axis.extent for axis in kernel.axes]) < _MOST:
        return None
    return form.emit()


class ScatterForm:
    """A kernel with one store that is a scatter, and its entry points."""

    def __init__(self, kernel: Kernel, target: WebGPUTarget, chosen: int) -> None:
        self.kernel, self.target, self.chosen = kernel, target, chosen
        self.store = kernel.stores[chosen]
        self.dtype = kernel.buffers[self.store.buffer].dtype
        placed = frozenset[int]().union(*(kernel.free[v] for v in self.store.index.values()))
        axes = range(len(kernel.axes))
        self.ordered = [a for a in axes if kernel.axes[a].kind == SEQUENTIAL]
        beside = [a for a in axes if a in placed and a not in self.ordered]
        self.numbered = [*beside, *self.ordered]
        self.windows = [a for a in axes if a not in self.numbered]
        self.index = self.store.index.rebuild(self._without_windows)
        self.m = ModuleWriter(kernel, target, _WORKGROUP)

    def _without_windows(self, atom: Atom) -> Index:
        inside = atom.kind == AXIS and atom.of in self.windows
        return Index() if inside else Index(((atom, 1),))

    def emit(self) -> Shader | None:
        values = [v for v in (self.store.value, self.store.second) if v is not None]
        free = frozenset[int]().union(*(self.kernel.free[v] for v in values))
        if not self.store.update:
            if not free & set(self.ordered):
                return self._at_once("stores of equal values")
            return self._last_wins()
        if self.dtype in ("i32", "u32") and self.store.update in _ATOMIC:
            return self._at_once("an atomic operation for each update")
        return turns(self)

    def shows(self, nbytes: Any) -> bool:
        """Whether so much memory between dispatches is shown to one."""
        return bool(nbytes <= self.target.storage_bytes)

    def _at_once(self, words: str) -> Shader:
        """All that there is to be done for each update."""
        self._finish_with("")
        return self.m.finish(words)

    def _last_wins(self) -> Shader | None:
        size: Any = self.kernel.buffers[self.store.buffer].size
        if not self.shows(4 * size):
            return None
        marks = self.m.partial("atomic<u32>", size)
        for name in ("clear", "mark"):
            v = self.m.invocation()
            me = global_number(v.w, _WORKGROUP)
            with self.grid(v, me, self.numbered):
                place = self.place(v)
                if name == "clear":  # of what is touched, not of all
                    v.w.put(f"atomicStore(&{marks}[{place}], 0u);")
                else:
                    v.w.put(f"atomicMax(&{marks}[{place}], u32({me}) + 1u);")
            self.m.entry(v.w, self.groups(self.numbered))
        self._finish_with(marks)
        return self.m.finish("updates leave their numbers, the last ones store")

    def _finish_with(self, marks: str) -> None:
        """An entry point for each position: what is stored, where it wins if there are marks, and
        all else that the kernel does."""
        kernel, store_ = self.kernel, self.store
        plain = self.store.update == ""
        atomic = scattered(kernel) if plain else scattered(kernel) | {store_.buffer}
        v = self.m.invocation(atomic)
        w, axes = v.w, [*self.numbered, *self.windows]
        me = global_number(w, _WORKGROUP)
        with self.grid(v, me, axes):
            self.others(v)
            self.compute(v, store_.uses())
            if not plain:
                at = w.let("i32", v.position(store_.index))
                called = _ATOMIC[store_.update]
                w.put(f"{called}(&b{store_.buffer}[{at}], {v.get(store_.value)});")
            elif marks:
                winner = w.let("u32", f"atomicLoad(&{marks}[{self.place(v)}])")
                store(v, self.chosen, f"{winner} == u32({self.number(v)}) + 1u")
            else:
                store(v, self.chosen)
        self.m.entry(w, self.groups(axes))

    def grid(self, v: Invocation, me: str, axes: Sequence[int]) -> Any:
        """A block for each position of some axes."""
        extents: list[Any] = [self.kernel.axes[a].extent for a in axes]
        block = v.w.block(f"if ({me} < {number(total(extents))})")
        return _Placed(block, lambda: spread_over(v, axes, extents, me))

    def groups(self, axes: Sequence[int]) -> Any:
        count = total([self.kernel.axes[a].extent for a in axes])
        return (count + _WORKGROUP - 1) // _WORKGROUP

    def compute(self, v: Invocation, values: Iterable[int]) -> None:
        """What some values need, and they themselves."""
        wanted = set(values)
        for n in range(len(self.kernel.instructions) - 1, -1, -1):
            if n in wanted:
                wanted.update(self.kernel.instructions[n].uses())
        for n in sorted(wanted):
            if (n, 0) not in v.env:
                if self.kernel.instructions[n].op == "load":
                    load(v, n)
                else:
                    v.compute(n)

    def others(self, v: Invocation) -> None:
        """Checks, and stores whose order does not matter."""
        kernel = self.kernel
        self.compute(v, (c.condition for c in kernel.checks))
        for n in range(len(kernel.checks)):
            guard(v, n)
        for n, item in enumerate(kernel.stores):
            if n != self.chosen:
                self.compute(v, item.uses())
                free = kernel.store_free(item)
                store(v, n, first_of(v.axes, [a for a in range(len(kernel.axes)) if a not in free]))

    def place(self, v: Invocation) -> str:
        """The place of an update: that of the first in its window."""
        self.compute(v, self.store.index.values())
        return v.w.let("i32", v.position(self.index))

    def number(self, v: Invocation) -> str:
        """The number of an update."""
        at = "0"
        for axis in self.numbered:
            at = v.w.let("i32", f"{at} * {number(self.kernel.axes[axis].extent)} + {v.axes[axis]}")
        return at


class _Placed:
    """A block that begins by saying where axes stand."""

    def __init__(self, block: Any, place: Any) -> None:
        self.block, self.place = block, place

    def __enter__(self) -> None:
        self.block.__enter__()
        self.place()

    def __exit__(self, *why: object) -> None:
        self.block.__exit__(None, None, None)
