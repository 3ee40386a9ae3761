"""Workers as LLVM IR: how they are started, how they wait, and what they run."""

from __future__ import annotations

from tenfold.backends.cpu.entry.abi import STOPPED
from tenfold.backends.cpu.threads.limits import MOST
from tenfold.backends.cpu.threads.words import (
    ALLOWED,
    ANSWER,
    CONTEXT,
    COUNT,
    CREATED,
    EPOCH,
    FUNCTION,
    GATE,
    INSIDE,
    LIMIT,
    MARK,
    MARKED,
    MASK_BYTES,
    OPEN,
    PROCESSOR,
    REGIONS,
    RUN,
    SLEEPERS,
    SPINS,
    STARTED,
    TAKEN,
    THREADS,
    WORKER_BYTES,
    WORKERS,
    at,
)
from tenfold.backends.llvm.text import Fragment

# The system's numbers: of the call, and of what it is to do, in this process alone.
FUTEX = {"x86_64": 202, "aarch64": 98}
_PAUSE = {
    "x86_64": "call void @llvm.x86.sse2.pause()",
    "aarch64": "call void @llvm.aarch64.hint(i32 1)",
}
_WAIT, _WAKE = 128, 129
_FAULTS = sum(1 << signal - 1 for signal in (4, 5, 6, 7, 8, 11))  # of a fault in a thread itself


def system(arch: str) -> Fragment:
    """What is asked of the processor and of the system."""
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
  %done = call i64 (i64, ...) @syscall(i64 {FUTEX[arch]}, ptr %word, i64 {_WAIT}, i32 %value,
    ptr %time, ptr null, i64 0)
  ret void
}}

define internal void @tn_wake(ptr %word, i64 %count) nounwind {{
  %done = call i64 (i64, ...) @syscall(i64 {FUTEX[arch]}, ptr %word, i64 {_WAKE}, i64 %count,
    ptr null, ptr null, i64 0)
  ret void
}}
""",
    )


# Run indices until there are none left, or an answer stops the work; how many. Those of the own
# share first, then what is left of the others'.
CLAIM = Fragment(
    (),
    f"""
define internal i64 @tn_claim(i64 %worker, ptr %polls) nounwind {{
begin:
{at("%answer.at", ANSWER)}{at("%function.at", FUNCTION)}{at("%context.at", CONTEXT)}\
{at("%count.at", COUNT)}{at("%threads.at", THREADS)}{at("%regions.at", REGIONS)}\
  %function = load ptr, ptr %function.at, align 8
  %context = load ptr, ptr %context.at, align 8
  %count = load i64, ptr %count.at, align 8
  %threads.few = load i32, ptr %threads.at, align 4
  %threads = zext i32 %threads.few to i64
  %regions = load i64, ptr %regions.at, align 8
  %mark = shl i64 %regions, {MARK}
  br label %share
share:
  %n = phi i64 [ 0, %begin ], [ %n.more, %over ]
  %ran.before = phi i64 [ 0, %begin ], [ %ran, %over ]
  %turn = add i64 %worker, %n
  %which = urem i64 %turn, %threads
  %low = mul i64 %which, %count
  %high = add i64 %low, %count
  %first = udiv i64 %low, %threads
  %end.at = udiv i64 %high, %threads
  %size = sub i64 %end.at, %first
  %offset = mul i64 %which, {WORKER_BYTES}
  %own = getelementptr i8, ptr @tn_pool, i64 %offset
{at("%taken.at", WORKERS + TAKEN, "%own")}\
  br label %test
test:
  %ran = phi i64 [ %ran.before, %share ], [ %ran.more, %one ], [ %ran.more, %tell ]
  %so.far = load atomic i32, ptr %answer.at monotonic, align 4
  %going = icmp eq i32 %so.far, 0
  br i1 %going, label %look, label %end
look:
  %old = load atomic i64, ptr %taken.at monotonic, align 8
  %old.low = and i64 %old, {(1 << MARK) - 1}
  %old.mark = sub i64 %old, %old.low
  %told.of = icmp eq i64 %old.mark, %mark
  %taken = select i1 %told.of, i64 %old.low, i64 0
  %left = icmp ult i64 %taken, %size
  br i1 %left, label %claim, label %over
claim:
  %taken.more = add i64 %taken, 1
  %new = or i64 %mark, %taken.more
  %swapped = cmpxchg ptr %taken.at, i64 %old, i64 %new monotonic monotonic
  %mine = extractvalue {{ i64, i1 }} %swapped, 1
  br i1 %mine, label %one, label %look
one:
  %i = add i64 %first, %taken
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
over:
  %n.more = add i64 %n, 1
  %more = icmp ult i64 %n.more, %threads
  br i1 %more, label %share, label %end
end:
  %ran.all = phi i64 [ %ran, %test ], [ %ran, %over ]
  ret i64 %ran.all
}}

define internal void @tn_forget() nounwind noinline cold {{
begin:
  br label %one
one:
  %n = phi i64 [ 0, %begin ], [ %n.more, %one ]
  %offset = mul i64 %n, {WORKER_BYTES}
  %own = getelementptr i8, ptr @tn_pool, i64 %offset
{at("%taken.at", WORKERS + TAKEN, "%own")}\
  store atomic i64 0, ptr %taken.at monotonic, align 8
  %n.more = add i64 %n, 1
  %more = icmp ult i64 %n.more, {MOST}
  br i1 %more, label %one, label %end
end:
  ret void
}}
""",
)

# Leave this processor for any other that the caller may run on.
LEAVE = Fragment(
    ("declare void @llvm.memcpy.p0.p0.i64(ptr, ptr, i64, i1)",),
    f"""
define internal void @tn_leave(i32 %here) nounwind noinline cold {{
{at("%allowed", ALLOWED)}\
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

WORKER = Fragment(
    (),
    f"""
define internal ptr @tn_worker(ptr %given) nounwind {{
begin:
{at("%epoch.at", EPOCH)}{at("%sleepers.at", SLEEPERS)}{at("%gate.at", GATE)}\
{at("%limit.at", LIMIT)}{at("%processor.at", PROCESSOR)}\
  %worker = ptrtoint ptr %given to i64
  %own.offset = mul i64 %worker, {WORKER_BYTES}
  %own = getelementptr i8, ptr @tn_pool, i64 %own.offset
{at("%ran.at", WORKERS + RUN, "%own")}\
  br label %enter
enter:
  %seen = load atomic i32, ptr %epoch.at seq_cst, align 4
  %gate = atomicrmw add ptr %gate.at, i32 1 acq_rel
  %open.bit = and i32 %gate, {OPEN}
  %open = icmp ne i32 %open.bit, 0
  %inside = and i32 %gate, {INSIDE}
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
  %last = icmp eq i32 %left, {MARKED}
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
  %patient = icmp slt i32 %turn.more, {SPINS}
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
START = Fragment(
    ("declare void @llvm.memset.p0.i64(ptr, i8, i64, i1)",),
    f"""
define internal i32 @tn_start() nounwind {{
begin:
{at("%limit.at", LIMIT)}{at("%started.at", STARTED)}{at("%created.at", CREATED)}\
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
{at("%allowed", ALLOWED)}\
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
