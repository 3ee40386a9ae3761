"""Keys of elements that sort as the elements do, and how items that hold them are taken apart."""

from __future__ import annotations

from dataclasses import dataclass

from tenfold.backends.llvm.writer import LANES, SIZES, kind

PADDING = 512  # bytes that whole blocks of vectors may reach beyond a line
_INFINITY = {"f16": 0x7C00, "bf16": 0x7F80, "f32": 0x7F800000, "f64": 0x7FF0000000000000}


@dataclass(frozen=True, slots=True)
class SortForm:
    """How the elements of one dtype are sorted."""

    positions: bool
    letter: str  # of the dtype's kind
    infinity: int  # of floats
    bits: int  # of an element, and of its key
    item: int  # bits of what is moved: the key, and below it the position
    digit: int = 8  # bits of a digit in a sort by radix
    real: bool = False  # whether items are compared as floats, which takes less than integers of 64
    # bits take; NaNs are infinities then

    @property
    def size(self) -> int:
        return self.item // 8

    @property
    def merged(self) -> str:
        """The type of an item that is merged."""
        return "double" if self.real else f"i{self.item}"

    @property
    def room(self) -> int:
        """Bytes of scratch for an element, twice: an item, or how many go before it."""
        return max(self.size, 4)

    @property
    def digits(self) -> int:
        return -(-self.bits // self.digit)

    @property
    def counts(self) -> int:
        """Bytes of the counts of every digit of the key."""
        return self.digits * 4 << self.digit

    @property
    def sign(self) -> int:
        return -(1 << self.bits - 1)

    @property
    def last(self) -> int:
        """The bits of an element that no other comes after."""
        return -1 if self.letter in "fub" else -1 - self.sign

    @property
    def below(self) -> int:
        """Bits of an item below its key."""
        return self.item - self.bits if self.item == 128 else min(32, self.item - self.bits)


def form_of(name: str, dtype: str) -> SortForm:
    bits = 8 * SIZES[dtype]
    positions = name == "argsort"
    item = bits if not positions else 64 if bits <= 32 else 128
    return SortForm(
        positions,
        kind(dtype),
        _INFINITY.get(dtype, 0),
        bits,
        item,
        real=dtype == "f64" and not positions,
    )


def key(
    form: SortForm, name: str, line: str, at: str, *, wide: bool = False, taken: str = ""
) -> str:
    """%NAME is the key of an element of a line, %NAME.raw the element; `wide`: of all lanes from
    there on, or as `taken` has them."""
    element, sign = f"i{form.bits}", form.sign
    w, truth = (f"<{LANES} x {t}>" if wide else t for t in (element, "i1"))

    def number(value: int) -> str:
        return f"splat ({element} {value})" if wide else str(value)

    load = (
        f"  %{name}.at = getelementptr {element}, ptr {line}, i64 {at}\n"
        f"  %{name}.raw = load {w}, ptr %{name}.at, align 1\n"
    )
    if taken:
        load = f"  %{name}.raw = add {w} {taken}, zeroinitializer\n"
    if form.letter != "f":
        turn = sign if form.letter == "i" else 0
        return load + f"  %{name} = xor {w} %{name}.raw, {number(turn)}\n"
    return load + (
        f"  %{name}.size = and {w} %{name}.raw, {number(~sign)}\n"
        f"  %{name}.nan = icmp ugt {w} %{name}.size, {number(form.infinity)}\n"
        f"  %{name}.zero = icmp eq {w} %{name}.size, {number(0)}\n"
        f"  %{name}.minus = ashr {w} %{name}.raw, {number(form.bits - 1)}\n"
        f"  %{name}.turn = or {w} %{name}.minus, {number(sign)}\n"
        f"  %{name}.plain = xor {w} %{name}.raw, %{name}.turn\n"
        f"  %{name}.some = select {truth} %{name}.zero, {w} {number(sign)}, {w} %{name}.plain\n"
        f"  %{name} = select {truth} %{name}.nan, {w} {number(-1)}, {w} %{name}.some\n"
    )


def item(form: SortForm, name: str, line: str, at: str) -> str:
    """%NAME.item is what is moved for an element of a line."""
    w, e = f"i{form.bits}", f"i{form.item}"
    text = key(form, name, line, at)
    if not form.positions:
        return text + f"  %{name}.item = add {e} %{name}, 0\n"
    place = f"  %{name}.place = add i64 {at}, 0\n"
    if form.item > 64:
        place = f"  %{name}.place = zext i64 {at} to {e}\n"
    return (
        text
        + place
        + f"  %{name}.long = zext {w} %{name} to {e}\n"
        + f"  %{name}.high = shl {e} %{name}.long, {form.below}\n"
        + f"  %{name}.item = or {e} %{name}.high, %{name}.place\n"
    )


def digit(form: SortForm, name: str, item: str, shift: str) -> str:
    """%NAME is the digit of an item's key from this bit on, as an i64."""
    e = f"i{form.item}"
    text = f"  %{name}.up = lshr {e} {item}, {form.below}\n"
    if form.item > 64:
        text += f"  %{name}.wide = trunc {e} %{name}.up to i64\n"
    elif form.item < 64:
        text += f"  %{name}.wide = zext {e} %{name}.up to i64\n"
    else:
        text += f"  %{name}.wide = add {e} %{name}.up, 0\n"
    return text + (
        f"  %{name}.down = lshr i64 %{name}.wide, {shift}\n"
        f"  %{name} = and i64 %{name}.down, {(1 << form.digit) - 1}\n"
    )


def counted(name: str, count: str, before: str, body: str, after: str) -> str:
    """A loop over %NAME from 0; the body must not branch."""
    return f"""{name}.head:
  %{name} = phi i64 [ 0, %{before} ], [ %{name}.more, %{name}.body ]
  %{name}.on = icmp ult i64 %{name}, {count}
  br i1 %{name}.on, label %{name}.body, label %{after}
{name}.body:
{body}  %{name}.more = add i64 %{name}, 1
  br label %{name}.head
"""
