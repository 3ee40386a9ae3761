"""Conversions between dtypes, and between memory and compute forms."""

from __future__ import annotations

from tenfold.backends.llvm.writer import BITS, COMPUTE, Writer, kind, vector

Parts = tuple[str, ...]

_INF32 = 0x7F800000


def widen(w: Writer, dtype: str, x: str, wide: bool) -> str:
    """What was loaded, in its compute form."""
    if dtype == "bool":
        return w.op(f"icmp ne {vector('i8', wide)} {x}, {w.const('i8', 0, wide)}")
    if dtype == "bf16":
        i32 = vector("i32", wide)
        high = w.op(f"zext {vector('i16', wide)} {x} to {i32}")
        bits = w.op(f"shl {i32} {high}, {w.const('i32', 16, wide)}")
        return w.op(f"bitcast {i32} {bits} to {vector('float', wide)}")
    if dtype == "f16":
        return from_half(w, x, wide)
    return x


def narrow(w: Writer, dtype: str, x: str, wide: bool) -> str:
    """A value in its memory form; sixteen-bit floats are already rounded."""
    if dtype == "bool":
        return w.op(f"zext {vector('i1', wide)} {x} to {vector('i8', wide)}")
    if dtype == "bf16":
        return _high_half(w, _bits(w, x, wide), wide)
    if dtype == "f16":
        return to_half(w, x, wide)
    return x


def rounded(
    w: Writer, dtype: str, x: str, wide: bool, short: bool = False, given: bool = False
) -> str:
    """An f32 rounded to the nearest value of a sixteen-bit dtype, still as f32. `short` says that
    a NaN has no bits beyond those that are kept: then rounding leaves it as it is. A NaN that is
    `given`, not computed, keeps its sign."""
    f32, i32 = vector("float", wide), vector("i32", wide)
    if dtype == "f16":
        return from_half(w, to_half(w, x, wide), wide)
    if dtype != "bf16":
        return x
    bits = _bits(w, x, wide)
    last = w.op(f"and {i32} {bits}, {w.const('i32', 0x10000, wide)}")
    odd = w.op(f"icmp ne {i32} {last}, {w.const('i32', 0, wide)}")
    half = w.select(odd, i32, w.const("i32", 0x8000, wide), w.const("i32", 0x7FFF, wide))
    up = w.op(f"add {i32} {bits}, {half}")
    kept = w.op(f"and {i32} {up}, {w.const('i32', -65536, wide)}")
    if short:
        return w.op(f"bitcast {i32} {kept} to {f32}")
    quiet = w.const("i32", 0x7FC00000, wide)
    if given:
        sign = w.op(f"and {i32} {bits}, {w.const('i32', -(1 << 31), wide)}")
        quiet = w.op(f"or {i32} {sign}, {quiet}")
    nan = w.op(f"fcmp uno {f32} {x}, {x}")
    return w.op(f"bitcast {i32} {w.select(nan, i32, quiet, kept)} to {f32}")


def cast(w: Writer, source: str, dtype: str, x: Parts, wide: bool) -> Parts:
    """Values of one dtype in another; floats to integers saturate, NaN gives 0."""
    if kind(dtype) == "c":
        if kind(source) == "c":
            return tuple(_real(w, source, dtype, p, wide) for p in x)
        return (_real(w, source, dtype, x[0], wide), w.const(COMPUTE[dtype], 0.0, wide))
    if kind(source) == "c" and dtype == "bool":
        ty = vector(COMPUTE[source], wide)
        zero = w.const(COMPUTE[source], 0.0, wide)
        a, b = (w.op(f"fcmp une {ty} {p}, {zero}") for p in x)
        return (w.op(f"or {vector('i1', wide)} {a}, {b}"),)
    return (_real(w, source, dtype, x[0], wide),)


def bitcast(w: Writer, source: str, dtype: str, x: str, wide: bool) -> str:
    """The same bits as another dtype of the same size."""
    bits = BITS[COMPUTE[dtype]] if dtype not in ("f16", "bf16") else 16
    raw = narrow(w, source, x, wide) if source in ("bool", "f16", "bf16") else x
    integer = vector(f"i{max(8, bits)}", wide)
    if COMPUTE[source] in ("float", "double") and source not in ("f16", "bf16"):
        raw = w.op(f"bitcast {vector(COMPUTE[source], wide)} {raw} to {integer}")
    if dtype in ("f32", "f64"):
        return w.op(f"bitcast {integer} {raw} to {vector(COMPUTE[dtype], wide)}")
    return widen(w, dtype, raw, wide)


