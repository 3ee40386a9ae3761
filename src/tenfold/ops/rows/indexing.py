"""Rows of indexing by computed positions: gather, scatter, dynamic_slice, dynamic_update.

gather and scatter share a frame: integer arrays that broadcast to a shape S index the given
axes of x; what is taken or written has the remaining axes of x in order, with S put in before
position `at` of them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from tenfold.errors import IndexProblem, ShapeError
from tenfold.graph.node import Graph
from tenfold.graph.op import Element, Op, Ranges, Sample, Scatter, Types
from tenfold.ops import attributes as attribute
from tenfold.ops import elements, ranges, rules, samples
from tenfold.ops.agreement.named import many, sums
from tenfold.ops.batching import guards
from tenfold.ops.batching import indexing as batch_indexing
from tenfold.ops.batching.rules import unless_none
from tenfold.ops.reference import F32, NARROW, Array, direct
from tenfold.types import DTYPES, I64, Shape, TensorType

Given = Mapping[str, Any]
MODES = ("raise", "clip", "wrap")


def _framed(x: Shape, axes: Shape, at: int, inner: Shape) -> Shape:
    """The axes of x but the indexed ones, with those of the indices put in before position `at`."""
    rest = tuple(n for a, n in enumerate(x) if a not in axes)
    return (*rest[:at], *inner, *rest[at:])


def _frame(name: str, x: TensorType, indices: Types, given: Given) -> Shape:
    """The shape of what is taken from x, or written into it."""
    axes, at = given["axes"], given["at"]
    rules.has_axes(name, x, axes)
    if len(indices) != len(axes) or not axes:
        raise ShapeError(
            f"{name}: {len(indices)} index arrays for axes {axes} of {x}",
            fix="give one index array for each axis, at least one",
        )
    rules.require(f"{name}: an index", "iu", *indices)
    inner = rules.broadcast(f"{name}: indices", indices)
    rest = x.rank - len(axes)
    if at > rest:
        raise ShapeError(
            f"{name}: at={at}, and {x} has {rest} axes besides {axes}",
            fix=f"give at as 0 to {rest}",
        )
    if 0 not in inner:
        for axis in axes:
            if not x.shape[axis]:
                raise IndexProblem(
                    f"{name}: axis {axis} of {x} is empty, so no index fits it",
                    fix="give the axis at least one element, or no indices",
                )
    return _framed(x.shape, axes, at, inner)


def _positions(name: str, index: Array, axis: int, extent: int, mode: str) -> Array:
    """The index as positions from 0 up, by the mode."""
    if index.dtype == np.uint64 and mode != "wrap":
        index = np.minimum(index, np.uint64(2**63 - 1))
    if index.dtype != np.uint64:
        index = index.astype(np.int64)
    if not index.size:
        return index.astype(np.int64)
    if mode == "clip":
        return np.asarray(np.clip(index, 0, extent - 1), np.int64)
    if mode == "wrap":
        return np.asarray(np.mod(index, extent), np.int64)
    outside = (index < -extent) | (index >= extent)
    if np.any(outside):
        raise IndexProblem(
            f"{name}: index {index[outside].flat[0]} is out of range for axis {axis} with "
            f"extent {extent}",
            fix="keep the index within the axis, or say mode='clip' or mode='wrap'",
        )
    return np.asarray(np.where(index < 0, index + extent, index), np.int64)


def _found(
    name: str, x: Array, indices: Sequence[Array], axes: Shape, mode: str
) -> Sequence[Array]:
    """The indices of each axis as positions, broadcast together."""
    rows = zip(indices, axes, strict=True)
    return np.broadcast_arrays(*(_positions(name, i, a, x.shape[a], mode) for i, a in rows))


def _order(rank: int, axes: Shape) -> list[int]:
    return [*axes, *(a for a in range(rank) if a not in axes)]


# Gather.


def _infer_gather(types: Types, given: Given, scopes: tuple[Graph, ...]) -> Types:
    if not types:
        raise ShapeError("gather: no array to take from", fix="give one")
    x, *indices = types
    return (TensorType(x.dtype, _frame("gather", x, tuple(indices), given)),)


def _gather(x: Array, *indices: Array, axes: Shape, at: int, mode: str) -> Array:
    found = _found("gather", x, indices, axes, mode)
    taken = x.transpose(_order(x.ndim, axes))[tuple(found)]
    rank = found[0].ndim
    return np.moveaxis(taken, range(rank), range(at, at + rank))


# Scatter.

_FOLD: dict[str, np.ufunc] = {
    "add": np.add,
    "mul": np.multiply,
    "min": np.minimum,
    "max": np.maximum,
}


def _infer_scatter(types: Types, given: Given, scopes: tuple[Graph, ...]) -> Types:
    if len(types) < 2:
        raise ShapeError("scatter: an array and updates are needed", fix="give both")
    x, updates, *indices = types
    rules.alike("scatter", x, updates)
    if given["kind"] in ("min", "max"):
        rules.require(f"scatter {given['kind']}", "biuf", x)
    frame = _frame("scatter", x, tuple(indices), given)
    if updates.shape != frame:
        wanted = TensorType(x.dtype, frame)
        raise ShapeError(
            f"scatter: the updates are {updates}, {wanted} needed",
            fix="broadcast or reshape the updates",
        )
    return (x,)


def _scatter(
    x: Array, updates: Array, *indices: Array, axes: Shape, at: int, mode: str, kind: str
) -> Array:
    found = _found("scatter", x, indices, axes, mode)
    rank, count = found[0].ndim, found[0].size
    wide = F32 if x.dtype in NARROW and kind != "set" else x.dtype
    made = x.astype(wide)
    into = made.transpose(_order(x.ndim, axes))
    values = np.moveaxis(updates.astype(wide), range(at, at + rank), range(rank))
    values = values.reshape(count, *into.shape[len(axes) :])
    # Flat positions in row-major order, so that the last of equals is the last written.
    places = tuple(i.reshape(count) for i in found)
    if kind == "set":
        into[places] = values
    else:
        _FOLD[kind].at(into, places, values)
    return made.astype(x.dtype, copy=False)


def _serial(types: Types, given: Given) -> tuple[int, ...]:
    """The axes of the updates that come from the indices: two of them may name one place."""
    x, updates, *_ = types
    rank = updates.rank - (x.rank - len(given["axes"]))
    return tuple(range(given["at"], given["at"] + rank))


def _update(given: Given) -> str:
    """The instruction that joins a value to what is there."""
    return "" if given["kind"] == "set" else str(given["kind"])


def _joined_in(type: TensorType, given: Given) -> str | None:
    """Sixteen-bit floats are joined as f32 and rounded once."""
    return "f32" if type.dtype in NARROW and given["kind"] != "set" else None


# Dynamic slice and update.


def _starts(name: str, x: TensorType, starts: Sequence[TensorType]) -> None:
    rules.ranks(name, x, starts=starts)
    for i, start in enumerate(starts):
        rules.scalar(name, f"start {i}", start, "iu")


def _clamped(starts: Sequence[Array], shape: Shape, sizes: Shape) -> tuple[slice, ...]:
    rows = zip(starts, shape, sizes, strict=True)
    firsts = [min(max(int(start), 0), extent - size) for start, extent, size in rows]
    return tuple(slice(a, a + size) for a, size in zip(firsts, sizes, strict=True))


def _fits(name: str, x: TensorType, sizes: Shape) -> None:
    rules.ranks(name, x, sizes=sizes)
    for axis, (extent, size) in enumerate(zip(x.shape, sizes, strict=True)):
        if size > extent:
            raise ShapeError(
                f"{name}: {size} elements of axis {axis} of {x}",
                fix=f"take at most {extent} of that axis",
            )


def _infer_dynamic_slice(types: Types, given: Given, scopes: tuple[Graph, ...]) -> Types:
    if not types:
        raise ShapeError("dynamic_slice: no array to take from", fix="give one")
    x, *starts = types
    _starts("dynamic_slice", x, starts)
    _fits("dynamic_slice", x, given["sizes"])
    return (TensorType(x.dtype, given["sizes"]),)


def _dynamic_slice(x: Array, *starts: Array, sizes: Shape) -> Array:
    return x[_clamped(starts, x.shape, sizes)]


def _infer_dynamic_update(types: Types, given: Given, scopes: tuple[Graph, ...]) -> Types:
    if len(types) < 2:
        raise ShapeError("dynamic_update: an array and an update are needed", fix="give both")
    x, update, *starts = types
    rules.alike("dynamic_update", x, update)
    _starts("dynamic_update", x, starts)
    _fits("dynamic_update", x, update.shape)
    return (x,)


def _dynamic_update(x: Array, update: Array, *starts: Array) -> Array:
    return update_in_place(x.copy(), update, *starts)


def update_in_place(x: Array, update: Array, *starts: Array) -> Array:
    """The same for an array that nobody needs as it was. To do it twice changes nothing more."""
    x[_clamped(starts, x.shape, update.shape)] = update
    return x


# Samples.

# x, then S as the shapes of the index arrays, axes, at.
_FRAMES: tuple[tuple[Shape, tuple[Shape, ...], Shape, int], ...] = (
    ((4,), ((3,),), (0,), 0),
    ((4,), ((),), (0,), 0),
    ((3, 4), ((2, 2),), (1,), 1),
    ((3, 4), ((2, 2),), (1,), 0),
    ((3, 4), ((2,), ()), (1, 0), 0),
    ((2, 3, 4), ((2, 1), (3,)), (0, 2), 1),
    ((2, 3, 4), ((2,), (2,)), (2, 0), 0),
    ((2, 0, 4), ((3,),), (2,), 1),
    ((0, 3), ((0,),), (0,), 0),
)
_INDICES = (I64, DTYPES["i32"], DTYPES["u8"], DTYPES["u64"], DTYPES["i8"])


def _drawn(
    random: samples.Random, turn: int, shapes: Sequence[Shape], x: Shape, axes: Shape, mode: str
) -> tuple[Array, ...]:
    """An index array for each axis: within range where that is needed, anywhere else."""
    dtype = _INDICES[turn % len(_INDICES)]
    if mode != "raise":
        return tuple(samples.anything(random, dtype, shape) for shape in shapes)
    made = []
    for shape, axis in zip(shapes, axes, strict=True):
        low = -x[axis] if dtype.kind == "i" else 0
        drawn = random.integers(low, max(x[axis], low + 1), shape)
        made.append(np.asarray(drawn).astype(dtype))
    return tuple(made)


def _gather_samples(random: samples.Random) -> list[Sample]:
    made = []
    for turn, dtype in enumerate(rules.taken(rules.ANY)):
        mode = MODES[turn % 3]
        for x, shapes, axes, at in _FRAMES:
            indices = _drawn(random, turn + len(x), shapes, x, axes, mode)
            given = {"axes": axes, "at": at, "mode": mode}
            made.append(Sample((samples.anything(random, dtype, x), *indices), given))
    return made


def _scatter_samples(kinds: Sequence[str], letters: str) -> samples.Samples:
    def draw(random: samples.Random) -> list[Sample]:
        made = []
        for turn, dtype in enumerate(rules.taken(letters)):
            for kind in kinds:
                for number, (x, shapes, axes, at) in enumerate(_FRAMES):
                    mode = MODES[(turn + number) % 3]
                    indices = _drawn(random, turn + number, shapes, x, axes, mode)
                    frame = _framed(x, axes, at, np.broadcast_shapes(*shapes))
                    pair = (
                        samples.ordinary(random, dtype, x),
                        samples.ordinary(random, dtype, frame),
                    )
                    given = {"axes": axes, "at": at, "mode": mode, "kind": kind}
                    made.append(Sample((*pair, *indices), given))
        return made

    return draw


def _all_scatters(random: samples.Random) -> list[Sample]:
    plain_kinds = _scatter_samples(("set", "add", "mul"), rules.ANY)(random)
    return [*plain_kinds, *_scatter_samples(("min", "max"), "biuf")(random)]


def _windows(update: bool) -> Callable[[samples.Random], list[Sample]]:
    def draw(random: samples.Random) -> list[Sample]:
        made = []
        for turn, dtype in enumerate(rules.taken(rules.ANY)):
            for x, sizes in (((), ()), ((5,), (2,)), ((3, 4), (2, 4)), ((3, 0), (1, 0))):
                index = _INDICES[turn % len(_INDICES)]
                starts = tuple(samples.anything(random, index, ()) for _ in x)
                array = samples.anything(random, dtype, x)
                if update:
                    part = samples.anything(random, dtype, sizes)
                    made.append(Sample((array, part, *starts), {}))
                else:
                    made.append(Sample((array, *starts), {"sizes": sizes}))
        return made

    return draw


_FRAME = (
    attribute.ordered_axes("axes"),
    attribute.count("at"),
    attribute.choice("mode", *MODES),
)
_RANGE = (
    "out of range: mode raise raises IndexProblem (negative ones count from the end), clip "
    "takes the nearest, wrap goes round"
)

ROWS = (
    Op(
        name="gather",
        arity=None,
        infer=_infer_gather,
        reference=direct(_gather),
        lowering=Element(elements.gather),
        edges=_RANGE,
        bound=0,
        batch=unless_none(batch_indexing.gather, "gather"),
        samples=_gather_samples,
        attributes=_FRAME,
        heeds=guards.raising,
        guard=guards.zeroed(1),
        indices=1,
    ),
    Op(
        name="scatter",
        arity=None,
        infer=_infer_scatter,
        reference=direct(_scatter),
        lowering=Scatter(elements.scatter, _serial, _update, _joined_in),
        edges=(
            f"{_RANGE}; repeated indices: set keeps the last in row-major order, the others "
            "take all, sixteen-bit floats in f32 and rounded once"
        ),
        bound=2,  # as of a sum, for add and mul
        batch=unless_none(batch_indexing.scatter, "scatter"),
        samples=_all_scatters,
        attributes=(*_FRAME, attribute.choice("kind", "set", "add", "mul", "min", "max")),
        heeds=guards.raising,
        guard=guards.zeroed(2),
        error=sums.SCATTER,
        spread=many.SCATTER,
        indices=2,
    ),
    Op(
        name="dynamic_slice",
        arity=None,
        infer=_infer_dynamic_slice,
        reference=direct(_dynamic_slice),
        lowering=Element(elements.dynamic_slice),
        edges="starts are clamped so that the slice fits",
        bound=0,
        batch=unless_none(batch_indexing.dynamic_slice, "dynamic_slice"),
        samples=_windows(update=False),
        attributes=(attribute.extents("sizes"),),
        indices=1,
    ),
    Op(
        name="dynamic_update",
        arity=None,
        infer=_infer_dynamic_update,
        reference=direct(_dynamic_update),
        lowering=Ranges(ranges.dynamic_update),
        edges="starts are clamped so that the update fits",
        bound=0,
        batch=unless_none(batch_indexing.dynamic_update, "dynamic_update"),
        samples=_windows(update=True),
        indices=2,
    ),
)
