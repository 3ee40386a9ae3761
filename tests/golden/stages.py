"""The stages of the middle, from text to text: what golden cases run.

A case gives a graph, a kernel or a list of requests; each stage says what becomes of it. Nothing
here depends on a machine: all instructions are supported, no routine is there.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from tenfold.graph import Graph
from tenfold.graph.check import check
from tenfold.graph.text import parse, show_node
from tenfold.kernel import Kernel
from tenfold.kernel.analyse.nest import Compute, Guard, Item, Write, nest
from tenfold.kernel.ir.kernel import REDUCED
from tenfold.kernel.ir.legal import check as check_legal
from tenfold.kernel.ir.text import _line as shown
from tenfold.kernel.passes.collapse import collapse
from tenfold.kernel.passes.flatten import flatten
from tenfold.kernel.passes.keep import keep
from tenfold.kernel.passes.legalise import legalise, update
from tenfold.ops import TABLE
from tenfold.plan.capabilities import Capabilities
from tenfold.plan.fusion.access import Access, Pattern
from tenfold.plan.fusion.fuse import Fusion, fuse
from tenfold.plan.lowering.form import BoundForm, Former
from tenfold.plan.lowering.general import GeneralForm, GeneralForms, SizedForm
from tenfold.plan.lowering.lower import Form, Place, lower
from tenfold.plan.passes.hoist import hoist
from tenfold.plan.steps.build import make_plan
from tenfold.plan.steps.plan import CopyStep, KernelStep, LoopStep, Plan
from tenfold.plan.steps.slots import Request, lay_out
from tests.golden.kernel_text import parse_kernel


def run(stage: str, given: str) -> str:
    """What a stage makes of a case's text."""
    name, *words = stage.split()
    return STAGES[name](given, words)


def graph_of(text: str) -> Graph:
    return parse(text, lambda g: check(g, TABLE))


def fused_of(text: str) -> Fusion:
    return fuse(graph_of(text), TABLE, Capabilities())


def _values(numbers: Iterable[int]) -> str:
    return " ".join(f"%{v}" for v in numbers) or "nothing"


# Graph in: how nodes read, groups, forms, kernels, plans.


def access(given: str, _: Sequence[str]) -> str:
    """How each node reads its inputs."""
    fused = fused_of(given)
    lines = []
    for position, found in enumerate(fused.accesses):
        lines.append(show_node(fused.graph, position))
        inputs = fused.graph.nodes[position].inputs
        lines += [f"  {one}" for one in _reads(found, inputs)]
    return "\n".join(lines)


def _reads(found: Access | None, inputs: Sequence[int]) -> list[str]:
    if found is None:
        return ["a step of its own"]
    lines = []
    for value, aligned, moved, computed in zip(
        inputs, found.patterns, found.moved, found.computed, strict=False
    ):
        reads = [f"along {_axes(p)}" for p in aligned]
        reads += [f"{moved} at other places"] if moved else []
        reads += [f"{computed} at computed places"] if computed else []
        lines.append(f"%{value} " + (", ".join(reads) or "not at all"))
    facts = [f"weight {found.weight}"]
    facts += [f"reduces {'x'.join(map(str, found.reduced))}"] if found.reduced else []
    facts += [
        word
        for word, holds in (
            ("costly", found.costly), ("checks", found.checks), ("a view", found.view),
            ("the same memory", found.same),
        )
        if holds
    ]  # fmt: skip
    return [*lines, ", ".join(facts)]


def _axes(pattern: Pattern) -> str:
    return "(" + ", ".join("-" if a is None else str(a) for a in pattern) + ")"


