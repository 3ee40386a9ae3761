"""Interrupt polling in a long sort: between blocks of its loops it polls, as kernels do.

Functions that poll have %buffers, where behind the addresses of the lines, of the result and of
scratch stand those of what is asked and of what it is asked with, and a block `stopped`. Loops are
cut into blocks, so that polls cost the loops themselves nothing.
"""

from __future__ import annotations

from tenfold.backends.cpu.entry.abi import STOPPED
from tenfold.backends.cpu.library.loops import look_text

POLLED = 1 << 16  # elements that a loop goes through without a poll: well below a millisecond
_ROWS = 3  # of %buffers, before those of polls

LOOK = look_text(_ROWS)

ENDS = f"""line.end:
  ret i32 0
stopped:
  ret i32 {STOPPED}
}}
"""


def polled(name: str, after: str) -> str:
    """Goes on to `after`, unless a poll wants the sort to stop."""
    return f"""{name}:
  %{name}.answer = call i32 @tn_look(ptr %buffers)
  %{name}.stop = icmp ne i32 %{name}.answer, 0
  br i1 %{name}.stop, label %stopped, label %{after}
"""


def counted_long(name: str, count: str, before: str, body: str, after: str) -> str:
    """A loop over %NAME from 0 that polls between blocks; the body must not branch."""
    return (
        f"""{name}.head:
  %{name}.low = phi i64 [ 0, %{before} ], [ %{name}.high, %{name}.loop ]
  %{name}.on = icmp ult i64 %{name}.low, {count}
  br i1 %{name}.on, label %{name}.block, label %{after}
{name}.block:
  %{name}.far = add i64 %{name}.low, {POLLED}
  %{name}.high = call i64 @llvm.umin.i64(i64 %{name}.far, i64 {count})
  %{name}.first = icmp eq i64 %{name}.low, 0
  br i1 %{name}.first, label %{name}.begin, label %{name}.poll
"""
        + polled(f"{name}.poll", f"{name}.begin")
        + f"""{name}.begin:
  br label %{name}.loop
{name}.loop:
  %{name} = phi i64 [ %{name}.low, %{name}.begin ], [ %{name}.more, %{name}.body ]
  %{name}.in = icmp ult i64 %{name}, %{name}.high
  br i1 %{name}.in, label %{name}.body, label %{name}.head
{name}.body:
{body}  %{name}.more = add i64 %{name}, 1
  br label %{name}.loop
"""
    )


def due(name: str, position: str, poll: str, on: str) -> str:
    """Goes to `poll` where a position is the first of a block, else `on`."""
    return f"""  %{name}.past = and i64 {position}, {POLLED - 1}
  %{name}.due = icmp eq i64 %{name}.past, 0
  br i1 %{name}.due, label %{poll}, label %{on}, !prof !{{!"branch_weights", i32 1, i32 2000}}
"""
