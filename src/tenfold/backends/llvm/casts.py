"""Conversions that take several lines: sixteen-bit floats, bools in memory."""

from __future__ import annotations

from tenfold.backends.llvm.writer import Writer, mangle

_INF32 = 0x7F800000


def widen(w: Writer, dtype: str, x: str, wide: bool) -> str:
    """What was loaded, as it is computed with."""
    if dtype == "bool":
        return w.op(f"icmp ne {w.vector('i8', wide)} {x}, {w.const('i8', 0, wide)}")
    return x


def narrow(w: Writer, dtype: str, x: str, wide: bool) -> str:
    """A value as it lies in memory."""
    if dtype == "bool":
        return w.op(f"zext {w.vector('i1', wide)} {x} to {w.vector('i8', wide)}")
    return x


def from_half(w: Writer, x: str, wide: bool) -> str:
    """The bits of an f16 as the f32 of that value."""
    i16, i32, f32 = w.vector("i16", wide), w.vector("i32", wide), w.vector("float", wide)
    if w.modern:
        f16 = w.vector("half", wide)
        half = w.op(f"bitcast {i16} {x} to {f16}")
        if w.target.arch == "nvptx64":
            # The bits may be a bf16's: LLVM ends the process where it compares such a half with 0
            # and sees what the bits were.
            half = w.call(f16, f"llvm.arithmetic.fence.{mangle(f16)}", (f16, half))
        return w.op(f"fpext {f16} {half} to {f32}")
    bits = w.op(f"zext {i16} {x} to {i32}")
    body = w.op(f"and {i32} {bits}, {w.const('i32', 0x7FFF, wide)}")
    sign = _shift(w, "shl", w.op(f"xor {i32} {bits}, {body}"), 16, wide)
    small = w.op(f"bitcast {i32} {_shift(w, 'shl', body, 13, wide)} to {f32}")
    scaled = w.op(f"fmul {f32} {small}, {w.const('float', 2.0**112, wide)}")
    special = w.op(f"icmp uge {i32} {body}, {w.const('i32', 0x7C00, wide)}")
    exponent = w.select(special, i32, w.const("i32", _INF32, wide), w.const("i32", 0, wide))
    whole = w.op(f"or {i32} {w.op(f'or {i32} {_bits(w, scaled, wide)}, {exponent}')}, {sign}")
    return w.op(f"bitcast {i32} {whole} to {f32}")


def to_half(w: Writer, x: str, wide: bool) -> str:
    """The bits of the f16 nearest to an f32."""
    i16, i32, f32 = w.vector("i16", wide), w.vector("i32", wide), w.vector("float", wide)
    if w.modern:
        # The fence keeps LLVM from rounding a double straight to a half, by a function of its own.
        x = w.call(f32, f"llvm.arithmetic.fence.{mangle(f32)}", (f32, x))
        half = w.op(f"fptrunc {f32} {x} to {w.vector('half', wide)}")
        return w.op(f"bitcast {w.vector('half', wide)} {half} to {i16}")
    bits = _bits(w, x, wide)
    body = w.op(f"and {i32} {bits}, {w.const('i32', 0x7FFFFFFF, wide)}")
    sign = w.op(f"xor {i32} {bits}, {body}")
    # Subnormal halves: adding 0.5 lines the last bit up with the half's, and rounds.
    magnitude = w.op(f"bitcast {i32} {body} to {f32}")
    lined = _bits(w, w.op(f"fadd {f32} {magnitude}, {w.const('float', 0.5, wide)}"), wide)
    tiny = w.op(f"sub {i32} {lined}, {w.const('i32', 0x3F000000, wide)}")
    odd = w.op(f"and {i32} {_shift(w, 'lshr', body, 13, wide)}, {w.const('i32', 1, wide)}")
    bias = w.const("i32", 0xFFF - (112 << 23), wide)
    plain = w.op(f"add {i32} {w.op(f'add {i32} {body}, {bias}')}, {odd}")
    plain = _shift(w, "lshr", plain, 13, wide)
    nan = w.op(f"icmp ugt {i32} {body}, {w.const('i32', _INF32, wide)}")
    # A NaN is quiet and keeps the bits that there is room for, as by the processors that convert.
    high = w.op(f"and {i32} {_shift(w, 'lshr', body, 13, wide)}, {w.const('i32', 0x3FF, wide)}")
    quiet = w.op(f"or {i32} {high}, {w.const('i32', 0x7E00, wide)}")
    huge = w.select(nan, i32, quiet, w.const("i32", 0x7C00, wide))
    is_tiny = w.op(f"icmp ult {i32} {body}, {w.const('i32', 113 << 23, wide)}")
    is_huge = w.op(f"icmp uge {i32} {body}, {w.const('i32', 143 << 23, wide)}")
    result = w.select(is_tiny, i32, tiny, w.select(is_huge, i32, huge, plain))
    whole = w.op(f"or {i32} {result}, {_shift(w, 'lshr', sign, 16, wide)}")
    return w.op(f"trunc {i32} {whole} to {i16}")


def from_bfloat(w: Writer, x: str, wide: bool) -> str:
    """The bits of a bf16 as the f32 of that value: they are its upper half."""
    i32 = w.vector("i32", wide)
    high = _shift(w, "shl", w.op(f"zext {w.vector('i16', wide)} {x} to {i32}"), 16, wide)
    return w.op(f"bitcast {i32} {high} to {w.vector('float', wide)}")


def to_bfloat(w: Writer, x: str, wide: bool) -> str:
    """The bits of the bf16 nearest to an f32."""
    i16, i32, f32 = w.vector("i16", wide), w.vector("i32", wide), w.vector("float", wide)
    if w.target.arch == "nvptx64":
        # The fence is as in to_half.
        x = w.call(f32, f"llvm.arithmetic.fence.{mangle(f32)}", (f32, x))
        short = w.op(f"fptrunc {f32} {x} to {w.vector('bfloat', wide)}")
        return w.op(f"bitcast {w.vector('bfloat', wide)} {short} to {i16}")
    bits = _bits(w, x, wide)
    odd = w.op(f"and {i32} {_shift(w, 'lshr', bits, 16, wide)}, {w.const('i32', 1, wide)}")
    up = w.op(f"add {i32} {w.op(f'add {i32} {bits}, {odd}')}, {w.const('i32', 0x7FFF, wide)}")
    nan = w.op(f"fcmp uno {f32} {x}, {x}")
    near = w.select(nan, i32, w.const("i32", 0x7FC00000, wide), up)
    return w.op(f"trunc {i32} {_shift(w, 'lshr', near, 16, wide)} to {i16}")


def _bits(w: Writer, x: str, wide: bool) -> str:
    return w.op(f"bitcast {w.vector('float', wide)} {x} to {w.vector('i32', wide)}")


def _shift(w: Writer, op: str, x: str, amount: int, wide: bool) -> str:
    return w.op(f"{op} {w.vector('i32', wide)} {x}, {w.const('i32', amount, wide)}")
