"""Rows that two blocks of a cluster keep: what each comes to of a row it tells the other through
shared memory, which the blocks of a cluster can read of one another."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tenfold.backends.cuda.emit.function import FunctionWriter
from tenfold.backends.cuda.emit.joining import Held, Joining
from tenfold.backends.cuda.emit.memory import guarded
from tenfold.backends.cuda.emit.team import Layout, Team, kept, short, wide
from tenfold.backends.cuda.emit.thread import Text
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
        for name in ("arrive", "wait"):
            self.w.declare(f"void @llvm.nvvm.barrier.cluster.{name}.aligned()")
            self.w.put(f"call void @llvm.nvvm.barrier.cluster.{name}.aligned()")

    def across(self, joining: Joining, parts: Sequence[Held], turns: int) -> list[Held]:
        """What the blocks have, turn by turn, block by block."""
        w, memory = self.w, [self.f.reserve(kept(ty), len(parts)) for ty in joining.types]

        def write() -> list[Text]:
            for n, part in enumerate(parts):
                for name, ty, x in zip(memory, joining.types, part, strict=True):
                    at = w.op(f"getelementptr {kept(ty)}, ptr addrspace(3) {name}, i32 {n}")
                    w.put(f"store {kept(ty)} {wide(w, ty, x)}, ptr addrspace(3) {at}")
            return []

        guarded(w, w.op(f"icmp eq i32 {self.thread}, 0"), write, [])
        self.wait()
        found = [self._read(joining, memory, rank, len(parts)) for rank in range(BLOCKS)]
        each = len(parts) // turns
        return [
            part
            for turn in range(turns)
            for block in found
            for part in block[turn * each : (turn + 1) * each]
        ]

    def _read(self, joining: Joining, memory: Sequence[str], rank: int, count: int) -> list[Held]:
        """What a block has written."""
        w, there, name = self.w, "ptr addrspace(7)", "llvm.nvvm.mapa.shared.cluster"
        begins = [w.call(there, name, ("ptr addrspace(3)", m), ("i32", str(rank))) for m in memory]
        found = []
        for n in range(count):
            part = []
            for begin, ty in zip(begins, joining.types, strict=True):
                at = w.op(f"getelementptr {kept(ty)}, {there} {begin}, i32 {n}")
                part.append(short(w, ty, w.op(f"load {kept(ty)}, {there} {at}")))
            found.append(part)
        return found


def cluster_layout(extent: Any, packed: bool) -> Layout | None:
    """The layout of a row of so many elements, if a cluster can keep it."""
    fold = Fold()
    for block, turns in ((_PART, 1), (_PART, 2), (2 * _PART, 2)):
        layout = Layout(BLOCKS * block, turns, fold.run, 4, 4 if packed else 1)
        if extent <= layout.reach:
            return layout
    return None
