"""Arrays that stay on an adapter between calls."""

from __future__ import annotations

import copy
import gc
import multiprocessing
import pickle
import threading
import weakref
from typing import Any

import numpy as np
import pytest

import tenfold as tn
from tenfold.backends.array import ArrayOnDevice
from tenfold.backends.registry import backend_record
from tenfold.backends.webgpu import array
from tenfold.backends.webgpu.array import DeviceArray, put
from tenfold.backends.webgpu.native.adapter import adapter_of
from tenfold.backends.webgpu.native.device import SPARE, Device
from tenfold.backends.webgpu.run.program import WebGPUProgram
from tenfold.backends.webgpu.run.record import Recorder
from tenfold.errors import DeviceProblem, MutationError, PickleProblem, TypeMismatch, Unsupported
from tenfold.types import DTYPES
from tests.backends.webgpu.here import needs_adapter

pytestmark = needs_adapter

X = np.arange(12, dtype=np.float32).reshape(3, 4)


def there(x: Any) -> DeviceArray:
    made: DeviceArray = tn.device_put(x, "webgpu")
    return made


def given(got: Any) -> Any:
    assert isinstance(got, DeviceArray)
    return got.numpy()


def settled(f: Any, *args: Any) -> None:
    """Have the program of a call answer it by itself."""
    f(*args)
    assert f.ready(120)
    f(*args)


