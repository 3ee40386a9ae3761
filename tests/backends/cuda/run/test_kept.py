"""Calls on a device that are not waited for, on a simulated GPU that does nothing before it has
to."""

from __future__ import annotations

import gc
import random
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import tenfold as tn
from tenfold.backends import registry
from tenfold.backends.cuda.array import SMALL, DeviceArray
from tenfold.backends.cuda.entry.code import unsupported
from tenfold.cache import plans
from tenfold.errors import IndexProblem
from tests.backends.cuda.late import LateGpu
from tests.backends.cuda.simulated import SimulatedPlace
from tests.backends.cuda.test_array import Capsuled, Interfaced, settled

THEIRS = 1009  # a stream of somebody else
X = np.arange(24, dtype=np.float32).reshape(4, 6)


@pytest.fixture
def gpu(monkeypatch: pytest.MonkeyPatch) -> Iterator[LateGpu]:
    found = LateGpu()
    records = {**registry._records, "cuda": SimulatedPlace(found).record}
    monkeypatch.setattr(registry, "_records", records)
    plans.clear()
    yield found
    plans.clear()


def jitted(function: Any, *args: Any, **options: Any) -> Any:
    made = tn.jit(function, backend="cuda", keep=True, **options)
    settled(made, *args)
    return made


def there(values: Any) -> DeviceArray:
    made: DeviceArray = tn.device_put(values, "cuda")
    return made


def test_nobody_waits_for_a_chain_of_calls(gpu: LateGpu) -> None:
    f = jitted(lambda x, y: x * y + 1, X, X)
    x, y = there(X), there(np.full_like(X, 2))
    gpu.waited.clear()
    got = x
    for _ in range(10):
        got = f(got, y)
    assert gpu.waited == []
    wanted = X
    for _ in range(10):
        wanted = wanted * 2 + 1
    np.testing.assert_array_equal(got.numpy(), wanted)
    assert gpu.waited == [gpu.main]


def test_numbers_beside_arrays_are_not_waited_for(gpu: LateGpu) -> None:
    f = jitted(lambda x, n: x * n, X, np.float32(2))
    x, n = there(X), np.array(3, np.float32)
    gpu.waited.clear()
    got = f(x, n)
    n[...] = 5  # the call has read it
    assert gpu.waited == []
    np.testing.assert_array_equal(got.numpy(), X * 3)


def test_numbers_that_change_from_call_to_call(gpu: LateGpu) -> None:
    """Native code writes them behind the calls that read the former ones."""
    f = jitted(lambda x, a, b: x * a + b, X, 2.0, 3)
    x = there(X)
    for _ in range(2):
        del [f(x, 2.0, 3) for _ in range(8)][:]  # whose memory is at hand then
    gpu.waited.clear()
    numbers = [(1.0, 2), (1.0, -2), (0.5, 2**40), (-0.0, 0), (float("inf"), 1), (2.0, 2)]
    asked = len(gpu.native)
    got = [f(x, *pair) for pair in numbers]
    assert gpu.waited == []
    fills = gpu.native[asked:].count("fill")
    plain = tn.jit(lambda x, a, b: x * a + b)
    for made, pair in zip(got, numbers, strict=True):
        np.testing.assert_array_equal(made.numpy(), plain(X, *pair))
    if unsupported() is None:
        assert 6 <= fills <= 2 * 2 * len(numbers)
        asked = len(gpu.native)
        f(x, *numbers[-1])  # they lie there
        assert gpu.native[asked:].count("fill") == 0


