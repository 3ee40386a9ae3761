"""What a call does about its check."""

from __future__ import annotations

import os
import subprocess
import sys
import textwrap
import threading
import warnings
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from importlib import import_module
from pathlib import Path

import numpy as np
import pytest
from faults import plant
from fresh import forget_code

import tenfold as tn
from tenfold.api import checking
from tenfold.cache import keep_verdict, plans
from tenfold.errors import ParityWarning
from tenfold.parity.check import check
from tenfold.promote.background import held, submit

SHORT = """
    import resource
    import numpy as np, tenfold as tn
    x = np.linspace(-1, 1, 1 << 25)
    f = tn.jit(lambda x: np.tanh(x * 1.5) + x)
    f(x[:8])
    with open("/proc/self/statm") as file:
        taken = int(file.read().split()[0]) * resource.getpagesize()
    # Room for the result, but not for what the reference keeps beside it.
    resource.setrlimit(resource.RLIMIT_AS, (taken + (300 << 20),) * 2)
    y = f(x)[::999]
    x = x[::999]
    print(np.allclose(y, np.tanh(x * 1.5) + x))
"""


@pytest.mark.skipif(sys.platform != "linux", reason="memory is limited on Linux")
def test_a_check_without_memory_gives_up_and_the_call_goes_on():
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(SHORT)],
        env={**os.environ, "TENFOLD_CACHE": "off"}, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.stdout == "True\n", done.stderr


@pytest.fixture
def cache(tmp_path, monkeypatch):
    """A disk cache of its own, and no plans or code from before."""
    monkeypatch.setattr(tn.config, "cache", tmp_path / "cache")
    forget_code(monkeypatch)
    yield
    plans.clear()


def subtracted(**options):
    """A program with a fault that its first call does not come to look at."""
    return tn.jit(lambda a, b: a * 2 - b, **{"verify": 0.0, **options})


X = np.linspace(0.1, 1, 64)


def test_a_plan_refuted_while_it_is_bound_does_not_answer(cache, monkeypatch):
    def guarded(program, *given):
        program.checking.done.wait(60)  # the background is done meanwhile
        return tried(program, *given)

    tried = checking.guarded
    monkeypatch.setattr(checking, "guarded", guarded)
    with plant("instruction", "sub>add"):
        f = subtracted()
        f(X, X)
        with pytest.warns(ParityWarning, match=r"disagrees .*\n.*\n.*\n.* 1 calls before"):
            assert np.array_equal(f(X, X), X)
    assert np.array_equal(f(X, X), X)


def test_a_certificate_does_not_open_what_another_check_refuted(cache, monkeypatch):
    monkeypatch.setattr(checking, "go_on", lambda p, *_: setattr(p, "alone", True))
    with plant("instruction", "sub>add"):
        f = subtracted()
        f(X, X)
        program = plans.get(f.trace(X, X))
    partial = program.certificate
    checking.refute(program, check(program, program.graph, [X, X]).verdict)
    checking._certify(program, partial)  # of a thread that began to check before
    with pytest.warns(ParityWarning, match="disagrees"):
        assert np.array_equal(f(X, X), X)
    assert np.array_equal(f(X, X), X)


def test_a_whole_certificate_is_not_replaced_by_a_partial_one(cache, monkeypatch):
    monkeypatch.setattr(checking, "go_on", lambda *_: None)
    f = subtracted()
    f(X, X)
    program = plans.get(f.trace(X, X))
    partial = program.certificate
    checking._certify(program, check(program, program.graph, [X, X]).verdict)
    checking._certify(program, partial)  # of a thread that began to check before
    assert program.certificate.state == "whole"


def test_calls_leave_what_they_come_to_to_a_check_that_is_under_way(cache):
    begin = threading.Event()
    assert submit(lambda: None).done.wait(60)  # what other tests left to the background is done
    submit(begin.wait)  # the background is busy
    try:
        f = subtracted()
        f(X, X)
        program, checks = plans.get(f.trace(X, X)), tn.stats()["checks"]
        program.reached = True  # a call has come to what was not judged
        program.close()
        for _ in range(3):
            assert np.array_equal(f(X, X), X)
        assert tn.stats()["checks"] == checks
    finally:
        begin.set()
    assert f.ready(60)
    assert np.array_equal(f(X, X), X)
    assert f.certificate(X, X).state == "whole"


def test_a_refutation_on_disk_is_not_lost_to_a_process_that_certifies(cache, monkeypatch):
    monkeypatch.setattr(checking, "go_on", lambda *_: None)
    with plant("instruction", "sub>add"):
        f = subtracted()
        f(X, X)
        one = plans.get(f.trace(X, X))
        plans.clear()
        other = plans.get(f.trace(X, X))  # as in another process
        assert one is not other
        checking.refute(one, check(one, one.graph, [X, X]).verdict)
        keep_verdict(other)
        assert other.refuted == one.refuted
        plans.clear()
        assert plans.get(f.trace(X, X)).refuted == one.refuted


def test_a_whole_certificate_on_disk_is_not_replaced_by_a_partial_one(cache, monkeypatch):
    monkeypatch.setattr(checking, "go_on", lambda *_: None)
    f = subtracted()
    f(X, X)
    one = plans.get(f.trace(X, X))
    plans.clear()
    other = plans.get(f.trace(X, X))
    checking._certify(one, check(one, one.graph, [X, X]).verdict)
    checking.note(one)
    keep_verdict(other)
    plans.clear()
    assert plans.get(f.trace(X, X)).certificate.state == "whole"


