"""The native interpreter of a plan's bytecode, as LLVM IR.

A plan is data: a row of words that `bytecode` writes (see `opcodes`). This function reads them. So
a plan of thousands of steps costs no code generation, and its text holds no address; addresses of
kernels and callables stand in the words, which are written when a plan is bound to a process.

    i32 tn_steps(ptr table, ptr arena, ptr poll, ptr code)

does what `abi` states of a plan. Inner plans are carried out by the same function with a table of
their own (see `scopes`).
"""

from __future__ import annotations

from tenfold.backends.cpu.entry.abi import DONE, FAILED, STOPPED
from tenfold.backends.cpu.entry.release import RUN
from tenfold.backends.cpu.run.host import HOST
from tenfold.backends.cpu.run.opcodes import (
    HEADER,
    NULL_BASE,
    OPERAND,
    TABLE_BASE,
    Opcode,
    for_each,
    load_word,
    operand,
    row,
)
from tenfold.backends.cpu.run.parts import CONTEXT, NO_MEMORY, PARTS, context_word
from tenfold.backends.cpu.run.poll import POLL
from tenfold.backends.cpu.run.rounds import ROUND, WORDS
from tenfold.backends.cpu.run.scopes import BRANCH, LOOP
from tenfold.backends.llvm.text import Fragment, join

_LABELS = {Opcode.CUT: "kernel", Opcode.ROUNDS: "loop"}  # what begins as others do

_KERNEL = (
    "kernel:\n"
    + load_word("%k.run", "%pc", 1, "ptr")
    + load_word("%k.params", "%pc", 2, "ptr")
    + load_word("%k.extent", "%pc", 3)
    + load_word("%k.count", "%pc", 5)
    + "  %k.first = add i64 %pc, 6\n"
    + for_each(
        "fill",
        "%k.count",
        "kernel",
        "  %fill.twice = shl i64 %fill.i, 1\n  %fill.pc = add i64 %k.first, %fill.twice\n"
        + operand("%fill.ptr", "%fill.pc")
        + row("%fill.to", "%fill.i", "%buffers")
        + "  store ptr %fill.ptr, ptr %fill.to, align 8\n",
        "run",
    )
    + "run:\n"
    + row("%k.poll", "%k.count", "%buffers")
    + """  store ptr @tn_poll_clock, ptr %k.poll, align 8
  %k.state = getelementptr ptr, ptr %k.poll, i64 1
  store ptr %polls, ptr %k.state, align 8
  %k.host = getelementptr ptr, ptr %k.poll, i64 2
  store ptr @tn_host, ptr %k.host, align 8
  %k.words = shl i64 %k.count, 1
  %k.end = add i64 %k.first, %k.words
  %k.cut = icmp eq i64 %op, CUT
  br i1 %k.cut, label %cut, label %whole
whole:
  %k.next = phi i64 [ %k.end, %run ], [ %x.next, %cut ]
  %w.fault = call i32 %k.run(ptr %buffers, ptr %k.params, i64 0, i64 %k.extent)
  br label %ran.kernel
cut:
"""
    + load_word("%x.polls", "%k.end", 0)
    + load_word("%x.chunk", "%k.end", 1)
    + load_word("%x.parts", "%k.end", 2)
    + load_word("%x.nanoseconds", "%k.end", 3)
    + load_word("%x.bytes", "%k.end", 4)
    + load_word("%x.pieces", "%k.end", 5)
    + """  %x.scratch = getelementptr i64, ptr %x.polls.at, i64 6
  %x.looks = icmp ne i64 %x.polls, 0
  %x.state = select i1 %x.looks, ptr %polls, ptr null
  %x.joined = icmp slt i64 %x.pieces, 0
  %x.own = select i1 %x.joined, i64 0, i64 %x.pieces
  %x.words = shl i64 %x.own, 1
  %x.first = add i64 %k.end, 6
  %x.next = add i64 %x.first, %x.words
  %x.several = call i1 @tn_several()
  br i1 %x.several, label %parts, label %whole
parts:
"""
    + "".join(
        context_word(name) + f"  store {kind} {value}, ptr %at.{name}, align 8\n"
        for name, kind, value in (
            ("run", "ptr", "%k.run"),
            ("params", "ptr", "%k.params"),
            ("buffers", "ptr", "%buffers"),
            ("count", "i64", "%k.count"),
            ("chunk", "i64", "%x.chunk"),
            ("extent", "i64", "%k.extent"),
            ("scratch", "ptr", "%x.scratch"),
            ("pieces", "i64", "%x.pieces"),
            ("bytes", "i64", "%x.bytes"),
        )
    )
    + """  br i1 %x.joined, label %stretches, label %pieces
pieces:
  %x.fault = call i32 @tn_parallel_for(
    ptr @tn_part, ptr %context, i64 %x.parts, i64 %x.nanoseconds, ptr %x.state)
  br label %ran.kernel
stretches:
  store i64 %x.bytes, ptr %at.extent, align 8
  %s.fault = call i32 @tn_reduce(
    ptr %context, i64 %x.parts, i64 %x.nanoseconds, ptr %x.state)
  br label %ran.kernel
ran.kernel:
  %after = phi i64 [ %k.next, %whole ], [ %x.next, %pieces ], [ %x.next, %stretches ]
  %fault = phi i32 [ %w.fault, %whole ], [ %x.fault, %pieces ], [ %s.fault, %stretches ]
  %good = icmp eq i32 %fault, 0
  br i1 %good, label %next, label %bad
bad:
  switch i32 %fault, label %look [ i32 STOPPED, label %fail i32 NO_MEMORY, label %full ]
full:
  call void @tn_no_memory()
  ret i32 FAILED
look:
"""
    + load_word("%k.ask", "%pc", 4, "ptr")
    # Of a kernel it raises; what a routine left unsolved is done then.
    + """  %looked = call i32 @tn_host(ptr %k.ask, ptr %table, ptr %arena)
  %unsolved = icmp ne i32 %looked, 0
  br i1 %unsolved, label %fail, label %next
"""
)

