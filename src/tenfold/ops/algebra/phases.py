"""Convolutions of an input with spaces between its elements (transposed ones), by phases.

Elements of the result whose places leave the same rest, divided by the spacing, are a phase. They
meet the same part of the kernel, and see the input without its spaces: so a phase is a convolution
of its own, and none of its products has a zero that was put there. Phases that see the input at
the same places are one convolution, their parts of the kernel side by side. What they give lies
phase by phase, and is then brought into order.
"""

from __future__ import annotations

from collections.abc import Mapping
from itertools import product
from math import prod
from typing import Any

from tenfold.frozen import frozen
from tenfold.ops.expression import Expression
from tenfold.types import I64, Shape

Given = Mapping[str, Any]
_MOST = 64  # phases


def has_phases(given: Given) -> bool:
    """Whether a convolution goes by phases: it has some, and along their axes neither strides nor
    spaces in the kernel."""
    along = [
        s == 1 and k == 1
        for d, s, k in zip(given["x_dilation"], given["strides"], given["dilation"], strict=True)
        if d > 1
    ]
    return bool(along) and all(along) and prod(given["x_dilation"]) <= _MOST


@frozen
class _Phase:
    """Where its part of the kernel begins, how many places that has, and what lies around the
    input."""

    first: Shape
    taps: Shape
    low: Shape
    high: Shape


def by_phases(x: Expression, w: Expression, given: Given) -> Expression:
    """The convolution, from those of its phases."""
    apart: Shape = given["x_dilation"]
    groups = given["groups"]
    out = _extents(x.shape[2:], w.shape[2:], given)
    each = tuple(-(-m // d) for m, d in zip(out, apart, strict=True))  # of a phase
    phases = [
        _phase(rests, each, x.shape[2:], w.shape[2:], given)
        for rests in product(*(range(d) for d in apart))
    ]
    alike: dict[tuple[Shape, Shape, Shape], list[int]] = {}
    for number, one in enumerate(phases):
        alike.setdefault((one.taps, one.low, one.high), []).append(number)
    batch, share = x.shape[0], w.shape[0] // groups
    whole = (batch, groups, len(phases), share, *each)
    made = None if len(alike) == 1 else x.number(0).broadcast(*whole)
    for (taps, low, high), numbers in alike.items():
        if 0 in taps:  # they meet nothing of the kernel
            made = x.number(0).broadcast(*whole) if made is None else made
            continue
        parts = [
            w.op("slice", starts=(0, 0, *phases[n].first), stops=w.shape, steps=(1, 1, *apart))
            .reshape(groups, 1, share, w.shape[1], *taps)
            for n in numbers
        ]  # fmt: skip
        kernel = parts[0].op("concatenate", *parts[1:], axis=1) if len(parts) > 1 else parts[0]
        kernel = kernel.reshape(groups * len(numbers) * share, w.shape[1], *taps)
        some = padded(x, low, high).op(
            "conv_valid",
            kernel,
            strides=given["strides"],
            dilation=given["dilation"],
            groups=groups,
        )
        some = some.reshape(batch, groups, len(numbers), share, *each)
        if made is None:
            made = some
            continue
        for at, n in enumerate(numbers):
            starts = [x.number(0).cast(I64)] * len(whole)
            starts[2] = starts[2].number(n)
            made = made.op("dynamic_update", some.part(2, at, at + 1), *starts)
    assert made is not None
    return _in_order(made.reshape(batch, groups, *apart, share, *each), out, apart)


def padded(x: Expression, low: Shape, high: Shape, apart: Shape | None = None) -> Expression:
    """An input with zeros around it, and with spaces between its elements."""
    inner = (0,) * len(low) if apart is None else tuple(d - 1 for d in apart)
    if not any((*low, *high, *inner)):
        return x
    edge = (0, 0)
    return x.op("pad", 0, low=(*edge, *low), high=(*edge, *high), interior=(*edge, *inner))


def _extents(space: Shape, kernel: Shape, given: Given) -> Shape:
    """What the result has along each axis."""
    names = ("x_dilation", "low", "high", "strides", "dilation")
    made = []
    for n, k, d, low, high, s, spaced in zip(
        space, kernel, *(given[name] for name in names), strict=True
    ):
        grown, span = n + max(n - 1, 0) * (d - 1) + low + high, (k - 1) * spaced + 1
        made.append((grown - span) // s + 1 if grown >= span else 0)
    return tuple(made)


def _phase(rests: Shape, each: Shape, space: Shape, kernel: Shape, given: Given) -> _Phase:
    rows = []
    for rest, m, n, k, d, low, high in zip(
        rests, each, space, kernel, given["x_dilation"], given["low"], given["high"], strict=True
    ):
        if d == 1:
            rows.append((0, k, low, high))
            continue
        first = min((low - rest) % d, k)
        taps = -(-(k - first) // d)
        before = (low - rest - first) // d
        rows.append((first, taps, before, m + taps - 1 - n - before))
    first, taps, low, high = zip(*rows, strict=True)
    return _Phase(first, taps, low, high)


def _in_order(phases: Expression, out: Shape, apart: Shape) -> Expression:
    """What lies phase by phase, place by place: batch, groups, *phases, channels, *places."""
    rank = len(out)
    batch, groups, share = phases.shape[0], phases.shape[1], phases.shape[2 + rank]
    order = [0, 1, 2 + rank]
    for axis in range(rank):
        order += [3 + rank + axis, 2 + axis]
    each = phases.shape[3 + rank :]
    made = phases.op("transpose", axes=order)
    grown = tuple(m * d for m, d in zip(each, apart, strict=True))
    made = made.reshape(batch, groups * share, *grown)
    for axis, (extent, needed) in enumerate(zip(grown, out, strict=True), 2):
        if extent != needed:
            made = made.part(axis, 0, needed)
    return made
