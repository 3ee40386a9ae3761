"""Legal elementwise instructions as WGSL, each as `kernel/ir/legal` specifies it, whatever drivers
make of floats: see `wgsl/writer` for barriers.

Operands are names or constants, so they may be written several times.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence

from tenfold.backends.webgpu.wgsl.casts import bitcast, cast
from tenfold.backends.webgpu.wgsl.types import (
    REGISTER,
    WIDTH,
    amount,
    floating,
    hidden,
    narrowed,
)
from tenfold.backends.webgpu.wgsl.writer import Writer
from tenfold.errors import Unsupported

_SIGNS = {"add": "+", "sub": "-", "mul": "*", "div": "/", "and": "&", "or": "|", "xor": "^"}
_COMPARED = {"eq": "==", "lt": "<", "le": "<=", "gt": ">", "ge": ">="}
# Of && and || naga makes branches.
_LOGIC = {"and": "&", "or": "|", "xor": "!=", "eq": "==", "ne": "!="}
_ARITHMETIC = ("add", "sub", "mul", "div", "fma", "sqrt")
_NAME = re.compile(r"(?!true|false)[a-z]\w*(?:\[\d\])?")
_CONVERSIONS = {
    "from_half": "unpack2x16float({0} + Z.x).x",
    "to_half": "to_half({0})",
    "from_bfloat": "bitcast<f32>({0} << 16u)",
    "to_bfloat": "to_bfloat({0})",
}


def instruction(w: Writer, op: str, dtype: str, sources: Sequence[str], args: Sequence[str]) -> str:
    """The name of what an instruction gives."""
    text = expression(w, op, dtype, sources, args)
    name = w.let(REGISTER[dtype], text)
    note(w, op, dtype, sources, args, name)
    return name


def note(
    w: Writer, op: str, dtype: str, sources: Sequence[str], args: Sequence[str], name: str
) -> None:
    """Remember what drivers could see through."""
    if floating(dtype):
        passed = op == "select" and any(a in w.computed for a in args)
        if op in _ARITHMETIC or op in ("cast", "neg", "abs") or passed:  # -(-x) is seen to be x
            w.computed.add(name)
    if op in (*_COMPARED, "ne") and floating(sources[0]):
        w.compared[name] = tuple(args)


def expression(w: Writer, op: str, dtype: str, sources: Sequence[str], args: Sequence[str]) -> str:
    source = sources[0]
    if not any(map(_NAME.fullmatch, args)):
        args = hidden(source, args[0]), *args[1:]  # naga would compute it, and knows not all
    if op in _CONVERSIONS:
        return _CONVERSIONS[op].format(*args)
    if op == "select":
        return _select(w, dtype, args)
    if op == "cast":
        return cast(w, source, dtype, args[0])
    if op == "bitcast":
        return bitcast(source, dtype, args[0])
    if source == "bool":
        return _logic(w, op, args)
    made = (_float if floating(source) else _integer)(w, op, source, args)
    if made is None:
        raise Unsupported(f"{op} of {', '.join(sources)} in WGSL: it is no legal instruction")
    return made


def _select(w: Writer, dtype: str, args: Sequence[str]) -> str:
    """A choice between what was compared looks like a minimum, which drops NaN."""
    condition, yes, no = args
    if floating(dtype):
        among = w.compared.get(condition, ())
        yes, no = (f"k{dtype[1:]}({x})" if x in among else x for x in (yes, no))
    return f"select({no}, {yes}, {condition})"


def _logic(w: Writer, op: str, args: Sequence[str]) -> str:
    """What is not less need not be greater or equal: of a comparison of floats the driver is not
    to see that it is negated."""
    if op == "xor" and any(a in w.compared for a in args):
        args = [f"(Z.x == {0 if a == 'true' else 1}u)" if a in ("true", "false") else a
                for a in args]  # fmt: skip
    if op not in _LOGIC:
        raise Unsupported(f"{op} of bools in WGSL: it is no legal instruction")
    return f"({args[0]} {_LOGIC[op]} {args[1]})"


def _integer(w: Writer, op: str, dtype: str, args: Sequence[str]) -> str | None:
    a, b = (*args, "")[:2]
    if op in _SIGNS:
        return narrowed(dtype, f"({a} {_SIGNS[op]} {b})")
    if op == "rem":
        # `%` of negative integers is undefined in Vulkan, and wrong.
        return f"({a} % {b})" if dtype[0] == "u" else f"({a} - ({a} / {b}) * {b})"
    if op in ("shl", "shr"):
        return narrowed(dtype, f"({a} {'<<' if op == 'shl' else '>>'} {amount(b)})")
    if op in ("min", "max"):
        return f"{op}({a}, {b})"
    if op == "popcount":
        return _popcount(dtype, a)
    if op == "ne":
        return f"({a} != {b})"
    return f"({a} {_COMPARED[op]} {b})" if op in _COMPARED else None


def _popcount(dtype: str, a: str) -> str:
    bits, ty = WIDTH[dtype], REGISTER[dtype]
    if bits == 64:
        raw = f"bitcast<u64>({a})"
        return f"{ty}(countOneBits(u32({raw} & 0xfffffffflu)) + countOneBits(u32({raw} >> 32u)))"
    if bits < 32 and dtype[0] == "i":
        return f"i32(countOneBits(bitcast<u32>({a}) & {(1 << bits) - 1}u))"
    return f"countOneBits({a})"


def _float(w: Writer, op: str, dtype: str, args: Sequence[str]) -> str | None:
    simple = _SIMPLE.get(op)
    if simple is not None:
        return simple(w, dtype, *args)
    if op in ("eq", "ne") and args[0] == args[1]:
        return is_nan(dtype, args[0], op == "eq")
    if op not in ("add", "sub", "mul", "div", "fma", "ne", *_COMPARED):
        return None
    kept = [w.kept(dtype, a) for a in args]
    if op == "fma":
        return f"fma({', '.join(kept)})"
    if op in ("sub", "div", "lt", "gt", "le", "ge") and (
        args[1] in w.computed or args[0] == args[1]
    ):
        kept[1] = _beside(dtype, args[1])  # equal ones are not 0 and 1 where they are not finite
    a, b = kept
    if op == "ne":
        return f"(!({a} == {b}))"  # what naga makes of != is false for NaN
    if op == "div" and dtype == "f32" and w.target.fma:
        return f"div32({a}, {b})"
    return f"({a} {_SIGNS.get(op) or _COMPARED[op]} {b})"


def _beside(dtype: str, x: str) -> str:
    """The same by another barrier than `kept` has: it is not seen to be equal to that."""
    bits, zero = ("u32", "Z.y") if dtype == "f32" else ("u64", "u64(Z.y)")
    return f"bitcast<{dtype}>(bitcast<{bits}>({x}) + {zero})"


def is_nan(dtype: str, x: str, negated: bool = False) -> str:
    """By its bits: drivers may think there is none."""
    sign = "<=" if negated else ">"
    if dtype == "f32":
        return f"((bitcast<u32>({x}) & 0x7fffffffu) {sign} 0x7f800000u)"
    return f"((bitcast<u64>({x}) & 0x7ffffffffffffffflu) {sign} 0x7ff0000000000000lu)"


def _signs(dtype: str, sign: str, mask: int) -> str:
    """Bits of a float changed."""
    suffix, bits = ("u", "u32") if dtype == "f32" else ("lu", "u64")
    return f"bitcast<{dtype}>(bitcast<{bits}>({{0}}) {sign} {mask:#x}{suffix})"


def _neg(w: Writer, dtype: str, x: str) -> str:
    return _signs(dtype, "^", 1 << WIDTH[dtype] - 1).format(x)


def _abs(w: Writer, dtype: str, x: str) -> str:
    return _signs(dtype, "&", (1 << WIDTH[dtype] - 1) - 1).format(x)


def _sqrt(w: Writer, dtype: str, x: str) -> str:
    called = "sqrt32" if dtype == "f32" and w.target.fma else "sqrt"
    return f"{called}({w.kept(dtype, x)})"


def _whole(op: str) -> Callable[[Writer, str, str], str]:
    def text(w: Writer, dtype: str, x: str) -> str:
        own = dtype == "f64" and op in ("trunc", "round") and not w.target.f64_trunc
        return f"{op}{'64' if own else ''}({w.kept(dtype, x)})"

    return text


_SIMPLE: dict[str, Callable[..., str]] = {
    "neg": _neg,
    "abs": _abs,
    "sqrt": _sqrt,
    **{op: _whole(op) for op in ("floor", "ceil", "trunc", "round")},
}
