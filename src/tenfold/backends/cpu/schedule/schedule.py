"""How a kernel runs on a CPU: the order of its axes, what lies across lanes, tails and tiles.

Which axes lie across lanes is the kernel's (`kernel/analyse/lanes`), for the shape of sums hangs on
it. All else depends on the kernel and the target alone.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from math import gcd, lcm

from tenfold.backends.cpu.schedule.row_blocking import row_block
from tenfold.backends.cpu.schedule.traffic import lined_up, prefetches, streamed
from tenfold.backends.cpu.threads.cut import ROW_BYTES
from tenfold.backends.llvm.target import LLVMTarget
from tenfold.backends.llvm.writer import LANES, SIZES, kind
from tenfold.frozen import frozen
from tenfold.kernel.analyse.access import (
    affine,
    in_place,
)
from tenfold.kernel.analyse.cost import size, small, space, work
from tenfold.kernel.analyse.lanes import LaneChoice
from tenfold.kernel.analyse.nest import Loop, nest
from tenfold.kernel.ir.index import AXIS, DIV, MOD, Index
from tenfold.kernel.ir.kernel import (
    Free,
    Kernel,
    stages,
)
from tenfold.kernel.ir.number import Number
from tenfold.kernel.passes.collapse import collapse
from tenfold.kernel.passes.flatten import TINY, flatten
from tenfold.kernel.passes.keep import keep
from tenfold.kernel.passes.unroll import unroll

TILE_ROWS, TILE_COLUMNS = 64, 64  # of a transposed tile
CHUNK = 1024  # elements of a lane axis whose accumulators are kept in memory
STACK = 65536  # bytes of it that tiles or accumulators may take
_LEAST_CHUNK = 128
_GRAIN = 1024  # a lane axis is cut between threads at multiples of this
_SHARED = 1 << 17  # elements of a whole reduction whose code can be cut: it takes longer to compile
_COLUMNS = 128  # and so, where each of its elements is a column that is reduced
_BUDGET = 3000  # copies × instructions, of all rows
_HEAVY = 30  # work that is bound by latency unless several vectors are interleaved
_LONGEST_KEPT = 65536  # elements of a row: longer ones are recomputed sooner than read back
_FEW_ROWS = 32  # that are reduced: accumulators of more columns are kept in memory
_SHORTEST_CUT = 32  # of the parts of an axis that is cut at a joint


@frozen
class Tile:
    """Loads that step over memory along the lane axis and lie packed along `row`."""

    row: int
    loads: tuple[tuple[int, Index], ...]  # buffer and place


@frozen
class Schedule:
    """The loops of a kernel on a CPU."""

    order: tuple[int, ...]  # parallel and sequential axes, outermost first
    lanes: Free  # axes laid across lanes, the first that a nest meets
    copies: int = 1  # vectors interleaved along the lane axis
    reduced: tuple[int, ...] = ()  # the order of reduced axes inside one reduction
    outer: int | None = None  # the axis that may be cut into parts
    grain: int = 1  # where it may be cut; not at all if that exceeds its extent
    folded: int | None = None  # the reduced axis that may be, where there is no other
    cuts: tuple[tuple[int, int], ...] = ()  # (axis, position): where conditions change
    overlap: bool = False  # the last vector may redo elements of the one before
    tile: Tile | None = None
    period: bool = False  # copies make up the period of remainders by small numbers
    stream: int | None = None  # a non-temporal store: it goes past the caches
    lined: int | None = None  # a store whose vectors begin with lines of memory
    chunk: int = 0  # accumulators over this many lanes' elements are kept in memory
    rows: int = 1  # row blocking: short rows that are computed at once
    # software pipelining: the first reductions of a row come before the stores of the last one
    pipelined: bool = False
    # what the next row reads: the axis of the loop that prefetches it, buffer and place
    prefetched: tuple[tuple[int, int, Index], ...] = ()
    small: bool = False  # a general kernel of few elements: one code for all their numbers

    @property
    def cuttable(self) -> int | None:
        """The axis that threads share, if any."""
        return self.folded if self.outer is None else self.outer

    def cuts_of(self, axis: int) -> tuple[int, ...]:
        return tuple(position for a, position in self.cuts if a == axis)


def choose(kernel: Kernel, target: LLVMTarget) -> Schedule:
    """The schedule of a kernel for a target."""
    choice = _ScheduleChoice(kernel)
    return choice.schedule(choice.best(), target)


class _ScheduleChoice(LaneChoice):
    """What the choice is made from."""

    def schedule(self, lanes: Free, target: LLVMTarget) -> Schedule:
        kernel = self.kernel
        few = self.small = kernel.sizes > 0 and small(kernel)
        lane = next((a for a in self.order if a in lanes), None)
        order = self.within(lanes)
        tile = self.tile(lane)
        if tile is not None and lane is not None:
            order = [a for a in order if a not in (tile.row, lane)] + [tile.row, lane]
        outer = order[0] if order else None
        grain = 1
        if outer is not None and outer == lane:
            grain = _COLUMNS if self.nested(lane) or self.sequential else _GRAIN
            if len(order) > 1 and not (few or self.sequential) and self.few_columns(lane):
                outer, grain = order[1], 1
        elif tile is not None and outer == tile.row:
            grain = TILE_ROWS
        # A sequential axis goes inside what may be cut, and outside the lanes.
        at = next((n for n, a in enumerate(order) if a == lane), len(order))
        order[at:at] = self.sequential
        copies, chunk = self.copies(lane, tile, self.at_once(target))
        period = self.period(lane) if tile is None and not chunk else 0
        if period:
            copies = period
            grain = grain * period if outer == lane else grain
        reduced = tuple(sorted(self.reduced, key=lambda a: (a in lanes, a)))
        folded = None if few else self.folded(reduced)
        if folded is not None:
            # Whole chunks, or as many runs as are joined at once (`emit/fold`).
            grain = kernel.fold.stretch if folded in lanes else 4 * kernel.fold.run
        stream = None
        if not (period or chunk or few):
            stream = streamed(kernel, lane, tile is not None, target)
        lined = None
        overlap = not (tile or period or chunk or in_place(kernel) or self.sequential)
        if stream is None and overlap and not (few or self.reduces):
            lined = lined_up(kernel, lane, order)
        deepest = max((stages(kernel)[r] for r in self.reduces), default=0)
        pipelined = stream is not None and deepest > 1
        rows = 1
        if lane is not None and not (tile or period or chunk or few):
            rows = row_block(kernel, lane, order, copies, int(_BUDGET / size(kernel)))
        fetched: tuple[tuple[int, int, Index], ...] = ()
        if not (tile or chunk or few):
            fetched = prefetches(kernel, lane, order, lanes, pipelined)
        return Schedule(
            order=tuple(order),
            lanes=lanes,
            copies=copies,
            reduced=reduced,
            outer=outer,
            grain=grain,
            folded=folded,
            cuts=() if tile is not None or chunk else self.cuts(),
            overlap=overlap,
            tile=tile,
            period=bool(period),
            stream=stream,
            lined=lined,
            chunk=chunk,
            rows=rows,
            pipelined=pipelined and bool(fetched),
            prefetched=fetched,
            small=few,
        )

    def folded(self, reduced: Sequence[int]) -> int | None:
        """The reduced axis along which parts are joined: of a kernel that is one reduction, or
        several in one loop, and what is computed from their results."""
        kernel = self.kernel
        if self.parallel or self.sequential or any(b.rows for b in kernel.buffers):
            return None
        loops = [item for item in nest(kernel, (), reduced) if isinstance(item, Loop)]
        if len(loops) != 1 or not isinstance(kernel.axes[loops[0].axis].extent, Number):
            return None
        room = 0
        for i in (kernel.instructions[r] for r in self.reduces):
            letter = kind(i.dtype)
            if i.attr[0] == "prod" and letter == "c":
                return None  # joined in any order, and so never in another
            shaped = i.attr[0] in ("sum", "prod") and letter in "fc"
            room += 2 * LANES * 8 if shaped else kernel.fold.round * (SIZES[i.dtype] + 8)
        return loops[0].axis if room <= ROW_BYTES and space(kernel) >= _SHARED else None

    def period(self, lane: int | None) -> int:
        """How many vectors it takes until remainders by small numbers repeat; 0 without any."""
        found = 0
        for i in self.kernel.instructions:
            for atom, _ in () if i.index is None or i.op != "load" else i.index.terms:
                if atom.kind not in (DIV, MOD) or isinstance(atom.bound, Number):
                    continue
                if atom.bound <= TINY and lane in atom.of.axes():
                    found = lcm(max(1, found), atom.bound // gcd(atom.bound, LANES))
        return found if found <= TINY and not self.reduces else 0

    def at_once(self, target: LLVMTarget) -> int:
        """How many vectors may be interleaved before they ask for more registers than there are:
        a value takes up to a quarter of them."""
        widest = max((SIZES[i.dtype] for i in self.kernel.instructions), default=1)
        room = 8 if target.vector_bytes == 64 else 4
        return max(1, room * target.vector_bytes // (LANES * min(8, widest)))

    def copies(self, lane: int | None, tile: Tile | None, at_once: int) -> tuple[int, int]:
        """Vectors interleaved along the lanes, and the chunk of accumulators kept in memory."""
        kernel = self.kernel
        # A power of two, so that a grain is a whole number of trips.
        budget = 1 << max(0, int(_BUDGET / size(kernel)).bit_length() - 1)
        most = min(budget, at_once)
        if lane is not None and self.nested(lane):
            chunk = 0 if self.small else self.chunked(lane)
            if chunk:
                return 1, chunk
            extent = kernel.axes[lane].extent
            if self.small:
                return min(2, most), 0
            wanted = next((n for n in (4, 2) if extent >= n * LANES), 1)
            return min(wanted, most), 0
        if self.reduces:
            return self.after(lane, min(kernel.fold.copies, budget), at_once), 0
        if tile is not None:
            return min(4, most), 0
        heavy = sum(work(i.op) for i in kernel.instructions) > _HEAVY and self.serial is None
        return (min(4, most) if heavy else 1), 0

    def nested(self, lane: int) -> list[int]:
        """The reductions inside the loop over an axis."""
        return [r for r in self.reduces if lane in self.kernel.free[r]]

    def few_columns(self, lane: int) -> bool:
        """Whether so few columns are reduced that threads had better share what lies inside: each
        reduces them anew."""
        return bool(self.nested(lane)) and self.kernel.axes[lane].extent <= _COLUMNS

    def chunked(self, lane: int | None) -> int:
        """The chunk of accumulators kept in memory, if they had better be; else 0."""
        axes = self.kernel.axes
        if lane is None or not self.nested(lane) or axes[lane].extent <= LANES * LANES:
            return 0
        over = {a for r in self.nested(lane) for a in self.kernel.instructions[r].attr[1:]}
        if not self.keeps_columns(lane) or all(axes[a].extent <= _FEW_ROWS for a in over):
            return 0
        return self.chunk(lane)

    def after(self, lane: int | None, most: int, at_once: int) -> int:
        """Vectors interleaved in the loop that follows the reductions of a row: all, where a row
        then stays in registers; some, where the work is heavy."""
        kernel = self.kernel
        if lane is None:
            return most
        inside = (i.op for n, i in enumerate(kernel.instructions) if lane in kernel.free[n])
        some = min(most, at_once) if sum(map(work, inside)) > _HEAVY else 1
        if some == most:
            return most
        return most if not self.small and kernel.axes[lane].extent <= kernel.fold.round else some

    def chunk(self, lane: int) -> int:
        """Elements of the lane axis whose values and accumulators fit the stack's share."""
        kernel, size = self.kernel, 0
        for n, i in enumerate(kernel.instructions):
            if kernel.free[n] == {lane}:
                size += SIZES[i.dtype] + (8 * len(i.args) if i.op == "reduce" else 0)
                if i.op == "reduce" and i.attr[0] in ("sum", "prod") and kind(i.dtype) == "f":
                    size += max(4, SIZES[i.dtype]) * row_places(kernel, i.attr[1])
        fitting = STACK // max(1, size) // _LEAST_CHUNK * _LEAST_CHUNK
        return min(CHUNK, fitting)

    def keeps_columns(self, lane: int) -> bool:
        """Whether column accumulators, one an element of the lane axis, may be kept in memory: of
        simple nests only."""
        kernel = self.kernel
        return (
            lane == self.order[0]
            and not self.sequential
            and all(len(kernel.instructions[r].attr) == 2 for r in self.reduces)
            and all(kernel.free[r] == {lane} for r in self.reduces)
            and not any(b.rows for b in kernel.buffers)
            and not kernel.checks
            and not any(kind(i.dtype) == "c" for i in kernel.instructions)
        )

    def tile(self, lane: int | None) -> Tile | None:
        """Transposed loads, where both axes are parallel and nothing is reduced."""
        kernel = self.kernel
        if lane is None or self.reduces or self.sequential:
            return None
        found: dict[int, list[tuple[int, Index]]] = {}
        for n, i in enumerate(kernel.instructions):
            if i.op != "load" or i.index is None or i.args or not affine(i.index):
                continue
            step = i.index.stride(lane)
            if lane not in kernel.free[n] or step in (0, 1, -1) or kind(i.dtype) == "c":
                continue
            for a in self.parallel:
                if a != lane and i.index.stride(a) == 1:
                    found.setdefault(a, []).append((i.attr[0], i.index))
        if not found:
            return None
        row = max(found, key=lambda a: (len(found[a]), -a))
        extents = kernel.axes[row].extent, kernel.axes[lane].extent
        if not self.small and any(extent < LANES for extent in extents):
            return None
        loads, left = list[tuple[int, Index]](), STACK
        for buffer, index in found[row]:  # those that find no room are gathered
            left -= TILE_ROWS * TILE_COLUMNS * SIZES[kernel.buffers[buffer].dtype]
            if left >= 0:
                loads.append((buffer, index))
        return Tile(row, tuple(loads))

    def cuts(self) -> tuple[tuple[int, int], ...]:
        """Where conditions on a single axis change, if what they part is long enough; of a small
        kernel, whatever they are, if they are two."""
        points: dict[int, list[int]] = {}
        for i in self.kernel.instructions:
            if i.op != "inside" or i.index is None or len(i.index.terms) != 1:
                continue
            ((atom, k),) = i.index.terms
            size = 1
            if (
                atom.kind == DIV
                and atom.of == Index(atom.of.terms[:1])
                and atom.of.terms[0][1] == 1
            ):
                size, atom = atom.bound, atom.of.terms[0][0]  # of an axis made of two
            if atom.kind != AXIS or k not in (1, -1) or atom.of in self.reduced:
                continue
            for end in i.attr:
                point = end - i.index.const if k == 1 else i.index.const - end + 1
                points.setdefault(atom.of, []).append(point * size)
        found: list[tuple[int, int]] = []
        for axis, where in sorted(points.items()):
            extent = self.kernel.axes[axis].extent
            inside = [0]
            for p in sorted(p for p in where if 0 < p < extent):
                if p != inside[-1]:
                    inside.append(p)
            parts = list(pairwise((*inside, extent)))
            long = self.small or all(b - a >= _SHORTEST_CUT for a, b in parts)
            if len(parts) <= (2 if self.small else 4) and long:
                found += [(axis, p) for p in inside[1:]]
        return tuple(found) if len(found) <= (1 if self.small else 3) else ()


