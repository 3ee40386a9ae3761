"""Small functions that stand between the kernels of loops and branches on a device: they look at
conditions, count rounds, and move what a round is given and gives."""

from __future__ import annotations

from tenfold.backends.cuda.target import CudaTarget
from tenfold.backends.llvm.text import Fragment
from tenfold.backends.llvm.writer import MEMORY, SIZES, Writer, kind

SET_FLAG, START, COUNT = "tn_set_flag", "tn_start", "tn_count"
_SET = "declare void @cudaGraphSetConditional(i64, i32)"
_POINTER = "ptr addrspace(1)"
UNITS = {16: "<4 x i32>", 4: "i32", 1: "i8"}  # bytes that are moved at once
MOVE_THREADS = 256


def control_text(target: CudaTarget) -> Fragment:
    """The functions that set conditions. Each is one thread. A condition does not hold any more
    where the fault word is set: by a kernel, or by a host that wants it all to end."""
    return Fragment((_SET,), "\n".join((_flag(target), _start(target), _count(target))))


def _writer(target: CudaTarget) -> Writer:
    w = Writer(target.llvm)
    w.label("entry")
    return w


def _set(w: Writer, condition: str) -> None:
    """Set the condition, unless something went wrong."""
    fault = w.op(f"load volatile i32, {_POINTER} %fault, align 4")
    fine = w.op(f"icmp eq i32 {fault}, 0")
    both = w.op(f"zext i1 {w.op(f'and i1 {condition}, {fine}')} to i32")
    w.put(f"call void @cudaGraphSetConditional(i64 %handle, i32 {both})")
    w.put("ret void")


def _defined(name: str, given: str, w: Writer) -> str:
    head = f'define ptx_kernel void @{name}({given}) nounwind "nvvm.maxntid"="1" {{'
    return "\n".join((head, *w.lines, "}"))


def _flag(target: CudaTarget) -> str:
    w = _writer(target)
    flag = w.op(f"load i8, {_POINTER} %flag, align 1")
    _set(w, w.op(f"icmp ne i8 {flag}, 0"))
    return _defined(SET_FLAG, f"i64 %handle, {_POINTER} %flag, {_POINTER} %fault", w)


def _start(target: CudaTarget) -> str:
    w = _writer(target)
    w.put(f"store i64 0, {_POINTER} %counter, align 8")
    _set(w, w.op("icmp sgt i64 %length, 0"))
    given = f"i64 %handle, {_POINTER} %counter, i64 %length, {_POINTER} %fault"
    return _defined(START, given, w)


def _count(target: CudaTarget) -> str:
    w = _writer(target)
    before = w.op(f"load i64, {_POINTER} %counter, align 8")
    number = w.op(f"add i64 {before}, 1")
    w.put(f"store i64 {number}, {_POINTER} %counter, align 8")
    _set(w, w.op(f"icmp slt i64 {number}, %length"))
    given = f"i64 %handle, {_POINTER} %counter, i64 %length, {_POINTER} %fault"
    return _defined(COUNT, given, w)


def choose_name(dtype: str) -> str:
    return f"tn_choose_{dtype}"


def choose_text(dtype: str, target: CudaTarget) -> Fragment:
    """The function that sets the number of a branch, clamped, by an index of some dtype."""
    w, memory = _writer(target), MEMORY[dtype]
    signed = kind(dtype) == "i"
    index = w.op(f"load {memory}, {_POINTER} %index, align {SIZES[dtype]}")
    if memory != "i64":
        index = w.op(f"{'s' if signed else 'z'}ext {memory} {index} to i64")
    if signed:
        index = w.intrinsic("smax", "i64", index, "0")
    chosen = w.op(f"trunc i64 {w.intrinsic('umin', 'i64', index, '%last')} to i32")
    w.put(f"call void @cudaGraphSetConditional(i64 %handle, i32 {chosen})")
    w.put("ret void")
    body = _defined(choose_name(dtype), f"i64 %handle, {_POINTER} %index, i64 %last", w)
    return Fragment((_SET, *sorted(w.declared)), body)


