"""The native function that carries out the steps of any plan, as LLVM IR.

A plan is data: a row of words that `program` writes. This function reads them one after another.
So a plan of thousands of steps costs no code generation, and its text holds no address; addresses
of kernels and callables stand in the words, which are written when a plan is bound to a process.

    i32 tn_steps(ptr table, ptr arena, ptr poll, ptr code)

does what `entry` states of a plan. An operand is two words: which base, and an offset in bytes.
Base 0 is the arena, 1 is null (for addresses), 2 and on are the rows of the table. Sub-plans are
carried out by the same function with a table of their own.
"""

from __future__ import annotations

from enum import IntEnum

from tenfold.backends.cpu.entry.entry import DONE, FAILED, STOPPED
from tenfold.backends.cpu.library.blas import BLAS
from tenfold.backends.cpu.run.host import HOST
from tenfold.backends.cpu.run.poll import POLL
from tenfold.backends.llvm.text import Fragment, join

POLL_ROWS = 2  # behind the buffers of a kernel: how to poll, and with what
HEADER = 3  # words before the first step: rows of the table, most buffers, most rows below
ARENA_BASE, NULL_BASE, TABLE_BASE = 0, 1, 2


class Word(IntEnum):
    """What a step is; the words after it are listed where each is carried out."""

    END = 0
    KERNEL = 1  # function, params, extent, callable on a fault, count; operands
    COPY = 2  # bytes; target, source
    HOST = 3  # callable
    PRODUCT = 4  # letter, turned, turned, m, n, k, lda, ldb, ldc, batch, steps (3); three operands
    BRANCH = 5  # bytes of the index, signed, branches, rows; index, arena, rows; codes
    LOOP = 6  # captures, carries, slices, stacks, length, reverse, weight, condition, body; …
    POLL = 7  # weight


def _load(name: str, at: str, plus: int | str, kind: str = "i64") -> str:
    return (
        f"  {name}.at = getelementptr i64, ptr %code, i64 {at}\n"
        f"  {name}.to = getelementptr i64, ptr {name}.at, i64 {plus}\n"
        f"  {name} = load {kind}, ptr {name}.to, align 8\n"
    )


def _operand(name: str, at: str) -> str:
    return f"  {name} = call ptr @tn_operand(ptr %code, ptr %bases, i64 {at})\n"


def _row(name: str, number: str, table: str = "%rows") -> str:
    return f"  {name} = getelementptr ptr, ptr {table}, i64 {number}\n"


def _for(name: str, count: str, before: str, body: str, after: str) -> str:
    """A loop over %NAME.i from 0; the body must not branch."""
    return f"""  br label %{name}.test
{name}.test:
  %{name}.i = phi i64 [ 0, %{before} ], [ %{name}.more, %{name} ]
  %{name}.on = icmp ult i64 %{name}.i, {count}
  br i1 %{name}.on, label %{name}, label %{after}
{name}:
{body}  %{name}.more = add i64 %{name}.i, 1
  br label %{name}.test
"""


_HELP = """
define internal ptr @tn_operand(ptr %code, ptr %bases, i64 %at) alwaysinline {
  %base.at = getelementptr i64, ptr %code, i64 %at
  %base = load i64, ptr %base.at, align 8
  %offset.at = getelementptr i64, ptr %base.at, i64 1
  %offset = load i64, ptr %offset.at, align 8
  %from.at = getelementptr ptr, ptr %bases, i64 %base
  %from = load ptr, ptr %from.at, align 8
  %to = getelementptr i8, ptr %from, i64 %offset
  ret ptr %to
}
"""

_KERNEL = (
    "kernel:\n"
    + _load("%k.run", "%pc", 1, "ptr")
    + _load("%k.params", "%pc", 2, "ptr")
    + _load("%k.extent", "%pc", 3)
    + _load("%k.count", "%pc", 5)
    + "  %k.first = add i64 %pc, 6\n"
    + _for(
        "fill",
        "%k.count",
        "kernel",
        "  %fill.twice = shl i64 %fill.i, 1\n  %fill.pc = add i64 %k.first, %fill.twice\n"
        + _operand("%fill.ptr", "%fill.pc")
        + _row("%fill.to", "%fill.i", "%buffers")
        + "  store ptr %fill.ptr, ptr %fill.to, align 8\n",
        "run",
    )
    + "run:\n"
    + _row("%k.poll", "%k.count", "%buffers")
    + """  store ptr @tn_poll_clock, ptr %k.poll, align 8
  %k.state = getelementptr ptr, ptr %k.poll, i64 1
  store ptr %polls, ptr %k.state, align 8
  %fault = call i32 %k.run(ptr %buffers, ptr %k.params, i64 0, i64 %k.extent)
  %k.words = shl i64 %k.count, 1
  %k.next = add i64 %k.first, %k.words
  %good = icmp eq i32 %fault, 0
  br i1 %good, label %next, label %bad
bad:
  %k.stopped = icmp eq i32 %fault, STOPPED
  br i1 %k.stopped, label %fail, label %look
look:
"""
    + _load("%k.ask", "%pc", 4, "ptr")
    + """  %looked = call i32 @tn_host(ptr %k.ask, ptr %table, ptr %arena)
  ret i32 FAILED
"""
)

