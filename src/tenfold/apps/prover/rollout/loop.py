"""Rollout: a policy guides the search for each candidate; many candidates step together.

A lane searches for one candidate at a time: it holds one state, or a beam of some. Each step
resolves their first goals, drops what the lane has seen, and keeps the successors the policy likes
best. The whole search is one `while_loop`. A lane that ends takes the next candidate from a queue.

There are so many slots for the successors of all lanes. A lane whose successors do not fit this
time waits, and each lane counts its own steps: so no result depends on which lanes go together.
Only a lane that needs more slots than there are ends as an overflow, as does one whose goals,
variables or steps do not fit; never as proved.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

import tenfold as tn
from tenfold.apps.prover.backend import traced
from tenfold.apps.prover.columns import Traced
from tenfold.apps.prover.outcome import Outcome
from tenfold.apps.prover.resolution.layout import fitting, laid_out
from tenfold.apps.prover.resolution.matching import Without, apart, match
from tenfold.apps.prover.resolution.patterns import Indices, patterns
from tenfold.apps.prover.resolution.successors import (
    Filling,
    Successors,
    fillings,
    successors,
    written,
)
from tenfold.apps.prover.resolution.tables import Tables, take
from tenfold.apps.prover.rollout.choice import best, chances, perturbed
from tenfold.apps.prover.rollout.policy import Weights, summed
from tenfold.apps.prover.rollout.seen import Past, Words, again, been, packed

RUNNING = -1


class Requests(NamedTuple):
    """What a queue of candidates asks for; the last one is none."""

    words: Traced  # [queue + 1]: the one goal
    parts: Indices  # of that goal
    hashes: Traced  # of that state
    outcome: Traced  # of those that end before they begin, or RUNNING
    without: Without  # a fact that is not to be used
    ids: Traced  # what random numbers depend on
    count: Traced  # how many there are; the rest of the queue is padding
    height: Traced  # the highest proof looked for
    logs: Traced  # the logarithms of 0 (as 0), 1, 2, … up to all slots
    steps: Traced  # how many steps a lane may take
    mask: Traced  # which bits of a state's hash count


class Beams(NamedTuple):
    """The states that lanes are in, a lane's one after another."""

    words: Traced  # [A, lanes * beam]
    live: Traced  # [lanes * beam]
    scores: Traced  # the log-probability of the way here
    lowest: Traced  # the least height left on the way here
    hashes: Traced
    sums: Traced  # [lanes * beam, width]: of the goals' vectors, if the policy is learned


class Ends(NamedTuple):
    """How the search for each candidate ended, or how far it is; the last row is for none."""

    scores: Traced  # [queue + 1]
    rest: Traced  # [queue + 1, 4]: outcome, lowest, steps taken, and how many of the choices
    # another backend's rounding might have made otherwise
    choices: Traced  # [queue + 1, most, beam]: which successor it was, times the beam, and where
    # in the beam before its state stood


class Search(NamedTuple):
    """Where the search stands."""

    beams: Beams
    past: Past
    number: Traced  # [lanes]: the candidate in work; the queue's length if there is none
    step: Traced  # [lanes]
    near: Traced  # [lanes]: choices so far that were near-ties
    ends: Ends
    next: Traced  # the first candidate that no lane has taken
    rounds: Traced
    used: Traced  # slots, of all rounds


class Step(NamedTuple):
    """The successors of one round, and what the policy makes of them."""

    words: Words
    made: Successors
    row: Traced  # [slots]: the state it comes from
    lane: Traced  # [slots]: that state's lane, or one beyond all
    k: Traced  # [slots]: which of the state's successors it is
    usable: Traced  # [slots]: neither seen before nor twice
    scores: Traced  # [slots]: the log-probability of the way there
    sums: Traced  # [slots, width]: of the goals' vectors
    wish: Traced  # [slots]: the greatest are chosen


@traced("slots", "lanes", "size", "names", "beam", "most", "sampled")
def roll(
    asked: Requests,
    tables: Tables,
    weights: Weights | None,
    slots: int,
    lanes: int,
    size: int,
    names: int,
    beam: int,
    most: int,
    sampled: bool,
) -> tuple[Ends, Traced, Traced]:
    """Search in so many lanes, with `slots` for successors; states have `size` goals and `names`
    variables at most, and there is room for `most` steps of a lane."""
    tables = apart(tables, names)
    queue = asked.words.shape[0] - 1
    rows = lanes * beam
    height = tn.zeros(queue + 1, np.int32) + asked.height.astype(np.int32)
    width = 0 if weights is None else weights.inner.shape[0]
    first = Search(
        Beams(
            tn.zeros((size, rows), np.int64),
            tn.zeros(rows, bool),
            tn.zeros(rows, np.float64),
            tn.zeros(rows, np.int32),
            tn.zeros(rows, np.uint64),
            tn.zeros((rows, width), np.float32),
        ),
        Past(
            tn.zeros(((most + 1) * beam, lanes + 1), np.uint64),
            tn.zeros((lanes + 1, (most + 1) * beam, size), np.int64),
        ),
        tn.full(lanes, queue, np.int32),
        tn.zeros(lanes, np.int32),
        tn.zeros(lanes, np.int32),
        Ends(
            tn.zeros(queue + 1, np.float64),
            np.stack([asked.outcome, height, height * 0, height * 0], axis=1),
            tn.zeros((queue + 1, most, beam), np.int32),
        ),
        np.zeros_like(asked.count),
        np.zeros_like(asked.count),
        np.zeros_like(asked.count),
    )

    def going(search: Search) -> Traced:
        return (search.next < asked.count) | (search.number < queue).any()

    def step(search: Search) -> Search:
        full = _refilled(search, asked, weights)
        return _round(full, asked, tables, weights, slots, names, sampled)

    done: Search = tn.while_loop(going, step, first)
    return done.ends, done.rounds, done.used


