"""A kernel in parts: `tn_part`, which runs one of them on whatever thread.

A step that is cut (`Opcode.CUT`) has the words of a kernel, and behind its operands how far a part
reaches along the outer axis, how many parts there are, and its scratch memory. The parts are the
kernel's own code over ranges of the outer axis, so they compute what the whole does, and who runs
which does not show. A worker has scratch memory of its own, and looks not for signals but for
whether the caller was stopped. Between parts the caller looks for signals only if the kernel does:
one that does not may be writing over an argument (`overwrite`), and is never stopped.

Parts of a reduction, stretches of its tree, each keep what they hold in a row of memory; then the
kernel is called once more to join them (`emit/partial`).
"""

from __future__ import annotations

from tenfold.backends.cpu.run.opcodes import POLL_ROWS
from tenfold.backends.cpu.threads.cut import MOST_ROWS, ROW_BYTES
from tenfold.backends.cpu.threads.words import LIMIT
from tenfold.backends.llvm.text import Fragment

NO_MEMORY = 1 << 30  # among the bits of failed checks
# What a part is given, in words.
CONTEXT = ("run", "params", "buffers", "count", "chunk", "extent", "scratch", "pieces", "bytes")


def context_word(name: str, context: str = "%context") -> str:
    """The line that says where a word of the context lies."""
    return f"  %at.{name} = getelementptr i64, ptr {context}, i64 {CONTEXT.index(name)}\n"


def _given(name: str) -> str:
    kind = "ptr" if name in ("run", "params", "buffers", "scratch") else "i64"
    return context_word(name) + f"  %{name} = load {kind}, ptr %at.{name}, align 8\n"


PARTS = Fragment(
    (
        "@tn_pool = external global i8",
        "declare i32 @tn_parallel_for(ptr, ptr, i64, i64, ptr)",
        "declare i32 @tn_pool_stopped(ptr)",
        "declare ptr @tn_worker_memory(i64, i64)",
        "declare ptr @PyErr_NoMemory()",
        "declare i64 @llvm.smin.i64(i64, i64)",
    ),
    f"""
define internal i1 @tn_several() alwaysinline {{
  %at = getelementptr i8, ptr @tn_pool, i64 {LIMIT}
  %limit = load atomic i32, ptr %at monotonic, align 4
  %several = icmp sgt i32 %limit, 1
  ret i1 %several
}}

define internal i32 @tn_part(ptr %context, i64 %i, i64 %worker) nounwind {{
begin:
{"".join(map(_given, CONTEXT))}\
  %low = mul i64 %i, %chunk
  %end = add i64 %low, %chunk
  %high = call i64 @llvm.smin.i64(i64 %end, i64 %extent)
  %mine = icmp eq i64 %worker, 0
  br i1 %mine, label %caller, label %other
caller:
  %answer = call i32 %run(ptr %buffers, ptr %params, i64 %low, i64 %high)
  ret i32 %answer
other:
  %rows = add i64 %count, {POLL_ROWS}
  %own = alloca ptr, i64 %rows, align 16
  %size = shl i64 %count, 3
  call void @llvm.memcpy.p0.p0.i64(ptr %own, ptr %buffers, i64 %size, i1 false)
  %poll = getelementptr ptr, ptr %own, i64 %count
  store ptr @tn_pool_stopped, ptr %poll, align 8
  %state = getelementptr ptr, ptr %poll, i64 1
  store ptr null, ptr %state, align 8
  %host = getelementptr ptr, ptr %poll, i64 2
  store ptr null, ptr %host, align 8
  %needs = icmp ne i64 %pieces, 0
  br i1 %needs, label %room, label %go
room:
  %memory = call ptr @tn_worker_memory(i64 %worker, i64 %bytes)
  %none = icmp eq ptr %memory, null
  br i1 %none, label %full, label %piece
full:
  ret i32 {NO_MEMORY}
piece:
  %p = phi i64 [ 0, %room ], [ %p.more, %piece ]
  %p.words = shl i64 %p, 1
  %p.at = getelementptr i64, ptr %scratch, i64 %p.words
  %which = load i64, ptr %p.at, align 8
  %p.next = getelementptr i64, ptr %p.at, i64 1
  %offset = load i64, ptr %p.next, align 8
  %place = getelementptr i8, ptr %memory, i64 %offset
  %row = getelementptr ptr, ptr %own, i64 %which
  store ptr %place, ptr %row, align 8
  %p.more = add i64 %p, 1
  %p.on = icmp ult i64 %p.more, %pieces
  br i1 %p.on, label %piece, label %go
go:
  %found = call i32 %run(ptr %own, ptr %params, i64 %low, i64 %high)
  ret i32 %found
}}

define internal i32 @tn_stretch(ptr %context, i64 %i, i64 %worker) nounwind {{
begin:
{"".join(map(_given, CONTEXT))}\
  %low = mul i64 %i, %chunk
  %end = add i64 %low, %chunk
  %high = call i64 @llvm.smin.i64(i64 %end, i64 %extent)
  %from = xor i64 %low, -1
  %rows = add i64 %count, {POLL_ROWS + 1}
  %own = alloca ptr, i64 %rows, align 16
  %known = add i64 %count, {POLL_ROWS}
  %size = shl i64 %known, 3
  call void @llvm.memcpy.p0.p0.i64(ptr %own, ptr %buffers, i64 %size, i1 false)
  %poll = getelementptr ptr, ptr %own, i64 %count
  %offset = mul i64 %i, {ROW_BYTES}
  %row = getelementptr i8, ptr %scratch, i64 %offset
  %row.at = getelementptr ptr, ptr %own, i64 %known
  store ptr %row, ptr %row.at, align 8
  %mine = icmp eq i64 %worker, 0
  br i1 %mine, label %go, label %other
other:
  store ptr @tn_pool_stopped, ptr %poll, align 8
  br label %go
go:
  %answer = call i32 %run(ptr %own, ptr %params, i64 %from, i64 %high)
  ret i32 %answer
}}

define internal i32 @tn_reduce(
    ptr %context, i64 %parts, i64 %nanoseconds, ptr %polls) nounwind noinline {{
begin:
{"".join(map(_given, ("run", "params", "buffers", "count")))}\
  %held = alloca [{MOST_ROWS * ROW_BYTES} x i8], align 64
{context_word("scratch")}\
  store ptr %held, ptr %at.scratch, align 8
  %answer = call i32 @tn_parallel_for(
    ptr @tn_stretch, ptr %context, i64 %parts, i64 %nanoseconds, ptr %polls)
  %good = icmp eq i32 %answer, 0
  br i1 %good, label %join, label %end
join:
  %known = add i64 %count, {POLL_ROWS}
  %rows = add i64 %known, 1
  %own = alloca ptr, i64 %rows, align 16
  %size = shl i64 %known, 3
  call void @llvm.memcpy.p0.p0.i64(ptr %own, ptr %buffers, i64 %size, i1 false)
  %row.at = getelementptr ptr, ptr %own, i64 %known
  store ptr %held, ptr %row.at, align 8
  %all = sub i64 0, %parts
  %joined = call i32 %run(ptr %own, ptr %params, i64 -1, i64 %all)
  ret i32 %joined
end:
  ret i32 %answer
}}

define internal void @tn_no_memory() nounwind noinline cold {{
  %gil = call i32 @PyGILState_Ensure()
  %raised = call ptr @PyErr_NoMemory()
  call void @PyGILState_Release(i32 %gil)
  ret void
}}
""",
)
