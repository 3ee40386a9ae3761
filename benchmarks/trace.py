"""Tracing: microseconds a node of several programs, and of a chain beside JAX's tracing.

    python benchmarks/trace.py [--rounds 5]

  chain       5,000 steps of four operations, arrays of one shape
  block       a block of a transformer (`replan.py`): few nodes, so what a trace costs by itself
              shows
  recurrence  a loop over indices that reads and writes slices, each of another extent

Every round has arrays of a shape that was not met before; small programs have more of them. Times
are this process's own, the least and the median of the rounds. A trace is what `f.trace` does: from
the call to a finished graph, with the survey of what the function closes over and the checks that
it changed nothing.
"""

from __future__ import annotations

import argparse
import itertools
import time
from collections.abc import Callable
from statistics import median
from typing import Any

import numpy as np
from replan import block, block_arguments

import tenfold as tn

STEPS = 5_000  # four operations a step
ROUNDS = 200  # of the recurrence
MANY = 10_000  # nodes that are traced at least


def program(x: Any, y: Any, maths: Any) -> Any:
    for _ in range(STEPS):
        x = maths.tanh(x * y + 1.5) - y
    return x


def chain(x: Any, y: Any) -> Any:
    return program(x, y, np)


def recurrence(r: Any) -> Any:
    """Levinson's: as NPBench's durbin."""
    y = np.empty_like(r)
    alpha, beta = -r[0], 1.0
    y[0] = alpha
    for k in range(1, ROUNDS):
        beta = beta * (1.0 - alpha * alpha)
        alpha = -(r[k] + np.dot(r[:k][::-1], y[:k])) / beta
        y[:k] += alpha * y[:k][::-1]
        y[k] = alpha
    return y


def chain_arguments(n: int) -> list[Any]:
    return [np.ones(8 + n, "f4"), np.full(8 + n, 0.5, "f4")]


# By name: the function, and its arguments in some round.
PROGRAMS: dict[str, tuple[Callable[..., Any], Callable[[int], list[Any]]]] = {
    "chain": (chain, chain_arguments),
    "block": (block, lambda n: block_arguments(5 + n, np.random.default_rng(0))),
    "recurrence": (recurrence, lambda n: [np.ones(ROUNDS + n)]),
}


def timed(function: Callable[[], Any]) -> tuple[float, Any]:
    start = time.process_time()
    result = function()
    return time.process_time() - start, result


def jax_times(rounds: int) -> tuple[list[float], int] | None:
    """The seconds of JAX's tracing of the chain, and how many equations it has."""
    try:
        import jax
        import jax.numpy as jnp
    except ImportError:
        return None
    times, equations = [], 0
    for n in range(rounds):
        x, y = chain_arguments(n)
        took, made = timed(lambda x=x, y=y: jax.make_jaxpr(lambda x, y: program(x, y, jnp))(x, y))
        times.append(took)
        equations = len(made.eqns)
    return times, equations


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--rounds", type=int, default=5)
    rounds = parser.parse_args().rounds
    head = ("nodes", "µs a node", "median", "ms in all", "bytes a node")
    print(f"{'':12} {head[0]:>6} {' '.join(f'{cell:>12}' for cell in head[1:])}")
    least = {}
    for name, (function, arguments) in PROGRAMS.items():
        f, times, shapes = tn.jit(function), [], itertools.count()
        graph = f.trace(*arguments(next(shapes)))  # loads what is loaded late
        nodes, size = len(graph.nodes), len(graph.to_bytes())
        for _ in range(max(rounds, MANY // nodes)):
            given = arguments(next(shapes))
            times.append(timed(lambda f=f, given=given: f.trace(*given))[0])
        least[name] = min(times)
        figures = 1e6 * min(times) / nodes, 1e6 * median(times) / nodes, 1e3 * min(times)
        cells = " ".join(f"{figure:12.1f}" for figure in (*figures, size / nodes))
        print(f"{name:12} {nodes:6} {cells}")
    theirs = jax_times(rounds)
    if theirs is None:
        print("jax          not installed; pip install jax to see it beside")
        return
    took, equations = min(theirs[0]), theirs[1]
    print(
        f"jax's chain  {equations} equations, {1e6 * took / equations:.1f} µs an equation, "
        f"{1e3 * took:.1f} ms in all: {took / least['chain']:.2f} times as long"
    )


if __name__ == "__main__":
    main()
