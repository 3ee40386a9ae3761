"""Rollout: a policy guides the search for each candidate; all candidates step together.

A lane is one candidate. It holds one state, or a beam of some; each step resolves their first
goals, drops what the lane has seen, and keeps the successors the policy likes best. The whole
search is one `while_loop`. A lane that ends stays as it is. A lane whose successors, goals or
variables do not fit ends as an overflow: never as proved.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

import tenfold as tn
from tenfold.apps.prover.backend import traced
from tenfold.apps.prover.columns import Traced
from tenfold.apps.prover.draws import uniform
from tenfold.apps.prover.outcome import Outcome
from tenfold.apps.prover.policy import Weights, compare, embed, log_softmax
from tenfold.apps.prover.resolution import Base, States, Successors, begin, build, match

RUNNING = -1
LOW = -1e300  # below every score, above what is taken
NEAR = 1e-4  # scores of the network that lie closer are a near-tie
NONE = np.iinfo(np.int64).min  # a word that no goal has: the states a lane has not seen yet


class Asked(NamedTuple):
    """What the lanes of a batch prove."""

    triples: Traced  # [lanes, 3]
    without: Traced  # the key of a fact not to use, or -1
    ids: Traced  # what random numbers depend on
    height: Traced  # the highest proof looked for
    constants: Traced  # how many there are: variables are embedded after them
    logs: Traced  # the logarithms of 0 (as 0), 1, 2, … up to a beam's successors
    steps: Traced  # how many steps a lane may take


class Lanes(NamedTuple):
    """The lanes of a batch."""

    goals: Traced  # [lanes, beam, A, 4]
    counts: Traced  # [lanes, beam]
    live: Traced  # [lanes, beam]
    scores: Traced  # [lanes, beam]: the log-probability of the way here
    lowest: Traced  # [lanes, beam]: the least height left on the way here
    seen: Traced  # [lanes, (steps + 1) * beam, A]: states as words
    parents: Traced  # [lanes, steps, beam]: where in the beam before a state comes from
    choices: Traced  # [lanes, steps, beam]: which successor it was
    outcome: Traced  # [lanes]
    length: Traced  # [lanes]: steps taken
    near: Traced  # [lanes]: choices that another backend's rounding might have made otherwise
    step: Traced


@traced("room", "size", "names", "beam", "most", "sampled")
def roll(
    asked: Asked,
    base: Base,
    weights: Weights | None,
    room: int,
    size: int,
    names: int,
    beam: int,
    most: int,
    sampled: bool,
) -> Lanes:
    """Search: `room` successors of a state, `size` goals, `names` variables, `most` steps."""

    def step(lanes: Lanes) -> Lanes:
        return _step(lanes, asked, base, weights, room, names, sampled)

    lanes: Lanes = tn.while_loop(
        lambda lanes: (lanes.step < asked.steps) & (lanes.outcome == RUNNING).any(),
        step,
        _first(asked, base, size, beam, most),
    )
    ended = np.where(lanes.outcome == RUNNING, int(Outcome.DEPTH), lanes.outcome)
    return lanes._replace(outcome=ended)


def _first(asked: Asked, base: Base, size: int, beam: int, most: int) -> Lanes:
    count = asked.triples.shape[0]
    start = begin(asked.triples, asked.height, asked.without, base, size)
    goals = np.concatenate(
        [start.states.goals[:, None], tn.zeros((count, beam - 1, size, 4), np.int32)], axis=1
    )
    first = tn.arange(beam) == 0
    lone = np.zeros_like(start.states.count)[:, None]
    seen = tn.full((count, (most + 1) * beam, size), NONE, np.int64)
    seen[:, 0] = words(start.states.goals, base)
    return Lanes(
        goals,
        np.where(first, start.states.count[:, None], 0),
        lone == np.where(first, 0, 1),
        (lone * 1.0) * tn.zeros(beam, np.float64),
        lone + asked.height + tn.zeros(beam, np.int64),
        seen,
        tn.zeros((count, most, beam), np.int32),
        tn.zeros((count, most, beam), np.int32),
        np.where(start.states.count == 0, int(Outcome.PROVED), RUNNING),
        np.zeros_like(start.states.count),
        np.zeros_like(start.states.count),
        np.zeros_like(asked.steps),
    )


def word_bits(bits: Traced) -> Traced:
    """The bits of a term in a word: those of a constant, and of 256 variables or more."""
    return np.maximum(bits, 7) + 2


def words(goals: Traced, base: Base) -> Traced:
    """Each goal as one integer; equal words are equal goals. Padding is 0."""
    wide = goals.astype(np.int64)
    p, s, o, left = (wide[..., i] for i in range(4))
    bits = word_bits(base.bits)
    half = 1 << (bits - 1)
    word = (((p + 1) << bits) | (s + half)) << bits
    return np.where(p >= 0, ((word | (o + half)) << 10) | left, 0)


def _step(
    lanes: Lanes,
    asked: Asked,
    base: Base,
    weights: Weights | None,
    room: int,
    names: int,
    sampled: bool,
) -> Lanes:
    """All lanes one step on; those that have ended as they were."""
    count, beam, size = lanes.goals.shape[:3]
    states = States(
        lanes.goals.reshape(count * beam, size, 4),
        np.where(lanes.live, lanes.counts, 0).reshape(count * beam),
    )
    without = np.repeat(asked.without, beam)
    found = match(states, without, base)
    total = found.facts + found.rules
    row = np.repeat(tn.arange(count * beam), room)
    k = np.tile(tn.arange(room), count * beam)
    made = build(states, found, row, k, without, base)
    valid = (k < total[row]).reshape(count, beam * room)
    words_ = words(made.states.goals, base).reshape(count, beam * room, size)
    usable = valid & ~_repeated(words_, lanes.seen, valid)
    over = (
        (total > room).reshape(count, beam).any(axis=1),
        (valid & (made.atoms > size).reshape(count, -1)).any(axis=1),
        (valid & (made.variables > names).reshape(count, -1)).any(axis=1),
    )
    chances = _chances(lanes, made, usable, asked, weights, room)
    reached = lanes.scores[:, :, None] + chances
    scores = reached.reshape(count, beam * room)
    proved = usable & (made.states.count == 0).reshape(count, -1)
    wish = scores
    if sampled:
        wish = _perturbed(scores, chances, lanes, asked, weights, room)
    wish = np.where(usable, wish, -np.inf)
    wish = np.where(proved, np.inf, wish)  # a proof ends the search: there is nothing to weigh
    order, near = _best(wish, beam)
    if weights is None:  # equal chances are exact on every backend
        near = np.zeros_like(near)
    return _moved(lanes, made, order, usable, proved, over, scores, words_, near, room)


def _best(wish: Traced, beam: int) -> tuple[Traced, Traced]:
    """The places of the greatest wishes, the first of equals first; and whether the last that is
    chosen and the first that is not lie within rounding."""
    lane = tn.arange(wish.shape[0])
    places = tn.arange(wish.shape[1])
    free = np.broadcast_to(lane[:, None] >= 0, wish.shape)
    order = []
    last = next_ = wish[:, 0]
    for _ in range(beam + 1):
        last = next_
        # NaN-free: what is taken lies below everything, also below what can't be used
        best = np.where(free, np.where(wish > -np.inf, wish, LOW), -np.inf).argmax(axis=1)
        next_ = np.where(free.any(axis=1), wish[lane, best], -np.inf)
        order.append(best)
        free = free & (places != best[:, None])
    near = (next_ > -np.inf) & (last < np.inf) & (last - next_ < NEAR)
    return np.stack(order[:beam], axis=1), near


def _repeated(new: Traced, seen: Traced, valid: Traced) -> Traced:
    """Which states a lane has been in, or are the same as one before them in this step."""
    old = (new[:, :, None] == seen[:, None]).all(axis=3).any(axis=2)
    same = (new[:, :, None] == new[:, None]).all(axis=3) & valid[:, None]
    places = tn.arange(new.shape[1])
    return old | (same & (places < places[:, None])).any(axis=2)


def _chances(
    lanes: Lanes,
    made: Successors,
    usable: Traced,
    asked: Asked,
    weights: Weights | None,
    room: int,
) -> Traced:
    """The log-probability of each successor of each state of a beam, as f64."""
    count, beam, size = lanes.goals.shape[:3]
    usable = usable.reshape(count, beam, room)
    if weights is None:  # from a table, so that no backend's logarithm changes a bit
        logs = -asked.logs[usable.sum(axis=2)]
        return np.where(usable, logs[:, :, None], -np.inf)
    here = embed(lanes.goals, lanes.counts, asked.constants, weights)
    there = embed(made.states.goals, np.minimum(made.states.count, size), asked.constants, weights)
    scores = compare(here, there.reshape(count, beam, room, there.shape[-1]))
    return log_softmax(scores, usable).astype(np.float64)


def _perturbed(
    scores: Traced,
    chances: Traced,
    lanes: Lanes,
    asked: Asked,
    weights: Weights | None,
    room: int,
) -> Traced:
    """Scores whose greatest is a draw by the probabilities. A place's draw is its own, whatever
    the room."""
    place = np.tile(tn.arange(room), lanes.live.shape[1]).astype(np.uint64)
    drawn = uniform(asked.ids[:, None], lanes.step.astype(np.uint64), place)
    if weights is None:  # equal chances: the greatest number wins, without a logarithm
        return drawn
    return scores - np.log(-np.log(drawn))


def _moved(
    lanes: Lanes,
    made: Successors,
    order: Traced,
    usable: Traced,
    proved: Traced,
    over: tuple[Traced, Traced, Traced],
    scores: Traced,
    words_: Traced,
    near: Traced,
    room: int,
) -> Lanes:
    """The lanes with the chosen successors for states, and with their outcomes."""
    count, beam, size = lanes.goals.shape[:3]
    goals = made.states.goals.reshape(count, beam * room, size, 4)
    counts = np.minimum(made.states.count, size).reshape(count, beam * room)
    lane = tn.arange(count)[:, None]
    parent = order // room
    live = usable[lane, order]
    states, atoms, variables = over
    outcome = np.where(usable.any(axis=1), RUNNING, int(Outcome.GAVE_UP))
    outcome = np.where(proved.any(axis=1), int(Outcome.PROVED), outcome)
    outcome = np.where(variables, int(Outcome.OVERFLOW_VARS), outcome)
    outcome = np.where(atoms, int(Outcome.OVERFLOW_ATOMS), outcome)
    outcome = np.where(states, int(Outcome.OVERFLOW_STATES), outcome)
    going = lanes.outcome == RUNNING
    # a lane at a dead end, or without room, stays where it was
    onward = going & ((outcome == RUNNING) | (outcome == int(Outcome.PROVED)))
    lowest = np.minimum(lanes.lowest[lane, parent], made.lowest.reshape(count, -1)[lane, order])
    at = tn.arange(lanes.parents.shape[1])[None, :, None] == lanes.step
    past = tn.arange(lanes.seen.shape[1])[None, :, None]
    now = (past // beam == lanes.step + 1) & onward[:, None, None]
    entered = np.where(live[:, :, None], words_[lane, order], NONE)
    each = onward[:, None, None]

    def moved(new: Traced, old: Traced) -> Traced:
        shape = (count, *(1,) * (old.ndim - 1))
        return np.where(onward.reshape(shape), new, old)

    return Lanes(
        moved(goals[lane, order], lanes.goals),
        moved(counts[lane, order], lanes.counts),
        moved(live, lanes.live),
        moved(scores[lane, order], lanes.scores),
        moved(lowest, lanes.lowest),
        np.where(now, entered[:, past[0, :, 0] % beam], lanes.seen),
        np.where(at & each, parent.astype(np.int32)[:, None], lanes.parents),
        np.where(at & each, (order % room).astype(np.int32)[:, None], lanes.choices),
        np.where(going, outcome, lanes.outcome),
        np.where(onward, lanes.length + 1, lanes.length),
        np.where(onward & (outcome == RUNNING) & near, lanes.near + 1, lanes.near),
        lanes.step + 1,
    )
