"""The slots of a plan, looked at without running it: whether each fits what lies there, and which
share memory while both are in use."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections import defaultdict
from collections.abc import Mapping, Sequence

from tenfold.parity.find.part import loop_of
from tenfold.plan import CopyStep, KernelStep, LoopStep, Plan, RoutineStep, Slot, Step
from tenfold.plan.steps.plan import ARENA, CONSTANT, INPUT, OUTPUT
from tenfold.types import DTYPES

Region = tuple[int, int]  # the first byte and the one after the last


def fits(plan: Plan) -> bool:
    """Whether each slot has the size of what is read or written there, and lies within its
    memory; a range of a value, which a kernel may write by itself, begins within it."""
    graph, slots = plan.graph, plan.slots
    types, sizes = graph.types, [slot.type.nbytes for slot in slots]
    held = list(zip(plan.outputs, graph.outputs, strict=True))  # slots and their values
    own: list[int] = []  # memory of steps
    for step in plan.steps:
        if isinstance(step, KernelStep):
            call, count = plan.call(step), len(step.reads)
            held += zip(step.slots, step.reads)  # noqa: B905  those that it writes come after
            own += step.slots[count + len(step.writes) :]
            for n, buffer in zip(step.slots, call.kernel.buffers, strict=True):
                if sizes[n] != call.size(buffer.size) * DTYPES[buffer.dtype].itemsize:
                    return False
        elif isinstance(step, CopyStep):
            if sizes[step.source] != sizes[step.target]:
                return False
            own += step.source, step.target
        else:
            node, start = graph.nodes[step.node], graph.starts[step.node]
            held += zip(step.inputs, node.inputs, strict=True)
            held += zip(step.outputs, range(start, start + len(node.types)), strict=True)
            if isinstance(step, RoutineStep):
                own += step.scratch
            elif isinstance(step, LoopStep):
                if not _loop_fits(plan, step, sizes):
                    return False
                own += *step.second, step.arena
    rooms = {
        INPUT: [p.type.nbytes for p in graph.parameters],
        OUTPUT: [types[v].nbytes for v in graph.outputs],
        CONSTANT: [len(raw) for raw in plan.constants],
    }
    for n in {*own, *(n for n, _ in held)}:
        slot = slots[n]
        room = plan.arena_bytes if slot.place == ARENA else rooms[slot.place][slot.number]
        if slot.offset < 0 or slot.offset + sizes[n] > room:
            return False
    return all(slots[n].type is types[v] or sizes[n] == types[v].nbytes for n, v in held)


def _loop_fits(plan: Plan, step: LoopStep, sizes: Sequence[int]) -> bool:
    node = plan.graph.nodes[step.node]
    carried = len(loop_of(node).carries(node))
    second = [sizes[n] for n in step.second]
    return (
        step.length == node["length"]
        and second in ([], [sizes[n] for n in step.outputs[:carried]])
        and all(plan.plans[p].arena_bytes <= sizes[step.arena] for p in step.plans)
    )


# Which slots share memory.


def shared_memory(plan: Plan) -> list[tuple[int, int, bool]]:
    """The pairs of slots that share memory while both are in use, and whether they begin at one
    byte: what is computed in place, ranges of a slot, copies that have nothing to do."""
    regions, first, last = _lives(plan)
    spaces: defaultdict[tuple[str, int], list[int]] = defaultdict(list)
    for n in sorted(first, key=first.__getitem__):
        slot = plan.slots[n]
        if regions[n][0] < regions[n][1] and slot.place != CONSTANT:
            spaces[slot.place, 0 if slot.place == ARENA else slot.number].append(n)
    found: list[tuple[int, int, bool]] = []
    for slots in spaces.values():
        if len(slots) > 1:
            found += _meeting(slots, regions, first, last)
    return sorted(found)


def _lives(plan: Plan) -> tuple[list[Region], dict[int, int], dict[int, int]]:
    """The bytes of each slot, and its first and its last step."""
    slots, outputs = plan.slots, set(plan.outputs)
    regions = [(s.offset, s.offset + s.type.nbytes) for s in slots]
    first: dict[int, int] = {}
    last: dict[int, int] = {}
    wholes: defaultdict[int, list[int]] = defaultdict(list)  # of values
    for n, value in zip(plan.outputs, plan.graph.outputs, strict=True):
        wholes[value].append(n)
    ranges: list[tuple[int, int, int]] = []  # step, slot, value
    read = outputs.copy()
    for at, step in enumerate(plan.steps):
        for n in _touched(step):
            first.setdefault(n, at)
            last[n] = at
        if isinstance(step, KernelStep):
            count = len(step.reads)
            for n, value in zip(step.slots[:count], step.reads, strict=True):
                wholes[value].append(n)
                read.add(n)
            written = step.slots[count : count + len(step.writes)]
            ranges += [(at, n, v) for n, v in zip(written, step.writes, strict=True)]
        else:
            read.update(_touched(step))
            if not isinstance(step, CopyStep):
                for n, value in zip(step.inputs, plan.graph.nodes[step.node].inputs, strict=True):
                    wholes[value].append(n)
    for n in outputs:
        last[n] = len(plan.steps)
        first.setdefault(n, len(plan.steps))
    # A kernel may write a value range by range, each in a slot that begins where the range does.
    for at, n, value in ranges:
        if n in read:
            continue
        start = regions[n][0]
        regions[n] = start, start + 1
        for whole in dict.fromkeys(wholes[value]):
            if _within(slots, n, whole):
                first[whole] = min(first[whole], at)
    return regions, first, last


def _within(slots: Sequence[Slot], n: int, whole: int) -> bool:
    """Whether a slot begins within another."""
    a, b = slots[n], slots[whole]
    same = a.place == b.place and (a.place == ARENA or a.number == b.number)
    return same and b.offset <= a.offset < b.offset + b.type.nbytes


def _touched(step: Step) -> tuple[int, ...]:
    """Every slot that a step reads or writes."""
    if isinstance(step, KernelStep):
        return step.slots
    if isinstance(step, CopyStep):
        return step.source, step.target
    own: tuple[int, ...] = ()
    if isinstance(step, RoutineStep):
        own = step.scratch
    elif isinstance(step, LoopStep):
        own = (*step.second, step.arena)
    return *step.inputs, *step.outputs, *own


def _meeting(
    slots: Sequence[int],
    regions: Sequence[Region],
    first: Mapping[int, int],
    last: Mapping[int, int],
) -> list[tuple[int, int, bool]]:
    """The pairs of slots of one memory that meet, these in the order of their first steps. What is
    in use lies in blocks that do not overlap; one that grew is whole until all in it are done."""
    found: list[tuple[int, int, bool]] = []
    starts: list[int] = []  # of blocks
    blocks: list[tuple[int, list[int]]] = []  # where each ends, and its slots
    done = sorted(slots, key=last.__getitem__)
    ended = 0
    for n in slots:
        while last[done[ended]] < first[n]:
            at = bisect_right(starts, regions[done[ended]][0]) - 1
            held = blocks[at][1]
            held.remove(done[ended])
            if not held:
                del starts[at], blocks[at]
            ended += 1
        start, end = regions[n]
        low, high = bisect_right(starts, start) - 1, bisect_left(starts, end)
        if low < 0 or blocks[low][0] <= start:
            low += 1
        met = [m for _, held in blocks[low:high] for m in held]
        found += [
            (min(m, n), max(m, n), regions[m][0] == start)
            for m in met
            if regions[m][0] < end and start < regions[m][1]
        ]
        if met:
            start = min(start, starts[low])
            end = max(end, *(stop for stop, _ in blocks[low:high]))
        starts[low:high] = [start]
        blocks[low:high] = [(end, [*met, n])]
    return found
