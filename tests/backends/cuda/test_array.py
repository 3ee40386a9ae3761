"""Arrays on a device: our own, and those that other libraries would bring.

The GPU is simulated. Its memory has addresses of its own, which nothing on the host can touch."""

from __future__ import annotations

import copy
import gc
import pickle
import re
from collections.abc import Iterator
from typing import Any

import ml_dtypes
import numpy as np
import pytest

import tenfold as tn
from tenfold.api import checking
from tenfold.backends import registry
from tenfold.backends.array import ArrayOnDevice
from tenfold.backends.cuda import dlpack
from tenfold.backends.cuda.array import (
    DeviceArray,
    DeviceInput,
    as_device_input,
    device_input,
    on_gpu,
    put,
)
from tenfold.backends.cuda.blocks import blocks_of
from tenfold.backends.cuda.dlpack import CUDA, make_capsule, read_capsule
from tenfold.cache import plans
from tenfold.errors import (
    DeviceProblem,
    MutationError,
    PickleProblem,
    TypeMismatch,
    Unsupported,
)
from tenfold.parity import check as checks
from tenfold.types import DTYPES, TensorType
from tests.backends.cuda.simulated import SimulatedGpu, SimulatedPlace

X = np.arange(12, dtype=np.float32).reshape(3, 4)


class Recording(SimulatedGpu):
    """A simulated GPU that says which streams were waited for, and what was freed."""

    def __init__(self, number: int = 0) -> None:
        super().__init__()
        self.number = number
        self.waited: list[Any] = []
        self.followed: list[tuple[Any, Any]] = []
        self.freed: list[int] = []

    def stream(self) -> int:  # type: ignore[override]
        return 77

    @property
    def main(self) -> int:  # type: ignore[override]
        return 78

    def follow(self, stream: Any, other: Any) -> None:
        self.followed.append((stream, other))

    def wait(self, stream: Any) -> None:
        self.waited.append(stream)

    def free(self, address: int) -> None:
        self.freed.append(address)
        super().free(address)


@pytest.fixture
def gpu(monkeypatch: pytest.MonkeyPatch) -> Iterator[Recording]:
    made = Recording()
    records = {**registry._records, "cuda": SimulatedPlace(made).record}
    monkeypatch.setattr(registry, "_records", records)
    plans.clear()
    yield made
    plans.clear()


class Interfaced:
    """An array of a library with `__cuda_array_interface__`, such as CuPy's."""

    def __init__(self, own: DeviceArray, **changed: Any) -> None:
        self.own = own
        self.changed = changed

    @property
    def __cuda_array_interface__(self) -> dict[str, Any]:
        return {**self.own.__cuda_array_interface__, **self.changed}


class Capsuled:
    """An array of a library with DLPack alone, such as torch's."""

    def __init__(self, own: DeviceArray, number: int = 0) -> None:
        self.own, self.number = own, number
        self.streams: list[Any] = []

    def __dlpack_device__(self) -> tuple[int, int]:
        return CUDA, self.number

    def __dlpack__(self, stream: Any = None, **options: Any) -> Any:
        self.streams.append(stream)
        return self.own.__dlpack__()


def given(got: Any) -> Any:
    assert isinstance(got, DeviceArray)
    return got.numpy()


# Our own.


@pytest.mark.parametrize("short", DTYPES)
@pytest.mark.parametrize("shape", [(), (0, 3), (5,), (2, 3, 4)])
def test_there_and_back(short: str, shape: tuple[int, ...], gpu: Recording) -> None:
    x = np.arange(np.prod(shape, dtype=int)).reshape(shape).astype(DTYPES[short])
    made = tn.device_put(x, "cuda")
    assert (made.shape, made.dtype, made.ndim, made.size) == (x.shape, x.dtype, x.ndim, x.size)
    assert made.nbytes == x.nbytes
    back = np.asarray(made)
    assert back.dtype == x.dtype
    np.testing.assert_array_equal(back, x)


