"""The pool as LLVM IR: workers that spin, then sleep, and the one entry that cuts work.

    i32 tn_parallel_for(ptr function, ptr context, i64 count, ptr polls)

calls `i32 function(ptr context, i64 index, i64 worker)` once for each index below `count`, in any
order, on the caller's thread and on workers, and returns when all calls have. Effects of the calls
are seen by the caller. `worker` is 0 on the thread that called, else a number below the limit that
no other call has at that time: what needs memory of its own takes `tn_worker_memory`.

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
  10 µs, and they come 50 µs later: for few indices that is done only if such work was asked for a
  moment ago and so is likely to be asked for again.

The words of the pool: `epoch` grows with every piece of work, and is what workers wait for. `gate`
has whether work is open and how many workers are inside; who comes late finds it shut, and whoever
owns the work waits until all are out. `next` is the next index.
"""

from __future__ import annotations

from tenfold.backends.cpu.entry.abi import STOPPED
from tenfold.backends.cpu.run.poll import POLL
from tenfold.backends.cpu.threads.limits import MOST
from tenfold.backends.llvm.target import LLVMTarget
from tenfold.backends.llvm.text import Fragment, join

POOL_EXPORTS = (
    "tn_parallel_for",
    "tn_pool_stopped",
    "tn_worker_memory",
    "tn_pool",
)

# Offsets in bytes of the words of `tn_pool`. What different threads write lies on lines apart.
BUSY, LIMIT, STARTED, CREATED, REGIONS, INDICES, MOMENT, LAST = 0, 4, 8, 16, 24, 32, 40, 48
EPOCH, SLEEPERS, GATE, NEXT = 64, 128, 192, 256
FUNCTION, CONTEXT, COUNT, PROCESSOR, ANSWER = 320, 328, 336, 344, 384
ALLOWED, MASK_BYTES = 448, 128  # the processors that the caller may run on
WORKERS, WORKER_BYTES = 576, 64  # of each worker: memory, its bytes, how many indices it ran
MEMORY, MEMORY_BYTES, RUN = 0, 8, 16
POOL_BYTES = WORKERS + WORKER_BYTES * MOST

_SPINS = 1000  # pauses: 10 to 50 µs
_FEW = 10  # indices for which sleeping workers may not be worth waking
_OPEN, _WAITING, _INSIDE = 1 << 30, 1 << 29, (1 << 29) - 1
_LOOK = 50_000_000  # nanoseconds between looks for signals while the caller sleeps

# The system's numbers: of the call, and of what it is to do, in this process alone.
_FUTEX = {"x86_64": 202, "aarch64": 98}
_PAUSE = {
    "x86_64": "call void @llvm.x86.sse2.pause()",
    "aarch64": "call void @llvm.aarch64.hint(i32 1)",
}
_WAIT, _WAKE = 128, 129
_FAULTS = sum(1 << signal - 1 for signal in (4, 5, 6, 7, 8, 11))  # of a fault in a thread itself


def pool_text(target: LLVMTarget) -> str:
    """The text for a target; where the system has no futex, the caller runs everything."""
    linux = "linux" in target.triple and target.arch in _FUTEX
    parts = [
        POLL,
        Fragment(("declare void @free(ptr)", "declare ptr @aligned_alloc(i64, i64)"), _STATE),
        _SERIAL,
    ]
    if not linux:
        return join([*parts, Fragment((), _ALONE)])
    return join([*parts, _system(target.arch), _CLAIM, _LEAVE, _WORKER, _START, _PARALLEL])


def _at(name: str, offset: int, base: str = "@tn_pool") -> str:
    return f"  {name} = getelementptr i8, ptr {base}, i64 {offset}\n"