@pytest.fixture
def moved(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """What goes to the device and comes back from it."""
    seen: list[str] = []
    for name in ("write", "read"):
        real = getattr(Device, name)

        def counted(self: Any, *given: Any, real: Any = real, name: str = name) -> Any:
            seen.append(name)
            return real(self, *given)

        monkeypatch.setattr(Device, name, counted)
    return seen


# The arrays.


@pytest.mark.parametrize("short", DTYPES)
@pytest.mark.parametrize("shape", [(), (0, 3), (5,), (2, 3, 4)])
def test_there_and_back(short: str, shape: tuple[int, ...]) -> None:
    x = np.arange(np.prod(shape, dtype=int)).reshape(shape).astype(DTYPES[short])
    made = there(x)
    assert (made.shape, made.dtype, made.ndim, made.size) == (x.shape, x.dtype, x.ndim, x.size)
    assert made.nbytes == x.nbytes
    for one in (made, made.copy()):
        back = np.asarray(one)
        assert back.dtype == x.dtype
        np.testing.assert_array_equal(back, x)


def test_they_come_back_in_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(array, "_PIECE", 64)
    for count in (15, 16, 17, 333):
        x = np.arange(count, dtype=np.int8)
        np.testing.assert_array_equal(there(x).numpy(), x)


def test_what_is_put() -> None:
    strided = np.asfortranarray(X)[:, ::2]
    np.testing.assert_array_equal(there(strided).numpy(), strided)
    made = there(X)
    assert there(made) is made
    many = tn.device_put({"w": X, "b": (made, 2.0)}, "webgpu")
    np.testing.assert_array_equal(many["w"].numpy(), X)
    assert many["b"][0] is made
    assert many["b"][1].item() == 2.0
    other = put(made, Device(adapter_of(0), 1))
    assert repr(other) == "DeviceArray(f32[3,4] on webgpu:1)"
    np.testing.assert_array_equal(other.numpy(), X)
    np.testing.assert_array_equal(there(other).numpy(), X)


def test_numpy_takes_a_copy() -> None:
    made = there(X)
    np.testing.assert_array_equal(np.exp(made), np.exp(X))
    np.testing.assert_array_equal(X + made, X + X)  # type: ignore[operator]
    np.testing.assert_array_equal(np.from_dlpack(made, device="cpu"), X)
    with pytest.raises(ValueError, match="is copied"):
        np.asarray(made, copy=False)
    with pytest.raises(TypeMismatch, match="jitted functions"):
        made + 1  # type: ignore[operator]
    assert (float(there(2.5)), int(there(3)), bool(there(True))) == (2.5, 3, True)
    assert there(np.array([1, 2])).tolist() == [1, 2]
    assert len(made) == 3


def test_other_libraries_can_not_share_it() -> None:
    with pytest.raises((BufferError, RuntimeError)):  # NumPy takes nothing of a GPU's
        np.from_dlpack(there(X))
    with pytest.raises(BufferError, match=r"on webgpu:0 can't be shared.*x\.numpy\(\)"):
        there(X).__dlpack__()


def test_copies_and_pickles() -> None:
    made = there(X)
    for other in (copy.copy(made), copy.deepcopy(made)):
        assert other.range.buffer is not made.range.buffer
        np.testing.assert_array_equal(other.numpy(), X)
    with pytest.raises(PickleProblem, match="pickle a copy"):
        pickle.dumps(made)


# Calls.


def test_nothing_is_copied_in_a_chain(moved: list[str]) -> None:
    f = tn.jit(lambda x, y: (np.tanh(x) @ y.T).sum(axis=0) + x[0, 0] * y, backend="webgpu")
    x, y = X[:, :3].copy(), X[:, 1:].copy()
    settled(f, x, y)
    a, b = there(x), there(y)
    f(f(a, b), b)  # what a room keeps is there now
    moved.clear()
    got = f(f(f(a, b), b), b)
    assert moved == []
    np.testing.assert_array_equal(given(got), f(f(f(x, y), y), y))


@pytest.fixture
def recorded(monkeypatch: pytest.MonkeyPatch) -> dict[str, int]:
    """How many steps are recorded, and how many bind groups made."""
    counts = {"steps": 0, "groups": 0}
    for owner, name, what in ((Recorder, "_step", "steps"), (Device, "_group", "groups")):
        real = getattr(owner, name)

        def counted(*given: Any, real: Any = real, what: str = what) -> Any:
            counts[what] += 1
            return real(*given)

        monkeypatch.setattr(owner, name, counted)
    return counts


def sorted_twice(x: Any) -> Any:
    return np.sort(np.sort(x * 2, axis=0), axis=1) + 1


def test_a_chain_is_recorded_once(recorded: dict[str, int]) -> None:
    """Only what is bound to arguments and results is bound anew."""
    f = tn.jit(sorted_twice, backend="webgpu", keep=True)
    settled(f, X)
    a = f(there(X))
    tn.release_memory()
    recorded.update(steps=0, groups=0)
    a = f(a)  # in a new room
    assert recorded["steps"] >= 4
    every = recorded["groups"]
    for _ in range(3):
        recorded.update(steps=0, groups=0)
        a = f(a)
        assert recorded == {"steps": 0, "groups": 3}
        assert every > 4
    wanted = X
    for _ in range(5):
        wanted = sorted_twice(wanted)
    np.testing.assert_array_equal(given(a), wanted)


def test_a_room_for_what_stays_has_no_results() -> None:
    """Of a program whose calls have kept their results alone; others have them made then."""
    x = np.zeros((100, 1000), np.float32)
    program = backend_record("webgpu").compile(tn.trace(lambda x: x + 1, x))
    assert isinstance(program, WebGPUProgram)
    a = there(x)
    program.answer_kept([a])
    (found,) = program.rooms
    assert found.room.nbytes < x.nbytes
    (b,) = program.answer_kept([x])
    assert x.nbytes < found.room.nbytes < 2 * x.nbytes
    np.testing.assert_array_equal(program([x + 1])[0], x + 2)
    assert 2 * x.nbytes < found.room.nbytes
    for _ in range(2):
        np.testing.assert_array_equal(program.answer_kept([b])[0].numpy(), x + 2)
        np.testing.assert_array_equal(program([x])[0], x + 1)
    np.testing.assert_array_equal(b.numpy(), x + 1)


def test_loops_on_arrays_that_stay_are_recorded_once(recorded: dict[str, int]) -> None:
    def f(x: Any) -> Any:
        made = tn.fori_loop(0, 7, lambda i, c: (c[1], c[0] * 0.5 + i), (x, x * 2))
        return tn.while_loop(lambda c: c.sum() < 1000, lambda c: np.abs(c) * 1.5 + 1, made[0])

    jitted = tn.jit(f, backend="webgpu")
    settled(jitted, X)
    jitted(there(X))
    for x in (X, -X, X * 3):
        recorded.update(steps=0)
        got = jitted(there(x))
        assert recorded["steps"] == 0
        np.testing.assert_array_equal(given(got), jitted(x))


def test_a_plan_that_checks_reads_a_word(moved: list[str]) -> None:
    f = tn.jit(lambda x, i: np.take(x, i, axis=0), backend="webgpu")
    settled(f, X, np.array([1, 2]))
    a, i = there(X), there(np.array([1, 2]))
    f(a, i)
    moved.clear()
    got = f(a, i)
    assert moved == ["read"]
    np.testing.assert_array_equal(given(got), X[[1, 2]])


def test_results_stay_where_an_argument_lies() -> None:
    f = tn.jit(lambda x, y: ((x * y).sum(axis=0) + 1, x - y), backend="webgpu")
    wanted = f(X, X + 1)
    for _ in range(2):  # traced anew, and by the program
        for one in (f(there(X), X + 1), f(X, there(X + 1)), f(there(X), there(X + 1))):
            for a, b in zip(one, wanted, strict=True):
                np.testing.assert_array_equal(given(a), b)
        settled(f, X, X + 1)
    slow = tn.stats()["slow_calls"]
    f(there(X), X + 1)
    assert tn.stats()["slow_calls"] == slow
    assert type(f(X, X + 1)[0]) is np.ndarray


def test_keep() -> None:
    f = tn.jit(lambda x, s: {"a": x * s, "n": x.sum()}, backend="webgpu", keep=True)
    for _ in range(3):
        got = f(X, 2.0)
        np.testing.assert_array_equal(given(got["a"]), X * 2)
        assert given(got["n"]).shape == ()
        f.ready(120)
    g = tn.jit(lambda x, s: {"a": x * s, "n": x.sum()}, backend="webgpu")
    settled(g, X, 2.0)
    assert type(g(X, 2.0)["a"]) is np.ndarray  # the same program, not kept


def test_every_result_is_a_buffer_of_its_own() -> None:
    w = X + 3
    f = tn.jit(lambda x: (x, x, x * 2, w, x.reshape(-1)), backend="webgpu", keep=True)
    settled(f, X)
    a = there(X)
    first, second = f(a), f(a)
    every = [a, *first, *second]
    assert len({one.range.key() for one in every}) == len(every)
    f(there(X * 7))
    for got in (first, second):
        for one, wanted in zip(got, (X, X, X * 2, w, X.reshape(-1)), strict=True):
            np.testing.assert_array_equal(given(one), wanted)


def test_loops_branches_and_host_steps_on_arrays_that_stay() -> None:
    def f(x: Any) -> Any:
        def step(c: Any, row: Any) -> Any:
            return c * 0.5 + row, (c.sum(), row > c)

        made, rows = tn.scan(step, x[0], x)
        grown = tn.while_loop(lambda c: c.sum() < 1000, lambda c: np.abs(c) * 1.5 + 1, made)
        chosen = tn.cond(x.sum() > 10, lambda v: v + 1, lambda v: v - 1, grown)
        swapped = tn.fori_loop(0, 3, lambda i, c: (c[1], c[0]), (x, x * 2))
        return rows, chosen, swapped, np.fft.fft(x).real, np.sort(x, axis=0)

    jitted = tn.jit(f, backend="webgpu")
    settled(jitted, X)
    for x in (X, -X, X * 3):
        got, wanted = jitted(there(x)), jitted(x)
        for one, other in zip(tn_leaves(got), tn_leaves(wanted), strict=True):
            np.testing.assert_array_equal(given(one), other)


def tn_leaves(value: Any) -> list[Any]:
    """The arrays in tuples."""
    if not isinstance(value, tuple):
        return [value]
    return [leaf for one in value for leaf in tn_leaves(one)]


def test_a_fault_names_its_line() -> None:
    jitted = tn.jit(lambda x, i: np.take(x, i, axis=0) + 1, backend="webgpu")
    good, bad = np.array([1, 2]), np.array([1, 400])
    settled(jitted, X, good)
    a = there(X)
    for index in (bad, there(bad)):
        with pytest.raises(IndexError, match="400") as error:
            jitted(a, index)
        assert "test_array.py" in str(error.value)
        np.testing.assert_array_equal(given(jitted(a, there(good))), X[good] + 1)
    np.testing.assert_array_equal(a.numpy(), X)


def test_captures_are_sent_once(moved: list[str]) -> None:
    w = X + 1
    f = tn.jit(lambda x: x * w, backend="webgpu", keep=True)
    settled(f, X)
    a = there(X)
    f(a)
    moved.clear()
    got = f(a)
    assert moved == []
    np.testing.assert_array_equal(given(got), X * w)
    w[...] = 3
    f.refresh()
    np.testing.assert_array_equal(given(f(a)), X * 3)


def test_a_donated_argument_is_copied() -> None:
    def f(x: Any) -> Any:
        return tn.fori_loop(0, 5, lambda i, c: c * 0.5 + i, x)

    jitted = tn.jit(f, backend="webgpu", donate="x", keep=True)
    wanted = tn.jit(f)(X)
    settled(jitted, X.copy())
    a = there(X)
    for _ in range(2):
        np.testing.assert_array_equal(given(jitted(a)), wanted)
        np.testing.assert_array_equal(a.numpy(), X)


def test_an_argument_that_is_updated() -> None:
    def add(x: Any, y: Any) -> None:
        x += y

    f, mine = tn.jit(add, backend="webgpu"), X.copy()
    settled(f, mine, X)
    f(mine, there(X))
    np.testing.assert_array_equal(mine, X * 4)
    with pytest.raises(MutationError, match="'x' is updated in place"):
        f(there(X), X)


def test_memory_waits_for_another_array(monkeypatch: pytest.MonkeyPatch) -> None:
    """That of arrays which are gone, while work on it is under way, for arrays as large."""
    f = tn.jit(lambda x: x @ x, backend="webgpu", keep=True)
    x = np.full((64, 64), 1 / 64, np.float32)
    settled(f, x)
    a = there(x)
    gc.collect()
    gc.disable()
    try:
        used = set[int]()
        for _ in range(20):
            used.add(id(a.buffer))
            a = f(a)
        assert len(used) <= 3
        tn.release_memory()
        gone = [weakref.ref(there(np.zeros(n)).buffer) for n in range(40, 40 + 2 * SPARE)]
        assert sum(one() is not None for one in gone) == SPARE
        assert tn.release_memory() >= SPARE * 40 * 8
        assert all(one() is None for one in gone)
    finally:
        gc.enable()
    np.testing.assert_allclose(a.numpy(), x, rtol=1e-4)
    monkeypatch.setattr(array, "_REUSED", 1000)
    large = weakref.ref(there(x).buffer)
    assert large() is None  # it does not wait


def test_memory_that_held_something_else() -> None:
    """Also behind the last element, and where a result is written in parts."""
    for dtype in ("i1", "?", "f2", "f4"):
        for count in (1, 3, 5, 7, 33):
            dirty = [there(np.full(200, 0xFF, "u1")[: np.dtype(dtype).itemsize * count])
                     for _ in range(SPARE)]  # fmt: skip
            del dirty
            x = (np.arange(count) % 2).astype(dtype)
            f = tn.jit(lambda x: (np.concatenate([x[1:], x[:1]]), np.sort(x), x.max()),
                       backend="webgpu", keep=True)  # fmt: skip
            for got, wanted in zip(f(there(x)), tn.jit(f.__wrapped__)(x), strict=True):
                np.testing.assert_array_equal(given(got), wanted)


def test_several_threads_at_once() -> None:
    f = tn.jit(lambda x, y: np.tanh(x) @ y, backend="webgpu", keep=True)
    x, y = np.random.default_rng(0).standard_normal((2, 16, 16)).astype(np.float32)
    settled(f, x, y)
    shared = there(y)
    wanted = [f(f(x + n, y), y).numpy() for n in range(4)]
    wrong = list[int]()

    def call(n: int) -> None:
        for _ in range(10):
            if not np.array_equal(f(f(there(x + n), shared), shared).numpy(), wanted[n]):
                wrong.append(n)

    threads = [threading.Thread(target=call, args=(n,)) for n in range(4)]
    for one in threads:
        one.start()
    for one in threads:
        one.join()
    assert not wrong


# What can't be done.


class Foreign:
    """A tensor on a GPU of another library's."""

    def __dlpack_device__(self) -> tuple[int, int]:
        return 2, 0

    def __dlpack__(self, **options: Any) -> Any:
        raise AssertionError


class OnAnother(ArrayOnDevice):
    """An array of another backend's."""

    shape, dtype, place = (3, 4), DTYPES["f32"], "cuda:0"
    __dlpack_device__, __dlpack__ = Foreign.__dlpack_device__, Foreign.__dlpack__

    def numpy(self) -> Any:
        return X

    def copy(self) -> Any:
        return self

    def _given_back(self, made: Any) -> Any:
        return made


def test_arguments_that_lie_elsewhere() -> None:
    f = tn.jit(lambda x, p: x * p["w"], backend="webgpu")
    other = put(X, Device(adapter_of(0), 1))
    for _ in range(2):  # traced anew, and by the program
        with pytest.raises(DeviceProblem, match=r"p\['w'\] lies on webgpu:1") as error:
            f(X, {"w": other})
        assert "device_put(x, 'webgpu:0')" in str(error.value)
        with pytest.raises(DeviceProblem, match="x lies on cuda:0"):
            f(OnAnother(), {"w": X})
        with pytest.raises(DeviceProblem, match=r"x is a .*Foreign on a GPU"):
            f(Foreign(), {"w": X})
        settled(f, X, {"w": X})


def test_the_cpu_takes_it_by_a_copy() -> None:
    np.testing.assert_array_equal(given(tn.jit(lambda x: x * 2)(there(X))), X * 2)


def test_a_capture_on_the_device_is_refused() -> None:
    w = there(X)
    with pytest.raises(TypeMismatch, match="pass it to one as an argument"):
        tn.jit(lambda x: x * w, backend="webgpu")(X)


def test_no_plan_is_bound() -> None:
    plan = tn.jit(lambda x: x * 2, backend="webgpu").plan(X)
    with pytest.raises(Unsupported, match="'webgpu' replays no plans"):
        plan.bind(there(X))


def test_plans_that_were_saved(tmp_path: Any) -> None:
    path = tmp_path / "f.plan"
    tn.jit(lambda x, y: x * 2 - y, backend="webgpu").plan(X, X).save(path)
    loaded = tn.load(path, trust_code=True)
    for _ in range(3):
        np.testing.assert_array_equal(given(loaded(there(X), X)), X)
    with pytest.raises(DeviceProblem, match="y lies on webgpu:1"):
        loaded(X, put(X, Device(adapter_of(0), 1)))


def _in_child(made: DeviceArray, told: Any) -> None:
    try:
        made.numpy()
    except DeviceProblem as error:
        told.put(error.message)


def test_the_child_of_a_fork_can_not_use_it() -> None:
    context = multiprocessing.get_context("fork")
    told = context.Queue()
    child = context.Process(target=_in_child, args=(there(X), told))
    child.start()
    assert "child of a process that has used it" in told.get(timeout=60)
    child.join()
    assert child.exitcode == 0


def test_memory_that_programs_keep_is_given_back_for_it(monkeypatch: pytest.MonkeyPatch) -> None:
    f = tn.jit(lambda x: x + 1, backend="webgpu")
    settled(f, X)
    program = f.plan(X).program
    assert isinstance(program, WebGPUProgram)
    assert program.rooms
    device, real, asked = there(X).device, Device.buffer, list[int]()

    def full(self: Any, nbytes: int, *usage: Any) -> Any:
        asked.append(nbytes)
        if len(asked) == 1:
            self.tell(3, "not enough memory")
            self.check("memory")
        return real(self, nbytes, *usage)

    device.spare.clear()
    monkeypatch.setattr(Device, "buffer", full)
    made = DeviceArray(device, X.shape, X.dtype)
    assert len(asked) == 2
    assert not program.rooms
    assert made.numpy().shape == X.shape