def moves_name(count: int, unit: int) -> str:
    return f"tn_moves_{count}_{unit}"


def moves_text(count: int, unit: int, target: CudaTarget) -> Fragment:
    """A function that moves so many pieces, `blocks` blocks each. A piece has its target and its
    source, units, and the bytes that each of the two goes on by for a turn: the number of the
    round, or of those that are left, where `last` is the last round's number and not negative."""
    w, ty = Writer(target.llvm), UNITS[unit]
    w.label("entry")
    block = w.op(f"zext i32 {w.call('i32', 'llvm.nvvm.read.ptx.sreg.ctaid.x')} to i64")
    thread = w.op(f"zext i32 {w.call('i32', 'llvm.nvvm.read.ptx.sreg.tid.x')} to i64")
    round_ = w.op(f"load i64, {_POINTER} %counter, align 8")
    left = w.op(f"sub i64 %last, {round_}")
    back = w.op("icmp sge i64 %last, 0")
    turn = w.op(f"select i1 {back}, i64 {left}, i64 {round_}")
    which = w.op(f"udiv i64 {block}, %blocks")
    part = w.op(f"urem i64 {block}, %blocks")
    chosen = {name: f"%{name}0" for name in ("to", "from", "units", "tostep", "fromstep")}
    for n in range(1, count):
        here = w.op(f"icmp eq i64 {which}, {n}")
        for name, held in chosen.items():
            kind = _POINTER if name in ("to", "from") else "i64"
            chosen[name] = w.op(f"select i1 {here}, {kind} %{name}{n}, {kind} {held}")
    ends = {}
    for name in ("to", "from"):
        by = w.op(f"mul i64 {turn}, {chosen[name + 'step']}")
        ends[name] = w.op(f"getelementptr i8, {_POINTER} {chosen[name]}, i64 {by}")
    first = w.op(f"add i64 {w.op(f'mul i64 {part}, {MOVE_THREADS}')}, {thread}")
    step = w.op(f"mul i64 %blocks, {MOVE_THREADS}")
    before, head, body, end = w.block, w.fresh("head"), w.fresh("body"), w.fresh("end")
    w.put(f"br label %{head}")
    w.label(head)
    at, following = f"%{w.fresh('at')}", f"%{w.fresh('next')}"
    w.lines.append(f"  {at} = phi i64 [ {first}, %{before} ], [ {following}, %{body} ]")
    inside = w.op(f"icmp slt i64 {at}, {chosen['units']}")
    w.put(f"br i1 {inside}, label %{body}, label %{end}")
    w.label(body)
    source = w.op(f"getelementptr {ty}, {_POINTER} {ends['from']}, i64 {at}")
    target_ = w.op(f"getelementptr {ty}, {_POINTER} {ends['to']}, i64 {at}")
    moved = w.op(f"load {ty}, {_POINTER} {source}, align {unit}")
    w.put(f"store {ty} {moved}, {_POINTER} {target_}, align {unit}")
    w.lines.append(f"  {following} = add i64 {at}, {step}")
    w.put(f"br label %{head}")
    w.label(end)
    w.put("ret void")
    given = [f"{_POINTER} %counter", "i64 %last", "i64 %blocks"]
    for n in range(count):
        given += [f"{_POINTER} %to{n}", f"{_POINTER} %from{n}", f"i64 %units{n}"]
        given += [f"i64 %tostep{n}", f"i64 %fromstep{n}"]
    line = f"define ptx_kernel void @{moves_name(count, unit)}({', '.join(given)}) nounwind "
    line += f'"nvvm.maxntid"="{MOVE_THREADS}" {{'
    return Fragment(tuple(sorted(w.declared)), "\n".join((line, *w.lines, "}")))
