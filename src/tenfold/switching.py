"""How soon a thread that waits for the interpreter gets it, while another compiles.

Python lets a thread keep the interpreter for five milliseconds. A thread of Tenfold's own that
compiles beside the user's keeps it for a fiftieth of one: whoever computes with NumPy gives it up
in every operation, and waits for it as often.
"""

from __future__ import annotations

import sys
from collections.abc import Generator
from contextlib import contextmanager

from tenfold.locks import Lock

INTERVAL = 2e-5  # seconds
_lock = Lock()
_blocks = 0  # how many of all threads ask for it
_before = _ours = 0.0


@contextmanager
def giving_way() -> Generator[None]:
    """The interpreter changes hands sooner while this block runs; the last block to end puts the
    interval back, unless somebody has set it meanwhile.

    >>> import sys
    >>> before = sys.getswitchinterval()
    >>> with giving_way():
    ...     sys.getswitchinterval() <= INTERVAL
    True
    >>> sys.getswitchinterval() == before
    True
    """
    global _blocks, _before, _ours
    with _lock:
        if _blocks == 0:
            _before = sys.getswitchinterval()
            sys.setswitchinterval(min(_before, INTERVAL))
            _ours = sys.getswitchinterval()  # as Python rounds it
        _blocks += 1
    try:
        yield
    finally:
        with _lock:
            _blocks -= 1
            if _blocks == 0 and sys.getswitchinterval() == _ours:
                sys.setswitchinterval(_before)
