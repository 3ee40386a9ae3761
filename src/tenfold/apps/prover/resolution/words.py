"""Words: a goal as one integer, so that it is copied, compared and hashed at once.

From high to low: predicate + 1, subject, object, and ten bits for the height left. A term has an
offset, so that variables, which lie below 0, fit as well. 0 is a place without a goal.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from tenfold.apps.prover.columns import Traced

HEIGHT = 10  # bits of a height


class Goals(NamedTuple):
    """The parts of goals."""

    predicate: Traced
    subject: Traced
    object: Traced
    left: Traced


def word_bits(bits: Traced) -> Traced:
    """The bits of a term in a word: those of a constant, and of 255 variables or more."""
    return np.maximum(bits, 7) + 2


def words(goals: Traced, bits: Traced) -> Traced:
    """Goals [..., 4] as words; `bits` are those of a constant. Padding is 0.

    >>> words(np.array([[0, 3, -1, 5], [-1, 0, 0, 0]]), np.int64(2)).tolist()
    [404487173, 0]
    """
    wide = goals.astype(np.int64)
    made = joined(Goals(*(wide[..., i] for i in range(4))), word_bits(bits))
    return np.where(wide[..., 0] >= 0, made, 0)


def joined(goals: Goals, bits: Traced) -> Traced:
    """Parts as words; `bits` are those of a term in a word."""
    half = 1 << (bits - 1)
    word = (((goals.predicate + 1) << bits) | (goals.subject + half)) << bits
    return ((word | (goals.object + half)) << HEIGHT) | goals.left


def parted(word: Traced, bits: Traced) -> Goals:
    """Words as parts; `bits` are those of a term in a word. Of padding, the predicate is -1.

    >>> [int(part) for part in parted(np.int64(404487173), np.int64(9))]
    [0, 3, -1, 5]
    """
    half, mask = 1 << (bits - 1), (1 << bits) - 1
    high = word >> HEIGHT
    return Goals(
        (high >> 2 * bits) - 1,
        ((high >> bits) & mask) - half,
        (high & mask) - half,
        word & ((1 << HEIGHT) - 1),
    )