def _refilled(search: Search, asked: Requests, weights: Weights | None) -> Search:
    """Lanes without a candidate with the next ones of the queue. What all lanes are in now is
    added to their past."""
    lanes = search.number.shape[0]
    beams = search.beams
    beam = beams.live.shape[0] // lanes
    size = beams.words.shape[0]
    queue = asked.words.shape[0] - 1
    free = search.number >= queue
    next_ = search.next.astype(np.int32) + np.cumsum(free, dtype=np.int32) - 1
    takes = free & (next_ < asked.count)
    fresh = np.where(takes, next_, queue)
    # one that has ended before it began is not searched for
    begins = takes & (take(asked.outcome, fresh) == RUNNING)

    def members(values: Traced) -> Traced:
        return np.repeat(values, beam) if beam > 1 else values

    each = members(begins)
    head = tn.arange(lanes * beam) % beam == 0
    first = np.where(tn.arange(size)[:, None] == 0, members(take(asked.words, fresh)), 0)
    words = np.where(each, np.where(head, first, 0), beams.words)
    live = np.where(each, head, beams.live & ~members(free))
    hashes: Traced = np.where(each, members(take(asked.hashes, fresh)), beams.hashes)
    sums = beams.sums
    if weights is not None:
        parts = Indices(*(members(take(part, fresh))[None] for part in asked.parts))
        sums = np.where(each[:, None], summed(parts, weights), sums)
    number = np.where(free, np.where(begins, fresh, queue), search.number)
    step = np.where(begins, 0, search.step)
    rows = np.where(number < queue, tn.arange(lanes, dtype=np.int32), lanes)[:, None]
    place = (step * beam)[:, None] + tn.arange(beam, dtype=np.int32)
    kept = np.where(live, words, -1).T.reshape(lanes, beam, size)  # not live: like no state
    return search._replace(
        beams=Beams(
            words,
            live,
            np.where(each, 0.0, beams.scores),
            np.where(each, asked.height.astype(np.int32), beams.lowest),
            hashes,
            sums,
        ),
        past=Past(
            _put(search.past.hashes, (place, rows), hashes.reshape(lanes, beam)),
            _put(search.past.words, (rows, place), kept),
        ),
        number=number,
        step=step,
        near=np.where(begins, 0, search.near),
        next=search.next + takes.sum(),
    )


def _put(column: Traced, at: Traced, values: Traced) -> Traced:
    made = column.copy()
    made[at] = values
    return made


