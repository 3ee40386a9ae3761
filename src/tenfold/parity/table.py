"""Parity: every node of a program, compiled, beside the reference."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from tenfold.backends.program import Program
from tenfold.errors import TenfoldError
from tenfold.frozen import frozen, mutable
from tenfold.graph import Graph
from tenfold.ops import TABLE
from tenfold.parity.find.part import whole_graphs
from tenfold.parity.replay.state import ScopeState
from tenfold.parity.replay.steps import carry_out, judged_step
from tenfold.parity.replay.walk import Walk
from tenfold.parity.rule.agree import Agreement, Uncertain, compare, judged
from tenfold.parity.rule.flushed import as_on
from tenfold.plan import CopyStep, KernelStep
from tenfold.reference import Callbacks

Array = np.ndarray[Any, Any]


@mutable
class ParityRow:
    """One node over all the times it ran and was looked at.

    `name` is its value's number after the loops and branches it stands in, without their rounds.
    """

    name: str
    op: str
    type: str
    line: str
    times: int = 0
    ulp: float = 0.0
    nans: int = 0
    infinities: int = 0
    ties: int = 0
    wrong: str = ""

    def add(self, found: Agreement) -> None:
        self.times += 1
        self.ulp = max(self.ulp, found.ulp)
        self.nans += found.nans
        self.infinities += found.infinities
        self.ties += found.ties
        if not found.agrees and not self.wrong:
            self.wrong = found.text


@frozen(eq=False)
class ParityTable(Sequence[ParityRow]):
    """The rows of one backend after another; it prints as a table."""

    backends: tuple[tuple[str, tuple[ParityRow, ...]], ...]

    @property
    def rows(self) -> tuple[ParityRow, ...]:
        return tuple(row for _, rows in self.backends for row in rows)

    @property
    def agrees(self) -> bool:
        """Whether no node is out of its bounds."""
        return not any(row.wrong for row in self.rows)

    def __len__(self) -> int:
        return len(self.rows)

    def __getitem__(self, at: Any) -> Any:
        return self.rows[at]

    def __str__(self) -> str:
        lines = []
        for backend, rows in self.backends:
            head = ("node", "op", "type", "ulp", "NaN", "inf", "ties", "", "line")
            cells = [head] + [
                (
                    r.name, r.op, r.type, f"{r.ulp:.3g}", str(r.nans), str(r.infinities),
                    str(r.ties), "WRONG" if r.wrong else "", r.line,
                )
                for r in rows
            ]  # fmt: skip
            widths = [max(len(row[n]) for row in cells) for n in range(len(head))]
            lines.append(f"{backend}: {len(rows)} nodes, largest error "
                         f"{max((r.ulp for r in rows), default=0.0):.3g} ulp")  # fmt: skip
            for row in cells:
                padded = (t.ljust(w) for t, w in zip(row, widths, strict=True))
                lines.append("  " + "  ".join(padded).rstrip())
        return "\n".join(lines)

    __repr__ = __str__


def compare_nodes(
    program: Program, arrays: Sequence[Array], callbacks: Callbacks | None = None
) -> list[ParityRow]:
    """Every node that the plan computes, looked at on the reference's values."""
    rows: dict[tuple[str, int], ParityRow] = {}
    tapped: dict[str, tuple[Graph, Program] | None] = {}
    walk = Walk(program, arrays)

    def look(state: ScopeState, at: int) -> None:
        about = state.about
        step, part = about.plan.steps[at], about.part(at)
        if isinstance(step, KernelStep) and part.graph.nodes:
            found = _taps(part.graph, part.arrays(state.values), tapped, program)
            for position, agreement in found:
                row_of(state, part.nodes[position]).add(agreement)
            # The kernel that was looked into was made for that; the plan's own has to agree too.
            own = judged_step(walk.replay, state, at)
            for value, agreement in zip(part.outputs, own, strict=True):
                if not agreement.agrees:
                    row_of(state, bisect_right(about.graph.starts, value) - 1).add(agreement)
        elif isinstance(step, CopyStep):  # what later steps write into begins as this
            carry_out(walk.replay, state, at)
        elif hasattr(step, "node"):
            for agreement in judged_step(walk.replay, state, at):
                row_of(state, step.node).add(agreement)

    def row_of(state: ScopeState, position: int) -> ParityRow:
        graph = state.about.graph
        node, start = graph.nodes[position], graph.starts[position]
        name = f"{_without_rounds(state.name)}%{start}"
        key = (_without_rounds(state.name), start)
        if key not in rows:
            types = ", ".join(map(repr, node.types))
            rows[key] = ParityRow(name, node.op, types, str(node.source or ""))
        return rows[key]

    walk.watched = look
    whole = whole_graphs(program.plan)[id(program.plan)]
    walk.run(whole, callbacks or Callbacks())
    return [rows[key] for key in sorted(rows)]


def _taps(
    graph: Graph, arrays: Sequence[Array], known: dict[str, Any], program: Program
) -> list[tuple[int, Agreement]]:
    """Every node of a kernel, stored by a kernel that computes the same."""
    values = [
        (n, v)
        for n, node in enumerate(graph.nodes)
        if not TABLE[node.op].literal
        for v in range(graph.starts[n], graph.starts[n] + len(node.types))
    ]
    every = replace(graph, outputs=tuple(v for _, v in values))
    key = every.digest
    if key not in known:
        known[key] = (every, program.like(every))
    got = known[key][1](arrays)
    try:
        with as_on(program.target):
            wanted: list[Any] = list(judged(every, arrays))
    except (Uncertain, TenfoldError):
        return []
    return [
        (n, compare(np.asarray(mine), one.value, one.allowed))
        for (n, _), mine, one in zip(values, got, wanted, strict=True)
    ]


def _without_rounds(name: str) -> str:
    """The way to a scope without the numbers of rounds."""
    parts = name.split("[")
    return parts[0] + "".join(f"[]{p.partition(']')[2]}" for p in parts[1:])
