"""A new shape of a known function: what is between the call and its result, stage by stage.

    python benchmarks/replan.py [--shapes 50] [--profile FUNCTION]

Each function is called with one shape after another, none of them met before. After the first few
its kernels are known, and a call costs tracing, planning, binding and a check in brief: no
compiler. Milliseconds of this thread's own time, the median over the shapes after these; a stage's
time is without that of the stages within it.
"""

from __future__ import annotations

import argparse
import cProfile
import importlib
import pstats
import threading
import time
from collections import Counter
from collections.abc import Callable
from statistics import median
from typing import Any

import numpy as np

import tenfold as tn

FIRST = 8  # shapes by which kernels are known

# (where, what, the name of its stage)
STAGES = (
    ("tenfold.api.specialised:SpecialisedFunction", "_run", "call"),
    ("tenfold.api.specialised", "trace_call", "trace"),
    ("tenfold.cache.memory:Plans", "get", "look up"),
    ("tenfold.cache.memory:Plans", "_stored", "disk"),
    ("tenfold.cache.memory", "keep_program", "disk"),
    ("tenfold.cache.memory", "why_missing", "disk"),
    ("tenfold.cache.memory", "_take_over", "disk"),
    ("tenfold.cache.memory", "_planned", "plan"),
    ("tenfold.plan.steps.build:Templates", "find", "template"),
    ("tenfold.plan.steps.outline", "fuse", "fuse"),
    ("tenfold.plan.steps.outline:Former", "forms", "form"),
    ("tenfold.plan.steps.build:_Planner", "lowered", "lower"),
    ("tenfold.plan.steps.build:Cells", "lay_out", "slots"),
    ("tenfold.backends.cpu.run.compiled:CompiledProgram", "__init__", "bind"),
    ("tenfold.backends.cpu.run.kernels:Request", "finish", "code"),
    ("tenfold.api.checking", "answer", "check"),
    ("tenfold.api.checking", "go_on", "background"),
    ("tenfold.api.checking", "note", "disk"),
    ("tenfold.api.checking", "guarded", "guards"),
    ("tenfold.api.specialised:SpecialisedFunction", "_enter", "enter"),
)


def block(x: Any, w1: Any, w2: Any, wq: Any, wk: Any, wv: Any, g: Any, b: Any) -> Any:
    """A block of a transformer: some ten kernels and products."""

    def norm(y: Any) -> Any:
        mean = y.mean(axis=-1, keepdims=True)
        spread = ((y - mean) ** 2).mean(axis=-1, keepdims=True)
        return (y - mean) / np.sqrt(spread + 1e-5) * g + b

    n = norm(x)
    q, k, v = n @ wq, n @ wk, n @ wv
    s = q @ k.T * 0.125
    e = np.exp(s - s.max(axis=-1, keepdims=True))
    x = x + e / e.sum(axis=-1, keepdims=True) @ v
    h = norm(x) @ w1
    h = h * 0.5 * (1 + np.tanh(0.79788456 * (h + 0.044715 * h**3)))
    return x + h @ w2


def chain(x: Any, y: Any, w: Any) -> Any:
    """Some 140 nodes."""
    for k in range(8):
        x = np.tanh(x @ w) * (0.3 + k) + y
        y = np.exp(-y * y) + x.mean(axis=-1, keepdims=True)
        x = x - x.max(axis=0)
        y = np.where(y > 0, y, 0.1 * x)
    return x, (y * y).sum()


def block_arguments(n: int, random: np.random.Generator) -> list[Any]:
    d, f = 16, 32
    shapes: list[tuple[int, ...]] = [(n, d), (d, f), (f, d), (d, d), (d, d), (d, d), (d,), (d,)]
    return [random.standard_normal(shape).astype(np.float32) for shape in shapes]


def chain_arguments(n: int, random: np.random.Generator) -> list[Any]:
    x, y, w = (random.standard_normal(shape) for shape in ((n, 12), (n, 12), (12, 12)))
    return [x, y, w / 8]


FUNCTIONS: dict[str, tuple[Callable[..., Any], Callable[[int, np.random.Generator], list[Any]]]] = {
    "block": (block, block_arguments),
    "chain": (chain, chain_arguments),
}


class Clock:
    """The time of each stage, that of stages within it left out."""

    def __init__(self) -> None:
        self.times: Counter[str] = Counter()
        self._within: list[float] = []
        self._thread = threading.get_ident()

    def watch(self, where: str, name: str, stage: str) -> None:
        """Have a function's time counted as a stage's."""
        module, _, cls = where.partition(":")
        owner = importlib.import_module(module)
        owner = getattr(owner, cls) if cls else owner
        function = getattr(owner, name)

        def timed(*args: Any, **kwargs: Any) -> Any:
            if threading.get_ident() != self._thread:
                return function(*args, **kwargs)
            start = time.thread_time()
            self._within.append(0.0)
            try:
                return function(*args, **kwargs)
            finally:
                took = time.thread_time() - start
                self.times[stage] += took - self._within.pop()  # type: ignore[assignment]
                if self._within:
                    self._within[-1] += took

        setattr(owner, name, timed)


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--shapes", type=int, default=50)
    parser.add_argument("--profile", choices=FUNCTIONS)
    given = parser.parse_args()
    tn.jit(lambda x: x + 1)(np.ones(3))  # all that is loaded late
    clock = Clock()
    if not given.profile:
        for where, name, stage in STAGES:
            clock.watch(where, name, stage)
    for name in [given.profile] if given.profile else FUNCTIONS:
        function, arguments = FUNCTIONS[name]
        random = np.random.default_rng(0)
        f = tn.jit(function)
        rows: list[Counter[str]] = []
        walls: list[float] = []
        tn.stats.reset()
        profile = cProfile.Profile()
        for number in range(FIRST + given.shapes):
            args = arguments(5 + number, random)
            if number == FIRST:
                tn.stats.reset()
            clock.times.clear()
            if given.profile and number >= FIRST:
                profile.enable()
            start = time.perf_counter()
            f(*args)
            took = time.perf_counter() - start
            profile.disable()
            f.ready(60)
            if number >= FIRST:
                walls.append(took)
                rows.append(clock.times.copy())
        if given.profile:
            pstats.Stats(profile).sort_stats("tottime").print_stats(40)
            continue
        args = arguments(5, random)
        plan = f.program_for(*args)[2].plan
        nodes, total = len(f.trace(*args).nodes), [sum(row.values()) for row in rows]
        print(
            f"{name}: {nodes} nodes, {len(plan.steps)} steps, {len(plan.kernels)} kernels; "
            f"{1e3 * median(total):.2f} ms of work, {1e3 * median(walls):.2f} ms by the clock, "
            f"{tn.stats()['kernels_compiled']} kernels compiled after the first {FIRST} shapes"
        )
        stages = {stage: median(row[stage] for row in rows) for _, _, stage in STAGES}
        for stage, took in stages.items():
            print(f"  {stage:12} {1e3 * took:8.3f} ms {1e6 * took / nodes:8.1f} µs a node")


if __name__ == "__main__":
    main()
