"""The cost of a call while compiling goes on in the background.

    python benchmarks/background.py [kernels]

One function is called again and again: by the evaluator alone, then with compile="background"
from its first call on. Measured is how long each call takes: while the plan is made and checked,
and after that. Then a plan of as many kernels is made while another thread does nothing but wake up
each millisecond: measured is how late it is. Where the system tells (Linux), the time that a thread
was ready but others had the processor is taken off, so that a busy machine shows as little as it
can; what is left beyond the evaluator's own time is waiting for the thread that compiles.
"""

from __future__ import annotations

import os
import statistics
import sys
from collections.abc import Callable
from time import perf_counter, process_time, sleep
from typing import Any

os.environ["TENFOLD_CACHE"] = "off"  # a plan from disk leaves nothing to measure

import numpy as np
from clock import clock

import tenfold as tn

CALLS = 2000


def program(count: int, curve: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """So many kernels, none another's: each a chain of its own."""
    ops = (np.add, np.multiply, np.maximum, np.subtract)

    def run(x: Any) -> Any:
        outs = []
        for i in range(count):
            y = curve(x)
            for digit in range(6):
                y = ops[i >> 2 * digit & 3](y, x)
            outs.append(np.sort(y, axis=None)[0])
        return outs

    return run


def timed(call: Callable[[Any], Any], x: Any, go_on: Callable[[int], bool]) -> list[float]:
    taken: list[float] = []
    now = clock()
    while go_on(len(taken)):
        start = now()
        call(x)
        taken.append((now() - start) * 1e-9)
    return taken


def ticks(busy: Callable[[], bool]) -> list[float]:
    """How late a thread wakes up that sleeps for a millisecond again and again."""
    now = clock()
    late: list[float] = []
    while busy():
        start = now()
        sleep(1e-3)
        late.append((now() - start) * 1e-9 - 1e-3)
    return late


def show(name: str, taken: list[float]) -> None:
    ordered = sorted(taken)
    at = [ordered[min(len(ordered) - 1, int(len(ordered) * part))] for part in (0.9, 0.99)]
    figures = (statistics.median(ordered), *at, ordered[-1])
    cells = "  ".join(f"{value * 1e6:10.0f}" for value in figures)
    print(f"  {name:32} {len(taken):6}  {cells}")


def main() -> None:
    count = int(sys.argv[1]) if len(sys.argv) > 1 else 40
    x = np.linspace(-1, 1, 64 * (count + 8), dtype="float32").reshape(64, count + 8)
    print("microseconds")
    print(
        f"  {'':32} {'times':>6}  {'median':>10}  {'9 in 10':>10}  {'99 in 100':>10}  {'most':>10}"
    )
    for which, curve in (("first", np.tanh), ("second", np.sinh)):
        print(f"the {which} program of this process, {count} kernels")
        alone = tn.jit(program(count, curve), compile="never")
        alone(x)
        f = tn.jit(program(count, curve), compile="background")
        show("the evaluator alone", timed(alone, x, lambda n: n < CALLS))
        show("the first call, which traces", timed(f, x, lambda n: n < 1))
        start, cpu = perf_counter(), process_time()
        during = timed(f, x, lambda n, f=f: not f.ready(0))
        spent = perf_counter() - start, process_time() - cpu
        show("while compiling goes on", during)
        show("the next two, which bind it", timed(f, x, lambda n: n < 2))
        show("the plan", timed(f, x, lambda n: n < CALLS))
        print(
            f"  compiled and checked in {spent[0]:.2f} s, {spent[1]:.2f} s of processor with calls"
        )
    print("another thread, which sleeps for a millisecond: how late it is")
    end = perf_counter() + 1
    show("nothing else goes on", ticks(lambda: perf_counter() < end))
    f = tn.jit(program(count, np.cosh), compile="background")
    f(x)
    show("while compiling goes on", ticks(lambda: not f.ready(0)))


if __name__ == "__main__":
    main()
