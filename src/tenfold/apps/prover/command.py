"""The command `tenfold prove`."""

from __future__ import annotations

from contextlib import nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

if TYPE_CHECKING:  # read when a run begins, so that --help need not wait
    from tenfold.apps.prover.evaluation import Run
    from tenfold.apps.prover.progress import Event
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
    confidence: Annotated[
        str, typer.Option(help="Which weight of AnyBURL's or AMIE's rules: std, pca or smoothed.")
    ] = "std",
    mine: Annotated[
        int | None, typer.Option(help="Mine so many rules from train, in place of any others.")
    ] = None,
    mine_to: Annotated[
        Path | None, typer.Option(help="Write the mined rules to this file.")
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
    score: Annotated[
        str, typer.Option(help="height, weight, embedding, logprob or binary.")
    ] = "height",
    aggregate: Annotated[
        str | None,
        typer.Option(help="Of weights: max (default), noisy-or, product, count, max-then-next."),
    ] = None,
    embedding: Annotated[
        Path | None,
        typer.Option(help="DistMult or ComplEx as safetensors: the score, or to break its ties."),
    ] = None,
    height: Annotated[int, typer.Option(help="The highest proof looked for.")] = 10,
    overflow: Annotated[str, typer.Option(help="grow, mark or error.")] = "grow",
    alone: Annotated[bool, typer.Option(help="No query may use itself as a fact.")] = False,
    backend: Annotated[
        str, typer.Option(help="compiled, evaluator or python; cuda, cuda:1, webgpu: a GPU.")
    ] = "compiled",
    batch: Annotated[int | None, typer.Option(help="Queries or candidates at a time.")] = None,
    limit: Annotated[int | None, typer.Option(help="Only the first queries.")] = None,
    sample: Annotated[
        int | None, typer.Option(help="So many candidates a query, drawn once, not all.")
    ] = None,
    seed: Annotated[int, typer.Option(help="What is drawn is drawn from this.")] = 0,
    seeds: Annotated[
        int, typer.Option(help="So many seeds from --seed on: means and deviations.")
    ] = 1,
    bootstrap: Annotated[
        int, typer.Option(help="Intervals by so many resamples of the test's facts.")
    ] = 0,
    confidence_level: Annotated[float, typer.Option(help="Of the bootstrap's intervals.")] = 0.95,
    auc_pr: Annotated[
        bool, typer.Option("--auc-pr", help="The area under the precision-recall curve.")
    ] = False,
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
    explain: Annotated[
        str | None, typer.Option(help="Why p(a,b) holds, or which subgoal of it fails.")
    ] = None,
    queries: Annotated[
        Path | None, typer.Option(help="Write each query's answer: .jsonl, .csv or .parquet.")
    ] = None,
    table: Annotated[Path | None, typer.Option(help="Write the table: .tex or .csv.")] = None,
    relations: Annotated[
        int | None, typer.Option(help="Only so many relations in tables: those asked most.")
    ] = None,
    memory: Annotated[
        str | None, typer.Option(help="Bytes that arrays may take: 4G, 500M.")
    ] = None,
    max_facts: Annotated[int | None, typer.Option(help="Facts that a closure may have.")] = None,
    successors: Annotated[
        int | None, typer.Option(help="Successors of a step that a rollout begins with room for.")
    ] = None,
    goals: Annotated[int | None, typer.Option(help="Goals of a state, likewise.")] = None,
    variables: Annotated[int | None, typer.Option(help="Variables of a state, likewise.")] = None,
    states: Annotated[
        int | None, typer.Option(help="States of an exhaustive search, likewise.")
    ] = None,
    html: Annotated[Path | None, typer.Option(help="Write a page with plots and proofs.")] = None,
    json: Annotated[Path | None, typer.Option(help="Write all figures to this file.")] = None,
) -> None:
    """Look for a proof of each query and its corruptions, and rank it among them."""
    from rich.console import Console

    from tenfold import TenfoldError
    from tenfold.apps.prover.closure.allowance import bytes_of
    from tenfold.apps.prover.compiled import Explaining
    from tenfold.apps.prover.output.asked import Outputs
    from tenfold.apps.prover.settings import Settings

    console = Console(stderr=True)
    try:
        outputs = Outputs(json, html, queries, table, mine_to, relations)
        outputs.check()
        settings = Settings(
            data,
            rules=str(rules) if rules else None,
            constants=tuple(constant or ()),
            confidence=confidence,
            mine=mine,
            mine_to=str(mine_to) if mine_to else None,
            modes=("head", "tail") if mode == "both" else (mode,),
            engine=engine,
            policy=policy,
            weights=str(weights) if weights else None,
            search=search,
            beam=beam,
            steps=steps,
            score=score,
            aggregate=aggregate,
            embedding=str(embedding) if embedding else None,
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
            auc_pr=auc_pr,
            bootstrap=bootstrap,
            confidence_level=confidence_level,
            memory=None if memory is None else bytes_of(memory),
            max_facts=max_facts,
            successors=successors,
            goals=goals,
            variables=variables,
            states=states,
        )
        _check_counts(settings, seeds, seed_test, resume)
        if explain is not None:
            outputs.only_json("--explain")
            _explain(settings, explain, json)
            return
        if compare or performance or seed_test or smoke:
            outputs.only_json("a diagnosis")
            good = _diagnose(settings, compare, performance, seed_test, smoke, json)
            raise typer.Exit(0 if good else 1)
        with Explaining() if explain_compile else nullcontext() as compiled:
            run = _evaluate(settings, console, resume, fresh)
            spread = _over_seeds(run, seeds, console, resume, fresh) if seeds > 1 else None
        _show(run, relations, spread)
        if compiled is not None:
            print(compiled)
        outputs.write(run, spread=spread)
    except KeyboardInterrupt:
        raise typer.Exit(130) from None
    except TenfoldError as error:
        console.print(str(error), style="red", markup=False, highlight=False)
        raise typer.Exit(2) from None
    except MemoryError:
        said = "memory ran out: bound it by --memory, and what does not fit ends in bounds"
        console.print(said, style="red", markup=False, highlight=False)
        raise typer.Exit(2) from None


