"""Evaluation: every query of a data set ranked among its corruptions."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np

from tenfold.apps.prover.backend import check_device
from tenfold.apps.prover.closure.engine import close_program, rank_in_closure
from tenfold.apps.prover.closure.fixpoint import Closure
from tenfold.apps.prover.closure.joins import Packing
from tenfold.apps.prover.input.candidates import kept_sample
from tenfold.apps.prover.input.dataset import Dataset
from tenfold.apps.prover.input.load import load
from tenfold.apps.prover.input.program import Program, program_of
from tenfold.apps.prover.input.queries import Query, queries, sample
from tenfold.apps.prover.journal import Journal, digest_of
from tenfold.apps.prover.outcome import Outcome
from tenfold.apps.prover.output.provenance import Provenance, provenance_of
from tenfold.apps.prover.progress import Event, Progress
from tenfold.apps.prover.proofs.index import FactIndex
from tenfold.apps.prover.proofs.proof import Explainer
from tenfold.apps.prover.result import Finding
from tenfold.apps.prover.rollout.engine import rank_by_rollout
from tenfold.apps.prover.rollout.usage import Usage
from tenfold.apps.prover.scores.embedding import Embedding, read_embedding
from tenfold.apps.prover.scores.weights import check_weights
from tenfold.apps.prover.settings import Settings


@dataclass(frozen=True, slots=True)
class Result:
    """A query and what was found of it and of its corruptions."""

    query: Query
    found: Finding


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
    closed: Closure | None
    results: tuple[Result, ...]
    seconds: dict[str, float]
    checked: int  # proofs replayed
    provenance: Provenance
    resumed: int = 0  # queries that an interrupted run had done
    usage: Usage | None = None  # what a rollout took, where it counts that

    @property
    def outcomes(self) -> Counter[Outcome]:
        """How the searches for all queries and candidates ended."""
        total: Counter[Outcome] = Counter()
        for result in self.results:
            total.update(result.found.outcomes)
        return total


def evaluate(
    settings: Settings,
    progress: Progress | None = None,
    journal: Path | None = None,
    *,
    data: Dataset | None = None,
    command: str = "",
) -> Run:
    """Read, search, rank. With a journal, go on from what an interrupted run has done.

    A journal that is a folder holds runs by their digests, each until it has ended. `data` is a
    data set that was read before; `command` is kept with the figures.

    >>> run = evaluate(Settings("family:families=1,generations=2", modes=("tail",)))
    >>> len(run.results) == len(run.data.test)
    True
    """
    stages, tell = Stages(), progress or (lambda event: None)
    check_device(settings.backend)  # before much is read
    with stages.timed("read"):
        tell(Event("reading"))
        read = data or load_for(settings)
        program = program_of(read)
        if settings.score == "weight":
            read = replace(read, notices=(*read.notices, *check_weights(read.rules)))
        asked = _asked(settings, read, program)
        origin = provenance_of(settings, read, command, files=data is None)
    if journal is None:
        return _run(settings, read, program, asked, origin, stages, tell, None)
    digest = digest_of(settings, program, asked)
    passing = journal.is_dir()
    path = journal / f"{digest}.jsonl" if passing else journal
    with Journal(path, digest, len(asked), passing=passing) as kept:
        return _run(settings, read, program, asked, origin, stages, tell, kept)


def load_for(settings: Settings) -> Dataset:
    """The data set that the settings name."""
    return load(
        settings.data,
        Path(settings.rules) if settings.rules else None,
        settings.constants,
        confidence=settings.confidence,
        mine=settings.mine,
        mine_to=Path(settings.mine_to) if settings.mine_to else None,
    )


def _asked(settings: Settings, data: Dataset, program: Program) -> list[Query]:
    """The queries with their candidates: all of them, a sample, or a sample that was kept."""
    asked = queries(data, program, settings.modes, settings.limit)
    if settings.candidates is not None:
        path = Path(settings.candidates)
        return kept_sample(path, asked, program, settings.sample, settings.seed)
    if settings.sample is not None:
        return sample(asked, settings.sample, settings.seed)
    return asked


def _run(
    settings: Settings,
    data: Dataset,
    program: Program,
    asked: Sequence[Query],
    origin: Provenance,
    stages: Stages,
    tell: Progress,
    kept: Journal | None,
) -> Run:
    found: list[Finding] = list(kept.done) if kept else []
    resumed = len(found)
    embedding = None
    if settings.embedding is not None:
        with stages.timed("read"):
            path = Path(settings.embedding)
            embedding = read_embedding(path, program, asked, settings.backend)
    closed, checked = None, 0
    if settings.engine == "closure" and settings.score != "embedding":
        with stages.timed("close"):

            def watch(height: int, facts: int) -> None:
                tell(Event("closing", facts, height=height))

            def close() -> Closure:
                watch(0, len(program.facts))
                return close_program(settings, program, watch)

            closed = kept.closure(Packing.of(program), close) if kept else close()
        if settings.check:
            tell(Event("checking", len(closed.keys), kept=kept is not None and kept.holds))
            with stages.timed("check"):
                checked = Explainer(program, FactIndex(closed)).check_all()
    stage, holds = "searching" if closed is None else "ranking", kept is not None and kept.holds
    tell(Event(stage, resumed, len(asked), kept=holds))
    usage = Usage(settings.memory)
    with stages.timed("rank"):
        for one in _ranked(settings, program, closed, asked, resumed, embedding, usage):
            if kept:
                kept.write(one)
            found.append(one)
            tell(Event(stage, len(found), len(asked), kept=holds))
    checked += sum(one.checked for one in found)
    results = tuple(Result(q, f) for q, f in zip(asked, found, strict=True))
    counted = usage if usage.rooms or usage.lost else None
    return Run(
        settings, data, program, closed, results, stages.seconds, checked, origin, resumed, counted
    )


def _ranked(
    settings: Settings,
    program: Program,
    closed: Closure | None,
    asked: Sequence[Query],
    done: int,
    embedding: Embedding | None,
    usage: Usage,
) -> Iterator[Finding]:
    if settings.score == "embedding":  # nothing is proved, so there are ties to be broken only
        none = np.zeros(0, np.int64)
        closed = Closure(Packing.of(program), none, none, False, 0)
    if closed is not None:
        return rank_in_closure(settings, program, closed, asked, done, embedding)
    return rank_by_rollout(settings, program, asked[done:], embedding, usage)
