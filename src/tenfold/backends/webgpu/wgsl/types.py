"""How dtypes are held in registers and in buffers, and constants of them."""

from __future__ import annotations

import re
import struct

# In registers integers of 8 and 16 bits are held in 32, always in range.
REGISTER = {"bool": "bool", "f32": "f32", "f64": "f64", "i64": "i64", "u64": "u64"} | {
    f"{sign}{bits}": f"{sign}32" for sign in "iu" for bits in (8, 16, 32)
}
WIDTH = {"bool": 1, "f32": 32, "f64": 64} | {
    f"{sign}{bits}": bits for sign in "iu" for bits in (8, 16, 32, 64)
}
# The bits of an element of a buffer that is shorter than a word.
SHORT = {"bool": 8, "i8": 8, "u8": 8, "i16": 16, "u16": 16, "f16": 16, "bf16": 16}
_WHOLE = re.compile(r"(?:bitcast<i\d\d>\()?(0x[0-9a-f]+|\d+)(?:i|u|lu)\)?")


def element(dtype: str) -> str:
    """The type of a buffer's elements; of complex numbers it has two each.

    >>> element("c64"), element("f16"), element("i64")
    ('f32', 'u32', 'i64')
    """
    if dtype in SHORT:
        return "u32"
    return {"c64": "f32", "c128": "f64"}.get(dtype, dtype)


def floating(dtype: str) -> bool:
    return dtype in ("f32", "f64")


def shared(ty: str) -> str:
    """The type of a register's values in memory of a workgroup or between dispatches, where there
    are no bools, or where drivers have them wrong.

    >>> shared("bool"), to_shared("bool", "t1_"), of_shared("bool", "s0[i]"), shared("f32")
    ('u32', 'select(0u, 1u, t1_)', '(s0[i] != 0u)', 'f32')
    """
    return "u32" if ty == "bool" else ty


def to_shared(ty: str, x: str) -> str:
    """What is written there."""
    return f"select(0u, 1u, {x})" if ty == "bool" else x


def of_shared(ty: str, x: str) -> str:
    """What is read there."""
    return f"({x} != 0u)" if ty == "bool" else x


def constant(dtype: str, raw: bytes) -> str:
    """A constant given as raw bytes. Floats that drivers compute with by themselves (0, 1 and -1,
    infinities and NaN) are hidden from them, by another zero than barriers have (`wgsl/writer`).

    >>> constant("i32", b"\\xff" * 4), constant("f32", b"\\0\\0 A")
    ('bitcast<i32>(0xffffffffu)', 'bitcast<f32>(0x41200000u)')
    """
    bits = int.from_bytes(raw, "little")
    if dtype == "bool":
        return "true" if bits else "false"
    if dtype == "f32":
        hidden = " ^ Z.y" if _folded(struct.unpack("<f", raw)[0]) else ""
        return f"bitcast<f32>({bits:#x}u{hidden})"
    if dtype == "f64":
        hidden = " ^ u64(Z.y)" if _folded(struct.unpack("<d", raw)[0]) else ""
        return f"bitcast<f64>({bits:#x}lu{hidden})"
    if dtype in ("i64", "u64"):
        return f"bitcast<i64>({bits:#x}lu)" if dtype == "i64" else f"{bits:#x}lu"
    if dtype[0] == "i":
        value = int.from_bytes(raw, "little", signed=True) & 0xFFFFFFFF
        return f"bitcast<i32>({value:#x}u)" if value >> 31 else f"{value}i"
    return f"{bits}u"


def _folded(x: float) -> bool:
    return not 0 < abs(x) < float("inf") or abs(x) == 1


def amount(text: str) -> str:
    """How far to shift, as a u32: naga converts no constants of 64 bits.

    >>> amount("0x34lu"), amount("3i"), amount("t1_")
    ('52u', '3u', 'u32(t1_)')
    """
    found = _WHOLE.fullmatch(text)
    return f"{int(found[1], 0)}u" if found else f"u32({text})"


def hidden(dtype: str, text: str) -> str:
    """A constant that nobody computes with before the shader runs.

    >>> hidden("i32", "3i")
    '(3i ^ bitcast<i32>(Z.y))'
    """
    ty = REGISTER[dtype]
    if ty == "bool":
        return f"({text} != (Z.y != 0u))"
    zero = "u64(Z.y)" if ty == "f64" else "Z.y"
    if floating(ty):
        return text if " ^ " in text else f"{text[:-1]} ^ {zero})"
    zero = {"i32": "bitcast<i32>(Z.y)", "u32": "Z.y", "u64": "u64(Z.y)"}.get(ty, "i64(Z.y)")
    return f"({text} ^ {zero})"


def narrowed(dtype: str, text: str) -> str:
    """What fits a short integer, of a register that may hold more.

    >>> narrowed("u8", "x + y"), narrowed("i32", "x")
    ('((x + y) & 255u)', 'x')
    """
    bits = WIDTH[dtype]
    if dtype == "bool" or bits >= 32 or floating(dtype):
        return text
    if dtype[0] == "u":
        return f"(({text}) & {(1 << bits) - 1}u)"
    return f"((({text}) << {32 - bits}u) >> {32 - bits}u)"
