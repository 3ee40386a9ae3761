"""Scatters, compiled, against NumPy's own ufunc.at and assignment."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tenfold as tn
from tenfold.backends.cpu.backend import BACKEND
from tenfold.backends.cpu.run.compiled import CompiledProgram
from tenfold.errors import IndexProblem
from tenfold.graph import Builder, Graph
from tenfold.kernel.ir.kernel import SEQUENTIAL
from tenfold.ops import TABLE
from tenfold.plan import KernelStep, Plan
from tenfold.reference import evaluate
from tenfold.types import DTYPES, KIND, TensorType, as_dtype

Array = np.ndarray[Any, Any]
FOLDS = {"add": np.add, "mul": np.multiply, "min": np.minimum, "max": np.maximum}
NARROW = ("f16", "bf16")
random = np.random.default_rng(11)


def draw(dtype: str, shape: tuple[int, ...]) -> Array:
    kind = KIND[DTYPES[dtype]]
    if kind == "b":
        return random.random(shape) > 0.5
    if kind in "iu":
        return random.integers(0, 100, shape).astype(DTYPES[dtype])
    made = random.standard_normal(shape)
    if kind == "c":
        return (made + 1j * random.standard_normal(shape)).astype(DTYPES[dtype])
    return made.astype(DTYPES[dtype])


def graph_of(x: Array, updates: Array, *indices: Array, **given: Any) -> Graph:
    builder = Builder(TABLE)
    arrays = (x, updates, *indices)
    values = [builder.parameter(TensorType(as_dtype(a.dtype), a.shape)) for a in arrays]
    given = {"axes": (0,), "at": 0, "mode": "raise", "kind": "set"} | given
    return builder.finish(builder.node("scatter", values, given))


def native(plan: Plan) -> Plan:
    assert not plan.host_steps, plan.explain()
    return plan


def ran(graph: Graph, *arrays: Array) -> Array:
    (made,) = CompiledProgram(native(BACKEND.plan(graph)))(arrays)
    return made


def kinds(plan: Plan) -> Counter[str]:
    return Counter(step.kind for one in plan.every for step in one.steps)


def planned(function: Callable[..., Any], *args: Any) -> Plan:
    """The plan of a function, native and with the reference's bits."""
    graph = tn.trace(function, *args)
    plan = native(BACKEND.plan(graph))
    flat = [np.asarray(a) for a in args]
    for got, wanted in zip(CompiledProgram(plan)(flat), evaluate(graph, flat), strict=True):
        assert got.dtype == wanted.dtype
        np.testing.assert_array_equal(got, wanted)
    return plan


@pytest.mark.parametrize("kind", ["set", *FOLDS])
@pytest.mark.parametrize("dtype", DTYPES)
def test_repeated_indices(dtype: str, kind: str) -> None:
    """Every dtype, with a tail after whole vectors; sums in the order of the updates."""
    if kind in ("min", "max") and KIND[DTYPES[dtype]] == "c":
        pytest.skip("complex numbers have no order")
    for size in (1, 15, 16, 53):
        x, updates = draw(dtype, (7,)), draw(dtype, (size,))
        index = random.integers(-7, 7, size).astype(np.int32)
        wide = np.float32 if dtype in NARROW and kind != "set" else x.dtype
        wanted, joined = x.astype(wide), updates.astype(wide)
        if kind == "set":
            wanted[index] = joined
        else:
            with np.errstate(all="ignore"):
                FOLDS[kind].at(wanted, index, joined)
        got = ran(graph_of(x, updates, index, kind=kind), x, updates, index)
        assert got.dtype == x.dtype
        if KIND[x.dtype] == "c" and kind == "mul":
            np.testing.assert_allclose(got, wanted, rtol=1e-4)
        else:
            np.testing.assert_array_equal(got, wanted.astype(x.dtype))


