"""The command `tenfold prove`."""

from __future__ import annotations

from contextlib import nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

if TYPE_CHECKING:  # read when a run begins, so that --help need not wait
    from tenfold.apps.prover.evaluation import Run
    from tenfold.apps.prover.settings import Settings

# Help is plain text: drawing it in boxes loads more than the rest of the command needs to start.
app = typer.Typer(add_completion=False, rich_markup_mode=None)


@app.command()
def prove(
    data: Annotated[
        str,
        typer.Argument(help="A folder with train, valid, test and rules; family:…; pykeen:NAME."),
    ] = "family:",
    rules: Annotated[Path | None, typer.Option(help="Rules instead of those of the data.")] = None,
    constant: Annotated[
        list[str] | None, typer.Option(help="An argument of arrow rules that is a constant.")
    ] = None,
    mode: Annotated[str, typer.Option(help="head, tail or both.")] = "both",
    engine: Annotated[str, typer.Option(help="closure or rollout.")] = "closure",
    policy: Annotated[str, typer.Option(help="uniform or learned.")] = "uniform",
    weights: Annotated[
        Path | None, typer.Option(help="A learned policy's safetensors; drawn by seed without.")
    ] = None,
    search: Annotated[str, typer.Option(help="greedy, sampled, beam or exhaustive.")] = "greedy",
    beam: Annotated[int, typer.Option(help="States of a beam.")] = 4,
    steps: Annotated[int, typer.Option(help="Steps of a rollout.")] = 20,
    score: Annotated[str, typer.Option(help="height, logprob or binary.")] = "height",
    height: Annotated[int, typer.Option(help="The highest proof looked for.")] = 10,
    overflow: Annotated[str, typer.Option(help="grow, mark or error.")] = "grow",
    alone: Annotated[bool, typer.Option(help="No query may use itself as a fact.")] = False,
    backend: Annotated[str, typer.Option(help="compiled, evaluator or python.")] = "compiled",
    batch: Annotated[int, typer.Option(help="Queries at a time.")] = 256,
    limit: Annotated[int | None, typer.Option(help="Only the first queries.")] = None,
    sample: Annotated[
        int | None, typer.Option(help="So many candidates a query, drawn once, not all.")
    ] = None,
    seed: Annotated[int, typer.Option(help="What is drawn is drawn from this.")] = 0,
    check_proofs: Annotated[bool, typer.Option(help="Replay every proof.")] = False,
    resume: Annotated[
        Path | None, typer.Option(help="Keep what is done here, and go on from it.")
    ] = None,
    compare: Annotated[
        bool, typer.Option(help="Compiled and evaluator, step by step: the first difference.")
    ] = False,
    performance: Annotated[
        bool, typer.Option(help="Reference, evaluator and compiled side by side.")
    ] = False,
    seed_test: Annotated[
        int, typer.Option(help="So many seeds: compiled and reference are equal in all.")
    ] = 0,
    explain_compile: Annotated[
        bool, typer.Option(help="Kernels, host steps and compile time of each function.")
    ] = False,
    smoke: Annotated[bool, typer.Option(help="Check in a minute that all of it works.")] = False,
    html: Annotated[Path | None, typer.Option(help="Write a page with plots and proofs.")] = None,
    json: Annotated[Path | None, typer.Option(help="Write all figures to this file.")] = None,
) -> None:
    """Look for a proof of each query and its corruptions, and rank it among them."""
    from rich.console import Console

    from tenfold import TenfoldError
    from tenfold.apps.prover.compiled import Explaining
    from tenfold.apps.prover.settings import Settings

    console = Console(stderr=True)
    try:
        settings = Settings(
            data,
            rules=str(rules) if rules else None,
            constants=tuple(constant or ()),
            modes=("head", "tail") if mode == "both" else (mode,),
            engine=engine,
            policy=policy,
            weights=str(weights) if weights else None,
            search=search,
            beam=beam,
            steps=steps,
            score=score,
            height=height,
            overflow=overflow,
            alone=alone,
            backend=backend,
            batch=batch,
            limit=limit,
            sample=sample,
            seed=seed,
            check=check_proofs,
        )
        if compare or performance or seed_test or smoke:
            good = _diagnose(settings, compare, performance, seed_test, smoke)
            raise typer.Exit(0 if good else 1)
        with Explaining() if explain_compile else nullcontext() as compiled:
            run = _evaluate(settings, console, resume)
    except TenfoldError as error:
        console.print(str(error), style="red", markup=False, highlight=False)
        raise typer.Exit(2) from None
    _show(run)
    if compiled is not None:
        print(compiled)
    if json is not None:
        _write(json, run)
    if html is not None:
        from tenfold.apps.prover.html import page

        html.write_text(page(run), encoding="utf-8")


def _evaluate(settings: Settings, console: Any, journal: Path | None) -> Run:
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn

    from tenfold.apps.prover.evaluation import evaluate

    columns = (TextColumn("queries"), BarColumn(), MofNCompleteColumn())
    with Progress(*columns, console=console, transient=True) as progress:
        bar = progress.add_task("rank", total=None)
        return evaluate(
            settings,
            lambda done, total: progress.update(bar, completed=done, total=total),
            journal,
        )


def _diagnose(
    settings: Settings, compare: bool, performance: bool, seeds: int, smoke: bool
) -> bool:
    """Print what was found; whether all of it agrees."""
    from tenfold.apps.prover import diagnose

    good = True
    if smoke:
        for name, same in diagnose.smoke():
            print(f"{'good ' if same else 'WRONG'}  {name}")
            good &= same
    if compare:
        steps, difference = diagnose.compare(settings)
        print(f"alike in {steps} steps" if difference is None else str(difference))
        good &= difference is None
    for seed, same in diagnose.seed_test(settings, seeds):
        print(f"{'equal' if same else 'DIFFER'}  seed {seed}")
        good &= same
    if performance:
        for one in diagnose.performance(settings):
            spent = "  ".join(f"{stage} {value:8.3f} s" for stage, value in one.seconds.items())
            print(f"{one.backend:16} {spent}  {'equal' if one.same else 'DIFFERS'}")
            good &= one.same
    return good


def _show(run: Run) -> None:
    from tenfold.apps.prover.table import show

    show(run)


def _write(path: Path, run: Run) -> None:
    from json import dumps

    from tenfold.apps.prover.summary import report

    path.write_text(dumps(report(run), indent=1, allow_nan=False) + "\n", encoding="utf-8")
