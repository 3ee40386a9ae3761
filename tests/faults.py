"""Planted faults: what a broken compiler would do, put into plans on purpose through the seam.

    with plant("instruction", "tanh>sinh"):
        ...

Every plan that is made and every entry that is bound meanwhile has the fault, if there is a place
for it. To run a script in another process with a fault planted:

    python tests/faults.py "instruction tanh>sinh" script.py
"""

from __future__ import annotations

import runpy
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

import numpy as np

from tenfold import seam
from tenfold.backends.cpu.entry import ndarray as nd
from tenfold.backends.cpu.entry.abi import Argument, CallSpec
from tenfold.backends.cpu.entry.bind import NativeBinding
from tenfold.backends.cpu.entry.record import RECORD_WORDS
from tenfold.kernel import Kernel
from tenfold.kernel.ir.index import AXIS, Atom, Index
from tenfold.kernel.ir.kernel import PARALLEL, REDUCED, SEQUENTIAL, Instruction, renumbered
from tenfold.kernel.ir.number import Size
from tenfold.plan import BranchStep, KernelStep, LoopStep, Plan, Step
from tenfold.plan.steps.plan import ARENA, OUTPUT
from tenfold.types import DTYPES, KIND, SHORT, TensorType


@contextmanager
def plant(kind: str, argument: str = "") -> Iterator[None]:
    """Plant a fault in whatever is compiled meanwhile."""
    before = seam.hook
    seam.hook = spoiler(kind, argument)
    try:
        yield
    finally:
        seam.hook = before


def spoiler(kind: str, argument: str) -> Callable[[str, Any], Any]:
    """What puts this fault into whatever comes through the seam."""

    def spoil(what: str, made: Any) -> Any:
        if what == "options":
            return (*made, ("fault", f"{kind} {argument}"))
        if what == "plan" and kind in KERNELS:
            return _everywhere(made, lambda plan: _in_kernels(plan, kind, argument))
        if what == "plan" and kind in PLANS:
            return _everywhere(made, lambda plan: PLANS[kind](plan, argument))
        if what == "memory" and kind == "frozen":
            return bytes([made[0] ^ 1]) + made[1:]
        if what == "entry" and kind == "guard":
            return _guards(made, argument)
        if what == "binding" and kind == "guard":
            return _loosened(made, argument)
        return made

    return spoil


def _everywhere(plan: Plan, change: Callable[[Plan], Plan]) -> Plan:
    """The plan changed, and all plans below it."""
    made: dict[int, Plan] = {}
    for one in plan.every:
        made[id(one)] = change(replace(one, plans=tuple(made[id(p)] for p in one.plans)))
    return made[id(plan)]


def _in_kernels(plan: Plan, kind: str, argument: str) -> Plan:
    """Each kernel, fixed to its sizes, with the fault."""
    kernels: dict[Kernel, int] = {}
    steps: list[Step] = []
    for step in plan.steps:
        if isinstance(step, KernelStep):
            kernel = KERNELS[kind](plan.call(step).fixed, argument)
            step = replace(step, kernel=kernels.setdefault(kernel, len(kernels)), sizes=())
        steps.append(step)
    return replace(plan, own=tuple(kernels), steps=tuple(steps))


# Faults in kernels.


def _each(kernel: Kernel, change: Callable[[Instruction], Instruction]) -> Kernel:
    return replace(kernel, instructions=tuple(change(i) for i in kernel.instructions), free=())


def _instruction(kernel: Kernel, argument: str) -> Kernel:
    """One instruction in place of another."""
    old, new = argument.split(">")
    return _each(kernel, lambda i: replace(i, op=new) if i.op == old else i)


def _operands(kernel: Kernel, argument: str) -> Kernel:
    """The operands of an instruction the other way about."""

    def swap(i: Instruction) -> Instruction:
        if i.op != argument:
            return i
        return replace(i, args=(*i.args[:-2], i.args[-1], i.args[-2]))

    return _each(kernel, swap)


