"""The gate: the native entry point, one trampoline from Python into every plan, as LLVM IR.

CPython calls `tn_gate` as it calls its own built-ins (METH_FASTCALL with keywords). `self` is a
capsule around a record that says what the plan wants (see `record`); so the gate is compiled once,
whatever the plans, and holds no address. `tn_enter` guards each argument in the ndarray's own
fields, looks where captured arrays are to be found, makes the outputs, finds an arena, runs the
plan, writes updates into arguments and hands the outputs back. Whatever does not fit goes to the
slow path with the same arguments. Where a callable has many plans, `tn_dispatch` finds the record
first (see `dispatch`).

`ptr @tn_enter(ptr record, ptr args, i64 nargs)` answers with the result; null where an exception is
set; MISSED where the plan does not take these arguments; UNPACKED where it would if those that are
not contiguous or aligned were. Whoever calls it keeps the record alive.
"""

from __future__ import annotations

from tenfold.backends.cpu.entry import ndarray as nd
from tenfold.backends.cpu.entry.abi import DONE, FAILED, STACK_ARENA
from tenfold.backends.cpu.entry.kept import kept_word
from tenfold.backends.cpu.entry.kept_memory import KeptWord
from tenfold.backends.cpu.entry.record import (
    ARGUMENT_HEAD,
    GUARD_SIZE,
    OUTPUT_HEAD,
    RecordWord,
    load_field,
)
from tenfold.backends.cpu.run.poll import STATE_WORDS
from tenfold.backends.llvm.text import Fragment
from tenfold.backends.program import ARGUMENT, NOTHING, OUTPUT, OUTPUTS

MISSED, UNPACKED = 1, 2  # no addresses
_AGE = 4096  # calls of a plan: then memory that rested since the last time is given back


_DECLARATIONS = (
    "@tn_ndarray = external global i8",
    "@_Py_NoneStruct = external global i8",
    "@PyExc_MemoryError = external global ptr",
    "declare ptr @tn_new_array(ptr, ptr, i32, ptr, ptr, ptr, i32, ptr)",
    "declare ptr @tn_new_scalar(ptr, ptr, ptr)",
    "declare ptr @PyObject_Vectorcall(ptr, ptr, i64, ptr)",
    "declare ptr @PyDict_GetItemWithError(ptr, ptr)",
    "declare ptr @PyErr_Occurred()",
    "declare ptr @PyErr_Format(ptr, ptr, ...)",
    "declare ptr @PyTuple_New(i64)",
    "declare i32 @PyTuple_SetItem(ptr, i64, ptr)",
    "declare void @Py_IncRef(ptr)",
    "declare void @Py_DecRef(ptr)",
)


def _word(name: str, kind: str, word: RecordWord) -> str:
    return load_field(name, kind, "%record", 8 * word)


LIKELY = '!prof !{!"branch_weights", i32 2000, i32 1}'

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
  %want = phi ptr [ %first, %room ], [ %want.next, %data ]
  %more = icmp ult i64 %i, %count
  br i1 %more, label %argument, label %guards
argument:
  %arg.at = getelementptr ptr, ptr %args, i64 %i
  %arg = load ptr, ptr %arg.at, align 8
{load_field("%type", "ptr", "%arg", nd.TYPE)}
{load_field("%want.rank", "i32", "%want", 20)}
  %is.array = icmp eq ptr %type, @tn_ndarray
  br i1 %is.array, label %fields, label %scalar, {LIKELY}
fields:
{load_field("%dtype", "ptr", "%arg", nd.DESCR)}
{load_field("%flags", "i32", "%arg", nd.FLAGS)}
{load_field("%rank", "i32", "%arg", nd.RANK)}
{load_field("%dims", "ptr", "%arg", nd.DIMS)}
{load_field("%array.data", "ptr", "%arg", nd.DATA)}
  %want.dtype = load ptr, ptr %want, align 8
{load_field("%want.flags", "i32", "%want", 16)}
  %flags.set = and i32 %flags, %want.flags
  %same.dtype = icmp eq ptr %dtype, %want.dtype
  %same.flags = icmp eq i32 %flags.set, %want.flags
  %same.rank = icmp eq i32 %rank, %want.rank
  %same.some = and i1 %same.dtype, %same.flags
  %same = and i1 %same.some, %same.rank
  br i1 %same, label %axis.test, label %other, {LIKELY}
