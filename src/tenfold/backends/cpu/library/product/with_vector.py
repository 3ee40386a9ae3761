"""A tile of a product of a matrix with a vector, as LLVM IR: what is added up goes in runs, and in
parts where the result is short. The library adds a run up, or code of our own (`vectors`)."""

from __future__ import annotations

from collections.abc import Callable

from tenfold.backends.cpu.library.blas import ROW_MAJOR
from tenfold.backends.cpu.library.product.addresses import (
    QUICK,
    least,
    moved,
    operands,
    trans,
    words,
)
from tenfold.backends.cpu.library.product.tiles import WIDEST

Addition = Callable[[str, str, str], str]  # of a count and two vectors, to the second

_OF_VECTOR = (
    *("first", "m", "k", "ld", "row", "step"),
    *("size", "rows", "runs", "span", "parts"),
)


def library_vector(letter: str, one: str) -> tuple[str, Addition]:
    """Calls of the library: of a run of terms, and one that adds vectors."""

    def add(count: str, x: str, y: str) -> str:
        return f"  call void @tn_{letter}axpy(i64 {count}, {one}, ptr {x}, i64 1, ptr {y}, i64 1)\n"

    return (
        "  %turned = sub i64 1, %first\n"
        + trans("t", "%turned")
        + f"""  %down = select i1 %plain, i64 %high, i64 %terms
  %across = select i1 %plain, i64 %terms, i64 %high
  call void @tn_{letter}gemv(i32 {ROW_MAJOR}, i32 %t, i64 %down, i64 %across, {one},
    ptr %a.now, i64 %ld, ptr %x.now, i64 1, {one}, ptr %to, i64 1)
""",
        add,
    )


OWN_VECTOR = """  br i1 %plain, label %along, label %across
along:
  call void @tn_along(ptr %a.now, i64 %ld, ptr %x.now, ptr %to, i64 %high, i64 %terms)
  br label %added
across:
  call void @tn_across(ptr %a.now, i64 %ld, ptr %x.now, ptr %to, i64 %high, i64 %terms)
  br label %added
added:
"""


def own_addition(count: str, x: str, y: str) -> str:
    return f"  call void @tn_add(ptr {x}, ptr {y}, i64 {count})\n"


def vector_text(call: str, add: Addition, size: int) -> str:
    """A tile of a matrix, which is the operand `%which`, times a vector: the result's axis is
    that of the matrix's rows where `first` is 1, else that of its columns. It is added up in runs,
    each from nothing: those after the first beside the result. Of several parts of what is added
    up, those after the first go to sums of their own."""
    return (
        "define internal void @tn_vector(ptr %buffers, ptr %params, i64 %index, i64 %which, "
        f"ptr %sums) {QUICK} {{\nentry:\n"
        + f"  %beside = alloca [{WIDEST * size} x i8], align 64\n"
        + words(*_OF_VECTOR)
        + operands("one", "two", "c")
        + """  %swapped = icmp ne i64 %which, 0
  %a = select i1 %swapped, ptr %two, ptr %one
  %x = select i1 %swapped, ptr %one, ptr %two
  %whole = icmp eq i64 %parts, 1
  %tile = select i1 %whole, i64 %index, i64 0
  %part = select i1 %whole, i64 0, i64 %index
  %i = mul i64 %tile, %rows
  %begin = mul i64 %part, %span
  %beyond = add i64 %begin, %span
  %k.end = call i64 @llvm.umin.i64(i64 %beyond, i64 %k)
  %before = sub i64 %part, 1
  %line = mul i64 %m, %size
"""
        + least("high", "%rows", "%m", "%i")
        + moved("a.first", "%a", ("%i", "%row"))
        + moved("result", "%c", ("%i", "%size"))
        + moved("own", "%sums", ("%before", "%line"))
        + """  %leads = icmp eq i64 %part, 0
  %y = select i1 %leads, ptr %result, ptr %own
"""
        + """  %bytes = mul i64 %high, %size
  %plain = icmp ne i64 %first, 0
  br label %run
run:
  %k.now = phi i64 [ %begin, %entry ], [ %k.next, %on ]
  %to = phi ptr [ %y, %entry ], [ %beside, %on ]
  call void @llvm.memset.p0.i64(ptr %to, i8 0, i64 %bytes, i1 false)
"""
        + least("terms", "%runs", "%k.end", "%k.now")
        + moved("a.now", "%a.first", ("%k.now", "%step"))
        + moved("x.now", "%x", ("%k.now", "%size"))
        + call
        + f"""  %begun = icmp eq i64 %k.now, %begin
  br i1 %begun, label %on, label %add
add:
{add("%high", "%beside", "%y")}  br label %on
on:
  %k.next = add i64 %k.now, %runs
  %more = icmp ult i64 %k.next, %k.end
  br i1 %more, label %run, label %end
end:
  ret void
}}
"""
    )


def in_parts(add: Addition) -> str:
    """What is added up to few columns, in parts: their sums are added in order."""
    return (
        words(*_OF_VECTOR)
        + operands("one", "two", "c")
        + f"""  %cut = icmp ugt i64 %parts, 1
  br i1 %cut, label %divide, label %uncut
divide:
  %others = sub i64 %parts, 1
  %line = mul i64 %m, %size
  %bytes = mul i64 %others, %line
  %sums = alloca i8, i64 %bytes, align 64
  store ptr %sums, ptr %sums.to, align 8
  %done = call i32 @tn_parallel_for(
    ptr @tn_tile, ptr %context, i64 %parts, i64 %nanoseconds, ptr %polls)
  br label %add
add:
  %p = phi i64 [ 0, %divide ], [ %p.next, %add ]
  %from.by = mul i64 %p, %line
  %from = getelementptr i8, ptr %sums, i64 %from.by
{add("%m", "%from", "%c")}  %p.next = add i64 %p, 1
  %more = icmp ult i64 %p.next, %others
  br i1 %more, label %add, label %end
end:
  ret i32 %done
uncut:
"""
    )
