"""Scatters on a simulated GPU by many threads: the CPU's bits, and NumPy's."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
import pytest

import tenfold as tn
from tenfold.backends.cuda.emit import scatter
from tenfold.types import DTYPES, KIND
from tests.backends.cuda.against import alike, draw, graph_of, ordinary, same
from tests.backends.cuda.simulated import SimulatedGpu, simulated

Array = np.ndarray[Any, Any]
FOLDS = {"add": np.add, "mul": np.multiply, "min": np.minimum, "max": np.maximum}
random = np.random.default_rng(11)


def scattered(
    kind: str, x: Array, updates: Array, at: Array, axis: int = 0, races: bool = True
) -> tuple[Array, int]:
    """What a simulated GPU makes of a scatter along an axis, and how many functions the kernel
    with the updates has."""
    given = {"axes": (axis,), "at": axis, "mode": "raise", "kind": kind}
    made, program = alike(graph_of("scatter", [x, updates, at], **given), [x, updates, at], races)
    return made[0], max(len(code.launches) for code in program.code.values())


def wanted(kind: str, x: Array, updates: Array, at: Array) -> Array:
    made = x.copy()
    if kind == "set":
        made[at] = updates
    else:
        with np.errstate(all="ignore"):
            FOLDS[kind].at(made, at, updates)
    return made


def taken(dtypes: Iterable[str], kinds: Iterable[str]) -> list[tuple[str, str]]:
    """Pairs of a dtype and what is made of updates: complex numbers have no order."""
    pairs = [(dtype, kind) for dtype in dtypes for kind in kinds]
    return [p for p in pairs if p[0][0] != "c" or p[1] not in ("min", "max")]


@pytest.mark.parametrize(("dtype", "kind"), taken(DTYPES, ["set", *FOLDS]))
def test_every_dtype(dtype: str, kind: str) -> None:
    letter = KIND[DTYPES[dtype]]
    x, at = ordinary(dtype, (9,), 1), random.integers(-9, 9, 70)
    updates = ordinary(dtype, (70,), 2) if kind in ("add", "mul") else draw(dtype, (70,), 2)
    made, functions = scattered(kind, x, updates, at)
    if letter in "biu" or kind == "set" or dtype in ("f32", "f64"):
        same(made, wanted(kind, x, updates, at))
    assert functions == (1 if letter in "biu" or kind == "set" else 3)


@pytest.mark.parametrize(
    ("dtype", "kind"), taken(["f32", "i16", "c64", "bool"], ["set", "add", "max"])
)
def test_windows(dtype: str, kind: str) -> None:
    for shape, axis in (((9, 4), 0), ((3, 9), 1), ((2, 9, 5), 1)):
        x = ordinary(dtype, shape, 1)
        at = random.integers(0, 9, 40)
        updates = ordinary(dtype, (*shape[:axis], 40, *shape[axis + 1 :]), 2)
        made, _ = scattered(kind, x, updates, at, axis)
        moved = [np.moveaxis(a, axis, 0) for a in (made, x, updates)]
        if KIND[DTYPES[dtype]] != "c":
            same(np.ascontiguousarray(moved[0]), wanted(kind, moved[1], moved[2], at))


@pytest.mark.parametrize(
    ("places", "count"),
    [
        (1, 300),
        (3, 5000),
        (400, 4097),
        (70_000, 600),
        (70_000, 4099),
        (70_001, 4200),
        (200_000, 4200),
    ],
)
def test_sums_of_floats_in_order(places: int, count: int) -> None:
    """One digit and several, one tile and several, long runs and lone updates."""
    x, updates = ordinary("f32", (places,), 1), ordinary("f32", (count,), 2) * 1e4
    at = random.integers(0, places, count)
    made, functions = scattered("add", x, updates, at, races=count < 1000)
    same(made, wanted("add", x, updates, at))
    assert functions == (3 if count <= 4096 else 5)


@pytest.mark.parametrize("dtype", ["f16", "bf16", "f32", "f64", "c64"])
def test_buckets_of_every_float(dtype: str) -> None:
    """Sorted by one digit, then joined bucket by bucket, tile by tile."""
    count = 9000 if dtype == "f32" else 4500
    x, updates = ordinary(dtype, (700,), 1), ordinary(dtype, (count,), 2)
    at = random.integers(0, 700, count)
    at[: count // 2] = at[0]  # one bucket has several tiles
    made, functions = scattered("add", x, updates, at, races=dtype == "f32")
    if dtype in ("f32", "f64"):
        same(made, wanted("add", x, updates, at))
    assert functions == 5


@pytest.mark.parametrize("kind", ["mul", "max"])
def test_buckets_of_other_kinds(kind: str) -> None:
    x, updates = draw("f32", (70_000,), 1), draw("f32", (5000,), 2)
    at = random.integers(0, 70_000, 5000)
    at[:4500] = at[0]  # all tiles but for one are one place's
    made, functions = scattered(kind, x, updates, at, races=False)
    same(made, wanted(kind, x, updates, at))
    assert functions == 5


def test_updates_with_windows_or_many_parts_are_sorted_wholly() -> None:
    for dtype, width in (("f32", 2), ("c128", 1)):
        x, updates = ordinary(dtype, (700, width), 1), ordinary(dtype, (4500, width), 2)
        at = random.integers(0, 700, 4500)
        made, functions = scattered("add", x, updates, at, races=False)
        if dtype == "f32":
            same(made, wanted("add", x, updates, at))
        assert functions == 8


@pytest.mark.parametrize("kind", ["add", "set"])
def test_code_for_some_sizes_serves_others(kind: str) -> None:
    gpu = SimulatedGpu(races=False)
    given = {"axes": (0,), "at": 0, "mode": "raise", "kind": kind}
    texts = set()
    sizes = [(40, 20), (300, 200), (45, 300), (5000, 300), (4200, 260), (600, 5000), (900, 4500)]
    for count, places in sizes:
        x, updates = ordinary("f32", (places,), 1), ordinary("f32", (count,), 2)
        arrays = [x, updates, random.integers(0, places, count)]
        program = simulated(gpu).compile(graph_of("scatter", arrays, **given))
        same(program(arrays)[0], wanted(kind, *arrays))
        texts |= {code.code.text.name for code in program.code.values()}
    assert len(texts) < len(sizes)


def test_few_updates_are_taken_by_each_thread_of_a_window() -> None:
    x, at = ordinary("f32", (9, 40), 1), random.integers(0, 9, 20)
    updates = ordinary("f32", (20, 40), 2)
    made, functions = scattered("add", x, updates, at)
    same(made, wanted("add", x, updates, at))
    assert functions == 1


def test_the_last_update_wins() -> None:
    """Many updates, or places, take several functions."""
    for places, count, width in ((9, 70, 1), (4096, 300, 1), (4097, 300, 1), (50, 200, 90)):
        x, updates = draw("f32", (places, width), 1), draw("f32", (count, width), 2)
        at = random.integers(0, places, count)
        at[-20:] = at[:20]
        made, functions = scattered("set", x, updates, at)
        same(made, wanted("set", x, updates, at))
        assert functions == (3 if places > 4096 or count * width > 1 << 14 else 1)


def test_few_updates_of_many_places_take_no_memory_for_each(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(scatter, "_MARKED", 1 << 12)
    for count, width in ((100, 1), (60, 5)):
        x, updates = draw("f32", (5000, width), 1), draw("f32", (count, width), 2)
        at = random.integers(0, 5000, count)
        at[-30:] = at[:30]
        given = {"axes": (0,), "at": 0, "mode": "raise", "kind": "set"}
        made, program = alike(graph_of("scatter", [x, updates, at], **given), [x, updates, at])
        same(made[0], wanted("set", x, updates, at))
        assert 0 < max(code.partial for code in program.code.values()) < 4 * 5000


def test_a_small_one_in_a_loop_is_part_of_its_one_function() -> None:
    at = random.integers(0, 40, (70, 50))

    def put(x: Any, at: Any) -> Any:
        def body(c: Any, i: Any) -> Any:
            d = c.copy()
            d[i] = c[:1] + np.arange(50, dtype=np.float32)
            return d, d[3]

        return tn.scan(body, x, at)

    arrays = [ordinary("f32", (40,)), at]
    _, program = alike(tn.trace(put, *arrays), arrays)
    assert any(name.startswith("tn_loop_") for name, _, _ in program.device.launches)


def functions_of(program: Any) -> list[int]:
    """How many functions each kernel of a program has."""
    return sorted(len(code.launches) for code in program.code.values())


def test_equal_updates_are_stored_at_once() -> None:
    def marked(x: Any, at: Any) -> Any:
        x = x.copy()
        x[at] = True
        return x

    arrays = [np.zeros(90, np.bool_), random.integers(0, 90, 50)]
    made, program = alike(tn.trace(marked, *arrays), arrays)
    assert made[0].sum() == np.unique(arrays[1]).size
    assert functions_of(program) == [1]


def test_places_along_parallel_axes() -> None:
    """Each row has indices of its own."""

    def put(x: Any, at: Any, v: Any) -> Any:
        x = x.copy()
        np.put_along_axis(x, at, v, 1)
        return x

    def added(x: Any, at: Any, v: Any) -> Any:
        x = x.copy()
        np.add.at(x, (np.arange(3)[:, None], at), v)
        return x

    arrays = [ordinary("f32", (3, 8)), random.integers(0, 8, (3, 40)), ordinary("f32", (3, 40), 2)]
    for function in (put, added):
        wanted = function(*(a.copy() for a in arrays))
        made, _ = alike(tn.trace(function, *arrays), arrays)
        same(made[0], wanted)


def test_several_in_one_program() -> None:
    """They have functions in common, and memory; one of them stands in a loop."""

    def several(x: Any, y: Any, at: Any, v: Any) -> Any:
        x, y = x.copy(), y.copy()
        np.add.at(x, at, v)
        np.multiply.at(y, at, v)

        def body(i: Any, c: Any) -> Any:
            c = c.copy()
            np.add.at(c, at, v * c[0])
            return c

        z = tn.fori_loop(0, 3, body, x * 0.125)
        return x, y, z

    arrays = [ordinary("f32", (300,)), ordinary("f32", (300,), 1), random.integers(0, 300, 60),
              ordinary("f32", (60,), 2)]  # fmt: skip
    made, program = alike(tn.trace(several, *arrays), arrays)
    wanted = arrays[0].copy()
    np.add.at(wanted, arrays[2], arrays[3])
    same(made[0], wanted)
    assert functions_of(program).count(3) >= 2


def test_what_else_a_kernel_stores() -> None:
    def more(x: Any, at: Any, v: Any) -> Any:
        x, w = x.copy(), np.sqrt(v * v + 1)
        np.add.at(x, at, w)
        return x, w

    arrays = [ordinary("f32", (9,)), random.integers(0, 9, 50), ordinary("f32", (50,), 2)]
    alike(tn.trace(more, *arrays), arrays)


def test_an_index_out_of_range_is_an_error() -> None:
    x, at = np.zeros(9, np.float32), np.arange(50) % 9
    updates = np.ones(50, np.float32)
    for kind in ("set", "add"):
        at[37] = 9
        with pytest.raises(IndexError, match="9"):
            scattered(kind, x, updates, at)
