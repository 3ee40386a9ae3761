"""Convolution: tn.conv, tn.conv_transpose, np.convolve and np.correlate."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from tenfold.errors import ShapeError, ValueProblem
from tenfold.trace.array import Array
from tenfold.trace.operand import dtype_key
from tenfold.trace.surface.anywhere import anywhere
from tenfold.trace.surface.emit import cast, emit, fail, is_array, on, shape_of, static_int, traced
from tenfold.trace.surface.ufuncs.composed import number
from tenfold.trace.surface.ufuncs.promotion import common
from tenfold.types import BOOL, F32, I64, KIND

Padding = tuple[tuple[int, int], ...]


def per_axis(name: str, what: str, value: Any, rank: int) -> tuple[int, ...]:
    """One number for all axes, or one for each."""
    made = shape_of(value, f"{name}: {what}")
    if not isinstance(value, (Sequence, np.ndarray)):
        made = made * rank
    if len(made) != rank:
        fail(ShapeError, f"{name}: {what} {made} for {rank} axes", "give one entry for each axis")
    return made


def padding_of(
    name: str, padding: Any, shape: Sequence[int], window: Sequence[int], strides: Sequence[int]
) -> Padding:
    """How much is put before and behind each axis: 'valid', 'same', a number, or pairs.

    With 'same' there is a window for every stride, the odd element of padding behind.
    """
    if padding == "valid":
        return ((0, 0),) * len(shape)
    if padding == "same":
        made = []
        for n, w, s in zip(shape, window, strides, strict=True):
            total = max((-(-n // s) - 1) * s + w - n, 0)
            made.append((total // 2, total - total // 2))
        return tuple(made)
    if isinstance(padding, str):
        fail(ValueProblem, f"{name}: padding={padding!r}", "say 'valid', 'same' or give numbers")
    if isinstance(padding, (Sequence, np.ndarray)):
        pairs = [p if isinstance(p, (Sequence, np.ndarray)) else (p, p) for p in padding]
        if len(pairs) != len(shape) or any(len(p) != 2 for p in pairs):
            fail(
                ShapeError,
                f"{name}: padding {padding} for {len(shape)} axes",
                "give a pair (before, behind) for each axis",
            )
        both = [[static_int(n, f"{name}: a padding") for n in pair] for pair in pairs]
        return tuple((a, b) for a, b in both)
    every = static_int(padding, f"{name}: the padding")
    return ((every, every),) * len(shape)


@anywhere
def conv(
    x: Any,
    w: Any,
    *,
    strides: Any = 1,
    padding: Any = "valid",
    dilation: Any = 1,
    x_dilation: Any = 1,
    groups: int = 1,
) -> Array:
    """The convolution of x (batch, channels, *space) with a kernel w (out channels, channels,
    *space), over any number of spatial axes; the kernel is not turned round.

    `padding` is 'valid', 'same', a number, or a pair (before, behind) for each axis; `dilation`
    spaces out the kernel, `x_dilation` the input; with `groups`, channels are split into so many
    groups, each with its own out channels. Which way it is computed follows from the shapes alone,
    and stands in `plan.explain()`.

    >>> import numpy as np, tenfold as tn
    >>> x, w = np.arange(5.0).reshape(1, 1, 5), np.array([[[1.0, 0.0, -1.0]]])
    >>> tn.conv(x, w, padding="same")
    array([[[-1., -2., -2., -2.,  3.]]])
    """
    left, right = _alike(
        "conv", x, w, "give (batch, channels, *space) and (out channels, channels, *space)"
    )
    rank = left.ndim - 2
    steps = per_axis("conv", "strides", strides, rank)
    spaced = per_axis("conv", "dilation", dilation, rank)
    apart = per_axis("conv", "x_dilation", x_dilation, rank)
    space = [n + max(n - 1, 0) * (d - 1) for n, d in zip(left.shape[2:], apart, strict=True)]
    window = [(k - 1) * d + 1 for k, d in zip(right.shape[2:], spaced, strict=True)]
    pairs = padding_of("conv", padding, space, window, steps)
    return emit(
        "conv",
        left,
        right,
        strides=steps,
        low=tuple(a for a, _ in pairs),
        high=tuple(b for _, b in pairs),
        x_dilation=apart,
        dilation=spaced,
        groups=static_int(groups, "conv: groups"),
    )


@anywhere
def conv_transpose(
    x: Any,
    w: Any,
    *,
    strides: Any = 1,
    padding: Any = 0,
    output_padding: Any = 0,
    dilation: Any = 1,
    groups: int = 1,
) -> Array:
    """The transposed convolution of x (batch, channels, *space) with a kernel w (channels, out
    channels of a group, *space): each element of x puts the kernel, times itself, into the result.

    It has the shape of what `tn.conv`, with the same kernel, strides, padding (numbers, or a pair
    for each axis), dilation and groups, made x of; where several have, `output_padding` says how
    many elements more there are behind.

    >>> import numpy as np, tenfold as tn
    >>> x, w = np.array([[[1.0, 2.0, 3.0]]]), np.array([[[1.0, 1.0, 0.5]]])
    >>> tn.conv_transpose(x, w, strides=2)
    array([[[1. , 1. , 2.5, 2. , 4. , 3. , 1.5]]])
    """
    name = "conv_transpose"
    left, right = _alike(
        name, x, w, "give (batch, channels, *space) and (channels, out channels, *space)"
    )
    rank, groups = left.ndim - 2, static_int(groups, f"{name}: groups")
    if groups < 1 or left.shape[1] % groups or left.shape[1] != right.shape[0]:
        fail(
            ShapeError,
            f"{name}: {left.type} and {right.type} do not meet in {groups} groups "
            f"({left.shape[1]} channels against {right.shape[0]})",
            "the kernel's first axis is x's channels, and groups divide them",
        )
    if padding == "same":
        fail(ValueProblem, f"{name}: padding='same'", "give numbers, or pairs (before, behind)")
    steps = per_axis(name, "strides", strides, rank)
    spaced = per_axis(name, "dilation", dilation, rank)
    more = per_axis(name, "output_padding", output_padding, rank)
    spans = [(k - 1) * d for k, d in zip(right.shape[2:], spaced, strict=True)]
    pairs = padding_of(name, padding, left.shape[2:], spans, steps)
    channels, each, *space = right.shape
    split = emit("reshape", right, shape=(groups, channels // groups, each, *space))
    swapped = emit("transpose", split, axes=(0, 2, 1, *range(3, 3 + rank)))
    kernel = emit("reshape", swapped, shape=(groups * each, channels // groups, *space))
    return emit(
        "conv",
        left,
        emit("reverse", kernel, axes=tuple(range(2, 2 + rank))) if rank else kernel,
        strides=(1,) * rank,
        low=tuple(span - a for span, (a, _) in zip(spans, pairs, strict=True)),
        high=tuple(span - b + n for span, (_, b), n in zip(spans, pairs, more, strict=True)),
        x_dilation=steps,
        dilation=spaced,
        groups=groups,
    )


def _alike(name: str, x: Any, w: Any, fix: str) -> tuple[Array, Array]:
    """Two arrays in their common dtype, with as many spatial axes."""
    x, w = (a if is_array(a) else traced(a) for a in (x, w))
    dtype = common((dtype_key(x), dtype_key(w)))
    left, right = traced(x, dtype), traced(w, dtype)
    if left.ndim < 2 or left.ndim != right.ndim:
        fail(
            ShapeError,
            f"{name}: {left.type} and {right.type} do not have the same spatial axes",
            fix,
        )
    return left, right


_MODES = {"valid": "valid", "same": "same", "full": "full", 0: "valid", 1: "same", 2: "full"}


def _slid(name: str, a: Array, v: Array, mode: Any) -> Array:
    """The sums of products of a and v as v slides along a, which is no shorter."""
    if mode not in _MODES:
        fail(ValueProblem, f"{name}: mode={mode!r}", "say 'full', 'same' or 'valid'")
    n, m = a.size, v.size
    low, high = {"valid": (0, 0), "full": (m - 1, m - 1), "same": (m // 2, m - m // 2 - 1)}[
        _MODES[mode]
    ]
    dtype = a.dtype
    if dtype == BOOL:
        a, v = cast(a, I64), cast(v, I64)
    middle = emit(
        "conv",
        emit("reshape", a, shape=(1, 1, n)),
        emit("reshape", v, shape=(1, 1, m)),
        strides=(1,),
        low=(0,),
        high=(0,),
        x_dilation=(1,),
        dilation=(1,),
        groups=1,
    )
    parts = [emit("reshape", middle, shape=(n - m + 1,))]
    if low:
        parts.insert(0, _beyond(a, v, -low, low))
    if high:
        parts.append(_beyond(a, v, n - m + 1, high))
    made = emit("concatenate", *parts, axis=0) if len(parts) > 1 else parts[0]
    return cast(made, dtype)


def _beyond(a: Array, v: Array, start: int, count: int) -> Array:
    """The sums where v reaches over an end of a: of what there is, for 0 times infinity is NaN."""
    places = emit("iota", dtype=I64, shape=(count, v.size), axis=0)
    places = emit("add", places, emit("iota", dtype=I64, shape=(count, v.size), axis=1))
    places = emit("add", places, number(start, I64))
    inside = emit(
        "and", emit("ge", places, number(0, I64)), emit("lt", places, number(a.size, I64))
    )
    wide = F32 if a.dtype.itemsize == 2 and KIND[a.dtype] == "f" else a.dtype
    taken = emit("gather", cast(a, wide), places, axes=(0,), at=0, mode="clip")
    products = emit("mul", taken, cast(v, wide))
    kept = emit("select", inside, products, number(0, wide))
    return cast(emit("reduce_sum", kept, axes=(1,)), a.dtype)


def _lines(name: str, a: Any, v: Any) -> tuple[Array, Array]:
    a, v = (x if is_array(x) else traced(x) for x in (a, v))
    dtype = common((dtype_key(a), dtype_key(v)))
    left, right = traced(a, dtype), traced(v, dtype)
    for x in (left, right):
        if x.ndim > 1:
            fail(
                ShapeError, f"{name}: {x.type} has more than one axis", "flatten it, or use tn.conv"
            )
        if not x.size:
            fail(ShapeError, f"{name}: {x.type} is empty", "give it at least one element")
    left, right = (emit("reshape", x, shape=(x.size,)) for x in (left, right))
    return left, right


@on(np.convolve)
def convolve(a: Any, v: Any, mode: Any = "full") -> Array:
    left, right = _lines("convolve", a, v)
    if right.size > left.size:
        left, right = right, left
    return _slid("convolve", left, emit("reverse", right, axes=(0,)), mode)


@on(np.correlate)
def correlate(a: Any, v: Any, mode: Any = "valid") -> Array:
    left, right = _lines("correlate", a, v)
    if KIND[right.dtype] == "c":
        right = emit("conj", right)
    if right.size > left.size:
        return emit("reverse", _slid("correlate", right, left, mode), axes=(0,))
    return _slid("correlate", left, right, mode)
