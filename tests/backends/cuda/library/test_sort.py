"""Sorts on a simulated GPU: the CPU's bits, and NumPy's stable order."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tenfold.types import DTYPES, KIND
from tests.backends.cuda.against import alike, draw, graph_of, steps

Array = np.ndarray[Any, Any]
REAL = [name for name, dtype in DTYPES.items() if KIND[dtype] != "c"]


def ordered(x: Array) -> Array:
    """NumPy's stable order along the last axis."""
    wide = x.astype(np.float32) if x.dtype.itemsize == 2 and KIND[x.dtype] == "f" else x
    return np.argsort(wide, -1, kind="stable")


def check(name: str, x: Array, races: bool = True) -> list[str]:
    """Sort lines on a simulated GPU: which functions it took."""
    made, program = alike(graph_of(name, [x], axis=x.ndim - 1), [x], races)
    assert steps(program) == ["RoutineStep"]
    order = ordered(x)
    wanted = np.take_along_axis(x, order, -1) if name == "sort" else order.astype(np.int64)
    assert made[0].tobytes() == wanted.tobytes()
    return [name for name, _, _ in program.device.launches]


@pytest.mark.parametrize("name", ["sort", "argsort"])
@pytest.mark.parametrize("dtype", REAL)
def test_every_dtype(dtype: str, name: str) -> None:
    assert len(check(name, draw(dtype, (3, 40)))) == 1
    assert len(check(name, draw(dtype, (2, 300)))) == 1
    if name == "argsort" or dtype in ("f32", "i64"):
        assert len(check(name, draw(dtype, (1, 4100)))) == 3 * DTYPES[dtype].itemsize


@pytest.mark.parametrize("name", ["sort", "argsort"])
def test_lines_of_every_length(name: str) -> None:
    for length in (1, 2, 3, 4, 5, 31, 32, 33, 64, 129, 255, 256, 257, 511, 513, 1024, 1025):
        check(name, draw("f32", (3, length), length))


@pytest.mark.parametrize("dtype", ["f64", "u16"])
def test_around_tiles(dtype: str) -> None:
    for length in (2047, 2048, 2049, 4095, 4096, 4097, 8192):
        check("argsort", draw(dtype, (2, length), length), races=length < 2100)


def test_more_lines_than_a_block_has() -> None:
    for lines, length in ((300, 3), (130, 7), (70, 16), (9, 60), (5, 200)):
        check("sort", draw("f32", (lines, length)))
        check("argsort", draw("i16", (lines, length)))


def test_equal_and_sorted_lines() -> None:
    for length in (100, 1000, 5000):
        for x in (np.zeros(length, np.int32), np.arange(length), np.arange(length)[::-1]):
            check("argsort", np.ascontiguousarray(x.astype(np.int32)), races=False)


def test_more_tiles_than_a_warp_looks_at_at_a_time() -> None:
    check("sort", draw("i8", (1, 130 * 4096 + 5)), races=False)


def test_along_another_axis() -> None:
    x = draw("f32", (70, 3))
    made, _ = alike(graph_of("sort", [x], axis=0), [x])
    wanted = np.take_along_axis(x, np.argsort(x, 0, kind="stable"), 0)
    assert made[0].tobytes() == wanted.tobytes()


def test_nothing_to_sort() -> None:
    x = np.zeros((3, 0), np.float32)
    made, _ = alike(graph_of("argsort", [x], axis=1), [x])
    assert made[0].shape == (3, 0)


@pytest.mark.parametrize("dtype", REAL)
def test_the_few_greatest(dtype: str) -> None:
    long = (((2, 4097), 5),) if dtype in ("f32", "f16", "i64", "u8") else ()
    for shape, k in (((40,), 3), ((3, 256), 32), ((2, 600), 7), *long):
        x = draw(dtype, shape)
        made, program = alike(graph_of("top_few", [x], k=k), [x])
        assert steps(program) == ["RoutineStep"]
        n = x.shape[-1]
        places = (n - 1 - ordered(x[..., ::-1])[..., ::-1])[..., :k]
        assert made[1].tobytes() == np.ascontiguousarray(places, np.int64).tobytes()
        assert made[0].tobytes() == np.take_along_axis(x, places, -1).tobytes()


def test_the_greatest_of_the_greatest_of_tiles() -> None:
    for length in (3 * 4096 + 1, 66 * 4096 + 3):
        x = draw("f32", (1, length))
        alike(graph_of("top_few", [x], k=32), [x], races=False)
