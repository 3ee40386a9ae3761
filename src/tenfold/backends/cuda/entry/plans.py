"""The functions that native gates call in place of a plan, as LLVM IR (see the CPU's `entry/abi`).

`tn_kept_plan` launches a plan's graph on arrays that lie on the device, and returns: its table has
their addresses. Numbers of the host stand beside them: for these it has the address of the value,
which is sent to a place of the room's where it is not what lies there, four bytes at a time within
the stream. `given` is a `KeptWord` record; of each number there are five words, `NumberWord`.
`tn_waited_plan` does the same for a plan that may fail, and waits; it runs without the GIL. While
it does, its cell says BUSY, and other callers are Python's.

`tn_staged_plan` has small arrays of the host brought by way of pinned memory, whose copies are
nodes of the graph, and waits; it runs without the GIL. `given` is a `StagedWord` record: how many
arrays come, how many go, and for each where it lies in pinned memory and its bytes; then a pool of
rooms, `RoomWord`, each of one caller at a time.

Both decline where they have no graph, and where something fails: Python does the call then, and
says what is wrong. What failed is used no more.
"""

from __future__ import annotations

from enum import IntEnum

from tenfold.backends.cpu.entry.abi import DECLINED, DONE
from tenfold.backends.cpu.entry.record import load_field
from tenfold.backends.cuda.entry.launch import AWAY, LaunchWord
from tenfold.backends.llvm.text import Fragment

BUSY = 1  # no address
ROOMS = 16  # that may wait in a pool: so many callers at once are answered by native code


class KeptWord(IntEnum):
    CELL = 0  # where the room says which `Launch`, or none
    NUMBERS = 1  # how many, and where
    NUMBERS_AT = 2
    FAULT = 3  # where a kernel says that something is wrong


class NumberWord(IntEnum):
    ROW = 0
    PLACE = 1
    BYTES = 2
    VALUE = 3  # two words: what lies there


class StagedWord(IntEnum):
    ARGUMENTS = 0
    RESULTS = 1
    PARTS_AT = 2  # for each array two words: where it lies, its bytes
    POOL = 3


class RoomWord(IntEnum):
    LAUNCH = 0
    PINNED = 1  # where arrays lie
    FAULT = 2  # as in a `KeptWord` record


_KEPT = f"""
define internal i32 @tn_begin_kept(ptr %launch, ptr %table, ptr %given) nounwind {{
begin:
{load_field("%count", "i64", "%given", 8 * KeptWord.NUMBERS)}
{load_field("%numbers", "ptr", "%given", 8 * KeptWord.NUMBERS_AT)}
  %all.there = icmp eq i64 %count, 0
  br i1 %all.there, label %run, label %send
send:
  %sent = call i32 @tn_send(ptr %launch, ptr %table, ptr %numbers, i64 %count)
  %is.sent = icmp eq i32 %sent, 0
  br i1 %is.sent, label %run, label %failed
run:
  %status = call i32 @tn_launch(ptr %launch, ptr %table)
  ret i32 %status
failed:
  ret i32 %sent
}}

define dso_local i32 @tn_kept_plan(ptr %table, ptr %arena, ptr %poll, ptr %given) nounwind {{
begin:
{load_field("%cell", "ptr", "%given", 8 * KeptWord.CELL)}
  %launch = load ptr, ptr %cell, align 8
  %none = icmp eq ptr %launch, null
  br i1 %none, label %decline, label %run
run:
  %status = call i32 @tn_begin_kept(ptr %launch, ptr %table, ptr %given)
  %begun = icmp eq i32 %status, 0
  br i1 %begun, label %done, label %broken
done:
  ret i32 {DONE}
broken:
  store ptr null, ptr %cell, align 8
  br label %decline
decline:
  ret i32 {DECLINED}
}}

define dso_local i32 @tn_waited_plan(ptr %table, ptr %arena, ptr %poll, ptr %given) nounwind {{
begin:
{load_field("%cell", "ptr", "%given", 8 * KeptWord.CELL)}
  %launch = call ptr @tn_cell_take(ptr %cell, i64 {BUSY})
  %none = icmp eq ptr %launch, null
  br i1 %none, label %decline, label %run
run:
{load_field("%fault", "ptr", "%given", 8 * KeptWord.FAULT)}
{load_field("%wait", "ptr", "%launch", 8 * LaunchWord.WAIT)}
{load_field("%stream", "ptr", "%launch", 8 * LaunchWord.STREAM)}
  %status = call i32 @tn_begin_kept(ptr %launch, ptr %table, ptr %given)
  %begun = icmp eq i32 %status, 0
  br i1 %begun, label %settle, label %broken
settle:
  %waited = call i32 %wait(ptr %stream)
  %whole = icmp eq i32 %waited, 0
  br i1 %whole, label %look, label %broken
look:
  %found = load volatile i32, ptr %fault, align 4
  store volatile i32 0, ptr %fault, align 4
  store atomic ptr %launch, ptr %cell release, align 8
  %right = icmp eq i32 %found, 0
  %answer = select i1 %right, i32 {DONE}, i32 {DECLINED}
  ret i32 %answer
broken:
  store atomic ptr null, ptr %cell release, align 8
  br label %decline
decline:
  ret i32 {DECLINED}
}}

define dso_local ptr @tn_cell_take(ptr %cell, i64 %instead) nounwind {{
begin:
  %found = load atomic i64, ptr %cell acquire, align 8
  %some = icmp ugt i64 %found, {BUSY}
  br i1 %some, label %take, label %nothing
take:
  %pair = cmpxchg ptr %cell, i64 %found, i64 %instead acq_rel monotonic
  %taken = extractvalue {{ i64, i1 }} %pair, 1
  br i1 %taken, label %done, label %nothing
done:
  %launch = inttoptr i64 %found to ptr
  ret ptr %launch
nothing:
  ret ptr null
}}
"""

