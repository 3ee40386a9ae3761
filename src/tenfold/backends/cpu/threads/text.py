"""The pool as LLVM IR: workers that spin, then sleep, and the one entry that cuts work.

    i32 tn_parallel_for(ptr function, ptr context, i64 count, i64 nanoseconds, ptr polls)

calls `i32 function(ptr context, i64 index, i64 worker)` once for each index below `count`, in any
order, on the caller's thread and on workers, and returns when all calls have. Effects of the calls
are seen by the caller. `worker` is 0 on the thread that called, else a number below the limit that
no other call has at that time: what needs memory of its own takes `tn_worker_memory`.
`nanoseconds` is about how long all of it takes one thread.

- Each thread begins with a share of its own, the same stretch of indices in the next call for as
  many: what it wrote lies in its cache. Who is done takes what is left of others' shares.
- An answer other than 0 stops the work: no further index is begun, and the answers' bits together
  are the answer. `polls` is the plan's poll state, or null: between its own calls, and while it
  waits, the caller looks for signals; one that raises makes the answer `STOPPED`.
  `tn_pool_stopped` tells a function on a worker that this happened.
- The caller runs all of it by itself where one thread is the limit, where there is one index, and
  while the pool is at work already: for another Python thread, or for the call that this one is
  part of. So nobody waits for the pool, nested calls are serial, and many callers share the cores
  as they would without it.
- Workers are threads of the system (`pthread_create`), begun when first needed and never ended.
  They know nothing of Python: no GIL, no thread state to be torn down while the interpreter exits,
  and a fork simply has none (`reset`). They take no signals but those of faults, so that Ctrl-C
  reaches a thread of Python's.
- Schedulers like to put a thread beside who woke it, on the same processor, where it waits for its
  caller. A worker that finds itself there leaves: it may run wherever the caller may, but there.
  Pinned to one processor it would wait for whoever else is pinned there.
- A worker without work spins for some microseconds, then sleeps; so does a caller that waits. A
  caller wakes workers only if some sleep, and goes on itself meanwhile. To wake them takes some
  10 µs, and they come 50 µs later: for little work that is done only if such work was asked for a
  moment ago and so is likely to be asked for again.
"""

from __future__ import annotations

from tenfold.backends.cpu.entry.abi import STOPPED
from tenfold.backends.cpu.run.poll import POLL
from tenfold.backends.cpu.threads.state import STATE
from tenfold.backends.cpu.threads.words import (
    ANSWER,
    BUSY,
    CONTEXT,
    COUNT,
    EPOCH,
    FUNCTION,
    GATE,
    INDICES,
    INSIDE,
    LAST,
    LIMIT,
    MARK,
    MARKED,
    MOMENT,
    OPEN,
    PROCESSOR,
    REGIONS,
    SLEEPERS,
    SPINS,
    STARTED,
    THREADS,
    at,
)
from tenfold.backends.cpu.threads.workers import CLAIM, FUTEX, LEAVE, START, WORKER, system
from tenfold.backends.llvm.target import LLVMTarget
from tenfold.backends.llvm.text import Fragment, join

_LITTLE = 100_000  # nanoseconds of work for which sleeping workers may not be worth waking
_LOOK = 50_000_000  # nanoseconds between looks for signals while the caller sleeps


def pool_text(target: LLVMTarget) -> str:
    """The text for a target; where the system has no futex, the caller runs everything."""
    parts = [POLL, STATE, _SERIAL]
    if "linux" not in target.triple or target.arch not in FUTEX:
        return join([*parts, Fragment((), _ALONE)])
    workers = [system(target.arch), CLAIM, LEAVE, WORKER, START]
    return join([*parts, *workers, _WAITING, _PARALLEL])