def test_what_is_put_there_is_waited_for_if_it_is_large(gpu: LateGpu) -> None:
    mine = X.copy()
    gpu.waited.clear()
    made = there(mine)
    mine[...] = 0  # it was read
    assert gpu.waited == []
    np.testing.assert_array_equal(made.numpy(), X)
    gpu.waited.clear()
    there(np.ones(SMALL // 4 + 1, np.float32))
    assert gpu.waited == [gpu.main]


def test_a_large_argument_is_waited_for(gpu: LateGpu) -> None:
    large = np.ones(SMALL // 4 + 1, np.float32)
    f = jitted(lambda x, n: x.sum() + n, large, np.float32(2))
    n = there(np.float32(1))
    gpu.waited.clear()
    f(large, n)
    assert gpu.waited == [gpu.main]


def test_memory_is_given_again_while_it_is_in_use(gpu: LateGpu) -> None:
    f = jitted(lambda x: x + 1, X)
    x = there(X)
    addresses, kept = set(), []
    for n in range(6):
        made = f(f(x))  # the one between is gone when the other is begun
        addresses.add(made.address)
        if n % 2:
            kept.append(made)
    del made
    gc.collect()
    assert len(addresses) < 6
    x = there(X * 5)
    for one in kept:
        np.testing.assert_array_equal(one.numpy(), X + 2)
    np.testing.assert_array_equal(f(x).numpy(), X * 5 + 1)


def test_a_call_with_numpy_arrays_comes_after(gpu: LateGpu) -> None:
    """It is in the same memory, by a stream of its own."""
    w = X + 3

    def function(x: Any) -> Any:
        return np.sort(np.tanh(x) * w, axis=0), np.tanh(x).sum(axis=0)

    kept, plain = jitted(function, X), tn.jit(function, backend="cuda")
    settled(plain, X)
    for n in range(3):
        got = kept(there(X + n))
        for a, b in zip(plain(X - n), tn.jit(function)(X - n), strict=True):
            np.testing.assert_array_equal(a, b)
        for a, b in zip(got, tn.jit(function)(X + n), strict=True):
            np.testing.assert_array_equal(a.numpy(), b)


def test_a_bad_index_raises_at_the_call(gpu: LateGpu) -> None:
    f = jitted(lambda x, i: (x + 1)[i], X, np.array([0, 1]))
    g = jitted(lambda x: x * 2, X)
    x = g(there(X))
    with pytest.raises(IndexProblem):
        f(x, there(np.array([0, 9])))
    np.testing.assert_array_equal(f(x, there(np.array([0, 3]))).numpy(), (X * 2 + 1)[[0, 3]])


def test_a_loop_is_waited_for_behind_what_it_reads(gpu: LateGpu) -> None:
    def loop(x: Any) -> Any:
        return tn.while_loop(lambda c: c.sum() < 5000, lambda c: c * 2, x)

    f, g = jitted(loop, X), jitted(lambda x: x + 1, X)
    x = g(there(X))
    got = f(x)
    assert gpu.waited[-1] != gpu.main
    np.testing.assert_array_equal(got.numpy(), tn.jit(loop)(X + 1))


def test_what_the_host_does_comes_in_its_place(gpu: LateGpu) -> None:
    seen = list[Any]()

    def function(x: Any) -> Any:
        y = x * 2
        tn.hook("seen", y, lambda a: seen.append(np.array(a)))
        return y + 1

    f, g = jitted(function, X), jitted(lambda x: x + 1, X)
    seen.clear()
    got = f(g(there(X)))
    np.testing.assert_array_equal(seen[-1], (X + 1) * 2)
    np.testing.assert_array_equal(got.numpy(), (X + 1) * 2 + 1)


def test_who_takes_an_array_elsewhere_comes_after(gpu: LateGpu) -> None:
    f = jitted(lambda x: x + 1, X)

    def made() -> DeviceArray:
        got: DeviceArray = f(there(X))
        gpu.waited.clear()
        return got

    assert made().__cuda_array_interface__["stream"] is None
    assert gpu.waited == [gpu.main]
    one = made()
    capsule = one.__dlpack__(stream=THEIRS)
    assert gpu.waited == []
    found = np.zeros(X.shape, np.float32)
    gpu.download(found, one.address, THEIRS)
    gpu.wait(THEIRS)
    np.testing.assert_array_equal(found, X + 1)
    del capsule
    for stream, waited in ((None, [gpu.main]), (-1, [])):
        made().__dlpack__(stream=stream)
        assert gpu.waited == waited


def test_a_stream_that_is_captured_follows_nobody(
    gpu: LateGpu, monkeypatch: pytest.MonkeyPatch
) -> None:
    got = jitted(lambda x: x + 1, X)(there(X))
    monkeypatch.setattr(gpu, "captured", lambda stream: stream == THEIRS)
    gpu.waited.clear()
    got.__dlpack__(stream=THEIRS)
    assert gpu.waited == [gpu.main]
    assert gpu.asked[THEIRS] == []


def test_what_others_may_write_over_is_waited_for(gpu: LateGpu) -> None:
    f = jitted(lambda x: x + 1, X)
    x = there(X)
    gpu.waited.clear()
    f(x)
    assert gpu.waited == []
    x.__dlpack__(stream=THEIRS)
    gpu.waited.clear()
    got = f(x)
    assert gpu.waited == [gpu.main]
    gpu.upload(x.address, X * 9, THEIRS)
    gpu.wait(THEIRS)
    np.testing.assert_array_equal(got.numpy(), X + 1)
    for foreign in (Interfaced(there(X)), Capsuled(there(X))):
        gpu.waited.clear()
        f(foreign)
        assert gpu.waited[-1] == gpu.main


def test_memory_that_others_read_is_not_given_early(gpu: LateGpu) -> None:
    f, x = jitted(lambda x: x + 1, X), there(X)
    made = f(x)
    address, capsule = made.address, made.__dlpack__(stream=THEIRS)
    found = np.zeros(X.shape, np.float32)
    gpu.download(found, address, THEIRS)  # and it is gone before that is done
    del made, capsule
    gc.collect()
    later, addresses = [f(x) for _ in range(70)], set[int]()
    later += [there(X * 9) for _ in range(70)]
    addresses.update(one.address for one in later)
    assert address in addresses
    np.testing.assert_array_equal(found, X + 1)


def test_what_is_bound_is_there(gpu: LateGpu) -> None:
    f = jitted(lambda x: x + 1, X)
    plan = tn.jit(lambda x: x * 2, backend="cuda").plan(X)
    bound = plan.bind(f(there(X)))
    bound.replay()
    bound.wait()
    np.testing.assert_array_equal(bound.outputs.numpy(), (X + 1) * 2)
    got = f(bound.outputs)  # a replay writes over it, and waits for nobody
    bound.replay()
    bound.wait()
    np.testing.assert_array_equal(got.numpy(), (X + 1) * 2 + 1)


def test_what_a_replay_reads_outlives_it(gpu: LateGpu) -> None:
    w = X + 2
    plan = tn.jit(lambda x: x * w, backend="cuda").plan(X)
    x = there(X)
    bound = plan.bind(x)
    made = bound.outputs
    bound.replay()
    del bound, x
    gc.collect()
    junk = [there(X * 0) for _ in range(4)]  # in the memory of what is gone
    np.testing.assert_array_equal(made.numpy(), X * w)
    del junk


def test_what_is_bound_is_read_without_waiting(gpu: LateGpu) -> None:
    """Replays do not write over it."""
    f, x = jitted(lambda x: x + 1, X), there(X)
    bound = tn.jit(lambda x: x * 2, backend="cuda").plan(X).bind(x)
    gpu.waited.clear()
    f(x)
    assert gpu.waited == []
    f(bound.outputs)
    assert gpu.waited == [gpu.main]


def test_memory_is_released_behind_what_is_under_way(gpu: LateGpu) -> None:
    f = jitted(lambda x: np.sort(x, axis=0) + 1, X)
    x = there(X[::-1])
    got = [f(x) for _ in range(3)]
    del got[:2]
    gc.collect()
    assert tn.release_memory() > 0
    np.testing.assert_array_equal(got[0].numpy(), X + 1)
    np.testing.assert_array_equal(f(x).numpy(), X + 1)


def test_random_calls_in_any_order(gpu: LateGpu) -> None:
    """Calls on arrays that come and go, read now and then."""
    w = X / 7
    functions = [lambda x, y: x + y, lambda x, y: (x - y) * w, lambda x, y: np.sort(x, axis=1) - y]
    kept = [jitted(f, X, X) for f in functions]
    plain = [tn.jit(f, backend="cuda") for f in functions]
    for seed in range(20):
        draw = random.Random(seed)
        arrays = [(there(X + n), X + n) for n in range(3)]
        for _ in range(15):
            which, (x, a), (y, b) = draw.randrange(3), draw.choice(arrays), draw.choice(arrays)
            made, wanted = kept[which](x, y), functions[which](a, b)
            match draw.randrange(5):
                case 0:
                    np.testing.assert_array_equal(made.numpy(), wanted)
                case 1:
                    np.testing.assert_array_equal(plain[which](a, b), wanted)
                case 2:
                    arrays.pop(draw.randrange(3))
                    arrays.append((made.copy(), wanted))
            arrays[draw.randrange(3)] = made, wanted
        for made, wanted in arrays:
            np.testing.assert_array_equal(made.numpy(), wanted)


def test_captured_arrays_stay_until_they_are_read(gpu: LateGpu) -> None:
    """Two functions of one graph share the memory that captured arrays are brought to."""

    def times(w: Any) -> Any:
        return lambda x: x * w

    f, g = jitted(times(X + 1), X), tn.jit(times(X + 2), backend="cuda")
    settled(g, X)
    assert f.plan(X).program is g.plan(X).program
    x = there(X)
    for _ in range(2):
        got = f(x)
        np.testing.assert_array_equal(g(X), X * (X + 2))
        np.testing.assert_array_equal(got.numpy(), X * (X + 1))
