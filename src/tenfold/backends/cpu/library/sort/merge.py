"""Lines sorted by merging: vectors of items sorted in registers, then runs of vectors merged.

Two sorted vectors become one sorted row of twice the length by a bitonic network of least and
greatest items. Runs of whole vectors are merged two by two, until there is one. This is not stable:
with positions in them no two items are equal, and without them it shows in zeros and NaNs alone,
which are put back after it.
"""

from __future__ import annotations

from collections.abc import Container

from tenfold.backends.cpu.library.sort.keys import SortForm, key
from tenfold.backends.cpu.library.sort.poll import ENDS, POLLED, due, polled
from tenfold.backends.cpu.library.sort.restore import restoring
from tenfold.backends.llvm import masks
from tenfold.backends.llvm.writer import LANES, Writer

_LANE = "<" + ", ".join(f"i64 {n}" for n in range(LANES)) + ">"
_BACK = "<" + ", ".join(f"i32 {LANES - 1 - n}" for n in range(LANES)) + ">"


def merging(form: SortForm, name: str, w: Writer) -> str:
    """A function that sorts a line from %x to %y; it answers as a kernel does."""
    v = f"<{LANES} x i{form.item}>"
    restores = form.letter == "f" and not form.positions
    return (
        f"""
define internal i32 @{name}(
  ptr %buffers, ptr %x, ptr %y, ptr %a, ptr %b, i64 %n) noinline nounwind
  "prefer-vector-width"="512" {{
start:
  %zeros = alloca i64, align 8
  %nans = alloca i64, align 8
  %whole = and i64 %n, -{LANES}
  %rest = sub i64 %n, %whole
  %rest.one = insertelement <{LANES} x i64> poison, i64 %rest, i64 0
  %rest.all = shufflevector <{LANES} x i64> %rest.one, <{LANES} x i64> poison,
    <{LANES} x i32> zeroinitializer
  %live = icmp ugt <{LANES} x i64> %rest.all, {_LANE}
  %uneven = icmp ne i64 %rest, 0
  %up = add i64 %n, {LANES - 1}
  %m = and i64 %up, -{LANES}
  br label %in
"""
        + _taking(form, v, w)
        + _levels(form, v)
        + _giving(form, v, w)
        + (restoring(form) if restores else "")
        + ENDS
    )


def needs(form: SortForm) -> tuple[str, ...]:
    """What the function refers to, besides what its writer declares."""
    v, one, n = f"<{LANES} x i{form.item}>", f"<{LANES} x i1>", f"v{LANES}i{form.item}"
    return (
        f"declare {v} @llvm.smin.{n}({v}, {v})",
        f"declare {v} @llvm.smax.{n}({v}, {v})",
        f"declare i1 @llvm.vector.reduce.or.v{LANES}i1({one})",
    )


def _exchange(form: SortForm, name: str, value: str, far: int, low: Container[int]) -> str:
    """%NAME: each lane with the one `far` away, the less of both in the lanes `low`."""
    v, n = f"<{LANES} x i{form.item}>", f"v{LANES}i{form.item}"
    swap = ", ".join(f"i32 {i ^ far}" for i in range(LANES))
    pick = ", ".join(f"i32 {i if i in low else i + LANES}" for i in range(LANES))
    return (
        f"  %{name}.other = shufflevector {v} {value}, {v} poison, <{LANES} x i32> <{swap}>\n"
        f"  %{name}.less = call {v} @llvm.smin.{n}({v} {value}, {v} %{name}.other)\n"
        f"  %{name}.more = call {v} @llvm.smax.{n}({v} {value}, {v} %{name}.other)\n"
        f"  %{name} = shufflevector {v} %{name}.less, {v} %{name}.more, <{LANES} x i32> <{pick}>\n"
    )


def _sorted(form: SortForm, name: str, value: str) -> str:
    """%NAME.sorted: the lanes of a vector in order."""
    text, width = "", 2
    while width <= LANES:
        far = width // 2
        while far:
            step = f"{name}.{width}.{far}"
            low = {i for i in range(LANES) if (not i & far) == (not i & width)}
            text += _exchange(form, step, value, far, low)
            value, far = f"%{step}", far // 2
        width *= 2
    v = f"<{LANES} x i{form.item}>"
    return text + f"  %{name}.sorted = add {v} {value}, zeroinitializer\n"


