"""Ranges of items parted about one of them, again and again, until registers hold what is left.

A range lies in one half of the scratch memory. What is below a pivot stays there, moved up to the
beginning of the range; the rest goes to the same number of items of the other half. Then either
part is treated so, with what the other half had there for its scratch memory, the lower part first:
so whatever lies behind a range that is being treated is over or dead, and whole vectors may be
stored.

The pivot is a median of medians of nine vectors at equal distances. Where it is the least that may
be in the range, this is parted about what comes next after it, and all of the lower part is the
same. So lines of few distinct items take no longer. What was parted often and is still long has had
bad pivots: from then on the middle between its bounds is the pivot, so that there are but as many
more rounds as an item has bits.
"""

from __future__ import annotations

from tenfold.backends.cpu.library.sort.few import element, most
from tenfold.backends.cpu.library.sort.keys import SortForm
from tenfold.backends.cpu.library.sort.network import compared
from tenfold.backends.cpu.library.sort.poll import ENDS, POLLED, due, polled
from tenfold.backends.llvm import masks
from tenfold.backends.llvm.writer import Writer

_TRIP = 4  # vectors that are parted in a trip
_SAMPLES = 9
_POLLING = 8192  # items of a range whose parting polls


def parting(form: SortForm, name: str, few: str, w: Writer) -> str:
    """A function that gives %n items at %p as elements at %y, sorted, with as much scratch memory
    at %q. None of them is below %low or above %high; %depth times they may be parted about pivots
    of a sample. It answers as a kernel does."""
    item, lanes, steps = form.merged, w.target.lanes(form.size), w.target.lanes(form.size) * _TRIP
    v = f"<{lanes} x {item}>"
    return (
        _table(form, name, w)
        + _filling(form, name, w)
        + f"""
define internal i32 @{name}(ptr %buffers, ptr %p.first, ptr %q.first, ptr %y.first, ptr %end,
  i64 %n.first, {item} %low.first, {item} %high, i64 %depth.first) noinline nounwind
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
        + _middle(form)
        + """  br label %pivoted
sample:
  %depth.one = sub i64 %depth, 1
"""
        + _pivot(form, w, lanes, v)
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
  %head.less = and i64 %n.less, {lanes - 1}
  %head = add i64 %head.less, 1
  %head.items = load {v}, ptr %p, align {form.size}
  %polls = icmp ugt i64 %n, {_POLLING}
  br label %block
block:
  %from = phi i64 [ %head, %part ], [ %trip.i, %ones ]
  %left = phi i64 [ 0, %part ], [ %trip.left, %ones ]
  %on = icmp ult i64 %from, %n
  br i1 %on, label %block.on, label %last
block.on:
  br i1 %polls, label %block.poll, label %block.go
"""
        + polled("block.poll", "block.go")
        + f"""block.go:
  %block.far = add i64 %from, {POLLED}
  %block.end = call i64 @llvm.umin.i64(i64 %block.far, i64 %n)
  br label %trips
trips:
  %trip.i = phi i64 [ %from, %block.go ], [ %trip.next, %trip ], [ %one.next, %one ]
  %trip.left = phi i64 [ %left, %block.go ], [ %trip.l{_TRIP}, %trip ], [ %one.l1, %one ]
  %trip.next = add i64 %trip.i, {steps}
  %trip.on = icmp ule i64 %trip.next, %block.end
  br i1 %trip.on, label %trip, label %ones
trip:
"""
        + _parted(form, name, w, "trip", _TRIP, lanes)
        + """  br label %trips
ones:
  %one.on = icmp ult i64 %trip.i, %block.end
  br i1 %one.on, label %one, label %block
one:
"""
        + _parted(form, name, w, "one", 1, lanes)
        + f"""  %one.next = add i64 %trip.i, {lanes}
  br label %trips
last:
"""
        + _head(form, name, w, lanes)
        + f"""  br i1 %same, label %equals, label %lower
equals:
  %fill.code = call i32 @{name}_fill(ptr %buffers, ptr %y, i64 %n.lower, {item} %pivot)
  %fill.on = icmp eq i32 %fill.code, 0
  br i1 %fill.on, label %upper, label %stopped
lower:
  %code = call i32 @{name}(ptr %buffers, ptr %p, ptr %q.lower, ptr %y, ptr %end,
    i64 %n.lower, {item} %low, {item} %high.lower, i64 %depth.less)
  %code.on = icmp eq i32 %code, 0
  br i1 %code.on, label %upper, label %failed
failed:
  ret i32 %code
upper:
  %n.upper = sub i64 %n, %n.lower
  %y.upper = getelementptr {item}, ptr %y, i64 %n.lower
  br label %range
filled:
  %all.code = call i32 @{name}_fill(ptr %buffers, ptr %y, i64 %n, {item} %pivot)
  ret i32 %all.code
"""
        + ENDS
    )


