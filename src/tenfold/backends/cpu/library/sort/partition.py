"""Ranges of items are partitioned, again and again, until registers hold what is left.

A range and its scratch memory are of the same length. What is below a pivot goes to the beginning
of the range, the rest to the end of the scratch memory: so it stands as far from the end as it will
in the line. Then either part is treated so, with what is free beside it for its scratch memory, the
lower part first. A range that the nearest caches do not hold is partitioned in place instead: the
next vectors are read where there is less room behind those that were read, so that there is always
room for what is below, and for the others.

Vectors are stored whole, so what is stored last in a range is kept apart first, in %spare: a number
of items that leaves whole trips, and what makes room to begin in place. They go one by one after
all others.

Where the pivot is the least that may be in a range, this is partitioned about what comes next after
it, and all of the lower part is the same. So lines of few distinct items take no longer. What was
partitioned often and is still long has had bad pivots: from then on the middle between its bounds
is the pivot, so that there are but as many more rounds as an item has bits.
"""

from __future__ import annotations

from tenfold.backends.cpu.library.sort.few import element, most
from tenfold.backends.cpu.library.sort.keys import SortForm
from tenfold.backends.cpu.library.sort.pivot import middle, sampled
from tenfold.backends.cpu.library.sort.poll import ENDS, due, polled
from tenfold.backends.cpu.library.sort.vectors import below, counted, partitioned, stored, table
from tenfold.backends.llvm import masks
from tenfold.backends.llvm.writer import Writer

_TRIP = 4  # vectors that are partitioned in a trip
_POLLING = 8192  # items of a range whose partition polls
IN_PLACE = 1 << 15  # items of a range that is partitioned out of place at most


def spare(form: SortForm, w: Writer) -> int:
    """Items that %spare of `partition` has room for."""
    return (3 * _TRIP + 1) * w.target.lanes(form.size)


