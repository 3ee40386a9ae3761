"""By closure: queries ranked by lookups in what follows from the facts."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace

import numpy as np

from tenfold.apps.prover.closure.allowance import Allowance
from tenfold.apps.prover.closure.closing import close_by_cost
from tenfold.apps.prover.closure.fixpoint import Closure, trimmed
from tenfold.apps.prover.closure.joins import Packing
from tenfold.apps.prover.closure.lookups import Ranking, rank_by_lookup
from tenfold.apps.prover.input.program import Program
from tenfold.apps.prover.input.queries import Query
from tenfold.apps.prover.outcome import Outcome
from tenfold.apps.prover.reference.bottom_up import close
from tenfold.apps.prover.reference.ranks import rank_by_height
from tenfold.apps.prover.result import Finding
from tenfold.apps.prover.settings import Settings


def close_program(settings: Settings, program: Program) -> Closure:
    """The closure of a program, by the backend that the settings name."""
    allowance = Allowance(settings.memory, settings.max_facts)
    if settings.backend != "python":
        return close_by_cost(program, settings.height, settings.backend, allowance)
    reference = close(program, settings.height)
    packing = Packing.of(program)
    facts = sorted(reference.heights)
    heights = np.array([reference.heights[f] for f in facts], np.int64)
    return trimmed(Closure(packing, packing.keys(facts), heights, reference.complete, 0), allowance)


def rank_in_closure(
    settings: Settings, program: Program, closed: Closure, asked: Sequence[Query]
) -> Iterator[Finding]:
    """What is found of each query, in order."""
    unproved = Outcome.REFUTED if closed.complete else Outcome.DEPTH
    if settings.score == "binary":
        closed = replace(closed, heights=np.zeros_like(closed.heights))
    if settings.backend != "python":
        ranked = rank_by_lookup(asked, program, closed, settings.batch or 256, settings.backend)
    else:
        ranked = _plainly(asked, closed)
    for one in ranked:
        own = one.height is not None
        outcomes = Counter({Outcome.PROVED: one.proved + own})
        outcomes[unproved] += one.rank.candidates + 1 - one.proved - own
        yield Finding(one.rank, one.height, +outcomes)


def _plainly(asked: Sequence[Query], closed: Closure) -> Iterator[Ranking]:
    heights = closed.by_triple()
    for query, rank in zip(asked, rank_by_height(asked, heights), strict=True):
        proved = sum(query.corrupt(c) in heights for c in query.pool - query.known)
        yield Ranking(rank, heights.get(query.fact), proved)
