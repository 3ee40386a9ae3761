"""The values of a graph that is being drawn at random, and how operands are picked among them."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from tenfold.errors import TenfoldError
from tenfold.graph import Builder, Graph
from tenfold.ops import TABLE, samples
from tenfold.types import TensorType

Array = np.ndarray[Any, Any]
WINDOW = 40  # values from which another operand is taken


class Values:
    """One graph being drawn, without the ways to add to it."""

    def __init__(
        self, source: random.Random, dtypes: Sequence[str], level: int = 0, largest: int = 700
    ) -> None:
        self.random = source
        self.builder = Builder(TABLE)
        self.dtypes = dtypes
        self.level = level  # of scopes
        self.largest = largest  # elements
        self.values: list[int] = []
        self.depth: dict[int, int] = {}  # of values; none has 0

    def type(self, value: int) -> TensorType:
        return self.builder.types[value]

    def node(
        self, name: str, inputs: Sequence[int], attributes: Any = None, scopes: Sequence[Graph] = ()
    ) -> tuple[int, ...]:
        made = self.builder.node(name, inputs, attributes or {}, scopes)
        deep = 1 + max((self.depth.get(v, 0) for v in inputs), default=0)
        deep += max(map(depth, scopes), default=0)
        for value in made:
            if self.type(value).size > self.largest:
                raise TenfoldError("too large")
        for value in made:
            self.depth.setdefault(value, deep)
            self.values.append(value)
        return made

    def put(self, name: str, *inputs: int, **attributes: Any) -> int:
        return self.node(name, inputs, attributes)[0]

    def near(self, fits: Callable[[TensorType], bool]) -> list[int]:
        """Late values, and the first few, that fit."""
        return [v for v in (*self.values[:4], *self.values[-WINDOW:]) if fits(self.type(v))]

    def pick(self, kinds: str = "", rank: int = 0, most: int = 1 << 30) -> int:
        """A value of these kinds, the last one more often than not."""

        def fits(type: TensorType) -> bool:
            return (not kinds or type.kind in kinds) and rank <= type.rank and type.size <= most

        full = self.random.random() < 0.9
        if self.random.random() < 0.85:
            for value in reversed(self.values[-WINDOW:]):
                if fits(self.type(value)) and (self.type(value).size or not full):
                    return value
        found = self.near(fits)
        if not found:
            raise TenfoldError("nothing to pick")
        return self.random.choice(found)

    def raw(self, array: Array) -> int:
        kind = repr(TensorType(array.dtype, array.shape))
        (value,) = self.builder.node("constant", (), {"data": array.tobytes(), "type": kind})
        return value

    def constant(self, dtype: Any, shape: tuple[int, ...] = ()) -> int:
        drawn = np.random.default_rng(self.random.getrandbits(32))
        array = np.asarray(samples.anything(drawn, dtype, shape))
        if self.random.random() < 0.5:
            array = np.full(shape, self.random.choice((0, 1, 2, 3))).astype(dtype)
        return self.raw(array)

    def alike(self, value: int) -> int:
        """Another value of the same dtype that broadcasts with this one."""
        type = self.type(value)
        found = self.near(lambda t: t.dtype == type.dtype and broadcasts(t.shape, type.shape))
        if not found or self.random.random() < 0.25:
            return self.constant(type.dtype)
        return self.random.choice(found)

    def small(self, dtype: Any) -> int:
        return self.raw(np.asarray(self.random.randint(0, 5)).astype(dtype))

    def axes(self, rank: int) -> tuple[int, ...]:
        return tuple(a for a in range(rank) if self.random.random() < 0.5) or (rank - 1,)

    def often(self, chance: float) -> bool:
        return self.random.random() < chance

    def index(self, shape: tuple[int, ...], extent: int | None = None) -> int:
        """An integer array; with an extent, one whose values lie within it."""
        drawn = np.random.default_rng(self.random.getrandbits(32))
        dtype = self.random.choice(("i4", "i8"))
        if extent is not None:
            return self.raw(
                np.asarray(drawn.integers(-extent, max(extent, 1), shape)).astype(dtype)
            )
        found = self.near(lambda t: t.kind in "iu" and t.size < 50)
        if found and self.random.random() < 0.5:
            return self.random.choice(found)
        return self.raw(np.asarray(drawn.integers(-9, 9, shape)).astype(dtype))

    def places(self, x: int) -> tuple[list[int], dict[str, Any]]:
        """Indices into some axes of a value."""
        type = self.type(x)
        axes = self.random.sample(range(type.rank), 2 if type.rank > 1 and self.often(0.25) else 1)
        mode = self.random.choice(("clip", "wrap", "raise"))
        shape = self.random.choice(((), (3,), (2, 2), (5,)))
        indices = [self.index(shape, type.shape[a] if mode == "raise" else None) for a in axes]
        at = self.random.randint(0, type.rank - len(axes))
        return indices, {"axes": tuple(axes), "at": at, "mode": mode}


def broadcasts(a: tuple[int, ...], b: tuple[int, ...]) -> bool:
    return all(m in (1, n) or n == 1 for m, n in zip(reversed(a), reversed(b), strict=False))


def alike_but(a: tuple[int, ...], b: tuple[int, ...], axis: int) -> bool:
    return len(a) == len(b) and all(i == axis or m == n for i, (m, n) in enumerate(zip(a, b)))  # noqa: B905


def depth(graph: Graph) -> int:
    """The greatest number of ops one after the other, those of scopes counted once."""
    deep = [0] * len(graph.parameters)
    for node in graph.nodes:
        inner = max(map(depth, node.scopes), default=0)
        deep += [1 + inner + max((deep[v] for v in node.inputs), default=0)] * len(node.types)
    return max(deep, default=0)
