"""Plans on arrays that stay where they are, on a simulated GPU."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import tenfold as tn
from tenfold.backends import registry
from tenfold.backends.cuda.array import DeviceArray
from tenfold.backends.cuda.blocks import blocks_of
from tenfold.backends.cuda.run.bound_plan import stream_handle
from tenfold.cache import plans
from tenfold.errors import (
    DeviceProblem,
    IndexProblem,
    PlanError,
    TypeMismatch,
    Unsupported,
    ValueProblem,
)
from tests.backends.cuda.simulated import SimulatedGpu, SimulatedPlace

X = np.random.default_rng(3).standard_normal((12, 20)).astype(np.float32)


class CapturingGpu(SimulatedGpu):
    """A simulated GPU in one of whose streams things are recorded: what is launched by node is
    counted."""

    def captured(self, stream: Any) -> bool:
        return bool(stream == 9)


@pytest.fixture
def gpu(monkeypatch: pytest.MonkeyPatch) -> Iterator[CapturingGpu]:
    found = CapturingGpu(races=False)
    records = {**registry._records, "cuda": SimulatedPlace(found).record}
    monkeypatch.setattr(registry, "_records", records)
    plans.clear()
    yield found
    plans.clear()


def write(gpu: SimulatedGpu, there: DeviceArray, values: Any) -> None:
    gpu.upload(there.address, np.asarray(values, there.dtype), 0)


def test_a_replay_reads_what_its_arrays_hold_by_then(gpu: CapturingGpu) -> None:
    def f(x: Any, y: Any) -> Any:
        return {"sum": (np.tanh(x) + y).sum(axis=0), "max": x.max()}

    there, other = tn.device_put(X, "cuda"), tn.device_put(X + 1, "cuda")
    bound = tn.jit(f, backend="cuda").plan(X, X).bind(there, y=other)
    assert isinstance(bound.outputs["sum"], DeviceArray)
    addresses = [one.address for one in bound.results]
    for values in (X, X * 2, X[::-1]):
        write(gpu, there, values)
        bound.replay()
        bound.wait()
        wanted = tn.jit(f)(np.ascontiguousarray(values), X + 1)
        for name, made in wanted.items():
            np.testing.assert_array_equal(bound.outputs[name].numpy(), made)
    assert [one.address for one in bound.results] == addresses


def test_numbers_that_a_function_returns_are_arrays_too(gpu: CapturingGpu) -> None:
    there = tn.device_put(X, "cuda")
    bound = tn.jit(lambda x: (x * 2, [3, 2.5]), backend="cuda").plan(X).bind(there)
    bound.replay()
    bound.wait()
    doubled, numbers = bound.outputs
    np.testing.assert_array_equal(doubled.numpy(), X * 2)
    assert [type(one) for one in numbers] == [DeviceArray, DeviceArray]
    assert [one.item() for one in numbers] == [3, 2.5]


def test_captured_arrays_and_several_plans_have_memory_of_their_own(gpu: CapturingGpu) -> None:
    w = np.arange(20, dtype=np.float32)
    plan = tn.jit(lambda x: (x * w).sum(axis=1), backend="cuda").plan(X)
    one, two = (tn.device_put(a, "cuda") for a in (X, -X))
    first, second = plan.bind(one), plan.bind(two)
    first.replay()
    second.replay(stream=SimpleNamespace(cuda_stream=5))
    for bound in (first, second):
        bound.wait()
    wanted = tn.jit(lambda x: (x * w).sum(axis=1))(X)
    np.testing.assert_array_equal(first.outputs.numpy(), wanted)
    np.testing.assert_array_equal(second.outputs.numpy(), -wanted)


def test_in_a_capture_it_is_done_node_by_node(gpu: CapturingGpu) -> None:
    def f(x: Any) -> Any:
        return np.sort(np.tanh(x).sum(axis=0)), x.T * 2

    there = tn.device_put(X, "cuda")
    bound = tn.jit(f, backend="cuda").plan(X).bind(there)
    bound.replay(9)
    for made, wanted in zip(bound.outputs, tn.jit(f)(X), strict=True):
        np.testing.assert_array_equal(made.numpy(), wanted)

    def loop(x: Any) -> Any:
        return tn.while_loop(lambda c: c.sum() < 50, lambda c: c + np.float32(1), x)

    bound = tn.jit(loop, backend="cuda").plan(X).bind(there)
    bound.replay()
    bound.wait()
    np.testing.assert_array_equal(bound.outputs.numpy(), tn.jit(loop)(X))
    if any(
        type(n).__name__ == "ConditionalNode" for r in bound._replay.recordings for n in r.nodes
    ):
        with pytest.raises(Unsupported, match="outside of the capture"):
            bound.replay(9)


def test_a_bad_index_is_told_by_wait(gpu: CapturingGpu) -> None:
    i = tn.device_put(np.array([1, 2]), "cuda")
    bound = (
        tn.jit(lambda x, i: x[i], backend="cuda")
        .plan(X, np.array([1, 2]))
        .bind(tn.device_put(X, "cuda"), i)
    )
    write(gpu, i, [0, 99])
    bound.replay()
    with pytest.raises(IndexProblem):
        bound.wait()
    write(gpu, i, [3, 4])
    bound.replay()
    bound.wait()
    np.testing.assert_array_equal(bound.outputs.numpy(), X[[3, 4]])
    write(gpu, i, [0, 99])
    bound.replay()
    write(gpu, i, [5, 6])
    bound.replay()
    with pytest.raises(DeviceProblem, match="of an earlier replay"):
        bound.wait()
    bound.wait()
    np.testing.assert_array_equal(bound.outputs.numpy(), X[[5, 6]])


def test_a_capture_is_not_waited_for(gpu: CapturingGpu, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing may wait for a stream that is captured."""
    waited = list[Any]()
    bound = tn.jit(lambda x: x + 1, backend="cuda").plan(X).bind(tn.device_put(X, "cuda"))
    monkeypatch.setattr(gpu, "wait", waited.append)
    bound.replay(5)
    bound.replay(9)
    bound.wait()
    assert waited == [5]


