"""Which axes lie across lanes, on a GPU across neighbouring threads: chosen by counting trips ×
cost of access and work, from the kernel as it is lowered alone.

It belongs to the kernel and to no schedule, for a sum has another shape where its rounds lie along
its axis than elsewhere (`kernel/analyse/reduction`). One shape for both would be slower: runs of
neighbours cost vectors a transpose, and runs as far apart as the accumulators of a round would
read the rows of a narrow matrix 64 apart.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from tenfold.kernel.analyse.access import (
    GATHERED,
    PACKED,
    STRIDED,
    TRANSPOSED,
    UNIFORM,
    access,
    contiguity,
)
from tenfold.kernel.analyse.cost import work
from tenfold.kernel.analyse.nest import carried_out
from tenfold.kernel.ir.kernel import BOTH, PARALLEL, REDUCED, SEQUENTIAL, Free, Kernel

# In vector instructions: what access costs beside an addition, and a step across lanes.
_ACCESS = {UNIFORM: 0.5, PACKED: 1.0, TRANSPOSED: 4.0, STRIDED: 12.0, GATHERED: 16.0}
_ACROSS = 8.0


def rounds(kernel: Kernel) -> dict[int, int | None]:
    """For each reduction the axis that its rounds lie along; None where a round is one element."""
    facts = LaneChoice(kernel)
    lanes = facts.best()
    return rounds_in(kernel, facts.within(lanes), lanes)


def rounds_in(kernel: Kernel, order: Sequence[int], lanes: Free) -> dict[int, int | None]:
    """`rounds`, where the order of the loops and the axes across lanes are known."""
    found: dict[int, int | None] = {}
    for r, i in enumerate(kernel.instructions):
        if i.op != "reduce":
            continue
        bound = [n + 1 for n, a in enumerate(order) if a in kernel.free[r]]
        outside = order[: max(bound, default=0)]
        inside = next((a for a in sorted(i.attr[1:]) if a in lanes), None)
        found[r] = None if any(a in lanes for a in outside) else inside
    return found


class LaneChoice:
    """The axes of a kernel, and what it costs to lay some of them across lanes."""

    def __init__(self, kernel: Kernel) -> None:
        self.kernel = kernel
        axes = kernel.axes
        self.parallel = [n for n, a in enumerate(axes) if a.kind == PARALLEL]
        self.sequential = [n for n, a in enumerate(axes) if a.kind == SEQUENTIAL]
        self.reduces = [n for n, i in enumerate(kernel.instructions) if i.op == "reduce"]
        self.reduced = frozenset(n for n, a in enumerate(axes) if a.kind == REDUCED)
        self.order = self.ordered()
        self.serial = self.serially()

    def ordered(self) -> list[int]:
        """Axes that reductions depend on outermost, then by the stride of the outputs."""
        kernel = self.kernel
        nested = {a: sum(a in kernel.free[r] for r in self.reduces) for a in self.parallel}
        steps = dict.fromkeys(self.parallel, 0)
        for store in kernel.stores:
            for a in self.parallel:
                steps[a] = max(steps[a], abs(store.index.stride(a) or 0))
        return sorted(self.parallel, key=lambda a: (-nested[a], -steps[a], a))

    def serially(self) -> int | None:
        """The sequential axis to lie across lanes: what is written there is computed side by side
        and stored lane by lane. None where windows lie packed along a parallel axis, or where
        there is more to the order than stores."""
        kernel = self.kernel
        if not self.sequential or self.reduces:
            return None
        stores = [s for s in kernel.stores if kernel.buffers[s.buffer].role == BOTH]
        written = {s.buffer for s in stores}
        if any(i.op == "load" and i.attr[0] in written for i in kernel.instructions):
            return None
        for store in stores:
            for axis in self.parallel:
                if store.index.stride(axis) == 1 and kernel.axes[axis].extent > 1:
                    return None
        return self.sequential[-1]

    def candidates(self) -> Iterator[Free]:
        """Each parallel axis with the reductions that may lie across lanes beside it. What is kept
        of a row is kept of one row at a time: rows do not lie across lanes."""
        inner = frozenset(self.across())
        rows = {axis for buffer in self.kernel.buffers for axis in buffer.rows}
        if self.serial is not None:
            yield frozenset({self.serial})
            return
        for axis in self.parallel:
            if self.kernel.axes[axis].extent > 1 and axis not in rows:
                yield frozenset({axis}) | inner
        yield inner

    def across(self) -> Iterator[int]:
        """For each reduction the axis with the most packed loads, unless reductions nest in it."""
        kernel = self.kernel
        for r in self.reduces:
            axes = kernel.instructions[r].attr[1:]
            free = [a for a in axes if not any(a in kernel.free[q] for q in self.reduces)]
            if free:
                yield max(free, key=lambda a: (contiguity(kernel, a), kernel.axes[a].extent, -a))

    def lane_of(self, free: Free, lanes: Free) -> int | None:
        """The axis across lanes where these axes are bound: the outermost in the nest."""
        for axis in self.order:
            if axis in lanes and axis in free:
                return axis
        return min((a for a in free if a in lanes), default=None)

    def trips(self, free: Free, lanes: Free) -> float:
        """How often a value over these axes is computed, in vectors where lanes lie in them: the
        last of a row is half empty on average. Rounded up, sizes that grow would flip choices."""
        depth = max((self.order.index(a) + 1 for a in free if a in self.order), default=0)
        bound = free | frozenset(self.order[:depth])
        lane, total, wide = self.lane_of(bound, lanes), 1.0, self.kernel.fold.lanes
        for axis in sorted(bound):
            extent = self.kernel.axes[axis].extent
            total *= (extent + wide / 2) / wide if axis == lane else extent
        return total

    def cost(self, lanes: Free) -> float:
        kernel, once = self.kernel, dict[Free, float]()

        def add(free: Free, cost: float) -> None:
            once[free] = once.get(free, 0.0) + cost

        for n, i in enumerate(kernel.instructions):
            free = kernel.free[n]
            if i.op == "load" and i.index is not None:
                add(free, _ACCESS[access(kernel, i.index, self.lane_of(free, lanes))])
            elif i.op == "reduce":
                inside = carried_out(kernel, n)
                add(inside, 1.0)
                if self.lane_of(inside, lanes) in self.reduced:
                    add(free, _ACROSS)
            elif i.op not in ("const", "param"):
                add(free, work(i.op))
        for store in kernel.stores:
            free = kernel.store_free(store)
            add(free, _ACCESS[access(kernel, store.index, self.lane_of(free, lanes), False)])
        return sum(self.trips(free, lanes) * cost for free, cost in once.items())

    def best(self) -> Free:
        """The axes that had better lie across lanes."""
        found, *others = sorted(self.candidates(), key=sorted)
        if others:
            least = self.cost(found)
            for lanes in others:
                cost = self.cost(lanes)
                if cost < least:
                    found, least = lanes, cost
        return found

    def within(self, lanes: Free) -> list[int]:
        """Parallel axes in order, the one across lanes innermost unless reductions nest in it."""
        lane = next((a for a in self.order if a in lanes), None)
        if lane is None or any(lane in self.kernel.free[r] for r in self.reduces):
            return list(self.order)
        return [*(a for a in self.order if a != lane), lane]
