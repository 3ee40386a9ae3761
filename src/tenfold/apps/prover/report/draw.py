"""Draw: proofs on a page, each as a tree of facts or as the states of a rollout."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from html import escape

from tenfold.apps.prover.evaluation import Run
from tenfold.apps.prover.input.program import Program
from tenfold.apps.prover.proofs.index import FactIndex
from tenfold.apps.prover.proofs.proof import Explainer, Proof
from tenfold.apps.prover.proofs.trajectory import Retracer
from tenfold.apps.prover.reference.top_down import State
from tenfold.apps.prover.rollout.engine import lanes_of, searching_of

STYLE = """
.edge { stroke: #888 } .given { fill: #e4f1e4 } .derived { fill: #e8eef6 }
.state { background: #e8eef6; border-radius: 5px; padding: .1rem .6rem; display: table }
.by { color: #666; padding-left: 1.2rem } .by::before { content: "↓ " }
"""
# What is typed hides the queries that do not hold it.
_SEARCH = """<p><input id=ask placeholder="part of a query" size=40></p><script>
ask.oninput = () => { for (const one of document.querySelectorAll("details"))
  one.hidden = !one.firstChild.textContent.includes(ask.value) }
</script>"""


def proofs(run: Run) -> Iterator[str]:
    """A drawing of the proof of each query that has one, to be opened by its name."""
    proved = [r.query for r in run.results if r.found.height is not None]
    yield f"<h2>Proofs</h2><p>{len(proved):,} of {len(run.results):,} queries have one.</p>"
    yield _SEARCH
    if run.closed is not None:
        heights = run.closed.by_triple()
        explainer = Explainer(run.program, FactIndex.of_closure(run.closed))
        for fact in dict.fromkeys(query.fact for query in proved):
            name = f"{run.program.name(fact)}, height {heights[fact]}"
            yield _folded(name, draw_tree(run.program, explainer.explain(fact)))
        return
    if (run.settings.search, run.settings.backend) == ("exhaustive", "python"):
        yield "<p>The plain reference keeps no traces: say another backend to see proofs.</p>"
        return
    # runs are repeatable, so a query's way is found again rather than kept for all candidates
    lanes = [lanes_of(query, run.settings)[0] for query in proved]
    retracer = Retracer(run.program)
    ends = searching_of(run.settings, run.program)(lanes) if lanes else []
    for query, lane, end in zip(proved, lanes, ends, strict=True):
        exhaustive = run.settings.search == "exhaustive"
        height = (end.height or 0) if exhaustive else run.settings.height
        steps = retracer.steps(lane.triple, height, end.choices, lane.without)
        drawn = [
            f'<div class="state">{escape(_goals(run.program, step.state))}</div>'
            f'<div class="by">{escape(_source(run.program, step.fact, step.clause))}</div>'
            for step in steps
        ]
        name = f"{run.program.name(query.fact)}, {query.mode}, {len(end.choices)} steps"
        yield _folded(name, "".join(drawn) + '<div class="state">no goals left: proved</div>')


def _folded(name: str, drawing: str) -> str:
    return f"<details><summary>{escape(name)}</summary>{drawing}</details>"


def _goals(program: Program, state: State) -> str:
    return ", ".join(program.written(goal[:3]) for goal in state)


def _source(program: Program, fact: tuple[int, int, int] | None, clause: int | None) -> str:
    if fact is not None:
        return f"by the fact {program.name(fact)}"
    assert clause is not None
    head, body = program.clauses[clause]
    return f"by the rule {program.written(head)} :- {', '.join(map(program.written, body))}."


def draw_tree(program: Program, proof: Proof) -> str:
    """A proof as a tree: what is proved at the top, what is given below it."""
    places, edges = _layout(proof)
    facts = list(proof.reasons)
    names = [str(program.name(fact)) for fact in facts]
    box, gap, high = 20 + 7 * max(map(len, names)), 10, 64  # a letter is some 7 wide
    step, middle = box + gap, box // 2
    lines = []
    for above, below in edges:
        (x, y), (u, v) = places[above], places[below]
        lines.append(
            f'<line class="edge" x1="{x * step + middle}" y1="{y * high + 34}" '
            f'x2="{u * step + middle}" y2="{v * high + 8}"/>'
        )
    for number, (x, y) in places.items():
        kind = "given" if proof.reasons[facts[number]] is None else "derived"
        lines.append(
            f'<rect class="{kind}" x="{x * step}" y="{y * high + 8}" '
            f'width="{box}" height="26" rx="5"/>'
            f'<text x="{x * step + middle}" y="{y * high + 26}" text-anchor="middle">'
            f"{escape(names[number])}</text>"
        )
    width = (max(x for x, _ in places.values()) + 1) * step
    height = (max(y for _, y in places.values()) + 1) * high
    return f'<svg width="{width}" height="{height}">{"".join(lines)}</svg>'


def _layout(proof: Proof) -> tuple[dict[int, tuple[int, int]], list[tuple[int, int]]]:
    """Where each fact stands, and which rests on which. A fact that is used twice stands once."""
    number = {fact: i for i, fact in enumerate(proof.reasons)}
    level = {proof.fact: 0}
    queue = [proof.fact]
    edges = []
    for fact in queue:
        reason = proof.reasons[fact]
        for below in reason.body if reason else ():
            edges.append((number[fact], number[below]))
            if below not in level:
                level[below] = level[fact] + 1
                queue.append(below)
    taken: Counter[int] = Counter()
    places = {}
    for fact in queue:
        places[number[fact]] = (taken[level[fact]], level[fact])
        taken[level[fact]] += 1
    return places, edges
