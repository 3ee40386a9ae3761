"""Whether memory that a plan writes into is apart from all else it is given, as LLVM IR.

`i1 @tn_distinct(ptr table, ptr sizes, i64 count)`: the table's first `count` rows are looked at;
`sizes` has each one's bytes, with the top bit set where the plan writes.
"""

from __future__ import annotations

from tenfold.backends.cpu.entry.record import WRITES
from tenfold.backends.llvm.text import Fragment

DISTINCT = Fragment(
    ("declare i64 @llvm.umax.i64(i64, i64)", "declare i64 @llvm.umin.i64(i64, i64)"),
    f"""
define internal i1 @tn_distinct(ptr %table, ptr %sizes, i64 %count) nounwind {{
begin:
  br label %written.test
written.test:
  %i = phi i64 [ 0, %begin ], [ %i.next, %written.next ]
  %more = icmp ult i64 %i, %count
  br i1 %more, label %written, label %yes
written:
  %size.at = getelementptr i64, ptr %sizes, i64 %i
  %size = load i64, ptr %size.at, align 8
  %bytes = and i64 %size, {WRITES - 1}
  %start.at = getelementptr i64, ptr %table, i64 %i
  %start = load i64, ptr %start.at, align 8
  %end = add i64 %start, %bytes
  %is.written = icmp slt i64 %size, 0
  br i1 %is.written, label %other.test, label %written.next
other.test:
  %j = phi i64 [ 0, %written ], [ %j.next, %other.next ]
  %more.others = icmp ult i64 %j, %count
  br i1 %more.others, label %other, label %written.next
other:
  %j.next = add i64 %j, 1
  %itself = icmp eq i64 %i, %j
  br i1 %itself, label %other.next, label %compare
compare:
  %other.size.at = getelementptr i64, ptr %sizes, i64 %j
  %other.size = load i64, ptr %other.size.at, align 8
  %other.bytes = and i64 %other.size, {WRITES - 1}
  %other.start.at = getelementptr i64, ptr %table, i64 %j
  %other.start = load i64, ptr %other.start.at, align 8
  %other.end = add i64 %other.start, %other.bytes
  %latest.start = call i64 @llvm.umax.i64(i64 %start, i64 %other.start)
  %first.end = call i64 @llvm.umin.i64(i64 %end, i64 %other.end)
  %shared = icmp ult i64 %latest.start, %first.end
  br i1 %shared, label %no, label %other.next
other.next:
  br label %other.test
written.next:
  %i.next = add i64 %i, 1
  br label %written.test
yes:
  ret i1 true
no:
  ret i1 false
}}
""",
)
