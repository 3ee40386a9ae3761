"""Loops of small bodies beside numba: nanoseconds a round, on one thread.

    python benchmarks/loops.py [case ...] [--rounds N]

Each case is the same loop twice: by `tn.fori_loop`, `tn.while_loop` or `tn.scan`, and as plain
Python that numba compiles; without numba that is the interpreter's own time. Results are checked
against each other. Rounds of the measurement are interleaved, and the least of the thread's time is
taken.
"""

from __future__ import annotations

import argparse
import math
from collections.abc import Callable
from dataclasses import dataclass
from time import thread_time_ns as now
from typing import Any

import numpy as np

import tenfold as tn

try:
    from numba import njit
except ImportError:

    def njit(function: Any) -> Any:
        """Without numba its column is the interpreter's."""
        return function


@dataclass
class Case:
    """One loop: ours, the plain one, the arguments, and the rounds that these make."""

    name: str
    ours: Callable[..., Any]
    plain: Callable[..., Any]
    arguments: tuple[Any, ...]
    rounds: int


RNG = np.random.default_rng(0)
CASES: list[Case] = []


def case(plain: Callable[..., Any], *arguments: Any, rounds: int) -> Callable[[Any], Any]:
    """Add a case: what is decorated beside the plain loop."""

    def add(ours: Callable[..., Any]) -> Callable[..., Any]:
        CASES.append(Case(ours.__name__, ours, plain, arguments, rounds))
        return ours

    return add


MANY = 1_000_000


def _recurrence(a, b):
    x = a
    for _ in range(MANY):
        x = x * 0.999 + b
    return x


@case(_recurrence, 1.0, 0.5, rounds=MANY)
def recurrence(a, b):
    return tn.fori_loop(0, MANY, lambda i, x: x * 0.999 + b, a)


def _lcg(x):
    for _ in range(MANY):
        x = x * np.uint64(6364136223846793005) + np.uint64(1442695040888963407)
    return x


@case(_lcg, np.uint64(1), rounds=MANY)
def lcg(x):
    a, c = np.uint64(6364136223846793005), np.uint64(1442695040888963407)
    return tn.fori_loop(0, MANY, lambda i, x: x * a + c, x)


def _newton(a, n):
    total = 0.0
    for k in range(n):
        x = a
        while abs(x * x - a - k) > 1e-9 * (a + k):
            x = 0.5 * (x + (a + k) / x)
        total += x
    return total


@case(_newton, 2.0, 20_000, rounds=20_000 * 8)
def newton(a, n):
    def one(k, total):
        wanted = a + k
        x = tn.while_loop(
            lambda x: abs(x * x - wanted) > 1e-9 * wanted,
            lambda x: 0.5 * (x + wanted / x),
            a,
        )
        return total + x

    return tn.fori_loop(0, 20_000, one, 0.0)


def _mandelbrot(re, im, most):
    x = y = 0.0
    n = 0
    while x * x + y * y <= 4.0 and n < most:
        x, y = x * x - y * y + re, 2.0 * x * y + im
        n += 1
    return n


@case(_mandelbrot, -0.1, 0.3, MANY, rounds=MANY)
def mandelbrot(re, im, most):
    def more(s):
        x, y, n = s
        return (x * x + y * y <= 4.0) & (n < most)

    def step(s):
        x, y, n = s
        return x * x - y * y + re, 2.0 * x * y + im, n + 1

    return tn.while_loop(more, step, (0.0, 0.0, 0))[2]


def _crc(data):
    crc = np.int64(0xFFFF)
    for b in data:
        c = b & 0xFF
        for _ in range(8):
            if (crc & 1) ^ (c & 1):
                crc = (crc >> 1) ^ 0x8408
            else:
                crc = crc >> 1
            c = c >> 1
    return crc


@case(_crc, RNG.integers(0, 256, 100_000), rounds=800_000)
def crc(data):
    def byte(crc, b):
        def bit(_, s):
            crc, c = s
            odd = (crc & 1) ^ (c & 1)
            return np.where(odd != 0, (crc >> 1) ^ 0x8408, crc >> 1), c >> 1

        return tn.fori_loop(0, 8, bit, (crc, b & 0xFF))[0], ()

    return tn.scan(byte, np.int64(0xFFFF), data)[0]


