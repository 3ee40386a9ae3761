"""The functions that carry out tiles of products, as LLVM IR: for each dtype one of matrices by the
library, one by panels, one by pairs of terms, and one of a matrix with a vector; of integers that
by panels alone, of narrow ones for each pair of dtypes.

    i32 tn_product_f32(ptr buffers, ptr params, i64 low, i64 high)

is called as a kernel is: `buffers` has the addresses of the operands and of the result, then of
what is polled; `params` is what `tiles` makes of a shape; tiles `low` to `high` are carried out, by
calls of the private library or by panels of our own, on the threads of the pool. So one function
serves every plan and every shape.

A product of a matrix with itself transposed is done below the diagonal, then copied above.
"""

from __future__ import annotations

from tenfold.backends.cpu.library.blas import BLAS, LOWER, ROW_MAJOR
from tenfold.backends.cpu.library.product import (
    NARROW_PRODUCT,
    PAIR_PRODUCT,
    PANEL_PRODUCT,
    VECTOR_PRODUCT,
    product_name,
)
from tenfold.backends.cpu.library.product.addresses import (
    QUICK,
    least,
    moved,
    operands,
    trans,
    words,
)
from tenfold.backends.cpu.library.product.narrow import narrow_panels
from tenfold.backends.cpu.library.product.pairs import pairs
from tenfold.backends.cpu.library.product.panels import panels
from tenfold.backends.cpu.library.product.tiles import SYMMETRIC, VECTOR_MATRIX
from tenfold.backends.cpu.library.product.vectors import has_vectors, vectors
from tenfold.backends.cpu.library.product.with_vector import (
    OWN_VECTOR,
    in_parts,
    library_vector,
    own_addition,
    vector_text,
)
from tenfold.backends.llvm.target import LLVMTarget
from tenfold.backends.llvm.text import Fragment, join
from tenfold.ops.algebra.products import WHOLE

_LETTERS = {"f32": "s", "f64": "d", "c64": "c", "c128": "z"}
_SIZES = {"f32": 4, "f64": 8, "c64": 8, "c128": 16}
_FACTORS = {"s": ("float 1.0", "float 0.0"), "d": ("double 1.0", "double 0.0")}
_COMPLEX = """
@tn_one = private constant [2 x {0}] [{0} 1.0, {0} 0.0], align 16
@tn_zero = private constant [2 x {0}] zeroinitializer, align 16
"""
_STRIP = 16  # rows that are copied above the diagonal side by side
_NEEDS: tuple[str, ...] = (
    "declare i32 @tn_parallel_for(ptr, ptr, i64, i64, ptr)",
    "declare i64 @llvm.umin.i64(i64, i64)",
    "declare i64 @llvm.umax.i64(i64, i64)",
    "declare void @llvm.memset.p0.i64(ptr, i8, i64, i1)",
)
_OF_MATRICES = (
    *("left", "right", "m", "n", "k", "lda", "ldb", "batch", "sa", "sb", "sc"),
    *("rows", "columns", "lanes", "across", "per", "ai", "bj", "size"),
)


def product_text(way: str, dtype: str, target: LLVMTarget) -> str:
    """The module of the function that multiplies matrices of a dtype in one way."""
    name, needs = product_name(way, dtype), _NEEDS
    if way == NARROW_PRODUCT or dtype in WHOLE:
        left, _, right = dtype.partition("x")
        own, more = narrow_panels(left, right, target) if right else panels(dtype, target)
        body = own + _matrices(_PANELS_CALL) + _tile(_OF_WHOLE_PRODUCT) + _entry(name, "")
        return join([Fragment(tuple(dict.fromkeys((*needs, *more))), body)])
    letter, one, zero, body = _factors(dtype)
    if way == VECTOR_PRODUCT:
        call, add = library_vector(letter, one)
        if has_vectors(dtype, target):
            own, more = vectors(dtype, target)
            body, needs, call, add = body + own, (*needs, *more), OWN_VECTOR, own_addition
        body += vector_text(call, add, _SIZES[dtype]) + _tile(_OF_VECTOR_PRODUCT)
        return join(
            [BLAS, Fragment(tuple(dict.fromkeys(needs)), body + _entry(name, in_parts(add)))]
        )
    call = _library_call(letter, one, zero)
    if way in (PANEL_PRODUCT, PAIR_PRODUCT):
        own, more = (panels if way == PANEL_PRODUCT else pairs)(dtype, target)
        body, needs, call = body + own, (*needs, *more), _PANELS_CALL
    body += _matrices(call) + _mirror(8 * _SIZES[dtype]) + _symmetric(letter, one, zero)
    body += _tile(_OF_PRODUCT) + _entry(name, "")
    return join([BLAS, Fragment(tuple(dict.fromkeys(needs)), body)])


def _factors(dtype: str) -> tuple[str, str, str, str]:
    """BLAS's letter for a dtype, its one and its zero, and their definitions if they need any."""
    letter = _LETTERS[dtype]
    if letter in _FACTORS:
        return (letter, *_FACTORS[letter], "")
    parts = _COMPLEX.format("float" if letter == "c" else "double")
    return letter, "ptr @tn_one", "ptr @tn_zero", parts


