"""Programs that an adapter has no memory for: they are refused before anything is computed."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import tenfold as tn
from tenfold.backends.webgpu.backend import BACKEND
from tenfold.backends.webgpu.native import structs as s
from tenfold.backends.webgpu.native.buffer import Buffer
from tenfold.backends.webgpu.native.device import Device
from tenfold.backends.webgpu.probe import opened
from tenfold.backends.webgpu.run.kernels import Kernels
from tenfold.backends.webgpu.run.program import WebGPUProgram
from tenfold.errors import DeviceMemoryProblem
from tests.backends.webgpu.here import needs_adapter

pytestmark = needs_adapter

TIB = 1 << 40
X = np.ones((1024, 1024), np.float32)


def wide(x: Any) -> Any:
    return np.broadcast_to(x, (TIB >> 22, *x.shape)) * 2


@pytest.mark.parametrize("keep", [False, True])
def test_a_result_that_is_too_large(keep: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """No kernel is made for it, no reference asked, and another call is told the same."""
    asked = list[Any]()
    monkeypatch.setattr(Kernels, "find", lambda *given: asked.append(given))
    f = tn.jit(wide, backend="webgpu", keep=keep)
    for _ in range(2):
        with pytest.raises(DeviceMemoryProblem, match=r"no memory of more than [\d.]+ [GM]iB") as e:
            f(X)
        said = str(e.value)
        assert "the program takes 1024.0 GiB (inputs 4.0 MiB, outputs 1024.0 GiB)" in said
        assert "f32[262144,1024,1024] 1024.0 GiB (output); f32[1024,1024] 4.0 MiB (input)" in said
        assert "backend='cpu'" in said
    assert not asked


def test_a_plan_for_arguments_that_are_too_large() -> None:
    f = tn.jit(lambda x: x.sum(), backend="webgpu")
    with pytest.raises(DeviceMemoryProblem, match=r"f32\[274877906944\] 1024.0 GiB \(input\)"):
        f.plan(tn.spec((TIB >> 2,), "float32"))


def test_too_much_between_the_steps() -> None:
    found, x = opened(), X[:128, :128].copy()

    def f(x: Any) -> Any:
        y = np.sort(x, axis=0)
        return (np.sort(y, axis=1) + y).sum()

    target = replace(found.target, buffer_bytes=3 * x.nbytes // 2)
    kernels = Kernels(found.device, target, False)
    plan = BACKEND.plan(tn.trace(f, x), target=target)
    with pytest.raises(DeviceMemoryProblem, match=r"between them 128\.\d KiB") as error:
        WebGPUProgram(plan, kernels, BACKEND)
    assert "64.0 KiB (between steps)" in str(error.value)
    target = replace(target, buffer_bytes=3 * x.nbytes)
    (got,) = WebGPUProgram(plan, Kernels(found.device, target, False), BACKEND)([x])
    assert got == 2 * x.size


def test_an_array_that_is_too_large_is_not_packed_first() -> None:
    with pytest.raises(DeviceMemoryProblem, match=r"an array of 4096\.0 GiB is too large"):
        tn.device_put(np.broadcast_to(np.float32(1), (TIB,)), "webgpu")


def test_out_of_memory_says_where_it_goes(monkeypatch: pytest.MonkeyPatch) -> None:
    """As an adapter does whose memory is full."""
    program, own = BACKEND.compile(tn.trace(lambda x: x * 3, X)), Device.buffer

    def buffer(self: Device, nbytes: int, *usage: int) -> Buffer:
        if nbytes > 1 << 20:
            self.tell(s.OUT_OF_MEMORY, "Not enough memory left.")
            self.check("memory")
        return own(self, nbytes, *usage)

    monkeypatch.setattr(Device, "buffer", buffer)
    with pytest.raises(DeviceMemoryProblem, match="the GPU's memory does not suffice: ") as error:
        program([X])
    assert "takes 8.0 MiB (inputs 4.0 MiB, outputs 4.0 MiB)" in str(error.value)
    assert "free arrays that lie on it" in str(error.value)
    monkeypatch.undo()
    np.testing.assert_array_equal(program([X])[0], X * 3)
