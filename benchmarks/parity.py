"""What checking costs: the first call with and without it, when nothing is left to be checked, and
bisecting a long program.

The first calls are of programs whose kernels are compiled already, so that their checks have the
least time, 30 ms; what is left is done in the background. The long program has some 26,000 nodes;
its last one is made wrong.

Run: python benchmarks/parity.py
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

import tenfold as tn
from tenfold.cache import plans

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))
from faults import plant

ROUNDS = 2000


def softmax(x: Any) -> Any:
    e = np.exp(x - x.max(1, keepdims=True))
    return e / e.sum(1, keepdims=True)


def scanned(x: Any) -> Any:
    return tn.scan(lambda c, row: (np.tanh(c) * row + c, c.sum()), x[0], x)


def layers(x: Any) -> Any:
    for _ in range(4):
        x = np.tanh(x @ x.T) @ x
        x = x / np.sqrt((x * x).mean(1, keepdims=True) + 1e-3)
    return x


def long(x: Any) -> Any:
    for _ in range(ROUNDS):
        for _ in range(4):
            x = np.sin(x) * 1.01 + 0.25
        x = np.sort(x, axis=1)
    return np.tanh(x)


def first_call(function: Callable[..., Any], x: Any, verify: str) -> tuple[float, float, Any, Any]:
    """Seconds of a first call, seconds until the background is done, the certificate after each."""
    plans.clear()
    f = tn.jit(function, verify=verify)
    f.trace(x)
    start = time.perf_counter()
    f(x)
    answered, first = time.perf_counter() - start, f.certificate(x)
    f.ready()
    return answered, time.perf_counter() - start, first, f.certificate(x)


def main() -> None:
    drawn = np.random.default_rng(0)
    small, large = (drawn.normal(size=s).astype("f4") for s in ((64, 64), (4096, 1024)))
    given = [
        ("softmax 64x64", softmax, small), ("softmax 4096x1024", softmax, large),
        ("scan over 64 rows", scanned, small), ("four layers of 64", layers, small),
    ]  # fmt: skip
    for name, function, x in given:
        first_call(function, x, "off")  # compiles
        off, *_ = first_call(function, x, "off")
        on, until, first, last = first_call(function, x, "first")
        print(
            f"{name:20} {off * 1000:8.1f} ms, checked {(on - off) * 1000:8.1f} ms more "
            f"({first.state}), {last.state} after {until * 1000:8.1f} ms, {last.checked} steps"
        )
    x = drawn.normal(size=(8, 16)).astype("f4")
    nodes = len(tn.trace(long, x).nodes)
    with plant("instruction", "tanh>sinh"):
        plans.clear()
        f = tn.jit(long)
        f.plan(x)
        start = time.perf_counter()
        found = tn.bisect(f, x, script=None)
    took = time.perf_counter() - start
    print(f"bisect {nodes} nodes {took:.2f} s: {found.node.op if found.node else 'nothing'}")
    plans.clear()


if __name__ == "__main__":
    main()
