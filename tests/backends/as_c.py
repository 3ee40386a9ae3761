"""Kernels printed as C, compiled by the system's compiler, and run on what compiled ones were run
on: many in one file, since a compiler takes long to start."""

from __future__ import annotations

import ctypes
import os
import shutil
import subprocess
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from tenfold.backends.llvm.target import LLVMTarget
from tenfold.kernel import Kernel
from tenfold.types import DTYPES
from tests.backends.c_printer import printed

Array = np.ndarray[Any, Any]
COMPILER = shutil.which(os.environ.get("CC", "cc")) or shutil.which("gcc")
LARGEST = 1 << 20  # bytes of all arrays of a run; larger ones are left out
MOST = 3  # runs of one function
FLAGS = ["-O1", "-shared", "-fPIC", "-fwrapv", "-ffp-contract=off", "-fno-math-errno"]
if os.uname().machine == "x86_64":
    FLAGS += ["-mfma", "-mf16c", "-mpopcnt"]


@dataclass
class Run:
    """One run of compiled code: the legal kernel and its schedule, what it was given and gave."""

    kernel: Kernel
    schedule: Any
    extent: int
    params: bytes
    given: list[Array] = field(default_factory=list)
    made: list[Array] = field(default_factory=list)
    fault: int = 0
    test: str = field(default_factory=lambda: os.environ.get("PYTEST_CURRENT_TEST", ""))

    @property
    def loops(self) -> tuple[Any, ...]:
        """What a printer sees: runs with the same share one function."""
        s = self.schedule
        return self.kernel, s.order, s.reduced, s.lanes, s.outer

    @property
    def exact(self) -> bool:
        """Whether it has to give the same bits: products of complex numbers have no shape."""
        products = (i for i in self.kernel.instructions if i.op == "reduce" and "prod" in i.attr[0])
        return all(len(i.args) == 1 for i in products)


class Runs:
    """Runs of compiled code, to be done again."""

    def __init__(self) -> None:
        self.every: list[Run] = []
        self.counts: dict[Any, int] = {}

    def do(self, run: Run, arrays: Sequence[Array], call: Callable[[], int]) -> int:
        """A call on these arrays, noted where it is not too large and not one of many."""
        count = self.counts.get(run.loops, 0)
        if count >= MOST or sum(a.nbytes for a in arrays) > LARGEST:
            return call()
        self.counts[run.loops] = count + 1
        run.given = copies(arrays)
        run.fault, run.made = call(), copies(arrays)
        self.every.append(run)
        return run.fault

    def clear(self) -> None:
        self.every.clear()
        self.counts.clear()


def comparable(kernel: Kernel, target: LLVMTarget) -> bool:
    """Whether C gives the bits of a target: with fma, and without maths of its own."""
    called = any(i.op in ("call", "rarely") for i in kernel.instructions)
    return target.fma and not (called and target.vector_bytes == 64)


def copies(arrays: Sequence[Array]) -> list[Array]:
    """Copies of arrays; what lay in one place does so again."""
    made: dict[int, Array] = {}
    return [made.setdefault(a.ctypes.data, a.copy()) if a.size else a.copy() for a in arrays]


def differences(runs: Sequence[Run], folder: Path) -> list[str]:
    """What C code gives otherwise than compiled kernels did."""
    names: dict[Any, str] = {}
    first: dict[str, Run] = {}
    for run in runs:
        first.setdefault(names.setdefault(run.loops, f"kernel_{len(names)}"), run)
    if not first:
        return []
    library = _compiled(
        printed([(name, run.kernel, run.schedule) for name, run in first.items()]), folder
    )
    found = [(run, difference(library[names[run.loops]], run)) for run in runs]
    return [f"{run.test}: {wrong}\n{run.kernel}" for run, wrong in found if wrong]


def _compiled(text: str, folder: Path) -> Any:
    assert COMPILER is not None
    source, made = folder / "kernels.c", folder / "kernels.so"
    source.write_text(text)
    done = subprocess.run(
        [COMPILER, *FLAGS, str(source), "-o", str(made), "-lm"],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr[:4000]
    return ctypes.CDLL(str(made))


def difference(function: Any, run: Run) -> str:
    """Where a function gives otherwise than a run has, or nothing."""
    arrays = copies(run.given)
    scratch = [np.empty(b.size, DTYPES[b.dtype]) for b in run.kernel.buffers[len(arrays) :]]
    table = np.array([a.ctypes.data for a in (*arrays, *scratch)], np.uint64)
    params = np.frombuffer(run.params or bytes(16), np.uint8).copy()
    function.argtypes = [ctypes.c_void_p] * 2 + [ctypes.c_int64] * 2
    fault = function(table.ctypes.data, params.ctypes.data, 0, run.extent)
    if fault != run.fault:
        return f"fault {fault} instead of {run.fault}"
    for n, (got, want) in enumerate(zip(arrays, run.made, strict=True)):
        alike = _alike(got, want) if run.exact else _near(got, want)
        if not alike.all():
            at, count = int(np.flatnonzero(~alike)[0]), int((~alike).sum())
            return f"b{n}[{at}] is {got.flat[at]}, not {want.flat[at]}, and {count} differ in all"
    return ""


def _near(got: Array, want: Array) -> Array:
    """Where two arrays agree, or the order of products decides what overflows."""
    finite = np.isfinite(got) & np.isfinite(want)
    return np.asarray(np.isclose(got, want, rtol=1e-4) | ~finite).ravel()


def _alike(got: Array, want: Array) -> Array:
    """Where two arrays have the same bits, or both a NaN."""
    got, want = got.ravel(), want.ravel()
    if got.dtype.kind == "c":
        parts = (a.view(a.real.dtype) for a in (got, want))
        return np.asarray(_alike(*parts).reshape(-1, 2).all(1))
    same = got.view(f"u{got.itemsize}") == want.view(f"u{got.itemsize}")
    if got.dtype.kind in "fV":  # bfloat16 is of kind V
        same |= np.isnan(got.astype(np.float64)) & np.isnan(want.astype(np.float64))
    return np.asarray(same)
