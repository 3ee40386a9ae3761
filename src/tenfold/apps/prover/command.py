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
    batch: Annotated[int | None, typer.Option(help="Queries or candidates at a time.")] = None,
    limit: Annotated[int | None, typer.Option(help="Only the first queries.")] = None,
    sample: Annotated[
        int | None, typer.Option(help="So many candidates a query, drawn once, not all.")
    ] = None,
    seed: Annotated[int, typer.Option(help="What is drawn is drawn from this.")] = 0,
    check_proofs: Annotated[bool, typer.Option(help="Replay every proof.")] = False,
    candidates: Annotated[
        Path | None, typer.Option(help="The sample's file: written once, then read.")
    ] = None,
    resume: Annotated[
        Path | None, typer.Option(help="Keep what is done here, not in the cache until the end.")
    ] = None,
    fresh: Annotated[
        bool, typer.Option("--fresh", help="Do not go on from an interrupted run.")
    ] = False,
    compare: Annotated[
        bool, typer.Option(help="Compiled and evaluator, step by step: the first difference.")
    ] = False,
    performance: Annotated[
        bool, typer.Option(help="References, evaluator and compiled side by side.")
    ] = False,
    seed_test: Annotated[
        int, typer.Option(help="So many seeds: compiled and reference are equal in all.")
    ] = 0,
    explain_compile: Annotated[
        bool, typer.Option(help="Kernels, host steps and compile time of each function.")
    ] = False,
    smoke: Annotated[bool, typer.Option(help="Check in a minute that all of it works.")] = False,
    memory: Annotated[
        str | None, typer.Option(help="Bytes that a closure may take: 4G, 500M.")
    ] = None,
    max_facts: Annotated[int | None, typer.Option(help="Facts that a closure may have.")] = None,
    html: Annotated[Path | None, typer.Option(help="Write a page with plots and proofs.")] = None,
    json: Annotated[Path | None, typer.Option(help="Write all figures to this file.")] = None,
) -> None:
    """Look for a proof of each query and its corruptions, and rank it among them."""
    from rich.console import Console

    from tenfold import TenfoldError
    from tenfold.apps.prover.closure.allowance import bytes_of
    from tenfold.apps.prover.compiled import Explaining
    from tenfold.apps.prover.settings import Settings

    console = Console(stderr=True)
    try:
        for path in (json, html):
            _check_writable(path)
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
            candidates=str(candidates) if candidates else None,
            seed=seed,
            check=check_proofs,
            memory=None if memory is None else bytes_of(memory),
            max_facts=max_facts,
        )
        if compare or performance or seed_test or smoke:
            good = _diagnose(settings, compare, performance, seed_test, smoke)
            raise typer.Exit(0 if good else 1)
        with Explaining() if explain_compile else nullcontext() as compiled:
            run = _evaluate(settings, console, resume, fresh)
    except KeyboardInterrupt:
        raise typer.Exit(130) from None
    except TenfoldError as error:
        console.print(str(error), style="red", markup=False, highlight=False)
        raise typer.Exit(2) from None
    _show(run)
    if compiled is not None:
        print(compiled)
    if json is not None:
        _write(json, run)
    if html is not None:
        from tenfold.apps.prover.report.html import page

        html.write_text(page(run), encoding="utf-8")


def _evaluate(settings: Settings, console: Any, resume: Path | None, fresh: bool) -> Run:
    """The run, with a bar; one that was interrupted goes on from where it stopped."""
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn

    from tenfold.apps.prover.evaluation import evaluate

    journal = resume or _runs(fresh)
    done = [0, 0]
    columns = (TextColumn("queries"), BarColumn(), MofNCompleteColumn())
    try:
        with Progress(*columns, console=console, transient=True) as progress:
            bar = progress.add_task("rank", total=None)

            def show(*counts: int) -> None:
                done[:] = counts
                progress.update(bar, completed=counts[0], total=counts[1])

            run = evaluate(settings, show, journal)
    except KeyboardInterrupt:
        again = "; the same command goes on from there" if journal else ""
        console.print(f"Interrupted after {done[0]:,} of {done[1]:,} queries{again}.")
        raise
    if run.resumed:
        console.print(f"Resumed: {run.resumed:,} of {len(run.results):,} queries were done before.")
    return run


def _runs(fresh: bool) -> Path | None:
    """The folder of runs that have not ended, where it can be made; none for a fresh run."""
    from tenfold.apps.prover.journal import runs_folder

    folder = runs_folder()
    if folder is None or fresh:
        return None
    try:
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    except OSError:
        return None
    return folder


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
            print(one)
            good &= one.same
    return good


def _check_writable(path: Path | None) -> None:
    """An error before a long run, rather than after it."""
    from tenfold.apps.prover.errors import InputError

    if path is not None and (path.is_dir() or not path.absolute().parent.is_dir()):
        raise InputError(f"{path} can't be written", fix="give a file in a folder that is there")


def _show(run: Run) -> None:
    from tenfold.apps.prover.report.table import show

    show(run)


def _write(path: Path, run: Run) -> None:
    from json import dumps

    from tenfold.apps.prover.report.summary import report

    path.write_text(dumps(report(run), indent=1, allow_nan=False) + "\n", encoding="utf-8")