def partition(form: SortForm, name: str, few: str, w: Writer) -> str:
    """A function that gives %n items at %p as elements at %y, sorted, with as much scratch memory
    at %q. None of them is below %low or above %high; %depth times they may be partitioned about
    pivots of a sample. It answers as a kernel does."""
    item, lanes, steps = form.merged, w.target.lanes(form.size), w.target.lanes(form.size) * _TRIP
    v = f"<{lanes} x {item}>"
    return (
        table(form, name, w)
        + _filling(form, name, w)
        + f"""
define internal i32 @{name}(ptr %buffers, ptr %p.first, ptr %q.first, ptr %y.first, ptr %end,
  ptr %spare, i64 %n.first, {item} %low.first, {item} %high, i64 %depth.first) noinline nounwind
  "prefer-vector-width"="512" {{
start:
  br label %range
range:
  %p = phi ptr [ %p.first, %start ], [ %p.upper, %upper ]
  %q = phi ptr [ %q.first, %start ], [ %q.upper, %upper ]
  %y = phi ptr [ %y.first, %start ], [ %y.upper, %upper ]
  %n = phi i64 [ %n.first, %start ], [ %n.upper, %upper ]
  %low = phi {item} [ %low.first, %start ], [ %bound, %upper ]
  %depth = phi i64 [ %depth.first, %start ], [ %depth.less, %upper ]
  %little = icmp ule i64 %n, {most(form, w)}
  br i1 %little, label %few, label %many
few:
  call void @{few}(ptr %p, ptr %y, ptr %end, i64 %n)
  br label %line.end
many:
  %deep = icmp eq i64 %depth, 0
  br i1 %deep, label %middle, label %sample
middle:
"""
        + middle(form)
        + """  br label %pivoted
sample:
  %depth.one = sub i64 %depth, 1
"""
        + sampled(form, lanes)
        + f"""  br label %pivoted
pivoted:
  %same = phi i1 [ false, %middle ], [ %s.same, %sample ]
  %all.same = phi i1 [ %m.same, %middle ], [ %s.all, %sample ]
  %pivot = phi {item} [ %low, %middle ], [ %s.pivot, %sample ]
  %bound = phi {item} [ %m.bound, %middle ], [ %s.bound, %sample ]
  %high.lower = phi {item} [ %m.high, %middle ], [ %s.bound, %sample ]
  %depth.less = phi i64 [ 0, %middle ], [ %depth.one, %sample ]
  br i1 %all.same, label %filled, label %part
part:
  %bound.one = insertelement {v} poison, {item} %bound, i64 0
  %bound.all = shufflevector {v} %bound.one, {v} poison, <{lanes} x i32> zeroinitializer
  %n.less = sub i64 %n, 1
  %odd.less = and i64 %n.less, {steps - 1}
  %odd = add i64 %odd.less, 1
  %large = icmp ugt i64 %n, {IN_PLACE}
  %polls = icmp ugt i64 %n, {_POLLING}
  br i1 %polls, label %begin.poll, label %begin
"""
        + polled("begin.poll", "begin")
        + "begin:\n"
        + _kept(form, w, "%p", "0", steps)
        + f"""  br i1 %large, label %begin.large, label %begun
begin.large:
  %ends.place = sub i64 %n, {steps}
  %ends.at = getelementptr {item}, ptr %p, i64 %ends.place
  %second.at = getelementptr {item}, ptr %p, i64 {steps}
  %both = add i64 %odd, {steps}
"""
        + _kept(form, w, "%second.at", str(steps), steps)
        + _kept(form, w, "%ends.at", "%both", steps)
        + f"""  br label %begun
begun:
  %first = phi i64 [ %odd, %begin ], [ %both, %begin.large ]
  %apart = phi i64 [ 0, %begin ], [ {steps}, %begin.large ]
  %kept = add i64 %first, %apart
  %ends.first = sub i64 %n, %apart
  %ends.next = sub i64 %ends.first, {steps}
  %through = sub i64 %n, %kept
  %upper.to = select i1 %large, ptr %p, ptr %q
  br label %trips
trips:
  %done = phi i64 [ 0, %begun ], [ %done.more, %trip ], [ %done.more, %trip.poll ]
  %next = phi i64 [ %first, %begun ], [ %next.more, %trip ], [ %next.more, %trip.poll ]
  %left = phi i64 [ 0, %begun ], [ %trip.l{_TRIP}, %trip ], [ %trip.l{_TRIP}, %trip.poll ]
  %trip.on = icmp ult i64 %done, %through
  br i1 %trip.on, label %trip.from, label %rest
trip.from:
  %next.front = add i64 %next, {steps}
  br i1 %large, label %trip.side, label %trip
trip.side:
  %room.lower = sub i64 %next, %left
  %room.twice = shl i64 %room.lower, 1
  %scarce = icmp ule i64 %room.twice, %kept
  %side.gone = sub i64 %next, %first
  %side.back = sub i64 %done, %side.gone
  %side.end = sub i64 %ends.next, %side.back
  %side.from = select i1 %scarce, i64 %next, i64 %side.end
  %side.next = select i1 %scarce, i64 %next.front, i64 %next
  br label %trip
trip:
  %from = phi i64 [ %next, %trip.from ], [ %side.from, %trip.side ]
  %next.more = phi i64 [ %next.front, %trip.from ], [ %side.next, %trip.side ]
"""
        + _trip(form, name, w, lanes)
        + f"""  %done.more = add i64 %done, {steps}
"""
        + due("trip", "%done.more", "trip.poll", "trips")
        + polled("trip.poll", "trips")
        + """rest:
  %rest.i = phi i64 [ 0, %trips ], [ %rest.more, %rest.end ]
  %rest.left = phi i64 [ %left, %trips ], [ %rest.lower, %rest.end ]
  %rest.count = sub i64 %kept, %rest.i
  %rest.on = icmp sgt i64 %rest.count, 0
  br i1 %rest.on, label %rest.part, label %last
rest.part:
"""
        + _rest(form, name, w, lanes)
        + f"""rest.end:
  %rest.more = add i64 %rest.i, {lanes}
  br label %rest
last:
  %n.lower = add i64 %rest.left, 0
  %p.upper = getelementptr {item}, ptr %upper.to, i64 %n.lower
  %q.other = getelementptr {item}, ptr %p, i64 %n.lower
  %q.upper = select i1 %large, ptr %q, ptr %q.other
  %y.upper = getelementptr {item}, ptr %y, i64 %n.lower
  %there = icmp eq ptr %p.upper, %y.upper
  %end.lower = select i1 %there, ptr %y.upper, ptr %end
  br i1 %same, label %equals, label %lower
equals:
  %fill.code = call i32 @{name}_fill(ptr %buffers, ptr %y, i64 %n.lower, {item} %pivot)
  %fill.on = icmp eq i32 %fill.code, 0
  br i1 %fill.on, label %upper, label %stopped
lower:
  %code = call i32 @{name}(ptr %buffers, ptr %p, ptr %q, ptr %y, ptr %end.lower,
    ptr %spare, i64 %n.lower, {item} %low, {item} %high.lower, i64 %depth.less)
  %code.on = icmp eq i32 %code, 0
  br i1 %code.on, label %upper, label %failed
failed:
  ret i32 %code
upper:
  %n.upper = sub i64 %n, %n.lower
  br label %range
filled:
  %all.code = call i32 @{name}_fill(ptr %buffers, ptr %y, i64 %n, {item} %pivot)
  ret i32 %all.code
"""
        + ENDS
    )