def _kalman(f, h, q, r, zs):
    x, p = np.zeros(4), np.eye(4)
    out = np.empty((len(zs), 4))
    for t in range(len(zs)):
        x = f @ x
        p = f @ p @ f.T + q
        s = h @ p @ h + r
        k = p @ h / s
        x = x + k * (zs[t] - h @ x)
        p = p - np.outer(k, h @ p)
        out[t] = x
    return out


_F = np.eye(4) + np.eye(4, k=1) * 0.1


@case(_kalman, _F, RNG.random(4), np.eye(4) * 0.01, 0.1, RNG.standard_normal(20_000), rounds=20_000)
def kalman(f, h, q, r, zs):
    def step(state, z):
        x, p = state
        x = f @ x
        p = f @ p @ f.T + q
        s = h @ p @ h + r
        k = p @ h / s
        x = x + k * (z - h @ x)
        p = p - np.outer(k, h @ p)
        return (x, p), x

    return tn.scan(step, (np.zeros(4), np.eye(4)), zs)[1]


def _heat1(u):
    v = u.copy()
    for _ in range(1000):
        u[1:-1] = v[1:-1] + 0.1 * (v[2:] - 2 * v[1:-1] + v[:-2])
        u, v = v, u
    return v


@case(lambda u: _HEAT1(u.copy()), RNG.random(2000), rounds=1000)
def heat1(u):
    def step(_, u):
        new = u.copy()
        new[1:-1] = u[1:-1] + 0.1 * (u[2:] - 2 * u[1:-1] + u[:-2])
        return new

    return tn.fori_loop(0, 1000, step, u)


def _heat2(u):
    v = u.copy()
    for _ in range(1000):
        for i in range(1, u.shape[0] - 1):
            for j in range(1, u.shape[1] - 1):
                v[i, j] = 0.2 * (u[i, j] + u[i - 1, j] + u[i + 1, j] + u[i, j - 1] + u[i, j + 1])
        u, v = v, u
    return u


@case(lambda u: _HEAT2(u.copy()), RNG.random((64, 64)), rounds=1000)
def heat2(u):
    def step(_, u):
        new = u.copy()
        new[1:-1, 1:-1] = 0.2 * (
            u[1:-1, 1:-1] + u[:-2, 1:-1] + u[2:, 1:-1] + u[1:-1, :-2] + u[1:-1, 2:]
        )
        return new

    return tn.fori_loop(0, 1000, step, u)


def _rows(a):
    for i in range(1, a.shape[0]):
        a[i] = a[i] + 0.5 * a[i - 1]
    return a


@case(lambda a: _ROWS(a.copy()), RNG.random((10_000, 16)), rounds=9999)
def rows(a):
    def step(i, a):
        a[i] = a[i] + 0.5 * a[i - 1]
        return a

    return tn.fori_loop(1, 10_000, step, a)


def _elements(a):
    for i in range(2, a.shape[0]):
        a[i] = 0.5 * a[i - 1] + 0.25 * a[i - 2]
    return a


@case(lambda a: _ELEMENTS(a.copy()), RNG.random(100_000), rounds=99_998)
def elements(a):
    def step(i, a):
        a[i] = 0.5 * a[i - 1] + 0.25 * a[i - 2]
        return a

    return tn.fori_loop(2, 100_000, step, a)


def _twice(a):
    for i in range(1, a.shape[0] - 1):
        a[i] = a[i] + a[i - 1]
        a[i + 1] = a[i + 1] * 0.5
    return a


@case(lambda a: _TWICE(a.copy()), RNG.random(100_000), rounds=99_998)
def twice(a):
    def step(i, a):
        a[i] = a[i] + a[i - 1]
        a[i + 1] = a[i + 1] * 0.5
        return a

    return tn.fori_loop(1, 99_999, step, a)


def _branch(a):
    for i in range(1, a.shape[0]):
        if a[i] > a[i - 1]:
            a[i] = a[i] - a[i - 1]
    return a


@case(lambda a: _BRANCH(a.copy()), RNG.random(100_000), rounds=99_999)
def branch(a):
    def update(i, a):
        a[i] = a[i] - a[i - 1]
        return a

    def step(i, a):
        return tn.cond(a[i] > a[i - 1], lambda a: update(i, a), lambda a: a, a)

    return tn.fori_loop(1, 100_000, step, a)


def _histogram(x, h):
    for i in range(len(x)):
        h[x[i]] += 1
    return h


