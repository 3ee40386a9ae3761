"""Element generators: how one element of a result is computed from elements of the inputs.

A generator is handed a Site. It yields a Read for each element it needs, is sent the value, and
returns the value of its own element. Nothing here recurses: whoever drives it keeps a stack.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from tenfold.frozen import frozen
from tenfold.kernel.ir.index import ZERO, Index, flat, strides, unflatten
from tenfold.types import SHORT, Shape, TensorType, parse_type

if TYPE_CHECKING:
    from tenfold.kernel import Builder

Position = tuple[Index, ...]


@frozen
class Site:
    """Where an element is wanted.

    `position` has one index for each axis of the result; `types` are the inputs'. `stage` is
    one more than the number of reductions that lie one below the other in the inputs.
    `condition` is what the reader asked under: where it fails, the element does not count.
    """

    kernel: Builder
    position: Position
    types: Sequence[TensorType]
    attributes: Mapping[str, Any]
    stage: int = 1
    condition: int | None = None


@frozen
class Read:
    """A wish for one element of an input; where the condition fails it is not touched."""

    input: int
    position: Position
    condition: int | None = None


Generate = Generator[Read, int, int]

# Bits of a kernel's fault: what a row's reference raises as IndexProblem or ValueProblem.
OUT_OF_RANGE, NEGATIVE_POWER, NOT_FINITE, REFUSED = 0, 1, 2, 3


def _narrowed(position: Position, shape: Shape) -> Position:
    """The position in an input that broadcasts: its own axes, 0 along those of extent 1."""
    own = position[len(position) - len(shape) :]
    return tuple(ZERO if extent == 1 else p for p, extent in zip(own, shape, strict=True))


def _checked(site: Site, holds: int, code: int) -> None:
    """Note a fault where a condition fails for an element that counts."""
    if site.condition is not None:
        idle = site.kernel.op("not", "bool", site.condition)
        holds = site.kernel.op("or", "bool", holds, idle)
    site.kernel.check(holds, code)


def power(site: Site) -> Generate:
    """One instruction, with a check that no integer is raised to a negative power."""
    kernel, short = site.kernel, SHORT[site.types[0].dtype]
    values = []
    for i, type in enumerate(site.types):
        values.append((yield Read(i, _narrowed(site.position, type.shape))))
    if site.types[0].kind == "i":
        holds = kernel.op("ge", "bool", values[1], kernel.const(short, 0))
        _checked(site, holds, NEGATIVE_POWER)
    return kernel.op("pow", short, *values)


def finite(site: Site) -> Generate:
    """The value itself, with a check that it is no NaN and not infinite."""
    value = yield Read(0, site.position)
    _checked(site, site.kernel.op("isfinite", "bool", value), NOT_FINITE)
    return value


def refuse(site: Site) -> Generate:
    """The bool itself, with a check that it does not hold."""
    value = yield Read(0, site.position)
    _checked(site, site.kernel.op("not", "bool", value), REFUSED)
    return value


# Choosing and casting.


def select(site: Site) -> Generate:
    values = []
    for i, type in enumerate(site.types):
        values.append((yield Read(i, _narrowed(site.position, type.shape))))
    return site.kernel.select(*values)


def cast(site: Site) -> Generate:
    value = yield Read(0, site.position)
    return site.kernel.cast(value, site.attributes["dtype"])


def bitcast(site: Site) -> Generate:
    value = yield Read(0, site.position)
    return site.kernel.bitcast(value, site.attributes["dtype"])


# Constants.


def constant(site: Site) -> Generate:
    """A literal; where elements differ, a choice by position, for constants are small."""
    type = parse_type(site.attributes["type"])
    array = np.frombuffer(site.attributes["data"], type.dtype)
    kernel, short = site.kernel, SHORT[type.dtype]
    at = flat(site.position, strides(type.shape))
    value = kernel.literal(short, array[-1]) if array.size else kernel.const(short, 0)
    for i in range(array.size - 2, -1, -1):
        if array[i : i + 1].tobytes() != array[i + 1 : i + 2].tobytes():
            below = kernel.inside(at, 0, i + 1)
            value = kernel.select(below, kernel.literal(short, array[i]), value)
    return value
    yield


def iota(site: Site) -> Generate:
    kernel, position = site.kernel, site.position
    return kernel.cast(kernel.index(position[site.attributes["axis"]]), site.attributes["dtype"])
    yield


# Shapes: the element of an input at another position.


def reshape(site: Site) -> Generate:
    at = flat(site.position, strides(site.attributes["shape"]))
    return (yield Read(0, unflatten(at, site.types[0].shape)))


def transpose(site: Site) -> Generate:
    source = dict(zip(site.attributes["axes"], site.position, strict=True))
    return (yield Read(0, tuple(source[axis] for axis in range(len(source)))))


def broadcast(site: Site) -> Generate:
    return (yield Read(0, _narrowed(site.position, site.types[0].shape)))


def slice(site: Site) -> Generate:
    starts, steps = site.attributes["starts"], site.attributes["steps"]
    rows = zip(site.position, starts, steps, strict=True)
    return (yield Read(0, tuple(p * step + start for p, start, step in rows)))


def reverse(site: Site) -> Generate:
    axes, shape = site.attributes["axes"], site.types[0].shape
    source = (
        -p + (extent - 1) if axis in axes else p
        for axis, (p, extent) in enumerate(zip(site.position, shape, strict=True))
    )
    return (yield Read(0, tuple(source)))


def pad(site: Site) -> Generate:
    kernel, given = site.kernel, site.attributes
    condition: int | None = None
    source = []
    rows = zip(site.position, site.types[0].shape, given["low"], given["interior"], strict=True)
    for p, extent, low, interior in rows:
        step = interior + 1
        inner = p - low
        within = kernel.inside(inner, 0, (extent - 1) * step + 1 if extent else 0)
        if interior:
            within = kernel.op("and", "bool", within, kernel.inside(inner % step, 0, 1))
        condition = kernel.both(condition, within)
        source.append(inner // step)
    value = yield Read(1, ())
    if condition is None:  # no axes: nothing is padded
        return (yield Read(0, ()))
    element = yield Read(0, tuple(source), condition)
    return kernel.select(condition, element, value)


def windows(site: Site) -> Generate:
    rank = site.types[0].rank
    outer, inner = site.position[:rank], site.position[rank:]
    strides, dilation = site.attributes["strides"], site.attributes["dilation"]
    rows = zip(outer, strides, inner, dilation, strict=True)
    return (yield Read(0, tuple(p * s + w * d for p, s, w, d in rows)))


# Indices that are computed.


def _position(site: Site, index: int, extent: int, mode: str) -> Index:
    """A computed index as a position in an axis of this extent, which is not empty."""
    kernel = site.kernel
    if kernel.dtype(index) != "u64":
        index = kernel.cast(index, "i64")
    if mode == "wrap":
        short = kernel.dtype(index)
        index = kernel.op("mod", short, index, kernel.const(short, extent))
        return kernel.as_index(kernel.cast(index, "i64"), extent)
    if kernel.dtype(index) == "u64":  # what i64 can't hold is out of range anyway
        index = kernel.op("min", "u64", index, kernel.const("u64", 2**63 - 1))
        index = kernel.cast(index, "i64")
    zero, last = kernel.const("i64", 0), kernel.const("i64", extent - 1)
    if mode == "raise":
        negative = kernel.op("lt", "bool", index, zero)
        around = kernel.op("add", "i64", index, kernel.const("i64", extent))
        index = kernel.select(negative, around, index)
        fits = kernel.op(
            "and",
            "bool",
            kernel.op("ge", "bool", index, zero),
            kernel.op("le", "bool", index, last),
        )
        _checked(site, fits, OUT_OF_RANGE)
    # Clipped even after a check, which only notes the fault: the load still happens.
    index = kernel.op("min", "i64", kernel.op("max", "i64", index, zero), last)
    return kernel.as_index(index, extent)


def _indexed(site: Site, first: int) -> Generator[Read, int, Position]:
    """Where in the first input an element of a frame lies, by index arrays from input `first`."""
    axes, at, mode = (site.attributes[key] for key in ("axes", "at", "mode"))
    x, indices = site.types[0], site.types[first:]
    rank = len(site.position) - (x.rank - len(axes))
    inner = site.position[at : at + rank]
    rest = iter(site.position[:at] + site.position[at + rank :])
    found: dict[int, Index] = {}
    for i, (axis, type) in enumerate(zip(axes, indices, strict=True), first):
        index = yield Read(i, _narrowed(inner, type.shape))
        found[axis] = _position(site, index, x.shape[axis], mode)
    return tuple(found[a] if a in found else next(rest) for a in range(x.rank))


def gather(site: Site) -> Generate:
    source = yield from _indexed(site, 1)
    return (yield Read(0, source))


def scatter(site: Site) -> Generator[Read, int, Position]:
    """Where an element of the updates, the second input, goes."""
    return (yield from _indexed(site, 2))


def dynamic_slice(site: Site) -> Generate:
    source = []
    rows = zip(site.position, site.types[0].shape, site.attributes["sizes"], strict=True)
    for i, (p, extent, size) in enumerate(rows, 1):
        if extent == size:
            source.append(p)  # wherever it starts, it starts at 0
            continue
        start = yield Read(i, ())
        source.append(_position(site, start, extent - size + 1, "clip") + p)
    return (yield Read(0, tuple(source)))


# Reductions.


def _reduced(site: Site, axes: Sequence[int]) -> tuple[list[int], Position, list[Index]]:
    """The kernel's axes to reduce over, the whole position, and its reduced part."""
    rest = iter(site.position)
    numbers: list[int] = []
    whole: list[Index] = []
    reduced: list[Index] = []
    for axis, extent in enumerate(site.types[0].shape):
        if axis in axes:
            number, index = site.kernel.reduced(extent, site.stage, len(numbers))
            numbers.append(number)
            reduced.append(index)
            whole.append(index)
        else:
            whole.append(next(rest))
    return numbers, tuple(whole), reduced


