"""HTML: a run as one page that needs nothing else: figures, plots, and drawings of proofs."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from html import escape
from typing import Any

from tenfold.apps.prover.evaluation import Run
from tenfold.apps.prover.report.draw import STYLE, proofs
from tenfold.apps.prover.report.ranks import KINDS, LEVELS
from tenfold.apps.prover.report.summary import by_mode, by_relation
from tenfold.apps.prover.report.table import limits

_STYLE = """
body { font: 15px/1.5 system-ui, sans-serif; max-width: 60rem; margin: 2rem auto; padding: 0 1rem }
table { border-collapse: collapse } td, th { padding: .2rem .7rem; text-align: right }
td:first-child, th:first-child { text-align: left } tr:nth-child(even) { background: #f4f4f4 }
svg text { font: 12px system-ui, sans-serif } .bar { fill: #4878a8 } details { margin: .3rem 0 }
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
        *(f"<p>{escape(line)}</p>" for line in limits(run)),
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
        *proofs(run),
    ]
    title = f"tenfold prove: {escape(run.data.name)}"
    return (
        f"<!doctype html><html lang=en><meta charset=utf-8><title>{title}</title>"
        f"<style>{_STYLE}{STYLE}</style>{''.join(parts)}</html>\n"
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
