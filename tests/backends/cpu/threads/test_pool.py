"""The pool: every index runs once, whoever calls, and the caller sees what was done."""

from __future__ import annotations

import ctypes
import os
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from functools import cache

import numpy as np
import pytest

import tenfold as tn
from tenfold.backends.cpu.link.loader import Image, load
from tenfold.backends.cpu.run.fixed import fixed
from tenfold.backends.cpu.target import host_target
from tenfold.backends.cpu.threads import words
from tenfold.backends.cpu.threads.pool import ThreadPool, thread_pool
from tenfold.backends.cpu.threads.text import pool_text
from tenfold.backends.llvm.assemble import assemble
from tenfold.backends.llvm.target import target_with

linux = pytest.mark.skipif(sys.platform != "linux", reason="elsewhere the caller runs everything")

# `count` counts calls by index, and by worker behind them; `stop` answers by index; `nest` has
# each index cut its row; `keep` writes its worker into memory of its own and reads it again.
TEXT = """
declare i32 @tn_parallel_for(ptr, ptr, i64, i64, ptr)
declare ptr @tn_worker_memory(i64, i64)

define dso_local i32 @count(ptr %rows, i64 %i, i64 %worker) {
  %at = getelementptr i64, ptr %rows, i64 %i
  %old = load i64, ptr %at
  %new = add i64 %old, 1
  store i64 %new, ptr %at
  ret i32 0
}
define dso_local i32 @stop(ptr %rows, i64 %i, i64 %worker) {
  %done = call i32 @count(ptr %rows, i64 %i, i64 %worker)
  %here = icmp eq i64 %i, 5
  %answer = select i1 %here, i32 6, i32 0
  ret i32 %answer
}
define dso_local i32 @nest(ptr %rows, i64 %i, i64 %worker) {
  %shift = mul i64 %i, 10
  %row = getelementptr i64, ptr %rows, i64 %shift
  %answer = call i32 @tn_parallel_for(ptr @count, ptr %row, i64 10, i64 0, ptr null)
  ret i32 %answer
}
define dso_local i32 @keep(ptr %rows, i64 %i, i64 %worker) {
  %none = icmp eq i64 %worker, 0
  br i1 %none, label %end, label %own
own:
  %bytes = mul i64 %i, 1000
  %room = add i64 %bytes, 8
  %memory = call ptr @tn_worker_memory(i64 %worker, i64 %room)
  %last = getelementptr i8, ptr %memory, i64 %bytes
  store i64 %worker, ptr %memory
  store i64 %worker, ptr %last
  %first = load i64, ptr %memory
  %wrong = icmp ne i64 %first, %worker
  %bad = zext i1 %wrong to i32
  ret i32 %bad
end:
  ret i32 0
}
define dso_local i32 @run(ptr %function, ptr %rows, i64 %count, i64 %times, i64 %nanoseconds) {
begin:
  br label %again
again:
  %turn = phi i64 [ 0, %begin ], [ %more, %again ]
  %so.far = phi i32 [ 0, %begin ], [ %whole, %again ]
  %answer = call i32 @tn_parallel_for(
    ptr %function, ptr %rows, i64 %count, i64 %nanoseconds, ptr null)
  %whole = or i32 %so.far, %answer
  %more = add i64 %turn, 1
  %on = icmp slt i64 %more, %times
  br i1 %on, label %again, label %end
end:
  ret i32 %whole
}
"""
NAMES = ("count", "stop", "nest", "keep", "run")


@cache
def image() -> Image:
    return load([assemble(TEXT, host_target())], NAMES, None, [pool().image])


def pool() -> ThreadPool:
    return thread_pool(host_target())


def run(
    name: str, count: int, times: int = 1, rows: int = 0, nanoseconds: int = 1_000_000
) -> tuple[int, list[int]]:
    """The answer of so many pieces of work, and how often each row was counted."""
    made = np.zeros(max(rows, count), np.int64)
    number, pointer = ctypes.c_int64, ctypes.c_void_p
    kind = ctypes.CFUNCTYPE(ctypes.c_int32, pointer, pointer, number, number, number)
    call: Callable[..., int] = kind(image().address("run"))
    answer = call(image().address(name), made.ctypes.data, count, times, nanoseconds)
    return answer, made.tolist()