axis.test:
  %k = phi i32 [ 0, %fields ], [ %k.next, %axis ]
  %axes = icmp ult i32 %k, %want.rank
  br i1 %axes, label %axis, label %data
axis:
  %k.wide = zext i32 %k to i64
  %extent.at = getelementptr i64, ptr %dims, i64 %k.wide
  %extent = load i64, ptr %extent.at, align 8
  %want.dims = getelementptr i8, ptr %want, i64 {ARGUMENT_HEAD}
  %want.extent.at = getelementptr i64, ptr %want.dims, i64 %k.wide
  %want.extent = load i64, ptr %want.extent.at, align 8
  %k.next = add i32 %k, 1
  %same.extent = icmp eq i64 %extent, %want.extent
  br i1 %same.extent, label %axis.test, label %missed, {LIKELY}
other:
  %same.element = and i1 %same.dtype, %same.rank
  %is.unpacked = xor i1 %same.flags, true
  %could = and i1 %same.element, %is.unpacked
  br i1 %could, label %unpacked, label %missed
scalar:
{load_field("%want.scalar", "ptr", "%want", 8)}
  %scalar.data = getelementptr i8, ptr %arg, i64 {nd.SCALAR_VALUE}
  %is.scalar = icmp eq ptr %type, %want.scalar
  br i1 %is.scalar, label %data, label %missed, {LIKELY}
data:
  %found.data = phi ptr [ %array.data, %axis.test ], [ %scalar.data, %scalar ]
  %row = getelementptr ptr, ptr %table, i64 %i
  store ptr %found.data, ptr %row, align 8
  %i.next = add i64 %i, 1
  %want.tail = getelementptr i8, ptr %want, i64 {ARGUMENT_HEAD}
  %want.rank.wide = zext i32 %want.rank to i64
  %want.next = getelementptr i64, ptr %want.tail, i64 %want.rank.wide
  br label %argument.test
"""

_GUARDS = f"""
guards:
{_word("%guards.count", "i64", RecordWord.GUARDS)}
{_word("%guards.first", "ptr", RecordWord.BOUND)}
  br label %guard.test
guard.test:
  %g = phi i64 [ 0, %guards ], [ %g.next, %compare ]
  %guard = phi ptr [ %guards.first, %guards ], [ %guard.next, %compare ]
  %more.guards = icmp ult i64 %g, %guards.count
  br i1 %more.guards, label %look, label %captures
look:
  %kind = load i64, ptr %guard, align 8
{load_field("%where", "ptr", "%guard", 8)}
{load_field("%key", "ptr", "%guard", 16)}
{load_field("%expected", "ptr", "%guard", 24)}
  switch i64 %kind, label %watch [
    i64 0, label %dict
    i64 1, label %cell
  ]
dict:
  %dict.found = call ptr @PyDict_GetItemWithError(ptr %where, ptr %key)
  br label %compare
cell:
{load_field("%cell.found", "ptr", "%where", nd.CELL_VALUE)}
  br label %compare
watch:
  %holds = call i32 @tn_holds(i64 %kind, ptr %where, ptr %key, ptr %expected)
  %is.held = icmp ne i32 %holds, 0
  %watch.found = select i1 %is.held, ptr %expected, ptr null
  br label %compare
compare:
  %found = phi ptr [ %dict.found, %dict ], [ %cell.found, %cell ], [ %watch.found, %watch ]
  %g.next = add i64 %g, 1
  %guard.next = getelementptr i8, ptr %guard, i64 {GUARD_SIZE}
  %expected.found = icmp eq ptr %found, %expected
  br i1 %expected.found, label %guard.test, label %lost, {LIKELY}
lost:
  %raised = call ptr @PyErr_Occurred()
  %clean = icmp eq ptr %raised, null
  br i1 %clean, label %missed, label %error
"""

# The captures lie behind the last guard, sizes behind the last capture.
_CAPTURES = f"""
captures:
{_word("%captures.count", "i64", RecordWord.CAPTURES)}
  br label %capture.test
capture.test:
  %c = phi i64 [ 0, %captures ], [ %c.next, %capture ]
  %table.row = phi i64 [ %count, %captures ], [ %table.next, %capture ]
  %more.captures = icmp ult i64 %c, %captures.count
  br i1 %more.captures, label %capture, label %overlap
capture:
  %capture.at = getelementptr ptr, ptr %guard, i64 %c
  %capture.data = load ptr, ptr %capture.at, align 8
  %capture.row = getelementptr ptr, ptr %table, i64 %table.row
  store ptr %capture.data, ptr %capture.row, align 8
  %c.next = add i64 %c, 1
  %table.next = add i64 %table.row, 1
  br label %capture.test
