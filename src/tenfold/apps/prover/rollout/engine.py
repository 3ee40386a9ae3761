"""By rollout: queries ranked by searches for each of their candidates."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from heapq import nlargest
from itertools import repeat
from pathlib import Path
from typing import Any

from tenfold.apps.prover.input.program import Program, Triple
from tenfold.apps.prover.input.queries import Query
from tenfold.apps.prover.outcome import OVERFLOWS, Outcome
from tenfold.apps.prover.proofs.proof import check_choices
from tenfold.apps.prover.reference.aggregates import aggregate
from tenfold.apps.prover.reference.ranks import rank_by_key
from tenfold.apps.prover.reference.rollout import roll_plainly
from tenfold.apps.prover.reference.top_down import Searcher
from tenfold.apps.prover.reference.weighted_down import Weigher
from tenfold.apps.prover.report.ranks import Rank
from tenfold.apps.prover.result import LISTED, Finding, Tally, tally
from tenfold.apps.prover.rollout.draws import lane_id
from tenfold.apps.prover.rollout.exhaustive_run import Exhaustion, exhaust_all
from tenfold.apps.prover.rollout.policy import Weights, random_weights, read_weights
from tenfold.apps.prover.rollout.queue import Lane
from tenfold.apps.prover.rollout.room import QUEUE, Batch, Room
from tenfold.apps.prover.rollout.run import LOST, LaneResult, Rollout, Search
from tenfold.apps.prover.rollout.usage import Usage
from tenfold.apps.prover.rollout.weighted import weigh_all
from tenfold.apps.prover.scores.embedding import Embedding
from tenfold.apps.prover.settings import Settings

Searching = Callable[[Sequence[Lane]], list[LaneResult]]
_LOST = frozenset(map(int, OVERFLOWS))
VARIABLES = 64  # that random weights have embeddings for


def rank_by_rollout(
    settings: Settings,
    program: Program,
    asked: Sequence[Query],
    embedding: Embedding | None = None,
    usage: Usage | None = None,
) -> Iterator[Finding]:
    """What is found of each query, in order; several are searched for together. What that takes is
    written down in `usage`."""
    usage = usage or Usage(settings.memory)
    searching = searching_of(settings, program, usage)
    checker = Searcher(program) if settings.check else None
    batch = Batch.of(settings.backend, program, _beam(settings), settings.batch)
    for part in _parts(asked, max(2 * QUEUE, batch.queue)):
        lanes = [lane for query in part for lane in lanes_of(query, settings)]
        ended = searching(lanes)
        scores_, ended = _scores(settings, program, lanes, ended, usage)
        scored = iter(scores_)
        ends = iter(zip(lanes, ended, strict=True))
        for query in part:
            mine = [next(ends) for _ in range(1 + len(query.candidates))]
            scores = [next(scored) for _ in mine]
            checked = _check(checker, mine, settings) if checker else 0
            yield _found(query, [end for _, end in mine], scores, settings, checked, embedding)


def searching_of(settings: Settings, program: Program, usage: Usage | None = None) -> Searching:
    """The search that the settings name."""
    if settings.search == "exhaustive":
        if settings.backend == "python":
            return lambda lanes: _deepen(program, lanes, settings)
        exhaustion = Exhaustion(
            settings.height,
            _roomier(Exhaustion().room, settings),
            places=settings.states or Exhaustion().places,
            batch=min(settings.batch or 64, 64),
            overflow=settings.overflow,
            backend=settings.backend,
            memory=settings.memory,
        )
        return lambda lanes: exhaust_all(program, lanes, exhaustion, usage)
    search = search_of(settings, program)
    if settings.backend != "python":
        return Rollout(program, search, usage).run
    searcher = Searcher(program)
    count = len(program.constants)
    return lambda lanes: [roll_plainly(searcher, lane, search, count) for lane in lanes]


def search_of(settings: Settings, program: Program) -> Search:
    """The search by a policy that the settings name."""
    weights, variables = _weights(settings, program)
    return Search(
        weights,
        _beam(settings),
        settings.search == "sampled",
        settings.steps,
        settings.height,
        _roomier(Room.of(program, variables, settings.height), settings),
        settings.overflow,
        settings.batch,
        settings.backend,
        memory=settings.memory,
        every_way=False,  # those that prove nothing are read by nobody
    )


def _beam(settings: Settings) -> int:
    """States of a lane."""
    return settings.beam if settings.search == "beam" else 1


def _roomier(room: Room, settings: Settings) -> Room:
    """The room that the settings ask for, elsewhere the given one."""
    given = {name: getattr(settings, name) for name in ("successors", "goals", "variables")}
    return replace(room, **{name: count for name, count in given.items() if count is not None})


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
    """The query itself, then its candidates. Where nothing is drawn all ids are 0."""
    without = query.fact if settings.alone else None
    named = (query.own, *query.candidates)
    ids: Iterable[int] = repeat(0)
    if settings.search == "sampled":
        ids = [lane_id(settings.seed, query.mode, query.fact, c) for c in named]
    return [Lane(query.corrupt(c), id_, without) for c, id_ in zip(named, ids, strict=False)]


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


def _scores(
    settings: Settings,
    program: Program,
    lanes: Sequence[Lane],
    ends: list[LaneResult],
    usage: Usage,
) -> tuple[list[Any], list[LaneResult]]:
    """The score of each lane, greater is better; it counts where there is a proof. And the ends,
    where those whose proofs memory does not hold are lost."""
    if settings.score != "weight":
        return [_score(end, settings.score) for end in ends], ends
    # a fact needs no rule, and is better than what does
    scores: list[Any] = [(1, 1.0) if end.height == 0 else (0, 0.0) for end in ends]
    proved = [i for i, end in enumerate(ends) if end.outcome == Outcome.PROVED and end.height]
    asked = [lanes[i] for i in proved]
    if settings.backend == "python":
        found = _weigh_plainly(program, asked, settings.height)
    else:
        batch = min(settings.batch or 64, 64)
        found = weigh_all(program, asked, settings.height, batch, settings.backend, settings.memory)
    for i, weights in zip(proved, found, strict=True):
        if weights is None:
            ends[i] = LOST
            usage.lost += 1
        else:
            scores[i] = (0, aggregate(weights, settings.aggregate or "max"))
    return scores, ends


def _weigh_plainly(
    program: Program, lanes: Sequence[Lane], height: int
) -> list[list[float] | None]:
    weighers: dict[Triple | None, Weigher] = {}
    result: list[list[float] | None] = []
    for lane in lanes:
        if lane.without not in weighers:
            weighers[lane.without] = Weigher(program, lane.without)
        result.append([w for _, w in weighers[lane.without].rules(lane.triple, height)])
    return result


def _score(end: LaneResult, kind: str) -> float:
    if kind == "logprob":
        return end.score
    return float(-end.height) if kind == "height" and end.height is not None else 0.0


def _found(
    query: Query,
    ends: list[LaneResult],
    scores: list[Any],
    settings: Settings,
    checked: int,
    embedding: Embedding | None,
) -> Finding:
    codes = [int(end.outcome) for end in ends]  # an enumeration's hashes take long
    outcomes = Counter({Outcome(code): n for code, n in Counter(codes).items()})
    proved = [code == Outcome.PROVED for code in codes]
    lost = [code in _LOST for code in codes]
    above: tuple[int, ...] = ()
    if lost[0]:  # nothing is known: anything may be better
        rank = Rank(0, len(ends) - 1, len(ends) - 1)
    else:
        # a candidate without an answer may be better or worse: it counts as a tie, so that the
        # optimistic and pessimistic ranks are bounds
        candidates = query.candidates
        kept = [i for i in range(1, len(ends)) if not lost[i]]
        keys = [(proved[i], scores[i]) for i in (0, *kept)]
        places = [candidates[i - 1] for i in kept]
        order = embedding.order([query])[0][places].tolist() if embedding else [0] * len(kept)
        rank = rank_by_key(keys[0], keys[1:], order)
        if rank.better:
            others = embedding.scores([query])[0][places].tolist() if embedding else order
            all_ = zip(keys[1:], others, (-c for c in places), strict=True)
            above = tuple(-c for *_, c in nlargest(min(rank.better, LISTED), all_))
        rank = Rank(rank.better, rank.ties + sum(lost), len(ends) - 1)
    weight = scores[0][1] if settings.score == "weight" and proved[0] else None
    return Finding(
        rank,
        ends[0].height,
        outcomes,
        sum(end.near for end in ends),
        checked,
        weight[0] if isinstance(weight, tuple) else weight,
        _tally(query, proved, scores, embedding) if settings.auc_pr else None,
        above,
        ends[0].outcome,
    )


def _tally(
    query: Query, proved: list[bool], scores: list[Any], embedding: Embedding | None
) -> Tally:
    """The scores of a query and its candidates; what has no answer counts as not proved."""
    constants = (query.own, *query.candidates)
    values = {c: scores[i] for i, c in enumerate(constants) if proved[i]}
    return tally(query, values, embedding.scores([query])[0].tolist() if embedding else None)


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
