"""HTML: a run as one page that needs nothing else: figures, plots, and drawings of proofs."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from html import escape
from typing import Any

from tenfold.apps.prover.evaluation import Run
from tenfold.apps.prover.report.draw import STYLE, proofs
from tenfold.apps.prover.report.ranks import KINDS, LEVELS
from tenfold.apps.prover.report.summary import by_mode, by_relation, intervals_by_mode

_STYLE = """
body { font: 15px/1.5 system-ui, sans-serif; max-width: 60rem; margin: 2rem auto; padding: 0 1rem }
table { border-collapse: collapse } td, th { padding: .2rem .7rem; text-align: right }
td:first-child, th:first-child { text-align: left } tr:nth-child(even) { background: #f4f4f4 }
svg text { font: 12px system-ui, sans-serif } .bar { fill: #4878a8 } details { margin: .3rem 0 }
"""


def page(run: Run, spread: Mapping[str, Any] | None = None) -> str:
    """The page; `spread` is what the figures of several seeds come to."""
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
        "<h2>Ranks against chance</h2>",
        _ranks(modes),
        *_intervals(run),
        *_seeds(spread),
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


def _ranks(modes: Mapping[str, Mapping[str, Any]]) -> str:
    """Mean ranks by mode, realistic; the area under the curve where it was asked for."""
    names = ("mean rank", "by chance", "adjusted", "adjusted index", "AUC-PR")
    lines = ["".join(f"<th>{name}</th>" for name in ("mode", *names))]
    for mode, made in modes.items():
        values = [
            made["mean_rank"]["realistic"],
            made["mean_rank_by_chance"],
            made["adjusted_mean_rank"]["realistic"],
            made["adjusted_mean_rank_index"]["realistic"],
            made["auc_pr"],
        ]
        cells = [mode, *("-" if value is None else f"{value:.4f}" for value in values)]
        lines.append("".join(f"<td>{escape(cell)}</td>" for cell in cells))
    return "<table>" + "".join(f"<tr>{line}</tr>" for line in lines) + "</table>"


def _seeds(spread: Mapping[str, Any] | None) -> list[str]:
    """MRR and Hits over several seeds, realistic: means and standard deviations."""
    if spread is None:
        return []
    names = ("mode", "MRR", *(f"Hits@{level}" for level in LEVELS))
    lines = ["".join(f"<th>{name}</th>" for name in names)]
    for mode, made in spread.items():
        if mode == "seeds":
            continue
        parts = [made["mrr"], *(made["hits"][str(level)] for level in LEVELS)]
        cells = [mode]
        for part in parts:
            mean, deviation = (part["realistic"][name] for name in ("mean", "deviation"))
            cells.append("-" if mean is None else f"{mean:.4f} ± {deviation:.4f}")
        lines.append("".join(f"<td>{escape(cell)}</td>" for cell in cells))
    said = f"Means and deviations over {len(spread['seeds'])} seeds"
    return [f"<h2>{said}</h2><table>" + "".join(f"<tr>{line}</tr>" for line in lines) + "</table>"]


def _intervals(run: Run) -> list[str]:
    """The bootstrap intervals by mode, realistic, if they were asked for."""
    made = intervals_by_mode(run)
    if made is None:
        return []
    modes = (*run.settings.modes, "both")
    lines = ["".join(f"<th>{name}</th>" for name in ("mode", *made["both"]))]
    for mode in modes:
        ranges = [by_kind["realistic"] for by_kind in made[mode].values()]
        cells = [mode, *("-" if r is None else f"{r[0]:.4f} to {r[1]:.4f}" for r in ranges)]
        lines.append("".join(f"<td>{escape(cell)}</td>" for cell in cells))
    said = f"{100 * made['confidence']:g} % intervals, {made['resamples']:,} resamples"
    return [f"<h2>{said}</h2><table>" + "".join(f"<tr>{line}</tr>" for line in lines) + "</table>"]


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
