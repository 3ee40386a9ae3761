"""Whole kernels against NumPy: softmax, gathers, pads, transposes, scratch, checks."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np
import pytest

from tenfold.backends.cpu.schedule import traffic
from tenfold.backends.cpu.schedule.schedule import Schedule, choose
from tenfold.backends.llvm.target import LLVMTarget
from tenfold.kernel import Builder, Index, Kernel
from tenfold.kernel.ir.kernel import SEQUENTIAL
from tenfold.kernel.passes.keep import keep_in_output
from tenfold.types import DTYPES
from tests.backends.cpu.running import (
    HOST,
    Program,
    at,
    every_target,
    position,
    random,
    reduction,
)

Array = np.ndarray[Any, Any]

STORES_PAST = HOST.arch == "x86_64"  # whether there are stores past the caches


def softmax(rows: int, columns: int, axis: int, dtype: str = "f32") -> Kernel:
    b = Builder()
    x, out = b.buffer(dtype, rows * columns), b.buffer(dtype, rows * columns, "write")
    i, j = b.axis(rows), b.axis(columns)
    length = columns if axis else rows
    first, k = b.reduced(length, 1)
    second, m = b.reduced(length, 2)

    def read(index: Index) -> int:
        return b.load(x, i * columns + index if axis else index * columns + j)

    top = b.reduce("max", (first,), read(k))
    total = b.reduce("sum", (second,), b.op("exp", dtype, b.op("sub", dtype, read(m), top)))
    e = b.op("exp", dtype, b.op("sub", dtype, read(j if axis else i), top))
    b.store(out, i * columns + j, b.op("div", dtype, e, total))
    return b.finish()


@every_target
@pytest.mark.parametrize("axis", [0, 1])
@pytest.mark.parametrize(
    "shape", [(3, 5), (4, 64), (7, 65), (5, 1003), (70, 30), (100, 300), (40, 2000), (1, 17)]
)
def test_softmax(shape: tuple[int, int], axis: int, target: LLVMTarget) -> None:
    x = random(shape)
    out = np.zeros(shape, np.float32)
    program = Program(softmax(*shape, axis), target)
    program(x, out)
    e = np.exp(x.astype(np.float64) - x.max(axis, keepdims=True))
    np.testing.assert_allclose(out, e / e.sum(axis, keepdims=True), rtol=2e-6, atol=1e-7)
    if axis == 1 and shape[1] > 64:
        assert [b.role for b in program.kernel.buffers] == ["read", "write", "scratch"]


@every_target
@pytest.mark.parametrize("columns", [700, 688, 1100])
def test_what_is_read_where_it_is_made_and_later_too(columns: int, target: LLVMTarget) -> None:
    """A value of each column, made from a reduction down it: read at once, and in a loop behind,
    for which it is kept. In the tail it was once taken from there before it was made."""
    rows = 300
    b = Builder()
    x, low = b.buffer("f32", rows * columns), b.buffer("f32", columns, "write")
    out = b.buffer("f32", rows * columns, "write")
    i, j = b.axis(rows), b.axis(columns)
    over, k = b.reduced(rows, 1)
    half = b.op(
        "mul", "f32", b.reduce("max", (over,), b.load(x, k * columns + j)), b.const("f32", -1)
    )
    b.store(low, j, b.op("add", "f32", half, b.const("f32", 1)))
    b.store(out, i * columns + j, b.op("add", "f32", b.load(x, i * columns + j), half))
    kernel = b.finish()
    assert choose(kernel, target).chunk
    xs = random((rows, columns))
    lows, outs = np.full(columns, 7, np.float32), np.zeros((rows, columns), np.float32)
    Program(kernel, target)(xs, lows, outs)
    np.testing.assert_array_equal(lows, 1 - xs.max(0))
    np.testing.assert_array_equal(outs, xs - xs.max(0))


def columns_again(alias: int, again: str, rows: int, columns: int) -> Kernel:
    """Softmax down columns, with what is read `again` where it is written added: nothing, the same
    elements, or a row."""
    b = Builder()
    x = b.buffer("f32", rows * columns, alias=alias)
    out = b.buffer("f32", rows * columns, "write", alias)
    z, made = b.buffer("f32", columns), b.buffer("f32", columns, "write")
    i, j = b.axis(rows), b.axis(columns)
    over, k = b.reduced(rows, 1)
    second, m = b.reduced(rows, 2)

    def power(row: Index) -> int:
        return b.op("exp", "f32", b.op("sub", "f32", b.load(x, row * columns + j), top))

    top = b.reduce("max", (over,), b.load(x, k * columns + j))
    total = b.reduce("sum", (second,), power(m))
    found = b.op("div", "f32", power(i), total)
    if again:
        more = b.load(x, i * columns + j) if again == "x" else b.load(z, j)
        found = b.op("add", "f32", found, more)
    b.store(out, i * columns + j, found)
    b.store(made, j, total)
    return b.finish()


@every_target
@pytest.mark.parametrize(("alias", "again"), [(0, ""), (0, "x"), (0, "z"), (1, ""), (1, "x")])
def test_powers_of_columns_wait_in_the_result(alias: int, again: str, target: LLVMTarget) -> None:
    """They are computed once, unless the result may lie over what is read behind that."""
    rows, columns = 90, 700
    kernel = columns_again(alias, again, rows, columns)
    schedule = choose(kernel, target)
    assert schedule.chunk
    kept, plain = Program(kernel, target), Program(kernel, target, schedule=schedule)
    powers = [i for i in keep_in_output(kernel).instructions if i.op == "exp"]
    assert len(powers) == (2 if (alias, again) == (1, "x") else 1)
    x, z = random((rows, columns)), random((columns,), seed=1)
    x[:, 3], x[5, 4], x[6, 5], x[:, 6] = -np.inf, np.nan, np.inf, -0.0
    made = []
    for program, together in ((kept, alias), (plain, False)):
        given, out, total = x.copy(), np.zeros_like(x), np.zeros_like(z)
        out = given if together else out
        program(given, out, z, total)
        made.append((out, total))
    for a, b in zip(*made, strict=True):
        assert a.tobytes() == b.tobytes()


@every_target
def test_softmax_in_parts(target: LLVMTarget) -> None:
    for axis, shape in ((1, (40, 100)), (0, (90, 3000))):
        x, whole, parts = random(shape), np.zeros(shape, np.float32), np.zeros(shape, np.float32)
        program = Program(softmax(*shape, axis), target)
        program(x, whole)
        call = program.bind([x, parts])
        grain, extent = program.compiled.schedule.grain, program.extent
        for low in range(0, extent, 2 * grain):
            call(low, min(low + 2 * grain, extent))
        assert whole.tobytes() == parts.tobytes()


def layernorm(rows: int, columns: int, dtype: str = "f32") -> tuple[Kernel, dict[int, bytes]]:
    b = Builder()
    x, g = b.buffer(dtype, rows * columns), b.buffer(dtype, columns)
    out, spread = b.buffer(dtype, rows * columns, "write"), b.buffer(dtype, rows, "write")
    i, j = b.axis(rows), b.axis(columns)
    first, k = b.reduced(columns, 1)
    second, m = b.reduced(columns, 2)
    share, small = b.literal(dtype, 1 / columns), b.literal(dtype, 1e-5)

    def op(name: str, *args: int) -> int:
        return b.op(name, dtype, *args)

    def row(index: Index) -> int:
        return b.load(x, i * columns + index)

    mean = op("mul", b.reduce("sum", (first,), row(k)), share)
    apart = op("sub", row(m), mean)
    variance = op("mul", b.reduce("sum", (second,), op("mul", apart, apart)), share)
    scale = op("rsqrt", op("add", variance, small))
    b.store(spread, i, variance)
    centred = op("mul", op("sub", row(j), mean), scale)
    b.store(out, i * columns + j, op("mul", centred, b.load(g, j)))
    return b.finish(), b.literals


@every_target
@pytest.mark.parametrize("shape", [(3, 7), (5, 64), (4, 1003)])
def test_layernorm_with_its_variance(shape: tuple[int, int], target: LLVMTarget) -> None:
    x, g = random(shape), random(shape[1:], seed=1)
    out, spread = np.zeros(shape, np.float32), np.zeros(shape[0], np.float32)
    kernel, literals = layernorm(*shape)
    params = [literals[n] for n in range(len(literals))]
    Program(kernel, target)(x, g, out, spread, params=params)
    wide = x.astype(np.float64)
    variance = wide.var(1)
    np.testing.assert_allclose(spread, variance, rtol=1e-5)
    want = (wide - wide.mean(1, keepdims=True)) / np.sqrt(variance[:, None] + 1e-5) * g
    np.testing.assert_allclose(out, want, rtol=1e-4, atol=1e-5)


@every_target
def test_logsumexp(target: LLVMTarget) -> None:
    rows, columns = 6, 130
    b = Builder()
    x, out = b.buffer("f64", rows * columns), b.buffer("f64", rows, "write")
    i = b.axis(rows)
    first, k = b.reduced(columns, 1)
    second, m = b.reduced(columns, 2)
    top = b.reduce("max", (first,), b.load(x, i * columns + k))
    e = b.op("exp", "f64", b.op("sub", "f64", b.load(x, i * columns + m), top))
    b.store(out, i, b.op("add", "f64", b.op("log", "f64", b.reduce("sum", (second,), e)), top))
    xs, got = random((rows, columns), "f64"), np.zeros(rows)
    Program(b.finish(), target)(xs, got)
    np.testing.assert_allclose(got, np.log(np.exp(xs).sum(1)), rtol=1e-13)


@every_target
@pytest.mark.parametrize("index", ["i32", "i64", "u8"])
@pytest.mark.parametrize("dtype", ["f32", "i8", "f64", "c64"])
def test_gather_with_mean(index: str, dtype: str, target: LLVMTarget) -> None:
    """Rows picked by an index, summed; and single elements picked along the lanes."""
    words, width, batch, length = 50, 37, 5, 9
    table = random((words, width), dtype)
    ids = np.random.default_rng(0).integers(0, words, (batch, length)).astype(DTYPES[index])
    b = Builder()
    t, n = b.buffer(dtype, table.size), b.buffer(index, ids.size)
    out = b.buffer(dtype, batch * width, "write")
    i, d = b.axis(batch), b.axis(width)
    r, k = b.reduced(length, 1)
    row = b.as_index(b.load(n, i * length + k), words)
    b.store(out, i * width + d, b.reduce("sum", (r,), b.load(t, row * width + d)))
    got = np.zeros((batch, width), DTYPES[dtype])
    Program(b.finish(), target)(table, ids, got)
    want = table[ids].sum(1, dtype=DTYPES[dtype])
    np.testing.assert_allclose(got, want, rtol=1e-5, atol=1e-5)

    b = Builder()
    t, n = b.buffer(dtype, table.size), b.buffer(index, ids.size)
    out = b.buffer(dtype, ids.size, "write")
    i = b.axis(ids.size)
    row = b.as_index(b.load(n, i), words)
    b.store(out, i, b.load(t, row * width + 3))
    picked = np.zeros(ids.size, DTYPES[dtype])
    Program(b.finish(), target)(table, ids, picked)
    assert (picked == table[ids.ravel(), 3]).all()


@every_target
@pytest.mark.parametrize("length", [1, 3, 4, 9])
def test_rows_of_a_large_table_are_asked_for_ahead(length: int, target: LLVMTarget) -> None:
    words, width, batch = 9001, 40, 7
    table = random((words, width))
    ids = np.random.default_rng(0).integers(0, words, (batch, length)).astype(np.int32)
    b = Builder()
    t, n = b.buffer("f32", table.size), b.buffer("i32", ids.size)
    out = b.buffer("f32", batch * width, "write")
    i, d = b.axis(batch), b.axis(width)
    r, k = b.reduced(length, 1)
    row = b.as_index(b.load(n, i * length + k), words)
    b.store(out, i * width + d, b.reduce("max", (r,), b.load(t, row * width + d)))
    got = np.zeros((batch, width), np.float32)
    program = Program(b.finish(), target)
    assert ("llvm.prefetch" in program.text) == (length > 1)
    program(table, ids, got)
    assert (got == table[ids].max(1)).all()


def test_the_next_row_is_asked_for_ahead() -> None:
    assert "llvm.prefetch" in Program(softmax(100, 1003, 1)).text
    assert "llvm.prefetch" not in Program(softmax(100, 100, 1)).text  # short rows
    assert "llvm.prefetch" not in Program(softmax(10, 1003, 1)).text  # all of it is near
    assert "llvm.prefetch" in Program(softmax(300, 700, 0)).text
    assert "llvm.prefetch" not in Program(softmax(10, 700, 0)).text


def test_the_loop_that_computes_most_asks_for_the_next_row() -> None:
    program = Program(softmax(100, 1003, 1))
    (asked,) = program.compiled.schedule.prefetched
    exps = [n for n, i in enumerate(program.kernel.instructions) if i.op == "exp"]
    assert asked[0] in program.kernel.free[exps[0]]
    assert program.kernel.axes[asked[0]].kind == "reduced"
    assert "i32 0, i32 3, i32 1)" in program.text  # a row that fits the nearest cache
    assert "i32 0, i32 2, i32 1)" in Program(softmax(20, 10000, 1)).text


@every_target
def test_checks_set_the_fault(target: LLVMTarget) -> None:
    n, words = 100, 10
    b = Builder()
    t, ids, out = b.buffer("f32", words), b.buffer("i32", n), b.buffer("f32", n, "write")
    i = b.axis(n)
    pick = b.load(ids, i)
    low = b.op("ge", "bool", pick, b.const("i32", 0))
    high = b.op("lt", "bool", pick, b.const("i32", words))
    fine = b.op("and", "bool", low, high)
    b.check(fine, 2)
    b.store(out, i, b.load(t, b.as_index(pick, words), fine))
    program = Program(b.finish(), target)
    table, got = random((words,)), np.zeros(n, np.float32)
    where = np.arange(n, dtype=np.int32) % words
    assert program(table, where, got) == 0
    assert (got == table[where]).all()
    where[97] = 10
    where[3] = -1
    assert program(table, where, got) == 4
    where[[3, 97]] = 0
    assert (got[[3, 97]] == 0).all()
    assert program(table, where, got) == 0


@every_target
@pytest.mark.parametrize("columns", [5, 16, 40, 1003])
def test_pad_and_stencil(columns: int, target: LLVMTarget) -> None:
    rows = 6
    for dtype in ("f32", "i16"):
        b = Builder()
        x = b.buffer(dtype, rows * columns)
        out = b.buffer(dtype, rows * columns, "write")
        i, j = b.axis(rows), b.axis(columns)
        total = b.const(dtype, 0)
        for down, across in ((0, -1), (0, 0), (0, 1), (-1, 0), (1, 0)):
            ok = b.both(b.inside(i + down, 0, rows), b.inside(j + across, 0, columns))
            read = b.load(x, (i + down) * columns + j + across, ok)
            padded = read if ok is None else b.select(ok, read, b.const(dtype, 0))
            total = b.op("add", dtype, total, padded)
        b.store(out, i * columns + j, total)
        xs, got = random((rows, columns), dtype), np.zeros((rows, columns), DTYPES[dtype])
        Program(b.finish(), target)(xs, got)
        q = np.pad(xs, 1)
        want = q[1:-1, 1:-1] + q[1:-1, :-2] + q[1:-1, 2:] + q[:-2, 1:-1] + q[2:, 1:-1]
        np.testing.assert_allclose(got, want, rtol=1e-5, atol=1e-6)


@every_target
@pytest.mark.parametrize(
    ("left", "right", "axis"), [(3, 4, 1), (50, 60, 1), (40, 50, 0), (1, 2000, 1)]
)
def test_concatenate_as_ranges(left: int, right: int, axis: int, target: LLVMTarget) -> None:
    other = 5 if min(left, right) < 32 else 400  # a small kernel is not cut
    shapes = ((other, left), (other, right)) if axis else ((left, other), (right, other))
    whole = (other, left + right) if axis else (left + right, other)
    b = Builder()
    x, y = (b.buffer("f32", int(np.prod(s))) for s in shapes)
    out = b.buffer("f32", int(np.prod(whole)), "write")
    where = position(b, whole)
    along = where[axis]
    here, there = b.inside(along, 0, left), b.inside(along - left, 0, right)
    moved = [w - left if k == axis else w for k, w in enumerate(where)]
    one = b.load(x, at(where, shapes[0]), here)
    two = b.load(y, at(moved, shapes[1]), there)
    b.store(out, at(where, whole), b.op("neg", "f32", b.select(here, one, two)))
    xs, ys = random(shapes[0]), random(shapes[1], seed=1)
    got = np.zeros(whole, np.float32)
    program = Program(b.finish(), target)
    program(xs, ys, got)
    assert (got == -np.concatenate([xs, ys], axis)).all()
    if min(left, right) >= 32:
        assert program.compiled.schedule.cuts


@every_target
@pytest.mark.parametrize("dtype", ["f32", "f64", "i8", "u16", "c64", "bool"])
def test_transposes(dtype: str, target: LLVMTarget) -> None:
    for rows, columns in ((5, 3), (64, 64), (100, 70), (130, 200), (17, 33)):
        b = Builder()
        x, z = b.buffer(dtype, rows * columns), b.buffer(dtype, rows * columns)
        out = b.buffer(dtype, rows * columns, "write")
        i, j = b.axis(rows), b.axis(columns)
        total = b.op("add", dtype, b.load(x, j * rows + i), b.load(z, i * columns + j))
        b.store(out, i * columns + j, total)
        xs, zs = random((columns, rows), dtype), random((rows, columns), dtype, 1)
        got = np.zeros((rows, columns), DTYPES[dtype])
        program = Program(b.finish(), target)
        program(xs, zs, got)
        np.testing.assert_array_equal(got, xs.T + zs)
        got[:] = 0
        call, extent = program.bind([xs, zs, got]), program.extent
        grain = program.compiled.schedule.grain
        for low in range(0, extent, grain):
            call(low, min(low + grain, extent))
        np.testing.assert_array_equal(got, xs.T + zs)


@every_target
@pytest.mark.parametrize("dtype", ["f32", "f64", "i8"])
def test_transposes_wherever_their_arrays_begin(dtype: str, target: LLVMTarget) -> None:
    """Tiles begin where lines do, which is elsewhere for each array; nothing else is touched."""
    size = DTYPES[dtype].itemsize
    for rows, columns in ((128 // size, 320 // size), (1024 // size, 192 // size), (130, 128)):
        b = Builder()
        n = rows * columns
        x, z, out = b.buffer(dtype, n), b.buffer(dtype, n), b.buffer(dtype, n, "write")
        i, j = b.axis(rows), b.axis(columns)
        total = b.op("add", dtype, b.load(x, j * rows + i), b.load(z, i * columns + j))
        b.store(out, i * columns + j, total)
        program = Program(b.finish(), target)
        for shifts in ((0, 0, 0), (1, 0, 0), (0, 3, 5), (15, 7, 1)):
            given = [random((n + 64,), dtype, k)[s : s + n] for k, s in enumerate(shifts[:2])]
            room = np.zeros(n + 64, DTYPES[dtype])
            program(*given, room[shifts[2] : shifts[2] + n])
            want = given[0].reshape(columns, rows).T + given[1].reshape(rows, columns)
            assert room[shifts[2] : shifts[2] + n].tobytes() == want.tobytes()
            assert not room[: shifts[2]].any()
            assert not room[shifts[2] + n :].any()


@pytest.mark.usefixtures("little_cache")
@pytest.mark.parametrize("shift", [0, 4, 13])
def test_transposes_past_the_caches(shift: int) -> None:
    n = 1024
    b = Builder()
    x, out = b.buffer("f32", n * n), b.buffer("f32", n * n, "write")
    i, j = b.axis(n), b.axis(n)
    b.store(out, i * n + j, b.op("neg", "f32", b.load(x, j * n + i)))
    program = Program(b.finish())
    assert (program.compiled.schedule.stream is not None) == HOST.masked
    xs, room = random((n, n)), np.zeros(n * n + 16, np.float32)
    program(xs, room[shift : shift + n * n])
    assert (room[shift : shift + n * n].reshape(n, n) == -xs.T).all()
    assert not room[:shift].any()
    assert not room[shift + n * n :].any()


@every_target
def test_permuted_axes(target: LLVMTarget) -> None:
    shape, order = (4, 20, 3, 33), (2, 0, 3, 1)
    new = [shape[k] for k in order]
    b = Builder()
    x, out = b.buffer("f32", int(np.prod(shape))), b.buffer("f32", int(np.prod(shape)), "write")
    where = position(b, new)
    source = [where[order.index(k)] for k in range(4)]
    b.store(out, at(where, new), b.op("neg", "f32", b.load(x, at(source, shape))))
    xs, got = random(shape), np.zeros(new, np.float32)
    Program(b.finish(), target)(xs, got)
    assert (got == -xs.transpose(order)).all()


@every_target
def test_reversed_and_strided(target: LLVMTarget) -> None:
    n = 203
    for dtype in ("f32", "i8", "c128"):
        b = Builder()
        x, out = b.buffer(dtype, 3 * n), b.buffer(dtype, n, "write")
        i = b.axis(n)
        back, third = b.load(x, -i + (n - 1)), b.load(x, i * 3 + 1)
        b.store(out, -i + (n - 1), b.op("sub", dtype, back, third))
        xs, got = random((3 * n,), dtype), np.zeros(n, DTYPES[dtype])
        Program(b.finish(), target)(xs, got)
        np.testing.assert_array_equal(got[::-1], xs[:n][::-1] - xs[1::3])


@every_target
def test_quotients_in_indices(target: LLVMTarget) -> None:
    """A reshape that splits no axis evenly: positions by division, read by gather."""
    n = 6 * 35
    b = Builder()
    x, out = b.buffer("f32", n), b.buffer("f32", n, "write")
    i = b.axis(n)
    b.store(out, i, b.load(x, (i % 35) * 6 + i // 35))
    xs, got = random((35, 6)), np.zeros(n, np.float32)
    Program(b.finish(), target)(xs, got)
    assert (got == xs.T.ravel()).all()
    b = Builder()  # a vector never crosses a multiple of 32: rows broadcast, columns packed
    x, y, out = b.buffer("f32", 20), b.buffer("f32", 32), b.buffer("f32", 640, "write")
    i = b.axis(640)
    b.store(out, i, b.op("mul", "f32", b.load(x, i // 32), b.load(y, i % 32)))
    xs, ys, got = random((20,)), random((32,), seed=2), np.zeros((20, 32), np.float32)
    Program(b.finish(), target)(xs, ys, got)
    assert (got == xs[:, None] * ys).all()


@every_target
def test_index_as_value(target: LLVMTarget) -> None:
    b = Builder()
    out, wide = b.buffer("i64", 7 * 50, "write"), b.buffer("i16", 7 * 50, "write")
    i, j = b.axis(7), b.axis(50)
    b.store(out, i * 50 + j, b.index(i * 3 - j // 7))
    b.store(wide, i * 50 + j, b.index(j * 2 + 1, "i16"))
    got, short = np.zeros((7, 50), np.int64), np.zeros((7, 50), np.int16)
    Program(b.finish(), target)(got, short)
    rows, columns = np.indices((7, 50))
    assert (got == rows * 3 - columns // 7).all()
    assert (short == columns * 2 + 1).all()


@every_target
def test_in_place(target: LLVMTarget) -> None:
    """An update in place: the last vector may not redo what was overwritten."""
    for n in (5, 37, 1003, 5001):
        b = Builder()
        x, out = b.buffer("f32", n, "read", alias=1), b.buffer("f32", n, "write", alias=1)
        i = b.axis(n)
        v = b.load(x, i)
        b.store(out, i, b.op("add", "f32", b.op("mul", "f32", v, v), b.const("f32", 1)))
        xs = random((n,))
        want = (xs.astype(np.float64) ** 2 + 1).astype(np.float32)
        Program(b.finish(), target)(xs, xs)
        np.testing.assert_allclose(xs, want, rtol=1e-6)


@every_target
def test_several_outputs_and_ranks(target: LLVMTarget) -> None:
    rows, columns = 5, 40
    b = Builder()
    x = b.buffer("f32", rows * columns)
    outs = [b.buffer("f32", n, "write") for n in (rows * columns, rows * columns, rows, 1)]
    i, j = b.axis(rows), b.axis(columns)
    r, k = b.reduced(columns, 1)
    whole_r, p = b.reduced(rows, 1)
    whole_c, q = b.reduced(columns, 1, 1)
    v = b.load(x, i * columns + j)
    b.store(outs[0], i * columns + j, b.op("neg", "f32", v))
    total = b.reduce("sum", (r,), b.load(x, i * columns + k))
    b.store(outs[1], i * columns + j, b.op("sub", "f32", v, total))
    b.store(outs[2], i, total)
    every = b.reduce("max", (whole_r, whole_c), b.load(x, p * columns + q))
    b.store(outs[3], Index(), every)
    xs = random((rows, columns))
    got = [np.zeros(s, np.float32) for s in (xs.shape, xs.shape, (rows,), (1,))]
    Program(b.finish(), target)(xs, *got)
    assert (got[0] == -xs).all()
    np.testing.assert_allclose(got[1], xs - xs.sum(1, keepdims=True), rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(got[2], xs.sum(1), rtol=1e-4, atol=1e-5)
    assert got[3][0] == xs.max()


@every_target
def test_sequential_axis_carries_state(target: LLVMTarget) -> None:
    """A running sum down the rows: each step reads what the one before wrote."""
    rows, columns = 6, 50
    b = Builder()
    x, state = b.buffer("f32", rows * columns), b.buffer("f32", columns, "both")
    out = b.buffer("f32", rows * columns, "write")
    t, j = b.axis(rows, SEQUENTIAL), b.axis(columns)
    total = b.op("add", "f32", b.load(state, j), b.load(x, t * columns + j))
    b.store(state, j, total)
    b.store(out, t * columns + j, total)
    xs = random((rows, columns))
    held, got = np.zeros(columns, np.float32), np.zeros((rows, columns), np.float32)
    Program(b.finish(), target)(xs, held, got)
    np.testing.assert_array_equal(got, np.cumsum(xs, 0))


@every_target
def test_conditional_store(target: LLVMTarget) -> None:
    n = 50
    b = Builder()
    x, out = b.buffer("f32", n), b.buffer("f32", n, "write")
    one = b.buffer("f32", 1, "write")
    i = b.axis(n)
    v = b.load(x, i)
    b.store(out, i, v, b.op("gt", "bool", v, b.const("f32", 0)))
    first = b.load(x, Index())
    b.store(one, Index(), first, b.op("gt", "bool", first, b.const("f32", 1e9)))
    xs, got, single = random((n,)), np.full(n, 7, np.float32), np.full(1, 7, np.float32)
    Program(b.finish(), target)(xs, got, single)
    assert (got == np.where(xs > 0, xs, 7)).all()
    assert single[0] == 7


def test_every_lane_axis_gives_the_same() -> None:
    """A schedule changes the speed, not what is computed."""
    kernel = softmax(40, 50, 1)
    x = random((40, 50))
    chosen = choose(kernel, HOST)
    results = []
    for order, lanes in (((0, 1), {1, 2, 3}), ((0, 1), {1}), ((0, 1), {0}), ((0, 1), {2, 3})):
        for copies in (1, 2, 4):
            out = np.zeros_like(x)
            schedule = Schedule(order, frozenset(lanes), copies)
            Program(kernel, HOST, False, schedule, False)(x, out)
            results.append(out)
    assert chosen.lanes == {1, 2, 3}
    for result in results[1:]:
        np.testing.assert_allclose(result, results[0], rtol=2e-6)


def test_schedules() -> None:
    """What the chooser picks in the cases that were measured."""
    assert choose(softmax(64, 128, 0), HOST).lanes >= {1}
    assert choose(softmax(1024, 1024, 0), HOST).chunk
    assert choose(reduction("sum", "f32", (50, 1000), (1,)), HOST).lanes == {1}
    assert choose(reduction("sum", "f32", (1000, 64), (0,)), HOST).lanes >= {1}
    b = Builder()
    x, out = b.buffer("f32", 200 * 200), b.buffer("f32", 200 * 200, "write")
    i, j = b.axis(200), b.axis(200)
    b.store(out, i * 200 + j, b.op("neg", "f32", b.load(x, j * 200 + i)))
    assert choose(b.finish(), HOST).tile is not None


@every_target
@pytest.mark.parametrize("width", [2, 3, 4, 5, 6, 7, 8, 9])
@pytest.mark.parametrize("rows", [7, 100, 2001])
def test_tiny_inner_axis(rows: int, width: int, target: LLVMTarget) -> None:
    """(N, 3) with a value for each column and one for each row: all lanes filled."""
    b = Builder()
    x, y, z = b.buffer("f32", rows * width), b.buffer("f32", width), b.buffer("f32", rows)
    out = b.buffer("f32", rows * width, "write")
    i, j = b.axis(rows), b.axis(width)
    scaled = b.op("mul", "f32", b.load(x, i * width + j), b.load(y, j))
    b.store(out, i * width + j, b.op("add", "f32", scaled, b.load(z, i)))
    xs, ys, zs = random((rows, width)), random((width,), seed=1), random((rows,), seed=2)
    got = np.zeros((rows, width), np.float32)
    program = Program(b.finish(), target, strict=True)
    program(xs, ys, zs, got)
    np.testing.assert_array_equal(got, xs * ys + zs[:, None])
    got[:] = 0
    call, extent = program.bind([xs, ys, zs, got]), program.extent
    for low in range(0, extent, program.compiled.schedule.grain):
        call(low, min(low + program.compiled.schedule.grain, extent))
    np.testing.assert_array_equal(got, xs * ys + zs[:, None])


def test_reductions_along_different_axes() -> None:
    """One kernel of both is slower than two, but right."""
    b = Builder()
    x, rows, columns = b.buffer("f32", 600), *(b.buffer("f32", n, "write") for n in (20, 30))
    i, j = b.axis(20), b.axis(30)
    first, k = b.reduced(30, 1)
    second, m = b.reduced(20, 1)
    b.store(rows, i, b.reduce("sum", (first,), b.load(x, i * 30 + k)))
    b.store(columns, j, b.reduce("sum", (second,), b.load(x, m * 30 + j)))
    xs, down, across = random((20, 30)), np.zeros(20, np.float32), np.zeros(30, np.float32)
    Program(b.finish())(xs, down, across)
    np.testing.assert_allclose(down, xs.sum(1), rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(across, xs.sum(0), rtol=1e-4, atol=1e-5)


@pytest.fixture
def little_cache(monkeypatch: pytest.MonkeyPatch) -> None:
    """A machine whose caches hold little, so that much is past them."""
    monkeypatch.setattr(traffic, "cache_bytes", lambda: 7_000_000)


@every_target
@pytest.mark.usefixtures("little_cache")
@pytest.mark.parametrize(
    ("dtype", "width", "past"),
    [
        ("f32", 4099, True),  # many lines a row, wherever they begin
        ("f64", 2051, True),
        ("i8", 17_003, True),
        ("bool", 17_003, True),
        ("f32", 1008, True),  # whole lines
        ("i8", 1024, True),
        ("f32", 1003, False),  # rows share lines
        ("i8", 4001, False),
        ("f16", 17_000, False),
    ],
)
def test_outputs_past_the_caches(dtype: str, width: int, past: bool, target: LLVMTarget) -> None:
    """Large outputs are written with aligned streaming stores, unless short rows share lines."""
    rows = 3_600_000 // (width * DTYPES[dtype].itemsize) + 1
    b = Builder()
    x, y = b.buffer(dtype, rows * width), b.buffer(dtype, width)
    out = b.buffer(dtype, rows * width, "write")
    i, j = b.axis(rows), b.axis(width)
    total = b.op("max", dtype, b.load(x, i * width + j), b.load(y, j))
    b.store(out, i * width + j, total)
    program = Program(b.finish(), target)
    assert (program.compiled.schedule.stream is not None) == (past and STORES_PAST)
    xs, ys = random((rows, width), dtype), random((width,), dtype, 1)
    want = np.maximum(xs, ys)
    for shift in (0, 1, 7):
        room = np.zeros(rows * width + 16, DTYPES[dtype])
        got = room[shift : shift + rows * width].reshape(rows, width)
        program(xs, ys, got)
        assert got.tobytes() == want.tobytes()
        assert not room[shift + rows * width :].any()
        assert not room[:shift].any()
    got[:] = 0
    call = program.bind([xs, ys, got])
    for low in range(0, rows, 100):
        call(low, min(low + 100, rows))
    assert got.tobytes() == want.tobytes()


@every_target
@pytest.mark.usefixtures("little_cache")
@pytest.mark.parametrize("shift", [0, 3])
def test_what_works_in_place_may_store_past_the_caches(shift: int, target: LLVMTarget) -> None:
    """One code for outputs of their own and for those that lie over an input: over either."""
    n = 1_000_003
    b = Builder()
    x, y = (b.buffer("f32", n, "read", alias=1) for _ in range(2))
    out = b.buffer("f32", n, "write", alias=1)
    i = b.axis(n)
    b.store(out, i, b.op("sub", "f32", b.load(x, i), b.load(y, i)))
    program = Program(b.finish(), target)
    assert program.compiled.schedule.stream == (0 if STORES_PAST else None)
    assert not program.compiled.polls
    given = random((n,)), random((n,), seed=1)
    want = given[0] - given[1]
    for over in (None, 0, 1):
        rooms = [np.zeros(n + 16, np.float32) for _ in range(3)]
        arrays = [room[shift : shift + n] for room in rooms]
        arrays[0][:], arrays[1][:] = given
        if over is not None:
            arrays[2] = arrays[over]
        program(*arrays)
        assert arrays[2].tobytes() == want.tobytes()
        assert not any(room[:shift].any() or room[shift + n :].any() for room in rooms)


@pytest.mark.usefixtures("little_cache")
def test_flat_outputs_past_the_caches() -> None:
    n = 1_000_003
    b = Builder()
    x, out = b.buffer("f32", n), b.buffer("f32", n, "write")
    i = b.axis(n)
    b.store(out, i, b.op("neg", "f32", b.load(x, i)))
    program = Program(b.finish())
    xs, room = random((n,)), np.zeros(n + 16, np.float32)
    for shift in (0, 3):
        got = room[shift : shift + n]
        call, grain = program.bind([xs, got]), program.compiled.schedule.grain
        for low in range(0, n, 100 * grain):
            call(low, min(low + 100 * grain, n))
        assert (got == -xs).all()
        assert room[n + shift] == 0


@pytest.mark.parametrize("cache", [7_000_000, 1 << 25])
def test_what_fits_half_of_the_cache_is_stored_plainly(
    cache: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """How it is stored depends on the machine; what is stored does not."""
    monkeypatch.setattr(traffic, "cache_bytes", lambda: cache)
    x, out = random((701, 1403)), np.zeros((701, 1403), np.float32)
    program = Program(softmax(701, 1403, 1))
    program(x, out)
    past = 2 * x.nbytes >= cache // 2
    assert (program.compiled.schedule.stream is not None) == (past and HOST.masked)
    monkeypatch.setattr(traffic, "cache_bytes", lambda: 1 << 40)
    plain = np.zeros_like(out)
    Program(softmax(701, 1403, 1))(x, plain)
    assert out.tobytes() == plain.tobytes()


@pytest.mark.usefixtures("little_cache")
def test_long_rows_past_the_caches() -> None:
    shape = (100, 9001)
    x, room = random(shape), np.zeros(100 * 9001 + 16, np.float32)
    program = Program(softmax(*shape, 1))
    assert (program.compiled.schedule.stream is not None) == HOST.masked
    e = np.exp(x.astype(np.float64) - x.max(1, keepdims=True))
    for shift in (0, 5):
        out = room[shift : shift + x.size].reshape(shape)
        program(x, out)
        np.testing.assert_allclose(out, e / e.sum(1, keepdims=True), rtol=2e-6, atol=1e-9)
        assert room[shift + x.size] == 0


def scaled_by_sums(rows: int, columns: int) -> Kernel:
    """exp(x) / sum(exp(x)) · max(exp(x) / sum): the first loop over a row stores to scratch."""
    b = Builder()
    x, out = b.buffer("f32", rows * columns), b.buffer("f32", rows * columns, "write")
    i, j = b.axis(rows), b.axis(columns)
    first, k = b.reduced(columns, 1)
    second, m = b.reduced(columns, 2)

    def e(at: Index) -> int:
        return b.op("exp", "f32", b.load(x, i * columns + at))

    total = b.reduce("sum", (first,), e(k))
    top = b.reduce("max", (second,), b.op("div", "f32", e(m), total))
    share = b.op("div", "f32", e(j), total)
    b.store(out, i * columns + j, b.op("mul", "f32", share, top))
    return b.finish()


@every_target
@pytest.mark.parametrize("columns", [1024, 1100])
@pytest.mark.parametrize("case", ["softmax", "sums"])
def test_large_outputs_of_rows(
    case: str, columns: int, target: LLVMTarget, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Rows that are begun before the one above is stored, in parts too."""
    monkeypatch.setattr(traffic, "cache_bytes", lambda: 1 << 22)
    rows = 900
    x = random((rows, columns))
    kernel = softmax(rows, columns, 1) if case == "softmax" else scaled_by_sums(rows, columns)
    program = Program(kernel, target)
    assert program.compiled.schedule.pipelined is target.masked
    wide = x.astype(np.float64)
    e = np.exp(wide - wide.max(1, keepdims=True) if case == "softmax" else wide)
    want = e / e.sum(1, keepdims=True)
    if case == "sums":
        want *= want.max(1, keepdims=True)
    out = np.zeros((rows, columns), np.float32)
    program(x, out)
    np.testing.assert_allclose(out, want, rtol=4e-6)
    parts = np.zeros((rows, columns), np.float32)
    call = program.bind([x, parts])
    for low, high in ((0, 1), (1, 450), (450, 450), (450, 899), (899, 900), (900, 900)):
        call(low, high)
    assert np.array_equal(parts.view(np.uint32), out.view(np.uint32))


