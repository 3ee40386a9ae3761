"""What a kernel alone tells: how it touches memory, what its work costs, what its items need."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tenfold.kernel import Builder, Index, Kernel
from tenfold.kernel.analyse.access import (
    GATHERED,
    PACKED,
    STRIDED,
    TRANSPOSED,
    UNIFORM,
    access,
    affine,
    alike,
    contiguity,
    in_place,
    reach,
)
from tenfold.kernel.analyse.cost import functions, size, work
from tenfold.kernel.analyse.nest import Write, carried_out, nest
from tenfold.kernel.analyse.uses import divisors, loads, made, needed, read_later, used, writes
from tenfold.kernel.passes.legalise import legalise

ROWS, COLUMNS = 6, 40


def table(place: Callable[[Builder, Index, Index], Index]) -> tuple[Kernel, Index]:
    """An array read at a place and written as it lies, rows (a0) by columns (a1)."""
    b = Builder()
    x, y = b.buffer("f32", ROWS * COLUMNS), b.buffer("f32", ROWS * COLUMNS, "write")
    row, column = b.axis(ROWS), b.axis(COLUMNS)
    where = place(b, row, column)
    b.store(y, row * COLUMNS + column, b.load(x, where))
    return b.finish(), where


PLACES = {
    "as it lies": (lambda b, r, c: r * COLUMNS + c, (TRANSPOSED, PACKED)),
    "backwards": (lambda b, r, c: r * COLUMNS + (COLUMNS - 1) - c, (STRIDED, PACKED)),
    "transposed": (lambda b, r, c: c * ROWS + r, (PACKED, TRANSPOSED)),
    "a column": (lambda b, r, c: r * COLUMNS, (STRIDED, UNIFORM)),
    "every second": (lambda b, r, c: c * 2, (UNIFORM, STRIDED)),
    "a remainder": (lambda b, r, c: c % 7, (UNIFORM, GATHERED)),
    "computed": (
        lambda b, r, c: b.as_index(b.cast(b.index(c * c.range()[1]), "i8"), 9),
        (UNIFORM, GATHERED),
    ),
}


@pytest.mark.parametrize("name", PLACES)
def test_an_index_moves_along_an_axis(name: str) -> None:
    place, wanted = PLACES[name]
    kernel, where = table(place)
    assert tuple(access(kernel, where, axis) for axis in (0, 1)) == wanted
    assert access(kernel, where, None) == UNIFORM
    assert TRANSPOSED not in (access(kernel, where, axis, load=False) for axis in (0, 1))


def test_the_contiguous_axis_is_the_one_with_packed_loads() -> None:
    kernel, where = table(lambda b, r, c: r * COLUMNS + c)
    assert contiguity(kernel, 1) > contiguity(kernel, 0)
    assert affine(where)
    assert not affine(where % 7)


def test_rows_begin_alike_in_lines_of_memory() -> None:
    b = Builder()
    row, column = b.axis(8), b.axis(16)
    assert alike(row * 16 + column, 1, 4, 64)
    assert not alike(row * 17 + column, 1, 4, 64)


def test_reach_counts_every_part() -> None:
    b = Builder()
    row, column = b.axis(100), b.axis(50)
    assert reach(row * 50 - column + 3) == 99 * 50 + 49 + 3
    assert reach((row * 2**25) // 7) >= 2**31  # the dividend does not fit


@pytest.mark.parametrize(
    ("roles", "aliases", "wanted"),
    [
        (("read", "write"), (0, 0), False),
        (("read", "write"), (1, 1), True),
        (("read", "write"), (1, 2), False),
        (("read", "both"), (0, 0), True),
    ],
)
def test_what_is_in_place(roles: tuple[str, str], aliases: tuple[int, int], wanted: bool) -> None:
    b = Builder()
    x, y = (b.buffer("f32", 8, r, a) for r, a in zip(roles, aliases, strict=True))
    i = b.axis(8)
    b.store(y, i, b.load(x, i))
    assert in_place(b.finish()) is wanted


def softmax() -> Kernel:
    b = Builder()
    x, y = b.buffer("f32", ROWS * COLUMNS), b.buffer("f32", ROWS * COLUMNS, "write")
    row, column = b.axis(ROWS), b.axis(COLUMNS)
    number, inner = b.reduced(COLUMNS, 1)
    total = b.reduce("sum", [number], b.op("exp", "f32", b.load(x, row * COLUMNS + inner)))
    here = b.op("exp", "f32", b.load(x, row * COLUMNS + column))
    b.store(y, row * COLUMNS + column, b.op("div", "f32", here, total))
    return b.finish()


def test_functions_are_the_costly_instructions() -> None:
    kernel = softmax()
    assert functions(kernel) == 2
    assert functions(kernel, 0) == 2
    assert functions(kernel, 1) == 1
    assert work("exp") > work("div") > work("add")
    assert size(kernel) > 2 * 2 * work("exp")


def test_a_reduction_is_carried_out_inside_its_axes() -> None:
    kernel = softmax()
    (total,) = (n for n, i in enumerate(kernel.instructions) if i.op == "reduce")
    assert kernel.free[total] == {0}
    assert carried_out(kernel, total) == {0, 2}


def test_what_the_items_of_a_nest_need() -> None:
    kernel = legalise(softmax(), fused=True)
    (rows,) = nest(kernel, (0, 1), (2,))
    summing, last = rows.body[0], rows.body[-1]  # type: ignore[union-attr]
    (total,) = summing.members
    assert made(kernel, [summing]) == {total}
    assert total in used(kernel, [last])
    assert total not in used(kernel, [summing])
    assert read_later(kernel, rows.body) == {total}  # type: ignore[union-attr]
    assert not writes([summing])
    assert writes([last])
    assert [i.index for i in loads(kernel, summing.body)] == [
        i.index for i in kernel.instructions if i.op == "load" and 2 in i.index.axes()
    ]
    store = kernel.stores[0]
    assert total not in needed(kernel, [store.value], 1)
    assert store.value in needed(kernel, [store.value], 1)


def test_a_reduction_that_rows_are_kept_beside_runs_for_each_of_them() -> None:
    b = Builder()
    x, y = b.buffer("f32", 20), b.buffer("f32", 20, "write")
    i, j = b.axis(4), b.axis(5)
    n, k = b.reduced(5, 1)
    s = b.scratch("f32", 5, (0,))
    b.store(s, k, b.op("exp", "f32", b.load(x, i * 5 + k)))
    total = b.reduce("sum", (n,), b.const("f32", 1))  # the same for all rows
    b.store(y, i * 5 + j, b.op("div", "f32", b.load(s, j), total))
    kernel = b.finish()
    (summed,) = (n for n, i in enumerate(kernel.instructions) if i.op == "reduce")
    assert kernel.free[summed] == {0}
    (rows,) = nest(kernel, (0, 1), (2,))[-1:]
    assert Write(0) in rows.body[0].body  # type: ignore[union-attr]


def test_divisors_are_those_that_do_not_change_along_an_axis() -> None:
    b = Builder()
    x, s, y = b.buffer("f32", 200), b.buffer("f32", 1), b.buffer("f32", 200, "write")
    i = b.axis(200)
    by = b.load(s, Index())
    b.store(y, i, b.op("div", "f32", b.load(x, i), by))
    kernel = legalise(b.finish(), fused=True)
    items = nest(kernel, (0,))[-1].body  # type: ignore[union-attr]
    (found,) = divisors(kernel, items, 0)
    assert kernel.instructions[found].attr == (1, 0)
    legal = legalise(softmax(), fused=True)  # beside functions a division takes no time of its own
    (rows,) = nest(legal, (0, 1), (2,))
    assert divisors(legal, rows.body[-1].body, 1) == []  # type: ignore[union-attr]
