"""Rollout reference: the same search for one candidate at a time, in plain Python.

Unification, indexing and visited states are the top-down reference's; NumPy computes the network.
There is no room to overflow.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from tenfold.apps.prover.outcome import Outcome
from tenfold.apps.prover.reference.top_down import Searcher, State
from tenfold.apps.prover.rollout.draws import as_bits, uniform
from tenfold.apps.prover.rollout.policy import Weights, compare, embed, log_softmax
from tenfold.apps.prover.rollout.queue import Lane
from tenfold.apps.prover.rollout.run import LaneResult, Search


class Member(NamedTuple):
    """A state of the beam: the score and the least height on the way to it, and the way."""

    state: State
    score: float
    lowest: int
    way: tuple[int, ...]


class Choice(NamedTuple):
    """A successor that may be chosen."""

    member: Member
    k: int
    state: State
    lowest: int
    score: float


def roll_plainly(searcher: Searcher, lane: Lane, search: Search, constants: int) -> LaneResult:
    """How one lane ends."""
    start = searcher.settle(((*lane.triple, search.height),), lane.without)
    beam = [Member(start, 0.0, search.height, ())]
    seen = {start}
    if not start:
        return _ended(Outcome.PROVED, beam[0], search)
    for step in range(search.steps):
        choices = _choices(searcher, lane, beam, seen, search.weights, constants)
        if not choices:
            return _ended(Outcome.GAVE_UP, beam[0], search)
        proved = next((c for c in choices if not c.state), None)
        if proved is not None:
            return _ended(Outcome.PROVED, _member(proved), search)
        wishes = _wishes(choices, lane, step, search)
        order = np.argsort(-wishes, kind="stable")[: search.beam]
        beam = [_member(choices[i]) for i in order]
        seen.update(member.state for member in beam)
    return _ended(Outcome.DEPTH, beam[0], search)


def _choices(
    searcher: Searcher,
    lane: Lane,
    beam: list[Member],
    seen: set[State],
    weights: Weights | None,
    constants: int,
) -> list[Choice]:
    """What may come next, in order: nothing that was seen, and nothing twice."""
    result: list[Choice] = []
    new = set(seen)
    for member in beam:
        left = member.state[0][3]
        mine: list[tuple[int, State, int]] = []
        k = 0
        for raws, height in (
            (searcher.by_facts(member.state, lane.without), left),
            (searcher.by_rules(member.state), left - 1),
        ):
            for raw in raws:
                state = searcher.settle(raw, lane.without)
                if state not in new:
                    new.add(state)
                    mine.append((k, state, min(member.lowest, height)))
                k += 1
        if not mine:
            continue
        chances = _chances(member.state, [state for _, state, _ in mine], weights, constants)
        for (k, state, lowest), chance in zip(mine, chances, strict=True):
            result.append(Choice(member, k, state, lowest, member.score + chance))
    return result


def _chances(
    state: State, successors: list[State], weights: Weights | None, constants: int
) -> list[float]:
    if weights is None:
        return [-math.log(len(successors))] * len(successors)
    here = embed(*_packed([state]), constants, weights)
    there = embed(*_packed(successors), constants, weights)
    scores = compare(here[0], there)
    chances: list[float] = log_softmax(scores, np.ones(len(successors), bool)).tolist()
    return chances


def _packed(
    states: list[State],
) -> tuple[
    np.ndarray[tuple[int, ...], np.dtype[np.int32]], np.ndarray[tuple[int], np.dtype[np.int64]]
]:
    size = max(1, *(len(state) for state in states))
    goals = np.zeros((len(states), size, 4), np.int32)
    for i, state in enumerate(states):
        if state:
            goals[i, : len(state)] = state
    return goals, np.array([len(state) for state in states])


def _wishes(
    choices: list[Choice], lane: Lane, step: int, search: Search
) -> np.ndarray[tuple[int], np.dtype[np.float64]]:
    scores = np.array([choice.score for choice in choices])
    if not search.sampled:
        return scores
    places = as_bits([choice.k for choice in choices])
    drawn = uniform(as_bits([lane.id]), as_bits([step]), places)
    made: np.ndarray[tuple[int], np.dtype[np.float64]] = drawn
    return made if search.weights is None else scores - np.log(-np.log(made))


def _member(choice: Choice) -> Member:
    return Member(choice.state, choice.score, choice.lowest, (*choice.member.way, choice.k))


def _ended(outcome: Outcome, member: Member, search: Search) -> LaneResult:
    height = search.height - member.lowest if outcome == Outcome.PROVED else None
    return LaneResult(outcome, member.score, height, len(member.way), member.way)
