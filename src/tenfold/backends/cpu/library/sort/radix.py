"""Long lines sorted by radix: a digit of the keys at a time, the lowest first.

Digits that are the same in all keys are left out. The last pass that is made writes elements. The
first one reads these, but of floats, whose keys take longer to make than to store.
"""

from __future__ import annotations

from tenfold.backends.cpu.library.sort.items import negative_zero
from tenfold.backends.cpu.library.sort.keys import SortForm, counted, digit, item, key
from tenfold.backends.cpu.library.sort.poll import ENDS, counted_long, due, polled
from tenfold.backends.cpu.library.sort.restore import restoring
from tenfold.backends.llvm.writer import LANES


def radix(form: SortForm, name: str) -> str:
    """A function that sorts a line from %x to %y; it answers as a kernel does."""
    restores = form.letter == "f" and not form.positions
    head = f"""
define internal i32 @{name}(
  ptr %buffers, ptr %x, ptr %y, ptr %counts, ptr %a, ptr %b, i64 %n) noinline nounwind {{
radix:
  %so = alloca i32, align 4
  %so.last = alloca i64, align 8
  %aside = alloca i64, align 8
"""
    whole = head + _counting(form) + _choosing(form) + _passes(form)
    return whole + (_looking(form) + restoring(form) if restores else "") + ENDS


def _row(form: SortForm, number: str, name: str) -> str:
    """%NAME.counts: where the counts of a digit stand; %NAME.shift: its first bit in a key."""
    return (
        f"  %{name}.shift = mul i64 {number}, {form.digit}\n"
        f"  %{name}.first = shl i64 {number}, {form.digit}\n"
        f"  %{name}.counts = getelementptr i32, ptr %counts, i64 %{name}.first\n"
    )


def _counting(form: SortForm) -> str:
    """How often each digit occurs; the items of floats go to the scratch memory."""
    e = f"i{form.item}"

    def count(n: int) -> str:
        return (
            digit(form, f"d{n}", "%c.item", str(form.digit * n))
            + f"  %d{n}.row = add i64 %d{n}, {n << form.digit}\n"
            + f"  %d{n}.at = getelementptr i32, ptr %counts, i64 %d{n}.row\n"
            + f"  %d{n}.old = load i32, ptr %d{n}.at, align 4\n"
            + f"  %d{n}.new = add i32 %d{n}.old, 1\n"
            + f"  store i32 %d{n}.new, ptr %d{n}.at, align 4\n"
        )

    body = item(form, "c", "%x", "%count")
    if form.letter == "f":
        body += (
            f"  %c.to = getelementptr {e}, ptr %a, i64 %count\n"
            f"  store {e} %c.item, ptr %c.to, align 8\n"
        )
    body += "".join(map(count, range(form.digits)))
    size = f"i64 {form.counts}"
    clear = f"""  call void @llvm.memset.p0.i64(ptr align 64 %counts, i8 0, {size}, i1 false)
  br label %count.head
"""
    return clear + counted_long("count", "%n", "radix", body, "choose")


def _choosing(form: SortForm) -> str:
    """%last: the last digit that is not the same in all keys; of none of them the first digit."""
    body = (
        _row(form, "%try", "try")
        + digit(form, "first", "%f.item", "%try.shift")
        + """  %try.at = getelementptr i32, ptr %try.counts, i64 %first
  %try.count = load i32, ptr %try.at, align 4
  %try.long = zext i32 %try.count to i64
  %try.all = icmp eq i64 %try.long, %n
  %try.old = load i64, ptr %so.last, align 8
  %try.new = select i1 %try.all, i64 %try.old, i64 %try
  store i64 %try.new, ptr %so.last, align 8
"""
    )
    return (
        "choose:\n  store i64 0, ptr %so.last, align 8\n"
        + item(form, "f", "%x", "0")
        + "  br label %try.head\n"
        + counted("try", str(form.digits), "choose", body, "chosen")
        + "chosen:\n  %last = load i64, ptr %so.last, align 8\n  br label %pass\n"
    )


def _passes(form: SortForm) -> str:
    """One digit of the keys after another, the lowest first."""
    sums = """  %sum.at = getelementptr i32, ptr %row.counts, i64 %sum
  %sum.old = load i32, ptr %sum.at, align 4
  %sum.so = load i32, ptr %so, align 4
  store i32 %sum.so, ptr %sum.at, align 4
  %sum.next = add i32 %sum.so, %sum.old
  store i32 %sum.next, ptr %so, align 4
"""
    after = "odd.test" if form.letter == "f" and not form.positions else "line.end"
    stored = form.letter == "f"
    begin, only = ("inner", "end") if stored else ("begin", "only")
    return (
        """pass:
  %number = phi i64 [ 0, %chosen ], [ %number.more, %next ]
  %made = phi i1 [ 0, %chosen ], [ %made.next, %next ]
  %from = phi ptr [ %a, %chosen ], [ %from.next, %next ]
  %to = phi ptr [ %b, %chosen ], [ %to.next, %next ]
"""
        + _row(form, "%number", "row")
        + digit(form, "od", "%f.item", "%row.shift")
        + """  %all.at = getelementptr i32, ptr %row.counts, i64 %od
  %all = load i32, ptr %all.at, align 4
  %all.long = zext i32 %all to i64
  %same = icmp eq i64 %all.long, %n
  %final = icmp eq i64 %number, %last
  %other = xor i1 %final, true
  %left.out = and i1 %same, %other
  br i1 %left.out, label %next, label %sums
sums:
  store i32 0, ptr %so, align 4
  br label %sum.head
"""
        + counted("sum", str(1 << form.digit), "sums", sums, "moves")
        + f"""moves:
  br i1 %final, label %ending, label %going
going:
  br i1 %made, label %inner, label %{begin}
ending:
  br i1 %made, label %end, label %{only}
"""
        + _moving(form, "inner", raw=False, final=False, after="turned")
        + _moving(form, "end", raw=False, final=True, after=after)
        + ("" if stored else _moving(form, "begin", raw=True, final=False, after="turned"))
        + ("" if stored else _moving(form, "only", raw=True, final=True, after=after))
        + """turned:
  br label %next
next:
  %made.next = phi i1 [ %made, %pass ], [ 1, %turned ]
  %from.next = phi ptr [ %from, %pass ], [ %to, %turned ]
  %to.next = phi ptr [ %to, %pass ], [ %from, %turned ]
  %number.more = add i64 %number, 1
  br label %pass
"""
    )