def _upward(form: SortForm, w: Writer) -> bool:
    """Whether items are compressed, and what goes to the other half is stored from its beginning
    on. Else a vector's items are parted by one shuffle, looked up by which of them are below, and
    stored twice: in the other half from its end down, so that the others are written over."""
    return w.target.lanes(form.size) > 8


def _table(form: SortForm, name: str, w: Writer) -> str:
    """For each set of lanes: these, then the others. Where a shuffle moves 32 bits alone, both
    halves of an item."""
    if _upward(form, w):
        return ""
    lanes, text = w.target.lanes(form.size), ""
    for chosen in range(1 << lanes):
        order = sorted(range(lanes), key=lambda lane: not chosen >> lane & 1)
        if lanes == 4:
            order = [2 * lane + half for lane in order for half in (0, 1)]
        text += "".join(f"\\{lane:02X}" for lane in order)
    return f'@{name}_table = private constant [{8 << lanes} x i8] c"{text}", align 64\n'


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


def _middle(form: SortForm) -> str:
    """%m.bound: what comes next after the middle between the bounds, which is %m.high; whether the
    bounds are the %m.same. Floats are taken for integers in the same order."""
    item, bits, text = form.merged, f"i{form.item}", ""
    low, high = "%low", "%high"
    if form.real:
        low, high = "%m.low.order", "%m.high.order"
        for name in ("low", "high"):
            text += f"  %m.{name}.bits = bitcast {item} %{name} to {bits}\n"
            text += _ordered(form, f"m.{name}.order", f"%m.{name}.bits")
    text += f"""  %m.same = icmp sge {bits} {low}, {high}
  %m.length = sub {bits} {high}, {low}
  %m.half = lshr {bits} %m.length, 1
  %m.number = add {bits} {low}, %m.half
  %m.next = add {bits} %m.number, 1
"""
    for made, number in (("high", "number"), ("bound", "next")):
        if form.real:
            text += _ordered(form, f"m.{made}.made", f"%m.{number}")
            text += f"  %m.{made} = bitcast {bits} %m.{made}.made to {item}\n"
        else:
            text += f"  %m.{made} = add {bits} %m.{number}, 0\n"
    return text


def _ordered(form: SortForm, name: str, x: str) -> str:
    """%NAME: the bits of a float as a signed number in its order, and back."""
    bits = f"i{form.item}"
    return f"""  %{name}.sign = ashr {bits} {x}, {form.item - 1}
  %{name}.turn = and {bits} %{name}.sign, {(1 << form.item - 1) - 1}
  %{name} = xor {bits} {x}, %{name}.turn
"""


