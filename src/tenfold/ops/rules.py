"""Type rules, and what they are made of.

A rule is made with the name of its op, so that its errors can say it. The dtypes an op takes
are written as letters: b(ool), i(nteger), u(nsigned), f(loat), c(omplex), and w for the wide
floats f32 and f64 alone.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from tenfold.errors import ShapeError, TypeMismatch
from tenfold.graph.node import Graph
from tenfold.graph.op import TypeRule, Types
from tenfold.types import BOOL, DTYPES, I64, KIND, SHORT, DType, Shape, TensorType

ANY = "biufc"
_WIDE = (DTYPES["f32"], DTYPES["f64"])
_REAL: dict[DType, DType] = {DTYPES["c64"]: DTYPES["f32"], DTYPES["c128"]: DTYPES["f64"]}
_COMPLEX: dict[DType, DType] = {real: dtype for dtype, real in _REAL.items()}

Result = Callable[[DType], DType]


def taken(kinds: str) -> tuple[DType, ...]:
    """The dtypes that these letters stand for."""
    return tuple(d for d in SHORT if KIND[d] in kinds or ("w" in kinds and d in _WIDE))


def shown(kinds: str) -> str:
    return ", ".join("f32, f64" if k == "w" else k for k in kinds)


def require(name: str, kinds: str, *types: TensorType) -> None:
    """TypeMismatch unless every type has a dtype of these kinds."""
    for type in types:
        if KIND[type.dtype] not in kinds and not ("w" in kinds and type.dtype in _WIDE):
            raise TypeMismatch(
                f"{name}: {SHORT[type.dtype]} is not a dtype it takes ({shown(kinds)})",
                fix="cast it to one of these first",
            )


def alike(name: str, *types: TensorType) -> DType:
    """The one dtype of these types, or TypeMismatch."""
    for type in types[1:]:
        if type.dtype != types[0].dtype:
            raise TypeMismatch(
                f"{name}: {types[0]} and {type} have different dtypes", fix="cast one of them"
            )
    return types[0].dtype


def broadcast(name: str, types: Sequence[TensorType]) -> Shape:
    """The shape these broadcast to, or ShapeError."""
    shapes = [t.shape for t in types if t.shape]
    if len(set(shapes)) <= 1:  # but for scalars
        return shapes[0] if shapes else ()
    rank = max(map(len, shapes))
    aligned = [(1,) * (rank - len(shape)) + shape for shape in shapes]
    made = []
    for axis, extents in enumerate(zip(*aligned, strict=True)):
        one, *others = dict.fromkeys([n for n in extents if n != 1]) or (1,)
        if others:
            *some, last = map(repr, types)
            raise ShapeError(
                f"{name}: {', '.join(some)} and {last} do not broadcast "
                f"(axis {axis}: {one} against {others[0]})",
                fix="reshape one of them so that the axes meet, or give one of them extent 1",
            )
        made.append(one)
    return tuple(made)


def has_axes(name: str, type: TensorType, axes: Sequence[int]) -> None:
    """ShapeError unless every axis is there, once."""
    rank = len(type.shape)
    for axis in axes:
        if not 0 <= axis < rank:
            have = f"0 to {rank - 1}" if rank else "none"
            raise ShapeError(f"{name}: {type} has no axis {axis}", fix=f"its axes are {have}")
    if len(axes) > 1 and len(set(axes)) != len(axes):
        raise ShapeError(f"{name}: axes {tuple(axes)} name one twice", fix="name each axis once")


def ranks(name: str, type: TensorType, **given: Sequence[Any]) -> None:
    """ShapeError unless each of these has one entry for each axis."""
    rank = len(type.shape)
    for key, values in given.items():
        if len(values) != rank:
            raise ShapeError(
                f"{name}: {type} has {rank} axes and {key} has {len(values)} entries",
                fix=f"give {key} one entry for each axis",
            )


def scalar(name: str, what: str, type: TensorType, kinds: str) -> None:
    """TypeMismatch or ShapeError unless this is a scalar of these kinds."""
    require(f"{name}: {what}", kinds, type)
    if type.shape:
        raise ShapeError(f"{name}: {what} is {type}, not a scalar", fix="take one element of it")


def given(name: str, what: str, types: Sequence[TensorType], wanted: Sequence[TensorType]) -> None:
    """TypeMismatch, showing both sides, unless these types are those wanted."""
    if len(types) != len(wanted):
        raise TypeMismatch(
            f"{name}: {what} has {len(types)} values {_row(types)}, "
            f"{len(wanted)} needed {_row(wanted)}",
            fix="make both sides the same number of values",
        )
    for i, (type, want) in enumerate(zip(types, wanted, strict=True)):
        if type != want:
            raise TypeMismatch(
                f"{name}: {what} has {type} at {i}, {want} needed: {_row(types)} against "
                f"{_row(wanted)}",
                fix="cast or reshape so that both sides agree",
            )


def takes(name: str, what: str, scope: Graph, wanted: Sequence[TensorType]) -> None:
    """TypeMismatch unless the scope's parameters have these types."""
    given(name, f"the parameters of {what}", [p.type for p in scope.parameters], wanted)


def _row(types: Sequence[TensorType]) -> str:
    return f"({', '.join(map(repr, types))})"


# What an elementwise op's result has for a dtype, by that of its inputs.


def same(dtype: DType) -> DType:
    return dtype


def truth(dtype: DType) -> DType:
    return BOOL


def byte(dtype: DType) -> DType:
    return DTYPES["u8"]


def position(dtype: DType) -> DType:
    return I64


def real(dtype: DType) -> DType:
    """The dtype of a real part; a real dtype is its own."""
    return _REAL.get(dtype, dtype)


def paired(dtype: DType) -> DType:
    """The complex dtype with parts of this one."""
    return _COMPLEX[dtype]


def elementwise(name: str, kinds: str, result: Result = same) -> TypeRule:
    """Inputs of one dtype, broadcast."""

    def infer(types: Types, attributes: Mapping[str, Any], scopes: tuple[Graph, ...]) -> Types:
        dtype, shape = types[0].dtype, types[0].shape
        if KIND[dtype] not in kinds:
            require(name, kinds, *types)
        for type in types[1:]:
            if type.dtype is not dtype:
                require(name, kinds, *types)
                dtype = alike(name, *types)
            if type.shape and type.shape != shape:
                shape = broadcast(name, types) if shape else type.shape
        return (TensorType(result(dtype), shape),)

    return infer


def reduction(name: str, kinds: str, result: Result = same, *, empty: bool = True) -> TypeRule:
    """The input less its `axes` (or `axis`); `empty` says whether these may be empty."""

    def infer(types: Types, attributes: Mapping[str, Any], scopes: tuple[Graph, ...]) -> Types:
        (type,) = types
        require(name, kinds, type)
        axes = attributes["axes"] if "axes" in attributes else (attributes["axis"],)
        has_axes(name, type, axes)
        shape = tuple([n for i, n in enumerate(type.shape) if i not in axes])
        void = [a for a in axes if not type.shape[a]]
        if void and not empty:
            raise ShapeError(
                f"{name}: axis {void[0]} of {type} is empty, and {name} of nothing is nothing",
                fix="give the axis at least one element, or pad it with an initial value",
            )
        return (TensorType(result(type.dtype), shape),)

    return infer


def shaped(dtype: DType, *shapes: Shape) -> tuple[TensorType, ...]:
    """Types of one dtype and these shapes."""
    return tuple(TensorType(np.dtype(dtype), shape) for shape in shapes)