def _literal(kernel: Kernel, argument: str) -> Kernel:
    """A literal 1 in the code that became 2, or 0 that became 1."""
    old, new = argument.split(">")

    def change(i: Instruction) -> Instruction:
        if i.op != "const":
            return i
        dtype = DTYPES[i.dtype]
        if i.attr[0] != np.asarray(float(old)).astype(dtype).tobytes():
            return i
        return replace(i, attr=(np.asarray(float(new)).astype(dtype).tobytes(),))

    return _each(kernel, change)


def _index(kernel: Kernel, argument: str) -> Kernel:
    """Loads from elsewhere in the same buffer."""

    def change(i: Instruction) -> Instruction:
        if i.op != "load" or i.index is None:
            return i
        size = kernel.buffers[i.attr[0]].size
        return replace(i, index=_elsewhere(i.index, size, argument)) if size > 1 else i

    return _each(kernel, change)


def _elsewhere(index: Index, size: int, way: str) -> Index:
    if way == "reverse":
        return index * -1 + (size - 1)
    if way == "first":
        return Index((), 0)
    return (index + 1) % size


def _store(kernel: Kernel, argument: str) -> Kernel:
    """Stores to elsewhere in the same buffer."""
    stores = tuple(
        replace(s, index=_elsewhere(s.index, kernel.buffers[s.buffer].size, argument))
        if kernel.buffers[s.buffer].size > 1 else s
        for s in kernel.stores
    )  # fmt: skip
    return replace(kernel, stores=stores)


def _update(kernel: Kernel, argument: str) -> Kernel:
    """Stores that join their value to what is there in another way, or not at all."""
    old, _, new = argument.partition(">")
    stores = tuple(replace(s, update=new) if s.update == old else s for s in kernel.stores)
    return replace(kernel, stores=stores)


def _mask(kernel: Kernel, argument: str) -> Kernel:
    """Masks that leave out the first or the last of what lies inside."""

    def change(i: Instruction) -> Instruction:
        if i.op != "inside":
            return i
        low, high = i.attr
        return replace(i, attr=(low + 1, high) if argument == "low" else (low, high - 1))

    return _each(kernel, change)


def _lane(kernel: Kernel, argument: str) -> Kernel:
    """The last element of an axis left out, as by a wrong tail; or one too many."""
    kind = {"reduced": REDUCED, "sequential": SEQUENTIAL}.get(argument, PARALLEL)
    more = 1 if argument == "wide" else -1
    axes = tuple(
        replace(a, extent=a.extent + more) if a.kind == kind and a.extent > 1 else a
        for a in kernel.axes
    )
    return replace(kernel, axes=axes, free=())


def _order(kernel: Kernel, argument: str) -> Kernel:
    """Axes that are to be gone through in order gone through the other way."""
    turned = {
        n: Index(((Atom(AXIS, n, a.extent), -1),), a.extent - 1)
        for n, a in enumerate(kernel.axes)
        if a.kind == SEQUENTIAL
    }
    stores = tuple(replace(s, index=s.index.substitute(turned)) for s in kernel.stores)
    changed = _each(
        kernel,
        lambda i: i if i.index is None else replace(i, index=i.index.substitute(turned)),
    )
    return replace(changed, stores=stores)


def _identity(kernel: Kernel, argument: str) -> Kernel:
    """Accumulators that begin with a wrong number."""
    kind, _, number = argument.partition("=")
    joins = {"sum": "add", "prod": "mul", "max": "max", "min": "min", "any": "or", "all": "and"}
    instructions: list[Instruction] = []
    at: list[int] = []
    for i in kernel.instructions:
        instructions.append(renumbered(i, at))
        if i.op == "reduce" and i.attr[0] == kind:
            raw = np.asarray(float(number)).astype(DTYPES[i.dtype]).tobytes()
            instructions.append(Instruction("const", i.dtype, (), (raw,)))
            count = len(instructions)
            instructions.append(Instruction(joins[kind], i.dtype, (count - 2, count - 1)))
        at.append(len(instructions) - 1)
    return kernel.with_instructions(instructions, at)


