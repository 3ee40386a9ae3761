"""Convolutions in panels, for every target, beside loops; next to memory nobody may touch."""

from __future__ import annotations

import ctypes
import mmap
from functools import cache
from itertools import pairwise, product
from math import prod
from typing import Any

import numpy as np
import pytest

from tenfold.backends.cpu.entry.abi import STOPPED
from tenfold.backends.cpu.library.conv.sizes import (
    BLOCK,
    COLUMNS,
    ROWS,
    TERMS,
    convolution_routine,
)
from tenfold.backends.cpu.library.routine import routine_text
from tenfold.backends.cpu.link.loader import load
from tenfold.backends.llvm.assemble import assemble
from tenfold.backends.llvm.target import LLVMTarget
from tenfold.ops import TABLE
from tenfold.ops.algebra.ways import is_direct
from tenfold.types import DTYPES, TensorType
from tests.backends.cpu.running import HOST, TARGETS, every_target

Array = np.ndarray[Any, Any]
PAGE = mmap.PAGESIZE
OLD = 0x5A


@cache
def image(symbol: str, target: LLVMTarget) -> Any:
    return load([assemble(routine_text(symbol, target), target)], [symbol])


class Walled:
    """An array that ends where a page begins that nobody may touch."""

    def __init__(self, array: Array) -> None:
        pages = -(-array.nbytes // PAGE)
        self.memory = mmap.mmap(-1, (pages + 1) * PAGE)
        base = ctypes.addressof(ctypes.c_char.from_buffer(self.memory))
        protect = ctypes.CDLL(None).mprotect
        assert protect(ctypes.c_void_p(base + pages * PAGE), ctypes.c_size_t(PAGE), 0) == 0
        self.address = base + pages * PAGE - array.nbytes
        ctypes.memset(base, OLD, pages * PAGE)
        self.before = self.address - base
        ctypes.memmove(self.address, array.ctypes.data, array.nbytes)
        self.base, self.like = base, array

    def read(self) -> Array:
        assert set(ctypes.string_at(self.base, self.before)) <= {OLD}
        raw = ctypes.string_at(self.address, self.like.nbytes)
        return np.frombuffer(raw, self.like.dtype).reshape(self.like.shape)


def convolved(
    x: Array,
    w: Array,
    given: dict[str, Any],
    target: LLVMTarget = HOST,
    *,
    parts: int = 1,
    poll: int = 0,
    answer: int = 0,
) -> Array:
    """What the function makes of x and w, in so many calls, the last chunks first."""
    types = tuple(TensorType(x.dtype, a.shape) for a in (x, w))
    (result,) = TABLE["conv_valid"].infer(types, given, ())
    call = convolution_routine(types, given)
    assert call is not None
    word, size = ctypes.c_void_p, ctypes.c_int64
    function = ctypes.CFUNCTYPE(ctypes.c_int32, word, word, size, size)(
        image(call.symbol, target).address(call.symbol)
    )
    arrays = [Walled(a) for a in (x, w, np.empty(result.shape, x.dtype))]
    table = np.array([*(a.address for a in arrays), poll, 0], np.uint64)
    params = np.array(call.params, np.int64)
    ends = [call.parts * n // parts for n in range(parts + 1)]
    for low, high in reversed(list(pairwise(ends))):
        assert function(table.ctypes.data, params.ctypes.data, low, high) == answer
    return arrays[2].read()


def given_of(rank: int, strides: Any = 1, dilation: Any = 1, groups: int = 1) -> dict[str, Any]:
    each = [v if isinstance(v, tuple) else (v,) * rank for v in (strides, dilation)]
    return {"strides": each[0], "dilation": each[1], "groups": groups}


def looped(x: Array, w: Array, strides: Any, dilation: Any, groups: int) -> Array:
    """Element by element of the kernel, exactly for small whole numbers."""
    n, o, each = x.shape[0], w.shape[0], w.shape[1]
    out = [
        (m - (k - 1) * d - 1) // s + 1
        for m, k, s, d in zip(x.shape[2:], w.shape[2:], strides, dilation, strict=True)
    ]
    made = np.zeros((n, o, *out), x.dtype)
    for channel, *at in product(*(range(k) for k in w.shape[1:])):
        places = tuple(
            slice(k * d, k * d + (m - 1) * s + 1, s)
            for k, d, m, s in zip(at, dilation, out, strides, strict=True)
        )
        for c in range(o):
            seen = x[(slice(None), c // (o // groups) * each + channel, *places)]
            made[:, c] += seen * w[(c, channel, *at)]
    return made


SHAPES = {
    "plain": ((1, 8, 20, 20), (16, 8, 3, 3), {}),
    "one column": ((1, 3, 3, 3), (9, 3, 3, 3), {}),
    "images in a panel": ((7, 5, 7, 7), (12, 5, 3, 3), {}),
    "narrow lines": ((2, 3, 30, 4), (5, 3, 2, 3), {}),
    "wide lines": ((2, 3, 3, 150), (6, 3, 2, 3), {}),
    "strides of 2": ((2, 4, 21, 41), (7, 4, 3, 3), {"strides": 2}),
    "a stride of 2 along lines": ((1, 2, 5, 230), (4, 2, 1, 5), {"strides": (1, 2)}),
    "strides of 3": ((2, 4, 21, 22), (7, 4, 3, 2), {"strides": (2, 3)}),
    "spaces": ((2, 4, 21, 22), (7, 4, 3, 2), {"dilation": (2, 3)}),
    "groups": ((2, 12, 10, 9), (18, 4, 3, 2), {"groups": 3}),
    "one channel each": ((2, 6, 10, 39), (6, 1, 3, 3), {"groups": 6, "strides": (1, 2)}),
    "one channel each, near": ((3, 6, 12, 39), (6, 1, 3, 3), {"groups": 6}),
    "one channel each, short lines": ((3, 6, 12, 10), (6, 1, 3, 4), {"groups": 6, "dilation": 1}),
    "two channels each": ((2, 6, 20, 20), (6, 2, 3, 3), {"groups": 3}),
    "a filter": ((1, 1, 3 * BLOCK + 70), (1, 1, 31), {}),
    "a filter of every other": ((2, 1, 2 * BLOCK + 71), (2, 1, 9), {"strides": 2, "dilation": 3}),
    "blocks of lines": ((1, 2, 70, 90), (2, 2, 3, 3), {"strides": (2, 1)}),
    "a filter of a block": ((2, 3, 6, 9, 20), (3, 1, 2, 3, 2), {"groups": 3, "strides": (1, 2, 2)}),
    "a line": ((3, 5, 400), (8, 5, 7), {}),
    "a line of one": ((1, 1, 1), (1, 1, 1), {}),
    "a block": ((2, 3, 6, 7, 8), (5, 3, 2, 3, 2), {"strides": (1, 2, 1), "dilation": (2, 1, 1)}),
    "many terms": ((1, TERMS // 4, 9, 9), (3, TERMS // 4, 3, 3), {}),
    "many rows": ((1, 2, 9, 9), (2 * ROWS + 5, 2, 2, 2), {}),
    "chunks": ((1, 2, 5 * COLUMNS + 11), (5, 2, 2), {}),
}


def drawn(name: str, dtype: str) -> tuple[Array, Array, dict[str, Any]]:
    xs, ws, more = SHAPES[name]
    random = np.random.default_rng(prod(xs) + prod(ws))
    x, w = (random.integers(-4, 5, s).astype(DTYPES[dtype]) for s in (xs, ws))
    return x, w, given_of(len(xs) - 2, **more)


def types_of(name: str) -> Any:
    x, w, given = drawn(name, "f32")
    types = tuple(TensorType(a.dtype, a.shape) for a in (x, w))
    return types, TABLE["conv_valid"].infer(types, given, ())[0], given


@every_target
@pytest.mark.parametrize("dtype", ["f32", "f64", "i32", "i64"])
def test_each_shape(dtype: str, target: LLVMTarget) -> None:
    for name in SHAPES:
        x, w, given = drawn(name, dtype)
        np.testing.assert_array_equal(
            convolved(x, w, given, target), looped(x, w, **given), err_msg=name
        )


@pytest.mark.parametrize("name", SHAPES)
def test_bits_are_the_shapes(name: str) -> None:
    """Neither vectors nor the cutting of work change them."""
    xs, ws, more = SHAPES[name]
    random = np.random.default_rng(5)
    x, w = (random.standard_normal(s).astype(np.float32) for s in (xs, ws))
    given = given_of(len(xs) - 2, **more)
    once = convolved(x, w, given)
    assert convolved(x, w, given, parts=5).tobytes() == once.tobytes()
    for target in TARGETS.values():
        if target.fma:
            assert convolved(x, w, given, target).tobytes() == once.tobytes()


@every_target
def test_what_is_not_finite_stays_where_it_is_seen(target: LLVMTarget) -> None:
    x, w, given = drawn("images in a panel", "f32")
    x[3, 1, 2, 5], x[0, 0, 0, 0] = np.nan, np.inf
    got, want = convolved(x, w, given, target), looped(x, w, **given)
    np.testing.assert_array_equal(np.isnan(got), np.isnan(want))
    finite = np.isfinite(want)
    np.testing.assert_array_equal(got[finite], want[finite])


def test_each_way_is_tried() -> None:
    ways = {name: is_direct(*types_of(name)) for name in SHAPES}
    assert ways["one channel each, near"]
    assert ways["a filter of a block"]
    assert not ways["plain"]
    assert sum(ways.values()) == 8


@pytest.mark.parametrize("name", ["chunks", "a filter"])
def test_it_polls_after_each_chunk(name: str) -> None:
    x, w, given = drawn(name, "f32")
    seen = [0]

    def answer(_: int) -> int:
        seen[0] += 1
        return int(seen[0] > 2)

    poll = ctypes.CFUNCTYPE(ctypes.c_int32, ctypes.c_void_p)(answer)
    address = ctypes.cast(poll, ctypes.c_void_p).value or 0
    convolved(x, w, given, poll=address, answer=STOPPED)
    assert seen[0] == 3
