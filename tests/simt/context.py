"""A launch while it runs: its threads, its memory, and what is known about them."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from .errors import Fault, Site
from .memory import CONSTANT, LOCAL, SHARED, Memory, Segment, Segments
from .types import Value

if TYPE_CHECKING:
    from .instructions import Slot
    from .parse import Variable
    from .races import Races

WARP = 32
Shape = tuple[int, int, int]
Ints = NDArray[np.int64]


class Context:
    """Threads are numbered through all blocks; those of a block follow each other."""

    def __init__(
        self,
        name: str,
        grid: Shape,
        block: Shape,
        cluster: int,
        memory: Memory,
        approximate: bool,
    ) -> None:
        self.name, self.grid, self.block, self.cluster = name, grid, block, cluster
        self.approximate = approximate
        self.memory = memory
        self.size = block[0] * block[1] * block[2]  # threads of a block
        self.blocks = grid[0] * grid[1] * grid[2]
        self.threads = self.size * self.blocks
        self.rows: Ints = np.arange(self.threads)
        self.block_of: Ints = self.rows // self.size
        self.returned = np.zeros(self.threads, np.bool_)
        self.segments = Segments()
        for segment in memory.segments.list:
            self.segments.add(segment)
        self.races: Races | None = None
        # Cluster barriers: how often each thread has arrived, and how often it has waited.
        self.arrived: Ints = np.zeros(self.threads, np.int64)
        self.waited: Ints = np.zeros(self.threads, np.int64)
        self._places: dict[str, Value] = {}

    def add_variables(self, variables: list[Variable], shared_bytes: int) -> None:
        for v in variables:
            if v.data is not None:
                segment = Segment(v.address, v.size, f"@{v.name}", writable=False)
                raw = np.ascontiguousarray(v.data).view(np.uint8)
                segment.data[: raw.size] = raw
            else:
                size = v.size or shared_bytes
                if not size or self.segments.at(v.address):
                    continue  # dynamic memory under a second name
                segment = Segment(v.address, size, f"@{v.name}", self.blocks, "block", tracked=True)
            self.segments.add(segment)

    def add_slots(self, slots: dict[Slot, int]) -> None:
        for slot, address in slots.items():
            name = f"%{slot.name} of @{slot.function}"
            made = Segment(address, slot.size, name, self.threads, "thread", tracked=True)
            self.segments.add(made)

    @cached_property
    def in_block(self) -> Ints:
        """The number of each thread in its block."""
        return self.rows % self.size

    @cached_property
    def lane(self) -> Ints:
        return self.in_block % WARP

    @cached_property
    def warp_slot(self) -> Ints:
        """A place for each thread in a table with 32 places for each warp."""
        per_block = -(-self.size // WARP) * WARP
        return self.block_of * per_block + self.in_block

    @property
    def warp_slots(self) -> int:
        return self.blocks * -(-self.size // WARP) * WARP

    def place(self, name: str, rows: Ints) -> Value:
        """tid.x and the like; one number where all threads have the same."""
        found = self._places.get(name)
        if found is None:
            found = self._places[name] = self._place(name)
        if not isinstance(found, np.ndarray) or rows is self.rows:
            return found
        return found[rows]

    def _place(self, name: str) -> Value:
        kind, _, letter = name.partition(".")
        axis = "xyz".index(letter) if letter else 0
        if kind == "ntid":
            return np.uint32(self.block[axis])
        if kind == "nctaid":
            return np.uint32(self.grid[axis])
        if kind == "cluster_nctaid":
            return np.uint32(self.cluster if axis == 0 else 1)
        if kind == "nclusterid":
            return np.uint32(self.grid[axis] // (self.cluster if axis == 0 else 1))
        if kind == "warpsize":
            return np.uint32(WARP)
        if kind in ("tid", "laneid"):
            found = _coordinate(self.in_block, self.block, axis) if letter else self.lane
        else:
            found = _coordinate(self.block_of, self.grid, axis)
            size = self.cluster if axis == 0 else 1
            if kind == "clusterid":
                found = found // size
            elif kind != "ctaid":  # cluster_ctaid, cluster_ctarank
                found = found % size
        found = found.astype(np.uint32)
        return found[0] if (found == found[0]).all() else found

    def fault(self, kind: type[Fault], site: Site | None, row: Any, message: str) -> Fault:
        """An error that names the line and the thread."""
        where = f"\n  in {site}" if site else ""
        return kind(f"{message}{where}\n  by {self.thread(int(row))}")

    def thread(self, row: int) -> str:
        inside = tuple(int(_coordinate(row % self.size, self.block, n)) for n in range(3))
        block = tuple(int(_coordinate(row // self.size, self.grid, n)) for n in range(3))
        return f"thread {inside} of block {block}"


def _coordinate(number: Any, shape: Shape, axis: int) -> Any:
    if axis == 0:
        return number % shape[0]
    if axis == 1:
        return number // shape[0] % shape[1]
    return number // (shape[0] * shape[1])


def space_of(address: int) -> str:
    """The memory that an address means, in words."""
    window = address >> 56 << 56
    return {0: "global", SHARED: "shared", LOCAL: "local", CONSTANT: "constant"}.get(
        window, "no known"
    )