def _settled(form: SortForm, name: str, value: str) -> str:
    """%NAME.sorted: the lanes of a vector that goes up and then down, in order."""
    text, far = "", LANES // 2
    while far:
        low = {i for i in range(LANES) if not i & far}
        text += _exchange(form, f"{name}.{far}", value, far, low)
        value, far = f"%{name}.{far}", far // 2
    v = f"<{LANES} x i{form.item}>"
    return text + f"  %{name}.sorted = add {v} {value}, zeroinitializer\n"


def _turned(form: SortForm) -> str:
    """What turns unsigned items into signed ones in the same order, and back: more processors can
    compare these."""
    return f"splat (i{form.item} {-1 << form.item - 1})"


def _greatest(form: SortForm) -> str:
    return f"splat (i{form.item} {(1 << form.item - 1) - 1})"


def _items(form: SortForm, name: str, at: str, taken: str = "") -> str:
    """%NAME.item: the items of a vector of elements."""
    v, keys = (f"<{LANES} x i{bits}>" for bits in (form.item, form.bits))
    text = key(form, name, "%x", at, wide=True, taken=taken)
    if not form.positions:
        return text + f"  %{name}.item = xor {v} %{name}, {_turned(form)}\n"
    return text + (
        f"  %{name}.long = zext {keys} %{name} to {v}\n"
        f"  %{name}.high = shl {v} %{name}.long, splat (i64 {form.below})\n"
        f"  %{name}.one = insertelement {v} poison, i64 {at}, i64 0\n"
        f"  %{name}.first = shufflevector {v} %{name}.one, {v} poison, "
        f"<{LANES} x i32> zeroinitializer\n"
        f"  %{name}.place = add {v} %{name}.first, {_LANE}\n"
        f"  %{name}.both = or {v} %{name}.high, %{name}.place\n"
        f"  %{name}.item = xor {v} %{name}.both, {_turned(form)}\n"
    )


def _taking(form: SortForm, v: str, w: Writer) -> str:
    """Items into the scratch memory, each vector of them sorted, the last filled up."""
    item, size, element = f"i{form.item}", form.size, f"i{form.bits}"
    at = w.op(f"getelementptr {element}, ptr %x, i64 %whole")
    taken = masks.load(w, at, element, "%live", align=1)
    return (
        """in:
  %in.i = phi i64 [ 0, %start ], [ %in.more, %in.body ], [ %in.more, %in.poll ]
  %in.on = icmp ult i64 %in.i, %whole
  br i1 %in.on, label %in.body, label %in.last
in.body:
"""
        + _items(form, "k", "%in.i")
        + _sorted(form, "k", "%k.item")
        + f"""  %in.to = getelementptr {item}, ptr %a, i64 %in.i
  store {v} %k.sorted, ptr %in.to, align {size}
  %in.more = add i64 %in.i, {LANES}
"""
        + due("in", "%in.more", "in.poll", "in")
        + polled("in.poll", "in")
        + """in.last:
  br i1 %uneven, label %in.rest, label %level
in.rest:
"""
        + w.taken()
        + _items(form, "t", "%whole", taken)
        + f"  %t.full = select <{LANES} x i1> %live, {v} %t.item, {v} {_greatest(form)}\n"
        + _sorted(form, "t", "%t.full")
        + f"""  %rest.to = getelementptr {item}, ptr %a, i64 %whole
  store {v} %t.sorted, ptr %rest.to, align {size}
  br label %level
"""
    )


