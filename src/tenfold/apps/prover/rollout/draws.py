"""Draws: random numbers that depend on what they are for, and on nothing else.

A number is made from a lane's id, the step and the place, by mixing bits (the finaliser of
splitmix64). Lanes may be batched, padded or run again: they draw the same.
"""

from __future__ import annotations

import hashlib
from typing import Any

import numpy as np

from tenfold.apps.prover.columns import Traced
from tenfold.apps.prover.input.program import Triple

_GOLDEN, _FIRST, _SECOND = 0x9E3779B97F4A7C15, 0xBF58476D1CE4E5B9, 0x94D049BB133111EB


def lane_id(seed: int, mode: str, query: Triple, candidate: int) -> int:
    """The id of a lane: which candidate of which query it proves, under which seed."""
    text = f"{seed}:{mode}:{query}:{candidate}".encode()
    return int.from_bytes(hashlib.blake2b(text, digest_size=8).digest(), "little")


def mix(x: Traced) -> Traced:
    """64 bits mixed well; x is of dtype u64.

    >>> hex(int(mix(as_bits([1]))[0]))
    '0x5692161d100b05e5'
    """
    x = (x ^ (x >> np.uint64(30))) * np.uint64(_FIRST)
    x = (x ^ (x >> np.uint64(27))) * np.uint64(_SECOND)
    return x ^ (x >> np.uint64(31))


def uniform(ids: Traced, step: Traced, place: Traced) -> Traced:
    """Numbers from 0 to 1, both left out, as f64; each argument is of dtype u64.

    >>> one, two = as_bits([1]), as_bits([2])
    >>> drawn = uniform(one, one, two)
    >>> bool(0 < drawn[0] < 1), bool(drawn[0] == uniform(one, two, one)[0])
    (True, False)
    """
    bits = mix(mix(ids + (step + np.uint64(1)) * np.uint64(_GOLDEN)) ^ mix(place))
    # the upper 52 bits and a half: never 0 and never 1
    return ((bits >> np.uint64(12)).astype(np.float64) + 0.5) * (0.5**52)


def as_bits(values: Any) -> np.ndarray[Any, np.dtype[np.uint64]]:
    """Ids as an array."""
    return np.array(values, np.uint64)