def test_memory_of_a_replay_on_its_way_is_given_to_nobody(
    gpu: CapturingGpu, monkeypatch: pytest.MonkeyPatch
) -> None:
    """All is waited for when a bound plan is gone, then what it had is free."""
    w = np.arange(20, dtype=np.float32)
    plan = tn.jit(lambda x: (x * w).sum(axis=1), backend="cuda").plan(X)
    there = tn.device_put(X, "cuda")
    where, waiting, settled = there.address, blocks_of(gpu).of(X.nbytes), list[bool]()
    monkeypatch.setattr(gpu, "settle", lambda: settled.append(where in waiting))
    bound = plan.bind(there)
    bound.replay()
    del there
    gc.collect()
    assert settled == []
    del bound
    gc.collect()
    assert settled[0] is False
    assert where in waiting


def test_no_copy_is_bound_in_place_of_an_array(gpu: CapturingGpu) -> None:
    there = tn.device_put(X, "cuda")
    given = {"typestr": "<f4", "data": (there.address, False), "version": 3}
    turned = SimpleNamespace(
        __cuda_array_interface__={**given, "shape": (20, 12), "strides": (4, 80)},
        contiguous=lambda: tn.device_put(X.T, "cuda"),
    )
    plan = tn.jit(lambda x: x + 1, backend="cuda").plan(X.T)
    with pytest.raises(TypeMismatch, match="do not lie one after another"):
        plan.bind(turned)
    swapped = SimpleNamespace(
        __cuda_array_interface__={**given, "typestr": ">f4", "shape": (20, 12)},
    )
    with pytest.raises(TypeMismatch, match="whose bytes are in another order, >f4"):
        plan.bind(swapped)


def test_what_can_not_be_bound(gpu: CapturingGpu) -> None:
    there = tn.device_put(X, "cuda")
    plan = tn.jit(lambda x, y: x + y, backend="cuda").plan(X, X)
    with pytest.raises(TypeMismatch, match=r"bind: y does not lie on the device"):
        plan.bind(there, X)
    with pytest.raises(TypeMismatch, match="make the plan for an array in place of this number"):
        tn.jit(lambda x, n: x * n, backend="cuda").plan(X, 2).bind(there, 2)
    with pytest.raises(TypeMismatch, match="this plan was made for"):
        plan.bind(there, tn.device_put(X[:3], "cuda"))
    with pytest.raises(ValueProblem, match="a str is no stream"):
        plan.bind(there, there).replay("main")

    def update(x: Any) -> None:
        x += 1

    with pytest.raises(Unsupported, match="updates x in place"):
        tn.jit(update, backend="cuda").plan(X).bind(there)
    with pytest.raises(PlanError, match="be a part of a graph"):
        tn.jit(lambda x: np.linalg.qr(x)[1], backend="cuda").plan(X).bind(there)


def test_streams_of_others() -> None:
    assert stream_handle(SimpleNamespace(ptr=4)) == 4
    assert stream_handle(SimpleNamespace(__cuda_stream__=lambda: (0, 6))) == 6


def test_arrays_without_elements(gpu: CapturingGpu) -> None:
    empty = X[:0]
    bound = (
        tn.jit(lambda x: x.sum(axis=0), backend="cuda")
        .plan(empty)
        .bind(tn.device_put(empty, "cuda"))
    )
    bound.replay()
    bound.wait()
    np.testing.assert_array_equal(bound.outputs.numpy(), np.zeros(20, np.float32))
