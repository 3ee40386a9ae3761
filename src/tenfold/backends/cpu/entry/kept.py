"""Memory of large results, kept when they are freed and given to later ones, as LLVM IR.

Memory fresh from the system is cleared page by page when it is first touched, which takes longer
than most kernels do with it. So a block whose result is gone rests in a slot until a result of
about its size is made. A block is a mapping of its own: one page that says how many bytes follow,
then these. From the size of a huge page on it begins at one and asks for them. What rests beyond
`OWN` bytes of such blocks is lent: the system may take their pages when it is short of memory. To
lend a block interrupts every processor that runs a thread of this process, which takes longer than
many kernels on a virtual machine.

- `ptr @tn_kept_take(i64 bytes)` gives memory, null if there is none even after all that rests was
  given back. Of the blocks at rest that are large enough, and by no more than an eighth too large,
  it is the smallest, and among equals the one freed last.
- `void @tn_kept_give(ptr data)` lets it rest; blocks that rest longest go back to the system where
  all would be more than the limit.
- `i64 @tn_kept_shrink(i64 most)` gives back until no more than this rests, and says how much.
- `void @tn_kept_age()` gives back what was freed before it was called for the last time.

All are called with the GIL held, as NumPy's arrays are made and freed: nothing is locked, and a
fork finds the words in order. A child has blocks of its own, as all private memory.
"""

from __future__ import annotations

from tenfold.backends.cpu.entry.kept_memory import HUGE_PAGE, NEVER, KeptWord
from tenfold.backends.cpu.entry.record import load_field
from tenfold.backends.llvm.text import Fragment

SLOTS = 64  # blocks that may rest
SLOT = 32  # bytes: a block, its bytes, the time when it was freed, how many of them are not lent
OWN = 1 << 26  # bytes that rest without being lent
SMALL = "nounwind noinline optnone"  # beside a page of memory it takes no time, made quickly
_BEHIND = KeptWord.SLOTS + SLOTS * SLOT // 8 - KeptWord.PAGE


def kept_word(name: str, word: KeptWord) -> str:
    """Two lines: a word of `tn_kept`."""
    return load_field(name, "i64", "@tn_kept", 8 * word)


def _add(name: str, word: KeptWord, number: str) -> str:
    """Lines that add to a word: `name.now` is what it is then."""
    return (
        f"{kept_word(name, word)}\n"
        f"  {name}.now = add i64 {name}, {number}\n"
        f"  store i64 {name}.now, ptr {name}.at, align 8"
    )


def _slot(name: str, number: str) -> str:
    return (
        f"  {name} = getelementptr [{SLOT} x i8], ptr %slots, i64 {number}\n"
        f"{load_field(f'{name}.bytes', 'i64', name, 8)}\n"
        f"{load_field(f'{name}.time', 'i64', name, 16)}"
    )


_SLOTS = f"  %slots = getelementptr i8, ptr @tn_kept, i64 {8 * KeptWord.SLOTS}"

_STATE = f"""
@tn_kept = dso_local global {{ [{KeptWord.LEAST} x i64], i64, [{_BEHIND} x i64] }} {{
  [{KeptWord.LEAST} x i64] zeroinitializer, i64 {NEVER},
  [{_BEHIND} x i64] zeroinitializer }}, align 64
"""

