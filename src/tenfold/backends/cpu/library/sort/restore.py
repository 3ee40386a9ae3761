"""Zeros and NaNs of a sorted line as they were before: their keys say neither sign nor payload."""

from __future__ import annotations

from tenfold.backends.cpu.library.sort.keys import SortForm, key
from tenfold.backends.cpu.library.sort.poll import due, polled
from tenfold.backends.llvm.writer import LANES


def restoring(form: SortForm) -> str:
    """What follows a sort of floats that are zeros or NaNs in part. They stand together already:
    all that is below zero stands before the zeros, all that is a number before the NaNs. Elements
    are looked at by vectors, but where some of one are to be put back, and at a line's end. What is
    not put back goes to %aside, so that nothing has to be foreseen."""
    w, keys, truths = f"i{form.bits}", f"<{LANES} x i{form.bits}>", f"<{LANES} x i1>"

    def count(name: str, mask: str) -> str:
        return (
            f"  %{name}.bits = bitcast {truths} {mask} to i{LANES}\n"
            f"  %{name}.long = zext i{LANES} %{name}.bits to i64\n"
            f"  %{name}.some = call i64 @llvm.ctpop.i64(i64 %{name}.long)\n"
        )

    return (
        f"""restore:
  br label %rs
rs:
  %rs.i = phi i64 [ 0, %restore ], [ %rs.more, %rs.body ], [ %rs.more, %rs.poll ]
  %rs.below = phi i64 [ 0, %restore ], [ %rs.below.more, %rs.body ], [ %rs.below.more, %rs.poll ]
  %rs.real = phi i64 [ 0, %restore ], [ %rs.real.more, %rs.body ], [ %rs.real.more, %rs.poll ]
  %rs.more = add i64 %rs.i, {LANES}
  %rs.on = icmp ule i64 %rs.more, %n
  br i1 %rs.on, label %rs.body, label %rs.last
rs.body:
"""
        + key(form, "rk", "%x", "%rs.i", wide=True)
        + f"""  %rk.below = icmp ult {keys} %rk, splat ({w} {form.sign})
  %rk.real = xor {truths} %rk.nan, splat (i1 true)
"""
        + count("rb", "%rk.below")
        + count("rr", "%rk.real")
        + """  %rs.below.more = add i64 %rs.below, %rb.some
  %rs.real.more = add i64 %rs.real, %rr.some
"""
        + due("rs", "%rs.more", "rs.poll", "rs")
        + polled("rs.poll", "rs")
        + """rs.last:
  %rl.i = phi i64 [ %rs.i, %rs ], [ %rl.more, %rl.body ]
  %rl.below = phi i64 [ %rs.below, %rs ], [ %rl.below.more, %rl.body ]
  %rl.real = phi i64 [ %rs.real, %rs ], [ %rl.real.more, %rl.body ]
  %rl.on = icmp ult i64 %rl.i, %n
  br i1 %rl.on, label %rl.body, label %mend
rl.body:
"""
        + key(form, "rt", "%x", "%rl.i")
        + f"""  %rt.below = icmp ult {w} %rt, {form.sign}
  %rt.below.one = zext i1 %rt.below to i64
  %rl.below.more = add i64 %rl.below, %rt.below.one
  %rt.real = xor i1 %rt.nan, true
  %rt.real.one = zext i1 %rt.real to i64
  %rl.real.more = add i64 %rl.real, %rt.real.one
  %rl.more = add i64 %rl.i, 1
  br label %rs.last
mend:
  br label %mend.block
mend.block:
  %mend.low = phi i64 [ 0, %mend ], [ %mend.far, %mend.next ], [ %mend.far, %mend.poll ]
  %zeros = phi i64 [ %rl.below, %mend ], [ %zeros.next, %mend.next ], [ %zeros.next, %mend.poll ]
  %nans = phi i64 [ %rl.real, %mend ], [ %nans.next, %mend.next ], [ %nans.next, %mend.poll ]
  %mend.on = icmp ult i64 %mend.low, %n
  br i1 %mend.on, label %mend.test, label %line.end
mend.test:
  %mend.far = add i64 %mend.low, {LANES}
  %mend.high = call i64 @llvm.umin.i64(i64 %mend.far, i64 %n)
  %mend.whole = icmp ule i64 %mend.far, %n
  br i1 %mend.whole, label %mend.look, label %mend.each
mend.look:
"""
        + key(form, "ml", "%x", "%mend.low", wide=True)
        + f"""  %ml.odd = or {truths} %ml.zero, %ml.nan
  %ml.bits = bitcast {truths} %ml.odd to i{LANES}
  %ml.none = icmp eq i{LANES} %ml.bits, 0
  br i1 %ml.none, label %mend.next, label %mend.each
mend.each:
  %mend.i = phi i64 [ %mend.low, %mend.test ], [ %mend.low, %mend.look ], [ %mend.more, %mend.one ]
  %zeros.so = phi i64 [ %zeros, %mend.test ], [ %zeros, %mend.look ], [ %zeros.more, %mend.one ]
  %nans.so = phi i64 [ %nans, %mend.test ], [ %nans, %mend.look ], [ %nans.more, %mend.one ]
  %mend.in = icmp ult i64 %mend.i, %mend.high
  br i1 %mend.in, label %mend.one, label %mend.next
mend.one:
"""
        + key(form, "old", "%x", "%mend.i")
        + f"""  %old.odd = or i1 %old.zero, %old.nan
  %old.place = select i1 %old.zero, i64 %zeros.so, i64 %nans.so
  %old.there = getelementptr {w}, ptr %y, i64 %old.place
  %old.to = select i1 %old.odd, ptr %old.there, ptr %aside
  store {w} %old.raw, ptr %old.to, align 1
  %old.zero.one = zext i1 %old.zero to i64
  %zeros.more = add i64 %zeros.so, %old.zero.one
  %old.nan.one = zext i1 %old.nan to i64
  %nans.more = add i64 %nans.so, %old.nan.one
  %mend.more = add i64 %mend.i, 1
  br label %mend.each
mend.next:
  %zeros.next = phi i64 [ %zeros, %mend.look ], [ %zeros.so, %mend.each ]
  %nans.next = phi i64 [ %nans, %mend.look ], [ %nans.so, %mend.each ]
"""
        + due("mend", "%mend.far", "mend.poll", "mend.block")
        + polled("mend.poll", "mend.block")
    )
