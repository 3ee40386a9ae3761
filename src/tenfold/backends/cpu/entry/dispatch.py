"""Dispatch, as LLVM IR: which of a callable's many plans answers a call.

`tn_dispatch` is called as `tn_gate` is; its `self` is a capsule around two words, `DispatchWord`.
It hashes the ranks, dtypes and shapes of the arguments (`tn_hash`; a NumPy scalar counts as an
array without axes), finds the records of that hash in an open-addressing table and enters one after
the other until one takes the arguments. A record is guarded in full, so a collision costs time
alone. Where there is one record no hash is taken. Arguments that are not contiguous or aligned are
packed on the way (`tn_packed`), but for those that are updated, or may share memory with one that
is (`tn_may_pack`), and for plans that compute in arguments: the copy would be given up.

A table is a block of words, `TableWord`, then slots of two words, a hash and a record; a hash is
odd, 0 marks a free slot, REMOVED one that was used. At most half of the slots are used, so a search
ends. All this runs with the GIL held, but a guard or a plan may let other threads run. So a call
keeps what it enters alive, and where a record declines it looks whether the table is still the one
that it began with: if not, it begins anew.
"""

from __future__ import annotations

from tenfold.backends.cpu.entry import ndarray as nd
from tenfold.backends.cpu.entry.gate import LIKELY, MISSED, UNPACKED
from tenfold.backends.cpu.entry.record import UPDATE_SIZE, RecordWord, load_field
from tenfold.backends.cpu.entry.slots import FACTOR, DispatchWord, TableWord
from tenfold.backends.llvm.text import Fragment

_PACKED = nd.CONTIGUOUS | nd.ALIGNED


def mix(name: str, before: str, word: str) -> str:
    """Lines: both halves of a product, so that every bit of a word counts."""
    return f"""  {name}.in = xor i64 {before}, {word}
  {name}.wide = zext i64 {name}.in to i128
  {name}.product = mul i128 {name}.wide, {FACTOR}
  {name}.low = trunc i128 {name}.product to i64
  {name}.upper = lshr i128 {name}.product, 64
  {name}.high = trunc i128 {name}.upper to i64
  {name} = xor i64 {name}.low, {name}.high"""


def _hash(array: str) -> str:
    """The function that hashes arguments, with the blocks from `array` to `axis.test`, which leaves
    `%sum`, for those that are arrays."""
    return f"""
define internal i64 @tn_hash(ptr %args, i64 %nargs) nounwind {{
begin:
  br label %test
test:
  %i = phi i64 [ 0, %begin ], [ %i.next, %axis.test ], [ %i.next, %other ]
  %hash = phi i64 [ %nargs, %begin ], [ %sum, %axis.test ], [ %foreign, %other ]
  %more = icmp ult i64 %i, %nargs
  br i1 %more, label %argument, label %end
argument:
  %arg.at = getelementptr ptr, ptr %args, i64 %i
  %arg = load ptr, ptr %arg.at, align 8
{load_field("%type", "i64", "%arg", nd.TYPE)}
  %i.next = add i64 %i, 1
  %is.array = icmp eq i64 %type, ptrtoint (ptr @tn_ndarray to i64)
  br i1 %is.array, label %array, label %other, {LIKELY}
{array.strip()}
other:
{mix("%foreign", "%hash", "%type")}
  br label %test
end:
  %odd = or i64 %hash, 1
  ret i64 %odd
}}
"""


_ARRAY = f"""
array:
{load_field("%dtype", "ptr", "%arg", nd.DESCR)}
{load_field("%scalar", "i64", "%dtype", nd.SCALAR_TYPE)}
{load_field("%rank", "i32", "%arg", nd.RANK)}
{load_field("%dims", "ptr", "%arg", nd.DIMS)}
  %rank.wide = zext i32 %rank to i64
  %kind = add i64 %scalar, %rank.wide
{mix("%element", "%hash", "%kind")}
  br label %axis.test
axis.test:
  %k = phi i64 [ 0, %array ], [ %k.next, %axis ]
  %sum = phi i64 [ %element, %array ], [ %sum.next, %axis ]
  %axes = icmp ult i64 %k, %rank.wide
  br i1 %axes, label %axis, label %test
axis:
  %extent.at = getelementptr i64, ptr %dims, i64 %k
  %extent = load i64, ptr %extent.at, align 8
{mix("%sum.next", "%sum", "%extent")}
  %k.next = add i64 %k, 1
  br label %axis.test
"""

