"""Tracing: microseconds a node on a 20,000-node program, beside JAX's tracing.

Rounds are interleaved and the minimum is taken. Run: make bench
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import numpy as np

import tenfold as tn

STEPS = 5_000  # four operations a step


def program(x: Any, y: Any, maths: Any) -> Any:
    for _ in range(STEPS):
        x = maths.tanh(x * y + 1.5) - y
    return x


def timed(function: Callable[[], Any]) -> float:
    start = time.perf_counter()
    function()
    return time.perf_counter() - start


def main() -> None:
    x, y = np.ones(8, "f4"), np.full(8, 0.5, "f4")
    graph = tn.trace(lambda x, y: program(x, y, np), x, y)
    nodes = len(graph.nodes)
    ours: list[float] = []
    theirs: list[float] = []
    try:
        import jax
        import jax.numpy as jnp
    except ImportError:
        jax = None
    equations = 0
    for _ in range(5):
        ours.append(timed(lambda: tn.trace(lambda x, y: program(x, y, np), x, y)))
        if jax is not None:
            theirs.append(timed(lambda: jax.make_jaxpr(lambda x, y: program(x, y, jnp))(x, y)))
    if jax is not None:
        equations = len(jax.make_jaxpr(lambda x, y: program(x, y, jnp))(x, y).eqns)
    size = len(graph.to_bytes())
    print(f"nodes {nodes}, file {size} bytes, {size / nodes:.1f} bytes a node")
    print(f"tenfold  {min(ours) * 1e6 / nodes:6.1f} µs a node, {min(ours):.3f} s in all")
    if jax is not None:
        print(
            f"jax      {min(theirs) * 1e6 / equations:6.1f} µs an equation, "
            f"{min(theirs):.3f} s in all ({equations} equations)"
        )
        print(f"ratio    {min(theirs) / min(ours):.2f} times JAX's time saved")
    else:
        print("jax      not installed; pip install jax to see it beside")


if __name__ == "__main__":
    main()
