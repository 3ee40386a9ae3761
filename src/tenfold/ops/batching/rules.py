"""Batching rules: how an op is carried out for every element of a leading axis at once.

A rule is `batch(builder, inputs, batched, size, **attributes)`: `batched` says which inputs
have the leading axis of extent `size`. It gives values that all have one. The rules shared by
many ops stand here; an op with a rule of its own keeps it beside its row. Those of ops with
scopes or effects stand in `control` and `lanes`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from tenfold.graph.build import Builder
from tenfold.types import SHORT, DType, Shape, TensorType

Values = tuple[int, ...]
Batch = Callable[..., Values]


def shape_of(builder: Builder, value: int) -> Shape:
    return builder.types[value].shape


def make(builder: Builder, name: str, *inputs: int, **attributes: Any) -> int:
    """The one value of a new node."""
    (value,) = builder.node(name, inputs, attributes)
    return value


def constant(builder: Builder, dtype: DType, number: Any) -> int:
    """A scalar constant."""
    data = np.asarray(number).astype(dtype).tobytes()
    return make(builder, "constant", data=data, type=SHORT[dtype])


def reshape(builder: Builder, value: int, shape: Shape) -> int:
    if shape_of(builder, value) == shape:
        return value
    return make(builder, "reshape", value, shape=shape)


def spread(builder: Builder, value: int, size: int) -> int:
    """An unbatched value repeated along a new leading axis."""
    return make(builder, "broadcast", value, shape=(size, *shape_of(builder, value)))


def move(builder: Builder, value: int, source: int, target: int) -> int:
    """The value with one axis moved to another place."""
    order = list(range(len(shape_of(builder, value))))
    order.insert(target, order.pop(source))
    if order == sorted(order):
        return value
    return make(builder, "transpose", value, axes=tuple(order))


def deepened(builder: Builder, value: int, batched: bool, rank: int) -> int:
    """A batched value with axes of extent 1 put behind the leading one, until the rest has this
    rank, so that the leading axis lines up under broadcasting."""
    if not batched:
        return value
    size, *rest = shape_of(builder, value)
    return reshape(builder, value, (size, *[1] * (rank - len(rest)), *rest))


def rank_of(builder: Builder, inputs: Sequence[int], batched: Sequence[bool]) -> int:
    """The greatest rank of these inputs, the leading axes not counted."""
    return max(len(shape_of(builder, v)) - b for v, b in zip(inputs, batched, strict=True))


def unless_none(rule: Batch, name: str) -> Batch:
    """This rule, but where no input is batched: the op as it is, spread over the leading axis."""

    def batch(
        builder: Builder,
        inputs: Sequence[int],
        batched: Sequence[bool],
        size: int,
        **attributes: Any,
    ) -> Values:
        if not any(batched):
            made = builder.node(name, inputs, attributes)
            return tuple(spread(builder, v, size) for v in made)
        return rule(builder, inputs, batched, size, **attributes)

    return batch


def elementwise(name: str) -> Batch:
    """Leading axes are lined up; broadcasting does the rest."""

    def batch(
        builder: Builder,
        inputs: Sequence[int],
        batched: Sequence[bool],
        size: int,
        **attributes: Any,
    ) -> Values:
        rank = rank_of(builder, inputs, batched)
        aligned = [deepened(builder, v, b, rank) for v, b in zip(inputs, batched, strict=True)]
        return builder.node(name, aligned, attributes)

    return unless_none(batch, name)


def shifted(
    name: str, change: Callable[[Mapping[str, Any], int, TensorType], Mapping[str, Any]]
) -> Batch:
    """One input, batched: the same op with `change(attributes, size, type)`, where the type is
    the input's without the leading axis. Also for several inputs, which are then all spread."""

    def batch(
        builder: Builder,
        inputs: Sequence[int],
        batched: Sequence[bool],
        size: int,
        **attributes: Any,
    ) -> Values:
        full = [v if b else spread(builder, v, size) for v, b in zip(inputs, batched, strict=True)]
        type = builder.types[full[0]]
        bare = TensorType(type.dtype, type.shape[1:])
        return builder.node(name, full, change(attributes, size, bare))

    return unless_none(batch, name)


def axes_up(attributes: Mapping[str, Any], size: int, type: TensorType) -> Mapping[str, Any]:
    """`axes` one further; for use with `shifted`."""
    return {**attributes, "axes": tuple(a + 1 for a in attributes["axes"])}


def axis_up(attributes: Mapping[str, Any], size: int, type: TensorType) -> Mapping[str, Any]:
    """`axis` one further; for use with `shifted`."""
    return {**attributes, "axis": attributes["axis"] + 1}


def unchanged(attributes: Mapping[str, Any], size: int, type: TensorType) -> Mapping[str, Any]:
    """The attributes as they are: the op takes leading axes by itself."""
    return attributes