_COPY = (
    "copy:\n"
    + _load("%c.bytes", "%pc", 1)
    + "  %c.one = add i64 %pc, 2\n  %c.two = add i64 %pc, 4\n"
    + _operand("%c.target", "%c.one")
    + _operand("%c.source", "%c.two")
    + """  %c.next = add i64 %pc, 6
  %c.same = icmp eq ptr %c.target, %c.source
  br i1 %c.same, label %next, label %move.bytes
move.bytes:
  call void @llvm.memcpy.p0.p0.i64(ptr %c.target, ptr %c.source, i64 %c.bytes, i1 false)
  br label %next
"""
)

_HOST = (
    "host:\n"
    + _load("%h.ask", "%pc", 1, "ptr")
    + """  %h.code = call i32 @tn_host(ptr %h.ask, ptr %table, ptr %arena)
  %h.next = add i64 %pc, 2
  %h.bad = icmp ne i32 %h.code, 0
  br i1 %h.bad, label %fail, label %next
"""
)

_POLL = (
    "poll:\n"
    + _load("%p.weight", "%pc", 1)
    + """  %p.code = call i32 @tn_poll(ptr %polls, i64 %p.weight)
  %p.next = add i64 %pc, 2
  %p.bad = icmp ne i32 %p.code, 0
  br i1 %p.bad, label %fail, label %next
"""
)

_SIZES = ("letter", "left", "right", "m", "n", "k", "lda", "ldb", "ldc", "batch", "sa", "sb", "sc")


def _gemm(letter: str) -> str:
    factor = {"s": ("float 1.0", "float 0.0"), "d": ("double 1.0", "double 0.0")}
    one, zero = factor.get(letter, (f"ptr @tn_one_{letter}", f"ptr @tn_zero_{letter}"))
    return (
        f"gemm.{letter}:\n  call void @tn_{letter}gemm(i32 101, i32 %g.ta, i32 %g.tb, i64 %g.m, "
        f"i64 %g.n, i64 %g.k, {one}, ptr %g.a, i64 %g.lda, ptr %g.b, i64 %g.ldb, {zero}, "
        "ptr %g.c, i64 %g.ldc)\n  br label %gemm.end\n"
    )


_PRODUCT = (
    "product:\n"
    + "".join(_load(f"%g.{name}", "%pc", n) for n, name in enumerate(_SIZES, 1))
    + "  %g.pa = add i64 %pc, 14\n  %g.pb = add i64 %pc, 16\n  %g.pc = add i64 %pc, 18\n"
    + _operand("%g.a0", "%g.pa")
    + _operand("%g.b0", "%g.pb")
    + _operand("%g.c0", "%g.pc")
    + """  %g.ta = trunc i64 %g.left to i32
  %g.tb = trunc i64 %g.right to i32
  %g.next = add i64 %pc, 20
  br label %gemm
gemm:
  %g.a = phi ptr [ %g.a0, %product ], [ %g.a1, %gemm.end ]
  %g.b = phi ptr [ %g.b0, %product ], [ %g.b1, %gemm.end ]
  %g.c = phi ptr [ %g.c0, %product ], [ %g.c1, %gemm.end ]
  %g.left.now = phi i64 [ %g.batch, %product ], [ %g.left.on, %gemm.end ]
  switch i64 %g.letter, label %gemm.s [ i64 1, label %gemm.d
    i64 2, label %gemm.c i64 3, label %gemm.z ]
"""
    + "".join(map(_gemm, "sdcz"))
    + """gemm.end:
  %g.a1 = getelementptr i8, ptr %g.a, i64 %g.sa
  %g.b1 = getelementptr i8, ptr %g.b, i64 %g.sb
  %g.c1 = getelementptr i8, ptr %g.c, i64 %g.sc
  %g.left.on = sub i64 %g.left.now, 1
  %g.over = icmp eq i64 %g.left.on, 0
  br i1 %g.over, label %next, label %gemm
"""
)

