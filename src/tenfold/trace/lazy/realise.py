"""Realise: run the nodes that a lazy value needs.

Each node is run by the function of its op's reference on the arrays of its inputs, in the order in
which nodes were made, and its value settles: it has the array and lets its node go, and so what
that held, unless somebody else holds it. What was done before an error or an interrupt stays done.

Where a plan spares writing many elements (`tn.config.compile_work`), the nodes are brought into a
structure: a key under which equal ones are counted, and from which a closed graph is built when it
is wanted. Its parameters are the arrays at hand, its outputs what is needed and what somebody holds
on the way. `api/policy` counts, compiles in the background, and answers by a plan when there is
one.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from functools import partial
from sys import getrefcount
from time import sleep
from typing import Any

import numpy as np

from tenfold.config import config
from tenfold.errors import ScopeError
from tenfold.graph import Builder, Graph
from tenfold.ops import TABLE
from tenfold.trace.lazy.compute import computed, quietly
from tenfold.trace.lazy.lazy import LAZY, DeferredNode, Host, LazyValue, NodeForm, is_unshared
from tenfold.types import TensorType

Callables = tuple[Callable[..., Any], ...]
Runner = Callable[[Graph, Sequence[Any], Callables], list[Any]]
# Answers for a key, what builds its graph, how many nodes that has, and arrays: the outputs by a
# plan, or None where there is none yet.
Planner = Callable[[Hashable, Callable[[], Graph], int, Sequence[Host]], list[Any] | None]
# A node of a structure: its form and its inputs, each the number of a node's output, or below zero
# that of a parameter: -1 is the first.
NodeKey = tuple[NodeForm, tuple[int, ...]]

_look: list[object] = [None]
_hooks: list[tuple[Runner, Planner]] = []


def use(runner: Runner, planner: Planner) -> None:
    """From now on graphs are run by the runner: `runner(graph, arguments, callables)`; the planner
    is asked first where a plan could save much."""
    _hooks[:] = [(runner, planner)]


def run(graph: Graph, arguments: Sequence[Any], callables: Callables = ()) -> list[Any]:
    """The outputs of a graph, by the layer that knows how to run one."""
    if not _hooks:
        raise ScopeError("nothing is there to run a graph with", fix="import tenfold")
    return _hooks[0][0](graph, arguments, callables)


def last_look() -> object:
    """What stands for the last time that anybody looked at a value: another one each time."""
    return _look[0]


def realised(value: LazyValue) -> Host:
    """The array of a value, in C order; it can't be written to."""
    _look[0] = object()
    if value.node is not None:
        realise((value,))
    array = value.array
    assert array is not None
    flags = array.flags
    if not flags.c_contiguous:
        array = value.array = array.copy()
        array.setflags(write=False)
    elif flags.writeable:
        array.setflags(write=False)
    return array


_CONTIGUOUS, _WRITEABLE = 1, 0x400  # among the flags of an array, as one number


def at_hand(value: LazyValue) -> Host | None:
    """What `realised` gives, in the shortest way; None where there is more to be done for it."""
    array = value.array
    if array is None or LAZY.recorded:
        return None
    flags = array.flags.num
    if flags & _WRITEABLE:
        array.setflags(False)  # type: ignore[call-arg] # by keyword it takes twice as long
    return array if flags & _CONTIGUOUS else None


def realise(values: Sequence[LazyValue]) -> None:
    """Run what these values need, so that each has its array."""
    pending, passed = _collect(values)
    mode = config.compile
    if (
        (mode == "always" or (mode == "auto" and passed >= config.compile_work))
        and pending
        and not config.disable
        and _by_plan(values, pending)
    ):
        return
    quietly(_settle, pending)


LAZY.overflow = lambda value: realise((value,))


def realise_small(values: Sequence[LazyValue]) -> None:
    """Run what these values need, if all of it would have been run at once but was recorded."""
    pending, _ = _collect(values)
    if LAZY.recorded or config.compile == "always":
        return
    nodes = [value.node for value in pending.values()]
    if all(node is None or node.form.is_direct for node in nodes):
        quietly(_settle, pending)


