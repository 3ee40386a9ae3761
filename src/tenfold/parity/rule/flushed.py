"""What a target that flushes subnormal numbers of float32 makes of an op.

Such a target takes a subnormal operand for 0, and gives 0 in place of a subnormal result. Whatever
computes or compares may so be off by the smallest normal number, before its inputs' bounds are
propagated: what compares is then a near-tie. What only moves, chooses or changes signs keeps every
bit there, too.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

import numpy as np

from tenfold.graph import Node
from tenfold.graph.op import Composition, Element, Pointwise, Routine, Scatter
from tenfold.ops import TABLE
from tenfold.plan.fusion.access import access_of, scatter_access
from tenfold.types import SHORT, TensorType

Array = np.ndarray[Any, Any]

LEAST = 2.0**-126  # normal
_COMPUTED = frozenset({"f32", "c64", "bf16"})  # what is computed in float32, and has its exponents
# Instructions on whose way no bit is lost.
_KEPT_WORDS = """
    abs bitcast complex conj copysign imag isfinite isinf isnan load neg real select signbit
"""
_KEPT = frozenset(_KEPT_WORDS.split())
_flushes: ContextVar[bool] = ContextVar("flushes", default=False)


@contextmanager
def as_on(target: Any) -> Iterator[None]:
    """Have bounds be those of a target."""
    token = _flushes.set(not getattr(target, "subnormals", True))
    try:
        yield
    finally:
        _flushes.reset(token)


def flushed_inputs(node: Node, values: Sequence[Array], errors: list[Array]) -> list[Array]:
    """What the inputs may be off by, where subnormal ones may be taken for 0."""
    if not _flushes.get() or not _computes(node, values):
        return errors
    made = []
    for value, error in zip(values, errors, strict=True):
        size = _size(value)
        if size is not None:
            error = error + np.where(
                (size > 0) & (size - error < LEAST), np.minimum(size, LEAST), 0
            )
        made.append(error)
    return made


def flushed_result(node: Node, values: Sequence[Array], result: Array, far: Array) -> Array | float:
    """What a result may be off by, where a subnormal one may be 0; its inputs may have it off by
    `far`."""
    if not _flushes.get() or not _computes(node, values):
        return 0.0
    size = _size(result)
    return 0.0 if size is None else np.where(size - far < LEAST, LEAST, 0.0)


def _size(value: Array) -> Array | None:
    """Magnitudes of what may be subnormal in float32; of a complex number those of its lesser
    part, unless that is 0."""
    if SHORT[np.dtype(value.dtype)] not in _COMPUTED:
        return None
    if value.dtype.kind != "c":
        return np.abs(value.astype(np.float64))
    parts = np.abs(np.stack([value.real, value.imag]).astype(np.float64))
    least: Array = np.where(parts > 0, parts, np.inf).min(axis=0)
    return np.where(np.isfinite(least), least, 0.0)


def _computes(node: Node, values: Sequence[Array]) -> bool:
    """Whether an op computes with its inputs, or compares them."""
    row = TABLE[node.op]
    types = [TensorType(np.dtype(v.dtype), v.shape) for v in values]
    match row.lowering:
        case Routine() | Composition():
            return True
        case Pointwise() | Element():
            found = access_of(row, types, node.attributes, node.types[0])
        case Scatter():
            found = scatter_access(row.lowering, types, node.attributes)
        case _:
            return False
    return any(
        name not in _KEPT and _COMPUTED.intersection((*operands, result))
        for name, operands, result in found.instructions
    )
