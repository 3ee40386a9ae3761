"""Seen: which successors a lane has been in before, or come twice in one step.

States are told apart by hashes first; where two hashes agree, all goals are compared. So states are
written out, and the loops below go on, only while hashes agree: for different states next to never.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

import tenfold as tn
from tenfold.apps.prover.columns import Traced
from tenfold.apps.prover.resolution.tables import take
from tenfold.apps.prover.rollout.draws import mix

_GOLDEN = np.uint64(0x9E3779B97F4A7C15)


Words = Callable[[Traced], Traced]  # writes out the states of some slots, as columns


class Past(NamedTuple):
    """The states that lanes have been in; the last lane takes what is not kept."""

    hashes: Traced  # [places, lanes + 1]
    words: Traced  # [lanes + 1, places, A]


def packed(words: Traced, size: int) -> Traced:
    """Columns of words with their gaps closed, the first `size` of each.

    >>> tn.jit(packed, static="size")(np.array([[0], [7], [0], [5]]), size=3).tolist()
    [[7], [5], [0]]
    """
    there = words != 0
    rank = np.cumsum(there, axis=0, dtype=np.int32) - 1
    made = tn.zeros((size + 1, words.shape[1]), words.dtype)
    # places before the last have one each, so that adding is putting, in any order
    place = np.where(there, np.minimum(rank, size), size)
    np.add.at(made, (place, tn.arange(words.shape[1])), words)
    return made[:size]


def been(
    hashes: Traced, words: Words, lane: Traced, valid: Traced, past: Past, used: Traced
) -> Traced:
    """Which successors are states that their lane was in; a lane has used so many places."""
    slots = tn.arange(lane.shape[0], dtype=np.int32)
    places = tn.arange(past.hashes.shape[0], dtype=np.int32)[:, None]
    old = np.take(past.hashes, lane, axis=1, mode="clip")
    alike = (old == hashes) & (places < take(used, lane)) & valid
    hit = alike.any(axis=0)

    def look(carry: tuple[Traced, Traced, Traced]) -> tuple[Traced, Traced, Traced]:
        open_, last, found = carry
        old = np.take(past.hashes, lane, axis=1, mode="clip")
        next_ = (old == hashes) & (places < take(used, lane)) & (places > last) & open_
        there = next_.any(axis=0)
        place = next_.argmax(axis=0).astype(np.int32)
        same = there & _equal(words(slots), past.words[lane, place].T)
        return there & ~same, place, found | same

    start = (hit, tn.full(lane.shape, -1, np.int32), hit & ~hit)
    found: Traced = tn.while_loop(lambda carry: carry[0].any(), look, start)[2]
    return found


def _equal(words: Traced, other: Traced) -> Traced:
    """Whether columns of words are equal but for their gaps."""
    size = other.shape[0]
    fits = (words != 0).sum(axis=0) <= size
    return (packed(words, size) == other).all(axis=0) & fits


def again(hashes: Traced, words: Words, lane: Traced, valid: Traced, room: int) -> Traced:
    """Which successors are the same as one before them in their lane.

    All that are undecided take a place by their hash, and the first one there has it. Who finds
    an equal state there is a repetition; who finds another tries a different place.
    """
    slots = tn.arange(lane.shape[0], dtype=np.int32)
    hashes = mix(hashes ^ (lane.astype(np.uint64) * _GOLDEN))
    shift = np.uint64(64 - (room.bit_length() - 1))

    def look(carry: tuple[Traced, ...]) -> tuple[Traced, ...]:
        turn, open_, found = carry
        place = ((hashes * (turn * np.uint64(2) + _GOLDEN)) >> shift).astype(np.int64)
        place = np.where(open_, place, room)
        table = tn.full(room + 1, lane.shape[0], np.int32)
        np.minimum.at(table, place, slots)
        holder = np.minimum(take(table, place), lane.shape[0] - 1)
        mine = holder == slots
        alike = open_ & ~mine & (take(hashes, holder) == hashes) & (take(lane, holder) == lane)
        same = tn.cond(
            alike.any(),
            lambda: alike & _same(words(slots), holder),
            lambda: alike,
        )
        return turn + np.uint64(1), open_ & ~mine & ~same, found | same

    start = (np.zeros_like(hashes[0]), valid, valid & ~valid)
    found: Traced = tn.while_loop(lambda c: c[1].any(), look, start)[2]
    return found


def _same(words: Traced, other: Traced) -> Traced:
    """Whether each column of words equals another one but for their gaps."""
    made = packed(words, words.shape[0])
    return (made == np.take(made, other, axis=1, mode="clip")).all(axis=0)