@pytest.mark.parametrize("kind", FOLDS)
@pytest.mark.parametrize("dtype", [d for d in DTYPES if KIND[DTYPES[d]] != "c"])
def test_runs_of_one_index_have_the_bits_of_mixed_ones(dtype: str, kind: str) -> None:
    """Lanes that all meet at one place are joined at once: with NaNs, zeros of both signs, and
    vectors whose ends alone agree."""
    x, updates = draw(dtype, (3,)), draw(dtype, (2, 150))
    if KIND[x.dtype] == "f":
        updates[:, 20:24] = [0.0, -0.0, 0.0, -0.0]
        updates[1, 90] = np.nan
        if kind in ("min", "max"):  # the sign of a sum of NaNs is anybody's
            updates[1, 91] = -np.nan
    runs = np.repeat([0, 1], 150)
    mixed = np.tile([0, 1], 150)
    made = ran(graph_of(x, updates.ravel(), runs, kind=kind), x, updates.ravel(), runs)
    turned = updates.T.ravel()
    assert made.tobytes() == ran(graph_of(x, turned, mixed, kind=kind), x, turned, mixed).tobytes()
    ends = np.where(np.arange(300) % 16 % 15 == 0, 0, 2)
    graph = graph_of(x, turned, ends, kind=kind)
    arrays = (x, turned, ends)
    with np.errstate(all="ignore"):
        wanted = evaluate(graph, arrays)[0]
    shown = np.float32 if dtype in NARROW else x.dtype
    np.testing.assert_array_equal(ran(graph, *arrays).astype(shown), wanted.astype(shown))


# The shape of x, those of the index arrays, the indexed axes, and where their shape goes.
WINDOWS = [
    ((9, 40), ((30,),), (0,), 0),
    ((9, 40), ((30,),), (1,), 1),
    ((9, 40), ((30,),), (1,), 0),
    ((9, 40), ((6, 5),), (0,), 1),
    ((9, 40), ((30,), (30,)), (0, 1), 0),
    ((9, 40), ((3, 1), (17,)), (1, 0), 0),
    ((5, 3), ((70,),), (0,), 0),
    ((4, 6, 20), ((33,),), (1,), 1),
    ((4, 6, 20), ((2, 1), (18,)), (0, 2), 1),
    ((4, 6, 20), ((18,), ()), (0, 1), 0),
    ((4,), ((),), (0,), 0),
    ((4, 5), ((), ()), (0, 1), 0),
]


@pytest.mark.parametrize("kind", ["set", "add", "max"])
@pytest.mark.parametrize(("shape", "indices", "axes", "at"), WINDOWS)
def test_windows(shape: Any, indices: Any, axes: Any, at: int, kind: str) -> None:
    rest = tuple(n for a, n in enumerate(shape) if a not in axes)
    frame = (*rest[:at], *np.broadcast_shapes(*indices), *rest[at:])
    x, updates = draw("f32", shape), draw("f32", frame)
    places = [random.integers(0, shape[a], s) for a, s in zip(axes, indices, strict=True)]
    graph = graph_of(x, updates, *places, axes=axes, at=at, kind=kind)
    arrays = (x, updates, *places)
    np.testing.assert_array_equal(ran(graph, *arrays), evaluate(graph, arrays)[0])


@pytest.mark.parametrize("dtype", DTYPES)
def test_windows_of_every_dtype(dtype: str) -> None:
    """Along lanes, across memory, and one after another; each way of joining."""
    for shape, count, axis in (((7, 21), 40, 0), ((7, 21), 40, 1), ((6, 5, 3), 9, 1)):
        x = draw(dtype, shape)
        frame = (*shape[:axis], count, *shape[axis + 1 :])
        updates, index = draw(dtype, frame), random.integers(0, shape[axis], count)
        for kind in ("set", "add", "mul", "min", "max"):
            if kind in ("min", "max") and KIND[x.dtype] == "c":
                continue
            graph = graph_of(x, updates, index, axes=(axis,), at=axis, kind=kind)
            wanted = evaluate(graph, [x, updates, index])[0]
            got = ran(graph, x, updates, index)
            if KIND[x.dtype] == "c" and kind == "mul":
                np.testing.assert_allclose(got, wanted, rtol=1e-4, atol=1e-4)
            else:
                np.testing.assert_array_equal(got, wanted)


def test_a_donated_array_is_updated_where_it_lies() -> None:
    def function(x: Any, u: Any, i: Any) -> Any:
        np.add.at(x, i, u)
        return x.sum()

    x, u, i = np.zeros(5000), np.ones(40), random.integers(0, 5000, 40)
    jitted = tn.jit(function, donate="x")
    assert jitted(x.copy(), u, i) == 40
    plan = jitted.plan(x, u, i)
    assert plan.peak_bytes == 0
    mine = x.copy()
    assert jitted(mine, u, i) == 40
    assert mine.sum() == 40


def test_checked_step_by_step() -> None:
    """Each step of a loop that scatters and sorts agrees, also when all rounds are looked at."""

    def function(x: Any, i: Any) -> Any:
        def body(k: Any, x: Any) -> Any:
            order = np.argsort(x, kind="stable")
            np.add.at(x, i, x[order[: i.size]] * 0.5)
            return x

        return tn.fori_loop(0, 6, body, x)

    x, i = draw("f32", (30,)), random.integers(0, 30, 9)
    jitted = tn.jit(function)
    jitted(x, i)
    assert jitted.certificate is not None
    assert tn.bisect(jitted, x, i, script=None).disagreement is None


