"""Plans as plain data: every distinct graph, kernel, type and text once, plans by number.

What is read back is checked in full: see `check`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import fields
from typing import Any

import msgpack

from tenfold.errors import PlanError, TenfoldError
from tenfold.graph import Graph
from tenfold.graph.file import pack as pack_graphs
from tenfold.graph.file import unpack as unpack_graphs
from tenfold.kernel import Kernel, from_data, to_data
from tenfold.plan.capabilities import Capabilities
from tenfold.plan.file.sections import bad, unpack
from tenfold.plan.steps.check import check_graphs, check_plan
from tenfold.plan.steps.plan import (
    ARENA,
    CONSTANT,
    INPUT,
    OUTPUT,
    BranchStep,
    CopyStep,
    HostStep,
    KernelStep,
    LoopStep,
    Plan,
    RoutineStep,
    Slot,
    Step,
)
from tenfold.types import SHORT, TensorType, parse_type

_PLACES = (INPUT, OUTPUT, CONSTANT, ARENA)
_KINDS: tuple[type[Any], ...] = (
    KernelStep,
    RoutineStep,
    HostStep,
    CopyStep,
    LoopStep,
    BranchStep,
)
# What is written of a step: all that it is made of and compared by. Lines are the graph's.
_FIELDS = {cls: [f.name for f in fields(cls) if f.init and f.compare] for cls in _KINDS}
_FORMS = {cls: [str(f.type) for f in fields(cls) if f.init and f.compare] for cls in _KINDS}


def _number(value: Any) -> bool:
    return type(value) is int and -1 <= value < 1 << 47


def _pair(value: Any) -> bool:
    return _CHECKS["tuple[int, ...]"](value) and len(value) == 2


def _row_of(inner: Callable[[Any], bool]) -> Callable[[Any], bool]:
    return lambda value: type(value) is tuple and all(map(inner, value))


_CHECKS: dict[str, Callable[[Any], bool]] = {
    "int": _number,
    "bool": lambda value: type(value) is bool,
    "str": lambda value: type(value) is str,
    "tuple[int, ...]": _row_of(_number),
    "Sizes": _row_of(lambda value: type(value) is int and abs(value) < 1 << 62),
    "tuple[bytes, ...]": _row_of(lambda value: type(value) is bytes),
}


class _Numbers(dict[Any, int]):
    """Numbers its keys by first use."""

    def __missing__(self, key: Any) -> int:
        self[key] = number = len(self)
        return number


def write_plan(plan: Plan, graph: Graph | None = None) -> bytes:
    """A plan and those below it; `graph` is the one it was made of, where that is another."""
    graphs: dict[str, Graph] = {}
    for used in (*([graph] if graph else []), *(p.graph for p in plan.every)):
        graphs.setdefault(used.digest, used)
    names = {digest: number for number, digest in enumerate(graphs)}
    kernels = {kernel: number for number, kernel in enumerate(plan.kernels)}
    numbers = {id(p): number for number, p in enumerate(plan.every)}
    types, texts, constants = _Numbers(), _Numbers(), _Numbers()
    rows = []
    for one in plan.every:
        slots: list[int] = []
        for slot in one.slots:
            slots += (types[slot.type], _PLACES.index(slot.place), slot.number, slot.offset)
            slots.append(texts[slot.device])
        rows.append(
            [
                names[one.graph.digest],
                slots,
                [[_KINDS.index(type(s)), *(getattr(s, f) for f in _FIELDS[type(s)])] for s in one],
                one.outputs,
                [kernels[k] for k in one.own],
                [numbers[id(p)] for p in one.plans],
                [constants[raw] for raw in one.constants],
                one.arena_bytes,
                one.greatest_live,
                one.donated,
                [texts[note] for note in one.notes],
                one.safe,
            ]
        )
    data = [
        pack_graphs(list(graphs.values())),
        list(graphs),
        names[graph.digest if graph else plan.graph.digest],
        [[SHORT[t.dtype], *t.shape] for t in types],
        list(texts),
        list(constants),
        [to_data(k) for k in kernels],
        rows,
    ]
    packed: bytes = msgpack.packb(data)
    return packed


def read_plan(raw: bytes | memoryview, capabilities: Capabilities) -> tuple[Graph, Plan]:
    """The graph a plan was made of, and the plan; PlanError unless everything fits together, and
    its routines are those of the backend that it is for."""
    try:
        return _read(unpack(raw), capabilities)
    except PlanError:
        raise
    except TenfoldError as error:
        bad(error.message)
    except Exception as error:  # whatever malformed data makes of reading it
        bad(f"malformed: {error!r}")


def _read(data: Any, capabilities: Capabilities) -> tuple[Graph, Plan]:
    packed, names, origin, types, texts, constants, kernels, rows = data
    known = unpack_graphs(packed)
    check_graphs(known.values())
    graphs = [known[name] for name in names]
    types = [parse_type(f"{t[0]}[{','.join(map(str, t[1:]))}]" if t[1:] else t[0]) for t in types]
    if not all(type(t) is str for t in texts) or not all(type(c) is bytes for c in constants):
        bad("its texts and constants are of another kind")
    made = [from_data(one) for one in kernels]
    plans: list[Plan] = []
    for row in rows:
        plans.append(_plan(row, graphs, types, texts, constants, made, plans))
        check_plan(plans[-1], capabilities)
    if not plans or set(plans[-1].every) != set(plans):
        bad("its plans do not belong together")
    if set(plans[-1].kernels) != set(made):
        bad("it holds kernels that no step uses")
    _at(graphs, origin)
    return graphs[origin], plans[-1]


def _at(items: Sequence[Any], number: Any) -> Any:
    if type(number) is not int or not 0 <= number < len(items):
        bad(f"{number!r} is no number of its {len(items)} parts")
    return items[number]


def _plan(
    row: Any,
    graphs: Sequence[Graph],
    types: Sequence[TensorType],
    texts: Sequence[str],
    constants: Sequence[bytes],
    kernels: Sequence[Kernel],
    plans: Sequence[Plan],
) -> Plan:
    graph, slots, steps, outputs, own, below, held, arena, live, donated, notes, safe = row
    if not _number(arena) or not _number(live) or not _CHECKS["tuple[int, ...]"](donated):
        bad("the size of an arena is no size")
    if type(safe) is not tuple or not all(_pair(pair) for pair in safe):
        bad("what may share memory is malformed")
    if len(slots) % 5 or not all(map(_number, slots)) or not all(map(_number, outputs)):
        bad("its slots are malformed")
    graph = _at(graphs, graph)
    return Plan(
        graph,
        tuple(
            Slot(_at(types, t), _at(_PLACES, p), n, o, _at(texts, d))
            for t, p, n, o, d in zip(*(slots[i::5] for i in range(5)), strict=True)
        ),
        tuple(_step(step, graph) for step in steps),
        tuple(outputs),
        tuple(_at(kernels, k) for k in own),
        tuple(_at(plans, p) for p in below),
        tuple(_at(constants, c) for c in held),
        arena,
        live,
        donated,
        tuple(_at(texts, n) for n in notes),
        safe,
    )


def _step(row: Any, graph: Graph) -> Step:
    kind, *values = row
    cls = _at(_KINDS, kind)
    forms = _FORMS[cls]
    if len(values) != len(forms):
        bad(f"a step has {len(values)} fields, not {len(forms)}")
    for value, form, name in zip(values, forms, _FIELDS[cls], strict=True):
        if not _CHECKS[form](value):
            bad(f"the field {name} of a step is {value!r}")
    if cls is HostStep:
        found = dict(zip(_FIELDS[cls], values, strict=True))
        return HostStep(**found, source=_at(graph.nodes, found["node"]).source)
    step: Step = cls(*values)
    return step