_OF_NOTHING = {"sum": 0, "prod": 1, "any": False, "all": True}


def reduction(kind: str) -> Callable[[Site], Generate]:
    """The generator of a reduction. Sixteen-bit floats add and multiply up in f32."""

    def generate(site: Site) -> Generate:
        kernel, short = site.kernel, SHORT[site.types[0].dtype]
        axes = site.attributes["axes"]
        if any(not site.types[0].shape[axis] for axis in axes):
            return kernel.const(short, _OF_NOTHING[kind])
        if kind in _JOIN and len(axes) == 1 and 2 <= site.types[0].shape[axes[0]] <= FEW:
            return (yield from _few(site, kind, axes[0]))
        numbers, position, _ = _reduced(site, axes)
        value = yield Read(0, position)
        if not numbers:
            return value
        if short in ("f16", "bf16") and kind in ("sum", "prod"):
            return kernel.cast(kernel.reduce(kind, numbers, kernel.cast(value, "f32")), short)
        return kernel.reduce(kind, numbers, value)

    return generate


_JOIN = {"sum": "add", "prod": "mul", "any": "or", "all": "and"}
FEW = 3  # points in space; where four are read, what makes them is seldom fused any more


def _few(site: Site, kind: str, axis: int) -> Generate:
    """A reduction of a few elements, one after the other. It is no loop, so that lanes may lie
    along any other axis and a further reduction may read it."""
    kernel, short = site.kernel, SHORT[site.types[0].dtype]
    wide = "f32" if short in ("f16", "bf16") and kind in ("sum", "prod") else short
    made = None
    for n in range(int(site.types[0].shape[axis])):
        position = (*site.position[:axis], Index((), n), *site.position[axis:])
        value = yield Read(0, position)
        value = kernel.cast(value, wide)
        made = value if made is None else kernel.op(_JOIN[kind], wide, made, value)
    assert made is not None
    return kernel.cast(made, short)