def test_what_is_put() -> None:
    gpu = Recording()
    strided = np.asfortranarray(X)[:, ::2]
    np.testing.assert_array_equal(put(strided, gpu).numpy(), strided)
    assert put([1, 2], gpu).dtype == np.int64
    assert put(2.5, gpu).shape == ()
    made = put(X, gpu)
    assert put(made, gpu) is made
    other = Recording(1)
    moved = put(made, other)
    assert moved.device is other
    np.testing.assert_array_equal(moved.numpy(), X)
    foreign = put(Interfaced(made), gpu)
    assert foreign.address != made.address
    np.testing.assert_array_equal(foreign.numpy(), X)
    with pytest.raises(TypeError):
        put(np.array(["text"]), gpu)


def test_containers(gpu: Recording) -> None:
    made = tn.device_put({"w": X, "b": (X[0], 2.0)}, "cuda")
    np.testing.assert_array_equal(made["w"].numpy(), X)
    assert made["b"][1].item() == 2.0


def test_it_is_freed_when_nobody_has_it() -> None:
    gpu = Recording()
    made = put(X, gpu)
    address = made.address
    capsule = made.__dlpack__()
    del made
    gc.collect()
    blocks = blocks_of(gpu)
    blocks.settle(gpu)
    assert address not in blocks.of(X.nbytes)  # somebody else has it
    del capsule
    gc.collect()
    blocks.settle(gpu)
    assert address in blocks.of(X.nbytes)


def test_numpy_takes_a_copy() -> None:
    made = put(X, Recording())
    np.testing.assert_array_equal(np.exp(made), np.exp(X))
    np.testing.assert_array_equal(X + made, X + X)  # type: ignore[operator]
    np.testing.assert_array_equal(made + X, X + X)  # type: ignore[operator]
    assert type(np.add(made, 1)) is np.ndarray
    assert np.asarray(made, np.float64).dtype == np.float64
    np.testing.assert_array_equal(np.from_dlpack(made, device="cpu"), X)
    with pytest.raises(ValueError, match="is copied"):
        np.asarray(made, copy=False)
    with pytest.raises(TypeMismatch, match="jitted functions"):
        made + 1  # type: ignore[operator]
    assert float(put(2.5, made.device)) == 2.5
    assert int(put(3, made.device)) == 3
    assert bool(put(True, made.device))
    assert put([1, 2], made.device).tolist() == [1, 2]
    assert len(made) == 3
    assert repr(made) == "DeviceArray(f32[3,4] on cuda:0)"


def test_an_error_on_the_way_frees_what_was_handed_out() -> None:
    gpu = Recording()
    made = put(X, gpu)
    with pytest.raises((RuntimeError, BufferError)):  # NumPy takes nothing of a GPU's
        np.from_dlpack(made)
    address, blocks = made.address, blocks_of(gpu)
    del made
    gc.collect()
    blocks.settle(gpu)
    assert address in blocks.of(X.nbytes)


def test_the_interface() -> None:
    made = put(X, Recording())
    said = made.__cuda_array_interface__
    assert said["data"] == (made.address, False)
    assert (said["shape"], said["typestr"], said["version"]) == ((3, 4), "<f4", 3)
    assert said["stream"] is None
    assert put(np.zeros((0, 2)), made.device).__cuda_array_interface__["data"][0] == 0
    assert not hasattr(
        put(np.zeros(2, ml_dtypes.bfloat16), made.device), "__cuda_array_interface__"
    )


@pytest.mark.parametrize("short", DTYPES)
def test_capsules(short: str) -> None:
    capsule = make_capsule(0x7F00, 3, (2, 0, 5), DTYPES[short], "owner")
    found = read_capsule(capsule)
    assert (found.address, found.kind, found.number) == (0x7F00, CUDA, 3)
    assert (found.shape, found.strides, found.dtype) == ((2, 0, 5), None, DTYPES[short])


def test_capsules_of_numpy_are_read_too() -> None:
    for version in (None, (1, 0)):
        found = read_capsule(X.T.__dlpack__(max_version=version))
        assert (found.address, found.kind) == (X.__array_interface__["data"][0], 1)
        assert (found.shape, found.strides, found.dtype) == ((4, 3), (1, 4), X.dtype)
    with pytest.raises(TypeMismatch, match="DLPack's dtype"):
        dlpack._dtype(2, 128, 1)
    with pytest.raises(TypeMismatch, match="holds no tensor"):
        read_capsule(np.random.PCG64().capsule)


