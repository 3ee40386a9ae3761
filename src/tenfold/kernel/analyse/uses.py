"""What items of a nest read, make and write."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from tenfold.kernel.analyse.nest import Compute, Guard, Item, Loop, Write
from tenfold.kernel.ir.kernel import Instruction, Kernel


def used(kernel: Kernel, items: Sequence[Item]) -> set[int]:
    """What these items read."""
    found: set[int] = set()
    stack = list(items)
    while stack:
        item = stack.pop()
        if isinstance(item, Compute):
            found.update(kernel.instructions[item.value].uses())
        elif isinstance(item, Write):
            found.update(kernel.stores[item.store].uses())
        elif isinstance(item, Guard):
            found.add(kernel.checks[item.check].condition)
        else:
            stack += item.body
            for member in item.members:
                found.update(kernel.instructions[member].args)
    return found


def read_later(kernel: Kernel, items: Sequence[Item]) -> set[int]:
    """The values that are read in another run of items than they are made in; a loop is a run of
    its own."""
    made: dict[int, int] = {}
    found: set[int] = set()
    run = 0
    for item in items:
        alone = isinstance(item, Loop)
        run += alone
        found |= {v for v in used(kernel, [item]) if made.get(v, run) != run}
        if isinstance(item, Compute):
            made[item.value] = run
        elif isinstance(item, Loop):
            made.update(dict.fromkeys(item.members, run))
        run += alone
    return found


def made(kernel: Kernel, items: Sequence[Item]) -> set[int]:
    """What these items compute, with the further results of their reductions."""
    found: set[int] = set()
    for item in items:
        if isinstance(item, Compute):
            found.add(item.value)
        elif isinstance(item, Loop):
            found.update(item.members)
    states = (n for n, i in enumerate(kernel.instructions) if i.op == "state")
    return found | {n for n in states if kernel.instructions[n].args[0] in found}


def writes(items: Sequence[Item]) -> bool:
    """Whether anything is stored, or may be."""
    stack = list(items)
    while stack:
        item = stack.pop()
        if isinstance(item, Write) or (isinstance(item, Loop) and not item.members):
            return True
        if isinstance(item, Loop):
            stack += item.body
    return False


def needed(kernel: Kernel, roots: Iterable[int], axis: int) -> set[int]:
    """What these values are computed from inside the loop over an axis."""
    found: set[int] = set()
    stack = list(roots)
    while stack:
        v = stack.pop()
        if v not in found and axis in kernel.free[v]:
            found.add(v)
            stack += kernel.instructions[v].uses()
    return found


def loads(kernel: Kernel, items: Iterable[Item]) -> Iterator[Instruction]:
    """The loads that no condition guards."""
    for item in items:
        if isinstance(item, Compute):
            i = kernel.instructions[item.value]
            if i.op == "load" and i.index is not None and not i.args:
                yield i


def divisors(kernel: Kernel, items: Iterable[Item], axis: int) -> list[int]:
    """What the float divisions among these items divide by that does not change along an axis.
    None beside longer work: there divisions take no time of their own, for they have a unit of
    their own."""
    found: dict[int, None] = {}
    work = [kernel.instructions[item.value] for item in items if isinstance(item, Compute)]
    if any(i.op in ("call", "rarely") for i in work):
        return []
    for i in work:
        if i.op == "div" and i.dtype in ("f32", "f64"):
            a, s = i.args
            short = kernel.instructions[a].op == "cast"  # a short integer, which divides at once
            if axis in kernel.free[a] and axis not in kernel.free[s] and not short:
                found[s] = None
    return list(found)