def _moving(form: SortForm, name: str, *, raw: bool, final: bool, after: str) -> str:
    """All items to where the counts of a digit put them: `raw` from the line's elements, `final` as
    the result's."""
    e, i = f"i{form.item}", f"{name}.i"
    body = (
        item(form, f"{name}.m", "%x", f"%{i}")
        if raw
        else f"  %{name}.m.at = getelementptr {e}, ptr %from, i64 %{i}\n"
        f"  %{name}.m.item = load {e}, ptr %{name}.m.at, align 8\n"
    )
    body += digit(form, f"{name}.d", f"%{name}.m.item", "%row.shift")
    body += f"""  %{name}.count = getelementptr i32, ptr %row.counts, i64 %{name}.d
  %{name}.place = load i32, ptr %{name}.count, align 4
  %{name}.up = add i32 %{name}.place, 1
  store i32 %{name}.up, ptr %{name}.count, align 4
  %{name}.far = zext i32 %{name}.place to i64
"""
    if final:
        body += _given(form, name)
    else:
        body += (
            f"  %{name}.to = getelementptr {e}, ptr %to, i64 %{name}.far\n"
            f"  store {e} %{name}.m.item, ptr %{name}.to, align 8\n"
        )
    return f"{name}:\n  br label %{i}.head\n" + counted_long(i, "%n", name, body, after)


def _given(form: SortForm, name: str) -> str:
    """An item as an element of the result, where it belongs."""
    w, e, g = f"i{form.bits}", f"i{form.item}", f"%{name}.m.item"
    out, to = f"%{name}.out", f"  %{name}.to = getelementptr"
    if form.positions:
        cut = f"and i64 {g}, 4294967295" if form.item == 64 else f"trunc {e} {g} to i64"
        return (
            f"  {out} = {cut}\n{to} i64, ptr %y, i64 %{name}.far\n"
            f"  store i64 {out}, ptr %{name}.to, align 8\n"
        )
    store = f"{to} {w}, ptr %y, i64 %{name}.far\n  store {w} {out}, ptr %{name}.to, align 1\n"
    if form.letter != "f":
        turn = form.sign if form.letter == "i" else 0
        return f"  {out} = xor {w} {g}, {turn}\n{store}"
    return (
        f"  %{name}.minus = ashr {w} {g}, {form.bits - 1}\n"
        f"  %{name}.plus = xor {w} %{name}.minus, -1\n"
        f"  %{name}.turn = or {w} %{name}.plus, {form.sign}\n"
        f"  {out} = xor {w} {g}, %{name}.turn\n"
        f"{store}"
    )


def _looking(form: SortForm) -> str:
    """Whether there are negative zeros or NaNs in the line, which is longer than a vector. The last
    vector begins before the one ahead of it ends."""
    one, w = f"<{LANES} x i1>", f"<{LANES} x i{form.bits}>"
    return (
        f"""odd.test:
  %look.last = sub i64 %n, {LANES}
  br label %look
look:
  %look.i = phi i64 [ 0, %odd.test ], [ %look.more, %look.next ], [ %look.more, %look.poll ]
  %look.odd = phi {w} [ zeroinitializer, %odd.test ], [ %look.also, %look.next ],
    [ %look.also, %look.poll ]
  %look.here = call i64 @llvm.umin.i64(i64 %look.i, i64 %look.last)
"""
        + key(form, "seen", "%x", "%look.here", wide=True)
        + negative_zero(form, "seen")
        + f"""  %seen.odd = or {one} %seen.least, %seen.nan
  %seen.bits = sext {one} %seen.odd to {w}
  %look.also = or {w} %look.odd, %seen.bits
  %look.more = add i64 %look.i, {LANES}
  %look.on = icmp ult i64 %look.more, %n
  br i1 %look.on, label %look.next, label %looked
look.next:
"""
        + due("look", "%look.more", "look.poll", "look")
        + polled("look.poll", "look")
        + f"""looked:
  %look.true = icmp ne {w} %look.also, zeroinitializer
  %look.some = call i1 @llvm.vector.reduce.or.v{LANES}i1({one} %look.true)
  br i1 %look.some, label %restore, label %line.end
"""
    )
