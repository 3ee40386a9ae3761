"""The records of the CUDA backend: what is found by name, and what is said where nothing is."""

from __future__ import annotations

import subprocess
import sys
from typing import Any

import pytest

import tenfold as tn
from tenfold.backends import registry
from tenfold.backends.cuda.driver import device, library
from tenfold.backends.cuda.target import CHIPS, named, target_on
from tenfold.backends.registry import backend_named, backend_record
from tenfold.errors import DeviceProblem, Unsupported, ValueProblem
from tests.backends.cuda.fake_driver import FakeLibrary


@pytest.fixture
def driverless(monkeypatch: pytest.MonkeyPatch) -> None:
    """A machine without NVIDIA's driver."""
    monkeypatch.setattr(library, "_NAMES", ("libcuda-that-is-not-there.so",))
    forget()


def forget() -> None:
    """Have the driver looked for anew."""
    library._begun.cache_clear()
    device._gpu.cache_clear()


@pytest.fixture(autouse=True)
def clean() -> Any:
    yield
    forget()


def use(monkeypatch: pytest.MonkeyPatch, fake: FakeLibrary) -> None:
    forget()
    monkeypatch.setattr(library, "_open", lambda name: fake)


def test_without_a_driver(driverless: None) -> None:
    with pytest.raises(Unsupported, match="no NVIDIA driver here") as error:
        tn.jit(lambda x: x, backend="cuda")
    assert error.value.fix is not None
    assert "install NVIDIA's driver, or give backend='cpu'" in error.value.fix
    assert "target='sm_90'" in error.value.fix
    said = tn.backends()["cuda"]
    assert "driver" in said["missing"]
    assert "install" in said["remedy"]
    assert {"assembler", "cublasLt", "cuFFT", "cuSOLVER", "compiler", "targets"} <= said.keys()


def test_without_a_gpu(monkeypatch: pytest.MonkeyPatch) -> None:
    use(monkeypatch, FakeLibrary(gpus=0))
    with pytest.raises(Unsupported, match="there is no GPU 0: there is none here"):
        backend_named("cuda")


def test_gpus_by_number(monkeypatch: pytest.MonkeyPatch) -> None:
    use(monkeypatch, FakeLibrary(gpus=2))
    assert backend_named("cuda").name == "cuda"
    assert backend_named("cuda:0") is backend_named("cuda")
    assert backend_named("cuda:1").name == "cuda:1"
    assert backend_named("cuda:1").kept_as == "cuda"
    with pytest.raises(Unsupported, match="no GPU 2: there are 2"):
        backend_named("cuda:2")
    said = tn.backends()["cuda"]
    assert said["gpu"] == "Fake GPU, 132 multiprocessors"
    assert said["memory"] == "60.0 of 80.0 GiB free"
    assert said["driver"] == "CUDA 13.0"


def test_an_old_chip_and_an_old_driver(monkeypatch: pytest.MonkeyPatch) -> None:
    use(monkeypatch, FakeLibrary(capability=(7, 5)))
    with pytest.raises(Unsupported, match="an sm_75, and code is made from sm_80 on"):
        backend_named("cuda")
    use(monkeypatch, FakeLibrary(version=11080))
    with pytest.raises(Unsupported, match=r"driver is for CUDA 11\.8, which is too old") as error:
        backend_named("cuda")
    assert "12.0 or later" in str(error.value)


def test_a_chip_that_is_newer_than_llvm(monkeypatch: pytest.MonkeyPatch) -> None:
    use(monkeypatch, FakeLibrary(capability=(13, 0)))
    assert backend_named("cuda").target().name == f"sm_{max(CHIPS)}"


def test_a_driver_that_does_not_begin(monkeypatch: pytest.MonkeyPatch) -> None:
    use(monkeypatch, FakeLibrary(init=803))
    with pytest.raises(Unsupported, match="the driver and its library do not fit") as error:
        backend_named("cuda")
    assert "restart" in str(error.value)


@pytest.mark.parametrize("chip", CHIPS)
def test_chips_by_name(chip: int) -> None:
    record = backend_named(f"cuda:sm_{chip}+fast")
    assert record.target().name == f"sm_{chip}+fast"
    assert record.kept_as == "cuda+fast"
    assert record.missing() is None


@pytest.mark.parametrize("name", ["sm_75", "sm_91", "sm_90a", "gtx", ""])
def test_chips_that_there_are_not(name: str) -> None:
    with pytest.raises(ValueProblem, match="is no chip"):
        named(name)


def test_names_that_mean_nothing() -> None:
    for name in ("cuda:x", "cuda:-1"):
        with pytest.raises(Unsupported, match="there is no GPU"):
            backend_record(name)
    with pytest.raises(Unsupported, match="names a device already"):
        tn.jit(lambda x: x, backend="cuda:1", target="sm_90")


def test_the_target_of_a_driver() -> None:
    assert target_on(100, 12080).ptx == 86
    with pytest.raises(DeviceProblem, match="too old"):
        target_on(90, 11040)
    with pytest.raises(DeviceProblem, match="sm_70"):
        target_on(70, 13000)


def test_maths_is_the_devices() -> None:
    with pytest.raises(Unsupported, match="'cpu' has no maths='fast'") as error:
        tn.jit(lambda x: x, maths="fast")
    assert error.value.fix == "leave maths out, or give a backend that has it: cuda"
    with pytest.raises(ValueProblem, match="maths='quick'"):
        tn.jit(lambda x: x, maths="quick")
    exact = tn.jit(lambda x: x, backend="cuda", target="sm_90")
    fast = tn.jit(lambda x: x, backend="cuda", target="sm_90", maths="fast")
    assert exact.backend == "cuda:sm_90"
    assert fast.backend == "cuda:sm_90+fast"
    spec = tn.spec((4,), "float32")
    one, other = exact.plan(spec).program, fast.plan(spec).program
    assert one is not other
    assert one.target.digest != other.target.digest


def test_the_cpu_has_no_targets_to_choose() -> None:
    with pytest.raises(Unsupported, match="'cpu' has no 'sm_90'") as error:
        tn.jit(lambda x: x, target="sm_90")
    assert "targets=" in str(error.value.fix)


def test_nothing_of_it_is_loaded_unless_it_is_asked_for() -> None:
    code = (
        "import sys, numpy as np, tenfold as tn\n"
        "tn.jit(lambda x: x + 1)(np.ones(3))\n"
        "found = [name for name in sys.modules if name.startswith('tenfold.backends.cuda')]\n"
        "assert not found, found\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


def test_the_registry_keeps_no_variants(monkeypatch: pytest.MonkeyPatch) -> None:
    backend_record("cuda:sm_90")
    assert "cuda:sm_90" not in registry.backend_names()