overlap:
{_word("%writes", "i64", RecordWord.WRITES)}
  %reads = icmp eq i64 %writes, 0
  br i1 %reads, label %outputs, label %distinct, {LIKELY}
distinct:
  %sizes = getelementptr ptr, ptr %guard, i64 %captures.count
  %apart = call i1 @tn_distinct(ptr %table, ptr %sizes, i64 %table.row)
  br i1 %apart, label %outputs, label %missed, {LIKELY}
"""

# An output without axes lies on the stack, and becomes a scalar in the end.
_OUTPUTS = f"""
outputs:
{_word("%outputs.count", "i64", RecordWord.OUTPUTS)}
{_word("%outputs.first", "ptr", RecordWord.OUTPUTS_AT)}
  %made = alloca ptr, i64 %outputs.count, align 16
  %values = alloca [16 x i8], i64 %outputs.count, align 16
  br label %output.test
output.test:
  %o = phi i64 [ 0, %outputs ], [ %o.next, %output.next ]
  %output = phi ptr [ %outputs.first, %outputs ], [ %output.after, %output.next ]
  %more.outputs = icmp ult i64 %o, %outputs.count
  br i1 %more.outputs, label %output.make, label %arenas
output.make:
{load_field("%output.rank", "i64", "%output", 8)}
  %output.dims = getelementptr i8, ptr %output, i64 {OUTPUT_HEAD}
  %has.axes = icmp ne i64 %output.rank, 0
  br i1 %has.axes, label %output.array, label %output.scalar
output.array:
  %output.dtype = load ptr, ptr %output, align 8
  %output.rank.half = trunc i64 %output.rank to i32
{load_field("%output.bytes", "i64", "%output", 16)}
{kept_word("%large", KeptWord.LEAST)}
  call void @Py_IncRef(ptr %output.dtype) ; which the next call takes
  %is.large = icmp uge i64 %output.bytes, %large
  br i1 %is.large, label %output.large, label %output.plain
output.large:
  %large.array = call ptr @tn_new_large(ptr %output.dtype, i32 %output.rank.half, ptr %output.dims,
      i64 %output.bytes)
  %large.some = icmp ne ptr %large.array, null
  br i1 %large.some, label %output.full, label %fail, {LIKELY}
output.plain:
  %plain.array = call ptr @tn_new_array(ptr @tn_ndarray, ptr %output.dtype, i32 %output.rank.half,
      ptr %output.dims, ptr null, ptr null, i32 0, ptr null)
  %plain.some = icmp ne ptr %plain.array, null
  br i1 %plain.some, label %output.full, label %output.again, {LIKELY}
output.again:
  %again.array = call ptr @tn_new_again(ptr %output.dtype, i32 %output.rank.half, ptr %output.dims)
  %again.some = icmp ne ptr %again.array, null
  br i1 %again.some, label %output.full, label %fail
output.full:
  %array = phi ptr [ %large.array, %output.large ], [ %plain.array, %output.plain ],
      [ %again.array, %output.again ]
{load_field("%output.data", "ptr", "%array", nd.DATA)}
  br label %output.next
output.scalar:
  %value = getelementptr [16 x i8], ptr %values, i64 %o
  br label %output.next
output.next:
  %object = phi ptr [ %array, %output.full ], [ null, %output.scalar ]
  %elements = phi ptr [ %output.data, %output.full ], [ %value, %output.scalar ]
  %made.slot = getelementptr ptr, ptr %made, i64 %o
  store ptr %object, ptr %made.slot, align 8
  %output.table = add i64 %table.row, %o
  %output.row = getelementptr ptr, ptr %table, i64 %output.table
  store ptr %elements, ptr %output.row, align 8
  %o.next = add i64 %o, 1
  %output.after = getelementptr i64, ptr %output.dims, i64 %output.rank
  br label %output.test
"""

_INVOKE = f"""
arenas:
{_word("%bytes", "i64", RecordWord.ARENA)}
  %pool = getelementptr i8, ptr %record, i64 {8 * RecordWord.POOL}
  %pooled = icmp ugt i64 %bytes, {STACK_ARENA}
  br i1 %pooled, label %take, label %small
small:
  %needless = icmp eq i64 %bytes, 0
  br i1 %needless, label %invoke, label %stack
