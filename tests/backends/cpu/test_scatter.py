"""Stores that join values to what is there, in the order of sequential axes, for every target."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tenfold.backends.cpu.schedule.schedule import choose
from tenfold.backends.llvm.target import LLVMTarget
from tenfold.errors import GraphError
from tenfold.kernel import Builder, Kernel, from_data, show, to_data, verify
from tenfold.kernel.ir.kernel import SEQUENTIAL
from tenfold.kernel.passes.collapse import collapse
from tenfold.types import DTYPES, KIND
from tests.backends.cpu.running import Program, every_target

FOLDS = {"": None, "add": np.add, "mul": np.multiply, "min": np.minimum, "max": np.maximum}
random = np.random.default_rng(23)


def draw(dtype: str, *shape: int) -> Any:
    kind = KIND[DTYPES[dtype]]
    if kind == "b":
        return random.random(shape) > 0.5
    if kind in "iu":
        return random.integers(0, 90, shape).astype(DTYPES[dtype])
    return random.standard_normal(shape).astype(DTYPES[dtype])


def rows(
    dtype: str, count: int, places: int, width: int, update: str, conditional: bool = False
) -> Kernel:
    """out[index[i], :] joined with x[i, :], one row after another."""
    b = Builder()
    x, at = b.buffer(dtype, count * width), b.buffer("i32", count)
    out = b.buffer(dtype, places * width, "both")
    i, j = b.axis(count, SEQUENTIAL), b.axis(width)
    place = b.as_index(b.load(at, i), places)
    condition = b.op("lt", "bool", b.load(at, i), b.literal("i32", 4)) if conditional else None
    b.store(out, place * width + j, b.load(x, i * width + j), condition, update=update)
    return b.finish()


def expected(x: Any, at: Any, out: Any, update: str) -> Any:
    made = out.copy()
    if update:
        with np.errstate(all="ignore"):
            FOLDS[update].at(made, at, x)  # type: ignore[union-attr]
    else:
        made[at] = x
    return made


@every_target
@pytest.mark.parametrize("update", FOLDS)
@pytest.mark.parametrize("dtype", ["f32", "f64", "i64", "i8", "u16", "bool"])
def test_rows_of_every_width(target: LLVMTarget, dtype: str, update: str) -> None:
    for count, width in ((1, 1), (37, 1), (37, 2), (20, 19), (5, 64)):
        program = Program(rows(dtype, count, 6, width, update), target)
        x, out = draw(dtype, count, width), draw(dtype, 6, width)
        at = random.integers(0, 6, count).astype(np.int32)
        wanted = expected(x, at, out, update)
        program(x, at, out)
        np.testing.assert_array_equal(out, wanted)


@every_target
def test_a_condition_for_each_lane(target: LLVMTarget) -> None:
    program = Program(rows("f32", 37, 6, 1, "add", conditional=True), target)
    x, out = draw("f32", 37, 1), draw("f32", 6, 1)
    at = random.integers(0, 6, 37).astype(np.int32)
    wanted = expected(x[at < 4], at[at < 4], out, "add")
    program(x, at, out, params=[np.int32(4).tobytes()])
    np.testing.assert_array_equal(out, wanted)


@every_target
def test_columns(target: LLVMTarget) -> None:
    """Windows that lie across memory: they go outside, what is in order lies across lanes."""
    b = Builder()
    x, at, out = b.buffer("f32", 7 * 40), b.buffer("i64", 40), b.buffer("f32", 7 * 9, "both")
    r, i = b.axis(7), b.axis(40, SEQUENTIAL)
    place = b.as_index(b.load(at, i), 9)
    b.store(out, r * 9 + place, b.load(x, r * 40 + i), update="add")
    kernel = b.finish()
    assert choose(kernel, target).lanes == {1}
    xs, outs, places = draw("f32", 7, 40), draw("f32", 7, 9), random.integers(0, 9, 40)
    wanted = outs.copy()
    np.add.at(wanted.T, places, xs.T)
    Program(kernel, target)(xs, places, outs)
    np.testing.assert_array_equal(outs, wanted)


def test_neighbouring_axes_in_order_become_one() -> None:
    def kernel(turned: bool) -> Kernel:
        b = Builder()
        x, at, out = b.buffer("f32", 60), b.buffer("i32", 60), b.buffer("f32", 4, "both")
        i, j = b.axis(6, SEQUENTIAL), b.axis(10, SEQUENTIAL)
        where = j * 6 + i if turned else i * 10 + j
        b.store(out, b.as_index(b.load(at, where), 4), b.load(x, where), update="add")
        return b.finish()

    assert len(collapse(kernel(False)).axes) == 1
    assert len(collapse(kernel(True)).axes) == 2  # its order is another
    x, at, out = draw("f32", 60) * 1e5, random.integers(0, 4, 60).astype(np.int32), draw("f32", 4)
    for turned in (False, True):
        made = out.copy()
        order = np.arange(60).reshape(10, 6).T.ravel() if turned else np.arange(60)
        Program(kernel(turned))(x, at, made)
        np.testing.assert_array_equal(made, expected(x[order], at[order], out, "add"))


def test_as_data_and_in_words() -> None:
    kernel = rows("f32", 8, 4, 1, "max")
    assert from_data(to_data(kernel)) == kernel
    assert kernel.digest != rows("f32", 8, 4, 1, "min").digest
    assert " = max with %" in show(kernel)


def test_what_is_no_update() -> None:
    b = Builder()
    x, out = b.buffer("f32", 8), b.buffer("f32", 8, "write")
    i = b.axis(8)
    b.store(out, i, b.load(x, i), update="add")
    with pytest.raises(GraphError, match="both read and written"):
        verify(b.finish())
    b = Builder()
    x, out = b.buffer("f32", 8), b.buffer("f32", 8, "both")
    i = b.axis(8)
    b.store(out, i, b.load(x, i), update="sub")
    with pytest.raises(GraphError, match="no update sub"):
        verify(b.finish())
