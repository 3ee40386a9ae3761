"""Items of whole vectors of elements, as they are compared."""

from __future__ import annotations

from tenfold.backends.cpu.library.sort.keys import SortForm, key
from tenfold.backends.llvm.writer import LANES

_LANE = "<" + ", ".join(f"i64 {n}" for n in range(LANES)) + ">"


def turned(form: SortForm) -> str:
    """What turns unsigned items into signed ones in the same order, and back: more processors can
    compare these."""
    return f"splat (i{form.item} {-1 << form.item - 1})"


def greatest(form: SortForm) -> str:
    if form.real:
        return f"splat ({form.merged} 0x7FF0000000000000)"
    return f"splat (i{form.item} {(1 << form.item - 1) - 1})"


def items(form: SortForm, name: str, line: str, at: str, taken: str = "") -> str:
    """%NAME.item: the items of a vector of elements, or of those that are taken already."""
    v, keys = (f"<{LANES} x i{bits}>" for bits in (form.item, form.bits))
    text = key(form, name, line, at, wide=True, taken=taken)
    if form.real:
        truth = f"<{LANES} x i1>"
        return text + (
            f"  %{name}.number = select {truth} %{name}.nan, {keys} splat (i{form.bits} "
            f"{form.infinity}), {keys} %{name}.raw\n"
            f"  %{name}.item = bitcast {keys} %{name}.number to <{LANES} x {form.merged}>\n"
        )
    if not form.positions:
        return text + f"  %{name}.item = xor {v} %{name}, {turned(form)}\n"
    return text + (
        f"  %{name}.long = zext {keys} %{name} to {v}\n"
        f"  %{name}.high = shl {v} %{name}.long, splat (i64 {form.below})\n"
        f"  %{name}.one = insertelement {v} poison, i64 {at}, i64 0\n"
        f"  %{name}.first = shufflevector {v} %{name}.one, {v} poison, "
        f"<{LANES} x i32> zeroinitializer\n"
        f"  %{name}.place = add {v} %{name}.first, {_LANE}\n"
        f"  %{name}.both = or {v} %{name}.high, %{name}.place\n"
        f"  %{name}.item = xor {v} %{name}.both, {turned(form)}\n"
    )


def live(name: str, before: int | str) -> str:
    """%NAME: which lanes of a vector are in the line, that many elements before it."""
    v = f"<{LANES} x i64>"
    return (
        f"  %{name}.left = sub i64 %n, {before}\n"
        f"  %{name}.one = insertelement {v} poison, i64 %{name}.left, i64 0\n"
        f"  %{name}.all = shufflevector {v} %{name}.one, {v} poison, "
        f"<{LANES} x i32> zeroinitializer\n"
        f"  %{name} = icmp sgt {v} %{name}.all, {_LANE}\n"
    )


def negative_zero(form: SortForm, name: str) -> str:
    """%NAME.least: which elements of the vector %NAME.raw are zeros whose sign their keys lose."""
    v = f"<{LANES} x i{form.bits}>"
    return f"  %{name}.least = icmp eq {v} %{name}.raw, splat (i{form.bits} {form.sign})\n"
