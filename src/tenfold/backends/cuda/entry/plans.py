"""The functions that native gates call in place of a plan, as LLVM IR (see the CPU's `entry/abi`).

`tn_kept` launches a plan's graph on arrays that lie on the device, and returns: its table has their
addresses. `given` is one word, a `Launch` or nothing.

`tn_staged` has small arrays of the host brought by way of pinned memory, whose copies are nodes of
the graph, and waits; it runs without the GIL. `given` is a `StagedWord`s record: how many arrays
come, how many go, and for each where it lies in pinned memory and its bytes; then a pool of rooms,
`RoomWord`, each of one caller at a time.

Both decline where they have no graph, and where something fails: Python does the call then, and
says what is wrong. What failed is used no more.
"""

from __future__ import annotations

from enum import IntEnum

from tenfold.backends.cpu.entry.abi import DECLINED, DONE
from tenfold.backends.cpu.entry.record import load_field
from tenfold.backends.cuda.entry.launch import LaunchWord
from tenfold.backends.llvm.text import Fragment

ROOMS = 16  # that may wait in a pool: so many callers at once are answered by native code


class StagedWord(IntEnum):
    ARGUMENTS = 0
    RESULTS = 1
    PARTS_AT = 2  # for each array two words: where it lies, its bytes
    POOL = 3


class RoomWord(IntEnum):
    LAUNCH = 0
    PINNED = 1  # where arrays lie
    FAULT = 2  # where a kernel says that something is wrong


_KEPT = f"""
define dso_local i32 @tn_kept_plan(ptr %table, ptr %arena, ptr %poll, ptr %given) nounwind {{
begin:
  %launch = load ptr, ptr %given, align 8
  %none = icmp eq ptr %launch, null
  br i1 %none, label %decline, label %run
run:
  %status = call i32 @tn_launch(ptr %launch, ptr %table)
  %begun = icmp eq i32 %status, 0
  br i1 %begun, label %done, label %broken
done:
  ret i32 {DONE}
broken:
  store ptr null, ptr %given, align 8
  br label %decline
decline:
  ret i32 {DECLINED}
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
    ("declare void @llvm.memcpy.p0.p0.i64(ptr, ptr, i64, i1)",), _KEPT + _POOL + _STAGED
)
