"""Wiring: a plan without its sizes. A plan of judged kernels, wired as one that was checked,
answers before its own check is made.

The wiring of a plan is all that does not grow with its arguments: its graph with a mark in place of
each extent, offset and literal; its kernels, which are general; the functions that its loops have;
its steps and the slots that they read and write; which slots are inputs, outputs and constants;
which of them share memory while both are in use. Two plans of one wiring differ in sizes alone, and
in the literals that they pass on.

Where a plan of an equal wiring was checked, in brief or in full, and all kernels of this one were
judged on drawn values with the very code it runs, only what hangs on its sizes could be wrong. Of
that is looked at before it answers (`wiring_of` gives nothing where it does not hold):

- each slot has the size of what is read or written there, and of the kernel's buffer, and lies
  within its memory; the arena of a loop has room for its plan's;
- no slots share memory while both are in use but those that do so in the plan that was checked;
- each parameter of a kernel, and each constant, is a literal of the graph: the same one as there;
- a loop goes as many rounds as its node says.

What is assumed until its own check, which goes on behind, is at its end: that extents, strides and
offsets that are given to general kernels and to ranges of a slot are right. Host steps are the
reference's own code and products the library's; both are given what stands in the graph. Such a
certificate is partial, and says so. A plan that its own check refutes is taken out of use as any
other; the next call says how many it had answered.

A first plan of a wiring is checked as ever. Where the time does not suffice for a check in brief,
that of the second, fourth, eighth plan of the wiring gets more. The guards of an entry are tried
once for a wiring, and what it closes over each time. In strict mode, with `verify="always"` or a
limit nothing of this is used; nor is it for graphs so large that they are planned in full each
time, where finding the wiring takes longer than a check.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

import msgpack

from tenfold.backends.program import Program
from tenfold.digest import sha256
from tenfold.graph import Graph
from tenfold.locks import Lock
from tenfold.ops import TABLE
from tenfold.parity.certificate import Certificate
from tenfold.parity.check import target_of, versions_of
from tenfold.parity.replay.brief import may_be_brief
from tenfold.parity.replay.drawn import kernels
from tenfold.parity.replay.state import PlanFacts, but_sizes
from tenfold.parity.slots import fits, shared_memory
from tenfold.plan import CopyStep, HostStep, KernelStep, LoopStep, Plan, RoutineStep
from tenfold.plan.steps.templates import LARGE

_NOTE = "by its kernels and wiring, checked at other sizes, it answered before its own check"
CAPACITY = 1024  # wirings that are remembered


class Wirings:
    """What is known of wirings in this process, by digest: those that were checked, each with the
    names of the kernels of every code that it was met with; how many plans of others came; those
    of which a plan was refuted; how many guards were tried, by what else an entry hangs on."""

    def __init__(self) -> None:
        self._checked: OrderedDict[str, dict[tuple[str, ...], tuple[str, ...]]] = OrderedDict()
        self._met: OrderedDict[str, int] = OrderedDict()
        self._refuted: set[str] = set()
        self._guards: OrderedDict[tuple[str, object], int] = OrderedDict()
        self._lock = Lock()

    def add(self, wiring: str) -> None:
        """A plan of this wiring was checked, and nothing is left of that."""
        with self._lock:
            if wiring not in self._refuted:
                self._checked.setdefault(wiring, {})
                self._met.pop(wiring, None)
                _trim(self._checked)

    def refute(self, wiring: str) -> None:
        """A plan of this wiring was wrong: from now on each is checked before it answers."""
        with self._lock:
            self._refuted.add(wiring)
            self._checked.pop(wiring, None)

    def judged(self, wiring: str, program: Program) -> tuple[str, ...] | None:
        """The names of a program's kernels, if its wiring was checked and they were judged."""
        with self._lock:
            known = self._checked.get(wiring)
            if known is None:
                return None
            self._checked.move_to_end(wiring)
        codes = tuple([program.code_name(call) for call in program.plan.calls])
        names = known.get(codes)
        if names is None:
            every = program.plan.every
            abouts = {id(p): PlanFacts(p, p.graph, n) for n, p in enumerate(every)}
            names = tuple(sorted(name for name, _, _ in kernels(program, abouts)))
            if not program.judged.issuperset(names):
                return None
            known[codes] = names
        return names

    def turn(self, wiring: str) -> int:
        """How many plans of a wiring that was not checked were to be, with this one."""
        with self._lock:
            turn = self._met[wiring] = self._met.pop(wiring, 0) + 1
            _trim(self._met)
            return turn

    def guards(self, wiring: str, entry: object) -> int | None:
        """How many guards of such an entry were tried; None where none was."""
        with self._lock:
            return self._guards.get((wiring, entry))

    def note_guards(self, wiring: str, entry: object, number: int) -> None:
        with self._lock:
            self._guards[wiring, entry] = number
            _trim(self._guards)

    def clear(self) -> None:
        with self._lock:
            self._guards.clear()
            self._checked.clear()
            self._met.clear()
            self._refuted.clear()