@every_target
@pytest.mark.parametrize("shape", [(9001, 30), (8192, 33), (5000, 64), (6001, 50)])
def test_short_rows_go_several_at_once(shape: tuple[int, int], target: LLVMTarget) -> None:
    """In parts too, whose ends fall anywhere between the rows of a trip."""
    rows, columns = shape
    x = random(shape)
    program = Program(softmax(rows, columns, 1), target)
    assert program.compiled.schedule.rows == {33: 4, 50: 3, 64: 3, 30: 6}[columns]
    assert Program(softmax(100, columns, 1), target).compiled.schedule.rows == 1  # too few
    assert Program(softmax(rows, 100, 1), target).compiled.schedule.rows == 1  # too long
    out = np.zeros((rows, columns), np.float32)
    program(x, out)
    e = np.exp(x.astype(np.float64) - x.max(1, keepdims=True))
    np.testing.assert_allclose(out, e / e.sum(1, keepdims=True), rtol=2e-6, atol=1e-7)
    parts = np.zeros((rows + 1, columns), np.float32)
    call = program.bind([x, parts])
    cuts = [0, 1, 3, 7, 100, 100, rows - 2, rows]
    for low, high in pairwise(cuts):
        call(low, high)
        assert not parts[high].any()  # nothing is written beyond
    assert np.array_equal(parts[:-1].view(np.uint32), out.view(np.uint32))
