"""Closure ranks: the rank of each query as lookups in a closure, a batch of queries at a time.

The facts that share a query's predicate and kept constant are one range of the index. They are
written into a row with a place for every constant; the row says the height of every candidate.
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


class Batch(NamedTuple):
    """Queries of one batch: where their range begins, what they ask, and which pool they have."""

    start: Traced
    own: Traced
    pool: Traced


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
    proofs = lookup(closed.keys, closed.heights, closed.packing)
    known = closed.packing.keys(sorted(_known(asked)))
    filtered = lookup(known, np.ones(len(known), np.int64), closed.packing)
    width = max(1, len(program.constants))
    for first in range(0, len(asked), batch):
        part = asked[first : first + batch]
        pools, batched = _batch(part, closed.packing, width, batch)
        order = np.zeros((1, 1), np.int8)
        if breaker is not None:
            order = np.zeros((batch, width), np.int8)
            order[: len(part)] = breaker(part)
        result = rank_batch.on(backend)(proofs, filtered, pools, batched, order)
        for better, ties, count, height, proved in np.stack(result, axis=1)[: len(part)].tolist():
            rank = Rank(better, ties, count)
            yield Ranking(rank, None if height == UNPROVED else height, proved)


def _known(asked: Sequence[Query]) -> set[Triple]:
    """The triples that are no corruptions of some query."""
    ranges = {(q.fact[0], q.mode, q.kept): q for q in asked}
    return {query.corrupt(c) for query in ranges.values() for c in query.known}


def _batch(
    part: Sequence[Query], packing: Packing, width: int, size: int
) -> tuple[np.ndarray[tuple[int, int], np.dtype[np.bool_]], Batch]:
    """The pools of some queries and the queries in numbers, the last batch filled with zeros.

    There are as many places for pools as for queries, so that every batch has the same shapes.
    """
    pools = np.zeros((size, width), bool)
    numbers: dict[int, int] = {}
    columns = np.zeros((3, size), np.int64)
    for i, query in enumerate(part):
        if id(query.pool) not in numbers:
            pools[len(numbers), list(query.pool)] = True
            numbers[id(query.pool)] = len(numbers)
        start = packing.keys([(query.fact[0], query.kept, 0)])[0]
        start += packing.reverse if query.mode == "head" else 0
        columns[:, i] = start, query.own, numbers[id(query.pool)]
    return pools, Batch(*columns)


def lookup(keys: Ints, values: Ints, packing: Packing) -> Lookup:
    """Facts, by subject and by object; their keys are sorted.

    Those by object lie above the others, so only these are sorted.
    """
    count = len(keys)
    turned = packing.turned(keys)
    order = np.argsort(turned)  # each is there once
    room = padded(2 * count, 64)
    sorted_, numbers = np.empty(room, np.int64), np.empty(room, np.int32)
    sorted_[:count], numbers[:count] = keys, values
    np.take(turned, order, out=sorted_[count : 2 * count])
    numbers[count : 2 * count] = values[order]
    sorted_[2 * count :], numbers[2 * count :] = END, 0
    return Lookup(sorted_, numbers)


@traced()
def rank_batch(
    proofs: Lookup, filtered: Lookup, pools: Traced, batch: Batch, order: Traced
) -> tuple[Traced, Traced, Traced, Traced, Traced]:
    """Of each query: the candidates better, as good, all; its own height; candidates proved."""
    size, width = pools.shape
    heights = _row(proofs, batch.start, tn.full((size, width), UNPROVED, np.int32))
    known = _row(filtered, batch.start, tn.full((size, width), 2, np.int32))
    allowed = pools[batch.pool] & (known == 2)
    mine = heights[tn.arange(size), batch.own]
    tied = allowed & (heights == mine[:, None])
    better = ((allowed & (heights < mine[:, None])) | (tied & (order > 0))).sum(axis=1)
    ties = (tied & (order == 0)).sum(axis=1)
    proved = (allowed & (heights < UNPROVED)).sum(axis=1)
    return better, ties, allowed.sum(axis=1), mine.astype(np.int64), proved


def _row(table: Lookup, start: Traced, row: Traced) -> Traced:
    """A row for each query, with the values of the facts in its range at their constants."""
    size, width = row.shape
    place = np.searchsorted(table.keys, start)
    end = np.searchsorted(table.keys, start + width)
    lanes = tn.arange(size)

    def write(step: Traced, row: Traced) -> Traced:
        at = place + step
        inside = at < end
        at = np.minimum(at, table.keys.shape[0] - 1)
        constant = np.where(inside, table.keys[at] - start, 0)
        np.minimum.at(row, (lanes, constant), np.where(inside, table.values[at], 2**31 - 1))
        return row

    return tn.fori_loop(0, (end - place).max(), write, row)
