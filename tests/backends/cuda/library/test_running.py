"""Running folds on a simulated GPU: the CPU's bits, and what NumPy gives."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tenfold.backends.cuda.library import stretches
from tenfold.types import DTYPES, KIND
from tests.backends.cuda.against import alike, draw, graph_of, ordinary, same, steps

Array = np.ndarray[Any, Any]
FOLDS = {"cumsum": np.add, "cumprod": np.multiply, "cummax": np.maximum, "cummin": np.minimum}
KINDS = {"cumsum": "iufc", "cumprod": "iufc", "cummax": "biuf", "cummin": "biuf"}
TAKEN = [(name, d) for name in FOLDS for d in DTYPES if KIND[DTYPES[d]] in KINDS[name]]
# Around blocks of 16, teams, and stretches of 4096.
LENGTHS = (1, 2, 15, 16, 17, 33, 100, 255, 256, 257, 511, 513)


def folded(name: str, x: Array, axis: int, reverse: bool, races: bool = True) -> Array:
    made, program = alike(graph_of(name, [x], axis=axis, reverse=reverse), [x], races)
    assert steps(program) == ["RoutineStep"]
    return made[0]


def by_numpy(name: str, x: Array, axis: int, reverse: bool) -> Array:
    if reverse:
        return np.flip(by_numpy(name, np.flip(x, axis), axis, False), axis)
    return FOLDS[name].accumulate(x, axis, dtype=x.dtype)  # type: ignore[no-any-return]


@pytest.mark.parametrize(("name", "dtype"), TAKEN)
def test_every_dtype(name: str, dtype: str) -> None:
    long = (((4500,), 0), ((8300,), 0)) if dtype in ("f32", "f16", "c64", "i64", "bool") else ()
    for shape, axis in (((3, 75), 1), ((2, 19, 5), 1), *long):
        reverse = len(shape) != 2
        x = ordinary(dtype, shape) if name in ("cumsum", "cumprod") else draw(dtype, shape)
        made = folded(name, x, axis, reverse)
        if KIND[DTYPES[dtype]] in "biu" or name in ("cummax", "cummin"):
            with np.errstate(all="ignore"):
                same(made, by_numpy(name, x, axis, reverse))


@pytest.mark.parametrize("reverse", [False, True])
@pytest.mark.parametrize("dtype", ["f32", "c64", "i16"])
def test_lines_of_every_length(dtype: str, reverse: bool) -> None:
    for length in LENGTHS:
        for lines in (1, 7):
            folded("cumsum", ordinary(dtype, (lines, length), length), 1, reverse)


@pytest.mark.parametrize("dtype", ["f32", "f64", "c64"])
def test_lines_of_several_stretches(dtype: str) -> None:
    for length in (4095, 4096, 4097, 8203):
        x = ordinary(dtype, (2, length), length)
        made = folded("cumsum", x, 1, length % 2 == 1)
        if dtype == "f64":
            wanted = by_numpy("cumsum", x, 1, length % 2 == 1)
            np.testing.assert_allclose(made, wanted, rtol=1e-12, atol=1e-10)


@pytest.mark.parametrize("dtype", ["f32", "c64"])
def test_more_stretches_than_are_brought_at_a_time(dtype: str) -> None:
    lanes = 261 * 4096 + 21
    folded(
        "cumsum", ordinary(dtype, (lanes // (2 if dtype == "c64" else 1),)), 0, False, races=False
    )


@pytest.mark.parametrize("blocks", [1, 2, 3, 5])
@pytest.mark.parametrize("reverse", [False, True])
def test_blocks_of_several_stretches(
    blocks: int, reverse: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each goes on from where its last stretch ended."""
    monkeypatch.setattr(stretches, "resident", lambda size: blocks)
    for lines, length, count in ((1, 5 * 4096 - 30, 5), (2, 3 * 4096 + 5, 4)):
        x = ordinary("f32", (lines, length), length)
        _, program = alike(graph_of("cumsum", [x], axis=1, reverse=reverse), [x])
        parts = [n for name, n, _ in program.device.launches if name.endswith("_stretches")]
        each = -(-lines * count // blocks)
        assert parts[0] == lines * -(-count // each)


@pytest.mark.parametrize("name", ["cumsum", "cummax"])
def test_more_lines_than_a_block_has(name: str) -> None:
    for lines, length in ((300, 3), (257, 16), (40, 129)):
        folded(name, draw("f32", (lines, length), lines), 1, True)


@pytest.mark.parametrize("dtype", ["f32", "f16", "c64", "bool"])
def test_columns(dtype: str) -> None:
    name = "cummax" if dtype == "bool" else "cumsum"
    for shape, axis in (((1, 3), 0), ((15, 70), 0), ((16, 2), 0), ((2, 17, 3), 1), ((33, 65), 0)):
        for reverse in (False, True):
            folded(name, draw(dtype, shape), axis, reverse)


@pytest.mark.parametrize(
    ("name", "dtype"), [("cumsum", "i16"), ("cummax", "f16"), ("cummin", "f64")]
)
def test_few_long_columns_have_parts(name: str, dtype: str) -> None:
    for shape, axis in (((64, 3), 0), ((65, 3), 0), ((2, 200, 2), 1), ((1000, 3), 0)):
        for reverse in (False, True):
            x = draw(dtype, shape)
            made = folded(name, x, axis, reverse)
            with np.errstate(all="ignore"):
                same(made, by_numpy(name, x, axis, reverse))


@pytest.mark.parametrize("dtype", ["c64", "c128"])
def test_complex_products(dtype: str) -> None:
    for shape, axis in (((1,), 0), ((40,), 0), ((3, 20), 1), ((17, 5), 0), ((2, 4, 3), 1)):
        for reverse in (False, True):
            folded("cumprod", draw(dtype, shape), axis, reverse)


def test_nothing_to_fold() -> None:
    for shape, axis in (((0,), 0), ((3, 0), 1), ((0, 3), 0)):
        x = np.zeros(shape, np.float32)
        made, _ = alike(graph_of("cumsum", [x], axis=axis, reverse=False), [x])
        assert made[0].shape == shape
