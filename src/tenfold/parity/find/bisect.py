"""Bisect: from a step that disagrees to the first node that does."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from tenfold.backends.program import Program
from tenfold.errors import TenfoldError
from tenfold.frozen import frozen
from tenfold.graph import Graph, Node
from tenfold.ops import TABLE
from tenfold.parity.check import check
from tenfold.parity.find.part import part_of
from tenfold.parity.find.script import write_script
from tenfold.parity.find.shrink import shrink
from tenfold.parity.replay.guards import try_arguments
from tenfold.parity.rule.agree import Uncertain, compare, judged
from tenfold.parity.rule.flushed import as_on
from tenfold.parity.verdict import GUARD, VALUES, Case, Disagreement
from tenfold.reference import Callbacks

Array = np.ndarray[Any, Any]


@frozen(eq=False)
class Bisection:
    """What bisecting found: None where the plan agrees; else the case, made small, as a script."""

    disagreement: Disagreement | None
    case: Case | None = None
    script: str = ""
    path: Path | None = None

    @property
    def node(self) -> Node | None:
        """The first node that diverges, or the last of the kernel to blame."""
        return None if self.disagreement is None else self.disagreement.node

    def __str__(self) -> str:
        if self.disagreement is None:
            return "the plan agrees with the reference at every step"
        where = f"\n  shown by {self.path}" if self.path is not None else ""
        return f"{self.disagreement}{where}"

    __repr__ = __str__


def bisect(
    program: Program,
    graph: Graph,
    arrays: Sequence[Array],
    callbacks: Callbacks | None = None,
    path: str | Path | None = None,
) -> Bisection:
    """The first step that disagrees, the first node in it, and a script that shows it."""
    verdict: Any = check(program, graph, arrays, callbacks, None, every=True).verdict
    if not isinstance(verdict, Disagreement):
        _, verdict = try_arguments(program)
        if verdict is None:
            return Bisection(None)
    fault = located(verdict, program)
    if fault.case is None:
        return Bisection(fault)
    case = shrink(smallest(fault, program), lambda c: diverges(c, fault, program))
    text = write_script(case, fault, program)
    made = None
    if path is not None:
        made = Path(path)
        made.write_text(text, encoding="utf-8")
    return Bisection(fault, case, text, made)


def located(fault: Disagreement, program: Program) -> Disagreement:
    """The disagreement with the first node that diverges, found by tapping its kernel."""
    case = fault.case
    if fault.kind != VALUES or case is None or not case.graph.nodes:
        return fault
    if len(case.graph.nodes) == 1:
        return fault.found(case.graph.nodes[0], False)
    try:
        position = first_diverging(case, program)
    except (TenfoldError, Uncertain):
        position = None
    if position is None:
        return fault.found(None, True)
    return fault.found(case.graph.nodes[position], False)


def first_diverging(case: Case, program: Program) -> int | None:
    """The first node that diverges when the nodes of a kernel are looked at; None if none does.

    First all at once: every value is stored too. If that hides the fault, single nodes are
    computed by kernels of their own, the first that diverges found by halving.
    """
    graph = case.graph
    makers = [n for n, node in enumerate(graph.nodes) if not TABLE[node.op].literal]
    values = [(n, v) for n in makers for v in _made(graph, n)]
    found = _wrong(replace(graph, outputs=tuple(v for _, v in values)), case.arrays, program)
    if found is not None:
        return values[found][0]
    low, high = 0, len(makers) - 1
    if not _alone_wrong(case, makers[high], program):
        return None
    while low < high:
        middle = (low + high) // 2
        if _alone_wrong(case, makers[middle], program):
            high = middle
        else:
            low = middle + 1
    return makers[high]


def _made(graph: Graph, position: int) -> range:
    return range(graph.starts[position], graph.starts[position] + len(graph.nodes[position].types))


def _alone_wrong(case: Case, position: int, program: Program) -> bool:
    """Whether the expression up to a node diverges in a kernel of its own."""
    part = part_of(case.graph, range(position + 1), _made(case.graph, position))
    arrays = part.arrays(dict(enumerate(case.arrays)))
    return _wrong(part.graph, arrays, program) is not None


def _wrong(graph: Graph, arrays: Sequence[Array], program: Program) -> int | None:
    """The first output of a compiled graph that is out of bounds."""
    with as_on(program.target):
        wanted = judged(graph, arrays)
    got = program.like(graph)(arrays)
    for number, (mine, one) in enumerate(zip(got, wanted, strict=True)):
        if not compare(np.asarray(mine), one.value, one.allowed).agrees:
            return number
    return None


def smallest(fault: Disagreement, program: Program) -> Case:
    """The case cut down to the node that diverges, as far as it still does."""
    case = fault.case
    assert case is not None
    if fault.kind != VALUES or fault.first is None:
        return case
    position = next((n for n, node in enumerate(case.graph.nodes) if node is fault.first), -1)
    if position < 0:
        return case
    values = _every(case)
    for few in ((position,), range(position + 1)):
        constants = [n for n, node in enumerate(case.graph.nodes) if TABLE[node.op].literal]
        part = part_of(case.graph, {*few, *constants}, _made(case.graph, position))
        made = Case(part.graph, tuple(part.arrays(values)))
        if diverges(made, fault, program):
            return made
    return case


def _every(case: Case) -> dict[int, Array]:
    """Every value of a case's graph, by the reference."""
    from tenfold.reference import evaluate

    count = len(case.graph.types)
    whole = evaluate(replace(case.graph, outputs=tuple(range(count))), case.arrays)
    return dict(enumerate(whole))


def diverges(case: Case, fault: Disagreement, program: Program) -> bool:
    """Whether a compiled graph disagrees on these arguments."""
    try:
        made = program.like(case.graph)
        if fault.kind == GUARD:
            return try_arguments(made)[1] is not None
        return not check(made, case.graph, case.arrays, None, None, every=True).agrees
    except (TenfoldError, Uncertain):
        return False