def _collect(values: Sequence[LazyValue]) -> tuple[dict[int, LazyValue], int]:
    """What has to be run for these: a value of each node, by its serial. And how many elements a
    plan could spare to write, at most: all those of other values."""
    pending: dict[int, LazyValue] = {}
    stack: list[DeferredNode] = []
    passed = 0
    for value in values:
        node = value.node
        if node is not None:
            pending[node.serial] = value
            stack.append(node)
    while stack:
        for value in stack.pop().inputs or ():
            maker = value.node  # looked at once: another thread may run it meanwhile
            if maker is not None and maker.serial not in pending:
                pending[maker.serial] = value
                stack.append(maker)
                passed += maker.form.elements
    return pending, passed


# One by one.


def _settle(pending: dict[int, LazyValue]) -> None:
    """Run nodes one by one; each is let go as soon as it is done."""
    for serial in sorted(pending) if len(pending) > 1 else list(pending):
        _run(pending.pop(serial))


def _run(value: LazyValue) -> None:
    """Run the node of a value on the arrays of its inputs."""
    node = value.node
    if node is None:  # another thread has
        return
    form = node.form
    if form.reuses and _run_over(node, value):
        return
    inputs = node.inputs
    while inputs is None:  # another thread is at it
        sleep(0)
        inputs = node.inputs
        if value.node is not node:
            return
    function = form.function or partial(_evaluated, form)
    if form.op == "dynamic_update" and is_unshared(inputs[0]):
        # Another thread may be at it, too. It reads the value as it was, or with the update done,
        # or in between: the update gives the same on all of them.
        from tenfold.ops.rows.indexing import update_in_place

        function = update_in_place
    arrays = computed(form, function, inputs, value.raw)
    if not node.results:
        value.settle(arrays[0])
        return
    for reference, array in zip(node.results, arrays, strict=True):
        other = reference()
        if other is not None:
            other.settle(array)


def _run_over(node: DeferredNode, value: LazyValue) -> bool:
    """Run a node in the memory of an input that nobody else holds, if there is one: whether it was
    done. NumPy does so for `x += y`, and for large values on the way of an expression.

    Another thread may be at the node, too, and would read what is written here. So the node's
    inputs are taken from it first: who looks from now on finds none and waits, who looked before
    holds them, and is counted.
    """
    inputs, node.inputs = node.inputs, None
    if inputs is None:
        return False
    over, written = None, False
    try:
        if getrefcount(inputs) == _ONE_NAME:
            for place in node.form.reuses:
                if is_unshared(inputs[place]):
                    over = inputs[place].array
                    break
        if over is not None:
            function: Any = node.form.function
            arrays = [x.array for x in inputs]
            # No interrupt comes between this and the end of the function, which raises nothing
            # once it has begun.
            written = True
            function(*arrays, out=over)
    except MemoryError:
        written = False
        raise
    finally:
        if over is not None and written:
            value.array = over  # as `settle` does: an interrupt may come where a call begins
            value.node = None
        else:
            node.inputs = inputs
    return written


def _one_name() -> int:
    """What is counted of a tuple that one name holds."""
    held = (object(),)
    return getrefcount(held)


_ONE_NAME = _one_name()


def _evaluated(form: NodeForm, *arrays: Host) -> list[Any]:
    """The results of a node with scopes, by the evaluator."""
    builder = Builder(TABLE)
    given = [builder.parameter(TensorType(array.dtype, array.shape)) for array in arrays]
    made = builder.node(form.op, given, dict(form.attributes), form.scopes)
    return run(builder.finish(made), arrays)


# By a plan.


