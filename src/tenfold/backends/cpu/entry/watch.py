"""Watching: the kinds of guards that native code looks at.

`i32 @tn_holds(i64 kind, ptr where, ptr key, ptr expected)` answers for the last four of `KINDS`.
What a guard raises is left for the gate to raise, but for an attribute that is gone.
"""

from __future__ import annotations

from tenfold.backends.cpu.entry import ndarray as nd
from tenfold.backends.guard import KINDS
from tenfold.backends.llvm.text import Fragment

WATCH = Fragment(
    (
        "@tn_method = external global i8",
        "@tn_attribute_error = external global i8",
        "declare ptr @PyObject_GetAttr(ptr, ptr)",
        "declare ptr @PyObject_CallNoArgs(ptr)",
        "declare i32 @PyErr_ExceptionMatches(ptr)",
        "declare void @PyErr_Clear()",
        "declare i64 @PyTuple_Size(ptr)",
        "declare ptr @PyTuple_GetItem(ptr, i64)",
        "declare i32 @memcmp(ptr, ptr, i64)",
        "declare i64 @PyDict_Size(ptr)",
        "declare i32 @PyDict_Next(ptr, ptr, ptr, ptr)",
        "declare void @Py_DecRef(ptr)",
    ),
    f"""
define internal i32 @tn_holds(i64 %kind, ptr %where, ptr %key, ptr %expected) nounwind {{
begin:
  %position = alloca i64, align 8
  %name = alloca ptr, align 8
  %value = alloca ptr, align 8
  switch i64 %kind, label %asked [
    i64 {KINDS.index("attribute")}, label %attribute
    i64 {KINDS.index("list")}, label %list
    i64 {KINDS.index("items")}, label %items
  ]
attribute:
  %held = call ptr @PyObject_GetAttr(ptr %where, ptr %key)
  %gone = icmp eq ptr %held, null
  br i1 %gone, label %raised, label %found
raised:
  %absent = call i32 @PyErr_ExceptionMatches(ptr @tn_attribute_error)
  %is.absent = icmp ne i32 %absent, 0
  br i1 %is.absent, label %clear, label %no
clear:
  call void @PyErr_Clear()
  br label %no
found:
  %type.at = getelementptr i8, ptr %held, i64 {nd.TYPE}
  %type = load ptr, ptr %type.at, align 8
  %is.method = icmp eq ptr %type, @tn_method
  %is.itself = icmp eq ptr %held, %expected
  %plain = xor i1 %is.method, true
  %done = or i1 %is.itself, %plain
  br i1 %done, label %dropped, label %method
method:
  %function.at = getelementptr i8, ptr %held, i64 {nd.METHOD_FUNCTION}
  %function = load ptr, ptr %function.at, align 8
  %is.function = icmp eq ptr %function, %expected
  br label %dropped
dropped:
  %is.found = phi i1 [ %is.itself, %found ], [ %is.function, %method ]
  call void @Py_DecRef(ptr %held)
  br i1 %is.found, label %yes, label %no
list:
  %list.size.at = getelementptr i8, ptr %where, i64 {nd.SIZE}
  %list.size = load i64, ptr %list.size.at, align 8
  %list.wanted.at = getelementptr i8, ptr %expected, i64 {nd.SIZE}
  %list.wanted = load i64, ptr %list.wanted.at, align 8
  %list.same = icmp eq i64 %list.size, %list.wanted
  br i1 %list.same, label %list.compare, label %no
list.compare:
  %list.items.at = getelementptr i8, ptr %where, i64 {nd.LIST_ITEMS}
  %list.items = load ptr, ptr %list.items.at, align 8
  %list.expected = getelementptr i8, ptr %expected, i64 {nd.TUPLE_ITEMS}
  %list.bytes = shl i64 %list.size, 3
  %list.order = call i32 @memcmp(ptr %list.items, ptr %list.expected, i64 %list.bytes)
  %list.equal = icmp eq i32 %list.order, 0
  br i1 %list.equal, label %yes, label %no
items:
  %pairs = call i64 @PyDict_Size(ptr %where)
  %pairs.two = shl i64 %pairs, 1
  %pairs.wanted = call i64 @PyTuple_Size(ptr %expected)
  %pairs.same = icmp eq i64 %pairs.two, %pairs.wanted
  store i64 0, ptr %position, align 8
  br i1 %pairs.same, label %pair.test, label %no
pair.test:
  %j = phi i64 [ 0, %items ], [ %j.next, %pair.same ]
  %pair.more = icmp slt i64 %j, %pairs.two
  br i1 %pair.more, label %pair.next, label %yes
pair.next:
  %next = call i32 @PyDict_Next(ptr %where, ptr %position, ptr %name, ptr %value)
  %some = icmp ne i32 %next, 0
  br i1 %some, label %pair, label %no
pair:
  %name.found = load ptr, ptr %name, align 8
  %value.found = load ptr, ptr %value, align 8
  %j.value = add i64 %j, 1
  %j.next = add i64 %j, 2
  %name.wanted = call ptr @PyTuple_GetItem(ptr %expected, i64 %j)
  %value.wanted = call ptr @PyTuple_GetItem(ptr %expected, i64 %j.value)
  %name.same = icmp eq ptr %name.found, %name.wanted
  %value.same = icmp eq ptr %value.found, %value.wanted
  %both = and i1 %name.same, %value.same
  br i1 %both, label %pair.same, label %no
pair.same:
  br label %pair.test
asked:
  %answer = call ptr @PyObject_CallNoArgs(ptr %where)
  %failed = icmp eq ptr %answer, null
  br i1 %failed, label %no, label %answered
answered:
  %is.answer = icmp eq ptr %answer, %expected
  call void @Py_DecRef(ptr %answer)
  br i1 %is.answer, label %yes, label %no
yes:
  ret i32 1
no:
  ret i32 0
}}
""",
)