_STATE = f"""
@tn_pool = dso_local global [{POOL_BYTES} x i8] zeroinitializer, align 64

define dso_local i32 @tn_pool_stopped(ptr %ignored) nounwind {{
{_at("%at", ANSWER)}  %answer = load atomic i32, ptr %at monotonic, align 4
  %stopped = icmp eq i32 %answer, {STOPPED}
  %told = zext i1 %stopped to i32
  ret i32 %told
}}

define dso_local ptr @tn_worker_memory(i64 %worker, i64 %bytes) nounwind {{
  %offset = mul i64 %worker, {WORKER_BYTES}
  %own = getelementptr i8, ptr @tn_pool, i64 %offset
{_at("%memory.at", WORKERS + MEMORY, "%own")}{_at("%size.at", WORKERS + MEMORY_BYTES, "%own")}\
  %memory = load ptr, ptr %memory.at, align 8
  %size = load i64, ptr %size.at, align 8
  %enough = icmp ule i64 %bytes, %size
  br i1 %enough, label %there, label %grow
there:
  ret ptr %memory
grow:
  call void @free(ptr %memory)
  %more = add i64 %bytes, 4095
  %whole = and i64 %more, -4096
  %made = call ptr @aligned_alloc(i64 4096, i64 %whole)
  %none = icmp eq ptr %made, null
  %has = select i1 %none, i64 0, i64 %whole
  store ptr %made, ptr %memory.at, align 8
  store i64 %has, ptr %size.at, align 8
  ret ptr %made
}}
"""

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
    ptr %function, ptr %context, i64 %count, ptr %polls) nounwind {
  %answer = call i32 @tn_serial_for(ptr %function, ptr %context, i64 %count, ptr %polls)
  ret i32 %answer
}
"""


def _system(arch: str) -> Fragment:
    pause = _PAUSE[arch].replace("i32 1", "i32")
    return Fragment(
        (
            pause.replace("call", "declare"),
            "declare i64 @syscall(i64, ...)",
            "declare i32 @pthread_create(ptr, ptr, ptr, ptr)",
            "declare i32 @pthread_detach(ptr)",
            "declare i32 @pthread_sigmask(i32, ptr, ptr)",
            "declare i32 @sched_getcpu()",
            "declare i32 @sched_getaffinity(i32, i64, ptr)",
            "declare i32 @sched_setaffinity(i32, i64, ptr)",
        ),
        f"""
define internal void @tn_pause() alwaysinline {{
  {_PAUSE[arch]}
  ret void
}}

define internal void @tn_sleep(ptr %word, i32 %value, ptr %time) nounwind {{
  %done = call i64 (i64, ...) @syscall(i64 {_FUTEX[arch]}, ptr %word, i64 {_WAIT}, i32 %value,
    ptr %time, ptr null, i64 0)
  ret void
}}

define internal void @tn_wake(ptr %word, i64 %count) nounwind {{
  %done = call i64 (i64, ...) @syscall(i64 {_FUTEX[arch]}, ptr %word, i64 {_WAKE}, i64 %count,
    ptr null, ptr null, i64 0)
  ret void
}}
""",
    )


# Run indices until there are none left, or an answer stops the work; how many.
_CLAIM = Fragment(
    (),
    f"""
define internal i64 @tn_claim(i64 %worker, ptr %polls) nounwind {{
begin:
{_at("%next.at", NEXT)}{_at("%answer.at", ANSWER)}{_at("%function.at", FUNCTION)}\
{_at("%context.at", CONTEXT)}{_at("%count.at", COUNT)}\
  %function = load ptr, ptr %function.at, align 8
  %context = load ptr, ptr %context.at, align 8
  %count = load i64, ptr %count.at, align 8
  br label %test
test:
  %ran = phi i64 [ 0, %begin ], [ %ran.more, %one ], [ %ran.more, %tell ]
  %so.far = load atomic i32, ptr %answer.at monotonic, align 4
  %going = icmp eq i32 %so.far, 0
  br i1 %going, label %claim, label %end
claim:
  %i = atomicrmw add ptr %next.at, i64 1 monotonic
  %left = icmp slt i64 %i, %count
  br i1 %left, label %one, label %end
one:
  %answer = call i32 %function(ptr %context, i64 %i, i64 %worker)
  %fine = icmp eq i32 %answer, 0
  %asked = select i1 %fine, ptr %polls, ptr null
  %raised = call i32 @tn_looked(ptr %asked)
  %quiet = icmp eq i32 %raised, 0
  %whole = select i1 %quiet, i32 %answer, i32 {STOPPED}
  %ran.more = add i64 %ran, 1
  %good = icmp eq i32 %whole, 0
  br i1 %good, label %test, label %tell
tell:
  %told = atomicrmw or ptr %answer.at, i32 %whole monotonic
  br label %test
end:
  ret i64 %ran
}}
""",
)

# Leave this processor for any other that the caller may run on.
_LEAVE = Fragment(
    ("declare void @llvm.memcpy.p0.p0.i64(ptr, ptr, i64, i1)",),
    f"""
define internal void @tn_leave(i32 %here) nounwind noinline cold {{
{_at("%allowed", ALLOWED)}\
  %mask = alloca [{MASK_BYTES} x i8], align 16
  call void @llvm.memcpy.p0.p0.i64(ptr %mask, ptr %allowed, i64 {MASK_BYTES}, i1 false)
  %byte = sdiv i32 %here, 8
  %bit = and i32 %here, 7
  %one = shl i32 1, %bit
  %known = icmp ult i32 %byte, {MASK_BYTES}
  br i1 %known, label %set, label %end
set:
  %at = getelementptr i8, ptr %mask, i32 %byte
  %old = load i8, ptr %at, align 1
  %drop = trunc i32 %one to i8
  %keep = xor i8 %drop, -1
  %new = and i8 %old, %keep
  store i8 %new, ptr %at, align 1
  %done = call i32 @sched_setaffinity(i32 0, i64 {MASK_BYTES}, ptr %mask)
  br label %end
end:
  ret void
}}
""",
)

_WORKER = Fragment(
    (),
    f"""
