"""Arrays of routines: functions that read and write an element of one, by its position.

Where an array may begin amid what is bound, the last words of a dispatch say at which element. Its
elements are numbers to compute with, or bits that are only moved: then those of 64 bits are two
words, of adapters without such numbers too.
"""

from __future__ import annotations

from tenfold.backends.webgpu.wgsl.types import REGISTER, SHORT, WIDTH
from tenfold.frozen import frozen

_SUMS = {"f16": "f32", "bf16": "f32"}
_OPENED = {
    "f16": "unpack2x16float(bits).x",
    "bf16": "bitcast<f32>(bits << 16u)",
    "bool": "bits",
    "u8": "bits",
    "u16": "bits",
    "i8": "bitcast<i32>(bits << 24u) >> 24u",
    "i16": "bitcast<i32>(bits << 16u) >> 16u",
}
_CLOSED = {"f16": "to_half(v)", "bf16": "to_bfloat(v)", "i8": "bitcast<u32>(v) & 255u",
           "i16": "bitcast<u32>(v) & 65535u"}  # fmt: skip


def computed(dtype: str) -> str:
    """The dtype in which elements of one are computed with.

    >>> computed("bf16"), computed("u8"), computed("i64")
    ('f32', 'u32', 'i64')
    """
    return "u32" if dtype == "bool" else _SUMS.get(dtype) or REGISTER[dtype]


def bits_of(dtype: str) -> int:
    """The bits of an element in memory."""
    return SHORT.get(dtype) or WIDTH[dtype]


@frozen
class Array:
    """An array of a routine: its name in the text, its dtype, whether its elements are only moved,
    and whether it is written. Of a complex one it has the `parts` of elements."""

    name: str
    dtype: str
    moved: bool = False
    written: bool = False
    parts: int = 1

    @property
    def type(self) -> str:
        """What an element is to whoever calls the functions."""
        if not self.moved:
            return computed(self.dtype)
        return "vec2<u32>" if bits_of(self.dtype) == 64 else "u32"

    @property
    def held(self) -> str:
        """What is bound: short elements lie several in a word, and others write to the same."""
        if self.dtype in SHORT:
            return "atomic<u32>" if self.written else "u32"
        return self.type

    def text(self, lead: str) -> str:
        """The function that reads or writes an element; `lead` is where the array begins."""
        by = f"{self.parts}u * " if self.parts > 1 else ""
        name, ty, place = self.name, self.type, f"at + {by}{lead}"
        head = f"fn get_{name}(at: u32) -> {ty}"
        if self.written:
            head = f"fn set_{name}(at: u32, v: {ty})"
        if self.dtype not in SHORT:
            what = f"{name}[{place}] = v;" if self.written else f"return {name}[{place}];"
            return f"{head} {{ {what} }}"
        size = SHORT[self.dtype]
        each, shift, mask = 32 // size, (32 // size).bit_length() - 1, (1 << size) - 1
        lines = [
            f"{head} {{",
            f"  let i = {place};",
            f"  let by = {size}u * (i & {each - 1}u);",
        ]
        if self.written:
            value = "v" if self.moved else _CLOSED.get(self.dtype, "v")
            lines += [
                f"  atomicAnd(&{name}[i >> {shift}u], ~({mask}u << by));",
                f"  atomicOr(&{name}[i >> {shift}u], ({value}) << by);",
            ]
        else:
            value = "bits" if self.moved else _OPENED[self.dtype]
            lines += [
                f"  let bits = ({name}[i >> {shift}u] >> by) & {mask}u;",
                f"  return {value};",
            ]
        return "\n".join([*lines, "}"])
