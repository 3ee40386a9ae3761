"""Compiling in the background, ahead, and for shapes that vary."""

import os
import subprocess
import sys
import textwrap
import threading

import numpy as np
import pytest
from faults import plant

import tenfold as tn
from tenfold.promote import background, submit

X = np.linspace(0, 1, 12).reshape(4, 3)


def double(x):
    return np.tanh(x) * 2


def test_the_evaluator_answers_until_the_plan_is_ready():
    gate = threading.Event()
    submit(gate.wait)  # whatever comes next waits behind this
    f = tn.jit(double, compile="background")
    for _ in range(3):
        np.testing.assert_array_equal(f(X), double(X))  # the reference's own bits
    assert not f.ready(0.01)
    gate.set()
    assert f.ready(60)
    np.testing.assert_allclose(f(X), double(X), rtol=1e-14)
    assert f.certificate(X) is not None
    assert f.traces == 1
    assert type(type(f).__call__).__name__ == "builtin_function_or_method"


def test_a_job_gives_way_to_calls():
    """The thread that compiles keeps nobody waiting for the interpreter as long as threads do."""
    with background._worker.busy:  # no job of another test is at its end
        before = sys.getswitchinterval()
    job = submit(sys.getswitchinterval)
    job.done.wait(60)
    assert job.result <= before / 10
    with background._worker.busy:  # its job is wholly over
        assert sys.getswitchinterval() == before
    try:
        submit(lambda: sys.setswitchinterval(0.25)).done.wait(60)
        with background._worker.busy:
            assert sys.getswitchinterval() == 0.25  # the user's wish stays
    finally:
        sys.setswitchinterval(before)


def test_a_patient_job_lets_others_pass_and_waits_for_quiet():
    order = []
    first = background.submit(lambda: order.append("patient"), patient=3600.0)
    for number in range(3):
        assert background.submit(lambda n=number: order.append(n)).done.wait(60)
    assert order == [0, 1, 2]
    assert not first.done.is_set()
    assert background.submit(lambda: order.append("less so"), patient=0.001).done.wait(60)
    assert not first.done.is_set()
    first.patient = 0.001
    assert background.submit(lambda: order.append("last"), patient=0.001).done.wait(60)
    assert first.done.is_set()
    assert order == [0, 1, 2, "less so", "patient", "last"]


def test_callbacks_run_once_a_call():
    seen = []
    f = tn.jit(lambda x: tn.hook("h", x * 2, seen.append) + 1, compile="background")
    for n in range(4):
        f(X)
        assert len(seen) == n + 1
        assert f.ready(60)


def test_a_refuted_plan_is_told_once_and_never_answers():
    def f(x):
        return np.exp(x) * 2

    with plant("instruction", "exp>exp2"):
        g = tn.jit(f, compile="background")
        g(X)
        assert g.ready(60)
        with pytest.warns(tn.ParityWarning, match="exp") as told:
            np.testing.assert_array_equal(g(X), f(X))
        assert told[0].filename == __file__  # the call's own line
        np.testing.assert_array_equal(g(X), f(X))  # and no more words
        h = tn.jit(f, compile="background", strict=True)
        h(X)
        assert h.ready(60)
        for _ in range(2):
            with pytest.raises(tn.ParityError, match="exp"):
                h(X)


def test_a_failing_compiler_is_told_once(monkeypatch):
    f = tn.jit(lambda x: x * 3, compile="background")

    def broken(*args):
        raise MemoryError("no room")

    monkeypatch.setattr(type(f), "_promote", broken)
    f(X)
    f.ready(60)
    with pytest.warns(UserWarning, match="no room"):
        np.testing.assert_array_equal(f(X), X * 3)
    np.testing.assert_array_equal(f(X), X * 3)


def test_warming_up():
    tn.stats.reset()
    f = tn.jit(lambda x: np.cos(x) * 1.75)
    f.warm(tn.spec((4, 3)))
    assert tn.stats()["plans"] == 1
    f(X)
    assert (tn.stats()["plans"], f.traces) == (1, 1)
    g = tn.jit(lambda x: np.cos(x) * 2.75, compile="background")
    g.warm(tn.spec((4, 3)))
    assert g.ready(60)