define internal ptr @tn_worker(ptr %given) nounwind {{
begin:
{_at("%epoch.at", EPOCH)}{_at("%sleepers.at", SLEEPERS)}{_at("%gate.at", GATE)}\
{_at("%limit.at", LIMIT)}{_at("%processor.at", PROCESSOR)}\
  %worker = ptrtoint ptr %given to i64
  %own.offset = mul i64 %worker, {WORKER_BYTES}
  %own = getelementptr i8, ptr @tn_pool, i64 %own.offset
{_at("%ran.at", WORKERS + RUN, "%own")}\
  br label %enter
enter:
  %seen = load atomic i32, ptr %epoch.at seq_cst, align 4
  %gate = atomicrmw add ptr %gate.at, i32 1 acq_rel
  %open.bit = and i32 %gate, {_OPEN}
  %open = icmp ne i32 %open.bit, 0
  %inside = and i32 %gate, {_INSIDE}
  %limit = load atomic i32, ptr %limit.at monotonic, align 4
  %room.most = sub i32 %limit, 1
  %room = icmp slt i32 %inside, %room.most
  %in = and i1 %open, %room
  br i1 %in, label %work, label %leave
work:
  %callers = load i32, ptr %processor.at, align 4
  %here = call i32 @sched_getcpu()
  %beside = icmp eq i32 %here, %callers
  br i1 %beside, label %move, label %claim
move:
  call void @tn_leave(i32 %here)
  br label %claim
claim:
  %ran = call i64 @tn_claim(i64 %worker, ptr null)
  %before = load i64, ptr %ran.at, align 8
  %after = add i64 %before, %ran
  store i64 %after, ptr %ran.at, align 8
  br label %leave
leave:
  %old = atomicrmw sub ptr %gate.at, i32 1 acq_rel
  %left = sub i32 %old, 1
  %last = icmp eq i32 %left, {_WAITING}
  br i1 %last, label %wake, label %idle
wake:
  call void @tn_wake(ptr %gate.at, i64 1)
  br label %idle
idle:
  br label %spin
spin:
  %turn = phi i32 [ 0, %idle ], [ %turn.more, %again ]
  %now = load atomic i32, ptr %epoch.at acquire, align 4
  %new = icmp ne i32 %now, %seen
  br i1 %new, label %enter, label %again
again:
  call void @tn_pause()
  %turn.more = add i32 %turn, 1
  %patient = icmp slt i32 %turn.more, {_SPINS}
  br i1 %patient, label %spin, label %sleep
sleep:
  %down = atomicrmw add ptr %sleepers.at, i32 1 seq_cst
  call void @tn_sleep(ptr %epoch.at, i32 %seen, ptr null)
  %up = atomicrmw sub ptr %sleepers.at, i32 1 seq_cst
  br label %idle
}}
""",
)

# Have as many workers as the limit allows; how many threads take part. Called by who has the pool.
_START = Fragment(
    ("declare void @llvm.memset.p0.i64(ptr, i8, i64, i1)",),
    f"""
define internal i32 @tn_start() nounwind {{
begin:
{_at("%limit.at", LIMIT)}{_at("%started.at", STARTED)}{_at("%created.at", CREATED)}\
  %limit = load atomic i32, ptr %limit.at monotonic, align 4
  %started = load i32, ptr %started.at, align 4
  %have = add i32 %started, 1
  %enough = icmp sge i32 %have, %limit
  br i1 %enough, label %ready, label %start
ready:
  ret i32 %limit
start:
  %mask = alloca [16 x i64], align 16
  %old = alloca [16 x i64], align 16
  %thread = alloca ptr, align 8
  call void @llvm.memset.p0.i64(ptr %mask, i8 -1, i64 128, i1 false)
  store i64 {~_FAULTS}, ptr %mask, align 8
  %masked = call i32 @pthread_sigmask(i32 2, ptr %mask, ptr %old)
{_at("%allowed", ALLOWED)}\
  %found = call i32 @sched_getaffinity(i32 0, i64 {MASK_BYTES}, ptr %allowed)
  br label %test
test:
  %n = phi i32 [ %started, %start ], [ %n.more, %made ]
  %n.more = add i32 %n, 1
  %wanted = icmp slt i32 %n.more, %limit
  br i1 %wanted, label %create, label %end
create:
  %number = zext i32 %n.more to i64
  %given = inttoptr i64 %number to ptr
  %failed = call i32 @pthread_create(ptr %thread, ptr null, ptr @tn_worker, ptr %given)
  %good = icmp eq i32 %failed, 0
  br i1 %good, label %made, label %refused
made:
  %one = load ptr, ptr %thread, align 8
  %detached = call i32 @pthread_detach(ptr %one)
  %created = load i64, ptr %created.at, align 8
  %created.more = add i64 %created, 1
  store i64 %created.more, ptr %created.at, align 8
  br label %test
refused:
  store atomic i32 %n.more, ptr %limit.at monotonic, align 4
  br label %end
end:
  %have.now = phi i32 [ %n, %test ], [ %n, %refused ]
  store i32 %have.now, ptr %started.at, align 4
  %restored = call i32 @pthread_sigmask(i32 2, ptr %old, ptr null)
  %all = add i32 %have.now, 1
  ret i32 %all
}}
""",
)

_PARALLEL = Fragment(
    ("declare i64 @llvm.smin.i64(i64, i64)",),
    f"""