_SEND = f"""
define internal i32 @tn_send(ptr %launch, ptr %table, ptr %numbers, i64 %count) nounwind {{
begin:
  %value = alloca [16 x i8], align 16
{load_field("%set.current", "ptr", "%launch", 8 * LaunchWord.SET_CURRENT)}
{load_field("%context", "ptr", "%launch", 8 * LaunchWord.CONTEXT)}
{load_field("%fill", "ptr", "%launch", 8 * LaunchWord.FILL)}
{load_field("%stream", "ptr", "%launch", 8 * LaunchWord.STREAM)}
  %home = load i64, ptr @tn_at_home, align 8
  %is.home = icmp ne i64 %home, 0
  br i1 %is.home, label %enter, label %away
away:
  ret i32 {AWAY}
enter:
  %entered = call i32 %set.current(ptr %context)
  %is.entered = icmp eq i32 %entered, 0
  br i1 %is.entered, label %test, label %failed
test:
  %n = phi i64 [ 0, %enter ], [ %n.next, %there ]
  %more = icmp ult i64 %n, %count
  br i1 %more, label %number, label %done
number:
  %one = getelementptr [{8 * (len(NumberWord) + 1)} x i8], ptr %numbers, i64 %n
  %row = load i64, ptr %one, align 8
{load_field("%place", "i64", "%one", 8 * NumberWord.PLACE)}
{load_field("%bytes", "i64", "%one", 8 * NumberWord.BYTES)}
  %known = getelementptr i8, ptr %one, i64 {8 * NumberWord.VALUE}
  %given.at = getelementptr ptr, ptr %table, i64 %row
  %given = load ptr, ptr %given.at, align 8
  call void @llvm.memset.p0.i64(ptr %value, i8 0, i64 16, i1 false)
  call void @llvm.memcpy.p0.p0.i64(ptr %value, ptr %given, i64 %bytes, i1 false)
  br label %part.test
part.test:
  %p = phi i64 [ 0, %number ], [ %p.next, %part.next ]
  %start = shl i64 %p, 2
  %more.parts = icmp ult i64 %start, %bytes
  br i1 %more.parts, label %part, label %there
part:
  %new.at = getelementptr i32, ptr %value, i64 %p
  %new = load i32, ptr %new.at, align 4
  %old.at = getelementptr i32, ptr %known, i64 %p
  %old = load i32, ptr %old.at, align 4
  %same = icmp eq i32 %new, %old
  br i1 %same, label %part.next, label %part.send
part.send:
  %target = add i64 %place, %start
  %status = call i32 %fill(i64 %target, i32 %new, i64 1, ptr %stream)
  %is.sent = icmp eq i32 %status, 0
  br i1 %is.sent, label %part.sent, label %failed
part.sent:
  store i32 %new, ptr %old.at, align 4
  br label %part.next
part.next:
  %p.next = add i64 %p, 1
  br label %part.test
there:
  store i64 %place, ptr %given.at, align 8
  %n.next = add i64 %n, 1
  br label %test
done:
  ret i32 0
failed:
  %why = phi i32 [ %entered, %enter ], [ %status, %part.send ]
  ret i32 %why
}}
"""

