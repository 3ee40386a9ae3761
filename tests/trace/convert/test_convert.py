"""How a function is converted: its name, its captures, its lines, and what is said of them."""

from __future__ import annotations

import inspect
import pickle
import threading

import numpy as np
import pytest

import tenfold as tn

LIMIT = 2.0
WEIGHTS = np.arange(20.0)


def limited(x, low=-1.0, *, scale=1.0):
    """Bounded on both sides."""
    if x > LIMIT:
        return LIMIT * scale
    if x < low:
        return low * scale
    return x * scale


def test_a_converted_function_is_the_same_from_outside():
    made = tn.convert_control(limited)
    assert made is tn.convert_control(limited)
    assert tn.convert_control(made) is made
    assert (made.__name__, made.__qualname__, made.__module__, made.__doc__) == (
        limited.__name__,
        limited.__qualname__,
        limited.__module__,
        limited.__doc__,
    )
    assert inspect.signature(made) == inspect.signature(limited)
    assert made.__defaults__ is limited.__defaults__
    assert made.__globals__ is limited.__globals__
    assert pickle.loads(pickle.dumps(limited)) is limited


def test_globals_and_closures_are_read_as_they_are(monkeypatch):
    bound = [3.0]

    def clipped(x):
        if x > bound[0]:
            x = bound[0]
        if x > LIMIT:
            x = LIMIT
        return x

    f = tn.jit(clipped, control="convert")
    assert f(9.0) == 2.0
    monkeypatch.setitem(globals(), "LIMIT", 1.0)
    assert f(9.0) == 1.0
    bound[0] = 0.5
    assert f(9.0) == 0.5
    assert f.traces == 3


def test_captures_are_those_of_the_function():
    gain = 2.0

    def weighed(x):
        if x.sum() > 0:
            return x * WEIGHTS * gain
        return x

    converted = tn.jit(weighed, control="convert")
    decorated = tn.jit(tn.convert_control(weighed))
    x = np.ones(20)
    np.testing.assert_array_equal(converted(x), decorated(x))
    said = converted.explain_captures()
    assert said == decorated.explain_captures()
    assert "WEIGHTS" in said
    assert "gain" in said
    assert "@" not in said


def test_lines_of_nodes_are_the_users():
    def halves(x):
        while x.sum() > 1:
            x = x / 2
        return x

    graph = tn.jit(halves, control="convert").trace(np.ones(20))
    lines, first = inspect.getsourcelines(halves)
    sources = [node.source for g in (*graph.scopes(), graph) for node in g.nodes]
    assert {s.file for s in sources} == {__file__}
    assert {s.function for s in sources} == {"halves"}
    assert first + 2 in {s.line for s in sources}
    assert all(first <= s.line < first + len(lines) for s in sources)


def test_what_is_known_costs_nothing():
    def many(x, *, verbose=False):
        y = x
        if verbose:
            y = None
        elif LIMIT > 0 and not verbose:
            for _ in range(3):
                y = y + 1 if verbose is False else y
        while False:
            y = y * 2
        return y

    plain = tn.jit(lambda x: x + 1 + 1 + 1)
    assert len(tn.jit(many, control="convert").trace(1.0).nodes) == len(plain.trace(1.0).nodes)


def test_what_is_said_of_each_line():
    @tn.jit(control="convert")
    def told(x, n):
        total = 0.0
        for v in x:
            if v < 0:
                break
            total = total + v
        if len(x) > 2:
            total = total * 2
        if n > 0 and total > 0:
            x = x * total
        return total, x

    assert "call it first" in told.explain_control()
    told(np.arange(4.0), 1)
    first = told.__wrapped__.__code__.co_firstlineno
    said = told.explain_control().splitlines()
    assert said[0].endswith("test_convert.py")
    assert said[1:] == [
        f"  line {first + 3}: for → while_loop, carries total, v",
        f"  line {first + 4}: if → select, both sides being small",
        f"  line {first + 7}: if → Python (what is tested is known while tracing)",
        f"  line {first + 9}: and → select, both sides being small",
        f"  line {first + 9}: if → cond",
    ]


def test_long_loops_are_loops_of_the_program():
    def long(x):
        y = x.copy()
        for i in range(500):
            y[i % 20] = y[i % 20] * 0.5 + i
        return y

    f = tn.jit(long, control="convert")
    assert len(f.trace(WEIGHTS).nodes) < 300
    assert "fori_loop" in f.explain_control()
    np.testing.assert_allclose(f(WEIGHTS), long(WEIGHTS), rtol=1e-12)


@pytest.mark.parametrize("kind", ["slices", "numbers"])
def test_long_loops_that_need_python_stay(kind):
    def slices(x):
        y = x.copy()
        for i in range(100):
            y[: i % 20] += 1
        return y

    def numbers(x):
        y, seed = x.copy(), 7
        for _ in range(100):
            seed = seed * 1103515245 % 2**61  # more than 64 bits on the way
            y = y + seed % 7 - 0.5
        return y

    function = {"slices": slices, "numbers": numbers}[kind]
    f = tn.jit(function, control="convert", compile="never")
    np.testing.assert_allclose(f(WEIGHTS), function(WEIGHTS), rtol=1e-12)
    assert "a loop of the program fails" in f.explain_control()


class Pendulum:
    def __init__(self, damping):
        self.damping = damping

    @tn.jit(control="convert")
    def settle(self, angle):
        steps = 0
        while abs(angle) > 0.01:
            angle = angle * self.damping
            steps += 1
        return steps


def test_methods():
    def steps(damping):
        angle, count = 1.0, 0
        while abs(angle) > 0.01:
            angle, count = angle * damping, count + 1
        return count

    for damping in (0.5, 0.9):
        assert Pendulum(damping).settle(1.0) == steps(damping)


def test_vmap_of_a_converted_function():
    @tn.convert_control
    def collatz(n):
        steps = 0
        while n != 1:
            n = n // 2 if n % 2 == 0 else 3 * n + 1
            steps += 1
        return steps

    numbers = np.array([1, 6, 27, 97])
    np.testing.assert_array_equal(tn.vmap(collatz)(numbers), [collatz(int(n)) for n in numbers])


def test_jitted_functions_inside():
    inner = tn.jit(limited, control="convert")
    outer = tn.jit(lambda x: inner(x) + 1)
    assert [outer(v) for v in (9.0, 0.5, -9.0)] == [3.0, 1.5, 0.0]


def test_threads_convert_at_once():
    found = []

    def work():
        def doubled(x):
            return x * 2 if x > 0 else x

        found.append(tn.jit(doubled, control="convert", compile="never")(3.0))

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == [6.0] * 4
