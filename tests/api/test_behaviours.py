"""Behaviours that users rely on, one test each (control flow and effects have their own files)."""

import dataclasses
import queue
from typing import Any

import ml_dtypes
import numpy as np
import pytest

import tenfold as tn

RNG = np.random.default_rng(0)
A = RNG.normal(size=(4, 4))


def run(function, *args):
    return tn.jit(function)(*args)


def test_creation_ops():
    def f(x):
        return (
            np.zeros_like(x),
            np.ones_like(x, dtype="i4"),
            np.full_like(x, 7),
            tn.zeros((2, 3), "f4"),
            tn.ones(2),
            tn.full((2,), 3, "u1"),
            tn.arange(2, 11, 3),
            tn.eye(3, dtype="f4"),
            tn.linspace(0, 1, 5),
        )

    x = np.ones((2, 2), "f4")
    want = (
        np.zeros_like(x),
        np.ones_like(x, dtype="i4"),
        np.full_like(x, 7),
        np.zeros((2, 3), "f4"),
        np.ones(2),
        np.full((2,), 3, "u1"),
        np.arange(2, 11, 3),
        np.eye(3, dtype="f4"),
        np.linspace(0, 1, 5),
    )
    for got, expected in zip(run(f, x), want, strict=True):
        np.testing.assert_array_equal(got, expected)
        assert got.dtype == expected.dtype


def test_concatenation_and_slicing():
    def f(x, y):
        z = np.concatenate([x, y[:, 1:3], x[::-1]], axis=1)
        return z[1:, ::2], z[-1], z[..., -2:], np.stack([x, x], axis=-1)

    x, y = A[:, :2], A
    for got, want in zip(run(f, x, y), f(x, y), strict=True):
        np.testing.assert_array_equal(got, want)


def test_reshape():
    def f(x):
        return x.reshape(2, -1), x.reshape(-1), np.reshape(x, (2, 2, 4)), x.ravel()[:3]

    for got, want in zip(run(f, A), f(A), strict=True):
        np.testing.assert_array_equal(got, want)


@pytest.mark.parametrize("dtype", ["f4", "f8", "c16"])
def test_decompositions_are_tuples(dtype):
    x = A.astype(dtype)

    def f(x):
        p, low, u = tn.lu(x)
        q, r = np.linalg.qr(x)
        result = np.linalg.svd(x, full_matrices=False)
        return p @ low @ u, q @ r, (result.U * result.S) @ result.Vh

    for got in run(f, x):
        np.testing.assert_allclose(got, x, rtol=1e-4, atol=1e-5)
        assert got.dtype == x.dtype


def test_decompositions_inside_a_branch():
    def f(x):
        q, r = tn.cond(x[0, 0] > 1e9, lambda: (x, x), lambda: tuple(np.linalg.qr(x)))
        p, low, u = tn.cond(x[0, 0] < 1e9, lambda: tn.lu(x), lambda: (x, x, x))
        return q @ r, p @ low @ u

    for got in run(f, A):
        np.testing.assert_allclose(got, A, atol=1e-12)


def test_sort_and_argsort():
    x = np.array([[3.0, np.nan, -0.0, 0.0], [1, -np.inf, np.inf, 1]])
    for axis in (0, 1, None):
        np.testing.assert_array_equal(
            run(lambda x, a=axis: np.sort(x, axis=a), x), np.sort(x, axis)
        )
        np.testing.assert_array_equal(
            run(lambda x, a=axis: np.argsort(x, axis=a, kind="stable"), x),
            np.argsort(x, axis, kind="stable"),
        )


def test_items_of_tuples():
    assert run(lambda t: t[1][0] + t[0], (1, (2, 3))) == 3


def test_destructured_results_feed_arithmetic():
    def f(x):
        a, (b, c) = tn.cond(x.sum() > 0, lambda: (x, (x * 2, 1.0)), lambda: (-x, (x, 2.0)))
        return a * b + c

    np.testing.assert_array_equal(run(f, np.ones(2)), [3, 3])
    np.testing.assert_array_equal(run(f, -np.ones(2)), [1, 1])


@dataclasses.dataclass(frozen=True)
class State:
    value: Any
    steps: Any
    name: str = dataclasses.field(default="s", metadata={"static": True})


