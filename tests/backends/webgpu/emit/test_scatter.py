"""Scatters on a WebGPU adapter: the bits of one that takes updates in their order."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import tenfold as tn
from tenfold.backends.webgpu.emit.emit import prepare
from tenfold.kernel import Builder, Kernel
from tenfold.kernel.ir.kernel import SEQUENTIAL
from tenfold.kernel.passes.generalise import generalise
from tenfold.types import DTYPES
from tests.backends.webgpu.beside import adapter, beside, launched, values
from tests.backends.webgpu.here import needs_adapter
from tests.backends.webgpu.run.test_run import agrees

pytestmark = [needs_adapter, pytest.mark.filterwarnings("ignore::RuntimeWarning")]


def scattered(dtype: str, update: str, count: int, places: int, width: int) -> Kernel:
    b = Builder()
    at, x = b.buffer("i64", count), b.buffer(dtype, count * width)
    out = b.buffer(dtype, places * width, "both")
    i, j = b.axis(count, SEQUENTIAL), b.axis(width)
    row = b.as_index(b.load(at, i), places)
    b.store(out, row * width + j, b.load(x, i * width + j), update=update)
    return b.finish()


def schedule_of(dtype: str, update: str, count: int, places: int, width: int) -> str:
    drawn = np.random.default_rng(1).integers(0, places, count)
    begun = values((places, width), dtype, 5)
    kernel = scattered(dtype, update, count, places, width)
    return beside(kernel, drawn, values((count, width), dtype), begun).shader.schedule


ATOMIC, MARKED = "an atomic operation for each update", "updates leave their numbers"
SORTED = "updates sorted by place, each place takes its own in order"


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("update", ["", "add", "mul", "max", "min"])
def test_every_dtype(dtype: str, update: str) -> None:
    if update and (dtype == "bool" or (dtype[0] == "c" and update in ("max", "min"))):
        pytest.skip("no such update")
    for shape in ((20, 6, 5), (100, 20, 5), (700, 50, 1), (64, 1, 3)):
        schedule = schedule_of(dtype, update, *shape)
        if shape[0] == 100:
            atomic = dtype in ("i32", "u32") and update in ("add", "max", "min")
            assert schedule.startswith(ATOMIC if atomic else SORTED if update else MARKED)


@pytest.mark.parametrize("count", [33, 2047, 2048, 2049, 9000])
@pytest.mark.parametrize("places", [1, 3, 16, 17, 4000])
def test_updates_are_sorted_by_their_places(count: int, places: int) -> None:
    """Sums hang on the order of what is added."""
    for dtype, width in (("f32", 1), ("f16", 3)):
        assert schedule_of(dtype, "add", count, places, width) == SORTED


def test_many_updates_of_many_places() -> None:
    """More tiles than a workgroup has invocations, and five passes."""
    assert schedule_of("f32", "add", 600_000, 70_000, 1) == SORTED


def test_more_updates_than_loops_have_rounds() -> None:
    """A further dispatch goes on with the places that have more of them."""
    x = np.random.default_rng(2).standard_normal((150_000, 2)).astype(np.float32)
    kernel = scattered("f32", "add", 150_000, 50, 2)
    for drawn in (np.random.default_rng(1).integers(0, 50, 150_000), np.arange(150_000) // 140_000):
        done = beside(kernel, drawn, x, np.zeros((50, 2), np.float32))
        assert done.shader.schedule == SORTED
    if adapter().target.loop_limit:
        assert "turn" in done.shader.text.split("fn main3")[1]


def batches(count: int, places: int) -> Builder:
    """Of each batch the updates go to places of its own; along with them something is written."""
    b = Builder()
    at, x = b.buffer("i64", 3 * count), b.buffer("f32", 3 * count * 2)
    out, other = b.buffer("f32", 3 * places * 2, "both"), b.buffer("f32", 3 * count * 2, "write")
    i, k, j = b.axis(3), b.axis(count, SEQUENTIAL), b.axis(2)
    update = i * count + k
    place = b.load(at, update)
    b.check(b.op("lt", "bool", place, b.const("i64", places)), 3)
    row = i * places + b.as_index(place, places)
    value = b.load(x, update * 2 + j)
    b.store(other, update * 2 + j, b.op("neg", "f32", value))
    b.store(out, row * 2 + j, value, update="add")
    return b


@pytest.mark.parametrize("count", [40, 1500])
def test_places_of_their_own_and_further_stores(count: int) -> None:
    random = np.random.default_rng(4)
    drawn, x = random.integers(0, 9, (3, count)), random.standard_normal((3, count, 2))
    out, other = np.ones((3, 9, 2), np.float32), np.zeros((3, count, 2), np.float32)
    kernel = batches(count, 9).finish()
    done = beside(kernel, drawn, x.astype(np.float32), out, other)
    assert (done.shader.schedule, done.fault) == (SORTED, 0)
    drawn[2, 7] = 9
    launched_ = launched(kernel, [drawn, x.astype(np.float32), out, other])
    assert launched_.fault == 1 << 3


@pytest.mark.parametrize(("limit", "least"), [("storage_bytes", 3000 * 8), ("storage_buffers", 9),
                                              ("workgroup_bytes", 18512)])  # fmt: skip
def test_where_an_adapter_has_too_little_for_sorting(limit: str, least: int) -> None:
    """One window after the other then, and one update after the other."""
    call = generalise(scattered("f32", "add", 3000, 50, 2))
    for has, words in ((least, SORTED), (least - 1, "an invocation for each position")):
        shader, facts = prepare(call, replace(adapter().target, **{limit: has}))
        assert shader.schedule == words
    few = generalise(scattered("f32", "add", 2000, 50, 2))
    assert facts.hold(few.sizes) == (limit != "storage_bytes")


def test_an_axis_in_order_that_carries_state() -> None:
    """Each position reads what the one before has written."""
    b = Builder()
    x, out = b.buffer("f32", 100 * 7), b.buffer("f32", 101 * 7, "both")
    i, j = b.axis(100, SEQUENTIAL), b.axis(7)
    before = b.load(out, i * 7 + j)
    b.store(out, (i + 1) * 7 + j, b.op("add", "f32", before, b.load(x, i * 7 + j)))
    drawn = np.random.default_rng(2).standard_normal((100, 7)).astype(np.float32)
    beside(b.finish(), drawn, np.zeros((101, 7), np.float32))


def test_in_a_loop() -> None:
    """Each round sorts its own updates, in the same memory."""
    random = np.random.default_rng(5)
    places = random.integers(0, 30, (4, 2000))
    x = random.standard_normal((4, 2000)).astype(np.float32)

    def added(places: Any, x: Any) -> Any:
        def step(sums: Any, given: Any) -> Any:
            at, values = given
            np.add.at(sums, at, values)
            return sums, sums.sum()

        return tn.scan(step, np.zeros(30, np.float32), (places, x))

    program = agrees(added, places, x)
    assert any(SORTED in line for line in program.remarks())
    wanted = np.zeros(30, np.float32)
    np.add.at(wanted, places.reshape(-1), x.reshape(-1))
    assert np.array_equal(program([places, x])[0], wanted)
