"""Into: results written in place, as out= and copyto ask."""

from __future__ import annotations

from typing import Any

import numpy as np

from tenfold.errors import MutationError, TypeMismatch, Unsupported
from tenfold.trace.array import Array
from tenfold.trace.operand import dtype_key
from tenfold.trace.surface.emit import cast, dtype_of, emit, fail, is_traced, on, traced, update
from tenfold.trace.surface.ufuncs.promotion import common, same_kind
from tenfold.trace.tables import FUNCTIONS
from tenfold.types import BOOL, DType


def write(target: Any, source: Array, where: Any = True, *, unsafe: bool = False) -> Array:
    """Move a traced array to the source's value, cast and broadcast to its type."""
    if isinstance(target, np.ndarray) and not is_traced(source):
        kept = True if where is True else traced(where, BOOL)._host()
        np.copyto(target, source._host(), "unsafe" if unsafe else "same_kind", where=kept)
        return target  # type: ignore[return-value]
    if not isinstance(target, Array):
        fail(
            MutationError,
            f"a traced {source.type} is written into a {type(target).__name__} that is not traced",
            "copy it in the function and write to the copy: w = np.array(w)",
        )
    if not unsafe and not same_kind(source.dtype, target.dtype):
        fail(
            TypeMismatch,
            f"a {source.dtype} result is not written into a {target.dtype} array",
            "cast it first with .astype, or give an out= of its dtype",
        )
    if source.shape != target.shape and np.broadcast_shapes(source.shape, target.shape) != (
        target.shape
    ):
        fail(
            TypeMismatch,
            f"a result of type {source.type} does not fit an array of type {target.type}",
            f"give an array of shape {source.shape}",
        )
    made = cast(source, target.dtype)
    if where is not True:
        made = emit("select", traced(where, BOOL), made, target)
    if made.shape != target.shape:
        made = emit("broadcast", made, shape=target.shape)
    update(target, made)
    return target


def into(result: Any, out: Any, where: Any, casting: str = "same_kind") -> Any:
    """What a ufunc gives for its out=, where= and casting=."""
    if out is None:
        fail(
            Unsupported,
            "where= without out= leaves what is not computed undefined in NumPy",
            "write np.where(mask, f(x), other), or give out=",
        )
    results = result if isinstance(result, tuple) else (result,)
    outs = out if isinstance(out, tuple) else (out,)
    written = tuple(
        made if target is None else write(target, made, where, unsafe=casting == "unsafe")
        for made, target in zip(results, outs, strict=True)
    )
    return written if isinstance(result, tuple) else written[0]


def as_kind(x: Any, dtype: Any, casting: str = "same_kind") -> Array:
    """An operand in the dtype that dtype= names, as far as the casting goes."""
    array, dtype = traced(x), dtype_of(dtype)
    allowed = casting == "unsafe" or same_kind(array.dtype, dtype)
    if not allowed and not (isinstance(x, Array) and x._weak):
        fail(
            TypeMismatch,
            f"dtype={dtype} does not take an operand of type {array.type}",
            "cast the operand first with .astype",
        )
    return cast(array, dtype)


def as_safe(name: str, values: Any, dtype: DType) -> Array:
    """Values to be put into an array; those of an array only where none can be cut."""
    if isinstance(values, (np.ndarray, np.generic)) or (
        isinstance(values, Array) and not values._weak
    ):
        found = traced(values)
        if found.dtype != dtype and common((found.dtype, dtype)) != dtype:
            fail(
                TypeMismatch,
                f"np.{name} of {found.type} into an array of {dtype}, which may not hold it",
                f"cast it first: values.astype('{dtype}')",
            )
    return traced(values, dtype)


FUNCTIONS["into"] = into
FUNCTIONS["as_dtype"] = as_kind
FUNCTIONS["same_kind"] = same_kind


@on(np.copyto)
def copyto(dst: Any, src: Any, casting: str = "same_kind", where: Any = True) -> None:
    weak = type(src) in (int, float, complex) and isinstance(dst, Array)
    fits = weak and same_kind(common((dtype_key(src), dst.dtype)), dst.dtype)
    source = traced(src, dst.dtype) if fits else traced(src)
    write(dst, source, where, unsafe=casting == "unsafe")
