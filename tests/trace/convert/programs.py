# ruff: noqa: B007, PIE808, RET501, RET504, RET505  these are written as people write them
"""Programs of Python's control flow, with arguments that go every way through them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

import tenfold as tn

PROGRAMS: dict[str, tuple[Callable[..., Any], list[tuple[Any, ...]]]] = {}
A = np.array([3.0, -1.0, 4.0, 1.0, -5.0, 9.0, 2.0, 6.0])
N = np.array([3, 1, 4, 1, 5, 9, 2, 6])


def program(*arguments: Any) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """A program of the table, and what it is called with."""
    given = [a if isinstance(a, tuple) else (a,) for a in arguments]

    def add(function: Callable[..., Any]) -> Callable[..., Any]:
        assert function.__name__ not in PROGRAMS
        PROGRAMS[function.__name__] = function, given
        return function

    return add


# -- if


@program(1.0, -1.0, 0.0)
def sign(x):
    if x > 0:
        return 1
    elif x < 0:
        return -1
    else:
        return 0


@program(1.0, -1.0)
def one_side(x):
    y = x
    if x > 0:
        y = x * 2
    return y + 1


@program((1.0, 2.0), (2.0, 1.0), (1.0, 1.0))
def swap(a, b):
    if a > b:
        a, b = b, a
    return a, b


@program(3.0, -3.0, 30.0)
def early(x):
    if x < 0:
        return -x
    y = x * 2
    if y > 50:
        return y - 50
    y = y + 1
    return y


@program(3.0, -3.0, 30.0, 0.5)
def mixed_exits(x):
    y = 0.0
    if x > 0:
        y = 1.0
        if x > 10:
            return 100.0
        y = y + x
    else:
        y = 2.0
    y = y * 3
    return y


@program(A, -A, A * 0)
def on_a_sum(x):
    if x.sum() > 0:
        y = x / x.sum()
    else:
        y = np.zeros_like(x)
    return y


@program((A, True), (A, False))
def flags(x, up):
    if up:
        return x.max()
    return x.min()


@program((1, 2), (2, 1), (2, 2))
def nested_ifs(a, b):
    if a > b:
        if a - b == 1:
            r = 1
        else:
            r = 2
    elif a == b:
        r = 3
    else:
        r = 4
    return r


@program(2.0, -2.0)
def unused_in_one(x):
    if x > 0:
        only_here = x * 2
        y = only_here + 1
    else:
        y = 0.0
    return y


@program(2.0, -2.0)
def temp_of_two_types(x):
    if x > 0:
        t = np.stack([x, x])
        y = t.sum()
    else:
        t = 3
        y = x * t
    return y


@program(5, -5)
def static_inside(n):
    depth = 2
    if n > 0:
        for k in range(depth):
            n = n + k
        depth = 3
    else:
        depth = 3
    for _ in range(depth):
        n = n * 2
    return n


@program((A, 3), (A, -3))
def none_default(x, n):
    weights = None
    if weights is None:
        weights = np.ones_like(x)
    if n > 0:
        weights = weights * n
    return weights * x


@program(4.0, -4.0)
def assigned_by_walrus(x):
    if (y := x * 2) > 0:
        y += 1
    return y


@program((1.0, 2.0), (2.0, 1.0))
def dicts(a, b):
    state = {"low": a, "high": b}
    if a > b:
        state = {"high": a, "low": b}
    return state


@program(1.0, -1.0)
def deleted(x):
    t = x * 2
    if x > 0:
        y = t
        del t
    else:
        y = -t
        del t
    return y


# -- while


@program(27, 6, 1)
def collatz(n):
    steps = 0
    while n != 1:
        if n % 2 == 0:
            n = n // 2
        else:
            n = 3 * n + 1
        steps += 1
    return steps


@program((48, 36), (17, 5), (0, 4), (7, 0))
def gcd(a, b):
    while b:
        a, b = b, a % b
    return a


@program(0.3 + 0.5j, 2.0 + 0j, -0.75 + 0.1j)
def mandelbrot(c):
    z = 0j
    n = 0
    while abs(z) <= 2 and n < 50:
        z = z * z + c
        n += 1
    return n


@program((2.0, 1e-9), (9.0, 1e-3), (0.5, 1e-12))
def sqrt_newton(x, tolerance):
    y = x
    while abs(y * y - x) > tolerance:
        y = (y + x / y) / 2
    return y


@program((0.0, 2.0), (1.0, 1.9))
def bisection(low, high):
    while high - low > 1e-9:
        mid = (low + high) / 2
        if mid * mid * mid < 3:
            low = mid
        else:
            high = mid
    return low


@program(10, 0, 5)
def while_true(n):
    total = 0
    while True:
        if total >= n:
            break
        total += 3
    return total


@program(20, 3)
def while_continue(n):
    i = 0
    odd = 0
    while i < n:
        i += 1
        if i % 2 == 0:
            continue
        odd += i
    return odd


@program(5, 0, 11)
def while_else(n):
    i = 0
    found = 5
    while i < 10:
        if i == n:
            found = 1
            break
        i += 1
    else:
        found = 0
    return found, i


@program(30, 7)
def return_inside(n):
    i = 2
    while i * i <= n:
        if n % i == 0:
            return i
        i += 1
    return n


@program((3, 4), (0, 2), (5, 0))
def nested_whiles(n, m):
    total = 0
    i = 0
    while i < n:
        j = 0
        while j < m:
            if j > i:
                break
            total += i * j
            j += 1
        i += 1
    return total


@program(100, 1, 0)
def digits(n):
    count = 0
    while n > 0:
        n //= 10
        count += 1
    return max(count, 1)


@program((2.0, 10), (1.5, 3), (3.0, 0))
def power(x, n):
    result = 1.0
    while n:
        if n & 1:
            result *= x
        x *= x
        n >>= 1
    return result


@program(6.0, 0.5)
def int_becomes_float(x):
    total = 0
    while total < x:
        total += 0.75
    return total


@program(A)
def walrus_in_while(x):
    i = 0
    total = 0.0
    while (y := x[i]) > -4:
        total += y
        i += 1
    return total, i


@program(3, 8, 1)
def first_flag(n):
    first = True
    total = 0
    while n > 0:
        if first:
            total = 100
            first = False
        else:
            total += n
        n -= 1
    return total


# -- for


@program(0, 1, 5)
def range_of_traced(n):
    total = 0
    for i in range(n):
        total += i * i
    return total


@program((1, 10, 3), (10, 1, -3), (5, 5, 1), (0, 7, 2))
def range_of_three(a, b, c):
    total = 0
    for i in range(a, b, c):
        total = total * 3 + i
    return total


@program((N, 4), (N, 7), (N, 3))
def index_of(x, v):
    for i in range(len(x)):
        if x[i] == v:
            return i
    return -1


@program((A, 2.5), (A, 100.0), (A, 3.0))
def first_above(x, limit):
    found = 0.0
    for v in x:
        if v > limit:
            found = v
            break
    return found


@program(2.0, 7.0)
def newton_break(x):
    y = 1.0
    for i in range(50):
        step = (y * y - x) / (2 * y)
        y = y - step
        if abs(step) < 1e-9:
            break
    return y, i


@program(A, -A, np.abs(A))
def skip_negative(x):
    total = 0.0
    for v in x:
        if v < 0:
            continue
        total += v
    return total


@program((N, 9), (N, 100), (N, 3))
def for_else(x, v):
    where = -1
    for i in range(len(x)):
        if x[i] == v:
            where = i
            break
    else:
        where = 99
    return where


@program((N, 5), (N, 1))
def enumerated(x, v):
    for i, y in enumerate(x):
        if y == v:
            return i * 10
    return -1


@program((A, A * 2), (A, A - 1), (A, A))
def zipped(x, y):
    count = 0
    for a, b in zip(x, y, strict=True):
        if a > b:
            break
        count += 1
    return count


@program((N, 1), (N, 7))
def reverse_search(x, v):
    for i in reversed(range(8)):
        if x[i] == v:
            return i
    return -1


@program(4, 9)
def over_a_list(n):
    for p in [2, 3, 5, 7]:
        if p >= n:
            return p
    return 0


@program((5, 3), (2, 9), (0, 0))
def nested_break(n, m):
    total = 0
    for i in range(n):
        for j in range(m):
            if i * j > 6:
                break
            if j == i:
                continue
            total += 10 * i + j
    return total


@program((N.reshape(2, 4), 5), (N.reshape(2, 4), 8))
def return_from_two_loops(x, v):
    for i in range(2):
        for j in range(4):
            if x[i, j] == v:
                return i, j
    return -1, -1


@program(5, 0)
def index_after_loop(n):
    i = -1
    for i in range(n):
        pass
    return i


@program(7, 2)
def fibonacci(n):
    a, b = 0, 1
    for _ in range(n):
        a, b = b, a + b
    return a


@program((A, 3), (A, 0), (A, 8))
def prefix_sum(x, n):
    total = np.zeros(())
    for i in range(n):
        total = total + x[i]
    return total


# -- and, or, not, comparisons, conditional expressions, builtins


@program((N, 3), (N, 8), (N, 20))
def guarded_index(x, i):
    if i < 8 and x[i] > 3:
        return 1
    return 0


@program((N, 3), (N, 8))
def or_guard(x, i):
    if i >= 8 or x[i] == 1:
        return 10
    return 20


@program((1, 2), (0, 2), (3, 0), (0, 0))
def and_value(a, b):
    return a and b, a or b, not a


@program(1, 5, 10, 0)
def chained(x):
    if 0 < x < 10:
        return x * 2
    return x


@program((1.0, 2.0, 3.0), (3.0, 2.0, 1.0), (1.0, 3.0, 2.0))
def chain_of_three(a, b, c):
    return a < b < c, a <= b <= c != 3.0


@program(2.0, -2.0)
def conditional(x):
    return x if x > 0 else -x


@program((1, 2), (2, 1), (5, 5))
def min_max(a, b):
    return min(a, b), max(a, b), min(a, b, 3), max(1, a)


@program((np.nan, 1.0), (1.0, np.nan))
def max_of_nan(a, b):
    return max(a, b), min(a, b)


@program(N, A)
def max_of_array(x):
    return max(x), min(x)


@program(2.7, -2.7, 0.0)
def numbers(x):
    return int(x), float(x), bool(x), abs(x)


@program(N)
def any_all(x):
    return any(v > 8 for v in x), all(v > 0 for v in x)


@program((2, 3), (-1, 3), (2, -1))
def not_both(a, b):
    if not (a > 0 and b > 0):
        return 0
    return a * b


@program((True, 1), (False, 1), (False, 0))
def truth_of_numbers(flag, n):
    if flag or n:
        return 1
    return 0


# -- arrays updated in place


@program((A, 4.0), (A, -9.0))
def update_in_if(x, limit):
    y = x.copy()
    if y[2] >= limit:
        y[0] = 100
        y[1:3] *= 2
    else:
        y[-1] = 0
    return y


@program((A, 5), (A, 0))
def update_in_loop(x, n):
    y = x.copy()
    for i in range(n):
        y[i] = y[i - 1] + 1
    return y


@program(N, np.sort(N))
def bubble(x):
    y = x.copy()
    swapped = True
    while swapped:
        swapped = False
        for i in range(len(x) - 1):
            if y[i] > y[i + 1]:
                t = y[i] + 0
                y[i] = y[i + 1]
                y[i + 1] = t
                swapped = True
    return y


@program((N, 5), (N, 0), (N, 10))
def insertion_point(x, v):
    y = np.sort(x)
    low = 0
    high = len(y)
    while low < high:
        mid = (low + high) // 2
        if y[mid] < v:
            low = mid + 1
        else:
            high = mid
    return low


@program((A, 2.0), (A, 20.0))
def alias_sees_it(x, v):
    y = x.copy()
    z = y
    if v > 10:
        z[0] = v
    return y + z


def clip_below(y, low):
    for i in range(len(y)):
        if y[i] < low:
            y[i] = low


@program((A, 0.0), (A, 3.0))
def callee_updates(x, low):
    y = x.copy()
    clip_below(y, low)
    return y


@program((20, 1), (20, 0))
def sieve(n, keep):
    prime = np.ones(21, bool).copy() & (keep == keep)
    i = 2
    while i * i <= n:
        if prime[i]:
            j = i * i
            while j <= n:
                prime[j] = False
                j += i
        i += 1
    return prime


@program((A, 3.0), (A, 50.0))
def matrix_in_branch(x, v):
    m = np.outer(x, x)
    if m.sum() > v:
        m = m / 2
        m[0] = 1
    return m


# -- functions, closures


def match_pair(a, b):
    if a + b == 3:
        return 1
    else:
        return 0


@program(np.array([0, 3, 1, 2]), np.array([1, 2, 2, 1]))
def nussinov(seq):
    n = 4
    table = np.zeros((n, n), np.int64) + seq[0] * 0
    for i in range(n - 1, -1, -1):
        for j in range(i + 1, n):
            if j - 1 >= 0:
                table[i, j] = max(table[i, j], table[i, j - 1])
            if i + 1 < n:
                table[i, j] = max(table[i, j], table[i + 1, j])
            if j - 1 >= 0 and i + 1 < n:
                if i < j - 1:
                    table[i, j] = max(table[i, j], table[i + 1, j - 1] + match_pair(seq[i], seq[j]))
                else:
                    table[i, j] = max(table[i, j], table[i + 1, j - 1])
            for k in range(i + 1, j):
                table[i, j] = max(table[i, j], table[i, k] + table[k + 1, j])
    return table


@program(np.array([1, 2, 3], np.uint8), np.array([255, 0], np.uint8))
def crc16(data):
    crc = 0xFFFF
    for b in data.astype(np.int64):
        cur_byte = 0xFF & b
        for _ in range(0, 8):
            if (crc & 0x0001) ^ (cur_byte & 0x0001):
                crc = (crc >> 1) ^ 0x8408
            else:
                crc >>= 1
            cur_byte >>= 1
    crc = ~crc & 0xFFFF
    crc = (crc << 8) | ((crc >> 8) & 0xFF)
    return crc & 0xFFFF


@program((3.0, 1), (-3.0, 0))
def inner_function(x, n):
    def step(y):
        if y > 0:
            return y - 1
        return y + 1

    for _ in range(3):
        x = step(x)
    return x + n


@program(3.0, -3.0)
def lambda_inside(x):
    clip = lambda v: v if v > 0 else 0.0  # noqa: E731
    return clip(x) + clip(-x)


def factorial_like(n, acc):
    while n > 1:
        acc = acc * n
        n = n - 1
    return acc


@program(5, 0, 1)
def callee_loops(n):
    return factorial_like(n, 1) + factorial_like(3, 1)


class Model:
    def __init__(self, limit):
        self.__limit = limit

    def bounded(self, x):
        if x > self.__limit:
            x = self.__limit
        return x


class Louder(Model):
    def bounded(self, x):
        if x > 0:
            x = super().bounded(x) * 2
        return x


@program(1.0, 9.0, -1.0)
def method(x):
    return Louder(5.0).bounded(x)


@program(3, 0)
def keyword_only(n, *, step=2):
    total = 0
    for i in range(0, n, step):
        total += i + 1
    return total


@program(2.0, -2.0)
def with_inside(x):
    with np.errstate(all="ignore"):
        if x > 0:
            y = np.sqrt(x)
        else:
            y = x * 0
    return y


@program(2, 5)
def try_inside(n):
    total = 0
    try:
        while n > 0:
            total += n
            n -= 1
    finally:
        total += 100
    return total


@program((3, 1.0), (0, 1.0))
def late_closure(n, x):
    scale = 1.0
    times = lambda v: v * scale  # noqa: E731
    if n > 1:
        scale = 10.0
    return times(x)


@program(5, 0)
def bound_by_an_inner_function(n):
    count = 0

    def bump(v):
        nonlocal count
        if v > 0:
            count = count + v

    for i in range(n):
        bump(i - 1)
    return count


@program(1.0, -1.0)
def annotated(x: float) -> float:
    y: float = x
    if y > 0:
        z: float
        z = 3.0
        y: float = y * z
    return y


@program((N, 3), (N, 0))
def tuple_targets(x, n):
    pair = (0, 1)
    for i in range(n):
        a, (b, c) = pair[0], (pair[1], x[i])
        pair = (b, a + c)
    return pair


@program(3, -1)
def return_none(n):
    if n > 0:
        return None
    n = n + 1
    return None


MEMORY = np.arange(4.0).tobytes()


@program(A)
def made_by_the_class(x):
    rows = np.ndarray((2, 8), dtype=x.dtype)
    sums = np.ndarray(8, order="F")
    rows[0], rows[1] = x, 2 * x
    sums[:] = rows.sum(axis=0)
    lent = np.ndarray(2, np.float64, MEMORY, 8)  # another's memory: no array of the program
    return rows, sums, x[0] * lent.sum(), isinstance(lent, np.ndarray)


@program((A, 2.75, 3), (A, -2.75, 0))
def cast_by_the_class(x, y, n):
    made = np.float32(x), np.int32(y), np.float64(n) / 2, np.bool_(n), np.uint8(7) + np.int64(n)
    return made, [one.itemsize for one in made]


EXTRA = tn.convert_control(match_pair)


@program((1, 2), (1, 1))
def decorated(a, b):
    return EXTRA(a, b) * 10