define dso_local i32 @tn_parallel_for(
    ptr %function, ptr %context, i64 %count, ptr %polls) nounwind {{
begin:
{_at("%busy.at", BUSY)}{_at("%limit.at", LIMIT)}\
  %limit = load atomic i32, ptr %limit.at monotonic, align 4
  %several = icmp sgt i32 %limit, 1
  %many = icmp sgt i64 %count, 1
  %cut = and i1 %several, %many
  br i1 %cut, label %ask, label %serial
ask:
  %taken = cmpxchg ptr %busy.at, i32 0, i32 1 acquire monotonic
  %mine = extractvalue {{ i32, i1 }} %taken, 1
  br i1 %mine, label %had, label %serial
had:
{_at("%first.sleepers", SLEEPERS)}{_at("%first.started", STARTED)}\
  %down = load atomic i32, ptr %first.sleepers monotonic, align 4
  %there = load i32, ptr %first.started, align 4
  %cold = icmp sge i32 %down, %there
  %few = icmp slt i64 %count, {_FEW}
  %doubtful = and i1 %cold, %few
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
{_at("%function.at", FUNCTION)}{_at("%context.at", CONTEXT)}{_at("%count.at", COUNT)}\
{_at("%next.at", NEXT)}{_at("%answer.at", ANSWER)}{_at("%gate.at", GATE)}{_at("%epoch.at", EPOCH)}\
{_at("%processor.at", PROCESSOR)}{_at("%sleepers.at", SLEEPERS)}\
{_at("%regions.at", REGIONS)}{_at("%indices.at", INDICES)}\
  store ptr %function, ptr %function.at, align 8
  store ptr %context, ptr %context.at, align 8
  store i64 %count, ptr %count.at, align 8
  %here = call i32 @sched_getcpu()
  store i32 %here, ptr %processor.at, align 4
  store atomic i64 0, ptr %next.at monotonic, align 8
  store atomic i32 0, ptr %answer.at monotonic, align 4
  %threads = call i32 @tn_start()
  %opened = atomicrmw or ptr %gate.at, i32 {_OPEN} acq_rel
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
  %shut = atomicrmw and ptr %gate.at, i32 {~_OPEN} acq_rel
  br label %spin
spin:
  %turn = phi i32 [ 0, %work ], [ %turn.more, %again ]
  %gate = load atomic i32, ptr %gate.at acquire, align 4
  %inside = and i32 %gate, {_INSIDE}
  %out = icmp eq i32 %inside, 0
  br i1 %out, label %end, label %again
again:
  call void @tn_pause()
  %turn.more = add i32 %turn, 1
  %patient = icmp slt i32 %turn.more, {_SPINS}
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

define internal i1 @tn_often() nounwind noinline {{
{_at("%moment.at", MOMENT)}{_at("%last.at", LAST)}\
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
{_at("%gate.at", GATE)}{_at("%answer.at", ANSWER)}\
  %time = alloca [2 x i64], align 16
  %more.at = getelementptr i64, ptr %time, i64 1
  store i64 0, ptr %time, align 8
  store i64 {_LOOK}, ptr %more.at, align 8
  br label %test
test:
  %gate = load atomic i32, ptr %gate.at acquire, align 4
  %inside = and i32 %gate, {_INSIDE}
  %out = icmp eq i32 %inside, 0
  br i1 %out, label %end, label %mark
mark:
  %marked = or i32 %gate, {_WAITING}
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
  %cleared = atomicrmw and ptr %gate.at, i32 {~_WAITING} acq_rel
  ret void
}}
""",
)
