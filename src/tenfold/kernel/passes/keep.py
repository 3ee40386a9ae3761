"""Values that a later nest over the same row needs again are kept instead of computed anew."""

from __future__ import annotations

from dataclasses import replace
from itertools import product

from tenfold.kernel.ir.index import VALUE, Atom, Index, axis
from tenfold.kernel.ir.kernel import (
    PARALLEL,
    REDUCED,
    SCRATCH,
    TRANSCENDENTAL,
    WRITE,
    Buffer,
    Instruction,
    Kernel,
    Store,
    renumbered,
    stages,
)


def keep(kernel: Kernel, reduced: int) -> Kernel:
    """The kernel with costly values of the loop over a reduced axis, which a loop over a parallel
    axis of equal extent computes again, stored to row scratch by the first and read by the second.
    """
    extent = kernel.axes[reduced].extent
    for target, found in enumerate(kernel.axes):
        if found.kind == PARALLEL and found.extent == extent:
            pairs = _again(kernel, reduced, target)
            if pairs:
                return _kept(kernel, reduced, target, pairs)
    return kernel


def _again(kernel: Kernel, reduced: int, target: int) -> dict[int, int]:
    """Later value -> the earlier one that is the same but for the axis, where that is costly and
    something else reads the later one."""
    place = axis(target, kernel.axes[target].extent)
    known = {i: n for n, i in enumerate(kernel.instructions)}
    deep = stages(kernel)
    same: dict[int, int] = {}
    costly: set[int] = set()
    for n, i in enumerate(kernel.instructions):
        if reduced not in kernel.free[n] or target in kernel.free[n] or i.op == "reduce":
            continue
        if any(reduced in kernel.free[a] and a not in same for a in i.uses()):
            continue
        moved = replace(i, args=tuple(same.get(a, a) for a in i.args))
        if i.index is not None:
            moved = replace(moved, index=_at(i.index, reduced, place, same))
        if moved in known:
            same[n] = known[moved]
            if i.op in TRANSCENDENTAL or any(a in costly for a in i.args):
                costly.add(n)
    # The loop that stores must be the one that first has the value.
    summed = {
        v
        for m, i in enumerate(kernel.instructions)
        if i.op == "reduce" and reduced in i.attr[1:] and len(i.attr) == 2
        for v in _below(kernel, i.args, reduced)
        if deep[v] + 1 == deep[m]
    }
    back = {later: n for n, later in same.items() if n in costly and n in summed and n < later}
    users: dict[int, set[int]] = {}
    for n, i in enumerate(kernel.instructions):
        for v in i.uses():
            users.setdefault(v, set()).add(n)
    read_by_store = {v for s in kernel.stores for v in s.uses()}
    return {
        later: n
        for later, n in back.items()
        if later in read_by_store or any(u not in back for u in users.get(later, ()))
    }


def _below(kernel: Kernel, roots: tuple[int, ...], reduced: int) -> set[int]:
    found: set[int] = set()
    stack = list(roots)
    while stack:
        v = stack.pop()
        if v not in found and reduced in kernel.free[v]:
            found.add(v)
            stack += kernel.instructions[v].uses()
    return found


def _at(index: Index, reduced: int, place: Index, same: dict[int, int]) -> Index:
    def leaf(atom: Atom) -> Index:
        if atom.kind == VALUE:
            return Index(((Atom(VALUE, same.get(atom.of, atom.of), atom.bound), 1),))
        return place if atom.of == reduced else Index(((atom, 1),))

    return index.rebuild(leaf)