_BRANCH = (
    "branch:\n"
    + _load("%b.bits", "%pc", 1)
    + _load("%b.signed", "%pc", 2)
    + _load("%b.count", "%pc", 3)
    + _load("%b.rows", "%pc", 4)
    + "  %b.index.pc = add i64 %pc, 5\n  %b.arena.pc = add i64 %pc, 7\n"
    + "  %b.first = add i64 %pc, 9\n"
    + _operand("%b.index", "%b.index.pc")
    + _operand("%b.arena", "%b.arena.pc")
    + _for(
        "row",
        "%b.rows",
        "branch",
        "  %row.twice = shl i64 %row.i, 1\n  %row.pc = add i64 %b.first, %row.twice\n"
        + _operand("%row.ptr", "%row.pc")
        + _row("%row.to", "%row.i")
        + "  store ptr %row.ptr, ptr %row.to, align 8\n",
        "choose",
    )
    + """choose:
  switch i64 %b.bits, label %index.64 [ i64 8, label %index.8
    i64 16, label %index.16 i64 32, label %index.32 ]
"""
    + "".join(
        f"""index.{bits}:
  %b.v{bits} = load i{bits}, ptr %b.index, align 1
  %b.s{bits} = sext i{bits} %b.v{bits} to i64
  %b.u{bits} = zext i{bits} %b.v{bits} to i64
  %b.is{bits} = icmp ne i64 %b.signed, 0
  %b.x{bits} = select i1 %b.is{bits}, i64 %b.s{bits}, i64 %b.u{bits}
  br label %chosen
"""
        for bits in (8, 16, 32)
    )
    + """index.64:
  %b.x64 = load i64, ptr %b.index, align 1
  br label %chosen
chosen:
  %b.x = phi i64 [ %b.x8, %index.8 ], [ %b.x16, %index.16 ],
    [ %b.x32, %index.32 ], [ %b.x64, %index.64 ]
  %b.below = icmp slt i64 %b.x, 0
  %b.minus = icmp ne i64 %b.signed, 0
  %b.under = and i1 %b.below, %b.minus
  %b.low = select i1 %b.under, i64 0, i64 %b.x
  %b.last = sub i64 %b.count, 1
  %b.fits = icmp ult i64 %b.low, %b.last
  %b.which = select i1 %b.fits, i64 %b.low, i64 %b.last
  %b.words = shl i64 %b.rows, 1
  %b.codes = add i64 %b.first, %b.words
"""
    + _load("%b.code", "%b.codes", "%b.which", "ptr")
    + """  %b.done = call i32 @tn_steps(ptr %rows, ptr %b.arena, ptr %polls, ptr %b.code)
  %b.next = add i64 %b.codes, %b.count
  %b.bad = icmp ne i32 %b.done, 0
  br i1 %b.bad, label %fail, label %next
"""
)

# A loop's words after its own: two operands (arena, flag); for each capture an operand; for each
# carry three operands (where it comes from, the output, the other place) and its bytes; for each
# slice and each stack an operand and the bytes of a row.
_LOOP_SIZES = (
    "captures", "carries", "slices", "stacks", "length", "reverse", "weight",
)  # fmt: skip

