"""Intrinsics by name: what is called for them, and whether that asks for the launch."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from . import arithmetic as a
from . import warps
from .context import Context, Ints
from .errors import Inexact, Site, Undefined
from .instructions import Instruction
from .memory import CLUSTER, RANK, SHARED, WINDOW
from .types import BOOL, Float, Int, Struct, Type, Value, Vector, bits, element
from .values import check

_SUFFIX = re.compile(r"(\.(v\d+)?(i\d+|f\d+|bf16|p\d+))+$")
_PLACE = re.compile(
    r"llvm\.nvvm\.read\.ptx\.sreg\."
    r"((?:tid|ntid|ctaid|nctaid|clusterid|nclusterid|cluster[._]ctaid|cluster[._]nctaid)\.[xyz]"
    r"|laneid|warpsize|cluster[._]ctarank)$"
)
_SHUFFLE = re.compile(r"llvm\.nvvm\.shfl\.sync\.(bfly|idx|down|up)\.(?:i32|f32)(p?)$")
_VOTE = re.compile(r"llvm\.nvvm\.vote\.(any|all|uni|ballot)\.sync$")
_REDUX = re.compile(r"llvm\.nvvm\.redux\.sync\.(add|min|max|umin|umax|and|or|xor)$")
_APPROXIMATE = re.compile(
    r"llvm\.nvvm\.(ex2|lg2|rcp|sqrt|rsqrt|sin|cos|tanh|div)\.(?:approx|full)(\.ftz)?(\.\w+)?$"
)
_NOTHING = re.compile(
    r"llvm\.nvvm\.griddepcontrol\.(wait|launch\.dependents)$"
    r"|llvm\.lifetime\.(start|end)|llvm\.experimental\.noalias\.scope\.decl$|llvm\.prefetch"
    r"|asm griddepcontrol\.(wait|launch_dependents);?$"
)
_FENCE = re.compile(r"llvm\.nvvm\.(membar\.(cta|gl|sys)|fence\.[\w.]+)$")
_CLUSTER_ARRIVE = re.compile(r"llvm\.nvvm\.barrier\.cluster\.arrive(\.relaxed)?(\.aligned)?$")
_BITWISE = re.compile(r"asm (xor|and)\.b(?:32|64) \$0, \$1, (0x[0-9A-F]+);$")
# What is asked for where it is rounded further: here off by one unit, so that else it shows.
_CLOSE: dict[str, Callable[..., Value]] = {
    "llvm.nvvm.div.full": np.divide,
    "llvm.nvvm.sqrt.approx.f": np.sqrt,
}
_MULHI = {"i": True, "ui": False, "ll": True, "ull": False}


@dataclass(frozen=True)
class Intrinsic:
    function: Callable[..., Any]
    context: bool = False  # it takes launch, threads and site before its operands


_FLOAT: dict[str, Callable[..., Value]] = {
    "fma": a.fma,
    "sqrt": np.sqrt,
    "fabs": a.fabs,
    "floor": np.floor,
    "ceil": np.ceil,
    "trunc": np.trunc,
    "nearbyint": np.rint,
    "rint": np.rint,
    "roundeven": np.rint,
    "copysign": a.copysign,
    "minimum": a.minimum,
    "maximum": a.maximum,
    "minnum": a.minnum,
    "maxnum": a.maxnum,
    "minimumnum": a.minnum,
    "maximumnum": a.maxnum,
    "arithmetic.fence": a.same,
    "canonicalize": a.same,
    "vector.reduce.fmax": a.folded(a.maxnum),
    "vector.reduce.fmin": a.folded(a.minnum),
    "vector.reduce.fmaximum": a.folded(a.maximum),
    "vector.reduce.fminimum": a.folded(a.minimum),
    "vector.reduce.fadd": a.folded_from(np.add),
    "vector.reduce.fmul": a.folded_from(np.multiply),
}
_INTEGER: dict[str, Callable[..., Value]] = {
    "umin": np.minimum,
    "umax": np.maximum,
    "smin": a.signed(np.minimum),
    "smax": a.signed(np.maximum),
    "ctpop": a.count_ones,
    "bswap": a.byte_swap,
    "bitreverse": a.reverse_bits,
    "fshl": a.funnel_left,
    "fshr": a.funnel_right,
    "expect": lambda x, _: x,
    "vector.reduce.add": a.reduced(np.add),
    "vector.reduce.mul": a.reduced(np.multiply),
    "vector.reduce.umin": a.reduced(np.minimum),
    "vector.reduce.umax": a.reduced(np.maximum),
    "vector.reduce.smin": a.reduced(np.minimum, sign=True),
    "vector.reduce.smax": a.reduced(np.maximum, sign=True),
    **{f"{what}.sat": a.saturating(what) for what in ("uadd", "sadd", "usub", "ssub")},
    **{
        f"{what}.with.overflow": a.with_overflow(what)
        for what in ("uadd", "sadd", "usub", "ssub", "umul", "smul")
    },
}
_LOGIC: dict[str, Callable[..., Value]] = {
    "vector.reduce.and": a.reduced(np.bitwise_and),
    "vector.reduce.or": a.reduced(np.bitwise_or),
    "vector.reduce.xor": a.reduced(np.bitwise_xor),
}


def intrinsic(i: Instruction) -> Intrinsic:
    """What a call of an intrinsic means."""
    name: str = i.data
    made = _of_device(name, i) or _of_arithmetic(name, i)
    if made is None:
        raise i.site.problem(f"a call of {name!r}, which is not known")
    return made


def _of_device(name: str, i: Instruction) -> Intrinsic | None:
    if found := _PLACE.match(name):
        place = found[1].replace("cluster.", "cluster_")
        return Intrinsic(lambda ctx, rows, site: ctx.place(place, rows), True)
    if found := _SHUFFLE.match(name):
        if isinstance(i.type, Struct) != bool(found[2]):
            raise i.site.problem("a shuffle of this type")
        return Intrinsic(partial(warps.shuffle, found[1], bool(found[2])), True)
    if found := _VOTE.match(name):
        return Intrinsic(partial(warps.vote, found[1]), True)
    if found := _REDUX.match(name):
        return Intrinsic(partial(warps.reduce, found[1]), True)
    if name in _CLOSE:
        return Intrinsic(a.computing(a.beside(_CLOSE[name])))
    if found := _APPROXIMATE.match(name):
        function = a.approximate(found[1], bool(found[2]))
        return Intrinsic(partial(_approximate, name, function), True)
    if name == "asm shr.s16 $0, $1, 15;":
        return Intrinsic(lambda x: (x.view(np.int16) >> np.int16(15)).view(np.uint16))
    if name == "cudaGraphSetConditional":
        return Intrinsic(_set_condition, True)
    if _NOTHING.match(name):
        return Intrinsic(lambda *_: None)
    if _FENCE.match(name):
        return Intrinsic(fence, True)
    if _CLUSTER_ARRIVE.match(name):
        return Intrinsic(warps.arrive, True)
    if name == "llvm.nvvm.mapa.shared.cluster":
        return Intrinsic(_mapa, True)
    if name.startswith("llvm.nvvm.mulhi."):
        if name[16:] not in _MULHI:
            return None
        return Intrinsic(a.signed_high_product if _MULHI[name[16:]] else a.high_product)
    return None


def _of_arithmetic(name: str, i: Instruction) -> Intrinsic | None:
    if found := _BITWISE.match(name):
        function = a.flipped if found[1] == "xor" else a.masked
        return Intrinsic(partial(function, mask=int(found[2], 16)))
    if not name.startswith("llvm."):
        return None
    base = _SUFFIX.sub("", name[5:])
    if base == "assume":
        return Intrinsic(_assume, True)
    ty: Type = element(i.operands[0].type) if i.operands else i.type
    if base in ("fptosi.sat", "fptoui.sat") and isinstance(ty, Float):
        return Intrinsic(a.to_integer_saturated(bits(i.type), base == "fptosi.sat"))
    if isinstance(ty, Float):
        if base in ("copysign", "arithmetic.fence"):  # they move bits
            return Intrinsic(_FLOAT[base])
        return Intrinsic(a.computing(_FLOAT[base])) if base in _FLOAT else None
    if not isinstance(ty, Int):
        return None
    if base in _LOGIC:
        return Intrinsic(_LOGIC[base])
    if ty == BOOL:  # true is -1, and sums of bools are not NumPy's
        return Intrinsic(_INTEGER[base]) if base in ("umin", "umax", "expect") else None
    if base in ("ctlz", "cttz", "abs"):
        function = {"ctlz": a.leading_zeros, "cttz": a.trailing_zeros, "abs": a.magnitude}[base]
        poison = 1 << (ty.bits - 1) if base == "abs" else 0
        wide = int(isinstance(i.type, Vector))
        return Intrinsic(partial(_unless, function, poison, base, wide), True)
    return Intrinsic(_INTEGER[base]) if base in _INTEGER else None


def fence(ctx: Context, rows: Ints, site: Site) -> None:
    if ctx.races:
        ctx.races.fence(rows)


def _unless(
    function: Callable[[Value], Value],
    poison: int,
    name: str,
    rank: int,
    ctx: Context,
    rows: Ints,
    site: Site,
    x: Value,
    excluded: Value,
) -> Value:
    """A function with a flag: if that holds, one operand gives poison."""
    if excluded.any():
        check(ctx, rows, site, rank, x == x.dtype.type(poison), f"{name} of {poison} is poison")
    return function(x)


def _assume(ctx: Context, rows: Ints, site: Site, holds: Value) -> None:
    check(ctx, rows, site, 0, ~holds, "what is assumed does not hold")


def _approximate(
    name: str,
    function: Callable[..., Value],
    ctx: Context,
    rows: Ints,
    site: Site,
    *args: Value,
) -> Value:
    if not ctx.approximate:
        raise ctx.fault(Inexact, site, rows[0], f"not exact: {name}, unless approximate=True")
    return function(*args)


def _set_condition(ctx: Context, rows: Ints, site: Site, handle: Value, value: Value) -> None:
    """The condition of a node that comes later: the last thread has its way."""
    ctx.memory.conditions[int(np.ravel(handle)[-1])] = int(np.ravel(value)[-1])


def _mapa(ctx: Context, rows: Ints, site: Site, pointer: Value, block: Value) -> Value:
    """The address of shared memory in another block of the cluster."""
    check(ctx, rows, site, 0, block >= ctx.cluster, f"no such block in a cluster of {ctx.cluster}")
    wrong = pointer >> np.uint64(WINDOW) != SHARED >> WINDOW
    check(ctx, rows, site, 0, wrong, "an address that is not of shared memory", Undefined)
    offset = pointer & np.uint64((1 << RANK) - 1)
    return offset | block.astype(np.uint64) << np.uint64(RANK) | np.uint64(CLUSTER)
