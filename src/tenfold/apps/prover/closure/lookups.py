"""Closure ranks: the rank of each query as lookups in a closure, a batch of queries at a time.

The facts that share a query's predicate and kept constant are one range of the index. They are
written into a row with a place for every constant; the row says the height of every candidate. One
program compares rows, whatever the facts.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

import tenfold as tn
from tenfold.apps.prover.backend import padded, traced
from tenfold.apps.prover.closure.fixpoint import Closure
from tenfold.apps.prover.closure.joins import Ints, Packing
from tenfold.apps.prover.columns import END, Traced
from tenfold.apps.prover.input.program import Program, Triple
from tenfold.apps.prover.input.queries import Query
from tenfold.apps.prover.report.ranks import Rank

Breaker = Callable[[Sequence[Query]], np.ndarray[Any, np.dtype[np.int8]]]  # [queries, constants]
UNPROVED = int(np.iinfo(np.int32).max)  # the height of what has no proof


class Lookup(NamedTuple):
    """Keys of facts, and their keys by object, sorted, with a number for each."""

    keys: Traced
    values: Traced


@dataclass(frozen=True, slots=True)
class Ranking:
    """The rank of a query, the height of its lowest proof, and how many corruptions have one."""

    rank: Rank
    height: int | None
    proved: int


def rank_by_lookup(
    asked: Sequence[Query],
    program: Program,
    closed: Closure,
    batch: int = 256,
    backend: str = "compiled",
    breaker: Breaker | None = None,
) -> Iterator[Ranking]:
    """The rank of each query, in order; nothing of it depends on the size of the batch.

    A breaker orders candidates with equal heights: above 0 for those that are better than the
    query's own constant, below 0 for those that are worse.
    """
    proofs = lookup(closed.keys, closed.heights, closed.packing, spare=False)
    known = closed.packing.keys(sorted(_known(asked)))
    filtered = lookup(known, np.zeros(len(known), np.int64), closed.packing, spare=False)
    width = max(1, len(program.constants))
    for first in range(0, len(asked), batch):
        part = asked[first : first + batch]
        starts = _starts(part, closed.packing, batch)
        heights = _rows(proofs, starts, width)
        allowed = _pools(part, batch, width) & (_rows(filtered, starts, width) == UNPROVED)
        own = np.zeros(batch, np.int64)
        own[: len(part)] = [query.own for query in part]
        order = np.zeros((1, 1), np.int8)
        if breaker is not None:
            order = np.zeros((batch, width), np.int8)
            order[: len(part)] = breaker(part)
        result = rank_batch.on(backend)(heights, allowed, own, order)
        for better, ties, count, height, proved in np.stack(result, axis=1)[: len(part)].tolist():
            rank = Rank(better, ties, count)
            yield Ranking(rank, None if height == UNPROVED else height, proved)


def _known(asked: Sequence[Query]) -> set[Triple]:
    """The triples that are no corruptions of some query."""
    ranges = {(q.fact[0], q.mode, q.kept): q for q in asked}
    return {query.corrupt(c) for query in ranges.values() for c in query.known}


def _starts(part: Sequence[Query], packing: Packing, size: int) -> Ints:
    """Where the ranges of some queries begin; those that fill the batch have some range."""
    starts = np.zeros(size, np.int64)
    starts[: len(part)] = packing.keys([(query.fact[0], query.kept, 0) for query in part])
    starts[: len(part)][[query.mode == "head" for query in part]] += packing.reverse
    return starts


def _pools(part: Sequence[Query], size: int, width: int) -> Any:
    """Which constants are candidates of each query; queries share their pools."""
    pools = {id(query.pool): query.pool for query in part}
    made = {}
    for number, pool in pools.items():
        made[number] = np.zeros(width, bool)
        made[number][list(pool)] = True
    allowed = np.zeros((size, width), bool)
    for row, query in zip(allowed, part, strict=False):
        row[:] = made[id(query.pool)]
    return allowed


def _rows(table: Lookup, starts: Ints, width: int) -> Any:
    """A row for each query, with the values of the facts in its range at their constants."""
    first, past = np.searchsorted(table.keys, starts), np.searchsorted(table.keys, starts + width)
    counts = past - first
    row = np.repeat(np.arange(len(starts)), counts)
    at = np.arange(len(row)) + np.repeat(past - np.cumsum(counts), counts)
    made = np.full((len(starts), width), UNPROVED, np.int32)
    made[row, table.keys[at] - starts[row]] = table.values[at]
    return made


def lookup(keys: Ints, values: Ints, packing: Packing, spare: bool = True) -> Lookup:
    """Facts, by subject and by object; their keys are sorted. With `spare` there are END keys up
    to a power of two, so that programs that take them are compiled once.

    Those by object lie above the others, so only these are sorted.
    """
    count = len(keys)
    turned = packing.turned(keys)
    order = np.argsort(turned)  # each is there once
    room = padded(2 * count, 64) if spare else 2 * count
    sorted_, numbers = np.empty(room, np.int64), np.empty(room, np.int32)
    sorted_[:count], numbers[:count] = keys, values
    np.take(turned, order, out=sorted_[count : 2 * count])
    numbers[count : 2 * count] = values[order]
    sorted_[2 * count :], numbers[2 * count :] = END, 0
    return Lookup(sorted_, numbers)


@traced()
def rank_batch(
    heights: Traced, allowed: Traced, own: Traced, order: Traced
) -> tuple[Traced, Traced, Traced, Traced, Traced]:
    """Of each query: the candidates better, as good, all; its own height; candidates proved."""
    mine = heights[tn.arange(own.shape[0]), own]
    tied = allowed & (heights == mine[:, None])
    better = ((allowed & (heights < mine[:, None])) | (tied & (order > 0))).sum(axis=1)
    ties = (tied & (order == 0)).sum(axis=1)
    proved = (allowed & (heights < UNPROVED)).sum(axis=1)
    return better, ties, allowed.sum(axis=1), mine.astype(np.int64), proved
