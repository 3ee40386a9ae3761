"""jit compiles: plans, counts, calls of native code, threads, fork, interrupts."""

import os
import signal
import subprocess
import sys
import textwrap
import threading

import numpy as np
import pytest

import tenfold as tn
from tenfold.cache import Plans

X = np.linspace(0.1, 2.0, 24).reshape(4, 6)


def softmax(x):
    e = np.exp(x - x.max(axis=1, keepdims=True))
    return e / e.sum(axis=1, keepdims=True)


def is_native(f):
    return type(type(f).__call__).__name__ == "builtin_function_or_method"


def test_a_plan_is_there_to_look_at():
    f = tn.jit(softmax)
    plan = f.plan(X)
    assert len(plan.kernels) == 1
    assert len(plan.steps) == 1
    assert plan.host_steps == ()
    assert plan.peak_bytes >= 0
    assert plan.slots
    assert "exp" in plan.explain()
    assert "test_compile.py" in plan.explain()
    np.testing.assert_allclose(f(X), softmax(X), rtol=1e-14)


def test_counts():
    tn.stats.reset()
    f = tn.jit(lambda x: np.sin(x) * 3.25)
    f(X), f(X)
    first = tn.stats()
    assert (first["traces"], first["plans"], first["cache_misses"]) == (1, 1, 1)
    g = tn.jit(lambda y: np.sin(y) * 3.25)  # an equal program
    g(X)
    again = tn.stats()
    assert (again["traces"], again["plans"], again["cache_hits"]) == (2, 1, 1)
    assert again["kernels_compiled"] == first["kernels_compiled"]
    assert set(again["seconds"]) == {"trace", "plan", "compile", "load"}


def test_never_compiling():
    tn.stats.reset()
    f = tn.jit(softmax, compile="never")
    np.testing.assert_array_equal(f(X), softmax(X))
    assert tn.stats()["plans"] == 0
    with pytest.raises(tn.TenfoldError, match="no way to compile"):
        tn.jit(softmax, compile="sometimes")


def test_plans_are_bounded():
    cache = Plans(capacity=3)
    graphs = [tn.trace(lambda x: x * 2 + 1, np.ones(n)) for n in range(1, 6)]
    made = [cache.get(graph) for graph in graphs]
    assert len(cache) == 3
    assert cache.get(graphs[-1]) is made[-1]
    assert cache.get(graphs[0]) is not made[0]


def test_flat_calls_go_straight_to_native_code():
    f = tn.jit(lambda x, y: x * y + 1)
    want = f(X, X)
    assert is_native(f)
    np.testing.assert_array_equal(f(X, X), want)
    np.testing.assert_array_equal(f(y=X, x=X), want)  # by name: taken by Python
    np.testing.assert_allclose(f(X[:, ::-1], X), X[:, ::-1] * X + 1, rtol=1e-15)
    assert f.traces == 1
    with pytest.raises(TypeError):
        f(X)


def test_every_signature_has_its_plan():
    f = tn.jit(lambda x: x * 2)
    shapes = [np.ones(n) for n in range(1, 8)]
    for _ in range(2):
        for x in shapes:
            assert f(x).shape == x.shape
    assert f.traces == len(shapes)
    assert f(np.ones(2, "f4")).dtype == np.float32


def test_native_code_sees_a_rebound_array():
    w = np.arange(6.0)
    f = tn.jit(lambda x: x * w)
    np.testing.assert_array_equal(f(X), X * w)
    assert is_native(f)
    w = w + 1
    np.testing.assert_array_equal(f(X), X * w)
    np.testing.assert_array_equal(f(X), X * w)
    assert f.traces == 1
    w[:] = 0  # in place: unseen until refresh
    np.testing.assert_array_equal(f(X), X * np.arange(1, 7))
    f.refresh()
    np.testing.assert_array_equal(f(X), X * 0)


def test_native_code_sees_a_changed_setting():
    k = 2.0
    f = tn.jit(lambda x: x * k)
    assert f(X)[0, 0] == X[0, 0] * 2
    k = 3.0
    assert f(X)[0, 0] == X[0, 0] * 3
    k = float("2")
    assert f(X)[0, 0] == X[0, 0] * 2
    assert f.traces == 2


def test_containers_through_native_code():
    f = tn.jit(lambda p, n, *, k=1.0: {"y": [p["a"] * n, (p["b"], k)], "n": n + 1})
    for _ in range(3):
        out = f({"a": X, "b": X}, 3, k=2.0)
        np.testing.assert_array_equal(out["y"][0], X * 3)
        assert (out["y"][1][1], out["n"]) == (2.0, 4)
        assert type(out["n"]) is int
    assert f.traces == 1
    assert f({"a": X, "b": X}, 3)["y"][1][1] == 1.0
    assert f({"b": X, "a": X.astype("f4")}, n=2)["y"][0].dtype == np.float32
    with pytest.raises(KeyError):
        f({"a": X, "c": X}, 3)
    with pytest.raises(TypeError):
        f({"a": X, "b": X}, 3, other=1)


