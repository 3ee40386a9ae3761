"""Exhaustive rollout: every state that can be reached, level by level, for many lanes at once.

One `while_loop` for one height. All states met are kept in a store, each with its lane and with
where it comes from; a level is a range of it. A piece takes as many states of the level as their
successors have room, resolves them, and adds what its lane has not seen. States are found again
by a hash and told apart by all their goals.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

import tenfold as tn
from tenfold.apps.prover.backend import traced
from tenfold.apps.prover.columns import END, Traced, find, running_sum, spread
from tenfold.apps.prover.draws import mix
from tenfold.apps.prover.outcome import Outcome
from tenfold.apps.prover.resolution import Base, States, begin, build, match
from tenfold.apps.prover.rollout import RUNNING, word_bits, words

GOING, ENDED, ROWS, STORE = range(4)  # ROWS, STORE: more of these are needed


class Store(NamedTuple):
    """Every state met. The last place of each column takes what is not kept."""

    words: Traced  # [places, A]
    lane: Traced
    counts: Traced
    parent: Traced  # the place of the state before
    choice: Traced  # which of its successors it is
    hashes: Traced


class Search(NamedTuple):
    """Where a search stands."""

    store: Store
    used: Traced  # places of the store
    at: Traced  # the next state of this level
    end: Traced  # of this level
    outcome: Traced  # [lanes]
    cut: Traced  # [lanes]: whether the height cut something off
    last: Traced  # [lanes]: the place of the state before the proof
    choice: Traced  # [lanes]: which of its successors is the proof
    status: Traced
    pieces: Traced  # resolved in this call


@traced("rows", "places", "size", "names")
def exhaust(
    triples: Traced,
    without: Traced,
    height: Traced,
    base: Base,
    mask: Traced,
    pieces: Traced,
    rows: int,
    places: int,
    size: int,
    names: int,
) -> Search:
    """Search for a proof of each triple within a height, in so many pieces at most.

    `rows` successors at a time, `places` for states, `size` goals and `names` variables of each.
    `mask` says which bits of a hash count.
    """

    def step(search: Search) -> Search:
        return _step(search, without, base, mask, rows, names)

    first = _first(triples, without, height, base, mask, places, size)
    search: Search = tn.while_loop(lambda s: (s.status == GOING) & (s.pieces < pieces), step, first)
    # what ran to the end without a proof is refuted, unless the height cut something off
    unproved = np.where(search.cut, int(Outcome.DEPTH), int(Outcome.REFUTED))
    ended = np.where(search.outcome == RUNNING, unproved, search.outcome)
    return search._replace(outcome=ended)


def _first(
    triples: Traced,
    without: Traced,
    height: Traced,
    base: Base,
    mask: Traced,
    places: int,
    size: int,
) -> Search:
    count = triples.shape[0]
    start = begin(triples, height, without, base, size).states
    lane = tn.arange(count)
    packed = words(start.goals, base)

    def column(values: Traced, fill: int, dtype: type) -> Traced:
        made = tn.full((places + 1, *values.shape[1:]), fill, dtype)
        made[:count] = values.astype(dtype)
        return made

    store = Store(
        column(packed, 0, np.int64),
        column(lane, 0, np.int64),
        column(start.count, 0, np.int64),
        column(lane * 0 - 1, -1, np.int64),
        column(lane * 0, 0, np.int64),
        column(_hash(packed, lane, mask), END, np.int64),
    )
    zero = lane * 0
    number = zero.sum()
    return Search(
        store,
        number + count,
        number,
        number + count,
        np.where(start.count == 0, int(Outcome.PROVED), RUNNING),
        zero > 0,
        zero - 1,
        zero,
        number + GOING,
        number,
    )


def _hash(packed: Traced, lane: Traced, mask: Traced) -> Traced:
    """A number of 62 bits for each state of each lane."""
    mixed = mix(lane.astype(np.uint64) + np.uint64(1))
    for i in range(packed.shape[1]):
        mixed = mix(mixed + packed[:, i].astype(np.uint64) * np.uint64(0x9E3779B97F4A7C15))
    return ((mixed & mask) >> np.uint64(2)).astype(np.int64)


def _goals(packed: Traced, base: Base) -> Traced:
    """Words as goals again."""
    bits = word_bits(base.bits)
    half = 1 << (bits - 1)
    term = (1 << bits) - 1
    wide = packed >> 10
    there = packed != 0
    return np.stack(
        [
            np.where(there, (wide >> 2 * bits) - 1, -1),
            np.where(there, ((wide >> bits) & term) - half, 0),
            np.where(there, (wide & term) - half, 0),
            np.where(there, packed & 1023, 0),
        ],
        axis=-1,
    ).astype(np.int32)


def _step(
    search: Search, without: Traced, base: Base, mask: Traced, rows: int, names: int
) -> Search:
    """The next piece of this level, or the next level."""
    store = search.store
    size = store.words.shape[1]
    place = search.at + tn.arange(rows)
    here = np.minimum(place, store.lane.shape[0] - 1)
    lane = store.lane[here]
    live = (place < search.end) & (search.outcome[lane] == RUNNING)
    states = States(_goals(store.words[here], base), np.where(live, store.counts[here], 0))
    found = match(states, without[lane], base)
    counts = found.facts + found.rules
    ends = running_sum(counts)
    # the first state whose successors do not fit is left for the next piece, with those after it
    taken = (ends <= rows).sum()
    taken = np.minimum(taken, search.end - search.at)
    total = np.where(tn.arange(rows) < taken, ends, 0).max()
    slot = tn.arange(rows)
    row = np.minimum(spread(np.minimum(ends, total), rows), rows - 1)
    inside = slot < total
    k = np.where(inside, slot - (ends[row] - counts[row]), 0)
    made = build(states, found, row, k, without[lane], base)
    home = lane[row]
    new = words(made.states.goals, base)
    lanes = search.outcome.shape[0]

    def of_lane(flags: Traced, which: Traced) -> Traced:
        seen = tn.zeros(lanes + 1, np.int64)
        np.maximum.at(seen, np.where(flags, which, lanes), 1)
        return seen[:lanes] > 0

    proof = inside & (made.states.count == 0)
    first = tn.full(lanes + 1, rows, np.int64)
    np.minimum.at(first, np.where(proof, home, lanes), slot)
    which = np.minimum(first[:lanes], rows - 1)
    proved = first[:lanes] < rows
    # more goals or variables than there is room for: the lane ends, and is never proved by it
    atoms = of_lane(inside & (made.atoms > size), home)
    variables = of_lane(inside & (made.variables > names), home)
    outcome = np.where(proved, int(Outcome.PROVED), search.outcome)
    outcome = np.where(variables, int(Outcome.OVERFLOW_VARS), outcome)
    outcome = np.where(atoms, int(Outcome.OVERFLOW_ATOMS), outcome)
    cut = search.cut | of_lane(found.cut & live & (tn.arange(rows) < taken), lane)
    # nothing of a lane that has ended is kept
    wanted = inside & (outcome[home] == RUNNING)
    hashes = np.where(wanted, _hash(new, home, mask), END)
    fresh = wanted & ~_stored(search, new, home, hashes) & ~_doubled(new, home, hashes)
    grown, used = _added(search, fresh, new, home, made.states.count, here[row], k, hashes)
    stuck = (taken == 0) & (search.at < search.end)
    full = used > store.lane.shape[0] - 1
    good = ~(stuck | full)
    at = search.at + taken
    over = at >= search.end
    done = (over & (used == search.end)) | ~(outcome == RUNNING).any()
    status = np.where(done, ENDED, GOING)
    status = np.where(stuck, ROWS, np.where(full, STORE, status))
    return Search(
        Store(*(np.where(good, a, b) for a, b in zip(grown, store, strict=True))),
        np.where(good, used, search.used),
        np.where(good, at, search.at),
        np.where(good & over, used, search.end),
        np.where(good, outcome, search.outcome),
        np.where(good, cut, search.cut),
        np.where(good & proved, here[row][which], search.last),
        np.where(good & proved, k[which], search.choice),
        status,
        search.pieces + 1,
    )


def _stored(search: Search, new: Traced, home: Traced, hashes: Traced) -> Traced:
    """Which states are in the store: of those with the same hash, one with the same goals."""
    store = search.store
    order = np.argsort(store.hashes)
    keys = store.hashes[order]
    start = find(keys, hashes)
    limit = keys.shape[0] - 1

    def same_hash(step: Traced) -> Traced:
        return (keys[np.minimum(start + step, limit)] == hashes) & (start + step <= limit)

    def go_on(carry: tuple[Traced, Traced]) -> Traced:
        step, found = carry
        return (same_hash(step) & ~found & (hashes < END)).any()

    def look(carry: tuple[Traced, Traced]) -> tuple[Traced, Traced]:
        step, found = carry
        other = order[np.minimum(start + step, limit)]
        same = (store.words[other] == new).all(axis=1) & (store.lane[other] == home)
        return step + 1, found | (same & same_hash(step))

    found: Traced = tn.while_loop(go_on, look, (search.used * 0, hashes != hashes))[1]
    return found


def _doubled(new: Traced, home: Traced, hashes: Traced) -> Traced:
    """Which states are the same as one before them in this piece."""
    order = np.argsort(hashes)
    keys, goals, lane = hashes[order], new[order], home[order]
    count = hashes.shape[0]
    places = tn.arange(count)

    def back(step: Traced) -> Traced:
        return np.maximum(places - step, 0)

    def same_hash(step: Traced) -> Traced:
        return (keys[back(step)] == keys) & (places >= step) & (keys < END)

    def look(carry: tuple[Traced, Traced]) -> tuple[Traced, Traced]:
        step, found = carry
        same = (goals[back(step)] == goals).all(axis=1) & (lane[back(step)] == lane)
        return step + 1, found | (same & same_hash(step))

    one = places.min() + 1
    found = tn.while_loop(lambda c: same_hash(c[0]).any(), look, (one, keys != keys))[1]
    result = tn.zeros(count, bool)
    result[order] = found
    return result


def _added(
    search: Search,
    fresh: Traced,
    new: Traced,
    home: Traced,
    counts: Traced,
    parent: Traced,
    choice: Traced,
    hashes: Traced,
) -> tuple[Store, Traced]:
    """The store with the fresh states after the others, and how many it then holds."""
    store = search.store
    ranks = running_sum(fresh.astype(np.int64))
    last = store.lane.shape[0] - 1
    target = np.where(fresh, np.minimum(search.used + ranks - 1, last), last)

    def put(column: Traced, values: Traced) -> Traced:
        made = column.copy()
        made[target] = values.astype(column.dtype)
        return made

    parts = (new, home, counts, parent, choice, hashes)
    grown = [put(column, values) for column, values in zip(store, parts, strict=True)]
    grown[-1][last] = END  # what is not kept is found by no hash
    return Store(*grown), search.used + ranks[-1]