def extreme(kind: str) -> Callable[[Site], Generate]:
    """The generator of argmin or argmax."""

    def generate(site: Site) -> Generate:
        kernel = site.kernel
        numbers, position, (index,) = _reduced(site, (site.attributes["axis"],))
        value = yield Read(0, position)
        found = kernel.reduce(kind, numbers, value, kernel.index(index))
        return kernel.state(found, 1)

    return generate


# Products.


def contract(site: Site) -> Generator[Read, Any, int]:
    """One element of a contraction."""
    kernel, given = site.kernel, site.attributes
    lhs, rhs = site.types
    over = [
        kernel.reduced(lhs.shape[a], site.stage, turn)
        for turn, a in enumerate(given["lhs_contract"])
    ]
    left, right = _sides(site.position, [i for _, i in over], (lhs, rhs), given)
    a = yield Read(0, left)
    b = yield Read(1, right)
    short = SHORT[lhs.dtype]
    if not over:
        return kernel.op("and" if short == "bool" else "mul", short, a, b)
    numbers = [n for n, _ in over]
    if short == "bool":
        return kernel.reduce("any", numbers, kernel.op("and", short, a, b))
    if short in ("f16", "bf16"):
        wide = kernel.op("mul", "f32", kernel.cast(a, "f32"), kernel.cast(b, "f32"))
        return kernel.cast(kernel.reduce("sum", numbers, wide), short)
    return kernel.reduce("sum", numbers, kernel.op("mul", short, a, b))