def row_places(kernel: Kernel, axis: int) -> int:
    """Runs of rows wait in so many places to be joined, that of 2**n in place n."""
    runs = kernel.axes[axis].extent // kernel.fold.run
    return next(places for places in (10, 20, 40) if runs < 1 << places or places == 40)


def tune(kernel: Kernel) -> Kernel:
    """The kernel in the form that runs best on a CPU: neighbouring axes as one, and costly values
    of a row kept in scratch. To be called before buffers are placed, for it may add scratch
    buffers at the end."""
    kernel = collapse(kernel)
    if not any(i.op == "reduce" for i in kernel.instructions):
        for axis in range(len(kernel.axes) - 1, -1, -1):
            kernel = flatten(kernel, axis)
    else:
        kernel = unroll(kernel)
    choice = _ScheduleChoice(kernel)
    if not choice.reduces or any(b.rows for b in kernel.buffers):
        return kernel
    lanes = choice.best()
    lane = next((a for a in choice.order if a in lanes), None)
    few = small(kernel)
    if not few and choice.chunked(lane):
        return kernel
    for axis in sorted(lanes):
        short = kernel.axes[axis].extent <= kernel.fold.round and not few
        results = [
            kernel.free[n]
            for n, i in enumerate(kernel.instructions)
            if i.op == "reduce" and axis in i.attr[1:]
        ]
        far = kernel.axes[axis].extent > _LONGEST_KEPT
        if results and not (short or far) and not any(lane in f for f in results):
            kernel = keep(kernel, axis)
    return kernel
