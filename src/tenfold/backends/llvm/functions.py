"""Functions that are lists of legal instructions, as LLVM IR: each once a module, inlined by LLVM.

What is called rarely is out of line, and compiled without optimisation (optnone): its time hardly
counts, and the time it takes to compile does. Where a text calls functions so often that they would
make blocks of many thousand instructions, they stay out of line as well, optimised.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import cache

import numpy as np

from tenfold.backends.llvm import avx512, lane_moves, nvptx_maths
from tenfold.backends.llvm.instructions import instruction
from tenfold.backends.llvm.target import LLVMTarget
from tenfold.backends.llvm.ternary import TWICE
from tenfold.backends.llvm.text import Fragment
from tenfold.backends.llvm.writer import BITS, COMPUTE, LANES, Writer, scalar_text, vector
from tenfold.digest import sha256
from tenfold.errors import Unsupported
from tenfold.kernel import maths
from tenfold.kernel.ir.kernel import Instruction
from tenfold.kernel.maths import Function, Own
from tenfold.types import DTYPES

Name = tuple[str, str, int]  # of a function: with its dtype, and how many lanes it takes
_SELDOM = "noinline optnone nounwind"
INLINED = 3000  # lines of functions that are put in place in one text
BRIEF = 10  # and where that is to be brief, for each byte of a register
_AT_ONCE = 2  # registers that a value takes in a function out of line


def called(w: Writer, name: str, dtype: str, args: Sequence[str], wide: bool) -> str:
    """A call of a function of `kernel/maths`."""
    if not maths.exists(name, dtype):
        raise Unsupported(f"{name} of {dtype} on the CPU")
    lanes = w.lanes if wide else 1
    w.maths.add((name, dtype, lanes))
    taken = zip(maths.params(name, dtype), args, strict=True)
    given = ", ".join(f"{w.vector(COMPUTE[d], wide)} {a}" for d, a in taken)
    result = w.op(f"call {w.vector(COMPUTE[dtype], wide)} {symbol(name, dtype, lanes)}({given})")
    w.logic[result] = TWICE  # it is put in place, and may end with some
    return result


def symbol(name: str, dtype: str, lanes: int) -> str:
    """The IR name of a function.

    >>> symbol("exp", "f32", 16)
    '@tenfold.exp.f32.16'
    """
    return f"@tenfold.{name}.{dtype}.{lanes}"


def shared(
    body: str, needed: frozenset[Name], target: LLVMTarget, brief: bool = False
) -> tuple[str, frozenset[Name]]:
    """A text and the functions that it calls. Those that would make it too long are called out of
    line, the longest first: with them a block takes LLVM more than linear time, and without them
    its code is hardly slower. A call costs a short function more. Where vectors take several
    registers and the text is to be `brief`, there are more of them."""
    lines = {name: body.count(f"{symbol(*name)}(") * _length(name, target) for name in needed}
    left = sum(lines.values())
    kept = sorted(needed, key=lambda name: (_length(name, target), name))
    away: list[Name] = []
    most = INLINED
    if brief and target.vector_bytes < 64:
        most = min(most, BRIEF * target.vector_bytes)
    while left > most and _length(kept[-1], target) > 1:
        name, dtype, lanes = kept.pop()
        left -= lines[name, dtype, lanes]
        away.append((_SHARED + name, dtype, lanes))
        body = body.replace(f"{symbol(name, dtype, lanes)}(", f"{symbol(*away[-1])}(")
    return body, frozenset([*kept, *away])


def inlined(body: str, needed: Iterable[Name], target: LLVMTarget) -> int:
    """How many lines of functions are put in place in a text."""
    return sum(body.count(f"{symbol(*name)}(") * _length(name, target) for name in needed)


@cache
def _length(name: Name, target: LLVMTarget) -> int:
    """How many lines a function has where it is put in place."""
    fragment, more = _defined(*name, target)
    if "alwaysinline" not in fragment.body:
        return 1
    inner = sum(fragment.body.count(f"{symbol(*one)}(") * _length(one, target) for one in more)
    return fragment.body.count("\n") + inner


def definitions(needed: Iterable[Name], target: LLVMTarget) -> list[Fragment]:
    """The text of functions, and of what they call."""
    found: dict[Name, None] = {}
    waiting = list(needed)
    fragments = []
    while waiting:
        name = waiting.pop()
        if name not in found:
            found[name] = None
            fragment, more = _defined(*name, target)
            fragments.append(fragment)
            waiting += more
    return fragments


@cache
def _defined(name: str, dtype: str, lanes: int, target: LLVMTarget) -> tuple[Fragment, list[Name]]:
    """One function as text, and the others that it calls."""
    wide, w = lanes > 1, Writer(target, lanes if lanes > 1 else LANES)
    if name.startswith(lane_moves.PREFIX):
        return lane_moves.definition(w, name, dtype, widest(target)), []
    if wide and name.startswith(_RARE):
        return _each_lane(w, name.removeprefix(_RARE), dtype)
    if name.startswith(_SHARED):
        return _out_of_line(w, name.removeprefix(_SHARED), dtype, wide)
    f = maths.function(name, dtype, target.fma, _own(name, dtype, wide, target))
    if any(i.op == "rarely" for i in f.instructions):
        w.label("entry")
    memory: list[str] = []
    result = _body(w, f, wide, memory)
    w.lines[1:1] = memory  # first of all, where inlining moves it out of loops
    passed = ", ".join(f"{w.vector(COMPUTE[d], wide)} %a{n}" for n, d in enumerate(f.params))
    how = _SELDOM if name in maths.RARE else "alwaysinline nounwind"
    ty = w.vector(COMPUTE[dtype], wide)
    head = f"define internal dso_local {ty} {symbol(name, dtype, lanes)}({passed}) {how} {{"
    text = "\n".join((head, *w.lines, f"  ret {ty} {result}", "}"))
    return Fragment(tuple(sorted(w.declared)), text), sorted(w.maths)


def _own(name: str, dtype: str, wide: bool, target: LLVMTarget) -> Own:
    """What a target does in its own way."""
    if target.fast:
        return nvptx_maths.own(name, dtype)
    return avx512.OWN if wide and target.vector_bytes == 64 else ()


def _body(w: Writer, f: Function, wide: bool, memory: list[str]) -> str:
    """The instructions of a function; the text of its result."""
    values: list[str] = []
    for i in f.instructions:
        sources = [f.instructions[a].dtype for a in i.args]
        args = [values[a] for a in i.args]
        values.append(_printed(w, i, sources, args, wide, memory))
    return values[-1]


def _printed(
    w: Writer, i: Instruction, sources: list[str], args: list[str], wide: bool, memory: list[str]
) -> str:
    if i.op == "param":
        return f"%a{i.attr[0]}"
    if i.op == "const":
        text, element = scalar_text(i.dtype, i.attr[0]), COMPUTE[i.dtype]
        return f"splat ({element} {text})" if wide else text
    if i.op == "lookup":
        return lookup(w, i.dtype, i.attr[0], args[0], wide)
    if i.op == "call":
        return called(w, i.attr[0], i.dtype, args, wide)
    if i.op == "rarely":
        return _rarely(w, i.attr[0], i.dtype, args, wide, memory)
    if i.op in avx512.PRINTED:
        return avx512.printed(w, i.op, COMPUTE[i.dtype], args)
    if i.op in nvptx_maths.PRINTED:
        return nvptx_maths.printed(w, i.op, args)
    return instruction(w, i.op, i.dtype, sources, args, wide)


def lookup(w: Writer, dtype: str, table: bytes, position: str, wide: bool) -> str:
    """An element of a constant table."""
    element = COMPUTE[dtype]
    values = [scalar_text(dtype, v.tobytes()) for v in np.frombuffer(table, DTYPES[dtype])]
    name = f"@tenfold.table.{sha256(table).hexdigest()[:16]}"
    ty, text = f"[{len(values)} x {element}]", ", ".join(f"{element} {v}" for v in values)
    w.declared.add(f"{name} = internal dso_local constant {ty} [{text}]")

    def taken(at: str) -> str:
        place = w.op(f"getelementptr {element}, ptr {name}, i32 {at}")
        return w.op(f"load {element}, ptr {place}")

    if not wide:
        return taken(position)
    found = "poison"
    for lane in range(w.lanes):
        one = taken(w.op(f"extractelement {w.vector('i32')} {position}, i64 {lane}"))
        found = w.op(f"insertelement {w.vector(element)} {found}, {element} {one}, i64 {lane}")
    return found


_RARE, _SHARED = "rarely.", "shared."


def _rarely(
    w: Writer,
    name: str,
    dtype: str,
    args: list[str],
    wide: bool,
    memory: list[str],
) -> str:
    """A call where a condition holds. Vectors go there and back through memory, so that the
    function takes scalars only, which compile in a fraction of the time."""
    condition, value, *given = args
    ty = w.vector(COMPUTE[dtype], wide)
    near, far, done = w.block, w.fresh("far"), w.fresh("done")
    some = condition
    if wide:
        some = w.some(condition)
    w.put(f"br i1 {some}, label %{far}, label %{done}")
    w.label(far)
    if wide:
        mask = w.op(f"bitcast {w.vector('i1')} {condition} to i{w.lanes}")
        moved = (dtype, *maths.params(name, dtype))
        places = [w.fresh("%m") for _ in moved]
        for place, d, x in zip(places, moved, (value, *given), strict=True):
            memory.append(f"  {place} = alloca {w.vector(COMPUTE[d])}, align 8")
            w.put(f"store {w.vector(COMPUTE[d])} {x}, ptr {place}, align 8")
        w.maths.add((_RARE + name, dtype, w.lanes))
        passed = "".join(f", ptr {place}" for place in places)
        w.put(f"call void {symbol(_RARE + name, dtype, w.lanes)}(i{w.lanes} {mask}{passed})")
        other = w.op(f"load {ty}, ptr {places[0]}, align 8")
    else:
        other = called(w, name, dtype, given, False)
    w.put(f"br label %{done}")
    w.label(done)
    return w.op(f"phi {ty} [ {value}, %{near} ], [ {other}, %{far} ]")


def _each_lane(w: Writer, name: str, dtype: str) -> tuple[Fragment, list[Name]]:
    """A function that does in memory what a function does, for the lanes of a mask, not empty."""
    params = maths.params(name, dtype)
    mask = f"i{w.lanes}"
    w.label("entry")
    w.put("br label %lane")
    w.label("lane")
    w.put(f"%left = phi {mask} [ %mask, %entry ], [ %rest, %lane ]")
    first = w.call(mask, f"llvm.cttz.{mask}", (mask, "%left"), ("i1", "true"))
    lane = w.op(f"zext {mask} {first} to i64")
    given = []
    for n, d in enumerate(params):
        at = w.op(f"getelementptr {COMPUTE[d]}, ptr %a{n}, i64 {lane}")
        given.append(w.op(f"load {COMPUTE[d]}, ptr {at}"))
    value = called(w, name, dtype, given, False)
    at = w.op(f"getelementptr {COMPUTE[dtype]}, ptr %out, i64 {lane}")
    w.put(f"store {COMPUTE[dtype]} {value}, ptr {at}")
    w.put(f"%rest = and {mask} %left, {w.op(f'sub {mask} %left, 1')}")
    w.put(f"%more = icmp ne {mask} %rest, 0")
    w.put("br i1 %more, label %lane, label %end")
    w.label("end")
    passed = "".join(f", ptr %a{n}" for n in range(len(params)))
    head = (
        f"define internal dso_local void {symbol(_RARE + name, dtype, w.lanes)}"
        f"({mask} %mask, ptr %out{passed}) {_SELDOM} {{"
    )
    text = "\n".join((head, *w.lines, "  ret void", "}"))
    return Fragment(tuple(sorted(w.declared)), text), sorted(w.maths)


def _out_of_line(w: Writer, name: str, dtype: str, wide: bool) -> tuple[Fragment, list[Name]]:
    """A function that does what a function does, and is not put in place. Vectors that take many
    registers go through memory, some of their lanes at a time."""
    types, target = [COMPUTE[d] for d in maths.params(name, dtype)], w.target
    given = [f"%a{n}" for n in range(len(types))]
    passed = ", ".join(f"{w.vector(ty, wide)} {a}" for ty, a in zip(types, given, strict=True))
    ty, own = w.vector(COMPUTE[dtype], wide), symbol(_SHARED + name, dtype, w.lanes if wide else 1)
    part = min(w.lanes, _AT_ONCE * target.lanes(BITS[COMPUTE[dtype]] // 8))
    if not wide or part == w.lanes:
        result = called(w, name, dtype, given, wide)
    else:
        w = Writer(target, part)
        result = _by_parts(w, name, dtype, types, ty)
    head = f"define internal dso_local {ty} {own}({passed}) noinline nounwind{widest(target)} {{"
    text = "\n".join((head, *w.lines, f"  ret {ty} {result}", "}"))
    return Fragment(tuple(sorted(w.declared)), text), sorted(w.maths)


def _by_parts(w: Writer, name: str, dtype: str, types: list[str], ty: str) -> str:
    """The calls for all parts of vectors, in a loop."""
    w.label("entry")
    for n, element in enumerate(types):
        whole = vector(element)
        w.put(f"%m{n} = alloca {whole}, align 64")
        w.put(f"store {whole} %a{n}, ptr %m{n}, align 64")
    w.put(f"%out = alloca {ty}, align 64")
    w.put("br label %part")
    w.label("part")
    w.put("%first = phi i64 [ 0, %entry ], [ %next, %part ]")
    given = []
    for n, element in enumerate(types):
        at = w.op(f"getelementptr {element}, ptr %m{n}, i64 %first")
        given.append(w.op(f"load {w.vector(element)}, ptr {at}, align 16"))
    made, element = called(w, name, dtype, given, True), COMPUTE[dtype]
    at = w.op(f"getelementptr {element}, ptr %out, i64 %first")
    w.put(f"store {w.vector(element)} {made}, ptr {at}, align 16")
    w.put(f"%next = add i64 %first, {w.lanes}")
    w.put(f"%more = icmp ult i64 %next, {LANES}")
    w.put("br i1 %more, label %part, label %end")
    w.label("end")
    return w.op(f"load {ty}, ptr %out, align 64")


def widest(target: LLVMTarget) -> str:
    """The attributes of a function that may use the widest registers. With AVX2 alone instructions
    are ordered as for the last processors that have no more: by the level's own model, which is
    Haswell's, LLVM moves half as much again between few registers and memory in a row's softmax."""
    if target.vector_bytes <= 16:
        return ""
    tuned = ' "tune-cpu"="znver3"' if target.arch == "x86_64" and target.vector_bytes == 32 else ""
    return f' "prefer-vector-width"="{8 * target.vector_bytes}"{tuned}'
