"""The record of a plan: what the gate reads of it, as words in memory.

It is a row of words, in the order of `RecordWord`, with the parts they point at behind it:

- an argument: its dtype, the type of scalar that may stand for it (or null), the flags it must have
  and its rank (two halves), then its extents;
- an output: its dtype, its rank, its bytes, its extents;
- an update: the argument that is written when all else is done, its bytes, and where in the arena
  the plan makes it (see `write_back`);
- what is bound: for each guard its kind, where to look, the key, and the object to be found there
  (see `watch`); the captures' data; where arguments are written into, the sizes of arguments and
  captures (see `distinct`).
"""

from __future__ import annotations

from enum import IntEnum

POOL_SLOTS = 8  # arenas kept for later calls; more may be in use at once
WRITES = 1 << 63  # in the size of an argument: the plan writes into it


class RecordWord(IntEnum):
    """The words a record begins with."""

    PLAN = 0  # the plan's function
    RELEASE = 1  # whether the GIL is given up
    SLOW = 2  # the slow path's callable
    BOUND = 3  # where guards and captures lie
    ARGUMENTS = 4  # how many, and where
    ARGUMENTS_AT = 5
    OUTPUTS = 6
    OUTPUTS_AT = 7
    GUARDS = 8
    CAPTURES = 9
    TABLE = 10  # the length of the plan's table
    ARENA = 11  # bytes
    ANSWER = 12  # what the call gives (see `program`)
    WRITES = 13  # whether arguments are written into, 2 where by updates alone
    GIVEN = 14  # what the plan's function is called with
    ANSWERED = 15  # calls that were answered
    OWNER = 16  # the Python object that keeps the record alive
    UPDATES = 17  # how many, and where
    UPDATES_AT = 18
    POOL = 19  # arenas at rest


RECORD_WORDS = RecordWord.POOL + POOL_SLOTS
ARGUMENT_HEAD, GUARD_SIZE, OUTPUT_HEAD, UPDATE_SIZE = 24, 32, 24, 24  # bytes


def load_field(name: str, kind: str, base: str, offset: int) -> str:
    """Two lines: a field at an offset in bytes."""
    align = 4 if kind == "i32" else 8
    return (
        f"  {name}.at = getelementptr i8, ptr {base}, i64 {offset}\n"
        f"  {name} = load {kind}, ptr {name}.at, align {align}"
    )
