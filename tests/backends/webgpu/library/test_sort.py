"""Sorts on a WebGPU adapter: NumPy's stable order, bit for bit."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tenfold as tn
from tenfold.backends.webgpu.library.routine import Routine
from tenfold.backends.webgpu.library.sort import greatest_routine, sort_routine
from tenfold.backends.webgpu.library.sort_text import TILE
from tenfold.types import DTYPES, KIND, TensorType
from tests.backends.webgpu.beside import Array, run_shader, values
from tests.backends.webgpu.here import needs_adapter
from tests.backends.webgpu.run.test_run import agrees

pytestmark = [needs_adapter, pytest.mark.filterwarnings("ignore::RuntimeWarning")]
REAL = [name for name, dtype in DTYPES.items() if KIND[dtype] != "c"]
LENGTHS = (1, 2, 3, 5, 31, 64, 129, TILE - 1, TILE, TILE + 1, 2 * TILE, 2 * TILE + 1, 5000)


def ordered(x: Array) -> Array:
    """NumPy's stable order along the last axis."""
    wide = x.astype(np.float32) if x.dtype.itemsize == 2 and KIND[x.dtype] == "f" else x
    return np.argsort(wide, -1, kind="stable")


def done(routine: Routine | None, x: Array, *wanted: Array) -> list[str]:
    """Have a routine done, and see that every bit is as wanted: the entry points it took."""
    assert routine is not None
    made = [np.zeros(w.shape, w.dtype) for w in wanted]
    run_shader(routine.shader, routine.bound((0,) * (1 + len(made))), [x, *made])
    for got, want in zip(made, wanted, strict=True):
        assert got.tobytes() == np.ascontiguousarray(want).tobytes()
    return [one.entry for one in routine.launches]


def check(name: str, x: Array) -> list[str]:
    order = ordered(x)
    wanted = np.take_along_axis(x, order, -1) if name == "sort" else order.astype(np.int64)
    type = TensorType(x.dtype, x.shape)
    return done(sort_routine(name, type, {"axis": x.ndim - 1}), x, wanted)


def check_greatest(x: Array, k: int) -> list[str]:
    """The first of equals come first."""
    n = x.shape[-1]
    places = (n - 1 - ordered(x[..., ::-1])[..., ::-1])[..., :k]
    routine = greatest_routine(TensorType(x.dtype, x.shape), k)
    return done(routine, x, np.take_along_axis(x, places, -1), places.astype(np.int64))


@pytest.mark.parametrize("dtype", REAL)
def test_every_dtype(dtype: str) -> None:
    for shape in ((3, 40), (1, 1100)):
        x = values(shape, dtype)
        check("sort", x)
        check("argsort", x)
        check_greatest(x, 3)


@pytest.mark.parametrize("dtype", ["f32", "i64"])
def test_lines_of_every_length(dtype: str) -> None:
    for length in LENGTHS:
        x = values((3, length), dtype, length)
        check("sort", x)
        check("argsort", x)
        check_greatest(x, min(length, 7))


def test_runs_are_merged_twice_as_long_each_time() -> None:
    assert check("sort", values((1, 20_000), "f32")) == [
        "tiles1024_x_0", "merge_0_1", "merge_1_0", "merge_0_1", "merge_1_0", "merge_0_x",
    ]  # fmt: skip


def test_more_lines_than_a_workgroup_has() -> None:
    for lines, length in ((300, 3), (130, 7), (70, 16), (9, 60), (5, 200)):
        check("sort", values((lines, length), "f32"))
        check("argsort", values((lines, length), "i16"))


def test_equal_and_sorted_lines() -> None:
    for length in (100, 5000):
        for x in (np.zeros(length), np.arange(length), np.arange(length)[::-1]):
            check("argsort", x.astype(np.int32)[None])


@pytest.mark.parametrize("dtype", ["u8", "f16", "f32", "i64"])
def test_arrays_that_begin_amid_what_is_bound(dtype: str) -> None:
    for length in (30, 1500):
        x, made = values((length + 3,), dtype), np.ones(length + 9, DTYPES[dtype])
        wanted = made.copy()
        wanted[5:-4] = x[3:][ordered(x[3:])]
        type = TensorType(x.dtype, (length,))
        routine = sort_routine("sort", type, {"axis": 0})
        assert routine is not None
        run_shader(routine.shader, routine.bound((3, 5)), [x, made])
        assert made.tobytes() == wanted.tobytes()


def test_the_greatest_of_the_greatest_of_tiles() -> None:
    x = values((1, 70_000), "f32")
    assert check_greatest(x, 32) == ["tiles1024_x_0", "tiles1024_0_1", "tiles128_1_x"]
    assert check_greatest(x[:, :3000], 700)[-1] == "merge_1_x"  # too many: all are sorted
    check_greatest(x[:, :1000], 1000)


def test_in_programs() -> None:
    x = np.random.default_rng(0).standard_normal((70, 90)).astype(np.float32)
    programs: list[Any] = [
        lambda a: np.sort(a),
        lambda a: np.sort(a, axis=0)[1:] + 1,
        lambda a: np.argsort(a[:, ::-1], stable=True),
        lambda a: tn.top_k(a, 5),
        lambda a: np.sort(a.astype(np.float16)),
        lambda a: np.median(a, axis=1),
        # Results that begin amid words of another's:
        lambda a: np.concatenate([np.sort(a[:, :33].astype("i1")), a[:, 33:].astype("i1")], 1),
    ]
    for function in programs:
        program = agrees(function, x)
        assert "routine" in [step.kind for step in program.plan.steps]
        assert not program.plan.host_steps


def test_complex_numbers_and_nothing() -> None:
    program = agrees(np.sort, np.ones((3, 5), np.complex64))
    assert [s.reason for s in program.plan.host_steps] == [
        "there is no sort of complex numbers in WGSL yet"
    ]
    agrees(np.sort, np.zeros((3, 0), np.float32))