def _evaluate(settings: Settings, console: Any, resume: Path | None, fresh: bool) -> Run:
    """The run, watched; one that was interrupted goes on from where it stopped."""
    from tenfold.apps.prover.evaluation import evaluate
    from tenfold.apps.prover.progress import Event
    from tenfold.apps.prover.report.watching import said, watched

    journal = resume or _runs(fresh)
    last = Event("reading")
    try:
        with watched(console) as show:

            def tell(event: Event) -> None:
                nonlocal last
                last = event
                show(event)

            run = evaluate(settings, tell, journal, command=_command())
    except KeyboardInterrupt:
        far = said(last)
        kept = _kept(last)
        console.print(f"Interrupted while {last.stage}{far and f' ({far})'}: {kept}.")
        raise
    if run.resumed:
        console.print(f"Resumed: {run.resumed:,} of {len(run.results):,} queries were done before.")
    return run


def _over_seeds(
    run: Run, seeds: int, console: Any, resume: Path | None, fresh: bool
) -> dict[str, Any]:
    """The figures of a run and of those with the seeds after its own."""
    from dataclasses import replace

    from tenfold.apps.prover.report.seeds import over_seeds
    from tenfold.apps.prover.report.summary import by_mode

    first = run.settings.seed
    made = [by_mode(run)]
    for seed in range(first + 1, first + seeds):
        other = _evaluate(replace(run.settings, seed=seed), console, resume, fresh)
        made.append(by_mode(other))
    return over_seeds(range(first, first + seeds), made)


def _check_counts(settings: Settings, seeds: int, seed_test: int, resume: Path | None) -> None:
    """An error for counts that make no run, and for several seeds where none is drawn from."""
    from tenfold.apps.prover.errors import InputError

    if seeds < 1:
        raise InputError(f"seeds is {seeds}", fix="give 1 or more")
    if seed_test < 0:
        raise InputError(f"seed-test is {seed_test}", fix="give 0 or more")
    if seeds == 1:
        return
    if resume is not None and not resume.is_dir():
        raise InputError(
            f"{resume} can keep one run, not those of {seeds} seeds", fix="give a folder"
        )
    drawn = settings.sample is not None and settings.candidates is None
    if settings.engine == "rollout" and settings.search != "exhaustive":
        drawn |= settings.search == "sampled"
        drawn |= settings.policy == "learned" and settings.weights is None
    if not drawn:
        raise InputError(
            f"nothing is drawn, so {seeds} seeds would give the same figures",
            fix="leave --seeds out, or draw: --sample, --search sampled, --policy learned",
        )


def _kept(last: Event) -> str:
    """What is left of an interrupted run: a search has no closure."""
    if not last.kept or (last.stage == "searching" and not last.done):
        return "nothing is kept, the same command begins anew"
    if not last.done or last.stage == "checking":
        return "the closure is kept, the same command goes on from there"
    return f"{last.done:,} queries are kept, the same command goes on from there"


def _command() -> str:
    """The command as it was given."""
    import shlex
    import sys

    return shlex.join(["tenfold", *sys.argv[1:]])


def _explain(settings: Settings, fact: str, json: Path | None) -> None:
    """Print why a fact holds or fails."""
    from tenfold.apps.prover.api import explain_for
    from tenfold.apps.prover.evaluation import load_for
    from tenfold.apps.prover.output.asked import write_json
    from tenfold.apps.prover.output.provenance import provenance_of

    data = load_for(settings)
    made = explain_for(settings, fact, data)
    print(made)
    if json is not None:
        origin = provenance_of(settings, data, _command())
        write_json(json, {**made.as_dict(), "provenance": origin.as_dict()})


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
    settings: Settings, compare: bool, performance: bool, seeds: int, smoke: bool, json: Path | None
) -> bool:
    """Print what was found; whether all of it agrees."""
    from tenfold.apps.prover import diagnose
    from tenfold.apps.prover.evaluation import load_for
    from tenfold.apps.prover.output.asked import write_json
    from tenfold.apps.prover.output.provenance import provenance_of

    good, found = True, dict[str, Any]()

    def tell(kind: str, line: str, made: Any, same: bool) -> None:
        nonlocal good
        print(line, flush=True)
        found.setdefault(kind, []).append(made)
        good &= same

    if smoke:
        for name, same in diagnose.smoke():
            made = {"name": name, "good": same}
            tell("smoke", f"{'good ' if same else 'WRONG'}  {name}", made, same)
    if compare:
        steps, difference = diagnose.compare(settings)
        said = f"alike in {steps} steps" if difference is None else str(difference)
        tell("compare", said, {"steps": steps, "said": said}, difference is None)
    for seeded in diagnose.seed_test(settings, seeds):
        tell("seeds", str(seeded), seeded.as_dict(), seeded.same)
    if seeds > 1:
        print(diagnose.spread(found["seeds"]))
    if performance:
        for timing in diagnose.performance(settings):
            tell("performance", str(timing), timing.as_dict(), timing.same)
    if json is not None:
        origin = provenance_of(settings, load_for(settings), _command())
        write_json(json, {**found, "good": good, "provenance": origin.as_dict()})
    return good


def _show(run: Run, relations: int | None, spread: dict[str, Any] | None) -> None:
    from tenfold.apps.prover.report.table import show, show_seeds

    show(run, relations=relations)
    if spread is not None:
        show_seeds(spread)
