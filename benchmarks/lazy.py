"""Lazy arrays beside NumPy: what an operation costs outside any trace.

    python benchmarks/lazy.py [part of a case's name]

Each case is one function, called with NumPy's arrays and with lazy ones in turn, round for round in
one process; what it gives is brought to NumPy by np.asarray, which counts as an operation of its
own. Shown are the first round, the median of each, the worst, and the median of the last quarter,
when what is compiled in the background is there; then what lazy arrays take for each operation
beyond NumPy's time, and how often their time NumPy's is, by the medians of all rounds. Asked for:
where operations compute 1e4 elements or more at most 2 times NumPy's time, below at most 5 µs an
operation more. Short rounds are taken many at a time. Where the system tells (Linux), the time that
a thread was ready but others had the processor is taken off. The disk cache is off: every plan is
made here.
"""

from __future__ import annotations

import gc
import os
import statistics
import sys
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

os.environ["TENFOLD_CACHE"] = "off"

import numpy as np
from clock import clock

import tenfold as tn

SIZES = (1, 100, 1_000, 10_000, 100_000, 1_000_000)
LEAST, MOST = 12, 400  # rounds
BUDGET = 0.5  # seconds of a case, about
LARGE = 10_000  # elements from which on times are compared, not costs
RATIO, MORE = 2.0, 5.0


class Case(NamedTuple):
    """What is measured: `body` does so many operations on arrays of so many elements."""

    name: str
    elements: int
    operations: int
    body: Callable[..., Any]
    arrays: tuple[Any, ...]
    least: int = LEAST  # rounds
    repeats: int = 1  # of the body in a round


def singles() -> Iterator[Case]:
    """One operation, its value wanted at once."""
    rng = np.random.default_rng(0)
    for n in SIZES:
        x, y = rng.normal(size=n), rng.normal(size=n)
        square = x[: int(n**0.5) ** 2].reshape(int(n**0.5), -1)
        many = 20 if n <= LARGE else 1
        yield Case("x + y", n, 1, lambda x, y: x + y, (x, y), LEAST, many)
        yield Case("np.exp(x)", n, 1, lambda x: np.exp(x), (x,), LEAST, many)
        yield Case("x.sum()", n, 1, lambda x: x.sum(), (x,), LEAST, many)
        yield Case(f"x[3:7] of {n}", min(n, 4), 1, lambda x: x[3:7], (x,), LEAST, 20)
        yield Case("x @ y", n, 1, lambda x: x @ x, (square,), LEAST, many)


def ten(x: Any, y: Any) -> Any:
    return np.sqrt(np.abs((x * 2.0 + y) * x - y / 3.0) + 1.0) * y - x


def recurrence(realised: bool, rounds: int) -> Callable[..., Any]:
    def run(x: Any, y: Any) -> Any:
        for _ in range(rounds):
            x = x * 0.99 + y
            if realised:
                np.asarray(x)
        return x

    return run


def longer(x: Any, y: Any, state: Any) -> Any:
    """A graph that is one operation longer every time."""
    state[0] += 1
    for _ in range(1 + state[0] % 64):
        x = x * 0.5 + y
    return x


def other(x: Any, state: Any) -> Any:
    """A shape that never was before."""
    state[0] += 1
    part = x[: x.shape[0] - state[0]]
    return (part * 2.0 + 1.0).sum()


def growing(x: Any, rounds: int) -> Any:
    whole = x
    for _ in range(rounds):
        whole = np.concatenate([whole, x])
        np.asarray(whole)
    return whole


def branches(x: Any, y: Any) -> Any:
    for _ in range(50):
        x = x - y if float(x.sum()) > 0 else x + y
    return x


def elements(x: Any) -> Any:
    total = 0.0
    for i in range(50):
        total += float(x[i])
    return total


def assigned(x: Any) -> Any:
    x = x.copy()
    for i in range(50):
        x[i] = 1.5
    return x


def in_place(x: Any, y: Any) -> Any:
    x = x.copy()
    for _ in range(25):
        x += y
        x *= 0.5
    return x