def _filling(form: SortForm, name: str, w: Writer) -> str:
    """A function that gives so many times the same item."""
    item, lanes = form.merged, w.target.lanes(form.size)
    v, whole = f"<{lanes} x {item}>", f"<{lanes} x i{form.item}>"
    text = f"""
define internal i32 @{name}_fill(ptr %buffers, ptr %y, i64 %n, {item} %x) noinline nounwind
  "prefer-vector-width"="512" {{
start:
  %x.one = insertelement {v} poison, {item} %x, i64 0
  %x.all = shufflevector {v} %x.one, {v} poison, <{lanes} x i32> zeroinitializer
"""
    given = element(form, w, "%x.all", lanes)
    before = w.taken()
    bits = f"i{form.item}"
    left = w.splat(bits, "%left", lanes)
    places = ", ".join(f"{bits} {lane}" for lane in range(lanes))
    live = w.op(f"icmp sgt {whole} {left}, <{places}>")
    masks.store(w, "%to", bits, given, live, lanes=lanes, align=1)
    cut = "trunc i64 %left.long to i32" if form.item == 32 else "add i64 %left.long, 0"
    return (
        text
        + before
        + f"""  br label %fill
fill:
  %i = phi i64 [ 0, %start ], [ %more, %fill.body ], [ %more, %fill.poll ]
  %to = getelementptr {bits}, ptr %y, i64 %i
  %more = add i64 %i, {lanes}
  %on = icmp ule i64 %more, %n
  br i1 %on, label %fill.body, label %rest
fill.body:
  store {whole} {given}, ptr %to, align 1
"""
        + due("fill", "%more", "fill.poll", "fill")
        + polled("fill.poll", "fill")
        + f"rest:\n  %left.long = sub i64 %n, %i\n  %left = {cut}\n{w.taken()}"
        + "  br label %line.end\n"
        + ENDS
    )


