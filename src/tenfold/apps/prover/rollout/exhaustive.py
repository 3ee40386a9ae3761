"""Exhaustive rollout: every state that can be reached, level by level, for many lanes at once.

One `while_loop` for one height. All states met are kept in a store, each with its lane and with
where it comes from; a level is a range of it. A piece takes as many states of the level as their
successors have room, resolves them, and appends what its lane has not seen. States are found again
by a hash, which names a bucket, and told apart by all their goals. When room is wanted the loop
stops, and goes on from there with more.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

import tenfold as tn
from tenfold.apps.prover.backend import traced
from tenfold.apps.prover.columns import END, Traced, compact
from tenfold.apps.prover.outcome import Outcome
from tenfold.apps.prover.resolution.matching import Without, apart
from tenfold.apps.prover.resolution.step import hopeless, stepped
from tenfold.apps.prover.resolution.tables import Tables, take
from tenfold.apps.prover.rollout.draws import mix
from tenfold.apps.prover.rollout.loop import RUNNING
from tenfold.apps.prover.rollout.seen import packed

GOING, ENDED, ROWS, STORE = range(4)  # ROWS, STORE: more of these are needed
HASH_BITS = 62
AHEAD = 4  # for each successor of a piece, states looked at for those of lanes that have not ended


class Store(NamedTuple):
    """Every state met. After `places` of them there is room for the successors of one piece."""

    words: Traced  # [places + rows, A]
    lane: Traced
    parent: Traced  # the place of the state before
    choice: Traced  # which of its successors it is
    next: Traced  # another state of the same bucket, or -1


class Search(NamedTuple):
    """Where a search stands."""

    store: Store
    heads: Traced  # [places + 1]: a state of each bucket, or -1; the last is no bucket
    used: Traced  # places of the store
    at: Traced  # the next state of this level
    end: Traced  # of this level
    outcome: Traced  # [lanes]
    cut: Traced  # [lanes]: whether the height cut something off
    last: Traced  # [lanes]: the place of the state before the proof
    choice: Traced  # [lanes]: which of its successors is the proof
    status: Traced
    pieces: Traced  # resolved in this call


class New(NamedTuple):
    """States that may be added to a store."""

    words: Traced
    lane: Traced
    parent: Traced
    choice: Traced
    hashes: Traced  # END for those that are not wanted


@traced("names")
def exhaust(
    search: Search,
    without: Without,
    tables: Tables,
    mask: Traced,
    pieces: Traced,
    names: int,
) -> Search:
    """A search from where it stands on, in so many pieces at most; `names` variables of a state."""
    rows = search.store.lane.shape[0] - (search.heads.shape[0] - 1)

    tables = apart(tables, names)

    def step(search: Search) -> Search:
        return _step(search, without, tables, mask, rows, names)

    done: Search = tn.while_loop(lambda s: (s.status == GOING) & (s.pieces < pieces), step, search)
    return done


def grown(search: Search, mask: np.uint64, places: int, rows: int) -> Search:
    """The search with more room, outside of a trace."""
    used = int(search.used)

    def longer(column: Traced) -> Traced:
        made = np.zeros((places + rows, *column.shape[1:]), np.int64)
        made[:used] = column[:used]
        return made

    store = Store(*(longer(column) for column in search.store))
    hashes = hashes_of(store.words[:used], store.lane[:used], mask)
    bucket = _bucket(hashes, places)
    order = np.argsort(bucket, kind="stable")
    sorted_ = bucket[order]
    links, heads = np.full(used, -1), np.full(places + 1, -1)
    same = sorted_[1:] == sorted_[:-1]
    links[order[1:][same]] = order[:-1][same]
    heads[sorted_] = order  # of equal buckets the last is written last
    store.next[:used] = links
    return search._replace(store=store, heads=heads, status=np.int64(GOING))


def hashes_of(words: Traced, lane: Traced, mask: Traced) -> Traced:
    """A number of 62 bits for each state of each lane."""
    mixed = mix(lane.astype(np.uint64) + np.uint64(1))
    for i in range(words.shape[1]):
        mixed = mix(mixed + words[:, i].astype(np.uint64) * np.uint64(0x9E3779B97F4A7C15))
    return ((mixed & mask) >> np.uint64(64 - HASH_BITS)).astype(np.int64)


def _bucket(hashes: Traced, places: int) -> Traced:
    """The bucket of a hash: as many as there are places, a power of two; it rises with the hash."""
    return hashes >> (HASH_BITS - (places.bit_length() - 1))


def _step(
    search: Search, without: Without, tables: Tables, mask: Traced, rows: int, names: int
) -> Search:
    """The next piece of this level, or the next level."""
    store = search.store
    size = store.words.shape[1]
    here, count, beyond = _next(search, rows)
    lane = take(store.lane, here)
    made = stepped(
        np.take(store.words, here, axis=0, mode="clip").T,
        tn.arange(rows) < count,
        Without(*(take(column, lane) for column in without)),
        tables,
        rows,
        names,
        max(AHEAD * rows, tables.each.shape[0]),
    )
    taken = np.minimum(made.taken, count)
    row, k, inside = made.row, made.k, made.inside
    home = take(lane, row)
    lanes = search.outcome.shape[0]
    slot = tn.arange(rows)
    goals = (made.words != 0).sum(axis=0)
    words = packed(made.words, size)

    def of_lane(flags: Traced, which: Traced) -> Traced:
        seen = tn.zeros(lanes + 1, np.int64)
        np.maximum.at(seen, np.where(flags, which, lanes), 1)
        return seen[:lanes] > 0

    proof = inside & (goals == 0)
    first = tn.full(lanes + 1, rows, np.int64)
    np.minimum.at(first, np.where(proof, home, lanes), slot)
    which = np.minimum(first[:lanes], rows - 1)
    proved = first[:lanes] < rows
    # more goals or variables than there is room for: the lane ends, and is never proved by it
    atoms = of_lane(inside & (goals > size), home)
    variables = of_lane(inside & (made.variables > names), home)
    outcome = np.where(proved, int(Outcome.PROVED), search.outcome)
    outcome = np.where(variables, int(Outcome.OVERFLOW_VARS), outcome)
    outcome = np.where(atoms, int(Outcome.OVERFLOW_ATOMS), outcome)
    # nothing of a lane that has ended is kept, nor what has no successors
    dead, blocked = hopeless(words[0], tables)
    cut = of_lane(made.cut & (slot < taken), lane) | of_lane(blocked & inside, home)
    wanted = inside & ~dead & (outcome[home] == RUNNING)
    hashes = np.where(wanted, hashes_of(words.T, home, mask), END)
    new = New(words.T, home, take(here, row), k, hashes)
    order = np.argsort(hashes)
    fresh = wanted & ~_stored(search, new) & ~_doubled(new, order)
    # what a piece that does not fit has written lies after the places in use
    added = _added(search, new, fresh, order)
    stuck = (taken == 0) & (count > 0)
    full = added.used > search.heads.shape[0] - 1
    good = ~(stuck | full)
    at = np.where(taken < count, here[np.minimum(taken, rows - 1)], beyond)
    over = at >= search.end
    done = (over & (added.used == search.end)) | ~(outcome == RUNNING).any()
    status = np.where(done, ENDED, GOING)
    status = np.where(stuck, ROWS, np.where(full, STORE, status))
    return added._replace(
        used=np.where(good, added.used, search.used),
        at=np.where(good, at, search.at),
        end=np.where(good & over, added.used, search.end),
        outcome=np.where(good, outcome, search.outcome),
        cut=np.where(good, search.cut | cut, search.cut),
        last=np.where(good & proved, here[row][which], search.last),
        choice=np.where(good & proved, k[which], search.choice),
        status=status,
        pieces=search.pieces + 1,
    )


def _next(search: Search, rows: int) -> tuple[Traced, Traced, Traced]:
    """The next states of this level whose lanes have not ended, as many as there are rows at most,
    and how many they are; and the place after all that were looked at."""
    place = search.at + tn.arange(AHEAD * rows)
    lane = search.store.lane[np.minimum(place, search.store.lane.shape[0] - 1)]
    live = (place < search.end) & (search.outcome[lane] == RUNNING)
    chosen, count = compact(live, rows)
    here = np.minimum(search.at + chosen, search.store.lane.shape[0] - 1)
    last = np.where(count > rows, here[-1] + 1, search.at + AHEAD * rows)
    return here, np.minimum(count, rows), np.minimum(last, search.end)


def _stored(search: Search, new: New) -> Traced:
    """Which states are in the store: in the same bucket, with the same goals."""
    store, places = search.store, search.heads.shape[0] - 1
    wanted = new.hashes < END
    first = search.heads[np.where(wanted, _bucket(new.hashes, places), places)]

    def look(carry: tuple[Traced, Traced]) -> tuple[Traced, Traced]:
        at, found = carry
        there = np.maximum(at, 0)
        same = (store.words[there] == new.words).all(axis=1) & (store.lane[there] == new.lane)
        found = found | (same & (at >= 0))
        return np.where(found | (at < 0), -1, store.next[there]), found

    found: Traced = tn.while_loop(lambda c: (c[0] >= 0).any(), look, (first, ~(first == first)))[1]
    return found


def _doubled(new: New, order: Traced) -> Traced:
    """Which states are the same as one before them in this piece; `order` sorts their hashes."""
    keys, goals, lane = new.hashes[order], new.words[order], new.lane[order]
    count = keys.shape[0]
    places = tn.arange(count)

    def back(step: Traced) -> Traced:
        return np.maximum(places - step, 0)

    def samehashes_of(step: Traced) -> Traced:
        return (keys[back(step)] == keys) & (places >= step) & (keys < END)

    def look(carry: tuple[Traced, Traced]) -> tuple[Traced, Traced]:
        step, found = carry
        same = (goals[back(step)] == goals).all(axis=1) & (lane[back(step)] == lane)
        return step + 1, found | (same & samehashes_of(step))

    one = places.min() + 1
    found = tn.while_loop(lambda c: samehashes_of(c[0]).any(), look, (one, keys != keys))[1]
    result = tn.zeros(count, bool)
    result[order] = found
    return result


def _added(search: Search, new: New, fresh: Traced, order: Traced) -> Search:
    """The search with the fresh states after the others in its store, each in its bucket."""
    rows = fresh.shape[0]
    chosen, count = compact(fresh, rows)
    ranks = np.cumsum(fresh.astype(np.int64)) - 1
    links, heads = _linked(search, new, fresh, order, ranks)
    parts = (*(column[chosen] for column in new[:-1]), links)
    store = Store(
        *(
            tn.dynamic_update(column, part, (search.used, *(0,) * (column.ndim - 1)))
            for column, part in zip(search.store, parts, strict=True)
        )
    )
    return search._replace(store=store, heads=heads, used=search.used + count)


def _linked(
    search: Search, new: New, fresh: Traced, order: Traced, ranks: Traced
) -> tuple[Traced, Traced]:
    """What follows each fresh state in its bucket, in the order of their places, and the heads.

    Sorted by their hashes, the fresh states of one bucket stand side by side: each is followed by
    the one before it, the first of them by what the bucket had.
    """
    places = search.heads.shape[0] - 1
    rows = fresh.shape[0]
    sorted_, count = compact(fresh[order], rows)
    row = order[sorted_]
    there = tn.arange(rows) < count
    bucket = np.where(there, _bucket(np.where(there, new.hashes[row], 0), places), places)
    rank = np.where(there, ranks[row], rows)
    before, after = np.roll(bucket, 1), np.roll(bucket, -1)
    lone = tn.arange(rows) == 0
    continued = (before == bucket) & ~lone
    link = np.where(continued, search.used + np.roll(rank, 1), search.heads[bucket])
    links = tn.full(rows + 1, -1, np.int64)
    links[rank] = link
    ends = there & ((after != bucket) | (tn.arange(rows) == rows - 1))
    heads = search.heads.copy()
    heads[np.where(ends, bucket, places)] = np.where(ends, search.used + rank, -1)
    return links[:rows], heads