stack:
  %stack.arena = alloca i8, i64 %bytes, align 64
  br label %invoke
take:
  %taken = call ptr @tn_take(ptr %pool, i64 %bytes)
  %taken.some = icmp ne ptr %taken, null
  br i1 %taken.some, label %invoke, label %short, {LIKELY}
short:
  %given.back = call i64 @tn_kept_shrink(i64 0)
  %taken.then = call ptr @tn_take(ptr %pool, i64 %bytes)
  %then.some = icmp ne ptr %taken.then, null
  br i1 %then.some, label %invoke, label %memory
memory:
  %memory.error = load ptr, ptr @PyExc_MemoryError, align 8
  %nothing = call ptr (ptr, ptr, ...) @PyErr_Format(ptr %memory.error, ptr @tn_no_arena, i64 %bytes)
  br label %fail
invoke:
  %arena = phi ptr [ null, %small ], [ %stack.arena, %stack ], [ %taken, %take ],
      [ %taken.then, %short ]
{_word("%plan", "ptr", RecordWord.PLAN)}
{_word("%release", "i64", RecordWord.RELEASE)}
{_word("%given", "ptr", RecordWord.GIVEN)}
{_word("%updates.count", "i64", RecordWord.UPDATES)}
{_word("%updates.first", "ptr", RecordWord.UPDATES_AT)}
  %update.row = add i64 %table.row, %outputs.count
  %update.rows = getelementptr ptr, ptr %table, i64 %update.row
  call void @tn_place(
      ptr %updates.first, i64 %updates.count, ptr %table, ptr %update.rows, ptr %arena)
  call void @llvm.memset.p0.i64(ptr %poll, i8 0, i64 {8 * STATE_WORDS}, i1 false)
  %code = call i32 @tn_run(
      ptr %plan, i64 %release, ptr %table, ptr %arena, ptr %poll, ptr %given)
  %ran = icmp eq i32 %code, {DONE}
  br i1 %ran, label %answer, label %undo, {LIKELY}
"""

_ANSWER = f"""
answer:
{_word("%answered", "i64", RecordWord.ANSWERED)}
  %answered.now = add i64 %answered, 1
  store i64 %answered.now, ptr %answered.at, align 8
  %answered.last = and i64 %answered.now, {_AGE - 1}
  %is.time = icmp eq i64 %answered.last, 0
  br i1 %is.time, label %age, label %hand
age:
  call void @tn_kept_age()
  br label %hand
hand:
{_word("%gives", "i64", RecordWord.ANSWER)}
  switch i64 %gives, label %argument.back [
    i64 {OUTPUT}, label %one
    i64 {OUTPUTS}, label %many
    i64 {NOTHING}, label %none
  ]
one:
  %one.object = load ptr, ptr %made, align 8
  %one.array = icmp ne ptr %one.object, null
  br i1 %one.array, label %write.back, label %one.scalar
one.scalar:
  %one.dtype = load ptr, ptr %outputs.first, align 8
  %one.value = call ptr @tn_new_scalar(ptr %values, ptr %one.dtype, ptr null)
  %one.some = icmp ne ptr %one.value, null
  br i1 %one.some, label %write.back, label %undo, {LIKELY}
none:
  call void @Py_IncRef(ptr @_Py_NoneStruct)
  br label %write.back
argument.back:
  %back = sub i64 %gives, {ARGUMENT}
  %back.at = getelementptr ptr, ptr %args, i64 %back
  %back.object = load ptr, ptr %back.at, align 8
  call void @Py_IncRef(ptr %back.object)
  br label %write.back
many:
  %tuple = call ptr @PyTuple_New(i64 %outputs.count)
  %tuple.some = icmp ne ptr %tuple, null
  br i1 %tuple.some, label %item.test, label %undo, {LIKELY}
item.test:
  %t = phi i64 [ 0, %many ], [ %t.next, %item.put ]
  %item.output = phi ptr [ %outputs.first, %many ], [ %item.after, %item.put ]
  %more.items = icmp ult i64 %t, %outputs.count
  br i1 %more.items, label %item, label %write.back
item:
  %item.slot = getelementptr ptr, ptr %made, i64 %t
  %item.object = load ptr, ptr %item.slot, align 8
  %item.array = icmp ne ptr %item.object, null
  br i1 %item.array, label %item.put, label %item.scalar
