"""Release, as LLVM IR: of the GIL while a plan runs, of objects that a call has made.

`i32 @tn_run(...)` runs a plan, with the GIL given up where it is long enough for that; it is called
with the GIL held. It stands beside the gate and beside the steps, which a check runs without the
gate. `void @tn_drop(ptr made, i64 count)` lets go of objects, nulls among them.
"""

from __future__ import annotations

from tenfold.backends.llvm.text import Fragment

RUN = Fragment(
    ("declare ptr @PyEval_SaveThread()", "declare void @PyEval_RestoreThread(ptr)"),
    """
define dso_local i32 @tn_run(
    ptr %plan, i64 %release, ptr %table, ptr %arena, ptr %poll, ptr %given) nounwind {
  %hold = icmp eq i64 %release, 0
  br i1 %hold, label %held, label %released
held:
  %code = call i32 %plan(ptr %table, ptr %arena, ptr %poll, ptr %given)
  ret i32 %code
released:
  %thread = call ptr @PyEval_SaveThread()
  %answer = call i32 %plan(ptr %table, ptr %arena, ptr %poll, ptr %given)
  call void @PyEval_RestoreThread(ptr %thread)
  ret i32 %answer
}
""",
)

DROP = Fragment(
    ("declare void @Py_DecRef(ptr)",),
    """
define internal void @tn_drop(ptr %made, i64 %count) nounwind cold {
begin:
  br label %test
test:
  %i = phi i64 [ 0, %begin ], [ %next, %one ]
  %more = icmp ult i64 %i, %count
  br i1 %more, label %one, label %end
one:
  %slot = getelementptr ptr, ptr %made, i64 %i
  %object = load ptr, ptr %slot, align 8
  call void @Py_DecRef(ptr %object)
  %next = add i64 %i, 1
  br label %test
end:
  ret void
}
""",
)
