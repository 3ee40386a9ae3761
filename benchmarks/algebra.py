"""Linear algebra, Fourier transforms, running folds and searches beside NumPy, and JAX where it is
there: one pinned thread, interleaved rounds, minima.

    python benchmarks/algebra.py [--rounds N] [group or case ...]

Figures are µs of a call from Python; behind the peers' stands how many times longer than ours they
took in the same run. NumPy and JAX compute single precision in their own ways: NumPy's linear
algebra in double, and so do we; JAX in single.
"""

from __future__ import annotations

import os

for _name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "TENFOLD_THREADS"):
    os.environ[_name] = "1"  # read when the libraries are loaded
os.environ["XLA_FLAGS"] = "--xla_cpu_multi_thread_eigen=false intra_op_parallelism_threads=1"
if hasattr(os, "sched_setaffinity"):
    os.sched_setaffinity(0, {max(os.sched_getaffinity(0))})

import argparse  # noqa: E402
from collections.abc import Callable, Iterator  # noqa: E402
from time import process_time_ns  # noqa: E402
from typing import Any, NamedTuple  # noqa: E402

import numpy as np  # noqa: E402

import tenfold as tn  # noqa: E402

Array = np.ndarray[Any, Any]
SLICE = 2_000_000  # nanoseconds that are timed at once


class Case(NamedTuple):
    """A function of a module like NumPy, and what it is called with."""

    group: str
    name: str
    function: Callable[..., Any]  # of the module, then of the arrays
    arrays: tuple[Array, ...]
    ours: Callable[..., Any] | None = None  # where the module is not enough


def draw(*shape: int, seed: int = 0) -> Array:
    return np.random.default_rng(seed).standard_normal(shape)


def positive(*shape: int) -> Array:
    a = draw(*shape)
    return np.asarray(a @ np.swapaxes(a, -1, -2) / shape[-1] + np.eye(shape[-1]))


def algebra() -> Iterator[Case]:
    functions: dict[str, Callable[..., Any]] = {
        "solve": lambda np, a, b: np.linalg.solve(a, b[..., None])[..., 0],
        "inv": lambda np, a, b: np.linalg.inv(a),
        "det": lambda np, a, b: np.linalg.det(a),
        "slogdet": lambda np, a, b: tuple(np.linalg.slogdet(a)),
        "cholesky": lambda np, a, b: np.linalg.cholesky(a),
        "qr": lambda np, a, b: tuple(np.linalg.qr(a)),
        "eigh": lambda np, a, b: tuple(np.linalg.eigh(a)),
        "eigvalsh": lambda np, a, b: np.linalg.eigvalsh(a),
        "svd": lambda np, a, b: tuple(np.linalg.svd(a)),
        "lstsq": lambda np, a, b: np.linalg.lstsq(a, b)[0],
    }
    for name, function in functions.items():
        for n in (1, 2, 3, 4, 8, 32, 128, 512):
            yield Case("algebra", f"{name} {n}", function, (positive(n, n), draw(n)))
        if name != "lstsq":
            for batch, n in ((10_000, 2), (10_000, 3), (10_000, 4), (1000, 8), (100, 32)):
                arrays = positive(batch, n, n), draw(batch, n)
                yield Case("algebra", f"{name} {batch}×{n}", function, arrays)


def fourier() -> Iterator[Case]:
    for n in (2, 3, 4, 8, 64, 1000, 1024, 65536):
        yield Case("fourier", f"fft {n}", lambda np, x: np.fft.fft(x), (draw(n) + 1j * draw(n),))
        yield Case("fourier", f"rfft {n}", lambda np, x: np.fft.rfft(x), (draw(n),))
    for n in (8, 64, 512):
        x = draw(n, n) + 1j * draw(n, n, seed=1)
        yield Case("fourier", f"fft2 {n}", lambda np, x: np.fft.fft2(x), (x,))
        yield Case("fourier", f"ifft axis 0, {n}", lambda np, x: np.fft.ifft(x, axis=0), (x,))
        yield Case("fourier", f"irfft {n}×{n}", lambda np, x: np.fft.irfft(x), (x,))
    x = draw(10_000, 8) + 1j * draw(10_000, 8, seed=1)
    yield Case("fourier", "fft 10000×8", lambda np, x: np.fft.fft(x), (x,))


def running() -> Iterator[Case]:
    shapes: tuple[tuple[tuple[int, ...], int], ...] = (
        ((10,), 0), ((1000,), 0), ((100_000,), 0), ((1_000_000,), 0), ((1024, 1024), 1),
        ((1024, 1024), 0), ((16384, 64), 1), ((64, 65536), 1),
    )  # fmt: skip
    for dtype in ("f4", "f8", "i8"):
        for shape, axis in shapes:
            x = (draw(*shape) * 10).astype(dtype)
            where = f"{'×'.join(map(str, shape))} along {axis}, {dtype}"
            yield Case("running", f"cumsum {where}", lambda np, x, a=axis: np.cumsum(x, a), (x,))
    x = draw(1000, 1000)
    for name in ("maximum", "minimum", "multiply"):
        for axis in (0, 1):

            def fold(np: Any, x: Any, name: str = name, axis: int = axis) -> Any:
                return getattr(np, name).accumulate(x, axis=axis)

            yield Case("running", f"{name}.accumulate 1000² along {axis}", fold, (x,))