def test_where_dlpack_is_asked_for() -> None:
    made = put(X, Recording())
    assert made.__dlpack_device__() == (CUDA, 0)
    with pytest.raises(BufferError, match="lies on cuda:0"):
        made.__dlpack__(dl_device=(CUDA, 1))
    with pytest.raises(BufferError, match="copied"):
        made.__dlpack__(dl_device=(1, 0), copy=False)
    other = read_capsule(made.__dlpack__(copy=True))
    assert other.address != made.address


def test_torch_and_cupy_are_imported_when_they_are_asked_for(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    import sys
    from types import SimpleNamespace

    made = put(X, Recording())
    for name in ("torch", "cupy"):
        stands_for = SimpleNamespace(from_dlpack=lambda array, name=name: (name, array))
        monkeypatch.setitem(sys.modules, name, stands_for)
    assert made.to_torch() == ("torch", made)
    assert made.to_cupy() == ("cupy", made)


# Others'.


def test_an_interface_and_its_stream() -> None:
    gpu = Recording()
    made = put(X, gpu)

    def waited_for(given: Interfaced) -> set[Any]:
        gpu.waited.clear()
        found = device_input(given, gpu)
        assert isinstance(found, DeviceInput)
        assert (found.address, found.nbytes) == (made.address, X.nbytes)
        return set(gpu.waited) - {gpu.main}  # which `made` waits for

    assert waited_for(Interfaced(made, stream=0xABC)) == {0xABC}
    assert waited_for(Interfaced(made)) == set()  # it says that nothing is left to wait for
    assert waited_for(Interfaced(made, version=2)) == {1}  # it says nothing


def test_dlpack_and_its_stream() -> None:
    gpu = Recording()
    made = put(X, gpu)
    gpu.waited.clear()
    foreign = Capsuled(made)
    found = device_input(foreign, gpu)
    assert found is not None
    assert found.address == made.address
    assert foreign.streams == [77]  # one of ours is told to wait for theirs
    assert gpu.waited == [78, 77]  # the first by `made`, which was asked for no stream


def test_types_and_places() -> None:
    gpu, other = Recording(), Recording(1)
    made = put(X, gpu)
    f32, f64 = TensorType(DTYPES["f32"], (3, 4)), TensorType(DTYPES["f64"], (3, 4))
    assert as_device_input(made, f32, gpu) is not None
    assert as_device_input(made, f64, gpu) is None
    assert as_device_input(X, f32, gpu) is None
    assert not on_gpu(X)
    assert not on_gpu(2.0)
    for one in (made, Interfaced(made), Capsuled(made)):
        with pytest.raises(DeviceProblem, match="lies on cuda:0, and the program runs on cuda:1"):
            device_input(one, Elsewhere(other))  # type: ignore[arg-type]
    with pytest.raises(TypeMismatch, match="mask"):
        device_input(Interfaced(made, mask=made), gpu)
    with pytest.raises(TypeMismatch):
        device_input(Interfaced(made, typestr="|S4"), gpu)


def Elsewhere(gpu: Recording) -> Recording:  # noqa: N802
    """A GPU that knows that the memory is the first one's."""
    gpu.home = lambda address: 0  # type: ignore[method-assign]
    return gpu


def test_arrays_that_are_not_packed() -> None:
    gpu = Recording()
    made = put(X, gpu)
    with pytest.raises(TypeMismatch, match="do not lie one after another"):
        device_input(Interfaced(made, strides=(4, 12), shape=(4, 3)), gpu)
    one = Interfaced(made, strides=(400, 4), shape=(1, 12))  # an axis of one may stride as it likes
    assert device_input(one, gpu) is not None

    class Torchlike(Interfaced):
        def contiguous(self) -> Any:
            return Interfaced(put(X.T, gpu))

    found = device_input(Torchlike(made, strides=(4, 16), shape=(4, 3)), gpu)
    assert found is not None
    assert found.shape == (4, 3)
    assert found.address != made.address


# Calls.


def settled(f: Any, *args: Any) -> None:
    """Have native entries there."""
    f(*args)
    assert f.ready(120)
    f(*args)


def test_results_stay_where_an_argument_lies(gpu: Recording) -> None:
    f = tn.jit(lambda x, y: ((x * y).sum(axis=0) + 1, x - y), backend="cuda")
    wanted = f(X, X + 1)
    there = tn.device_put(X, "cuda")
    for one in (f(there, X + 1), f(there, tn.device_put(X + 1, "cuda"))):
        for a, b in zip(one, wanted, strict=True):
            np.testing.assert_array_equal(given(a), b)
    settled(f, X, X + 1)
    slow = tn.stats()["slow_calls"]
    for got, b in zip(f(there, X + 1), wanted, strict=True):
        np.testing.assert_array_equal(given(got), b)
    assert tn.stats()["slow_calls"] == slow
    assert type(f(X, X + 1)[0]) is np.ndarray


def test_nothing_is_copied_to_the_host(gpu: Recording, monkeypatch: pytest.MonkeyPatch) -> None:
    f = tn.jit(lambda x: x * 2, backend="cuda", keep=True)
    settled(f, X)
    there = tn.device_put(X, "cuda")
    copies: list[str] = []
    for name in ("upload", "download"):
        real = getattr(gpu, name)
        monkeypatch.setattr(
            gpu, name, lambda *a, real=real, name=name: (copies.append(name), real(*a))
        )
    got = f(f(there))
    assert copies == []
    np.testing.assert_array_equal(given(got), X * 4)


def test_keep(gpu: Recording) -> None:
    f = tn.jit(lambda x, s: {"a": x * s, "n": x.sum()}, backend="cuda", keep=True)
    for _ in range(3):
        got = f(X, 2.0)
        np.testing.assert_array_equal(given(got["a"]), X * 2)
        assert given(got["n"]).shape == ()
    g = tn.jit(lambda x, s: {"a": x * s, "n": x.sum()}, backend="cuda")
    settled(g, X, 2.0)
    assert type(g(X, 2.0)["a"]) is np.ndarray  # the same program, not kept
    assert g.plan(X, 2.0).program is f.plan(X, 2.0).program


def test_who_has_no_memory_of_its_own() -> None:
    for options in ({}, {"backend": "cpu"}, {"backend": "cuda", "target": "sm_90"}):
        with pytest.raises(Unsupported, match="keep=True"):
            tn.jit(lambda x: x, keep=True, **options)  # type: ignore[call-overload]
    with pytest.raises(Unsupported, match="no memory of its own"):
        tn.device_put(X, "cpu")


def test_arrays_at_odd_places(gpu: Recording) -> None:
    """A kernel reads whole words of 16 bytes: what begins elsewhere is copied first."""
    f = tn.jit(lambda x: x + 1, backend="cuda", keep=True)
    x = np.arange(64, dtype=np.float32)
    settled(f, x)
    held = tn.device_put(np.concatenate([np.zeros(1, np.float32), x]), "cuda")
    said = {"shape": (64,), "data": (held.address + 4, False)}
    np.testing.assert_array_equal(given(f(Interfaced(held, **said))), x + 1)


def test_results_are_of_the_callers_library(gpu: Recording) -> None:
    class Given:
        def __init__(self, made: DeviceArray) -> None:
            self.made = made

    class Library:
        from_dlpack = Given

    class Own(Capsuled):
        def __array_namespace__(self) -> Any:
            return Library

    f = tn.jit(lambda x, y: x * y, backend="cuda")
    settled(f, X, X)
    got = f(Own(tn.device_put(X, "cuda")), X)
    assert isinstance(got, Given)
    np.testing.assert_array_equal(got.made.numpy(), X * X)


def test_an_argument_on_another_gpu(gpu: Recording) -> None:
    elsewhere = put(X, Recording(1))
    f = tn.jit(lambda x: x * 2, backend="cuda")
    for _ in range(2):  # traced anew, and by the entry
        with pytest.raises(DeviceProblem, match="lies on cuda:1") as error:
            f(elsewhere)
        assert "device_put(x, 'cuda:0')" in str(error.value)
        settled(f, X)


def test_an_argument_of_another_backend(gpu: Recording) -> None:
    class Other(ArrayOnDevice):
        place = "webgpu:0"
        shape, dtype = X.shape, X.dtype
        __dlpack__ = numpy = copy = _given_back = None  # type: ignore[assignment]

        def __dlpack_device__(self) -> tuple[int, int]:
            return 15, 0

    f, other = tn.jit(lambda x, y: x * y, backend="cuda"), Other()
    for _ in range(2):
        with pytest.raises(DeviceProblem, match="y lies on webgpu:0"):
            f(X, other)
        settled(f, X, X)


def test_an_argument_that_is_updated(gpu: Recording) -> None:
    def add(x: Any, y: Any) -> None:
        x += y

    f = tn.jit(add, backend="cuda")
    mine = X.copy()
    settled(f, mine, X)
    f(mine, tn.device_put(X, "cuda"))
    np.testing.assert_array_equal(mine, X * 4)
    with pytest.raises(MutationError, match="'x' is updated in place"):
        f(tn.device_put(X, "cuda"), X)


def test_the_cpu_takes_it_by_a_copy(gpu: Recording) -> None:
    got = tn.jit(lambda x: x * 2)(tn.device_put(X, "cuda"))
    np.testing.assert_array_equal(given(got), X * 2)


def test_a_capture_on_the_device_is_refused(gpu: Recording) -> None:
    w = tn.device_put(X, "cuda")
    with pytest.raises(TypeMismatch, match="pass it to one as an argument"):
        tn.jit(lambda x: x * w, backend="cuda")(X)


def test_captures_are_brought_there_once(gpu: Recording, monkeypatch: pytest.MonkeyPatch) -> None:
    w = X + 1
    f = tn.jit(lambda x: x * w, backend="cuda", keep=True)
    settled(f, X)
    there = tn.device_put(X, "cuda")
    f(there)
    sent: list[int] = []
    real = gpu.upload
    monkeypatch.setattr(gpu, "upload", lambda a, x, s: (sent.append(x.nbytes), real(a, x, s)))
    np.testing.assert_array_equal(given(f(there)), X * w)
    assert sent == []
    w[...] = 3
    f.refresh()
    f(there)
    np.testing.assert_array_equal(given(f(there)), X * 3)
    g = tn.jit(lambda x: x - w, backend="cuda")  # and to the host and back
    settled(g, X)
    sent.clear()
    np.testing.assert_array_equal(g(X), X - 3)
    assert sent == []


def test_copies_and_pickles() -> None:
    made = put(X, Recording())
    for other in (copy.copy(made), copy.deepcopy(made)):
        assert other.address != made.address
        np.testing.assert_array_equal(other.numpy(), X)
    with pytest.raises(PickleProblem, match="pickle a copy"):
        pickle.dumps(made)


def test_what_an_explanation_says(gpu: Recording) -> None:
    said = tn.jit(lambda x: x * 2, backend="cuda").plan(X).explain()
    assert "for sm_90: the CPU's bits" in said
    assert re.search(r"kernel [0-9a-f]{8}: \d+ × \d+ threads", said)
    fast = tn.jit(lambda x: x * 2, backend="cuda", target="sm_90", maths="fast").plan(X).explain()
    assert "for sm_90+fast: functions by the chip's own instructions" in fast


def test_arrays_stay_while_a_check_is_not_at_its_end(
    gpu: Recording, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Large arrays are not copied for the background. Calls go on with the check, fewer and fewer;
    between them nothing comes to the host."""
    monkeypatch.setattr(checking, "OWN", 0)
    monkeypatch.setattr(checks, "may_be_brief", lambda *_: False)
    outputs = checks._Check.outputs
    monkeypatch.setattr(checks._Check, "outputs", lambda *_: (None, None))
    brought = list[int]()

    def numpy(array: DeviceArray) -> Any:
        brought.append(call)
        return real(array)

    real = DeviceArray.numpy
    monkeypatch.setattr(DeviceArray, "numpy", numpy)
    f = tn.jit(lambda x: np.cumsum(np.sort(x)), backend="cuda", keep=True)
    x, found = tn.device_put(np.arange(40, 0, -1).astype("f4"), "cuda"), list[Any]()
    for call in range(1, 71):
        if call == 41:
            certificate = f.certificate(x)
            assert certificate is not None
            assert not certificate.complete
            monkeypatch.setattr(checks._Check, "outputs", outputs)
            brought.pop()  # for the certificate's sake
        found.append(f(x))
    assert brought == [1, 3, 5, 9, 17, 33, 65]
    certificate = f.certificate(x)
    assert certificate is not None
    assert certificate.complete
    for one in found:
        np.testing.assert_array_equal(real(one), np.cumsum(np.arange(1, 41)).astype("f4"))