def contract_narrow(site: Site) -> Generator[Read, Any, int]:
    """One element of a contraction of integers that are added up as wider ones."""
    kernel, given, dtype = site.kernel, site.attributes, site.attributes["dtype"]
    lhs, rhs = site.types
    over = [
        kernel.reduced(lhs.shape[a], site.stage, turn)
        for turn, a in enumerate(given["lhs_contract"])
    ]
    left, right = _sides(site.position, [i for _, i in over], (lhs, rhs), given)
    a = yield Read(0, left)
    b = yield Read(1, right)
    term = kernel.op("mul", dtype, kernel.cast(a, dtype), kernel.cast(b, dtype))
    return kernel.reduce("sum", [n for n, _ in over], term) if over else term


def conv(site: Site) -> Generator[Read, Any, int]:
    """One element of a convolution without padding: a sum over channels and places."""
    kernel, given = site.kernel, site.attributes
    x, w = site.types
    batch, out, *places = site.position
    over = [kernel.reduced(n, site.stage, turn) for turn, n in enumerate(w.shape[1:])]
    channel, *inner = (index for _, index in over)
    group = out // (w.shape[0] // given["groups"])
    rows = zip(places, given["strides"], inner, given["dilation"], strict=True)
    at = [p * s + k * d for p, s, k, d in rows]
    a = yield Read(0, (batch, group * w.shape[1] + channel, *at))
    b = yield Read(1, (out, channel, *inner))
    short = SHORT[x.dtype]
    return kernel.reduce("sum", [n for n, _ in over], kernel.op("mul", short, a, b))


def _sides(
    position: tuple[Any, ...],
    over: list[Any],
    types: tuple[TensorType, TensorType],
    given: Mapping[str, Any],
) -> tuple[Position, Position]:
    """Where the two operands are read."""
    count = len(given["lhs_batch"])
    batch, rest = position[:count], iter(position[count:])
    made = []
    for type, side in zip(types, ("lhs", "rhs"), strict=True):
        at: dict[int, Any] = dict(zip(given[f"{side}_batch"], batch, strict=True))
        at.update(zip(given[f"{side}_contract"], over, strict=True))
        for axis in range(type.rank):
            if axis not in at:
                at[axis] = next(rest)
        made.append(tuple(at[a] for a in range(type.rank)))
    return made[0], made[1]
