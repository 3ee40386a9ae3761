"""Plain data from files: no larger in memory than its length allows."""

from __future__ import annotations

from typing import Any

import msgpack

from tenfold.errors import FileError

# A list of nothing takes one byte in a file and some sixty in memory. What Tenfold writes has a
# list for every nine bytes or more.
_FREE, _EACH = 1 << 12, 4


def read_data(raw: bytes | memoryview) -> Any:
    """The data that msgpack wrote, with tuples for lists; FileError where it is none."""
    left = _FREE + len(raw) // _EACH

    def counted(made: Any) -> Any:
        nonlocal left
        left -= 1
        if left < 0:
            raise FileError("more lists than its length allows")
        return made

    try:
        return msgpack.unpackb(
            raw, use_list=False, strict_map_key=True, list_hook=counted, object_hook=counted
        )
    except FileError:
        raise
    except Exception as error:  # msgpack has many
        # Its text, not its repr: some hold all that was read.
        raise FileError(f"malformed: {type(error).__name__}: {error}") from None
