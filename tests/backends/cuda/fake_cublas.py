"""A library that takes cublasLt's calls and multiplies by NumPy, in the memory of a simulated GPU.

It sees what the real one sees: numbers of attributes, layouts column after column, addresses. Its
calls are written down.
"""

from __future__ import annotations

import ctypes
from typing import Any

import ml_dtypes
import numpy as np
import simt

from tests.backends.cuda.fake_library import FakeLibrary

Array = np.ndarray[Any, Any]
NOT_SUPPORTED = 15
# CUDA's numbers of dtypes, as its documentation has them.
_ELEMENTS = {
    0: np.dtype(np.float32),
    1: np.dtype(np.float64),
    2: np.dtype(np.float16),
    4: np.dtype(np.complex64),
    5: np.dtype(np.complex128),
    3: np.dtype(np.int8),
    10: np.dtype(np.int32),
    14: np.dtype(ml_dtypes.bfloat16),
}
_WIDE: dict[int, Any] = {2: np.float32, 3: np.int32, 14: np.float32}
_COMPUTE = {0: 68, 1: 70, 2: 68, 4: 68, 5: 70, 10: 72, 14: 68}
_SCALE = {0: 0, 1: 1, 2: 0, 4: 4, 5: 5, 10: 10, 14: 0}


class FakeCublas(FakeLibrary):
    """The library; `refuses` if it has no algorithm."""

    prefix = "_cublasLt"

    def __init__(self, version: int = 130100, refuses: bool = False) -> None:
        self.version, self.refuses = version, refuses
        self.memory: simt.Memory = simt.Memory()
        self.made: dict[int, dict[Any, Any]] = {}
        self.asked: list[dict[Any, Any]] = []  # preferences that an algorithm was asked for with
        super().__init__()

    def _cublasLtGetVersion(self) -> int:  # noqa: N802
        return self.version

    def _new(self, out: Any, **given: Any) -> int:
        number = len(self.made) + 1
        self.made[number] = dict(given)
        out._obj.value = number
        return 0

    def _set(self, of: Any, attribute: int, value: Any, size: int) -> int:
        assert ctypes.sizeof(value._obj) == size
        self.made[of.value][attribute] = value._obj.value
        return 0

    def _gone(self, which: Any) -> int:
        del self.made[which.value]["there"]
        return 0

    def _cublasLtCreate(self, out: Any) -> int:  # noqa: N802
        return self._new(out, kind="handle")

    def _cublasLtMatmulDescCreate(self, out: Any, compute: int, scale: int) -> int:  # noqa: N802
        return self._new(out, compute=compute, scale=scale)

    def _cublasLtMatmulDescSetAttribute(self, *args: Any) -> int:  # noqa: N802
        return self._set(*args)

    def _cublasLtMatrixLayoutCreate(  # noqa: N802
        self, out: Any, element: int, rows: int, columns: int, lead: int
    ) -> int:
        return self._new(out, element=element, rows=rows, columns=columns, lead=lead)

    def _cublasLtMatrixLayoutSetAttribute(self, *args: Any) -> int:  # noqa: N802
        return self._set(*args)

    def _cublasLtMatmulPreferenceCreate(self, out: Any) -> int:  # noqa: N802
        return self._new(out, there=True)

    def _cublasLtMatmulPreferenceSetAttribute(self, *args: Any) -> int:  # noqa: N802
        return self._set(*args)

    def _cublasLtMatmulPreferenceDestroy(self, which: Any) -> int:  # noqa: N802
        return self._gone(which)

    def _cublasLtMatmulAlgoGetHeuristic(  # noqa: N802
        self, handle: Any, operation: Any, a: Any, b: Any, c: Any, d: Any, preference: Any,
        wanted: int, results: int, count: Any,
    ) -> int:  # fmt: skip
        if self.refuses:
            return NOT_SUPPORTED
        self.asked.append(dict(self.made[preference.value]))
        raw = (ctypes.c_ubyte * 96).from_address(results)
        raw[:64] = list(range(64))
        count._obj.value = 1
        return 0

    def _cublasLtMatmul(  # noqa: N802
        self, handle: Any, operation: Any, alpha: int, a: int, a_layout: Any, b: int,
        b_layout: Any, beta: int, c: int, c_layout: Any, d: int, d_layout: Any, algorithm: int,
        workspace: int | None, size: int, stream: Any,
    ) -> int:  # fmt: skip
        assert self.made[handle.value]["kind"] == "handle"
        assert bytes((ctypes.c_ubyte * 64).from_address(algorithm)) == bytes(range(64))
        assert c == d
        if size:
            self.memory.fill(workspace or 0, size, 0)  # it is all there
        of = self.made[operation.value]
        made = self.made[d_layout.value]
        element = made["element"]
        assert (of["compute"], of["scale"]) == (_COMPUTE[element], _SCALE[element])
        assert self._factor(alpha, of["scale"]) == 1
        assert self._factor(beta, of["scale"]) == 0
        first = self._matrices(a, self.made[a_layout.value])
        second = self._matrices(b, self.made[b_layout.value])
        first = first.swapaxes(1, 2) if of.get(3) else first
        second = second.swapaxes(1, 2) if of.get(4) else second
        if element == 10:  # what the library says of bytes
            assert (of.get(3), of.get(4)) == (1, None)
            assert all(self.made[x.value]["lead"] % 4 == 0 for x in (a_layout, b_layout, d_layout))
        product = np.matmul(first, second).astype(_ELEMENTS[element])
        assert product.shape[1:] == (made["rows"], made["columns"])
        assert made["lead"] == made["rows"]
        for n, one in enumerate(product):
            at = d + n * made.get(6, 0) * product.itemsize
            raw = np.ascontiguousarray(one.T).reshape(-1).view(np.uint8)
            self.memory.write(at, raw)
        return 0

    def _factor(self, at: int, scale: int) -> complex:
        dtype = _ELEMENTS[scale]
        raw = (ctypes.c_ubyte * dtype.itemsize).from_address(at)
        return complex(np.frombuffer(raw, dtype)[0])

    def _matrices(self, at: int, layout: dict[Any, Any]) -> Array:
        dtype, rows, columns = _ELEMENTS[layout["element"]], layout["rows"], layout["columns"]
        assert layout["lead"] >= rows
        count, apart = layout.get(5, 1), layout.get(6, 0)
        raw = np.dtype(np.uint8)
        found = []
        for n in range(count):
            place = at + n * apart * dtype.itemsize
            bytes_ = self.memory.read(place, raw, (layout["lead"] * columns * dtype.itemsize,))
            found.append(np.ascontiguousarray(bytes_).view(dtype).reshape(columns, -1)[:, :rows].T)
        made = np.stack(found)
        return made.astype(_WIDE.get(layout["element"], dtype))