_LOOP = (
    "loop:\n"
    + "".join(_load(f"%l.{name}", "%pc", n) for n, name in enumerate(_LOOP_SIZES, 1))
    + _load("%l.test", "%pc", 8, "ptr")
    + _load("%l.body", "%pc", 9, "ptr")
    + """  %l.arena.pc = add i64 %pc, 10
  %l.flag.pc = add i64 %pc, 12
  %l.captures.pc = add i64 %pc, 14
  %l.captures.words = shl i64 %l.captures, 1
  %l.carries.pc = add i64 %l.captures.pc, %l.captures.words
  %l.carries.words = mul i64 %l.carries, 7
  %l.slices.pc = add i64 %l.carries.pc, %l.carries.words
  %l.slices.words = mul i64 %l.slices, 3
  %l.stacks.pc = add i64 %l.slices.pc, %l.slices.words
  %l.stacks.words = mul i64 %l.stacks, 3
  %l.next = add i64 %l.stacks.pc, %l.stacks.words
  %l.slices.row = add i64 %l.captures, %l.carries
  %l.goes.row = add i64 %l.slices.row, %l.slices
  %l.stacks.row = add i64 %l.goes.row, %l.carries
  %l.while = icmp slt i64 %l.length, 0
"""
    + _operand("%l.arena", "%l.arena.pc")
    + _operand("%l.flag", "%l.flag.pc")
    + _for(
        "capture",
        "%l.captures",
        "loop",
        "  %capture.twice = shl i64 %capture.i, 1\n"
        "  %capture.pc = add i64 %l.captures.pc, %capture.twice\n"
        + _operand("%capture.ptr", "%capture.pc")
        + _row("%capture.to", "%capture.i")
        + "  store ptr %capture.ptr, ptr %capture.to, align 8\n",
        "begin",
    )
    + "begin:\n"
    + _for(
        "carry",
        "%l.carries",
        "begin",
        "  %carry.words = mul i64 %carry.i, 7\n"
        "  %carry.pc = add i64 %l.carries.pc, %carry.words\n"
        + _operand("%carry.ptr", "%carry.pc")
        + "  %carry.row = add i64 %l.captures, %carry.i\n"
        + _row("%carry.to", "%carry.row")
        + "  store ptr %carry.ptr, ptr %carry.to, align 8\n",
        "head",
    )
    + """head:
  %i = phi i64 [ 0, %carry.test ], [ %i.more, %moved ]
  br i1 %l.while, label %test, label %count
test:
"""
    + _row("%t.to", "%l.slices.row")
    + """  store ptr %l.flag, ptr %t.to, align 8
  %t.code = call i32 @tn_steps(ptr %rows, ptr %l.arena, ptr %polls, ptr %l.test)
  %t.bad = icmp ne i32 %t.code, 0
  br i1 %t.bad, label %fail, label %tested
tested:
  %t.flag = load i8, ptr %l.flag, align 1
  %t.on = icmp ne i8 %t.flag, 0
  br i1 %t.on, label %turn, label %end
count:
  %n.on = icmp slt i64 %i, %l.length
  br i1 %n.on, label %turn, label %end
turn:
  %l.last = sub i64 %l.length, 1
  %i.left = sub i64 %l.last, %i
  %i.back = icmp ne i64 %l.reverse, 0
  %at = select i1 %i.back, i64 %i.left, i64 %i
  %i.odd = and i64 %i.left, 1
  %i.away = shl i64 %i.odd, 1
"""
    + _for(
        "goes",
        "%l.carries",
        "turn",
        "  %goes.words = mul i64 %goes.i, 7\n"
        "  %goes.first = add i64 %l.carries.pc, %goes.words\n"
        "  %goes.final = add i64 %goes.first, 2\n"
        "  %goes.pc = add i64 %goes.final, %i.away\n"
        + _operand("%goes.ptr", "%goes.pc")
        + "  %goes.row = add i64 %l.goes.row, %goes.i\n"
        + _row("%goes.to", "%goes.row")
        + "  store ptr %goes.ptr, ptr %goes.to, align 8\n",
        "sliced",
    )
    + "".join(
        f"{before}:\n"
        + _for(
            name,
            f"%l.{part}",
            before,
            f"  %{name}.words = mul i64 %{name}.i, 3\n"
            f"  %{name}.pc = add i64 %l.{part}.pc, %{name}.words\n"
            + _operand(f"%{name}.ptr", f"%{name}.pc")
            + _load(f"%{name}.bytes", f"%{name}.pc", 2)
            + f"  %{name}.shift = mul i64 %{name}.bytes, %at\n"
            f"  %{name}.here = getelementptr i8, ptr %{name}.ptr, i64 %{name}.shift\n"
            f"  %{name}.row = add i64 %l.{part}.row, %{name}.i\n"
            + _row(f"%{name}.slot", f"%{name}.row")
            + f"  store ptr %{name}.here, ptr %{name}.slot, align 8\n",
            after,
        )
        for name, part, before, after in (
            ("slice", "slices", "sliced", "stacked"),
            ("stack", "stacks", "stacked", "body"),
        )
    )
    + """body:
  %body.code = call i32 @tn_steps(ptr %rows, ptr %l.arena, ptr %polls, ptr %l.body)
  %body.bad = icmp ne i32 %body.code, 0
  br i1 %body.bad, label %fail, label %ran
ran:
  %ran.code = call i32 @tn_poll(ptr %polls, i64 %l.weight)
  %ran.bad = icmp ne i32 %ran.code, 0
  br i1 %ran.bad, label %fail, label %move
move:
"""
    + _for(
        "moving",
        "%l.carries",
        "move",
        "  %moving.from.row = add i64 %l.goes.row, %moving.i\n"
        + _row("%moving.from", "%moving.from.row")
        + "  %moving.ptr = load ptr, ptr %moving.from, align 8\n"
        "  %moving.row = add i64 %l.captures, %moving.i\n"
        + _row("%moving.to", "%moving.row")
        + "  store ptr %moving.ptr, ptr %moving.to, align 8\n",
        "moved",
    )
    + """moved:
  %i.more = add i64 %i, 1
  br label %head
end:
  br label %out.test
out.test:
  %out.i = phi i64 [ 0, %end ], [ %out.more, %out.on ]
  %out.left = icmp ult i64 %out.i, %l.carries
  br i1 %out.left, label %out, label %next
out:
  %out.words = mul i64 %out.i, 7
  %out.first = add i64 %l.carries.pc, %out.words
  %out.pc = add i64 %out.first, 2
"""
    + _operand("%out.final", "%out.pc")
    + "  %out.row = add i64 %l.captures, %out.i\n"
    + _row("%out.at", "%out.row")
    + """  %out.held = load ptr, ptr %out.at, align 8
  %out.same = icmp eq ptr %out.held, %out.final
  br i1 %out.same, label %out.on, label %out.move
out.move:
"""
    + _load("%out.bytes", "%out.first", 6)
    + """  call void @llvm.memcpy.p0.p0.i64(ptr %out.final, ptr %out.held, i64 %out.bytes, i1 false)
  br label %out.on
out.on:
  %out.more = add i64 %out.i, 1
  br label %out.test
"""
)

