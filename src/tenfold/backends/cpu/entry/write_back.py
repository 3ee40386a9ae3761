"""Updates are written into the caller's arrays, as LLVM IR: after all that can fail.

`void @tn_place(ptr updates, i64 count, ptr table, ptr rows, ptr arena)` fills the rows of the
plan's table that are for updates: these are made in the arena, or where the argument lies if
nothing can fail once they are begun (IN_PLACE). `void @tn_write_back(ptr updates, i64 count,
ptr table, ptr rows, i64 release)` copies them to the arguments, with the GIL given up after long
plans. Nothing looks for signals between two of them.
"""

from __future__ import annotations

from tenfold.backends.cpu.entry.record import UPDATE_SIZE, load_field
from tenfold.backends.llvm.text import Fragment

WRITE_BACK = Fragment(
    (
        "declare ptr @PyEval_SaveThread()",
        "declare void @PyEval_RestoreThread(ptr)",
        "declare void @llvm.memcpy.p0.p0.i64(ptr, ptr, i64, i1)",
    ),
    f"""
define internal void @tn_place(
    ptr %updates, i64 %count, ptr %table, ptr %rows, ptr %arena) nounwind {{
begin:
  br label %test
test:
  %u = phi i64 [ 0, %begin ], [ %next, %update ]
  %more = icmp ult i64 %u, %count
  br i1 %more, label %update, label %end
update:
  %one = getelementptr [{UPDATE_SIZE} x i8], ptr %updates, i64 %u
  %argument = load i64, ptr %one, align 8
{load_field("%offset", "i64", "%one", 16)}
  %target.row = getelementptr ptr, ptr %table, i64 %argument
  %target = load ptr, ptr %target.row, align 8
  %apart = getelementptr i8, ptr %arena, i64 %offset
  %in.place = icmp eq i64 %offset, {-1}
  %made = select i1 %in.place, ptr %target, ptr %apart
  %row = getelementptr ptr, ptr %rows, i64 %u
  store ptr %made, ptr %row, align 8
  %next = add i64 %u, 1
  br label %test
end:
  ret void
}}

define internal void @tn_write_back(
    ptr %updates, i64 %count, ptr %table, ptr %rows, i64 %release) nounwind {{
begin:
  %held = icmp eq i64 %release, 0
  br i1 %held, label %test, label %let.go
let.go:
  %thread.saved = call ptr @PyEval_SaveThread()
  br label %test
test:
  %u = phi i64 [ 0, %begin ], [ 0, %let.go ], [ %next, %onward ]
  %thread = phi ptr [ null, %begin ], [ %thread.saved, %let.go ], [ %thread, %onward ]
  %more = icmp ult i64 %u, %count
  br i1 %more, label %update, label %copied
update:
  %one = getelementptr [{UPDATE_SIZE} x i8], ptr %updates, i64 %u
  %argument = load i64, ptr %one, align 8
{load_field("%bytes", "i64", "%one", 8)}
  %target.row = getelementptr ptr, ptr %table, i64 %argument
  %target = load ptr, ptr %target.row, align 8
  %row = getelementptr ptr, ptr %rows, i64 %u
  %made = load ptr, ptr %row, align 8
  %there = icmp eq ptr %made, %target
  br i1 %there, label %onward, label %copy
copy:
  call void @llvm.memcpy.p0.p0.i64(ptr %target, ptr %made, i64 %bytes, i1 false)
  br label %onward
onward:
  %next = add i64 %u, 1
  br label %test
copied:
  br i1 %held, label %end, label %take
take:
  call void @PyEval_RestoreThread(ptr %thread)
  br label %end
end:
  ret void
}}
""",
)
