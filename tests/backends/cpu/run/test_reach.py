"""Chains of boolean matrices in plans: a routine, beside SciPy's products of whole matrices."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy.sparse import csr_array

import tenfold as tn
from tenfold.backends.cpu.backend import BACKEND
from tenfold.backends.cpu.run.compiled import CompiledProgram
from tenfold.errors import ShapeError, TypeMismatch
from tenfold.ops import TABLE

Array = np.ndarray[Any, Any]


def table(dense: Array) -> tuple[Array, ...]:
    """Boolean matrices as lines with columns, and where these begin."""
    some = packed(dense.any(axis=2))
    each = np.array([[int(word).bit_count() for word in row] for row in some])
    ranks = np.cumsum(each).reshape(each.shape) - each
    counts = dense.sum(axis=2)
    starts = np.append(0, np.cumsum(counts[counts > 0]))
    parts = ranks, starts, np.nonzero(dense)[2]
    return some, *(part.astype(np.int32) for part in parts)


def packed(dense: Array) -> Array:
    """Boolean matrices as bits."""
    extent = dense.shape[-1]
    wide = np.zeros((*dense.shape[:-1], -(-extent // 64) * 64), bool)
    wide[..., :extent] = dense
    return np.packbits(wide, axis=-1, bitorder="little").view(np.uint64)


def rows(counts: Array, columns: Array, extent: int) -> Array:
    """What was found as boolean rows, a range after the other."""
    made = np.zeros((counts.size, extent), bool)
    for part, (own, found) in enumerate(zip(counts, columns, strict=True)):
        lines = np.repeat(np.arange(len(own)), own)
        made[part * len(own) + lines, found[: len(lines)]] = True
    return made


@pytest.mark.parametrize("extent", [1, 63, 64, 65, 200, 4200])
def test_beside_products_of_whole_matrices(extent: int) -> None:
    random = np.random.default_rng(extent)
    share = min(0.2, 3 / extent)
    old, new = random.random((2, 3, extent, extent)) < share
    old &= ~new
    chosen = random.random((2, extent, extent)) < share
    pairs = [table(old), table(new), table(chosen), table(np.zeros_like(chosen))]
    chains = np.array(
        [
            [[0, 0, 2], [1, 1, 2], [2, 0, 1]],
            [[0, 0, 2], [1, 1, 2], [0, -1, 0]],
            [[1, -1, 0], [1, 2, 4], [-1, 0, 0]],
            [[2, 0, 2], [-1, 0, 0], [0, 0, 0]],
        ],
        np.int32,
    )
    heads = np.array([[0, 3, 1, 0, 2], [3, 4, 0, -1, 0]], np.int32)
    both = old | new

    def by(a: Array, b: Array) -> Array:
        return (csr_array(a).astype(np.int32) @ csr_array(b)).toarray() > 0

    first = by(both[0], new[1])
    wanted = [
        (by(first, old[2]) | by(first, chosen[0]) | by(chosen[1], chosen[1])) & ~both[1],
        both[2] & ~chosen[0],
    ]
    half = extent // 2
    ranges = np.array([[0, 0, half], [0, half, extent], [1, 0, extent]], np.int32)
    given = (chains, heads, ranges, packed(chosen), *(part for pair in pairs for part in pair))
    given = tuple(x if x.size else np.zeros((1, *x.shape[1:]), x.dtype) for x in given)

    def f(*arrays: Any) -> Any:
        return tn.reach(*arrays, rows=extent, room=extent * extent)

    plan = BACKEND.plan(tn.trace(f, *given))
    assert [step.name for step in plan.steps] == ["reach"]
    counts, columns = CompiledProgram(plan)(list(given))
    found = rows(counts, columns, extent).reshape(3, extent, extent)
    assert (found[0, :half] == wanted[0][:half]).all()
    assert (found[1, : extent - half] == wanted[0][half:]).all()
    assert (found[2] == wanted[1]).all()
    assert not counts[0, half:].any()


def test_any_values_at_all() -> None:
    """Numbers that name nothing, lines that begin nowhere: the reference's answer, bit for bit."""
    for seed in range(5):
        for sample in TABLE["reach"].samples(np.random.default_rng(seed)):

            def f(*arrays: Any, given: Any = sample.attributes) -> Any:
                return tn.reach(*arrays, **given)

            plan = BACKEND.plan(tn.trace(f, *sample.inputs))
            made = CompiledProgram(plan)(list(sample.inputs))
            wanted = TABLE["reach"].reference(*sample.inputs, **sample.attributes)
            for got, want in zip(made, wanted, strict=True):
                assert got.tobytes() == want.tobytes()


def test_what_is_refused() -> None:
    sample = TABLE["reach"].samples(np.random.default_rng(0))[0]
    given = list(sample.inputs)
    with pytest.raises(TypeMismatch, match="reach: heads are i64"):
        tn.reach(given[0], given[1].astype(np.int64), *given[2:], rows=5, room=5)
    with pytest.raises(ShapeError, match="reach: ranks 0 are"):
        tn.reach(*given[:5], given[5][:-1], *given[6:], rows=5, room=5)