item.scalar:
  %item.dtype = load ptr, ptr %item.output, align 8
  %item.value = getelementptr [16 x i8], ptr %values, i64 %t
  %item.new = call ptr @tn_new_scalar(ptr %item.value, ptr %item.dtype, ptr null)
  %item.some = icmp ne ptr %item.new, null
  br i1 %item.some, label %item.put, label %spill, {LIKELY}
item.put:
  %item.ready = phi ptr [ %item.object, %item ], [ %item.new, %item.scalar ]
  store ptr null, ptr %item.slot, align 8 ; the tuple owns it now
  %item.set = call i32 @PyTuple_SetItem(ptr %tuple, i64 %t, ptr %item.ready)
  %t.next = add i64 %t, 1
{load_field("%item.rank", "i64", "%item.output", 8)}
  %item.dims = getelementptr i8, ptr %item.output, i64 {OUTPUT_HEAD}
  %item.after = getelementptr i64, ptr %item.dims, i64 %item.rank
  br label %item.test
spill:
  call void @Py_DecRef(ptr %tuple)
  br label %undo
write.back:
  %result = phi ptr [ %one.object, %one ], [ %one.value, %one.scalar ],
      [ @_Py_NoneStruct, %none ], [ %back.object, %argument.back ], [ %tuple, %item.test ]
  %updates.none = icmp eq i64 %updates.count, 0
  br i1 %updates.none, label %settle, label %write
write:
  call void @tn_write_back(ptr %updates.first, i64 %updates.count, ptr %table,
      ptr %update.rows, i64 %release)
  br label %settle
settle:
  br i1 %pooled, label %give, label %done
give:
  call void @tn_give(ptr %pool, ptr %arena)
  br label %done
done:
  ret ptr %result
"""

_ENDS = f"""
fail:
  call void @tn_drop(ptr %made, i64 %o)
  ret ptr null
undo:
  br i1 %pooled, label %undo.give, label %drop
undo.give:
  call void @tn_give(ptr %pool, ptr %arena)
  br label %drop
drop:
  call void @tn_drop(ptr %made, i64 %outputs.count)
  %failed.run = icmp eq i32 %code, {FAILED}
  %failed = or i1 %failed.run, %ran
  br i1 %failed, label %error, label %missed
error:
  ret ptr null
unpacked:
  ret ptr inttoptr (i64 {UNPACKED} to ptr)
missed:
  ret ptr inttoptr (i64 {MISSED} to ptr)
"""

# Stacks are probed as they grow: a plan with thousands of arguments has a long table.
_HEAD = (
    "define internal ptr @tn_enter(ptr %record, ptr %args, i64 %nargs) "
    'nounwind noinline "probe-stack"="inline-asm" {'
)


_GATE = f"""
define dso_local ptr @tn_gate(ptr %self, ptr %args, i64 %nargs, ptr %names) nounwind {{
{load_field("%record", "ptr", "%self", nd.CAPSULE_POINTER)}
  %unnamed = icmp eq ptr %names, null
  br i1 %unnamed, label %enter, label %slow, {LIKELY}
enter:
  %made = call ptr @tn_enter(ptr %record, ptr %args, i64 %nargs)
  %number = ptrtoint ptr %made to i64
  %beyond = sub i64 %number, {MISSED}
  %declined = icmp ult i64 %beyond, {UNPACKED}
  br i1 %declined, label %slow, label %done
done:
  ret ptr %made
slow:
{_word("%slow.path", "ptr", RecordWord.SLOW)}
  %asked = call ptr @PyObject_Vectorcall(ptr %slow.path, ptr %args, i64 %nargs, ptr %names)
  ret ptr %asked
}}
"""

_NO_ARENA = "a call needs %zd bytes of memory for what it computes on the way"
_MESSAGE = f'@tn_no_arena = internal constant [{len(_NO_ARENA) + 1} x i8] c"{_NO_ARENA}\\00"'


def gate_text(arguments: str, outputs: str) -> Fragment:
    """The gate for arguments that are looked at in this way, and outputs that are made in that."""
    parts = (_HEAD, arguments, _GUARDS, _CAPTURES, outputs, _INVOKE, _ANSWER, _ENDS, "}")
    return Fragment(
        (*_DECLARATIONS, "declare void @llvm.memset.p0.i64(ptr, i8, i64, i1)"),
        _MESSAGE + "\n" + "\n".join((*(part.strip("\n") for part in parts), _GATE)),
    )


GATE = gate_text(_ARGUMENTS, _OUTPUTS)
