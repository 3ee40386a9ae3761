"""Long lines sorted by radix: a digit of the keys at a time, the lowest first."""

from __future__ import annotations

from tenfold.backends.cpu.library.sort.keys import SortForm, counted, digit, item
from tenfold.backends.cpu.library.sort.poll import ENDS, counted_long
from tenfold.backends.cpu.library.sort.restore import restoring


def radix(form: SortForm, name: str) -> str:
    """A function that sorts a line from %x to %y; it answers as a kernel does."""
    restores = form.letter == "f" and not form.positions
    head = f"""
define internal i32 @{name}(
  ptr %buffers, ptr %x, ptr %y, ptr %counts, ptr %a, ptr %b, i64 %n) noinline nounwind {{
radix:
  %so = alloca i32, align 4
  %odd = alloca i8, align 1
  %zeros = alloca i64, align 8
  %nans = alloca i64, align 8
"""
    whole = head + _counting(form) + _passes(form) + _giving(form)
    test = """odd.test:
  %odd.now = load i8, ptr %odd, align 1
  %odd.some = icmp ne i8 %odd.now, 0
  br i1 %odd.some, label %restore, label %line.end
"""
    return whole + (test + restoring(form) if restores else "") + ENDS


def _counting(form: SortForm) -> str:
    """Items into the first half of the scratch memory, and how often each digit occurs."""
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

    body = (
        item(form, "c", "%x", "%count")
        + f"  %c.to = getelementptr {e}, ptr %a, i64 %count\n"
        + f"  store {e} %c.item, ptr %c.to, align 8\n"
        + "".join(map(count, range(form.digits)))
    )
    size = f"i64 {form.counts}"
    clear = f"""  call void @llvm.memset.p0.i64(ptr align 64 %counts, i8 0, {size}, i1 false)
  br label %count.head
"""
    return clear + counted_long("count", "%n", "radix", body, "pass")


def _passes(form: SortForm) -> str:
    """One digit of the keys after another, the lowest first."""
    e = f"i{form.item}"
    sums = """  %sum.at = getelementptr i32, ptr %row.counts, i64 %sum
  %sum.old = load i32, ptr %sum.at, align 4
  %sum.so = load i32, ptr %so, align 4
  store i32 %sum.so, ptr %sum.at, align 4
  %sum.next = add i32 %sum.so, %sum.old
  store i32 %sum.next, ptr %so, align 4
"""
    moves = (
        f"  %m.at = getelementptr {e}, ptr %from, i64 %moved\n"
        f"  %m = load {e}, ptr %m.at, align 8\n"
        + digit(form, "md", "%m", "%shift")
        + f"""  %m.count = getelementptr i32, ptr %row.counts, i64 %md
  %m.place = load i32, ptr %m.count, align 4
  %m.more = add i32 %m.place, 1
  store i32 %m.more, ptr %m.count, align 4
  %m.far = zext i32 %m.place to i64
  %m.to = getelementptr {e}, ptr %to, i64 %m.far
  store {e} %m, ptr %m.to, align 8
"""
    )
    return (
        f"""pass:
  %number = phi i64 [ 0, %count.head ], [ %number.more, %next ]
  %from = phi ptr [ %a, %count.head ], [ %from.next, %next ]
  %to = phi ptr [ %b, %count.head ], [ %to.next, %next ]
  %pass.on = icmp ult i64 %number, {form.digits}
  br i1 %pass.on, label %test, label %give
test:
  %shift = mul i64 %number, {form.digit}
  %row.first = shl i64 %number, {form.digit}
  %row.counts = getelementptr i32, ptr %counts, i64 %row.first
  %one = load {e}, ptr %from, align 8
"""
        + digit(form, "od", "%one", "%shift")
        + """  %all.at = getelementptr i32, ptr %row.counts, i64 %od
  %all = load i32, ptr %all.at, align 4
  %all.long = zext i32 %all to i64
  %same = icmp eq i64 %all.long, %n
  br i1 %same, label %next, label %sums
sums:
  store i32 0, ptr %so, align 4
  br label %sum.head
"""
        + counted("sum", str(1 << form.digit), "sums", sums, "moves")
        + """moves:
  br label %moved.head
"""
        + counted_long("moved", "%n", "moves", moves, "turned")
        + """turned:
  br label %next
next:
  %from.next = phi ptr [ %from, %test ], [ %to, %turned ]
  %to.next = phi ptr [ %to, %test ], [ %from, %turned ]
  %number.more = add i64 %number, 1
  br label %pass
"""
    )


def _giving(form: SortForm) -> str:
    """Sorted items as the result's elements."""
    w, e = f"i{form.bits}", f"i{form.item}"
    after = "odd.test" if form.letter == "f" and not form.positions else "line.end"
    load = (
        f"  %g.at = getelementptr {e}, ptr %from, i64 %given\n  %g = load {e}, ptr %g.at, align 8\n"
    )
    if form.positions:
        cut = "  %g.out = and i64 %g, 4294967295\n"
        if form.item > 64:
            cut = f"  %g.out = trunc {e} %g to i64\n"
        body = load + cut + "  %g.to = getelementptr i64, ptr %y, i64 %given\n"
        body += "  store i64 %g.out, ptr %g.to, align 8\n"
    else:
        back = {
            "i": f"  %g.out = xor {w} %g, {form.sign}\n",
            "f": f"  %g.minus = ashr {w} %g, {form.bits - 1}\n"
            f"  %g.plus = xor {w} %g.minus, -1\n"
            f"  %g.turn = or {w} %g.plus, {form.sign}\n"
            f"  %g.out = xor {w} %g, %g.turn\n",
        }.get(form.letter, f"  %g.out = add {w} %g, 0\n")
        body = load + back + f"  %g.to = getelementptr {w}, ptr %y, i64 %given\n"
        body += f"  store {w} %g.out, ptr %g.to, align 1\n"
        if form.letter == "f":
            body += (
                f"  %g.zero = icmp eq {w} %g, {form.sign}\n"
                f"  %g.nan = icmp eq {w} %g, -1\n"
                "  %g.odd = or i1 %g.zero, %g.nan\n"
                "  %g.old = load i8, ptr %odd, align 1\n"
                "  %g.bit = zext i1 %g.odd to i8\n"
                "  %g.new = or i8 %g.old, %g.bit\n"
                "  store i8 %g.new, ptr %odd, align 1\n"
            )
    return """give:
  store i8 0, ptr %odd, align 1
  br label %given.head
""" + counted_long("given", "%n", "give", body, after)