_COPY = f"""
define internal ptr @tn_packed(ptr %record, ptr %args, i64 %nargs)
    nounwind noinline cold "probe-stack"="inline-asm" {{
begin:
{load_field("%writes", "i64", "%record", 8 * RecordWord.WRITES)}
  %computes = icmp eq i64 %writes, 1
  br i1 %computes, label %missed, label %room
room:
  %packed = alloca ptr, i64 %nargs, align 16
  br label %test
test:
  %i = phi i64 [ 0, %room ], [ %i.next, %next ]
  %more = icmp ult i64 %i, %nargs
  br i1 %more, label %argument, label %enter
argument:
  %arg.at = getelementptr ptr, ptr %args, i64 %i
  %arg = load ptr, ptr %arg.at, align 8
{load_field("%type", "ptr", "%arg", nd.TYPE)}
  %is.array = icmp eq ptr %type, @tn_ndarray
  br i1 %is.array, label %array, label %keep
array:
{load_field("%flags", "i32", "%arg", nd.FLAGS)}
  %set = and i32 %flags, {_PACKED}
  %whole = icmp eq i32 %set, {_PACKED}
  br i1 %whole, label %keep, label %apart
apart:
  %may.pack = call i1 @tn_may_pack(ptr %record, ptr %args, i64 %i)
  br i1 %may.pack, label %copy, label %give.up
give.up:
  call void @tn_drop(ptr %packed, i64 %i)
  br label %missed
keep:
  call void @Py_IncRef(ptr %arg)
  br label %next
copy:
  %made = call ptr @tn_new_copy(ptr %arg, i32 0)
  %some = icmp ne ptr %made, null
  br i1 %some, label %next, label %failed, {LIKELY}
next:
  %given = phi ptr [ %arg, %keep ], [ %made, %copy ]
  %slot = getelementptr ptr, ptr %packed, i64 %i
  store ptr %given, ptr %slot, align 8
  %i.next = add i64 %i, 1
  br label %test
failed:
  call void @tn_drop(ptr %packed, i64 %i)
  ret ptr null
enter:
  %answer = call ptr @tn_enter(ptr %record, ptr %packed, i64 %nargs)
  call void @tn_drop(ptr %packed, i64 %nargs)
  ret ptr %answer
missed:
  ret ptr inttoptr (i64 {MISSED} to ptr)
}}
"""

_MAY_PACK = f"""
define internal i1 @tn_may_pack(ptr %record, ptr %args, i64 %number) nounwind cold {{
begin:
  %arg.at = getelementptr ptr, ptr %args, i64 %number
  %arg = load ptr, ptr %arg.at, align 8
{load_field("%data", "i64", "%arg", nd.DATA)}
{load_field("%rank", "i32", "%arg", nd.RANK)}
{load_field("%dims", "ptr", "%arg", nd.DIMS)}
{load_field("%strides", "ptr", "%arg", nd.STRIDES)}
{load_field("%updates.count", "i64", "%record", 8 * RecordWord.UPDATES)}
{load_field("%updates", "ptr", "%record", 8 * RecordWord.UPDATES_AT)}
  %last = add i64 %data, {nd.LONGEST}
  br label %axis.test
axis.test:
  %k = phi i32 [ 0, %begin ], [ %k.next, %axis ]
  %low = phi i64 [ %data, %begin ], [ %low.next, %axis ]
  %high = phi i64 [ %last, %begin ], [ %high.next, %axis ]
  %axes = icmp ult i32 %k, %rank
  br i1 %axes, label %axis, label %update.test
axis:
  %k.wide = zext i32 %k to i64
  %extent.at = getelementptr i64, ptr %dims, i64 %k.wide
  %extent = load i64, ptr %extent.at, align 8
  %stride.at = getelementptr i64, ptr %strides, i64 %k.wide
  %stride = load i64, ptr %stride.at, align 8
  %steps = sub i64 %extent, 1
  %span = mul i64 %steps, %stride
  %down = call i64 @llvm.smin.i64(i64 %span, i64 0)
  %up = call i64 @llvm.smax.i64(i64 %span, i64 0)
  %low.next = add i64 %low, %down
  %high.next = add i64 %high, %up
  %k.next = add i32 %k, 1
  br label %axis.test
update.test:
  %u = phi i64 [ 0, %axis.test ], [ %u.next, %compare ]
  %more = icmp ult i64 %u, %updates.count
  br i1 %more, label %update, label %yes
update:
  %one = getelementptr [{UPDATE_SIZE} x i8], ptr %updates, i64 %u
  %written = load i64, ptr %one, align 8
{load_field("%bytes", "i64", "%one", 8)}
  %other.at = getelementptr ptr, ptr %args, i64 %written
  %other = load ptr, ptr %other.at, align 8
{load_field("%other.type", "ptr", "%other", nd.TYPE)}
  %itself = icmp eq i64 %written, %number
  %is.array = icmp eq ptr %other.type, @tn_ndarray
  %no.array = xor i1 %is.array, true
  %never = or i1 %itself, %no.array
  br i1 %never, label %no, label %compare
compare:
{load_field("%start", "i64", "%other", nd.DATA)}
  %end = add i64 %start, %bytes
  %before = icmp ule i64 %high, %start
  %after = icmp uge i64 %low, %end
  %apart = or i1 %before, %after
  %u.next = add i64 %u, 1
  br i1 %apart, label %update.test, label %no
yes:
  ret i1 true
no:
  ret i1 false
}}
"""

