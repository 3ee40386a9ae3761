"""The pool in this process: its code, its limit, what it counted."""

from __future__ import annotations

import ctypes
import os

from tenfold.backends.cpu.link.loader import Image, load
from tenfold.backends.cpu.run.fixed import EXPORTS, POOL, fixed
from tenfold.backends.cpu.threads import words
from tenfold.backends.cpu.threads.limits import thread_limit
from tenfold.backends.llvm.target import LLVMTarget
from tenfold.config import on_threads
from tenfold.locks import Lock

_MOMENT = 200_000  # nanoseconds


class ThreadPool:
    """The code of the pool, and its words in memory."""

    def __init__(self, target: LLVMTarget) -> None:
        self.image: Image = load([fixed(POOL, target)], EXPORTS[POOL])
        # Workers run this code until the process ends, after the last of Python's objects.
        ctypes.pythonapi.Py_IncRef(ctypes.py_object(self.image))
        self._base = self.image.address("tn_pool")
        self.moment = _MOMENT
        self.set_limit()

    @property
    def limit(self) -> int:
        """How many threads take part at most, the caller among them."""
        return self._word(words.LIMIT).value

    def set_limit(self, *_: object) -> None:
        """Have as many threads take part as settings and system allow now."""
        self._word(words.LIMIT).value = thread_limit()

    @property
    def moment(self) -> int:
        """Nanoseconds between two pieces of little work for which workers are woken."""
        return self._count(words.MOMENT)

    @moment.setter
    def moment(self, nanoseconds: int) -> None:
        ctypes.c_int64.from_address(self._base + words.MOMENT).value = nanoseconds

    @property
    def started(self) -> int:
        """How many workers there are."""
        return self._word(words.STARTED).value

    def counts(self) -> dict[str, int]:
        """What happened in this process: threads that were started, pieces of work that were cut,
        their indices, and how many of these ran on workers."""
        on_workers = sum(
            self._count(words.WORKERS + n * words.WORKER_BYTES + words.RUN)
            for n in range(1, self.started + 1)
        )
        return {
            "threads_started": self._count(words.CREATED),
            "regions": self._count(words.REGIONS),
            "indices": self._count(words.INDICES),
            "indices_on_workers": on_workers,
        }

    def reset(self) -> None:
        """Forget workers and work: in the child of a fork there are none."""
        for word in (words.BUSY, words.STARTED, words.SLEEPERS, words.GATE):
            self._word(word).value = 0
        ctypes.c_int64.from_address(self._base + words.CREATED).value = 0
        # What is taken of work that was under way is not said of what comes next.
        ctypes.c_int64.from_address(self._base + words.REGIONS).value += 1
        self.set_limit()

    def _word(self, offset: int) -> ctypes.c_int32:
        return ctypes.c_int32.from_address(self._base + offset)

    def _count(self, offset: int) -> int:
        return ctypes.c_int64.from_address(self._base + offset).value


_pool: list[ThreadPool] = []  # the one there is
_loading = Lock()


def thread_pool(target: LLVMTarget) -> ThreadPool:
    """The pool of this process, whatever target it was first asked for."""
    if not _pool:
        with _loading:
            if not _pool:
                _pool.append(ThreadPool(target))
                on_threads.append(_pool[0].set_limit)
    return _pool[0]


def _in_child() -> None:
    for pool in _pool:
        pool.reset()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_in_child)
