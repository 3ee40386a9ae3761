"""Metrics beside MRR: ranks against chance, intervals, and figures over several seeds."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tenfold.apps.prover.evaluation import Run
from tenfold.apps.prover.report.page.tables import Column, table
from tenfold.apps.prover.report.ranks import LEVELS
from tenfold.apps.prover.report.summary import intervals_by_mode

_MODE = Column("mode", text=True)


def rank_table(modes: Mapping[str, Mapping[str, Any]]) -> str:
    """Mean ranks by mode, realistic; the area under the curve where it was asked for."""
    columns = [_MODE, Column("mean rank"), Column("by chance", wide=True)]
    columns += [
        Column("adjusted", wide=True),
        Column("adjusted index"),
        Column("AUC-PR", wide=True),
    ]
    rows = [
        (
            mode,
            made["mean_rank"]["realistic"],
            made["mean_rank_by_chance"],
            made["adjusted_mean_rank"]["realistic"],
            made["adjusted_mean_rank_index"]["realistic"],
            made["auc_pr"],
        )
        for mode, made in modes.items()
    ]
    return table(columns, rows)


def interval_parts(run: Run) -> list[str]:
    """The bootstrap intervals by mode, realistic, if they were asked for."""
    made = intervals_by_mode(run)
    if made is None:
        return []
    rows = []
    for mode in (*run.settings.modes, "both"):
        ranges = [by_kind["realistic"] for by_kind in made[mode].values()]
        rows.append((mode, *("–" if r is None else f"{r[0]:.4f} to {r[1]:.4f}" for r in ranges)))
    said = f"{100 * made['confidence_level']:g} % intervals, {made['resamples']:,} resamples"
    columns = [_MODE, *(Column(_head(name), wide=i > 0) for i, name in enumerate(made["both"]))]
    return [f"<h2>{said}</h2>", table(columns, rows)]


def _head(name: str) -> str:
    """The head of a figure's column, as other tables of the page have it.

    >>> _head("mrr"), _head("hits@10"), _head("adjusted_mean_rank_index")
    ('MRR', 'Hits@10', 'adjusted index')
    """
    if name == "mrr":
        return "MRR"
    if name.startswith("adjusted_"):
        return name.replace("_mean_rank", "").replace("_", " ")
    return name.replace("hits", "Hits").replace("_", " ")


def seed_parts(spread: Mapping[str, Any] | None) -> list[str]:
    """MRR and Hits over several seeds, realistic: means and standard deviations."""
    if spread is None:
        return []
    rows = []
    for mode, made in spread.items():
        if mode == "seeds":
            continue
        figures = [made["mrr"], *(made["hits"][str(level)] for level in LEVELS)]
        rows.append((mode, *(_mean(figure["realistic"]) for figure in figures)))
    columns = [_MODE, Column("MRR"), *(Column(f"Hits@{n}", wide=True) for n in LEVELS)]
    said = f"Means and deviations over {len(spread['seeds'])} seeds"
    return [f"<h2>{said}</h2>", table(columns, rows)]


def _mean(figure: Mapping[str, float | None]) -> str:
    if figure["mean"] is None:
        return "–"
    return f"{figure['mean']:.4f} ± {figure['deviation']:.4f}"
