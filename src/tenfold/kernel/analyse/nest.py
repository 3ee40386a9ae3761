"""The loops of a kernel, derived from free axes once an order of the axes is given.

A block is a list of items: instructions, stores and checks that stand at one level, and loops.
A loop over a reduced axis carries the reductions it computes, its members; where they run over
several axes, the loop over the next one stands inside with the same members.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from tenfold.errors import GraphError
from tenfold.frozen import frozen
from tenfold.kernel.ir.kernel import REDUCED, Free, Kernel, stages


@frozen
class Compute:
    """An instruction."""

    value: int


@frozen
class Write:
    """A store."""

    store: int


@frozen
class Guard:
    """A check."""

    check: int


@frozen
class Loop:
    """A loop over one axis; without members it is over a parallel or sequential axis."""

    axis: int
    members: tuple[int, ...]
    body: tuple[Item, ...]

    @property
    def inner(self) -> Loop | None:
        """The loop that goes on with the same members over their next axis."""
        last = self.body[-1] if self.body and self.members else None
        return last if isinstance(last, Loop) and last.members == self.members else None


def carried_out(kernel: Kernel, value: int) -> Free:
    """The axes that are bound where an instruction is carried out: of a reduction, where a value
    joins what is held."""
    i, free = kernel.instructions[value], kernel.free[value]
    return free.union(*(kernel.free[a] for a in i.args)) if i.op == "reduce" else free


Item = Compute | Write | Guard | Loop


def nest(kernel: Kernel, order: Sequence[int], reduced: Sequence[int] = ()) -> tuple[Item, ...]:
    """The loops of a kernel with its parallel and sequential axes in this order, outermost
    first; `reduced` orders the axes of reductions over several."""
    made = _Nest(kernel, reduced)
    items = made.level(frozenset(), range(len(kernel.instructions)), tuple(order))
    if len(made.done) != len(kernel.stores) + len(kernel.checks):
        raise GraphError(f"kernel: a store or a check stands in no loop\n{kernel}")
    return items


class _Nest:
    def __init__(self, kernel: Kernel, reduced: Sequence[int]) -> None:
        self.kernel = kernel
        self.stage = stages(kernel)
        self.rank = {a: n for n, a in enumerate(reduced)}
        self.stores = [kernel.store_free(s) for s in kernel.stores]
        self.checks = [kernel.free[c.condition] for c in kernel.checks]
        self.done: set[Item] = set()
        self.reduced_axes = {n for n, a in enumerate(kernel.axes) if a.kind == REDUCED}

    def level(self, bound: Free, values: Iterable[int], order: tuple[int, ...]) -> tuple[Item, ...]:
        """What stands where these axes are bound, then the loop over the next in order."""
        items, later = self.straight(bound, values)
        items += self.effects(bound, None)
        if order:
            axis = order[0]
            items.append(Loop(axis, (), self.level(bound | {axis}, later, order[1:])))
        return tuple(items)

    def straight(self, bound: Free, values: Iterable[int]) -> tuple[list[Item], list[int]]:
        """The instructions at one level, stage by stage, each stage followed by the loops that
        compute the reductions of the next; and the values that stand deeper."""
        kernel, here, later = self.kernel, list[int](), list[int]()
        for v in values:
            (here if kernel.free[v] <= bound else later).append(v)
        computed: dict[int, list[Item]] = {}
        groups: dict[tuple[int, tuple[int, ...]], list[int]] = {}
        for v in here:
            instruction, stage = kernel.instructions[v], self.stage[v]
            if instruction.op == "reduce":
                over = sorted(instruction.attr[1:], key=lambda a: (self.rank.get(a, 0), a))
                groups.setdefault((stage, tuple(over)), []).append(v)
            else:
                computed.setdefault(stage, []).append(Compute(v))
        items: list[Item] = []
        for stage in sorted({*computed, *(s for s, _ in groups)}):
            for (s, axes), members in groups.items():
                if s == stage:
                    items.append(self.reduction(bound, axes, tuple(members), later))
            items += computed.get(stage, ())
        return items, later

    def reduction(
        self, bound: Free, axes: tuple[int, ...], members: tuple[int, ...], later: Sequence[int]
    ) -> Loop:
        inside = bound | frozenset(axes)
        effects = self.effects(inside, self.stage[members[0]], bound)
        roots = [a for m in members for a in self.kernel.instructions[m].args]
        for item in effects:
            if isinstance(item, Write):
                roots += self.kernel.stores[item.store].uses()
            elif isinstance(item, Guard):
                roots.append(self.kernel.checks[item.check].condition)
        needed = self.closure(roots, bound)
        return self.loops(bound, axes, members, [v for v in later if v in needed], effects)

    def loops(
        self,
        bound: Free,
        axes: tuple[int, ...],
        members: tuple[int, ...],
        values: Sequence[int],
        effects: list[Item],
    ) -> Loop:
        inside = bound | {axes[0]}
        items, later = self.straight(inside, values)
        if len(axes) == 1:
            return Loop(axes[0], members, (*items, *effects))
        return Loop(
            axes[0], members, (*items, self.loops(inside, axes[1:], members, later, effects))
        )

    def closure(self, roots: Sequence[int], bound: Free) -> set[int]:
        """What the roots are computed from, down to what is known outside."""
        found: set[int] = set()
        stack = [r for r in roots if not self.kernel.free[r] <= bound]
        while stack:
            v = stack.pop()
            if v not in found:
                found.add(v)
                uses = self.kernel.instructions[v].uses()
                stack += [u for u in uses if not self.kernel.free[u] <= bound]
        return found

    def effects(self, bound: Free, stage: int | None, outer: Free = frozenset()) -> list[Item]:
        """The stores and checks that stand where these axes are bound, each once. Inside a loop
        that computes results of a stage, the checks whose conditions are ready before, and the
        stores whose values are ready one stage before: what reads them counts on that."""
        items: list[Item] = []
        for n, store in enumerate(self.kernel.stores):
            if self.stores[n] <= bound and Write(n) not in self.done:
                ready = self.stage[store.value] + 1 == stage and not self.stores[n] <= outer
                if stage is None or (ready and self.stores[n] & self.reduced_axes):
                    items.append(Write(n))
        for n, check in enumerate(self.kernel.checks):
            if self.checks[n] <= bound and Guard(n) not in self.done:
                ready = stage is None or self.stage[check.condition] < stage
                if ready and (stage is None or self.checks[n] & self.reduced_axes):
                    items.append(Guard(n))
        self.done.update(items)
        return items
