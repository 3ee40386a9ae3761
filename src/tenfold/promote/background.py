"""Work in the background: one thread that does jobs in the order they came.

While a job runs, threads that wait for the interpreter get it within a fiftieth of a millisecond,
not Python's usual five: so a call is not held up by the thread that compiles.

A job may be patient: it is begun when no other such job has come for a while. Calls that come one
after another, each with a job behind it, are answered before any of these takes the interpreter;
and a process that soon ends begins none that it would not bring to an end.

At the end of the process the job under way is finished and the rest are dropped. A fork waits
for the job under way; the child starts with no thread, and its jobs that were not done are told
that they were left behind, and given to a thread of its own when they are asked for again. A job
that takes long asks `waited_for` now and then, and ends early where it is.
"""

from __future__ import annotations

import atexit
import os
import threading
from collections import deque
from collections.abc import Callable
from time import monotonic
from typing import Any

from tenfold.frames import kept_warnings, warn
from tenfold.switching import giving_way

Failed = Callable[[BaseException | None], None]


class Job:
    """Something to be done once. `done` is set at its end, whether it went well or not; `next` is
    what it has asked for to be done after it. `failed` is called with what it raised,
    or with None in the child of a fork that left it behind; `size` are the bytes that it holds."""

    __slots__ = (
        *("_failed", "_warnings", "_work", "done", "error", "next", "patient", "process"),
        *("result", "size", "told"),
    )

    def __init__(
        self, work: Callable[[], Any], failed: Failed | None, size: int, patient: float
    ) -> None:
        self._work: Callable[[], Any] | None = work
        self._failed = failed
        self.size = size
        self.patient = patient
        self.done = threading.Event()
        self.result: Any = None
        self.error: BaseException | None = None
        self.process = os.getpid()
        self.told = False  # whether anyone has said that it failed
        self._warnings: list[tuple[str, type[Warning]]] = []
        self.next: Job | None = None

    def run(self) -> None:
        work, self._work = self._work, None  # what it held dies with it
        try:
            if work is not None:
                with kept_warnings() as self._warnings:
                    self.result = work()
        except BaseException as error:
            self.error = error
            if self._failed is not None:
                self._failed(error)
        finally:
            self.done.set()

    def warn(self) -> None:
        """Say what it warned of, once: a call does, at the user's line."""
        said, self._warnings = self._warnings, []
        for message, category in said:
            warn(message, category)

    def leave(self) -> None:
        """It stays with the process from which this one forked."""
        if self._failed is not None:
            self._failed(None)

    @property
    def lost(self) -> bool:
        """Whether it was given to the thread of another process, from which this one forked."""
        return self.process != os.getpid() and not self.done.is_set()


class _Worker:
    def __init__(self) -> None:
        self.jobs: deque[Job] = deque()
        self.wake = threading.Condition()
        self.busy = threading.Lock()  # held while a job runs
        self.thread: threading.Thread | None = None
        self.closing = False
        self.current: Job | None = None
        self.forks = 0  # that wait for the job under way
        self.came = 0.0  # when the last patient job did

    def submit(self, job: Job) -> None:
        if self.current is not None and self.thread is threading.current_thread():
            self.current.next = job
        with self.wake:
            if self.closing:
                job.done.set()  # the process ends: nobody will ask
                return
            self.jobs.append(job)
            if job.patient:
                self.came = monotonic()
            if self.thread is None:
                self.thread = threading.Thread(target=self._loop, name="tenfold", daemon=True)
                self.thread.start()
            self.wake.notify()

    def _loop(self) -> None:
        while True:
            with self.wake:
                while not self.closing and (job := self._next()) is None:
                    least = min((waits.patient for waits in self.jobs), default=None)
                    self.wake.wait(
                        None if least is None else max(self.came + least - monotonic(), 0.001)
                    )
                if self.closing:
                    return
                assert job is not None
                self.jobs.remove(job)
                self.current = job
            with self.busy, giving_way():
                job.run()
                self.current = None

    def _next(self) -> Job | None:
        """The job to be done now: the first, patient ones after the others, if it is quiet."""
        for job in self.jobs:
            if not job.patient:
                return job
        quiet = monotonic() - self.came
        return next((job for job in self.jobs if job.patient <= quiet), None)

    def close(self) -> None:
        with self.wake:
            self.closing = True
            self.jobs.clear()
            self.wake.notify()
        if self.thread is not None and self.thread is not threading.current_thread():
            self.thread.join()


_worker = _Worker()


def submit(
    work: Callable[[], Any],
    failed: Failed | None = None,
    size: int = 0,
    patient: float = 0.0,
) -> Job:
    """Have this done in the background; `failed` is called there with what it raises. `size` are
    the bytes that are held for it. `patient`: when no job of that kind has come for so many
    seconds.

    >>> job = submit(lambda: 6 * 7)
    >>> job.done.wait(10), job.result
    (True, 42)
    """
    job = Job(work, failed, size, patient)
    _worker.submit(job)
    return job


def waiting() -> int:
    """How many jobs wait for their turn."""
    return len(_worker.jobs)


def held() -> int:
    """How many bytes are held for the job under way and those that wait."""
    with _worker.wake:
        jobs = [*_worker.jobs, *([_worker.current] if _worker.current else [])]
    return sum(job.size for job in jobs)


def waited_for() -> bool:
    """Whether the end of the process, or a fork, waits for the job under way."""
    return _worker.closing or _worker.forks > 0


def _before_fork() -> None:
    _worker.forks += 1
    _worker.busy.acquire()
    _worker.wake.acquire()


def _after_in_parent() -> None:
    _worker.forks -= 1
    _worker.wake.release()
    _worker.busy.release()


def _after_in_child() -> None:
    global _worker
    before, _worker = _worker, _Worker()
    for job in (*before.jobs, *([before.current] if before.current else [])):
        job.leave()


atexit.register(lambda: _worker.close())
if hasattr(os, "register_at_fork"):
    os.register_at_fork(
        before=_before_fork, after_in_parent=_after_in_parent, after_in_child=_after_in_child
    )
