"""A library that takes cuSOLVER's calls and factors by LAPACK, in the memory of a simulated GPU.

It sees what the real one sees: sizes, leading dimensions, addresses. Its calls are written down.
"""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
import simt
from scipy.linalg import lapack

from tests.backends.cuda.fake_library import FakeLibrary

Array = np.ndarray[Any, Any]
INVALID = 3
_UPPER, _TRANSPOSED = 1, 1
_DTYPES = {"D": np.dtype(np.float64), "Z": np.dtype(np.complex128)}
_NAMES = {
    "D": ("potrf", "getrf", "getrs", "geqrf", "orgqr", "syevd", "gesvd"),
    "Z": ("potrf", "getrf", "getrs", "geqrf", "ungqr", "heevd", "gesvd"),
}
WORDS = 5  # elements of workspace that everything takes


class FakeCusolver(FakeLibrary):
    """The library; `leaves` are functions that say of every matrix that it is unsolved."""

    prefix = "_cusolver"

    def __init__(self, version: tuple[int, int, int] = (12, 0, 4), leaves: tuple[str, ...] = ()):
        self.version, self.leaves = version, leaves
        self.memory: simt.Memory = simt.Memory()
        self.streams: list[Any] = []
        for letter, names in _NAMES.items():
            for name in names:
                own = getattr(self, name)
                setattr(self, f"_cusolverDn{letter}{name}", partial(own, letter))
                setattr(self, f"_cusolverDn{letter}{name}_bufferSize", self._words)
        super().__init__()

    def _cusolverGetProperty(self, which: int, out: Any) -> int:  # noqa: N802
        out._obj.value = self.version[which]
        return 0

    def _cusolverDnCreate(self, out: Any) -> int:  # noqa: N802
        out._obj.value = 77
        return 0

    def _cusolverDnSetStream(self, handle: Any, stream: Any) -> int:  # noqa: N802
        assert handle.value == 77
        self.streams.append(stream)
        return 0

    def _words(self, handle: Any, *args: Any) -> int:
        assert not any(isinstance(arg, int) and arg > 1 << 30 for arg in args), "an address"
        args[-1]._obj.value = WORDS
        return 0

    # Memory: columns one after another.

    def read(self, at: int, letter: str, rows: int, columns: int, lead: int) -> Array:
        assert lead >= rows
        dtype = _DTYPES[letter]
        raw = self.memory.read(at, np.dtype(np.uint8), (lead * columns * dtype.itemsize,))
        return np.ascontiguousarray(raw).view(dtype).reshape(columns, lead)[:, :rows].T.copy()

    def given(self, at: int, letter: str, rows: int, columns: int, lead: int) -> Array:
        """A matrix to be factored: the real library may not come to an end with a NaN."""
        found = self.read(at, letter, rows, columns, lead)
        assert np.isfinite(found).all()
        return found

    def write(self, at: int, made: Array, lead: int) -> None:
        assert lead == made.shape[0]
        self.memory.write(at, np.ascontiguousarray(made.T).reshape(-1).view(np.uint8))

    def numbers(self, at: int, values: Any) -> None:
        self.memory.write(at, np.asarray(values).reshape(-1).view(np.uint8))

    def info(self, name: str, at: int, found: int) -> int:
        self.numbers(at, np.array([1 if name in self.leaves else found], np.int32))
        return 0

    def worked(self, letter: str, workspace: int, words: int) -> None:
        assert words == WORDS
        self.memory.fill(workspace, words * _DTYPES[letter].itemsize, 0xFF)  # it is all there

    # Functions.

    def potrf(
        self, letter: str, handle: Any, side: int, n: int, a: int, lead: int, workspace: int,
        words: int, info: int,
    ) -> int:  # fmt: skip
        assert side == _UPPER
        self.worked(letter, workspace, words)
        given = self.given(a, letter, n, n, lead)
        made, found = getattr(lapack, f"{letter.lower()}potrf")(given, lower=0, clean=0)
        self.write(a, made, lead)
        return self.info("potrf", info, found)

    def getrf(
        self, letter: str, handle: Any, m: int, n: int, a: int, lead: int, workspace: int,
        swaps: int, info: int,
    ) -> int:  # fmt: skip
        self.worked(letter, workspace, WORDS)
        made, order, found = getattr(lapack, f"{letter.lower()}getrf")(
            self.given(a, letter, m, n, lead)
        )
        self.write(a, made, lead)
        self.numbers(swaps, (order + 1).astype(np.int32))
        return self.info("getrf", info, found)

    def getrs(
        self, letter: str, handle: Any, way: int, n: int, count: int, a: int, lead: int,
        swaps: int, b: int, beside: int, info: int,
    ) -> int:  # fmt: skip
        order = self.memory.read(swaps, np.dtype(np.int32), (n,)) - 1
        made, found = getattr(lapack, f"{letter.lower()}getrs")(
            self.read(a, letter, n, n, lead), order, self.read(b, letter, n, count, beside),
            trans=1 if way == _TRANSPOSED else 0,
        )  # fmt: skip
        self.write(b, made, beside)
        return self.info("getrs", info, found)

    def geqrf(
        self, letter: str, handle: Any, m: int, n: int, a: int, lead: int, factors: int,
        workspace: int, words: int, info: int,
    ) -> int:  # fmt: skip
        self.worked(letter, workspace, words)
        given = self.given(a, letter, m, n, lead)
        made, tau, _, found = getattr(lapack, f"{letter.lower()}geqrf")(given)
        self.write(a, made, lead)
        self.numbers(factors, tau)
        return self.info("geqrf", info, found)

    def orgqr(
        self, letter: str, handle: Any, m: int, n: int, count: int, a: int, lead: int,
        factors: int, workspace: int, words: int, info: int,
    ) -> int:  # fmt: skip
        if not count <= n <= m:
            return INVALID
        self.worked(letter, workspace, words)
        tau = self.memory.read(factors, _DTYPES[letter], (count,))
        name = "dorgqr" if letter == "D" else "zungqr"
        made, _, found = getattr(lapack, name)(self.read(a, letter, m, n, lead), tau)
        self.write(a, made, lead)
        return self.info("orgqr", info, found)

    ungqr = orgqr

    def syevd(
        self, letter: str, handle: Any, vectors: int, side: int, n: int, a: int, lead: int,
        values: int, workspace: int, words: int, info: int,
    ) -> int:  # fmt: skip
        assert (vectors, side) == (0, _UPPER)
        self.worked(letter, workspace, words)
        given = self.given(a, letter, n, n, lead)
        self.numbers(values, np.linalg.eigvalsh(given, "U"))
        self.write(a, np.full_like(given, np.nan), lead)
        return self.info("syevd", info, 0)

    heevd = syevd

    def gesvd(
        self, letter: str, handle: Any, left: int, right: int, m: int, n: int, a: int, lead: int,
        values: int, u: Any, u_lead: int, v: Any, v_lead: int, workspace: int, words: int,
        rest: Any, info: int,
    ) -> int:  # fmt: skip
        assert (left, right, u, v, rest) == (ord("N"), ord("N"), None, None, None)
        if m < n or u_lead < m or v_lead < n:
            return INVALID
        self.worked(letter, workspace, words)
        given = self.given(a, letter, m, n, lead)
        self.numbers(values, np.linalg.svd(given, compute_uv=False))
        self.write(a, np.full_like(given, np.nan), lead)
        return self.info("gesvd", info, 0)
