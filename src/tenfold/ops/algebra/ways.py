"""Ways of a convolution, chosen by its shape alone.

- Sixteen-bit floats are computed in f32, short integers in i32. Padding comes before it, as an op
  of its own, which joins what is computed just before.
- An input with spaces between its elements (a transposed convolution) goes by `phases`, unless
  strides or spaces in the kernel lie along the same axis: then it is padded within, too.
- What remains is `conv_valid`: a kernel where it is small (`SMALL` multiplications), or where a
  group has no more than `FEW` out channels, a sum fewer than `TAPS` terms and the last stride is 1;
  else a routine. That goes directly where a group has so few out channels, a sum no more than
  `TERMS` terms, a line of the result no less than `LINE` elements and the last stride is 1 or 2,
  since packing would take longer than multiplying; and else in panels.
- Complex numbers, and convolutions over no axes or more than three, are contractions of windows.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import prod
from typing import Any

from tenfold.graph.build import Builder
from tenfold.ops.algebra.phases import by_phases, has_phases, padded
from tenfold.ops.algebra.products import SMALL
from tenfold.ops.expression import Expression
from tenfold.types import SHORT, TensorType

Given = Mapping[str, Any]
DTYPES = ("f32", "f64", "i32", "i64", "u32", "u64")
AXES = 3  # spatial axes of a routine, at most
FEW = 2  # out channels of a group
TERMS = 512  # that are added up in one go
TAPS = 16  # terms, fewer of which a kernel has written out
LINE = 7  # elements along the last axis
_WIDER = {"f16": "f32", "bf16": "f32", "i8": "i32", "i16": "i32", "u8": "u32", "u16": "u32"}


def has_routine(x: TensorType) -> bool:
    """Whether there may be a routine for such an input."""
    return SHORT[x.dtype] in DTYPES and 1 <= x.rank - 2 <= AXES


def inline(types: Sequence[TensorType], result: TensorType, given: Given) -> bool:
    """Whether a convolution is better as a kernel."""
    x, w = types
    terms = prod(w.shape[1:])
    if not has_routine(x) or result.size * terms <= SMALL:
        return True
    few = w.shape[0] // given["groups"] <= FEW
    return bool(few and terms < TAPS and given["strides"][-1] == 1)


def is_direct(types: Sequence[TensorType], result: TensorType, given: Given) -> bool:
    """Whether a routine goes directly; else it goes in panels."""
    _, w = types
    return bool(
        w.shape[0] // given["groups"] <= FEW
        and prod(w.shape[1:]) <= TERMS
        and result.shape[-1] >= LINE
        and given["strides"][-1] <= 2
    )


def words(types: Sequence[TensorType], result: TensorType, given: Given) -> str:
    """What a routine multiplies, in words."""
    groups, (_, w) = given["groups"], types
    how = "directly" if is_direct(types, result, given) else "in panels"
    several = f"{groups} groups of " if groups > 1 else ""
    columns = result.size // max(result.shape[1], 1)
    return (
        f"{how}: {several}{w.shape[0] // groups} out channels by {prod(w.shape[1:])} terms by "
        f"{columns} columns"
    )


def compose(builder: Builder, inputs: Sequence[int], given: Given) -> tuple[int, ...]:
    """A convolution from other ops."""
    x, w = (Expression(builder, v) for v in inputs)
    short = SHORT[x.dtype]
    wide = _WIDER.get(short)
    if wide is not None:
        made = _conv(x.op("cast", dtype=wide), w.op("cast", dtype=wide), given)
        return (made.op("cast", dtype=short).value,)
    return (_conv(x, w, given).value,)


def _conv(x: Expression, w: Expression, given: Given) -> Expression:
    if has_routine(x.type) and has_phases(given):
        return by_phases(x, w, given)
    seen = padded(x, given["low"], given["high"], given["x_dilation"])
    if not has_routine(x.type):
        return _contraction(seen, w, given)
    plain = {key: given[key] for key in ("strides", "dilation", "groups")}
    return seen.op("conv_valid", w, **plain)


def _contraction(x: Expression, w: Expression, given: Given) -> Expression:
    """A contraction of the windows of a padded input."""
    groups, one = given["groups"], (1, 1)
    (n, _, *_), (o, c, *kernel) = x.shape, w.shape
    rank = len(kernel)
    seen = x.op(
        "windows",
        window=(*one, *kernel),
        strides=(*one, *given["strides"]),
        dilation=(*one, *given["dilation"]),
    )
    out = seen.shape[2 : 2 + rank]
    seen = seen.reshape(n, groups, c, *out, *kernel)
    split = w.reshape(groups, o // groups, c, *kernel)
    inner_axes = tuple(range(3 + rank, 3 + 2 * rank))
    made = seen.op(
        "contract",
        split,
        lhs_contract=(2, *inner_axes),
        rhs_contract=(2, *range(3, 3 + rank)),
        lhs_batch=(1,),
        rhs_batch=(0,),
    )  # groups, n, *out, out channels of a group
    last = rank + 2
    made = made.op("transpose", axes=(1, 0, last, *range(2, last)))
    return made.reshape(n, o, *out)