@pytest.fixture(params=[1, 2, 3, 8], autouse=True)
def threads(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> int:
    monkeypatch.setattr(tn.config, "threads", request.param)
    number: int = request.param
    return number


@pytest.mark.parametrize("count", [0, 1, 2, 7, 1000])
def test_every_index_runs_once(count: int) -> None:
    answer, rows = run("count", count, times=50)
    assert answer == 0
    assert rows == [50] * count


@linux
def test_marks_of_shares_begin_anew_after_their_last_one(
    monkeypatch: pytest.MonkeyPatch, threads: int
) -> None:
    """Old ones that would be taken for those of the work under way are forgotten."""
    run("count", 40, times=3)  # what is said of it is found again, one round of marks later
    regions = ctypes.c_int64.from_address(pool().image.address("tn_pool") + words.REGIONS)
    before = regions.value
    try:
        for marks in (1, 2):
            regions.value = (marks << words.MARK) - 2
            assert run("count", 40, times=6) == (0, [6] * 40)
            regions.value = (marks << words.MARK) + before - 3
            assert run("count", 40, times=6) == (0, [6] * 40)
    finally:
        regions.value = before + (3 << words.MARK)


@linux
def test_limits_that_change_leave_no_index_out(monkeypatch: pytest.MonkeyPatch) -> None:
    for number in (8, 2, 5, 1, 3, 8):
        monkeypatch.setattr(tn.config, "threads", number)
        assert run("count", 37, times=30) == (0, [30] * 37)


@linux
def test_workers_are_started_once(threads: int) -> None:
    run("count", 64, times=20)
    before = pool().counts()
    run("count", 64, times=20)
    after = pool().counts()
    assert pool().started >= threads - 1
    assert after["threads_started"] == before["threads_started"]
    cut = 20 if threads > 1 else 0
    assert after["regions"] - before["regions"] == cut
    assert after["indices"] - before["indices"] == 64 * cut


def test_an_answer_stops_the_work(threads: int) -> None:
    answer, rows = run("stop", 1000)
    assert answer == 6
    assert rows[5] == 1
    assert max(rows) == 1
    assert threads > 1 or sum(rows) == 6  # others may be far ahead when it comes
    assert run("count", 10) == (0, [1] * 10)


def test_nested_work_is_done_by_whoever_has_it() -> None:
    before = pool().counts()["regions"]
    answer, rows = run("nest", 30, times=20, rows=300)
    assert answer == 0
    assert rows == [20] * 300
    assert pool().counts()["regions"] - before <= 20


def test_a_worker_has_memory_of_its_own() -> None:
    assert run("keep", 500, times=10)[0] == 0


def test_many_callers_at_once() -> None:
    found: list[bool] = []

    def call() -> None:
        found.append(run("count", 100, times=500) == (0, [500] * 100))

    callers = [threading.Thread(target=call) for _ in range(16)]
    for caller in callers:
        caller.start()
    for caller in callers:
        caller.join()
    assert found == [True] * 16


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system has no fork")
def test_the_child_of_a_fork_starts_its_own(threads: int) -> None:
    run("count", 64, times=5)
    child = os.fork()
    if child == 0:
        good = pool().started == 0 and run("count", 64, times=20) == (0, [20] * 64)
        good &= pool().counts()["threads_started"] == (
            threads - 1 if sys.platform == "linux" else 0
        )
        os._exit(0 if good else 1)
    assert os.waitpid(child, 0)[1] == 0
    assert run("count", 64, times=5) == (0, [5] * 64)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system has no fork")
def test_a_fork_while_the_pool_is_at_work() -> None:
    going = threading.Event()

    def work() -> None:
        while not going.is_set():
            run("count", 1000, times=100)

    worker = threading.Thread(target=work)
    worker.start()
    try:
        for _ in range(5):
            child = os.fork()
            if child == 0:
                os._exit(0 if run("count", 64, times=20) == (0, [20] * 64) else 1)
            assert os.waitpid(child, 0)[1] == 0
    finally:
        going.set()
        worker.join()


def test_a_limit_is_taken_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    run("count", 64)
    for limit in (2, 1, 4):
        monkeypatch.setattr(tn.config, "threads", limit)
        assert pool().limit == limit
        assert run("count", 1000, times=20) == (0, [20] * 1000)


@linux
def test_sleeping_workers_are_not_woken_for_little_that_comes_seldom(threads: int) -> None:
    def cut(nanoseconds: int = 30_000) -> int:
        """How many pieces of work were cut, little work unless told: none or one."""
        before = pool().counts()["regions"]
        assert run("count", 3, nanoseconds=nanoseconds) == (0, [1] * 3)
        return pool().counts()["regions"] - before

    run("count", 64)
    before, pool().moment = pool().moment, 0
    try:
        for _ in range(100):  # until all workers sleep
            time.sleep(0.01)
            if not cut():
                break
        else:
            raise AssertionError("they were woken each time")
        assert cut(1_000_000) == (threads > 1)  # few parts of long work
        for _ in range(100):
            time.sleep(0.01)
            if not cut():
                break
        pool().moment = 1 << 62
        assert cut() == (threads > 1)
    finally:
        pool().moment = before


def test_there_is_one_pool_for_all_targets() -> None:
    assert thread_pool(host_target()) is pool()
    assert fixed("pool", host_target())


@pytest.mark.parametrize(
    ("triple", "workers"),
    [("aarch64-unknown-linux-gnu", True), ("arm64-apple-darwin", False)],
)
def test_the_text_for_other_systems(triple: str, workers: bool) -> None:
    import llvmlite.binding as llvm

    text = pool_text(target_with(triple, (), host_target().llvmlite))
    llvm.parse_assembly(text).verify()
    assert ("@pthread_create" in text) == workers
    assert "define dso_local i32 @tn_parallel_for(" in text


EXIT = """
from test_pool import run
print(run("count", 64, times=1000)[1] == [1000] * 64)
"""


def test_workers_keep_no_process_alive(threads: int) -> None:
    folder = os.path.dirname(__file__)
    done = subprocess.run(
        [sys.executable, "-c", EXIT],
        env={**os.environ, "TENFOLD_THREADS": str(threads), "PYTHONPATH": folder},
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    )
    assert (done.stdout, done.stderr) == ("True\n", "")