def _real(w: Writer, source: str, dtype: str, x: str, wide: bool) -> str:
    """One real part: `source` and `dtype` may be complex, meaning their parts."""
    a, b = COMPUTE[source], COMPUTE[dtype]
    old, new = vector(a, wide), vector(b, wide)
    from_float, to_float = kind(source) in "fc", kind(dtype) in "fc"
    if dtype == "bool":
        test = "fcmp une" if from_float else "icmp ne"
        return x if source == "bool" else w.op(f"{test} {old} {x}, {w.const(a, 0, wide)}")
    if from_float and to_float:
        if a == b:
            return rounded(w, dtype, x, wide, given=True) if dtype in ("f16", "bf16") else x
        if b == "double":
            return w.op(f"fpext {old} {x} to {new}")
        if dtype == "f16":
            return rounded(w, dtype, _to_odd(w, x, wide), wide)
        return rounded(w, dtype, w.op(f"fptrunc {old} {x} to {new}"), wide, given=True)
    if from_float:
        op = "fptoui" if kind(dtype) == "u" else "fptosi"
        name = f"llvm.{op}.sat.{_mangled(new)}.{_mangled(old)}"
        return w.call(new, name, (old, x))
    unsigned = kind(source) in "bu"
    if to_float:
        return rounded(
            w, dtype, w.op(f"{'uitofp' if unsigned else 'sitofp'} {old} {x} to {new}"), wide
        )
    if BITS[a] == BITS[b]:
        return x
    op = "trunc" if BITS[a] > BITS[b] else "zext" if unsigned else "sext"
    return w.op(f"{op} {old} {x} to {new}")


def _mangled(ty: str) -> str:
    from tenfold.backends.llvm.writer import mangle

    return mangle(ty)


def _bits(w: Writer, x: str, wide: bool) -> str:
    return w.op(f"bitcast {vector('float', wide)} {x} to {vector('i32', wide)}")


def _shift(w: Writer, op: str, x: str, amount: int, wide: bool) -> str:
    return w.op(f"{op} {vector('i32', wide)} {x}, {w.const('i32', amount, wide)}")


def _high_half(w: Writer, bits: str, wide: bool) -> str:
    high = _shift(w, "lshr", bits, 16, wide)
    return w.op(f"trunc {vector('i32', wide)} {high} to {vector('i16', wide)}")


def _to_odd(w: Writer, x: str, wide: bool) -> str:
    """An f64 as f32, cut towards zero with the last bit set where inexact, so that rounding
    once more to a shorter format gives what rounding once would have given."""
    f64, f32 = vector("double", wide), vector("float", wide)
    i32, i1 = vector("i32", wide), vector("i1", wide)
    near = w.op(f"fptrunc {f64} {x} to {f32}")
    back = w.op(f"fpext {f32} {near} to {f64}")
    bits = _bits(w, near, wide)
    inexact = w.op(f"fcmp one {f64} {back}, {x}")
    over = w.op(f"fcmp ogt {f64} {w.intrinsic('fabs', f64, back)}, {w.intrinsic('fabs', f64, x)}")
    down = w.op(f"sub {i32} {bits}, {w.op(f'zext {i1} {over} to {i32}')}")
    odd = w.op(f"or {i32} {down}, {w.op(f'zext {i1} {inexact} to {i32}')}")
    return w.op(f"bitcast {i32} {odd} to {f32}")


def from_half(w: Writer, x: str, wide: bool) -> str:
    """The bits of an f16 as the f32 of that value."""
    i16, i32, f32 = vector("i16", wide), vector("i32", wide), vector("float", wide)
    if w.modern:
        half = w.op(f"bitcast {i16} {x} to {vector('half', wide)}")
        return w.op(f"fpext {vector('half', wide)} {half} to {f32}")
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
    i16, i32, f32 = vector("i16", wide), vector("i32", wide), vector("float", wide)
    if w.modern:
        # The fence keeps LLVM from rounding a double straight to a half, by a function of its own.
        x = w.call(f32, f"llvm.arithmetic.fence.{_mangled(f32)}", (f32, x))
        half = w.op(f"fptrunc {f32} {x} to {vector('half', wide)}")
        return w.op(f"bitcast {vector('half', wide)} {half} to {i16}")
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
    huge = w.select(nan, i32, w.const("i32", 0x7E00, wide), w.const("i32", 0x7C00, wide))
    is_tiny = w.op(f"icmp ult {i32} {body}, {w.const('i32', 113 << 23, wide)}")
    is_huge = w.op(f"icmp uge {i32} {body}, {w.const('i32', 143 << 23, wide)}")
    result = w.select(is_tiny, i32, tiny, w.select(is_huge, i32, huge, plain))
    whole = w.op(f"or {i32} {result}, {_shift(w, 'lshr', sign, 16, wide)}")
    return w.op(f"trunc {i32} {whole} to {i16}")
