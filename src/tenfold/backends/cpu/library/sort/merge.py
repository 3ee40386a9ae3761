"""Lines sorted by merging: blocks of items sorted in registers, then runs of these merged.

Runs are merged two by two, a vector at a time, until there is one. This is not stable: with
positions in them no two items are equal, and without them it shows in zeros and NaNs alone, which
are put back after it.
"""

from __future__ import annotations

from tenfold.backends.cpu.library.sort.items import greatest, items, live, turned
from tenfold.backends.cpu.library.sort.keys import SortForm
from tenfold.backends.cpu.library.sort.network import merged, sorted_vectors
from tenfold.backends.cpu.library.sort.poll import ENDS, POLLED, due, polled
from tenfold.backends.cpu.library.sort.restore import restoring
from tenfold.backends.llvm import masks
from tenfold.backends.llvm.writer import LANES, Writer

BLOCK = 4 * LANES  # items that are sorted in registers


def merging(form: SortForm, name: str, w: Writer) -> str:
    """A function that sorts a line from %x to %y; it answers as a kernel does."""
    v = f"<{LANES} x {form.merged}>"
    restores = form.letter == "f" and not form.positions
    return (
        f"""
define internal i32 @{name}(
  ptr %buffers, ptr %x, ptr %y, ptr %a, ptr %b, i64 %n) noinline nounwind
  "prefer-vector-width"="512" {{
start:
  %aside = alloca i64, align 8
  %whole = and i64 %n, -{LANES}
  %rest = sub i64 %n, %whole
  %uneven = icmp ne i64 %rest, 0
  %tail = alloca [{BLOCK} x i{form.bits}], align 64
  %up = add i64 %n, {BLOCK - 1}
  %m = and i64 %up, -{BLOCK}
"""
        + live("live", "%whole")
        + _taking(form, w)
        + _levels(form, v)
        + _giving(form, v, w)
        + (restoring(form) if restores else "")
        + ENDS
    )


def needs(form: SortForm) -> tuple[str, ...]:
    """What the function refers to, besides what its writer declares."""
    v, one, n = (
        f"<{LANES} x i{form.item}>",
        f"<{LANES} x i1>",
        f"v{LANES}i{form.item}",
    )
    text = (
        "declare i64 @llvm.smax.i64(i64, i64)",
        f"declare i1 @llvm.vector.reduce.or.v{LANES}i1({one})",
    )
    if form.real:
        return text
    return (
        f"declare {v} @llvm.smin.{n}({v}, {v})",
        f"declare {v} @llvm.smax.{n}({v}, {v})",
        *text,
    )


