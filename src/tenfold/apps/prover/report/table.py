"""Table: a run as the terminal shows it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.table import Table

from tenfold.apps.prover.evaluation import Run
from tenfold.apps.prover.outcome import OVERFLOWS
from tenfold.apps.prover.report.ranks import KINDS, LEVELS
from tenfold.apps.prover.report.relations import relation_rows
from tenfold.apps.prover.report.summary import by_mode, intervals_by_mode

SHORT = ("opt", "real", "pess", "exp")  # the kinds of rank
SHOWN = 3  # notices of one kind


def show(run: Run, console: Console | None = None, relations: int | None = None) -> None:
    """Print the notices, the figures of each relation and of all, and what the run took."""
    console = console or Console()
    _notices(run, console)
    title = f"{run.data.name}: {_title(run)}"
    table = Table(title=title, title_justify="left", box=SIMPLE_HEAD, padding=0, pad_edge=False)
    # a long name goes on below itself, so that no figure is cut off
    table.add_column("relation", overflow="fold", min_width=8)
    table.add_column("mode", no_wrap=True)
    hits = (f"H@{level}" for level in LEVELS)
    for name in ("asked", "proved", "cand.", *SHORT, *hits):
        table.add_column(name, justify="right", no_wrap=True)
    for relation, mode, made in relation_rows(run, relations):
        table.add_row(relation, mode, *_cells(made))
    table.add_section()
    for mode, made in by_mode(run).items():
        table.add_row("all", mode, *_cells(made), style="bold")
    console.print(table)
    console.print("MRR by kind of rank; hits by the realistic one.", highlight=False)
    used = run.usage.lines() if run.usage else ()
    for line in (*limits(run), *used, *_ranks(run), *_intervals(run)):
        console.print(line, highlight=False)
    console.print(_outcomes(run), highlight=False)
    spent = ", ".join(f"{stage} {seconds:.2f}" for stage, seconds in run.seconds.items())
    console.print(f"Seconds: {spent}.", highlight=False)


def _title(run: Run) -> str:
    settings = run.settings
    if settings.score == "embedding":
        return f"score by the embedding {settings.embedding}"
    score = f"score {settings.score}" + (f" ({settings.aggregate})" if settings.aggregate else "")
    score += f", ties broken by {settings.embedding}" if settings.embedding else ""
    if run.closed is None:
        kind = f"{settings.search} rollout" + (
            "" if settings.search == "exhaustive" else f", {settings.policy} policy"
        )
        return f"{kind}, {score}"
    if run.closed.stopped:
        return f"{len(run.closed.keys):,} facts proved up to height {run.closed.height}, stopped"
    more = ", all there are" if run.closed.complete else ""
    count = f"{len(run.closed.keys):,} facts proved up to height {settings.height}{more}"
    return count if score == "score height" else f"{count}, {score}"


def _ranks(run: Run) -> Iterator[str]:
    """Mean ranks, adjusted ones, and the area under the curve if it was asked for."""
    modes = by_mode(run)
    for name, figure in (
        ("Mean rank", "mean_rank"),
        ("Adjusted mean rank", "adjusted_mean_rank"),
        ("Adjusted mean rank index", "adjusted_mean_rank_index"),
    ):
        said = ", ".join(
            f"{mode}: {_number(made[figure]['realistic'])}" for mode, made in modes.items()
        )
        yield f"{name}, realistic; {said}."
    if run.settings.auc_pr:
        said = ", ".join(f"{mode}: {_number(made['auc_pr'])}" for mode, made in modes.items())
        yield f"AUC-PR; {said}."


def _intervals(run: Run) -> Iterator[str]:
    """The bootstrap intervals of the realistic figures, if they were asked for."""
    made = intervals_by_mode(run)
    if made is None:
        return
    yield (
        f"{100 * made['confidence_level']:g} % intervals of the realistic figures, "
        f"{made['resamples']:,} resamples of the test's facts:"
    )
    figures = {"MRR": "mrr", **{f"H@{level}": f"hits@{level}" for level in LEVELS}}
    for mode in (*run.settings.modes, "both"):
        said = ", ".join(
            f"{name} {_range(made[mode][figure]['realistic'])}" for name, figure in figures.items()
        )
        yield f"  {mode}: {said}."


def _range(interval: tuple[float, float] | None) -> str:
    return "-" if interval is None else f"{_share(interval[0])} to {_share(interval[1])}"


def _number(value: float | None) -> str:
    return "-" if value is None else f"{value:.4g}"


def show_seeds(made: dict[str, Any], console: Console | None = None) -> None:
    """Print the means and deviations over seeds."""
    console = console or Console()
    seeds = ", ".join(map(str, made["seeds"]))
    console.print(
        f"Over the seeds {seeds}: mean ± standard deviation (realistic).", highlight=False
    )
    for mode, figures in made.items():
        if mode == "seeds":
            continue
        parts = [("MRR", figures["mrr"]["realistic"])]
        parts += [(f"H@{level}", figures["hits"][str(level)]["realistic"]) for level in LEVELS]
        parts.append(("mean rank", figures["mean_rank"]["realistic"]))
        if figures["auc_pr"]["mean"] is not None:
            parts.append(("AUC-PR", figures["auc_pr"]))
        said = ", ".join(
            f"{name} {_number(one['mean'])} ± {_number(one['deviation'])}" for name, one in parts
        )
        console.print(f"  {mode}: {said}", highlight=False)


def limits(run: Run) -> list[str]:
    """What to say of a run that met a limit: which, how far it came, and what that leaves."""
    stopped = _stopped(run)
    if stopped is None:
        return []
    made = by_mode(run)["both"]["bounds"]
    parts = {"MRR": made["mrr"]["realistic"]}
    parts |= {f"H@{level}": made["hits"][str(level)]["realistic"] for level in LEVELS}
    said = ", ".join(f"{k} {_share(v[0])} to {_share(v[1])}" for k, v in parts.items() if v)
    more = f"What more would be proved is not known: {said}." if said else "No query was asked."
    return [stopped, more]


def _stopped(run: Run) -> str | None:
    if run.closed is not None and run.closed.stopped is not None:
        return (
            f"Stopped by --{run.closed.stopped}: {len(run.closed.keys):,} facts, every one up to "
            f"height {run.closed.height} of {run.settings.height}."
        )
    lost = sum(run.outcomes[outcome] for outcome in OVERFLOWS)
    if not lost:
        return None
    by_memory = run.usage.lost if run.usage else 0
    why = f", {by_memory:,} of them since --memory holds no more" if by_memory else ""
    searched = sum(run.outcomes.values())
    return f"{lost:,} of {searched:,} searches had no room to end{why}."


def _cells(made: dict[str, Any]) -> list[str]:
    shares = [made["mrr"][kind] for kind in KINDS]
    shares += [made["hits"][str(level)]["realistic"] for level in LEVELS]
    counts = [_short(made[name]) for name in ("queries", "proved", "candidates")]
    return [*counts, *map(_share, shares)]


def _share(share: float | None) -> str:
    """A share in five places; 1 is said of 1 alone.

    >>> _share(0.25), _share(0.99996), _share(1.0), _share(None)
    ('.250', '>.999', '1.000', '-')
    """
    if share is None:
        return "-"
    text = f"{share:.3f}".lstrip("0")
    return ">.999" if text == "1.000" and share < 1 else text


def _short(count: int) -> str:
    """A count in five places: the file has all of them."""
    for unit, size in (("G", 10**9), ("M", 10**6), ("k", 10**3)):
        if count >= 10 * size:
            return f"{count / size:.1f}{unit}" if count < 1000 * size else f"{count // size}{unit}"
    return str(count)


def _outcomes(run: Run) -> str:
    made = by_mode(run)["both"]
    said = ", ".join(f"{name} {count:,}" for name, count in made["outcomes"].items() if count)
    lost = sum(made["overflows"].values())
    bounds = f" {lost:,} overflowed: optimistic and pessimistic ranks are bounds." if lost else ""
    near = f" {made['near_ties']:,} choices were near-ties." if made["near_ties"] else ""
    checked = f" {run.checked:,} proofs replayed." if run.settings.check else ""
    return f"Outcomes: {said or 'none'}.{bounds}{near}{checked}"


def _notices(run: Run, console: Console) -> None:
    seen: dict[str, int] = {}
    for notice in run.data.notices:
        seen[notice.kind] = seen.get(notice.kind, 0) + 1
        if seen[notice.kind] <= SHOWN:
            console.print(f"Notice: {notice}", markup=False, highlight=False)
    for kind, count in seen.items():
        if count > SHOWN:
            console.print(f"Notice: {count - SHOWN} more of the kind {kind}", highlight=False)