_COPY = (
    "copy:\n"
    + load_word("%c.bytes", "%pc", 1)
    + "  %c.one = add i64 %pc, 2\n  %c.two = add i64 %pc, 4\n"
    + operand("%c.target", "%c.one")
    + operand("%c.source", "%c.two")
    + """  %c.next = add i64 %pc, 6
  %c.same = icmp eq ptr %c.target, %c.source
  br i1 %c.same, label %next, label %move.bytes
move.bytes:
  call void @llvm.memcpy.p0.p0.i64(ptr %c.target, ptr %c.source, i64 %c.bytes, i1 false)
  br label %next
"""
)

# Gaps are many and often two elements, less than a call takes: those of 8 to 16 bytes are two
# words, which may overlap.
_COPY_ROWS = (
    "copy_rows:\n"
    + load_word("%gap.bytes", "%pc", 1)
    + load_word("%gap.count", "%pc", 2)
    + load_word("%gap.apart", "%pc", 3)
    + load_word("%gap.few", "%pc", 4)
    + load_word("%gap.far", "%pc", 5)
    + "  %gap.one = add i64 %pc, 6\n  %gap.two = add i64 %pc, 8\n"
    + operand("%gap.target", "%gap.one")
    + operand("%gap.source", "%gap.two")
    + """  %gap.next = add i64 %pc, 10
  %gap.same = icmp eq ptr %gap.target, %gap.source
  %gap.end = sub i64 %gap.bytes, 8
  %gap.words = icmp ule i64 %gap.end, 8
  br i1 %gap.same, label %next, label %gap.some
gap.some:
  %gap.i = phi i64 [ 0, %copy_rows ], [ %gap.i.more, %gap.more ]
  %gap.from = mul i64 %gap.i, %gap.far
  br label %gap.row
gap.row:
  %gap.j = phi i64 [ 0, %gap.some ], [ %gap.j.more, %gap.on ]
  %gap.by = mul i64 %gap.j, %gap.apart
  %gap.at = add i64 %gap.from, %gap.by
  %gap.to = getelementptr i8, ptr %gap.target, i64 %gap.at
  %gap.of = getelementptr i8, ptr %gap.source, i64 %gap.at
  br i1 %gap.words, label %gap.two.words, label %gap.long
gap.two.words:
  %gap.to.end = getelementptr i8, ptr %gap.to, i64 %gap.end
  %gap.of.end = getelementptr i8, ptr %gap.of, i64 %gap.end
  %gap.first = load i64, ptr %gap.of, align 1
  %gap.last = load i64, ptr %gap.of.end, align 1
  store i64 %gap.first, ptr %gap.to, align 1
  store i64 %gap.last, ptr %gap.to.end, align 1
  br label %gap.on
gap.long:
  call void @llvm.memcpy.p0.p0.i64(ptr %gap.to, ptr %gap.of, i64 %gap.bytes, i1 false)
  br label %gap.on
gap.on:
  %gap.j.more = add i64 %gap.j, 1
  %gap.j.on = icmp ult i64 %gap.j.more, %gap.count
  br i1 %gap.j.on, label %gap.row, label %gap.more
gap.more:
  %gap.i.more = add i64 %gap.i, 1
  %gap.i.on = icmp ult i64 %gap.i.more, %gap.few
  br i1 %gap.i.on, label %gap.some, label %next
"""
)

