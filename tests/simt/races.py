"""Races: accesses of two threads to one byte, one of them a store, that nothing orders.

For each granule of memory there is one word for the last store and one for the loads since: who it
was, and how many barriers had been passed. A barrier of the block (or cluster) orders what its
threads did before with what they do after it. So does, between any threads, an atomic operation
that releases and one that acquires later; which location they meet at is not looked at.

Stores of the same value are no race, nor are atomic operations among themselves. What is found is
a race on some schedule, not only on the one that is carried out here.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .context import Context, Ints
from .errors import Fault, Race, Site
from .memory import Segment

# A word: who + 1, what kind of who, barriers passed, cluster barriers arrived at. 0 is nobody.
_KIND, _EPOCH, _PHASE = 30, 32, 52
_THREAD, _BLOCK, _CLUSTER, _GRID = range(4)  # a thread; several of one block, of one cluster, any
_EPOCHS = 1 << (_PHASE - _EPOCH)
_PHASES = 1 << (63 - _PHASE)
_ACQUIRES = ("acquire", "acq_rel", "seq_cst")
_RELEASES = ("release", "acq_rel", "seq_cst")

Mask = NDArray[np.bool_]


class _Trace:
    """The last accesses of one kind: words, and times; zeros take no memory until touched."""

    def __init__(self, did: str, count: int) -> None:
        self.did = did
        self.any = False
        self.word, self.time = _zeros(count), _zeros(count)

    def refine(self, more: int) -> None:
        self.word, self.time = np.repeat(self.word, more), np.repeat(self.time, more)

    def note(self, at: Ints, word: Ints, now: int) -> None:
        self.any = True
        self.word[at] = word
        self.time[at] = now


class _Shadow:
    """What was done to the granules of a segment."""

    def __init__(self, segment: Segment, grain: int) -> None:
        self.segment, self.grain = segment, grain
        count = segment.data.size // grain
        self.store, self.load = _Trace("wrote", count), _Trace("read", count)
        self.atomic = _Trace("changed atomically", count)

    def refine(self, grain: int) -> None:
        """Smaller granules from now on."""
        for trace in (self.store, self.load, self.atomic):
            trace.refine(self.grain // grain)
        self.grain = grain


def _zeros(count: int) -> Ints:
    return np.zeros(count, np.int64)


@dataclass
class _Release:
    """Atomic operations of one instruction that release."""

    threads: Ints  # rising
    at: Ints  # when
    covers: Ints  # what was done before this is released
    epochs: Ints


class Races:
    def __init__(self, ctx: Context) -> None:
        self.ctx = ctx
        self.shadows: dict[Segment, _Shadow] = {}
        self.now = 1
        self.epoch = _zeros(ctx.blocks)
        self.word: Ints = ctx.rows + 1  # of each thread, as it is now
        self.fenced, self.pending, self.acquired = (_zeros(ctx.threads) for _ in range(3))
        self.block_acquired = _zeros(ctx.blocks)
        self.releases: list[_Release] = []

    # What goes on

    def load(self, segment: Segment, at: Any, grain: int, rows: Ints, site: Site) -> None:
        """Threads load granules: one row a thread, or a single row for all."""
        shadow, at, rows = self._prepared(segment, at, grain, rows)
        places, first, last = self._runs(at, rows)
        several = first != last
        if shadow.store.any or shadow.atomic.any:
            ends = np.concatenate((places, places[several]))
            threads = np.concatenate((first, last[several]))
            self._check(shadow, shadow.store, ends, threads, site, "reads")
            self._check(shadow, shadow.atomic, ends, threads, site, "reads")
        word = self.word[first]
        block = _passed(word) | _BLOCK << _KIND | (self.ctx.block_of[first] + 1)
        self._mark_loads(shadow.load, places, first, np.where(several, block, word))

    def store(
        self,
        segment: Segment,
        at: Ints,
        grain: int,
        rows: Ints,
        site: Site,
        same: Callable[[], Mask],
    ) -> None:
        """Threads store to granules; `same` says for which threads that changes nothing."""
        shadow, at, rows = self._prepared(segment, at, grain, rows)
        self._check(shadow, shadow.store, at, rows, site, "writes another value over", same)
        self._check(shadow, shadow.load, at, rows, site, "writes")
        self._check(shadow, shadow.atomic, at, rows, site, "writes")
        shadow.store.note(at, self.word[rows], self.now)

    def atomic(
        self,
        segment: Segment,
        at: Any,
        grain: int,
        rows: Ints,
        site: Site,
        order: str,
        writes: bool,
    ) -> None:
        """Threads load, store or change granules by atomic operations of this order."""
        threads = rows
        shadow, at, rows = self._prepared(segment, at, grain, rows)
        self._check(shadow, shadow.store, at, rows, site, "accesses atomically")
        if writes:
            self._check(shadow, shadow.load, at, rows, site, "changes atomically")
            shadow.atomic.note(at, self.word[rows], self.now)
        when = self.now + np.arange(threads.size)
        self.now += threads.size
        if order in _ACQUIRES:
            self.acquired[threads] = when
        else:
            self.pending[threads] = when
        covers = when if order in _RELEASES else self.fenced[threads]
        epochs = self.epoch[self.ctx.block_of[threads]]
        self.releases.append(_Release(threads, when, covers, epochs))

    def fence(self, rows: Ints) -> None:
        """Atomic operations before it acquire, those after it release."""
        self.now += 1
        self.fenced[rows] = self.now
        self.acquired[rows] = np.maximum(self.acquired[rows], self.pending[rows])

    def barrier(self, blocks: Ints, cluster: bool) -> None:
        """All threads of these blocks have passed a barrier; what one acquired, all have."""
        ctx = self.ctx
        self.now += 1
        if not cluster:
            self.epoch[blocks] += 1
        per_block = self.acquired.reshape(ctx.blocks, ctx.size).max(1)
        per_block = np.maximum(per_block, self.block_acquired)
        if cluster:
            per_block = np.repeat(per_block.reshape(-1, ctx.cluster).max(1), ctx.cluster)
        self.block_acquired[blocks] = per_block[blocks]
        self.update_words()

    def update_words(self) -> None:
        """After threads have passed barriers, or arrived at one of their cluster."""
        ctx = self.ctx
        if self.epoch.max() >= _EPOCHS or ctx.arrived.max() >= _PHASES:
            raise ctx.fault(Fault, None, 0, "more barriers than races can be looked for with")
        passed = self.epoch[ctx.block_of] << _EPOCH
        self.word = (ctx.rows + 1) | passed | (ctx.arrived << _PHASE)

    # What is found

    def _prepared(
        self, segment: Segment, at: Any, grain: int, rows: Ints
    ) -> tuple[_Shadow, Ints, Ints]:
        """The shadow, and granules and threads as arrays of one shape."""
        self.now += 1
        shadow = self.shadows.get(segment)
        if shadow is None:
            shadow = self.shadows[segment] = _Shadow(segment, grain)
        if grain < shadow.grain:
            shadow.refine(grain)
        at = np.broadcast_to(at, (rows.size, *np.shape(at)[1:]))
        if grain > shadow.grain:
            more = grain // shadow.grain
            at = (at[..., None] * more + np.arange(more)).reshape(rows.size, -1)
        if at.ndim > 1:
            rows = np.broadcast_to(rows[:, None], at.shape)
        return shadow, at, rows

    def _check(
        self,
        shadow: _Shadow,
        trace: _Trace,
        at: Ints,
        rows: Ints,
        site: Site,
        does: str,
        same: Callable[[], Mask] | None = None,
    ) -> None:
        """Raise if what threads do now is not ordered after what was done, and not the same."""
        if not trace.any:
            return
        old = trace.word[at]
        found = self._unordered(old, trace.time[at], rows)
        if same is not None and found.any():
            found &= ~same().reshape(-1, *([1] * (found.ndim - 1)))
        if not found.any():
            return
        first = int(found.reshape(-1).argmax())
        row, word = int(rows.reshape(-1)[first]), int(old.reshape(-1)[first])
        who, kind = _who(word), word >> _KIND & 3
        others = {
            _BLOCK: f"one of several of block number {who}",
            _CLUSTER: f"one of several of cluster number {who}",
            _GRID: "one of several",
        }.get(kind) or self.ctx.thread(who)
        byte = int(at.reshape(-1)[first]) * shadow.grain % shadow.segment.stride
        message = (
            f"race: it {does} what another thread {trace.did}, byte {byte} of "
            f"{shadow.segment.name}; the other is {others}"
        )
        raise self.ctx.fault(Race, site, row, message)

    def _unordered(self, old: Ints, times: Ints, rows: Ints) -> Mask:
        """Where what a word stands for is not ordered before what threads do now."""
        suspect: Mask = (old != 0) & (old != self.word[rows])
        if not suspect.any():
            return suspect
        picked = np.nonzero(suspect)
        old, times, rows = old[picked], times[picked], rows[picked]
        ctx = self.ctx
        who = _who(old)
        kind = old >> _KIND & 3
        epoch, phase = old >> _EPOCH & (_EPOCHS - 1), old >> _PHASE
        block = np.where(kind == _THREAD, ctx.block_of[np.where(kind == _THREAD, who, 0)], who)
        mine = ctx.block_of[rows]
        ordered = (kind == _THREAD) & (who == rows)
        ordered |= (kind <= _BLOCK) & (block == mine) & (epoch < self.epoch[mine])
        if ctx.arrived.any():
            cluster = np.where(kind <= _BLOCK, block // ctx.cluster, who)
            near = (kind <= _CLUSTER) & (cluster == mine // ctx.cluster)
            ordered |= near & (phase < ctx.waited[rows])
        left = np.flatnonzero(~ordered & (kind == _THREAD))
        if left.size and self.releases:
            ordered[left] = self._released(who[left], times[left], epoch[left], rows[left])
        suspect[picked] = ~ordered
        return suspect

    def _released(self, who: Ints, times: Ints, epoch: Ints, rows: Ints) -> Mask:
        """Whether what a thread did was released, by itself or by another of its block after a
        barrier, before these threads acquired."""
        ctx = self.ctx
        seen = np.maximum(self.acquired[rows], self.block_acquired[ctx.block_of[rows]])
        found: Mask = np.zeros(who.size, np.bool_)
        for r in self.releases:
            place = np.minimum(np.searchsorted(r.threads, who), r.threads.size - 1)
            own = r.threads[place] == who
            found |= own & (r.covers[place] > times) & (r.at[place] <= seen)
            blocks, first = np.unique(ctx.block_of[r.threads], return_index=True)
            covers = np.maximum.reduceat(r.covers, first)
            of = ctx.block_of[who]
            place = np.minimum(np.searchsorted(blocks, of), blocks.size - 1)
            later = (blocks[place] == of) & (r.epochs[first[place]] > epoch)
            found |= later & (covers[place] > times) & (r.at[first[place]] <= seen)
        return found

    def _runs(self, at: Ints, rows: Ints) -> tuple[Ints, Ints, Ints]:
        """Granules, and of neighbouring threads of a block that access the same one the first and
        the last: two stand for all of them, as barriers order all of them alike."""
        at, rows = at.reshape(-1), rows.reshape(-1)
        block = self.ctx.block_of[rows]
        change = (at[1:] != at[:-1]) | (block[1:] != block[:-1])
        starts = np.concatenate(([0], np.flatnonzero(change) + 1))
        ends = np.concatenate((starts[1:], [at.size])) - 1
        return at[starts], rows[starts], rows[ends]

    def _mark_loads(self, trace: _Trace, at: Ints, rows: Ints, word: Ints) -> None:
        """Note who loads. Loads that are ordered before this one need not be known any more."""
        old, then = trace.word[at], trace.time[at]
        before = trace.any
        trace.note(at, word, self.now)
        if before:
            together = self._unordered(old, then, rows)
            if together.any():
                self._join(trace, at[together], rows[together], word[together], old[together])
        now = trace.word[at]
        other = now != word
        if other.any():
            self._join(trace, at[other], rows[other], word[other], now[other])

    def _join(self, trace: _Trace, at: Ints, rows: Ints, word: Ints, old: Ints) -> None:
        """Note that several threads load what they do not write: all of one block, of one cluster,
        or of several; the widest of these goes last and stays."""
        ctx = self.ctx
        block = ctx.block_of[rows]
        other, kind = _who(old), old >> _KIND & 3
        theirs = np.where(kind == _THREAD, ctx.block_of[np.where(kind == _THREAD, other, 0)], other)
        level = np.full(at.shape, _GRID, np.int64)
        cluster = np.where(kind <= _BLOCK, theirs // ctx.cluster, other)
        level[(kind <= _CLUSTER) & (cluster == block // ctx.cluster)] = _CLUSTER
        level[(kind <= _BLOCK) & (theirs == block)] = _BLOCK
        number = np.where(level == _BLOCK, block, np.where(level == _CLUSTER, cluster, 0))
        joined = _passed(word) | level << _KIND | (number + 1)
        # What is there already may be wider than what these make of it.
        held = trace.word[at]
        level = np.maximum(level, held >> _KIND & 3)
        for one in (_BLOCK, _CLUSTER, _GRID):
            here = level == one
            if here.any():
                wide = (held[here] >> _KIND & 3) == one
                trace.word[at[here]] = np.where(wide, held[here], joined[here])


def _who(word: Any) -> Any:
    """The number of the thread, block or cluster."""
    return (word & ((1 << _KIND) - 1)) - 1


def _passed(word: Ints) -> Ints:
    """The part of a word that says which barriers were passed."""
    return word >> _EPOCH << _EPOCH
