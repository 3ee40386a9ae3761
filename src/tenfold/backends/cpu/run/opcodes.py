"""The bytecode of a plan: opcodes, operands, and the text that reads them.

An operand is two words: which base, and an offset in bytes. Base 0 is the arena, 1 is null (for
addresses), 2 and on are the rows of the table.
"""

from __future__ import annotations

from enum import IntEnum

POLL_ROWS = 3  # behind a kernel's buffers: how to poll, with what, and how to call Python
HEADER = 3  # words before the first step: rows of the table, most buffers, most rows below
JOINED = -1  # in place of how many pieces of scratch there are
ARENA_BASE, NULL_BASE, TABLE_BASE = 0, 1, 2


class Opcode(IntEnum):
    """What a step is; the words after it are listed where each is carried out."""

    END = 0
    KERNEL = 1  # function, params, extent, callable on a fault, count; operands: or a routine
    COPY = 2  # bytes; target, source
    HOST = 3  # callable
    BRANCH = 4  # bytes of the index, signed, branches, rows; index, arena, rows; codes
    LOOP = 5  # captures, carries, slices, stacks, length, reverse, weight, condition, body; …
    POLL = 6  # weight
    # As KERNEL; then whether it polls, chunk, parts, bytes of scratch, its pieces; of each piece
    # its buffer and offset. Of a reduction: whether it polls, chunk, parts, extent, JOINED.
    CUT = 7
    ROUNDS = 8  # as LOOP, without carries: bytes of a round's arena stand in place of a condition
    # Bytes of a row, rows, how far apart, how many of all these, how far apart; target, source.
    COPY_ROWS = 9


def load_word(name: str, at: str, plus: int | str, kind: str = "i64") -> str:
    """A word, some words behind where a step begins."""
    return (
        f"  {name}.at = getelementptr i64, ptr %code, i64 {at}\n"
        f"  {name}.to = getelementptr i64, ptr {name}.at, i64 {plus}\n"
        f"  {name} = load {kind}, ptr {name}.to, align 8\n"
    )


def operand(name: str, at: str) -> str:
    """The address that the operand at a word stands for."""
    return f"  {name} = call ptr @tn_operand(ptr %code, ptr %bases, i64 {at})\n"


def row(name: str, number: str, table: str = "%rows") -> str:
    """Where a row of a table lies."""
    return f"  {name} = getelementptr ptr, ptr {table}, i64 {number}\n"


def for_each(name: str, count: str, before: str, body: str, after: str) -> str:
    """A loop over %NAME.i from 0; the body must not branch."""
    return f"""  br label %{name}.test
{name}.test:
  %{name}.i = phi i64 [ 0, %{before} ], [ %{name}.more, %{name} ]
  %{name}.on = icmp ult i64 %{name}.i, {count}
  br i1 %{name}.on, label %{name}, label %{after}
{name}:
{body}  %{name}.more = add i64 %{name}.i, 1
  br label %{name}.test
"""


OPERAND = """
define internal ptr @tn_operand(ptr %code, ptr %bases, i64 %at) alwaysinline {
  %base.at = getelementptr i64, ptr %code, i64 %at
  %base = load i64, ptr %base.at, align 8
  %offset.at = getelementptr i64, ptr %base.at, i64 1
  %offset = load i64, ptr %offset.at, align 8
  %from.at = getelementptr ptr, ptr %bases, i64 %base
  %from = load ptr, ptr %from.at, align 8
  %to = getelementptr i8, ptr %from, i64 %offset
  ret ptr %to
}
"""