_POOL = f"""
define dso_local ptr @tn_room_take(ptr %given) nounwind {{
begin:
  %pool = getelementptr i8, ptr %given, i64 {8 * StagedWord.POOL}
  br label %try
try:
  %i = phi i64 [ 0, %begin ], [ %next, %empty ]
  %slot = getelementptr ptr, ptr %pool, i64 %i
  %room = atomicrmw xchg ptr %slot, ptr null acq_rel
  %none = icmp eq ptr %room, null
  br i1 %none, label %empty, label %found
found:
  ret ptr %room
empty:
  %next = add i64 %i, 1
  %more = icmp ult i64 %next, {ROOMS}
  br i1 %more, label %try, label %nothing
nothing:
  ret ptr null
}}

define dso_local void @tn_room_give(ptr %given, ptr %room) nounwind {{
begin:
  %pool = getelementptr i8, ptr %given, i64 {8 * StagedWord.POOL}
  br label %try
try: ; there are no more rooms than slots
  %i = phi i64 [ 0, %begin ], [ %next, %full ]
  %slot = getelementptr ptr, ptr %pool, i64 %i
  %pair = cmpxchg ptr %slot, ptr null, ptr %room acq_rel monotonic
  %stored = extractvalue {{ ptr, i1 }} %pair, 1
  br i1 %stored, label %done, label %full
full:
  %one.on = add i64 %i, 1
  %next = and i64 %one.on, {ROOMS - 1}
  br label %try
done:
  ret void
}}
"""

_STAGED = f"""
define internal void @tn_copies(
    ptr %table, ptr %parts, i64 %first, i64 %last, ptr %pinned, i1 %come) nounwind {{
begin:
  br label %test
test:
  %i = phi i64 [ %first, %begin ], [ %next, %copied ]
  %more = icmp ult i64 %i, %last
  br i1 %more, label %copy, label %end
copy:
  %part = getelementptr [16 x i8], ptr %parts, i64 %i
  %start = load i64, ptr %part, align 8
{load_field("%bytes", "i64", "%part", 8)}
  %row = getelementptr ptr, ptr %table, i64 %i
  %array = load ptr, ptr %row, align 8
  %there = getelementptr i8, ptr %pinned, i64 %start
  %target = select i1 %come, ptr %there, ptr %array
  %source = select i1 %come, ptr %array, ptr %there
  call void @llvm.memcpy.p0.p0.i64(ptr %target, ptr %source, i64 %bytes, i1 false)
  br label %copied
copied:
  %next = add i64 %i, 1
  br label %test
end:
  ret void
}}

define dso_local i32 @tn_staged_plan(ptr %table, ptr %arena, ptr %poll, ptr %given) nounwind {{
begin:
  %room = call ptr @tn_room_take(ptr %given)
  %none = icmp eq ptr %room, null
  br i1 %none, label %decline, label %run
run:
{load_field("%launch", "ptr", "%room", 8 * RoomWord.LAUNCH)}
{load_field("%pinned", "ptr", "%room", 8 * RoomWord.PINNED)}
{load_field("%fault", "ptr", "%room", 8 * RoomWord.FAULT)}
{load_field("%count", "i64", "%given", 8 * StagedWord.ARGUMENTS)}
{load_field("%results", "i64", "%given", 8 * StagedWord.RESULTS)}
{load_field("%parts", "ptr", "%given", 8 * StagedWord.PARTS_AT)}
{load_field("%wait", "ptr", "%launch", 8 * LaunchWord.WAIT)}
{load_field("%stream", "ptr", "%launch", 8 * LaunchWord.STREAM)}
  %last = add i64 %count, %results
  call void @tn_copies(ptr %table, ptr %parts, i64 0, i64 %count, ptr %pinned, i1 true)
  %status = call i32 @tn_launch(ptr %launch, ptr %table)
  %begun = icmp eq i32 %status, 0
  br i1 %begun, label %settle, label %decline
settle:
  %waited = call i32 %wait(ptr %stream)
  %whole = icmp eq i32 %waited, 0
  br i1 %whole, label %look, label %decline
look:
  %found = load volatile i32, ptr %fault, align 4
  %right = icmp eq i32 %found, 0
  br i1 %right, label %take, label %wrong
wrong:
  store volatile i32 0, ptr %fault, align 4
  call void @tn_room_give(ptr %given, ptr %room)
  br label %decline
take:
  call void @tn_copies(ptr %table, ptr %parts, i64 %count, i64 %last, ptr %pinned, i1 false)
  call void @tn_room_give(ptr %given, ptr %room)
  ret i32 {DONE}
decline:
  ret i32 {DECLINED}
}}
"""

PLANS = Fragment(
    (
        "declare void @llvm.memcpy.p0.p0.i64(ptr, ptr, i64, i1)",
        "declare void @llvm.memset.p0.i64(ptr, i8, i64, i1)",
    ),
    _SEND + _KEPT + _POOL + _STAGED,
)
