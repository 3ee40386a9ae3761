"""Columns that the blocks of a cluster keep, each a part of their rows: what it comes to of each
column a block tells the others through shared memory."""

from __future__ import annotations

from math import prod
from typing import Any

from tenfold.backends.cuda.emit.cluster import exchanged, wait_for_cluster
from tenfold.backends.cuda.emit.control import balanced
from tenfold.backends.cuda.emit.function import FunctionWriter, KernelText, finish
from tenfold.backends.cuda.emit.joining import Held, Joining
from tenfold.backends.cuda.emit.keptcolumns import ColumnLayout, ColumnTeam
from tenfold.backends.cuda.emit.phases import BUSY
from tenfold.backends.cuda.emit.rowform import RowForm, passes
from tenfold.backends.cuda.emit.rows import RowsEmitter
from tenfold.backends.llvm.writer import SIZES
from tenfold.kernel.ir.number import Facts, prefers_less

_COLUMNS = 16  # of a block: two sectors of memory
_THREADS = 32  # of a column, in each block
_BLOCKS = (4, 8)  # of a cluster
_KEPT = 128  # bytes of rows that a thread keeps
_SHARING = 2  # blocks that are meant to share a processor


class ClusterColumnTeam(ColumnTeam):
    """The threads of a cluster as teams of one layout, a column each."""

    def __init__(self, f: FunctionWriter, layout: ColumnLayout, blocks: int) -> None:
        own = ColumnLayout(layout.threads // blocks, layout.rows)
        super().__init__(f, own, _COLUMNS * own.threads)
        self.layout, self.blocks = layout, blocks
        first = self.w.op(f"mul i32 {f.sreg('cluster.ctarank')}, {own.threads}")
        self.me = self.w.op(f"add i32 {first}, {self.local}")

    def first(self) -> str:
        return self.w.op(f"mul i32 {self.f.sreg('clusterid.x')}, {self.teams}")

    def wait(self) -> None:
        """Until all threads of the cluster have come here."""
        wait_for_cluster(self.w)

    def across(self, joining: Joining, held: Held) -> Held:
        w = self.w
        writes = w.op(f"icmp eq i32 {self.local}, 0")
        place = [self.number()]
        found = exchanged(self.f, joining, [held], place, self.teams, writes, self.blocks)
        return balanced(w, joining, [part for block in found for part in block])


def cluster_columns(form: RowForm) -> tuple[ColumnLayout, int] | None:
    """The layout of columns that clusters can keep, and of how many blocks these are; None where
    columns are longer, or there are too few to keep a chip busy."""
    kernel = form.kernel
    sizes = [
        SIZES[kernel.buffers[i.attr[0]].dtype]
        for i in kernel.instructions
        if i.op == "load" and i.index is not None and form.row in i.index.axes()
    ]
    rows = max(4, 1 << (_KEPT // max(4, sum(sizes))).bit_length() - 1)
    extent = kernel.axes[form.row].extent
    columns: Any = prod(kernel.axes[a].extent for a in form.outer)
    for blocks in _BLOCKS:
        layout = ColumnLayout(blocks * _THREADS, rows)
        if extent <= layout.reach:
            few = prefers_less(columns * blocks, BUSY * _COLUMNS)
            return None if few else (layout, blocks)
    return None


def emit_cluster_columns(form: RowForm, f: FunctionWriter, facts: Facts) -> KernelText | None:
    """A kernel of columns that clusters keep; None where they are read but once, or can't be
    kept."""
    if not f.target.clusters or passes(form) < 2:
        return None
    found = cluster_columns(form)
    if found is None:
        return None
    layout, blocks = found
    columns: Any = prod(form.kernel.axes[a].extent for a in form.outer)
    team = ClusterColumnTeam(f, layout, blocks)
    RowsEmitter(f, f.thread(), form, team).body(1)
    team.wait()  # no block ends while others read what it told
    f.cluster, f.schedule = blocks, f"clustercolumns{blocks}"
    groups = (columns + team.teams - 1) // team.teams
    return finish([(f, team.block, groups * blocks, _SHARING)], facts)
