"""HTML: a run as one page that needs nothing else: figures, plots, and drawings of proofs."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from html import escape
from typing import Any

from tenfold.apps.prover.evaluation import Run
from tenfold.apps.prover.proof import Explainer, Proof
from tenfold.apps.prover.ranks import KINDS, LEVELS
from tenfold.apps.prover.summary import by_mode, by_relation

DRAWN = 200  # queries whose proofs are drawn
_STYLE = """
body { font: 15px/1.5 system-ui, sans-serif; max-width: 60rem; margin: 2rem auto; padding: 0 1rem }
table { border-collapse: collapse } td, th { padding: .2rem .7rem; text-align: right }
td:first-child, th:first-child { text-align: left } tr:nth-child(even) { background: #f4f4f4 }
svg text { font: 12px system-ui, sans-serif } .bar { fill: #4878a8 } .edge { stroke: #888 }
.given { fill: #e4f1e4 } .derived { fill: #e8eef6 } details { margin: .3rem 0 }
"""


def page(run: Run) -> str:
    """The page."""
    modes = by_mode(run)
    ranks = Counter(_bin(int(r.found.rank.realistic)) for r in run.results)
    heights = Counter(
        "none" if r.found.height is None else str(r.found.height) for r in run.results
    )
    outcomes = {o.name: n for o, n in sorted(run.outcomes.items())}
    parts = [
        f"<h1>{escape(run.data.name)}</h1>",
        _settings(run),
        "<h2>All relations</h2>",
        _table(("mode",), {(mode,): made for mode, made in modes.items()}),
        "<h2>Each relation</h2>",
        _table(
            ("relation", "mode"),
            {(r, m): made for r, by in by_relation(run).items() for m, made in by.items()},
        ),
        "<h2>Ranks of the queries</h2>",
        _bars({name: ranks[name] for name in _BINS if ranks[name]}),
        "<h2>Heights of the queries' proofs</h2>",
        _bars(
            dict(sorted(heights.items(), key=lambda item: (item[0] == "none", len(item[0]), item)))
        ),
        "<h2>How the searches ended</h2>",
        _bars(outcomes),
        *_proofs(run),
    ]
    title = f"tenfold prove: {escape(run.data.name)}"
    return (
        f"<!doctype html><html lang=en><meta charset=utf-8><title>{title}</title>"
        f"<style>{_STYLE}</style>{''.join(parts)}</html>\n"
    )


_BINS = ("1", "2", "3", "4-10", "11-30", "31-100", "101-1000", "more")


def _bin(rank: int) -> str:
    for name in _BINS[:-1]:
        low, _, high = name.partition("-")
        if int(low) <= rank <= int(high or low):
            return name
    return _BINS[-1]


def _settings(run: Run) -> str:
    shown = {k: v for k, v in run.settings.as_dict().items() if v not in (None, (), False)}
    text = ", ".join(f"{name} {value}" for name, value in shown.items())
    spent = ", ".join(f"{stage} {seconds:.2f}" for stage, seconds in run.seconds.items())
    return f"<p>{escape(text)}.</p><p>Seconds: {escape(spent)}.</p>"


def _table(heads: tuple[str, ...], rows: Mapping[tuple[str, ...], Mapping[str, Any]]) -> str:
    names = (*heads, "queries", "proved", "candidates", *(f"MRR {k}" for k in KINDS))
    names = (*names, *(f"Hits@{level}" for level in LEVELS))
    lines = ["".join(f"<th>{name}</th>" for name in names)]
    for key, made in rows.items():
        counts = [f"{made[name]:,}" for name in ("queries", "proved", "candidates")]
        shares = [made["mrr"][kind] for kind in KINDS]
        shares += [made["hits"][str(level)]["realistic"] for level in LEVELS]
        cells = [*key, *counts, *("-" if s is None else f"{s:.4f}" for s in shares)]
        lines.append("".join(f"<td>{escape(cell)}</td>" for cell in cells))
    return "<table>" + "".join(f"<tr>{line}</tr>" for line in lines) + "</table>"


def _bars(counts: Mapping[str, int]) -> str:
    """A bar for each count."""
    most = max(counts.values(), default=1)
    lines = []
    for i, (name, count) in enumerate(counts.items()):
        y = 24 * i
        width = max(1, 480 * count // most)
        lines.append(
            f'<text x="130" y="{y + 16}" text-anchor="end">{escape(name)}</text>'
            f'<rect class="bar" x="138" y="{y + 3}" width="{width}" height="17"/>'
            f'<text x="{width + 144}" y="{y + 16}">{count:,}</text>'
        )
    return f'<svg width="720" height="{24 * len(counts) + 8}">{"".join(lines)}</svg>'


def _proofs(run: Run) -> Iterable[str]:
    """A drawing of the lowest proof of each query that a closure proves, up to a number."""
    if run.closed is None:
        return
    heights = run.closed.by_triple()
    explainer = Explainer(run.program, heights)
    yield "<h2>Proofs</h2>"
    facts = list(dict.fromkeys(r.query.fact for r in run.results if r.found.height is not None))
    if len(facts) > DRAWN:
        yield f"<p>The first {DRAWN} of {len(facts):,} proved queries.</p>"
    for fact in facts[:DRAWN]:
        name = escape(str(run.program.name(fact)))
        drawing = draw(run, explainer.explain(fact))
        yield f"<details><summary>{name}, height {heights[fact]}</summary>{drawing}</details>"


def draw(run: Run, proof: Proof) -> str:
    """A proof as a tree: what is proved at the top, what is given below it."""
    places, edges = _layout(proof)
    facts = list(proof.reasons)
    lines = []
    wide, high = 190, 64
    for above, below in edges:
        (x, y), (u, v) = places[above], places[below]
        lines.append(
            f'<line class="edge" x1="{x * wide + 90}" y1="{y * high + 34}" '
            f'x2="{u * wide + 90}" y2="{v * high + 8}"/>'
        )
    for number, (x, y) in places.items():
        fact = facts[number]
        kind = "given" if proof.reasons[fact] is None else "derived"
        lines.append(
            f'<rect class="{kind}" x="{x * wide}" y="{y * high + 8}" '
            'width="180" height="26" rx="5"/>'
            f'<text x="{x * wide + 90}" y="{y * high + 26}" text-anchor="middle">'
            f"{escape(str(run.program.name(fact)))}</text>"
        )
    width = (max(x for x, _ in places.values()) + 1) * wide
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
