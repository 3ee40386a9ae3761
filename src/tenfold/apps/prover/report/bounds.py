"""Bounds: between which ranks a query's lies, where a closure was stopped before its height.

All facts up to the height that was reached are there, so a query that has a proof stands where it
stands, by height. Of one without, and of candidates without, nothing is known: at best it has the
next proof, at worst all others have one before it.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from tenfold.apps.prover.outcome import Outcome
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
    proved = found.outcomes[Outcome.PROVED] - own
    last = Rank(count, 0, count)
    if score == "height":
        return (found.rank, found.rank) if own else (Rank(proved, 0, count), last)
    if score == "binary":
        return Rank(0, proved, count), Rank(0, count, count) if own else last
    return Rank(0, 0, count), last


def bounded_metrics(found: Iterable[Finding], score: str) -> dict[str, Any]:
    """MRR and Hits as intervals, by kind."""
    pairs = [bounds(one, score) for one in found]
    best, worst = (summarise(ranks) for ranks in (zip(*pairs, strict=True) if pairs else ((), ())))
    hits = {str(n): _between(worst.hits[n], best.hits[n]) for n in best.hits}
    return {"mrr": _between(worst.mrr, best.mrr), "hits": hits}


def _between(low: dict[str, float], high: dict[str, float]) -> dict[str, Any]:
    return {k: None if low[k] != low[k] else [low[k], high[k]] for k in KINDS}