def _reduction(kernel: Kernel, argument: str) -> Kernel:
    """One reduction in place of another."""
    old, new = argument.split(">")

    def change(i: Instruction) -> Instruction:
        if i.op != "reduce" or i.attr[0] != old:
            return i
        return replace(i, attr=(new, *i.attr[1:]))

    return _each(kernel, change)


KERNELS: dict[str, Callable[[Kernel, str], Kernel]] = {
    "instruction": _instruction,
    "operands": _operands,
    "literal": _literal,
    "index": _index,
    "store": _store,
    "update": _update,
    "mask": _mask,
    "lane": _lane,
    "order": _order,
    "identity": _identity,
    "reduction": _reduction,
}


# Faults in plans.


def _constant(plan: Plan, argument: str) -> Plan:
    """A wrong parameter of a kernel, or a wrong byte in an array of constants."""
    steps = []
    for step in plan.steps:
        if isinstance(step, KernelStep) and step.params and argument != "array":
            first = bytearray(step.params[0])
            first[-2 if len(first) > 1 else 0] ^= 0x10
            step = replace(step, params=(bytes(first), *step.params[1:]))
        steps.append(step)
    constants = list(plan.constants)
    if argument == "array" and constants:
        raw = bytearray(constants[0])
        raw[-2 if len(raw) > 1 else 0] ^= 0x10
        constants[0] = bytes(raw)
    return replace(plan, steps=tuple(steps), constants=tuple(constants))


def _number(plan: Plan, argument: str) -> Plan:
    """One parameter of kernels in place of another, an integer."""
    old, new = (np.array(int(part), np.int64).tobytes() for part in argument.split(">"))
    steps = [
        replace(s, params=tuple(new[: len(p)] if p == old[: len(p)] else p for p in s.params))
        if isinstance(s, KernelStep) else s
        for s in plan.steps
    ]  # fmt: skip
    return replace(plan, steps=tuple(steps))


def _size(plan: Plan, argument: str) -> Plan:
    """A size that a general kernel is called with too small by one: of its buffers, or the extent
    of its first axis."""
    steps = []
    for step in plan.steps:
        if isinstance(step, KernelStep):
            kernel = plan.own[step.kernel]
            buffers = {b.size for b in kernel.buffers}
            wrong = buffers if argument == "buffer" else {kernel.axes[0].extent} - buffers
            numbers = {n.number for n in wrong if isinstance(n, Size)}
            sizes = tuple(s - (n in numbers) for n, s in enumerate(step.sizes))
            step = replace(step, sizes=sizes)
        steps.append(step)
    return replace(plan, steps=tuple(steps))


def _slot(plan: Plan, argument: str) -> Plan:
    """A slot whose memory is given away while what it holds is still to be read.

    The argument says which pair of slots, of those there are."""
    first: dict[int, int] = {}
    last: dict[int, int] = {}
    for at, step in enumerate(plan.steps):
        for slot in _slots(step):
            first.setdefault(slot, at)
            last[slot] = at
    pairs = [
        (a, b)
        for a in sorted(first)
        for b in sorted(first)
        if plan.slots[a].place == plan.slots[b].place == ARENA
        and first[a] < first[b] < last[a]
        and plan.slots[a].offset != plan.slots[b].offset
        and plan.slots[b].type.nbytes <= plan.slots[a].type.nbytes
        and plan.slots[b].type.nbytes
    ]
    if not pairs:
        return plan
    a, b = pairs[int(argument or 0) % len(pairs)]
    slots = list(plan.slots)
    slots[b] = replace(slots[b], offset=slots[a].offset)
    return replace(plan, slots=tuple(slots))


