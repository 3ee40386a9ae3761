"""Summary: a run in figures, by mode and by relation, as plain data."""

from __future__ import annotations

import math
import platform
from collections import Counter
from collections.abc import Iterable
from dataclasses import asdict
from typing import Any

import numpy as np

import tenfold
from tenfold.apps.prover.closure.fixpoint import Closure
from tenfold.apps.prover.evaluation import Result, Run
from tenfold.apps.prover.outcome import Outcome
from tenfold.apps.prover.report.auc import auc_pr
from tenfold.apps.prover.report.bootstrap import intervals
from tenfold.apps.prover.report.bounds import bounded_metrics
from tenfold.apps.prover.report.ranks import summarise

OVERFLOWS = {
    "states": Outcome.OVERFLOW_STATES,
    "atoms": Outcome.OVERFLOW_ATOMS,
    "vars": Outcome.OVERFLOW_VARS,
    "steps": Outcome.OVERFLOW_STEPS,
}


def figures(results: Iterable[Result], bounded: str | None = None) -> dict[str, Any]:
    """What some results come to; with bounds by this score."""
    results = list(results)
    made = asdict(summarise(r.found.rank for r in results))
    outcomes: Counter[Outcome] = Counter()
    for result in results:
        outcomes.update(result.found.outcomes)
    more = (
        {} if bounded is None else {"bounds": bounded_metrics((r.found for r in results), bounded)}
    )
    return {
        **more,
        "queries": made["queries"],
        "candidates": made["candidates"],
        "proved": sum(r.found.height is not None for r in results),
        "mrr": _plain(made["mrr"]),
        "hits": {str(level): _plain(by_kind) for level, by_kind in made["hits"].items()},
        "mean_rank": _plain(made["mean_rank"]),
        "mean_rank_by_chance": None if math.isnan(made["chance"]) else made["chance"],
        "adjusted_mean_rank": _plain(made["adjusted_mean_rank"]),
        "adjusted_mean_rank_index": _plain(made["adjusted_mean_rank_index"]),
        "auc_pr": auc_pr(r.found.tally for r in results),
        "outcomes": {o.name: outcomes[o] for o in Outcome},
        "overflows": {name: outcomes[o] for name, o in OVERFLOWS.items()},
        "near_ties": sum(r.found.near for r in results),
    }


def _plain(means: dict[str, float | None]) -> dict[str, float | None]:
    """Means as JSON can say them: that of nothing is null."""
    return {k: None if mean is None or math.isnan(mean) else mean for k, mean in means.items()}


def by_mode(run: Run) -> dict[str, dict[str, Any]]:
    """The figures of each mode, and of all modes together: means over rankings, none mixed."""
    score = bounded(run)
    made = {
        mode: figures((r for r in run.results if r.query.mode == mode), score)
        for mode in run.settings.modes
    }
    return {**made, "both": figures(run.results, score)}


def bounded(run: Run) -> str | None:
    """The score whose figures are bounds: a limit stopped the closure before its height, or
    searches of a rollout ended without an answer."""
    stopped = run.closed is not None and run.closed.stopped
    lost = any(run.outcomes[outcome] for outcome in OVERFLOWS.values())
    return run.settings.score if stopped or lost else None


def by_relation(run: Run) -> dict[str, dict[str, dict[str, Any]]]:
    """The figures of each relation, in each mode."""
    parts: dict[tuple[str, str], list[Result]] = {}
    for result in run.results:
        relation = run.program.predicates[result.query.fact[0]]
        parts.setdefault((relation, result.query.mode), []).append(result)
    made: dict[str, dict[str, dict[str, Any]]] = {}
    score = bounded(run)
    for (relation, mode), results in sorted(parts.items()):
        made.setdefault(relation, {})[mode] = figures(results, score)
    return made


def intervals_by_mode(run: Run) -> dict[str, Any] | None:
    """The bootstrap intervals of each mode, and of all together; None where none are asked for."""
    settings = run.settings
    if not settings.bootstrap:
        return None
    parts = {mode: [r for r in run.results if r.query.mode == mode] for mode in settings.modes}
    parts["both"] = list(run.results)
    return {
        "resamples": settings.bootstrap,
        "confidence_level": settings.confidence_level,
        **{
            mode: intervals(
                [(r.query.fact, r.found.rank) for r in part],
                settings.bootstrap,
                settings.seed,
                settings.confidence_level,
            )
            for mode, part in parts.items()
        },
    }


def _closure(closed: Closure) -> dict[str, Any]:
    heights = Counter(closed.heights.tolist())
    return {
        "facts": len(closed.keys),
        "complete": closed.complete,
        "growths": closed.growths,
        "stopped": closed.stopped,
        "height": closed.height,
        "heights": {str(h): heights[h] for h in sorted(heights)},
    }


def report(run: Run) -> dict[str, Any]:
    """Everything about a run that is worth keeping."""
    return {
        **by_mode(run),
        "relations": by_relation(run),
        "intervals": intervals_by_mode(run),
        "closure": _closure(run.closed) if run.closed else None,
        "rollout": run.usage.as_dict() if run.usage else None,
        "checked": run.checked,
        "notices": [str(notice) for notice in run.data.notices],
        "settings": run.settings.as_dict(),
        "seconds": run.seconds,
        "provenance": run.provenance.as_dict(),
        "versions": {
            "tenfold": tenfold.__version__,
            "numpy": np.__version__,
            "python": platform.python_version(),
        },
    }
