"""Python's garbage collector, at rest while a program is traced and planned.

Both make many objects and drop few: the collector would walk over them again and again and find
nothing. It took a twentieth of the time of a first call.
"""

from __future__ import annotations

import gc
import threading
from collections.abc import Generator
from contextlib import contextmanager

_lock = threading.Lock()
_resting = 0  # how many blocks of all threads ask for it


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
    global _resting, _was_on
    with _lock:
        if _resting == 0:
            _was_on = gc.isenabled()
            gc.disable()
        _resting += 1
    try:
        yield
    finally:
        with _lock:
            _resting -= 1
            if _resting == 0 and _was_on:
                gc.enable()


_was_on = False
