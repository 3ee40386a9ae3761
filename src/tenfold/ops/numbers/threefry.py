"""The row of threefry: the block function that random numbers come from.

Threefry-2x32 of twenty rounds (Salmon, Moraes, Dror and Shaw, 2011): a key of two words and a
counter of two words give two words. It needs 32-bit additions, rotations and xors alone, so
every backend gives the same bits.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from tenfold.errors import TypeMismatch
from tenfold.graph.build import Builder
from tenfold.graph.node import Graph
from tenfold.graph.op import Composition, Op, Sample, Types
from tenfold.ops import rules, samples
from tenfold.ops.agreement.named import spreads
from tenfold.ops.batching import rules as batching
from tenfold.ops.expression import Expression
from tenfold.ops.reference import Array
from tenfold.types import DTYPES, Shape, TensorType

_U32 = DTYPES["u32"]
_ROTATIONS = (13, 15, 26, 6, 17, 29, 16, 24)
_PARITY = 0x1BD11BDA
_ROUNDS = 20


def _infer(types: Types, given: Mapping[str, Any], scopes: tuple[Graph, ...]) -> Types:
    for type in types:
        if type.dtype != _U32:
            raise TypeMismatch(f"threefry: {type} is no u32", fix="cast it to uint32")
    made = TensorType(_U32, rules.broadcast("threefry", types))
    return made, made


def _rounds(key: Sequence[Any], x: Any, y: Any) -> tuple[Any, Any]:
    """The rounds, on anything that has the arithmetic of 32-bit words."""
    for i in range(_ROUNDS):
        by = _ROTATIONS[i % 8]
        x = x + y
        y = ((y << by) | (y >> (32 - by))) ^ x
        if i % 4 == 3:
            turn = i // 4 + 1
            x = x + key[turn % 3]
            y = y + key[(turn + 1) % 3] + turn
    return x, y


def _threefry(k0: Array, k1: Array, c0: Array, c1: Array) -> tuple[Array, Array]:
    shape = np.broadcast_shapes(k0.shape, k1.shape, c0.shape, c1.shape)
    # On 0-d arrays NumPy computes scalars, which warn where they wrap: one axis more.
    k0, k1, c0, c1 = (a.reshape(1, *a.shape) for a in np.broadcast_arrays(k0, k1, c0, c1))
    x, y = _rounds((k0, k1, k0 ^ k1 ^ np.uint32(_PARITY)), c0 + k0, c1 + k1)
    return x.reshape(shape), y.reshape(shape)


def _compose(builder: Builder, inputs: Sequence[int], given: Mapping[str, Any]) -> tuple[int, ...]:
    k0, k1, c0, c1 = (Expression(builder, v) for v in inputs)
    k2 = k0 ^ k1 ^ _PARITY
    shape = rules.broadcast("threefry", [e.type for e in (k0, k1, c0, c1)])
    made = _rounds((k0, k1, k2), c0 + k0, c1 + k1)
    return tuple(word.broadcast(*shape).value for word in made)


def _samples(random: samples.Random) -> list[Sample]:
    shapes: tuple[tuple[Shape, ...], ...] = (
        ((), (), (), ()),
        ((), (), (4,), ()),
        ((2, 1), (2, 1), (3,), (1,)),
        ((), (), (0,), ()),
    )
    return [
        Sample(tuple(samples.anything(random, _U32, shape) for shape in row), {}) for row in shapes
    ]


ROWS = (
    Op(
        name="threefry",
        arity=4,
        infer=_infer,
        reference=_threefry,
        lowering=Composition(_compose),
        edges="words wrap",
        bound=0,
        batch=batching.elementwise("threefry"),
        samples=_samples,
        spread=spreads.RANDOM,
        elementwise=True,
    ),
)
