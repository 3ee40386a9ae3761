"""Ever new sizes: 200 shapes of a function one after another, beside NumPy, JAX and torch.compile.

    python benchmarks/sizes.py [function ...] [--systems numpy,tenfold,jax,torch] [--count 200]
                               [--rounds 1] [--save FILE]

Five functions, each written once in NumPy's words: a two-layer network by growing batches, softmax
where both axes grow, causal attention by growing length, three rounds of k-means by growing numbers
of points, five steps of a stencil on growing grids. Every system calls them with the same shapes in
the same order, then with all of them again (`again`). JAX has jax.numpy in NumPy's place;
torch.compile(dynamic=True) traces NumPy's own functions.

Each system runs each function in a process of its own, systems in turn. All caches are empty when
a process begins: Tenfold's and torch's are new folders, JAX has none unless asked. What a process
does but once (imports, JAX's client, torch's headers) is not counted: each system has compiled and
called `x + 1` before. JAX's and torch's arguments are their own arrays, made before the clock
starts. Tenfold's checks are on, as they are by default. Arithmetic has one thread in every system:
the arrays are small, and on a busy machine threads would wait for one another.

`total` is the sum over the shapes, `worst` the slowest shape but for the first, `typical` their
median: with more than one round the least of each shape's times. `processor` is the time of all
threads: beside `total` it says what waiting there was on a busy machine (the C++ compilers that
torch starts are not in it). `compiled` counts Tenfold's kernels, JAX's and torch's graphs, `last`
is the last shape that compiled anything, `plans` are Tenfold's. `error` is the largest difference
from NumPy's result, relative to its largest element.

Decoding with a growing cache is in decode.py.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import tempfile
import time
from collections.abc import Callable
from importlib.util import find_spec
from statistics import median
from typing import Any

import numpy as np
from process import in_process

SYSTEMS = ("numpy", "tenfold", "jax", "torch")
ONE_THREAD = {
    "OMP_NUM_THREADS": "1",
    "OPENBLAS_NUM_THREADS": "1",
    "XLA_FLAGS": "--xla_cpu_multi_thread_eigen=false",
}


def mlp(np: Any, x: Any, w1: Any, b1: Any, w2: Any, b2: Any) -> Any:
    hidden = np.tanh(x @ w1 + b1)
    return hidden @ w2 + b2


def softmax(np: Any, x: Any) -> Any:
    weights = np.exp(x - x.max(axis=-1, keepdims=True))
    return weights / weights.sum(axis=-1, keepdims=True)


def attention(np: Any, q: Any, k: Any, v: Any) -> Any:
    place = np.arange(q.shape[1])
    scores = q @ k.swapaxes(-1, -2) * q.shape[-1] ** -0.5
    return softmax(np, np.where(place[:, None] >= place, scores, -1e9)) @ v


def kmeans(np: Any, points: Any, centres: Any) -> Any:
    for _ in range(3):
        away = ((points[:, None, :] - centres) ** 2).sum(axis=-1)
        own = away.argmin(axis=1)[:, None] == np.arange(centres.shape[0])
        own = own.astype("float32")
        centres = own.T @ points / np.maximum(own.sum(axis=0), 1)[:, None]
    return centres


def stencil(np: Any, x: Any) -> Any:
    for _ in range(5):
        around = x[:-2, 1:-1] + x[2:, 1:-1] + x[1:-1, :-2] + x[1:-1, 2:]
        x = 0.5 * x[1:-1, 1:-1] + 0.125 * around
    return x


# Shapes of the arguments by the number of the call, from 1 on.
Shapes = Callable[[int], tuple[tuple[int, ...], ...]]
FUNCTIONS: dict[str, tuple[Callable[..., Any], Shapes]] = {
    "mlp": (mlp, lambda n: ((n, 64), (64, 128), (128,), (128, 10), (10,))),
    "softmax": (softmax, lambda n: ((4 + n // 2, 10 + 5 * n),)),
    "attention": (attention, lambda n: ((4, n, 32),) * 3),
    "kmeans": (kmeans, lambda n: ((20 + 7 * n, 4), (8, 4))),
    "stencil": (stencil, lambda n: ((12 + n, 20 + 2 * n),)),
}

Call = Callable[..., Any]
Count = Callable[[], dict[str, int]]


def numpy_call(function: Call) -> tuple[Call, Call, Count]:
    return (lambda *given: function(np, *given)), np.asarray, lambda: {"compiled": 0}


def tenfold_call(function: Call) -> tuple[Call, Call, Count]:
    import tenfold as tn

    def counts() -> dict[str, int]:
        found = tn.stats()
        return {"compiled": found["kernels_compiled"], "plans": found["plans"]}

    return tn.jit(lambda *given: function(np, *given)), np.asarray, counts


def jax_call(function: Call) -> tuple[Call, Call, Count]:
    import jax

    jax.config.update("jax_platforms", "cpu")
    traced = []  # jax.jit calls the function once for each compilation

    def body(*given: Any) -> Any:
        traced.append(1)
        return function(jax.numpy, *given)

    jitted = jax.jit(body)
    return (
        lambda *given: jax.block_until_ready(jitted(*given)),
        lambda x: jax.block_until_ready(jax.numpy.asarray(x)),
        lambda: {"compiled": len(traced)},
    )


def torch_call(function: Call) -> tuple[Call, Call, Count]:
    import torch
    from torch._dynamo.utils import counters

    compiled = torch.compile(
        torch.compiler.wrap_numpy(lambda *given: function(np, *given)), dynamic=True
    )
    return compiled, torch.from_numpy, lambda: {"compiled": counters["stats"]["unique_graphs"]}


def measure(system: str, name: str, count: int) -> dict[str, Any]:
    """Call the function with every shape, and with every shape again."""
    function, shapes = FUNCTIONS[name]
    maker = globals()[f"{system}_call"]
    call, own, counts = maker(lambda np, x: x + 1)
    call(own(np.ones((2, 3), np.float32)))
    call, own, counts = maker(function)
    before = counts()
    rng = np.random.default_rng(0)
    drawn = [
        [rng.standard_normal(shape, np.float32) / 4 for shape in shapes(n)]
        for n in range(1, count + 1)
    ]
    given = [[own(x) for x in arguments] for arguments in drawn]
    results, compiled, last = [], counts()["compiled"], 0
    passes: list[dict[str, Any]] = []
    for turn in range(2):
        times = []
        used = time.process_time()
        for n, arguments in enumerate(given, 1):
            start = time.perf_counter()
            result = call(*arguments)
            times.append(time.perf_counter() - start)
            if not turn:
                results.append(result)
            if counts()["compiled"] > compiled:
                compiled, last = counts()["compiled"], n
        passes.append({"times": times, "processor": time.process_time() - used})
    error = 0.0
    for arguments, result in zip(drawn, results, strict=True):
        want = function(np, *arguments)
        error = max(error, float(np.abs(np.asarray(result) - want).max() / np.abs(want).max()))
    made = {name: count - before[name] for name, count in counts().items()}
    return {"passes": passes, "last": last, "error": error, **made}


def fresh(system: str, name: str, count: int, limit: float) -> dict[str, Any]:
    """`measure` in a process of its own, with caches of its own."""
    if not find_spec(system):
        return {"failed": "not installed"}
    with tempfile.TemporaryDirectory() as folder:
        caches = {
            "TENFOLD_CACHE": f"{folder}/tenfold",
            "TORCHINDUCTOR_CACHE_DIR": f"{folder}/torch",
        }
        settings = ONE_THREAD | caches
        return in_process(__file__, system, name, str(count), limit=limit, settings=settings)


def least(rounds: list[dict[str, Any]]) -> dict[str, Any]:
    """One row from all rounds: the least of each shape's times."""
    wrong = [found for found in rounds if "failed" in found]
    if wrong:
        return wrong[0]
    row = dict(rounds[0])
    row["passes"] = [
        {
            "times": [min(same) for same in zip(*(p["times"] for p in passes), strict=True)],
            "processor": min(p["processor"] for p in passes),
        }
        for passes in zip(*(found["passes"] for found in rounds), strict=True)
    ]
    return row