def run_python(text):
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(text)], capture_output=True, text=True, timeout=120,
        check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_the_process_may_end_in_the_middle():
    run_python(
        """
        import numpy as np, tenfold as tn
        for i in range(20):
            tn.jit(lambda x: np.sin(x * i) + i, compile="background")(np.ones(10))
        """
    )


def test_calls_are_answered_while_the_process_ends():
    out = run_python(
        """
        import atexit, numpy as np, tenfold as tn
        f = tn.jit(lambda x: np.sin(x) + 1, compile="background")
        x = np.ones(3)
        def last():
            g = tn.jit(lambda x: np.cos(x) + 1, compile="background")
            print(all(np.allclose(f(x), np.sin(x) + 1) for _ in range(3)),
                  all(np.allclose(g(x), np.cos(x) + 1) for _ in range(3)))
        atexit.register(last)
        f(x)
        import tenfold.promote.background as background
        atexit.register(background._worker.close)  # handlers run last first: closed, then asked
        """
    )
    assert out == "True True\n"


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system has no fork")
def test_fork_in_the_middle():
    out = run_python(
        """
        import os, numpy as np, tenfold as tn
        f = tn.jit(lambda x: np.sin(x) + 1, compile="background")
        x = np.ones(10)
        f(x)
        pid = os.fork()
        same = np.allclose(f(x), np.sin(x) + 1) and f.ready(60) and np.allclose(f(x), np.sin(x) + 1)
        f(x); ready = f.ready(60)
        if pid == 0:
            os._exit(0 if same and ready else 1)
        print(same, ready, os.waitpid(pid, 0)[1])
        """
    )
    assert out == "True True 0\n"


def test_buckets_share_plans():
    f = tn.jit(lambda x, w: np.tanh(x @ w).sum(axis=1), buckets={"x": [2, 8]})
    w = np.ones((3, 5))
    tn.stats.reset()
    for rows in (1, 2, 3, 5, 8, 11, 16):
        x = np.arange(rows * 3.0).reshape(rows, 3) / 10
        got = f(x, w)
        assert got.shape == (rows,)
        np.testing.assert_allclose(got, np.tanh(x @ w).sum(axis=1), rtol=1e-13)
    assert tn.stats()["plans"] == 3  # 2, 8 and 16 rows


def test_buckets_are_warmed_and_looked_at_padded():
    f = tn.jit(lambda x: np.tanh(x) * 2, buckets={"x": [2, 8]})
    tn.stats.reset()
    f.warm(tn.spec((5, 3)))
    assert tn.stats()["plans"] == 1
    assert f(np.ones((7, 3))).shape == (7, 3)
    assert tn.stats()["plans"] == 1  # that of eight rows
    assert f.plan(np.ones((3, 3))).graph.parameters[0].type.shape == (8, 3)
    assert f.certificate(np.ones((6, 3))).inputs == ("f64[8,3]",)
    with pytest.raises(tn.TenfoldError, match="reduce_sum runs over the rows"):
        tn.jit(lambda x: x.sum(axis=0), buckets={"x": [4]}).warm(tn.spec((3, 3)))


def test_buckets_refuse_what_mixes_rows():
    with pytest.raises(tn.TenfoldError, match="reduce_sum runs over the rows"):
        tn.jit(lambda x: x.sum(axis=0), buckets={"x": [8]})(X)
    with pytest.raises(tn.TenfoldError, match="depends on the number of rows"):
        tn.jit(lambda x: x / len(x), buckets={"x": [8]})(X)
    with pytest.raises(tn.TenfoldError, match="no array argument"):
        tn.jit(lambda x: x, buckets={"y": [4]})(X)
    with pytest.raises(tn.TenfoldError, match="whole numbers"):
        tn.jit(lambda x: x, buckets={"x": []})(X)
    with pytest.raises(tn.TenfoldError, match="different numbers of rows"):
        tn.jit(lambda x, y: x, buckets={"x": [4], "y": [4]})(X, X[:2])
