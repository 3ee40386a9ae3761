"""Faults of a GPU and of programs on it: said with what to do, and the process lives on. What a
machine without a GPU can't have is had by a driver that is none."""

from __future__ import annotations

import os
import traceback
import weakref
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import tenfold as tn
from tenfold.backends import registry
from tenfold.backends.cuda import assemble
from tenfold.backends.cuda.driver import device, library
from tenfold.backends.cuda.entry import code
from tenfold.backends.cuda.run import program
from tenfold.backends.cuda.run.program import release_rooms
from tenfold.backends.cuda.run.stepper import CudaStepper
from tenfold.backends.device_memory import bytes_text
from tenfold.cache import plans
from tenfold.errors import DeviceMemoryProblem, DeviceProblem, IndexProblem
from tests.backends.cuda.fake_driver import FakeLibrary
from tests.backends.cuda.simulated import SimulatedGpu, SimulatedPlace

X = np.arange(12, dtype=np.float32).reshape(3, 4)


def forget() -> None:
    library._begun.cache_clear()
    device._gpu.cache_clear()
    assemble.shared_module.cache_clear()  # what others assembled
    plans.clear()


@pytest.fixture
def fake(monkeypatch: pytest.MonkeyPatch) -> Iterator[FakeLibrary]:
    """The machine's driver; nothing that it is given is run."""
    made = FakeLibrary()
    monkeypatch.setattr(library, "_open", lambda name: made)
    monkeypatch.setattr(assemble, "assembler", lambda: None)
    monkeypatch.setattr(tn.config, "cache", None)
    forget()
    yield made
    forget()


@pytest.fixture
def simulated(monkeypatch: pytest.MonkeyPatch) -> Iterator[SimulatedGpu]:
    gpu = SimulatedGpu()
    records = {**registry._records, "cuda": SimulatedPlace(gpu).record}
    monkeypatch.setattr(registry, "_records", records)
    plans.clear()
    yield gpu
    plans.clear()


def doubled() -> Any:
    return tn.jit(lambda x: np.sort(x * 2 + 1, axis=0), backend="cuda", verify="off")


def test_what_a_driver_is_given(fake: FakeLibrary) -> None:
    f = doubled()
    for _ in range(2):
        assert f(X).shape == X.shape
    assert fake.images
    assert all(b".target sm_90" in image for image in fake.images)
    assert "cuGraphLaunch" in fake.called


def test_what_the_drivers_assembler_says(fake: FakeLibrary) -> None:
    fake.says = b"ptxas application ptx input, line 12; error: unknown symbol 'x'"
    with pytest.raises(
        DeviceProblem, match=r"does not take the code .*: ptxas .* line 12"
    ) as error:
        doubled()(X)
    assert "report the program" in str(error.value)


def test_out_of_memory(fake: FakeLibrary) -> None:
    f = doubled()
    f(X)  # constants and all that are there
    fake.room = 1000
    large = np.zeros((1024, 1024), np.float32)
    g = doubled()
    with pytest.raises(MemoryError) as error:
        g(large)
    assert isinstance(error.value, DeviceMemoryProblem)
    said = str(error.value)
    assert "the GPU's memory does not suffice: the program takes" in said
    assert "inputs 4.0 MiB, outputs 4.0 MiB" in said
    assert "60.0 GiB of 80.0 GiB are free" in said
    assert "f32[1024,1024] 4.0 MiB (input)" in said
    assert "give it less at a time" in said
    fake.room = 1 << 62
    assert g(large).shape == large.shape  # it lives on
    assert f(X).shape == X.shape


def test_memory_that_nobody_uses_is_given_back_first(fake: FakeLibrary) -> None:
    f = doubled()
    f(X)
    fake.full = True
    made = tn.device_put(X, "cuda")
    assert fake.refused[-1] == X.nbytes
    assert made.address == fake.next


def test_an_array_that_is_too_large(fake: FakeLibrary) -> None:
    fake.room = 40
    with pytest.raises(DeviceMemoryProblem, match=r"an array f32\[3,4\] of 48 bytes"):
        tn.device_put(X, "cuda")