def _pivot(form: SortForm, w: Writer, lanes: int, v: str) -> str:
    """%s.pivot, an item of the range; whether it is the %s.same as the lower bound; the %s.bound of
    what is below it, or, where it is, of what equals it; whether that must be %s.all."""
    item, bits, size = form.merged, f"i{form.item}", form.size
    text = f"""  %s.room = sub i64 %n, {lanes}
  %s.step = udiv i64 %s.room, {_SAMPLES - 1}
"""
    names = []
    for number in range(_SAMPLES):
        text += (
            f"  %s.{number}.i = mul i64 %s.step, {number}\n"
            f"  %s.{number}.at = getelementptr {item}, ptr %p, i64 %s.{number}.i\n"
            f"  %s.{number} = load {v}, ptr %s.{number}.at, align {size}\n"
        )
        names.append(f"%s.{number}")

    def median(name: str, three: list[str]) -> str:
        """%NAME: the median of three vectors, lane by lane."""
        return (
            compared(form, f"{name}.ab", three[0], three[1], lanes)
            + compared(form, f"{name}.bc", f"%{name}.ab.more", three[2], lanes)
            + compared(form, f"{name}.me", f"%{name}.ab.less", f"%{name}.bc.less", lanes)
        )

    for number in range(3):
        text += median(f"m.{number}", names[3 * number : 3 * number + 3])
    text += median("l.0", [f"%m.{number}.me.more" for number in range(3)])
    here = "%l.0.me.more"
    for number, turn in enumerate((lanes // 3, 1) if lanes > 4 else (1,), 1):
        three = [here]
        for times in (1, 2):
            order = ", ".join(f"i32 {(lane + times * turn) % lanes}" for lane in range(lanes))
            text += (
                f"  %l.{number}.{times} = shufflevector {v} {here}, {v} poison, "
                f"<{lanes} x i32> <{order}>\n"
            )
            three.append(f"%l.{number}.{times}")
        text += median(f"l.{number}", three)
        here = f"%l.{number}.me.more"
    text += f"  %s.pivot = extractelement {v} {here}, i64 0\n"
    if not form.real:
        last = (1 << form.item - 1) - 1
        return text + (
            f"  %s.same = icmp eq {item} %s.pivot, %low\n"
            f"  %s.utmost = icmp eq {item} %s.pivot, {last}\n"
            "  %s.all = and i1 %s.same, %s.utmost\n"
            f"  %s.more = zext i1 %s.same to {item}\n"
            f"  %s.bound = add {item} %s.pivot, %s.more\n"
        )
    return text + (
        f"  %s.same = fcmp oeq {item} %s.pivot, %low\n"
        f"  %s.utmost = fcmp oeq {item} %s.pivot, 0x7FF0000000000000\n"
        "  %s.all = and i1 %s.same, %s.utmost\n"
        f"  %plus = fadd {item} %s.pivot, 0.0\n"
        f"  %plus.bits = bitcast {item} %plus to {bits}\n"
        f"  %minus = ashr {bits} %plus.bits, {form.item - 1}\n"
        f"  %away = or {bits} %minus, 1\n"
        f"  %next.bits = add {bits} %plus.bits, %away\n"
        f"  %next = bitcast {bits} %next.bits to {item}\n"
        f"  %s.bound = select i1 %s.same, {item} %next, {item} %s.pivot\n"
    )


def _below(form: SortForm, w: Writer, x: str, lanes: int) -> str:
    compare = "fcmp olt" if form.real else "icmp slt"
    return w.op(f"{compare} <{lanes} x {form.merged}> {x}, %bound.all")


def _count(w: Writer, mask: str, lanes: int) -> tuple[str, str]:
    """The lanes of a mask, as bits and counted."""
    bits = w.op(f"bitcast <{lanes} x i1> {mask} to i{lanes}")
    wide = w.op(f"zext i{lanes} {bits} to i64")
    return wide, w.intrinsic("ctpop", "i64", wide)


def _apart(
    form: SortForm, name: str, w: Writer, x: str, mask: str, bits: str, lanes: int
) -> tuple[str, str]:
    """A vector with the items of a mask first, and one with the others: first if they are stored
    upward, else last."""
    v, whole = f"<{lanes} x {form.merged}>", f"<{lanes} x i{form.item}>"
    if _upward(form, w):
        ones = w.op(f"xor <{lanes} x i1> {mask}, splat (i1 true)")
        signature = f"llvm.experimental.vector.compress.v{lanes}i{form.item}"
        first, second = (
            w.call(v, signature, (v, x), (f"<{lanes} x i1>", m), (v, "poison"))
            for m in (mask, ones)
        )
        return first, second
    at = w.op(f"getelementptr [8 x i8], ptr @{name}_table, i64 {bits}")
    order = w.op(f"load <8 x i8>, ptr {at}, align 8")
    kept = "<8 x i64>" if lanes == 8 and form.size == 8 else "<8 x i32>"
    order = w.op(f"zext <8 x i8> {order} to {kept}")
    given = w.op(f"bitcast {v} {x} to {kept}")
    shuffle = "llvm.x86.avx512.permvar.di.512" if "64" in kept else "llvm.x86.avx2.permd"
    made = w.call(kept, shuffle, (kept, given), (kept, order))
    made = w.op(f"bitcast {kept} {made} to {whole}")
    return made, made


def _behind(form: SortForm, w: Writer, gone: str, lanes: int) -> str:
    """Where items go of which so many went to the other half before."""
    item = form.merged
    if _upward(form, w):
        return w.op(f"getelementptr {item}, ptr %q, i64 {gone}")
    left = w.op(f"sub i64 %n, {gone}")
    end = w.op(f"getelementptr {item}, ptr %q, i64 {left}")
    return w.op(f"getelementptr {item}, ptr {end}, i64 -{lanes}")


def _parted(form: SortForm, name: str, w: Writer, label: str, count: int, lanes: int) -> str:
    """So many vectors parted, from %trip.i on; %LABEL.lN: the items that are below the pivot up to
    the vector N."""
    v, item = f"<{lanes} x {form.merged}>", form.merged
    at = w.op(f"getelementptr {item}, ptr %p, i64 %trip.i")
    places = [w.op(f"getelementptr {item}, ptr {at}, i64 {n * lanes}") for n in range(count)]
    vectors = [w.op(f"load {v}, ptr {place}, align {form.size}") for place in places]
    left, done = "%trip.left", w.op("sub i64 %trip.i, %head")
    for number, x in enumerate(vectors):
        mask = _below(form, w, x, lanes)
        bits, more = _count(w, mask, lanes)
        first, second = _apart(form, name, w, x, mask, bits, lanes)
        ahead = w.op(f"add i64 {done}, {number * lanes}")
        there = _behind(form, w, w.op(f"sub i64 {ahead}, {left}"), lanes)
        here = w.op(f"getelementptr {item}, ptr %p, i64 {left}")
        kept = f"<{lanes} x i{form.item}>" if not _upward(form, w) else v
        w.put(f"store {kept} {first}, ptr {here}, align {form.size}")
        w.put(f"store {kept} {second}, ptr {there}, align {form.size}")
        w.lines.append(f"  %{label}.l{number + 1} = add i64 {left}, {more}")
        left = f"%{label}.l{number + 1}"
    return w.taken()


def _head(form: SortForm, name: str, w: Writer, lanes: int) -> str:
    """The first items, of which a vector is not full, after all others: %n.lower items are below
    the pivot. Lanes without one go with these, behind them."""
    item, bits = form.merged, f"i{form.item}"
    count = "%head" if form.item == 64 else w.op("trunc i64 %head to i32")
    counts = w.splat(bits, count, lanes)
    numbers = "<" + ", ".join(f"{bits} {lane}" for lane in range(lanes)) + ">"
    dead = w.op(f"icmp sle <{lanes} x {bits}> {counts}, {numbers}")
    mask = w.op(f"or <{lanes} x i1> {_below(form, w, '%head.items', lanes)}, {dead}")
    chosen, some = _count(w, mask, lanes)
    more = w.op(f"sub i64 {some}, {lanes}")
    more = w.op(f"add i64 {more}, %head")
    first, second = _apart(form, name, w, "%head.items", mask, chosen, lanes)
    rest = w.op("sub i64 %n, %head")
    there = _behind(form, w, w.op(f"sub i64 {rest}, %left"), lanes)
    here = w.op(f"getelementptr {item}, ptr %p, i64 %left")
    kept = f"<{lanes} x {bits}>"
    w.put(f"store {kept} {second}, ptr {there}, align {form.size}")
    own = more if form.item == 64 else w.op(f"trunc i64 {more} to i32")
    live = w.op(f"icmp sgt {kept} {w.splat(bits, own, lanes)}, {numbers}")
    masks.store(w, here, bits, first, live, lanes=lanes, align=form.size)
    text = w.taken() + f"  %n.lower = add i64 %left, {more}\n"
    if _upward(form, w):
        text += "  %n.rest = sub i64 %n, %n.lower\n"
        pairs = (("q.lower", "q", "%n.rest"), ("p.upper", "q", "0"), ("q.upper", "p", "0"))
    else:
        pairs = (("q.lower", "q", "0"), ("p.upper", "q", "%n.lower"), ("q.upper", "p", "%n.lower"))
    for made, half, at in pairs:
        text += f"  %{made} = getelementptr {item}, ptr %{half}, i64 {at}\n"
    return text
