"""Ufunc methods: np.add.reduce, np.multiply.outer, np.maximum.at and the like."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from tenfold.errors import ConcreteError, IndexProblem, TypeMismatch, Unsupported
from tenfold.trace.array import Array
from tenfold.trace.operand import dtype_key
from tenfold.trace.surface.emit import (
    axis_of,
    cast,
    emit,
    fail,
    is_array,
    is_traced,
    plain,
    traced,
    update,
)
from tenfold.trace.surface.indexing.indexing import placement, updatable
from tenfold.trace.surface.indexing.key import Mask, bake, read_key
from tenfold.trace.surface.indexing.parts import indices_of, place, sliced
from tenfold.trace.surface.indexing.taking import take
from tenfold.trace.surface.into import into
from tenfold.trace.surface.reducing.folding import reduce_by_steps
from tenfold.trace.surface.reducing.reductions import (
    every,
    finish,
    largest,
    product,
    smallest,
    some,
    total,
)
from tenfold.trace.surface.shaping.shapes import fit, together
from tenfold.trace.surface.ufuncs.promotion import dtypes_for, same_kind
from tenfold.trace.tables import METHODS, UFUNCS
from tenfold.types import BOOL, KIND

_REDUCE: dict[np.ufunc, Callable[..., Array]] = {
    np.add: total,
    np.multiply: product,
    np.maximum: largest,
    np.minimum: smallest,
    np.logical_or: some,
    np.logical_and: every,
}

_TRUTHS = (np.logical_or, np.logical_and)


def reduce(
    ufunc: np.ufunc,
    array: Any,
    axis: Any = 0,
    dtype: Any = None,
    out: Any = None,
    keepdims: bool = False,
    **kwargs: Any,
) -> Array:
    x = traced(array)
    found = _REDUCE.get(ufunc)
    if found is not None and KIND[x.dtype] == "c" and ufunc in (np.maximum, np.minimum):
        found = None  # the op table has no greatest complex number
    if dtype is not None and ufunc not in _TRUTHS:
        x = cast(x, dtype)
        if found in (total, product):
            kwargs["dtype"] = dtype
    if kwargs.get("initial") is not None and ufunc in _TRUTHS:
        found = None  # np.any and np.all take no initial
    if found is not None:
        return found(x, axis, keepdims=keepdims, out=out, **kwargs)
    initial, where = kwargs.pop("initial", None), kwargs.pop("where", True)
    result = reduce_by_steps(ufunc, x, axis, keepdims, initial, where)
    return finish(result, out)


def reduceat(
    ufunc: np.ufunc, array: Any, indices: Any, axis: Any = 0, dtype: Any = None, out: Any = None
) -> Array:
    """Runs of one length are taken together, and reduced as one array."""
    x = traced(array)
    if is_traced(indices):
        fail(
            ConcreteError,
            f"np.{ufunc.__name__}.reduceat: how long the runs are is known only to a running "
            "program",
            f"give indices that are known while tracing; or add with np.{ufunc.__name__}.at",
        )
    bake(indices)
    along, starts = axis_of(axis, x.ndim), np.asarray(plain(indices))
    count = x.shape[along]
    if starts.ndim != 1 or starts.dtype.kind not in "iu":
        fail(TypeMismatch, f"reduceat with indices {starts.dtype}[{starts.ndim} axes]", "integers")
    if ((starts < 0) | (starts >= count)).any():
        fail(IndexProblem, f"reduceat: an index is out of range for {count} elements", "0 or more")
    lengths = np.maximum(np.append(starts[1:], count) - starts, 1)
    parts, order = [], []
    for length in np.unique(lengths).tolist() or [1]:
        (own,) = np.nonzero(lengths == length)
        runs = take(x, starts[own, None] + np.arange(length), along)
        parts.append(reduce(ufunc, runs, along + 1, dtype))
        order.append(own)
    made = parts[0]
    if len(parts) > 1:
        made = emit("concatenate", *parts, axis=along)
        made = take(made, np.argsort(np.concatenate(order)), along)
    return finish(made, out)


def outer(ufunc: np.ufunc, x: Any, y: Any, /, *, out: Any = None, **kwargs: Any) -> Any:
    if ufunc.nin != 2 or kwargs:
        named = f" with {', '.join(kwargs)}" if kwargs else ""
        fail(Unsupported, f"np.{ufunc.__name__}.outer{named}", "broadcast by hand: x[:, None] * y")
    left, right = traced(x), traced(y)
    tall = emit("reshape", left, shape=(*left.shape, *(1,) * right.ndim))
    result = UFUNCS[ufunc](tall, right)
    return result if out is None else into(result, out, True)


AT: dict[np.ufunc, str] = {
    np.add: "add",
    np.multiply: "mul",
    np.maximum: "max",
    np.minimum: "min",
}


def at(ufunc: np.ufunc, a: Any, indices: Any, b: Any = None, /, *, out: Any = None) -> None:
    kind = AT.get(ufunc)
    if kind is None or b is None:
        names = ", ".join(u.__name__ for u in AT)
        fail(Unsupported, f"np.{ufunc.__name__}.at", f"there is at of {names}")
    x = updatable(a)
    key = read_key(x.type, indices)
    part = sliced(x, key.entries)
    axes, places = indices_of(part, key.entries)
    if not axes or any(isinstance(e, Mask) for e in key.entries):
        fail(
            Unsupported,
            f"np.{ufunc.__name__}.at without an index array",
            "nothing repeats then: write x[key] += v",
        )
    where = placement(key)
    rest = [n for i, n in enumerate(part.shape) if i not in axes]
    made = dtypes_for(ufunc, (x.dtype, dtype_key(b if is_array(b) else traced(b))))[-1]
    if not same_kind(made, x.dtype):
        fail(
            TypeMismatch,
            f"np.{ufunc.__name__}.at can't turn {made} into {x.dtype}",
            "cast the values first with .astype",
        )
    value = fit(traced(b, x.dtype), (*rest[:where], *together(*places), *rest[where:]))
    if x.dtype == BOOL:
        kind = {"add": "max", "mul": "min"}.get(kind, kind)
    done = emit("scatter", part, value, *places, axes=axes, at=where, mode="raise", kind=kind)
    update(x, place(x, key.entries, done, may_raise=True))


METHODS["reduce"] = reduce
METHODS["reduceat"] = reduceat
METHODS["outer"] = outer
METHODS["at"] = at