def print_row(system: str, row: dict[str, Any]) -> None:
    if "failed" in row:
        print(f"  {system:8} {row['failed']}", flush=True)
        return
    one, again = row["passes"]
    first, *others = one["times"]
    print(
        f"  {system:8} {sum(one['times']):9.3f} {one['processor']:9.3f} {first * 1e3:9.2f} "
        f"{max(others) * 1e3:9.2f} {median(others) * 1e3:9.3f} {sum(again['times']) * 1e3:9.2f} "
        f"{row['compiled']:8} {row['last']:5} {row.get('plans', '–'):>6} {row['error']:8.0e}",
        flush=True,
    )


HEAD = (
    f"  {'':8} {'total s':>9} {'processor':>9} {'first ms':>9} {'worst ms':>9} {'typical':>9} "
    f"{'again ms':>9} {'compiled':>8} {'last':>5} {'plans':>6} {'error':>8}"
)


def main() -> None:
    if sys.argv[1:2] == ["--one"]:
        system, name, count = sys.argv[2:]
        print(json.dumps(measure(system, name, int(count))))
        return
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)  # modules would be compiled by each process
    parser = argparse.ArgumentParser(description="ever new sizes of five functions")
    parser.add_argument("functions", nargs="*", choices=[[], *FUNCTIONS], default=[])
    parser.add_argument("--systems", default=",".join(SYSTEMS))
    parser.add_argument("--count", type=int, default=200, help="shapes of a function")
    parser.add_argument("--rounds", type=int, default=1)
    parser.add_argument("--limit", type=float, default=600.0, help="seconds for one process")
    parser.add_argument("--save", help="a file for all that was found, as lines of JSON")
    options = parser.parse_args()
    systems = options.systems.split(",")
    print(f"{options.count} shapes, each once; caches empty at the start of each process")
    for name in options.functions or FUNCTIONS:
        shapes = FUNCTIONS[name][1]
        print(f"{name}: {shapes(1)} to {shapes(options.count)}\n{HEAD}")
        rounds: dict[str, list[dict[str, Any]]] = {system: [] for system in systems}
        for _ in range(options.rounds):
            for system in systems:
                rounds[system].append(fresh(system, name, options.count, options.limit))
        for system in systems:
            row = least(rounds[system])
            print_row(system, row)
            if options.save:
                with open(options.save, "a") as file:
                    file.write(json.dumps({"function": name, "system": system, **row}) + "\n")


if __name__ == "__main__":
    main()
