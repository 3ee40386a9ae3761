"""Long rows that do not begin with lines of memory: their vectors are stored by lines."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tenfold.kernel import Builder, Kernel
from tests.backends.cpu.running import Program, every_target, random


def inner(rows: int, columns: int, dtype: str, left: int, right: int, alias: int = 0) -> Kernel:
    """A step of a stencil: all but the first `left` and the last `right` of each row."""
    b = Builder()
    x = b.buffer(dtype, rows * columns, alias=alias)
    y = b.buffer(dtype, rows * columns, "write", alias=alias)
    i, j = b.axis(rows), b.axis(columns - left - right)
    at = i * columns + j + left
    shift = at if alias else at - left
    b.store(y, at, b.op("add", dtype, b.load(x, shift), b.load(x, at)))
    return b.finish()


@every_target
@pytest.mark.parametrize("dtype", ["f32", "f64", "i16", "u8"])
@pytest.mark.parametrize("columns", [300, 512, 1003])
def test_each_element_is_written_and_no_other(dtype: str, columns: int, target: Any) -> None:
    rows = 120
    for left, right in ((1, 1), (0, 7), (5, 0), (17, 3), (0, 0)):
        program = Program(inner(rows, columns, dtype, left, right), target)
        x = (random((rows, columns), "f64") * 20).astype(program_dtype(dtype))
        for shift in (0, 3):  # where arrays begin
            room = np.zeros(rows * columns + 64, x.dtype)
            found = room[shift : shift + rows * columns].reshape(rows, columns)
            found[:] = 99
            assert program(x, found) == 0
            wanted = np.full_like(x, 99)
            inside = slice(left, columns - right)
            wanted[:, inside] = x[:, : columns - left - right] + x[:, inside]
            np.testing.assert_array_equal(found, wanted)


def program_dtype(short: str) -> Any:
    return {"f32": "float32", "f64": "float64", "i16": "int16", "u8": "uint8"}[short]


@every_target
def test_only_what_may_not_begin_with_lines_is_looked_at(target: Any) -> None:
    def lined(kernel: Kernel) -> bool:
        return Program(kernel, target).compiled.schedule.lined is not None

    assert lined(inner(200, 512, "f32", 1, 1))
    assert not lined(inner(200, 512, "f32", 0, 1))
    assert not lined(inner(200, 512, "f32", 16, 16))
    assert not lined(inner(400, 200, "f32", 1, 1))  # short rows
    assert not lined(inner(200, 512, "f32", 1, 1, alias=1))  # in place nothing is written twice