def groups(given: str, _: Sequence[str]) -> str:
    """Which nodes become one kernel, in the order in which they run; and why not more."""
    fused = fused_of(given)
    ops = {
        start: node.op for node, start in zip(fused.graph.nodes, fused.graph.starts, strict=True)
    }
    lines = []
    for item in fused.items:
        group = item.group
        if group is None and item.copied >= 0:
            lines.append(f"copy of %{item.copied} for {fused.graph.nodes[item.node].op}")
        elif group is None:
            node = fused.graph.nodes[item.node]
            lines.append(f"step {node.op}: reads {_values(node.inputs)}")
        else:
            members = [f"%{v} {ops.get(v, 'parameter')}" for v in sorted(group.members)]
            lines.append(f"group: {', '.join(members) or 'nothing of its own'}")
            lines.append(f"  reads {_values(sorted(group.streams))}")
            stored = [v for v in sorted(group.members) if fused.stored[v]]
            lines += [f"  stores {_values(stored)}"] if stored else []
            for node, number in group.writes:
                result = fused.graph.starts[node]
                lines.append(f"  writes input {number} of %{result} {ops[result]}")
    views = [v for v, is_view in enumerate(fused.view) if is_view]
    lines += [f"views: {_values(views)}"] if views else []
    for reason, (count, first) in fused.notes.items():
        node = fused.graph.nodes[first]
        lines.append(f"apart: {reason} ({count}×, first: {node.op} %{fused.graph.starts[first]})")
    lines += [f"no kernel for {op}: {why}" for op, why in fused.reasons.items()]
    return "\n".join(lines)


class _Forms(GeneralForms):
    """Forms with their numbers, as they stand in a case."""

    def general(self, form: Form) -> SizedForm:
        return SizedForm(GeneralForm(form), ())


def _bound(given: str) -> list[tuple[BoundForm, Form]]:
    fused = fused_of(given)
    former = Former(fused, TABLE, _Forms(TABLE, Capabilities().tune))
    found = [b for item in fused.items if item.group for b in former.forms(item.group)]
    return [(bound, bound.form.general.form) for bound in found]


def forms(given: str, _: Sequence[str]) -> str:
    """The groups without the numbers of their values; equal ones once."""
    numbers: dict[Form, int] = {}
    lines = []
    for bound, form in _bound(given):
        new = form not in numbers
        number = numbers.setdefault(form, len(numbers))
        shifts = "".join(f" at byte {s}" for s in bound.shifts if s)
        lines.append(f"form {number}: {_values(bound.inputs)} to {_values(bound.targets)}{shifts}")
        lines += _form(form) if new else []
    return "\n".join(lines)


def _form(form: Form) -> list[str]:
    def place(axes: Place) -> str:
        return "(" + ", ".join("-" if a is None else f"x{a}" for a in axes) + ")"

    def named(node: int | None) -> str:
        return "-" if node is None else f"n{node}" if node >= 0 else f"in{~node}"

    lines = ["  axes " + " ".join(f"x{n}:{e}" for n, e in enumerate(form.extents))]
    lines += [f"  in{n}: {type}" for n, type in enumerate(form.inputs)]
    along = dict(form.reductions)
    for n, node in enumerate(form.nodes):
        given = f" {node.attributes!r}" if node.attributes else ""
        where = f" along {place(along[n])}" if n in along else ""
        inputs = " ".join(map(named, node.inputs))
        lines.append(f"  n{n} = {node.op} {inputs}".rstrip() + f"{given} : {node.type}{where}")
    for target in form.targets:
        into = f" into {target.into}" if target.into is not None else ""
        starts = [f"{named(who)} below {limit}" for who, limit in target.starts if who is not None]
        start = f" from {', '.join(starts)}" if starts else ""
        by = f" by {target.scatter.op}" if target.scatter is not None else ""
        lines.append(f"  out {named(target.node)} along {place(target.place)}{into}{start}{by}")
    return lines


def kernels(given: str, _: Sequence[str]) -> str:
    """What each distinct form is lowered to."""
    lines = []
    for form in dict.fromkeys(form for _, form in _bound(given)):
        made = lower(form, TABLE)
        lines.append(str(made.kernel))
        for n, param in enumerate(made.params):
            what = f"0x{param.hex()}" if isinstance(param, bytes) else f"n{param}"
            lines.append(f"  param {n} is {what}")
    return "\n".join(lines)


def plan(given: str, words: Sequence[str]) -> str:
    """Slots and steps; `donated 0` has parameter 0 donated."""
    return _plan(make_plan(graph_of(given), donated=[int(w) for w in words[1:]]))


