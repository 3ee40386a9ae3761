"""Relations: the figures of each relation, all of them or those with the most queries."""

from __future__ import annotations

from typing import Any

from tenfold.apps.prover.evaluation import Run
from tenfold.apps.prover.report.summary import by_relation, figures


def relation_rows(run: Run, count: int | None = None) -> list[tuple[str, str, dict[str, Any]]]:
    """A name, a mode and the figures, for each relation and mode, by name.

    With a count, only so many relations with the most queries; one more row a mode has what the
    others come to together.
    """
    made = by_relation(run)
    kept = list(made)
    if count is not None and len(made) > count:
        queries = {name: sum(one["queries"] for one in made[name].values()) for name in made}
        kept = sorted(sorted(made, key=lambda name: (-queries[name], name))[:count])
    rows = [(name, mode, one) for name in kept for mode, one in made[name].items()]
    if len(kept) < len(made):
        named = set(kept)
        others = f"{len(made) - len(kept)} others"
        rest = [r for r in run.results if run.program.predicates[r.query.fact[0]] not in named]
        rows += [
            (others, mode, figures(r for r in rest if r.query.mode == mode))
            for mode in run.settings.modes
        ]
    return rows