def k_means(points: Any, centres: Any) -> Any:
    for _ in range(5):
        distances = ((points[:, None, :] - centres[None, :, :]) ** 2).sum(axis=2)
        nearest = distances.argmin(axis=1)
        chosen = (nearest[:, None] == np.arange(centres.shape[0])[None, :]) * 1.0
        centres = (chosen.T @ points) / np.maximum(chosen.sum(axis=0), 1.0)[:, None]
    return centres


def programs() -> Iterator[Case]:
    rng = np.random.default_rng(1)
    for n in SIZES:
        x, y = rng.normal(size=n), rng.normal(size=n)
        yield Case("10 elementwise", n, 9, ten, (x, y))
        rounds = 1000 if n <= LARGE else 20
        least = LEAST if n < LARGE else 4
        yield Case("recurrence", n, 2 * rounds, recurrence(False, rounds), (x, y), least)
        yield Case("recurrence, realised", n, 3 * rounds, recurrence(True, rounds), (x, y), least)
        yield Case("graphs of changing length", n, 64, longer, (x, y, [0]), 32)
        if n > 100:
            yield Case("shapes never met", n, 4, other, (x, [0]), 32)
            yield Case("elements", 1, 100, elements, (x,))
            yield Case(f"elements assigned of {n}", 1, 51, assigned, (x,))
        yield Case("in place", n, 51, in_place, (x, y))
        yield Case("branches on values", n, 150, branches, (x, y))
        count = 100 if n <= LARGE else 5
        yield Case("growing concatenation", n, 2 * count, lambda x, c=count: growing(x, c), (x,), 6)
        if n >= 100:
            points = rng.normal(size=(n // 4, 4))
            yield Case("k-means", n, 75, k_means, (points, points[:8].copy()), 4)


now = clock()


def lazily(item: Any) -> Any:
    return tn.asarray(item) if isinstance(item, np.ndarray) else list(item)


def measure(case: Case) -> tuple[list[float], list[float]]:
    """Seconds a round, of NumPy and of lazy arrays."""
    ours = tuple(map(lazily, case.arrays))
    theirs = tuple(x if isinstance(x, np.ndarray) else list(x) for x in case.arrays)
    taken: tuple[list[float], list[float]] = ([], [])
    while len(taken[0]) < case.least or (len(taken[0]) < MOST and sum(map(sum, taken)) < BUDGET):
        for which, arrays in enumerate((theirs, ours)):
            repeats = case.repeats if taken[which] else 1
            start = now()
            for _ in range(repeats):
                np.asarray(case.body(*arrays))
            taken[which].append((now() - start) * 1e-9 / repeats)
    return taken


def main() -> None:
    wanted = sys.argv[1] if len(sys.argv) > 1 else ""
    print("microseconds a round" + " " * 26 + "NumPy" + " " * 29 + "lazy")
    heads = ("first", "median", "first", "median", "worst", "last", "µs/op more", "times")
    print(f"{'':27} {'elements':>9}" + "".join(f" {head:>11}" for head in heads))
    failed = 0
    gc.disable()  # a collection is nobody's here
    for case in (*singles(), *programs()):
        if wanted not in case.name:
            continue
        theirs, ours = measure(case)
        gc.collect()
        base, mine = statistics.median(theirs), statistics.median(ours)
        more, times = (mine - base) * 1e6 / (case.operations + 1), mine / base
        missed = times > RATIO if case.elements >= LARGE else more > MORE
        failed += missed
        last = statistics.median(ours[-(len(ours) // 4) :])
        cells = [theirs[0], base, ours[0], mine, max(ours), last]
        shown = "".join(f" {cell * 1e6:11.1f}" for cell in cells)
        print(
            f"{case.name:27} {case.elements:9}{shown} {more:11.2f} {times:11.2f}"
            f"{'  missed' if missed else ''}",
            flush=True,
        )
    print(f"{failed} missed")


if __name__ == "__main__":
    main()