@pytest.mark.parametrize("mode", ["raise", "clip", "wrap"])
def test_out_of_range(mode: str) -> None:
    x, updates = np.zeros(5), np.arange(1.0, 41.0)
    index = random.integers(-5, 5, 40)
    graph = graph_of(x, updates, index, mode=mode, kind="add")
    program = CompiledProgram(native(BACKEND.plan(graph)))
    far = index.copy()
    far[[3, 39]] = 17, -9
    for given in (index, far, index):
        if mode == "raise" and given is far:
            with pytest.raises(IndexProblem, match="scatter: index 17 is out of range for axis 0"):
                program([x, updates, given])
            continue
        wanted = evaluate(graph, [x, updates, given])[0]
        np.testing.assert_array_equal(program([x, updates, given])[0], wanted)


def test_out_of_range_in_place_in_a_loop() -> None:
    """The fault is found in the middle of a loop that updates its carry in place."""

    def function(x: Any, index: Any) -> Any:
        def body(k: Any, x: Any) -> Any:
            x[index + k] += 1.0
            return x

        return tn.fori_loop(0, 4, body, x)

    program = CompiledProgram(native(BACKEND.plan(tn.trace(function, np.zeros(9), np.arange(3)))))
    assert program([np.zeros(9), np.arange(3)])[0].sum() == 12
    with pytest.raises(IndexProblem, match="out of range") as caught:
        program([np.zeros(9), np.arange(4, 7)])
    assert "test_scatter.py" in str(caught.value)


@pytest.mark.parametrize("kind", ["set", *FOLDS])
def test_nothing_to_write_and_nowhere_to_write_it(kind: str) -> None:
    x = draw("f32", (4, 3))
    none = np.zeros(0, np.int64)
    empty = ran(graph_of(x, draw("f32", (0, 3)), none, kind=kind), x, draw("f32", (0, 3)), none)
    np.testing.assert_array_equal(empty, x)
    flat, some = draw("f32", (4, 0)), np.array([1, 9])
    made = ran(graph_of(flat, flat[:2], some, kind=kind, mode="clip"), flat, flat[:2], some)
    assert made.shape == (4, 0)
    program = BACKEND.compile(graph_of(flat, flat[:2], some, kind=kind))
    assert program([flat, flat[:2], np.array([1, 1])])[0].shape == (4, 0)
    with pytest.raises(IndexProblem, match="index 9 is out of range"):
        program([flat, flat[:2], some])
    gone = draw("f32", (0, 3))
    assert ran(graph_of(gone, gone, none, kind=kind), gone, gone, none).shape == (0, 3)


def test_a_value_that_is_the_same_in_each_round_is_joined_in_each() -> None:
    def function(x: Any, index: Any, value: Any) -> Any:
        x = x.copy()
        np.add.at(x, np.broadcast_to(index, (37,)), value)
        return x

    plan = planned(function, np.zeros(5), np.int64(2), np.float64(1))
    (made,) = CompiledProgram(plan)([np.zeros(5), np.int64(2), np.float64(1)])
    assert made.tolist() == [0, 0, 37, 0, 0]


def test_sums_that_cancel_keep_the_order_of_the_updates() -> None:
    updates = np.tile(np.array([1e20, 1.0, -1e20, 1.0]), 9)
    index = np.zeros(36, np.int64)
    x = np.zeros(1)
    wanted = x.copy()
    np.add.at(wanted, index, updates)
    np.testing.assert_array_equal(
        ran(graph_of(x, updates, index, kind="add"), x, updates, index), wanted
    )


# How many steps.


def test_producers_are_fused() -> None:
    """What is computed for the scatter alone is computed in its kernel, whole vectors at a time."""

    def function(x: Any, u: Any, i: Any) -> Any:
        x = x.copy()
        np.add.at(x, (i * 3 + 1) % 50, np.where(u > 0, u, u * u))
        return x

    plan = planned(function, np.zeros(50, "f4"), draw("f32", (300,)), np.arange(300))
    assert kinds(plan) == {"copy": 1, "kernel": 1}
    (kernel,) = plan.kernels
    assert [a.kind for a in kernel.axes] == [SEQUENTIAL]


def test_what_others_read_too_is_stored() -> None:
    def function(x: Any, u: Any, i: Any) -> Any:
        x, v = x.copy(), np.abs(u) + 1
        np.add.at(x, i, v)
        return x, v, v.max()

    plan = planned(function, np.zeros(50, "f4"), draw("f32", (300,)), np.arange(300) % 50)
    assert kinds(plan) == {"copy": 1, "kernel": 2}