_BLOCKS = f"""
define internal i64 @tn_block_bytes(ptr %data) {SMALL} {{
{kept_word("%page", KeptWord.PAGE)}
  %back = sub i64 0, %page
  %head = getelementptr i8, ptr %data, i64 %back
  %bytes = load i64, ptr %head, align 8
  ret i64 %bytes
}}

define internal ptr @tn_block_map(i64 %bytes) {SMALL} {{
begin:
{kept_word("%page", KeptWord.PAGE)}
{kept_word("%flags", KeptWord.FLAGS)}
{kept_word("%advice", KeptWord.HUGE)}
  %short = sub i64 0, %page
  %last = sub i64 %page, 1
  %over = add i64 %bytes, %last
  %whole = and i64 %over, %short
  %long = icmp uge i64 %whole, {HUGE_PAGE}
  %advised = icmp ne i64 %advice, 0
  %huge = and i1 %long, %advised
  %spare = select i1 %huge, i64 {HUGE_PAGE}, i64 0
  %lower = select i1 %huge, i64 {HUGE_PAGE - 1}, i64 0
  %upper = xor i64 %lower, -1
  %more = add i64 %page, %spare
  %length = add i64 %whole, %more
  %flags.half = trunc i64 %flags to i32
  %base = call ptr @mmap(ptr null, i64 %length, i32 3, i32 %flags.half, i32 -1, i64 0)
  %start = ptrtoint ptr %base to i64
  %none = icmp eq i64 %start, -1
  br i1 %none, label %failed, label %place
place:
  %first = add i64 %start, %page
  %high = add i64 %first, %lower
  %at = and i64 %high, %upper
  %end = add i64 %at, %whole
  %head.at = sub i64 %at, %page
  %data = inttoptr i64 %at to ptr
  %head = inttoptr i64 %head.at to ptr
  store i64 %whole, ptr %head, align 8
  br i1 %huge, label %trim, label %done
trim:
  %before = sub i64 %head.at, %start
  call void @tn_unmap(ptr %base, i64 %before)
  %until = add i64 %start, %length
  %after = sub i64 %until, %end
  %rest = inttoptr i64 %end to ptr
  call void @tn_unmap(ptr %rest, i64 %after)
  %advice.half = trunc i64 %advice to i32
  %ignored = call i32 @madvise(ptr %data, i64 %whole, i32 %advice.half)
  br label %done
done:
  ret ptr %data
failed:
  ret ptr null
}}

define internal void @tn_unmap(ptr %start, i64 %bytes) {SMALL} {{
  %none = icmp eq i64 %bytes, 0
  br i1 %none, label %done, label %unmap
unmap:
  %ignored = call i32 @munmap(ptr %start, i64 %bytes)
  ret void
done:
  ret void
}}

define internal void @tn_block_unmap(ptr %data) {SMALL} {{
{kept_word("%page", KeptWord.PAGE)}
  %bytes = call i64 @tn_block_bytes(ptr %data)
  %length = add i64 %bytes, %page
  %back = sub i64 0, %page
  %head = getelementptr i8, ptr %data, i64 %back
  call void @tn_unmap(ptr %head, i64 %length)
  ret void
}}

define internal i64 @tn_block_lend(ptr %data, i64 %bytes) {SMALL} {{
{kept_word("%own", KeptWord.OWN)}
{kept_word("%advice", KeptWord.LOAN)}
  %whole = and i64 %bytes, {-HUGE_PAGE}
  %more = add i64 %own, %bytes
  %room = icmp ule i64 %more, {OWN}
  %short = icmp eq i64 %whole, 0
  %never = icmp eq i64 %advice, 0
  %small = or i1 %room, %short
  %keep = or i1 %small, %never
  br i1 %keep, label %done, label %advise
advise:
  %advice.half = trunc i64 %advice to i32
  %ignored = call i32 @madvise(ptr %data, i64 %whole, i32 %advice.half)
  ret i64 0
done:
  ret i64 %bytes
}}
"""

_TAKE = f"""
define internal ptr @tn_kept_take(i64 %bytes) {SMALL} {{
begin:
{_SLOTS}
{kept_word("%count", KeptWord.COUNT)}
{kept_word("%page", KeptWord.PAGE)}
  %eighth = lshr i64 %bytes, 3
  %spare = add i64 %eighth, %page
  %most = add i64 %bytes, %spare
  br label %test
test:
  %i = phi i64 [ 0, %begin ], [ %i.next, %next ]
  %best = phi ptr [ null, %begin ], [ %best.next, %next ]
  %best.bytes = phi i64 [ -1, %begin ], [ %bytes.next, %next ]
  %best.time = phi i64 [ 0, %begin ], [ %time.next, %next ]
  %more = icmp ult i64 %i, %count
  br i1 %more, label %next, label %found
next:
{_slot("%slot", "%i")}
  %enough = icmp uge i64 %slot.bytes, %bytes
  %close = icmp ule i64 %slot.bytes, %most
  %fits = and i1 %enough, %close
  %smaller = icmp ult i64 %slot.bytes, %best.bytes
  %same = icmp eq i64 %slot.bytes, %best.bytes
  %later = icmp ugt i64 %slot.time, %best.time
  %fresher = and i1 %same, %later
  %better = or i1 %smaller, %fresher
  %chosen = and i1 %fits, %better
  %best.next = select i1 %chosen, ptr %slot, ptr %best
  %bytes.next = select i1 %chosen, i64 %slot.bytes, i64 %best.bytes
  %time.next = select i1 %chosen, i64 %slot.time, i64 %best.time
  %i.next = add i64 %i, 1
  br label %test
found:
  %missed = icmp eq ptr %best, null
  br i1 %missed, label %map, label %reuse
reuse:
  %data = call ptr @tn_kept_remove(ptr %best)
{_add("%reused", KeptWord.REUSED, "1")}
  ret ptr %data
map:
  %mapped = call ptr @tn_block_map(i64 %bytes)
  %failed = icmp eq ptr %mapped, null
  br i1 %failed, label %short, label %count.it
short:
  %given.back = call i64 @tn_kept_shrink(i64 0)
  %again = call ptr @tn_block_map(i64 %bytes)
  %never = icmp eq ptr %again, null
  br i1 %never, label %out, label %count.it
count.it:
  %fresh = phi ptr [ %mapped, %map ], [ %again, %short ]
{_add("%maps", KeptWord.MAPPED, "1")}
  ret ptr %fresh
out:
  ret ptr null
}}
"""