_SERIAL = Fragment(
    (),
    f"""
define internal i32 @tn_serial_for(ptr %function, ptr %context, i64 %count, ptr %polls) nounwind {{
begin:
  br label %test
test:
  %i = phi i64 [ 0, %begin ], [ %more, %on ]
  %left = icmp slt i64 %i, %count
  br i1 %left, label %one, label %end
one:
  %answer = call i32 %function(ptr %context, i64 %i, i64 0)
  %bad = icmp ne i32 %answer, 0
  br i1 %bad, label %stop, label %look
stop:
  ret i32 %answer
look:
  %raised = call i32 @tn_looked(ptr %polls)
  %stopped = icmp ne i32 %raised, 0
  br i1 %stopped, label %raise, label %on
raise:
  ret i32 {STOPPED}
on:
  %more = add i64 %i, 1
  br label %test
end:
  ret i32 0
}}

define internal i32 @tn_looked(ptr %polls) nounwind {{
  %none = icmp eq ptr %polls, null
  br i1 %none, label %quiet, label %look
quiet:
  ret i32 0
look:
  %raised = call i32 @tn_poll_clock(ptr %polls)
  ret i32 %raised
}}
""",
)

_ALONE = """
define dso_local i32 @tn_parallel_for(
    ptr %function, ptr %context, i64 %count, i64 %nanoseconds, ptr %polls) nounwind {
  %answer = call i32 @tn_serial_for(ptr %function, ptr %context, i64 %count, ptr %polls)
  ret i32 %answer
}
"""

# Whether little work comes often, and waiting for workers to come out.
_WAITING = Fragment(
    (),
    f"""
define internal i1 @tn_often() nounwind noinline {{
{at("%moment.at", MOMENT)}{at("%last.at", LAST)}\
  %time = alloca [2 x i64], align 16
  %got = call i32 @clock_gettime(i32 1, ptr %time)
  %seconds = load i64, ptr %time, align 8
  %fraction.at = getelementptr i64, ptr %time, i64 1
  %fraction = load i64, ptr %fraction.at, align 8
  %whole = mul i64 %seconds, 1000000000
  %now = add i64 %whole, %fraction
  %last = load i64, ptr %last.at, align 8
  store i64 %now, ptr %last.at, align 8
  %gone = sub i64 %now, %last
  %moment = load i64, ptr %moment.at, align 8
  %often = icmp slt i64 %gone, %moment
  ret i1 %often
}}

define internal void @tn_wait(ptr %polls) nounwind noinline {{
begin:
{at("%gate.at", GATE)}{at("%answer.at", ANSWER)}\
  %time = alloca [2 x i64], align 16
  %more.at = getelementptr i64, ptr %time, i64 1
  store i64 0, ptr %time, align 8
  store i64 {_LOOK}, ptr %more.at, align 8
  br label %test
test:
  %gate = load atomic i32, ptr %gate.at acquire, align 4
  %inside = and i32 %gate, {INSIDE}
  %out = icmp eq i32 %inside, 0
  br i1 %out, label %end, label %mark
mark:
  %marked = or i32 %gate, {MARKED}
  %swapped = cmpxchg ptr %gate.at, i32 %gate, i32 %marked acq_rel monotonic
  %same = extractvalue {{ i32, i1 }} %swapped, 1
  br i1 %same, label %sleep, label %test
sleep:
  call void @tn_sleep(ptr %gate.at, i32 %marked, ptr %time)
  %raised = call i32 @tn_looked(ptr %polls)
  %quiet = icmp eq i32 %raised, 0
  br i1 %quiet, label %test, label %stop
stop:
  %told = atomicrmw or ptr %answer.at, i32 {STOPPED} monotonic
  br label %test
end:
  %cleared = atomicrmw and ptr %gate.at, i32 {~MARKED} acq_rel
  ret void
}}
""",
)

