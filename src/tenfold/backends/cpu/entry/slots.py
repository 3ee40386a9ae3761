"""The words of a dispatch table, and how its slots are found: what `dispatch` says in LLVM IR."""

from __future__ import annotations

from collections.abc import Iterable
from enum import IntEnum
from typing import Any

import numpy as np

from tenfold.backends.cpu.entry.abi import Argument
from tenfold.types import DTYPES, SHORT


class DispatchWord(IntEnum):
    """The words of a callable that dispatches."""

    TABLE = 0  # replaced in one step
    SLOW = 1  # the callable that answers what no record takes


class TableWord(IntEnum):
    """The words a table begins with."""

    ONLY = 0  # the record, where there is just one
    MASK = 1  # the number of slots, less one
    SLOTS = 2


REMOVED = 2
FACTOR = 0x9E37_79B9_7F4A_7C15  # odd, its bits as if drawn
_BITS = 2**64 - 1


def hash_of(arguments: tuple[Argument, ...]) -> int:
    """What `tn_hash` finds for such arguments."""
    words = list[int]()
    for argument in arguments:
        scalar = DTYPES[SHORT[argument.type.dtype]].type
        words += (id(scalar) + argument.type.rank, *argument.type.shape)
    return hash_words(len(arguments), words)


def hash_words(count: int, words: Iterable[int]) -> int:
    """The hash of so many arguments by the words that are mixed for them."""
    found = count
    for word in words:
        product = ((found ^ word) & _BITS) * FACTOR
        found = product & _BITS ^ product >> 64
    return found | 1


def put(words: np.ndarray[Any, np.dtype[np.uint64]], hash: int, record: int) -> None:
    """Fill the first free slot for a hash. The record is written first: a slot counts by its
    hash."""
    at = slot_of(words, hash, 0)
    words[at + 1] = record
    words[at] = hash


def take_out(words: np.ndarray[Any, np.dtype[np.uint64]], hash: int, record: int) -> None:
    """Mark the slot of a record as one that was used."""
    words[slot_of(words, hash, record)] = REMOVED


def slot_of(words: np.ndarray[Any, np.dtype[np.uint64]], hash: int, record: int) -> int:
    """Which word the slot of a record begins with, or the first free one for this hash."""
    mask = int(words[TableWord.MASK])
    number = hash >> 32 & mask
    while True:
        at = TableWord.SLOTS + 2 * number
        key = int(words[at])
        if (key == hash and words[at + 1] == record) if record else not key:
            return at
        number = number + 1 & mask