def _kept(kernel: Kernel, reduced: int, target: int, pairs: dict[int, int]) -> Kernel:
    extent = kernel.axes[reduced].extent
    size = -(-extent // kernel.fold.round) * kernel.fold.round  # all lanes of the last round
    buffers, stores = list(kernel.buffers), list(kernel.stores)
    instructions = list(kernel.instructions)
    for later, earlier in sorted(pairs.items()):
        dtype = kernel.instructions[earlier].dtype
        rows = tuple(sorted(kernel.free[earlier] - {reduced}))
        buffers.append(Buffer(dtype, size, SCRATCH, 0, rows))
        stores.append(Store(len(buffers) - 1, axis(reduced, extent), earlier))
        instructions[later] = Instruction(
            "load", dtype, (), (len(buffers) - 1,), axis(target, extent)
        )
    changed = Kernel(
        kernel.axes,
        tuple(buffers),
        kernel.params,
        tuple(instructions),
        tuple(stores),
        kernel.checks,
        kernel.fold,
    )
    return changed.live()


def keep_in_output(kernel: Kernel, cheap: frozenset[str] = frozenset()) -> Kernel:
    """The kernel with costly values of the loop over a reduced axis, which the loop over a parallel
    axis of equal extent computes again for a store of their dtype, written where that store goes by
    the first and read there by the second. The buffer is scratch to the kernel until then.

    It is for columns that are reduced side by side: scratch for all of them would be an array as
    large as the result. Their loop reduces last, and reads all that the result may be laid over.
    Values of `cheap` dtypes are sooner computed than read back.
    """
    deep, axes = stages(kernel), kernel.axes
    last = max((deep[n] for n, i in enumerate(kernel.instructions) if i.op == "reduce"), default=0)
    for reduced, target in product(range(len(axes)), repeat=2):
        if (axes[reduced].kind, axes[target].kind) != (REDUCED, PARALLEL):
            continue
        if axes[reduced].extent != axes[target].extent:
            continue
        for later, earlier in sorted(_again(kernel, reduced, target).items()):
            if deep[earlier] + 1 != last or kernel.instructions[later].dtype in cheap:
                continue
            for n, store in enumerate(kernel.stores):
                if _holds(kernel, store, target, later):
                    made = _kept_in(kernel, n, (reduced, target), (later, earlier))
                    if _read_before(made, store.buffer, reduced):
                        return made
    return kernel


def _holds(kernel: Kernel, store: Store, target: int, value: int) -> bool:
    """Whether a store goes to a place for each of the values, and is the only one there."""
    buffer, place = kernel.buffers[store.buffer], store.index
    return (
        buffer.role == WRITE
        and (store.condition, store.update) == (None, "")
        and buffer.dtype == kernel.instructions[value].dtype
        and target in place.axes()
        and place.axes() == kernel.store_free(store) == kernel.free[value]
        and not place.values()
        and sum(s.buffer == store.buffer for s in kernel.stores) == 1
    )


def _kept_in(kernel: Kernel, number: int, axes: tuple[int, int], pair: tuple[int, int]) -> Kernel:
    store, (reduced, target), (later, earlier) = kernel.stores[number], axes, pair
    row = axis(reduced, kernel.axes[reduced].extent)
    buffers, instructions = list(kernel.buffers), list(kernel.instructions)
    buffers[store.buffer] = replace(buffers[store.buffer], role=SCRATCH)
    first = Store(store.buffer, _at(store.index, target, row, {}), earlier)
    instructions[later] = Instruction(
        "load", instructions[later].dtype, (), (store.buffer,), store.index
    )
    changed = replace(
        kernel,
        buffers=tuple(buffers),
        instructions=tuple(instructions),
        stores=(*kernel.stores, first),
        free=(),
    )
    return changed.live()


def _read_before(kernel: Kernel, written: int, reduced: int) -> bool:
    """Whether all that a buffer may be laid over is read before it is written or in the loop over
    this axis, which writes it: in no loop beside that, or behind."""
    group, deep = kernel.buffers[written].alias, stages(kernel)
    reductions = [(n, i.attr[1:]) for n, i in enumerate(kernel.instructions) if i.op == "reduce"]
    last = max(deep[n] for n, _ in reductions)
    beside = {a for n, axes in reductions if deep[n] == last for a in axes} - {reduced}
    before = {a for _, axes in reductions for a in axes} - beside
    return not group or all(
        before & kernel.free[n] and not beside & kernel.free[n]
        for n, i in enumerate(kernel.instructions)
        if i.op == "load" and i.attr[0] != written and kernel.buffers[i.attr[0]].alias == group
    )


def recompute(kernel: Kernel) -> Kernel:
    """The kernel with what is kept of rows computed anew where it is read: what `keep` gives, as it
    was before. Scratch buffers stay, and nobody touches them."""
    kept = {s.buffer: s for s in kernel.stores if kernel.buffers[s.buffer].role == SCRATCH}
    if not kept:
        return kernel
    made: list[Instruction] = []
    known: dict[Instruction, int] = {}
    at: dict[int, int] = {}

    def put(instruction: Instruction) -> int:
        found = known.setdefault(instruction, len(made))
        if found == len(made):
            made.append(instruction)
        return found

    def moved(old: int, reduced: int, target: Index, cloned: dict[int, int]) -> int:
        """An instruction with a reduced axis in the place of another."""
        stack = [old]
        while stack:
            n = stack[-1]
            i = kernel.instructions[n]
            if reduced not in kernel.free[n]:
                cloned[n] = at[n]
            waiting = [v for v in i.uses() if v not in cloned] if n not in cloned else []
            if waiting:
                stack += waiting
                continue
            stack.pop()
            if n not in cloned:
                args = tuple(cloned[a] for a in i.args)
                index = None if i.index is None else _at(i.index, reduced, target, cloned)
                cloned[n] = put(replace(i, args=args, index=index))
        return cloned[old]

    for n, i in enumerate(kernel.instructions):
        if i.op == "load" and i.attr[0] in kept:
            item = kept[i.attr[0]]
            ((atom, _),) = item.index.terms
            assert i.index is not None
            at[n] = moved(item.value, atom.of, i.index, {})
            continue
        index = None if i.index is None else renumbered(i, at).index
        at[n] = put(replace(i, args=tuple(at[a] for a in i.args), index=index))
    stores = tuple(s for s in kernel.stores if s.buffer not in kept)
    changed = Kernel(
        kernel.axes, kernel.buffers, kernel.params, kernel.instructions, stores, kernel.checks,
        kernel.fold, sizes=kernel.sizes,
    )  # fmt: skip
    return changed.with_instructions(made, at).live()
