"""Evaluation: every query of a data set ranked among its corruptions."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np

from tenfold.apps.prover.bottom_up import close
from tenfold.apps.prover.closure import Closed, close_by_joins
from tenfold.apps.prover.closure_ranks import Ranked, rank_by_lookup
from tenfold.apps.prover.dataset import Dataset
from tenfold.apps.prover.errors import InputError
from tenfold.apps.prover.joins import Packing
from tenfold.apps.prover.load import load
from tenfold.apps.prover.outcome import Outcome
from tenfold.apps.prover.program import Program, program_of
from tenfold.apps.prover.queries import Query, queries, sample
from tenfold.apps.prover.rank_reference import rank_by_height
from tenfold.apps.prover.settings import Settings

Progress = Callable[[int, int], None]  # queries done, queries in all


@dataclass(frozen=True, slots=True)
class Result:
    """A query and what was found of it and of its corruptions."""

    query: Query
    ranked: Ranked
    outcomes: Counter[Outcome]  # of the query and its corruptions


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
    """A finished run."""

    settings: Settings
    data: Dataset
    program: Program
    closed: Closed
    results: tuple[Result, ...]
    seconds: dict[str, float]


def evaluate(settings: Settings, progress: Progress | None = None) -> Run:
    """Read, close, rank.

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
    if settings.engine != "closure":
        raise InputError(f"the engine {settings.engine} is not here", fix="say closure")
    with stages.timed("close"):
        closed = _close(settings, program)
        if settings.score == "binary":
            closed = replace(closed, heights=np.zeros_like(closed.heights))
    with stages.timed("rank"):
        results = tuple(_rank(settings, program, closed, asked, progress))
    return Run(settings, data, program, closed, results, stages.seconds)


def _close(settings: Settings, program: Program) -> Closed:
    if settings.backend == "tenfold":
        return close_by_joins(program, settings.height)
    reference = close(program, settings.height)
    packing = Packing.of(program)
    facts = sorted(reference.heights)
    heights = np.array([reference.heights[f] for f in facts], np.int64)
    return Closed(packing, packing.keys(facts), heights, reference.complete, 0)


def _rank(
    settings: Settings,
    program: Program,
    closed: Closed,
    asked: Sequence[Query],
    progress: Progress | None,
) -> Iterator[Result]:
    unproved = Outcome.REFUTED if closed.complete else Outcome.DEPTH
    if settings.backend == "tenfold":
        ranked = rank_by_lookup(asked, program, closed, settings.batch)
    else:
        ranked = _rank_plainly(asked, closed)
    for done, (query, found) in enumerate(zip(asked, ranked, strict=True), 1):
        own = found.height is not None
        outcomes = Counter({Outcome.PROVED: found.proved + own})
        outcomes[unproved] += found.rank.candidates + 1 - found.proved - own
        yield Result(query, found, +outcomes)
        if progress and (done % settings.batch == 0 or done == len(asked)):
            progress(done, len(asked))


def _rank_plainly(asked: Sequence[Query], closed: Closed) -> Iterator[Ranked]:
    heights = closed.by_triple()
    for query, rank in zip(asked, rank_by_height(asked, heights), strict=True):
        proved = sum(query.corrupt(c) in heights for c in query.pool - query.known)
        yield Ranked(rank, heights.get(query.fact), proved)