def _slots(step: Any) -> tuple[int, ...]:
    if step.kind == "kernel":
        return tuple(step.slots)
    if step.kind == "copy":
        return (step.source, step.target)
    return (*step.inputs, *step.outputs)


def _carry(plan: Plan, argument: str) -> Plan:
    """Two carries of a loop in each other's place: when they go in, or when they come out."""
    steps = []
    for step in plan.steps:
        if isinstance(step, LoopStep) and step.carries > 1:
            a = step.captures if argument == "in" else 0
            rows = list(step.inputs if argument == "in" else step.outputs)
            one, other = (plan.slots[slot].type for slot in rows[a : a + 2])
            if (one.dtype, one.size) == (other.dtype, other.size):
                rows[a], rows[a + 1] = rows[a + 1], rows[a]
                where = "inputs" if argument == "in" else "outputs"
                step = replace(step, **{where: tuple(rows)})  # type: ignore[arg-type]
        steps.append(step)
    return replace(plan, steps=tuple(steps))


def _results(plan: Plan, argument: str) -> Plan:
    """Two results of a plan in each other's place, in the plans of loops and branches too."""
    types = plan.graph.output_types
    if len(types) < 2 or types[0] != types[1]:
        return plan
    turn = {0: 1, 1: 0}
    slots = tuple(
        replace(s, number=turn.get(s.number, s.number)) if s.place == OUTPUT else s
        for s in plan.slots
    )
    return replace(plan, slots=slots)


def _loop(plan: Plan, argument: str) -> Plan:
    """A loop the other way about, or of one round less."""
    steps = []
    for step in plan.steps:
        if isinstance(step, LoopStep) and step.counted:
            if argument == "reverse":
                step = replace(step, reverse=not step.reverse)
            elif step.length > 1:
                step = replace(step, length=step.length - 1)
        steps.append(step)
    return replace(plan, steps=tuple(steps))


def _branch(plan: Plan, argument: str) -> Plan:
    """The branches in another order."""
    steps = tuple(
        replace(s, plans=tuple(reversed(s.plans))) if isinstance(s, BranchStep) else s
        for s in plan.steps
    )
    return replace(plan, steps=steps)


PLANS: dict[str, Callable[[Plan, str], Plan]] = {
    "constant": _constant,
    "number": _number,
    "size": _size,
    "slot": _slot,
    "carry": _carry,
    "results": _results,
    "loop": _loop,
    "branch": _branch,
}


# Faults in the guards of an entry.


def _guards(entry: CallSpec, argument: str) -> CallSpec:
    """Arguments of another type than they have."""
    return replace(entry, arguments=tuple(_retyped(a, argument) for a in entry.arguments))


def _retyped(argument: Argument, way: str) -> Argument:
    type = argument.type
    if way == "dtype" and KIND[type.dtype] == "f" and SHORT[type.dtype] != "bf16":
        integers = {2: "i16", 4: "i32", 8: "i64"}
        type = TensorType(DTYPES[integers[type.dtype.itemsize]], type.shape)
    elif way == "rank":
        type = TensorType(type.dtype, (1, *type.shape))
    elif way == "extent" and type.rank:
        type = TensorType(type.dtype, (type.shape[0] + 1, *type.shape[1:]))
    return replace(argument, type=type)


def _loosened(binding: NativeBinding, argument: str) -> NativeBinding:
    """Less asked of the flags of arguments."""
    dropped = {"contiguous": nd.CONTIGUOUS, "aligned": nd.ALIGNED}.get(argument, 0)
    at = RECORD_WORDS
    for one in binding.entry.arguments:
        # The third word of an argument has its flags in the lower half, its rank in the upper.
        binding._record[at + 2] &= np.uint64(~dropped & (2**64 - 1))
        at += 3 + one.type.rank
    return binding


if __name__ == "__main__":
    kind, _, argument = sys.argv[1].partition(" ")
    with plant(kind, argument):
        sys.argv = sys.argv[2:]
        runpy.run_path(sys.argv[0], run_name="__main__")
