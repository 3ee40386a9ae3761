"""Rounds side by side: a loop that carries nothing, whose rounds go to whatever thread.

A round reads its slices and writes its rows of the results, so rounds have nothing to do with each
other (`Opcode.ROUNDS`, the rule in `weights`). Who runs one on a worker has an arena of its own
there, and looks for no signals: rounds are short, and the caller looks between its own. What is
inside a round runs on one thread, since the pool is at work. To fill in where a round's values lie
takes no time beside it, so that is compiled without optimisation (optnone). Where there are fewer
rounds than threads, rounds go one after the other, and threads share what is inside.
"""

from __future__ import annotations

from tenfold.backends.cpu.run.opcodes import load_word, operand
from tenfold.backends.cpu.run.parts import NO_MEMORY
from tenfold.backends.cpu.threads.words import LIMIT
from tenfold.backends.llvm.text import Fragment

# What a round is given, in words.
_POINTERS = ("code", "bases", "rows", "body", "arena", "polls")
_NUMBERS = (
    *("captures", "slices", "stacks", "slices.pc", "stacks.pc"),
    *("length", "reverse", "bytes"),
)
_EVERY = (*_POINTERS, *_NUMBERS)
_NEVER = (1 << 63) - 1  # nanoseconds


def _at(name: str, context: str) -> str:
    return f"  %at.{name} = getelementptr i64, ptr {context}, i64 {_EVERY.index(name)}\n"


def _rows(name: str, part: str, first: str, after: str, before: str) -> str:
    """Fill in where a round's slice of each value lies."""
    return (
        f"""{before}:
  br label %{name}.test
{name}.test:
  %{name}.i = phi i64 [ 0, %{before} ], [ %{name}.more, %{name} ]
  %{name}.on = icmp ult i64 %{name}.i, %{part}
  br i1 %{name}.on, label %{name}, label %{after}
{name}:
  %{name}.words = mul i64 %{name}.i, 3
  %{name}.pc = add i64 %{part}.pc, %{name}.words
"""
        + operand(f"%{name}.ptr", f"%{name}.pc")
        + load_word(f"%{name}.bytes", f"%{name}.pc", 2)
        + f"""  %{name}.shift = mul i64 %{name}.bytes, %at
  %{name}.here = getelementptr i8, ptr %{name}.ptr, i64 %{name}.shift
  %{name}.row = add i64 {first}, %{name}.i
  %{name}.to = getelementptr ptr, ptr %own, i64 %{name}.row
  store ptr %{name}.here, ptr %{name}.to, align 8
  %{name}.more = add i64 %{name}.i, 1
  br label %{name}.test
"""
    )


ROUND = Fragment(
    (),
    f"""
define internal i1 @tn_enough(i64 %rounds) alwaysinline {{
  %at = getelementptr i8, ptr @tn_pool, i64 {LIMIT}
  %limit = load atomic i32, ptr %at monotonic, align 4
  %threads = sext i32 %limit to i64
  %several = icmp sgt i64 %threads, 1
  %filled = icmp sle i64 %threads, %rounds
  %enough = and i1 %several, %filled
  ret i1 %enough
}}

define internal i32 @tn_round(ptr %context, i64 %i, i64 %worker) nounwind noinline optnone {{
begin:
"""
    + "".join(
        _at(name, "%context") + f"  %{name} = load {kind}, ptr %at.{name}, align 8\n"
        for names, kind in ((_POINTERS, "ptr"), (_NUMBERS, "i64"))
        for name in names
    )
    + """  %sliced = add i64 %captures, %slices
  %count = add i64 %sliced, %stacks
  %own = alloca ptr, i64 %count, align 16
  %state = alloca [2 x i64], align 16
  %known = shl i64 %captures, 3
  call void @llvm.memcpy.p0.p0.i64(ptr %own, ptr %rows, i64 %known, i1 false)
  %last = sub i64 %length, 1
  %left = sub i64 %last, %i
  %back = icmp ne i64 %reverse, 0
  %at = select i1 %back, i64 %left, i64 %i
  br label %sliced.rows
"""
    + _rows("given", "slices", "%captures", "stacked.rows", "sliced.rows")
    + _rows("made", "stacks", "%sliced", "filled", "stacked.rows")
    + f"""filled:
  %mine = icmp eq i64 %worker, 0
  br i1 %mine, label %caller, label %other
caller:
  %answer = call i32 @tn_steps(ptr %own, ptr %arena, ptr %polls, ptr %body)
  ret i32 %answer
other:
  %state.until = getelementptr i64, ptr %state, i64 1
  store i64 {_NEVER}, ptr %state, align 8
  store i64 {_NEVER}, ptr %state.until, align 8
  %memory = call ptr @tn_worker_memory(i64 %worker, i64 %bytes)
  %none = icmp eq ptr %memory, null
  br i1 %none, label %full, label %go
full:
  ret i32 {NO_MEMORY}
go:
  %found = call i32 @tn_steps(ptr %own, ptr %memory, ptr %state, ptr %body)
  ret i32 %found
}}
""",
)

# Where the steps go on, once the captures of a loop are filled in.
ROUNDS = (
    """begin:
  %l.apart = icmp eq i64 %op, ROUNDS
  br i1 %l.apart, label %ask, label %carried
ask:
  %l.enough = call i1 @tn_enough(i64 %l.length)
  br i1 %l.enough, label %rounds, label %carried
rounds:
  %l.bytes = ptrtoint ptr %l.test to i64
"""
    + "".join(
        f"  %r.{name} = getelementptr i64, ptr %context, i64 {at}\n"
        f"  store {'ptr' if name in _POINTERS else 'i64'} "
        f"{f'%{name}' if name in ('code', 'bases', 'rows', 'polls') else f'%l.{name}'}, "
        f"ptr %r.{name}, align 8\n"
        for at, name in enumerate(_EVERY)
    )
    + """  %r.nanoseconds = mul i64 %l.length, %l.weight
  %r.answer = call i32 @tn_parallel_for(
    ptr @tn_round, ptr %context, i64 %l.length, i64 %r.nanoseconds, ptr %polls)
  switch i32 %r.answer, label %fail [ i32 0, label %next i32 NO_MEMORY, label %full ]
"""
)
WORDS = len(_EVERY)