def _taking(form: SortForm, w: Writer) -> str:
    """Items into the scratch memory, each block of them sorted. The last one is filled up: one of
    a short line lane by lane; of others what is left of the line is copied before elements that
    come last."""
    element, size = f"i{form.bits}", form.bits // 8
    text = f"""  %one.only = icmp ule i64 %n, {LANES}
  br i1 %one.only, label %in.1, label %in.more
in.more:
  %two.only = icmp ule i64 %n, {2 * LANES}
  br i1 %two.only, label %in.2, label %in.many
"""
    for count in (1, 2):
        last = (count - 1) * LANES
        at = w.op(f"getelementptr {element}, ptr %x, i64 {last}")
        taken = masks.load(w, at, element, f"%live.{count}", align=1)
        text += f"in.{count}:\n{live(f'live.{count}', last)}{w.taken()}"
        text += _block(form, count, "%x", "0", taken) + "  br label %level\n"
    text += f"""in.many:
  %full = and i64 %n, -{BLOCK}
  %spare = sub i64 %n, %full
  %tail.all = icmp eq i64 %spare, 0
  br i1 %tail.all, label %in, label %in.fill
in.fill:
"""
    last_ones = f"<{LANES} x {element}> splat ({element} {form.last})"
    for first in range(0, BLOCK, LANES):
        text += (
            f"  %tail.{first} = getelementptr {element}, ptr %tail, i64 {first}\n"
            f"  store {last_ones}, ptr %tail.{first}, align {size}\n"
        )
    return (
        text
        + f"""  %tail.from = getelementptr {element}, ptr %x, i64 %full
  %tail.bytes = mul i64 %spare, {size}
  call void @llvm.memcpy.p0.p0.i64(ptr %tail, ptr %tail.from, i64 %tail.bytes, i1 false)
  br label %in
in:
  %tail.back = sub i64 0, %full
  %tail.line = getelementptr {element}, ptr %tail, i64 %tail.back
  br label %in.4
in.4:
  %in.i = phi i64 [ 0, %in ], [ %in.next, %in.body ], [ %in.next, %in.poll ]
  %in.on = icmp ult i64 %in.i, %m
  br i1 %in.on, label %in.body, label %level
in.body:
  %in.inside = icmp ult i64 %in.i, %full
  %in.line = select i1 %in.inside, ptr %x, ptr %tail.line
"""
        + _block(form, BLOCK // LANES, "%in.line", "%in.i")
        + f"  %in.next = add i64 %in.i, {BLOCK}\n"
        + due("in", "%in.next", "in.poll", "in.4")
        + polled("in.poll", "in.4")
    )


def _block(form: SortForm, count: int, line: str, at: str, taken: str = "") -> str:
    """So many vectors of a line from a place on, sorted into the scratch memory; the last of them
    as `taken` has it, where it is not whole."""
    v, text, held = f"<{LANES} x {form.merged}>", "", []
    for number in range(count):
        name, last = f"k{count}.{number}", number == count - 1
        text += f"  %{name}.place.at = add i64 {at}, {number * LANES}\n"
        text += items(form, name, line, f"%{name}.place.at", taken if last else "")
        if taken and last:
            text += (
                f"  %{name}.full = select <{LANES} x i1> %live.{count}, {v} %{name}.item, "
                f"{v} {greatest(form)}\n"
            )
        held.append(f"%{name}.full" if taken and last else f"%{name}.item")
    more, made = sorted_vectors(form, f"s{count}", held)
    text += more
    for number, vector in enumerate(made):
        name = f"k{count}.{number}"
        text += (
            f"  %{name}.to = getelementptr {form.merged}, ptr %a, i64 %{name}.place.at\n"
            f"  store {v} {vector}, ptr %{name}.to, align {form.size}\n"
        )
    return text


def _levels(form: SortForm, v: str) -> str:
    """Runs merged two by two, between the halves of the scratch memory."""
    w, size = form.merged, form.size
    return (
        f"""level:
  %run = phi i64 [ {BLOCK}, %in.1 ], [ {BLOCK}, %in.2 ], [ {BLOCK}, %in.4 ],
    [ %run.more, %level.end ]
  %from = phi ptr [ %a, %in.1 ], [ %a, %in.2 ], [ %a, %in.4 ], [ %to, %level.end ]
  %to = phi ptr [ %b, %in.1 ], [ %b, %in.2 ], [ %b, %in.4 ], [ %from, %level.end ]
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
        + _meeting(form, v)
    )


def _meeting(form: SortForm, v: str) -> str:
    """Two runs into one, from both ends at once: neither end waits for the other's vectors. Each
    gives half of them; of an odd number the lower end gives one more."""
    w, size = form.merged, form.size

    def carried(name: str, kind: str, first: str, then: str) -> str:
        return (
            f"  %{name} = phi {kind} [ {first}, %meet ], [ {then}, %next ], [ {then}, %merge.poll ]"
        )

    def vector(name: str, at: str) -> str:
        return (
            f"  %{name}.at = getelementptr {w}, ptr %from, i64 {at}\n"
            f"  %{name} = load {v}, ptr %{name}.at, align {size}\n"
        )

    def given(name: str, to: str) -> str:
        return (
            f"  %{name}.to = getelementptr {w}, ptr %to, i64 {to}\n"
            f"  store {v} %{name}, ptr %{name}.to, align {size}\n"
        )

    steps = "\n".join(
        (
            carried("put", "i64", "%low", "%put.more"),
            carried("left", "i64", "%left.first", "%left.more"),
            carried("right", "i64", "%right.first", "%right.more"),
            carried("least", v, "%low.left", "%fresh"),
            carried("less", v, "%low.right", "%up.high"),
            carried("top", "i64", "%high.last", "%top.more"),
            carried("left.top", "i64", "%left.last", "%left.top.more"),
            carried("right.top", "i64", "%right.last", "%right.top.more"),
            carried("most", v, "%high.left", "%stale"),
            carried("more", v, "%high.right", "%down.low"),
        )
    )
    return (
        f"""meet:
  %left.first = add i64 %low, {LANES}
  %right.first = add i64 %mid, {LANES}
  %mid.last = sub i64 %mid, {LANES}
  %high.last = sub i64 %high, {LANES}
  %left.last = sub i64 %mid.last, {LANES}
  %right.last = sub i64 %high.last, {LANES}
  %length = sub i64 %high, %low
  %vectors = lshr i64 %length, {LANES.bit_length() - 1}
  %pairwise = lshr i64 %vectors, 1
  %half.long = shl i64 %pairwise, {LANES.bit_length() - 1}
  %half = add i64 %low, %half.long
  %odd.one = and i64 %vectors, 1
  %odd.out = icmp ne i64 %odd.one, 0
"""
        + vector("low.left", "%low")
        + vector("low.right", "%mid")
        + vector("high.left", "%mid.last")
        + vector("high.right", "%high.last")
        + f"  br label %merge\nmerge:\n{steps}\n"
        + merged(form, "up", ["%least"], ["%less"])[0]
        + merged(form, "down", ["%most"], ["%more"])[0]
        + given("up.low", "%put")
        + given("down.high", "%top")
        + f"""  %put.more = add i64 %put, {LANES}
  %top.more = sub i64 %top, {LANES}
  %merge.on = icmp ult i64 %put.more, %half
  br i1 %merge.on, label %next, label %close
close:
  br i1 %odd.out, label %middle, label %pair.end
middle:
"""
        + _upward(form, v, "middle")
        + merged(form, "last", ["%middle.fresh"], ["%up.high"])[0]
        + given("last.low", "%put.more")
        + "  br label %pair.end\nnext:\n"
        + _upward(form, v, "next")
        + f"""  %fresh = freeze {v} %next.fresh
  %left.more = add i64 %left, %next.left.by
  %right.more = add i64 %right, %next.right.by
"""
        + _downward(form, v)
        + due("merge", "%put.more", "merge.poll", "merge")
        + polled("merge.poll", "merge")
    )


def _compares(form: SortForm) -> str:
    return "fcmp o" if form.real else "icmp s"


def _upward(form: SortForm, v: str, name: str) -> str:
    """%NAME.fresh: the next vector of the run whose next item is less, and by how much either run
    moves on."""
    w, size = form.merged, form.size
    return f"""  %{name}.left.at = getelementptr {w}, ptr %from, i64 %left
  %{name}.right.at = getelementptr {w}, ptr %from, i64 %right
  %{name}.left.key = load {w}, ptr %{name}.left.at, align {size}
  %{name}.right.key = load {w}, ptr %{name}.right.at, align {size}
  %{name}.left.on = icmp ult i64 %left, %mid
  %{name}.right.off = icmp uge i64 %right, %high
  %{name}.least = {_compares(form)}le {w} %{name}.left.key, %{name}.right.key
  %{name}.wanted = or i1 %{name}.least, %{name}.right.off
  %{name}.take = and i1 %{name}.wanted, %{name}.left.on
  %{name}.at = select i1 %{name}.take, ptr %{name}.left.at, ptr %{name}.right.at
  %{name}.fresh = load {v}, ptr %{name}.at, align {size}
  %{name}.left.by = select i1 %{name}.take, i64 {LANES}, i64 0
  %{name}.right.by = sub i64 {LANES}, %{name}.left.by
"""


def _downward(form: SortForm, v: str) -> str:
    """%stale: the same from the upper end, where the run goes on whose last item is greater. A run
    that is used up may begin where the memory does, so no item before it is looked at."""
    w, size = form.merged, form.size
    return f"""  %down.left = call i64 @llvm.smax.i64(i64 %left.top, i64 %low)
  %down.right = call i64 @llvm.smax.i64(i64 %right.top, i64 %mid)
  %down.left.at = getelementptr {w}, ptr %from, i64 %down.left
  %down.right.at = getelementptr {w}, ptr %from, i64 %down.right
  %down.left.end = getelementptr {w}, ptr %down.left.at, i64 {LANES - 1}
  %down.right.end = getelementptr {w}, ptr %down.right.at, i64 {LANES - 1}
  %down.left.key = load {w}, ptr %down.left.end, align {size}
  %down.right.key = load {w}, ptr %down.right.end, align {size}
  %down.left.off = icmp slt i64 %left.top, %low
  %down.right.on = icmp sge i64 %right.top, %mid
  %down.most = {_compares(form)}ge {w} %down.right.key, %down.left.key
  %down.wanted = or i1 %down.most, %down.left.off
  %down.take = and i1 %down.wanted, %down.right.on
  %down.at = select i1 %down.take, ptr %down.right.at, ptr %down.left.at
  %stale = load {v}, ptr %down.at, align {size}
  %down.right.by = select i1 %down.take, i64 {LANES}, i64 0
  %down.left.by = sub i64 {LANES}, %down.right.by
  %left.top.more = sub i64 %left.top, %down.left.by
  %right.top.more = sub i64 %right.top, %down.right.by
"""


def _giving(form: SortForm, v: str, w: Writer) -> str:
    """Sorted items as the result's elements; whether there are zeros or NaNs among them."""
    item, size, one = f"i{form.item}", form.size, f"<{LANES} x i1>"
    whole = f"<{LANES} x {item}>"
    restores = form.letter == "f" and not form.positions
    after = "restore" if restores else "line.end"
    masks.store(w, "%r.to", item, "%r.out", "%live", align=1)

    def elements(name: str) -> str:
        if form.real:
            return (
                f"  %{name}.out = bitcast {v} %{name}.item to {whole}\n"
                f"  %{name}.zero = fcmp oeq {v} %{name}.item, zeroinitializer\n"
                f"  %{name}.nan = fcmp oeq {v} %{name}.item, {greatest(form)}\n"
                f"  %{name}.odd = or {one} %{name}.zero, %{name}.nan\n"
            )
        text = f"  %{name} = xor {v} %{name}.item, {turned(form)}\n"
        if restores:
            return text + (
                f"  %{name}.minus = ashr {v} %{name}, splat ({item} {form.bits - 1})\n"
                f"  %{name}.plus = xor {v} %{name}.minus, splat ({item} -1)\n"
                f"  %{name}.turn = or {v} %{name}.plus, splat ({item} {form.sign})\n"
                f"  %{name}.out = xor {v} %{name}, %{name}.turn\n"
                f"  %{name}.zero = icmp eq {v} %{name}, splat ({item} {form.sign})\n"
                f"  %{name}.nan = icmp eq {v} %{name}, splat ({item} -1)\n"
                f"  %{name}.odd = or {one} %{name}.zero, %{name}.nan\n"
            )
        turn = form.sign if form.letter == "i" else 0
        out = f"  %{name}.out = xor {v} %{name}, splat ({item} {turn})\n"
        if form.positions:
            out = f"  %{name}.out = and {v} %{name}, splat (i64 4294967295)\n"
        return text + out + f"  %{name}.odd = or {one} zeroinitializer, zeroinitializer\n"

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
"""
        + elements("g")
        + f"""  %g.to = getelementptr {item}, ptr %y, i64 %out.i
  store {whole} %g.out, ptr %g.to, align 1
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
