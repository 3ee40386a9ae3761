"""Evaluation: every query of a data set ranked among its corruptions."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from tenfold.apps.prover.by_closure import close_program, rank_in_closure
from tenfold.apps.prover.by_rollout import rank_by_rollout
from tenfold.apps.prover.closure import Closed
from tenfold.apps.prover.dataset import Dataset
from tenfold.apps.prover.journal import Journal
from tenfold.apps.prover.load import load
from tenfold.apps.prover.outcome import Outcome
from tenfold.apps.prover.program import Program, program_of
from tenfold.apps.prover.proof import Explainer
from tenfold.apps.prover.queries import Query, queries, sample
from tenfold.apps.prover.result import Found
from tenfold.apps.prover.settings import Settings

Progress = Callable[[int, int], None]  # queries done, queries in all


@dataclass(frozen=True, slots=True)
class Result:
    """A query and what was found of it and of its corruptions."""

    query: Query
    found: Found


@dataclass(slots=True)
class Stages:
    """How many seconds each stage of a run took."""

    seconds: dict[str, float] = field(default_factory=dict)

    @contextmanager
    def timed(self, stage: str) -> Iterator[None]:
        began = time.perf_counter()
        try:
            yield
        finally:
            spent = time.perf_counter() - began
            self.seconds[stage] = self.seconds.get(stage, 0.0) + spent


@dataclass(frozen=True, slots=True)
class Run:
    """A finished run. The closure is there if the engine was."""

    settings: Settings
    data: Dataset
    program: Program
    closed: Closed | None
    results: tuple[Result, ...]
    seconds: dict[str, float]
    checked: int  # proofs replayed

    @property
    def outcomes(self) -> Counter[Outcome]:
        """How the searches for all queries and candidates ended."""
        total: Counter[Outcome] = Counter()
        for result in self.results:
            total.update(result.found.outcomes)
        return total


def evaluate(
    settings: Settings, progress: Progress | None = None, journal: Path | None = None
) -> Run:
    """Read, search, rank. With a journal, go on from what an interrupted run has done.

    >>> run = evaluate(Settings("family:families=1,generations=2", modes=("tail",)))
    >>> len(run.results) == len(run.data.test)
    True
    """
    stages = Stages()
    with stages.timed("read"):
        rules = Path(settings.rules) if settings.rules else None
        data = load(settings.data, rules, settings.constants)
        program = program_of(data)
        asked = queries(data, program, settings.modes, settings.limit)
        if settings.sample is not None:
            asked = sample(asked, settings.sample, settings.seed)
    kept = Journal.open(journal, settings, len(asked)) if journal else None
    found: list[Found] = list(kept.done) if kept else []
    closed, checked = None, 0
    if settings.engine == "closure":
        with stages.timed("close"):
            closed = close_program(settings, program)
        if settings.check:
            with stages.timed("check"):
                checked = Explainer(program, closed.by_triple()).check_all()
    with stages.timed("rank"):
        for part in _ranked(settings, program, closed, asked[len(found) :]):
            found.append(part)
            if kept:
                kept.write(part)
            if progress:
                progress(len(found), len(asked))
    checked += sum(one.checked for one in found)
    results = tuple(Result(q, f) for q, f in zip(asked, found, strict=True))
    return Run(settings, data, program, closed, results, stages.seconds, checked)


def _ranked(
    settings: Settings, program: Program, closed: Closed | None, asked: Sequence[Query]
) -> Iterator[Found]:
    if closed is not None:
        return rank_in_closure(settings, program, closed, asked)
    return rank_by_rollout(settings, program, asked)
