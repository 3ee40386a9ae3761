"""Pivots of ranges of items: a median of a sample, or the middle between the bounds.

The sample is nine vectors at equal distances; the median is one of medians of three.
"""

from __future__ import annotations

from tenfold.backends.cpu.library.sort.keys import SortForm
from tenfold.backends.cpu.library.sort.network import compared

_SAMPLES = 9


def middle(form: SortForm) -> str:
    """%m.bound: what comes next after the middle between the bounds, which is %m.high; whether the
    bounds are the %m.same. Floats are taken for integers in the same order."""
    item, bits, text = form.merged, f"i{form.item}", ""
    low, high = "%low", "%high"
    if form.real:
        low, high = "%m.low.order", "%m.high.order"
        for name in ("low", "high"):
            text += f"  %m.{name}.bits = bitcast {item} %{name} to {bits}\n"
            text += _ordered(form, f"m.{name}.order", f"%m.{name}.bits")
    text += f"""  %m.same = icmp sge {bits} {low}, {high}
  %m.length = sub {bits} {high}, {low}
  %m.half = lshr {bits} %m.length, 1
  %m.number = add {bits} {low}, %m.half
  %m.next = add {bits} %m.number, 1
"""
    for made, number in (("high", "number"), ("bound", "next")):
        if form.real:
            text += _ordered(form, f"m.{made}.made", f"%m.{number}")
            text += f"  %m.{made} = bitcast {bits} %m.{made}.made to {item}\n"
        else:
            text += f"  %m.{made} = add {bits} %m.{number}, 0\n"
    return text


def _ordered(form: SortForm, name: str, x: str) -> str:
    """%NAME: the bits of a float as a signed number in its order, and back."""
    bits = f"i{form.item}"
    return f"""  %{name}.sign = ashr {bits} {x}, {form.item - 1}
  %{name}.turn = and {bits} %{name}.sign, {(1 << form.item - 1) - 1}
  %{name} = xor {bits} {x}, %{name}.turn
"""


def sampled(form: SortForm, lanes: int) -> str:
    """%s.pivot, an item of the range; whether it is the %s.same as the lower bound; the %s.bound of
    what is below it, or, where it is, of what equals it; whether that must be %s.all."""
    item, bits, size = form.merged, f"i{form.item}", form.size
    v = f"<{lanes} x {item}>"
    text = f"""  %s.room = sub i64 %n, {lanes}
  %s.step = udiv i64 %s.room, {_SAMPLES - 1}
"""
    names = []
    for number in range(_SAMPLES):
        text += (
            f"  %s.{number}.i = mul i64 %s.step, {number}\n"
            f"  %s.{number}.at = getelementptr {item}, ptr %p, i64 %s.{number}.i\n"
            f"  %s.{number} = load {v}, ptr %s.{number}.at, align {size}\n"
        )
        names.append(f"%s.{number}")

    def median(name: str, three: list[str]) -> str:
        """%NAME: the median of three vectors, lane by lane."""
        return (
            compared(form, f"{name}.ab", three[0], three[1], lanes)
            + compared(form, f"{name}.bc", f"%{name}.ab.more", three[2], lanes)
            + compared(form, f"{name}.me", f"%{name}.ab.less", f"%{name}.bc.less", lanes)
        )

    for number in range(3):
        text += median(f"m.{number}", names[3 * number : 3 * number + 3])
    text += median("l.0", [f"%m.{number}.me.more" for number in range(3)])
    here = "%l.0.me.more"
    for number, turn in enumerate((lanes // 3, 1) if lanes > 4 else (1,), 1):
        three = [here]
        for times in (1, 2):
            order = ", ".join(f"i32 {(lane + times * turn) % lanes}" for lane in range(lanes))
            text += (
                f"  %l.{number}.{times} = shufflevector {v} {here}, {v} poison, "
                f"<{lanes} x i32> <{order}>\n"
            )
            three.append(f"%l.{number}.{times}")
        text += median(f"l.{number}", three)
        here = f"%l.{number}.me.more"
    text += f"  %s.pivot = extractelement {v} {here}, i64 0\n"
    if not form.real:
        last = (1 << form.item - 1) - 1
        return text + (
            f"  %s.same = icmp eq {item} %s.pivot, %low\n"
            f"  %s.utmost = icmp eq {item} %s.pivot, {last}\n"
            "  %s.all = and i1 %s.same, %s.utmost\n"
            f"  %s.more = zext i1 %s.same to {item}\n"
            f"  %s.bound = add {item} %s.pivot, %s.more\n"
        )
    return text + (
        f"  %s.same = fcmp oeq {item} %s.pivot, %low\n"
        f"  %s.utmost = fcmp oeq {item} %s.pivot, 0x7FF0000000000000\n"
        "  %s.all = and i1 %s.same, %s.utmost\n"
        f"  %s.plus = fadd {item} %s.pivot, 0.0\n"
        f"  %s.plus.bits = bitcast {item} %s.plus to {bits}\n"
        f"  %s.minus = ashr {bits} %s.plus.bits, {form.item - 1}\n"
        f"  %s.away = or {bits} %s.minus, 1\n"
        f"  %s.next.bits = add {bits} %s.plus.bits, %s.away\n"
        f"  %s.next = bitcast {bits} %s.next.bits to {item}\n"
        f"  %s.bound = select i1 %s.same, {item} %s.next, {item} %s.pivot\n"
    )