def searching() -> Iterator[Case]:
    for n in (10, 1000, 100_000):
        x, line = draw(n), np.sort(draw(n, seed=1))
        few = np.random.default_rng(2).integers(0, 256, n)
        yield Case(
            "searching", f"searchsorted {n}", lambda np, s, x: np.searchsorted(s, x), (line, x)
        )
        yield Case("searching", f"searchsorted {n} in 100", lambda np, s, x: np.searchsorted(s, x),
                   (np.sort(draw(100)), x))  # fmt: skip
        yield Case("searching", f"digitize {n}",
                   lambda np, x, b: np.digitize(x, b), (x, np.linspace(-2, 2, 16)))  # fmt: skip
        yield Case(
            "searching", f"interp {n}", lambda np, x, s, y: np.interp(x, s, y), (x, line, draw(n))
        )
        yield Case("searching", f"histogram {n}",
                   lambda np, x: np.histogram(x, 64, range=(-3, 3))[0], (x,))  # fmt: skip
        yield Case("searching", f"histogram of any range {n}",
                   lambda np, x: np.histogram(x, 64)[0], (x,))  # fmt: skip
        yield Case("searching", f"bincount {n}", lambda np, i: np.bincount(i), (few,),
                   lambda i: tn.bincount(i, length=256))  # fmt: skip
        yield Case("searching", f"bincount with weights {n}", lambda np, i, w: np.bincount(i, w),
                   (few, x), lambda i, w: tn.bincount(i, w, length=256))  # fmt: skip
        yield Case(
            "searching", f"isin {n} in 100", lambda np, i, j: np.isin(i, j), (few, few[:100])
        )
        yield Case("searching", f"unique {n}", lambda np, i: np.unique(i), (few,),
                   lambda i: tn.unique(i, size=256))  # fmt: skip
        if n > 10:
            yield Case("searching", f"top 8 of {n}", lambda np, x: np.sort(x)[-8:], (x,),
                       lambda x: tn.top_k(x, 8))  # fmt: skip
        yield Case("searching", f"median {n}", lambda np, x: np.median(x), (x,))
        yield Case("searching", f"percentile {n}", lambda np, x: np.percentile(x, [5, 95]), (x,))
        yield Case("searching", f"partition {n}", lambda np, x: np.partition(x, 5), (x,))
        yield Case("searching", f"sort {n}", lambda np, x: np.sort(x), (x,))
        yield Case("searching", f"argsort {n}", lambda np, x: np.argsort(x), (x,))
        yield Case("searching", f"argpartition {n}", lambda np, x: np.argpartition(x, 5), (x,))
        yield Case(
            "searching", f"sort of complex {n}", lambda np, x: np.sort(x), (x + 1j * x[::-1],)
        )


def peers(case: Case) -> dict[str, Callable[[], Any]]:
    """What is timed, by name."""
    ours = tn.jit(case.ours or (lambda *arrays: case.function(np, *arrays)))
    found = {
        "ours": lambda: ours(*case.arrays),
        "numpy": lambda: case.function(np, *case.arrays),
    }
    try:
        import jax
    except ImportError:
        return found
    jax.config.update("jax_enable_x64", True)
    compiled = jax.jit(lambda *arrays: case.function(jax.numpy, *arrays))
    given = [jax.numpy.asarray(a) for a in case.arrays]
    try:
        compiled(*given)
    except (TypeError, AttributeError, NotImplementedError, jax.errors.JAXTypeError):
        return found  # no such function, or one whose shape hangs on values
    return found | {"jax": lambda: jax.block_until_ready(compiled(*given))}


def timed(run: Callable[[], Any], count: int) -> float:
    start = process_time_ns()
    for _ in range(count):
        run()
    return (process_time_ns() - start) / count


def measure(case: Case, rounds: int) -> dict[str, float]:
    """The least time of each, in µs."""
    found = peers(case)
    counts = {}
    for name, run in found.items():
        first = min(timed(run, 1) for _ in range(5))  # plans are checked in the first of them
        counts[name] = max(1, int(SLICE / max(first, 100.0)))
    best = dict.fromkeys(found, float("inf"))
    for _ in range(rounds):
        for name, run in found.items():
            best[name] = min(best[name], timed(run, counts[name]))
    return {name: t / 1000 for name, t in best.items()}


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("cases", nargs="*")
    options = parser.parse_args()
    for case in (*algebra(), *fourier(), *running(), *searching()):
        wanted = options.cases
        if wanted and case.group not in wanted and not any(w in case.name for w in wanted):
            continue
        times = measure(case, options.rounds)
        ours = times.pop("ours")
        rest = "  ".join(f"{name} {t:10.2f} ({t / ours:6.2f})" for name, t in times.items())
        print(f"{case.name:44} {ours:10.2f}  {rest}", flush=True)


if __name__ == "__main__":
    main()