def _kept(form: SortForm, w: Writer, start: str, to: str, count: int) -> str:
    """So many items copied to %spare, from a place on."""
    lanes = w.target.lanes(form.size)
    v = f"<{lanes} x i{form.item}>"
    there = w.op(f"getelementptr {form.merged}, ptr %spare, i64 {to}")
    for number in range(count // lanes):
        at, put = (w.op(f"getelementptr {v}, ptr {x}, i64 {number}") for x in (start, there))
        x = w.op(f"load {v}, ptr {at}, align {form.size}")
        w.put(f"store {v} {x}, ptr {put}, align {form.size}")
    return w.taken()


def _trip(form: SortForm, name: str, w: Writer, lanes: int) -> str:
    """The vectors of a trip partitioned, from %from on; %trip.lN: the items below the pivot up to
    the vector N."""
    v, item = f"<{lanes} x {form.merged}>", form.merged
    at = w.op(f"getelementptr {item}, ptr %p, i64 %from")
    places = [w.op(f"getelementptr {item}, ptr {at}, i64 {n * lanes}") for n in range(_TRIP)]
    vectors = [w.op(f"load {v}, ptr {place}, align {form.size}") for place in places]
    end = w.op(f"getelementptr {item}, ptr %upper.to, i64 {w.op('sub i64 %n, %done')}")
    left = "%left"
    for number, x in enumerate(vectors):
        mask = below(form, w, x, lanes)
        bits, more = counted(w, mask, lanes)
        made = partitioned(form, name, w, x, mask, bits, lanes)
        ahead = w.op(f"sub i64 {left}, {number * lanes}") if number else left
        there = w.op(f"getelementptr {item}, ptr {end}, i64 {ahead}")
        here = w.op(f"getelementptr {item}, ptr %p, i64 {left}")
        stored(form, w, made, here, there, more)
        w.lines.append(f"  %trip.l{number + 1} = add i64 {left}, {more}")
        left = f"%trip.l{number + 1}"
    return w.taken()


def _rest(form: SortForm, name: str, w: Writer, lanes: int) -> str:
    """A vector of %spare partitioned. Lanes without an item go with the lower ones, behind them.
    The last ones have no room beside them for whole vectors."""
    item, bits = form.merged, f"i{form.item}"
    v, whole = f"<{lanes} x {item}>", f"<{lanes} x {bits}>"
    numbers = "<" + ", ".join(f"{bits} {lane}" for lane in range(lanes)) + ">"

    def lower(count: str, compare: str) -> str:
        """Which lanes are among so many first, or, by the other comparison, are not."""
        short = count if form.item == 64 else w.op(f"trunc i64 {count} to i32")
        return w.op(f"icmp {compare} {whole} {w.splat(bits, short, lanes)}, {numbers}")

    at = w.op(f"getelementptr {item}, ptr %spare, i64 %rest.i")
    x = w.op(f"load {v}, ptr {at}, align {form.size}")
    dead = lower("%rest.count", "sle")
    mask = w.op(f"or <{lanes} x i1> {below(form, w, x, lanes)}, {dead}")
    chosen, some = counted(w, mask, lanes)
    live = w.call("i64", "llvm.umin.i64", ("i64", "%rest.count"), ("i64", str(lanes)))
    more = w.op(f"add i64 {w.op(f'sub i64 {some}, {lanes}')}, {live}")
    made = partitioned(form, name, w, x, mask, chosen, lanes)
    w.lines.append(f"  %rest.lower = add i64 %rest.left, {more}")
    end = w.op("add i64 %rest.left, %rest.count")
    there = w.op(f"getelementptr {item}, ptr %upper.to, i64 {end}")
    here = w.op(f"getelementptr {item}, ptr %p, i64 %rest.left")
    few = w.op(f"select i1 %large, i64 {2 * lanes}, i64 {lanes}")
    tight = w.op(f"icmp ule i64 %rest.count, {few}")
    text = f"{w.taken()}  br i1 {tight}, label %rest.tight, label %rest.wide\nrest.wide:\n"
    stored(form, w, made, here, there, some)
    text += w.taken() + "  br label %rest.end\nrest.tight:\n"
    masks.store(w, here, bits, made[0], lower(more, "sgt"), lanes=lanes, align=form.size)
    stored(form, w, ("", made[1]), "", there, some, lower(some, "sle"))
    return text + w.taken() + "  br label %rest.end\n"