def _round(
    search: Search,
    asked: Requests,
    tables: Tables,
    weights: Weights | None,
    slots: int,
    names: int,
    sampled: bool,
) -> Search:
    """One step of as many lanes as there are slots for"""
    beams, lanes = search.beams, search.number.shape[0]
    beam = beams.live.shape[0] // lanes
    mine = np.repeat(search.number, beam) if beam > 1 else search.number
    without = Without(*(take(column, mine) for column in asked.without))
    found = match(beams.words, beams.live, without, tables)
    need, kinds = found.facts + found.rules, (found.facts > 0) + found.rules
    wants, wanted = (n.reshape(lanes, beam).sum(axis=1, dtype=np.int32) for n in (need, kinds))
    running = search.number < asked.words.shape[0] - 1
    over = running & (wants > slots)
    # a lane's patterns are no more than its successors, and fit if these do
    room = min(slots, beam * max(3 * lanes + 32, 1 + tables.each.shape[0]))
    fits = fitting((np.where(over, 0, wants), np.where(over, 0, wanted)), (slots, room))
    goes = running & (over | fits)
    takes = (np.repeat(goes & ~over, beam) if beam > 1 else goes & ~over) & beams.live
    kind = laid_out(np.where(takes, kinds, 0), room)
    nth = kind.k - take(found.facts > 0, kind.row)
    made_of = patterns(beams.words, found, without.key, tables, kind.row, nth, names)
    slot = laid_out(np.where(takes, need, 0), slots)
    row, k, valid = slot.row, slot.k, slot.valid
    lane = np.where(valid, row // beam if beam > 1 else row, lanes)
    facts = take(found.facts, row)
    pattern = take(kind.starts, row) + np.where(k < facts, 0, k - facts + (facts > 0))
    filling = fillings(found, without.key, tables, row, k, pattern)
    made = successors(made_of, filling, tables)
    made = made._replace(hashes=made.hashes & asked.mask)

    def words(at: Traced) -> Traced:
        return written(made_of, Filling(*(take(part, at) for part in filling)), tables)

    steps = np.concatenate([(search.step + 1) * beam, tn.zeros(1, np.int32)])
    usable = valid & ~again(made.hashes, words, lane, valid, _room(slots))
    usable = usable & ~been(made.hashes, words, lane, usable, search.past, steps)
    logs, sums = chances(beams, made_of, made, row, usable, asked, weights)
    scores = take(beams.scores, row) + logs
    step = Step(words, made, row, lane, k, usable, scores, sums, scores)
    if sampled:
        step = step._replace(wish=perturbed(step, search, asked, weights))
    proof = usable & (made.counts == 0)
    wish = np.where(usable, np.where(proof, np.inf, step.wish), -np.inf)
    size = beams.words.shape[0]
    outcome = _outcomes(step, proof, valid, over, lanes, size, names)
    return _moved(search, step._replace(wish=wish), outcome, goes, asked, weights)


def _room(slots: int) -> int:
    """The places of the table in which repetitions are found."""
    return 1 << (8 * slots - 1).bit_length()


def _outcomes(
    step: Step, proof: Traced, valid: Traced, over: Traced, lanes: int, size: int, names: int
) -> Traced:
    """How each lane ends with this step, or RUNNING: as the gravest of its slots says."""
    grave = np.where(step.usable, np.where(proof, 2, 1), 0)
    grave = np.where(valid & (step.made.variables > names), 3, grave)
    grave = np.where(valid & (step.made.counts > size), 4, grave).astype(np.int32)
    most = tn.zeros(lanes + 1, np.int32)
    np.maximum.at(most, step.lane, grave)
    gravest = np.where(over, 5, most[:lanes])
    ends = (
        Outcome.GAVE_UP,
        RUNNING,
        Outcome.PROVED,
        Outcome.OVERFLOW_VARS,
        Outcome.OVERFLOW_ATOMS,
        Outcome.OVERFLOW_STATES,
    )
    return take(tn.asarray(np.array(ends, np.int32)), gravest)


def _moved(
    search: Search,
    step: Step,
    outcome: Traced,
    goes: Traced,
    asked: Requests,
    weights: Weights | None,
) -> Search:
    """The lanes with the chosen successors for states, and what became of their candidates."""
    lanes = search.number.shape[0]
    size = search.beams.words.shape[0]
    beam = search.beams.live.shape[0] // lanes
    queue = asked.words.shape[0] - 1
    # equal chances are exact on every backend
    order, live, near = best(step.wish, step.lane, lanes, beam, exact=weights is None)
    # a lane at a dead end, or without room, stays where it was
    onward = goes & ((outcome == RUNNING) | (outcome == int(Outcome.PROVED)))
    at = order.reshape(lanes * beam)
    each = np.repeat(onward, beam) if beam > 1 else onward
    words = packed(step.words(at), size)
    parent = take(step.row, at)
    lowest = np.minimum(
        take(search.beams.lowest, parent), take(step.made.lowest, at).astype(np.int32)
    )
    beams = Beams(
        np.where(each & live.reshape(-1), words, np.where(each, 0, search.beams.words)),
        np.where(each, live.reshape(-1), search.beams.live),
        np.where(each, take(step.scores, at), search.beams.scores),
        np.where(each, lowest, search.beams.lowest),
        np.where(each, take(step.made.hashes, at), search.beams.hashes),
        np.where(each[:, None], np.take(step.sums, at, axis=0, mode="clip"), search.beams.sums),
    )
    steps = np.where(onward, search.step + 1, search.step)
    outcome = np.where((outcome == RUNNING) & (steps >= asked.steps), int(Outcome.DEPTH), outcome)
    most = search.ends.choices.shape[1]
    longer = (outcome == RUNNING) & (steps >= most)  # no room for another step of its way
    outcome = np.where(longer, int(Outcome.OVERFLOW_STEPS), outcome).astype(np.int32)
    done = goes & (outcome != RUNNING)
    nears = search.near
    if near is not None:
        nears = nears + (onward & (outcome != int(Outcome.PROVED)) & near)
    ended = np.where(done, search.number, queue)
    code = take(step.k, at) * beam + (parent % beam if beam > 1 else 0)
    here = np.minimum(search.step, most - 1)
    ends = Ends(
        _put(search.ends.scores, ended, beams.scores.reshape(lanes, beam)[:, 0]),
        _put(
            search.ends.rest,
            ended,
            np.stack([outcome, beams.lowest.reshape(lanes, beam)[:, 0], steps, nears], axis=1),
        ),
        _put(
            search.ends.choices,
            (np.where(onward, search.number, queue), here),
            code.reshape(lanes, beam),
        ),
    )
    return Search(
        beams,
        search.past,
        np.where(done, queue, search.number),
        steps,
        nears,
        ends,
        search.next,
        search.rounds + 1,
        search.used + (step.lane < lanes).sum(),
    )
