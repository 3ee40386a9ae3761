"""Python's garbage collector, at rest while Tenfold is imported and a program traced and planned.

All make many objects and drop few: the collector would walk over them again and again and find
nothing. It took a twentieth of the time of a first call. Nor need it look at what they made as soon
as they are done: many new objects, nearly all of a graph and a plan that stay, go to the oldest
generation unseen.
"""

from __future__ import annotations

import gc
import os
import threading
from collections.abc import Generator
from contextlib import contextmanager

from tenfold.locks import Lock

MANY = 10_000  # new objects; to look at fewer takes less than half a millisecond
UNSEEN = 5_000_000  # objects that are not looked at before all are

_lock = Lock()
_blocks: dict[int, int] = {}  # of each thread, how many ask for it; a thread with none is not there
_was_on = False
_unseen = 0


@contextmanager
def resting() -> Generator[None]:
    """No collection while this block runs; the last block to end sets the collector going again.

    One that the user has turned off stays off.

    >>> import gc
    >>> with resting():
    ...     gc.isenabled()
    False
    >>> gc.isenabled()
    True
    """
    global _was_on
    thread = threading.get_ident()
    with _lock:  # in such an order that it never rests without a block: a fork may come in between
        if not _blocks:
            _was_on = gc.isenabled()
        _blocks[thread] = _blocks.get(thread, 0) + 1
        gc.disable()
    try:
        yield
    finally:
        with _lock:
            left = _blocks.get(thread, 1) - 1
            if not left and len(_blocks) <= 1 and _was_on:
                _put_by()
                gc.enable()
            if left:
                _blocks[thread] = left
            else:
                _blocks.pop(thread, None)


def _put_by() -> None:
    """Have the collector look at what is new when it next looks at all there is. What the user has
    frozen stays so."""
    global _unseen
    new = gc.get_count()[0]
    if new < MANY or gc.get_freeze_count():
        return
    gc.freeze()  # all generations become one that is never looked at
    gc.unfreeze()  # which becomes the oldest
    _unseen += new
    if _unseen > UNSEEN:  # its own count, which decides when it does, does not know of these
        _unseen = 0
        gc.collect()


def _forked() -> None:
    """In the child of a fork there are no other threads, and nobody to end their blocks."""
    others = [t for t in _blocks if t != threading.get_ident()]
    for thread in others:
        del _blocks[thread]
    if others and not _blocks and _was_on:
        gc.enable()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forked)