def test_updates_of_what_is_read() -> None:
    """Values gathered from the array itself are taken before it is written into."""

    def function(x: Any, i: Any, j: Any) -> Any:
        x = x * 2
        x[i] = x[j] + x[i]
        return x + 1

    i, j = random.permutation(40)[:30], random.integers(0, 40, 30)
    plan = planned(function, draw("f32", (40, 5)), i, j)
    copies = [s for s in plan.steps if s.kind == "copy"]
    assert len(copies) == 1
    source, target = (plan.slots[n] for n in (copies[0].source, copies[0].target))
    assert (source.place, source.offset) == (target.place, target.offset)  # in place


def test_what_is_written_into_is_made_before() -> None:
    """The updates are computed by what makes the operand too; that is not deferred for them."""

    def function(x: Any, i: Any) -> Any:
        part = (x < 0.5)[:, 2:]
        made = part == part
        np.add.at(made, (slice(None), i), part)
        return made[1:]

    planned(function, draw("f32", (4, 5)), np.array([2, 1, 2]))


def test_a_carry_is_updated_in_place() -> None:
    def function(x: Any, i: Any) -> Any:
        def body(k: Any, x: Any) -> Any:
            x[i[k]] += x[0]
            return x

        return tn.fori_loop(0, 20, body, x)

    plan = planned(function, draw("f32", (5000,)), random.integers(1, 5000, 20))
    body = max(plan.plans, key=lambda p: len(p.steps))
    assert body.safe


def test_one_kernel_for_many_unrolled_scatters() -> None:
    def function(x: Any, u: Any, i: Any) -> Any:
        x = x.copy()
        for k in range(15):
            np.add.at(x, i, u * (k + 2.5))
        return x

    plan = planned(function, np.zeros(50, "f4"), draw("f32", (60,)), np.arange(60) % 50)
    assert len(plan.kernels) == 1
    assert sum(isinstance(s, KernelStep) for s in plan.steps) == 15


# Inside loops, under vmap, in what is built on it.


def test_inside_a_loop_with_sums_and_searches() -> None:
    """As in a rollout: a while loop around gather, scatter, cumsum and searchsorted."""

    def function(x: Any, weights: Any) -> Any:
        def body(state: Any) -> Any:
            k, x, total = state
            sums = np.cumsum(np.abs(x))
            at = np.searchsorted(sums, weights * sums[-1])
            np.add.at(x, np.clip(at, 0, x.size - 1), weights + 1)
            return k + 1, x, total + x[at % x.size].sum()

        return tn.while_loop(lambda s: s[0] < 6, body, (0, x.copy(), 0.0))

    x, weights = draw("f64", (100,)), random.random(33)
    graph = tn.trace(function, x, weights)
    plan = native(BACKEND.plan(graph))
    for got, value in zip(
        CompiledProgram(plan)([x, weights]), evaluate(graph, [x, weights]), strict=True
    ):
        np.testing.assert_allclose(got, value, rtol=1e-9)


def test_under_vmap() -> None:
    def one(x: Any, u: Any, i: Any) -> Any:
        x = x.copy()
        np.add.at(x, i, u)
        x[i] = u
        return x

    xs, us = draw("f32", (4, 9)), draw("f32", (4, 21))
    indices = random.integers(0, 9, (4, 21))
    planned(tn.vmap(one), xs, us, indices)
    planned(tn.vmap(one, in_axes=(0, None, None)), xs, us[0], indices[0])
    planned(tn.vmap(one, in_axes=(None, 0, 0)), xs[0], us, indices)
    planned(tn.vmap(tn.vmap(one, in_axes=(None, 0, None)), in_axes=(0, None, 0)), xs, us, indices)


def test_counting() -> None:
    x = random.integers(0, 30, 500)
    plan = planned(lambda x: tn.bincount(x, length=30), x)
    assert plan.peak_bytes == 0  # begun as zeros where it is handed out


def test_a_saved_plan(tmp_path: Any) -> None:
    @tn.jit
    def function(x: Any, u: Any, i: Any) -> Any:
        x = x.copy()
        np.maximum.at(x, i, u)
        return x

    args = draw("f32", (50,)), draw("f32", (90,)), random.integers(0, 50, 90)
    wanted = function(*args)
    function.plan(*args).save(tmp_path / "scatter.plan")
    np.testing.assert_array_equal(tn.load(tmp_path / "scatter.plan")(*args), wanted)
