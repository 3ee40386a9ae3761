"""The pool's words and what is asked of them, as LLVM IR: whether work has stopped, and the memory
of a worker."""

from __future__ import annotations

from tenfold.backends.cpu.entry.abi import STOPPED
from tenfold.backends.cpu.threads.words import (
    ANSWER,
    MEMORY,
    MEMORY_BYTES,
    POOL_BYTES,
    WORKER_BYTES,
    WORKERS,
    at,
)
from tenfold.backends.llvm.text import Fragment

STATE = Fragment(
    ("declare void @free(ptr)", "declare ptr @aligned_alloc(i64, i64)"),
    f"""
@tn_pool = dso_local global [{POOL_BYTES} x i8] zeroinitializer, align 64

define dso_local i32 @tn_pool_stopped(ptr %ignored) nounwind {{
{at("%at", ANSWER)}  %answer = load atomic i32, ptr %at monotonic, align 4
  %stopped = icmp eq i32 %answer, {STOPPED}
  %told = zext i1 %stopped to i32
  ret i32 %told
}}

define dso_local ptr @tn_worker_memory(i64 %worker, i64 %bytes) nounwind {{
  %offset = mul i64 %worker, {WORKER_BYTES}
  %own = getelementptr i8, ptr @tn_pool, i64 %offset
{at("%memory.at", WORKERS + MEMORY, "%own")}{at("%size.at", WORKERS + MEMORY_BYTES, "%own")}\
  %memory = load ptr, ptr %memory.at, align 8
  %size = load i64, ptr %size.at, align 8
  %enough = icmp ule i64 %bytes, %size
  br i1 %enough, label %there, label %grow
there:
  ret ptr %memory
grow:
  call void @free(ptr %memory)
  %more = add i64 %bytes, 4095
  %whole = and i64 %more, -4096
  %made = call ptr @aligned_alloc(i64 4096, i64 %whole)
  %none = icmp eq ptr %made, null
  %has = select i1 %none, i64 0, i64 %whole
  store ptr %made, ptr %memory.at, align 8
  store i64 %has, ptr %size.at, align 8
  ret ptr %made
}}
""",
)
