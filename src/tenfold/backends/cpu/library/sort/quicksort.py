"""Quicksort of lines of elements of 4 and 8 bytes; `partition` has how ranges are partitioned.

Items go to the scratch memory, those of long lines to the result's. There they are partitioned;
registers sort few of them and give elements. This is not stable, which shows in negative zeros
and NaNs alone: where there are any, `restoring` puts zeros and NaNs back.
"""

from __future__ import annotations

from tenfold.backends.cpu.library.sort import columns
from tenfold.backends.cpu.library.sort.few import most, sorting
from tenfold.backends.cpu.library.sort.items import items, live, negative_zero
from tenfold.backends.cpu.library.sort.keys import SortForm
from tenfold.backends.cpu.library.sort.partition import IN_PLACE, partition, spare
from tenfold.backends.cpu.library.sort.poll import ENDS, due, polled
from tenfold.backends.cpu.library.sort.restore import restoring
from tenfold.backends.llvm import masks
from tenfold.backends.llvm.target import LLVMTarget
from tenfold.backends.llvm.writer import LANES, Writer

_PARTITIONS = 2  # of a range, times the bits of a line's length


def has_quicksort(form: SortForm, target: LLVMTarget) -> bool:
    """Whether lines are sorted so: where a vector can be partitioned in few instructions."""
    wide = target.arch == "x86_64" and target.vector_bytes >= 32
    return wide and form.bits >= 32 and not form.positions


def quicksort(form: SortForm, name: str, w: Writer) -> str:
    """A function that sorts a line from %x to %y; it answers as a kernel does."""
    v, one = f"<{LANES} x {form.merged}>", f"<{LANES} x i1>"
    restores = form.letter == "f"
    ends = ("0xFFF0000000000000", "0x7FF0000000000000")
    if not form.real:
        ends = (str(-1 << form.item - 1), str((1 << form.item - 1) - 1))
    tail = w.op(f"getelementptr i{form.bits}, ptr %x, i64 %whole")
    taken = masks.load(w, tail, f"i{form.bits}", "%live", align=1)
    tail_text = w.taken()
    masks.store(w, "%t.to", f"i{form.item}", "%t.bits", "%live", align=1)
    put = w.taken()

    def odd(name: str) -> str:
        """Which elements are not what their items give: NaNs, and zeros that are negative."""
        if not restores:
            return f"  %{name}.odd = or {one} zeroinitializer, zeroinitializer\n"
        return negative_zero(form, name) + f"  %{name}.odd = or {one} %{name}.least, %{name}.nan\n"

    return (
        sorting(form, f"{name}_few", w)
        + partition(form, f"{name}_part", f"{name}_few", w)
        + f"""
define internal i32 @{name}(
  ptr %buffers, ptr %x, ptr %y, ptr %a, ptr %b, i64 %n) noinline nounwind
  "prefer-vector-width"="512" {{
start:
  %aside = alloca i64, align 8
  %spare = alloca [{spare(form, w)} x i{form.item}], align 64
  %end = getelementptr i{form.bits}, ptr %y, i64 %n
  %long = icmp ugt i64 %n, {IN_PLACE}
  %p = select i1 %long, ptr %y, ptr %b
  %whole = and i64 %n, -{LANES}
  br label %in
in:
  %in.i = phi i64 [ 0, %start ], [ %in.more, %in.body ], [ %in.more, %in.poll ]
  %in.odd = phi {one} [ zeroinitializer, %start ], [ %in.also, %in.body ],
    [ %in.also, %in.poll ]
  %in.on = icmp ult i64 %in.i, %whole
  br i1 %in.on, label %in.body, label %rest
in.body:
"""
        + items(form, "k", "%x", "%in.i")
        + odd("k")
        + f"""  %in.to = getelementptr {form.merged}, ptr %p, i64 %in.i
  store {v} %k.item, ptr %in.to, align {form.size}
  %in.also = or {one} %in.odd, %k.odd
  %in.more = add i64 %in.i, {LANES}
"""
        + due("in", "%in.more", "in.poll", "in")
        + polled("in.poll", "in")
        + """rest:
  %even = icmp eq i64 %n, %whole
  br i1 %even, label %go, label %tail
tail:
"""
        + live("live", "%whole")
        + tail_text
        + items(form, "t", "%x", "%whole", taken)
        + odd("t")
        + f"""  %t.to = getelementptr {form.merged}, ptr %p, i64 %whole
  %t.bits = bitcast {v} %t.item to <{LANES} x i{form.item}>
{put}  %t.live = and {one} %t.odd, %live
  br label %go
go:
  %go.odd = phi {one} [ zeroinitializer, %rest ], [ %t.live, %tail ]
  %all.odd = or {one} %in.odd, %go.odd
  %odd = call i1 @llvm.vector.reduce.or.v{LANES}i1({one} %all.odd)
  %little = icmp ule i64 %n, {most(form, w)}
  br i1 %little, label %few, label %many
few:
  call void @{name}_few(ptr %p, ptr %y, ptr %end, i64 %n)
  br label %given
many:
  %zeros.above = call i64 @llvm.ctlz.i64(i64 %n, i1 true)
  %bits = sub i64 64, %zeros.above
  %depth = mul i64 %bits, {_PARTITIONS}
  %code = call i32 @{name}_part(ptr %buffers, ptr %p, ptr %a, ptr %y, ptr %end, ptr %spare, i64 %n,
    {form.merged} {ends[0]}, {form.merged} {ends[1]}, i64 %depth)
  %code.on = icmp eq i32 %code, 0
  br i1 %code.on, label %given, label %failed
failed:
  ret i32 %code
given:
  br i1 %odd, label %{"restore" if restores else "line.end"}, label %line.end
"""
        + (restoring(form) if restores else "")
        + ENDS
    )


def needs(form: SortForm, target: LLVMTarget) -> tuple[str, ...]:
    """What the function refers to, besides what its writer declares."""
    return (
        *columns.needs(form, target.lanes(form.size)),
        "declare i64 @llvm.ctlz.i64(i64, i1)",
        f"declare i1 @llvm.vector.reduce.or.v{LANES}i1(<{LANES} x i1>)",
    )