def _library_call(letter: str, one: str, zero: str) -> str:
    return f"""  call void @tn_{letter}gemm(i32 {ROW_MAJOR}, i32 %ta, i32 %tb, i64 %high, i64 %wide,
    i64 %k, {one}, ptr %pa, i64 %lda, ptr %pb, i64 %ldb, {zero}, ptr %pc, i64 %n)
"""


_PANELS_CALL = """  %a.turned = icmp ne i64 %left, 0
  %b.turned = icmp ne i64 %right, 0
  %a.down = select i1 %a.turned, i64 1, i64 %lda
  %a.on = select i1 %a.turned, i64 %lda, i64 1
  call void @tn_multiply(ptr %pa, i64 %a.down, i64 %a.on, ptr %pb, i64 %ldb, i1 %b.turned,
    ptr %pc, i64 %n, i64 %high, i64 %wide, i64 %k)
"""


def _matrices(call: str) -> str:
    return (
        f"define internal void @tn_matrices(ptr %buffers, ptr %params, i64 %tile) {QUICK} {{\n"
        "entry:\n"
        + words(*_OF_MATRICES)
        + operands("a", "b", "c")
        + """  %group = udiv i64 %tile, %per
  %inner = urem i64 %tile, %per
  %down = udiv i64 %inner, %across
  %along = urem i64 %inner, %across
  %i = mul i64 %down, %rows
  %j = mul i64 %along, %columns
  %lane = mul i64 %group, %lanes
"""
        + least("high", "%rows", "%m", "%i")
        + least("wide", "%columns", "%n", "%j")
        + least("count", "%lanes", "%batch", "%lane")
        + trans("ta", "%left")
        + trans("tb", "%right")
        + "  %c.row = mul i64 %n, %size\n"
        + moved("a.first", "%a", ("%lane", "%sa"), ("%i", "%ai"))
        + moved("b.first", "%b", ("%lane", "%sb"), ("%j", "%bj"))
        + moved("c.first", "%c", ("%lane", "%sc"), ("%i", "%c.row"), ("%j", "%size"))
        + f"""  br label %next
next:
  %pa = phi ptr [ %a.first, %entry ], [ %pa.on, %next ]
  %pb = phi ptr [ %b.first, %entry ], [ %pb.on, %next ]
  %pc = phi ptr [ %c.first, %entry ], [ %pc.on, %next ]
  %todo = phi i64 [ %count, %entry ], [ %todo.on, %next ]
{call}  %pa.on = getelementptr i8, ptr %pa, i64 %sa
  %pb.on = getelementptr i8, ptr %pb, i64 %sb
  %pc.on = getelementptr i8, ptr %pc, i64 %sc
  %todo.on = sub i64 %todo, 1
  %over = icmp eq i64 %todo.on, 0
  br i1 %over, label %end, label %next
end:
  ret void
}}
"""
    )


def _mirror(bits: int) -> str:
    """Copies a tile to where it lies transposed, a strip of rows at a time; of a tile on the
    diagonal what is below that."""
    return f"""define internal void @tn_mirror(
  ptr %from, ptr %to, i64 %rows, i64 %columns, i64 %ld, i1 %diagonal) nounwind {{
entry:
  br label %strip
strip:
  %low = phi i64 [ 0, %entry ], [ %high, %strip.end ]
  %far = add i64 %low, {_STRIP}
  %high = call i64 @llvm.umin.i64(i64 %far, i64 %rows)
  %some = icmp ult i64 %low, %rows
  %width = select i1 %diagonal, i64 %high, i64 %columns
  br i1 %some, label %column, label %end
column:
  %c = phi i64 [ 0, %strip ], [ %c.next, %column.end ]
  %c.next = add i64 %c, 1
  %c.on = icmp ult i64 %c, %width
  %below = call i64 @llvm.umax.i64(i64 %low, i64 %c.next)
  %first = select i1 %diagonal, i64 %below, i64 %low
  %line = mul i64 %c, %ld
  br i1 %c.on, label %row, label %strip.end
row:
  %r = phi i64 [ %first, %column ], [ %r.next, %copy ]
  %r.on = icmp ult i64 %r, %high
  br i1 %r.on, label %copy, label %column.end
copy:
  %source = mul i64 %r, %ld
  %source.at = add i64 %source, %c
  %target.at = add i64 %line, %r
  %source.to = getelementptr i{bits}, ptr %from, i64 %source.at
  %target.to = getelementptr i{bits}, ptr %to, i64 %target.at
  %element = load i{bits}, ptr %source.to, align 4
  store i{bits} %element, ptr %target.to, align 4
  %r.next = add i64 %r, 1
  br label %row
column.end:
  br label %column
strip.end:
  br label %strip
end:
  ret void
}}
"""


