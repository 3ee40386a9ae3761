"""Sorts of lines, for every target, bit for bit as NumPy's stable ones."""

from __future__ import annotations

import ctypes
import sys
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest

sys.path.insert(0, str(Path(__file__).parent))

from running import HOST, every_target

from tenfold.backends.cpu.entry.abi import STOPPED
from tenfold.backends.cpu.library.sort import quicksort, sort_name
from tenfold.backends.cpu.library.sort.partition import IN_PLACE
from tenfold.backends.cpu.library.sort.poll import POLLED
from tenfold.backends.cpu.library.sort.sort import LONGEST, scratch_bytes, sort_text
from tenfold.backends.cpu.link.loader import load
from tenfold.backends.llvm.assemble import assemble
from tenfold.backends.llvm.target import LLVMTarget
from tenfold.types import DTYPES, KIND
from tests.backends.cpu.test_masks import PAGE, Walled

Array = np.ndarray[Any, Any]
REAL = [name for name, dtype in DTYPES.items() if KIND[dtype] != "c"]
GUARD = 0xA5
# Around vectors, blocks that are sorted in registers, and odd numbers of vectors and blocks.
LENGTHS = (1, 2, 15, 16, 17, 31, 32, 33, 49, 63, 64, 65, 100, 129, 160)


@cache
def image(name: str, dtype: str, target: LLVMTarget) -> Any:
    symbol = sort_name(name, dtype)
    return load([assemble(sort_text(symbol, target), target)], [symbol])


def lines(
    name: str, dtype: str, target: LLVMTarget, x: Array, poll: int = 0, answer: int = 0
) -> Array:
    """Sort the rows of x; scratch memory has a guard behind it."""
    made = np.empty(x.shape, x.dtype if name == "sort" else np.int64)
    needed = scratch_bytes(name, dtype, x.shape[1])
    assert needed is not None
    room = np.full(needed + 128, GUARD, np.uint8)
    start = -room.ctypes.data % 64
    assert sort_into(made, name, dtype, target, x, room[start:], poll) == answer
    assert np.all(room[start + needed :] == GUARD)
    return made


def sort_into(
    made: Array, name: str, dtype: str, target: LLVMTarget, x: Array, room: Array, poll: int = 0
) -> int:
    symbol = sort_name(name, dtype)
    word, size = ctypes.c_void_p, ctypes.c_int64
    function = ctypes.CFUNCTYPE(ctypes.c_int32, word, word, size, size)(
        image(name, dtype, target).address(symbol)
    )
    table = np.array([*(a.ctypes.data for a in (x, made, room)), poll, 0], np.uint64)
    params = np.array([x.shape[1], 0], np.int64)
    return int(function(table.ctypes.data, params.ctypes.data, 0, len(x)))


POLL = ctypes.CFUNCTYPE(ctypes.c_int32, ctypes.c_void_p)