def test_scalars_and_numbers():
    f = tn.jit(lambda x, s: (x * s).sum())
    assert f(X, np.float64(2)) == pytest.approx(X.sum() * 2)
    assert f(X, 2.0) == pytest.approx(X.sum() * 2)
    assert type(f(X, 2.0)) is np.float64


def test_outputs_are_the_callers_own():
    f = tn.jit(lambda x: (x, x + 1, x))
    for _ in range(3):
        a, b, c = f(X)
        a[:] = 0
        b[:] = 0
        np.testing.assert_array_equal(c, X)


def test_many_threads_run_one_plan():
    f = tn.jit(lambda x: tn.scan(lambda c, row: (np.sin(c) + row, c.sum()), x[0], x))
    inputs = [X + i for i in range(16)]
    want = [f(x) for x in inputs]
    wrong = []

    def run(i):
        for _ in range(50):
            got = f(inputs[i])
            if not all(np.array_equal(a, b) for a, b in zip(got, want[i], strict=True)):
                wrong.append(i)

    threads = [threading.Thread(target=run, args=(i,)) for i in range(16)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert wrong == []


def test_a_hook_may_call_its_own_plan():
    results, left = [], [3]

    def again(value):
        if left[0]:
            left[0] -= 1
            results.append(f(value + 1).tolist())

    f = tn.jit(lambda x: tn.hook("h", x * 2, again) + 1)
    assert f(np.zeros(2)).tolist() == [1, 1]
    assert results == [[15, 15], [7, 7], [3, 3]]


def test_a_raising_hook_leaves_everything_usable():
    f = tn.jit(lambda x: tn.hook("h", x * 2, lambda v: 1 / 0) + 1)
    for _ in range(3):
        with pytest.raises(ZeroDivisionError):
            f(X)
    np.testing.assert_array_equal(f.with_hooks({"h": None})(X), X * 2 + 1)


def test_an_index_out_of_range_is_the_evaluators_error():
    f = tn.jit(lambda x, i: x[i] * 2)
    assert f(np.arange(3.0), np.array([0, 2])).tolist() == [0, 4]
    with pytest.raises(IndexError, match=r"test_compile\.py"):
        f(np.arange(3.0), np.array([0, 3]))
    assert f(np.arange(3.0), np.array([0, -1])).tolist() == [0, 4]


def test_strict_mode_is_another_plan():
    f, g = tn.jit(softmax), tn.jit(softmax, strict=True)
    np.testing.assert_allclose(f(X), g(X), rtol=1e-14)


_X, _Y, _Z = (np.full(8, value, np.float32) for value in (1, 2, 3))


@pytest.mark.parametrize(
    ("function", "calls"),
    [
        (
            lambda a, b, c: a + b * c,
            [
                ((_X, _Y, _Z), {}), ((_X,), {"b": _Y, "c": _Z}), ((), {"c": _Z, "a": _X, "b": _Y}),
                ((_X, _Y), {"b": _Z}), ((_X, _Y, _Z), {"a": _Z}), ((_X, _Y), {}),
                ((_X,), {"c": _Z}),
            ],
        ),
        (lambda a, *, b, c: a + b * c, [((_X,), {"b": _Y, "c": _Z}), ((_X, _Y, _Z), {})]),
        (lambda a, /, b: a - b, [((_X, _Y), {}), ((_X,), {"b": _Y}), ((), {"a": _X, "b": _Y})]),
        (lambda *a: sum(a), [((_X, _Y, _Z), {}), ((_X, _Y), {}), ((_X,), {}), ((_Z,) * 4, {})]),
        (lambda a, *b: a - sum(b), [((_X, _Y, _Z), {}), ((_X,), {}), ((), {"a": _X})]),
        (lambda a, b=_Y: a - b, [((_X, _Z), {}), ((_X,), {}), ((), {"a": _X}), ((), {"b": _X})]),
        (lambda a, **k: a - k["q"], [((_X,), {"q": _Y}), ((_X,), {"a": _Y, "q": _Z})]),
        (
            lambda a, b=2: a[0] - b,
            [(((_X,),), {}), (((_X,), _Y), {}), (([_X],), {"b": 3}), (((_X, _Y),), {"b": _Z})],
        ),
    ],
)  # fmt: skip
def test_calls_of_every_kind_do_as_python_does(function, calls):
    def outcome(f, args, kwargs):
        try:
            return f(*args, **kwargs).tolist()
        except TypeError:
            return TypeError

    f = tn.jit(function)
    for _ in range(3):
        for args, kwargs in calls:
            assert outcome(f, args, kwargs) == outcome(function, args, kwargs)


@pytest.mark.parametrize(
    ("function", "args", "kwargs"),
    [
        (lambda a, b, c: a + b * c, (_X,), {"b": _Y, "c": _Z}),
        (lambda a, *, b: a - b, (_X,), {"b": _Y}),
        (lambda *a: a[0] - a[1], (_X, _Y), {}),
        (lambda a, *b: a - b[0], (_X, _Y), {}),
        (lambda d: d["x"][0] - d["y"], ({"x": (_X,), "y": _Y},), {}),
        (lambda a, n: a * n, (_X, 3), {}),
    ],
)
def test_the_second_call_needs_no_python(function, args, kwargs, monkeypatch):
    f = tn.jit(function)
    wanted = f(*args, **kwargs).tolist()

    def never(*_):
        raise AssertionError("the slow way")

    monkeypatch.setattr(type(f), "_run", never)
    assert f(*args, **kwargs).tolist() == wanted


def run_python(text: str, **more):
    return subprocess.Popen(
        [sys.executable, "-c", textwrap.dedent(text)], stdout=subprocess.PIPE, text=True, **more
    )


def test_control_c_stops_an_endless_loop():
    child = run_python(
        """
        import time, numpy as np, tenfold as tn
        def forever(x):
            return tn.while_loop(lambda s: s[0] >= 0, lambda s: (s[0] * 0, s[1] + 1), (x, 0))
        f = tn.jit(forever)
        g = tn.jit(lambda x: tn.while_loop(lambda s: s < 3, lambda s: s + 1, x))
        g(np.float64(0))
        f.plan(np.float64(0))
        print("ready", flush=True)
        try:
            f(np.float64(0))
        except KeyboardInterrupt:
            print("stopped", time.perf_counter(), flush=True)
        print(g(np.float64(0)), flush=True)
        """
    )
    assert child.stdout.readline() == "ready\n"
    import time

    time.sleep(0.5)
    child.send_signal(signal.SIGINT)
    out, _ = child.communicate(timeout=60)
    assert out.startswith("stopped")
    assert out.endswith("3.0\n")


@pytest.mark.parametrize(
    "body",
    [
        "np.exp(x[:, None] + x[None, :]).sum()",
        "(x[:, None] * x[None, :]).max()",
        "np.exp(x[:, None] + x[None, :]).sum(1)",
        "(x[:, None] >= x[None, :]).sum()",
    ],
)
def test_control_c_stops_an_endless_kernel(body):
    """A single kernel of 1e12 elements or more, and the plan runs again afterwards."""
    child = run_python(
        f"""
        import numpy as np, tenfold as tn
        f = tn.jit(lambda x: {body}, verify="off")
        x = np.zeros(1_000_000, np.float32)
        f.plan(x)
        print("ready", flush=True)
        for _ in range(2):
            try:
                f(x)
            except KeyboardInterrupt:
                print("stopped", flush=True)
        """
    )
    import threading
    import time

    watch = threading.Timer(100, child.kill)
    watch.start()
    assert child.stdout.readline() == "ready\n"
    for _ in range(2):
        time.sleep(0.3)
        child.send_signal(signal.SIGINT)
        assert child.stdout.readline() == "stopped\n"
    child.communicate()
    watch.cancel()


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system has no fork")
def test_fork():
    child = run_python(
        """
        import os, numpy as np, tenfold as tn
        f = tn.jit(lambda x: np.tanh(x) @ x.T)
        x = np.ones((3, 4))
        want = f(x)
        pid = os.fork()
        same = np.array_equal(f(x), want) and tn.jit(lambda x: x * 7 + 1)(x)[0, 0] == 8
        if pid == 0:
            os._exit(0 if same else 1)
        print(same, os.waitpid(pid, 0)[1])
        """
    )
    out, _ = child.communicate(timeout=120)
    assert out == "True 0\n"


def test_replay_makes_no_arrays_but_the_outputs():
    import tracemalloc

    f = tn.jit(lambda x: softmax(np.tanh(x * 2) + 1))
    big = np.random.default_rng(0).normal(size=(256, 256))
    f(big), f(big)
    tracemalloc.start()
    out = f(big)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < out.nbytes + 4096


def test_a_plan_in_memory_is_bounded_by_its_graph():
    import random
    import tracemalloc

    def chain(n):
        def f(x):
            drawn = random.Random(0)  # so that there is no loop to be found
            for i in range(n):
                x = np.sin(x) + x[::-1] if i % 50 == 0 else x * 1.5 + i
                x = x - 0.5 if drawn.random() < 0.5 else np.abs(x)
            return x

        return tn.trace(f, np.ones(64))

    graph = chain(2000)
    cache = Plans()
    cache.get(chain(10))
    tracemalloc.start()
    program = cache.get(graph)
    held, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert program.plan.graph is graph
    assert held / len(graph.nodes) < 2000