def _symmetric(letter: str, one: str, zero: str) -> str:
    """A tile of a matrix times itself transposed: tiles below the diagonal are counted row by
    row."""
    return (
        f"define internal void @tn_symmetric(ptr %buffers, ptr %params, i64 %tile) {QUICK} {{\n"
        "entry:\n"
        + words("turned", "m", "k", "ld", "row", "size", "rows")
        + operands("a", "b", "c")
        + """  br label %search
search:
  %down = phi i64 [ 0, %entry ], [ %down.more, %lower ]
  %along = phi i64 [ %tile, %entry ], [ %along.less, %lower ]
  %found = icmp ule i64 %along, %down
  br i1 %found, label %begin, label %lower
lower:
  %down.more = add i64 %down, 1
  %along.less = sub i64 %along, %down.more
  br label %search
begin:
  %i = mul i64 %down, %rows
  %j = mul i64 %along, %rows
  %plain = sub i64 1, %turned
"""
        + least("high", "%rows", "%m", "%i")
        + least("wide", "%rows", "%m", "%j")
        + trans("ta", "%turned")
        + trans("tb", "%plain")
        + "  %line = mul i64 %m, %size\n"
        + moved("a.rows", "%a", ("%i", "%row"))
        + moved("a.columns", "%a", ("%j", "%row"))
        + moved("lower.to", "%c", ("%i", "%line"), ("%j", "%size"))
        + moved("upper.to", "%c", ("%j", "%line"), ("%i", "%size"))
        + f"""  %diagonal = icmp eq i64 %i, %j
  br i1 %diagonal, label %syrk, label %gemm
syrk:
  call void @tn_{letter}syrk(i32 {ROW_MAJOR}, i32 {LOWER}, i32 %ta, i64 %high, i64 %k, {one},
    ptr %a.rows, i64 %ld, {zero}, ptr %lower.to, i64 %m)
  br label %copy
gemm:
  call void @tn_{letter}gemm(i32 {ROW_MAJOR}, i32 %ta, i32 %tb, i64 %high, i64 %wide, i64 %k,
    {one}, ptr %a.rows, i64 %ld, ptr %a.columns, i64 %ld, {zero}, ptr %lower.to, i64 %m)
  br label %copy
copy:
  call void @tn_mirror(ptr %lower.to, ptr %upper.to, i64 %high, i64 %wide, i64 %m, i1 %diagonal)
  ret void
}}
"""
    )


_OF_WHOLE_PRODUCT = """  call void @tn_matrices(ptr %buffers, ptr %params, i64 %t)
  ret i32 0
"""
_OF_PRODUCT = f"""  switch i64 %kind, label %matrices [ i64 {SYMMETRIC}, label %symmetric ]
matrices:
  call void @tn_matrices(ptr %buffers, ptr %params, i64 %t)
  ret i32 0
symmetric:
  call void @tn_symmetric(ptr %buffers, ptr %params, i64 %t)
  ret i32 0
"""
_OF_VECTOR_PRODUCT = f"""  %swapped = icmp eq i64 %kind, {VECTOR_MATRIX}
  %which = zext i1 %swapped to i64
  call void @tn_vector(ptr %buffers, ptr %params, i64 %t, i64 %which, ptr %sums)
  ret i32 0
"""


def _tile(carried_out: str) -> str:
    return f"""define internal i32 @tn_tile(ptr %context, i64 %index, i64 %worker) {QUICK} {{
  %params.at = getelementptr ptr, ptr %context, i64 1
  %low.at = getelementptr ptr, ptr %context, i64 2
  %sums.at = getelementptr ptr, ptr %context, i64 3
  %buffers = load ptr, ptr %context, align 8
  %params = load ptr, ptr %params.at, align 8
  %low = load i64, ptr %low.at, align 8
  %sums = load ptr, ptr %sums.at, align 8
  %t = add i64 %low, %index
  %kind = load i64, ptr %params, align 8
{carried_out}}}

"""


def _entry(name: str, divided: str) -> str:
    """The function that is called: tiles in any order; `divided` ends those that go by parts."""
    return f"""define dso_local i32 @{name}(
  ptr %buffers, ptr %params, i64 %low, i64 %high) {QUICK} {{
entry:
  %context = alloca [4 x i64], align 16
  %params.to = getelementptr i64, ptr %context, i64 1
  %low.to = getelementptr i64, ptr %context, i64 2
  %sums.to = getelementptr i64, ptr %context, i64 3
  store ptr %buffers, ptr %context, align 8
  store ptr %params, ptr %params.to, align 8
  store i64 %low, ptr %low.to, align 8
  %tiles = sub i64 %high, %low
  %polls.at = getelementptr ptr, ptr %buffers, i64 4
  %polls = load ptr, ptr %polls.at, align 8
  %nanoseconds.at = getelementptr i64, ptr %params, i64 1
  %nanoseconds = load i64, ptr %nanoseconds.at, align 8
{divided}  br label %whole
whole:
  %answer = call i32 @tn_parallel_for(
    ptr @tn_tile, ptr %context, i64 %tiles, i64 %nanoseconds, ptr %polls)
  ret i32 %answer
}}
"""
