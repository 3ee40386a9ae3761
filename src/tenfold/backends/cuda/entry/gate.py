"""The gate for arrays that lie on a device, as LLVM IR: the CPU's, with other arguments and
outputs.

An argument is a `DeviceArray` of the very kind that the record wants: two addresses are compared.
The table of the plan has the addresses of arrays on the device. An output is a new `DeviceArray`
over a block of its size that waits (see `blocks`): where there is none, Python answers the call.

A number of the host may stand for an array without axes: the table has where its value lies.

In the record an argument is a word, its kind or the type of a number; an output three, its kind,
nothing, and the list of blocks that wait.
"""

from __future__ import annotations

from tenfold.backends.cpu.entry import ndarray as nd
from tenfold.backends.cpu.entry.dispatch import dispatch_text, mix
from tenfold.backends.cpu.entry.gate import LIKELY, MISSED, gate_text
from tenfold.backends.cpu.entry.record import OUTPUT_HEAD, RecordWord, load_field
from tenfold.backends.cpu.run.poll import STATE_WORDS
from tenfold.backends.llvm.text import Fragment

ADDRESS, KIND = 16, 24  # where a `DeviceArray` has them


def _word(name: str, kind: str, word: RecordWord) -> str:
    return load_field(name, kind, "%record", 8 * word)


_ARGUMENTS = f"""
begin:
  %poll = alloca [{STATE_WORDS} x i64], align 16
{_word("%count", "i64", RecordWord.ARGUMENTS)}
{_word("%first", "ptr", RecordWord.ARGUMENTS_AT)}
{_word("%length", "i64", RecordWord.TABLE)}
  %right = icmp eq i64 %nargs, %count
  br i1 %right, label %room, label %missed, {LIKELY}
room:
  %table = alloca ptr, i64 %length, align 16
  br label %argument.test
argument.test:
  %i = phi i64 [ 0, %room ], [ %i.next, %data ]
  %more = icmp ult i64 %i, %count
  br i1 %more, label %argument, label %guards
argument:
  %arg.at = getelementptr ptr, ptr %args, i64 %i
  %arg = load ptr, ptr %arg.at, align 8
{load_field("%type", "ptr", "%arg", nd.TYPE)}
  %want = getelementptr ptr, ptr %first, i64 %i
  %wanted = load ptr, ptr %want, align 8
  %is.array = icmp eq ptr %type, @tn_ndarray
  br i1 %is.array, label %fields, label %number, {LIKELY}
number:
  %value = getelementptr i8, ptr %arg, i64 {nd.SCALAR_VALUE}
  %value.address = ptrtoint ptr %value to i64
  %is.number = icmp eq ptr %type, %wanted
  br i1 %is.number, label %data, label %missed
fields:
{load_field("%arg.kind", "ptr", "%arg", KIND)}
  %same = icmp eq ptr %arg.kind, %wanted
  br i1 %same, label %block, label %missed, {LIKELY}
block:
{load_field("%arg.address", "ptr", "%arg", ADDRESS)}
  %block.address = call i64 @PyLong_AsUnsignedLongLong(ptr %arg.address)
  br label %data
data:
  %address = phi i64 [ %value.address, %number ], [ %block.address, %block ]
  %row = getelementptr i64, ptr %table, i64 %i
  store i64 %address, ptr %row, align 8
  %i.next = add i64 %i, 1
  br label %argument.test
"""

# To make an array may have others come to their end, which adds blocks; to take one may not.
_OUTPUTS = f"""
outputs:
{_word("%outputs.count", "i64", RecordWord.OUTPUTS)}
{_word("%outputs.first", "ptr", RecordWord.OUTPUTS_AT)}
  %made = alloca ptr, i64 %outputs.count, align 16
  %values = alloca [16 x i8], align 16
  br label %output.test
output.test:
  %o = phi i64 [ 0, %outputs ], [ %o.next, %output.next ]
  %output = phi ptr [ %outputs.first, %outputs ], [ %output.after, %output.next ]
  %more.outputs = icmp ult i64 %o, %outputs.count
  br i1 %more.outputs, label %output.make, label %arenas
output.make:
  %object = call ptr @PyType_GenericAlloc(ptr @tn_ndarray, i64 0)
  %object.some = icmp ne ptr %object, null
  br i1 %object.some, label %output.block, label %fail, {LIKELY}
output.block:
  %made.slot = getelementptr ptr, ptr %made, i64 %o
  store ptr %object, ptr %made.slot, align 8
  %o.next = add i64 %o, 1
{load_field("%blocks", "ptr", "%output", 16)}
{load_field("%waiting", "i64", "%blocks", nd.SIZE)}
  %no.block = icmp eq i64 %waiting, 0
  br i1 %no.block, label %short.of, label %output.take
output.take:
  %last = sub i64 %waiting, 1
{load_field("%blocks.items", "ptr", "%blocks", nd.LIST_ITEMS)}
  %new.block.at = getelementptr ptr, ptr %blocks.items, i64 %last
  %new.block = load ptr, ptr %new.block.at, align 8
  call void @Py_IncRef(ptr %new.block)
  %taken.off = call i32 @PyList_SetSlice(ptr %blocks, i64 %last, i64 %waiting, ptr null)
  %output.kind = load ptr, ptr %output, align 8
  call void @Py_IncRef(ptr %output.kind)
  %object.kind = getelementptr i8, ptr %object, i64 {KIND}
  store ptr %output.kind, ptr %object.kind, align 8
  %object.address = getelementptr i8, ptr %object, i64 {ADDRESS}
  store ptr %new.block, ptr %object.address, align 8
  %elements = call i64 @PyLong_AsUnsignedLongLong(ptr %new.block)
  %output.table = add i64 %table.row, %o
  %output.row = getelementptr i64, ptr %table, i64 %output.table
  store i64 %elements, ptr %output.row, align 8
  br label %output.next
output.next:
  %output.after = getelementptr i8, ptr %output, i64 {OUTPUT_HEAD}
  br label %output.test
short.of:
  call void @tn_drop(ptr %made, i64 %o.next)
  ret ptr inttoptr (i64 {MISSED} to ptr)
"""

_HASHED = f"""
array:
{load_field("%kind", "i64", "%arg", KIND)}
{mix("%element", "%hash", "%kind")}
  br label %axis.test
axis.test:
  %sum = phi i64 [ %element, %array ]
  br label %test
"""

# Nothing is to be packed.
_PACK = Fragment(
    (),
    f"""
define internal ptr @tn_packed(ptr %record, ptr %args, i64 %nargs) nounwind {{
  ret ptr inttoptr (i64 {MISSED} to ptr)
}}
""",
)

_CALLED = Fragment(
    (
        "declare ptr @PyType_GenericAlloc(ptr, i64)",
        "declare i64 @PyLong_AsUnsignedLongLong(ptr)",
        "declare i32 @PyList_SetSlice(ptr, i64, i64, ptr)",
        "declare i64 @tn_kept_shrink(i64)",
        "declare void @tn_kept_age()",
    ),
    "",
)

KEPT_GATE = (_CALLED, gate_text(_ARGUMENTS, _OUTPUTS), _PACK, dispatch_text(_HASHED))
