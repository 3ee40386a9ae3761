"""Locks and forks: a child never waits for a thread that it does not have."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from tenfold import locks
from tenfold.locks import Lock, cached_property, once, start

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="this system has no fork")

FORKS = int(os.environ.get("TENFOLD_HAMMER", "12"))

# Threads trace, plan and compile, and import what that takes, while children are forked that do
# the same. A child that hangs is ended by the alarm.
SCRIPT = """
import os, signal, sys, threading, time
import numpy as np
import tenfold as tn

over = False

def work(k):
    n = 0
    while not over:
        n += 1
        f = tn.jit(lambda x: np.sort(np.exp(x) * k + n) + n, verify="off")
        f(np.arange(8.0 + n % 7))

threads = [threading.Thread(target=work, args=(k,)) for k in range(2)]
for thread in threads: thread.start()
failed = []
for i in range(int(sys.argv[1])):
    time.sleep(0.003 * (i % 7))
    child = os.fork()
    if not child:
        signal.signal(signal.SIGALRM, signal.SIG_DFL)
        signal.alarm(90)
        x = np.arange(5.0)
        f = lambda x: np.sort(np.cos(x) * i) + np.tanh(x) @ np.ones((5, 5))
        os._exit(0 if np.allclose(tn.jit(f)(x), f(x)) else 3)
    status = os.waitpid(child, 0)[1]
    if status:
        failed.append((i, status))
over = True
for thread in threads: thread.join()
assert not failed, failed
"""


def test_children_forked_while_threads_compile_go_on(tmp_path: Path) -> None:
    script = tmp_path / "forks.py"
    script.write_text(SCRIPT)
    run = subprocess.run(
        [sys.executable, str(script), str(FORKS)],
        env={**os.environ, "TENFOLD_CACHE": "off"},
        capture_output=True,
        text=True,
        timeout=1800,
    )
    assert run.returncode == 0, run.stderr[-2000:]


def in_child(work: object) -> int:
    """The status of a forked process that does this; one that hangs is ended."""
    import signal

    child = os.fork()
    if not child:
        signal.signal(signal.SIGALRM, signal.SIG_DFL)
        signal.alarm(20)
        try:
            work()  # type: ignore[operator]
        finally:
            os._exit(7)
    return os.waitpid(child, 0)[1]


def test_a_fork_waits_until_no_other_thread_holds_a_lock() -> None:
    lock, held, free = Lock(), threading.Event(), threading.Event()
    order = []

    def hold() -> None:
        with lock, lock:
            held.set()
            free.wait(20)
            order.append("let go")

    thread = threading.Thread(target=hold)
    thread.start()
    held.wait(20)
    threading.Timer(0.2, free.set).start()

    def child() -> None:
        with lock:
            os._exit(0 if order == ["let go"] else 1)

    assert in_child(child) == 0
    thread.join()


def test_who_holds_a_lock_may_wait_for_a_thread_of_its_own_while_another_forks() -> None:
    lock, other, held, forking = Lock(), Lock(), threading.Event(), threading.Event()
    order = []

    def help_on() -> None:
        forking.wait(20)
        while not locks._forks:
            time.sleep(0.001)
        with other:
            order.append("helped")

    def hold() -> None:
        with lock:
            thread = start(help_on, "helper")
            held.set()
            thread.join(20)
            order.append("gone on" if not thread.is_alive() else "stuck")

    thread = threading.Thread(target=hold)
    thread.start()
    held.wait(20)
    forking.set()
    assert in_child(lambda: os._exit(0 if order == ["helped", "gone on"] else 1)) == 0
    thread.join()
    assert not locks._inside


def test_a_thread_that_forks_while_it_holds_a_lock_holds_it_in_the_child_too() -> None:
    lock, waiting = Lock(), threading.Event()

    def wait() -> None:
        waiting.set()
        with lock:
            pass

    thread = threading.Thread(target=wait)

    def child() -> None:
        with lock, Lock():
            os._exit(0 if lock._held._is_owned() else 1)  # type: ignore[attr-defined]

    with lock:
        thread.start()  # a fork that waited for this one would wait for ever
        waiting.wait(20)
        assert in_child(child) == 0
    thread.join()


def test_a_module_that_another_thread_is_importing_is_imported_anew_in_the_child(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    begun, go = threading.Event(), threading.Event()
    (tmp_path / "slow_to_import.py").write_text(
        "import sys\nsys.begun.set()\nsys.go.wait(20)\nvalue = 1\n"
    )
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.setattr(sys, "begun", begun, raising=False)
    monkeypatch.setattr(sys, "go", go, raising=False)
    thread = threading.Thread(target=lambda: __import__("slow_to_import"))
    thread.start()
    begun.wait(20)

    def child() -> None:
        go.set()
        os._exit(0 if __import__("slow_to_import").value == 1 else 1)

    assert in_child(child) == 0
    go.set()
    thread.join()
    del sys.modules["slow_to_import"]


def test_a_property_that_another_thread_computes_is_no_lock_for_the_child() -> None:
    begun, go = threading.Event(), threading.Event()

    class Slow:
        @cached_property
        def value(self) -> int:
            begun.set()
            go.wait(20)
            return 1

    thread = threading.Thread(target=lambda: Slow().value)
    thread.start()
    begun.wait(20)

    def child() -> None:
        go.set()
        os._exit(0 if Slow().value == 1 else 1)

    assert in_child(child) == 0
    go.set()
    thread.join()


def test_what_is_made_once_is_made_by_one_thread() -> None:
    together, made = threading.Barrier(16), []

    @once
    def make(name: str) -> object:
        made.append(name)
        together_again.wait(0.1)
        return object()

    together_again = threading.Event()
    found = []

    def work() -> None:
        together.wait()
        found.append(make("x"))

    threads = [threading.Thread(target=work) for _ in range(16)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert made == ["x"]
    assert len({id(one) for one in found}) == 1