def test_release_memory(fake: FakeLibrary) -> None:
    release_rooms()
    f = doubled()
    f(X)
    fake.called.clear()
    assert tn.release_memory() > 2 * X.nbytes
    assert "cuMemFree_v2" in fake.called
    assert "cuStreamDestroy_v2" in fake.called
    assert f(X).shape == X.shape


def test_a_gpu_that_gave_up(fake: FakeLibrary) -> None:
    f = doubled()
    f(X)
    kept = tn.device_put(X, "cuda")
    for name in ("cuStreamSynchronize", "cuMemcpyHtoDAsync_v2", "cuMemFree_v2"):
        fake.fails[name] = 700
    for _ in range(2):
        with pytest.raises(DeviceProblem, match="gave up: a kernel touched memory") as error:
            f(X)
        assert "start another" in str(error.value)
    with pytest.raises(DeviceProblem, match="gave up"):
        kept.numpy()
    del kept  # freeing it says nothing: nobody could do anything about it


def test_what_shows_after_the_call_is_said_by_the_next(fake: FakeLibrary) -> None:
    """Nobody waited for the kernel that failed."""
    f = tn.jit(lambda x: x * 2 + 1, backend="cuda", verify="off")
    f(X)
    x = tn.device_put(X, "cuda")
    for _ in range(3):
        got = f(x)
    fake.called.clear()
    got = f(x)
    new = "cuGraphExecKernelNodeSetParams_v2"
    assert fake.called == ["cuCtxSetCurrent", new, "cuGraphLaunch"]  # `got` lies elsewhere
    for name in ("cuStreamSynchronize", "cuGraphLaunch", "cuMemcpyDtoHAsync_v2", "cuMemFree_v2"):
        fake.fails[name] = 700
    with pytest.raises(DeviceProblem, match=r"gave up.*in cuMemcpyDtoHAsync_v2"):
        got.numpy()
    for _ in range(2):
        with pytest.raises(DeviceProblem, match=r"gave up.*in cuGraphLaunch"):
            f(x)
    with pytest.raises(DeviceProblem, match="gave up"):
        np.asarray(got.__cuda_array_interface__)
    del got


def test_a_child_of_a_process_that_used_it(fake: FakeLibrary) -> None:
    f = doubled()
    f(X)
    kept = tn.device_put(X, "cuda")

    def refused(work: Any) -> bool:
        try:
            work()
        except DeviceProblem as error:
            return "child of a process" in str(error) and "spawn" in str(error)
        return False

    child = os.fork()
    if not child:
        code = 1
        try:
            works = (lambda: f(X), kept.numpy, lambda: tn.device_put(X, "cuda"), library.driver)
            code = 0 if all(map(refused, works)) else 2
        except BaseException:
            traceback.print_exc()
        finally:
            os._exit(code)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    assert f(X).shape == X.shape


def test_a_driver_without_a_function(fake: FakeLibrary, monkeypatch: pytest.MonkeyPatch) -> None:
    found = library.driver()

    class Old:
        pass

    monkeypatch.setattr(found, "_library", Old())
    with pytest.raises(DeviceProblem, match="has no cuGraphAddNode_v2") as error:
        found.cuGraphAddNode_v2(None)
    assert "newer driver" in str(error.value)


@pytest.mark.parametrize("status", library._KNOWN)
def test_words_for_what_is_known(status: int, fake: FakeLibrary) -> None:
    said = library.driver().problem("cuInit", status)
    assert said.fix
    assert "in cuInit" in said.message


def test_a_bad_index_raises_at_the_users_line(simulated: SimulatedGpu) -> None:
    def pick(x: Any, i: Any) -> Any:
        y = x * 2
        return y[i] + 1

    f = tn.jit(pick, backend="cuda")
    good, bad = np.array([0, 2]), np.array([0, 7])
    for _ in range(2):
        np.testing.assert_array_equal(f(X, good), X[good] * 2 + 1)
        assert f.ready(60)
        with pytest.raises(IndexProblem) as error:
            f(X, bad)
        assert f"test_faults.py:{pick.__code__.co_firstlineno + 2}, in pick" in str(error.value)
    np.testing.assert_array_equal(f(X, good), X[good] * 2 + 1)


