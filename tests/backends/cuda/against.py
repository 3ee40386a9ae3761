"""One op on a simulated GPU, held against the CPU's bits."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from tenfold.backends.cpu.backend import BACKEND as CPU
from tenfold.graph import Graph
from tenfold.graph.build import Builder
from tenfold.ops import TABLE
from tenfold.types import DTYPES, KIND, TensorType
from tests.backends.cuda.simulated import SimulatedGpu, simulated

Array = np.ndarray[Any, Any]


def graph_of(op: str, arrays: Sequence[Array], **attributes: Any) -> Graph:
    """A graph of one node."""
    builder = Builder(TABLE)
    inputs = [builder.parameter(TensorType(a.dtype, a.shape)) for a in arrays]
    return builder.finish(builder.node(op, inputs, attributes))


def alike(graph: Graph, arrays: Sequence[Array], races: bool = True) -> tuple[list[Array], Any]:
    """What a simulated GPU makes of a graph, which is what the CPU makes of it, and its program;
    no step was left to the host."""
    gpu = SimulatedGpu(races=races)
    program = simulated(gpu).compile(graph)
    made = program([a.copy() for a in arrays])
    for ours, theirs in zip(made, CPU.compile(graph)([a.copy() for a in arrays]), strict=True):
        same(ours, theirs)
    return made, program


def same(ours: Array, theirs: Any) -> None:
    """Bits are equal; any NaN equals any NaN."""
    theirs = np.asarray(theirs)
    assert ours.dtype == theirs.dtype
    assert ours.shape == theirs.shape
    if KIND[ours.dtype] in "fc":
        nan = np.isnan(ours)
        np.testing.assert_array_equal(nan, np.isnan(theirs))
        ours, theirs = (np.where(nan, ours.dtype.type(0), x) for x in (ours, theirs))
    np.testing.assert_array_equal(_words(ours), _words(theirs))


def _words(array: Array) -> Array:
    flat = np.ascontiguousarray(array).reshape(-1)
    return flat.view(np.dtype(f"u{min(8, flat.itemsize)}")) if flat.size else flat


def steps(program: Any) -> list[str]:
    """The kinds of a program's steps."""
    return [type(step).__name__ for step in program.plan.steps]


def draw(dtype: str, shape: tuple[int, ...], seed: int = 0) -> Array:
    """Values with ties, and for floats zeros of both signs, NaN and infinities."""
    random = np.random.default_rng(seed)
    kind = KIND[DTYPES[dtype]]
    if kind == "b":
        return random.random(shape) > 0.5
    if kind in "iu":
        limits = np.iinfo(DTYPES[dtype])
        made = random.integers(limits.min, limits.max, shape, DTYPES[dtype], endpoint=True)
        small = random.integers(0, 5, shape).astype(made.dtype)
        return np.where(random.random(shape) < 0.4, small, made)
    if kind == "c":
        parts = draw("f64", (*shape, 2), seed)
        return parts.view(np.complex128)[..., 0].astype(DTYPES[dtype])
    made = random.standard_normal(shape)
    for value in (0.0, -0.0, np.nan, -np.nan, np.inf, -np.inf):
        made[random.random(shape) < 0.05] = value
    return made.astype(DTYPES[dtype])


def ordinary(dtype: str, shape: tuple[int, ...], seed: int = 0) -> Array:
    """Values whose sums and products stay numbers."""
    random = np.random.default_rng(seed)
    kind = KIND[DTYPES[dtype]]
    if kind in "biu":
        return draw(dtype, shape, seed)
    made = random.standard_normal(shape)
    made = np.where(random.random(shape) < 0.1, -0.0, made)
    if kind == "c":
        made = made + 1j * random.standard_normal(shape)
    return made.astype(DTYPES[dtype])
