"""By closure: queries ranked by lookups in what follows from the facts."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from heapq import nsmallest
from typing import Any

import numpy as np

from tenfold.apps.prover.closure.allowance import Allowance
from tenfold.apps.prover.closure.closing import close_by_cost
from tenfold.apps.prover.closure.fixpoint import Closure, Watch, trimmed
from tenfold.apps.prover.closure.joins import Ints, Packing
from tenfold.apps.prover.closure.lookups import Ranking, rank_by_lookup
from tenfold.apps.prover.closure.weights.beyond import beyond
from tenfold.apps.prover.closure.weights.chains import Floats
from tenfold.apps.prover.closure.weights.last import rank_by_weight
from tenfold.apps.prover.input.program import Program, Triple
from tenfold.apps.prover.input.queries import Query
from tenfold.apps.prover.outcome import Outcome
from tenfold.apps.prover.proofs.index import FactIndex
from tenfold.apps.prover.reference.aggregates import aggregate
from tenfold.apps.prover.reference.bottom_up import close
from tenfold.apps.prover.reference.ranks import rank_by_value
from tenfold.apps.prover.reference.weighted_up import weigh
from tenfold.apps.prover.result import LISTED, Finding, Tally, tally
from tenfold.apps.prover.scores.embedding import Embedding
from tenfold.apps.prover.settings import Settings


def close_program(settings: Settings, program: Program, watch: Watch | None = None) -> Closure:
    """The closure of a program, by the backend that the settings name."""
    allowance = Allowance(settings.memory, settings.max_facts)
    if settings.backend != "python":
        return close_by_cost(program, settings.height, settings.backend, allowance, watch)
    reference = close(program, settings.height, watch=watch)
    packing = Packing.of(program)
    facts = sorted(reference.heights)
    heights = np.array([reference.heights[f] for f in facts], np.int64)
    return trimmed(Closure(packing, packing.keys(facts), heights, reference.complete, 0), allowance)


@dataclass(frozen=True, slots=True)
class Classes:
    """The facts of a closure in classes, the lower the better, and their scores by weight."""

    numbers: Ints
    scores: Floats | None = None


def rank_in_closure(
    settings: Settings,
    program: Program,
    closed: Closure,
    asked: Sequence[Query],
    done: int = 0,
    embedding: Embedding | None = None,
) -> Iterator[Finding]:
    """What is found of each query after the first `done`, in order."""
    unproved = Outcome.REFUTED if closed.complete else Outcome.DEPTH
    classes = _classes(settings, program, closed, asked)
    ranked = _ranked(settings, program, closed, classes, asked[done:], embedding)
    tallies = _tallies(settings, closed, classes, asked[done:], embedding)
    by_height = classes.scores is None and embedding is None  # then the closure itself tells
    index = None if by_height else FactIndex(replace(closed, heights=classes.numbers))
    most = _beyond(settings, program, closed)
    for query, one, counted in zip(asked[done:], ranked, tallies, strict=True):
        place = _place(closed, query.fact)
        own = place is not None
        weight = None
        if place is not None and classes.scores is not None:
            weight = float(classes.scores[place])
        outcomes = Counter({Outcome.PROVED: one.proved + own})
        outcomes[unproved] += one.rank.candidates + 1 - one.proved - own
        yield Finding(
            one.rank,
            None if place is None else int(closed.heights[place]),
            +outcomes if settings.score != "embedding" else Counter(),
            weight=weight,
            tally=counted,
            above=_above(query, one.rank.better, index, embedding) if index else (),
            final=most is not None and weight is not None and weight > most[query.fact[0]],
        )


def _beyond(settings: Settings, program: Program, closed: Closure) -> list[float] | None:
    """The most that facts of each predicate can weigh by proofs that were cut off; None where that
    says nothing of ranks: other proofs count, too, unless the largest weight alone does."""
    if closed.stopped is None or (settings.score, settings.aggregate or "max") != ("weight", "max"):
        return None
    return beyond(program, closed.height)


def _above(
    query: Query, better: int, index: FactIndex, embedding: Embedding | None
) -> tuple[int, ...]:
    """A few of the candidates that are better than a query, the best first."""
    if not better:
        return ()
    p, s, o = query.fact
    row = index.column(p, o) if query.mode == "head" else index.row(p, s)
    if embedding is None:
        proved = [c for c in row if c in query.pool and c not in query.known]
        return tuple(nsmallest(min(better, LISTED), proved, key=lambda c: (row[c], c)))
    candidates = np.array(query.candidates)
    classes = np.array([row.get(c, np.inf) for c in query.candidates])
    order = np.lexsort((candidates, -embedding.scores([query])[0][candidates], classes))
    return tuple(candidates[order[: min(better, LISTED)]].tolist())


def _place(closed: Closure, fact: Triple) -> int | None:
    key = closed.packing.keys([fact])[0]
    place = int(np.searchsorted(closed.keys, key))
    return place if place < len(closed.keys) and closed.keys[place] == key else None


def _classes(
    settings: Settings, program: Program, closed: Closure, asked: Sequence[Query]
) -> Classes:
    """The facts in classes by the score that the settings name."""
    if settings.score == "binary":
        return Classes(np.zeros_like(closed.heights))
    if settings.score != "weight":
        return Classes(closed.heights)
    how = settings.aggregate or "max"
    if settings.backend != "python":
        return Classes(
            *rank_by_weight(program, closed, asked, settings.height, how, settings.backend)
        )
    rules = weigh(program, settings.height).rules
    scores = {
        fact: aggregate([by[place] for place in sorted(by)], how) for fact, by in rules.items()
    }
    numbers = {score: i for i, score in enumerate(sorted(set(scores.values()), reverse=True), 1)}
    facts = closed.by_triple()
    tops = [scores.get(fact, 1.0) for fact in facts]
    return Classes(
        np.array([numbers[scores[f]] if f in scores else 0 for f in facts], np.int64),
        np.array([top[0] if isinstance(top, tuple) else top for top in tops]),
    )


def _ranked(
    settings: Settings,
    program: Program,
    closed: Closure,
    classes: Classes,
    asked: Sequence[Query],
    embedding: Embedding | None,
) -> Iterator[Ranking]:
    sorted_ = replace(closed, heights=classes.numbers)
    breaker = embedding.order if embedding else None
    if settings.backend != "python":
        return rank_by_lookup(
            asked, program, sorted_, settings.batch or 256, settings.backend, breaker
        )
    return _plainly(asked, sorted_, embedding)


def _plainly(
    asked: Sequence[Query], sorted_: Closure, embedding: Embedding | None
) -> Iterator[Ranking]:
    values = {fact: -number for fact, number in sorted_.by_triple().items()}
    orders = (embedding.order([query])[0].tolist() for query in asked) if embedding else None
    for query, rank in zip(asked, rank_by_value(asked, values, orders), strict=True):
        proved = sum(query.corrupt(c) in values for c in query.pool - query.known)
        yield Ranking(rank, values.get(query.fact), proved)


def _tallies(
    settings: Settings,
    closed: Closure,
    classes: Classes,
    asked: Sequence[Query],
    embedding: Embedding | None,
) -> Iterator[Tally | None]:
    """The scores of each query and of its candidates, where they are wanted."""
    if not settings.auc_pr:
        yield from (None for _ in asked)
        return
    rows: dict[tuple[str, int, int], dict[int, Any]] = {}
    for (p, s, o), number in replace(closed, heights=classes.numbers).by_triple().items():
        rows.setdefault(("head", p, o), {})[s] = -number
        rows.setdefault(("tail", p, s), {})[o] = -number
    for query in asked:
        values = rows.get((query.mode, query.fact[0], query.kept), {})
        yield tally(query, values, embedding.scores([query])[0].tolist() if embedding else None)
