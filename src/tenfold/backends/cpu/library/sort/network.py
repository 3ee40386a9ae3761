"""Networks of comparisons over the lanes of vectors of items, as LLVM IR.

Two vectors go through a network together. What is compared stands in the same lane of both, so a
step is a least, a greatest and two shuffles: a bit of the items' places in order that was a lane's
becomes the vector's, and the vector's a lane's.
"""

from __future__ import annotations

from collections.abc import Sequence

from tenfold.backends.cpu.library.sort.keys import SortForm
from tenfold.backends.llvm.writer import LANES

_BITS = LANES.bit_length() - 1  # of the number of a lane
_SETTLE = tuple((bit, 1 << bit) for bit in reversed(range(_BITS)))
_MERGE = ((_BITS, 2 * LANES - 1), *_SETTLE)
_SORT = tuple(
    step
    for top in range(_BITS)
    for step in ((top, (2 << top) - 1), *((bit, 1 << bit) for bit in reversed(range(top))))
)


def sorted_vectors(form: SortForm, name: str, vectors: Sequence[str]) -> tuple[str, list[str]]:
    """The text that sorts all lanes of 1, 2 or 4 vectors, and the vectors that have them then."""
    if len(vectors) == 1:
        text, made = _network(form, name, (vectors[0], "poison"), _SORT)
        return text, made[:1]
    half = len(vectors) // 2
    if half == 1:
        text, both = _network(form, name, vectors, _SORT)
        more, made = merged(form, f"{name}.m", both[:1], both[1:])
        return text + more, made
    text, one = sorted_vectors(form, f"{name}.0", vectors[:half])
    other, two = sorted_vectors(form, f"{name}.1", vectors[half:])
    more, made = merged(form, f"{name}.m", one, two)
    return text + other + more, made


def merged(
    form: SortForm, name: str, one: Sequence[str], two: Sequence[str]
) -> tuple[str, list[str]]:
    """The text that merges two sorted runs of one vector each, or of two, and the vectors that have
    them then."""
    if len(one) == 1:
        return _network(form, name, (*one, *two), _MERGE)
    text = ""
    for number, vector in enumerate(two):
        text += _chosen(form, f"{name}.{number}.back", vector, "poison", [*reversed(range(LANES))])
    for number, vector in enumerate(one):
        back = f"%{name}.{len(two) - 1 - number}.back"
        text += compared(form, f"{name}.{number}", vector, back)
    made: list[str] = []
    for half in ("less", "more"):
        text += compared(form, f"{name}.{half}", f"%{name}.0.{half}", f"%{name}.1.{half}")
        both = f"%{name}.{half}.less", f"%{name}.{half}.more"
        more, settled = _network(form, f"{name}.{half}", both, _SETTLE)
        text, made = text + more, made + settled
    return text, made


def compared(form: SortForm, name: str, a: str, b: str, lanes: int = LANES) -> str:
    """%NAME.less and %NAME.more: the less and the greater of two vectors, lane by lane: each
    item is in one of both, whatever compares as equal."""
    v = f"<{lanes} x {form.merged}>"
    if not form.real:
        n = f"v{lanes}i{form.item}"
        return (
            f"  %{name}.less = call {v} @llvm.smin.{n}({v} {a}, {v} {b})\n"
            f"  %{name}.more = call {v} @llvm.smax.{n}({v} {a}, {v} {b})\n"
        )
    truth = f"<{lanes} x i1>"
    return (
        f"  %{name}.under = fcmp olt {v} {a}, {b}\n"
        f"  %{name}.less = select {truth} %{name}.under, {v} {a}, {v} {b}\n"
        f"  %{name}.more = select {truth} %{name}.under, {v} {b}, {v} {a}\n"
    )


def _chosen(form: SortForm, name: str, a: str, b: str, lanes: Sequence[int]) -> str:
    """%NAME: lanes of two vectors, by their numbers."""
    v = f"<{LANES} x {form.merged}>"
    picked = ", ".join(f"i32 {lane}" for lane in lanes)
    return f"  %{name} = shufflevector {v} {a}, {v} {b}, <{LANES} x i32> <{picked}>\n"


def _network(
    form: SortForm, name: str, vectors: Sequence[str], steps: Sequence[tuple[int, int]]
) -> tuple[str, list[str]]:
    """The text of a network over two vectors, and the vectors after it. A step is a bit of the
    places and what is flipped in a place to have the one it is compared with; the less of both goes
    where the bit is 0."""
    text = ""
    here = list(range(2 * LANES))  # the place of each lane of both vectors
    a, b = vectors
    slots, own = list(range(_BITS)), _BITS  # the bits that lanes stand for, and the vector

    def place(lane: int) -> int:
        return sum(1 << bit for slot, bit in enumerate(slots) if lane >> slot & 1)

    for number, (bit, flipped) in enumerate(steps):
        if bit != own:
            slots[slots.index(bit)], own = own, bit
        low = [place(lane) for lane in range(LANES)]
        there = low + [at ^ flipped for at in low]
        text += _chosen(form, f"{name}.{number}.a", a, b, [here.index(at) for at in low])
        text += _chosen(form, f"{name}.{number}.b", a, b, [here.index(at) for at in there[LANES:]])
        text += compared(form, f"{name}.{number}", f"%{name}.{number}.a", f"%{name}.{number}.b")
        a, b, here = f"%{name}.{number}.less", f"%{name}.{number}.more", there
    for half, first in (("low", 0), ("high", LANES)):
        places = range(first, first + LANES)
        text += _chosen(form, f"{name}.{half}", a, b, [here.index(at) for at in places])
    return text, [f"%{name}.low", f"%{name}.high"]
