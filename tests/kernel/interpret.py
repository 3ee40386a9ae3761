"""A kernel run by NumPy, instruction by instruction over the whole space: slow and plain.

Kernels as they are lowered are understood as far as random tests make them; legal ones
(`kernel/ir/legal`) wholly, but for calls of maths functions.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
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
    "div": np.divide,
    "floor": np.floor,
    "ceil": np.ceil,
    "trunc": np.trunc,
    "round": np.rint,
    "popcount": np.bitwise_count,
    "shl": np.left_shift,
    "shr": np.right_shift,
    "fmod": np.fmod,
    "ipow": np.power,
}


def _divided(x: Array, y: Array) -> Array:
    """Towards zero."""
    quotient = np.floor_divide(x, y)
    return quotient + ((quotient < 0) & (quotient * y != x))


def _fused(x: Array, y: Array, z: Array) -> Array:
    """A product and a sum, rounded once."""
    arrays = np.broadcast_arrays(x, y, z)
    found = np.empty(arrays[0].shape, x.dtype)
    for at in np.ndindex(found.shape):
        a, b, c = (float(v[at]) for v in arrays)
        if not np.isfinite([a, b, c]).all():
            found[at] = a * b + c
            continue
        exact = Fraction(a) * Fraction(b) + Fraction(c)
        found[at] = _nearest(exact, x.dtype) if exact else a * b + c
    return found


def _nearest(exact: Fraction, dtype: Any) -> Any:
    """The float nearest to a number, of two the even one."""
    near = np.asarray(float(exact)).astype(dtype)[()]
    around = [near, np.nextafter(near, -np.inf), np.nextafter(near, np.inf)]
    finite = [v for v in around if np.isfinite(v)]
    bits = f"u{np.dtype(dtype).itemsize}"
    return min(finite, key=lambda v: (abs(Fraction(float(v)) - exact), int(v.view(bits)) & 1))


def _legal(op: str, args: list[Array], dtype: Any) -> Array | None:
    """What a legal instruction gives that has another name in NumPy, or another meaning."""
    whole = args[0].dtype.kind in "iu"
    if op == "div" and whole:
        return _divided(*args)
    if op == "rem":
        return np.fmod(*args)
    if op == "fma":
        return _fused(*args)
    if op == "bitcast":
        return args[0].view(dtype)
    if op == "from_half":
        return args[0].view(np.float16).astype(np.float32)
    if op == "to_half":
        return args[0].astype(np.float16).view(np.uint16)
    if op == "from_bfloat":
        return args[0].view(DTYPES["bf16"]).astype(np.float32)
    if op == "to_bfloat":
        return args[0].astype(DTYPES["bf16"]).view(np.uint16)
    return None


def _memory(array: Array, part: int | None = None) -> Array:
    """What an array holds; for a legal kernel halves as bits, and of complex numbers a part."""
    flat = array.reshape(-1)
    if part is None:
        return flat
    if flat.dtype.kind == "c":
        return (flat.real, flat.imag)[part]
    return flat.view(np.uint16) if flat.dtype in (DTYPES["f16"], DTYPES["bf16"]) else flat


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

    def reductions(kind: str, axes: tuple[int, ...], args: list[Array]) -> tuple[Array, Array]:
        """The result, and the further one."""
        first = args[0]
        if kind == "dot":
            return reduced("sum", axes, first.astype(np.float64) * args[1]).astype(
                first.dtype
            ), first
        if kind in ("argmin", "argmax"):
            shape = np.broadcast_shapes(first.shape, args[1].shape)
            value, place = (np.broadcast_to(a, shape) for a in args)
            best = reduced(kind[3:], axes, value)
            same = np.isnan(value) if np.isnan(best).any() else value == best
            far = np.iinfo(place.dtype).max
            return best, np.min(np.where(same, place, far), axes, keepdims=True)
        if len(args) > 1:
            pairs = reduced("prod", axes, args[0] + 1j * args[1])
            return pairs.real.copy(), pairs.imag.copy()
        return reduced(kind, axes, first), first

    more: Array = np.zeros(1)
    with np.errstate(all="ignore"):
        for i in kernel.instructions:
            args = [values[a] for a in i.args]
            dtype = DTYPES[i.dtype]
            if i.op == "load":
                assert i.index is not None
                at = position(i.index)
                buffer = _memory(arrays[i.attr[0]], *i.attr[1:])
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
                found, more = reductions(i.attr[0], i.attr[1:], args)
            elif i.op == "state":
                found = more
            else:
                known = _legal(i.op, args, dtype)
                name = i.attr[0] if i.op == "call" else i.op
                found = UFUNCS[name](*args) if known is None else known
            values.append(np.asarray(found).astype(dtype, copy=False))
        for store in kernel.stores:
            always = np.ones([1] * rank, bool)
            test = always if store.condition is None else values[store.condition]
            for part, number in enumerate((store.value, store.second)):
                if number is not None:
                    given = position(store.index), values[number], test
                    at, value, ok = np.broadcast_arrays(*given)
                    out = arrays[store.buffer].reshape(-1)
                    if value.dtype != out.dtype:  # a legal kernel writes what lies in memory
                        out = _memory(arrays[store.buffer], part)
                    out[at[ok]] = value[ok]
