"""The few greatest elements of lines, as LLVM IR: one function for each dtype.

Those found so far are kept in order, and every other element is held against the least of them,
whole vectors at a time: of many elements in no order few are greater. Elements are compared by the
keys of sorts (`sort.keys`).
"""

from __future__ import annotations

from math import prod

from tenfold.backends.cpu.library.loops import carried, each, look_text, poll, when
from tenfold.backends.cpu.library.routine import NodeRoutine
from tenfold.backends.cpu.library.sort.keys import SortForm, form_of, key
from tenfold.backends.llvm.target import LLVMTarget
from tenfold.backends.llvm.text import Fragment, join
from tenfold.backends.llvm.writer import LANES, Writer
from tenfold.types import SHORT, TensorType

_POLLED = 1 << 16  # elements without a poll


def greatest_routine(type: TensorType, k: int) -> NodeRoutine:
    """The call for the k greatest elements along the last axis."""
    n, lines = type.shape[-1], prod(type.shape[:-1])
    symbol = f"tn_greatest_{SHORT[type.dtype]}"
    return NodeRoutine(symbol, (n, k), lines, 16 * k, lines * (n // 2 + 100 * k))


def greatest_text(dtype: str, target: LLVMTarget) -> str:
    """The module for a dtype."""
    form = form_of("sort", dtype)
    w = Writer(target)
    w.block = "line"
    _line(w, form)
    body = w.taken()
    element = f"i{form.bits}"
    text = f"""
define internal void @tn_insert(
  ptr %keys, ptr %places, i64 %last, {element} %key, i64 %place) nounwind {{
entry:
  br label %test
test:
  %i = phi i64 [ %last, %entry ], [ %before, %move ]
  %before = add i64 %i, -1
  %first = icmp eq i64 %i, 0
  br i1 %first, label %put, label %compare
compare:
  %key.at = getelementptr {element}, ptr %keys, i64 %before
  %other = load {element}, ptr %key.at, align 8
  %less = icmp ult {element} %other, %key
  br i1 %less, label %move, label %put
move:
  %key.to = getelementptr {element}, ptr %keys, i64 %i
  store {element} %other, ptr %key.to, align 1
  %place.at = getelementptr i64, ptr %places, i64 %before
  %held = load i64, ptr %place.at, align 8
  %place.to = getelementptr i64, ptr %places, i64 %i
  store i64 %held, ptr %place.to, align 8
  br label %test
put:
  %key.in = getelementptr {element}, ptr %keys, i64 %i
  store {element} %key, ptr %key.in, align 1
  %place.in = getelementptr i64, ptr %places, i64 %i
  store i64 %place, ptr %place.in, align 8
  ret void
}}

define dso_local i32 @tn_greatest_{dtype}(
  ptr %buffers, ptr %params, i64 %low, i64 %high) nounwind "prefer-vector-width"="512" {{
entry:
  %x.all = load ptr, ptr %buffers, align 8
  %y.row = getelementptr ptr, ptr %buffers, i64 1
  %y.all = load ptr, ptr %y.row, align 8
  %z.row = getelementptr ptr, ptr %buffers, i64 2
  %z.all = load ptr, ptr %z.row, align 8
  %keys.row = getelementptr ptr, ptr %buffers, i64 3
  %keys = load ptr, ptr %keys.row, align 8
  %n = load i64, ptr %params, align 8
  %k.at = getelementptr i64, ptr %params, i64 1
  %k = load i64, ptr %k.at, align 8
  %places = getelementptr i64, ptr %keys, i64 %k
  %last = add i64 %k, -1
  br label %head
head:
  %row = phi i64 [ %low, %entry ], [ %row.more, %done ]
  %on = icmp slt i64 %row, %high
  br i1 %on, label %line, label %end
line:
  %x.first = mul i64 %row, %n
  %x = getelementptr {element}, ptr %x.all, i64 %x.first
  %y.first = mul i64 %row, %k
  %y = getelementptr {element}, ptr %y.all, i64 %y.first
  %z = getelementptr i64, ptr %z.all, i64 %y.first
{body}  br label %done
done:
  %row.more = add i64 %row, 1
  br label %head
end:
  ret i32 0
}}
"""
    return join([Fragment(tuple(sorted(w.declared)), look_text(4) + text)])


def _line(w: Writer, form: SortForm) -> None:
    element, wide = f"i{form.bits}", f"<{LANES} x i{form.bits}>"

    def keyed(at: str, lanes: bool = False) -> str:
        name = w.fresh("key")
        w.lines += key(form, name, "%x", at, wide=lanes).splitlines()
        return f"%{name}"

    def least() -> str:
        place = w.op(f"getelementptr {element}, ptr %keys, i64 %last")
        return w.op(f"load {element}, ptr {place}, align 1")

    def insert(last: str, found: str, place: str) -> None:
        w.put(f"call void @tn_insert(ptr %keys, ptr %places, i64 {last}, {element} {found}, "
              f"i64 {place})")  # fmt: skip

    def compare(place: str) -> None:
        found = keyed(place)
        with when(w, w.op(f"icmp ugt {element} {found}, {least()}")):
            insert("%last", found, place)

    with each(w, "0", "%k") as i:
        insert(i, keyed(i), i)
    rest = w.op("sub i64 %n, %k")
    whole = w.op(f"add i64 {w.op(f'and i64 {rest}, {-LANES}')}, %k")
    with each(w, "%k", whole, _POLLED) as low:
        far = w.op(f"add i64 {low}, {_POLLED}")
        high = w.intrinsic("smin", "i64", far, whole)
        with carried(w, low, high, LANES, (element, least())) as (i, (limit,), onward):
            greater = w.op(f"icmp ugt {wide} {keyed(i, True)}, {w.splat(element, limit)}")
            bits = w.op(f"bitcast <{LANES} x i1> {greater} to i{LANES}")
            some = w.op(f"icmp ne i{LANES} {bits}, 0")
            with when(w, some), each(w, "0", str(LANES)) as lane:
                # A round for each lane is short beside what an element that is kept costs.
                compare(w.op(f"add i64 {i}, {lane}"))
            onward(least())
        poll(w)
    with each(w, whole, "%n") as i:
        compare(i)
    with each(w, "0", "%k") as i:
        place = w.op(f"load i64, ptr {w.op(f'getelementptr i64, ptr %places, i64 {i}')}, align 8")
        from_ = w.op(f"getelementptr {element}, ptr %x, i64 {place}")
        value = w.op(f"load {element}, ptr {from_}, align 1")
        w.put(f"store {element} {value}, ptr {w.op(f'getelementptr {element}, ptr %y, i64 {i}')}, "
              "align 1")  # fmt: skip
        w.put(f"store i64 {place}, ptr {w.op(f'getelementptr i64, ptr %z, i64 {i}')}, align 8")
