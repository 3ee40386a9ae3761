"""Along which axes the rounds of sums lie: the kernel alone tells, the CPU's code goes by it."""

from __future__ import annotations

from typing import Any

import pytest

from tenfold.backends.cpu.emit import accumulate
from tenfold.kernel import Builder, Kernel
from tenfold.kernel.analyse.lanes import rounds
from tests.backends.cpu.running import Program, reduction


def product(rows: int, columns: int, first: bool) -> Kernel:
    """A vector times a matrix, or a matrix times a vector."""
    b = Builder()
    v, m = b.buffer("f32", rows if first else columns), b.buffer("f32", rows * columns)
    out = b.buffer("f32", columns if first else rows, "write")
    free = b.axis(columns if first else rows)
    axis, k = b.reduced(rows if first else columns, 1, 0)
    at = k * columns + free if first else free * columns + k
    value = b.op("mul", "f32", b.load(v, k), b.load(m, at))
    b.store(out, free, b.reduce("sum", [axis], value))
    return b.finish()


def softmax(rows: int, columns: int) -> Kernel:
    b = Builder()
    x, out = b.buffer("f32", rows * columns), b.buffer("f32", rows * columns, "write")
    i, j = b.axis(rows), b.axis(columns)
    (first, k), (second, m) = b.reduced(columns, 1), b.reduced(columns, 2)
    top = b.reduce("max", (first,), b.load(x, i * columns + k))
    apart = b.op("sub", "f32", b.load(x, i * columns + m), top)
    total = b.reduce("sum", (second,), b.op("exp", "f32", apart))
    own = b.op("exp", "f32", b.op("sub", "f32", b.load(x, i * columns + j), top))
    b.store(out, i * columns + j, b.op("div", "f32", own, total))
    return b.finish()


CASES: dict[str, tuple[Kernel, bool]] = {
    "vector": (reduction("sum", "f32", (1000,), (0,)), True),
    "rows": (reduction("sum", "f32", (10, 100), (1,)), True),
    "columns": (reduction("sum", "f32", (100, 10), (0,)), False),
    "wide columns": (reduction("sum", "f32", (100, 1000), (0,)), False),
    "middle": (reduction("sum", "f32", (5, 30, 40), (1,)), False),
    "two axes": (reduction("sum", "f32", (5, 30, 40), (0, 2)), True),
    "softmax": (softmax(20, 300), True),
    "vector @ matrix": (product(100, 50, True), False),
    "matrix @ vector": (product(100, 50, False), True),
}


@pytest.mark.parametrize("name", CASES)
def test_code_lays_rounds_along_the_axis_that_the_kernel_says(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    kernel, packed = CASES[name]
    plain, seen = accumulate._crossing, list[int | None]()

    def crossing(e: Any, loop: Any) -> Any:
        found = plain(e, loop)
        seen.append(None if found is None else found.axis)
        return found

    monkeypatch.setattr(accumulate, "_crossing", crossing)
    program = Program(kernel)
    said = list(rounds(program.kernel).values())
    assert [axis is not None for axis in said] == [packed] * len(said)
    if name != "wide columns":  # whose accumulators are kept in memory
        assert set(seen) == set(said)  # a loop may be written twice