@pytest.mark.parametrize("shape", [(1, 300_000), (12_000, 16), (200, 900), (3, 70_000)])
@pytest.mark.parametrize(
    ("name", "dtype"),
    [("sort", "f64"), ("sort", "f32"), ("sort", "i8"), ("argsort", "i32"), ("argsort", "f64")],
)
def test_long_sorts_poll_and_stop_when_told(name: str, dtype: str, shape: tuple[int, int]) -> None:
    x, seen = draw(dtype, shape, 1), [0]
    last = 1 << 30

    def answer(given: int) -> int:
        seen[0] += 1
        return int(seen[0] > last)

    poll = POLL(answer)
    address = ctypes.cast(poll, ctypes.c_void_p).value or 0
    order = np.argsort(x, 1, kind="stable")
    wanted = np.take_along_axis(x, order, 1) if name == "sort" else order
    made = lines(name, dtype, HOST, x, address)
    assert made.tobytes() == wanted.astype(made.dtype).tobytes()
    polls = seen[0]
    assert polls >= x.size // POLLED - 1
    for last in {0, 1, polls // 2, polls - 1}:
        seen[0] = 0
        lines(name, dtype, HOST, x, address, STOPPED)
        assert seen[0] == last + 1  # at once


def draw(dtype: str, shape: tuple[int, ...], seed: int) -> Array:
    random = np.random.default_rng(seed)
    kind = KIND[DTYPES[dtype]]
    if kind == "b":
        return random.random(shape) > 0.5
    if kind in "iu":
        limits = np.iinfo(DTYPES[dtype])
        made = random.integers(limits.min, limits.max, shape, DTYPES[dtype], endpoint=True)
        small = random.integers(0, 5, shape).astype(made.dtype)
        return np.where(random.random(shape) < 0.4, small, made)
    made = random.standard_normal(shape)
    for value in (0.0, -0.0, np.nan, -np.nan, np.inf, -np.inf):
        made[random.random(shape) < 0.08] = value
    return made.astype(DTYPES[dtype])


@every_target
@pytest.mark.parametrize("dtype", REAL)
def test_lines_of_every_length(target: LLVMTarget, dtype: str) -> None:
    for length in (*LENGTHS, 192, 193, 512, 513, 1000):
        x = draw(dtype, (3, length), length)
        wide = x.astype(np.float32) if dtype in ("f16", "bf16") else x
        order = np.argsort(wide, 1, kind="stable")
        np.testing.assert_array_equal(lines("argsort", dtype, target, x), order)
        wanted = np.take_along_axis(x, order, 1)
        assert lines("sort", dtype, target, x).tobytes() == wanted.tobytes()


@every_target
@pytest.mark.parametrize("dtype", ["u8", "f16", "i32", "f32", "f64"])
def test_long_lines(target: LLVMTarget, dtype: str) -> None:
    """Long enough for longer digits, and for many levels of merging."""
    for length in (12_289, 40_001):
        x = draw(dtype, (1, length), 5)
        wide = x.astype(np.float32) if dtype == "f16" else x
        order = np.argsort(wide, 1, kind="stable")
        np.testing.assert_array_equal(lines("argsort", dtype, target, x), order)
        wanted = np.take_along_axis(x, order, 1)
        assert lines("sort", dtype, target, x).tobytes() == wanted.tobytes()


@pytest.mark.parametrize("dtype", ["i16", "i32", "f32", "i64"])
@pytest.mark.parametrize("length", [500, 1000, 13_000])
def test_keys_whose_digits_are_all_the_same_are_left_alone(dtype: str, length: int) -> None:
    """Passes that are left out are any: the first, the last, between, all or all but one."""
    random = np.random.default_rng(0)
    bits = 16 if dtype == "i16" else 32
    for varied in (0, 0x7, 0x7FF, 0x3FF800, 0x3FF807, 0x7F000000, 0x7F000007):
        x = random.integers(0, 1 << bits - 1, (2, length)) & varied & (1 << bits - 1) - 1
        x = (x + 9).astype(DTYPES["i32" if dtype == "f32" else dtype]).view(DTYPES[dtype])
        order = np.argsort(x, 1, kind="stable")
        np.testing.assert_array_equal(lines("argsort", dtype, HOST, x), order)
        wanted = np.take_along_axis(x, order, 1)
        assert lines("sort", dtype, HOST, x).tobytes() == wanted.tobytes()


@every_target
@pytest.mark.parametrize("dtype", ["f16", "f32", "f64"])
@pytest.mark.parametrize("length", [5, 30, 64, 700, 13_000])
def test_infinities_and_nans_are_told_apart(target: LLVMTarget, dtype: str, length: int) -> None:
    """Items may be floats, of which NaNs are infinities while they are sorted."""
    values = np.array([np.inf, np.nan, -np.nan, -np.inf], DTYPES[dtype])
    x = np.random.default_rng(1).choice(values, (2, length))
    order = np.argsort(x, 1, kind="stable")
    assert lines("sort", dtype, target, x).tobytes() == np.take_along_axis(x, order, 1).tobytes()


QUICK = ("f32", "f64", "i32", "i64", "u32", "u64")


def shaped(dtype: str, length: int) -> list[Array]:
    """Lines that quicksort may find hard: in order already, or of few distinct values."""
    given, of = DTYPES[dtype], np.random.default_rng(length)
    base, count = draw(dtype, (1, length), length), np.arange(length)
    rising = np.sort(base, 1)
    made = [rising, rising[:, ::-1], np.full((1, length), 7)]
    made += [np.minimum(count, length - 1 - count)[None], (count % 7)[None], (count % 100)[None]]
    made += [of.choice(base[0], k)[of.integers(0, k, (1, length))] for k in (2, 3, 30)]
    if KIND[given] == "f":
        ends = [0.0, -0.0, np.inf, -np.inf, np.nan, -np.nan]
        bits = np.frombuffer(of.bytes(given.itemsize * length), given)[None]
        made += [bits, np.full((1, length), np.nan)]
    else:
        limits = np.iinfo(given)
        ends = [limits.min, limits.min + 1, 0, limits.max - 1, limits.max]
        made += [np.full((1, length), one, given) for one in (limits.min, limits.max)]
    made += [np.array(ends, given)[of.integers(0, k, (1, length))] for k in (2, len(ends))]
    return [np.ascontiguousarray(one.astype(given, copy=False)) for one in made]


@every_target
@pytest.mark.parametrize("dtype", QUICK)
def test_lines_in_order_and_of_few_values(target: LLVMTarget, dtype: str) -> None:
    """Around what registers hold (64 items to 256), where ranges are partitioned once or often."""
    for length in (1, 3, 4, 8, 9, 33, 63, 64, 65, 127, 129, 255, 256, 257, 300, 513, 5000):
        for x in shaped(dtype, length):
            wanted = np.sort(x, 1, kind="stable")
            assert lines("sort", dtype, target, x).tobytes() == wanted.tobytes()


@every_target
@pytest.mark.parametrize("dtype", ["f32", "f64", "i32", "u64"])
def test_nothing_is_touched_beside_a_line(target: LLVMTarget, dtype: str) -> None:
    """It, the result and scratch memory end, or begin, where nobody may touch memory."""
    element = DTYPES[dtype]
    walls = [Walled(4 * IN_PLACE * element.itemsize // PAGE) for _ in range(3)]
    for length in (*LENGTHS, 255, 256, 257, 300, 1000, IN_PLACE, IN_PLACE + 47):
        needed = scratch_bytes("sort", dtype, length)
        assert needed is not None
        x = draw(dtype, (1, length), length)
        for end in (False, True):
            sizes = zip(walls, (x.nbytes, x.nbytes, needed), strict=True)
            given, to, room = (w.bytes[-n:] if end else w.bytes[:n] for w, n in sizes)
            given, to = (place.view(element).reshape(x.shape) for place in (given, to))
            given[...] = x
            assert sort_into(to, "sort", dtype, target, given, room) == 0
            assert to.tobytes() == np.sort(x, 1, kind="stable").tobytes()


@every_target
@pytest.mark.parametrize("dtype", ["f32", "f64", "i32", "i64"])
def test_long_lines_are_partitioned_in_place(target: LLVMTarget, dtype: str) -> None:
    for length in (IN_PLACE, IN_PLACE + 1, IN_PLACE + 47, 3 * IN_PLACE + 5):
        for x in (draw(dtype, (2, length), length), *shaped(dtype, length)):
            wanted = np.sort(x, 1, kind="stable")
            assert lines("sort", dtype, target, x).tobytes() == wanted.tobytes()


@every_target
@pytest.mark.parametrize("dtype", ["f32", "f64", "u32", "i64"])
def test_bad_pivots_are_left_for_the_middle_of_what_there_may_be(
    target: LLVMTarget, dtype: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As is done with a range that was partitioned too often; here with every one, at once."""
    monkeypatch.setattr(quicksort, "_PARTITIONS", 0)
    image.cache_clear()
    try:
        for length in (300, 1000, 20_000, IN_PLACE + 1):
            for x in (draw(dtype, (2, length), length), *shaped(dtype, length)):
                wanted = np.sort(x, 1, kind="stable")
                assert lines("sort", dtype, target, x).tobytes() == wanted.tobytes()
    finally:
        image.cache_clear()


@pytest.mark.parametrize("dtype", ["f32", "i64"])
def test_a_line_of_equal_elements_polls(dtype: str) -> None:
    x, seen = np.full((1, 400_000), 3, DTYPES[dtype]), [0]
    last = 1 << 30

    def answer(given: int) -> int:
        seen[0] += 1
        return int(seen[0] > last)

    poll = POLL(answer)
    address = ctypes.cast(poll, ctypes.c_void_p).value or 0
    assert lines("sort", dtype, HOST, x, address).tobytes() == x.tobytes()
    polls = seen[0]
    assert polls >= 2 * (x.size // POLLED)  # as it is partitioned, and as it is filled
    for last in range(polls):
        seen[0] = 0
        lines("sort", dtype, HOST, x, address, STOPPED)
        assert seen[0] == last + 1


def test_what_there_is_no_sort_of() -> None:
    assert scratch_bytes("sort", "c64", 10) is None
    assert scratch_bytes("argsort", "f32", LONGEST) is None