def _levels(form: SortForm, v: str) -> str:
    """Runs merged two by two, between the halves of the scratch memory."""
    w, size, n = f"i{form.item}", form.size, f"v{LANES}i{form.item}"
    return (
        f"""level:
  %run = phi i64 [ {LANES}, %in.last ], [ {LANES}, %in.rest ], [ %run.more, %level.end ]
  %from = phi ptr [ %a, %in.last ], [ %a, %in.rest ], [ %to, %level.end ]
  %to = phi ptr [ %b, %in.last ], [ %b, %in.rest ], [ %from, %level.end ]
  %level.on = icmp ult i64 %run, %m
  br i1 %level.on, label %pairs, label %out
pairs:
  %low = phi i64 [ 0, %level ], [ %high, %pair.end ], [ %high, %pair.poll ]
  %pairs.on = icmp ult i64 %low, %m
  br i1 %pairs.on, label %pair, label %level.end
level.end:
  %run.more = shl i64 %run, 1
  br label %level
pair:
  %mid.far = add i64 %low, %run
  %high.far = add i64 %mid.far, %run
  %mid = call i64 @llvm.umin.i64(i64 %mid.far, i64 %m)
  %high = call i64 @llvm.umin.i64(i64 %high.far, i64 %m)
  %first.at = getelementptr {w}, ptr %from, i64 %low
  %first = load {v}, ptr %first.at, align {size}
  %alone = icmp eq i64 %mid, %high
  br i1 %alone, label %copy, label %meet
copy:
  %copied = phi i64 [ %low, %pair ], [ %copy.end, %copy.poll ]
  %copy.far = add i64 %copied, {POLLED}
  %copy.end = call i64 @llvm.umin.i64(i64 %copy.far, i64 %high)
  %copy.at = getelementptr {w}, ptr %from, i64 %copied
  %copy.to = getelementptr {w}, ptr %to, i64 %copied
  %copy.count = sub i64 %copy.end, %copied
  %copy.bytes = mul i64 %copy.count, {size}
  call void @llvm.memcpy.p0.p0.i64(ptr %copy.to, ptr %copy.at, i64 %copy.bytes, i1 false)
  %copy.on = icmp ult i64 %copy.end, %high
  br i1 %copy.on, label %copy.poll, label %pair.end
"""
        + polled("copy.poll", "copy")
        + "pair.end:\n"
        + due("pair", "%high", "pair.poll", "pairs")
        + polled("pair.poll", "pairs")
        + f"""meet:
  %second.at = getelementptr {w}, ptr %from, i64 %mid
  %second = load {v}, ptr %second.at, align {size}
  %left.first = add i64 %low, {LANES}
  %right.first = add i64 %mid, {LANES}
  %last = sub i64 %high, {LANES}
  br label %merge
merge:
  %put = phi i64 [ %low, %meet ], [ %put.more, %next ], [ %put.more, %merge.poll ]
  %left = phi i64 [ %left.first, %meet ], [ %left.more, %next ], [ %left.more, %merge.poll ]
  %right = phi i64 [ %right.first, %meet ], [ %right.more, %next ], [ %right.more, %merge.poll ]
  %one = phi {v} [ %first, %meet ], [ %fresh, %next ], [ %fresh, %merge.poll ]
  %two = phi {v} [ %second, %meet ], [ %h.sorted, %next ], [ %h.sorted, %merge.poll ]
  %back = shufflevector {v} %two, {v} poison, <{LANES} x i32> {_BACK}
  %l = call {v} @llvm.smin.{n}({v} %one, {v} %back)
  %h = call {v} @llvm.smax.{n}({v} %one, {v} %back)
"""
        + _settled(form, "l", "%l")
        + _settled(form, "h", "%h")
        + f"""  %put.at = getelementptr {w}, ptr %to, i64 %put
  store {v} %l.sorted, ptr %put.at, align {size}
  %put.more = add i64 %put, {LANES}
  %merge.on = icmp ult i64 %put.more, %last
  br i1 %merge.on, label %next, label %close
close:
  %close.at = getelementptr {w}, ptr %to, i64 %last
  store {v} %h.sorted, ptr %close.at, align {size}
  br label %pair.end
next:
  %left.at = getelementptr {w}, ptr %from, i64 %left
  %right.at = getelementptr {w}, ptr %from, i64 %right
  %left.key = load {w}, ptr %left.at, align {size}
  %right.key = load {w}, ptr %right.at, align {size}
  %left.on = icmp ult i64 %left, %mid
  %right.off = icmp uge i64 %right, %high
  %least = icmp sle {w} %left.key, %right.key
  %wanted = or i1 %least, %right.off
  %take = and i1 %wanted, %left.on
  %fresh.at = select i1 %take, ptr %left.at, ptr %right.at
  %fresh = load {v}, ptr %fresh.at, align {size}
  %left.on.by = select i1 %take, i64 {LANES}, i64 0
  %right.on.by = sub i64 {LANES}, %left.on.by
  %left.more = add i64 %left, %left.on.by
  %right.more = add i64 %right, %right.on.by
"""
        + due("merge", "%put.more", "merge.poll", "merge")
        + polled("merge.poll", "merge")
    )


