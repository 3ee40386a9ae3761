"""How a plan calls Python in its midst: hooks and host steps.

`i32 @tn_host(ptr callable, ptr table, ptr arena)` takes the GIL and calls `callable(table, arena)`
with the two addresses as ints. The answer is nonzero when that raised: the exception is then set
in this thread, and the plan returns FAILED at once. A callable is an import like any other, say
`@tn_step_3 = external global i8`, given to `load` as `symbols={"tn_step_3": id(callable)}`; whoever
binds the plan keeps it alive.
"""

from __future__ import annotations

from tenfold.backends.llvm.text import Fragment

HOST = Fragment(
    (
        "declare i32 @PyGILState_Ensure()",
        "declare void @PyGILState_Release(i32)",
        "declare ptr @PyLong_FromVoidPtr(ptr)",
        "declare ptr @PyObject_Vectorcall(ptr, ptr, i64, ptr)",
        "declare void @Py_DecRef(ptr)",
    ),
    """
define internal i32 @tn_host(ptr %callable, ptr %table, ptr %arena) noinline {
begin:
  %args = alloca [2 x ptr], align 16
  %gil = call i32 @PyGILState_Ensure()
  %first = call ptr @PyLong_FromVoidPtr(ptr %table)
  %second = call ptr @PyLong_FromVoidPtr(ptr %arena)
  %args1 = getelementptr ptr, ptr %args, i64 1
  store ptr %first, ptr %args, align 8
  store ptr %second, ptr %args1, align 8
  %has1 = icmp ne ptr %first, null
  %has2 = icmp ne ptr %second, null
  %has = and i1 %has1, %has2
  br i1 %has, label %ask, label %end
ask:
  %asked = call ptr @PyObject_Vectorcall(ptr %callable, ptr %args, i64 2, ptr null)
  br label %end
end:
  %answer = phi ptr [ null, %begin ], [ %asked, %ask ]
  call void @Py_DecRef(ptr %first)
  call void @Py_DecRef(ptr %second)
  call void @Py_DecRef(ptr %answer)
  %raised = icmp eq ptr %answer, null
  call void @PyGILState_Release(i32 %gil)
  %code = zext i1 %raised to i32
  ret i32 %code
}
""",
)