def _trim(held: OrderedDict[Any, Any]) -> None:
    while len(held) > CAPACITY:
        held.popitem(last=False)


wirings = Wirings()


def certificate_by_wiring(program: Program, graph: Graph) -> Certificate | None:
    """The certificate of a program by its kernels and its wiring, where that is known. What it
    finds out of the wiring stays with the program."""
    program.wiring = wiring_of(program, graph)
    names = None if program.wiring is None else wirings.judged(program.wiring, program)
    if names is None:
        return None
    program.known = True
    return Certificate(
        graph=graph.digest,
        target=target_of(program),
        inputs=tuple([repr(p.type) for p in graph.parameters]),
        inputs_digest="",
        kernels=names,
        undrawn=0,
        steps=(),
        loops=(),
        near_ties=(),
        checked=0,
        left=("its own values",),
        unreached=(),
        notes=(_NOTE,),
        whole=False,
        end_to_end=(),
        versions=versions_of(program),
        date=datetime.now(UTC).isoformat(timespec="seconds"),
        seconds=0.0,
    )


def wiring_of(program: Program, graph: Graph) -> str | None:
    """The digest of a program's wiring; None where it has none: it is very large, calls Python,
    has branches or loops that may go on for ever, or its sizes do not fit each other."""
    if len(graph.nodes) > LARGE or not may_be_brief(program, graph):
        return None
    every = program.plan.every
    number = {id(plan): n for n, plan in enumerate(every)}
    loops = sorted(program.loops.items())
    forms: list[Any] = [program.target.digest, program.strict, graph_form(graph), loops]
    for plan in every:
        form = _plan_form(plan, graph, number)
        if form is None:
            return None
        forms.append(form)
    return sha256(msgpack.packb(forms)).hexdigest()


def graph_form(graph: Graph) -> Any:
    """A graph with a mark in place of each extent, offset and literal."""
    types, scopes, forms, *rest = msgpack.unpackb(graph._canonical, use_list=False)
    inner = {s.digest: s for node in graph.nodes for s in node.scopes} if scopes else {}
    return (
        [(name, *map(_extent, shape)) for name, *shape in types],
        [graph_form(inner[s]) for s in scopes],
        [
            (op, () if TABLE[op].literal else but_sizes(given), *other)
            for op, given, *other in forms
        ],
        *rest,
    )


def _extent(n: int) -> int:
    return n if n < 2 else 2


def _plan_form(plan: Plan, graph: Graph, number: Mapping[int, int]) -> Any:
    """A plan without its sizes, or None where these do not fit each other."""
    if not fits(plan):
        return None
    literals = {n["data"]: at for at, n in enumerate(plan.graph.nodes) if TABLE[n.op].literal}
    steps: list[Any] = []
    for step in plan.steps:
        if isinstance(step, KernelStep):
            params = [literals.get(p, p) for p in step.params]
            steps.append((step.kernel, step.slots, params, step.nodes, step.reads, step.writes))
        elif isinstance(step, RoutineStep):
            steps.append((step.name, step.node, step.inputs, step.outputs, step.scratch))
        elif isinstance(step, CopyStep):
            steps.append((step.source, step.target, step.update))
        elif isinstance(step, LoopStep):
            below = [number[id(plan.plans[p])] for p in step.plans]
            steps.append(
                (step.op, step.node, below, step.inputs, step.outputs, step.captures,
                 step.carries, step.second, step.arena, step.reverse)
            )  # fmt: skip
        elif isinstance(step, HostStep):
            steps.append((step.op, step.node, step.inputs, step.outputs))
    return (
        None if plan.graph is graph else graph_form(plan.graph),
        [kernel.digest for kernel in plan.own],
        steps,
        [(s.place, s.number, s.device) for s in plan.slots],
        plan.outputs,
        [literals.get(raw, raw) for raw in plan.constants],
        plan.donated,
        plan.safe,
        shared_memory(plan),
    )
