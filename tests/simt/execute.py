"""Launches: which block runs next, for which threads; barriers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod
from typing import Any

import numpy as np

from .context import Context, Ints, Shape
from .emit import Code, Values, compiled, taken
from .errors import Deadlock, Divergence, LaunchProblem, StepLimit
from .memory import Memory
from .parse import Module
from .races import Races
from .types import BOOL, Pointer, Rank, Value, dtype

_BLOCK = 1024  # threads of a block, at most


@dataclass
class _Group:
    """Threads at one place, in rising order, with the values that the block there takes."""

    rows: Ints
    values: Values


def launch(
    module: Module,
    name: str,
    grid: Shape,
    block: Shape,
    args: Sequence[int],
    memory: Memory,
    shared_bytes: int = 0,
    cluster: int | None = None,
    races: bool = True,
    approximate: bool = False,
    limit: int = 1_000_000,
) -> None:
    """Run a kernel. Arguments are words of 64 bits, whose low bits are the value.

    `cluster` is the number of blocks (along x) in a cluster; None: as the kernel says. `limit` is
    the number of blocks of code that may be run.
    """
    code = _code(module, name)
    size = _cluster(code, cluster)
    _check(code, grid, block, size, args)
    ctx = Context(name, grid, block, size, memory, approximate)
    ctx.add_variables(module.variables, shared_bytes)
    ctx.add_slots(code.slots)
    if races:
        ctx.races = Races(ctx)
    values = tuple(
        _argument(p.type, word, p.align, p.name) for p, word in zip(code.params, args, strict=True)
    )
    with np.errstate(all="ignore"):
        _Run(ctx, code, limit).all(values)


def _code(module: Module, name: str) -> Code:
    found: Code | None = module.compiled.get(name)
    if found is None:
        if name not in module.functions:
            raise LaunchProblem(f"no kernel @{name}")
        found = module.compiled[name] = compiled(module, module.functions[name])
    return found


def _cluster(code: Code, given: int | None) -> int:
    stated = code.attributes.get("nvvm.cluster_dim")
    if stated is None:
        return given or 1
    sizes = [int(part) for part in stated.split(",")]
    if prod(sizes[1:]) != 1 or given not in (None, sizes[0]):
        raise LaunchProblem(f"@{code.name} is for clusters of {stated}, not {given}")
    return sizes[0]


def _check(code: Code, grid: Shape, block: Shape, cluster: int, args: Sequence[int]) -> None:
    if len(grid) != 3 or len(block) != 3 or min(*grid, *block) < 1:
        raise LaunchProblem(f"a grid of {grid} blocks of {block}")
    most = _BLOCK
    for key in ("nvvm.maxntid", "nvvm.reqntid"):
        if key in code.attributes:
            most = min(most, prod(int(part) for part in code.attributes[key].split(",")))
    if prod(block) > most or ("nvvm.reqntid" in code.attributes and prod(block) != most):
        raise LaunchProblem(f"blocks of {prod(block)} threads; @{code.name} is for {most}")
    if grid[0] % cluster:
        raise LaunchProblem(f"{grid[0]} blocks in clusters of {cluster}")
    if len(args) != len(code.params):
        raise LaunchProblem(f"@{code.name} takes {len(code.params)} arguments, not {len(args)}")


def _argument(ty: Any, word: int, align: int, name: str) -> Value:
    if isinstance(ty, Pointer) and word % align:
        raise LaunchProblem(f"argument %{name} is {word:#x}, which {align} does not divide")
    if ty == BOOL:
        return np.bool_(word & 1)
    kind = dtype(ty)
    raw = np.array([int(word) % 2**64], "<u8").view(np.uint8)[: kind.itemsize]
    return raw.view(kind)[0]


class _Run:
    def __init__(self, ctx: Context, code: Code, limit: int) -> None:
        self.ctx, self.code, self.left = ctx, code, limit
        self.ready: dict[int, list[_Group]] = {}
        self.waiting: dict[int, list[_Group]] = {}  # by the block behind a barrier

    def all(self, values: Values) -> None:
        """Run the block that stands first of those where threads are, until all have returned.
        Barriers open when no thread can go on: so threads that parted meet there again."""
        self.ready[0] = [_Group(self.ctx.rows, values)]
        while self.ready or self.waiting:
            if self.ready:
                self._step(min(self.ready))
            else:
                self._open()

    def _step(self, number: int) -> None:
        group = self._merged(number, self.ready.pop(number))
        self.left -= 1
        if self.left < 0:
            site = self.code.sites[number]
            raise self.ctx.fault(StepLimit, site, group.rows[0], "more steps than allowed")
        for goal, rows, values in self.code.blocks[number](self.ctx, group.rows, group.values):
            place = self.waiting if self.code.waits[goal] else self.ready
            place.setdefault(goal, []).append(_Group(rows, values))

    def _merged(self, number: int, groups: list[_Group]) -> _Group:
        """Threads that have come to one place as one group."""
        if len(groups) == 1:
            return groups[0]
        rows = np.concatenate([g.rows for g in groups])
        order = np.argsort(rows, kind="stable")
        sizes = [g.rows.size for g in groups]
        values = tuple(
            _joined([g.values[n] for g in groups], sizes, order, rank)
            for n, rank in enumerate(self.code.ranks[number])
        )
        if rows.size == self.ctx.threads:
            return _Group(self.ctx.rows, values)  # the very array, by which all are known
        return _Group(rows[order], values)

    # Barriers

    def _open(self) -> None:
        """Let threads through the barriers that are complete."""
        ctx = self.ctx
        at = np.full(ctx.threads, -1)  # the block of code that each thread waits for
        for number, groups in self.waiting.items():
            for group in groups:
                at[group.rows] = number
        waits = np.array([{"": 0, "block": 1, "cluster": 2}[w] for w in self.code.waits])
        kind = np.where(at >= 0, waits[at], 0)
        self._check_blocks(at, kind)
        opens = kind == 1
        if (kind == 2).any():
            opens |= self._clusters(kind)
        if not opens.any():
            row = int(np.flatnonzero(at >= 0)[0])
            site = self.code.sites[at[row]]
            raise ctx.fault(Deadlock, site, row, "all threads wait, this one here")
        if ctx.races:
            for one in (1, 2):
                passed = np.unique(ctx.block_of[opens & (kind == one)])
                if passed.size:
                    ctx.races.barrier(passed, cluster=one == 2)
        for number in list(self.waiting):
            group = self._merged(number, self.waiting.pop(number))
            self._let(number, group, opens[group.rows])

    def _let(self, number: int, group: _Group, go: Any) -> None:
        """Those that may go on are ready, the others wait."""
        ranks = self.code.ranks[number]
        for place, here in ((self.ready, go), (self.waiting, ~go)):
            if here.all():
                place.setdefault(number, []).append(group)
            elif here.any():
                some = np.flatnonzero(here)
                values = tuple(taken(v, some, r) for v, r in zip(group.values, ranks, strict=True))
                place.setdefault(number, []).append(_Group(group.rows[some], values))

    def _check_blocks(self, at: Ints, kind: Ints) -> None:
        """All threads of a block that have not returned must wait at one barrier."""
        ctx = self.ctx
        table, kinds = at.reshape(ctx.blocks, ctx.size), kind.reshape(ctx.blocks, ctx.size)
        highest = table.max(1, keepdims=True)
        apart = (kinds == 1).any(1, keepdims=True) & (table >= 0) & (table != highest)
        if apart.any():
            row = int(apart.reshape(-1).argmax())
            other = self.code.sites[int(highest.reshape(-1)[row // ctx.size])]
            message = f"a divergent barrier: others of its block are at another, {other}"
            raise ctx.fault(Divergence, self.code.sites[at[row]], row, message)

    def _clusters(self, kind: Ints) -> Any:
        """The threads that wait for their cluster, where all of it has arrived."""
        ctx = self.ctx
        waits = kind == 2
        arrived = np.where(ctx.returned, np.iinfo(np.int64).max, ctx.arrived)
        least = arrived.reshape(-1, ctx.cluster * ctx.size).min(1)
        opens = waits & (ctx.waited < np.repeat(least, ctx.cluster * ctx.size))
        ctx.waited[opens] += 1
        return opens


def _joined(values: list[Value], sizes: list[int], order: Ints, rank: Rank) -> Value:
    """The value of groups that meet, in the order of their threads."""
    if isinstance(rank, tuple):
        parts = zip(*values, strict=True)
        return tuple(
            _joined(list(part), sizes, order, r) for part, r in zip(parts, rank, strict=True)
        )
    first = values[0]
    if all(v.ndim == rank for v in values):
        raw = first.tobytes()
        if all(v.tobytes() == raw for v in values[1:]):
            return first  # still the same for all
    spread = [
        v if v.ndim > rank else np.broadcast_to(v, (size, *v.shape))
        for v, size in zip(values, sizes, strict=True)
    ]
    return np.concatenate(spread)[order]