_HOST = (
    "host:\n"
    + load_word("%h.ask", "%pc", 1, "ptr")
    + """  %h.code = call i32 @tn_host(ptr %h.ask, ptr %table, ptr %arena)
  %h.next = add i64 %pc, 2
  %h.bad = icmp ne i32 %h.code, 0
  br i1 %h.bad, label %fail, label %next
"""
)

_POLL = (
    "poll:\n"
    + load_word("%p.weight", "%pc", 1)
    + """  %p.code = call i32 @tn_poll(ptr %polls, i64 %p.weight)
  %p.next = add i64 %pc, 2
  %p.bad = icmp ne i32 %p.code, 0
  br i1 %p.bad, label %fail, label %next
"""
)

_BODY = (
    (
        OPERAND
        # Unoptimised it takes half the time to compile, and replays as fast: registers are
        # allotted with care all the same, and a step's work lies elsewhere.
        + """
define dso_local i32 @tn_steps(ptr %table, ptr %arena, ptr %polls, ptr %code)
    nounwind noinline optnone {
entry:
"""
        + load_word("%h.rows", "0", 0)
        + load_word("%h.most", "0", 1)
        + load_word("%h.below", "0", 2)
        + f"""  %h.bases = add i64 %h.rows, {TABLE_BASE}
  %bases = alloca ptr, i64 %h.bases, align 16
  %buffers = alloca ptr, i64 %h.most, align 16
  %rows = alloca ptr, i64 %h.below, align 16
  %context = alloca [{max(len(CONTEXT), WORDS)} x i64], align 16
  store ptr %arena, ptr %bases, align 8
  %bases.null = getelementptr ptr, ptr %bases, i64 {NULL_BASE}
  store ptr null, ptr %bases.null, align 8
  %bases.table = getelementptr ptr, ptr %bases, i64 {TABLE_BASE}
"""
        + for_each(
            "base",
            "%h.rows",
            "entry",
            row("%base.from", "%base.i", "%table")
            + "  %base.ptr = load ptr, ptr %base.from, align 8\n"
            + row("%base.to", "%base.i", "%bases.table")
            + "  store ptr %base.ptr, ptr %base.to, align 8\n",
            "next",
        )
        + f"""next:
  %pc = phi i64 [ {HEADER}, %base.test ], [ %after, %ran.kernel ], [ %after, %look ],
    [ %c.next, %copy ],
    [ %c.next, %move.bytes ], [ %gap.next, %copy_rows ], [ %gap.next, %gap.more ],
    [ %h.next, %host ], [ %p.next, %poll ],
    [ %b.next, %chosen ], [ %l.next, %out.test ], [ %l.next, %rounds ]
"""
        + load_word("%op", "%pc", 0)
        + "  switch i64 %op, label %done [ "
        + " ".join(
            f"i64 {int(word)}, label %{_LABELS.get(word, word.name.lower())}"
            for word in Opcode
            if word is not Opcode.END
        )
        + " ]\n"
        + _KERNEL
        + _COPY
        + _COPY_ROWS
        + _HOST
        + _POLL
        + BRANCH
        + LOOP
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
    .replace("NO_MEMORY", str(NO_MEMORY))
    .replace("i64 %op, CUT", f"i64 %op, {int(Opcode.CUT)}")
    .replace("i64 %op, ROUNDS", f"i64 %op, {int(Opcode.ROUNDS)}")
)

STEPS = Fragment(("declare void @llvm.memcpy.p0.p0.i64(ptr, ptr, i64, i1)",), _BODY)
STEPS_TEXT = join([POLL, HOST, PARTS, ROUND, STEPS, RUN])