def test_a_dataclass_is_input_output_and_branch_result():
    def f(s):
        return tn.cond(
            s.steps > 0,
            lambda: dataclasses.replace(s, value=s.value * 2, steps=s.steps - 1),
            lambda: s,
        )

    out = run(f, State(np.ones(2), 3))
    assert isinstance(out, State)
    assert out.name == "s"
    assert (out.value.tolist(), out.steps) == ([2, 2], 2)


def test_every_dtype_goes_in_and_out():
    for name in [
        "bool",
        *(f"{kind}{size}" for kind in "iu" for size in (1, 2, 4, 8)),
        "f2",
        "f4",
        "f8",
        "c8",
        "c16",
    ]:
        x = np.ones((2, 2), name)
        assert run(lambda x: x, x).dtype == x.dtype
    x = np.ones(2, ml_dtypes.bfloat16)
    assert run(lambda x: x + x, x).dtype == x.dtype


def test_empty_and_zero_dimensional_arrays():
    f = tn.jit(lambda x: (x * 2, x.sum(), np.sort(x, axis=-1) if x.ndim else x))
    for shape in [(0,), (0, 3), (3, 0), ()]:
        x = np.ones(shape)
        double, total, _ = f(x)
        assert double.shape == shape
        assert total == x.sum()


def test_no_warnings_from_edges():
    x = np.array([0.0, -1.0, np.inf, np.nan])
    i = np.array([0, np.iinfo("i8").min])
    run(lambda x: (1 / x, np.log(x), np.sqrt(x), x.astype("i4"), np.exp(x * 1e9)), x)
    out = run(lambda i: (5 // i, i // -1, i % 0, i << 70), i)
    assert out[0].tolist() == [0, -1]
    assert out[1].tolist() == [0, np.iinfo("i8").min]
    assert out[2].tolist() == [0, 0]
    assert out[3].tolist() == [0, 0]


def test_an_index_out_of_range_raises_as_numpy_does():
    with pytest.raises(IndexError, match=r"test_behaviours\.py"):
        run(lambda x, i: x[i], np.arange(3), 5)
    assert run(lambda x, i: x[i], np.arange(3), -1) == 2


def test_a_leak_is_named_by_both_lines():
    kept = queue.SimpleQueue()

    @tn.jit
    def f(x):
        kept.put(x * 2)
        return x

    f(A)
    leak = kept.get()
    with pytest.raises(tn.TenfoldError) as caught:
        leak + 1
    text = str(caught.value)
    assert "kept.put(x * 2)" in text
    assert "leak + 1" in text
    with pytest.raises(tn.TenfoldError, match="leaked"):
        tn.jit(lambda x: x + leak)(A)


def test_a_traced_value_in_a_numpy_array_names_its_cause():
    outside = np.zeros(3)

    def f(x):
        out = outside * 2
        out[0] = x[0]
        return out

    with pytest.raises(tn.TenfoldError, match=r"np\.array\(w\)"):
        run(f, np.ones(3))


def test_aliases_see_updates():
    def f(x):
        y = x * 1
        z = y
        y += 1
        y[0] = 10
        return z

    np.testing.assert_array_equal(run(f, np.zeros(3)), [10, 1, 1])


def test_reading_and_writing_a_part():
    def f(x):
        y = x.copy()
        y[1:] += 5
        y[0], y[2] = y[2], y[0]
        return y

    np.testing.assert_array_equal(run(f, np.arange(3.0)), [7, 6, 0])


def test_trace_is_linear_in_shared_values():
    def f(x):
        for _ in range(200):
            x = x + x
        return x

    assert len(tn.trace(f, np.ones(2)).nodes) == 200


def test_deep_programs_through_the_front_door():
    def chain(x):
        for _ in range(100_000):
            x = x + 1.0
        return x

    def doubling(x):
        for _ in range(10_000):
            x = x + x
        return x

    for function, nodes in ((chain, 100_001), (doubling, 10_000)):
        graph = tn.trace(function, np.zeros(2, "f4"))
        assert len(graph.nodes) == nodes
        data = graph.to_bytes()
        assert len(data) < 48 * nodes
        assert tn.Graph.from_bytes(data) == graph
        assert len(graph.text(limit=5)) < 1000
        assert tn.evaluate(graph, np.zeros(2, "f4"))[0] in (0, 100_000)
