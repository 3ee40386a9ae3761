"""Stable sorts of lines of elements, as LLVM IR: one function for each dtype and kind.

    i32 tn_sort_f32(ptr buffers, ptr params, i64 low, i64 high)

is called as a kernel is: `buffers` has the addresses of the lines, of the result and of scratch
memory, then of what is polled (`sort_poll`), `params` begins with the length of a line, and lines
`low` to `high` are sorted. So one function serves every plan and every length.

Elements become unsigned keys that sort as they do: zeros of either sign are equal, NaNs are equal
and last. What is moved is an item: a key, for positions (argsort) with the element's position below
it. Where AVX2 or AVX-512 partition vectors, keys of 32 and 64 bits alone go by quicksort, whatever
the length of a line. Other items of up to 64 bits are merged: blocks of 64 are sorted in registers,
runs of blocks merged from both ends. Of longer items each is counted past those that go before it,
many at once, and put where that says. Long lines, but of keys of 64 bits alone, are sorted by
radix, a digit of the key at a time, digits that are all the same left out. Zeros and NaNs are put
back as they were, in their order.
"""

from __future__ import annotations

from dataclasses import replace

from tenfold.backends.cpu.library.sort import merge, quicksort
from tenfold.backends.cpu.library.sort.keys import PADDING, SortForm, form_of
from tenfold.backends.cpu.library.sort.poll import ENDS, LOOK, POLLED, polled
from tenfold.backends.cpu.library.sort.radix import radix
from tenfold.backends.cpu.library.sort.short import ranking
from tenfold.backends.llvm.target import LLVMTarget
from tenfold.backends.llvm.text import Fragment, join
from tenfold.backends.llvm.writer import Writer, kind

LONGEST = 1 << 32  # elements of a line: counts and positions have 32 bits
_RANKED, _MERGED = 192, 512  # elements of a line: up to these by counting, or by merging
_MERGED_VALUES = 12288  # the same, of items that are keys of 32 bits alone
_LONG = 32768  # elements from which a sort by radix has longer digits, but for keys alone
_DIGIT = 11  # bits of a longer digit: fewer passes over memory, more counts
_NEEDS = (
    "declare void @llvm.memset.p0.i64(ptr, i8, i64, i1)",
    "declare void @llvm.memcpy.p0.p0.i64(ptr, ptr, i64, i1)",
    "declare i64 @llvm.umin.i64(i64, i64)",
    "declare i64 @llvm.ctpop.i64(i64)",
)


def scratch_bytes(name: str, dtype: str, length: int) -> int | None:
    """The scratch memory that a sort of lines of this length takes; None where there is none of
    this dtype (complex elements have no keys) or length."""
    if kind(dtype) == "c" or length >= LONGEST:
        return None
    form = form_of(name, dtype)
    items = 2 * (-(-length * form.room // 64) * 64 + PADDING)
    if length <= _short(form):
        return items
    return items + (_longer(form) if length >= _LONG or _only_longer(form) else form).counts


def _short(form: SortForm) -> int:
    """Elements of a line that is not yet sorted by radix."""
    if form.bits > 16 and not form.positions:
        return _MERGED_VALUES if form.bits == 32 else LONGEST
    return _MERGED if form.item <= 64 else _RANKED


def _longer(form: SortForm) -> SortForm:
    """The form with digits for long lines."""
    return replace(form, digit=_DIGIT) if form.bits > 16 else form


def _only_longer(form: SortForm) -> bool:
    """Whether a sort by radix has longer digits for all lines: items that are keys alone are merged
    up to lengths for which these pay."""
    return not form.positions or _longer(form) == form


def _called(label: str, function: str, scratch: str) -> str:
    """A line sorted by a function, which may be stopped."""
    return f"""{label}:
  %{label}.code = call i32 @{function}(ptr %buffers, ptr %x, ptr %y, {scratch}, i64 %n)
  %{label}.on = icmp eq i32 %{label}.code, 0
  br i1 %{label}.on, label %line.done, label %stopped
"""


def sort_text(symbol: str, target: LLVMTarget) -> str:
    """The module of the sort that has this name."""
    _, name, dtype = symbol.split("_")
    form = form_of(name, dtype)
    result = "i64" if form.positions else f"i{form.bits}"
    functions, line, w = "", "", Writer(target)
    needs: tuple[str, ...] = _NEEDS
    quick = quicksort.has_quicksort(form, target)
    if form.item <= 64:
        if quick:
            functions += quicksort.quicksort(form, f"{symbol}_m", w)
            needs += quicksort.needs(form, target)
        else:
            functions += merge.merging(form, f"{symbol}_m", w)
            needs += merge.needs(form)
        short = _called("short", f"{symbol}_m", "ptr %a, ptr %b")
    else:
        short = ranking(form)
    if quick or _short(form) == LONGEST:
        line = f"  br label %short\n{short}"
    else:
        longer = _longer(form)
        line = f"""  %little = icmp ule i64 %n, {_short(form)}
  br i1 %little, label %short, label %radix
{short}"""
        if _only_longer(form):
            functions += radix(longer, f"{symbol}_r")
            line += _called("radix", f"{symbol}_r", "ptr %counts, ptr %a, ptr %b")
        else:
            functions += radix(form, f"{symbol}_r") + radix(longer, f"{symbol}_l")
            line += f"""radix:
  %long = icmp uge i64 %n, {_LONG}
  br i1 %long, label %by.longer, label %by.shorter
"""
            line += _called("by.shorter", f"{symbol}_r", "ptr %counts, ptr %a, ptr %b")
            line += _called("by.longer", f"{symbol}_l", "ptr %counts, ptr %a, ptr %b")
    body = (
        LOOK
        + functions
        + f"""
define dso_local i32 @{symbol}(
  ptr %buffers, ptr %params, i64 %low, i64 %high) nounwind "prefer-vector-width"="512" {{
entry:
  %x.all = load ptr, ptr %buffers, align 8
  %y.at = getelementptr ptr, ptr %buffers, i64 1
  %y.all = load ptr, ptr %y.at, align 8
  %a.at = getelementptr ptr, ptr %buffers, i64 2
  %a = load ptr, ptr %a.at, align 8
  %n = load i64, ptr %params, align 8
  %bytes = mul i64 %n, {form.room}
  %more = add i64 %bytes, {63 + PADDING}
  %half = and i64 %more, -64
  %b = getelementptr i8, ptr %a, i64 %half
  %counts = getelementptr i8, ptr %b, i64 %half
  br label %line
line:
  %row = phi i64 [ %low, %entry ], [ %row.more, %line.done ], [ %row.more, %rows.poll ]
  %left = phi i64 [ {POLLED}, %entry ], [ %left.more, %line.done ], [ {POLLED}, %rows.poll ]
  %row.on = icmp slt i64 %row, %high
  br i1 %row.on, label %begin, label %line.end
begin:
  %first = mul i64 %row, %n
  %x = getelementptr i{form.bits}, ptr %x.all, i64 %first
  %y = getelementptr {result}, ptr %y.all, i64 %first
{line}line.done:
  %row.more = add i64 %row, 1
  %left.more = sub i64 %left, %n
  %rows.due = icmp slt i64 %left.more, 0
  br i1 %rows.due, label %rows.poll, label %line
"""
        + polled("rows.poll", "line")
        + ENDS
    )
    return join([Fragment((*needs, *sorted(w.declared)), body)])
