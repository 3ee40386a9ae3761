"""Selections of bitwise logic: LLVM compiles some of them wrongly for AVX-512. Each is a program of
its own, since LLVM joins logic to a selection only where nothing else reads it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tenfold as tn

Logic = Callable[[Any, Any, Any], Any]

# Blends by a constant mask m, which LLVM makes one instruction of.
BLENDS: dict[str, Logic] = {
    "or": lambda u, v, m: (u & m) | (v & ~m),
    "or, the other way round": lambda u, v, m: (v & ~m) | (u & m),
    "xor": lambda u, v, m: u ^ ((u ^ v) & m),
    "xor, the other way round": lambda u, v, m: ((u ^ v) & m) ^ u,
    "add": lambda u, v, m: (u & m) + (v & ~m),
}


@pytest.mark.parametrize("blend", BLENDS)
@pytest.mark.parametrize("dtype", [np.int32, np.uint64])
@pytest.mark.parametrize("size", [5, 100])
def test_a_selection_of_logic(size: int, dtype: type, blend: str) -> None:
    rng = np.random.default_rng(size)
    u, v = (rng.integers(0, np.iinfo(dtype).max, size, dtype) for _ in range(2))
    for first, other in ((True, 0), (True, 1), (False, 0), (False, 1)):

        def program(u: Any, v: Any, first: bool = first, other: int = other) -> Any:
            arms = BLENDS[blend](u, v, dtype(1)), (u, v)[other]
            return np.where(u < v, *(arms if first else arms[::-1]))

        np.testing.assert_array_equal(tn.jit(program, verify="off")(u, v), program(u, v))


@pytest.mark.parametrize("size", [5, 100])
def test_a_selection_of_signs(size: int) -> None:
    rng = np.random.default_rng(size)
    x, r = (rng.standard_normal(size).astype(np.float32) for _ in range(2))

    def copied(x: Any, r: Any) -> Any:
        return np.where(x < r, x, np.copysign(r, x))

    def remainder(x: Any, r: Any) -> Any:
        return np.fmod(x, r)

    for program in (copied, remainder):
        np.testing.assert_array_equal(tn.jit(program, verify="off")(x, r), program(x, r))
