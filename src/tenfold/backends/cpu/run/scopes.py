"""Steps that carry out plans of their own, a branch and a loop, as blocks of `tn_steps`.

The table of an inner plan is filled in %rows, and `tn_steps` called with it and with the bytecode
of that plan.
"""

from __future__ import annotations

from tenfold.backends.cpu.run.opcodes import for_each, load_word, operand, row
from tenfold.backends.cpu.run.rounds import ROUNDS

BRANCH = (
    "branch:\n"
    + load_word("%b.bits", "%pc", 1)
    + load_word("%b.signed", "%pc", 2)
    + load_word("%b.count", "%pc", 3)
    + load_word("%b.rows", "%pc", 4)
    + "  %b.index.pc = add i64 %pc, 5\n  %b.arena.pc = add i64 %pc, 7\n"
    + "  %b.first = add i64 %pc, 9\n"
    + operand("%b.index", "%b.index.pc")
    + operand("%b.arena", "%b.arena.pc")
    + for_each(
        "row",
        "%b.rows",
        "branch",
        "  %row.twice = shl i64 %row.i, 1\n  %row.pc = add i64 %b.first, %row.twice\n"
        + operand("%row.ptr", "%row.pc")
        + row("%row.to", "%row.i")
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
    + load_word("%b.code", "%b.codes", "%b.which", "ptr")
    + """  %b.done = call i32 @tn_steps(ptr %rows, ptr %b.arena, ptr %polls, ptr %b.code)
  %b.next = add i64 %b.codes, %b.count
  %b.bad = icmp ne i32 %b.done, 0
  br i1 %b.bad, label %fail, label %next
"""
)

# A loop's words after its own: two operands (arena, flag); for each capture an operand; for each
# carry three operands (where it comes from, the output, the other place) and its bytes; for each
# slice and each stack an operand and the bytes of a row.
_SIZES = (
    "captures", "carries", "slices", "stacks", "length", "reverse", "weight",
)  # fmt: skip

LOOP = (
    "loop:\n"
    + "".join(load_word(f"%l.{name}", "%pc", n) for n, name in enumerate(_SIZES, 1))
    + load_word("%l.test", "%pc", 8, "ptr")
    + load_word("%l.body", "%pc", 9, "ptr")
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
    + operand("%l.arena", "%l.arena.pc")
    + operand("%l.flag", "%l.flag.pc")
    + for_each(
        "capture",
        "%l.captures",
        "loop",
        "  %capture.twice = shl i64 %capture.i, 1\n"
        "  %capture.pc = add i64 %l.captures.pc, %capture.twice\n"
        + operand("%capture.ptr", "%capture.pc")
        + row("%capture.to", "%capture.i")
        + "  store ptr %capture.ptr, ptr %capture.to, align 8\n",
        "begin",
    )
    + ROUNDS
    + "carried:\n"
    + for_each(
        "carry",
        "%l.carries",
        "carried",
        "  %carry.words = mul i64 %carry.i, 7\n"
        "  %carry.pc = add i64 %l.carries.pc, %carry.words\n"
        + operand("%carry.ptr", "%carry.pc")
        + "  %carry.row = add i64 %l.captures, %carry.i\n"
        + row("%carry.to", "%carry.row")
        + "  store ptr %carry.ptr, ptr %carry.to, align 8\n",
        "head",
    )
    + """head:
  %i = phi i64 [ 0, %carry.test ], [ %i.more, %moved ]
  br i1 %l.while, label %test, label %count
test:
"""
    + row("%t.to", "%l.slices.row")
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
    + for_each(
        "goes",
        "%l.carries",
        "turn",
        "  %goes.words = mul i64 %goes.i, 7\n"
        "  %goes.first = add i64 %l.carries.pc, %goes.words\n"
        "  %goes.final = add i64 %goes.first, 2\n"
        "  %goes.pc = add i64 %goes.final, %i.away\n"
        + operand("%goes.ptr", "%goes.pc")
        + "  %goes.row = add i64 %l.goes.row, %goes.i\n"
        + row("%goes.to", "%goes.row")
        + "  store ptr %goes.ptr, ptr %goes.to, align 8\n",
        "sliced",
    )
    + "".join(
        f"{before}:\n"
        + for_each(
            name,
            f"%l.{part}",
            before,
            f"  %{name}.words = mul i64 %{name}.i, 3\n"
            f"  %{name}.pc = add i64 %l.{part}.pc, %{name}.words\n"
            + operand(f"%{name}.ptr", f"%{name}.pc")
            + load_word(f"%{name}.bytes", f"%{name}.pc", 2)
            + f"  %{name}.shift = mul i64 %{name}.bytes, %at\n"
            f"  %{name}.here = getelementptr i8, ptr %{name}.ptr, i64 %{name}.shift\n"
            f"  %{name}.row = add i64 %l.{part}.row, %{name}.i\n"
            + row(f"%{name}.slot", f"%{name}.row")
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
    + for_each(
        "moving",
        "%l.carries",
        "move",
        "  %moving.from.row = add i64 %l.goes.row, %moving.i\n"
        + row("%moving.from", "%moving.from.row")
        + "  %moving.ptr = load ptr, ptr %moving.from, align 8\n"
        "  %moving.row = add i64 %l.captures, %moving.i\n"
        + row("%moving.to", "%moving.row")
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
    + operand("%out.final", "%out.pc")
    + "  %out.row = add i64 %l.captures, %out.i\n"
    + row("%out.at", "%out.row")
    + """  %out.held = load ptr, ptr %out.at, align 8
  %out.same = icmp eq ptr %out.held, %out.final
  br i1 %out.same, label %out.on, label %out.move
out.move:
"""
    + load_word("%out.bytes", "%out.first", 6)
    + """  call void @llvm.memcpy.p0.p0.i64(ptr %out.final, ptr %out.held, i64 %out.bytes, i1 false)
  br label %out.on
out.on:
  %out.more = add i64 %out.i, 1
  br label %out.test
"""
)
