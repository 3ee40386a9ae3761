"""Bounds: between which ranks a query's lies, where a limit was met before everything was known.

Of a closure that was stopped, all facts up to the height that was reached are there, so a query
that has a proof stands where it stands, by height. Of one without, and of candidates without,
nothing is known: at best it has the next proof, at worst all others have one before it.

By weight, a proof that is not there yet is at least one rule higher than what was reached, so it
weighs no more than the best chain of so many rules. A query that weighs more by the largest weight
of a rule stands where it stands.

Of a rollout, some searches have no answer for want of room: each of these candidates may be better
than the query, as good or worse, and a query without an answer may be anywhere.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from tenfold.apps.prover.outcome import OVERFLOWS, Outcome
from tenfold.apps.prover.report.ranks import KINDS, Rank, summarise
from tenfold.apps.prover.result import Finding


def bounds(found: Finding, score: str) -> tuple[Rank, Rank]:
    """The best rank that a query may have, and the worst, of any kind.

    >>> from collections import Counter
    >>> unproved = Finding(Rank(2, 7, 9), None, Counter({Outcome.PROVED: 2, Outcome.DEPTH: 8}))
    >>> bounds(unproved, "height")
    (Rank(better=2, ties=0, candidates=9), Rank(better=9, ties=0, candidates=9))
    """
    own = found.height is not None
    count = found.rank.candidates
    if found.outcome is not None:
        return _searched(found)
    if found.final:
        return found.rank, found.rank
    proved = found.outcomes[Outcome.PROVED] - own
    last = Rank(count, 0, count)
    if score == "height":
        return (found.rank, found.rank) if own else (Rank(proved, 0, count), last)
    if score == "binary":
        return Rank(0, proved, count), Rank(0, count, count) if own else last
    return Rank(0, 0, count), last


def _searched(found: Finding) -> tuple[Rank, Rank]:
    """Of a query that was searched for: what has no answer counts as a tie in its rank."""
    better, ties, count = found.rank.better, found.rank.ties, found.rank.candidates
    if found.outcome in OVERFLOWS:
        return Rank(0, 0, count), Rank(count, 0, count)
    lost = sum(found.outcomes[outcome] for outcome in OVERFLOWS)
    return Rank(better, ties - lost, count), Rank(better + lost, ties - lost, count)


def bounded_metrics(found: Iterable[Finding], score: str) -> dict[str, Any]:
    """MRR and Hits as intervals, by kind."""
    pairs = [bounds(one, score) for one in found]
    best, worst = (summarise(ranks) for ranks in (zip(*pairs, strict=True) if pairs else ((), ())))
    hits = {str(n): _between(worst.hits[n], best.hits[n]) for n in best.hits}
    return {"mrr": _between(worst.mrr, best.mrr), "hits": hits}


def _between(low: dict[str, float], high: dict[str, float]) -> dict[str, Any]:
    return {k: None if low[k] != low[k] else [low[k], high[k]] for k in KINDS}
