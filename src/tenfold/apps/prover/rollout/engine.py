"""By rollout: queries ranked by searches for each of their candidates."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from heapq import nsmallest
from pathlib import Path

from tenfold.apps.prover.input.program import Program
from tenfold.apps.prover.input.queries import Query
from tenfold.apps.prover.outcome import Outcome
from tenfold.apps.prover.proofs.proof import check_choices
from tenfold.apps.prover.reference.ranks import rank_by_score
from tenfold.apps.prover.reference.rollout import roll_plainly
from tenfold.apps.prover.reference.top_down import Searcher
from tenfold.apps.prover.report.ranks import Rank
from tenfold.apps.prover.result import LISTED, Finding
from tenfold.apps.prover.rollout.draws import lane_id
from tenfold.apps.prover.rollout.exhaustive_run import Exhaustion, exhaust_all
from tenfold.apps.prover.rollout.policy import Weights, random_weights, read_weights
from tenfold.apps.prover.rollout.queue import QUEUE, Lane
from tenfold.apps.prover.rollout.run import OVERFLOWS, LaneResult, Rollout, Room, Search
from tenfold.apps.prover.settings import Settings

Searching = Callable[[Sequence[Lane]], list[LaneResult]]
VARIABLES = 64  # that random weights have embeddings for


def rank_by_rollout(
    settings: Settings, program: Program, asked: Sequence[Query]
) -> Iterator[Finding]:
    """What is found of each query, in order; several are searched for together."""
    searching = searching_of(settings, program)
    checker = Searcher(program) if settings.check else None
    for part in _parts(asked, 2 * QUEUE):
        lanes = [lane for query in part for lane in lanes_of(query, settings)]
        ends = iter(zip(lanes, searching(lanes), strict=True))
        for query in part:
            mine = [next(ends) for _ in range(1 + len(query.candidates))]
            checked = _check(checker, mine, settings) if checker else 0
            found = _found([end for _, end in mine], settings, checked)
            yield replace(found, above=_above(query, mine, settings, found.rank.better))


def searching_of(settings: Settings, program: Program) -> Searching:
    """The search that the settings name."""
    if settings.search == "exhaustive":
        if settings.backend == "python":
            return lambda lanes: _deepen(program, lanes, settings)
        exhaustion = Exhaustion(
            settings.height,
            batch=min(settings.batch or 64, 64),
            overflow=settings.overflow,
            backend=settings.backend,
        )
        return lambda lanes: exhaust_all(program, lanes, exhaustion)
    search = search_of(settings, program)
    if settings.backend != "python":
        return Rollout(program, search).run
    searcher = Searcher(program)
    count = len(program.constants)
    return lambda lanes: [roll_plainly(searcher, lane, search, count) for lane in lanes]


def search_of(settings: Settings, program: Program) -> Search:
    """The search by a policy that the settings name."""
    weights, variables = _weights(settings, program)
    return Search(
        weights,
        settings.beam if settings.search == "beam" else 1,
        settings.search == "sampled",
        settings.steps,
        settings.height,
        Room.of(program, variables, settings.height),
        settings.overflow,
        settings.batch,
        settings.backend,
    )


def _weights(settings: Settings, program: Program) -> tuple[Weights | None, int]:
    if settings.policy == "uniform":
        return None, VARIABLES
    if settings.weights:
        return read_weights(Path(settings.weights), program)
    return random_weights(program, VARIABLES, settings.seed), VARIABLES


def _deepen(program: Program, lanes: Sequence[Lane], settings: Settings) -> list[LaneResult]:
    """The plain reference of the exhaustive search; it keeps no traces."""
    searcher = Searcher(program)
    answers = [searcher.prove(lane.triple, settings.height, lane.without) for lane in lanes]
    return [LaneResult(a.outcome, float(-(a.height or 0)), a.height, 0, ()) for a in answers]


def lanes_of(query: Query, settings: Settings) -> list[Lane]:
    """The query itself, then its candidates."""
    without = query.fact if settings.alone else None
    return [
        Lane(query.corrupt(c), lane_id(settings.seed, query.mode, query.fact, c), without)
        for c in (query.own, *query.candidates)
    ]


def _parts(asked: Sequence[Query], lanes: int) -> Iterator[list[Query]]:
    """Queries in groups of about so many lanes."""
    part: list[Query] = []
    count = 0
    for query in asked:
        part.append(query)
        count += 1 + len(query.pool)
        if count >= lanes:
            yield part
            part, count = [], 0
    if part:
        yield part


def _found(ends: list[LaneResult], settings: Settings, checked: int) -> Finding:
    scores = [_score(end, settings.score) for end in ends]
    proved = [end.outcome == Outcome.PROVED for end in ends]
    lost = [end.outcome in OVERFLOWS for end in ends]
    rank = rank_by_score(proved[0], scores[0], proved[1:], scores[1:])
    if lost[0]:  # nothing is known: anything may be better
        rank = Rank(0, rank.candidates, rank.candidates)
    elif any(lost):
        rank = _bounded(proved, scores, lost)
    return Finding(
        rank,
        ends[0].height,
        Counter(end.outcome for end in ends),
        sum(end.near for end in ends),
        checked,
        outcome=ends[0].outcome,
    )


def _above(
    query: Query, ends: list[tuple[Lane, LaneResult]], settings: Settings, better: int
) -> tuple[int, ...]:
    """The best of the candidates that are better than the query, those alike in rising order."""
    if not better:
        return ()
    best = nsmallest(
        min(better, LISTED),
        (
            (end.outcome != Outcome.PROVED, -_score(end, settings.score), candidate)
            for candidate, (_, end) in zip(query.candidates, ends[1:], strict=True)
            if end.outcome not in OVERFLOWS
        ),
    )
    return tuple(candidate for *_, candidate in best)


def _bounded(proved: list[bool], scores: list[float], lost: list[bool]) -> Rank:
    """A rank whose candidates without an answer may be better or worse: they count as ties, so
    that the optimistic and pessimistic ranks are bounds."""
    kept = [i for i in range(1, len(lost)) if not lost[i]]
    rank = rank_by_score(proved[0], scores[0], [proved[i] for i in kept], [scores[i] for i in kept])
    return Rank(rank.better, rank.ties + sum(lost), len(lost) - 1)


def _score(end: LaneResult, kind: str) -> float:
    if kind == "logprob":
        return end.score
    return float(-end.height) if kind == "height" and end.height is not None else 0.0


def _check(searcher: Searcher, ends: list[tuple[Lane, LaneResult]], settings: Settings) -> int:
    """Replay every proof; how many there were."""
    count = 0
    for lane, end in ends:
        if end.outcome == Outcome.PROVED and (settings.backend, settings.search) != (
            "python",
            "exhaustive",
        ):
            height = settings.height if settings.search != "exhaustive" else end.height
            check_choices(searcher, lane.triple, height or 0, end.choices, lane.without)
            count += 1
    return count
