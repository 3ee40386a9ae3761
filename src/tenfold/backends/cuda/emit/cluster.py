"""Rows that two blocks of a cluster keep: what each comes to of a row it tells the other through
shared memory, which the blocks of a cluster can read of one another."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tenfold.backends.cuda.emit.function import FunctionWriter
from tenfold.backends.cuda.emit.joining import Held, Joining
from tenfold.backends.cuda.emit.layout import Layout
from tenfold.backends.cuda.emit.memory import guarded
from tenfold.backends.cuda.emit.team import Team, kept, short, wide
from tenfold.backends.cuda.emit.thread import Text
from tenfold.backends.llvm.writer import Writer
from tenfold.kernel.ir.kernel import Fold

BLOCKS = 2  # of a cluster: more are slower
_PART = 512  # threads that have a chunk at once


class ClusterTeam(Team):
    """The threads of a cluster as one team. The layout is that of all of them."""

    def __init__(self, f: FunctionWriter, layout: Layout) -> None:
        super().__init__(f, layout, layout.threads // BLOCKS)
        w = self.w
        rank = f.sreg("cluster.ctarank")
        self.local = self.thread
        self.me = w.op(f"add i32 {w.op(f'mul i32 {rank}, {self.block}')}, {self.thread}")
        self.warps = self.block // 32

    @property
    def teams(self) -> int:
        return 1

    def first(self) -> Text:
        return self.f.sreg("clusterid.x")

    def wait(self) -> None:
        """Until all threads of the cluster have come here."""
        wait_for_cluster(self.w)

    def across(self, joining: Joining, parts: Sequence[Held], turns: int) -> list[Held]:
        """What the blocks have, turn by turn, block by block."""
        places = [str(n) for n in range(len(parts))]
        writes = self.w.op(f"icmp eq i32 {self.thread}, 0")
        found = exchanged(self.f, joining, parts, places, len(parts), writes, BLOCKS)
        each = len(parts) // turns
        return [
            part
            for turn in range(turns)
            for block in found
            for part in block[turn * each : (turn + 1) * each]
        ]


def wait_for_cluster(w: Writer) -> None:
    """Wait until all threads of the cluster have come here; what they wrote before is seen then."""
    for name in ("arrive", "wait"):
        w.declare(f"void @llvm.nvvm.barrier.cluster.{name}.aligned()")
        w.put(f"call void @llvm.nvvm.barrier.cluster.{name}.aligned()")


def exchanged(
    f: FunctionWriter, joining: Joining, parts: Sequence[Held], places: Sequence[Text],
    count: int, writes: Text, blocks: int,
) -> list[list[Held]]:  # fmt: skip
    """What each block of a cluster has: some of its threads leave parts in these places of shared
    memory, which has so many, and all read there."""
    w, memory = f.w, [f.reserve(kept(ty), count) for ty in joining.types]

    def write() -> list[Text]:
        for place, part in zip(places, parts, strict=True):
            for name, ty, x in zip(memory, joining.types, part, strict=True):
                at = w.op(f"getelementptr {kept(ty)}, ptr addrspace(3) {name}, i32 {place}")
                w.put(f"store {kept(ty)} {wide(w, ty, x)}, ptr addrspace(3) {at}")
        return []

    guarded(w, writes, write, [])
    wait_for_cluster(w)
    there, name = "ptr addrspace(7)", "llvm.nvvm.mapa.shared.cluster"
    found = []
    for rank in range(blocks):
        begins = [w.call(there, name, ("ptr addrspace(3)", m), ("i32", str(rank))) for m in memory]
        block = list[Held]()
        for place in places:
            part = []
            for begin, ty in zip(begins, joining.types, strict=True):
                at = w.op(f"getelementptr {kept(ty)}, {there} {begin}, i32 {place}")
                part.append(short(w, ty, w.op(f"load {kept(ty)}, {there} {at}")))
            block.append(part)
        found.append(block)
    return found


def cluster_layout(extent: Any, packed: bool) -> Layout | None:
    """The layout of a row of so many elements, if a cluster can keep it."""
    fold = Fold()
    for block, turns in ((_PART, 1), (_PART, 2), (2 * _PART, 2)):
        layout = Layout(BLOCKS * block, turns, fold.run, 4, 4 if packed else 1)
        if extent <= layout.reach:
            return layout
    return None
