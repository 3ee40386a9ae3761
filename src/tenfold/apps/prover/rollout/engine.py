"""By rollout: queries ranked by searches for each of their candidates."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np

from tenfold.apps.prover.errors import ScoreError
from tenfold.apps.prover.input.program import Program, Triple
from tenfold.apps.prover.input.queries import Query
from tenfold.apps.prover.outcome import OVERFLOWS, Outcome
from tenfold.apps.prover.proofs.proof import check_choices
from tenfold.apps.prover.reference.aggregates import aggregate
from tenfold.apps.prover.reference.rollout import roll_plainly
from tenfold.apps.prover.reference.top_down import Searcher
from tenfold.apps.prover.reference.weighted_down import Weigher
from tenfold.apps.prover.report.ranks import Rank
from tenfold.apps.prover.result import LISTED, Finding, Tally, tally
from tenfold.apps.prover.rollout.draws import as_bits, lane_id
from tenfold.apps.prover.rollout.exhaustive_run import Exhaustion, exhaust_all
from tenfold.apps.prover.rollout.policy import Weights, random_weights, read_weights
from tenfold.apps.prover.rollout.queue import Lane, Lanes
from tenfold.apps.prover.rollout.results import LOST, Column, LaneResult, LaneResults
from tenfold.apps.prover.rollout.room import QUEUE, Batch, Room
from tenfold.apps.prover.rollout.run import Rollout, Search
from tenfold.apps.prover.rollout.usage import Usage
from tenfold.apps.prover.rollout.weighted import weigh_all
from tenfold.apps.prover.scores.embedding import Embedding
from tenfold.apps.prover.settings import Settings

Searching = Callable[[Lanes], Sequence[LaneResult]]
_PROVED, _LOST = int(Outcome.PROVED), min(map(int, OVERFLOWS))  # codes from there on are lost
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
        named = [(query.own, *query.candidates) for query in part]
        lanes = _lanes(part, named, settings)
        ends = LaneResults.of(searching(lanes))
        scores = _scores(settings, program, lanes, ends, usage)
        past = 0
        for query, constants in zip(part, named, strict=True):
            own = slice(past, past + len(constants))
            past = own.stop
            checked = _check(checker, lanes[own], ends[own], settings) if checker else 0
            yield _found(query, constants, ends[own], scores.of(own), settings, checked, embedding)


def searching_of(settings: Settings, program: Program, usage: Usage | None = None) -> Searching:
    """The search that the settings name."""
    if settings.search == "exhaustive":
        if settings.backend == "python":
            return lambda lanes: _deepen(program, lanes, settings)
        batch = Batch.of(settings.backend, program, 1)
        exhaustion = Exhaustion(
            settings.height,
            _roomier(replace(Exhaustion().room, successors=batch.piece), settings),
            places=settings.states or Exhaustion().places,
            batch=_exhausted(settings, batch),
            overflow=settings.overflow,
            backend=settings.backend,
            memory=settings.memory,
        )
        return lambda lanes: exhaust_all(program, lanes, exhaustion, usage)
    search = search_of(settings, program)
    if settings.backend != "python":
        return Rollout(program, search, usage).ends
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


def _exhausted(settings: Settings, batch: Batch) -> int:
    """Candidates whose states or proofs are all enumerated, at once."""
    return min(settings.batch or batch.exhausted, batch.exhausted)


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
    """The query itself, then its candidates."""
    return list(_lanes([query], [(query.own, *query.candidates)], settings))


def _lanes(asked: Sequence[Query], named: Sequence[Sequence[int]], settings: Settings) -> Lanes:
    """The lanes of some queries with these constants in their places. Where nothing is drawn all
    ids are 0."""
    counts = list(map(len, named))
    facts = np.array([query.fact for query in asked], np.int64).reshape(-1, 3)
    heads = np.repeat([query.mode == "head" for query in asked], counts)
    places = np.fromiter(chain.from_iterable(named), np.int64, sum(counts))
    whole = np.repeat(facts, counts, axis=0)
    triples = whole.copy()
    triples[np.arange(len(places)), np.where(heads, 1, 2)] = places
    ids = np.zeros(len(places), np.uint64)
    if settings.search == "sampled":
        drawn = [
            lane_id(settings.seed, query.mode, query.fact, constant)
            for query, constants in zip(asked, named, strict=True)
            for constant in constants
        ]
        ids = as_bits(drawn)
    return Lanes(triples, ids, whole if settings.alone else np.full_like(whole, -1))


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


@dataclass(frozen=True, slots=True)
class _Scores:
    """The score of each lane, greater is better, which counts where there is a proof; and numbers
    in the same order."""

    values: Any  # a sequence
    numbers: Column

    def of(self, own: slice) -> _Scores:
        """Those of some lanes."""
        return _Scores(self.values[own], self.numbers[own])


def _scores(
    settings: Settings, program: Program, lanes: Lanes, ends: LaneResults, usage: Usage
) -> _Scores:
    """What lanes are ordered by. Those whose proofs memory does not hold are lost."""
    proved = ends.outcomes == _PROVED
    if settings.score == "weight":
        values = _weights_of(settings, program, lanes, ends, usage)
        places = {value: n for n, value in enumerate(sorted({*values} - {None}))}
        return _Scores(values, np.array([places.get(value, 0) for value in values], np.int64))
    made = np.zeros(len(ends))
    if settings.score == "logprob":
        made = ends.scores
        if np.isnan(made).any():
            raise ScoreError("a score is not a number", fix="look at the weights of the policy")
    elif settings.score == "height":
        made = np.where(proved, -ends.heights, 0).astype(np.float64)
    return _Scores(made, made)


def _weights_of(
    settings: Settings, program: Program, lanes: Lanes, ends: LaneResults, usage: Usage
) -> list[Any]:
    """The weights of lanes that are proved, None of others: a fact needs no rule, and is better
    than what does."""
    heights = ends.heights.tolist()
    proved = [i for i, height in enumerate(heights) if height > 0]
    scores: list[Any] = [(1, 1.0) if height == 0 else None for height in heights]
    asked = [lanes[i] for i in proved]
    if settings.backend == "python":
        found = _weigh_plainly(program, asked, settings.height)
    else:
        batch = _exhausted(settings, Batch.of(settings.backend, program, 1))
        found = weigh_all(program, asked, settings.height, batch, settings.backend, settings.memory)
    for i, weights in zip(proved, found, strict=True):
        if weights is None:
            ends[i] = LOST
            usage.lost += 1
        else:
            scores[i] = (0, aggregate(weights, settings.aggregate or "max"))
    return scores


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


def _found(
    query: Query,
    constants: Sequence[int],
    ends: LaneResults,
    scores: _Scores,
    settings: Settings,
    checked: int,
    embedding: Embedding | None,
) -> Finding:
    """What is found of a query; it is the first of the constants, candidates follow."""
    codes = ends.outcomes
    proved, lost = codes == _PROVED, codes >= _LOST
    others = len(ends) - 1
    above: tuple[int, ...] = ()
    if lost[0]:  # nothing is known: anything may be better
        rank = Rank(0, others, others)
    else:
        # a candidate without an answer may be better or worse: it counts as a tie, so that the
        # optimistic and pessimistic ranks are bounds
        numbers = scores.numbers
        alike = proved == proved[0]
        equal = alike & (numbers == numbers[0]) & ~lost
        equal[0] = False
        better = ((alike & (numbers > numbers[0])) | (proved > proved[0])) & ~lost
        if embedding:
            order = embedding.order([query])[0][list(constants)]
            better, equal = better | (equal & (order > 0)), equal & (order == 0)
        count = int(np.count_nonzero(better))
        if count:
            above = _best(np.flatnonzero(better), query, constants, proved, numbers, embedding)
        rank = Rank(count, int(np.count_nonzero(equal | lost)), others)
    first = ends[0]
    weight = scores.values[0][1] if settings.score == "weight" and proved[0] else None
    return Finding(
        rank,
        first.height,
        Counter({Outcome(code): n for code, n in enumerate(np.bincount(codes).tolist()) if n}),
        int(ends.nears.sum()),
        checked,
        weight[0] if isinstance(weight, tuple) else weight,
        _tally(query, constants, proved, scores, embedding) if settings.auc_pr else None,
        above,
        first.outcome,
    )


def _best(
    which: Column,
    query: Query,
    constants: Sequence[int],
    proved: Column,
    numbers: Column,
    embedding: Embedding | None,
) -> tuple[int, ...]:
    """A few of some lanes' constants, the best first."""
    places = np.array(constants)[which]
    others = embedding.scores([query])[0][places] if embedding else np.zeros(len(places))
    order = np.lexsort((places, -others, -numbers[which], ~proved[which]))
    return tuple(places[order[:LISTED]].tolist())


def _tally(
    query: Query,
    constants: Sequence[int],
    proved: Column,
    scores: _Scores,
    embedding: Embedding | None,
) -> Tally:
    """The scores of a query and its candidates; what has no answer counts as not proved."""
    listed = [x.item() if isinstance(x, np.generic) else x for x in scores.values]
    values = {c: listed[i] for i, c in enumerate(constants) if proved[i]}
    return tally(query, values, embedding.scores([query])[0].tolist() if embedding else None)


def _check(searcher: Searcher, lanes: Lanes, ends: LaneResults, settings: Settings) -> int:
    """Replay every proof; how many there were."""
    if (settings.backend, settings.search) == ("python", "exhaustive"):
        return 0  # it keeps no traces
    proved = np.flatnonzero(ends.outcomes == _PROVED).tolist()
    for i in proved:
        lane, end = lanes[i], ends[i]
        height = settings.height if settings.search != "exhaustive" else end.height
        check_choices(searcher, lane.triple, height or 0, end.choices, lane.without)
    return len(proved)
