"""Warm start: a second process runs a program that another has compiled before.

    python benchmarks/warm.py [kernels ...]

Each system fills its cache in one process, then fresh processes run the same program, the systems
in turn. Measured is the time from the end of tracing to the first result; imports, and what a
process does but once (JAX: its client; Tenfold: its gate), are not counted. Beside it stand the
processor time of the same; the time from the start of the process, imports and all, to the first
result, and to its end; both also as so many times a whole process that imports NumPy alone. JAX
has its persistent cache, and has traced when it has a jaxpr. Inductor has its own caches, and has
traced when Dynamo hands it the graph.
"""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from contextlib import ExitStack
from functools import partial
from typing import Any

ROUNDS = 7

# Every kernel has a shape of its own, so that none is another's.
PROGRAM = """
import sys, time
import numpy as np
n = int(sys.argv[1])
x = np.linspace(-1, 1, 64 * (n + 8), dtype="float32").reshape(64, n + 8)

def make(np):
    def program(x):
        outs = []
        for i in range(n):
            y = x[:, : 8 + i]
            outs.append((np.tanh(y * 1.5 + i) * y).sum())
        return outs
    return program

def report(start, cpu):
    print([time.perf_counter() - start, time.process_time() - cpu], flush=True)
"""

TENFOLD = (
    PROGRAM
    + """
import tenfold as tn
import tenfold.api.traces as module
trace = module.trace_function
def traced(*args, **options):
    global start, cpu
    made = trace(*args, **options)
    start, cpu = time.perf_counter(), time.process_time()
    return made
module.trace_function = traced
tn.jit(make(np))(x)
report(start, cpu)
if len(sys.argv) > 2:
    assert "llvmlite" not in sys.modules
"""
)

JAX = (
    PROGRAM
    + """
import os
os.environ["JAX_PLATFORMS"] = "cpu"
import jax, jax.numpy as jnp
jax.config.update("jax_compilation_cache_dir", os.environ["WARM_CACHE"])
jax.config.update("jax_persistent_cache_min_compile_time_secs", 0)
jax.config.update("jax_persistent_cache_min_entry_size_bytes", -1)
given = jnp.asarray(x)
traced = jax.jit(make(jnp)).trace(given)
start, cpu = time.perf_counter(), time.process_time()
jax.block_until_ready(traced.lower().compile()(given))
report(start, cpu)
"""
)

TORCH = (
    PROGRAM
    + """
import os
os.environ["TORCHINDUCTOR_CACHE_DIR"] = os.environ["WARM_CACHE"]
import torch
torch._inductor.config.fx_graph_cache = True
given = torch.from_numpy(x)
from torch._inductor.compile_fx import compile_fx
def traced(graph, inputs):
    global start, cpu
    start, cpu = time.perf_counter(), time.process_time()
    return compile_fx(graph, inputs)
torch.compile(make(torch), backend=traced, dynamic=False)(given)
report(start, cpu)
"""
)

NUMPY = "import numpy; print([0, 0], flush=True)"
SYSTEMS = {"tenfold": TENFOLD, "jax": JAX, "inductor": TORCH}


def once(script: str, count: int, cache: str, *more: str) -> list[float] | str:
    environment = {**os.environ, "WARM_CACHE": cache, "TENFOLD_CACHE": os.path.join(cache, "t")}
    with tempfile.TemporaryFile("w+") as errors:
        since = time.perf_counter()
        process = subprocess.Popen(
            [sys.executable, "-c", script, str(count), *more],
            env=environment, stdout=subprocess.PIPE, stderr=errors, text=True,
        )  # fmt: skip
        assert process.stdout is not None
        told, result = "", 0.0
        for line in process.stdout:
            told, result = line, time.perf_counter() - since
        failed = process.wait()
        whole = time.perf_counter() - since
        if failed:
            errors.seek(0)
            return (errors.read().strip().splitlines() or ["it gave no reason"])[-1][:100]
    found: list[float] = json.loads(told)
    return [*found, result, whole]


def measured(name: str, count: int, stack: ExitStack) -> Callable[[], list[float] | str]:
    """Fill a system's cache, say what that took, and give what measures one warm start."""
    cache = stack.enter_context(tempfile.TemporaryDirectory())
    cold = once(SYSTEMS[name], count, cache)
    if isinstance(cold, str):
        return lambda: cold
    print(f"  {name:10} cold {cold[0] * 1e3:10.1f}")
    return lambda: once(SYSTEMS[name], count, cache, "warm")


def main() -> None:
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)  # modules would be compiled by each process
    counts = [int(given) for given in sys.argv[1:]] or [10, 500]
    for count in counts:
        print(f"{count} kernels: milliseconds from the end of tracing to the first result")
        with ExitStack() as stack:
            starts = {name: measured(name, count, stack) for name in SYSTEMS}
            starts["numpy"] = partial(once, NUMPY, count, "off")
            rounds = [{name: start() for name, start in starts.items()} for _ in range(ROUNDS)]
        numpy = min(float(one["numpy"][3]) for one in rounds)
        least: dict[str, list[float]] = {}
        for name in SYSTEMS:
            warm: list[Any] = [one[name] for one in rounds]
            wrong = [w for w in warm if isinstance(w, str)]
            if wrong:
                print(f"  {name:10} not measured: {wrong[0]}")
                continue
            least[name] = [min(w[part] for w in warm) for part in range(4)]
            since, whole = least[name][2:]
            print(
                f"  {name:10} warm least {least[name][0] * 1e3:8.1f}  "
                f"median {statistics.median(w[0] for w in warm) * 1e3:8.1f}  "
                f"of processor {least[name][1] * 1e3:8.1f}  "
                f"from the start {since * 1e3:8.1f}: {since / numpy:.2f} of NumPy's process  "
                f"whole process {whole * 1e3:8.1f}: {whole / numpy:.2f}"
            )
        own = least.pop("tenfold", None)
        if own and least:
            wall, processor = (min(v[p] for v in least.values()) / own[p] for p in (0, 1))
            print(f"  {wall:.1f} times as fast as the faster of the others, {processor:.1f} times")
            print("  by time of the processor")


if __name__ == "__main__":
    main()