def _plan(made: Plan) -> str:
    lines = []
    for number, one in enumerate(reversed(made.every)):
        lines.append(f"plan {number}: {one.arena_bytes} bytes of arena, {len(one.own)} kernels")
        lines += [f"  s{n}: {slot}" for n, slot in enumerate(one.slots)]
        for step in one.steps:
            if isinstance(step, KernelStep):
                ops = " ".join(one.graph.nodes[n].op for n in step.nodes)
                slots = " ".join(f"s{s}" for s in step.slots)
                lines.append(f"  kernel {step.kernel} {slots}: {ops}")
            elif isinstance(step, CopyStep):
                lines.append(f"  copy s{step.source} to s{step.target}")
            else:
                name = one.graph.nodes[step.node].op
                counted = isinstance(step, LoopStep) and step.length >= 0
                trips = f" {step.length} times" if counted else ""
                ins, outs = (" ".join(f"s{s}" for s in x) for x in (step.inputs, step.outputs))
                lines.append(f"  {step.kind} {name}{trips} {ins} -> {outs}")
        lines.append("  return " + " ".join(f"s{n}" for n in one.outputs))
        lines += [f"  apart: {note}" for note in one.notes]
    return "\n".join(lines)


# Kernel in: passes, legal kernels, and loops.


def _pass(change: Callable[..., Kernel]) -> Callable[[str, Sequence[str]], str]:
    def stage(given: str, words: Sequence[str]) -> str:
        kernel = parse_kernel(given)
        made = change(kernel, *(int(w[1:]) for w in words))
        return "the same" if made == kernel else str(made)

    return stage


def legal(given: str, words: Sequence[str]) -> str:
    """The legal kernel; `strict` keeps products and sums apart."""
    made = legalise(parse_kernel(given), fused="strict" not in words)
    check_legal(made)
    return str(made)


def updated(given: str, _: Sequence[str]) -> str:
    """What a store with an update makes of memory: `add of f32`."""
    name, _, dtype = given.split()
    return str(update(name, dtype))


def nested(given: str, words: Sequence[str]) -> str:
    """The loops of a kernel, its axes in this order or in their own."""
    kernel = parse_kernel(given)
    own = [n for n, a in enumerate(kernel.axes) if a.kind != REDUCED]
    order = [int(w[1:]) for w in words] or own
    lines: list[str] = []
    _items(kernel, nest(kernel, order), 0, lines)
    return "\n".join(lines)


def _items(kernel: Kernel, items: Iterable[Item], depth: int, lines: list[str]) -> None:
    indent = "  " * depth
    for item in items:
        if isinstance(item, Compute):
            lines.append(f"{indent}%{item.value} = {shown(kernel.instructions[item.value])}")
        elif isinstance(item, Write):
            store = kernel.stores[item.store]
            lines.append(f"{indent}b{store.buffer}[{store.index}] = %{store.value}")
        elif isinstance(item, Guard):
            lines.append(f"{indent}check %{kernel.checks[item.check].condition}")
        else:
            made = f" for {_values(item.members)}" if item.members else ""
            lines.append(f"{indent}loop a{item.axis}:{kernel.axes[item.axis].extent}{made}")
            _items(kernel, item.body, depth + 1, lines)


# Requests in: places in the arena. A line is the bytes, then the first and the last step.


def slots(given: str, _: Sequence[str]) -> str:
    requests = [Request(*map(int, line.split())) for line in given.splitlines()]
    offsets, size = lay_out(requests)
    lines = [f"{r.bytes} bytes at {at}" for r, at in zip(requests, offsets, strict=True)]
    return "\n".join([*lines, f"{size} bytes in all"])


def hoisted(given: str, _: Sequence[str]) -> str:
    """The graph with products before loops."""
    made, notes = hoist(graph_of(given), TABLE)
    check(made, TABLE)
    return "\n".join([str(made), *map(str, notes or ["nothing is hoisted"])])


STAGES: dict[str, Callable[[str, Sequence[str]], str]] = {
    "hoist": hoisted,
    "access": access,
    "groups": groups,
    "forms": forms,
    "kernels": kernels,
    "plan": plan,
    "collapse": _pass(collapse),
    "flatten": _pass(flatten),
    "keep": _pass(keep),
    "legal": legal,
    "update": updated,
    "nest": nested,
    "slots": slots,
}