def test_a_fault_in_one_call_is_not_the_nexts(simulated: SimulatedGpu) -> None:
    f = tn.jit(lambda x, i: x[i].sum(), backend="cuda", keep=True)
    f(X, np.array([1]))
    assert f.ready(60)
    with pytest.raises(IndexProblem):
        f(X, np.array([9]))
    assert f(X, np.array([1])).item() == X[1].sum()


def test_bytes_text() -> None:
    assert bytes_text(0) == "0 bytes"


def test_two_gpus_in_one_thread(fake: FakeLibrary) -> None:
    """Each works in its own context, whichever was used last."""
    fake.gpus = 2
    forget()
    f = doubled()
    g = tn.jit(lambda x: x + 1, backend="cuda:1", verify="off")
    for wanted, work in ((0, f), (1, g), (0, f), (1, g)):
        tn.release_memory()
        fake.allocated.clear()
        work(X)
        assert {which for which, _ in fake.allocated} == {wanted}
    first, second = (tn.device_put(X, f"cuda:{n}") for n in (0, 1))
    assert (first.device.number, second.device.number) == (0, 1)
    with pytest.raises(DeviceProblem, match="lies on cuda:1, and the program runs on cuda:0"):
        f(second)


def test_memory_is_not_given_back_while_the_process_ends(simulated: SimulatedGpu) -> None:
    """A check in the background may still be at work in it."""
    f = doubled()
    f(X)
    registry_: Any = weakref.finalize._registry  # type: ignore[attr-defined]
    own = [one for one in registry_.values() if getattr(one.func, "__self__", None) is simulated]
    assert own
    assert not any(one.atexit for one in own)


def test_a_check_without_memory_finds_nothing_wrong(
    simulated: SimulatedGpu, monkeypatch: pytest.MonkeyPatch, recwarn: pytest.WarningsRecorder
) -> None:
    def full(*_: Any) -> None:
        raise DeviceMemoryProblem("the GPU's memory does not suffice")

    monkeypatch.setattr(CudaStepper, "_carried_out", full)
    f = tn.jit(lambda x: np.sort(x * 2 + 1, axis=0), backend="cuda", verify=60)
    np.testing.assert_array_equal(f(X), np.sort(X * 2 + 1, axis=0))
    assert [str(one.message) for one in recwarn if one.category is tn.ParityWarning] == []
    certificate = f.certificate(X)
    assert certificate is not None
    assert not certificate.complete
    assert "memory" in str(certificate)


def test_decorating_does_not_begin_the_driver(fake: FakeLibrary) -> None:
    """A child that is forked then may use it."""
    f = doubled()
    assert fake.called == []
    f(X)
    assert "cuInit" in fake.called


def test_decorating_says_that_there_is_no_driver(monkeypatch: pytest.MonkeyPatch) -> None:
    def missing(name: str) -> Any:
        raise OSError(name)

    monkeypatch.setattr(library, "_open", missing)
    forget()
    with pytest.raises(tn.errors.Unsupported, match="there is no NVIDIA driver"):
        doubled()


def test_who_answers_calls_is_said(fake: FakeLibrary, monkeypatch: pytest.MonkeyPatch) -> None:
    assert tn.backends()["cuda"]["entry"] == "native"
    monkeypatch.setattr(code, "unsupported", lambda: "it is made for CPython")
    assert tn.backends()["cuda"]["entry"] == "Python's, because it is made for CPython"
    monkeypatch.setattr(program, "unsupported", lambda: "it is made for CPython")
    f = doubled()
    for _ in range(3):
        assert f(X).shape == f(tn.device_put(X, "cuda")).shape == X.shape