def _giving(form: SortForm, v: str, w: Writer) -> str:
    """Sorted items as the result's elements; whether there are zeros or NaNs among them."""
    item, size, one = f"i{form.item}", form.size, f"<{LANES} x i1>"
    restores = form.letter == "f" and not form.positions
    after = "restore" if restores else "line.end"
    masks.store(w, "%r.to", item, "%r.out", "%live", align=1)

    def elements(name: str) -> str:
        if restores:
            return (
                f"  %{name}.minus = ashr {v} %{name}, splat ({item} {form.bits - 1})\n"
                f"  %{name}.plus = xor {v} %{name}.minus, splat ({item} -1)\n"
                f"  %{name}.turn = or {v} %{name}.plus, splat ({item} {form.sign})\n"
                f"  %{name}.out = xor {v} %{name}, %{name}.turn\n"
                f"  %{name}.zero = icmp eq {v} %{name}, splat ({item} {form.sign})\n"
                f"  %{name}.nan = icmp eq {v} %{name}, splat ({item} -1)\n"
                f"  %{name}.odd = or {one} %{name}.zero, %{name}.nan\n"
            )
        turn = form.sign if form.letter == "i" else 0
        text = f"  %{name}.out = xor {v} %{name}, splat ({item} {turn})\n"
        if form.positions:
            text = f"  %{name}.out = and {v} %{name}, splat (i64 4294967295)\n"
        return text + f"  %{name}.odd = or {one} zeroinitializer, zeroinitializer\n"

    return (
        f"""out:
  %out.i = phi i64 [ 0, %level ], [ %out.more, %out.body ], [ %out.more, %out.poll ]
  %out.odd = phi {one} [ zeroinitializer, %level ], [ %out.also, %out.body ],
    [ %out.also, %out.poll ]
  %out.on = icmp ult i64 %out.i, %whole
  br i1 %out.on, label %out.body, label %out.last
out.body:
  %g.at = getelementptr {item}, ptr %from, i64 %out.i
  %g.item = load {v}, ptr %g.at, align {size}
  %g = xor {v} %g.item, {_turned(form)}
"""
        + elements("g")
        + f"""  %g.to = getelementptr {item}, ptr %y, i64 %out.i
  store {v} %g.out, ptr %g.to, align 1
  %out.also = or {one} %out.odd, %g.odd
  %out.more = add i64 %out.i, {LANES}
"""
        + due("out", "%out.more", "out.poll", "out")
        + polled("out.poll", "out")
        + f"""out.last:
  br i1 %uneven, label %out.rest, label %out.end
out.rest:
  %r.at = getelementptr {item}, ptr %from, i64 %whole
  %r.item = load {v}, ptr %r.at, align {size}
  %r = xor {v} %r.item, {_turned(form)}
"""
        + elements("r")
        + f"""  %r.to = getelementptr {item}, ptr %y, i64 %whole
{w.taken()}  %r.live = and {one} %r.odd, %live
  br label %out.end
out.end:
  %end.odd = phi {one} [ zeroinitializer, %out.last ], [ %r.live, %out.rest ]
  %all.odd = or {one} %end.odd, %out.odd
  %odd = call i1 @llvm.vector.reduce.or.v{LANES}i1({one} %all.odd)
  br i1 %odd, label %{after}, label %line.end
"""
    )
