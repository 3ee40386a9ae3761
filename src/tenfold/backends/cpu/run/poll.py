"""Interrupt polling: how a running plan hears of Ctrl-C.

A back edge of a loop calls `i32 @tn_poll(ptr %poll, i64 weight)`, where `weight` is about how many
nanoseconds one turn takes and `%poll` is the plan's third argument. Most calls are a subtraction
and a branch. When a few microseconds' weight has gone by the clock is read; when 50 ms have, the
GIL is taken and Python's pending signals are handled. The answer is nonzero when that raised: the
exception is then set in this thread, and the plan returns FAILED at once.

A kernel that may run long calls `tn_poll_clock` itself, now and then (see `emit.polling`).
"""

from __future__ import annotations

from tenfold.backends.llvm.text import Fragment

STATE_WORDS = 2  # weight left until the clock is read; when signals are looked at next, in ns
_WEIGHT = 4000
_INTERVAL = 50_000_000

POLL = Fragment(
    (
        "declare i32 @clock_gettime(i32, ptr)",
        "declare i32 @PyGILState_Ensure()",
        "declare void @PyGILState_Release(i32)",
        "declare i32 @PyErr_CheckSignals()",
    ),
    f"""
define internal i32 @tn_poll(ptr %state, i64 %weight) alwaysinline {{
  %left = load i64, ptr %state, align 8
  %next = sub i64 %left, %weight
  store i64 %next, ptr %state, align 8
  %due = icmp slt i64 %next, 0
  br i1 %due, label %clock, label %on, !prof !{{!"branch_weights", i32 1, i32 2000}}
clock:
  %raised = call i32 @tn_poll_clock(ptr %state)
  ret i32 %raised
on:
  ret i32 0
}}

define internal i32 @tn_poll_clock(ptr %state) noinline cold {{
begin:
  %time = alloca [2 x i64], align 8
  store i64 {_WEIGHT}, ptr %state, align 8
  %got = call i32 @clock_gettime(i32 1, ptr %time)
  %seconds = load i64, ptr %time, align 8
  %fraction_at = getelementptr i64, ptr %time, i64 1
  %fraction = load i64, ptr %fraction_at, align 8
  %whole = mul i64 %seconds, 1000000000
  %now = add i64 %whole, %fraction
  %limit_at = getelementptr i64, ptr %state, i64 1
  %limit = load i64, ptr %limit_at, align 8
  %first = icmp eq i64 %limit, 0
  br i1 %first, label %start, label %wait
wait:
  %early = icmp slt i64 %now, %limit
  br i1 %early, label %quiet, label %look
look:
  %gil = call i32 @PyGILState_Ensure()
  %raised = call i32 @PyErr_CheckSignals()
  call void @PyGILState_Release(i32 %gil)
  br label %start
start:
  %answer = phi i32 [ 0, %begin ], [ %raised, %look ]
  %later = add i64 %now, {_INTERVAL}
  store i64 %later, ptr %limit_at, align 8
  ret i32 %answer
quiet:
  ret i32 0
}}
""",
)
