"""The arenas a plan keeps between calls, as LLVM IR.

A pool is a few words, each an arena at rest or null. A word is swapped in one step, so nothing ever
waits: whoever finds the pool empty allocates a fresh arena, whoever finds it full frees one.
"""

from __future__ import annotations

from tenfold.backends.cpu.entry.record import POOL_SLOTS
from tenfold.backends.llvm.text import Fragment

POOL = Fragment(
    ("declare ptr @aligned_alloc(i64, i64)", "declare void @free(ptr)"),
    f"""
define internal ptr @tn_take(ptr %pool, i64 %bytes) nounwind {{
begin:
  br label %try
try:
  %i = phi i64 [ 0, %begin ], [ %next, %empty ]
  %slot = getelementptr ptr, ptr %pool, i64 %i
  %arena = atomicrmw xchg ptr %slot, ptr null acq_rel
  %none = icmp eq ptr %arena, null
  br i1 %none, label %empty, label %found
found:
  ret ptr %arena
empty:
  %next = add i64 %i, 1
  %more = icmp ult i64 %next, {POOL_SLOTS}
  br i1 %more, label %try, label %fresh
fresh:
  %wide = add i64 %bytes, 63
  %size = and i64 %wide, -64
  %new = call ptr @aligned_alloc(i64 64, i64 %size)
  ret ptr %new
}}

define internal void @tn_give(ptr %pool, ptr %arena) nounwind {{
begin:
  br label %try
try:
  %i = phi i64 [ 0, %begin ], [ %next, %full ]
  %slot = getelementptr ptr, ptr %pool, i64 %i
  %pair = cmpxchg ptr %slot, ptr null, ptr %arena acq_rel monotonic
  %stored = extractvalue {{ ptr, i1 }} %pair, 1
  br i1 %stored, label %done, label %full
full:
  %next = add i64 %i, 1
  %more = icmp ult i64 %next, {POOL_SLOTS}
  br i1 %more, label %try, label %drop
drop:
  call void @free(ptr %arena)
  ret void
done:
  ret void
}}
""",
)
