"""The vector maths beside NumPy: nanoseconds an element, and the largest error in ulp.

    python benchmarks/maths.py [function ...]

One thread, a kernel of one instruction, 16,384 elements in cache, the least of many rounds. Columns
are levels that this machine runs; erf, erfc and the sigmoid are beside SciPy's. The errors are
taken on these elements against the same function of a wider float, where there is one, so they are
samples of the bounds that tests/backends/llvm/test_maths.py checks.
"""

from __future__ import annotations

import ctypes
import sys
import time
from collections.abc import Callable
from typing import Any

import numpy as np
from scipy import special

from tenfold.backends.cpu.link.compile import compile_kernels
from tenfold.backends.cpu.link.loader import Image, load
from tenfold.backends.cpu.target import executable, host_target
from tenfold.backends.llvm.target import named
from tenfold.kernel import Builder
from tenfold.kernel.ir.sized import SizedKernel
from tenfold.kernel.maths import FUNCTIONS

Array = np.ndarray[Any, Any]
SIZE = 16384
LEVELS = executable(host_target())
PEERS: dict[str, Callable[..., Array]] = {
    "sigmoid": special.expit,
    "erf": special.erf,
    "erfc": special.erfc,
    "rsqrt": lambda x: 1 / np.sqrt(x),
}
POSITIVE = {"log", "log2", "log10", "log1p", "rsqrt", "pow", "acosh"}
UNIT = {"asin", "acos", "atanh"}
IMAGES: list[Image] = []  # they own the code


def compiled(name: str, dtype: str, level: str) -> Callable[[list[int]], Callable[[], object]]:
    """A kernel that maps a function over arrays, given their addresses."""
    b = Builder()
    i = b.axis(SIZE)
    inputs = [b.load(b.buffer(dtype, SIZE), i) for _ in range(FUNCTIONS[name].arity)]
    b.store(b.buffer(dtype, SIZE, "write"), i, b.op(name, dtype, *inputs))
    module = compile_kernels([SizedKernel(b.finish())], named(level, host_target()))
    (kernel,) = module.kernels
    IMAGES.append(load([module.data], [kernel.name]))
    pointer, whole = ctypes.c_void_p, ctypes.c_int64
    function = ctypes.CFUNCTYPE(ctypes.c_int32, pointer, pointer, whole, whole)(
        IMAGES[-1].address(kernel.name)
    )

    def call(addresses: list[int]) -> Callable[[], object]:
        table = (ctypes.c_void_p * (len(addresses) + 2))(*addresses)
        return lambda: function(table, None, 0, SIZE)

    return call


def nanoseconds(work: Callable[[], object]) -> float:
    """The least time an element over many rounds."""
    best = float("inf")
    for _ in range(40):
        start = time.perf_counter()
        work()
        best = min(best, time.perf_counter() - start)
    return best / SIZE * 1e9


def arguments(name: str, real: type[Any]) -> list[Array]:
    rng = np.random.default_rng(0)
    found = []
    for _ in range(FUNCTIONS[name].arity):
        x = rng.uniform(-8, 8, SIZE)
        if name in POSITIVE:
            x = np.exp(x / 3) + (name == "acosh")
        found.append((x / 8.1 if name in UNIT else x).astype(real))
    return found


def ulp(got: Array, true: Array | None) -> float:
    if true is None:
        return float("nan")
    want = true.astype(got.dtype)
    unit = np.spacing(np.maximum(np.abs(want), np.finfo(got.dtype).tiny))
    with np.errstate(all="ignore"):
        off = np.abs(got.astype(np.longdouble) - true) / unit
    return float(np.max(off[np.isfinite(true)]))


def report(name: str, real: type[Any]) -> str:
    dtype = "f32" if real is np.float32 else "f64"
    peer = PEERS.get(name) or getattr(np, name)
    inputs = arguments(name, real)
    true = None
    if name in ("erf", "erfc"):  # SciPy has none for long doubles
        if real is np.float32:
            true = peer(*(x.astype(np.float64) for x in inputs)).astype(np.longdouble)
    else:
        true = peer(*(x.astype(np.longdouble) for x in inputs))
    out = np.empty_like(inputs[0])
    pointers = [x.ctypes.data for x in [*inputs, out]]
    cells = []
    for level in LEVELS:
        spent = nanoseconds(compiled(name, dtype, level)(pointers))
        cells.append(f"{spent:8.3f} ({ulp(out, true):.2f})")
    if isinstance(peer, np.ufunc):
        spent = nanoseconds(lambda: peer(*inputs, out=out))
    else:
        spent = nanoseconds(lambda: peer(*inputs))
    cells.append(f"{spent:8.3f} ({ulp(peer(*inputs), true):.2f})")
    return f"{name:10} {dtype}" + "".join(cells)


def main(names: list[str]) -> None:
    print("ns an element (ulp)" + "".join(f"{p:^15}" for p in [*LEVELS, "NumPy"]))
    for name in names or FUNCTIONS:
        for real in (np.float32, np.float64):
            print(report(name, real), flush=True)


if __name__ == "__main__":
    main(sys.argv[1:])
