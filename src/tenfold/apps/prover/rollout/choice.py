"""Choice: how likely each successor is by the policy, and which of them a lane goes on with."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

import tenfold as tn
from tenfold.apps.prover.columns import Traced
from tenfold.apps.prover.resolution.patterns import Patterns
from tenfold.apps.prover.resolution.successors import Successors
from tenfold.apps.prover.resolution.tables import take
from tenfold.apps.prover.rollout.draws import uniform
from tenfold.apps.prover.rollout.policy import Weights, judge, judged, summed

if TYPE_CHECKING:
    from tenfold.apps.prover.rollout.loop import Beams, Requests, Search, Step

_TURNED = np.iinfo(np.int64).max  # the bits of a negative number that are turned for its key
_LEAST = int(np.float64(-np.inf).view(np.int64)) ^ _TURNED  # the key of what is never chosen
NEAR = 1e-4  # scores of the network that lie closer are a near-tie


def chances(
    beams: Beams,
    patterns: Patterns,
    made: Successors,
    row: Traced,
    usable: Traced,
    asked: Requests,
    weights: Weights | None,
) -> tuple[Traced, Traced]:
    """The log-probability of each usable successor among those of its state, as f64; and the sums
    of their goals' vectors."""
    rows = beams.live.shape[0]
    home = np.where(usable, row, rows)
    if weights is None:  # from a table, so that no backend's logarithm changes a bit
        count = tn.zeros(rows + 1, np.int32)
        np.add.at(count, home, usable.astype(np.int32))
        return take(-asked.logs, take(count, home)), tn.zeros((row.shape[0], 0), np.float32)
    shared = np.take(summed(patterns.parts, weights), made.filling.pattern, axis=0, mode="clip")
    sums = shared + summed(made.parts, weights)
    scores = judged(judge(beams.sums, weights), sums, row, weights)
    top: Traced = tn.full(rows + 1, -np.inf, np.float32)
    np.maximum.at(top, home, scores)
    top = np.where(np.isfinite(top), top, np.float32(0))
    above = scores - take(top, home)
    total = tn.zeros(rows + 1, np.float32)
    np.add.at(total, home, np.where(usable, np.exp(above), np.float32(0)))
    chances = above - np.log(np.maximum(take(total, home), np.float32(1e-38)))
    return chances.astype(np.float64), sums


def perturbed(step: Step, search: Search, asked: Requests, weights: Weights | None) -> Traced:
    """Scores whose greatest is a draw by the probabilities. A place's draw is its own, whatever
    the slot."""
    lane = np.minimum(step.lane, search.number.shape[0] - 1)
    ids = take(asked.ids, take(search.number, lane))
    drawn = uniform(ids, take(search.step, lane).astype(np.uint64), step.k.astype(np.uint64))
    if weights is None:  # equal chances: the greatest number wins, without a logarithm
        return drawn
    return step.scores - np.log(-np.log(drawn))


def _key(x: Traced) -> Traced:
    """Integers in the order of some f64, zeros alike, NaN with the least: of integers the greatest
    is found in any order.

    >>> made = _key(np.array([np.nan, -np.inf, -1.5, -0.0, 0.0, 2.5, np.inf]))
    >>> [int(n) for n in np.sign(np.diff(made))], int(made[0]) == _LEAST
    ([0, 1, 1, 0, 1, 1], True)
    >>> _of_key(made).tolist()
    [-inf, -inf, -1.5, 0.0, 0.0, 2.5, inf]
    """
    bits = (x + 0.0).view(np.int64)
    return np.where(x == x, np.where(bits < 0, bits ^ _TURNED, bits), _LEAST)


def _of_key(keys: Traced) -> Traced:
    return np.where(keys < 0, keys ^ _TURNED, keys).view(np.float64)


def best(
    wish: Traced, lane: Traced, lanes: int, beam: int, exact: bool
) -> tuple[Traced, Traced, Traced | None]:
    """The slots of each lane's greatest wishes, the first of equals first; whether there is one;
    and whether the last that is chosen and the first that is not lie within rounding: None where
    they are exact."""
    slots = tn.arange(wish.shape[0], dtype=np.int32)
    keys = _key(wish)
    open_ = keys > _LEAST
    order, some = [], []
    last = top = tn.full(lanes, _LEAST, np.int64)
    for turn in range(beam + (not exact)):
        last = top
        home = np.where(open_, lane, lanes)
        greatest = tn.full(lanes + 1, _LEAST, np.int64)
        np.maximum.at(greatest, home, keys)
        top = greatest[:lanes]
        if turn < beam:
            first = tn.full(lanes + 1, wish.shape[0], np.int32)
            np.minimum.at(first, np.where(keys == take(greatest, lane), home, lanes), slots)
            first = np.minimum(first, wish.shape[0] - 1)
            order.append(first[:lanes])
            some.append(top > _LEAST)
            open_ = open_ & (slots != take(first, lane))
    near = None
    if not exact:
        one, other = _of_key(last), _of_key(top)
        near = (top > _LEAST) & (one < np.inf) & (one - other < NEAR)
    return np.stack(order, axis=1), np.stack(some, axis=1), near
