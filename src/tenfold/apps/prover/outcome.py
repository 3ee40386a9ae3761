"""Outcome: how the search for a proof of one candidate ended."""

from __future__ import annotations

from enum import IntEnum


class Outcome(IntEnum):
    """What is known of a candidate; only REFUTED says that there is no proof."""

    PROVED = 0
    REFUTED = 1  # the search space is exhausted
    DEPTH = 2  # the limit of height or steps cut something off
    GAVE_UP = 3  # a budget was spent, or a greedy search came to a dead end
    OVERFLOW_STATES = 4
    OVERFLOW_ATOMS = 5
    OVERFLOW_VARS = 6
    OVERFLOW_STEPS = 7


# no answer for want of room
OVERFLOWS = (
    Outcome.OVERFLOW_STATES,
    Outcome.OVERFLOW_ATOMS,
    Outcome.OVERFLOW_VARS,
    Outcome.OVERFLOW_STEPS,
)
