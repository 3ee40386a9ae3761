"""Few items, as many as registers hold, sorted and given as elements: see `columns`."""

from __future__ import annotations

from tenfold.backends.cpu.library.sort.columns import settled, sorted_columns
from tenfold.backends.cpu.library.sort.items import greatest, turned
from tenfold.backends.cpu.library.sort.keys import SortForm
from tenfold.backends.llvm import masks
from tenfold.backends.llvm.writer import Writer

_COUNTS = (2, 4, 8, 16)  # of registers that are sorted at once


def most(form: SortForm, w: Writer) -> int:
    """Items that are sorted in registers."""
    return 2 * _run(form) * w.target.lanes(form.size)


def _run(form: SortForm) -> int:
    """Registers that are sorted at once at most: two such runs are merged. Networks over more of
    shorter lanes take LLVM long."""
    return 8 if form.size == 4 else 16


def sorting(form: SortForm, name: str, w: Writer) -> str:
    """A function that gives up to `most` items at %p as elements at %y. Up to %end, what follows
    them there is written over."""
    lanes, run = w.target.lanes(form.size), _run(form)
    v, whole = f"<{lanes} x {form.merged}>", f"<{lanes} x i{form.item}>"
    text = f"""
define internal void @{name}(ptr %p, ptr %y, ptr %end, i64 %n) noinline nounwind
  "prefer-vector-width"="512" {{
start:
  %runs = alloca [{2 * run} x {v}], align 64
  %n.item = {_fitted(form, "%n")}
  %n.one = insertelement {whole} poison, i{form.item} %n.item, i64 0
  %n.all = shufflevector {whole} %n.one, {whole} poison, <{lanes} x i32> zeroinitializer
"""
    for count in _COUNTS[: _COUNTS.index(run)]:
        text += f"""  %so.{count} = icmp ule i64 %n, {count * lanes}
  br i1 %so.{count}, label %in.{count}, label %past.{count}
in.{count}:
"""
        vectors = _loaded(form, w, "%p", count, "%n.all", 0 if count == 2 else count // 2)
        text += w.taken()
        more, made = sorted_columns(form, f"s{count}", vectors, lanes)
        text += more + _given(form, w, made, 1) + f"past.{count}:\n"
    text += f"""  br label %run
run:
  %at = phi i64 [ 0, %past.{run // 2} ], [ {run * lanes}, %run.more ]
  %left = sub i64 %n, %at
  %left.item = {_fitted(form, "%left")}
  %left.one = insertelement {whole} poison, i{form.item} %left.item, i64 0
  %left.all = shufflevector {whole} %left.one, {whole} poison, <{lanes} x i32> zeroinitializer
  %from = getelementptr {form.merged}, ptr %p, i64 %at
  %to = getelementptr {form.merged}, ptr %runs, i64 %at
"""
    vectors = _loaded(form, w, "%from", run, "%left.all", 0)
    text += w.taken()
    more, made = sorted_columns(form, "r", vectors, lanes)
    for number, x in enumerate(made):
        at = w.op(f"getelementptr {v}, ptr %to, i64 {number}")
        w.put(f"store {v} {x}, ptr {at}, align 64")
    text += f"""{more}{w.taken()}  %one.run = icmp ule i64 %n, {run * lanes}
  br i1 %one.run, label %in.{run}, label %run.more
run.more:
  %again = icmp eq i64 %at, 0
  br i1 %again, label %run, label %in.{2 * run}
"""
    for count in (run, 2 * run):
        places = [w.op(f"getelementptr {v}, ptr %runs, i64 {n}") for n in range(count)]
        vectors = [w.op(f"load {v}, ptr {place}, align 64") for place in places]
        text += f"in.{count}:\n{w.taken()}" + _given(form, w, vectors, count // run)
    return text + "done:\n  ret void\n}\n"


def _fitted(form: SortForm, count: str) -> str:
    """A number in as many bits as an item has."""
    return f"trunc i64 {count} to i32" if form.item == 32 else f"add i64 {count}, 0"


def _live(form: SortForm, w: Writer, count: str, number: int) -> str:
    """Which lanes of a vector, by its number, have an item."""
    lanes = w.target.lanes(form.size)
    places = ", ".join(f"i{form.item} {number * lanes + lane}" for lane in range(lanes))
    return w.op(f"icmp sgt <{lanes} x i{form.item}> {count}, <{places}>")


def _loaded(
    form: SortForm, w: Writer, start: str, vectors: int, count: str, full: int
) -> list[str]:
    """So many vectors of items, of which the first are full; what comes last in lanes without."""
    lanes, found = w.target.lanes(form.size), []
    v = f"<{lanes} x {form.merged}>"
    for number in range(vectors):
        at = w.op(f"getelementptr {v}, ptr {start}, i64 {number}")
        if number < full:
            x = w.op(f"load {v}, ptr {at}, align {form.size}")
        else:
            live = _live(form, w, count, number)
            bits = masks.load(w, at, f"i{form.item}", live, lanes=lanes, align=form.size)
            x = w.op(f"bitcast <{lanes} x i{form.item}> {bits} to {v}")
            x = w.op(f"select <{lanes} x i1> {live}, {v} {x}, {v} {greatest(form)}")
        found.append(x)
    return found


def _given(form: SortForm, w: Writer, vectors: list[str], runs: int) -> str:
    """Sorted runs as one run of elements. Half of the vectors are full, unless there are two."""
    count, lanes = len(vectors), w.target.lanes(form.size)
    whole, full = f"<{lanes} x i{form.item}>", count // 2 if count > 2 else 0
    text, made = settled(form, f"g{count}", vectors, lanes, runs)
    given = [element(form, w, x, lanes) for x in made]
    places = [w.op(f"getelementptr {whole}, ptr %y, i64 {n}") for n in range(count + 1)]
    for x, at in zip(given[:full], places, strict=False):
        w.put(f"store {whole} {x}, ptr {at}, align 1")
    text += f"""{w.taken()}  %fits.{count} = icmp ule ptr {places[-1]}, %end
  br i1 %fits.{count}, label %whole.{count}, label %part.{count}
"""
    for kind in ("whole", "part"):
        for number in range(full, count):
            mask = _live(form, w, "%n.all", number) if kind == "part" else None
            x, at = given[number], places[number]
            masks.store(w, at, f"i{form.item}", x, mask, lanes=lanes, align=1)
        text += f"{kind}.{count}:\n{w.taken()}  br label %done\n"
    return text


def element(form: SortForm, w: Writer, x: str, lanes: int) -> str:
    """A vector of items as elements."""
    bits, v = f"i{form.item}", f"<{lanes} x i{form.item}>"
    if form.real:
        return w.op(f"bitcast <{lanes} x {form.merged}> {x} to {v}")
    if form.letter == "i":
        return x  # turned twice
    key = w.op(f"xor {v} {x}, {turned(form)}")
    if form.letter != "f":
        return key
    minus = w.op(f"ashr {v} {key}, splat ({bits} {form.bits - 1})")
    plus = w.op(f"xor {v} {minus}, splat ({bits} -1)")
    turn = w.op(f"or {v} {plus}, splat ({bits} {form.sign})")
    return w.op(f"xor {v} {key}, {turn}")
