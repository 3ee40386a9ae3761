"""Stable sorts of lines of elements, as LLVM IR: one function for each dtype and kind.

    i32 tn_sort_f32(ptr buffers, ptr params, i64 low, i64 high)

is called as a kernel is: `buffers` has the addresses of the lines, of the result and of scratch
memory, `params` begins with the length of a line, and lines `low` to `high` are sorted. So one
function serves every plan and every length.

Elements become unsigned keys that sort as they do: zeros of either sign are equal, NaNs are equal
and last. In a short line each element is counted past those that go before it, many at once, and
put where that says. Other lines are sorted by radix, a digit of the key at a time, digits that are
all the same left out. For positions (argsort) an item is a key with the element's position below
it. In a sort of floats by radix, zeros and NaNs are put back as they were, in their order.
"""

from __future__ import annotations

from dataclasses import replace

from tenfold.backends.cpu.sort_keys import PADDING, Form, form_of
from tenfold.backends.cpu.sort_radix import radix
from tenfold.backends.cpu.sort_short import ranking
from tenfold.backends.cpu.text import Fragment, join
from tenfold.backends.cpu.writer import kind

LONGEST = 1 << 32  # elements of a line: counts and positions have 32 bits
_SHORT, _LONG = 192, 32768  # elements: up to here by counting, from here on by longer digits
_DIGIT = 11  # bits of a longer digit: fewer passes over memory, more counts
_NEEDS = (
    "declare void @llvm.memset.p0.i64(ptr, i8, i64, i1)",
    "declare i64 @llvm.umin.i64(i64, i64)",
)


def sort_name(name: str, dtype: str) -> str:
    """The name of the function."""
    return f"tn_{name}_{dtype}"


def scratch_bytes(name: str, dtype: str, length: int) -> int | None:
    """The scratch memory that a sort of lines of this length takes; None where there is none of
    this dtype (complex elements have no keys) or length."""
    if kind(dtype) == "c" or length >= LONGEST:
        return None
    form = form_of(name, dtype)
    return _longer(form).counts + 2 * (-(-length * form.room // 64) * 64 + PADDING)


def _longer(form: Form) -> Form:
    """The form with digits for long lines."""
    return replace(form, digit=_DIGIT) if form.bits > 16 else form


def sort_text(symbol: str) -> str:
    """The module of the sort that has this name."""
    _, name, dtype = symbol.split("_")
    form = form_of(name, dtype)
    result = "i64" if form.positions else f"i{form.bits}"
    longer = _longer(form)
    body = (
        radix(form, f"{symbol}_8")
        + (radix(longer, f"{symbol}_{_DIGIT}") if longer != form else "")
        + f"""
define dso_local i32 @{symbol}(
  ptr %buffers, ptr %params, i64 %low, i64 %high) nounwind "prefer-vector-width"="512" {{
entry:
  %x.all = load ptr, ptr %buffers, align 8
  %y.at = getelementptr ptr, ptr %buffers, i64 1
  %y.all = load ptr, ptr %y.at, align 8
  %counts.at = getelementptr ptr, ptr %buffers, i64 2
  %counts = load ptr, ptr %counts.at, align 8
  %n = load i64, ptr %params, align 8
  %a = getelementptr i8, ptr %counts, i64 {longer.counts}
  %bytes = mul i64 %n, {form.room}
  %more = add i64 %bytes, {63 + PADDING}
  %half = and i64 %more, -64
  %b = getelementptr i8, ptr %a, i64 %half
  br label %line
line:
  %row = phi i64 [ %low, %entry ], [ %row.more, %line.end ]
  %row.on = icmp slt i64 %row, %high
  br i1 %row.on, label %begin, label %done
begin:
  %first = mul i64 %row, %n
  %x = getelementptr i{form.bits}, ptr %x.all, i64 %first
  %y = getelementptr {result}, ptr %y.all, i64 %first
  %short = icmp ule i64 %n, {_SHORT}
  br i1 %short, label %rank, label %radix
"""
        + ranking(form)
        + f"""radix:
  %long = icmp uge i64 %n, {_LONG}
  br i1 %long, label %by.longer, label %by.8
by.8:
  call void @{symbol}_8(ptr %x, ptr %y, ptr %counts, ptr %a, ptr %b, i64 %n)
  br label %line.end
by.longer:
  call void @{symbol}_{longer.digit}(ptr %x, ptr %y, ptr %counts, ptr %a, ptr %b, i64 %n)
  br label %line.end
line.end:
  %row.more = add i64 %row, 1
  br label %line
done:
  ret i32 0
}}
"""
    )
    return join([Fragment(_NEEDS, body)])