@case(
    lambda x, h: _HISTOGRAM(x, h.copy()),
    RNG.integers(0, 100, 100_000),
    np.zeros(100, np.int64),
    rounds=100_000,
)
def histogram(x, h):
    def step(h, i):
        h[i] += 1
        return h, ()

    return tn.scan(step, h, x)[0]


def _cholesky(a):
    n = a.shape[0]
    a[0, 0] = math.sqrt(a[0, 0])
    for i in range(1, n):
        for j in range(i):
            a[i, j] -= np.dot(a[i, :j], a[j, :j])
            a[i, j] /= a[j, j]
        a[i, i] -= np.dot(a[i, :i], a[i, :i])
        a[i, i] = math.sqrt(a[i, i])
    return a


def _positive(n: int) -> Any:
    a = RNG.random((n, n))
    return a @ a.T + n * np.eye(n)


@case(lambda a: _CHOLESKY(a.copy()), _positive(120), rounds=120 * 119 // 2)
def cholesky(a):
    n = a.shape[0]

    def row(i, a):
        def column(j, a):
            dot = tn.fori_loop(0, j, lambda k, s: s + a[i, k] * a[j, k], 0.0)
            a[i, j] = (a[i, j] - dot) / a[j, j]
            return a

        a = tn.fori_loop(0, i, column, a)
        dot = tn.fori_loop(0, i, lambda k, s: s + a[i, k] * a[i, k], 0.0)
        a[i, i] = np.sqrt(a[i, i] - dot)
        return a

    return tn.fori_loop(0, n, row, a)


def _nussinov(seq):
    n = len(seq)
    t = np.zeros((n, n), np.int64)
    for i in range(n - 1, -1, -1):
        for j in range(i + 1, n):
            t[i, j] = max(t[i, j], t[i, j - 1])
            if i + 1 < n:
                t[i, j] = max(t[i, j], t[i + 1, j])
                if i < j - 1:
                    t[i, j] = max(t[i, j], t[i + 1, j - 1] + (seq[i] + seq[j] == 3))
                else:
                    t[i, j] = max(t[i, j], t[i + 1, j - 1])
            for k in range(i + 1, j):
                t[i, j] = max(t[i, j], t[i, k] + t[k + 1, j])
    return t


@case(_nussinov, RNG.integers(0, 4, 60), rounds=60 * 59 * 58 // 6)
def nussinov(seq):
    n = len(seq)

    def row(back, t):
        i = n - 1 - back

        def column(j, t):
            best = np.maximum(t[i, j], t[i, j - 1])
            below = np.minimum(i + 1, n - 1)
            pair = t[below, j - 1] + np.where(i < j - 1, (seq[i] + seq[j] == 3).astype(int), 0)
            best = np.where(i + 1 < n, np.maximum(np.maximum(best, t[below, j]), pair), best)
            best = tn.fori_loop(i + 1, j, lambda k, b: np.maximum(b, t[i, k] + t[k + 1, j]), best)
            t[i, j] = best
            return t

        return tn.fori_loop(i + 1, n, column, t)

    return tn.fori_loop(0, n, row, np.zeros((n, n), np.int64))


_HEAT1, _HEAT2, _ROWS, _ELEMENTS = map(njit, (_heat1, _heat2, _rows, _elements))
_TWICE, _BRANCH, _HISTOGRAM, _CHOLESKY = map(njit, (_twice, _branch, _histogram, _cholesky))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("case", nargs="*")
    parser.add_argument("--rounds", type=int, default=5)
    options = parser.parse_args()
    print(f"{'case':12} {'ours':>9} {'numba':>9} {'ratio':>7}   ns a round")
    for one in CASES:
        if options.case and one.name not in options.case:
            continue
        jitted = tn.jit(one.ours)
        plain = one.plain if one.plain.__name__ == "<lambda>" else njit(one.plain)
        mine, theirs = jitted(*one.arguments), plain(*one.arguments)
        wrong = not np.allclose(mine, theirs, rtol=1e-6)
        least = [math.inf, math.inf]
        for _ in range(options.rounds):
            for n, function in enumerate((jitted, plain)):
                start = now()
                function(*one.arguments)
                least[n] = min(least[n], (now() - start) / one.rounds)
        ratio = least[0] / least[1]
        said = "  WRONG" if wrong else ""
        print(f"{one.name:12} {least[0]:9.2f} {least[1]:9.2f} {ratio:7.2f}{said}", flush=True)


if __name__ == "__main__":
    main()