def test_a_check_that_fails_in_the_background_says_so_once(cache, monkeypatch):
    def failing(*given, stop=None, **options):
        if stop is not None:
            raise RuntimeError("out of order")
        return check(*given, **options)

    monkeypatch.setattr(import_module("tenfold.parity.check"), "check", failing)
    f = subtracted()
    f(X, X)
    assert f.ready(60)
    with pytest.warns(ParityWarning, match="stays partial: RuntimeError.*out of order"):
        assert np.array_equal(f(X, X), X)
    assert f.certificate(X, X).state == "partial"
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert np.array_equal(f(X, X), X)


def test_a_fault_that_can_not_be_looked_into_takes_the_plan_out_of_use(cache, monkeypatch):
    def located(*given, **options):
        raise MemoryError

    monkeypatch.setattr(import_module("tenfold.parity.find.bisect"), "located", located)
    with plant("instruction", "sub>add"):
        f = subtracted()
        f(X, X)
        assert f.ready(60)
        with pytest.warns(ParityWarning, match="disagrees"):
            assert np.array_equal(f(X, X), X)


def test_a_whole_check_of_each_call_completes_a_partial_certificate(cache, monkeypatch):
    monkeypatch.setattr(checking, "go_on", lambda *_: None)
    f = subtracted()
    f(X, X)
    assert f.certificate(X, X).state == "partial"
    g = tn.jit(f.__wrapped__, verify="always")
    g(X, X)
    assert g.certificate(X, X).state == "whole"


def test_copies_for_the_background_are_bounded_all_together(cache, monkeypatch):
    monkeypatch.setattr(checking, "COPIED", 3 * X.nbytes)
    begin, seen = threading.Event(), []
    assert submit(lambda: None).done.wait(60)  # what other tests left to the background is done
    first = submit(begin.wait)  # the background is busy
    try:
        fs = [tn.jit(lambda a, n=n: a * 2 - n, verify=0.0) for n in range(6)]
        for f in fs:
            f(X)
            seen.append(held())
        assert seen == [X.nbytes * n for n in (1, 2, 3, 3, 3, 3)]
    finally:
        begin.set()
    assert first.done.wait(60)
    assert all(f.ready(60) for f in fs)
    for f in fs:
        f(X)  # those that had no room go on now
        assert f.ready(60)
        assert f.certificate(X).state == "whole"


def test_large_arguments_are_not_copied_for_the_background(cache, monkeypatch):
    monkeypatch.setattr(checking, "OWN", X.nbytes - 1)
    f = tn.jit(lambda a: a * 2 - 7, verify=0.0)
    f(X)
    assert f.ready(60)
    assert f.certificate(X).state == "partial"
    assert f.certificate(X).undrawn == 0  # what needs no arguments was done


def test_an_entry_that_takes_long_to_try_is_left_to_the_next_call(cache, monkeypatch):
    monkeypatch.setattr(checking, "TRIED", 0)

    @tn.jit
    def f(a):
        a *= 2

    slow = []
    for _ in range(3):
        before = tn.stats()["slow_calls"]
        a = X.copy()
        f(a)
        assert np.array_equal(a, X * 2)
        slow.append(tn.stats()["slow_calls"] - before)
    assert slow == [1, 1, 0]


FORKED = """
    import os, threading, warnings
    import numpy as np, tenfold as tn
    from faults import plant
    from tenfold.promote.background import submit
    warnings.simplefilter("ignore")
    x = np.linspace(0.1, 1, 64)
    gate = threading.Event()
    with plant("instruction", "sub>add"):
        submit(lambda: gate.wait(0.2))  # the check waits behind this
        f = tn.jit(lambda a, b: a * 2 - b, verify=0.0)
        f(x, x), f(x, x)
        if child := os.fork():
            raise SystemExit(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
        f(x, x)
        ready = f.ready(60)
        os._exit(0 if ready and np.array_equal(f(x, x), x) else 1)
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork")
def test_a_child_goes_on_with_the_check_that_a_fork_left_behind():
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(FORKED)],
        env={**os.environ, "TENFOLD_CACHE": "off", "PYTHONPATH": str(Path(__file__).parents[1])},
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr


def test_threads_that_read_the_plan_of_a_program_from_disk_get_the_same_one(cache, monkeypatch):
    def planned(*given):
        with suppress(threading.BrokenBarrierError):
            both.wait(1)  # both have begun to read
        return plan(*given)

    both = threading.Barrier(2)
    memory = import_module("tenfold.cache.memory")
    plan = memory._planned
    graph = subtracted().trace(X, X)
    plans.get(graph)
    plans.clear()
    program = plans.get(graph)
    monkeypatch.setattr(memory, "_planned", planned)
    with ThreadPoolExecutor(2) as pool:
        one, other = pool.map(lambda _: program.plan, range(2))
    assert one is other
    assert program.plan is one


def test_a_hook_that_writes_to_an_argument_refutes_nothing(cache):
    given = np.arange(9.0)

    def write(value):
        given[0] = 1000

    def triple(x):
        tn.hook("write", x.sum(), write)
        x += 1
        return x * 3

    with warnings.catch_warnings():
        warnings.simplefilter("error")
        tn.jit(triple)(given)
        tn.jit(triple, strict=True)(given)