_DISPATCH = f"""
define dso_local ptr @tn_dispatch(ptr %self, ptr %args, i64 %nargs, ptr %names) nounwind {{
begin:
{load_field("%words", "ptr", "%self", nd.CAPSULE_POINTER)}
{load_field("%published", "ptr", "%words", 8 * DispatchWord.TABLE)}
  %unnamed = icmp eq ptr %names, null
  br i1 %unnamed, label %known, label %slow, {LIKELY}
known:
  %table = phi ptr [ %published, %begin ], [ %now, %declines ]
{load_field("%only", "ptr", "%table", 8 * TableWord.ONLY)}
  %single = icmp ne ptr %only, null
  br i1 %single, label %enter, label %search
search:
  %hash = call i64 @tn_hash(ptr %args, i64 %nargs)
{load_field("%mask", "i64", "%table", 8 * TableWord.MASK)}
  %high = lshr i64 %hash, 32
  %first = and i64 %high, %mask
  br label %probe
probe:
  %at = phi i64 [ %first, %search ], [ %next, %other ], [ %after, %onward ]
  %sought = phi i64 [ %hash, %search ], [ %sought, %other ], [ %sought.on, %onward ]
  %bound = phi i64 [ %mask, %search ], [ %bound, %other ], [ %bound.on, %onward ]
  %slots = getelementptr i8, ptr %table, i64 {8 * TableWord.SLOTS}
  %slot = getelementptr [2 x i64], ptr %slots, i64 %at
  %key = load i64, ptr %slot, align 8
  %same = icmp eq i64 %key, %sought
  br i1 %same, label %found, label %other, {LIKELY}
other:
  %one.on = add i64 %at, 1
  %next = and i64 %one.on, %bound
  %free = icmp eq i64 %key, 0
  br i1 %free, label %slow, label %probe
found:
{load_field("%match", "ptr", "%slot", 8)}
  br label %enter
enter:
  %record = phi ptr [ %only, %known ], [ %match, %found ]
  %at.on = phi i64 [ 0, %known ], [ %at, %found ]
  %sought.on = phi i64 [ 0, %known ], [ %sought, %found ]
{load_field("%owner", "ptr", "%record", 8 * RecordWord.OWNER)}
  call void @Py_IncRef(ptr %owner)
  %answer = call ptr @tn_enter(ptr %record, ptr %args, i64 %nargs)
  %number = ptrtoint ptr %answer to i64
  %beyond = sub i64 %number, {MISSED}
  %declined = icmp ult i64 %beyond, {UNPACKED}
  br i1 %declined, label %again, label %done
again:
  %unpacked = icmp eq i64 %number, {UNPACKED}
  br i1 %unpacked, label %pack, label %declines
pack:
  %packed = call ptr @tn_packed(ptr %record, ptr %args, i64 %nargs)
  %packed.number = ptrtoint ptr %packed to i64
  %packed.beyond = sub i64 %packed.number, {MISSED}
  %packed.missed = icmp ult i64 %packed.beyond, {UNPACKED} ; what is read-only stays so
  br i1 %packed.missed, label %declines, label %done
done:
  %result = phi ptr [ %answer, %enter ], [ %packed, %pack ]
  call void @Py_DecRef(ptr %owner)
  ret ptr %result
declines:
  call void @Py_DecRef(ptr %owner)
{load_field("%now", "ptr", "%words", 8 * DispatchWord.TABLE)}
  %stays = icmp eq ptr %now, %table
  br i1 %stays, label %others, label %known
others:
  br i1 %single, label %slow, label %onward
onward:
{load_field("%bound.on", "i64", "%table", 8 * TableWord.MASK)}
  %two.on = add i64 %at.on, 1
  %after = and i64 %two.on, %bound.on
  br label %probe
slow:
{load_field("%slow.path", "ptr", "%words", 8 * DispatchWord.SLOW)}
  call void @Py_IncRef(ptr %slow.path) ; another may take its place meanwhile
  %asked = call ptr @PyObject_Vectorcall(ptr %slow.path, ptr %args, i64 %nargs, ptr %names)
  call void @Py_DecRef(ptr %slow.path)
  ret ptr %asked
}}
"""

PACK = Fragment(
    (
        "declare ptr @tn_new_copy(ptr, i32)",
        "declare i64 @llvm.smin.i64(i64, i64)",
        "declare i64 @llvm.smax.i64(i64, i64)",
    ),
    _MAY_PACK + _COPY,
)


def dispatch_text(array: str) -> Fragment:
    """Dispatch over arguments of which arrays are hashed in this way."""
    return Fragment((), _hash(array) + _DISPATCH)


DISPATCH = dispatch_text(_ARRAY)
