"""A kernel run by NumPy, instruction by instruction over the whole space: slow and plain."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from tenfold.kernel import Index, Kernel
from tenfold.kernel.ir.index import AXIS, DIV, VALUE
from tenfold.types import DTYPES

Array = np.ndarray[Any, Any]

UFUNCS = {
    "add": np.add,
    "sub": np.subtract,
    "mul": np.multiply,
    "max": np.maximum,
    "min": np.minimum,
    "and": np.bitwise_and,
    "or": np.bitwise_or,
    "xor": np.bitwise_xor,
    "not": np.invert,
    "neg": np.negative,
    "abs": np.abs,
    "lt": np.less,
    "le": np.less_equal,
    "eq": np.equal,
    "ne": np.not_equal,
    "gt": np.greater,
    "ge": np.greater_equal,
    "floordiv": np.floor_divide,
    "mod": np.remainder,
    "sqrt": np.sqrt,
    "exp": np.exp,
}


def interpret(kernel: Kernel, arrays: Sequence[Array]) -> None:
    """Run a kernel without scratch or sequential axes on arrays, one for each buffer."""
    rank = len(kernel.axes)
    grids = []
    for n, axis in enumerate(kernel.axes):
        shape = [1] * rank
        shape[n] = axis.extent
        grids.append(np.arange(axis.extent).reshape(shape))
    values: list[Array] = []

    def position(index: Index) -> Array:
        total: Array = np.full([1] * rank, index.const, np.int64)
        for atom, k in index.terms:
            if atom.kind == AXIS:
                part = grids[atom.of]
            elif atom.kind == VALUE:
                part = values[atom.of].astype(np.int64)
            else:
                inner = position(atom.of)
                part = inner // atom.bound if atom.kind == DIV else inner % atom.bound
            total = total + part * k
        return total

    def reduced(kind: str, axes: tuple[int, ...], operand: Array) -> Array:
        shape = list(operand.shape)
        for a in axes:
            shape[a] = kernel.axes[a].extent
        whole = np.broadcast_to(operand, shape)
        if whole.dtype.kind == "f" and kind == "sum":
            return np.sum(whole, axes, keepdims=True, dtype=np.float64).astype(operand.dtype)
        options = {"dtype": operand.dtype} if kind in ("sum", "prod") else {}
        return np.asarray(getattr(np, kind)(whole, axes, keepdims=True, **options))

    with np.errstate(all="ignore"):
        for i in kernel.instructions:
            args = [values[a] for a in i.args]
            dtype = DTYPES[i.dtype]
            if i.op == "load":
                assert i.index is not None
                at = position(i.index)
                buffer = arrays[i.attr[0]].ravel()
                if args:
                    at, ok = np.broadcast_arrays(at, args[0])
                    safe = np.where(ok, at, 0)
                    found = np.where(ok, buffer[safe], np.zeros((), dtype))
                else:
                    found = buffer[at]
            elif i.op == "const":
                found = np.frombuffer(i.attr[0], dtype).reshape([1] * rank)
            elif i.op == "index":
                assert i.index is not None
                found = position(i.index).astype(dtype)
            elif i.op == "inside":
                assert i.index is not None
                at = position(i.index)
                found = (at >= i.attr[0]) & (at < i.attr[1])
            elif i.op == "select":
                found = np.where(args[0], args[1], args[2])
            elif i.op == "cast":
                found = args[0].astype(dtype)
            elif i.op == "reduce":
                found = reduced(i.attr[0], i.attr[1:], args[0])
            else:
                found = UFUNCS[i.op](*args)
            values.append(np.asarray(found).astype(dtype, copy=False))
        for store in kernel.stores:
            out = arrays[store.buffer].reshape(-1)
            parts = [position(store.index), values[store.value]]
            parts.append(
                np.ones([1] * rank, bool) if store.condition is None else values[store.condition]
            )
            at, value, ok = np.broadcast_arrays(*parts)
            out[at[ok]] = value[ok]
