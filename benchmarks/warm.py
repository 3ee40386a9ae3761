"""Warm start: a second process runs a program that another has compiled before.

    python benchmarks/warm.py [kernels ...]

Each system fills its cache in one process, then fresh processes run the same program. Measured is
the time from the end of tracing to the first result; imports, and what a process does but once
(JAX: its client; Tenfold: its gate), are not counted. Beside it stands the processor time of the
same. JAX has its persistent cache, and has traced when it has a jaxpr. Inductor has its own caches;
its tracing can't be told apart, so what tracing takes with the eager backend, in the same process
just before, is taken off.
"""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import sys
import tempfile
from typing import Any

ROUNDS = 5

# Every kernel has a shape of its own, so that none is another's.
PROGRAM = """
import json, sys, time
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
    print(json.dumps([time.perf_counter() - start, time.process_time() - cpu]))
"""

TENFOLD = (
    PROGRAM
    + """
import tenfold as tn
import tenfold.api.jit as module
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
start = time.perf_counter(); cpu = time.process_time()
torch.compile(make(torch), backend="eager", dynamic=False)(given)
tracing, tracing_cpu = time.perf_counter() - start, time.process_time() - cpu
start, cpu = time.perf_counter() + tracing, time.process_time() + tracing_cpu
torch.compile(make(torch), dynamic=False)(given)
report(start, cpu)
"""
)

SYSTEMS = {"tenfold": TENFOLD, "jax": JAX, "inductor": TORCH}


def once(script: str, count: int, cache: str, *more: str) -> list[float] | str:
    environment = {**os.environ, "WARM_CACHE": cache, "TENFOLD_CACHE": os.path.join(cache, "t")}
    done = subprocess.run(
        [sys.executable, "-c", script, str(count), *more],
        env=environment, capture_output=True, text=True, check=False,
    )  # fmt: skip
    if done.returncode:
        return (done.stderr.strip().splitlines() or ["it gave no reason"])[-1][:100]
    found: list[float] = json.loads(done.stdout.strip().splitlines()[-1])
    return found


def main() -> None:
    counts = [int(given) for given in sys.argv[1:]] or [10, 500]
    for count in counts:
        print(f"{count} kernels: milliseconds from the end of tracing to the first result")
        best: dict[str, float] = {}
        for name, script in SYSTEMS.items():
            with tempfile.TemporaryDirectory() as cache:
                cold = once(script, count, cache)
                if isinstance(cold, str):
                    print(f"  {name:10} not measured: {cold}")
                    continue
                warm: list[Any] = [once(script, count, cache, "warm") for _ in range(ROUNDS)]
                wrong = [w for w in warm if isinstance(w, str)]
                if wrong:
                    print(f"  {name:10} not measured: {wrong[0]}")
                    continue
            best[name] = min(w[0] for w in warm)
            print(
                f"  {name:10} cold {cold[0] * 1e3:9.1f}   warm least {best[name] * 1e3:8.1f}  "
                f"median {statistics.median(w[0] for w in warm) * 1e3:8.1f}  "
                f"of processor {min(w[1] for w in warm) * 1e3:8.1f}"
            )
        others = [value for name, value in best.items() if name != "tenfold"]
        if others and "tenfold" in best:
            ratio = min(others) / best["tenfold"]
            print(f"  {ratio:.1f} times as fast as the faster of the others")


if __name__ == "__main__":
    main()
