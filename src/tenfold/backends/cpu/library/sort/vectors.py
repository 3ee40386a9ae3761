"""A vector of items partitioned about a pivot.

AVX-512 compresses 32-bit items: in a register, since some processors take long where they compress
into memory. Others are partitioned by one shuffle, those below first, looked up by which of them
are below; it is stored twice, and what is to the wrong side is written over later.
"""

from __future__ import annotations

from tenfold.backends.cpu.library.sort.keys import SortForm
from tenfold.backends.llvm import masks
from tenfold.backends.llvm.writer import Writer


def _compressed(form: SortForm, w: Writer) -> bool:
    """Whether items are compressed."""
    return w.target.lanes(form.size) > 8


def table(form: SortForm, name: str, w: Writer) -> str:
    """For each set of lanes: these, then the others. Where a shuffle moves 32 bits alone, both
    halves of an item."""
    if _compressed(form, w):
        return ""
    lanes, text = w.target.lanes(form.size), ""
    for chosen in range(1 << lanes):
        order = sorted(range(lanes), key=lambda lane: not chosen >> lane & 1)
        if lanes == 4:
            order = [2 * lane + half for lane in order for half in (0, 1)]
        text += "".join(f"\\{lane:02X}" for lane in order)
    return f'@{name}_table = private constant [{8 << lanes} x i8] c"{text}", align 64\n'


def below(form: SortForm, w: Writer, x: str, lanes: int) -> str:
    """Which items of a vector are below %bound.all."""
    compare = "fcmp olt" if form.real else "icmp slt"
    return w.op(f"{compare} <{lanes} x {form.merged}> {x}, %bound.all")


def counted(w: Writer, mask: str, lanes: int) -> tuple[str, str]:
    """The lanes of a mask, as bits and counted."""
    bits = w.op(f"bitcast <{lanes} x i1> {mask} to i{lanes}")
    wide = w.op(f"zext i{lanes} {bits} to i64")
    return wide, w.intrinsic("ctpop", "i64", wide)


def partitioned(
    form: SortForm, name: str, w: Writer, x: str, mask: str, bits: str, lanes: int
) -> tuple[str, str]:
    """A vector with the items of a mask first, and one with the others: first, if they are
    compressed, else last."""
    v, whole = f"<{lanes} x {form.merged}>", f"<{lanes} x i{form.item}>"
    if _compressed(form, w):
        ones = w.op(f"xor <{lanes} x i1> {mask}, splat (i1 true)")
        signature = f"llvm.experimental.vector.compress.v{lanes}i{form.item}"
        first, second = (
            w.call(v, signature, (v, x), (f"<{lanes} x i1>", m), (v, "poison"))
            for m in (mask, ones)
        )
        return first, second
    at = w.op(f"getelementptr [8 x i8], ptr @{name}_table, i64 {bits}")
    order = w.op(f"load <8 x i8>, ptr {at}, align 8")
    kept = "<8 x i64>" if lanes == 8 and form.size == 8 else "<8 x i32>"
    order = w.op(f"zext <8 x i8> {order} to {kept}")
    given = w.op(f"bitcast {v} {x} to {kept}")
    shuffle = "llvm.x86.avx512.permvar.di.512" if "64" in kept else "llvm.x86.avx2.permd"
    made = w.call(kept, shuffle, (kept, given), (kept, order))
    made = w.op(f"bitcast {kept} {made} to {whole}")
    return made, made


def stored(
    form: SortForm,
    w: Writer,
    made: tuple[str, str],
    left: str,
    right: str,
    more: str,
    exact: str = "",
) -> None:
    """A partitioned vector stored: what is below from one place on, the others up to another.
    `more` are below; `exact` has the lanes of the others, where nothing may be written before
    them."""
    item, lanes = form.merged, w.target.lanes(form.size)
    kept = f"<{lanes} x i{form.item}>"
    if left:
        w.put(f"store {kept} {made[0]}, ptr {left}, align {form.size}")
    if not _compressed(form, w):
        at = w.op(f"getelementptr {item}, ptr {right}, i64 -{lanes}")
        masks.store(w, at, f"i{form.item}", made[1], exact or None, lanes=lanes, align=form.size)
        return
    count = w.op(f"sub i64 {lanes}, {more}")
    at = w.op(f"getelementptr {item}, ptr {right}, i64 {w.op(f'sub i64 0, {count}')}")
    power = w.op(f"shl i64 1, {count}")
    bits = w.op(f"trunc i64 {w.op(f'add i64 {power}, -1')} to i{lanes}")
    mask = w.op(f"bitcast i{lanes} {bits} to <{lanes} x i1>")
    masks.store(w, at, f"i{form.item}", made[1], mask, lanes=lanes, align=form.size)