_GIVE = f"""
define internal void @tn_kept_give(ptr %data) {SMALL} {{
begin:
{_SLOTS}
  %bytes = call i64 @tn_block_bytes(ptr %data)
{kept_word("%limit", KeptWord.LIMIT)}
  %room = icmp ule i64 %bytes, %limit
  br i1 %room, label %keep, label %unmap
unmap:
  call void @tn_block_unmap(ptr %data)
  ret void
keep:
  %most = sub i64 %limit, %bytes
  %given.back = call i64 @tn_kept_shrink(i64 %most)
{kept_word("%used", KeptWord.COUNT)}
  %full = icmp eq i64 %used, {SLOTS}
  br i1 %full, label %drop, label %rest
drop:
  call void @tn_kept_drop_oldest()
  br label %rest
rest:
{kept_word("%place", KeptWord.COUNT)}
  %place.next = add i64 %place, 1
  store i64 %place.next, ptr %place.at, align 8
{_add("%kept", KeptWord.BYTES, "%bytes")}
{_add("%time", KeptWord.TIME, "1")}
  %slot = getelementptr [{SLOT} x i8], ptr %slots, i64 %place
  store ptr %data, ptr %slot, align 8
  %slot.bytes = getelementptr i8, ptr %slot, i64 8
  store i64 %bytes, ptr %slot.bytes, align 8
  %slot.time = getelementptr i8, ptr %slot, i64 16
  store i64 %time.now, ptr %slot.time, align 8
  %slot.own = getelementptr i8, ptr %slot, i64 24
  %not.lent = call i64 @tn_block_lend(ptr %data, i64 %bytes)
  store i64 %not.lent, ptr %slot.own, align 8
{_add("%own", KeptWord.OWN, "%not.lent")}
  ret void
}}
"""

# The last slot takes the place of the one that is emptied.
_RETURN = f"""
define internal ptr @tn_kept_remove(ptr %slot) {SMALL} {{
{_SLOTS}
  %data = load ptr, ptr %slot, align 8
{load_field("%bytes", "i64", "%slot", 8)}
{load_field("%not.lent", "i64", "%slot", 24)}
  %less = sub i64 0, %bytes
  %less.own = sub i64 0, %not.lent
{_add("%kept", KeptWord.BYTES, "%less")}
{_add("%own", KeptWord.OWN, "%less.own")}
{_add("%count", KeptWord.COUNT, "-1")}
  %last = getelementptr [{SLOT} x i8], ptr %slots, i64 %count.now
  call void @llvm.memmove.p0.p0.i64(ptr %slot, ptr %last, i64 {SLOT}, i1 false)
  ret ptr %data
}}

define internal void @tn_kept_drop_oldest() {SMALL} {{
begin:
{_SLOTS}
{kept_word("%count", KeptWord.COUNT)}
  br label %test
test:
  %i = phi i64 [ 1, %begin ], [ %i.next, %next ]
  %oldest = phi ptr [ %slots, %begin ], [ %oldest.next, %next ]
  %more = icmp ult i64 %i, %count
  br i1 %more, label %next, label %drop
next:
{_slot("%slot", "%i")}
{load_field("%oldest.time", "i64", "%oldest", 16)}
  %older = icmp ult i64 %slot.time, %oldest.time
  %oldest.next = select i1 %older, ptr %slot, ptr %oldest
  %i.next = add i64 %i, 1
  br label %test
drop:
  %data = call ptr @tn_kept_remove(ptr %oldest)
  call void @tn_block_unmap(ptr %data)
  ret void
}}

define dso_local i64 @tn_kept_shrink(i64 %most) {SMALL} {{
begin:
{kept_word("%before", KeptWord.BYTES)}
  br label %test
test:
{kept_word("%kept", KeptWord.BYTES)}
  %over = icmp ugt i64 %kept, %most
  br i1 %over, label %drop, label %done
drop:
  call void @tn_kept_drop_oldest()
  br label %test
done:
  %given.back = sub i64 %before, %kept
  ret i64 %given.back
}}

define dso_local void @tn_kept_age() {SMALL} {{
begin:
{_SLOTS}
{kept_word("%aged", KeptWord.AGED)}
{kept_word("%time", KeptWord.TIME)}
  store i64 %time, ptr %aged.at, align 8
  br label %test
test:
  %i = phi i64 [ 0, %begin ], [ %i.next, %next ], [ %i, %drop ]
{kept_word("%count", KeptWord.COUNT)}
  %more = icmp ult i64 %i, %count
  br i1 %more, label %next, label %done
next:
{_slot("%slot", "%i")}
  %i.next = add i64 %i, 1
  %old = icmp ule i64 %slot.time, %aged
  br i1 %old, label %drop, label %test
drop:
  %data = call ptr @tn_kept_remove(ptr %slot)
  call void @tn_block_unmap(ptr %data)
  br label %test
done:
  ret void
}}
"""

KEPT = Fragment(
    (
        "declare ptr @mmap(ptr, i64, i32, i32, i32, i64)",
        "declare i32 @munmap(ptr, i64)",
        "declare i32 @madvise(ptr, i64, i32)",
        "declare void @llvm.memmove.p0.p0.i64(ptr, ptr, i64, i1)",
    ),
    _STATE + _BLOCKS + _TAKE + _GIVE + _RETURN,
)
