"""Rows of Fourier transforms along one axis: fft, rfft, irfft.

The bound is in units in the last place of the greatest magnitude of the result, for each
doubling of the extent.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from tenfold.errors import ShapeError
from tenfold.graph.node import Graph
from tenfold.graph.op import Attribute, Op, Routine, TypeRule, Types
from tenfold.ops import attributes as attribute
from tenfold.ops import reads, rules, samples
from tenfold.ops.agreement.named import matrices
from tenfold.ops.batching import rules as batching
from tenfold.ops.reference import Array
from tenfold.types import DType, TensorType

Given = Mapping[str, Any]
NORMS = ("backward", "ortho", "forward")


def _changed(type: TensorType, axis: int, extent: int, dtype: DType) -> Types:
    return (TensorType(dtype, (*type.shape[:axis], extent, *type.shape[axis + 1 :])),)


def _points(name: str, kinds: str, type: TensorType, axis: int) -> int:
    rules.require(name, kinds, type)
    rules.has_axes(name, type, (axis,))
    if not type.shape[axis]:
        raise ShapeError(f"{name}: axis {axis} of {type} is empty", fix="give it an element")
    return type.shape[axis]


def _infer_fft(types: Types, given: Given, scopes: tuple[Graph, ...]) -> Types:
    _points("fft", "c", types[0], given["axis"])
    return types


def _infer_rfft(types: Types, given: Given, scopes: tuple[Graph, ...]) -> Types:
    (x,) = types
    extent = _points("rfft", "w", x, given["axis"])
    return _changed(x, given["axis"], extent // 2 + 1, rules.paired(x.dtype))


def _infer_irfft(types: Types, given: Given, scopes: tuple[Graph, ...]) -> Types:
    (x,) = types
    extent, n = _points("irfft", "c", x, given["axis"]), given["n"]
    if n < 1 or n // 2 + 1 != extent:
        raise ShapeError(
            f"irfft: {n} points from {extent} frequencies of {x}",
            fix=f"{n // 2 + 1} frequencies give {n} points: pad or slice the axis",
        )
    return _changed(x, given["axis"], n, rules.real(x.dtype))


def _fft(x: Array, axis: int, inverse: bool, norm: Any) -> Array:
    return np.asarray((np.fft.ifft if inverse else np.fft.fft)(x, None, axis, norm))


def _rfft(x: Array, axis: int, norm: Any) -> Array:
    return np.asarray(np.fft.rfft(x, None, axis, norm))


def _irfft(x: Array, axis: int, n: int, norm: Any) -> Array:
    return np.asarray(np.fft.irfft(x, n, axis, norm))


def row(
    name: str,
    infer: TypeRule,
    reference: Any,
    kinds: str,
    *forms: tuple[tuple[int, ...], Given],
    attributes: tuple[Attribute, ...] = (),
    edges: str = "none",
) -> Op:
    """A row of a transform along `axis`, scaled as `norm` says."""
    listed = [((shape,), {**given, "norm": NORMS[i % 3]}) for i, (shape, given) in enumerate(forms)]
    return Op(
        name=name,
        arity=1,
        infer=infer,
        reference=reference,
        lowering=Routine(name),
        edges=edges,
        bound=4,
        batch=batching.shifted(name, batching.axis_up),
        samples=samples.listed(kinds, *listed, draw=samples.ordinary),
        attributes=(attribute.axis("axis"), *attributes, attribute.choice("norm", *NORMS)),
        reads=reads.along,
        error=matrices.TRANSFORM,
    )


ROWS = (
    row(
        "fft",
        _infer_fft,
        _fft,
        "c",
        *(
            (shape, {"axis": axis, "inverse": inverse})
            for inverse in (False, True)
            for shape, axis in (((8,), 0), ((3, 5), 0), ((2, 6), 1), ((1,), 0), ((0, 4), 1))
        ),
        attributes=(attribute.flag("inverse"),),
        edges="inf and NaN spread over the axis",
    ),
    row(
        "rfft",
        _infer_rfft,
        _rfft,
        "w",
        *(
            (s, {"axis": a})
            for s, a in (((8,), 0), ((3, 5), 0), ((2, 6), 1), ((1,), 0), ((0, 4), 1))
        ),
        edges="inf and NaN spread over the axis",
    ),
    row(
        "irfft",
        _infer_irfft,
        _irfft,
        "c",
        *(
            (shape, {"axis": axis, "n": n})
            for shape, axis, n in (
                ((5,), 0, 8),
                ((5,), 0, 9),
                ((3, 2), 0, 5),
                ((2, 4), 1, 6),
                ((1,), 0, 1),
                ((0, 3), 1, 4),
            )
        ),
        attributes=(attribute.count("n"),),
        edges="imaginary parts of the first frequency, and of the last of an even n, do not count",
    ),
)