_BODY = (
    (
        """
@tn_one_c = private constant [2 x float] [float 1.0, float 0.0], align 16
@tn_zero_c = private constant [2 x float] zeroinitializer, align 16
@tn_one_z = private constant [2 x double] [double 1.0, double 0.0], align 16
@tn_zero_z = private constant [2 x double] zeroinitializer, align 16
"""
        + _HELP
        # Unoptimised it takes half the time to compile, and replays as fast: registers are
        # allotted with care all the same, and a step's work lies elsewhere.
        + """
define dso_local i32 @tn_steps(ptr %table, ptr %arena, ptr %polls, ptr %code)
    nounwind noinline optnone {
entry:
"""
        + _load("%h.rows", "0", 0)
        + _load("%h.most", "0", 1)
        + _load("%h.below", "0", 2)
        + f"""  %h.bases = add i64 %h.rows, {TABLE_BASE}
  %bases = alloca ptr, i64 %h.bases, align 16
  %buffers = alloca ptr, i64 %h.most, align 16
  %rows = alloca ptr, i64 %h.below, align 16
  store ptr %arena, ptr %bases, align 8
  %bases.null = getelementptr ptr, ptr %bases, i64 {NULL_BASE}
  store ptr null, ptr %bases.null, align 8
  %bases.table = getelementptr ptr, ptr %bases, i64 {TABLE_BASE}
"""
        + _for(
            "base",
            "%h.rows",
            "entry",
            _row("%base.from", "%base.i", "%table")
            + "  %base.ptr = load ptr, ptr %base.from, align 8\n"
            + _row("%base.to", "%base.i", "%bases.table")
            + "  store ptr %base.ptr, ptr %base.to, align 8\n",
            "next",
        )
        + f"""next:
  %pc = phi i64 [ {HEADER}, %base.test ], [ %k.next, %run ], [ %c.next, %copy ],
    [ %c.next, %move.bytes ],
    [ %h.next, %host ], [ %p.next, %poll ], [ %g.next, %gemm.end ],
    [ %b.next, %chosen ], [ %l.next, %out.test ]
"""
        + _load("%op", "%pc", 0)
        + "  switch i64 %op, label %done [ "
        + " ".join(
            f"i64 {int(word)}, label %{word.name.lower()}" for word in Word if word is not Word.END
        )
        + " ]\n"
        + _KERNEL
        + _COPY
        + _HOST
        + _POLL
        + _PRODUCT
        + _BRANCH
        + _LOOP
        + """done:
  ret i32 DONE
fail:
  ret i32 FAILED
}
"""
    )
    .replace("i32 DONE", f"i32 {DONE}")
    .replace("i32 FAILED", f"i32 {FAILED}")
    .replace("STOPPED", str(STOPPED))
)

STEPS = Fragment(("declare void @llvm.memcpy.p0.p0.i64(ptr, ptr, i64, i1)",), _BODY)
STEPS_TEXT = join([POLL, HOST, BLAS, STEPS])
