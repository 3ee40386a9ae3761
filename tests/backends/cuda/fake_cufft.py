"""A library that takes cuFFT's calls and transforms by NumPy, in the memory of a simulated GPU.

It sees what the real one sees: handles, strides, addresses. As the real one it writes over what
becomes real numbers, takes imaginary parts at the ends for granted, refuses real numbers at odd
places, and needs memory to work in. Its calls are written down.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import simt

from tests.backends.cuda.fake_library import FakeLibrary

Array = np.ndarray[Any, Any]
INVALID_VALUE, UNALIGNED = 4, 9
_REAL = {0x29: np.float32, 0x2A: np.float32, 0x2C: np.float32,
         0x69: np.float64, 0x6A: np.float64, 0x6C: np.float64}  # fmt: skip
_FROM_REAL, _TO_REAL = (0x2A, 0x6A), (0x2C, 0x6C)


class FakeCufft(FakeLibrary):
    """The library; `refuses` if it takes no number of points."""

    prefix = "_cufft"

    def __init__(self, version: int = 12001, refuses: bool = False) -> None:
        self.version, self.refuses = version, refuses
        self.memory: simt.Memory = simt.Memory()
        self.plans: dict[int, dict[str, Any]] = {}
        super().__init__()

    def _cufftGetVersion(self, out: Any) -> int:  # noqa: N802
        out._obj.value = self.version
        return 0

    def _cufftCreate(self, out: Any) -> int:  # noqa: N802
        out._obj.value = len(self.plans) + 1
        self.plans[len(self.plans) + 1] = {"own": True}
        return 0

    def _cufftDestroy(self, plan: Any) -> int:  # noqa: N802
        self.plans[plan.value] = {}
        return 0

    def _cufftSetAutoAllocation(self, plan: Any, own: int) -> int:  # noqa: N802
        self.plans[plan.value]["own"] = bool(own)
        return 0

    def _cufftMakePlanMany64(  # noqa: N802
        self, plan: Any, rank: int, n: Any, inside: Any, stride: int, apart: int, outside: Any,
        made_stride: int, made_apart: int, kind: int, batch: int, out: Any,
    ) -> int:  # fmt: skip
        if self.refuses:
            return 8
        assert rank == 1
        assert inside is not None
        assert outside is not None
        assert not self.plans[plan.value]["own"], "its memory would be shared by all who call"
        self.plans[plan.value] |= {
            "n": n[0], "read": (stride, apart), "written": (made_stride, made_apart),
            "kind": kind, "batch": batch,
        }  # fmt: skip
        nbytes = 64 * (n[0] % 2)  # none where it needs none
        self.plans[plan.value]["bytes"] = out._obj.value = nbytes
        return 0

    def _cufftSetStream(self, plan: Any, stream: Any) -> int:  # noqa: N802
        self.plans[plan.value]["stream"] = stream
        return 0

    def _cufftSetWorkArea(self, plan: Any, workspace: int) -> int:  # noqa: N802
        self.plans[plan.value]["workspace"] = workspace
        return 0

    def _cufftExecC2C(self, plan: Any, source: int, target: int, way: int) -> int:  # noqa: N802
        return self._run(plan, 0x29, source, target, way)

    def _cufftExecZ2Z(self, plan: Any, source: int, target: int, way: int) -> int:  # noqa: N802
        return self._run(plan, 0x69, source, target, way)

    def _cufftExecR2C(self, plan: Any, source: int, target: int) -> int:  # noqa: N802
        return self._run(plan, 0x2A, source, target)

    def _cufftExecD2Z(self, plan: Any, source: int, target: int) -> int:  # noqa: N802
        return self._run(plan, 0x6A, source, target)

    def _cufftExecC2R(self, plan: Any, source: int, target: int) -> int:  # noqa: N802
        return self._run(plan, 0x2C, source, target)

    def _cufftExecZ2D(self, plan: Any, source: int, target: int) -> int:  # noqa: N802
        return self._run(plan, 0x6C, source, target)

    def _run(self, plan: Any, kind: int, source: int, target: int, way: int = -1) -> int:
        one = self.plans[plan.value]
        if one["kind"] != kind or "stream" not in one:
            return INVALID_VALUE
        if one["bytes"]:
            self.memory.fill(one["workspace"], one["bytes"], 0xFF)  # it is all there
        n, real = one["n"], np.dtype(_REAL[kind])
        paired = np.result_type(real, np.complex64)
        half = n // 2 + 1
        read = (half if kind in _TO_REAL else n, real if kind in _FROM_REAL else paired)
        made = (half if kind in _FROM_REAL else n, real if kind in _TO_REAL else paired)
        if source % paired.itemsize or target % paired.itemsize:
            return UNALIGNED
        given = self._gathered(source, *read, one["read"], one["batch"])
        if kind in _FROM_REAL:
            found = np.fft.rfft(given, axis=1)
        elif kind in _TO_REAL:
            assert not given[:, 0].imag.any()
            assert n % 2 or not given[:, -1].imag.any()
            found = np.fft.irfft(given, n, axis=1, norm="forward")
            count = self._reach(read[0], one["read"], one["batch"])
            self.memory.fill(source, count * paired.itemsize, 0xFF)
        else:
            found = np.fft.fft(given, axis=1)
            found = found if way == -1 else np.fft.ifft(given, axis=1, norm="forward")
        self._scattered(target, found.astype(made[1]), one["written"])
        return 0

    def _reach(self, n: int, steps: tuple[int, int], batch: int) -> int:
        return (n - 1) * steps[0] + (batch - 1) * steps[1] + 1

    def _places(self, n: int, steps: tuple[int, int], batch: int) -> Array:
        return np.arange(batch)[:, None] * steps[1] + np.arange(n) * steps[0]

    def _gathered(
        self, at: int, n: int, dtype: np.dtype[Any], steps: tuple[int, int], batch: int
    ) -> Array:
        count = self._reach(n, steps, batch)
        raw = self.memory.read(at, np.dtype(np.uint8), (count * dtype.itemsize,))
        return np.ascontiguousarray(raw).view(dtype)[self._places(n, steps, batch)]

    def _scattered(self, at: int, made: Array, steps: tuple[int, int]) -> None:
        batch, n = made.shape
        count = self._reach(n, steps, batch)
        flat = np.empty(count, made.dtype)
        places = self._places(n, steps, batch)
        assert np.array_equal(np.sort(places.reshape(-1)), np.arange(count)), "it leaves gaps"
        flat[places] = made
        self.memory.write(at, flat.view(np.uint8))
