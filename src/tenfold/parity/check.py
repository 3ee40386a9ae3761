"""Check a program against the reference, step by step, on real arguments, in one pass.

The reference runs the plan's graph with a watch. As soon as it has gone past a step, that step is
run natively in memory laid out as the plan says, judged, and its results are replaced by the
reference's: so every step is judged on the reference's own values, a value that is overwritten too
early is found by whoever reads it, and what no step needs any more is dropped.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from datetime import UTC, datetime
from time import perf_counter
from typing import Any

import numpy as np

from tenfold.errors import TenfoldError
from tenfold.execute import Program
from tenfold.frozen import frozen
from tenfold.graph import Graph
from tenfold.graph.op import Composition
from tenfold.ops import TABLE
from tenfold.parity.agree import Uncertain, compare, disagreement, judged, raw, same_bits
from tenfold.parity.answers import Differs, Recorded, Replayed
from tenfold.parity.certificate import Certificate, LoopRecord, StepRecord
from tenfold.parity.part import misplaced, whole_graphs, written_out
from tenfold.parity.verdict import CALLBACKS, EXPANSION, GUARD, LOOP, Case, Disagreement
from tenfold.parity.walk import Cut, Walk
from tenfold.reference import Callbacks, evaluate
from tenfold.types import TensorType
from tenfold.version import versions

Array = np.ndarray[Any, Any]
LIMIT = 3.0  # seconds, unless told


@frozen(eq=False)
class Checked:
    """What a check gives: the reference's outputs (None where a limit cut it off), the verdict,
    and the callbacks that go on from where the reference was cut off. `made` are the outputs of
    the whole plan, where it was run."""

    outputs: list[Array] | None
    verdict: Certificate | Disagreement
    callbacks: Callbacks
    made: list[Array] | None = None

    @property
    def agrees(self) -> bool:
        return isinstance(self.verdict, Certificate)


def check(
    program: Program,
    graph: Graph,
    arrays: Sequence[Array],
    callbacks: Callbacks | None = None,
    limit: float | None = LIMIT,
    *,
    every: bool = False,
) -> Checked:
    """Check the program made of a graph on these arguments, in at most about `limit` seconds.

    `every`: all rounds of loops, not only the first, the last and some between."""
    start = perf_counter()
    recorded = Recorded.of(callbacks or Callbacks())
    deadline = None if limit is None else start + limit
    inputs_digest = digest_of(arrays)  # before the plan may write into donated ones
    fault = _structure(program, graph, arrays)
    if fault is not None:
        answer = evaluate(graph, arrays, recorded)
        return Checked(answer, fault, Replayed.of(recorded, ended=True))
    walk = Walk(program, arrays, deadline, every)
    outputs: list[Array] | None = None
    cut = ""
    whole = whole_graphs(program.plan)[id(program.plan)]
    try:
        if _composed(graph):
            outputs = evaluate(graph, arrays, recorded, walk.on_time)
            again = Replayed.of(recorded, ended=True)
            others = walk.run(whole, again)
            fault = walk.fault or _expansion(graph, arrays, outputs, others, walk)
        else:
            outputs = walk.run(whole, recorded)
            fault = walk.fault
    except Cut:
        cut = f"after {walk.checked} checks of steps, the limit of {limit:g} s was reached"
        cut += f" at {walk.where()}"
    replayed = Replayed.of(recorded, ended=outputs is not None)
    end_to_end: tuple[float, ...] = ()
    made: list[Array] | None = None
    if fault is None and outputs is not None:
        try:
            made = program(arrays, replayed)
            end_to_end = tuple(
                compare(np.asarray(a), np.asarray(b), None).ulp
                for a, b in zip(made, outputs, strict=True)
            )
        except Differs:
            pass
        except TenfoldError as error:
            text = f"it raised {type(error).__name__}: {error.message}"
            fault = Disagreement(GUARD, "the whole plan", "%", text, Case(graph, tuple(arrays)))
        if fault is None and replayed.left():
            fault = Disagreement(CALLBACKS, "the whole plan", "%", replayed.left(), None)
    if fault is not None:
        return Checked(outputs, fault, replayed)
    certificate = Certificate(
        graph=graph.digest,
        target=_target(program),
        inputs=tuple(repr(p.type) for p in graph.parameters),
        inputs_digest=inputs_digest,
        steps=tuple(
            StepRecord(*key, r.what, r.times, r.ulp, r.ties)
            for key, r in sorted(walk.records.items())
        ),
        loops=tuple(LoopRecord(n, *c) for n, c in walk.loops.items()),
        near_ties=tuple(walk.ties),
        checked=walk.checked,
        unreached=sum(len(p.steps) for p in program.plan.every) - len(walk.records),
        cut=cut,
        notes=tuple(walk.left_out),
        end_to_end=end_to_end,
        versions=_versions(),
        date=datetime.now(UTC).isoformat(timespec="seconds"),
        seconds=perf_counter() - start,
    )
    return Checked(outputs, certificate, replayed, made)


def _structure(program: Program, graph: Graph, arrays: Sequence[Array]) -> Disagreement | None:
    """Whether the plan is a plan of this graph, in its scopes too."""
    case = Case(graph, tuple(arrays))
    if program.plan.graph.digest != written_out(graph).digest:
        return Disagreement(EXPANSION, "the whole plan", "%", "it is of another graph", case)
    found = misplaced(program.plan)
    if found is None:
        return None
    node, number = found
    text = f"in place of scope {number} of {node.op} it has the plan of something else"
    return Disagreement(LOOP, f"the step of {node.op}", "%", text, case, (node,))


def _composed(graph: Graph) -> bool:
    """Whether the planner writes an op as others."""
    return any(
        isinstance(TABLE[node.op].lowering, Composition)
        for g in (graph, *graph.scopes())
        for node in g.nodes
    )


def _expansion(
    graph: Graph, arrays: Sequence[Array], outputs: list[Array], others: list[Array], walk: Walk
) -> Disagreement | None:
    """The graph with its compositions written out has to give what the graph itself gives, within
    the bounds of its ops; most compositions are exact."""
    if all(same_bits(a, b) for a, b in zip(others, outputs, strict=True)) or graph.effects:
        return None
    try:
        expected = judged(graph, arrays, walk.on_time)
    except Uncertain:
        return None  # a choice between branches hangs on the last bits
    for number, (got, one) in enumerate(zip(others, expected, strict=True)):
        found = disagreement(got, one)
        if found is not None:
            text = f"output {number} of the graph with compositions written out: {found}"
            case = Case(graph, tuple(arrays))
            return Disagreement(EXPANSION, "expanding compositions", "%", text, case)
    return None


def digest_of(arrays: Sequence[Array]) -> str:
    """The SHA-256 of arrays, types and bits."""
    made = hashlib.sha256()
    for array in arrays:
        kept = np.asarray(array)
        made.update(repr(TensorType(kept.dtype, kept.shape)).encode())
        made.update(raw(kept).data)
    return made.hexdigest()


def _versions() -> tuple[tuple[str, str], ...]:
    """What took part in a check."""
    return tuple((name, number) for name, number in versions().items() if name != "source")


def _target(program: Program) -> str:
    target = program.target
    return f"{target.triple} {target.cpu} {target.digest[:8]}"
