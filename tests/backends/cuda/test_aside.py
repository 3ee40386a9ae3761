"""Stores that need no reduction, beside some that do, on a simulated GPU."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tenfold as tn
from tests.backends.cuda.against import alike, draw

SIZES = (100, 4095, 4096, 5000, 9001)


def launches(f: Any, *arrays: np.ndarray) -> list[list[str]]:
    """Of each kernel of a function, how its functions are laid over threads; bits are the CPU's."""
    _, program = alike(tn.trace(f, *arrays), list(arrays), races=False)
    return [[one.name.split("_")[1] for one in k.code.text.launches] for k in program.code.values()]


@pytest.mark.parametrize("size", SIZES)
def test_a_row_and_what_is_made_along_it(size: int) -> None:
    x, y = draw("f32", (size,)), draw("i32", (size,), 1)
    (made,) = launches(lambda x, y: (x * 2 + y, y > 3, (y & 7).sum(), x.max()), x, y)
    assert made[-1].startswith("point") == (size >= 4096)
    assert len(made) == (1 if size < 4096 else 2)


def test_few_rows_and_many() -> None:
    for rows, split in ((3, True), (70, False)):
        x = draw("f32", (rows, 2000))
        (made,) = launches(lambda x: (x - 1, x.sum(axis=1)), x)
        assert made[-1].startswith("point") == split


def test_what_hangs_on_a_reduction_stays_with_it() -> None:
    x = draw("f32", (5000,))
    (made,) = launches(lambda x: (x - x.max(), x.max()), x)
    assert not made[-1].startswith("point")
    (made,) = launches(lambda x: (x - x.max(), x * 3, x.max()), x)
    assert made[-1].startswith("point")


def test_a_row_is_written_over_when_all_has_been_read() -> None:
    def body(_: Any, carry: Any) -> Any:
        x, total = carry
        return x + total.astype(np.int32), total + (x & 3).sum()

    x = draw("i32", (5000,))
    with np.errstate(all="ignore"):
        made = launches(lambda x: tn.fori_loop(0, 40, body, (x, np.int64(0))), x)
    assert ["rows256", "point1"] in made or ["rows256", "point4"] in made


def test_indices_are_checked_once() -> None:
    x, at = draw("i32", (6000,)), np.arange(6000)[::-1].copy()
    made = launches(lambda x, at: (x[at], x[at].sum()), x, at)
    assert [one[-1].startswith("point") for one in made] == [True]
