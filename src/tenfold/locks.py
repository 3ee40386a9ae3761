"""Locks that a fork waits for, and what is made once under one.

The child of a fork has one thread. A lock that another thread held would stay locked in it for
ever, and LLVM, which was at work in that thread, would stay as it stood. So a fork waits until no
other thread holds a lock of ours, and meanwhile none that holds none gets one: there is no order of
locks to keep. A thread that forks while it holds one itself (a user's function that forks while it
is traced) does not wait, for the others may be waiting for it. Who holds a lock may wait for a
thread of its own (`start`): that counts as one inside from its first moment to its last.

Python's own locks of modules are not ours to wait for. A module whose import another thread had
begun is forgotten in the child, with its lock, and imported anew when it is asked for.
"""

from __future__ import annotations

import functools
import os
import sys
import threading
from collections.abc import Callable
from threading import get_ident
from typing import TYPE_CHECKING, Any, ParamSpec, TypeVar
from weakref import WeakSet

Given = ParamSpec("Given")
Result = TypeVar("Result")

_inside: dict[int, int] = {}  # of each thread, how many locks of ours it holds, if any
_forks = 0  # how many forks are under way
_turn = threading.Condition()
_locks: WeakSet[Lock] = WeakSet()


class Lock:
    """A lock that a thread may take again while it holds it.

    >>> with Lock() as lock, lock:
    ...     len(_inside)
    1
    """

    __slots__ = ("__weakref__", "_held")

    def __init__(self) -> None:
        self._held = threading.RLock()
        _locks.add(self)

    def __enter__(self) -> Lock:
        me = get_ident()
        while True:
            self._held.acquire()
            depth = _inside[me] = _inside.get(me, 0) + 1
            # A fork says that it is there before it looks who is inside: one sees the other.
            if depth > 1 or not _forks:
                return self
            self.__exit__()
            with _turn:
                _turn.wait_for(lambda: not _forks)

    def __exit__(self, *error: object) -> None:
        self._held.release()
        _leave(get_ident())


def _leave(thread: int) -> None:
    left = _inside[thread] - 1
    if left:
        _inside[thread] = left
        return
    del _inside[thread]
    if _forks:
        with _turn:
            _turn.notify_all()


_starting = Lock()


def start(work: Callable[[], None], name: str) -> threading.Thread:
    """Start a thread that a fork waits for, and that waits for no fork: whoever joins it may hold
    locks."""

    def run() -> None:
        me = get_ident()
        _inside[me] = 1
        _inside.pop(place, None)
        try:
            work()
        finally:
            _leave(me)

    thread = threading.Thread(target=run, name=name)
    place = -id(thread)  # among those inside, until it has its own
    with _starting:
        _inside[place] = 1
        try:
            thread.start()
        except BaseException:  # there are no more threads to be had, or it was interrupted
            _inside.pop(place, None)
            raise
    return thread


def once(function: Callable[Given, Result]) -> Callable[Given, Result]:
    """The function with its results kept for good, each made by one thread while others wait."""
    made: dict[Any, Result] = {}
    making = Lock()

    @functools.wraps(function)
    def call(*args: Given.args, **names: Given.kwargs) -> Result:
        key = (args, *sorted(names.items()))
        if key not in made:
            with making:
                if key not in made:
                    made[key] = function(*args, **names)
        return made[key]

    return call


if TYPE_CHECKING:
    from functools import cached_property as cached_property
else:

    class cached_property(functools.cached_property):  # noqa: N801  as Python's is written
        """Python's own, without the lock that some Pythons hold while they compute: a child of a
        fork would wait for it. Two threads may compute a value; both get the same."""

        def __get__(self, instance, owner=None):
            if instance is None:
                return self
            return instance.__dict__.setdefault(self.attrname, self.func(instance))


def _before_fork() -> None:
    global _forks
    with _turn:
        _forks += 1
        if get_ident() not in _inside:
            _turn.wait_for(lambda: not _inside)


def _after_in_parent() -> None:
    global _forks
    with _turn:
        _forks -= 1
        _turn.notify_all()


def _after_in_child() -> None:
    global _forks, _turn
    _forks, _turn = 0, threading.Condition()
    me = get_ident()
    for thread in [t for t in _inside if t != me]:
        del _inside[thread]
    for lock in _locks:
        if not lock._held._is_owned():  # type: ignore[attr-defined]
            lock._held = threading.RLock()
    _forget_imports(me)


def _forget_imports(me: int) -> None:
    """Modules that a thread which is not here was importing, and their locks."""
    locks = getattr(sys.modules.get("_frozen_importlib"), "_module_locks", {})
    for name, found in list(locks.items()):
        lock = found()
        if lock is None or getattr(lock, "owner", me) == me:
            continue
        locks.pop(name, None)
        spec = getattr(sys.modules.get(name), "__spec__", None)
        if getattr(spec, "_initializing", False):
            del sys.modules[name]


if hasattr(os, "register_at_fork"):
    os.register_at_fork(
        before=_before_fork, after_in_parent=_after_in_parent, after_in_child=_after_in_child
    )
