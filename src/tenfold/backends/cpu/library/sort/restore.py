"""Zeros and NaNs of a sorted line as they were before: their keys say neither sign nor payload."""

from __future__ import annotations

from tenfold.backends.cpu.library.sort.keys import SortForm, key
from tenfold.backends.cpu.library.sort.poll import counted_long, due, polled


def restoring(form: SortForm) -> str:
    """What follows a sort of floats that are zeros or NaNs in part. They stand together already:
    all that is below zero stands before the zeros, all that is a number before the NaNs."""
    w = f"i{form.bits}"
    counting = key(form, "below", "%x", "%rs") + (
        f"  %below.yes = icmp ult {w} %below, {form.sign}\n"
        "  %below.one = zext i1 %below.yes to i64\n"
        "  %below.old = load i64, ptr %zeros, align 8\n"
        "  %below.new = add i64 %below.old, %below.one\n"
        "  store i64 %below.new, ptr %zeros, align 8\n"
        f"  %real.yes = icmp ne {w} %below, -1\n"
        "  %real.one = zext i1 %real.yes to i64\n"
        "  %real.old = load i64, ptr %nans, align 8\n"
        "  %real.new = add i64 %real.old, %real.one\n"
        "  store i64 %real.new, ptr %nans, align 8\n"
    )
    return (
        """restore:
  store i64 0, ptr %zeros, align 8
  store i64 0, ptr %nans, align 8
  br label %rs.head
"""
        + counted_long("rs", "%n", "restore", counting, "mend")
        + """mend:
  %mend.i = phi i64 [ 0, %rs.head ], [ %mend.more, %mended ]
  %mend.on = icmp ult i64 %mend.i, %n
  br i1 %mend.on, label %mend.test, label %line.end
mend.test:
"""
        + due("mend", "%mend.i", "mend.poll", "mend.look")
        + polled("mend.poll", "mend.look")
        + "mend.look:\n"
        + key(form, "old", "%x", "%mend.i")
        + f"""  %old.odd = or i1 %old.zero, %old.nan
  br i1 %old.odd, label %mend.put, label %mended
mend.put:
  %old.where = select i1 %old.zero, ptr %zeros, ptr %nans
  %old.place = load i64, ptr %old.where, align 8
  %old.next = add i64 %old.place, 1
  store i64 %old.next, ptr %old.where, align 8
  %old.to = getelementptr {w}, ptr %y, i64 %old.place
  store {w} %old.raw, ptr %old.to, align 1
  br label %mended
mended:
  %mend.more = add i64 %mend.i, 1
  br label %mend
"""
    )