_PARALLEL = Fragment(
    ("declare i64 @llvm.smin.i64(i64, i64)",),
    f"""
define dso_local i32 @tn_parallel_for(
    ptr %function, ptr %context, i64 %count, i64 %nanoseconds, ptr %polls) nounwind {{
begin:
{at("%busy.at", BUSY)}{at("%limit.at", LIMIT)}\
  %limit = load atomic i32, ptr %limit.at monotonic, align 4
  %several = icmp sgt i32 %limit, 1
  %many = icmp sgt i64 %count, 1
  %counted = icmp ult i64 %count, {1 << MARK}
  %parts = and i1 %many, %counted
  %cut = and i1 %several, %parts
  br i1 %cut, label %ask, label %serial
ask:
  %taken = cmpxchg ptr %busy.at, i32 0, i32 1 acquire monotonic
  %mine = extractvalue {{ i32, i1 }} %taken, 1
  br i1 %mine, label %had, label %serial
had:
{at("%first.sleepers", SLEEPERS)}{at("%first.started", STARTED)}\
  %down = load atomic i32, ptr %first.sleepers monotonic, align 4
  %there = load i32, ptr %first.started, align 4
  %cold = icmp sge i32 %down, %there
  %little = icmp slt i64 %nanoseconds, {_LITTLE}
  %doubtful = and i1 %cold, %little
  br i1 %doubtful, label %doubt, label %begun
doubt:
  %often = call i1 @tn_often()
  br i1 %often, label %begun, label %decline
decline:
  store atomic i32 0, ptr %busy.at release, align 4
  br label %serial
serial:
  %alone = call i32 @tn_serial_for(ptr %function, ptr %context, i64 %count, ptr %polls)
  ret i32 %alone
begun:
{at("%function.at", FUNCTION)}{at("%context.at", CONTEXT)}{at("%count.at", COUNT)}\
{at("%answer.at", ANSWER)}{at("%gate.at", GATE)}{at("%epoch.at", EPOCH)}\
{at("%processor.at", PROCESSOR)}{at("%sleepers.at", SLEEPERS)}{at("%threads.at", THREADS)}\
{at("%regions.at", REGIONS)}{at("%indices.at", INDICES)}\
  store ptr %function, ptr %function.at, align 8
  store ptr %context, ptr %context.at, align 8
  store i64 %count, ptr %count.at, align 8
  %here = call i32 @sched_getcpu()
  store i32 %here, ptr %processor.at, align 4
  store atomic i32 0, ptr %answer.at monotonic, align 4
  %threads = call i32 @tn_start()
  store i32 %threads, ptr %threads.at, align 4
  %before = load i64, ptr %regions.at, align 8
  %mark = shl i64 %before, {MARK}
  %wrapped = icmp eq i64 %mark, 0
  br i1 %wrapped, label %forget, label %open
forget:
  call void @tn_forget()
  br label %open
open:
  %opened = atomicrmw or ptr %gate.at, i32 {OPEN} acq_rel
  %newer = atomicrmw add ptr %epoch.at, i32 1 seq_cst
  %sleepers = load atomic i32, ptr %sleepers.at seq_cst, align 4
  %asleep = icmp ne i32 %sleepers, 0
  br i1 %asleep, label %rouse, label %work
rouse:
  %others = sub i32 %threads, 1
  %others.wide = sext i32 %others to i64
  %rest = sub i64 %count, 1
  %wanted = call i64 @llvm.smin.i64(i64 %others.wide, i64 %rest)
  call void @tn_wake(ptr %epoch.at, i64 %wanted)
  br label %work
work:
  %ran = call i64 @tn_claim(i64 0, ptr %polls)
  %shut = atomicrmw and ptr %gate.at, i32 {~OPEN} acq_rel
  br label %spin
spin:
  %turn = phi i32 [ 0, %work ], [ %turn.more, %again ]
  %gate = load atomic i32, ptr %gate.at acquire, align 4
  %inside = and i32 %gate, {INSIDE}
  %out = icmp eq i32 %inside, 0
  br i1 %out, label %end, label %again
again:
  call void @tn_pause()
  %turn.more = add i32 %turn, 1
  %patient = icmp slt i32 %turn.more, {SPINS}
  br i1 %patient, label %spin, label %wait
wait:
  call void @tn_wait(ptr %polls)
  br label %end
end:
  %regions = load i64, ptr %regions.at, align 8
  %regions.more = add i64 %regions, 1
  store i64 %regions.more, ptr %regions.at, align 8
  %indices = load i64, ptr %indices.at, align 8
  %indices.more = add i64 %indices, %count
  store i64 %indices.more, ptr %indices.at, align 8
  %answer = load atomic i32, ptr %answer.at monotonic, align 4
  store atomic i32 0, ptr %busy.at release, align 4
  ret i32 %answer
}}
""",
)
