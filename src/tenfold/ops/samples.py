"""What tests draw: arrays of every dtype an op takes, of shapes that include the empty and the
zero-dimensional, with the values that make trouble among them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from tenfold.graph.build import Builder
from tenfold.graph.node import Graph
from tenfold.graph.op import Sample
from tenfold.ops.reference import Array
from tenfold.ops.rules import real, taken
from tenfold.types import KIND, DType, Shape, TensorType

if TYPE_CHECKING:
    Random = np.random.Generator
else:
    Random = Any  # naming it would import NumPy's random numbers
Draw = Callable[[Random, DType, Shape], Array]
Samples = Callable[[Random], Sequence[Sample]]

SHAPES: tuple[Shape, ...] = ((), (3,), (0,), (2, 3), (3, 0, 2))
PAIRS: tuple[tuple[Shape, Shape], ...] = (
    ((), ()),
    ((5,), (5,)),
    ((2, 1), (3,)),
    ((0,), (1,)),
    ((2, 3), ()),
)
TRIPLES: tuple[tuple[Shape, Shape, Shape], ...] = (
    ((), (), ()),
    ((4,), (4,), (4,)),
    ((2, 1), (3,), ()),
    ((0,), (1,), (0,)),
)

_SPECIAL = (0.0, -0.0, 1.0, -1.0, np.inf, -np.inf, np.nan, 0.5, -2.5, 1e-30, 6e4)


def anything(random: Random, dtype: DType, shape: Shape) -> Array:
    """Values all over the dtype, its special ones among them."""
    kind = KIND[dtype]
    if kind == "b":
        return random.integers(0, 2, shape).astype(dtype)
    if kind in "iu":
        limits = np.iinfo(dtype)
        wide = random.integers(limits.min, limits.max, shape, dtype, endpoint=True)
        near = random.integers(-5 if kind == "i" else 0, 6, shape).astype(dtype)
        ends = random.choice(np.array([limits.min, limits.max, 0, 1], dtype), shape)
        return np.asarray(np.choose(random.integers(0, 3, shape), (wide, near, ends)), dtype)
    if kind == "c":
        part = real(dtype)
        made = np.empty(shape, dtype)
        made.real, made.imag = anything(random, part, shape), anything(random, part, shape)
        return made
    ordinary = random.standard_normal(shape) * 3
    special = random.choice(np.array(_SPECIAL), shape)
    with np.errstate(all="ignore"):
        return np.asarray(np.where(random.random(shape) < 0.7, ordinary, special)).astype(dtype)


def ordinary(random: Random, dtype: DType, shape: Shape) -> Array:
    """Small finite numbers, as sums and products want them."""
    kind = KIND[dtype]
    if kind == "b":
        return random.integers(0, 2, shape).astype(dtype)
    if kind in "iu":
        return random.integers(0 if kind == "u" else -9, 10, shape).astype(dtype)
    if kind == "c":
        return np.asarray(
            random.standard_normal(shape) + 1j * random.standard_normal(shape)
        ).astype(dtype)
    return np.asarray(random.standard_normal(shape)).astype(dtype)


def amounts(random: Random, dtype: DType, shape: Shape) -> Array:
    """Shift amounts, some of them negative or too wide."""
    low = -2 if KIND[dtype] == "i" else 0
    return random.integers(low, dtype.itemsize * 8 + 3, shape).astype(dtype)


def exponents(random: Random, dtype: DType, shape: Shape) -> Array:
    """Exponents; integer ones are not negative."""
    if KIND[dtype] in "iu":
        return random.integers(0, 9, shape).astype(dtype)
    return anything(random, dtype, shape)


def pointwise(
    kinds: str, arity: int, *draws: Draw, attributes: Mapping[str, Any] | None = None
) -> Samples:
    """Samples of an elementwise op; a draw for each input, `anything` where none is given."""
    shapes: Sequence[tuple[Shape, ...]]
    shapes = [(s,) for s in SHAPES] if arity == 1 else PAIRS if arity == 2 else TRIPLES

    def samples(random: Random) -> list[Sample]:
        return [
            Sample(
                tuple(
                    (draws[i] if i < len(draws) else anything)(random, dtype, shape)
                    for i, shape in enumerate(row)
                ),
                attributes or {},
            )
            for dtype in taken(kinds)
            for row in shapes
        ]

    return samples


def listed(
    kinds: str, *forms: tuple[Sequence[Shape], Mapping[str, Any]], draw: Draw = anything
) -> Samples:
    """Samples of an op whose inputs have one dtype: for each form the shapes of the inputs and
    the attributes."""

    def samples(random: Random) -> list[Sample]:
        return [
            Sample(tuple(draw(random, dtype, shape) for shape in shapes), attributes)
            for dtype in taken(kinds)
            for shapes, attributes in forms
        ]

    return samples


def scope(
    types: Sequence[TensorType], body: Callable[[Builder, Sequence[int]], Sequence[int]]
) -> Graph:
    """A graph for the samples of an op with scopes: `body(builder, parameters)` gives outputs."""
    from tenfold.ops import TABLE  # the table is whole only after every row is made

    builder = Builder(TABLE)
    return builder.finish(body(builder, [builder.parameter(type) for type in types]))