def _by_plan(values: Sequence[LazyValue], pending: dict[int, LazyValue]) -> bool:
    """Settle these values, and those on the way that somebody holds, by a plan, if there is one."""
    found = _structure(pending)
    if found is None:
        return False
    entries, parameters, numbers, uses = found
    wanted: dict[int, list[LazyValue]] = {}
    spared = sum([form.elements for form, _ in entries])
    for serial, value in _outputs(values, pending, uses):
        holders = wanted.setdefault(numbers[serial] + value.index, [])
        spared -= 0 if holders else value.type.size
        holders.append(value)
    if spared < config.compile_work and config.compile != "always":
        return False
    outputs = tuple(wanted)
    key = entries, tuple([value.number for value in parameters]), outputs
    types = [value.type for value in parameters]
    arrays = [realised(value) for value in parameters]
    try:
        made = _hooks[0][1](key, lambda: _build(entries, types, outputs), len(entries), arrays)
    except Exception:
        _settle(dict(pending))  # which fails too, and names the user's line
        raise
    if made is None:
        return False
    for array, holders in zip(made, wanted.values(), strict=True):
        for value in holders:
            value.settle(np.asarray(array))
    return True


def _structure(
    pending: dict[int, LazyValue],
) -> tuple[tuple[NodeKey, ...], list[LazyValue], dict[int, int], dict[int, int]] | None:
    """The nodes with equal ones merged, the values they start from, the number of each node's first
    output by its serial, and how often nodes read each value, by id. None where another thread
    has run some meanwhile."""
    parameters: dict[int, tuple[int, LazyValue]] = {}
    numbers: dict[int, int] = {}
    uses: dict[int, int] = {}
    interned: dict[NodeKey, int] = {}
    count = 0
    for serial in sorted(pending):
        node = pending[serial].node
        held = None if node is None else node.inputs
        if node is None or held is None:
            return None
        inputs = []
        for value in held:
            maker, key = value.node, id(value)
            if maker is not None:
                uses[key] = uses.get(key, 0) + 1
                inputs.append(numbers[maker.serial] + value.index)
            elif value.constant is not None:
                number = interned.setdefault((value.constant, ()), count)
                count += number == count
                inputs.append(number)
            else:
                known = parameters.get(key)
                if known is None:
                    known = parameters[key] = -1 - len(parameters), value
                inputs.append(known[0])
        numbers[serial] = number = interned.setdefault((node.form, tuple(inputs)), count)
        if number == count:
            count += len(node.form.types)
    return tuple(interned), [value for _, value in parameters.values()], numbers, uses


def _outputs(
    values: Sequence[LazyValue], pending: dict[int, LazyValue], uses: dict[int, int]
) -> list[tuple[int, LazyValue]]:
    """The values that are asked for, then those on the way that somebody else holds, each with the
    serial of its node."""
    kept: dict[int, tuple[int, LazyValue]] = {}
    counts = _counts(pending)
    for value in values:
        node = value.node
        if node is not None:
            kept[id(value)] = node.serial, value
    for (serial, value), count in zip(pending.items(), counts, strict=True):
        node = value.node
        if node is not None and len(node.form.types) > 1:
            for reference in node.results:
                result = reference()
                if result is not None:
                    kept[id(result)] = serial, result
        elif count - uses.get(id(value), 0) > _SOLE:
            kept.setdefault(id(value), (serial, value))
    return list(kept.values())


def _counts(pending: dict[int, LazyValue]) -> list[int]:
    """How many references there are to each value: a function of its own, whose names hold none
    of them any more when the next is counted."""
    return [getrefcount(value) for value in pending.values()]


# What is counted for a value that nothing but nodes hold, less their uses of it.
(_SOLE,) = _counts({0: LazyValue(None, None)})


def _build(
    entries: Sequence[NodeKey], types: Sequence[TensorType], outputs: Sequence[int]
) -> Graph:
    """The graph of a structure. It names no lines, since it stands for all that are equal."""
    builder = Builder(TABLE)
    parameters = [builder.parameter(type) for type in types]
    values: list[int] = []
    for form, inputs in entries:
        given = [values[i] if i >= 0 else parameters[-1 - i] for i in inputs]
        values.extend(builder.node(form.op, given, dict(form.attributes), form.scopes))
    return builder.finish([values[i] for i in outputs])
